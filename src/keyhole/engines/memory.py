"""The memory engine: packed records in RAM, counted by the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.protocol import Missing, Spectrum, Tally
from keyhole.engines.rooms import MEMORY, Room, copied
from keyhole.engines.sorted_cells import SortedCells
from keyhole.engines.threads import WORKERS
from keyhole.kernels.arrays import Ints
from keyhole.kernels.packing import layout, pack

if TYPE_CHECKING:
    from keyhole.engines.partition import Partition, Patterns
    from keyhole.engines.pattern_table import PatternTable

__all__ = ["MemoryEngine", "RecordCells"]


class MemoryEngine:
    """Counts cells of encoded columns held in memory.

    Parameters
    ----------
    columns
        The encoded columns by name; all of the same length.
    room
        Where arrays with a value a record are made; the disk engine has them in mapped files.

    Notes
    -----
    The distinct patterns of all the columns are made once. A key that grows step by step
    refines the last partition; one that shrinks merges the last patterns.
    """

    name = "memory"

    def __init__(self, columns: Mapping[str, Codes], *, room: Room = MEMORY) -> None:
        self._room = room
        self._names = tuple(columns)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._columns = tuple(columns.values())
        self._sizes = np.array([c.size for c in self._columns], dtype=np.int64)
        self._plan = layout(self._sizes.tolist())
        self._base: Patterns | None = None
        self._partition: tuple[int, Partition] | None = None
        self._shrunk: Patterns | None = None

    @property
    def room(self) -> Room:
        """Where arrays with a value a record are made."""
        return self._room

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
        from keyhole.engines.partition import Partition

        base = self._patterns()
        rows, weights = copied(base.rows, self._room), copied(base.weights, self._room)
        out = Partition(rows, weights, self._plan, cutoff, workers, self._room)
        if keys:
            out.refine(self.numbers(keys))
        return out

    def _patterns(self) -> Patterns:
        if self._base is None:
            from keyhole.engines.partition import Patterns

            rows = self._room.empty((self.records, self._plan.words), np.uint64)
            pack([c.values for c in self._columns], self._plan, rows)
            ones = self._room.empty(self.records, np.int32)
            ones[:] = 1
            everything = frozenset(range(len(self._names)))
            self._base = Patterns.of(rows, ones, self._plan, everything, self._room)
        return self._base

    def _refined(self, keys: Sequence[int], cutoff: int) -> Partition:
        held = self._partition
        if held is None or held[0] != cutoff or not held[1].variables <= set(keys):
            held = (cutoff, self.partition((), cutoff=cutoff, workers=WORKERS))
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

    def measure(self, keys: Sequence[str], *, missing: Missing = "own") -> RecordCells:
        """Sort the records into the cells of a key."""
        columns = [self._columns[v] for v in self.numbers(keys)]
        return RecordCells(SortedCells(columns, drop=missing == "drop", room=self._room), missing)

    def cell_sizes(self, keys: Sequence[str], *, missing: Missing = "own") -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        return self.measure(keys, missing=missing).sizes()

    def cells(self, keys: Sequence[str], *, missing: Missing = "own") -> tuple[Ints, Ints]:
        """Return for each record the size of its cell and a number of the cell (-1: left out).

        Under `wildcard` the size counts every record that agrees wherever both are known,
        and the number is that of the record's own pattern.
        """
        found = self.measure(keys, missing=missing)
        return found.sizes(), found.numbers()

    def patterns(self, keys: Sequence[str]) -> PatternTable:
        """Return the distinct patterns of a key, each with the number of its records."""
        from keyhole.engines.pattern_table import PatternTable

        held = self._merged(frozenset(self.numbers(keys)))
        places = dict(zip(keys, self.numbers(keys), strict=True))
        self._room.require(len(held.weights) * 8 * (len(keys) + 14), "working on all patterns")
        return PatternTable(held, places)

    def matched(self, keys: Sequence[str], amounts: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Return for each record the sum of the amounts of all that match it as wildcards."""
        sorted_cells = SortedCells([self._columns[v] for v in self.numbers(keys)], drop=False)
        sums = np.bincount(sorted_cells.numbers(), weights=amounts)
        return sorted_cells.spread(sorted_cells.match(sums), 0.0)


class RecordCells:
    """The cells of one key, from records sorted into them."""

    def __init__(self, cells: SortedCells, missing: Missing) -> None:
        self._cells = cells
        self._sizes = cells.counts if missing != "wildcard" else cells.match(cells.counts)

    @property
    def spectrum(self) -> Spectrum:
        """The records by the size of their cells."""
        return self._cells.spectrum(self._sizes)

    def sizes(self) -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        return self._cells.spread(self._sizes, 0)

    def numbers(self) -> Ints:
        """Return for each record a number of its cell; -1 where it was left out."""
        return self._cells.numbers()
