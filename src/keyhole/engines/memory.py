"""The memory engine: packed records in RAM, counted by the kernels."""
# ruff: noqa: D102 (what the methods of an engine are for is said once, in `Engine`)

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.protocol import Missing, Records, Spectrum, Tally
from keyhole.engines.resources import WORKERS, in_threads
from keyhole.engines.storage import MEMORY, Storage, copied, count_codes, parts
from keyhole.kernels.arrays import Ints, Words
from keyhole.kernels.packing import Layout, layout, pack

if TYPE_CHECKING:
    from keyhole.engines.partition import (
        DistinctPatterns,
        OpenCells,
        Partition,
        PatternTable,
        ShrinkingKey,
    )


# Where more of the records than this are alone on a key of more variables than this, most are
# alone on a few of these variables.
NEARLY_ALL, SEVERAL = 0.99, 11
# Fewer records than this are all looked at again sooner than sorted out.
FEW = 1 << 13


class MemoryEngine:
    """Counts cells of encoded columns; `storage` makes the arrays with a value for each record.

    The distinct patterns of all the columns are made once. A key that grows step by step
    refines the last partition; one that shrinks merges the last patterns.
    """

    def __init__(self, columns: Mapping[str, Codes], *, storage: Storage = MEMORY) -> None:
        self.storage = storage
        self._names = tuple(columns)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._columns = tuple(columns.values())
        self.sizes = np.array([c.size for c in self._columns], dtype=np.int64)
        self._plan = layout(self.sizes.tolist())
        self._base: DistinctPatterns | None = None
        self._partition: tuple[int, Partition] | None = None
        self._shrunk: DistinctPatterns | None = None
        self._shrinking: ShrinkingKey | None = None
        self._left: dict[
            tuple[frozenset[int], int], Tally
        ] = {}  # by key and cutoff, the last asked

    @property
    def name(self) -> str:
        return self.storage.name

    @property
    def records(self) -> int:
        return len(self._columns[0].values) if self._columns else 0

    def numbers(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of the columns named, by which a `Partition` knows them."""
        return [self._index[name] for name in names]

    def open_cells(self, keys: Sequence[str], more: Sequence[str], *, cutoff: int) -> OpenCells:
        """Return the cells of a key as far as more variables could change who is at risk."""
        from keyhole.engines.partition import OpenCells

        keyed, joining = self.numbers(keys), self.numbers(more)
        return OpenCells.of(self._patterns(), keyed, joining, self.sizes, cutoff)

    def _patterns(self) -> DistinctPatterns:
        if self._base is None:
            from keyhole.engines.partition import DistinctPatterns

            rows = self.storage.empty((self.records, self._plan.words), np.uint64)
            pack([c.values for c in self._columns], self._plan, rows)
            ones = self.storage.empty(self.records, np.int32)
            ones[:] = 1
            everything = frozenset(range(len(self._names)))
            self._base = DistinctPatterns.of(rows, ones, self._plan, everything, self.storage)
        return self._base

    def _refined(self, keys: Sequence[int], cutoff: int) -> Partition:
        held = self._partition
        if held is None or held[0] != cutoff or not held[1].variables <= set(keys):
            from keyhole.engines.partition import Partition

            held = self._partition = (cutoff, Partition(self._patterns(), cutoff))
        for v in keys:
            if v not in held[1].variables:
                held[1].refine(v)
        return held[1]

    def _merged(self, keys: frozenset[int]) -> DistinctPatterns:
        held = self._shrunk
        source = held if held is not None and held.variables >= keys else self._patterns()
        if source.variables != keys:
            source = source.merged(keys)
        self._shrunk = source
        return source

    def tally(self, keys: Sequence[str], *, cutoff: int) -> Tally:
        return self._merged(frozenset(self.numbers(keys))).tally(self.records, cutoff)

    def tally_added(
        self, keys: Sequence[str], candidates: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        partition = self._refined(self.numbers(keys), cutoff)
        return partition.tally_splits(self.numbers(candidates), self.sizes, self.records)

    def tally_removed(
        self, keys: Sequence[str], removable: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        key, numbers, records = frozenset(self.numbers(keys)), self.numbers(removable), self.records
        whole = self._left.get((key, cutoff)) or self._merged(key).tally(records, cutoff)
        if records > FEW and whole.cells > NEARLY_ALL * records and len(key) > SEVERAL:
            if self._shrinking is None or self._shrinking.cutoff != cutoff:
                from keyhole.engines.partition import ShrinkingKey

                self._shrinking = ShrinkingKey(self._patterns(), cutoff)
            found = self._shrinking.tally_without(key, whole, numbers)
        else:
            found = self._merged(key).tally_without(numbers, records, cutoff)
        self._left = {(key - {v}, cutoff): one for v, one in zip(numbers, found, strict=True)}
        return found

    def measure(self, keys: Sequence[str], *, missing: Missing = "own") -> KeyCells:
        columns = [self._columns[v] for v in self.numbers(keys)]
        return KeyCells(columns, missing, self.storage)

    def cell_sizes(self, keys: Sequence[str], *, missing: Missing = "own") -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        return self.measure(keys, missing=missing).sizes()

    def by_cell(
        self, keys: Sequence[str], beside: Sequence[str] = ()
    ) -> tuple[Ints, Callable[[], Tags], dict[str, tuple[Words, Ints]]]:
        """Return where each cell of a key starts, and what gives the records in that order.

        Where the columns `beside` fit one word with the key and the number of the record they are
        sorted along: by column the words in that order, and the shift and bits of its codes.
        """
        from keyhole.engines.partition import sort_in_threads
        from keyhole.kernels.cells import add_field, word_starts

        columns = [self._columns[v] for v in self.numbers([*keys, *beside])]
        own = len(keys)
        plan, tag_bits = layout([c.size for c in columns]), self.records.bit_length()
        if not beside or plan.words > 1 or int(plan.bits.sum()) + tag_bits > 64:
            cells = RecordCells(columns[:own], storage=self.storage)
            return cells.starts, lambda: cells.tags, {}
        at = np.cumsum([tag_bits, *plan.bits[own:], *plan.bits[:own]])
        shift = np.concatenate([at[-own - 1 : -1], at[: len(beside)]])
        words = self.storage.empty(self.records, np.uint64)

        def join(some: slice) -> None:
            words[some] = np.arange(some.start, some.stop)
            for column, to in zip(columns, shift.tolist(), strict=True):
                add_field(words[some], column.values[some], np.uint64(to))

        in_threads(join, list(parts(self.records, 1 << 16)))
        low = int(at[len(beside)])
        sort_in_threads(words, self.storage)
        starts = self.storage.empty(self.records + 1, np.int64)
        count = word_starts(words, low, starts)

        def tags() -> Tags:
            out: Tags = self.storage.empty(self.records, np.int32)
            for some in parts(self.records, 1 << 16):
                out[some] = words[some] & np.uint64((1 << tag_bits) - 1)
            return out

        places = np.column_stack([shift, plan.bits])
        found = {name: (words, places[i]) for i, name in enumerate((*keys, *beside))}
        return starts[: count + 1], tags, found

    def patterns(self, keys: Sequence[str]) -> PatternTable:
        from keyhole.engines.partition import PatternTable

        held = self._merged(frozenset(self.numbers(keys)))
        places = dict(zip(keys, self.numbers(keys), strict=True))
        self.storage.require(len(held.weights) * 8 * (len(keys) + 14), "working on all patterns")
        return PatternTable(held, places)

    def matched(self, keys: Sequence[str], amounts: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Return for each record the sum of the amounts of all that match it as wildcards."""
        cells = RecordCells([self._columns[v] for v in self.numbers(keys)])
        sums = np.bincount(cells.numbers(), weights=amounts)
        return cells.spread(cells.match(sums), 0.0)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Data whose every record can be looked at here: in memory, or in mapped files on disk."""

    storage: Storage = MEMORY
    notes: tuple[str, ...] = ()
    is_here: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.storage.name

    def engine(self, data: Records, columns: Iterable[str] | Mapping[str, Codes]) -> MemoryEngine:
        """Return the engine that counts columns of the data, given by name or encoded."""
        if not isinstance(columns, Mapping):
            columns = {name: data.codes(name) for name in columns}
        return MemoryEngine(columns, storage=self.storage)

    def group(self, data: Records, by: str, code: int) -> Records:
        return data.filter(data.codes(by).values == code)


MEMORY_BACKEND = LocalBackend()


Tags = npt.NDArray[np.int32]


# So many copies of the distinct patterns are made while wildcards are matched, about.
PATTERN_COPIES = 6
# Sizes below this are counted in an array, others sorted.
SMALL = 1 << 12


class RecordCells:
    """The cells of one key: the records sorted into them, each row tagged with its record."""

    def __init__(
        self,
        columns: Sequence[Codes],
        missing: Missing = "own",
        storage: Storage = MEMORY,
    ) -> None:
        self._columns, self._plan = columns, layout([c.size for c in columns])
        self._storage, self._records = storage, len(columns[0].values)
        rows = storage.empty((self._records, self._plan.words), np.uint64)
        pack([c.values for c in columns], self._plan, rows)
        tags = storage.empty(self._records, np.int32)
        for some in parts(self._records):
            tags[some] = np.arange(some.start, some.stop)
        if missing == "drop":
            rows, tags = _complete(rows, tags, columns, storage)
        self._rows, self.tags = _sorted(rows, tags, self._plan, storage)
        self.starts = _starts(self._rows, storage)
        self._sizes = self.match(self.counts) if missing == "wildcard" else self.counts

    @cached_property
    def counts(self) -> Ints:
        """The size of each cell."""
        out = self._storage.empty(len(self.starts) - 1, np.int64)
        for some in parts(len(out)):
            out[some] = np.diff(self.starts[some.start : some.stop + 1])
        return out

    @cached_property
    def _patterns(self) -> Words:
        out = self._storage.empty((len(self.starts) - 1, self._plan.words), np.uint64)
        for some in parts(len(out)):
            out[some] = self._rows[self.starts[some]]
        return out

    def sizes(self) -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        return self.spread(self._sizes, 0)

    def spread(self, values: npt.NDArray[Any], absent: float) -> npt.NDArray[Any]:
        """Give every record the value of its cell, and those left out `absent`."""
        return self._spread(lambda some: values[some], values.dtype, absent)

    def numbers(self) -> Ints:
        """Return for each record the number of its cell, -1 where it was left out."""
        return self._spread(lambda some: np.arange(some.start, some.stop), np.int64, -1)

    def _spread(
        self, values: Callable[[slice], npt.NDArray[Any]], dtype: Any, absent: float
    ) -> npt.NDArray[Any]:
        out = self._storage.empty(self._records, dtype)
        if len(self.tags) < self._records:
            out[:] = absent
        for some in parts(len(self.tags)):
            # The cells that lie in this part of the rows, the first and the last perhaps cut.
            first = int(np.searchsorted(self.starts, some.start, side="right")) - 1
            last = int(np.searchsorted(self.starts, some.stop, side="left"))
            held = np.diff(self.starts[first : last + 1].clip(some.start, some.stop))
            out[self.tags[some]] = np.repeat(values(slice(first, last)), held)
        return out

    @property
    def spectrum(self) -> Spectrum:
        return _spectrum(self._sizes, self.counts)

    def match(self, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each cell the amounts of all cells that match it as wildcards."""
        from keyhole.kernels import wildcards

        size = len(self._patterns) * (self._plan.words * 8 * PATTERN_COPIES + 64)
        self._storage.require(size, "matching missing values with every value")
        plan, patterns, every = self._plan, self._patterns, range(len(self._columns))
        known = np.tile(plan.mask(every), (len(patterns), 1))  # the fields that are not missing
        for v, column in enumerate(self._columns):
            if column.has_missing:
                field, word = plan.mask([v]), plan.word[v]
                codes = (patterns[:, word] & field[word]) >> np.uint64(plan.shift[v])
                known[codes == column.size - 1] &= ~field
        return wildcards.match(patterns, amounts, known, plan.digits(every))


class KeyCells:
    """The cells of one key, in memory counted without the records until these are asked for."""

    def __init__(self, columns: Sequence[Codes], missing: Missing, storage: Storage) -> None:
        self._given = (columns, missing, storage)

    @cached_property
    def _sorted(self) -> RecordCells:
        return RecordCells(*self._given)

    @property
    def spectrum(self) -> Spectrum:
        columns, missing, storage = self._given
        plan = layout([c.size for c in columns])
        if plan.words > 1 or missing != "own" or storage is not MEMORY:
            return self._sorted.spectrum
        rows = pack([c.values for c in columns], plan)
        patterns = 1 << int(plan.bits.sum())
        if patterns <= len(rows):
            counts = count_codes(rows[:, 0].view(np.int64), patterns)
            counts = counts[counts > 0]
        else:
            rows[:, 0].sort()
            counts = np.diff(_starts(rows, storage))
        return _spectrum(counts, counts)

    def sizes(self) -> Ints:
        return self._sorted.sizes()

    def numbers(self) -> Ints:
        return self._sorted.numbers()


def _spectrum(cell_sizes: Ints, records: Ints) -> Spectrum:
    """Return how many records lie in cells of each size, from the size and records of each cell."""
    by_size: Counter[int] = Counter()
    for some in parts(len(cell_sizes)):
        sizes, counts = cell_sizes[some], records[some]
        small = sizes < SMALL  # most are, and those are quickly counted
        summed = np.bincount(sizes[small], weights=counts[small])
        by_size.update({size: int(summed[size]) for size in np.flatnonzero(summed).tolist()})
        large, which = np.unique(sizes[~small], return_inverse=True)
        summed = np.bincount(which, weights=counts[~small], minlength=len(large))
        by_size.update(dict(zip(large.tolist(), map(int, summed), strict=True)))
    ordered = sorted(by_size)
    return Spectrum(len(cell_sizes), tuple(ordered), tuple(by_size[size] for size in ordered))


def _complete(
    rows: Words, tags: Tags, columns: Sequence[Codes], storage: Storage
) -> tuple[Words, Tags]:
    """Keep the records of which nothing is missing, moved together in place."""
    left = 0
    for some in parts(len(rows)):
        absent = np.zeros(some.stop - some.start, dtype=np.bool_)
        for column in columns:
            if column.has_missing:
                absent |= column.values[some] == column.size - 1
        whole = np.flatnonzero(~absent)
        rows[left : left + len(whole)] = rows[some][whole]
        tags[left : left + len(whole)] = tags[some][whole]
        left += len(whole)
    return copied(rows[:left], storage), copied(tags[:left], storage)


def sort_as_words(
    rows: Words, tags: Tags, plan: Layout, sort: Callable[[Words], None] = np.ndarray.sort
) -> bool:
    """Sort rows and tags, in place, as words with the tag lowest; tell whether these fit."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words > 1 or int(plan.bits.sum()) + tag_bits > 64:
        return False
    words, low = rows[:, 0], np.uint64((1 << tag_bits) - 1)
    for some in parts(len(rows)):
        words[some] = words[some] << np.uint64(tag_bits) | tags[some].astype(np.uint64)
    sort(words)
    for some in parts(len(rows)):
        tags[some] = words[some] & low
        words[some] >>= np.uint64(tag_bits)
    return True


def _sorted(rows: Words, tags: Tags, plan: Layout, storage: Storage) -> tuple[Words, Tags]:
    """Sort rows and tags; in NumPy alone where rows fit one word."""
    if sort_as_words(rows, tags, plan):
        return rows, tags
    if plan.words == 1 and storage is MEMORY:
        order = np.argsort(rows[:, 0])
        return rows[order], tags[order]
    from keyhole.engines.partition import sort

    whole = np.array([0, len(rows)], dtype=np.int64)
    sort(rows, tags, whole, plan, range(len(plan.bits)), storage=storage)
    return rows, tags


def _starts(rows: Words, storage: Storage) -> Ints:
    """Return where each cell of sorted rows starts, and at the end the number of rows."""
    out = storage.empty(len(rows) + 1, np.int64)
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


Progress = Callable[[int, int], None]

POLL_SECONDS = 0.2
# What a record takes, about, until its score and its level are known.
RECORD_BYTES = 64


def minimal_uniques(
    columns: Sequence[Codes],
    max_size: int,
    progress: Progress | None = None,
    storage: Storage = MEMORY,
) -> tuple[Ints, Words]:
    """Find the minimal uniques of every record.

    Returns the record and the mask of variables (bit j is column j) of each. The storage refuses a
    search that needs too much memory; `progress` hears of the sets visited and of all there may be.
    """
    cells = RecordCells(columns, "own", storage)
    # About what a search takes: patterns, their order by size of set, and bits by set.
    patterns, widest = len(cells.counts), max(c.values.dtype.itemsize for c in columns)
    sets = sum(math.comb(len(columns), k) for k in range(max_size))
    size = patterns * (2 * widest * len(columns) + 40) + sets * patterns // 8
    words = layout([*(c.size for c in columns), 2]).words
    size += patterns * (words + WORKERS * max_size * (words + 1)) * 8
    size += len(columns[0].values) * RECORD_BYTES
    storage.require(size, "the search for minimal uniques")
    first: Ints = cells.tags[cells.starts[:-1]].astype(np.int64)  # a record of each cell
    # Wide variables in the high bits: they come first in a set and leave small cells to the rest.
    places = sorted(range(len(columns)), key=lambda v: columns[v].size)
    ordered = [columns[v] for v in places]
    codes = np.column_stack([c.values[first] for c in ordered])
    missing = np.array([c.size - 1 if c.has_missing else -1 for c in ordered])
    flags = np.zeros((len(ordered), -(-len(codes) // 64) * 64), dtype=np.bool_)
    flags[:, : len(codes)] = (codes != missing).T
    known = np.packbits(flags, axis=1, bitorder="little").view(np.uint64)
    sizes = np.array([c.size for c in ordered])
    binomials = np.array(
        [[math.comb(n, k) for k in range(max_size + 2)] for n in range(len(columns) + 1)]
    )
    most = int(binomials[-1, 1 : max_size + 1].sum())
    plan = layout([*sizes.tolist(), 2])
    rows = pack([*codes.T, (cells.counts == 1).astype(np.uint8)], plan)
    fields = np.column_stack([plan.word, plan.shift, plan.bits])
    arguments = (rows, fields, missing, sizes, known, max_size, binomials)
    owner, mask = _watched(arguments, sets, most, progress)
    moved = np.zeros_like(mask)
    for bit, place in enumerate(places):
        moved |= ((mask >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
    return first[owner].astype(np.int64), moved


def _watched(
    arguments: tuple[Any, ...], sets: int, most: int, progress: Progress | None
) -> tuple[npt.NDArray[np.int32], Words]:
    """Run the kernel on a thread, tell of its progress, and stop it when interrupted."""
    from keyhole.kernels.minimal import drop_larger, find_minimal

    patterns, variables, (max_size, binomials) = (*map(len, arguments[0:3:2]), arguments[-2:])
    unique, home = np.zeros((sets, -(-patterns // 64)), np.uint64), np.zeros(sets, np.bool_)
    home[0] = True  # of the empty set: nobody is alone
    watch = np.zeros(variables + 1, dtype=np.int64)

    def branch(v: int) -> tuple[npt.NDArray[np.int32], Words]:
        owner, mask = find_minimal(*arguments, v, unique, home, watch)
        return owner, mask

    def work() -> list[tuple[npt.NDArray[np.int32], Words]]:
        # The last has most sets, and so comes first; results are in the order of the masks.
        return in_threads(branch, range(variables)[::-1], patterns * sets)[::-1]

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        try:
            while progress is not None and not running.done():
                progress(int(watch[:-1].sum()), most)
                time.sleep(POLL_SECONDS)
            found = running.result()
        except BaseException:
            watch[-1] = 1
            raise
    owner, mask = map(np.concatenate, zip(*found, strict=True))
    left = drop_larger(owner, mask, binomials, max_size, unique, home)
    return owner[:left], mask[:left]
