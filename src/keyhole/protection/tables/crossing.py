"""Frequency and magnitude tables with all their margins, made from records."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data import Microdata
from keyhole.kernels.arrays import Floats, Ints
from keyhole.utility.figures import cell_label

__all__ = ["CrossTable", "cross"]


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable:
    """A table and its margins; cells are numbered in the order of `shape`, totals last.

    Parameters
    ----------
    rows, cols
        The variables of the rows and of the columns.
    levels
        The categories of each variable, in order; missing is None and the last.
    values
        What a cell holds: the number of records, of people they stand for, or an amount.
    counts
        The records that contribute to a cell.
    largest
        The largest contributions to a cell, from the largest on; 0 where there are none.
    magnitude, weight
        The variable that is added up and the weight, if any.
    least
        The least that a cell with a record in it can hold: 1 of a count, the smallest weight of a
        weighted one, 0 of an amount. Whoever sees that a cell is not empty knows it.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    values: Floats
    counts: Ints
    largest: Floats
    magnitude: str | None = None
    weight: str | None = None
    least: float = 0.0

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable, and one more for its total."""
        return tuple(len(one) + 1 for one in self.levels)

    @property
    def is_count(self) -> bool:
        """Whether cells hold numbers of records."""
        return self.magnitude is None and self.weight is None

    @cached_property
    def places(self) -> Ints:
        """One row a cell: the place of its category on each variable; the last is the total."""
        found: Ints = np.stack(np.unravel_index(np.arange(len(self.values)), self.shape), axis=1)
        return found

    @cached_property
    def margin(self) -> npt.NDArray[np.bool_]:
        """Which cells are totals over some variable."""
        found: npt.NDArray[np.bool_] = (self.places == np.array(self.shape) - 1).any(axis=1)
        return found

    def label(self, variable: int, place: int) -> str:
        """Write a category; the place after the last one is the total."""
        levels = self.levels[variable]
        if place < len(levels):
            found = cell_label(levels[place])
            return f"({found})" if levels[place] is None and found in levels else found
        return "(Total)" if "Total" in levels else "Total"


def cross(
    data: Microdata,
    *,
    rows: tuple[str, ...],
    cols: tuple[str, ...] = (),
    contributions: Floats | None = None,
    weights: Floats | None = None,
    magnitude: str | None = None,
    weight: str | None = None,
    deepest: int = 2,
) -> CrossTable:
    """Cross records by rows and columns, and add all margins.

    A record whose contribution is missing, or whose weight is 0, contributes to no cell. The
    contribution of a record is its amount times its weight.

    Parameters
    ----------
    data
        The records.
    rows, cols
        The variables of the rows and of the columns.
    contributions, weights
        The amount and the weight of each record; 1 if left out.
    magnitude, weight
        Their names.
    deepest
        How many of the largest contributions to keep for each cell.

    Examples
    --------
    >>> from keyhole.data import load
    >>> import polars as pl
    >>> people = load(pl.DataFrame({"sex": ["f", "m", "m"], "area": [1, 1, 2]}))
    >>> cross(people, rows=("area",), cols=("sex",)).values.reshape(3, 3).tolist()
    [[1.0, 1.0, 2.0], [0.0, 1.0, 1.0], [1.0, 2.0, 3.0]]
    """
    codes = [data.codes(name) for name in (*rows, *cols)]
    shape = tuple(one.size + 1 for one in codes)
    amounts = np.ones(data.records) if contributions is None else contributions
    parts = amounts if weights is None else amounts * weights
    counted = ~np.isnan(parts) & (True if weights is None else weights > 0)
    places = [one.values[counted].astype(np.int64) for one in codes]
    values, counts, largest = _filled(places, shape, parts[counted], deepest)
    levels = tuple((*one.levels.to_list(), *([None] if one.has_missing else [])) for one in codes)
    least = float(parts[counted].min()) if contributions is None and counted.any() else 0.0
    return CrossTable(rows, cols, levels, values, counts, largest, magnitude, weight, least)


def _filled(
    places: list[Ints], shape: tuple[int, ...], parts: Floats, deepest: int
) -> tuple[Floats, Ints, Floats]:
    """Count, add up and rank contributions in every cell of every margin."""
    size = prod(shape)
    values, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
    largest = np.zeros((size, deepest))
    order = np.argsort(-parts, kind="stable")
    for totals in itertools.product((False, True), repeat=len(shape)):
        where = [
            np.full(len(parts), width - 1) if total else place
            for place, width, total in zip(places, shape, totals, strict=True)
        ]
        cells = np.ravel_multi_index(where, shape)
        values += np.bincount(cells, parts, size)
        counts += np.bincount(cells, minlength=size)
        _rank(cells[order], parts[order], largest)
    return values, counts, largest


def _rank(cells: Ints, parts: Floats, largest: Floats) -> None:
    """Write the first contributions to each cell; they come from the largest on."""
    order = np.argsort(cells, kind="stable")
    sorted_cells = cells[order]
    first = np.searchsorted(sorted_cells, sorted_cells, side="left")
    rank = np.arange(len(cells)) - first
    kept = rank < largest.shape[1]
    largest[sorted_cells[kept], rank[kept]] = parts[order][kept]
