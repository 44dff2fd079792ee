"""Records sorted into the cells of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.protocol import Spectrum
from keyhole.engines.rooms import MEMORY, Room, copied, parts
from keyhole.kernels.arrays import Ints, Words
from keyhole.kernels.packing import Layout, layout, pack

__all__ = ["SortedCells", "missing_any"]

Tags = npt.NDArray[np.int32]


# So many copies of the distinct patterns are made while wildcards are matched, about.
PATTERN_COPIES = 6
# Sizes below this are counted in an array, others sorted.
SMALL = 1 << 12


class SortedCells:
    """The records sorted into cells, each row tagged with its record."""

    def __init__(self, columns: Sequence[Codes], *, drop: bool, room: Room = MEMORY) -> None:
        self._columns, self._plan = columns, layout([c.size for c in columns])
        self._room, self._records = room, len(columns[0].values)
        rows, tags = _tagged(columns, self._plan, room)
        if drop:
            rows, tags = _complete(rows, tags, columns, room)
        self._rows, self._tags = _sorted(rows, tags, self._plan, room)
        self._starts = _starts(self._rows, room)

    @cached_property
    def counts(self) -> Ints:
        """The size of each cell."""
        out = self._room.empty(len(self._starts) - 1, np.int64)
        for some in parts(len(out)):
            out[some] = np.diff(self._starts[some.start : some.stop + 1])
        return out

    @cached_property
    def _patterns(self) -> Words:
        out = self._room.empty((len(self._starts) - 1, self._plan.words), np.uint64)
        for some in parts(len(out)):
            out[some] = self._rows[self._starts[some]]
        return out

    def first_records(self) -> Ints:
        """Return one record of each cell."""
        first: Ints = self._tags[self._starts[:-1]].astype(np.int64)
        return first

    def spread(self, values: npt.NDArray[Any], absent: float) -> npt.NDArray[Any]:
        """Give every record the value of its cell, and those left out `absent`."""
        return self._spread(lambda some: values[some], values.dtype, absent)

    def numbers(self) -> Ints:
        """Return for each record the number of its cell, -1 where it was left out."""
        return self._spread(lambda some: np.arange(some.start, some.stop), np.int64, -1)

    def _spread(
        self, values: Callable[[slice], npt.NDArray[Any]], dtype: Any, absent: float
    ) -> npt.NDArray[Any]:
        out = self._room.empty(self._records, dtype)
        if len(self._tags) < self._records:
            out[:] = absent
        for some in parts(len(self._tags)):
            # The cells that lie in this part of the rows, the first and the last perhaps cut.
            first = int(np.searchsorted(self._starts, some.start, side="right")) - 1
            last = int(np.searchsorted(self._starts, some.stop, side="left"))
            held = np.diff(self._starts[first : last + 1].clip(some.start, some.stop))
            out[self._tags[some]] = np.repeat(values(slice(first, last)), held)
        return out

    def spectrum(self, sizes: npt.NDArray[Any]) -> Spectrum:
        """Count the records by the size that each cell is given."""
        by_size: dict[int, int] = {}
        for some in parts(len(sizes)):
            for size, count in _by_size(sizes[some], self.counts[some]):
                by_size[size] = by_size.get(size, 0) + count
        ordered = sorted(by_size)
        return Spectrum(len(sizes), tuple(ordered), tuple(by_size[size] for size in ordered))

    def match(self, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each cell the amounts of all cells that match it as wildcards."""
        from keyhole.kernels import wildcards

        size = len(self._patterns) * (self._plan.words * 8 * PATTERN_COPIES + 64)
        self._room.require(size, "matching missing values with every value")
        known = _known(self._patterns, self._columns, self._plan)
        digits = self._plan.digits(range(len(self._columns)))
        return wildcards.match(self._patterns, amounts, known, digits)


def _by_size(sizes: Ints, counts: Ints) -> Iterator[tuple[int, int]]:
    """Add up the counts of each size: most are small, and those are quickly counted."""
    small = sizes < SMALL
    summed = np.bincount(sizes[small], weights=counts[small])
    for size in np.flatnonzero(summed).tolist():
        yield size, int(summed[size])
    large, which = np.unique(sizes[~small], return_inverse=True)
    summed = np.bincount(which, weights=counts[~small], minlength=len(large))
    yield from zip(large.tolist(), summed.astype(np.int64).tolist(), strict=True)


def _tagged(columns: Sequence[Codes], plan: Layout, room: Room) -> tuple[Words, Tags]:
    """Pack the records, and number them."""
    records = len(columns[0].values)
    rows = room.empty((records, plan.words), np.uint64)
    pack([c.values for c in columns], plan, rows)
    tags = room.empty(records, np.int32)
    for some in parts(records):
        tags[some] = np.arange(some.start, some.stop)
    return rows, tags


def _complete(rows: Words, tags: Tags, columns: Sequence[Codes], room: Room) -> tuple[Words, Tags]:
    """Keep the records of which nothing is missing, moved together in place."""
    left = 0
    for some in parts(len(rows)):
        whole = np.flatnonzero(~missing_any([_part(c, some) for c in columns]))
        rows[left : left + len(whole)] = rows[some][whole]
        tags[left : left + len(whole)] = tags[some][whole]
        left += len(whole)
    return copied(rows[:left], room), copied(tags[:left], room)


def _part(column: Codes, some: slice) -> Codes:
    return Codes(column.values[some], column.levels, column.has_missing)


def _sorted(rows: Words, tags: Tags, plan: Layout, room: Room) -> tuple[Words, Tags]:
    """Sort rows and tags; in NumPy alone where rows fit one word, so that nothing is compiled."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words == 1 and int(plan.bits.sum()) + tag_bits <= 64:
        return _sorted_words(rows, tags, tag_bits)
    if plan.words == 1 and room is MEMORY:
        order = np.argsort(rows[:, 0])
        return rows[order], tags[order]
    from keyhole.engines.sorting import sort

    whole = np.array([0, len(rows)], dtype=np.int64)
    sort(rows, tags, whole, plan, range(len(plan.bits)), room=room)
    return rows, tags


def _sorted_words(rows: Words, tags: Tags, tag_bits: int) -> tuple[Words, Tags]:
    """Sort rows in place as words that have the tags in their lowest bits."""
    words, low = rows[:, 0], np.uint64((1 << tag_bits) - 1)
    for some in parts(len(rows)):
        words[some] = words[some] << np.uint64(tag_bits) | tags[some].astype(np.uint64)
    words.sort()
    for some in parts(len(rows)):
        tags[some] = words[some] & low
        words[some] >>= np.uint64(tag_bits)
    return rows, tags


def _starts(rows: Words, room: Room) -> Ints:
    """Return where each cell of sorted rows starts, and at the end the number of rows."""
    out = room.empty(len(rows) + 1, np.int64)
    count = 0
    for some in parts(len(rows)):
        is_first = np.ones(some.stop - some.start, dtype=np.bool_)
        second = max(some.start, 1)
        differs = rows[second : some.stop] != rows[second - 1 : some.stop - 1]
        is_first[second - some.start :] = differs.any(axis=1)
        found = np.flatnonzero(is_first) + some.start
        out[count : count + len(found)] = found
        count += len(found)
    out[count] = len(rows)
    return out[: count + 1]


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
