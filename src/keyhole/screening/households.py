"""Structure of households: what all members share, who is there once, and who is older than whom.

The column with the role `household` ties records together: all members live in one state, exactly
one of them is the reference person, at most one a spouse, and a parent is older than a child. Each
is a rule of several records, so that no condition on a single one can say it. It is reported if far
fewer households break it than would if values were dealt out anew: a column over the whole file; a
number among the records of the same relationship, so that children are still young.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Array, Floats, Ints
from keyhole.screening.structure import Kind, Structure, condition, name_in_rule
from keyhole.screening.structure_search import (
    ERROR,
    EXCEPTIONS,
    EXCEPTIONS_OF_ALL,
    FOUND_FROM,
    MOST_LEVELS,
    enough_for,
)

# The relationships, by how many households have them, that others are compared with in age.
MOST_HEADS = 3
Says = Literal["same", "one", "at most one", "above"]
Drawn = Mapping[str, Ints]


@dataclass(frozen=True, slots=True)
class HouseholdRule:
    """A rule of households: of a column, of one of its codes, or of a number by two of them.

    With ``above`` the `number` of the member with the first code of `column` is above that of
    every member with the second.
    """

    says: Says
    column: str
    codes: tuple[int, ...] = ()
    number: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about, the one that is bound first."""
        return (self.column,) if self.number is None else (self.number, self.column)


class Households:
    """The households of a file: how many of them, or pairs of members, break a rule."""

    def __init__(self, data: Microdata, name: str) -> None:
        held = data.codes(name)
        self.data, self.name = data, name
        known = np.flatnonzero(held.values < len(held.levels))
        self._rows = known[np.argsort(held.values[known], kind="stable")]
        self._of = np.unique(held.values[self._rows], return_inverse=True)[1].astype(np.int64)
        self._starts = np.flatnonzero(np.diff(self._of, prepend=-1))
        self._sizes = np.diff(np.append(self._starts, len(self._of)))

    @property
    def worth_looking(self) -> bool:
        """Whether there are households of several members."""
        return int((self._sizes > 1).sum()) >= FOUND_FROM

    def count(self, rule: HouseholdRule, drawn: Drawn) -> tuple[int, int]:
        """Return how many households, or pairs, a rule is about, and how many break it."""
        values = drawn[rule.column][self._rows]
        if rule.says == "above" and rule.number is not None:
            heads, others = (values == code for code in rule.codes)
            about, fine = self._above(heads, self._numbers(rule.number, drawn))
            return int((about & others).sum()), int((about & ~fine & others).sum())
        if rule.says == "same":
            low, high = (f.reduceat(values, self._starts) for f in (np.minimum, np.maximum))
            several = self._sizes > 1
            return int(several.sum()), int((several & (low != high)).sum())
        times = np.add.reduceat((values == rule.codes[0]).astype(np.int64), self._starts)
        if rule.says == "one":
            return len(times), int((times != 1).sum())
        return int((self._sizes > 1).sum()), int((times > 1).sum())

    def _numbers(self, name: str, drawn: Drawn) -> Floats:
        levels = self.data.codes(name).levels.to_physical().cast(pl.Float64).to_numpy()
        return np.append(levels, np.nan)[drawn[name][self._rows]]

    def _above(self, heads: Array, numbers: Floats) -> tuple[Array, Array]:
        """Tell which members have a number beside a head that has one, and whether it is below."""
        lowest = np.fmin.reduceat(np.where(heads, numbers, np.nan), self._starts)[self._of]
        return ~np.isnan(lowest) & ~np.isnan(numbers) & ~heads, lowest > numbers

    def kinships(
        self, column: str, head: int, number: str, drawn: Drawn
    ) -> Iterator[tuple[int, int]]:
        """Return pairs of the head and another code, the one whose number may be above first."""
        values, size = drawn[column][self._rows], len(self.data.codes(column).levels)
        about, fine = self._above(values == head, self._numbers(number, drawn))
        pairs = np.bincount(values[about], minlength=size)[:size]
        above = np.bincount(values[about & fine], minlength=size)[:size]
        likely = (pairs >= FOUND_FROM) & (np.abs(2 * above - pairs) >= (1 - EXCEPTIONS) * pairs)
        for code in np.flatnonzero(likely).tolist():
            yield (head, code) if 2 * above[code] > pairs[code] else (code, head)


