"""Values that seem to mean missing, by how they look beside the other values of their column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from keyhole.data import Microdata
from keyhole.reviews.small_counts import SMALLEST

__all__ = ["guess_codes"]

_WORDS = frozenset({".", "..", "na", "n/a", "nan", "null", "none", "missing", "#n/a", "?", "-"})
_BELOW = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -97, -98, -99, -997, -998, -999, -9997, -9998, -9999)
_NINES = (99, 999, 9999, 99999)
# A column of so many more levels below it makes a row of nines stand apart.
_APART = 1.25
# A column of text with more levels than this is not looked through value by value.
_MOST = 10_000

Codes = Mapping[str, tuple[Any, ...]]


def guess_codes(data: Microdata) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    """Return by column the codes that surely mean missing, and those that may.

    A code that few records have is told of neither: it may be somebody's value.

    Examples
    --------
    >>> from keyhole.data import load
    >>> ages = [30, 41, 52, -9] * 5 + [999] * 4
    >>> guess_codes(load(pl.DataFrame({"age": ages, "sex": ["f", "m", "NA"] * 8})))
    ({'age': (-9,), 'sex': ('NA',)}, {'age': (999,)})
    """
    sure: dict[str, tuple[Any, ...]] = {}
    doubtful: dict[str, tuple[Any, ...]] = {}
    for variable in data.variables:
        column = data.frame.get_column(variable.name)
        if variable.missing_codes or variable.missing_ranges:
            continue  # the file itself says
        codes, perhaps = _of_column(column)
        if codes:
            sure[variable.name] = codes
        if perhaps:
            doubtful[variable.name] = perhaps
    return sure, doubtful


def _of_column(column: pl.Series) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if column.dtype == pl.String:
        return _of_text(column), ()
    if not column.dtype.is_numeric() or column.drop_nulls().is_empty():
        return (), ()
    below, nines = _of_numbers(column)
    return tuple(below), tuple(nines)


def _of_text(column: pl.Series) -> tuple[str, ...]:
    counts = column.drop_nulls().value_counts(sort=True, name="count")
    if len(counts) > _MOST:
        counts = counts.head(_MOST)
    found = [
        text
        for text, count in counts.iter_rows()
        if text.strip().lower() in _WORDS and count >= SMALLEST
    ]
    # A column of nothing but such words is about something else.
    return tuple(sorted(found)) if len(found) < len(counts) else ()


def _of_numbers(column: pl.Series) -> tuple[list[int], list[int]]:
    """Find negative codes among numbers from 0 on, and nines far above all others."""
    values = column.drop_nulls().cast(pl.Float64)
    counts = values.filter(values.is_in([*map(float, (*_BELOW, *_NINES))])).value_counts()
    often = [int(code) for code, count in counts.iter_rows() if count >= SMALLEST]
    rest = values.filter(~values.is_in([*map(float, often)]))
    if rest.is_empty():
        return [], []
    lowest: Any = rest.min()
    highest: Any = values.filter(~values.is_in([*map(float, _NINES)])).max()
    below = sorted(code for code in often if code < 0) if lowest >= 0 else []
    nines = [code for code in often if code > 0 and highest is not None and _apart(code, highest)]
    return below, sorted(nines)


def _apart(code: int, highest: float) -> bool:
    return code > _APART * highest
