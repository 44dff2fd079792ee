"""Protections of numbers and dates at the ends of what can be held, and of any kind of column."""

import datetime as dt
import warnings
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from keyhole.data import load
from keyhole.errors import InputError, OptionError
from keyhole.protection.methods import METHODS


def made(column, /, **step):
    """Carry out a step on the column, any warning of the machine's being an error."""
    data = load(pl.DataFrame({"x": column}))
    entry = METHODS[step.pop("method")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return entry(data, **step)


def test_whole_numbers_past_floats_are_told_apart():
    large = [2**53, 2**53 + 1, 2**53 + 3]
    top = made(large, method="top-code", column="x", value=2**53)
    assert top.data.frame["x"].to_list() == [2**53] * 3
    assert top.changed == 2
    bottom = made(large, method="bottom-code", column="x", value=2**53 + 3)
    assert bottom.data.frame["x"].to_list() == [2**53 + 3] * 3
    mean = made(large * 2, method="top-code", column="x", value=2**53, replace="mean")
    assert mean.data.frame["x"].to_list() == [2**53, 2**53 + 2, 2**53 + 2] * 2
    rounded = made(large, method="round", column="x", base=2, how="down")
    assert rounded.data.frame["x"].to_list() == [2**53, 2**53, 2**53 + 2]
    grouped = made(large, method="microaggregate", columns=["x"], k=3)
    assert grouped.data.frame["x"].n_unique() == 1
    with pytest.raises(OptionError, match="more than 15 digits"):
        made(large, method="recode", column="x", cuts=[2**53 + 1])


@pytest.mark.parametrize(
    ("how", "wanted"), [("nearest", [-10, 10, 20, 20]), ("up", [0, 10, 20, 20])]
)
def test_large_whole_numbers_are_rounded_as_small_ones(how, wanted):
    small = [-7, 7, 15, 20]
    assert (
        made(small, method="round", column="x", base=10, how=how).data.frame["x"].to_list()
        == wanted
    )
    for far in (2**60 - 2**60 % 20, 2**60 % 20 - 2**60):
        large = made([0, *(far + x for x in small)], method="round", column="x", base=10, how=how)
        assert large.data.frame["x"].to_list() == [0, *(far + x for x in wanted)]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([2**63 - 1, 5, 0], pl.Int64), ([-(2**63), 5, 0], pl.Int64), ([2**64 - 1, 5, 0], pl.UInt64)],
)
def test_limits_by_share_at_the_ends_of_whole_numbers(values, dtype):
    column = pl.Series(values, dtype=dtype)
    for method in ("top-code", "bottom-code"):
        for replace in ("limit", "label"):
            found = made(column, method=method, column="x", share=0.1, replace=replace)
            assert found.changed == 0
        found = made(column, method=method, column="x", share=0.5)
        assert found.data.frame["x"].dtype == dtype


@pytest.mark.parametrize(
    ("method", "value"),
    [("bottom-code", -(2**63)), ("top-code", 2**64 - 1), ("top-code", 2**63), ("top-code", -1.5)],
)
def test_limits_may_be_all_numbers_that_a_file_can_hold(method, value):
    found = made([1, 2, 3], method=method, column="x", value=value)
    wanted = [-1.5] * 3 if value == -1.5 else [1, 2, 3]
    assert found.data.frame["x"].to_list() == wanted
    for beyond in (-(2**63) - 1, 2**64):
        with pytest.raises(OptionError, match="must be a number that column 'x' can hold"):
            made([1, 2, 3], method=method, column="x", value=beyond)


def test_decimals_stay_decimals():
    column = pl.Series(["1.50", "2.25", "30.99"]).cast(pl.Decimal(10, 2))
    found = made(column, method="top-code", column="x", share=0.4)
    assert found.data.frame["x"].dtype == pl.Decimal(10, 2)
    assert [str(x) for x in found.data.frame["x"]] == ["1.50", "2.25", "2.25"]
    assert made(column, method="noise", columns=["x"], size=0.1, seed=1).changed == 3


def test_there_is_no_year_after_the_last():
    ends = [dt.date(1, 1, 1), dt.date(2020, 6, 1), dt.date(9999, 12, 31)]
    for method in ("top-code", "bottom-code"):
        assert made(ends, method=method, column="x", share=0.1).changed == 0
    top = made(ends, method="top-code", column="x", share=0.4)
    assert top.data.frame["x"].to_list() == [ends[0], ends[1], dt.date(2021, 1, 1)]
    times = [dt.datetime(9999, 12, 31, 23), dt.datetime(2020, 1, 1)]
    assert made(times, method="top-code", column="x", share=0.1).changed == 0


def test_durations_can_be_recoded():
    column = [dt.timedelta(days=5), None, dt.timedelta(days=1)]
    found = made(column, method="recode", column="x", map={"a": "b"}, rest="other")
    assert found.data.frame["x"].to_list() == ["other", None, "other"]


