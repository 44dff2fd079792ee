"""Protections that make columns coarser: hand-worked tables, files that stay of their kind."""

import math
import tomllib
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np
import polars as pl
import pytest
import tomlkit
from hypothesis import example, given
from hypothesis import strategies as st

import keyhole
from keyhole.data import Variable, load
from keyhole.data.microdata import Microdata
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.model import Category, Coding
from keyhole.errors import InputError, OptionError
from keyhole.exposure.fix import Fix
from keyhole.protection.methods import METHODS
from keyhole.protection.methods.areas import merge_areas
from keyhole.protection.methods.extremes import bottom_code, top_code
from keyhole.protection.methods.generalising import generalise
from keyhole.protection.methods.leaving_out import drop
from keyhole.protection.methods.recoding import recode
from keyhole.protection.methods.rounding import round_to_base
from keyhole.protection.writeback import past_codes
from keyhole.workbench import editing


def people(**columns):
    return load(pl.DataFrame(columns))


def values(made, name):
    return made.data.frame[name].to_list()


def test_drop_leaves_columns_out_and_counts_their_values():
    made = drop(people(a=[1, 2], b=[3, 4], c=[5, 6]), columns=["b", "a"])
    assert made.data.names == ("c",)
    assert (made.columns, made.changed) == (("b", "a"), 4)
    with pytest.raises(OptionError, match="leave at least one column"):
        drop(people(a=[1]), columns=["a"])
    with pytest.raises(OptionError, match="Did you mean 'age'"):
        drop(people(age=[1], b=[1]), columns=["agee"])


def test_recode_by_map_keeps_labels_type_and_missing_codes():
    frame = pl.DataFrame({"ms": [1, 2, 3, -9, None]})
    labels = {1: "married", 2: "widowed", 3: "single", -9: "refused"}
    known = Variable("ms", "category", value_labels=labels, missing_codes=(-9,), label="Status")
    made = recode(Microdata(frame, [known]), column="ms", map={"1": 1, "2": 1, "3": 3})
    assert values(made, "ms") == [1, 1, 3, -9, None]
    assert made.data.frame["ms"].dtype == pl.Int64
    assert made.data.column("ms").to_list() == [1, 1, 3, None, None]
    about = made.data.variable("ms")
    assert about.value_labels == {1: "married or widowed", 3: "single"}
    assert (about.label, about.missing_codes, made.changed) == ("Status", (-9,), 1)


def test_recode_to_text_keeps_missing_codes_as_missing():
    known = Variable("age", "measure", missing_codes=(-9,), missing_ranges=((-3.0, -1.0),))
    data = Microdata(pl.DataFrame({"age": [30, 40, -9, -2, None]}), [known])
    made = recode(data, column="age", cuts=[35])
    assert values(made, "age") == ["34 and below", "35 and above", "-9", "-2", None]
    assert made.data.column("age").to_list() == ["34 and below", "35 and above", None, None, None]
    assert made.data.variable("age").kind == "category"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (
            {"bands": [[18, 64], [0, 17], [65, math.inf]]},
            ["0-17", "18-64", "18-64", "65 and above"],
        ),
        ({"cuts": [18, 65], "labels": ["c", "a", "o"]}, ["c", "a", "a", "o"]),
        ({"bands": [[18, 64], [0, 17], [65, 99]], "labels": ["a", "c", "o"]}, ["c", "a", "a", "o"]),
        ({"width": 20}, ["0-19", "0-19", "60-79", "80-99"]),
        ({"width": 50, "start": 17}, ["17-66", "17-66", "17-66", "67-116"]),
        ({"width": 50, "output": "middle"}, [25, 25, 75, 75]),
        ({"cuts": [18, 65], "output": "code"}, [1, 2, 2, 3]),
    ],
)
def test_bands(options, wanted):
    assert values(recode(people(age=[17, 18, 64, 90]), column="age", **options), "age") == wanted


