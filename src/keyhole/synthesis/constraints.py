"""Constraints on donors: which values a record may receive.

None that breaks a rule the record kept, none of equal value where that is forbidden, and none
that contradicts another column: an age of 52 beside an age group of 60 to 69 shows that one of
them was replaced. So where a column nearly follows from a target, or is closely associated with
it, a record only receives values that the original has together with its own value of that column.

Rules are worked out for every combination of their columns' values. These tables also say which
donors can give at all (`Acceptance.ties`), so that nothing need be refused afterwards, which would
shift what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from keyhole.data import Microdata
from keyhole.kernels.arrays import Array, Flags, Floats, Ints
from keyhole.synthesis.associations import KIN, associate, evenly, grouped
from keyhole.synthesis.design import Coded, is_numeric
from keyhole.synthesis.rule_language import RuleNode
from keyhole.synthesis.rules import EditRules

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
MOST_CELLS, CELLS_AT_ONCE = 1 << 24, 1 << 20
# A tie with more different choices than this is one of numbers.
MOST_CHOICES = 60


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Which codes of a target (rows of `allowed`) may meet which groups of a column, by record."""

    target: str
    column: str
    groups: Ints
    allowed: Flags


def find_constraints(
    data: Microdata, targets: Iterable[str], columns: Iterable[str]
) -> tuple[Constraint, ...]:
    """Find the columns that a target may not contradict."""
    if data.records < LEAST_FILE:
        return ()
    groups = {}
    for name in columns:
        codes = data.codes(name)
        binned = codes.size > MOST_GROUPS and is_numeric(data, name)
        groups[name] = grouped(data, name) if binned else codes.values.astype(np.int64)
    some = evenly(data.records, RECORDS)
    bins = {name: grouped(data, name)[some] for name in groups}
    found = []
    for target in targets:
        goal, pairs = grouped(data, target)[some], _neighbours(data, target)
        for name, values in groups.items():
            size = int(values.max()) + 1
            fits = 1 < size <= MOST_GROUPS and size * data.codes(target).size <= MOST_CELLS
            if name == target or not fits:
                continue
            near = associate(goal, bins[name]).v >= KIN
            if near or _sureness(values, *pairs) >= FOLLOWS:
                found.append(_constraint(data, target, name, values))
    return tuple(found)


def revealing_columns(
    data: Microdata, targets: Sequence[str], columns: Iterable[str]
) -> list[tuple[str, str]]:
    """Return targets with the columns that nearly tell them: replacing those protects nobody."""
    found = []
    for name in columns if data.records >= LEAST_FILE else ():
        pairs = _neighbours(data, name)
        for target in targets:
            if name != target and _tells(data, name, target, *pairs):
                found.append((target, name))
    return found


def _tells(data: Microdata, name: str, target: str, before: Ints, after: Ints) -> bool:
    """Tell whether records alike in a column are alike in the target."""
    if min(data.codes(name).size, data.codes(target).size) < 2:
        return False
    values = data.codes(target).values.astype(np.int64)
    if not is_numeric(data, target):
        return _sureness(values, before, after) >= FOLLOWS
    counts = np.bincount(values)
    rank = ((np.cumsum(counts) - counts / 2) / len(values))[values]
    if not len(before) or not (spread := float(np.var(rank))):
        return False
    return float(np.mean((rank[before] - rank[after]) ** 2)) / 2 <= LEFT * spread


def _neighbours(data: Microdata, name: str) -> tuple[Ints, Ints]:
    """Return pairs of records next to each other in a column's order, of one category only."""
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


