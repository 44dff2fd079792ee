"""Partitions of packed records into cells, which grow finer or coarser with the key."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.engines.memory import Tags, sort_as_words
from keyhole.engines.protocol import Tally
from keyhole.engines.resources import ROWS_TO_SHARE, WORKERS, in_threads
from keyhole.engines.storage import MEMORY, Storage, copied, parts
from keyhole.kernels import cells, leave_one_out, narrowing
from keyhole.kernels.arrays import Ints, Words
from keyhole.kernels.packing import Layout, in_order, layout

# Fewer words than this are sorted sooner by one thread than shared out.
WORDS_TO_SHARE = 1 << 17


def spans(starts: Ints) -> list[Ints]:
    """Cut the cells into one span a worker, of about as many rows each."""
    if WORKERS == 1 or starts[-1] < ROWS_TO_SHARE:
        return [np.array([0, len(starts) - 1], dtype=np.int64)] if len(starts) > 1 else []
    goals = np.linspace(0, starts[-1], WORKERS + 1)[1:-1]
    cuts = [0, *np.searchsorted(starts, goals).tolist(), len(starts) - 1]
    return [
        np.array(pair, dtype=np.int64) for pair in itertools.pairwise(cuts) if pair[0] < pair[1]
    ]


def shares_of(rows: Words, mask: Words) -> list[slice]:
    """Cut sorted rows into one share a worker, none of which ends inside a cell."""
    goals = np.linspace(0, len(rows), WORKERS + 1)[1:-1].astype(np.int64).tolist()
    cuts = [0, *(_end_of_cell(rows, mask, goal) for goal in goals), len(rows)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b] or [slice(0, 0)]


def _end_of_cell(rows: Words, mask: Words, at: int) -> int:
    """Return where the cell of the row before ends, by halving: its rows lie side by side."""
    if at == 0:
        return 0
    mine = rows[at - 1] & mask
    inside, outside = at - 1, len(rows)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if np.array_equal(rows[middle] & mask, mine):
            inside = middle
        else:
            outside = middle
    return outside


def sort(
    rows: Words,
    tags: Tags,
    starts: Ints,
    plan: Layout,
    variables: Sequence[int],
    *,
    spare: tuple[npt.NDArray[Any], ...] = (),
    storage: Storage = MEMORY,
) -> None:
    """Sort the rows inside each cell by more variables, in place.

    Threads share the cells; a single large one is first cut by one digit.
    """
    digits = plan.digits(variables)
    spare = spare or tuple(storage.empty(one.shape, one.dtype) for one in (rows, tags))
    if len(starts) == 2 and WORKERS > 1 and len(digits) and len(rows) >= ROWS_TO_SHARE:
        mask, one = plan.digit_mask(digits[0]), np.array([0, 1], dtype=np.int64)
        cells.sort_cells(rows, tags, starts, one, mask, digits[:1], *spare)
        starts, digits = cells.bounds(rows, mask), digits[1:]
    mask = plan.mask(variables)
    in_threads(
        lambda span: cells.sort_cells(rows, tags, starts, span, mask, digits, *spare),
        spans(starts),
    )


def sort_in_threads(words: Words, storage: Storage = MEMORY) -> None:
    """Sort words in place.

    Many are first dealt out by their highest digit: what agrees on it stays in the cache. Threads
    share both. NumPy's vectorised sort takes a third of the time of radix passes.
    """
    if len(words) < WORDS_TO_SHARE:
        words.sort()
        return
    spare = storage.empty(len(words), np.uint64)
    first = max(int(words.max()).bit_length() - 8, 0)
    cuts = list(parts(len(words), -(-len(words) // WORKERS)))
    at = np.empty((len(cuts), 256), dtype=np.uint64)
    turns = range(len(cuts))
    in_threads(lambda i: cells.count_digits(words[cuts[i]], first, at[i]), turns)
    ends = at.T.cumsum().reshape(256, -1)  # by digit, then by thread
    starts = np.concatenate(([0], ends[:, -1].astype(np.int64)))
    at = np.ascontiguousarray(ends.T - at)
    in_threads(lambda i: cells.move_digits(words[cuts[i]], first, at[i], spare), turns)

    def settle(digit: int) -> None:
        held = slice(starts[digit], starts[digit + 1])
        words[held] = spare[held]
        words[held].sort()

    in_threads(settle, range(256))


Weights = npt.NDArray[np.int32]

# Variables left out against one sort of all the others; more would leave cells too large.
PART_SIZE = 4
# Fewer cells than this may be too uneven to be shared: threads share the candidates.
CELLS_TO_SHARE = 256
# A partition is fine enough when one row in this many is left with company.
FEW_IN_COMPANY = 64
# Fewer patterns than this are not worth several sorts.
FEW_ROWS = 1 << 13


class Partition:
    """Rows sorted into cells by a growing set of variables; rows alone in a cell are settled.

    Cells smaller than `cutoff` are at risk.
    """

    def __init__(self, patterns: DistinctPatterns, cutoff: int) -> None:
        self._rows, self._weights = patterns.rows, patterns.weights
        self._starts = np.array([0, len(self._rows)], dtype=np.int64)
        plan, self._storage = patterns.plan, patterns.storage
        self._fields = np.column_stack([plan.word, plan.shift, plan.bits])
        self._cutoff = cutoff
        self._spare: list[tuple[Words, Weights]] = []
        self._settled_cells = self._settled_at_risk = 0
        self.variables: frozenset[int] = frozenset()

    def refine(self, variable: int) -> None:
        """Split the cells further by a variable."""
        rows, weights, old = self._rows, self._weights, self._starts
        spare, spare_weights = self._spare.pop() if self._spare else self._room(len(rows))
        shares = spans(old)
        # Each share writes its cells to its own stretch, of half as many as it has rows.
        starts = self._storage.empty(len(rows) // 2 + len(shares) + 1, np.int64)
        places = [(int(old[span[0]]), int(old[span[0]]) // 2 + i) for i, span in enumerate(shares)]

        def work(i: int) -> tuple[int, int, int, int]:
            first, at = places[i]
            found: tuple[int, int, int, int] = cells.split(
                rows, weights, old, shares[i], self._fields[variable], self._cutoff,
                spare[first:], spare_weights[first:], starts[at:],
            )  # fmt: skip
            return found

        left = count = 0
        done = in_threads(work, range(len(shares)))
        for (first, at), (kept, held, dropped, at_risk) in zip(places, done, strict=True):
            _move(spare, first, left, kept)
            _move(spare_weights, first, left, kept)
            _move(starts, at, count, held, more=left)
            left, count = left + kept, count + held
            self._settled_cells += dropped
            self._settled_at_risk += at_risk
        starts[count] = left
        if self.variables:  # the first rows are those of the patterns
            self._spare.append((rows, weights))
        self.variables |= {variable}
        self._rows, self._weights = spare[:left], spare_weights[:left]
        self._starts = starts[: count + 1]

    @property
    def cells(self) -> tuple[Words, Weights, Ints]:
        """The rows that have company, how many records each stands for, and where cells start."""
        return self._rows, self._weights, self._starts

    def _room(self, rows: int) -> tuple[Words, Weights]:
        shape = (rows, self._rows.shape[1])
        return self._storage.empty(shape, np.uint64), self._storage.empty(rows, np.int32)

    def tally_splits(self, candidates: Sequence[int], sizes: Ints, records: int) -> list[Tally]:
        """Tally what each candidate alone would split the partition into."""
        every = np.asarray(candidates, dtype=np.int64)
        arrays, shares = (self._rows, self._weights, self._starts), spans(self._starts)

        def work(of: tuple[Ints, Ints]) -> Ints:
            span, some = of
            found: Ints = cells.tally_splits(
                *arrays, span, self._fields[some], sizes[some], self._cutoff
            )
            return found

        if len(self._starts) < CELLS_TO_SHARE and len(self._rows) >= ROWS_TO_SHARE:
            whole = np.array([0, len(self._starts) - 1])
            dealt = [every[i::WORKERS] for i in range(WORKERS)]
            total = np.empty((len(every), 2), dtype=np.int64)
            for i, found in enumerate(in_threads(work, [(whole, some) for some in dealt])):
                total[i::WORKERS] = found
        else:
            none = np.zeros((len(every), 2), dtype=np.int64)
            total = sum(in_threads(work, [(span, every) for span in shares]), start=none)
        settled = (self._settled_cells, self._settled_at_risk)
        return [Tally(records, int(c) + settled[0], int(r) + settled[1]) for c, r in total]


def _move(array: npt.NDArray[Any], start: int, to: int, count: int, more: int = 0) -> None:
    """Move a stretch of an array down to another place, and add to it if there is `more`."""
    if start == to and not more:
        return
    for some in parts(count):
        held = array[start + some.start : start + some.stop]
        array[to + some.start : to + some.stop] = held + more if more else held


@dataclass(frozen=True, slots=True, eq=False)
class DistinctPatterns:
    """The distinct patterns of some variables, each with the number of its records."""

    rows: Words
    weights: Weights
    plan: Layout
    variables: frozenset[int]
    storage: Storage = MEMORY

    @classmethod
    def of(
        cls,
        rows: Words,
        weights: Weights,
        plan: Layout,
        variables: frozenset[int],
        storage: Storage = MEMORY,
    ) -> DistinctPatterns:
        """Return the distinct patterns of rows, which are taken over and sorted about."""
        mask = plan.mask(variables)
        for some in parts(len(rows)):
            rows[some] &= mask
        if not sort_as_words(rows, weights, plan, partial(sort_in_threads, storage=storage)):
            whole = np.array([0, len(rows)], dtype=np.int64)
            sort(rows, weights, whole, plan, sorted(variables), storage=storage)
        left = cells.merge(rows, weights, mask)
        # Copies, so that the larger arrays can be freed.
        rows, weights = copied(rows[:left], storage), copied(weights[:left], storage)
        return cls(rows, weights, plan, variables, storage)

    def merged(self, variables: frozenset[int]) -> DistinctPatterns:
        """Return the distinct patterns of fewer variables, in one word if they fit."""
        rows, plan = self._narrowed(variables)
        weights = copied(self.weights, self.storage)
        return DistinctPatterns.of(rows, weights, plan, variables, self.storage)

    def _narrowed(self, variables: frozenset[int]) -> tuple[Words, Layout]:
        """Return a copy of the rows, laid out anew if that makes several words one."""
        plan = layout([1 << b * (v in variables) for v, b in enumerate(self.plan.bits.tolist())])
        if plan.words > 1 or self.plan.words == 1:
            return copied(self.rows, self.storage), self.plan
        rows = self.storage.empty((len(self.rows), 1), np.uint64)
        for some in parts(len(rows), 1 << 16):
            rows[some] = 0
            for v in variables:
                codes = self.rows[some, self.plan.word[v]] >> np.uint64(self.plan.shift[v])
                codes &= np.uint64((1 << int(plan.bits[v])) - 1)
                rows[some, 0] |= codes << np.uint64(plan.shift[v])
        return rows, plan

    def tally(self, records: int, cutoff: int) -> Tally:
        """Tally the cells that the patterns are."""
        at_risk = 0
        for some in parts(len(self.weights)):
            weights = self.weights[some]
            at_risk += int(weights[weights < cutoff].sum(dtype=np.int64))
        return Tally(records, len(self.weights), at_risk)

    def tally_without(self, removable: Sequence[int], records: int, cutoff: int) -> list[Tally]:
        """Tally the patterns with each removable variable left out in turn."""
        tag_bits = min(cutoff, int(self.weights.max(initial=0))).bit_length()
        if self.plan.words == 1 and int(self.plan.bits.sum()) + tag_bits <= 64:
            return self._sorted_without(removable, records, cutoff, tag_bits)
        whole = self.tally(records, cutoff)
        dealt = sorted(removable, key=lambda v: -int(self.plan.bits[v]))
        count = max(2, -(-len(dealt) // PART_SIZE)) if len(dealt) > 1 else 1
        count = count if len(self.rows) > FEW_ROWS else 1
        cuts = [round(i * len(dealt) / count) for i in range(count + 1)]
        parts = list(itertools.pairwise(cuts))
        # Dealt like cards, so that what each part leaves splits about as well.
        dealt = [v for i in range(len(parts)) for v in dealt[i :: len(parts)]]
        # One copy at a time, its cells shared by the threads.
        found = [self._without(dealt, part, cutoff) for part in parts]
        lost, safe = np.sum(found, axis=0)
        by_variable = {
            v: Tally(records, whole.cells - int(lost[i]), whole.at_risk - int(safe[i]))
            for i, v in enumerate(dealt)
        }
        return [by_variable[v] for v in removable]

    def _sorted_without(
        self, removable: Sequence[int], records: int, cutoff: int, tag_bits: int
    ) -> list[Tally]:
        """Tally by sorting words without the variable; below stands the weight, to the cutoff."""
        tagged = self.storage.empty(len(self.rows), np.uint64)
        for some in parts(len(tagged)):
            capped = np.minimum(self.weights[some], cutoff).astype(np.uint64)
            tagged[some] = self.rows[some, 0] << np.uint64(tag_bits) | capped

        def without(v: int) -> Tally:
            words, left = self.storage.empty(len(tagged), np.uint64), self.plan.mask([v])[0]
            left = ~(left << np.uint64(tag_bits))
            for some in parts(len(words)):
                np.bitwise_and(tagged[some], left, out=words[some])
            words.sort()
            return Tally(records, *cells.tally_words(words, tag_bits, cutoff))

        return in_threads(without, removable, len(tagged) * len(removable))

    def _without(self, dealt: Sequence[int], part: tuple[int, int], cutoff: int) -> Ints:
        plan = self.plan
        kept = self.variables - frozenset(dealt[part[0] : part[1]])
        keep, digits = plan.mask(kept), [plan.digits([v]) for v in dealt]
        masks = plan.masks(dealt)
        digit_starts = np.cumsum([0] + [len(d) for d in digits])
        storage = self.storage
        rows, weights = copied(self.rows, storage), copied(self.weights, storage)
        spare = storage.empty(rows.shape, rows.dtype), storage.empty(weights.shape, weights.dtype)
        arrays, whole = (rows, weights, *spare), np.array([0, len(rows)], dtype=np.int64)
        sort(rows, weights, whole, plan, sorted(kept), spare=spare, storage=storage)

        def work(of: slice) -> tuple[Ints, Ints]:
            lost, safe = leave_one_out.tally_without(
                *(a[of] for a in arrays),
                keep,
                masks,
                np.concatenate(digits),
                digit_starts,
                *part,
                cutoff,
            )
            return lost, safe

        total: Ints = np.sum(in_threads(work, shares_of(rows, keep)), axis=0)
        return total


class ShrinkingKey:
    """A key that loses variable after variable while nearly every pattern is of one record.

    Rows alone on a few variables are alone on every key that holds these: leaving out another one
    changes nothing for them. So the rows with company on some few variables are kept as long as the
    key holds these, and only they are looked at again.
    """

    def __init__(self, patterns: DistinctPatterns, cutoff: int) -> None:
        self.patterns, self.cutoff = patterns, cutoff
        self._in_company: list[tuple[frozenset[int], DistinctPatterns]] = []

    def tally_without(
        self, key: frozenset[int], whole: Tally, removable: Sequence[int]
    ) -> list[Tally]:
        """Tally the key, whose own tally is `whole`, less each removable variable in turn."""
        self._in_company = [one for one in self._in_company if one[0] <= key]
        left, found = frozenset(removable), dict[int, Tally]()
        while left:
            fit = (one for one in self._in_company if not left <= one[0])
            by, patterns = next(fit, None) or self._split(key, left)
            some, left = sorted(left - by), left & by
            few = patterns.merged(key)
            before = few.tally(whole.records, self.cutoff)
            for v, after in zip(
                some, few.tally_without(some, whole.records, self.cutoff), strict=True
            ):
                lost, safe = before.cells - after.cells, before.at_risk - after.at_risk
                found[v] = Tally(whole.records, whole.cells - lost, whole.at_risk - safe)
        return [found[v] for v in removable]

    def _split(
        self, key: frozenset[int], left: frozenset[int]
    ) -> tuple[frozenset[int], DistinctPatterns]:
        """Find the rows with company on few large variables, not on all of those left."""
        plan, storage = self.patterns.plan, self.patterns.storage
        order = sorted(key, key=lambda v: (-int(plan.bits[v]), v))
        open_ = [v for v in order if v in left]
        spared = open_[len(open_) // 2 :] if len(open_) > 2 * PART_SIZE else open_[::2]
        partition = Partition(self.patterns, self.cutoff)
        for v in (v for v in order if v not in spared):
            if len(partition.cells[0]) * FEW_IN_COMPANY <= len(self.patterns.rows):
                break
            partition.refine(v)
        rows, weights, _ = (copied(one, storage) for one in partition.cells)
        few = replace(self.patterns, rows=rows, weights=weights)
        self._in_company.append((partition.variables, few))
        return self._in_company[-1]


Rows = tuple[Words, Weights, Ints]
"""Rows sorted into cells, how many records each stands for, and where each cell starts."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenCells:
    """The cells of a set of variables that more variables could still split into small ones.

    Rows are the distinct patterns of the cell and of the variables that may join (`open`), sorted
    by these, the last first. Cells that stay small or can never become small are `_closed`: they
    are split only to be counted. `_alone` are the cells of one row, which are not kept, and
    `at_risk` the records in cells that stay small.
    """

    storage: Storage
    cutoff: int
    sizes: Ints
    open: tuple[int, ...]
    _places: Mapping[int, Ints]
    _split: Rows
    _closed: Rows
    _alone: int = 0
    at_risk: int = 0

    @classmethod
    def of(
        cls,
        patterns: DistinctPatterns,
        variables: Sequence[int],
        more: Sequence[int],
        sizes: Ints,
        cutoff: int,
    ) -> OpenCells:
        """Return the cells of some variables."""
        storage, plan = patterns.storage, patterns.plan
        weights = storage.empty(len(patterns.weights), np.int32)
        for some in parts(len(weights)):
            np.minimum(patterns.weights[some], cutoff, out=weights[some])
        rows, none = patterns.rows, np.zeros(1, dtype=np.int64)
        fields = np.column_stack([plan.word, plan.shift, plan.bits])
        places = {v: fields[v] for v in (*variables, *more)}
        whole = (rows, weights, np.array([0, len(rows)], dtype=np.int64)[: 1 + (len(rows) > 0)])
        closed = (rows[:0], weights[:0], none)
        every = (*variables, *more)
        made = cls(storage, cutoff, sizes, every, places, whole, closed)
        for i, v in enumerate(variables):
            made = made.narrowed(v, every[i + 1 :])
        return made.ordered(more)

    def ordered(self, more: Sequence[int]) -> OpenCells:
        """Return the cells with only `more` to join, the first where its loss merges rows best."""
        plan = in_order(self.sizes[list(more)].tolist())
        # The first variable is the lowest field of the last word.
        places = np.column_stack([plan.words - 1 - plan.word, plan.shift, plan.bits])
        old = np.array([self._places[v] for v in more], dtype=np.int64).reshape(-1, 3)
        moved = []
        for rows, weights, starts in (self._split, self._closed):
            out = self.storage.empty((len(rows), plan.words), np.uint64)
            narrowing.move_fields(rows, old, places, out)
            moved.append((out, weights, starts))
        held = dict(zip(more, places, strict=True))
        made = replace(self, open=tuple(more), _places=held, _split=moved[0], _closed=moved[1])
        return made._narrowed(None, more, is_sorted=False)

    def narrowed(self, variable: int | None, more: Sequence[int]) -> OpenCells:
        """Return the cells split by a variable, if any, to which only `more` may join, in order."""
        kept = self.open[len(self.open) - len(more) - (variable is not None) :]
        # Equal rows stay neighbours when what is left out is sorted by last.
        is_sorted = [v for v in kept if v != variable] == [*more]
        return self._narrowed(variable, more, is_sorted=is_sorted)

    def _narrowed(self, variable: int | None, more: Sequence[int], is_sorted: bool) -> OpenCells:
        words, room = self._split[0].shape[1], self.storage.empty
        mask = self._mask(more, words)
        both = self._split, self._closed
        if not is_sorted:
            needed = self._mask(more if variable is None else [*more, variable], words)
            both = self._sorted(self._split, needed), self._sorted(self._closed, needed)
        counts = [len(some[0]) for some in both]
        most, every = max(counts), sum(counts)
        working = narrowing.Room(
            room((most, words), np.uint64), *(room(most, k) for k in (np.int32, np.int32, np.uint8))
        )
        out = narrowing.Narrowed(
            room((every + 1, words), np.uint64),
            room(every + 1, np.int32),
            room(every // 2 + 3, np.int64),
        )
        end = len(out.starts) - 1
        out.starts[end] = every
        found = np.array([0, 0, every, end, self._alone, self.at_risk], dtype=np.int64)
        field = _NO_FIELD if variable is None else self._places[variable]
        for some, are_open in zip(both, (True, False), strict=True):
            narrowing.narrow_cells(*some, are_open, field, mask, self.cutoff, working, out, found)
        rows, cells, first, first_cell, alone, at_risk = found.tolist()
        out.starts[cells] = rows
        closed = out.starts[first_cell:]
        closed -= first
        return replace(
            self,
            open=tuple(more),
            _places={v: self._places[v] for v in more},
            _split=(out.rows[:rows], out.weights[:rows], out.starts[: cells + 1]),
            _closed=(out.rows[first:every], out.weights[first:every], closed),
            _alone=alone,
            at_risk=at_risk,
        )

    def _mask(self, variables: Iterable[int], words: int) -> Words:
        mask = np.zeros(words, dtype=np.uint64)
        for v in variables:
            word, shift, bits = self._places[v].tolist()
            mask[word] |= np.uint64(((1 << bits) - 1) << shift)
        return mask

    def _sorted(self, some: Rows, mask: Words) -> Rows:
        """Return cells whose rows are sorted by the fields in a mask."""
        starts = some[2]
        rows, weights = (copied(one, self.storage) for one in some[:2])
        top, tag_bits = int(mask[0]).bit_length(), self.cutoff.bit_length()
        if len(mask) == 1 and (len(starts) - 1).bit_length() + top + tag_bits <= 64:
            narrowing.pack_cells(*some, int(mask[0]), top + tag_bits, tag_bits, rows[:, 0])
            sort_in_threads(rows[:, 0], self.storage)
            narrowing.unpack_cells(rows[:, 0], int(mask[0]), tag_bits, weights)
            return rows, weights, starts
        tops = [int(one).bit_length() for one in mask]
        digits = [
            (w, max(t - 8, 0), min(t, 8)) for w in range(len(mask)) for t in range(tops[w], 0, -8)
        ]
        cells.sort_cells(
            rows, weights, starts, np.array([0, len(starts) - 1], dtype=np.int64), mask,
            np.array(digits, dtype=np.int64).reshape(-1, 3),
            self.storage.empty(rows.shape, np.uint64), self.storage.empty(len(rows), np.int32),
        )  # fmt: skip
        return rows, weights, starts

    def tally(self, records: int) -> Tally:
        """Tally the cells as they are."""
        split = len(self._split[2]) + len(self._closed[2]) - 2
        return Tally(records, self._alone + split, self.at_risk)

    def joint(self, records: int) -> Tally:
        """Tally the cells if everything that may join did."""
        rows, weights, _ = self._split
        at_risk = 0
        for some in parts(len(rows)):
            full = self.cutoff * int(np.count_nonzero(weights[some] == self.cutoff))
            at_risk += int(weights[some].sum(dtype=np.int64)) - full
        every = self._alone + len(rows) + len(self._closed[0])
        return Tally(records, every, self.at_risk + at_risk)

    def split(self, candidates: Sequence[int], most: int) -> list[int]:
        """Return the records in small cells with each candidate, about, if > most."""
        found = self._counted(self._split, candidates, most - self.at_risk)
        return [self.at_risk + int(x) for x in found[:, 1]]

    def tally_with(self, variable: int, records: int) -> Tally:
        """Tally the cells if one variable joined."""
        (split,), (closed,) = (
            self._counted(some, [variable]).tolist() for some in (self._split, self._closed)
        )
        return Tally(records, self._alone + split[0] + closed[0], self.at_risk + split[1])

    def _counted(self, some: Rows, candidates: Sequence[int], most: int = -1) -> Ints:
        fields = np.array([self._places[v] for v in candidates], dtype=np.int64).reshape(-1, 3)
        span = np.array([0, len(some[2]) - 1], dtype=np.int64)
        found: Ints = cells.tally_splits(
            *some, span, fields, self.sizes[list(candidates)], self.cutoff, most
        )
        return found


_NO_FIELD = np.zeros(3, dtype=np.int64)


class PatternTable:
    """One row a distinct pattern, and how many records have it.

    `places` has by column its number among those the patterns are made of.
    """

    def __init__(self, patterns: DistinctPatterns, places: Mapping[str, int]) -> None:
        self._patterns, self._places = patterns, places
        self.records: Ints = patterns.weights.astype(np.int64)

    def codes(self, name: str) -> Ints:
        """Return the code of each pattern in one column."""
        plan, v = self._patterns.plan, self._places[name]
        word = self._patterns.rows[:, plan.word[v]] >> np.uint64(plan.shift[v])
        top = np.uint64((1 << int(plan.bits[v])) - 1)
        codes: Ints = (word & top).astype(np.int64)
        return codes

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return for each pattern the number of its cell on fewer columns, from 0 on."""
        mask = self._patterns.plan.mask([self._places[name] for name in names])
        words = [self._patterns.rows[:, w] & mask[w] for w in np.flatnonzero(mask)]
        number: Ints = np.zeros(len(self.records), dtype=np.int64)
        for word in words:
            dense = np.unique(word, return_inverse=True)[1]
            pair = number * (int(dense.max(initial=0)) + 1) + dense
            number = dense if word is words[0] else np.unique(pair, return_inverse=True)[1]
        return number
