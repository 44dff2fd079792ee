"""What charts show, what they never carry, and how they are saved."""

import base64
import hashlib
import json
import math
import struct
import subprocess
import sys
from html.parser import HTMLParser
from itertools import combinations, pairwise
from types import SimpleNamespace
from xml.dom import minidom

import altair
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.chart_labels import Box, RiskPlane, merge_near, place_labels, round_ticks
from keyhole.charts import (
    chart_format,
    chart_html,
    house_style,
    inline,
    legend,
    percentage,
    save_chart,
)
from keyhole.errors import OptionError
from keyhole.exposure.cells import risk
from keyhole.exposure.charts import contributions_chart, exposure_chart, levels_chart
from keyhole.exposure.levels import LevelSummary
from keyhole.published.figures import LIN_GARIN_VARIABLES, PublishedEvaluator
from keyhole.selection import backward, forward, stepwise
from keyhole.selection.charts import HEIGHT, WIDTH, path_chart, within_figures

HOSTILE = (
    "</script><script>alert(1)</script>",
    'a.b[0]["c"]',
    'it\'s "quoted"',
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "{expr: 'datum'}",
    "\\u003c&lt;",
)
OURS = {
    *("area", "colour", "cr", "cr2", "cutoff", "edge", "kind", "level", "name", "order", "part"),
    *("place", "records", "rp", "rp2", "path", "share", "size", "text", "variables", "wide"),
}
PUBLISHED = {"keep": LIN_GARIN_VARIABLES[:2], "candidates": LIN_GARIN_VARIABLES[2:]}
RUNS = {
    "forward": lambda: forward(PublishedEvaluator(), limit=0.30, **PUBLISHED),
    "backward": lambda: backward(PublishedEvaluator(), limit=0.05, **PUBLISHED),
    "stepwise": lambda: stepwise(PublishedEvaluator(), limit=0.55, drop_limit=0.35, **PUBLISHED),
}


def growing(variables):
    """Answer with figures that grow with the number of variables."""
    return SimpleNamespace(rp=0.01 * len(variables) ** 1.5, cr=0.02 * len(variables))


def hostile_selection():
    return forward(growing, keep=[], candidates=[(name,) for name in HOSTILE], limit=0.5)


def hostile_exposure(**options):
    frame = pl.DataFrame({name: [1, 1, 1, 2] for name in HOSTILE})
    return risk(frame, keys=HOSTILE, **options)


def found_frontier(count=3):
    sets = [
        SimpleNamespace(variables=("sex", f"v{i}"), rp=0.05 - i * 1e-6, cr=0.1 + i * 1e-6)
        for i in range(count)
    ]
    best = {"cr": sets[-1] if sets else None}
    return SimpleNamespace(sets=tuple(sets), limit=0.1, cutoff=3, complete=False, best=best)


CHARTS = {
    "exposure": lambda: exposure_chart(hostile_exposure()),
    "contributions": lambda: contributions_chart(
        pl.DataFrame({"variable": HOSTILE, "percent": [30.0, 83.3, None, 0.0, 1.0, 2.0, 3.0]})
    ),
    "levels": lambda: levels_chart(
        LevelSummary(
            {"none": 5, "low": 3, "medium": 1, "high": 1},
            {"low": 0.6, "medium": 0.2, "high": 0.2},
            {},
        )
    ),
    "path": lambda: path_chart([hostile_selection()]),
    "paths": lambda: path_chart(
        [hostile_selection()] * 2, names=HOSTILE[:2], frontier=found_frontier()
    ),
    "frontier": lambda: path_chart([], frontier=found_frontier()),
}


@pytest.fixture(scope="module", params=CHARTS)
def chart(request):
    return CHARTS[request.param]()


