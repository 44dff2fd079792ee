"""The memory engine: packed records in RAM, counted by the kernels, two jobs at a time."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.protocol import Missing, Tally
from keyhole.kernels import cells, leave_one_out, wildcards
from keyhole.kernels.packing import Layout, layout, pack

__all__ = ["MemoryEngine", "Partition", "Patterns", "SortedCells", "in_threads"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int32]
A = TypeVar("A")
T = TypeVar("T")

WORKERS = os.cpu_count() or 1


def in_threads(work: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """Work on the items on as many threads as there are cores; the kernels release the GIL."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, items))


class Partition:
    """Rows sorted into cells by a growing set of variables; rows alone in a cell are settled.

    Parameters
    ----------
    rows, weights
        Packed rows and how many records each stands for. Taken over and sorted in place.
    plan
        The layout of the rows.
    cutoff
        Cells smaller than this are at risk.
    workers
        How many threads to use.
    """

    def __init__(
        self, rows: Words, weights: Weights, plan: Layout, cutoff: int, workers: int = WORKERS
    ) -> None:
        self._rows, self._weights, self._plan, self._cutoff = rows, weights, plan, cutoff
        self._workers = workers
        self._spare, self._spare_weights = np.empty_like(rows), np.empty_like(weights)
        self._starts = np.array([0, len(rows)], dtype=np.int64)
        self._settled_cells = self._settled_at_risk = 0
        self.variables: frozenset[int] = frozenset()

    def refined(self, variables: Sequence[int]) -> Partition:
        """Return a copy split further by these variables."""
        copy = Partition(
            self._rows.copy(), self._weights.copy(), self._plan, self._cutoff, self._workers
        )
        copy._starts, copy.variables = self._starts.copy(), self.variables
        copy._settled_cells, copy._settled_at_risk = self._settled_cells, self._settled_at_risk
        copy.refine(variables)
        return copy

    def refine(self, variables: Sequence[int]) -> None:
        """Split the cells further by these variables."""
        wide = sorted(variables, key=lambda v: -int(self._plan.bits[v]))
        # The widest variable alone first: that gives the threads cells to share out.
        for part in [wide[:1], wide[1:]] if len(self._starts) == 2 else [wide]:
            if part:
                self._split(part)
        self.variables |= frozenset(variables)

    def _split(self, variables: Sequence[int]) -> None:
        mask, digits = self._plan.mask(variables), self._plan.digits(variables)
        arrays = (self._rows, self._weights, self._starts)
        spare = (self._spare, self._spare_weights)
        in_threads(
            lambda span: cells.sort_cells(*arrays, span, mask, digits, *spare), self._spans()
        )
        whole = mask | self._plan.mask(self.variables)
        starts = cells.bounds(self._rows, whole)
        rows, kept, dropped, at_risk = cells.settle(self._rows, self._weights, starts, self._cutoff)
        self._rows, self._weights = self._rows[:rows], self._weights[:rows]
        self._starts = starts[: kept + 1]
        self._settled_cells += dropped
        self._settled_at_risk += at_risk
        self.variables |= frozenset(variables)

    def _spans(self) -> list[Ints]:
        """Cut the cells into one span a worker, of about as many rows each."""
        last = len(self._starts) - 1
        goals = np.linspace(0, len(self._rows), self._workers + 1)[1:-1]
        cuts = [0, *np.searchsorted(self._starts, goals).tolist(), last]
        return [
            np.array(pair, dtype=np.int64) for pair in itertools.pairwise(cuts) if pair[0] < pair[1]
        ]

    def tally(self, records: int) -> Tally:
        """Tally the partition as it stands."""
        sizes: Ints = np.zeros(0, dtype=np.int64)
        if len(self._weights):
            sizes = np.add.reduceat(self._weights, self._starts[:-1], dtype=np.int64)
        at_risk = int(sizes[sizes < self._cutoff].sum())
        return Tally(records, self._settled_cells + len(sizes), self._settled_at_risk + at_risk)

    def tally_splits(self, candidates: Sequence[int], sizes: Ints, records: int) -> list[Tally]:
        """Tally what each candidate alone would split the partition into."""
        plan, candidate = self._plan, np.asarray(candidates, dtype=np.int64)
        fields = np.column_stack([plan.word, plan.shift, plan.bits])[candidate]
        arrays = (self._rows, self._weights, self._starts)
        found = in_threads(
            lambda span: cells.tally_splits(*arrays, span, fields, sizes[candidate], self._cutoff),
            self._spans(),
        )
        total = np.sum(found, axis=0) if found else np.zeros((len(candidate), 2), dtype=np.int64)
        settled = (self._settled_cells, self._settled_at_risk)
        return [Tally(records, int(c) + settled[0], int(r) + settled[1]) for c, r in total]