@dataclass(frozen=True, slots=True, eq=False)
class RuleTable:
    """Rules on the same columns: which combinations of codes (rows) break which of them."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    numbers: Ints
    broken: Flags


def tabulate_rules(data: Coded, rules: EditRules) -> list[RuleTable]:
    """Work out the rules whose columns have few enough combinations of values."""
    together: dict[tuple[str, ...], list[int]] = {}
    for number, rule in enumerate(rules.rules):
        together.setdefault(tuple(sorted(rule.columns)), []).append(number)
    tables = []
    for columns, numbers in together.items():
        codes = [data.codes(name) for name in columns]
        sizes = tuple(one.size for one in codes)
        cells = int(np.prod(sizes, dtype=object))
        if cells * len(numbers) > MOST_CELLS:
            continue
        some, found = EditRules(rules.rules[number] for number in numbers), []
        values = [one.decoded(np.arange(one.size)) for one in codes]
        for start in range(0, cells, CELLS_AT_ONCE):
            part = np.arange(start, min(start + CELLS_AT_ONCE, cells))
            places = np.unravel_index(part, sizes)
            frame = [one.gather(place) for one, place in zip(values, places, strict=True)]
            named = [one.alias(name) for one, name in zip(frame, columns, strict=True)]
            found.append(some.broken(pl.DataFrame(named)))
        tables.append(RuleTable(columns, sizes, np.array(numbers), np.concatenate(found)))
    return tables


class OrderGap(NamedTuple):
    """An order of a target and another number, by codes: how far they are apart is drawn."""

    column: str
    values: Floats
    others: Floats


class DonorTie(NamedTuple):
    """What the columns that rules tie to a target say of its donors.

    `values` has an entry for each cell of a `table`, and `own` for each record of the file. Where
    `is_number`, it is a number that a donor should have about the same of; else records with the
    same entry have the same choice of values, and `varies` tells for which codes of the target.
    """

    table: tuple[Ints, Ints]
    values: Array
    own: Array
    varies: Flags
    is_number: bool


class _Cells:
    """The tables of rules and of constraints, laid out to be looked up by a kernel."""

    def __init__(
        self,
        data: Coded,
        targets: Sequence[str],
        tables: Sequence[RuleTable],
        constraints: Sequence[Constraint],
    ) -> None:
        from keyhole.kernels import combinations

        names = list(dict.fromkeys(name for table in tables for name in table.columns))
        columns = [data.codes(name).values for name in names]
        self._at = {name: place for place, name in enumerate(names)}
        laid = [(*self.table(t.columns, t.sizes), t.numbers, t.broken.ravel()) for t in tables]
        for one in constraints:
            at, strides = np.arange(2) + len(columns), np.array([one.allowed.shape[1], 1])
            columns += [data.codes(one.target).values, one.groups]
            names += [one.target, one.column]
            laid.append((at, strides, np.array([combinations.NOBODY]), ~one.allowed.ravel()))
        self.codes = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=np.int32)
        for place, values in enumerate(columns):
            self.codes[:, place] = values
        order = {name: t for t, name in enumerate(targets)}
        self.givers = np.array([order.get(name, -1) for name in names], dtype=np.int64)
        self.every = np.arange(len(laid))
        own = [self.givers[one[0]] for one in laid]
        self.about = [np.flatnonzero([t in one for one in own]) for t in range(len(targets))]
        first = [np.cumsum([0, *(len(one[part]) for one in laid)]) for part in (0, 2, 3)]
        joined = [
            np.concatenate([np.zeros(0, type_), *(one[part] for one in laid)])
            for part, type_ in enumerate((np.int64, np.int64, np.int64, np.bool_))
        ]
        self.tables = (first[0], joined[0], joined[1], first[1], joined[2], first[2], joined[3])

    def table(self, columns: Sequence[str], sizes: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the places and the strides of some columns of rules."""
        places = np.array([self._at[name] for name in columns], dtype=np.int64)
        return places, np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1].copy()


