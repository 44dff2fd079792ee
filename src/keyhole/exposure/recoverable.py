"""Recoverable values: what an outsider can derive from the columns of a release that stay.

A column that stays tells one that was suppressed, changed, made coarser or dropped if it determines
it: whoever knows how the two hang together (a county and its state) can put all of it back. Where
they hang together in places only, the file itself must show it: a value that was suppressed is told
if all records that agree with it there, and still show theirs, show one and the same value; one
that was swapped or drawn anew, if they all had the same. What chance would tell is not counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.charts import percentage
from keyhole.data.columns import encode
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.method import METHODS, Effect, Protected
from keyhole.protection.writeback import as_text
from keyhole.utility.information import at_detail_of

# So many of the values that seem to be told must be right.
RIGHT = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """A column and what a step did to it, for the records of the file that goes out.

    `values` are those before the step; of a suppression, at the detail of the file that goes out.
    `truth` has them as codes, and `seen` what is seen instead, -1 where nothing is. `hidden` are
    the records whose value is no longer seen.
    """

    name: str
    method: str
    values: pl.Series
    truth: Ints
    seen: Ints
    hidden: Flags

    @property
    def effect(self) -> Effect:
        """What was done to values."""
        return METHODS[self.method].effect

    @property
    def is_suppressed(self) -> bool:
        """Whether values were taken away, and others of the column are still seen."""
        return self.effect == "suppresses"

    @property
    def shares(self) -> Floats:
        """The share of the records with each value, as far as values are known."""
        known = self.seen[self.seen >= 0] if self.is_suppressed else self.truth[self.truth >= 0]
        counts = np.bincount(known, minlength=int(self.truth.max(initial=0)) + 1)
        return np.asarray(counts / max(counts.sum(), 1))


def rows_before(steps: Sequence[Protected], records: int) -> list[Ints]:
    """Return for each step which records before it are those after all steps; then all of these."""
    rows = np.arange(records)
    found = [rows]
    for step in reversed(steps):
        rows = rows if step.kept is None else step.kept[rows]
        found.append(rows)
    return found[::-1]


def rows_after(records: int, steps: Sequence[Protected]) -> list[Ints]:
    """Return after each step which records of the original are left."""
    rows, found = np.arange(records), []
    for step in steps:
        rows = rows if step.kept is None else rows[step.kept]
        found.append(rows)
    return found


def treated(original: Microdata, steps: Sequence[Protected], final: Microdata) -> list[Treated]:
    """Return what was done to which column: its first suppression, and its first other step."""
    found: dict[tuple[str, bool], Treated] = {}
    rows, before = rows_before(steps, final.records), original
    for place, step in enumerate(steps):
        for name, count in step.by_column.items():
            effect = METHODS[step.method].effect
            where = name, effect == "suppresses"
            if not count or where in found or effect == "samples":
                continue
            old = before.select([name]).replace(frame=before.frame[[name]][rows[place]])
            if not where[1]:
                found[where] = _changed(old, step, name, rows[place + 1])
            elif name in final.names:
                found[where] = _suppressed(old, step.method, final, name)
        before = step.data
    return [one for one in found.values() if one.hidden.any()]


def _suppressed(old: Microdata, method: str, final: Microdata, name: str) -> Treated:
    truth, seen = old.column(name), final.column(name)
    codes, shown = _coded(truth, seen)
    if ((codes != shown) & (shown >= 0)).any():  # a later step made it coarser, or changed it
        truth = at_detail_of(old, final, [name]).column(name)
        codes, shown = _coded(truth, seen)
    hidden = (shown < 0) & (codes >= 0)
    return Treated(name, method, truth, codes, shown, hidden)


def _changed(old: Microdata, step: Protected, name: str, rows: Ints) -> Treated:
    truth = old.column(name)
    if name not in step.data.names:
        codes, _ = _coded(truth, truth)
        return Treated(name, step.method, truth, codes, np.full(len(codes), -1), codes >= 0)
    codes, shown = _coded(truth, step.data.column(name).gather(pl.Series(rows, dtype=pl.UInt32)))
    return Treated(name, step.method, truth, codes, shown, (codes != shown) & (codes >= 0))


def _coded(one: pl.Series, other: pl.Series) -> tuple[Ints, Ints]:
    """Number the values of two columns alike; -1 is missing."""
    if one.dtype != other.dtype:
        numbers = one.dtype.is_numeric() and other.dtype.is_numeric()
        one, other = (x.cast(pl.Float64) if numbers else as_text(x) for x in (one, other))
    codes = encode(pl.concat([one.alias("value"), other.alias("value")]))
    values = codes.values.astype(np.int64)
    values = np.where(values == len(codes.levels), -1, values)
    return values[: len(one)], values[len(one) :]


@dataclass(frozen=True, slots=True, eq=False)
class RecordGroups:
    """Records grouped by what other columns tell."""

    order: Ints
    starts: Ints
    group: Ints

    @classmethod
    def of(cls, codes: Ints) -> RecordGroups:
        """Group records by a code."""
        order = np.argsort(codes, kind="stable")
        new = np.diff(codes[order], prepend=codes[order[:1]] - 1) != 0
        group = np.empty(len(codes), dtype=np.int64)
        group[order] = np.cumsum(new) - 1
        return cls(order, np.flatnonzero(new), group)

    @property
    def says_something(self) -> bool:
        """Whether there are several groups, and no more than half as many as records."""
        return 1 < len(self.starts) <= max(len(self.order) / 2, 2)

    def agreed(self, values: Ints) -> tuple[Ints, Ints, Flags]:
        """Return for each group a value, how many have one (-1 is none), and whether all agree."""
        there = values[self.order]
        highest = np.maximum.reduceat(there, self.starts)
        none = np.iinfo(np.int64).max
        lowest = np.minimum.reduceat(np.where(there < 0, none, there), self.starts)
        counts = np.add.reduceat((there >= 0).astype(np.int64), self.starts)
        return highest, counts, (counts > 0) & (lowest == highest)


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
    chance = one.shares[one.truth[asked]] ** others[asked]
    # Many groupings are tried where each must be whole: of two columns.
    if not _is_told(told, answered, chance, whole, 4 if wholly else 2):
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


def _is_told(told: Flags, answered: Flags, chance: Floats, whole: bool, spreads: float = 2) -> bool:
    """Tell whether values are told rather than hit upon.

    Of a column that is told wherever it is known more must be told than by chance; of one that is
    told in places, far more.
    """
    count, expected = int(told.sum()), float(chance.sum())
    if not count or count < RIGHT * int(answered.sum()):
        return False
    spread = float(np.sqrt((chance * (1 - chance)).sum()))
    return count > (expected + spreads * spread if whole else 2 * expected + 4 * spread + 2)


# So many columns are taken two by two: 190 pairs.
MOST_PAIRED = 20
_DONE: dict[Effect, str] = {"suppresses": "that were suppressed", "drops": "though it was dropped"}


@dataclass(frozen=True, slots=True, eq=False)
class _Finding:
    """Columns (or the order) that tell hidden values of a treated one."""

    one: Treated
    by: tuple[str, ...]
    told: Flags
    sorted_by: bool = False

    @property
    def share(self) -> str:
        found = float(self.told.sum() / self.one.hidden.sum())
        return "all" if found == 1 else percentage(found)

    @property
    def what(self) -> str:
        return f"{self.one.name!r} {_DONE.get(self.one.effect, 'as they were')}"

    def __str__(self) -> str:
        which = "the values" if self.share == "all" else f"{self.share} of the values"
        values, by = f"{which} of {self.what}", " and ".join(map(repr, self.by))
        if self.sorted_by and not self.by:
            return f"the order of the records tells {values}: leave keep_order out"
        if self.sorted_by:
            return (
                f"the order of the records by {by}, which stays, tells {values}: drop it, or "
                f"number the records anew"
            )
        if len(self.by) == 1:
            return f"{by}, which stays, tells {values}: drop it, or do the same to it"
        return f"{by}, which stay, together tell {values}: drop one, or do the same to it"


def _said(findings: Sequence[_Finding]) -> str:
    """Say in one line which columns, each by itself, tell a treated one."""
    if len(findings) == 1:
        return str(findings[0])
    most = sorted(findings, key=lambda one: -int(one.told.sum()))
    *some, last = (f"{one.by[0]!r} ({one.share})" for one in most)
    return (
        f"{', '.join(some)} and {last}, which stay, each tell values of {most[0].what}: drop "
        f"them, or do the same to them"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Recoverable:
    """What can be read off a release: what is to be said of it, and the file with it put back."""

    findings: tuple[_Finding, ...]
    final: Microdata

    def warnings(self) -> list[str]:
        """Say which columns tell which others."""
        alone: dict[tuple[str, str], list[_Finding]] = {}
        others = []
        for one in self.findings:
            if one.sorted_by or len(one.by) > 1:
                others.append(str(one))
            else:
                alone.setdefault((one.one.name, one.one.method), []).append(one)
        return [*(_said(ones) for ones in alone.values()), *others]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which values can be read off."""
        return tuple(dict.fromkeys(finding.one.name for finding in self.findings))

    def put_back(self) -> Microdata:
        """Return the file as an outsider can make it: with what can be read off."""
        data = self.final
        # What was suppressed first: what stood there before the other steps is told by others.
        for finding in sorted(self.findings, key=lambda one: not one.one.is_suppressed):
            name, told, truth = finding.one.name, pl.Series(finding.told), finding.one.values
            seen = data.column(name) if name in data.names else truth.clear(data.records)
            if seen.dtype != truth.dtype:
                seen, truth = as_text(seen), as_text(truth)
            put = pl.select(pl.when(told).then(truth).otherwise(seen).alias(name)).to_series()
            # Afresh: its cells are no longer the file's, with missing codes among them.
            rest = data.select([other for other in data.names if other != name])
            data = rest.replace(frame=rest.frame.with_columns(put))
        return data