class Patterns:
    """The distinct patterns of some variables, each with the number of its records."""

    def __init__(
        self, rows: Words, weights: Weights, plan: Layout, variables: frozenset[int]
    ) -> None:
        self.rows, self.weights, self.plan, self.variables = rows, weights, plan, variables

    def merged(self, variables: frozenset[int]) -> Patterns:
        """Return the distinct patterns of fewer variables."""
        rows, weights = self.rows.copy(), self.weights.copy()
        mask, digits = self.plan.mask(variables), self.plan.digits(variables)
        one = np.array([0, len(rows)], dtype=np.int64)
        span = np.array([0, 1], dtype=np.int64)
        spare = (np.empty_like(rows), np.empty_like(weights))
        cells.sort_cells(rows, weights, one, span, mask, digits, *spare)
        left = cells.merge(rows, weights, mask)
        # Copies, so that the larger arrays can be freed.
        kept = rows[:left] & mask
        return Patterns(kept, weights[:left].copy(), self.plan, variables)

    def tally(self, records: int, cutoff: int) -> Tally:
        """Tally the cells that the patterns are."""
        small = self.weights[self.weights < cutoff]
        return Tally(records, len(self.weights), int(small.sum(dtype=np.int64)))

    def tally_without(self, removable: Sequence[int], records: int, cutoff: int) -> list[Tally]:
        """Tally the patterns with each removable variable left out in turn."""
        whole = self.tally(records, cutoff)
        dealt = sorted(removable, key=lambda v: -int(self.plan.bits[v]))
        dealt = dealt[::2] + dealt[1::2]  # two halves that split about as well as each other
        halves = _halves(len(dealt))
        found = in_threads(lambda half: self._without(dealt, half, cutoff), halves)
        lost, safe = np.sum(found, axis=0)
        by_variable = {
            v: Tally(records, whole.cells - int(lost[i]), whole.at_risk - int(safe[i]))
            for i, v in enumerate(dealt)
        }
        return [by_variable[v] for v in removable]

    def _without(self, dealt: Sequence[int], half: tuple[int, int], cutoff: int) -> Ints:
        plan = self.plan
        kept = self.variables - frozenset(dealt[half[0] : half[1]])
        digits = [plan.digits([v]) for v in dealt]
        lost, safe = leave_one_out.tally_without(
            self.rows.copy(),
            self.weights.copy(),
            plan.mask(kept),
            plan.digits(kept),
            np.array([plan.mask([v]) for v in dealt]),
            np.concatenate(digits),
            np.cumsum([0] + [len(d) for d in digits]),
            half[0],
            half[1],
            cutoff,
        )
        return np.array([lost, safe])


def _halves(count: int) -> list[tuple[int, int]]:
    middle = (count + 1) // 2
    return [(0, middle), (middle, count)] if count > 1 else [(0, count)]


