"""Drivers: hand-worked odds ratios, statsmodels, and recoding by hand."""

from __future__ import annotations

import datetime
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole import drivers, load, risk
from keyhole.charts import chart_html
from keyhole.core.codec import plain_values
from keyhole.data.columns import Variable, encode
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.exposure.drivers import ratio_text
from keyhole.exposure.odds import crude_odds, fit_logistic, level_odds
from keyhole.exposure.regrouping import MOST_BANDS, _is_ordered, group_levels
from keyhole.kernels import additive

random = np.random.default_rng(5)


def test_a_hand_worked_odds_ratio():
    # At risk: 8 of 20 in the level, 10 of 80 in the rest.
    # (8 x 70) / (12 x 10) = 4.6667; standard error of its logarithm
    # √(1/8 + 1/12 + 1/10 + 1/70) = 0.5680; 4.6667 / e^(1.96 x 0.5680) = 1.533.
    found = crude_odds([8, 12, 10, 70])
    assert found.value == pytest.approx(14 / 3)
    assert found.low == pytest.approx(1.533, abs=5e-4)
    assert found.high == pytest.approx(14.206, abs=5e-4)
    assert not found.corrected


def test_where_a_count_is_nothing_a_half_is_added_to_all():
    # (5.5 x 40.5) / (0.5 x 10.5)
    found = crude_odds([5, 0, 10, 40])
    assert found.corrected
    assert found.value == pytest.approx(5.5 * 40.5 / (0.5 * 10.5))
    spread = np.sqrt(1 / 5.5 + 1 / 0.5 + 1 / 10.5 + 1 / 40.5)
    assert found.high / found.value == pytest.approx(np.exp(1.959964 * spread), rel=1e-6)


@pytest.mark.parametrize("counts", [[0, 0, 3, 4], [3, 4, 0, 0], [3, 0, 4, 0], [0, 3, 0, 4]])
def test_where_there_is_nothing_to_compare_there_is_no_ratio(counts):
    assert crude_odds(counts) is None


@given(st.lists(st.integers(1, 500), min_size=4, max_size=4), st.sampled_from([0.8, 0.95, 0.99]))
def test_crude_ratios_are_those_of_statsmodels(counts, level):
    from statsmodels.stats.contingency_tables import Table2x2

    found = crude_odds(counts, level=level)
    table = Table2x2(np.array(counts).reshape(2, 2), shift_zeros=False)
    assert found.value == pytest.approx(table.oddsratio)
    low, high = table.oddsratio_confint(1 - level)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def _patterns(codes, at_risk):
    """Give records as they are: each its own pattern."""
    return codes, np.ones(len(at_risk), dtype=np.int64), at_risk.astype(np.int64)


def _drawn(n=1_500):
    codes = [random.integers(0, size, n) for size in (2, 3, 5)]
    eta = -0.5 + 0.8 * codes[0] - 0.6 * (codes[1] == 2) + 0.3 * codes[2]
    return codes, random.random(n) < 1 / (1 + np.exp(-eta))


def _dummies(codes, sizes):
    """Return a plain design with the commonest level of each variable left out."""
    columns, places = [np.ones(len(codes[0]))], []
    for code, size in zip(codes, sizes, strict=True):
        reference = np.bincount(code, minlength=size).argmax()
        for level in range(size):
            places.append(None if level == reference else len(columns))
            if level != reference:
                columns.append((code == level).astype(float))
    return np.column_stack(columns), places


def test_without_the_penalty_the_model_is_that_of_statsmodels():
    import statsmodels.api as sm

    codes, at_risk = _drawn()
    sizes = [2, 3, 5]
    fit = fit_logistic(*_patterns(codes, at_risk)[:1], sizes, *_patterns(codes, at_risk)[1:],
                       penalised=False)  # fmt: skip
    design, places = _dummies(codes, sizes)
    theirs = sm.GLM(at_risk.astype(float), design, family=sm.families.Binomial()).fit(tol=1e-12)
    expected = [0 if place is None else theirs.params[place] for place in places]
    assert fit.effects == pytest.approx(np.array(expected), abs=1e-5)
    for variable, size in enumerate(sizes):
        held = np.bincount(codes[variable], minlength=size)
        for level, ours in enumerate(level_odds(fit, variable, held)):
            contrast = np.zeros(design.shape[1])
            start = int(fit.starts[variable])
            for other in range(size):
                weight = 1.0 if other == level else -held[other] / (held.sum() - held[level])
                if places[start + other] is not None:
                    contrast[places[start + other]] = weight
            test = theirs.t_test(contrast)
            low, high = np.exp(test.conf_int()[0])
            assert ours.value == pytest.approx(float(np.exp(test.effect[0])), rel=1e-4)
            assert (ours.low, ours.high) == (
                pytest.approx(low, rel=1e-4),
                pytest.approx(high, rel=1e-4),
            )


