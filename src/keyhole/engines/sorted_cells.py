"""Records sorted into the cells of a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.kernels.packing import Layout, layout, pack

__all__ = ["SortedCells", "missing_any"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Tags = npt.NDArray[np.int32]


class SortedCells:
    """The records sorted into cells, each row tagged with its record."""

    def __init__(self, columns: Sequence[Codes], *, drop: bool) -> None:
        self._columns, self._plan = columns, layout([c.size for c in columns])
        rows = pack([c.values for c in columns], self._plan)
        self._records = len(rows)
        tags = np.arange(len(rows), dtype=np.int32)
        if drop:
            complete = np.flatnonzero(~missing_any(columns))
            rows, tags = rows[complete], tags[complete]
        rows, self._tags = _sorted(rows, tags, self._plan)
        is_first = np.ones(len(rows), dtype=np.bool_)
        is_first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        starts = np.flatnonzero(is_first)
        self._patterns = rows[starts]
        self.counts: Ints = np.diff(starts, append=len(rows))

    def first_records(self) -> Ints:
        """Return one record of each cell."""
        first: Ints = self._tags[np.cumsum(self.counts) - self.counts].astype(np.int64)
        return first

    def spread(self, values: npt.NDArray[Any], absent: float) -> npt.NDArray[Any]:
        """Give every record the value of its cell, and those left out `absent`."""
        out = np.full(self._records, absent, dtype=values.dtype)
        out[self._tags] = np.repeat(values, self.counts)
        return out

    def numbers(self) -> Ints:
        """Return for each record the number of its cell, -1 where it was left out."""
        return self.spread(np.arange(len(self.counts)), -1)

    def match(self, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each cell the amounts of all cells that match it as wildcards."""
        from keyhole.kernels import wildcards

        known = _known(self._patterns, self._columns, self._plan)
        digits = self._plan.digits(range(len(self._columns)))
        return wildcards.match(self._patterns, amounts, known, digits)


def _sorted(rows: Words, tags: Tags, plan: Layout) -> tuple[Words, Tags]:
    """Sort rows and tags; in NumPy alone where rows fit one word, so that nothing is compiled."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words == 1 and int(plan.bits.sum()) + tag_bits <= 64:
        joined = rows[:, 0] << np.uint64(tag_bits) | tags.astype(np.uint64)
        joined.sort()
        low = np.uint64((1 << tag_bits) - 1)
        return (joined >> np.uint64(tag_bits))[:, None], (joined & low).astype(np.int32)
    if plan.words == 1:
        order = np.argsort(rows[:, 0])
        return rows[order], tags[order]
    from keyhole.engines.sorting import sort

    whole = np.array([0, len(rows)], dtype=np.int64)
    sort(rows, tags, whole, plan, range(len(plan.bits)))
    return rows, tags


def _known(patterns: Words, columns: Sequence[Codes], plan: Layout) -> Words:
    """Return for each pattern the mask of the fields that are not missing."""
    known = np.tile(plan.mask(range(len(columns))), (len(patterns), 1))
    for v, column in enumerate(columns):
        if column.has_missing:
            field = plan.mask([v])
            word, shift = plan.word[v], np.uint64(plan.shift[v])
            absent = (patterns[:, word] & field[word]) >> shift == column.size - 1
            known[absent] &= ~field
    return known


def missing_any(columns: Sequence[Codes]) -> npt.NDArray[np.bool_]:
    """Tell for each record whether any of the columns is missing."""
    out = np.zeros(len(columns[0].values), dtype=np.bool_)
    for column in columns:
        if column.has_missing:
            out |= column.values == column.size - 1
    return out