class MemoryEngine:
    """Counts cells of encoded columns held in memory.

    Parameters
    ----------
    columns
        The encoded columns by name; all of the same length.

    Notes
    -----
    The distinct patterns of all the columns are made once. A key that grows step by step
    refines the last partition; one that shrinks merges the last patterns.
    """

    name = "memory"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        self._names = tuple(columns)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._columns = tuple(columns.values())
        self._sizes = np.array([c.size for c in self._columns], dtype=np.int64)
        self._plan = layout(self._sizes.tolist())
        self._base: Patterns | None = None
        self._partition: tuple[int, Partition] | None = None
        self._shrunk: Patterns | None = None

    @property
    def records(self) -> int:
        """Return the number of records."""
        return len(self._columns[0].values) if self._columns else 0

    @property
    def sizes(self) -> Ints:
        """Return the number of codes of each column, in order."""
        return self._sizes

    def numbers(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of the columns named, by which a `Partition` knows them."""
        return [self._index[name] for name in names]

    def partition(self, keys: Sequence[str], *, cutoff: int, workers: int = 1) -> Partition:
        """Return a partition of the records by the key, to be refined step by step."""
        base = self._patterns()
        rows, weights = base.rows.copy(), base.weights.copy()
        out = Partition(rows, weights, self._plan, cutoff, workers)
        if keys:
            out.refine(self.numbers(keys))
        return out

    def _patterns(self) -> Patterns:
        if self._base is None:
            rows = pack([c.values for c in self._columns], self._plan)
            ones = np.ones(len(rows), dtype=np.int32)
            everything = frozenset(range(len(self._names)))
            self._base = Patterns(rows, ones, self._plan, everything).merged(everything)
        return self._base

    def _refined(self, keys: Sequence[int], cutoff: int) -> Partition:
        held = self._partition
        if held is None or held[0] != cutoff or not held[1].variables <= set(keys):
            base = self._patterns()
            held = (cutoff, Partition(base.rows.copy(), base.weights.copy(), self._plan, cutoff))
            self._partition = held
        more = [v for v in keys if v not in held[1].variables]
        if more:
            held[1].refine(more)
        return held[1]

    def _merged(self, keys: frozenset[int]) -> Patterns:
        held = self._shrunk
        source = held if held is not None and held.variables >= keys else self._patterns()
        if source.variables != keys:
            source = source.merged(keys)
        self._shrunk = source
        return source

    def tally(self, keys: Sequence[str], *, cutoff: int) -> Tally:
        """Tally one key."""
        return self._merged(frozenset(self.numbers(keys))).tally(self.records, cutoff)

    def tally_added(
        self, keys: Sequence[str], candidates: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each candidate added in turn."""
        partition = self._refined(self.numbers(keys), cutoff)
        return partition.tally_splits(self.numbers(candidates), self._sizes, self.records)

    def tally_removed(
        self, keys: Sequence[str], removable: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each removable variable left out in turn."""
        patterns = self._merged(frozenset(self.numbers(keys)))
        return patterns.tally_without(self.numbers(removable), self.records, cutoff)

    def cell_sizes(self, keys: Sequence[str], *, missing: Missing = "own") -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        sizes, _ = self.cells(keys, missing=missing)
        return sizes

    def cells(self, keys: Sequence[str], *, missing: Missing = "own") -> tuple[Ints, Ints]:
        """Return for each record the size of its cell and a number of the cell (-1: left out).

        Under `wildcard` the size counts every record that agrees wherever both are known,
        and the number is that of the record's own pattern.
        """
        columns = [self._columns[v] for v in self.numbers(keys)]
        sorted_cells = SortedCells(columns, drop=missing == "drop")
        sizes = sorted_cells.counts
        if missing == "wildcard":
            sizes = sorted_cells.match(sizes)
        return sorted_cells.spread(sizes, 0), sorted_cells.numbers()

    def matched(self, keys: Sequence[str], amounts: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Return for each record the sum of the amounts of all that match it as wildcards."""
        sorted_cells = SortedCells([self._columns[v] for v in self.numbers(keys)], drop=False)
        sums = np.bincount(sorted_cells.numbers(), weights=amounts)
        return sorted_cells.spread(sorted_cells.match(sums), 0.0)


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
        mask, self._digits = self._plan.mask(everything), self._plan.digits(everything)
        one, span = np.array([0, len(rows)], dtype=np.int64), np.array([0, 1], dtype=np.int64)
        spare = (np.empty_like(rows), np.empty_like(tags))
        cells.sort_cells(rows, tags, one, span, mask, self._digits, *spare)
        starts = cells.bounds(rows, mask)
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
        return wildcards.match(self._patterns, amounts, known, self._digits)


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
