"""Frames of other libraries, in and out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from keyhole.data.arrow import from_arrow
from keyhole.data.describing import Request
from keyhole.data.origin import Origin
from keyhole.errors import ColumnError, InputError

__all__ = ["read_frame", "to_native"]

_FAILURES = (Exception, pl.exceptions.PanicException)


def read_frame(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    """Take the wanted columns of any frame that narwhals knows, or of a dictionary of columns.

    Names that are not text are taken by their text. A lazy frame is collected.

    Examples
    --------
    >>> frame, origin = read_frame(pl.DataFrame({"a": [1], "b": [2]}).lazy(), Request(["b"]))
    >>> frame.columns, origin.native
    (['b'], 'polars lazy')
    """
    if isinstance(source, pl.DataFrame):
        return _chosen(source, source.columns, request), Origin(native="polars")
    if isinstance(source, pl.LazyFrame):
        names = source.collect_schema().names()
        frame = source.select(request.choose(names, "the frame")).collect()
        return frame, Origin(native="polars lazy")
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _read_pandas(source, request)
    if type(source).__module__.partition(".")[0] == "pyarrow" and hasattr(source, "schema"):
        return _read_arrow(source, request)
    if isinstance(source, Mapping):
        return _read_columns(source, request)
    return _read_other(source, request)


def _chosen(frame: pl.DataFrame, names: list[str], request: Request) -> pl.DataFrame:
    return frame.select(request.choose(names, "the frame"))


def _read_columns(source: Mapping[Any, Any], request: Request) -> tuple[pl.DataFrame, Origin]:
    columns = {str(name): values for name, values in source.items()}
    series: dict[str, pl.Series] = {}
    problems = []
    for name in request.choose(list(columns), "the data"):
        try:
            series[name] = pl.Series(name, columns[name])
        except _FAILURES:  # what a library says of a value it cannot take would show the value
            problems.append(_mixed(name))
    lengths = sorted({len(one) for one in series.values()})
    if len(lengths) > 1:
        problems.append(f"columns must have the same length. Got {lengths} instead.")
    if problems:
        raise ColumnError(problems)
    return pl.DataFrame(series), Origin(native="polars")


def _mixed(name: str) -> str:
    return (
        f"column {name!r} must hold values of one type. Got mixed types instead: turn them into "
        f"text or into numbers before loading."
    )


def _read_arrow(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    chosen = request.choose(source.schema.names, "the frame")
    return from_arrow(source.select(chosen)), Origin(native="pyarrow", types=source.schema)


def _read_other(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    import narwhals as nw

    try:
        frame = nw.from_native(source)
    except TypeError:
        raise InputError(
            f"data must be the path of a file or a frame (Polars, pandas, PyArrow). "
            f"Got {type(source).__name__} instead."
        ) from None
    collected = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    polars = collected.to_polars()
    return _chosen(polars, polars.columns, request), Origin(native="polars")


def _read_pandas(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    names = [str(name) for name in source.columns]
    chosen = set(request.choose(names, "the frame"))
    places = [place for place, name in enumerate(names) if name in chosen]
    series: dict[str, pl.Series] = {}
    problems = []
    for place in places:
        try:
            series[names[place]] = _from_pandas(source.iloc[:, place], names[place])
        except _FAILURES:  # what a library says of a value it cannot take would show the value
            problems.append(_mixed(names[place]))
    if problems:
        raise ColumnError(problems)
    types = {names[place]: source.dtypes.iloc[place] for place in places}
    labels = {names[place]: source.columns[place] for place in places}
    origin = Origin(native="pandas", index=source.index, types=types, labels=labels)
    return pl.DataFrame(series), origin


def _from_pandas(column: Any, name: str) -> pl.Series:
    import narwhals as nw

    series: pl.Series = nw.from_native(column, series_only=True).to_polars().alias(name)
    if series.dtype == pl.Object:
        raise TypeError
    return series


def to_native(frame: pl.DataFrame, origin: Origin) -> Any:
    """Give the frame back as the kind that was taken; as Polars if it was a file."""
    if origin.native == "pandas":
        return _to_pandas(frame, origin)
    if origin.native == "pyarrow":
        return _to_arrow(frame, origin)
    return frame.lazy() if origin.native == "polars lazy" else frame


def _to_pandas(frame: pl.DataFrame, origin: Origin) -> Any:
    result = frame.to_pandas()
    for name, wanted in origin.types.items():
        if name in frame.columns and result[name].dtype != wanted:
            result[name] = _retyped(frame[name], result[name], wanted)
    if origin.index is not None and len(origin.index) == frame.height:
        result.index = origin.index
    result.columns = [origin.labels.get(name, name) for name in frame.columns]
    return result


def _retyped(series: pl.Series, column: Any, wanted: Any) -> Any:
    """Give a column its pandas type back where its values still fit it."""
    try:
        if str(wanted)[:3].lower() in ("int", "uin") and series.null_count():
            # By way of Python's own numbers: a float in between would round large ones.
            return column.__class__(series.to_list(), dtype=wanted, index=column.index)
        return column.astype(wanted)
    except (TypeError, ValueError):
        return column


def _to_arrow(frame: pl.DataFrame, origin: Origin) -> Any:
    table = frame.to_arrow()
    for place, name in enumerate(frame.columns):
        known = origin.types.get_all_field_indices(name)
        if not known or table.schema.field(place).type == origin.types.field(known[0]).type:
            continue
        try:
            column = table.column(place).cast(origin.types.field(known[0]).type)
        except (TypeError, ValueError, NotImplementedError):
            continue
        table = table.set_column(place, name, column)
    return table
