"""Microdata: columns, codes, missing codes, roles, weights."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from keyhole.data import Microdata, Variable, load
from keyhole.data.columns import encode
from keyhole.data.microdata import require_columns
from keyhole.errors import ColumnError, FileError

TEN = pl.DataFrame(
    {
        "sex": [1, 2, 1, 9, 2, 1, 2, 1, 9, 2],
        "zip": ["02134", "10001", "02134", "", "10001", "02134", None, "1", "2", "3"],
        "income": [1.5, -9.0, 3.25, float("nan"), 4.0, -9.0, 7.5, 8.0, 9.0, 10.0],
        "weight": [2.0, 1.0, 1.5, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 1.0],
    }
)


# --- columns and missing codes ---------------------------------------------------------------


def test_column_turns_codes_empty_text_and_nan_to_null_and_leaves_the_frame() -> None:
    data = load(TEN, missing_codes={"sex": [9], "income": ["-9"]})
    assert data.column("sex").to_list() == [1, 2, 1, None, 2, 1, 2, 1, None, 2]
    assert data.column("zip").null_count() == 2
    assert data.column("income").null_count() == 3
    assert_frame_equal(data.frame, TEN)


@pytest.mark.parametrize("code", [-9, -9.0, "-9", "-9.0"])
@pytest.mark.parametrize(
    "values", [[-9, 1], [-9.0, 1.0], ["-9", "1"], ["-9.0", "1"], [Decimal("-9"), Decimal("1")]]
)
def test_a_code_matches_by_text_form_in_every_type(code: object, values: list[object]) -> None:
    data = load(pl.DataFrame({"a": values}), missing_codes=[code])
    assert data.column("a").is_null().to_list() == [True, False]


def test_a_code_of_one_form_does_not_match_another_value() -> None:
    data = load(pl.DataFrame({"a": ["-09", "9", "-9 "], "b": [9, -90, 99]}), missing_codes=[-9])
    assert data.column("a").null_count() == 0
    assert data.column("b").null_count() == 0
    data = load(pl.DataFrame({"a": ["7", "007"], "b": [7, 1000]}), missing_codes=["007", "1_000"])
    assert data.column("a").to_list() == ["7", None]
    assert data.column("b").null_count() == 0


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.UInt64, pl.Float32, pl.Int128])
def test_a_code_that_a_narrow_type_cannot_hold(dtype: type[pl.DataType]) -> None:
    data = load(pl.DataFrame({"a": pl.Series([1, 9], dtype=dtype)}), missing_codes=[-999, 9, 1e300])
    assert data.column("a").to_list() == [1, None]
    assert data.column("a").dtype == dtype


@pytest.mark.parametrize("codes", [9, "9", [9], ["9"], {"*": 9}, {"a": "9"}])
def test_one_code_is_a_list_of_one(codes: object) -> None:
    data = load(pl.DataFrame({"a": [1, 9]}), missing_codes=codes)  # type: ignore[arg-type]
    assert data.column("a").to_list() == [1, None]


def test_missing_codes_for_the_whole_file_and_by_column_add_up() -> None:
    frame = pl.DataFrame({"a": [1, 8, 9], "b": [1, 8, 9]})
    data = load(frame, missing_codes={"*": [9], "a": [8]})
    assert data.column("a").to_list() == [1, None, None]
    assert data.column("b").to_list() == [1, 8, None]


def test_missing_codes_of_dates_truth_values_and_categories() -> None:
    frame = pl.DataFrame(
        {
            "day": [dt.date(9999, 12, 31), dt.date(2020, 1, 2)],
            "yes": [True, False],
            "cat": pl.Series(["x", "NA"], dtype=pl.Categorical),
            "enum": pl.Series(["NA", "x"], dtype=pl.Enum(["x", "NA"])),
        }
    )
    codes = {"day": ["9999-12-31"], "yes": ["false"], "cat": ["NA"], "enum": ["NA"]}
    data = load(frame, missing_codes=codes)
    nulls = [data.column(name).is_null().to_list() for name in data.names]
    assert nulls == [[True, False], [False, True], [False, True], [True, False]]


def test_missing_codes_of_durations(tmp_path: Path) -> None:
    values = [dt.timedelta(hours=30), dt.timedelta(days=-9), None]
    for unit in ("ms", "us", "ns"):
        frame = pl.DataFrame({"stay": pl.Series(values, dtype=pl.Duration(unit))})
        assert load(frame, missing_codes=[-9, "."]).codes("stay").size == 3
        data = load(frame, missing_codes=[dt.timedelta(days=-9)])
        assert data.column("stay").null_count() == 2
        assert load(frame, missing_codes=["-P9D"]).column("stay").null_count() == 2
    back = load(data.save(tmp_path / "p.xlsx"))
    assert back.frame["stay"].to_list() == ["P1DT6H", "-P9D"]


@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128])
def test_whole_numbers_of_128_bits(dtype: type[pl.DataType]) -> None:
    frame = pl.DataFrame({"a": pl.Series([2**100, 5, None, 7, 5], dtype=dtype)})
    codes = load(frame).codes("a")
    assert codes.levels.to_list() == [5, 7, 2**100]
    assert codes.values.tolist() == [2, 0, 3, 1, 0]
    assert load(frame, missing_codes=[-9, 5]).column("a").null_count() == 3


def test_missing_ranges_are_missing() -> None:
    data = load(TEN).with_variables([Variable("sex", "category", missing_ranges=((2, 9),))])
    assert data.column("sex").null_count() == 6


# --- codes -------------------------------------------------------------------------------------


def slow_codes(values: list[object]) -> tuple[list[int], list[object]]:
    """Encode by hand: sort the distinct values, count missing as one more."""
    levels = sorted({value for value in values if value is not None})
    place = {level: i for i, level in enumerate(levels)}
    return [len(levels) if value is None else place[value] for value in values], levels


columns = st.one_of(
    st.lists(st.none() | st.integers(-300, 300), min_size=1, max_size=60),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30),
    st.lists(st.none() | st.floats(allow_nan=False), min_size=1, max_size=30),
    st.lists(st.none() | st.text(min_size=1, max_size=4), min_size=1, max_size=60),
    st.lists(st.none() | st.booleans(), min_size=1, max_size=10),
    st.lists(st.none() | st.dates(), min_size=1, max_size=30),
    st.lists(
        st.none() | st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
        min_size=1,
        max_size=30,
    ),
    st.lists(st.none() | st.times(), min_size=1, max_size=30),
    st.lists(st.none() | st.decimals(-99, 99, places=2), min_size=1, max_size=30),
)


@given(columns)
def test_codes_equal_the_slow_twin(values: list[object]) -> None:
    codes = encode(pl.Series("a", values, strict=False))
    slow, levels = slow_codes(values)
    assert codes.values.tolist() == slow
    assert codes.levels.to_list() == levels
    assert codes.has_missing == (None in values)
    assert codes.size == len(set(values))


@given(columns)
def test_levels_at_the_codes_give_the_column_back(values: list[object]) -> None:
    series = pl.Series("a", values, strict=False)
    codes = encode(series)
    padded = [*codes.levels.to_list(), None]
    assert [padded[code] for code in codes.values] == series.to_list()


@pytest.mark.parametrize(
    ("size", "missing", "width"),
    [
        (256, False, np.uint8),
        (256, True, np.uint16),
        (257, False, np.uint16),
        (65_536, False, np.uint16),
        (65_536, True, np.uint32),
    ],
)
@pytest.mark.parametrize("kind", [pl.Int64, pl.String, pl.Float64])
def test_codes_have_the_smallest_width(
    size: int, missing: bool, width: type, kind: type[pl.DataType]
) -> None:
    values = pl.Series("a", range(size)).cast(kind)
    codes = encode(values.extend(pl.Series([None], dtype=kind)) if missing else values)
    assert codes.values.dtype == width
    assert codes.values[-1] == codes.size - 1 or kind == pl.String
    assert codes.size == size + missing


def test_codes_of_types_with_an_order_of_their_own() -> None:
    enum = pl.Series(["low", "high", None, "low"], dtype=pl.Enum(["low", "mid", "high"]))
    assert encode(enum).values.tolist() == [0, 1, 2, 0]
    assert encode(enum).levels.to_list() == ["low", "high"]
    category = pl.Series(["b", "a", "b"], dtype=pl.Categorical)
    assert encode(category).values.tolist() == [1, 0, 1]
    assert encode(pl.Series([b"\xff", b"\x00"])).levels.to_list() == ["00", "ff"]
    assert encode(pl.Series([0.0, -0.0, float("nan")])).values.tolist() == [0, 0, 1]
    assert encode(pl.Series([2**64 - 1, 0], dtype=pl.UInt64)).values.tolist() == [1, 0]
    assert encode(pl.Series([127, -128], dtype=pl.Int8)).values.tolist() == [1, 0]


def test_codes_of_nothing() -> None:
    assert encode(pl.Series("a", [None, None])).values.tolist() == [0, 0]
    assert encode(pl.Series("a", [None], dtype=pl.String)).size == 1
    for dtype in (pl.Int64, pl.String, pl.Float64, pl.Boolean, pl.Decimal(10, 2), pl.Null):
        assert encode(pl.Series("a", [], dtype=dtype)).size == 0


@pytest.mark.parametrize(
    ("series", "word"),
    [
        (pl.Series("a", [[1], [2]]), "list"),
        (pl.Series("a", [{"b": 1}]), "struct"),
        (pl.Series("a", [1, "x"], dtype=pl.Object), "mixed types"),
    ],
)
def test_codes_of_cells_that_are_no_single_value(series: pl.Series, word: str) -> None:
    data = load(series.to_frame())
    with pytest.raises(ColumnError, match=f"column 'a'.*{word}"):
        data.codes("a")


def test_codes_are_made_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(series: pl.Series) -> object:
        calls.append(series.name)
        return encode(series)

    monkeypatch.setattr("keyhole.data.microdata.encode", counted)
    data = load(TEN)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(data.codes, ["sex", "zip"] * 20))
    assert sorted(calls) == ["sex", "zip"]
    assert all(codes is found[0] for codes in found[::2])
    with pytest.raises(ValueError, match="read-only"):
        found[0].values[0] = 1


# --- names, roles, weights ---------------------------------------------------------------------


def test_require_says_everything_at_once() -> None:
    with pytest.raises(ColumnError) as caught:
        load(TEN).require(["sexx", "zip", "zip", "incomes"])
    first, second, third = caught.value.problems
    assert "'sexx'" in first
    assert "'sex'" in first
    assert "'incomes'" in second
    assert "'income'" in second
    assert "'zip' is listed more than once" in third


def test_to_require_a_column_does_not_go_through_all_of_them() -> None:
    class Names(dict):
        def __iter__(self):
            raise AssertionError("the time of a wide file would grow with its columns squared")

    assert require_columns(["b"], Names(a=0, b=1), purpose="key", called="people") == ("b",)


def test_require_of_one_name_is_a_list_of_one() -> None:
    assert load(TEN).require("sex") == ("sex",)


def test_variable_column_and_codes_offer_near_names() -> None:
    data = load(TEN)
    for ask in (data.variable, data.column, data.codes, data.weights):
        with pytest.raises(ColumnError, match="Did you mean 'zip'"):
            ask("zipp")


def test_roles() -> None:
    data = load(TEN, roles={"sex": "key", "weight": "weight"}).with_roles(zip="key")
    assert data.role("key") == ("sex", "zip")
    assert data.variable("weight").kind == "measure"
    assert data.with_roles({"sex": None}).role("key") == ("zip",)
    with pytest.raises(ColumnError) as caught:
        data.with_roles(sexx="key", zip="keys")
    assert len(caught.value.problems) == 2


def test_weights() -> None:
    data = load(TEN)
    assert data.weights("weight").dtype == np.float64
    assert data.weights("sex").tolist()[:2] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, None], "no missing values. Got 1 of 2"),
        ([1.0, float("nan")], "no missing values"),
        ([1.0, -2.0], "no negative values. Got 1 of 2"),
        ([0.0, 0.0], "above 0"),
        ([1.0, float("inf")], "no infinite values"),
        (["a", "b"], "must hold numbers. Got text"),
    ],
)
def test_weights_that_are_none(values: list[object], words: str) -> None:
    with pytest.raises(ColumnError, match="weight 'w'") as caught:
        load(pl.DataFrame({"w": values})).weights("w")
    assert words in str(caught.value)


def test_weights_tell_all_problems_at_once() -> None:
    with pytest.raises(ColumnError) as caught:
        load(pl.DataFrame({"w": [None, -1.0, 2.0]})).weights("w")
    assert len(caught.value.problems) == 2


# --- new data from old -------------------------------------------------------------------------


def test_filter_keeps_what_is_known() -> None:
    data = load(TEN, roles={"sex": "key"}, missing_codes=[9])
    part = data.filter(np.array(TEN["sex"] == 1))
    assert part.records == 4
    assert part.role("key") == ("sex",)
    assert part.codes("sex").size == 1
    with pytest.raises(ColumnError, match="mask"):
        data.filter(np.array([True]))


def test_replace_keeps_known_columns_and_describes_new_ones() -> None:
    data = load(TEN, roles={"sex": "key"}, labels={"sex": "Sex"})
    new = data.replace(frame=TEN.select("sex", new=pl.col("income") * 2), name="new")
    assert new.names == ("sex", "new")
    assert new.variable("sex").label == "Sex"
    assert new.variable("new").kind == "measure"
    assert new.name == "new"
    assert data.names == tuple(TEN.columns)


def test_replace_guesses_the_kind_anew_where_the_type_is_another() -> None:
    data = load(pl.DataFrame({"age": range(100)}), roles={"age": "key"}, labels={"age": "Age"})
    grouped = data.replace(frame=data.frame.select(age=pl.lit("60-69")))
    assert data.variable("age").kind == "measure"
    assert grouped.variable("age").kind == "category"
    assert grouped.variable("age").label == "Age"
    assert grouped.role("key") == ("age",)


def test_codes_are_kept_where_they_are_the_same() -> None:
    data = load(TEN)
    sex, place = data.codes("sex"), data.codes("zip")
    assert data.with_roles(sex="key").codes("sex") is sex
    assert data.select(["zip"]).codes("zip") is place
    assert load(data, missing_codes={"sex": [9]}).codes("sex").has_missing
    assert load(data, missing_codes={"sex": [9]}).codes("zip") is place
    assert data.replace(frame=TEN.head(2)).codes("sex").values.tolist() == [0, 1]


def test_select_takes_columns_in_the_order_asked() -> None:
    assert load(TEN).select(["zip", "sex"]).names == ("zip", "sex")


def test_microdata_cannot_be_changed() -> None:
    data = load(TEN)
    with pytest.raises(AttributeError):
        data.name = "other"  # type: ignore[misc]
    with pytest.raises(ColumnError, match="in their order"):
        Microdata(TEN, (Variable("sex", "category"),))


def test_loading_microdata_adds_to_what_is_known() -> None:
    data = load(TEN, roles={"sex": "key"}, missing_codes=[9])
    more = load(
        data,
        columns=["sex", "zip"],
        roles={"zip": "key"},
        missing_codes=["1"],
        kinds={"sex": "measure"},
        labels={"sex": "Sex"},
    )
    assert more.role("key") == ("sex", "zip")
    assert more.column("sex").null_count() == 6
    assert more.variable("sex").kind == "measure"
    assert more.variable("sex").label == "Sex"
    assert data.variable("sex").label == ""


def test_loading_microdata_again_types_text_that_a_code_had_spoilt() -> None:
    data = load(pl.DataFrame({"age": ["34", ".", "51"]}))
    assert load(data, missing_codes=["."]).column("age").to_list() == [34, None, 51]


# --- manners -----------------------------------------------------------------------------------


def test_printing_shows_no_value() -> None:
    frame = pl.DataFrame({"name": ["Schrödinger"], "ssn": [123456789], "<b>": [1]})
    data = load(frame, labels={"ssn": "Number"}, roles={"ssn": "identifier"})
    assert repr(data.codes("name")) == "Codes of 'name': 1 levels"
    for text in (repr(data), data._repr_html_()):
        assert "Schrödinger" not in text
        assert "123456789" not in text
        assert "identifier" in text
        assert "Number" in text
    assert "<b>" not in data._repr_html_()


def test_require_records() -> None:
    load(TEN).require_records()
    with pytest.raises(FileError, match="header but no records"):
        load(TEN.clear()).require_records()
    with pytest.raises(FileError, match=r"at least 20 records\. Got 10"):
        load(TEN).require_records(20)
