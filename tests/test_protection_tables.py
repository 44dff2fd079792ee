"""Tables from records: crossing, rules, protection, what is shown and what is not."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.errors import InputError, OptionError
from keyhole.protection.tables import SensitivityRules, find_unsafe, publication, table
from keyhole.protection.tables.cells import cross

# Hand-worked: turnover by area and trade, one list of contributions a cell.
FIRMS = {
    ("north", "a"): [500, 300, 200],
    ("north", "b"): [90, 6, 4],
    ("north", "c"): [40, 40, 40, 30],
    ("south", "a"): [80, 70, 60, 50],
    ("south", "b"): [50, 40, 30, 20],
    ("south", "c"): [100, 90, 80],
}


def firms():
    rows = [(*key, x) for key, parts in FIRMS.items() for x in parts]
    return pl.DataFrame(rows, schema=["area", "trade", "turnover"], orient="row")


def counts(cells, names=("area", "trade")):
    rows = [key for key, count in cells.items() for _ in range(count)]
    return pl.DataFrame(rows, schema=list(names), orient="row")


def slow_cells(frame, variables, value):
    """Every cell of every margin by a loop over records."""
    found = {}
    for row in frame.iter_rows(named=True):
        for mask in range(2 ** len(variables)):
            key = tuple("Total" if mask >> i & 1 else row[name] for i, name in enumerate(variables))
            found.setdefault(key, []).append(1 if value is None else row[value])
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", None]), st.integers(0, 99)),
        min_size=1,
        max_size=30,
    ),
    st.booleans(),
)
def test_cells_margins_and_largest_contributions(records, amounts):
    frame = pl.DataFrame(records, schema=["one", "two", "x"], orient="row")
    data = load(frame)
    parts = frame["x"].cast(pl.Float64).to_numpy() if amounts else None
    made = cross(data, rows=("one",), cols=("two",), contributions=parts, deepest=3)
    slow = slow_cells(frame, ["one", "two"], "x" if amounts else None)
    for cell, named in enumerate(made.cells):
        key = tuple(named.get(name, "Total") for name in ("one", "two"))
        found = sorted(slow.get(key, []), reverse=True)
        assert made.values[cell] == sum(found)
        assert made.counts[cell] == len(found)
        assert made.largest[cell].tolist() == [*found, 0, 0, 0][:3]


def test_rules_by_hand():
    made = cross(load(firms()), rows=("area",), cols=("trade",),
                 magnitude="turnover",
                 contributions=firms()["turnover"].cast(float).to_numpy())  # fmt: skip
    by_p = find_unsafe(made, SensitivityRules(threshold=1, p_percent=15))
    # 90, 6, 4: the rest of 4 is less than 15% of 90 = 13.5; 9.5 is lacking.
    assert np.flatnonzero(by_p.cells).tolist() == [1]
    assert by_p.upper[1] == pytest.approx(9.5)
    assert by_p.lower[1] == pytest.approx(9.5)
    by_n = find_unsafe(made, SensitivityRules(threshold=1, dominance=(2, 75)))
    # 800 of 1,000 and 96 of 100 are above 75%; 190 of 270 is not.
    assert np.flatnonzero(by_n.cells).tolist() == [0, 1]
    assert by_n.upper[[0, 1]] == pytest.approx([800 / 0.75 - 1000, 96 / 0.75 - 100])
    by_t = find_unsafe(made, SensitivityRules(threshold=4, range_percent=20))
    assert np.flatnonzero(by_t.cells).tolist() == [0, 1, 6]
    assert by_t.upper[[0, 1, 6]] == pytest.approx([200, 20, 54])


def test_small_counts_must_stay_between_nothing_and_the_threshold():
    made = cross(load(counts({("n", "a"): 2, ("n", "b"): 9})), rows=("trade",))
    unsafe = find_unsafe(made, SensitivityRules(threshold=5))
    assert unsafe.lower.tolist() == [1, 0, 0]
    assert unsafe.upper.tolist() == [3, 0, 0]


def test_that_a_few_have_nothing_is_hidden_by_the_room_of_the_smallest_amount():
    firms = pl.DataFrame({"area": [*"nnsssee"], "turnover": [0.0, 0, 30, 40, 50, 5, 5]})
    made = cross(load(firms), rows=("area",), magnitude="turnover",
                 contributions=firms["turnover"].to_numpy())  # fmt: skip
    unsafe = find_unsafe(made, SensitivityRules(threshold=3, range_percent=20))
    assert made.values.tolist() == [10, 0, 120, 130]
    assert unsafe.upper.tolist() == [2, 2, 0, 0]


def test_the_hand_worked_table():
    found = table(firms(), rows="area", cols="trade", magnitude="turnover", p_percent=15)
    # Only north b is unsafe. The cheapest rectangle around it takes c: 150 + 140 + 270 = 560.
    assert found.suppressed.reshape(3, 4).tolist() == [
        [False, True, True, False],
        [False, True, True, False],
        [False, False, False, False],
    ]
    audit = found.internal
    assert audit.pattern.cost == 560
    assert audit.pattern.proven
    assert audit.safe
    # North b and c add up to 250, b of both areas to 240: b is from 0 to 240.
    assert (audit.low[1], audit.high[1]) == pytest.approx((0, 240))
    assert audit.discrepancy.reshape(3, 4)[2] == pytest.approx([0, -240, -420, -660])


def test_the_public_part_never_tells_which_cells_are_unsafe():
    found = table(firms(), rows="area", cols="trade", magnitude="turnover", p_percent=15)
    public = [found.summary(), found._repr_html_(), json.dumps(found.to_dict()),
              str(found.to_frame().to_dicts()), json.dumps(found.plot().to_dict())]  # fmt: skip
    for text in public:
        assert "unsafe" not in text
        assert "primary" not in text
        assert "15" not in text.replace("1.5", "").replace("150", "")  # neither p nor north c
    assert found.to_frame()["value"].null_count() == 4
    assert found.to_frame().columns == ["area", "trade", "total_over", "value", "suppressed"]
    assert set(found.to_dict()["cells"][1]) == {
        "area",
        "trade",
        "total_over",
        "value",
        "suppressed",
    }
    assert found.to_dict()["cells"][-1]["total_over"] == ["area", "trade"]
    assert "unsafe" in found.internal.summary()


def test_missing_is_a_category_and_a_total_called_total_is_told_apart():
    frame = counts({("Total", "a"): 5, ("Total", None): 4, (None, "a"): 6})
    found = table(frame, rows="area", cols="trade", protect="none")
    assert found.shape == (3, 3)
    cells = found.to_frame()
    assert cells.filter(pl.col("total_over") == "")["area"].to_list() == [
        "Total", "Total", "missing", "missing"
    ]  # fmt: skip
    assert cells["value"].sum() == 4 * 15
    assert found.to_dict()["cells"][3]["area"] is None


def test_a_lone_contributor_learns_nothing_of_another():
    # North has two firms that are alone; together they are 30, as the row says.
    rows = [("n", "a", 10), ("n", "b", 20), *[("n", "c", 100)] * 5]
    rows += [("s", trade, 50) for trade in "abc" for _ in range(4)]
    frame = pl.DataFrame(rows, schema=["area", "trade", "x"], orient="row")
    options = {"rows": "area", "cols": "trade", "magnitude": "x", "p_percent": 10}
    careless = table(frame, singletons=False, **options)
    assert careless.suppressed.reshape(3, 4)[0].tolist() == [True, True, False, False]
    careful = table(frame, **options)
    assert careful.suppressed.reshape(3, 4)[0].sum() >= 3
    assert not careful.internal.pattern.unprotected
    assert careful.internal.pattern.cost > careless.internal.pattern.cost


def test_zeros_are_shown_unless_nobody_knows_them():
    frame = counts({("n", "a"): 1, ("n", "b"): 40, ("s", "a"): 50, ("s", "b"): 60,
                    ("t", "a"): 30, ("u", "b"): 20})  # fmt: skip
    known = table(frame, rows="area", cols="trade", cost="cells")
    assert not known.suppressed[known.internal.table.counts == 0].any()
    hidden = table(frame, rows="area", cols="trade", hidden_zeros=True)
    assert hidden.suppressed[hidden.internal.table.counts == 0].any()
    assert hidden.internal.safe
    # 40 + 30 + 20, and two empty cells at 1 each; with totals it would be 101.
    assert hidden.internal.pattern.cost == 92
    assert table(frame, rows="area", cols="trade").internal.pattern.cost == 101


def test_weights_and_missing_amounts():
    frame = firms().with_columns(w=pl.lit(2.5), x=pl.col("turnover").replace(500, None))
    weighted = table(frame, rows="area", weight="w")
    assert weighted.shown.tolist() == [25, 27.5, 52.5]
    found = table(frame, rows="area", magnitude="x", weight="w", protect="none")
    assert found.shown[-1] == 2.5 * (firms()["turnover"].sum() - 500)
    assert found.notes == ("A few records have no value of 'x' and are left out",)
    unsafe = table(frame, rows="area", cols="trade", weight="w", threshold=4)
    assert unsafe.internal.unsafe.cells.sum() == 3
    assert unsafe.internal.safe


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=3, max_size=3),
    st.integers(2, 7),
    st.sampled_from(["nearest", "random"]),
)
def test_rounded_tables_add_up_and_stay_near(inner, base, how):
    cells = {(f"r{i}", f"c{j}"): n for i, row in enumerate(inner) for j, n in enumerate(row)}
    if not sum(cells.values()):
        return
    found = table(counts(cells), rows="area", cols="trade", protect="round", base=base,
                  rounding=how, seed=4)  # fmt: skip
    audit = found.internal
    true, shown = (one.reshape(audit.table.shape) for one in (audit.table.values, audit.shown))
    assert (shown % base == 0).all()
    assert (np.abs(shown - true) < base).all()
    assert (shown[true % base == 0] == true[true % base == 0]).all()
    np.testing.assert_array_equal(shown[:-1].sum(axis=0), shown[-1])
    np.testing.assert_array_equal(shown[:, :-1].sum(axis=1), shown[:, -1])
    audit = found.internal
    assert (audit.low <= audit.table.values).all()
    assert (audit.high >= audit.table.values).all()


def test_rounding_at_random_is_right_on_average():
    from keyhole.protection.tables.rounding import round_at_random

    grid = np.array([[1.0, 4, 3], [2, 7, 5], [8, 6, 1]])
    grid = np.vstack([grid, grid.sum(axis=0)])
    grid = np.hstack([grid, grid.sum(axis=1, keepdims=True)])
    drawn = [
        round_at_random(grid.ravel(), grid.shape, 5, np.random.default_rng(i)).values
        for i in range(800)
    ]
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert (np.abs(np.mean(drawn, axis=0) - grid.ravel()) <= 4.5 * error + 1e-9).all()
    one_way = round_at_random(np.array([1.0, 2, 4, 7]), (4,), 3, np.random.default_rng(1)).values
    assert one_way[:3].sum() == one_way[3]


def test_rounding_three_variables_adds_up():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(rng.integers(0, 3, (200, 3)), schema=["a", "b", "c"])
    found = table(frame, rows=["a", "b"], cols="c", protect="round", base=3)
    grid = found.shown.reshape(found.shape)
    for axis in range(3):
        parts = np.moveaxis(grid, axis, 0)
        np.testing.assert_array_equal(parts[:-1].sum(axis=0), parts[-1])


def test_nearest_rounding_is_as_near_as_any_by_trying_all():
    import itertools

    from keyhole.protection.tables.rounding import round_nearest

    rng = np.random.default_rng(8)
    for _ in range(5):
        inner = rng.integers(0, 12, (2, 3)).astype(float)
        grid = np.vstack([inner, inner.sum(axis=0)])
        grid = np.hstack([grid, grid.sum(axis=1, keepdims=True)])
        best = np.inf
        for up in itertools.product((0, 1), repeat=6):
            tried = 5 * (inner // 5 + np.reshape(up, (2, 3)) * (inner % 5 > 0))
            full = np.vstack([tried, tried.sum(axis=0)])
            full = np.hstack([full, full.sum(axis=1, keepdims=True)])
            off = np.abs(full - grid)
            if (off < 5).all() and (off[grid % 5 == 0] == 0).all():
                best = min(best, off.sum())
        found = round_nearest(grid.ravel(), grid.shape, 5)
        assert np.abs(found.values - grid.ravel()).sum() == pytest.approx(best)
        assert found.beyond == 0


def test_one_variable_and_a_table_too_small():
    frame = counts({("n", "a"): 1, ("s", "a"): 30, ("t", "a"): 5, ("u", "a"): 9})
    found = table(frame, rows="area")
    assert found.suppressed.tolist() == [True, False, True, False, False]
    with pytest.raises(OptionError, match="threshold must be at most"):
        table(frame.head(2), rows="area")
    # Two contributors with 10 in all, which must seem to be 110 of the 50 that there are.
    frame = frame.with_columns(x=10).filter(pl.col("area") != "s").head(5)
    options = {"rows": "area", "magnitude": "x", "range_percent": 1000}
    with pytest.raises(OptionError, match=r"no pattern.*Tried, .*helps: set total_known to false"):
        table(frame, **options)
    assert table(frame, total_known=False, **options).internal.safe


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ({}, {}, True),
        ({}, {"whole": False}, False),
        ({"x": [5, 9, 8, 7, 6, 5, 9, 8]}, {"magnitude": "x", "p_percent": 90.0}, False),
    ],
)
def test_attackers_know_of_whole_numbers_in_what_is_tried_only_if_they_do_in_the_table(
    values, options, expected, monkeypatch
):
    """Sums are not counts: what would help against an attacker who takes them for whole may not."""
    frame = pl.DataFrame({"area": ["a", "b", "c", "c", "b", "c", "c", "d"], **values})
    known = []
    publish = publication._published
    monkeypatch.setattr(
        publication, "_published", lambda *asked: known.append(asked[1].whole) or publish(*asked)
    )
    with pytest.raises(OptionError, match="helps"):
        table(frame, rows="area", protect="round", base=1, **options)
    assert len(known) > 1
    assert set(known) == {expected}


def test_a_total_that_is_unsafe_must_not_be_known():
    frame = pl.DataFrame({"area": ["n"] * 4 + ["s"] * 4, "x": [1000, 1, 1, 1, 1, 1, 1, 1]})
    options = {"rows": "area", "magnitude": "x", "p_percent": 10}
    with pytest.raises(OptionError, match=r"helps: .*set total_known to false"):
        table(frame, **options)
    found = table(frame, total_known=False, **options)
    assert found.suppressed[-1]
    assert found.internal.safe


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": []}, "rows must be a list of at least one"),
        ({"rows": ["area", "area"]}, "names each column once"),
        ({"rows": "aera"}, "Did you mean 'area'"),
        ({"rows": "value"}, "must not have the names of a cell"),
        ({"rows": "area", "threshold": 0}, "threshold must be a whole number"),
        ({"rows": "area", "dominance": (1, 120), "magnitude": "turnover"}, "dominance must be n,k"),
        ({"rows": "area", "p_percent": 10}, "need magnitude"),
        ({"rows": "area", "magnitude": "trade"}, "must hold numbers"),
        ({"rows": "area", "magnitude": "debt"}, "no negative values. Got 1 of 21"),
        ({"rows": "area", "weight": "debt"}, "negative"),
        ({"rows": "area", "protect": "hide"}, "protect must be one of"),
        ({"rows": "area", "cost": "x"}, "cost must be one of"),
        ({"rows": "area", "base": 5}, "base needs protect to be"),
        ({"rows": "area", "protect": "round", "base": 0}, "base must be"),
        ({"rows": "area", "protect": "round", "rounding": "random"}, "needs seed"),
        ({"rows": "area", "seconds": 0}, "seconds must be"),
        (
            {"rows": "area", "sliding_percent": -1, "magnitude": "turnover"},
            "sliding_percent must be",
        ),
        ({"rows": "area", "magnitude": "area"}, "must not be a variable of rows"),
    ],
)
def test_wrong_options(options, said):
    frame = firms().with_columns(debt=pl.Series([-739] + [1] * 20), value=pl.lit(1))
    with pytest.raises(InputError, match=said) as error:
        table(frame, **options)
    assert "739" not in str(error.value)


def test_all_problems_at_once():
    with pytest.raises(InputError) as error:
        table(firms(), rows=["aera", "trade"], cols="trade", weight="w", threshold=0, seconds=0,
              protect="round", base=-1, rounding="random", dominance=(0, 5),
              sliding_percent=-1)  # fmt: skip
    assert len(error.value.problems) == 10


def test_too_large_a_table():
    frame = pl.DataFrame({"a": [*range(300)] * 3, "b": [*range(300)] * 3})
    with pytest.raises(InputError, match=r"at most 20,000 cells.*Got 90,601"):
        table(frame, rows="a", cols="b", protect="round")
    # What is said to help was tried.
    with pytest.raises(InputError, match=r"\(--nested a,b\), which leaves 601"):
        table(frame, rows=["a", "b"], protect="round")
    assert table(frame, rows=["a", "b"], nested=["a", "b"], protect="none").shown.size == 601


def test_nested_variables_in_the_wrong_order_are_refused():
    frame = pl.DataFrame({"area": [*"abcd"] * 60, "part": [f"p{n % 24}" for n in range(240)]})
    assert table(frame, rows=["area", "part"], nested=["area", "part"]).rows == ("area", "part")
    with pytest.raises(InputError, match="nested must name the coarser variable first") as no:
        table(frame, rows=["part", "area"], nested=["part", "area"])
    assert str(no.value).endswith("Got part,area instead: write area,part.")


def outsider(published, unsafe_below):
    """An outsider's own program: what is left out has somebody in it, and everything adds up."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    shape = published.shape
    hidden = np.argwhere(np.isnan(published))
    place = {tuple(cell): i for i, cell in enumerate(hidden)}
    sums, totals = [], []
    for axis in range(2):
        for other in range(shape[1 - axis]):
            line = [(i, other) if axis == 0 else (other, i) for i in range(shape[axis])]
            row = np.zeros(len(hidden))
            right = 0.0
            for i, cell in enumerate(line):
                sign = -1.0 if i == shape[axis] - 1 else 1.0
                if cell in place:
                    row[place[cell]] += sign
                else:
                    right -= sign * published[cell]
            sums.append(row)
            totals.append(right)
    found = {}
    for cell, i in place.items():
        aim = np.zeros(len(hidden))
        aim[i] = 1
        ends = [
            milp(side * aim, constraints=LinearConstraint(np.array(sums), totals, totals),
                 bounds=Bounds(1, np.inf), integrality=np.ones(len(hidden)))
            for side in (1, -1)
        ]  # fmt: skip
        low = round(ends[0].fun)
        high = np.inf if ends[1].fun is None else round(-ends[1].fun)
        found[cell] = (low, high)
    assert all(low <= high for low, high in found.values())
    return {cell: ends for cell, ends in found.items() if ends[1] < unsafe_below}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=4), min_size=3, max_size=4))
