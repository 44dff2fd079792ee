"""Linked tables: the cells that tables of one file share, and the sums that bind all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.cells import Axis, CrossTable

# Programs over blocks of so many cells are solved fast.
BLOCK = 360


def relations(sums: Sequence[Ints], size: int) -> Any:
    """Return sums as a sparse matrix, one row a sum: its parts less its total is nothing."""
    from scipy.sparse import csc_array

    lengths = np.array([len(cells) for cells in sums], dtype=np.int64)
    signs, column = np.ones(lengths.sum()), np.concatenate([*sums, np.zeros(0, np.int64)])
    signs[np.cumsum(lengths) - 1] = -1.0
    row = np.repeat(np.arange(len(sums)), lengths)
    return csc_array((signs, (row, column)), shape=(len(sums), size))


@dataclass(frozen=True, eq=False)
class Linked:
    """One or more tables of a file, as one collection of cells.

    `places` has for each table the joint number of each of its cells. Cells of two tables are one
    if they are of the same categories, or hold the same records. There are `size` cells in all.
    """

    tables: tuple[CrossTable, ...]
    places: tuple[Ints, ...]
    size: int

    @classmethod
    def of(cls, tables: Sequence[CrossTable]) -> Linked:
        """Find the cells that tables share."""
        places, size = [], 0
        by_name: dict[Any, int] = {}
        by_records: dict[Any, int] = {}
        for number, table in enumerate(tables):
            found = np.arange(size, size + len(table.values), dtype=np.int64)
            if len(tables) > 1:
                taken: set[int] = set()
                names = [*_descriptions(table)]
                records = [(table.magnitude, table.weight, mark) for mark in _marks(table)]
                for cell, (name, mark) in enumerate(zip(names, records, strict=True)):
                    same = by_name.get(name, by_records.get(mark) if table.counts[cell] else None)
                    if number and same is not None and same not in taken:
                        found[cell] = same
                        taken.add(same)
                fresh = found >= size
                found[fresh] = size + np.arange(fresh.sum())
                for name, mark, place in zip(names, records, found.tolist(), strict=True):
                    by_name.setdefault(name, place)
                    by_records.setdefault(mark, place)
            size = max(size, int(found.max()) + 1)
            places.append(found)
        return cls(tuple(tables), tuple(places), size)

    def joined(self, parts: Iterable[Any]) -> Any:
        """Return one figure for each joint cell: the largest that any table has for it."""
        parts = [np.asarray(part) for part in parts]
        found = np.zeros(self.size, dtype=parts[0].dtype)
        for place, part in zip(self.places, parts, strict=True):
            found[place] = np.maximum(found[place], part)
        return found

    @cached_property
    def values(self) -> Floats:
        """The value of each joint cell."""
        return np.asarray(self.joined(table.values for table in self.tables))

    @cached_property
    def counts(self) -> Ints:
        """The records that contribute to each joint cell."""
        return np.asarray(self.joined(table.counts for table in self.tables))

    @cached_property
    def marks(self) -> Ints:
        """What the same records have the same of."""
        return np.asarray(self.joined(_marks(table) for table in self.tables))

    @cached_property
    def sums(self) -> list[Ints]:
        """The cells of each sum of each table, its total last."""
        pairs = zip(self.tables, self.places, strict=True)
        return [place[cells] for table, place in pairs for cells in table.sums]

    @cached_property
    def matrix(self) -> Any:
        """The sums as a sparse matrix."""
        return relations(self.sums, self.size)

    @property
    def network(self) -> tuple[int, int] | None:
        """The shape of a plain table of two variables, which is a network."""
        table = self.tables[0]
        plain = len(self.tables) == 1 and len(table.shape) == 2 and table.is_plain
        return (table.shape[0], table.shape[1]) if plain else None

    def blocks(self) -> list[Ints]:
        """Return cells that can balance each other, in blocks that cover all cells.

        A block has some categories of the longest axis that follow each other, all that is above
        them, and every category of the other axes.
        """
        axes = [axis for table in self.tables for axis in table.axes]
        longest = max(axes, key=lambda axis: int(axis.is_leaf.sum()))
        most = max(4, BLOCK * int(longest.is_leaf.sum()) // self.size)
        found = []
        for leaves in _runs(longest, most):
            above = {path[:depth] for path in leaves for depth in range(len(path) + 1)}
            cells = [
                place[_within(table, longest, above)]
                for table, place in zip(self.tables, self.places, strict=True)
            ]
            found.append(np.unique(np.concatenate(cells)))
        return found


def _marks(table: CrossTable) -> Ints:
    return np.zeros(len(table.values), dtype=np.int64) if table.marks is None else table.marks


def _descriptions(table: CrossTable) -> Iterable[Any]:
    named = [
        [frozenset(axis.named(place).items()) for place in range(len(axis.paths))]
        for axis in table.axes
    ]
    measure = table.magnitude, table.weight
    for places in table.places:
        parts = [nodes[place] for nodes, place in zip(named, places, strict=True)]
        yield measure, frozenset().union(*parts)


def _runs(axis: Axis, most: int) -> list[list[tuple[Any, ...]]]:
    """Return leaves that follow each other: small families together, large ones in parts."""
    runs: list[list[tuple[Any, ...]]] = []
    current: list[tuple[Any, ...]] = []
    families = [
        [axis.paths[place] for place in family[:-1] if axis.is_leaf[place]]
        for family in axis.families
    ]
    for family in sorted(filter(None, families), key=lambda paths: axis.paths.index(paths[0])):
        if current and len(current) + len(family) > most:
            runs.append(current)
            current = []
        for part in np.array_split(np.arange(len(family)), -(-len(family) // most)):
            if current and len(current) + len(part) > most:
                runs.append(current)
                current = []
            current = current + [family[i] for i in part]
    return [*runs, current] if current else runs


def _within(table: CrossTable, longest: Axis, above: set[tuple[Any, ...]]) -> Flags:
    """Tell which cells of a table a block has, by the paths it has on the longest axis."""
    found = np.ones(table.shape, dtype=bool)
    for number, axis in enumerate(table.axes):
        shared = min(len(axis.names), len(longest.names))
        if axis.names[:shared] == longest.names[:shared] and axis.listed == longest.listed:
            there = np.array([path in above for path in axis.paths])
            found &= there.reshape([-1 if i == number else 1 for i in range(found.ndim)])
    return found.ravel()