def search_households(
    data: Microdata, columns: Iterable[str], about: frozenset[str] | None
) -> dict[HouseholdRule, Structure]:
    """Return the rules that the households of a file keep; none without such a column."""
    name = next((one.name for one in data.variables if one.role == "household"), None)
    if name is None or not (households := Households(data, name)).worth_looking:
        return {}
    random, codes, groups, numbers = np.random.default_rng(0), dict[str, Codes](), [], []
    for column in columns:
        kind, held = data.variable(column).kind, data.codes(column)
        if kind == "text" or held.size < 2:
            continue
        codes[column] = held
        if kind == "category" and held.size <= MOST_LEVELS:
            groups.append(column)
        elif held.levels.dtype.is_numeric() or held.levels.dtype.is_temporal():
            numbers += [column] if kind in ("measure", "date") else []
    given = {column: one.values for column, one in codes.items()}
    dealt = {column: random.permutation(values) for column, values in given.items()}
    single: list[tuple[HouseholdRule, ...]] = [(HouseholdRule("same", one),) for one in codes]
    for column in groups:
        held_by = np.bincount(given[column])[: len(codes[column].levels)]
        for code in np.flatnonzero(held_by >= FOUND_FROM).tolist():
            says: tuple[Says, ...] = ("one", "at most one")
            single.append(tuple(HouseholdRule(one, column, (code,)) for one in says))
    tested = sum(map(len, single)) + 2 * len(groups) * len(numbers) * MOST_LEVELS * MOST_HEADS
    least, found = enough_for(tested, ERROR), dict[HouseholdRule, Structure]()

    def keeps(rule: HouseholdRule, dealt: Drawn) -> bool:
        one = None if rule in found else _judged(households, rule, given, dealt, least)
        found.update({} if one is None else {rule: one})
        return rule in found

    for rules in single:
        # Where exactly one has it, it goes without saying that at most one has.
        any(keeps(rule, dealt) for rule in rules)
    heads = sorted((one for one in found if one.codes), key=lambda one: -found[one].support)
    for head in heads[:MOST_HEADS]:
        by, values = head.column, given[head.column]
        # Each record gets the number of another one of the same relationship.
        order = np.lexsort((random.random(len(values)), values))
        place = np.empty_like(order)
        place[np.argsort(values, kind="stable")] = order
        for number in numbers:
            again = {**given, number: given[number][place]}
            for pair in households.kinships(by, head.codes[0], number, given):
                keeps(HouseholdRule("above", by, pair, number), again)
    return {r: s for r, s in found.items() if about is None or about.intersection(r.columns)}


def _judged(
    households: Households, rule: HouseholdRule, given: Drawn, dealt: Drawn, least: float
) -> Structure | None:
    support, exceptions = households.count(rule, given)
    if exceptions > EXCEPTIONS_OF_ALL * support:
        return None
    expected = households.count(rule, dealt)[1]
    if expected < least or exceptions > EXCEPTIONS * expected:
        return None
    kind: Kind = "household" if rule.number is None else "kinship"
    told = _said(households, rule), support, exceptions, float(expected)
    return Structure(kind, (*rule.columns, households.name), *told)


def _said(households: Households, rule: HouseholdRule) -> str:
    levels, within = households.data.codes(rule.column).levels, name_in_rule(households.name)
    has = [condition(rule.column, levels, [code]) for code in rule.codes]
    if rule.number is not None:
        number = name_in_rule(rule.number)
        return f"{number} where {has[0]} is above {number} where {has[1]}, within {within}"
    if rule.says == "same":
        return f"{name_in_rule(rule.column)} is the same for all members of {within}"
    return f"{'exactly' if rule.says == 'one' else 'at most'} one member of {within} has {has[0]}"