def test_an_outsider_who_knows_that_nothing_left_out_is_empty_learns_no_small_count(inner):
    width = min(map(len, inner))
    cells = {
        (f"r{i}", f"c{j}"): n for i, row in enumerate(inner) for j, n in enumerate(row[:width])
    }
    frame = counts(cells)
    if frame.height < 3:
        return
    try:
        found = table(frame, rows="area", cols="trade", threshold=3)
    except OptionError:  # no pattern is safe: nothing is given out
        return
    audit = found.internal
    small = {tuple(p) for p in np.argwhere(audit.unsafe.cells.reshape(audit.table.shape))}
    known = outsider(found.shown.reshape(audit.table.shape), 3)
    assert not small & set(known)


def test_a_row_of_ones_that_adds_up_is_not_given_away():
    inner = [[1, 1, 1, 40], [1, 1, 1, 50], [1, 1, 1, 60], [30, 30, 30, 30]]
    cells = {(f"r{i}", f"c{j}"): n for i, row in enumerate(inner) for j, n in enumerate(row)}
    found = table(counts(cells), rows="area", cols="trade", threshold=3)
    shown = found.shown.reshape(found.internal.table.shape)
    assert not {cell for cell in outsider(shown, 3) if cell[0] < 3 and cell[1] < 3}


