"""Tables of Arrow as frames, or what they hold that a frame cannot."""

from __future__ import annotations

from typing import Any

import polars as pl

from keyhole.errors import ColumnError

__all__ = ["from_arrow", "has_odd_types"]


def from_arrow(table: Any) -> pl.DataFrame:
    """Turn a table of Arrow into a frame.

    Examples
    --------
    >>> import pyarrow
    >>> from_arrow(pyarrow.table({"age": [34, None]}))["age"].to_list()
    [34, None]
    """
    _require_types(table.schema)
    try:
        return pl.DataFrame(_in_range(table))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise ColumnError(
            "the table holds a column of a type that is not supported: leave it out, or turn it "
            "into numbers, dates or text."
        ) from None


def has_odd_types(schema: Any) -> bool:
    """Whether any column is of a type that no frame has."""
    return any(_is_odd(field.type) for field in schema)


def _is_odd(kind: Any) -> bool:
    from pyarrow import types  # type: ignore[import-untyped]

    return any(test(kind) for test in (types.is_decimal256, types.is_interval, types.is_union))


def _require_types(schema: Any) -> None:
    """Name the columns of types that no frame has, before the library breaks on them."""
    problems = [
        f"column {field.name!r} is of Arrow's type {str(field.type)!r}, which is not supported: "
        f"leave it out, or turn it into numbers or text."
        for field in schema
        if _is_odd(field.type)
    ]
    if problems:
        raise ColumnError(problems)


def _in_range(table: Any) -> Any:
    """Bring times in seconds to milliseconds here, where one that does not fit is noticed."""
    import pyarrow as pa

    problems = []
    for place, field in enumerate(table.schema):
        try:
            column = table.column(place).cast(_finer(field.type))
        except pa.ArrowInvalid:
            problems.append(
                f"column {field.name!r} holds times that are too far off. Correct them, or leave "
                f"it out."
            )
            continue
        table = table.set_column(place, field.name, column) if field.type != column.type else table
    if problems:
        raise ColumnError(problems)
    return table


def _finer(kind: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return pa.duration("ms") if types.is_duration(kind) and kind.unit == "s" else kind