def test_codes_of_bands_carry_the_labels():
    made = recode(people(age=[17, 18, 90]), column="age", cuts=[18, 65], output="code")
    labels = {1: "17 and below", 2: "18-64", 3: "65 and above"}
    assert made.data.variable("age").value_labels == labels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bands": [[0, 20], [20, 99]]}, r"bands \[0, 20\] and \[20, 99\] overlap"),
        ({"bands": [[50, 20]]}, "ends before it begins"),
        ({"bands": [[0, 40]]}, "1 of 3 records is in none"),
        ({"cuts": [40, 20]}, "cuts must ascend"),
        ({"map": {30: 1, 31: 1}}, "misses 1 of 3"),
        ({"map": {"30": 1, 30: 2}}, "twice"),
        ({"map": {30: 1}, "rest": 0, "keep_rest": True}, "exclude each other"),
        ({"map": {30: 1}, "cuts": [3]}, "exactly one of"),
        ({}, "exactly one of"),
        ({"cuts": [40], "output": "middle"}, "end on both sides"),
        ({"cuts": [40], "labels": ["young"]}, "one text a band: 2 texts"),
        ({"width": 1e-9}, "Give a larger one"),
        ({"width": -1}, "width must be a number above 0"),
    ],
)
def test_recodings_that_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        recode(people(age=[30, 31, 41]), column="age", **options)


def test_a_map_may_leave_the_rest_or_pool_it():
    data = people(ms=[*"abc"])
    assert values(recode(data, column="ms", map={"a": "x"}, keep_rest=True), "ms") == [*"xbc"]
    assert values(recode(data, column="ms", map={"a": "x"}, rest="o"), "ms") == [*"xoo"]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=6, unique=True),
)
def test_bands_hold_what_lies_between_their_cuts(numbers, cuts):
    cuts = sorted(cuts)
    made = recode(people(x=numbers), column="x", cuts=cuts, output="code")
    assert values(made, "x") == [1 + sum(number >= cut for cut in cuts) for number in numbers]


def test_top_code_by_hand():
    data = people(age=[34, 89, 90, 92, 97, None])
    assert values(top_code(data, column="age", value=89), "age") == [34, 89, 89, 89, 89, None]
    mean = top_code(data, column="age", value=89, replace="mean")
    assert values(mean, "age") == [34, 89, 93, 93, 93, None]
    assert mean.fitted == {"value": 89, "replacement": 93}
    label = top_code(data, column="age", value=89, replace="label")
    assert values(label, "age") == ["34", "89", *["above 89"] * 3, None]


def test_bottom_code_and_dates():
    made = bottom_code(people(x=[1.25, 2.0, 9.5]), column="x", value=2)
    assert values(made, "x") == [2.0, 2.0, 9.5]
    days = people(day=[date(1990, 1, 1), date(2020, 5, 5)])
    made = bottom_code(days, column="day", value=date(2000, 1, 1))
    assert values(made, "day") == [date(2000, 1, 1), date(2020, 5, 5)]
    with pytest.raises(OptionError, match="value must be a date"):
        bottom_code(days, column="day", value=3)


@given(
    st.lists(st.integers(-500, 500) | st.none(), min_size=1, max_size=60),
    st.floats(0.01, 0.99),
)
def test_a_share_is_never_exceeded(numbers, share):
    data = load(pl.DataFrame({"x": numbers}, schema={"x": pl.Int64}))
    made = top_code(data, column="x", share=share)
    limit = made.fitted["value"]
    known = [n for n in numbers if n is not None]
    assert sum(n > limit for n in known) <= share * len(known) + 1e-9
    assert values(made, "x") == [None if n is None else min(n, limit) for n in numbers]


def test_a_limit_by_share_is_a_round_number_and_repeats_on_other_data():
    data = people(income=[float(i) for i in range(100_000, 200_000, 1_237)])
    made = top_code(data, column="income", share=0.1)
    assert made.fitted["value"] % 1000 == 0
    again = top_code(people(income=[5e5]), column="income", **made.fitted)
    assert values(again, "income") == [made.fitted["value"]]


