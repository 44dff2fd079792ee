"""Constraints on donors: which values a record may receive.

None that breaks a rule the record kept, none of equal value where that is forbidden, and none
that contradicts another column: an age of 52 beside an age group of 60 to 69 shows that one of
them was replaced, and which record was at risk. So where a column nearly follows from a target,
or is closely associated with it, a record only receives values that the original has together
with the record's own value of that column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from keyhole.data import Microdata
from keyhole.kernels.arrays import Flags, Ints
from keyhole.synthesis.associations import KIN, associate, evenly, grouped
from keyhole.synthesis.design import Coded, is_numeric

# How sure one of two columns is if the other is known, from 0 for not at all to 1.
FOLLOWS = 0.95
# Of the spread of a number this share is left if a column nearly tells it.
LEFT = 0.001
# A column of fewer records says too little of what is possible.
LEAST_RECORDS = 5
# Fewer records than this may look tied by chance.
LEAST_FILE = 200
RECORDS = 20_000
# Numbers of more values than this are cut into bins, and wider categories bind nothing.
MOST_GROUPS = 60
MOST_CELLS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Which codes of a target may meet which groups of a column.

    `groups` are those of the column by record; `allowed` has a row a code of the target.
    """

    target: str
    column: str
    groups: Ints
    allowed: Flags


def find_constraints(
    data: Microdata, targets: Iterable[str], columns: Iterable[str]
) -> tuple[Constraint, ...]:
    """Find the columns that a target may not contradict.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> frame = pl.DataFrame({"age": [*range(20, 90)] * 9}).with_columns(
    ...     band=pl.col("age") // 10, coin=pl.col("age") % 2
    ... )
    >>> data = load(frame, kinds={"age": "measure"})
    >>> found = find_constraints(data, ["age"], ["band", "coin"])
    >>> [(one.target, one.column) for one in found]
    [('age', 'band')]
    """
    if data.records < LEAST_FILE:
        return ()
    groups = {}
    for name in columns:
        codes = data.codes(name)
        binned = codes.size > MOST_GROUPS and is_numeric(data, name)
        groups[name] = grouped(data, name) if binned else codes.values.astype(np.int64)
    some = evenly(data.records, RECORDS)
    found = []
    for target in targets:
        goal, pairs = grouped(data, target)[some], _neighbours(data, target)
        for name, values in groups.items():
            size = int(values.max()) + 1
            fits = 1 < size <= MOST_GROUPS and size * data.codes(target).size <= MOST_CELLS
            if name == target or not fits:
                continue
            near = associate(goal, grouped(data, name)[some]).v >= KIN
            if near or _sureness(values, *pairs) >= FOLLOWS:
                found.append(_constraint(data, target, name, values))
    return tuple(found)


def revealing_columns(
    data: Microdata, targets: Sequence[str], columns: Iterable[str]
) -> list[tuple[str, str]]:
    """Return targets with the columns that nearly tell them: replacing those protects nobody."""
    if data.records < LEAST_FILE:
        return []
    found = []
    for name in columns:
        pairs = _neighbours(data, name)
        found += [
            (target, name)
            for target in targets
            if name != target and _tells(data, name, target, *pairs)
        ]
    return found


def _tells(data: Microdata, name: str, target: str, before: Ints, after: Ints) -> bool:
    """Tell whether records alike in a column are alike in the target."""
    if min(data.codes(name).size, data.codes(target).size) < 2:
        return False
    values = data.codes(target).values.astype(np.int64)
    if not is_numeric(data, target):
        return _sureness(values, before, after) >= FOLLOWS
    counts = np.bincount(values)
    rank = (np.cumsum(counts) - counts / 2) / len(values)
    spread = float(np.var(rank[values]))
    if not len(before) or not spread:
        return False
    left = float(np.mean((rank[values[before]] - rank[values[after]]) ** 2)) / 2
    return left <= LEFT * spread


def _neighbours(data: Microdata, name: str) -> tuple[Ints, Ints]:
    """Return pairs of records next to each other in a column's order, equal ones in any order.

    Records of different categories are no neighbours.
    """
    values = data.codes(name).values
    shuffled = np.random.default_rng(0).permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    before, after = order[:-1], order[1:]
    if is_numeric(data, name):
        return before, after
    same = values[before] == values[after]
    return before[same], after[same]


