"""Derived columns: every function against an obvious twin, nesting, types, refusals."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.cli.main import run
from keyhole.core.expressions import (
    Derivations,
    definition_problems,
    parse_expression,
    read_definitions,
    source_columns,
    write_definition,
)
from keyhole.core.tokens import SyntaxProblem
from keyhole.data import deriving as deriving_module
from keyhole.data import load
from keyhole.data.deriving import Derivation, derive_codes
from keyhole.errors import ColumnError, InputError, OptionError

QUICK = settings(max_examples=60, deadline=None)
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31))
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


def made(values: list[object] | pl.Series, expression: str, name: str = "x") -> list[object]:
    return list(keyhole.derive(pl.DataFrame({name: values}), {"new": expression})["new"].to_list())


def is_coarser(fine: list[object], coarse: list[object]) -> bool:
    """Tell whether every value of one goes with one value of the other."""
    return len({*zip(fine, coarse, strict=True)}) == len({*fine})


@QUICK
@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-50, 130), min_size=1),
    st.integers(1, 40),
    st.integers(-20, 20),
)
def test_bands_of_whole_numbers(values, width, start):
    def label(x):
        low = start + (x - start) // width * width
        high = low + width - 1
        return str(low) if width == 1 else f"{low}{'-' if low >= 0 else ' to '}{high}"

    found = made(pl.Series(values, dtype=pl.Int64), f"band(x, {width}, {start})")
    assert found == [None if x is None else label(x) for x in values]


@QUICK
@given(st.lists(st.integers(-999, 999), min_size=1), st.integers(1, 9), st.integers(0, 2))
def test_bands_of_decimals_are_those_of_the_numbers_as_written(tens, width, places):
    unit = Decimal(1).scaleb(-places)
    values = [float(x * unit) for x in tens]
    found = made(values, f"band(x, {width * unit})")
    lows = [math.floor(Decimal(x) / width) * width * unit for x in tens]
    assert [label.split(" to under ")[0] for label in found] == [_short(low) for low in lows]
    assert [label.split(" to under ")[1] for label in found] == [
        _short(low + width * unit) for low in lows
    ]


def _short(number: Decimal) -> str:
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


@QUICK
@given(
    st.lists(st.none() | st.integers(-30, 130), min_size=1),
    st.lists(st.integers(-20, 120), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_cuts(values, points):
    def label(x):
        if x < points[0]:
            return f"under {points[0]}"
        low = max(point for point in points if point <= x)
        if low == points[-1]:
            return f"{low} or more"
        high = min(point for point in points if point > x) - 1
        return str(low) if low == high else f"{low}{'-' if low >= 0 else ' to '}{high}"

    found = made(pl.Series(values, dtype=pl.Int64), f"cut(x, {', '.join(map(str, points))})")
    assert found == [None if x is None else label(x) for x in values]


@QUICK
@given(st.lists(st.none() | DATES, min_size=1), st.booleans())
def test_parts_of_dates_and_their_nesting(values, with_time):
    days = pl.Series("x", values, dtype=pl.Date)
    given_column = days.cast(pl.Datetime("us")) if with_time else days
    parts = [made(given_column, f"{part}(x)") for part in ("month", "quarter", "year")]
    twin = [
        None if x is None else
        (f"{x.year:04}-{x.month:02}", f"{x.year:04}-Q{(x.month + 2) // 3}", x.year)
        for x in values
    ]  # fmt: skip
    assert [*zip(*parts, strict=True)] == [(None,) * 3 if x is None else x for x in twin]
    ladder = [values, *parts]
    assert all(is_coarser(*pair) for pair in pairwise(ladder))


@QUICK
@given(st.lists(st.integers(0, 120), min_size=1), st.integers(1, 9), st.integers(1, 5))
def test_bands_nest_where_one_width_divides_the_other(values, width, times):
    fine = made(values, f"band(x, {width})")
    assert is_coarser(fine, made(values, f"band(x, {width * times})"))


@QUICK
@given(st.lists(st.none() | st.sampled_from("aaabbcd"), min_size=1), st.integers(1, 6))
def test_rare_categories_are_pooled(values, least):
    held = {x: values.count(x) for x in values}
    twin = [None if x is None else x if held[x] >= least else "other" for x in values]
    assert made(pl.Series(values, dtype=pl.String), f"pool(x, {least})") == twin


@QUICK
@given(
    st.lists(
        st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from(["a", "a, b", "b"])),
        min_size=1,
    )
)
def test_combinations_are_the_pairs(rows):
    frame = pl.DataFrame(rows, schema={"n": pl.Int64, "t": pl.String}, orient="row")
    found = keyhole.derive(frame, "both = join(n, t)")["both"].to_list()
    assert [x is None for x in found] == [None in row for row in rows]
    known = [(row, x) for row, x in zip(rows, found, strict=True) if x is not None]
    assert len({*known}) == len({row for row, _ in known}) == len({x for _, x in known})


@QUICK
@given(st.lists(st.none() | st.integers(0, 120), min_size=1), st.integers(0, 120))
def test_top_and_bottom_codes_stay_numbers(values, limit):
    series = pl.Series(values, dtype=pl.Int64)
    assert made(series, f"top(x, {limit})") == [
        None if x is None else min(x, limit) for x in values
    ]
    assert made(series, f"bottom(x, {limit})") == [
        None if x is None else max(x, limit) for x in values
    ]


@QUICK
@given(st.lists(st.none() | st.text("019", min_size=1, max_size=6), min_size=1), st.integers(1, 7))
def test_prefixes(values, length):
    found = made(pl.Series(values, dtype=pl.String), f"prefix(x, {length})")
    assert found == [None if x is None else x[:length] for x in values]


@QUICK
@given(NAMES, NAMES)
def test_hostile_names_are_quoted_and_read_back(name, source):
    line = write_definition(name, f'band("{source.replace(chr(34), chr(34) * 2)}", 10)')
    ((found, expression),) = read_definitions(line)
    assert (found, *source_columns(parse_expression(expression))) == (name, source)
    assert Derivations().settle(Derivations().write({name: expression})) == {name: expression}


@QUICK
@given(st.text(max_size=40) | st.text('band(age, 10)"{}:;= from', max_size=40))
def test_whatever_is_typed_is_read_or_refused(text):
    try:
        written = str(parse_expression(text))
    except SyntaxProblem as problem:
        written, at = "", problem.at
    assert str(parse_expression(written)) == written if written else 1 <= at <= len(text) + 1


def test_labels_are_in_their_order_and_tell_of_open_ends():
    ages = load({"age": [3, 12, 25, 90, 101, None]}, derive={"a": "band(top(age, 90), 10)"})
    assert ages.codes("a").levels.to_list() == ["0-9", "10-19", "20-29", "90 or more"]
    assert ages.variable("a").derived == "band(top(age, 90), 10)"
    topped = load({"age": [3, 90, 101]}, derive="a = top(age, 90)").variable("a")
    assert (topped.kind, topped.value_labels) == ("measure", {90: "90 or more"})


def test_cuts_of_dates_hold_their_first_day():
    days = [datetime(1989, 12, 31, 23), datetime(1990, 1, 1), datetime(1999, 12, 31, 23), None]
    found = made(pl.Series(days, dtype=pl.Datetime), "cut(x, 1990-01-01, 2000-01-01)")
    assert found == ["before 1990-01-01", *["1990-01-01 to 1999-12-31"] * 2, None]


def test_codings_from_files_from_pairs_and_from_labels(tmp_path):
    pl.DataFrame({"job": [1, 2, 3], "group": ["b", "b", "a"], "sector": [*"xxy"]}).write_csv(
        tmp_path / "jobs.csv"
    )
    where = tmp_path / "jobs.csv"
    people = pl.DataFrame({"job": [3, 1, None, 2]})
    grouped = keyhole.derive(people, {"g": f'map(job, "{where}", to="group")'})["g"]
    assert grouped.to_list() == ["a", "b", None, "b"]
    assert grouped.dtype == pl.Enum(["b", "a"])
    sector = keyhole.derive(people, {"s": f'map(job, "{where}", to="sector")'})["s"].to_list()
    assert is_coarser(grouped.to_list(), sector)
    pairs = 'map(job, {1: "one", "2": "two"}, other="more")'
    assert keyhole.derive(people, {"p": pairs})["p"].to_list() == ["more", "one", None, "two"]
    data = load(people)
    labelled = data.with_variables(
        [type(data.variables[0])("job", "category", value_labels={1: "clerk", 2: "clerk"})]
    )
    found = load(labelled, derive="l = labels(job)")
    assert found.column("l").to_list() == ["3", "clerk", None, "clerk"]


def test_small_areas_have_no_code_of_their_own(tmp_path):
    pl.DataFrame({"zip3": [21, 100, 36], "people": [700_000, 20_001, 20_000]}).write_csv(
        tmp_path / "people.csv"
    )
    where = tmp_path / "people.csv"
    zips = ["02134", "10001", "03601", None]
    expression = f'prefix(x, 3, populations="{where}")'
    assert made(zips, expression) == ["021", "100", "000", None]
    lenient = f'prefix(x, 3, populations="{where}", above=19999, other="???")'
    assert made([*zips, "99"], lenient) == ["021", "100", "036", None, "???"]
    with pytest.raises(ColumnError, match=r"values in 1 of 5 records .* Add them, or give other="):
        made([*zips, "99999"], expression)


@pytest.mark.parametrize(
    ("values", "expression", "words"),
    [
        ([2134], "prefix(x, 3)", "write prefix(text(x, 5), 3)"),
        ([date(2020, 1, 1)], "prefix(x, 3)", "year(x) or month(x)"),
        ([date(2020, 1, 1)], "band(x, 10)", "write band(year(x), 10)"),
        (["a"], "band(x, 10)", "band needs numbers. Column 'x' holds text"),
        ([3], "year(x)", "year needs dates. Column 'x' holds whole numbers"),
        ([3], "cut(x, 2020-01-01)", "needs dates"),
        ([3], "top(x, 2.5)", "needs a whole number as its limit"),
        ([3], "labels(x)", "give a coding with map"),
        ([3], "band(prefix(text(x, 2), 1), 5)", "prefix(text(x, 2), 1) holds text"),
        ([math.inf], "band(x, 5)", "needs finite numbers"),
        (["a"], 'map(x, {"b": "c"})', "values in 1 of 1 record that are not in the coding"),
        ([3], 'map(x, "absent.csv")', "absent.csv"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_remedy(values, expression, words):
    with pytest.raises(InputError) as caught:
        made(values, expression)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ({"x": "band(x, 10)"}, "must not be made from itself"),
        ({"y": "band(x, 10)"}, "'y' is a column of the frame already"),
        ({"z": "band(xx, 10)"}, "Did you mean 'x'?"),
        ({"z": "bnad(x, 10)"}, "Did you mean 'band'?"),
        ({"z": "band(w, 1)", "w": "band(x, 1)"}, "defined below it"),
        (["z = band(x, 1)", "z = band(x, 2)"], "'z' is defined twice"),
        ({"z": "band(x)"}, "band takes a column and a width"),
        ({"z": "band(x, 0)"}, "a number above 0"),
        ({"z": "cut(x, 2, 1)"}, "rising order"),
        ({"z": "prefix(t, 1, form=2)"}, "It takes populations="),
        ({"z": "join(x)"}, "needs 2 columns"),
        ({"z": 'prefix(x, 3, above=2)'}, "only with populations="),
        ({"z": "__import__('os')"}, "is not a function"),
        ({"^z$": "band(x, 1)"}, "as patterns do"),
        (3, "derive must be lines"),
        ({"z": "band(" * 60}, "nested more than 50 deep"),
    ],
)  # fmt: skip
def test_definitions_that_cannot_be_made(lines, words):
    with pytest.raises(InputError) as caught:
        keyhole.derive(pl.DataFrame({"x": [1], "y": [2]}), lines)
    assert words in str(caught.value)


def test_all_problems_are_told_at_once():
    with pytest.raises(ColumnError) as caught:
        keyhole.derive(
            pl.DataFrame({"x": [1], "t": ["a"]}),
            ["a = year(x)", "b = band(t, 5)", "c = join(a, x)"],
        )
    assert len(caught.value.problems) == 2
    assert len(definition_problems(["a = bnd(x)", "b = year("])) == 2


def test_the_same_kind_of_frame_comes_back(tmp_path):
    frame = pd.DataFrame({"age": [31, 47]}, index=["p", "q"])
    found = keyhole.derive(frame, "age10 = band(age, 10)")
    assert isinstance(found, pd.DataFrame)
    assert (list(found.index), list(found["age10"])) == (["p", "q"], ["30-39", "40-49"])
    assert isinstance(keyhole.derive(pl.LazyFrame({"a": [1]}), "b = band(a, 2)"), pl.LazyFrame)
    arrow = pl.DataFrame({"a": [1]}).to_arrow()
    assert type(keyhole.derive(arrow, "b = band(a, 2)")) is type(arrow)
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert keyhole.derive(tmp_path / "p.csv", "b = band(age, 2)").names == ("age", "b")


def test_only_what_is_asked_for_is_returned(tmp_path):
    path = tmp_path / "people.csv"
    pl.DataFrame({"age": [31], "zip": ["02134"], "age10": [1]}).write_csv(path)
    lines = {"decade": "band(age, 10)", "both": "join(decade, prefix(zip, 3))", "q": "year(no)"}
    with pytest.raises(ColumnError, match="'no' is not a column"):
        load(path, derive=lines, columns=["both"])
    del lines["q"]
    assert load(path, derive=lines, columns=["both"]).names == ("both",)
    assert load(path, derive={**lines, "q": "year(no)"}, partial=True).names == (
        "age", "zip", "age10", "decade", "both",
    )  # fmt: skip
    with pytest.raises(ColumnError, match=r"a column of 'people\.csv' already"):
        load(path, derive="age10 = band(age, 10)", columns=["age10"])
    told = load(path, derive=lines, columns=["decade"], roles={"decade": "key"},
                labels={"decade": "Age"}).variable("decade")  # fmt: skip
    assert (told.role, told.label) == ("key", "Age")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_derived_columns_that_nothing_uses_are_checked_all_the_same(tmp_path, capsys, engine):
    path = tmp_path / "people.csv"
    pl.DataFrame({"age": [31, 32], "sex": [*"fm"], "job": [*"ab"]}).write_csv(path)
    words = ["risk", str(path), "--keys", "sex", "--engine", engine]
    for line in ("x = prefix(age, 3)", 'y = map(job, {"a": "z"})', "a2 = band(age, 2)"):
        words += ["--derive", line]
    assert run(words) == 2
    told = capsys.readouterr().err
    assert "derived column 'x': prefix needs text." in told
    assert "derived column 'y': column 'job' has values in 1 of 2 records" in told
    assert run([*words[:5], engine, "--derive", "a2 = band(age, 2); a4 = join(a2, sex)"]) == 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".sav", ".dta", ".xpt", ".xlsx"])
def test_files_with_derived_columns_can_be_written(tmp_path, suffix):
    people = {"age": [31, 47, None], "born": [date(2020, 1, 31), None, date(1999, 1, 1)]}
    data = load(people, derive=["a10 = band(age, 10)", "top = top(age, 40)", "m = month(born)"])
    again = load(data.save(tmp_path / f"people{suffix}"))
    assert again.column("a10").cast(pl.String).to_list() == ["30-39", "40-49", None]
    assert again.column("m").to_list() == ["2020-01", None, "1999-01"]


def test_many_combinations_are_counted_without_a_table(monkeypatch):
    data = load({"a": [3, 1, 2, 3], "b": [*"xyzx"]})
    slow = derive_codes(data, Derivation.of("both", "join(a, b)"))[1]
    monkeypatch.setattr(deriving_module, "MOST_PAIRS", 2)
    quick = derive_codes(data, Derivation.of("both", "join(a, b)"))[1]
    assert quick.values.tolist() == slow.values.tolist() == [2, 0, 1, 2]


def test_a_wrong_shape_is_an_option_error():
    with pytest.raises(OptionError):
        load({"a": [1]}, derive={"b": 3})


def test_infinite_numbers_are_categories_of_a_coding() -> None:
    values = [1.5, math.inf, -math.inf, None]
    pairs = 'map(x, {"inf": "far", "-inf": "far", "1.5": "near"})'
    assert made(values, pairs) == ["near", "far", "far", None]
    assert made(values, "pool(x, 2)")[3] is None
