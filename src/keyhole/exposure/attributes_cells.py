"""Cells and their values of sensitive columns: what each cell of a key tells, and which levels do.

Rows are in the order of their cells: records, or where those are on Spark the distinct patterns of
the key and the column, each with its number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.core.codec import Figures
from keyhole.core.marks import COUNT, WHEN_SET, Share
from keyhole.core.tables import Table
from keyhole.engines import MemoryEngine, Records
from keyhole.engines.choose import backend_of, engine_of, local_engine
from keyhole.engines.resources import in_threads
from keyhole.exposure.regrouping import MISSING, level_labels
from keyhole.kernels.arrays import Array, Floats, Ints, Numbers, Words
from keyhole.results import share

LEVELS_SHOWN = 10
DRAWN = (
    "CAP: the chance that a value drawn at random from the cell is correct; base rate: the same "
    "for a value drawn from the whole file."
)


@dataclass(frozen=True, slots=True)
class TellingLevel(Figures):
    """A level of a key, by its place, and how many of its records lie in homogeneous cells."""

    column: str
    level: str
    records: Annotated[int, COUNT]
    homogeneous: Annotated[int, COUNT]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldColumn(Figures):
    """What the cells of a key tell of one sensitive column for certain.

    `homogeneous` is the share of records in cells with one value, `hidden_by_rp` how many of them
    lie in cells of the cutoff or more, which RP does not count; `uncommon_records` are homogeneous
    with another value than the most frequent of the file, which anybody would guess. `base_rate`
    is the chance that a value drawn at random from the whole file is right. `levels`
    of the key have the most of those hidden by RP.
    """

    homogeneous: Annotated[float, Share("records")]
    homogeneous_records: Annotated[int, COUNT]
    homogeneous_cells: int
    uncommon_records: Annotated[int, COUNT]
    hidden_by_rp: Annotated[int, COUNT]
    base_rate: float
    levels: Annotated[tuple[TellingLevel, ...], WHEN_SET] = ()

    @property
    def disclosed(self) -> float:
        """The homogeneous share; 0 for a column with one value, which tells nothing."""
        return self.homogeneous if self.base_rate < 1 else 0.0


class CellValues(NamedTuple):
    """Where cells start, a column's codes in their order, and the records of each row.

    `words` gives the words that the codes are in, and their shift and bits; `kinds` is the number
    of codes, `ordered` how many of them, from 0 on, are in order. Without `held` each row is one
    record.
    """

    starts: Ints
    words: Callable[[], tuple[Words, Ints]]
    kinds: int
    ordered: int
    held: Numbers = np.empty(0, dtype=np.int32)


class LearntCells(NamedTuple):
    """What cells tell of a column: see `learn_by_cell`.

    `total` has the records of each code; `alone` by cell its one value, -1 if it has several;
    `same` by code the records and the cells with no other value, and the records in large ones.
    `furthest` is None if no cell has a distance to the file; `right` is the sum of squared counts
    over the size; `short` has by limit the records and the cells that fall short of it.
    """

    total: Ints
    alone: Numbers
    same: Ints
    distinct: int
    entropy: float
    furthest: float | None
    gain: float
    right: float
    short: list[tuple[int, int]]


NO_LIMITS = (1.0, 0.0, np.inf, np.inf, np.inf)


def as_words(codes: Array, rows: Numbers | None = None) -> tuple[Words, Ints]:
    """Return codes, perhaps of some rows, as words that hold nothing else."""
    chosen = codes if rows is None else np.take(codes, rows)
    return chosen.astype(np.uint64), np.array([0, 63])


def learn(
    columns: Sequence[CellValues], limits: Sequence[float] = NO_LIMITS, cutoff: int = 1
) -> list[LearntCells]:
    """Find what cells tell of columns, on threads that share columns and cells.

    Cells of the cutoff or more are large.
    """
    from keyhole.engines.partition import spans
    from keyhole.kernels.attributes import count_values, learn_by_cell

    def begin(one: CellValues) -> tuple[tuple[Words, Ints], Ints, Numbers]:
        words = one.words()
        total = count_values(*words, one.held, one.kinds)
        return words, total, np.empty(len(one.starts) - 1, np.int32)

    def fill(task: tuple[int, Ints]) -> tuple[Floats, Ints, Ints]:
        one, (words, total, alone) = columns[task[0]], begun[task[0]]
        given = (one.starts, *words, one.held, task[1], total, one.ordered, asked, cutoff, alone)
        figures, short, same = learn_by_cell(*given)
        return figures, short, same

    def joined(number: int) -> LearntCells:
        found = [one for (i, _), one in zip(tasks, filled, strict=True) if i == number]
        figures, short, same = map(np.array, zip(*found, strict=True))
        (distinct, entropy), (far, gain) = figures[:, :2].min(axis=0), figures[:, 2:4].max(axis=0)
        return LearntCells(
            *begun[number][1:],
            same=same.sum(axis=0),
            distinct=int(distinct),
            entropy=float(entropy),
            furthest=float(far) if far >= 0 else None,
            gain=float(gain),
            right=float(figures[:, 4].sum()),
            short=[(r, c) for r, c in short.sum(axis=0).T.tolist()],
        )

    asked = np.array(limits, dtype=np.float64)
    rows = sum(int(one.starts[-1]) for one in columns)
    begun = in_threads(begin, columns, rows)
    tasks = [(i, some) for i, one in enumerate(columns) for some in spans(one.starts)]
    filled = in_threads(fill, tasks, rows)
    return [joined(number) for number in range(len(columns))]


class AttributeCells:
    """The cells of a key in order, with the values of sensitive columns in them."""

    def __init__(
        self,
        data: Records,
        keys: Sequence[str],
        beside: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        """Sort records into cells; without records here, patterns of the key and one column."""
        self.data, self.keys = data, tuple(keys)
        self._codes: Callable[[str], Array]
        self._sorted: Mapping[str, tuple[Words, Ints]] = {}
        self.held = CellValues._field_defaults["held"]
        if name is None:
            self.starts, self._rows, self._sorted = local_engine(data, (*keys, *beside)).by_cell(
                keys, beside
            )
            self._codes = lambda name: data.codes(name).values
        else:
            table = engine_of(data, (*keys, name)).patterns((*keys, name))
            numbers = table.numbers(keys)
            order = np.argsort(numbers, kind="stable").astype(np.int32)
            self._rows = lambda: order
            counts = np.bincount(numbers)
            self.starts = np.concatenate(([0], np.cumsum(counts)))
            self.held = table.records[order].astype(np.int32)
            self._codes = table.codes

    @classmethod
    def by_column(
        cls, data: Records, keys: Sequence[str], names: Iterable[str]
    ) -> dict[str, AttributeCells]:
        """Return the cells in which each sensitive column is counted."""
        if not backend_of(data).is_here:
            return {name: cls(data, keys, name=name) for name in names}
        return dict.fromkeys(names, cls(data, keys, tuple(names)))

    @cached_property
    def rows(self) -> Numbers:
        """The records in the order of their cells."""
        return self._rows()

    @cached_property
    def sizes(self) -> Ints:
        """The records of each cell."""
        if not len(self.held):
            return np.diff(self.starts).astype(np.int64, copy=False)
        return np.add.reduceat(self.held, self.starts[:-1], dtype=np.int64)

    @cached_property
    def key_codes(self) -> Numbers:
        """The code of each cell in each key, a row a key."""
        first = self.starts[:-1]
        out = np.empty((len(self.keys), len(first)), dtype=np.int32)
        if self._sorted:  # all in the same words
            words = self._sorted[self.keys[0]][0][first]
        for k, name in enumerate(self.keys):
            if self._sorted:
                shift, bits = self._sorted[name][1]
                out[k] = words >> np.uint64(shift) & np.uint64((1 << bits) - 1)
            else:
                out[k] = self._codes(name)[self.rows[first]]
        return out

    @cached_property
    def level_sizes(self) -> Ints:
        """The records of each level of each key, a row a key."""
        return self._by_level(np.zeros(len(self.sizes), dtype=np.int32), 0)

    def _by_level(self, alone: Numbers, cutoff: int) -> Ints:
        from keyhole.kernels.attributes import sum_by_level

        most = max(self.data.codes(name).size for name in self.keys)
        found: Ints = sum_by_level(self.key_codes, self.sizes, alone, cutoff, most)
        return found

    def values(self, name: str, ordered: int = 0) -> CellValues:
        """Return the codes of a column, in the order of the cells."""

        def words() -> tuple[Words, Ints]:
            return self._sorted.get(name) or as_words(self._codes(name), self.rows)

        return CellValues(self.starts, words, self.data.codes(name).size, ordered, self.held)

    def told(self, found: LearntCells, cutoff: int) -> dict[str, Any]:
        """Return the members of `ToldColumn`, given what cells tell with this cutoff."""
        total, (records, cells, hidden) = found.total, found.same
        shares, alone = total / total.sum(), int(records.sum())
        return {
            "homogeneous": alone / self.data.records,
            "homogeneous_records": alone,
            "homogeneous_cells": int(cells.sum()),
            "uncommon_records": int(records[total < total.max()].sum()),
            "hidden_by_rp": int(hidden.sum()),
            "base_rate": float((shares**2).sum()),
            "levels": tuple(self._levels(found.alone, cutoff)),
        }

    def _levels(self, alone: Numbers, cutoff: int) -> Iterator[TellingLevel]:
        """Yield the levels of keys by how many of their records lie in homogeneous large cells."""
        those = self._by_level(alone, cutoff)
        where = np.argwhere(those).tolist()
        for k, i in sorted(where, key=lambda at: -int(those[at[0], at[1]]))[:LEVELS_SHOWN]:
            name, records = self.keys[k], int(self.level_sizes[k, i])
            yield TellingLevel(name, self.labels(name)[i], records, int(those[k, i]))

    def labels(self, name: str) -> list[str]:
        """Return what the levels of a key are called."""
        return [*level_labels(self.data.variable(name), self.data.codes(name)), MISSING]


def told_tables(found: Mapping[str, ToldColumn], cutoff: int) -> list[Table]:
    """Return what the cells of a key tell of sensitive columns, and the levels behind it."""
    head = ["column", "homogeneous", f"in cells of {cutoff} or more", "base rate"]
    rows = [
        [name, share(one.homogeneous), f"{one.hidden_by_rp:,}", share(one.base_rate)]
        for name, one in found.items()
    ]
    notes = [
        "Homogeneous: records in cells where all share one value, so that anybody who knows the "
        f"key learns it. RP does not count those in cells of {cutoff} or more.",
        "Base rate: the chance that a value drawn at random from the whole file is correct.",
    ]
    levels = [
        [name, one.column, one.level, f"{one.homogeneous:,}", f"{one.records:,}"]
        for name, told in found.items()
        for one in told.levels
    ]
    tables = [Table("Sensitive columns", head, rows, notes)]
    if levels:
        head = ["sensitive", "key", "level", "homogeneous records", "records"]
        note = f"Records in homogeneous cells of {cutoff} or more, by level of each key."
        tables.append(Table("Levels behind homogeneous cells", head, levels, [note]))
    return tables


def ordered_values(data: Records, name: str, distance: str = "auto") -> int:
    """Return how many values of a column are in order, 0 if distances do not go by the order."""
    by_kind = data.variable(name).kind in ("measure", "date")
    in_order = by_kind if distance == "auto" else distance == "ordered"
    return len(data.codes(name).levels) if in_order else 0


def sensitive_by_role(data: Records, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the role sensitive that are not keys."""
    names = data.names if backend_of(data).is_here else ()  # a cluster knows no roles
    return tuple(n for n in names if data.variable(n).role == "sensitive" and n not in keys)