@given(st.integers(-(10**6), 10**6), st.integers(-300, 290), st.booleans())
@example(12_345, 0, True)
@example(-123_001, -2, False)
def test_a_limit_by_share_is_the_next_number_of_three_digits(digits, power, top):
    code, rounding = (top_code, ROUND_CEILING) if top else (bottom_code, ROUND_FLOOR)
    three = Context(prec=3, rounding=rounding)
    made = code(people(x=[float(f"{digits}e{power}")]), column="x", share=0.5)
    assert made.fitted["value"] == float(three.create_decimal(Decimal(f"{digits}e{power}")))
    made = code(people(x=[digits]), column="x", share=0.5)
    assert made.fitted["value"] == int(three.create_decimal(digits))


@given(
    st.lists(st.integers(-900, 900), min_size=3, max_size=30),
    st.sampled_from(["mean", "median"]),
    st.booleans(),
    st.booleans(),
)
@example([1, 2, 3, 4, 900], "mean", True, True)  # one has nearly all of the sum
@example([1, 2, 3, 200], "mean", True, True)
@example([100, 100, 800], "mean", True, True)  # just not nearly all
@example([1, 2, 3, 4], "median", True, False)
@example([1, 2, 3], "median", True, True)
@example([0, 0, 0], "mean", True, True)
def test_the_middle_beyond_a_limit_is_that_of_trying(beyond, replace, top, whole):
    """Of numbers above or below all others; with one that has nearly all of the sum, the median."""
    numbers = [n if whole else n / 4 for n in beyond]
    limit = min(numbers) - 1 if top else max(numbers) + 1
    code = top_code if top else bottom_code
    made = code(people(x=[limit, *numbers]), column="x", value=limit, replace=replace)
    size = sum(abs(n) for n in numbers)
    if replace == "mean" and not max(abs(n) for n in numbers) > 0.8 * size:
        middle = sum(numbers) / len(numbers)
    else:
        middle = float(np.median(numbers))
    found = values(made, "x")
    assert found[0] == limit
    assert len(set(found[1:])) == 1
    assert found[1] == (round(middle) if whole else pytest.approx(middle, abs=0.005))


@given(
    st.sets(st.integers(0, 12), max_size=6),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=2),
    st.lists(st.tuples(st.integers(-2, 16), st.integers(-2, 16)), min_size=1, max_size=12),
)
@example({5}, [(6, 2), (7, 0)], [(4, 6), (9, 6), (4, 7), (3, 5)])
@example({5, 3}, [], [(6, 5), (4, 5), (2, 3)])
def test_numbers_that_would_stand_for_a_missing_value_are_moved_past_all_that_do(
    codes, spans, rows
):
    spans = [(low, low + more) for low, more in spans]
    missing = codes | {n for low, high in spans for n in range(low, high + 1)}
    old, new = ([*side] for side in zip(*rows, strict=True))
    variable = Variable(
        "x",
        "measure",
        missing_codes=tuple(sorted(codes)),
        missing_ranges=tuple((float(low), float(high)) for low, high in spans),
    )
    data = Microdata(pl.DataFrame({"x": old}), [variable])
    changed = np.array([a != b for a, b in rows])
    found = past_codes(data, "x", np.array(new, float), np.array(old, float), changed)
    for before, after, is_changed, made in zip(old, new, changed, found, strict=True):
        if not is_changed or after not in missing:
            assert made == after
            continue
        low, high = after, after
        while low - 1 in missing:
            low -= 1
        while high + 1 in missing:
            high += 1
        edge, mirrored = (
            (low - 1, low - 1 + low - after)
            if before < low
            else (high + 1, high + 1 + high - after)
        )
        assert made == (edge if mirrored in missing else mirrored)


def test_a_frame_of_a_method_has_the_columns_it_changed():
    frame = top_code(people(x=[1, 5, 9]), column="x", value=4).to_frame()
    assert frame.rows() == [("x", 2)]
    with pytest.raises(OptionError, match="labels of a map must be a table"):
        recode(people(x=[*"ab"]), column="x", map={"a": "c"}, labels=["c"])


