"""Small examples of what the functions of this part return."""

from keyhole import chart_labels, charts


def test_charts_plain():
    assert (charts.plain("a" * 20, longest=8), charts.plain("age[0].<b>")) == (
        "aaaaaaa…",
        "age[0].<b>",
    )


def test_charts_listed():
    assert charts.listed(["sex", "age", "state", "race"], most=2) == "sex, age and 2 more"


def test_charts_percentage():
    assert [charts.percentage(v) for v in (0, 1e-05, 0.00213, 0.05, 0.058, 0.64401, 0.9996, 1)] == [
        "0%",
        "less than 0.01%",
        "0.21%",
        "5%",
        "5.8%",
        "64%",
        "99.96%",
        "100%",
    ]


def test_charts_short_percentage():
    assert (charts.short_percentage(1e-05), charts.short_percentage(0.05)) == ("<0.01%", "5%")


def test_charts_house_style():
    import altair

    dots = altair.Chart(charts.inline([{"x": 1}])).mark_point().encode(x="x:Q")
    assert charts.house_style(dots, title="One dot").to_dict()["title"]["text"] == ["One dot"]


def test_charts_legend():
    assert (
        charts.legend(["in small cells: at risk", "in other cells"], width=420).to_dict()["columns"]
        == 2
    )
    assert (
        charts.legend(["in small cells: at risk", "in other cells"], width=200).to_dict()["columns"]
        == 1
    )


def test_chart_labels_merge_near():
    steps = [("+", "a", (0, 0)), ("+", "b", (3, 0)), ("+", "c", (90, 0))]
    assert [label.lines for label in chart_labels.merge_near(steps, colour="black")] == [
        ("+ a, b",),
        ("+ c",),
    ]


def test_chart_labels_place_labels():
    label = chart_labels.Label(("age",), (50, 50), "black")
    assert (
        chart_labels.place_labels(
            [label], plane=chart_labels.Box(0, 0, 100, 100), points=[(50, 50)], lines=[]
        )[0].align
        == "left"
    )


def test_chart_labels_round_ticks():
    assert chart_labels.round_ticks(0.3, length=300, apart=50) == [0.0, 0.01, 0.05, 0.1, 0.2, 0.3]
