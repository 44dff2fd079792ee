"""Frames of other libraries go in, and the same kind comes out."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from keyhole.data import load
from keyhole.errors import ColumnError, InputError


def test_polars_eager_and_lazy() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert load(frame).to_native() is not None
    assert isinstance(load(frame).to_native(), pl.DataFrame)
    lazy = load(frame.lazy(), columns=["b"])
    assert lazy.names == ("b",)
    assert isinstance(lazy.to_native(), pl.LazyFrame)
    assert lazy.to_native().collect().equals(frame.select("b"))


def test_pandas_comes_back_with_index_names_and_types() -> None:
    frame = pd.DataFrame(
        {
            "cat": pd.Categorical(["x", None, "y"], categories=["y", "x", "z"]),
            "codes": pd.Categorical([1, 2, 1]),
            "big": pd.array([2**60 + 1, None, 3], dtype="Int64"),
            "small": pd.array([1, None, 3], dtype="Int8"),
            "text": ["a", None, "b"],
            "float": [1.5, None, 2.0],
            "when": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "plain": [1, 2, 3],
            7: [1, 2, 3],
        },
        index=pd.Index([5, 6, 9], name="id"),
    )
    data = load(frame)
    assert data.names[-1] == "7"
    pd.testing.assert_frame_equal(data.to_native(), frame)
    part = data.filter(data.frame["plain"].to_numpy() > 1)
    pd.testing.assert_frame_equal(part.to_native(), frame.iloc[1:])


def test_pandas_columns_that_a_step_changed_are_given_as_they_are() -> None:
    data = load(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
    frame = data.frame.with_columns(a=pl.Series(["1-2", "1-2"])).head(1)
    native = data.replace(frame=frame).to_native()
    assert native["a"].tolist() == ["1-2"]
    assert native["b"].dtype == "int64"
    assert native.index.tolist() == [0]


def test_arrow_comes_back_with_its_types() -> None:
    table = pa.table(
        {
            "a": pa.array([1, None], pa.int8()),
            "b": pa.array(["x", None], pa.string()),
            "c": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    native = load(table).to_native()
    assert isinstance(native, pa.Table)
    assert native.schema.types[:2] == [pa.int8(), pa.string()]
    assert native.to_pylist() == table.to_pylist()
    assert load(table, columns=["b"]).to_native().column_names == ["b"]


def test_a_dictionary_of_columns() -> None:
    data = load({"a": [1, None], 2: ["x", "y"]}, columns=["a"], roles={"2": "key"})
    assert data.frame["a"].to_list() == [1, None]
    assert load({}).names == ()
    with pytest.raises(ColumnError) as caught:
        load({"a": [1, "secret"], "b": [1], "c": [1, 2]})
    assert "'a'" in str(caught.value)
    assert "same length. Got [1, 2]" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_frames_of_any_other_library_come_back_as_polars() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select * from (values (1, 'x'), (2, null)) t(a, b)")
    data = load(relation, columns=["b"])
    assert data.frame["b"].to_list() == ["x", None]
    assert isinstance(data.to_native(), pl.DataFrame)


def test_mixed_types_are_named_all_at_once_and_no_value_is_shown() -> None:
    frame = pd.DataFrame(
        {
            "good": [1, 2],
            "mixed": [1, "secret"],
            "worse": [object(), 2],
            "map": ["secret", {"a": 1}],
        }
    )
    with pytest.raises(ColumnError) as caught:
        load(frame)
    assert len(caught.value.problems) == 3
    for name in ("'mixed'", "'worse'", "'map'"):
        assert name in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert load(frame, columns=["good"]).names == ("good",)


def test_repeated_names_in_frames() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    with pytest.raises(ColumnError, match="same name: columns 1 and 2"):
        load(frame)
    with pytest.raises(ColumnError, match="same name: columns 1 and 2"):
        load(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(ColumnError, match="same name: columns 1 and 2"):
        load(pd.DataFrame([[1, 2]], columns=[1, "1"]))


@pytest.mark.parametrize("source", [7, None, [1, 2], pd.Series([1])])
def test_what_is_no_frame(source: object) -> None:
    with pytest.raises(InputError, match=r"path of a file or a frame.*Got"):
        load(source)


def test_names_of_pandas_that_are_numbers() -> None:
    frame = pd.DataFrame([[1, 2, 3], [4, 5, 6]])
    data = load(
        frame,
        columns=[0, 2],
        roles={0: "key"},
        kinds={2: "measure"},
        labels={2: 7},
        missing_codes={0: [1]},
    )
    assert data.names == ("0", "2")
    assert data.role("key") == ("0",)
    assert data.column(0).to_list() == [None, 4]  # type: ignore[arg-type]
    assert data.codes(0).size == 2  # type: ignore[arg-type]
    assert data.variable(2).label == "7"  # type: ignore[arg-type]
    with pytest.raises(ColumnError, match="'9' is not a column"):
        load(frame, columns=[9])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": 5}, "columns must be a list of names. Got int"),
        ({"roles": ["a"]}, "roles must be given by column"),
        ({"kinds": "category"}, "kinds must be given by column"),
        ({"labels": "x"}, "labels must be given by column"),
        ({"missing_codes": [[1]]}, "missing codes must be single values"),
    ],
)
def test_what_is_declared_in_no_shape(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(pl.DataFrame({"a": [1]}), **options)


def test_a_missing_column_of_a_frame_is_told_with_near_names() -> None:
    for source in (
        pd.DataFrame({"age": [1]}),
        pl.DataFrame({"age": [1]}).lazy(),
        pa.table({"age": [1]}),
    ):
        with pytest.raises(ColumnError, match="Did you mean 'age'"):
            load(source, columns=["agee"])


def test_an_empty_frame() -> None:
    assert load(pd.DataFrame({"a": []})).records == 0
    assert load(pl.DataFrame()).names == ()
