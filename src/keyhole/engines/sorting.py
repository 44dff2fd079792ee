"""Sorting packed rows into cells on all cores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.kernels import cells, wildcards
from keyhole.kernels.packing import Layout, join, layout, pack, part

__all__ = ["WORKERS", "SortedCells", "in_threads", "sort", "sort_as_words", "spans"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Tags = npt.NDArray[np.int32]
A = TypeVar("A")
T = TypeVar("T")

WORKERS = os.cpu_count() or 1


def in_threads(work: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """Work on the items on as many threads as there are cores; the kernels release the GIL."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, items))


def spans(starts: Ints, workers: int = WORKERS) -> list[Ints]:
    """Cut the cells into one span a worker, of about as many rows each."""
    goals = np.linspace(0, starts[-1], workers + 1)[1:-1]
    cuts = [0, *np.searchsorted(starts, goals).tolist(), len(starts) - 1]
    return [
        np.array(pair, dtype=np.int64) for pair in itertools.pairwise(cuts) if pair[0] < pair[1]
    ]


def sort(
    rows: Words,
    tags: Tags,
    starts: Ints,
    plan: Layout,
    variables: Sequence[int],
    *,
    spare: tuple[Words, Tags] | None = None,
    workers: int = WORKERS,
) -> None:
    """Sort the rows inside each cell by more variables, in place.

    A single cell whose rows and tags fit one word is sorted by NumPy, which compares many words
    at once. Otherwise threads share the cells; a single large one is first cut by one digit.
    """
    if len(starts) == 2 and sort_as_words(rows, tags, plan, variables):
        return
    digits = plan.digits(variables)
    spare = (np.empty_like(rows), np.empty_like(tags)) if spare is None else spare
    if len(starts) == 2 and workers > 1 and len(digits):
        mask, one = plan.digit_mask(digits[0]), np.array([0, 1], dtype=np.int64)
        cells.sort_cells(rows, tags, starts, one, mask, digits[:1], *spare)
        starts, digits = cells.bounds(rows, mask), digits[1:]
    mask = plan.mask(variables)
    in_threads(
        lambda span: cells.sort_cells(rows, tags, starts, span, mask, digits, *spare),
        spans(starts, workers),
    )


def sort_as_words(rows: Words, tags: Tags, plan: Layout, variables: Iterable[int]) -> bool:
    """Sort all rows by some variables as single words, if rows and tags fit; tell whether."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words > 1 or int(plan.bits.sum()) + tag_bits > 64:
        return False
    masks, shifts = plan.moves(variables)
    joined = join(rows, tags, masks, shifts, tag_bits)
    joined.sort()
    back = np.array([_shifted(m, s) for m, s in zip(masks, shifts, strict=True)], dtype=np.uint64)
    part(joined, back, -shifts, tag_bits, rows, tags)
    return True


def _shifted(mask: np.uint64, shift: np.int64) -> int:
    return int(mask) << int(shift) if shift >= 0 else int(mask) >> -int(shift)


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
        everything = range(len(columns))
        sort(rows, tags, np.array([0, len(rows)], dtype=np.int64), self._plan, everything)
        starts = cells.bounds(rows, self._plan.mask(everything))
        self._tags, self._patterns = tags, rows[starts[:-1]]
        self.counts: Ints = np.diff(starts)

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
        known = _known(self._patterns, self._columns, self._plan)
        digits = self._plan.digits(range(len(self._columns)))
        return wildcards.match(self._patterns, amounts, known, digits)


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