def walk(spec):
    """Yield every key and value of a spec, however deep, leaving out its data."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key not in ("datasets", "values"):
                yield key, value
                yield from walk(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from walk(item)


def rows_of(spec):
    return [row for rows in spec["datasets"].values() for row in rows]


def title_of(chart):
    return " ".join(chart.to_dict()["title"]["text"])


# Specs


def test_specs_are_valid_and_only_fields_of_our_own_are_named(chart):
    spec = chart.to_dict(validate=True)
    fields = {value for key, value in walk(spec) if key == "field"}
    assert fields
    assert fields <= OURS


def test_nothing_is_to_be_loaded(chart):
    spec = chart.to_dict()
    keys = {key for key, _ in walk(spec)}
    assert not keys & {"url", "href", "src"}
    addresses = [value for _, value in walk(spec) if str(value).startswith(("http", "//"))]
    assert addresses == [spec["$schema"]]


def test_titles_say_the_finding_and_the_axes_are_in_words():
    exposure = risk(pl.DataFrame({"a": [1] * 7 + [2, 3, 3]}), keys=["a"])
    assert title_of(exposure.plot()) == "30% of 10 records are in cells smaller than 3"
    assert title_of(hostile_exposure(cutoff=1).plot()) == (
        "None of 4 records is in cells smaller than 1"
    )
    titles = {v for k, v in walk(exposure.plot().to_dict()) if k == "title" and isinstance(v, str)}
    assert "Risk proportion RP: share of records at risk" in titles


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0%"), (1e-7, "less than 0.01%"), (1 - 1e-7, "more than 99.99%"), (1, "100%"),
     (0.05, "5%"), (0.0996, "10%"), (0.904, "90.4%"), (0.995, "99.5%"), (0.5, "50%")],
)  # fmt: skip
def test_a_percentage_is_nothing_or_all_only_where_it_is(value, text):
    assert percentage(value) == text


def test_settings_of_altair_do_not_change_where_data_goes():
    with altair.data_transformers.enable("json"):
        spec = exposure_chart(hostile_exposure()).to_dict()
    assert "url" not in {key for key, _ in walk(spec)}


# Exposure


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=300),
    st.one_of(st.integers(1, 12), st.integers(13, 400)),
)
@settings(max_examples=12)
def test_bars_and_line_agree_with_the_records(values, cutoff):
    exposure = risk(pl.DataFrame({"a": values}), keys=["a"], cutoff=cutoff)
    rows = rows_of(exposure_chart(exposure).to_dict())
    bars = [row for row in rows if "size" in row]
    assert sum(row["records"] for row in bars) == len(values)
    small = sum(1 for v in values if values.count(v) < cutoff)
    assert sum(r["records"] for r in bars if r["part"].endswith("at risk")) == small
    for row in (row for row in rows if "cutoff" in row):
        below = sum(1 for v in values if values.count(v) < row["cutoff"])
        assert row["rp"] == pytest.approx(below / len(values))
    assert [r["cutoff"] for r in rows if "text" in r and "cutoff" in r] == [cutoff]


def test_a_bar_begins_at_the_cutoff():
    rows = rows_of(exposure_chart(hostile_exposure(cutoff=7)).to_dict())
    sizes = [row["size"] for row in rows if "size" in row]
    assert sizes == ["1", "2", "3", "4", "5–6", "7–9", "10–19", "20–49", "50–99", "100+"]


def test_a_chart_of_exposure_carries_counts_and_no_record():
    frame = pl.DataFrame({"a": [f"secret{i % 400}" for i in range(5000)], "id": range(5000)})
    text = json.dumps(exposure_chart(risk(frame, keys=["a"])).to_dict())
    assert "secret" not in text
    assert len(rows_of(json.loads(text))) < 80


def test_records_left_out_are_told():
    frame = pl.DataFrame({"a": [1, 1, None]})
    below = exposure_chart(risk(frame, keys=["a"], missing="drop")).to_dict()["title"]["subtitle"]
    assert any("1 records with a missing key" in line for line in below)


def test_contributions_are_in_order_and_what_is_unknown_says_so():
    names = ["low", "unknown", "high"]
    frame = pl.DataFrame({"variable": names, "percent": [10.0, None, 90.0]})
    chart = contributions_chart(frame)
    rows = rows_of(chart.to_dict())
    assert [(r["name"], r["text"]) for r in rows] == [
        ("high", "90%"), ("low", "10%"), ("unknown", "not estimable"),
    ]  # fmt: skip
    assert title_of(chart).startswith("high makes records stand out most")
    nothing = contributions_chart(frame.with_columns(percent=pl.lit(None, dtype=pl.Float64)))
    assert "not estimable" in title_of(nothing)


# Selection


def points(chart):
    return [row for row in rows_of(chart.to_dict()) if "kind" in row]


def kinds(chart):
    found = [row["kind"] for row in points(chart)]
    return {kind: found.count(kind) for kind in found}


def test_forward_marks_the_chosen_set_and_the_step_refused():
    chart = path_chart([RUNS["forward"]()])
    assert kinds(chart) == {
        "step taken": 7, "chosen set, within the limit": 1, "next step, not taken": 1,
    }  # fmt: skip
    title = "10 of 16 variables can be released within the risk limit of 30% (forward search)"
    assert title_of(chart) == title


def test_backward_marks_where_the_rule_stops_and_the_set_within_the_limit():
    run = RUNS["backward"]()
    chart = path_chart([run])
    assert kinds(chart) == {
        "step taken": 10,
        "where the rule stops, above the limit": 1,
        "chosen set, within the limit": 1,
    }
    chosen = next(row for row in points(chart) if row["kind"].startswith("chosen"))
    expected = PublishedEvaluator()(run.within_limit)
    assert within_figures(run) == (expected.rp, expected.cr)
    assert (chosen["rp"], chosen["cr"]) == (expected.rp, expected.cr)
    assert chosen["rp"] <= run.limit


@pytest.mark.parametrize("name", RUNS)
def test_every_step_is_labelled_by_its_variable(name):
    run = RUNS[name]()
    spec = path_chart([run]).to_dict()
    text = " ".join(row["text"] for row in rows_of(spec) if "text" in row)
    drawn = text.replace(",", " ").split()
    assert all(drawn.count(step.variable) >= 1 for step in run.steps)
    assert f"risk limit {run.limit:.0%}" in text
    assert ("drop limit 35%" in text) == (name == "stepwise")


def test_several_searches_have_names_and_colours_of_their_own():
    runs = [run() for run in RUNS.values()]
    chart = path_chart([*runs, runs[0]])
    named = {r["path"] for r in rows_of(chart.to_dict()) if "path" in r}
    assert named == {
        "forward (limit 30%) #1", "forward (limit 30%) #2", "backward (limit 5%)",
        "stepwise (limit 55%)",
    }  # fmt: skip
    assert len({row["colour"] for row in points(chart)}) == 4
    assert title_of(chart) == "4 searches under risk limits from 5% to 55%"


def test_the_best_of_several_searches_is_named():
    kept = {"keep": ["a"], "candidates": ["b", "c"], "limit": 0.03}
    chart = path_chart([forward(growing, **kept), backward(growing, **kept)])
    assert title_of(chart) == "Both searches keep the same detail within the risk limit of 3%"


def test_a_search_without_a_step_is_drawn_too():
    nothing = forward(growing, keep=["a", "b"], candidates=[], limit=0.5)
    beyond = forward(growing, keep=["a", "b"], candidates=["c"], limit=0.001)
    assert points(path_chart([nothing])) == []
    assert kinds(path_chart([beyond])) == {"next step, not taken": 1}
    assert "exceed the risk limit of 0.1%" in title_of(path_chart([beyond]))


def test_the_frontier_is_drawn_behind_and_sets_on_one_pixel_once():
    spec = path_chart([RUNS["forward"]()], frontier=found_frontier(9000)).to_dict()
    sets = [r for r in rows_of(spec) if "variables" in r and "kind" not in r]
    assert 1 <= len(sets) < 100
    assert any("time ran out" in line for line in spec["title"]["subtitle"])
    empty = path_chart([], frontier=found_frontier(0))
    assert title_of(empty) == "No set of variables is within the risk limit"


def test_nothing_to_draw_is_an_error():
    with pytest.raises(OptionError, match="a selection or a frontier"):
        path_chart([])


@given(st.floats(0, 1), st.floats(0, 1))
def test_places_and_figures_of_the_plane_are_inverse(cr, rp):
    plane = RiskPlane("cr", "CR", 1.06, 1.08, 3, WIDTH, HEIGHT, stretched=True)
    back = plane.figures(*plane.pixels(cr, rp))
    assert back["cr"] == pytest.approx(cr, abs=1e-9)
    assert back["rp"] == pytest.approx(rp, abs=1e-9)


@given(st.floats(1e-6, 1.08))
def test_ticks_stand_apart_and_inside(top):
    ticks = round_ticks(top, length=400, apart=34)
    places = [400 * math.sqrt(tick / top) for tick in ticks]
    assert len(ticks) >= 4
    assert places[-1] <= 400
    assert all(b - a >= 34 for a, b in pairwise(places))


@given(st.lists(st.tuples(st.floats(0, 0.08), st.floats(0, 0.08)), min_size=1, max_size=14))
@settings(max_examples=25)
def test_labels_of_a_rising_path_cover_neither_each_other_nor_the_edge(steps):
    x, y, walked = 0.0, 0.0, []
    for i, (right, up) in enumerate(steps):
        x, y = min(x + right, 1), min(y + up, 1)
        walked.append(("+", f"variable{i}", (x * WIDTH, HEIGHT * (1 - y))))
    at = [point for _, _, point in walked]
    plane = Box(0, 0, WIDTH, HEIGHT)
    lines = list(pairwise(at))
    placed = place_labels(merge_near(walked, colour="black"), plane=plane, points=at, lines=lines)
    assert sum(len(p.label.lines) for p in placed) <= len(steps)
    assert not any(a.box.meets(b.box) for a, b in combinations(placed, 2))
    assert all(p.box.left >= 0 and p.box.right <= WIDTH for p in placed)
    assert all(p.box.top >= 0 and p.box.bottom <= HEIGHT for p in placed)


# Saving


def test_each_format_is_written(tmp_path):
    chart = CHARTS["path"]()
    saved = {e: save_chart(chart, tmp_path / f"chart{e}") for e in (".svg", ".png", ".json")}
    picture = minidom.parse(str(saved[".svg"])).documentElement
    width = struct.unpack(">I", saved[".png"].read_bytes()[16:20])[0]
    assert saved[".png"].read_bytes().startswith(b"\x89PNG")
    assert width == pytest.approx(2 * float(picture.getAttribute("width")), abs=2)
    assert json.loads(saved[".json"].read_text(encoding="utf-8")) == chart.to_dict()
    assert len(list(tmp_path.iterdir())) == 3


def _data(node):
    """Yield the text below an element: a title has a child for each of its lines."""
    for child in node.childNodes:
        if child.nodeType == child.TEXT_NODE:
            yield child
        else:
            yield from _data(child)


def test_a_picture_shows_every_name_and_the_limit(tmp_path):
    save_chart(CHARTS["path"](), tmp_path / "path.svg")
    save_chart(CHARTS["contributions"](), tmp_path / "bars.svg")
    texts = []
    for name in ("path.svg", "bars.svg"):
        found = minidom.parse(str(tmp_path / name)).getElementsByTagName("text")
        texts += ["".join(part.data for part in _data(node)) for node in found]
    for name in HOSTILE:
        assert name in texts
        assert any(name[:20] in text for text in texts if text.startswith("+"))
    assert {"risk limit 50%", "Cell ratio CR: cells for each record (detail kept)"} <= set(texts)


def test_control_characters_do_not_spoil_a_picture(tmp_path):
    frame = pl.DataFrame({"variable": ["\x00\x1b[2J", "a\u202eb\n"], "percent": [1.0, 2.0]})
    save_chart(contributions_chart(frame), tmp_path / "bars.svg")
    assert "[2J" in minidom.parse(str(tmp_path / "bars.svg")).toxml()


def test_a_file_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "chart.json"
    save_chart(CHARTS["levels"](), path)
    with pytest.raises(OptionError, match="exists"):
        save_chart(CHARTS["path"](), path)
    assert json.loads(path.read_text(encoding="utf-8")) == CHARTS["levels"]().to_dict()
    save_chart(CHARTS["frontier"](), path, force=True)
    assert json.loads(path.read_text(encoding="utf-8")) == CHARTS["frontier"]().to_dict()
    assert [file.name for file in tmp_path.iterdir()] == ["chart.json"]


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "svg", "chart.svg.gz"])
def test_another_extension_is_refused_and_the_four_are_named(name, tmp_path):
    with pytest.raises(OptionError, match=r"\.svg, \.png, \.html or \.json"):
        save_chart(CHARTS["levels"](), tmp_path / name)
    assert not list(tmp_path.iterdir())
    assert chart_format("Chart.PNG") == ".png"


def test_a_failed_drawing_leaves_nothing(tmp_path):
    elsewhere = altair.Chart("http://127.0.0.1:9/data.csv").mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match="not allowed"):
        save_chart(elsewhere, tmp_path / "chart.svg")
    assert not list(tmp_path.iterdir())


class Page(HTMLParser):
    """What a browser would make of a page: its elements, scripts and title."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.title, self.inside = [], [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None if tag == self.inside else self.inside

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside == "title":
            self.title += data