def test_a_mean_of_too_few_is_refused():
    with pytest.raises(OptionError, match="3 or more records"):
        top_code(people(x=[1, 2, 90, 91]), column="x", value=80, replace="mean")
    with pytest.raises(OptionError, match="must hold numbers"):
        top_code(people(x=[*"ab"]), column="x", value=80)
    with pytest.raises(OptionError, match="exactly one of 'value', 'share'"):
        top_code(people(x=[1]), column="x", value=1, share=0.5)


@pytest.mark.parametrize("bands", [[[1, "x"]], [[1, 2], [3]], [[1, math.nan]], [5], []])
def test_bands_that_are_no_pairs_of_numbers_are_refused(bands):
    with pytest.raises(OptionError, match="bands must be"):
        recode(people(x=[1, 5, 9]), column="x", bands=bands)


@pytest.mark.parametrize("action", ["regroup", "pool", "top-code", "bottom-code", "drop", "other"])
@pytest.mark.parametrize("amount", [2, 0.3, None])
def test_a_fix_is_carried_out_by_the_method_of_its_name(action, amount):
    """One of the rare values stands for all of them."""
    data = people(x=[4, 4, 4, 5, 6, None])
    fix = Fix("x", action, "", 2, 0.0, 0.0, 0.0, True, amount)
    found = {name: step for name, one in METHODS.items() if (step := one.suggest(data, fix))}
    rare = {"4": 4, "5": 4, "6": 4} if amount == 2 else {"5": 5, "6": 5}
    wanted = {
        "regroup": {"recode": {"column": "x", "width": amount}},
        "pool": {"recode": {"column": "x", "map": rare, "keep_rest": True}},
        "drop": {"drop": {"columns": ["x"]}},
    }.get(action, {action: {"column": "x", "value": amount}})
    fits = action != "other" and (amount is not None or action == "drop")
    assert found == (wanted if fits else {})


@pytest.mark.parametrize(
    ("how", "wanted"),
    [("nearest", [10, 10, 10, 20]), ("down", [0, 10, 10, 10]), ("up", [10, 10, 20, 20])],
)
def test_rounding_by_hand(how, wanted):
    made = round_to_base(people(x=[6, 10, 14, 16]), column="x", base=10, how=how)
    assert values(made, "x") == wanted
    assert made.data.frame["x"].dtype == pl.Int64


def test_rounding_to_decimals_leaves_no_crumbs():
    made = round_to_base(people(x=[0.31, 0.29, 1.5]), column="x", base=0.1)
    assert values(made, "x") == [0.3, 0.3, 1.5]


