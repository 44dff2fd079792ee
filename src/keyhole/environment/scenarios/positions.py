"""Where the values of a column stand in a coding: the position of each value's category.

Work is done on the distinct values, whole arrays at a time. A value that the coding does not
know has position -1; who asks says how many there are, never which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import shown
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.intervals import FIRST_DAY, edges_of
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats, Ints

UNKNOWN = -1
RARE = "(rare)"
"""The code of a category for all values that a captured file does not list."""


def column_positions(data: Microdata, name: str, node: Node) -> Ints:
    """Return the position of each record's value: -1 is unknown, the coding's size is missing."""
    codes = data.codes(name)
    table = np.append(level_positions(codes.levels, data.variable(name), node), node.size)
    found: Ints = table[codes.values.astype(np.int64)]
    return found


def position_counts(data: Microdata, name: str, node: Node) -> Floats:
    """Count the records in each category, unknown and missing values left out."""
    positions = column_positions(data, name, node)
    known = positions[(positions >= 0) & (positions < node.size)]
    return np.bincount(known, minlength=node.size).astype(np.float64)


def level_positions(levels: pl.Series, variable: Variable, node: Node) -> Ints:
    """Return the position of each distinct value in a coding.

    Values that the coding lists go by their code; labelled bands ("25-34") by their band, where
    they are the coding's own; numbers and dates by the interval they lie in.
    """
    found = _listed(levels, node)
    if node.intervals:
        bands = _banded(levels, variable, node)
        more = _cut(levels, node) if bands is None else bands
        found = np.where(found == UNKNOWN, more, found)
    return found


def code_text(value: Any) -> str:
    """Write a value as the code of a category.

    Examples
    --------
    >>> [code_text(value) for value in (3, 3.0, "03", True)]
    ['3', '3', '03', 'true']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _listed(levels: pl.Series, node: Node) -> Ints:
    """Look values up among the listed codes."""
    known = {c.code: node.intervals + i for i, c in enumerate(node.coding.categories)}
    if not known:
        return np.full(len(levels), UNKNOWN, dtype=np.int64)
    texts = (code_text(value) for value in levels.to_list())
    elsewhere = known.get(RARE, UNKNOWN)
    return np.array([known.get(text, elsewhere) for text in texts], dtype=np.int64)


def _banded(levels: pl.Series, variable: Variable, node: Node) -> Ints | None:
    """Look values up by the band their label names; None if the bands are not the coding's."""
    from keyhole.environment.importers.bands import parse_bands
    from keyhole.environment.importers.fields import category_kind

    labels = {
        code_text(value): text
        for value, text in variable.value_labels.items()
        if text and category_kind(text) == "value"
    }
    bands = parse_bands(list(labels.values()), variable.label) if labels else None
    if bands is None or not np.array_equal(edges_of(bands.intervals), node.edges):
        return None
    known = dict(zip(labels, bands.positions, strict=True))
    texts = (code_text(value) for value in levels.to_list())
    return np.array([known.get(text, UNKNOWN) for text in texts], dtype=np.int64)


def _cut(levels: pl.Series, node: Node) -> Ints:
    """Return the interval of each number or date; what lies outside or is neither is unknown."""
    values = _ordinals(levels) if node.scale == "date" else _numbers(levels)
    _refuse_codes(levels.name, values, node)
    found = np.searchsorted(node.edges, values, side="right") - 1
    inside = np.isfinite(values) & (values >= node.edges[0]) & (values < node.edges[-1])
    return np.where(inside, found, UNKNOWN).astype(np.int64)


def _refuse_codes(name: str, values: Floats, node: Node) -> None:
    """Refuse what looks like the codes of the intervals: 1 to 8 for eight groups of ages.

    Cut as numbers they would all fall into one interval, and nobody would notice.
    """
    known = values[np.isfinite(values)]
    one_home = len(np.unique(np.searchsorted(node.edges, known, side="right"))) == 1
    whole = bool((known == np.floor(known)).all()) and bool((known <= node.intervals).all())
    if len(known) > 1 and one_home and whole and bool((known >= 0).all()) and node.intervals > 1:
        raise ColumnError(
            f"column {shown(name)} must hold values of its coding {node.name}, which has "
            f"{node.intervals:,} intervals. Got small whole numbers that all lie in one of them "
            f"instead: if they are codes of the intervals, give their labels with the file, or "
            f"list them as the coding's categories."
        )


def _numbers(levels: pl.Series) -> Floats:
    if levels.dtype.is_temporal():
        return np.full(len(levels), np.nan)
    if isinstance(levels.dtype, pl.Enum):
        levels = levels.cast(pl.String)
    return levels.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _ordinals(levels: pl.Series) -> Floats:
    """Return dates as day ordinals; a number is a year, which begins on its first of January."""
    if levels.dtype.is_numeric():
        years = levels.cast(pl.Float64).to_numpy()
        whole = (years >= 1) & (years <= 9999) & (years == np.floor(years))
        starts = (np.where(whole, years, 1970).astype(np.int64) - 1970).astype("datetime64[Y]")
        ordinals = starts.astype("datetime64[D]").astype(np.int64) + FIRST_DAY
        return np.where(whole, ordinals, np.nan).astype(np.float64)
    if levels.dtype == pl.String:
        levels = levels.str.to_date("%Y-%m-%d", strict=False)
    if levels.dtype not in (pl.Date, pl.Datetime):
        return np.full(len(levels), np.nan)
    days = levels.cast(pl.Date).to_physical().cast(pl.Float64) + FIRST_DAY
    return days.fill_null(np.nan).to_numpy()