def _firth_twin(design, at_risk):
    """Maximise the likelihood with Jeffreys' prior, by nothing but its values."""
    from scipy.optimize import minimize

    def loss(beta):
        eta = design @ beta
        p = 1 / (1 + np.exp(-eta))
        information = (design * (p * (1 - p))[:, None]).T @ design
        likelihood = (at_risk * eta - np.logaddexp(0, eta)).sum()
        return -likelihood - 0.5 * np.linalg.slogdet(information)[1]

    start = np.zeros(design.shape[1])
    return minimize(loss, start, method="BFGS", options={"gtol": 1e-6}).x


@pytest.mark.filterwarnings("ignore:overflow")
def test_firths_penalty_is_that_of_the_slow_twin_also_under_separation():
    codes, at_risk = _drawn(250)
    at_risk = at_risk | (codes[2] == 4)  # that level without exception
    sizes = [2, 3, 5]
    fit = fit_logistic(codes, sizes, *_patterns(codes, at_risk)[1:])
    design, places = _dummies(codes, sizes)
    theirs = _firth_twin(design, at_risk.astype(float))
    expected = [0 if place is None else theirs[place] for place in places]
    assert fit.effects == pytest.approx(np.array(expected), abs=2e-3)
    assert np.isfinite(fit.effects).all()


def test_collapsed_patterns_give_the_same_model_as_records():
    codes, at_risk = _drawn(600)
    one = fit_logistic(codes, [2, 3, 5], *_patterns(codes, at_risk)[1:])
    number = codes[0] * 15 + codes[1] * 5 + codes[2]
    held, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    risky = np.bincount(inverse, weights=at_risk).astype(np.int64)
    records = np.bincount(inverse, minlength=len(held))
    other = fit_logistic([c[first] for c in codes], [2, 3, 5], records, risky)
    assert one.effects == pytest.approx(other.effects, abs=1e-5)
    assert one.covariance == pytest.approx(other.covariance, abs=1e-6)


def test_levels_that_follow_from_others_have_no_ratio_of_their_own():
    codes, at_risk = _drawn(600)
    twice = [*codes, codes[2] // 2]
    fit = fit_logistic(twice, [2, 3, 5, 3], *_patterns(twice, at_risk)[1:])
    alone = fit_logistic(codes, [2, 3, 5], *_patterns(codes, at_risk)[1:])
    assert fit.effects[:10] == pytest.approx(alone.effects, abs=1e-5)
    assert level_odds(fit, 3, np.bincount(codes[2] // 2)) == [None] * 3


@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 10**6))
def test_sums_over_ones_are_those_of_the_wide_matrix(rows, width, seed):
    rng = np.random.default_rng(seed)
    places = np.stack([4 * v + rng.integers(0, 4, rows) for v in range(width)], axis=1)
    wide = np.zeros((rows, 4 * width))
    np.put_along_axis(wide, places, 1, axis=1)
    weights, matrix = rng.random(rows), rng.random((4 * width, 4 * width))
    assert additive.indicator_gram(places, weights, 4 * width) == pytest.approx(
        wide.T * weights @ wide
    )
    assert additive.indicator_totals(places, weights, 4 * width) == pytest.approx(wide.T @ weights)
    expected = np.einsum("ij,jk,ik->i", wide, matrix, wide)
    assert additive.indicator_quadratic(places, matrix) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("told", "dtype", "labels", "ordered"),
    [
        ({}, pl.String, ["1 to 5", "6", "white"], True),
        ({}, pl.String, ["1 to 5", "white"], False),
        ({"measurement": "nominal"}, pl.String, ["1 to 5", "6"], False),
        ({"measurement": "ordinal"}, pl.String, ["low", "high"], True),
        ({"kind": "measure"}, pl.String, ["low", "high"], True),
        ({"kind": "date"}, pl.String, ["low", "high"], True),
        ({}, pl.Enum(["low", "high"]), ["low", "high"], True),
        ({}, pl.Int64, ["1", "2"], None),
        ({"value_labels": {1: "low", 2: "high"}}, pl.Int64, ["low", "high"], False),
    ],
)
def test_levels_are_in_order_where_it_is_said_or_most_of_them_have_a_number(
    told, dtype, labels, ordered
):
    variable = Variable("a", told.pop("kind", "category"), **told)
    assert _is_ordered(variable, dtype, labels) is ordered


