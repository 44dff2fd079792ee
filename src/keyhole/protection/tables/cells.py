"""Frequency and magnitude tables with all their margins, and which of their cells are unsafe."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.utility.figures import cell_label


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable:
    """A table and its margins; cells are numbered in the order of `shape`, totals last.

    `levels` are the categories of each variable; missing is None and the last. `values` are
    records, the people they stand for, or amounts; `counts` the records that contribute to each
    cell, and `largest` the largest contributions, from the largest on (0 where there are none).
    `least` is the least that a cell with a record in it can hold: 1 of a count, the smallest weight
    of a weighted one, 0 of an amount. Whoever sees that a cell is not empty knows it. `keys` are
    the sums of the record keys of each cell, if the records have any.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    values: Floats
    counts: Ints
    largest: Floats
    magnitude: str | None = None
    weight: str | None = None
    least: float = 0.0
    keys: Ints | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable, and one more for its total."""
        return tuple(len(one) + 1 for one in self.levels)

    @property
    def is_count(self) -> bool:
        """Whether cells hold numbers of records."""
        return self.magnitude is None and self.weight is None

    @cached_property
    def places(self) -> Ints:
        """One row a cell: the place of its category on each variable; the last is the total."""
        return np.stack(np.unravel_index(np.arange(len(self.values)), self.shape), axis=1)

    @cached_property
    def margin(self) -> Flags:
        """Which cells are totals over some variable."""
        return np.asarray((self.places == np.array(self.shape) - 1).any(axis=1))

    def label(self, variable: int, place: int) -> str:
        """Write a category; the place after the last one is the total."""
        levels = self.levels[variable]
        if place < len(levels):
            found = cell_label(levels[place])
            return f"({found})" if levels[place] is None and found in levels else found
        return "(Total)" if "Total" in levels else "Total"


def cross(
    data: Microdata,
    *,
    rows: tuple[str, ...],
    cols: tuple[str, ...] = (),
    contributions: Floats | None = None,
    weights: Floats | None = None,
    magnitude: str | None = None,
    weight: str | None = None,
    deepest: int = 2,
    keys: Ints | None = None,
) -> CrossTable:
    """Cross records by rows and columns, and add all margins.

    A record contributes its amount times its weight; where that is missing, or the weight 0, to no
    cell. `deepest` says how many of the largest contributions to keep for each cell. `keys` are
    record keys to be added up in each cell.
    """
    codes = [data.codes(name) for name in (*rows, *cols)]
    shape = tuple(one.size + 1 for one in codes)
    amounts = np.ones(data.records) if contributions is None else contributions
    parts = amounts if weights is None else amounts * weights
    counted = ~np.isnan(parts) & (True if weights is None else weights > 0)
    places = [one.values[counted].astype(np.int64) for one in codes]
    own = None if keys is None else keys[counted]
    values, counts, largest, sums = _filled(places, shape, parts[counted], deepest, own)
    levels = tuple((*one.levels.to_list(), *([None] if one.has_missing else [])) for one in codes)
    least = float(parts[counted].min()) if contributions is None and counted.any() else 0.0
    return CrossTable(rows, cols, levels, values, counts, largest, magnitude, weight, least, sums)


def _filled(
    places: list[Ints], shape: tuple[int, ...], parts: Floats, deepest: int, keys: Ints | None
) -> tuple[Floats, Ints, Floats, Ints | None]:
    """Count, add up and rank contributions in every cell of every margin; and add up keys."""
    size = prod(shape)
    values, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
    sums = None if keys is None else np.zeros(size, dtype=np.int64)
    largest = np.zeros((size, deepest))
    by_size = np.argsort(-parts, kind="stable")
    for totals in itertools.product((False, True), repeat=len(shape)):
        where = [
            np.full(len(parts), width - 1) if total else place
            for place, width, total in zip(places, shape, totals, strict=True)
        ]
        cells = np.ravel_multi_index(where, shape)
        values += np.bincount(cells, parts, size)
        counts += np.bincount(cells, minlength=size)
        if keys is not None and sums is not None:
            np.add.at(sums, cells, keys)
        # By cell, in each from the largest on.
        order = by_size[np.argsort(cells[by_size], kind="stable")]
        rank = np.arange(len(cells)) - np.searchsorted(cells[order], cells[order])
        first = rank < deepest
        largest[cells[order][first], rank[first]] = parts[order][first]
    return values, counts, largest, sums


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
    has, so that no more than what is above that is asked for below a value.

    Examples
    --------
    >>> table = CrossTable(("area",), (), ((1, 2),), np.array([100.0, 50.0, 150.0]),
    ...     np.array([3, 9, 12]), np.array([[90.0, 6.0], [10.0, 8.0], [90.0, 10.0]]))
    >>> unsafe = find_unsafe(table, SensitivityRules(p_percent=10))
    >>> unsafe.cells.tolist(), unsafe.upper.tolist()
    ([True, False, False], [5.0, 0.0, 0.0])
    """
    few, lower, upper = _few(table, rules)
    by_rule, values = {"threshold": few}, table.values
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
    least = 0.0 if hidden_zeros else table.least
    return Unsafe(by_rule, np.clip(table.values - least, 0.0, lower), upper, width)


def _few(table: CrossTable, rules: SensitivityRules) -> tuple[Flags, Floats, Floats]:
    """Return the cells of too few contributors and the levels they need."""
    few: Flags = (table.counts > 0) & (table.counts < rules.threshold)
    if table.is_count:
        below, above = table.values, rules.threshold - table.values
        return few, np.where(few, below, 0.0), np.where(few, above, 0)
    positive = table.values[table.values > 0]
    # That a contributor has nothing is to be hidden too: it needs the room of the smallest cell.
    least = positive.min() if len(positive) else 1.0
    needed = np.where(few, np.maximum(table.values, least) * rules.range_percent / 100, 0.0)
    return few, needed, needed