def hostile_page():
    base = altair.Chart(inline([{"name": name} for name in HOSTILE])).mark_point()
    title = "</title></script><script>alert('title')</script>"
    return house_style(base.encode(y="name:N"), title=title, subtitle=HOSTILE)


def test_a_page_keeps_names_as_text_and_holds_no_other_script():
    chart = hostile_page()
    page = Page(chart_html(chart))
    assert [tag for tag, _ in page.tags] == [
        "html", "head", "meta", "meta", "meta", "title", "style", "body", "main", "noscript",
        "script", "script",
    ]  # fmt: skip
    spec, program = page.scripts
    assert json.loads(spec) == chart.to_dict()
    assert page.title == "</title></script><script>alert('title')</script>"
    assert "alert(" not in program
    assert not any(set(attributes) & {"src", "href"} for _, attributes in page.tags)


def test_a_page_lets_only_its_own_script_run_and_nothing_load():
    page = Page(chart_html(hostile_page()))
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    # A browser reads these as other characters before it takes the digest.
    assert not {"\r", "\0"} & set(page.scripts[1])


def test_a_page_is_saved_whole(tmp_path):
    path = save_chart(CHARTS["exposure"](), tmp_path / "chart.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")


def test_altair_is_imported_only_for_a_picture():
    code = (
        "import sys, keyhole.charts, keyhole.exposure.cells, keyhole.selection;"
        "print({'altair', 'vl_convert'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


# Legends


@pytest.mark.parametrize("width", [200, 420, 680])
def test_labels_of_a_legend_leave_room_for_a_font_wider_than_arial(width):
    labels = ["step taken", "next step, not taken", "most detail of any set within the limit"]
    drawn = legend(labels, width=width).to_dict()
    wide, arial = 5.9, 4.9  # a letter of DejaVu Sans and of Arial, at the size of a legend
    longest = max(map(len, labels))
    assert drawn["columnPadding"] >= 8 + (wide - arial) * longest
    rows = [labels[i : i + drawn["columns"]] for i in range(0, len(labels), drawn["columns"])]
    assert all(len(row) == 1 or wide * len("".join(row)) < width for row in rows)


def test_a_picture_has_room_for_its_title_in_a_font_wider_than_arial(tmp_path):
    dots = altair.Chart(inline([{"x": 1}])).mark_point().encode(x="x:Q").properties(width=40)
    path = save_chart(house_style(dots, title="a" * 60), tmp_path / "narrow.svg")
    picture = minidom.parse(str(path)).documentElement
    width = picture.getAttribute("width")
    assert float(width) >= 60 * 9.6
    assert picture.getAttribute("viewBox").split()[2] == width
    assert picture.getElementsByTagName("rect")[0].getAttribute("width") == width