@pytest.fixture(scope="module")
def people():
    n = 900
    return pl.DataFrame(
        {
            "sex": random.choice(["f", "m"], n, p=[0.2, 0.8]),
            "race": random.choice(list("abcde"), n, p=[0.6, 0.2, 0.1, 0.07, 0.03]),
            "age": random.integers(20, 90, n),
            "rural": random.integers(0, 2, n),
        }
    )


KEYS = ["sex", "race", "age"]


@pytest.fixture(scope="module")
def found(people):
    return drivers(people, keys=KEYS)


def test_levels_are_counted_as_by_hand(people, found):
    f = risk(people, keys=KEYS).f
    at_risk = f < 3
    assert found.rp == at_risk.mean()
    assert len(found.levels) == 2 + 5 + sum(d.variable == "age" for d in found.levels)
    for one in (d for d in found.levels if d.variable in ("sex", "race")):
        inside = (people[one.variable] == one.level).to_numpy()
        assert (one.records, one.at_risk) == (inside.sum(), (inside & at_risk).sum())
        table = [(inside & at_risk).sum(), (inside & ~at_risk).sum(),
                 (~inside & at_risk).sum(), (~inside & ~at_risk).sum()]  # fmt: skip
        assert one.crude == crude_odds(table)
    women = next(d for d in found.levels if d.level == "f")
    assert women.crude.low > 1
    assert women.adjusted.low > 1


def test_bands_of_ages_cover_everybody_once(people, found):
    bands = [d for d in found.levels if d.variable == "age"]
    assert sum(d.records for d in bands) == len(people)
    low, high = bands[0].level.split(" to ")
    inside = people["age"].is_between(int(low), int(high)).sum()
    assert bands[0].records == inside


def test_merges_equal_recoding_by_hand(people, found):
    tried = [m for m in found.regroupings if m.variable == "race"]
    assert tried
    for move in tried:
        recoded = people.with_columns(pl.col("race").replace({move.level: move.other}))
        after = risk(recoded, keys=KEYS)
        assert (move.rp, move.cr) == (after.rp, after.cr)
        assert move.gain == pytest.approx(found.rp - after.rp)
        assert move.price == pytest.approx(found.cr - after.cr)


def test_bands_as_one_category_equal_recoding_by_hand(people, found):
    moves = [m for m in found.regroupings if m.variable == "age"]
    assert moves
    for move in moves:
        low, high = map(int, move.level.split(" to "))
        inside = pl.col("age").is_between(low, high)
        after = risk(people.with_columns(age=pl.when(inside).then(low).otherwise("age")), keys=KEYS)
        assert (move.rp, move.cr) == (after.rp, after.cr)


@pytest.mark.parametrize("variables", [None, ["rural", "sex"]])
def test_a_subpopulation_set_apart_equals_two_files(people, variables):
    result = drivers(people, keys=KEYS, variables=variables)
    assert {a.variable for a in result.apart} == set(variables or KEYS)
    for one in (a for a in result.apart if a.variable != "age"):
        inside = people[one.variable].cast(pl.String) == one.level
        own, rest = (risk(people.filter(mask), keys=KEYS) for mask in (inside, ~inside))
        assert (one.own_rp, one.own_cr) == (own.rp, own.cr)
        assert (one.rest_rp, one.rest_cr) == (rest.rp, rest.cr)
        assert one.gain == pytest.approx(result.rp - rest.rp)
    assert not any(m.variable == "rural" for m in result.regroupings)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=60),
       st.integers(1, 4))  # fmt: skip
def test_every_change_of_any_small_file_equals_recoding(rows, cutoff):
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    result = drivers(frame, keys=["a", "b"], cutoff=cutoff)
    for move in result.regroupings:
        level, other = int(move.level), int(move.other)
        after = risk(
            frame.with_columns(pl.col(move.variable).replace({level: other})),
            keys=["a", "b"], cutoff=cutoff,
        )  # fmt: skip
        assert (move.rp, move.cr) == (after.rp, after.cr)