class Acceptance:
    """Tells whether records may receive the values of donors.

    Records must go on keeping `rules` if they kept them; those in `must_change` may not receive an
    equal value, of any target or of each; a value that is still to be replaced (`replace`)
    constrains nothing. `given` has donors by record and target.
    """

    def __init__(
        self,
        data: Coded,
        targets: Sequence[str],
        rules: EditRules | None,
        must_change: Flags | None,
        constraints: Sequence[Constraint] = (),
        replace: Flags | None = None,
    ) -> None:
        rules = rules if rules is not None and rules.columns else None  # a file without rules
        self.data, self.targets, self._replace = data, tuple(targets), replace
        self._at = {name: t for t, name in enumerate(targets)}
        if must_change is not None and must_change.ndim == 1:
            must_change = np.repeat(must_change[:, None], len(targets), axis=1)
        self.rules, self.must_change, self.constraints = rules, must_change, tuple(constraints)
        # Which rules each record broke already.
        self.broken_before: Flags | None = None
        tables: list[RuleTable] = []
        self._slow: tuple[EditRules, Ints, dict[str, pl.Series]] | None = None
        if rules is not None:
            tables = tabulate_rules(data, rules)
            done = {int(number) for table in tables for number in table.numbers}
            left = [number for number in range(len(rules)) if number not in done]
            slow = EditRules(rules.rules[number] for number in left)
            columns = {name: data.column(name) for name in sorted(slow.columns)}
            self._slow = (slow, np.array(left), columns) if left else None
            before = pl.DataFrame([data.column(name) for name in sorted(rules.columns)])
            self.broken_before = rules.broken(before)
        self.leaders = lead_sums(rules, self.targets)
        self._cells = _Cells(data, self.targets, tables, constraints)
        self._ties = [self._tied(t, tables) for t in range(len(self.targets))]
        self._gaps = [self._gap(t) for t in range(len(self.targets))]

    def concerns(self, target: str) -> bool:
        """Tell whether anything can forbid a value of the target."""
        if self.must_change is not None or (
            self.rules is not None and target in self.rules.columns
        ):
            return True
        return any(target in (one.target, one.column) for one in self.constraints)

    def allows(self, rows: Ints, given: Ints, target: int, donors: Ints) -> Flags:
        """Tell for each record, with its donors by target, if it may receive another's value."""
        fine = np.ones(len(rows), dtype=np.bool_)
        name = self.targets[target]
        if self.must_change is not None:
            values = self.data.codes(name).values
            fine &= ~self.must_change[rows, target] | (values[donors] != values[rows])
        changed = given.copy()
        changed[:, target] = donors
        about = self._cells.about[target]
        return fine & self._keeps(rows, changed, about, done=target, name=name)

    def keeps(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps rules and constraints, with what it was given."""
        return self._keeps(rows, given, self._cells.every, done=len(self.targets))

    def ties(self, target: int, rows: Ints) -> list[DonorTie]:
        """Return what ties a target to other columns, as far as it matters to these donors."""
        codes = self.data.codes(self.targets[target]).values[rows]
        return [tie for tie in self._ties[target] if tie.is_number or tie.varies[codes].any()]

    def tied(self, tie: DonorTie, rows: Ints, given: Ints) -> Array:
        """Return what a tie says of records, with what they were given."""
        from keyhole.kernels import combinations

        known = self._cells
        values: Array = tie.values[
            combinations.cells(known.codes, known.givers, *tie.table, rows, given)
        ]
        return values

    def gap(self, target: int, rows: Ints, given: Ints) -> tuple[Floats, Floats] | None:
        """Return the target's values and those of the number that it is ordered with, if any."""
        found = self._gaps[target]
        if found is None:
            return None
        own = self._codes(self.targets[target], rows, given)
        return found.values[own], found.others[self._codes(found.column, rows, given)]

    def _gap(self, target: int) -> OrderGap | None:
        name = self.targets[target]
        for rule in () if self.rules is None else self.rules.rules:
            sides = [part.value for part in rule.tree.parts if part.sign == "column"]
            if rule.tree.sign not in ("<=", ">=") or len(sides) != 2 or name not in sides:
                continue
            other = sides[0] if sides[1] == name else sides[1]
            codes = [self.data.codes(one) for one in (name, other)]
            plain = all(one.levels.dtype.is_numeric() for one in codes)
            if plain and self._at.get(other, -1) < target:
                levels = [one.levels.cast(pl.Float64).to_numpy() for one in codes]
                return OrderGap(other, *(np.append(one, np.nan) for one in levels))
        return None

    def _tied(self, target: int, tables: Sequence[RuleTable]) -> list[DonorTie]:
        """Find what rules leave of a target's values by the other columns known by then."""
        from scipy.special import ndtri

        found, name = [], self.targets[target]
        for table in tables:
            others = tuple(one for one in table.columns if one != name)
            known = all(self._at.get(one, -1) < target for one in others)
            if name not in table.columns or not others or not known:
                continue
            at = table.columns.index(name)
            any_: Flags = np.asarray(table.broken.any(axis=1))
            forbidden = np.moveaxis(any_.reshape(table.sizes), at, -1).reshape(-1, table.sizes[at])
            packed = np.packbits(forbidden, axis=1)
            kinds, first, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
            sizes = tuple(size for i, size in enumerate(table.sizes) if i != at)
            values: Array = kind.ravel().astype(np.uint8)
            varies = (forbidden[first] != forbidden[first[:1]]).any(axis=0)
            if len(kinds) > MOST_CHOICES and len(others) == 1:
                # The rank in the file of each code of the number, as a normal deviate.
                codes = self.data.codes(others[0])
                counts = np.bincount(codes.values, minlength=codes.size)
                middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
                values = ndtri(np.clip(middle, 1e-6, 1 - 1e-6))
            elif len(kinds) > MOST_CHOICES:
                continue
            if len(kinds) > 1:
                columns, strides = self._cells.table(others, sizes)
                own = values[self._cells.codes[:, columns] @ strides]
                is_number = len(kinds) > MOST_CHOICES
                found.append(DonorTie((columns, strides), values, own, varies, is_number))
        return found

    def _codes(self, name: str, rows: Ints, given: Ints) -> Ints:
        """Return the codes of a column with what records were given."""
        at = self._at.get(name)
        codes: Ints = self.data.codes(name).values[rows if at is None else given[:, at]]
        return codes

    def _pending(self, names: Iterable[str], rows: Ints, *, done: int) -> Flags:
        """Tell for which records one of these columns is a target after `done`, still to come."""
        pending = np.zeros(len(rows), dtype=np.bool_)
        for name in names:
            if self._at.get(name, -1) > done and self._replace is not None:
                pending |= self._replace[rows, self._at[name]]
        return pending

    def _keeps(
        self, rows: Ints, given: Ints, tables: Ints, *, done: int, name: str | None = None
    ) -> Flags:
        """Tell which records keep the rules they kept, and the constraints, with what was given."""
        from keyhole.kernels import combinations

        known, none = self._cells, np.zeros((0, 0), dtype=np.bool_)
        exempt = none if self.broken_before is None else self.broken_before
        # Where nothing is to be replaced, nothing is still to come.
        replace, after = none, len(self.targets)
        if self._replace is not None:
            replace, after = self._replace, done
        fine: Flags = combinations.kept(
            known.codes, known.givers, known.tables, tables, rows, given, exempt, replace, after
        )
        if self._slow is not None:
            rules, numbers, columns = self._slow
            drawn = [
                column.gather(given[:, self._at[one]] if one in self._at else rows)
                for one, column in columns.items()
            ]
            broken = rules.broken(pl.DataFrame(drawn)) & ~exempt[rows][:, numbers]
            for place, rule in enumerate(rules.rules):
                if name is None or name in rule.columns:
                    fine &= ~broken[:, place] | self._pending(rule.columns, rows, done=done)
        return fine


def lead_sums(rules: EditRules | None, targets: Sequence[str]) -> list[int]:
    """Return for each target the first of those it makes a sum with, in one or several steps."""
    leaders, at = list(range(len(targets))), {name: t for t, name in enumerate(targets)}
    for rule in () if rules is None else rules.rules:
        if is_sum(rule.tree) and rule.columns <= at.keys():
            tied = {leaders[at[name]] for name in rule.columns}
            leaders = [min(tied) if leader in tied else leader for leader in leaders]
    return leaders


def is_sum(tree: RuleNode) -> bool:
    """Tell whether a rule says that a column is the sum of others."""
    return tree.sign == "==" and any(part.sign == "+" for part in tree.parts)
