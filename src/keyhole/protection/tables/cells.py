"""Frequency and magnitude tables with all their margins, and which of their cells are unsafe."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.utility.figures import ValueLabels, cell_label, value_labels


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """The categories of a variable, or of several nested ones, as a tree.

    `names` are the variables, the coarsest first. Each node has a `path` from the root, whose own
    is empty. Children come before their parent and the root, the total, is last; `parents` are
    the places of the parents. With a code list (`listed`) one variable has categories at every
    depth, and the last part of a path is the category.
    """

    names: tuple[str, ...]
    paths: tuple[tuple[Any, ...], ...]
    parents: Ints
    listed: bool = False

    @classmethod
    def of(
        cls, names: tuple[str, ...], leaves: Sequence[tuple[Any, ...]], listed: bool = False
    ) -> Axis:
        """Make the tree of these leaves; those of one parent follow each other."""
        paths: list[tuple[Any, ...]] = []
        open_: tuple[Any, ...] = ()
        for leaf in (*leaves, ()):
            while open_ and open_ != leaf[: len(open_)]:
                paths.append(open_)
                open_ = open_[:-1]
            open_ = leaf
        paths.append(())
        place = {path: i for i, path in enumerate(paths)}
        parents = np.array([place[path[:-1]] for path in paths], dtype=np.int64)
        return cls(names, tuple(paths), parents, listed)

    @cached_property
    def families(self) -> list[Ints]:
        """The children of each parent, and then itself."""
        order = np.argsort(self.parents[:-1], kind="stable")
        parents, starts = np.unique(self.parents[:-1][order], return_index=True)
        parts = np.split(order, starts[1:])
        return [np.append(part, parent) for part, parent in zip(parts, parents, strict=True)]

    @cached_property
    def is_leaf(self) -> Flags:
        """Which nodes have no children; of an empty table the root has none and is no leaf."""
        found = np.ones(len(self.paths), dtype=bool)
        found[self.parents] = False
        return found

    def ancestors(self, leaves: Ints) -> Iterator[Ints]:
        """Give the nodes above leaves, one depth after the other; -1 beyond the root."""
        root, at = len(self.paths) - 1, leaves
        while (at >= 0).any():
            yield at
            at = np.where((at < 0) | (at == root), -1, self.parents[at])

    def named(self, place: int) -> dict[str, Any]:
        """Return the category of each variable that a node has one of."""
        path = self.paths[place]
        return dict(zip(self.names, path[-1:] if self.listed else path, strict=False))

    def added_up(self, place: int) -> tuple[str, ...]:
        """Return the variables that a node is a total over."""
        if self.listed:
            return () if self.is_leaf[place] else self.names
        return self.names[len(self.paths[place]) :]


def label_cells(
    names: Sequence[str], cells: Sequence[Mapping[str, Any]], labels: ValueLabels
) -> Iterator[tuple[str, ...]]:
    """Write cells as text, one for each variable; what a cell has none of is its total."""
    held = []
    for name in names:
        levels, own = {cell[name] for cell in cells if name in cell}, labels.get(name, {})
        texts = {v: own.get(cell_label(v), str(v)) for v in levels if v is not None}
        taken = set(texts.values())
        total, missing = (f"({x})" if x in taken else x for x in ("Total", "missing"))
        held.append((name, total, {**texts, None: missing}))
    for cell in cells:
        yield tuple(texts[cell[name]] if name in cell else total for name, total, texts in held)


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable:
    """A table and its margins; cells are numbered in the order of `shape`, totals last.

    `values` are records, the people they stand for, or amounts; `counts` the records that
    contribute to each cell, and `largest` the largest contributions, from the largest on (0 where
    there are none). `least` is the least that a cell with a record in it can hold: 1 of a count,
    the smallest weight of a weighted one, 0 of an amount. Whoever sees that a cell is not empty
    knows it. `keys` are the sums of the record keys of each cell, if the records have any, and
    `marks` those of random marks: cells with equal marks have the same records. `leaves` are the
    places of each record.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    axes: tuple[Axis, ...]
    values: Floats
    counts: Ints
    largest: Floats
    magnitude: str | None = None
    weight: str | None = None
    least: float = 0.0
    keys: Ints | None = None
    marks: Any = None
    leaves: tuple[Ints, ...] = ()
    labels: ValueLabels = field(default_factory=dict)

    @property
    def named(self) -> tuple[str, ...]:
        """The variables in the order of the axes."""
        return tuple(name for axis in self.axes for name in axis.names)

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """The categories that each cell has; a total has none of the variables it adds up."""
        nodes = [[axis.named(at) for at in range(len(axis.paths))] for axis in self.axes]
        return [
            {name: level for one in parts for name, level in one.items()}
            for parts in itertools.product(*nodes)
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes of each axis: of a plain variable its categories and the total."""
        return tuple(len(axis.paths) for axis in self.axes)

    @property
    def is_plain(self) -> bool:
        """Whether no variable has subtotals."""
        return all(len(axis.families) <= 1 for axis in self.axes)

    @property
    def is_count(self) -> bool:
        """Whether cells hold numbers of records."""
        return self.magnitude is None and self.weight is None

    @cached_property
    def places(self) -> Ints:
        """One row a cell: the place of its node on each axis; the last is the total."""
        return np.stack(np.unravel_index(np.arange(len(self.values)), self.shape), axis=1)

    @cached_property
    def margin(self) -> Flags:
        """Which cells are totals over some variable."""
        leaves = [axis.is_leaf[place] for axis, place in zip(self.axes, self.places.T, strict=True)]
        return np.asarray(~np.logical_and.reduce(leaves))

    @cached_property
    def sums(self) -> list[Ints]:
        """The cells of each sum, its total last."""
        return addends(self.shape, [axis.families for axis in self.axes])

    def add_up(self, values: Floats) -> Floats:
        """Return values with each margin the sum of its inner cells."""
        grid = np.where(self.margin, 0.0, values).reshape(self.shape)
        for place, axis in enumerate(self.axes):
            parts = np.moveaxis(grid, place, 0)
            for *children, parent in axis.families:
                parts[parent] = parts[children].sum(axis=0)
        return np.asarray(grid.ravel())


def addends(shape: tuple[int, ...], families: Sequence[list[Ints]] | None = None) -> list[Ints]:
    """Return the cells of each sum, its total last: of a plain table, or of one with families."""
    cells = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    found: list[Ints] = []
    for axis, size in enumerate(shape):
        along = np.moveaxis(cells, axis, -1).reshape(-1, size)
        for family in [np.arange(size)] if families is None else families[axis]:
            found += list(along[:, family])
    return found


def cross(
    data: Microdata,
    *,
    rows: tuple[str, ...],
    cols: tuple[str, ...] = (),
    axes: Sequence[tuple[Axis, Ints]] | None = None,
    contributions: Floats | None = None,
    weights: Floats | None = None,
    magnitude: str | None = None,
    weight: str | None = None,
    deepest: int = 2,
    keys: Ints | None = None,
) -> CrossTable:
    """Cross records by rows and columns, and add all margins.

    `axes` are trees with the leaf of each record; by default every variable has its own. A record
    contributes its amount times its weight; where that is missing, or the weight 0, to no cell.
    `deepest` says how many of the largest contributions to keep for each cell. `keys` are record
    keys to be added up in each cell.
    """
    axes = [plain_axis(data, name) for name in (*rows, *cols)] if axes is None else axes
    amounts = np.ones(data.records) if contributions is None else contributions
    parts = amounts if weights is None else amounts * weights
    counted = ~np.isnan(parts) & (True if weights is None else weights > 0)
    marks = np.random.default_rng(1).integers(0, 1 << 62, data.records, dtype=np.int64)
    parts, added = parts[counted], [one[counted] for one in (marks, keys) if one is not None]
    shape = tuple(len(axis.paths) for axis, _ in axes)
    size = prod(shape)
    values, counts, largest = np.zeros(size), np.zeros(size, np.int64), np.zeros((size, deepest))
    sums = [np.zeros(size, dtype=np.int64) for _ in added]
    by_size = np.argsort(-parts, kind="stable")
    for where in itertools.product(*(axis.ancestors(leaves[counted]) for axis, leaves in axes)):
        there = np.logical_and.reduce([place >= 0 for place in where])
        held = by_size[there[by_size]]
        cells = np.ravel_multi_index([place[held] for place in where], shape)
        values += np.bincount(cells, parts[held], size)
        counts += np.bincount(cells, minlength=size)
        for total, key in zip(sums, added, strict=True):
            np.add.at(total, cells, key[held])
        # By cell, in each from the largest on.
        order = np.argsort(cells, kind="stable")
        rank = np.arange(len(cells)) - np.searchsorted(cells[order], cells[order])
        first = rank < deepest
        largest[cells[order][first], rank[first]] = parts[held[order]][first]
    least = float(parts.min()) if contributions is None and len(parts) else 0.0
    return CrossTable(
        rows, cols, tuple(axis for axis, _ in axes), values, counts, largest, magnitude, weight,
        least, None if keys is None else sums[1], sums[0], tuple(leaves for _, leaves in axes),
        value_labels([data], (name for axis, _ in axes for name in axis.names)),
    )  # fmt: skip


def plain_axis(data: Microdata, name: str) -> tuple[Axis, Ints]:
    """Return the categories of a variable, missing the last, and that of each record."""
    codes = data.codes(name)
    levels = (*codes.levels.to_list(), *([None] if codes.has_missing else []))
    # Not by `of`: different levels may be equal in Python, as times that differ by nanoseconds are.
    paths = (*((level,) for level in levels), ())
    root = np.full(len(paths), len(levels), dtype=np.int64)
    return Axis((name,), paths, root), codes.values.astype(np.int64)


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
                measure = table.magnitude, table.weight
                names = [(measure, frozenset(cell.items())) for cell in table.cells]
                records = [(measure, mark) for mark in table.marks]
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
        return np.asarray(self.joined(table.marks for table in self.tables))

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
        """Return cells that can balance each other, in blocks that cover all cells."""
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


@dataclass(frozen=True, slots=True)
class SensitivityRules:
    """What makes a cell unsafe.

    Fewer contributors than `threshold` are too few; 1 asks for none. With `dominance` (n, k) the n
    largest must not have more than k percent of the cell; with `p_percent` the second largest must
    not be able to estimate the largest within p percent. `range_percent` is how far from the value
    of a cell with too few contributors an outsider's interval must reach in tables of amounts and
    of weighted counts, and `sliding_percent` how wide it must be in all, for any unsafe cell; both
    in percent of the value.
    """

    threshold: int = 3
    dominance: tuple[int, float] | None = None
    p_percent: float | None = None
    range_percent: float = 30.0
    sliding_percent: float = 0.0

    @property
    def deepest(self) -> int:
        """How many of the largest contributions the rules look at."""
        return max(2, self.dominance[0] if self.dominance else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Unsafe:
    """The unsafe cells, by rule, and the levels of protection they need (0 for others)."""

    by_rule: Mapping[str, Flags]
    lower: Floats
    upper: Floats
    sliding: Floats

    @property
    def cells(self) -> Flags:
        """The cells that are unsafe by any rule."""
        return np.asarray(np.logical_or.reduce(list(self.by_rule.values())))


def find_unsafe(
    table: CrossTable, rules: SensitivityRules, *, hidden_zeros: bool = False
) -> Unsafe:
    r"""Find the unsafe cells of a table.

    Notes
    -----
    With :math:`x_1 \ge x_2 \ge \dots` the contributions to a cell and T its value:

    - threshold: :math:`0 < f < t`. A small *count* needs an interval from 1 to t, or from 0 if
      empty cells may be hidden; an amount, or a weighted count, one that reaches r percent of it
      on both sides.
    - dominance: :math:`x_1 + \dots + x_n > \frac{k}{100} T`, to be protected by
      :math:`\frac{100}{k} (x_1 + \dots + x_n) - T`.
    - p percent: :math:`T - x_1 - x_2 < \frac{p}{100} x_1`, to be protected by
      :math:`\frac{p}{100} x_1 - (T - x_1 - x_2)`.

    Nothing can be below 0, and what is seen not to be empty not below the least that one record
    has in each of its inner cells, so that no more than what is above that is asked for below a
    value.

    Examples
    --------
    >>> axis = Axis.of(("area",), [(1,), (2,)])
    >>> table = CrossTable(("area",), (), (axis,), np.array([100.0, 50.0, 150.0]),
    ...     np.array([3, 9, 12]), np.array([[90.0, 6.0], [10.0, 8.0], [90.0, 10.0]]))
    >>> unsafe = find_unsafe(table, SensitivityRules(p_percent=10))
    >>> unsafe.cells.tolist(), unsafe.upper.tolist()
    ([True, False, False], [5.0, 0.0, 0.0])
    """
    values = table.values
    few: Flags = (table.counts > 0) & (table.counts < rules.threshold)
    if table.is_count:
        lower, upper = np.where(few, values, 0.0), np.where(few, rules.threshold - values, 0.0)
    else:
        positive = values[values > 0]
        # That a contributor has nothing is to be hidden too: it needs the room of the smallest.
        smallest = positive.min() if len(positive) else 1.0
        needed = np.maximum(values, smallest) * rules.range_percent / 100
        lower = upper = np.where(few, needed, 0.0)
    by_rule = {"threshold": few}
    shares = dict.fromkeys(("dominance", "p percent"), np.zeros(len(values)))
    if rules.dominance is not None:
        n, k = rules.dominance
        shares["dominance"] = table.largest[:, :n].sum(axis=1) * 100 / k - values
    if rules.p_percent is not None:
        first, second = table.largest[:, 0], table.largest[:, 1]
        rest = np.maximum(values - first - second, 0.0)
        shares["p percent"] = first * rules.p_percent / 100 - rest
    for name, level in shares.items():
        by_rule[name] = level > 1e-9 * values
        needed = np.where(by_rule[name], level, 0.0)
        upper, lower = np.maximum(upper, needed), np.maximum(lower, needed)
    unsafe = np.logical_or.reduce(list(by_rule.values()))
    width = np.where(unsafe, table.values * rules.sliding_percent / 100, 0.0)
    # The least that each cell can hold, as whoever sees which cells are empty knows.
    least = 0.0 if hidden_zeros else table.add_up(np.where(table.counts > 0, table.least, 0.0))
    return Unsafe(by_rule, np.clip(table.values - least, 0.0, lower), upper, width)