def test_variables_that_name_people_are_refused():
    frame = pl.DataFrame({"id": [f"p{i}" for i in range(100)], "sex": ["f", "m"] * 50})
    with pytest.raises(InputError, match="'id' has a value of its own"):
        table(frame, rows="id", cols="sex")
    named = load(frame.with_columns(id=pl.lit("x")), roles={"id": "identifier"})
    with pytest.raises(InputError, match="names people, by its role"):
        table(named, rows="id")


def test_rounding_that_protects_nothing_is_not_given_out():
    frame = counts({("n", "a"): 1, ("n", "b"): 9, ("s", "a"): 8, ("s", "b"): 7})
    with pytest.raises(OptionError, match="helps: round to 5"):
        table(frame, rows="area", cols="trade", protect="round", base=1)


def test_categories_called_as_totals_and_missing_ones_are_told_apart():
    frame = pl.DataFrame({"area": ["Total", "missing", None] * 4})
    labels = table(frame, rows="area").internal.to_frame()["area"].to_list()
    assert labels == ["Total", "missing", "(missing)", "(Total)"]


def test_levels_that_are_equal_in_python_are_rows_of_their_own():
    times = pl.Series([1, 2] * 30, dtype=pl.Int64).cast(pl.Duration("ns"))  # differ by a nanosecond
    frame = pl.DataFrame({"time": times, "sex": ["f", "m", "m"] * 20})
    found = cross(load(frame, kinds={"time": "category"}), rows=("time",), cols=("sex",))
    assert found.values.shape == (9,)
