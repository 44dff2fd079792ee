"""Ordinary names and types: what a file may hold is taken, or refused in one clear message."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.core.names import alike
from keyhole.engines.choose import open_records
from keyhole.errors import ColumnError, KeyholeError

NAMES = [
    "count", "*", "len", "index", "f", "F", "risk", "records", "code", "key", "value", "literal",
    "group", "cell", "proportion", "weight", "a b", "a,b", "a.b", "[x]", "'; DROP TABLE x;--",
    "<script>", "=1+1", "..", "{x}", "%s", "ä", "\x1b[2J", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_names_that_are_empty_or_hold_a_zero_byte_stay_as_they_are(tmp_path, engine, suffix):
    frame = pl.DataFrame({"": [1, 2], "a\0b": ["x", "y"], "a": [dt.timedelta(1)] * 2})
    path = tmp_path / f"people{suffix}"
    (frame.write_parquet if suffix == ".parquet" else frame.write_ipc)(path)
    data = open_records(path, engine=engine)
    assert data.names == ("", "a\0b", "a")
    assert [data.codes(name).levels.len() for name in data.names] == [2, 2, 1]


@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame])
def test_frames_with_such_names_come_back_as_they_were(kind):
    given = kind({"": [1, 2], "a\0b": ["x", "y"], "a": [1.5, 2.5]})
    assert keyhole.load(given).to_native().equals(given)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in NAMES for kind in ("frame", "parquet")],
)
def test_a_column_may_have_any_name(tmp_path, name, kind):
    frame = pl.DataFrame({name: [*"abacca"] * 4, "other": [1, 2, 3, 1, 2, 2] * 4})
    data = frame
    if kind == "parquet":
        data = tmp_path / "people.parquet"
        frame.write_parquet(data)
    keys = [name, "other"]
    cells = set(frame.rows())
    assert keyhole.risk(data, keys=keys).cells == len(cells)
    assert keyhole.risk(data, keys=keys, engine="disk").cells == len(cells)
    assert keyhole.risk(data, keys=["other"], by=name).records == 24
    for verb in (keyhole.uniques, keyhole.drivers):
        assert verb(data, keys=keys).records == 24
    assert keyhole.screen(data).records == 24
    assert keyhole.select(data, candidates=[[name], ["other"]], limit=1).selected
    assert keyhole.frontier(data, candidates=[[name], ["other"]], limit=1).sets


@pytest.mark.parametrize("name", ["^a.*$", "a\nb", "x" * 300])
def test_a_name_that_is_none_is_refused_and_not_shown(name):
    with pytest.raises(ColumnError) as refused:
        keyhole.load(pl.DataFrame({"age": [1], name: [2]}))
    assert "(column 2)" in str(refused.value)
    assert name not in str(refused.value)
    assert keyhole.load(pl.DataFrame({"age": [1], name: [2]}), columns=["age"]).names == ("age",)


def test_an_open_quote_in_a_header_shows_no_record(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('name,"age,sex\nAnna Meier,34,f\nBert Kunz,51,m\n')
    for call in (keyhole.load, keyhole.screen, lambda data: keyhole.risk(data, keys=["age"])):
        with pytest.raises(KeyholeError) as refused:
            call(path)
        assert "Meier" not in str(refused.value)
        assert "Kunz" not in str(refused.value)


def test_a_heading_of_a_workbook_may_be_broken_over_lines(tmp_path):
    path = tmp_path / "people.xlsx"
    pd.DataFrame({"age in\nyears": [1, 2], "sex": ["f", "m"]}).to_excel(path, index=False)
    assert keyhole.load(path).names == ("age in years", "sex")


BANDS = pd.cut(np.arange(24), 4)


@pytest.mark.parametrize(
    "values",
    [BANDS, BANDS.astype(object), pd.arrays.IntervalArray.from_breaks(range(25)),
     pd.period_range("2020-01", periods=24, freq="M"), pd.to_timedelta(np.arange(24) % 3, "D")],
    ids=["bands", "bands as objects", "intervals", "periods", "durations"],
)  # fmt: skip
def test_types_of_pandas_are_categories(values):
    frame = pd.DataFrame({"x": values, "other": [1, 2] * 12})
    expected = frame.groupby(["x", "other"], observed=True).ngroups
    assert keyhole.risk(frame, keys=["x", "other"]).cells == expected
    assert keyhole.screen(frame).records == 24


def test_missing_bands_are_missing():
    frame = pd.DataFrame({"x": pd.cut([1.0, 5.0, np.nan, 9.0], [0, 4, 10])})
    assert keyhole.load(frame).frame["x"].to_list() == ["(0, 4]", "(4, 10]", None, "(4, 10]"]


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({0: [1, 2], 1: [3, 4]}), pd.DataFrame({("a", "b"): [1, 2], ("a", "c"): [3, 4]}),
     pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
     pd.DataFrame({dt.date(2020, 1, 1): [1], None: [2]})],
)  # fmt: skip
def test_names_of_pandas_need_not_be_text(frame):
    names = [str(name) for name in frame.columns]
    assert keyhole.risk(frame, keys=names).records == len(frame)


@pytest.mark.parametrize(
    "values",
    [[{"a": 1}] * 4, [[1]] * 4, [1, "a", None, 2.5], [object()] * 4, [1j] * 4],
    ids=["structs", "lists", "mixed", "objects", "complex"],
)
def test_what_is_no_single_value_is_refused(values):
    with pytest.raises(ColumnError, match="column 'x' must hold"):
        keyhole.risk(pd.DataFrame({"x": values}), keys=["x"])


def common(one: str, other: str) -> int:
    """The longest common subsequence, by the table of every textbook."""
    row = [0] * (len(other) + 1)
    for a in one:
        above, row = row, [0]
        for place, b in enumerate(other):
            row.append(above[place] + 1 if a == b else max(above[place + 1], row[place]))
    return row[-1]


@given(st.text("abé ", max_size=70), st.text("abé ", max_size=70), st.sampled_from([0, 0.5, 0.9]))
def test_spellings_are_as_alike_as_a_slow_twin_says(one, other, at_least):
    length = len(one) + len(other)
    score = 2 * common(one, other) / length if length else 1.0
    assert alike(one, other, at_least=at_least) == (score if score >= at_least else 0.0)