@given(st.integers(-300, 300), st.sampled_from([2, 3, 5, 10]))
def test_random_rounding_is_unbiased_and_goes_to_the_multiples_around(number, base):
    draws = 4_000
    made = round_to_base(people(x=[number] * draws), column="x", base=base, how="random", seed=9)
    found = np.array(values(made, "x"))
    assert set(found) <= {number // base * base, -(-number // base) * base}
    # Six standard errors of the mean of a number that takes one of two values.
    p = number % base / base
    error = base * math.sqrt(p * (1 - p) / draws)
    assert abs(found.mean() - number) <= 6 * error + 1e-9


def test_generalise_climbs_a_ladder():
    ladder = [{"N": ["a", "b"], "S": ["c"]}, {"N": "all", "S": "all"}]
    data = people(area=["a", "c", "b", None])
    assert values(generalise(data, column="area", groups=ladder), "area") == ["all"] * 3 + [None]
    made = generalise(data, column="area", groups=ladder, level=1)
    assert values(made, "area") == ["N", "S", "N", None]
    with pytest.raises(OptionError, match=r"groups must not overlap\. In two groups: 'b'"):
        generalise(data, column="area", groups={"N": ["a", "b"], "S": ["b", "c"]})
    with pytest.raises(OptionError, match="1 of 3 is in none"):
        generalise(data, column="area", groups={"a": "N", "b": "N"})
    with pytest.raises(OptionError, match="level must be at most 2"):
        generalise(data, column="area", groups=ladder, level=3)


def test_generalise_along_a_coding_of_an_environment():
    categories = (Category("1", "job"), Category("2", "none"), Category("3", "student"))
    coding = Coding("ES3.001", "ES", categories)
    key = KeyVariable(
        "ES", "work", "ES3.001", "ES2.101", True, (0, 1, 1), ("job", "no job"), 1.0, 0.5, 1, 1
    )
    made = generalise(people(work=[1, 2, 3, None]), column="work", groups=key, coding=coding)
    assert values(made, "work") == ["job", "no job", "no job", None]
    with pytest.raises(OptionError, match="give coding"):
        generalise(people(work=[1]), column="work", groups=key)


def test_areas_merge_with_their_smallest_neighbour():
    data = people(area=[*"aabcccdddd"])
    near = {"a": ["b", "d"], "b": ["c"]}  # b lies between a and c, and d beside a only
    made = merge_areas(data, column="area", threshold=3, adjacency=near)
    # b (1) goes to a (2), the smaller of its neighbours; then nobody is below 3.
    assert values(made, "area") == ["a+b"] * 3 + ["c"] * 3 + ["d"] * 4
    assert made.fitted["areas"] == {"a": "a+b", "b": "a+b", "c": "c", "d": "d"}
    again = merge_areas(people(area=[*"bd"]), column="area", threshold=3, **made.fitted)
    assert values(again, "area") == ["a+b", "d"]


def test_areas_merge_within_larger_ones_first():
    data = people(area=[*"abbbccddd"])
    within = {"a": "north", "c": "north", "b": "south", "d": "south"}
    made = merge_areas(data, column="area", threshold=3, hierarchy=within)
    assert set(values(made, "area")) == {"a+c", "b", "d"}


def test_people_may_be_counted_by_weights_or_a_table():
    data = people(area=[10, 11, 12], w=[5.0, 1.0, 9.0])
    made = merge_areas(data, column="area", threshold=5, population="w", ordered=True)
    assert values(made, "area") == ["10+11", "10+11", "12"]
    table = {10: 1, "11": 9, 12: 9}
    made = merge_areas(data, column="area", threshold=5, population=table, ordered=True)
    assert values(made, "area") == ["10+11", "10+11", "12"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"threshold": 100, "ordered": True},
            "threshold must be at most the 4 records of the file",
        ),
        ({"threshold": 2}, "exactly one of"),
        ({"threshold": 2, "adjacency": {"a": ["b"]}}, "misses 1 of 3"),
        ({"threshold": 2, "adjacency": {"a": [], "b": ["c"]}}, "1 area remains below"),
        ({"threshold": 2, "ordered": True, "population": "nobody"}, "not a column"),
    ],
)
def test_thresholds_that_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        merge_areas(people(area=[*"abbc"]), column="area", **options)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=60), st.integers(1, 3))
def test_no_area_is_below_the_threshold(areas, threshold):
    made = merge_areas(people(area=areas), column="area", threshold=threshold, ordered=True)
    counts = made.data.frame["area"].value_counts()["count"]
    assert counts.min() >= threshold
    together = set(zip(areas, values(made, "area"), strict=True))
    assert len(together) == len(set(areas))  # an area is never split


TEXT = "zip,age,amount,code\n02134,17,1.50,.5\n00501,-9,2.25,1\n,91,3.00,.25\n02134,95,9.75,2\n"


