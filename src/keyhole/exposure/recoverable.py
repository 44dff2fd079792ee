"""Recoverable values: what an outsider can derive from the columns of a release that stay.

A column that stays tells one that was suppressed, changed, made coarser or dropped if it determines
it: whoever knows how the two hang together (a county and its state) can put all of it back. Where
they hang together in places only, the file itself must show it: a value that was suppressed is told
if all records that agree with it there, and still show theirs, show one and the same value; one
that was swapped or drawn anew, if they all had the same. What chance would tell is not counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.charts import percentage
from keyhole.kernels.arrays import Flags, Floats, Ints

# So many of the values that seem to be told must be right.
RIGHT = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """A column and what was done to it, for the records of the file that goes out.

    `effect` is that of a protection method. `truth` has the values before it as codes; of a
    suppression, at the detail of the file that goes out. `seen` has what is seen instead, -1 where
    nothing is, and `hidden` are the records whose value is no longer seen. With `weights` each row
    stands for so many records.
    """

    name: str
    effect: str
    truth: Ints
    seen: Ints
    hidden: Flags
    weights: Ints | None = None

    @property
    def is_suppressed(self) -> bool:
        """Whether values were taken away, and others of the column are still seen."""
        return self.effect == "suppresses"

    @property
    def shares(self) -> Floats:
        """The share of the records with each value, as far as values are known."""
        values = self.seen if self.is_suppressed else self.truth
        known = values >= 0
        weights = None if self.weights is None else self.weights[known]
        counts = np.bincount(values[known], weights, minlength=int(self.truth.max(initial=0)) + 1)
        return np.asarray(counts / max(counts.sum(), 1))


@dataclass(frozen=True, slots=True, eq=False)
class RecordGroups:
    """Records grouped by what other columns tell; with `weights` a row stands for so many."""

    order: Ints
    starts: Ints
    group: Ints
    weights: Ints | None = None

    @classmethod
    def of(cls, codes: Ints, weights: Ints | None = None) -> RecordGroups:
        """Group records by a code."""
        order = np.argsort(codes, kind="stable")
        new = np.diff(codes[order], prepend=codes[order[:1]] - 1) != 0
        group = np.empty(len(codes), dtype=np.int64)
        group[order] = np.cumsum(new) - 1
        return cls(order, np.flatnonzero(new), group, weights)

    @property
    def says_something(self) -> bool:
        """Whether there are several groups, and no more than half as many as records."""
        records = len(self.order) if self.weights is None else int(self.weights.sum())
        return 1 < len(self.starts) <= max(records / 2, 2)

    def agreed(self, values: Ints) -> tuple[Ints, Ints, Flags]:
        """Return for each group a value, how many have one (-1 is none), and whether all agree."""
        there = values[self.order]
        highest = np.maximum.reduceat(there, self.starts)
        none = np.iinfo(np.int64).max
        lowest = np.minimum.reduceat(np.where(there < 0, none, there), self.starts)
        held = 1 if self.weights is None else self.weights[self.order]
        counts = np.add.reduceat((there >= 0) * np.int64(held), self.starts)
        return highest, counts, (counts > 0) & (lowest == highest)


def group_records(
    columns: Mapping[str, Ints], weights: Ints | None = None
) -> dict[str, RecordGroups]:
    """Group the records by the codes of each column that has several."""
    groups = {name: RecordGroups.of(codes, weights) for name, codes in columns.items()}
    return {name: one for name, one in groups.items() if len(one.starts) > 1}


def read_by_groups(one: Treated, groups: RecordGroups, *, wholly: bool = False) -> Flags | None:
    """Return the hidden values that a grouping tells; None if it tells none but by chance.

    Where `wholly`, only a grouping counts that tells the column wherever it is known.
    """
    value, counts, agreed = groups.agreed(one.truth)
    whole = bool(agreed[counts > 0].all()) and groups.says_something
    # Where most values are still seen, they show how columns hang together in places.
    if not whole and (wholly or one.effect not in ("suppresses", "exchanges")):
        return None
    others = counts[groups.group] - 1
    if one.is_suppressed and not whole:
        # What hangs together in places only must be seen in the file itself.
        value, counts, agreed = groups.agreed(one.seen)
        others = counts[groups.group]
    answered = one.hidden & agreed[groups.group] & (others > 0)
    told = answered & (value[groups.group] == one.truth)
    asked = one.hidden & (others > 0)
    chance = np.zeros(len(asked))
    chance[asked] = one.shares[one.truth[asked]] ** others[asked]
    # Many groupings are tried where each must be whole: of two columns.
    if not _is_told(told, answered, chance, whole, 4 if wholly else 2, one.weights):
        return None
    return one.hidden if whole else told


def read_by_neighbours(one: Treated, order: Ints) -> Flags | None:
    """Return the hidden values that both neighbours in an order show; None if only by chance."""
    seen = one.seen[order]
    if one.is_suppressed:
        before, after = _last_known(seen), _last_known(seen[::-1])[::-1]
    elif one.effect == "exchanges":
        before, after = np.append(-1, seen[:-1]), np.append(seen[1:], -1)
    else:
        return None
    answered, told = (np.zeros(len(order), dtype=np.bool_) for _ in range(2))
    agree = (before == after) & (before >= 0) & (before != seen)
    answered[order] = agree
    told[order] = agree & (before == one.truth[order])
    told &= one.hidden
    chance = one.shares[one.truth[one.hidden]] ** 2
    return told if _is_told(told, answered, chance, False) else None


def _last_known(values: Ints) -> Ints:
    places = np.where(values >= 0, np.arange(len(values)), -1)
    last = np.maximum.accumulate(places)
    return np.where(last >= 0, values[last], -1)


def _is_told(
    told: Flags,
    answered: Flags,
    chance: Floats,
    whole: bool,
    spreads: float = 2,
    weights: Ints | None = None,
) -> bool:
    """Tell whether values are told rather than hit upon.

    Of a column that is told wherever it is known more must be told than by chance; of one that is
    told in places, far more.
    """

    def total(values: npt.NDArray[Any]) -> float:
        return float(values.sum() if weights is None else values @ weights)

    count, expected = total(told), total(chance)
    if not count or count < RIGHT * total(answered):
        return False
    spread = math.sqrt(total(chance * (1 - chance)))
    return count > (expected + spreads * spread if whole else 2 * expected + 4 * spread + 2)


# So many columns are taken two by two: 190 pairs.
MOST_PAIRED = 20
_DONE = {"suppresses": "that were suppressed", "drops": "though it was dropped"}


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredValues:
    """Columns (or the order) that tell hidden values of a treated one."""

    one: Treated
    by: tuple[str, ...]
    told: Flags
    sorted_by: bool = False

    @property
    def share(self) -> str:
        """The share of the hidden values that is told, in words."""
        found = float(self.told.sum() / self.one.hidden.sum())
        return "all" if found == 1 else percentage(found)

    @property
    def what(self) -> str:
        """The column, and what was done to it."""
        return f"{self.one.name!r} {_DONE.get(self.one.effect, 'as they were')}"

    def __str__(self) -> str:
        which = "the values" if self.share == "all" else f"{self.share} of the values"
        values, by = f"{which} of {self.what}", " and ".join(map(repr, self.by))
        if self.sorted_by and not self.by:
            return f"the order of the records reveals {values}: leave keep_order out"
        if self.sorted_by:
            return (
                f"the order of the records by {by}, which is retained, reveals {values}: drop it, "
                f"or renumber the records"
            )
        several = len(self.by) > 1
        told = "are retained, together reveal" if several else "is retained, reveals"
        drop = "one" if several else "it"
        return f"{by}, which {told} {values}: drop {drop}, or protect it in the same way"


def _said(findings: Sequence[RecoveredValues]) -> str:
    """Say in one line which columns, each by itself, tell a treated one."""
    if len(findings) == 1:
        return str(findings[0])
    most = sorted(findings, key=lambda one: -int(one.told.sum()))
    *some, last = (f"{one.by[0]!r} ({one.share})" for one in most)
    return (
        f"{', '.join(some)} and {last}, which are retained, each reveal values of {most[0].what}: "
        f"drop them, or protect them in the same way"
    )


def find_told(
    ones: Sequence[Treated],
    groups: Mapping[str, RecordGroups],
    numbering: Collection[str] = (),
    *,
    keep_order: bool = False,
) -> tuple[RecoveredValues, ...]:
    """Find what columns that stay tell of those that were treated.

    `groups` are the records by each column that stays, and `numbering` names those columns whose
    order may be that of the records; `keep_order` says that the records are in theirs.
    """
    found: list[RecoveredValues] = []
    ones = [one for one in ones if len(np.unique(one.truth)) > 1]
    for one in ones:
        others = {name: group for name, group in groups.items() if name != one.name}
        found += [
            RecoveredValues(one, (by,), told)
            for by, group in others.items()
            if (told := read_by_groups(one, group)) is not None
        ]
        orders: dict[tuple[str, ...], Ints] = {(): np.arange(len(one.truth))} if keep_order else {}
        orders |= {
            (name,): group.order
            for name, group in others.items()
            if name in numbering and not group.says_something
        }
        found += [
            RecoveredValues(one, by, told, sorted_by=True)
            for by, order in orders.items()
            if (told := read_by_neighbours(one, order)) is not None
        ]
    settled = {f.one for f in found if not f.sorted_by}
    return (*found, *_together([one for one in ones if one not in settled], groups))


def say_told(findings: Sequence[RecoveredValues]) -> list[str]:
    """Say which columns tell which others."""
    alone: dict[Treated, list[RecoveredValues]] = {}
    others = []
    for one in findings:
        if one.sorted_by or len(one.by) > 1:
            others.append(str(one))
        else:
            alone.setdefault(one.one, []).append(one)
    return [*(_said(ones) for ones in alone.values()), *others]


def _together(ones: Sequence[Treated], groups: Mapping[str, RecordGroups]) -> list[RecoveredValues]:
    """Try columns two by two, those of most values first; a pair must tell a column wholly."""
    fit = {name: group for name, group in groups.items() if group.says_something}
    names = sorted(fit, key=lambda name: -len(fit[name].starts))[:MOST_PAIRED] if ones else []
    found: dict[Treated, RecoveredValues] = {}
    for pair in itertools.combinations(names, 2):
        left = [x for x in ones if x.name not in pair and x not in found]
        a, b = (fit[name] for name in pair)
        both = RecordGroups.of(a.group * len(b.starts) + b.group, a.weights) if left else a
        for one in left if both.says_something else ():
            told = read_by_groups(one, both, wholly=True)
            if told is not None:
                found[one] = RecoveredValues(one, pair, told)
    return list(found.values())