@pytest.mark.parametrize(
    ("column", "step", "said"),
    [
        ([1, 2], {"method": "round", "column": "x", "base": 1e-300}, "base must be larger"),
        ([1.7e308], {"method": "round", "column": "x", "base": 1e308, "how": "up"}, "hold"),
        ([1, 1], {"method": "recode", "column": "x", "width": 1e-300}, "Give a larger one"),
        ([np.inf, 1.0], {"method": "recode", "column": "x", "width": 2}, "Give a larger one"),
        ([1, 2, 3], {"method": "noise", "columns": ["x"], "size": 1e300, "seed": 1}, "top-code"),
        ([1e308, -1e308], {"method": "noise", "columns": ["x"], "size": 9.0, "seed": 1}, "hold"),
        ([1.5e308] * 3, {"method": "microaggregate", "columns": ["x"], "k": 3}, "hold"),
        ([1, 2], {"method": "bottom-code", "column": "x", "value": 10**30}, "can hold"),
        ([np.inf, 1.0], {"method": "top-code", "column": "x", "share": 0.1}, "infinite values"),
    ],
)
def test_numbers_that_would_be_too_large_are_refused(column, step, said):
    with pytest.raises(OptionError, match=said) as error:
        made(column, **step)
    assert "column 'x'" in str(error.value)


def test_infinite_values_are_told():
    column = [np.inf, 1.0, 4.0, 9.0]
    for step in (
        {"method": "round", "column": "x", "base": 5},
        {"method": "noise", "columns": ["x"], "size": 0.1, "seed": 1},
        {"method": "microaggregate", "columns": ["x"], "k": 3},
    ):
        found = made(column, **step)
        assert "1 infinite value of column 'x' was left unchanged" in found.notes
        assert found.data.frame["x"][0] == np.inf


@pytest.mark.parametrize(
    ("column", "step"),
    [
        ([30, 50, 91], {"value": 60, "label": "50"}),
        ([30, 50, 91], {"value": 60, "label": "1e3"}),
        ([dt.date(1990, 1, 1)], {"value": dt.date(1980, 1, 1), "label": "1990-01-01"}),
    ],
)
def test_a_label_that_reads_like_a_value_is_refused(column, step):
    with pytest.raises(OptionError, match="label must be words"):
        made(column, method="top-code", column="x", replace="label", **step)


COLUMNS = {
    "whole": [0, 1, 2, 3, 4] * 6,
    "least": [-(2**63), 2**63 - 1, 0] * 10,
    "unsigned": pl.Series([2**64 - 1, 0, 1] * 10, dtype=pl.UInt64),
    "huge": [1e308, -1e308, 1e-308] * 10,
    "infinite": [np.inf, -np.inf, 1.0] * 10,
    "empty": pl.Series([None] * 30, dtype=pl.Float64),
    "constant": [1] * 30,
    "truth": [True, False, None] * 10,
    "text": [*"abc"] * 10,
    "blank": ["", "  ", "a"] * 10,
    "date": [dt.date(2020, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 10,
    "time": [dt.datetime(2020, 1, 1, 5), None, dt.datetime(1900, 1, 1)] * 10,
    "clock": [dt.time(5, 5), None, dt.time(1)] * 10,
    "span": [dt.timedelta(5), None, dt.timedelta(1)] * 10,
    "decimal": pl.Series(["1.5", "2.25", "3"] * 10).cast(pl.Decimal(10, 2)),
    "bytes": [b"a", b"b", None] * 10,
    "category": pl.Series([*"abc"] * 10, dtype=pl.Categorical),
}
STEPS = [
    {"method": "recode", "column": "x", "map": {"a": "z"}, "rest": "other"},
    {"method": "recode", "column": "x", "cuts": [0, 1]},
    {"method": "recode", "column": "x", "width": 2},
    {"method": "top-code", "column": "x", "value": 1},
    {"method": "top-code", "column": "x", "share": 0.1},
    {"method": "top-code", "column": "x", "share": 0.3, "replace": "mean"},
    {"method": "bottom-code", "column": "x", "share": 0.1, "replace": "label"},
    {"method": "round", "column": "x", "base": 5},
    {"method": "round", "column": "x", "base": 1e300, "how": "random", "seed": 1},
    {"method": "generalise", "column": "x", "groups": {"a": "z", "b": "z", "c": "z"}},
    {"method": "geographic-threshold", "column": "x", "threshold": 11, "ordered": True},
    {"method": "noise", "columns": ["x"], "size": 0.1, "kind": "correlated", "seed": 1},
    {"method": "microaggregate", "columns": ["x"], "k": 3, "replace": "median", "whole": True},
    {"method": "pram", "column": "x", "p": 0.8, "invariant": True, "seed": 1},
    {"method": "sample", "size": 5, "weight": "x", "seed": 1},
]


@pytest.mark.parametrize("kind", COLUMNS)
def test_any_kind_of_column_is_protected_or_refused(kind):
    for step in STEPS:
        with suppress(InputError):
            found = made(COLUMNS[kind], **step)
            assert found.data.records in (5, 30)