def test_a_text_file_stays_what_it_was_but_for_the_form_of_numbers(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    data = load(path, missing_codes={"age": [-9]}, kinds={"code": "measure"})
    data = top_code(data, column="age", value=90).data
    data = round_to_base(data, column="amount", base=0.5).data
    data = top_code(data, column="code", value=1).data
    data = recode(data, column="zip", map={"00501": "00500"}, keep_rest=True).data
    data.save(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        "zip,age,amount,code\n02134,17,1.50,0.5\n00500,-9,2.00,1\n,90,3.00,0.25\n02134,90,10.00,1\n"
    )


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".parquet"])
def test_labelled_files_keep_labels_and_types(tmp_path, suffix):
    labels = {1.0: "low", 2.0: "middle", 3.0: "high"}
    known = [
        Variable("pay", "category", label="Pay band", value_labels=labels),
        Variable("age", "measure", label="Age"),
    ]
    data = Microdata(pl.DataFrame({"pay": [1, 2, 3], "age": [20, 50, 95]}), known)
    data.save(tmp_path / f"in{suffix}")
    data = load(tmp_path / f"in{suffix}")
    data = top_code(data, column="age", value=89).data
    data = recode(data, column="pay", map={1: 1, 2: 1, 3: 3}).data
    data.save(tmp_path / f"out{suffix}")
    again = load(tmp_path / f"out{suffix}")
    assert again.frame["age"].cast(pl.Int64).to_list() == [20, 50, 89]
    assert again.variable("age").label == "Age"
    said = {int(value): text for value, text in again.variable("pay").value_labels.items()}
    assert said == {1: "low or middle", 3: "high"}


def test_new_values_that_would_be_taken_for_missing_are_refused():
    known = Variable("age", "measure", missing_codes=(89,))
    data = Microdata(pl.DataFrame({"age": [30, 95]}), [known])
    with pytest.raises(InputError, match="declared missing codes"):
        top_code(data, column="age", value=89)


def test_truth_values_can_be_mapped_as_toml_writes_them():
    data = people(served=[True, False, None])
    made = recode(data, column="served", map={"true": "yes", "false": "no"})
    assert values(made, "served") == ["yes", "no", None]


def test_days_and_points_in_time_are_compared_as_the_column_holds_them():
    days = people(day=[date(1990, 1, 1), date(2020, 5, 5)])
    made = top_code(days, column="day", value=datetime(2000, 1, 1, 12))
    assert values(made, "day") == [date(1990, 1, 1), date(2000, 1, 1)]
    times = people(at=[datetime(1990, 1, 1, 8), datetime(2020, 5, 5, 9)])
    made = top_code(times, column="at", value=date(2000, 1, 1))
    assert values(made, "at") == [datetime(1990, 1, 1, 8), datetime(2000, 1, 1)]
    late = top_code(people(day=[date(2000 + i, 3, 3) for i in range(10)]), column="day", share=0.2)
    assert late.fitted["value"] == date(2008, 1, 1)


def test_infinite_numbers_are_left_alone():
    made = round_to_base(people(x=[math.inf, 1.2, None]), column="x", base=1)
    assert values(made, "x") == [math.inf, 1.0, None]


def test_a_cut_may_be_any_number() -> None:
    made = recode(people(x=[1, 5]), column="x", cuts=[3, 10**300])
    assert values(made, "x")[0] == "2 and below"


@pytest.mark.parametrize(
    "rare",
    [[5, 6], [1.5, 2.5], ["b", "c"], [date(2020, 1, 1), date(2020, 1, 2)],
     [Decimal("1.25"), Decimal("2.5")], [timedelta(1), timedelta(2)]],
    ids=lambda rare: type(rare[0]).__name__,
)  # fmt: skip
def test_pooling_is_suggested_where_a_plan_can_write_it(rare) -> None:
    frame = pl.DataFrame({"x": [rare[0]] * 4 + rare[1:], "other": [1] * 5})
    fix = Fix("x", "pool", "", 2, 0.0, 0.0, 0.0, True, 2.0)
    step = METHODS["recode"].suggest(load(frame), fix)
    if not isinstance(rare[0], int | float | str):
        assert step is None
        return
    document = tomlkit.document()
    editing.bring_in(document, [], [{"method": "recode", **step}])
    (back,) = tomllib.loads(tomlkit.dumps(document))["protection"]["step"]
    assert keyhole.protect(frame, plan=[back], keys=["x"]).data.frame["x"].n_unique() == 1