def _sureness(groups: Ints, before: Ints, after: Ints) -> float:
    """Return how much more often neighbours agree than any two records, as a share of the most."""
    if 2 * len(before) < len(groups):
        return 0.0
    by_chance = float(((np.bincount(groups) / len(groups)) ** 2).sum())
    agree = float(np.mean(groups[before] == groups[after]))
    return (agree - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def _constraint(data: Microdata, target: str, name: str, groups: Ints) -> Constraint:
    codes = data.codes(target)
    seen = np.zeros((codes.size, int(groups.max()) + 1), dtype=np.bool_)
    seen[codes.values, groups] = True
    if is_numeric(data, target):
        # Between the lowest and the highest number of a group all are possible.
        known = seen[: len(codes.levels)]
        below = np.maximum.accumulate(known, axis=0)
        above = np.maximum.accumulate(known[::-1], axis=0)[::-1]
        seen[: len(codes.levels)] = below & above
    seen[:, np.bincount(groups) < LEAST_RECORDS] = True
    return Constraint(target, name, groups, seen)


class RuleSet(Protocol):
    """What this module needs to know of rules."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the rules name."""
        ...

    def broken(self, frame: pl.DataFrame) -> Flags:
        """Tell for each record which rules it breaks."""
        ...


class Acceptance:
    """Tells whether records may receive the values of donors.

    `data`: the file. `targets`: the variables that are replaced, in the order of the columns of
    `given`. `rules`: rules that a record must go on keeping if it kept them. `must_change`: records
    that may not receive an equal value. `constraints`: what a target and another column may say
    together. `replace`: which targets of which records are replaced: a value that is still to be
    replaced constrains nothing.
    """

    def __init__(
        self,
        data: Coded,
        targets: Sequence[str],
        rules: RuleSet | None,
        must_change: Flags | None,
        constraints: Sequence[Constraint] = (),
        replace: Flags | None = None,
    ) -> None:
        rules = rules if rules is not None and rules.columns else None  # a file without rules
        self._data, self._targets, self._replace = data, tuple(targets), replace
        self._at = {name: t for t, name in enumerate(targets)}
        self.rules, self.must_change, self.constraints = rules, must_change, tuple(constraints)
        self._columns: dict[str, pl.Series] = {}
        self.broken_before: Flags | None = None  # by record, which rules it broke already
        if rules is not None:
            self._columns = {name: data.column(name) for name in sorted(rules.columns)}
            self.broken_before = rules.broken(pl.DataFrame(list(self._columns.values())))

    def concerns(self, target: str) -> bool:
        """Tell whether anything can forbid a value of the target."""
        tied = any(target in (one.target, one.column) for one in self.constraints)
        return self.must_change is not None or target in self._columns or tied

    def allows(self, rows: Ints, given: Ints, target: int, donors: Ints) -> Flags:
        """Tell for each record whether it may receive the target's value of a donor.

        `given` has for each record the donor of each target (itself where nothing is replaced).
        """
        fine = np.ones(len(rows), dtype=np.bool_)
        name = self._targets[target]
        if self.must_change is not None:
            values = self._data.codes(name).values
            fine &= ~self.must_change[rows] | (values[donors] != values[rows])
        changed = given.copy()
        changed[:, target] = donors
        if name in self._columns:
            fine &= self._keeps_rules(rows, changed)
        for constraint in self.constraints:
            if name in (constraint.target, constraint.column):
                fine &= self._keeps_constraint(constraint, rows, changed, done=target)
        return fine

    def keeps(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps rules and constraints, with what it was given."""
        fine = self._keeps_rules(rows, given)
        for constraint in self.constraints:
            fine &= self._keeps_constraint(constraint, rows, given, done=len(self._targets))
        return fine

    def _keeps_constraint(
        self, constraint: Constraint, rows: Ints, given: Ints, *, done: int
    ) -> Flags:
        """Tell whether a constraint holds, or is about a target after `done`, still to come."""
        at = self._at
        codes = self._data.codes(constraint.target).values
        groups = constraint.groups[
            given[:, at[constraint.column]] if constraint.column in at else rows
        ]
        fine: Flags = constraint.allowed[codes[given[:, at[constraint.target]]], groups]
        for name in (constraint.target, constraint.column):
            if at.get(name, -1) > done and self._replace is not None:
                fine |= self._replace[rows, at[name]]
        return fine

    def _keeps_rules(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps the rules it kept, with what it was given."""
        if self.rules is None or self.broken_before is None:
            return np.ones(len(rows), dtype=np.bool_)
        at = self._at
        frame = pl.DataFrame(
            [
                column.gather(given[:, at[name]] if name in at else rows)
                for name, column in self._columns.items()
            ]
        )
        broken = self.rules.broken(frame) & ~self.broken_before[rows]
        return ~np.asarray(broken.any(axis=1))