def test_the_largest_gain_comes_first(found):
    gains = [m.gain for m in found.regroupings]
    assert gains == sorted(gains, reverse=True)
    gains = [a.gain for a in found.apart]
    assert gains == sorted(gains, reverse=True)


def test_ordered_levels_are_merged_with_neighbours_and_others_with_the_commonest():
    data = veterans_sample(1_000)
    result = drivers(data, keys=["ag8r", "race1"])
    for move in result.regroupings:
        if move.variable == "ag8r":
            assert abs(move.places[0] - move.places[1]) == 1
    races = {m.other for m in result.regroupings if m.variable == "race1"}
    races &= {m.level for m in result.regroupings if m.variable == "race1"} | races
    counts = {d.level: d.records for d in result.levels if d.variable == "race1"}
    commonest = max(counts, key=counts.get)
    assert all(commonest in (m.level, m.other) for m in result.regroupings if m.variable == "race1")
    assert races


def _with_a_secret():
    return pl.DataFrame({"town": ["a"] * 50 + ["b"] * 40 + ["Secretville"] * 2, "x": [0, 1] * 46})


def test_small_levels_are_named_only_if_asked():
    result = drivers(_with_a_secret(), keys=["town", "x"])
    picture = json.dumps(result.plot().to_dict())
    for told in (result.summary(), result._repr_html_(), picture):
        assert "Secretville" not in told
    assert "1 level of fewer than 3 records (2 records) is not named" in result.summary()
    assert "Secretville" in json.dumps(result.to_dict())
    named = drivers(_with_a_secret(), keys=["town", "x"], name_small_groups=True)
    assert "Secretville" in named.summary()
    assert "Secretville" in json.dumps(named.plot().to_dict())


@pytest.mark.parametrize("x", [[1, 1, 1, 1, 2, 2, 2, 2], [1, 2, 3, 4, 5, 6, 7, 8], [1] * 8])
def test_where_all_or_none_are_at_risk_nothing_is_estimated(x):
    result = drivers(pl.DataFrame({"x": x, "y": [0] * 8}), keys=["x", "y"])
    assert all(d.adjusted is None and d.crude is None for d in result.levels)
    assert "null" in result.to_dict()["notes"][0]
    assert result.to_dict()["model"] is None
    assert "no odds to compare" in result.summary()
    result.plot().to_dict()
    assert result.to_frame().height == len(result.levels)


def test_missing_is_a_level_of_its_own():
    frame = pl.DataFrame({"x": [1, 1, 1, 1, None, None] * 4, "y": [0, 0, 0, 1, 0, 1] * 4})
    result = drivers(frame, keys=["x", "y"], cutoff=5)
    assert [d.level for d in result.levels if d.variable == "x"] == ["1", "(missing)"]


def test_dates_and_times_are_taken_in_calendar_bands():
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(37 * i) for i in range(600)]
    grouping = group_levels(Variable("d", "date"), encode(pl.Series(days)), most_levels=40)
    assert grouping.labels == ("1950s", "1960s", "1970s", "1980s", "1990s", "2000s", "2010s")
    few = [datetime.date(2020, 1, 1) + datetime.timedelta(3 * i) for i in range(100)]
    months = group_levels(Variable("d", "date"), encode(pl.Series(few)), most_levels=40).labels
    assert months[0] == "2020-01"
    assert len(months) == 10
    times = [datetime.time(i % 24, i % 60) for i in range(600)]
    hours = group_levels(Variable("t", "date"), encode(pl.Series(times)), most_levels=40).labels
    assert hours[:2] == ("00:00", "01:00")


@given(st.lists(st.floats(-1e12, 1e12), min_size=45, max_size=120, unique=True), st.booleans())
def test_bands_hold_every_number_and_have_labels_of_their_own(values, skewed):
    values = [v**3 if skewed else v for v in values]
    codes = encode(pl.Series(values))
    grouping = group_levels(Variable("v", "measure"), codes, most_levels=40)
    assert len(grouping.group) == codes.size
    assert set(grouping.group.tolist()) == set(range(grouping.size))
    assert (np.diff(grouping.group) >= 0).all()
    assert len(set(grouping.labels)) == grouping.size