def told_columns(
    data: Records, keys: Sequence[str], names: Sequence[str], cutoff: int
) -> dict[str, ToldColumn]:
    """Return what the cells of a key tell of each sensitive column for certain."""
    cells = AttributeCells.by_column(data, keys, names)
    found = learn([cells[name].values(name) for name in names], cutoff=cutoff)
    told = [cells[name].told(one, cutoff) for name, one in zip(names, found, strict=True)]
    return {name: ToldColumn(**one) for name, one in zip(names, told, strict=True)}


@dataclass(frozen=True, slots=True)
class ToldFigures(Figures):
    """What a key tells of one sensitive column, as far as limits in a search go.

    The share of records in homogeneous cells, the least number of different values in a cell, the
    largest distance of a cell to the file, and CAP. A column with one value tells nothing.
    """

    homogeneous: Annotated[float, Share("records")]
    l: int  # noqa: E741
    t_closeness: float | None
    cap: float


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveCodes:
    """A sensitive column in codes: of each record, how many codes, and how many are in order.

    With one value in all records it tells nothing.
    """

    values: Array
    size: int
    ordered: int
    tells_nothing: bool

    @classmethod
    def of(cls, data: Records, name: str) -> SensitiveCodes:
        """Return the codes of a column; numbers and dates are in order."""
        codes = data.codes(name)
        differ = bool((codes.values[:1] != codes.values).any())
        return cls(codes.values, codes.size, ordered_values(data, name), not differ)


def told_figures(
    engine: MemoryEngine, keys: Sequence[str], sensitive: Mapping[str, SensitiveCodes]
) -> dict[str, ToldFigures]:
    """Return what a key, perhaps without variables, tells of sensitive columns."""
    records = max((len(one.values) for one in sensitive.values()), default=0)
    starts, rows = np.array([0, records]), None  # all of them, where nothing is released
    if keys:
        starts, order, _ = engine.by_cell(keys)
        rows = order()
    found = learn(
        [
            CellValues(starts, partial(as_words, one.values, rows), one.size, one.ordered)
            for one in sensitive.values()
        ]
    )
    return {
        name: ToldFigures(
            homogeneous=0.0 if one.tells_nothing else int(cells.same[0].sum()) / records,
            l=cells.distinct,
            t_closeness=cells.furthest,
            cap=cells.right / records,
        )
        for (name, one), cells in zip(sensitive.items(), found, strict=True)
    }