def find_recoverable(
    original: Microdata, steps: Sequence[Protected], final: Microdata, *, keep_order: bool = False
) -> Recoverable:
    """Find what an outsider can read off a release, if need be in the order of the records."""
    found: list[_Finding] = []
    ones = [one for one in treated(original, steps, final) if len(np.unique(one.truth)) > 1]
    groups = _grouped(final) if ones else {}
    for one in ones:
        others = {name: group for name, group in groups.items() if name != one.name}
        found += [
            _Finding(one, (by,), told)
            for by, group in others.items()
            if (told := read_by_groups(one, group)) is not None
        ]
        orders: dict[tuple[str, ...], Ints] = {(): np.arange(final.records)} if keep_order else {}
        orders |= {  # of columns that number the records
            (name,): group.order
            for name, group in others.items()
            if not group.says_something
            and (final.column(name).dtype.is_numeric() or final.column(name).dtype.is_temporal())
        }
        found += [
            _Finding(one, by, told, sorted_by=True)
            for by, order in orders.items()
            if (told := read_by_neighbours(one, order)) is not None
        ]
    settled = {(f.one.name, f.one.method) for f in found if not f.sorted_by}
    left = [one for one in ones if (one.name, one.method) not in settled]
    return Recoverable((*found, *_together(left, groups)), final)


def _grouped(final: Microdata) -> dict[str, RecordGroups]:
    """Group the records by every column; one that holds lists or objects tells nothing here."""
    found = {}
    for name in final.names:
        try:
            found[name] = RecordGroups.of(final.codes(name).values.astype(np.int64))
        except ColumnError:
            continue
    return {name: one for name, one in found.items() if len(one.starts) > 1}


def _together(ones: Sequence[Treated], groups: dict[str, RecordGroups]) -> list[_Finding]:
    """Try columns two by two, those of most values first; a pair must tell a column wholly."""
    fit = {name: group for name, group in groups.items() if group.says_something}
    names = sorted(fit, key=lambda name: -len(fit[name].starts))[:MOST_PAIRED] if ones else []
    found: dict[tuple[str, str], _Finding] = {}
    for pair in itertools.combinations(names, 2):
        left = [x for x in ones if x.name not in pair and (x.name, x.method) not in found]
        a, b = (fit[name] for name in pair)
        both = RecordGroups.of(a.group * len(b.starts) + b.group) if left else a
        for one in left if both.says_something else ():
            told = read_by_groups(one, both, wholly=True)
            if told is not None:
                found[one.name, one.method] = _Finding(one, pair, told)
    return list(found.values())