@pytest.mark.parametrize(
    ("months", "unit"),
    [(MOST_BANDS, "month"), (MOST_BANDS + 1, "year"), (12 * MOST_BANDS, "year"), (240, "decade")],
)
def test_the_finest_calendar_unit_is_taken_that_leaves_few_enough(months, unit):
    """Each date is in the group that is called so."""
    days = [datetime.date(1959 + m // 12, m % 12 + 1, d) for m in range(months) for d in (1, 28)]
    grouping = group_levels(Variable("d", "date"), encode(pl.Series(days)), most_levels=MOST_BANDS)
    called = {"month": "%Y-%m", "year": "%Y", "decade": "%Y"}[unit]
    labels = [f"{day:{called}}"[: 3 if unit == "decade" else 7] for day in days]
    labels = [f"{one}0s" for one in labels] if unit == "decade" else labels
    assert [grouping.labels[group] for group in grouping.group] == labels
    assert grouping.banded
    assert grouping.ordered


@pytest.mark.parametrize("power", [1e-3, 1, 1e4])
@given(st.sets(st.integers(-300, 300), min_size=46), st.booleans())
def test_the_label_of_a_band_holds_its_numbers(power, numbers, has_tail):
    """They are of equal width, of 1, 2 or 5 times a power of ten, unless most would be in one."""
    values = np.array([*numbers, *([10**7, 10**8] if has_tail else [])]) * power
    grouping = group_levels(Variable("v", "measure"), encode(pl.Series(values)), most_levels=40)
    assert grouping.size <= MOST_BANDS + 1
    ends = []
    for value, group in zip(np.sort(values), grouping.group, strict=True):
        label = grouping.labels[group].replace(",", "")
        low, high = -np.inf, np.inf
        if label.startswith("under "):
            high = float(label[6:])
        elif label.endswith(" and above"):
            low = float(label[: -len(" and above")])
        else:
            first, last = label.replace("under ", "").split(" to ")
            low, high = float(first), float(last) + ("under" not in label)
        assert low - 1e-9 * power <= value < high + 1e-9 * power
        ends += [low, high]
    if not has_tail:
        widths = {float(f"{b - a:.6g}") for a, b in zip(ends[::2], ends[1::2], strict=True)}
        assert len(widths) == 1
        assert f"{widths.pop():e}"[0] in "125"


@pytest.mark.parametrize("far", [[1e308, -1e308], [np.inf, -np.inf], [5e-324, 1e-320]])
def test_numbers_of_any_size_have_drivers(far):
    frame = pl.DataFrame({"x": far + [float(i) for i in range(58)], "sex": [0, 1] * 30})
    result = drivers(load(frame, kinds={"x": "measure"}), keys=["x", "sex"])
    assert result.levels


def test_all_problems_at_once(people):
    with pytest.raises(OptionError) as error:
        drivers(people, keys=["sexx"], variables=["rurall"], cutoff=0, level=1, most_levels=1)
    assert len(error.value.problems) == 5
    with pytest.raises(OptionError, match="at least one column"):
        drivers(people, keys=[])


def test_hostile_names_do_no_harm():
    name = "<script>alert(1)</script>\x1b[2J.[0]'\""
    frame = pl.DataFrame({name: ["</script>", "b"] * 20, "age": [20, 30, 40, 50] * 10})
    result = drivers(frame, keys=[name, "age"], cutoff=15)
    assert "\x1b" not in result.summary()
    assert "<script>" not in result._repr_html_()
    assert "<script>alert" not in chart_html(result.plot())


def test_the_dictionary_is_plain_and_the_frame_agrees(found):
    told = found.to_dict()
    json.dumps(plain_values(told), allow_nan=False)
    frame = found.to_frame()
    assert frame["level"].to_list() == [level["level"] for level in told["levels"]]
    assert frame["crude_odds_ratio"].to_list() == [
        level["crude"] and level["crude"]["value"] for level in told["levels"]
    ]
    first = told["regroupings"][0]
    assert first["level"] in frame["level"].to_list()
    assert told["confidence"] == 0.95


def test_the_order_of_records_does_not_matter(people, found):
    again = drivers(people.sample(fraction=1, shuffle=True, seed=3), keys=KEYS)
    assert again.regroupings == found.regroupings
    assert again.apart == found.apart
    for one, other in zip(again.levels, found.levels, strict=True):
        assert one.crude == other.crude
        assert one.adjusted.value == pytest.approx(other.adjusted.value, rel=1e-4)


def test_intervals_cut_at_the_frame_get_an_arrow():
    frame = pl.DataFrame({"a": [0] * 200 + [1] * 3, "b": [0, 1] * 100 + [0, 1, 2]})
    result = drivers(frame, keys=["a", "b"])
    spec = result.plot().to_dict()
    layers = spec["hconcat"][0]["layer"]
    arrows = [one for one in layers if one["mark"].get("shape", "").startswith("triangle")]
    assert [one["mark"]["shape"] for one in arrows] == ["triangle-left", "triangle-right"]
    first, last = arrows[1]["encoding"]["x"]["scale"]["domain"]
    past = {
        f"{d.variable}: {d.level}"
        for d in result.shown()
        for odds in (d.crude, d.adjusted)
        if odds is not None and odds.high > last
    }
    assert past
    left, right = (spec["datasets"][one["data"]["name"]] for one in arrows)
    assert {row["name"] for row in right} == past
    assert all(row["edge"] == last for row in right)
    assert all(row["edge"] == first for row in left)
    assert "An arrow: the interval extends beyond the chart." in spec["title"]["subtitle"]


@given(
    st.lists(
        st.tuples(st.sampled_from([None, 0, 1]), st.integers(0, 1), st.sampled_from([None, 0, 1])),
        min_size=2,
        max_size=20,
    )
)
def test_with_a_sensitive_column_records_in_homogeneous_cells_are_at_risk(rows):
    frame = pl.DataFrame(rows, schema=["k", "j", "s"], orient="row")
    data = load(frame, kinds=dict.fromkeys("kjs", "category"))
    found = drivers(data, keys=["k", "j"], sensitive="s")
    alone = [len({r[2] for r in rows if r[:2] == row[:2]}) == 1 for row in rows]
    assert found.homogeneous == sum(alone) / len(rows)
    assert found.rp == risk(data, keys=["k", "j"]).rp
    assert not found.regroupings
    assert not found.apart
    for one in found.levels:
        place = "kj".index(one.variable)
        mine = [
            flag
            for row, flag in zip(rows, alone, strict=True)
            if (one.level == "(missing)" if row[place] is None else str(row[place]) == one.level)
        ]
        assert (one.records, one.at_risk) == (len(mine), sum(mine))


def test_a_sensitive_column_is_named_and_is_no_key():
    data = veterans_sample(500)
    found = drivers(data, keys=["sex", "ag8r"], sensitive="means")
    assert "in cells with one value of means" in found.tables()[0].notes[0]
    assert "with one value of means" in json.dumps(found.plot().to_dict())
    with pytest.raises(OptionError, match="Got 'sex' as both"):
        drivers(data, keys=["sex", "ag8r"], sensitive="sex")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e5, "1e+05"), (99_999, "100,000"), (12_345, "12,300"), (100, "100"), (99.994, "99.99"),
        (0.1, "0.10"), (0.0994, "0.099"), (0.001, "0.001"), (0.00099, "1e-03"), (0.0, "0.000"),
    ],
)  # fmt: skip
def test_odds_have_as_many_digits_as_they_deserve(value, text):
    assert ratio_text(value) == text


def test_a_model_of_too_many_levels_is_not_fitted_and_says_so(monkeypatch):
    people = pl.DataFrame({"sex": ["f", "m"] * 30, "age": [str(i % 7) for i in range(60)]})
    kept = drivers(people, keys=["sex", "age"], cutoff=5)
    monkeypatch.setattr("keyhole.exposure.drivers.MOST_LEVELS", 8)
    found = drivers(people, keys=["sex", "age"], cutoff=5)
    assert "9 levels, more than 8" in " ".join(found.notes)
    assert "more than" not in " ".join(kept.notes)
    monkeypatch.setattr("keyhole.exposure.drivers.MOST_LEVELS", 9)
    assert drivers(people, keys=["sex", "age"], cutoff=5).to_dict() == kept.to_dict()


@pytest.mark.parametrize(
    ("key", "said"), [(range(40), "every record is at risk"), ([1] * 40, "no record is at risk")]
)
def test_without_odds_the_reason_is_named(key, said):
    frame = pl.DataFrame({"a": key, "b": [0, 1] * 20})
    assert any(said in note for note in drivers(frame, keys=["a", "b"]).notes)
