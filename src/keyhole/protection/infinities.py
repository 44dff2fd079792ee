"""Infinite values, which no method can change: they are told."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.core.names import plural
from keyhole.data.microdata import Microdata

__all__ = ["infinite_notes"]


def infinite_notes(data: Microdata, names: Iterable[str]) -> tuple[str, ...]:
    """Say of each column how many of its values are infinite, and stay so.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> infinite_notes(load(pl.DataFrame({"x": [1.0, float("inf")]})), ["x"])
    ("1 infinite value of column 'x' stays as it is",)
    """
    found = []
    for name in names:
        column = data.column(name)
        count = int(column.is_infinite().sum()) if column.dtype.is_float() else 0
        if count:
            ends = "stays as it is" if count == 1 else "stay as they are"
            found.append(f"{plural(count, 'infinite value')} of column {name!r} {ends}")
    return tuple(found)
