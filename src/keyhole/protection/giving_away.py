"""What was taken away or changed, and can be read off what stayed; and the risk after that."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.charts import percentage
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Flags, Ints
from keyhole.protection.cell_text import as_text
from keyhole.protection.protected import Protected
from keyhole.protection.reading_off import (
    Groups,
    Treated,
    read_by_groups,
    read_by_neighbours,
    treated,
)

__all__ = ["GivenAway", "given_away"]


# So many columns are taken two by two: 190 pairs.
MOST_PAIRED = 20
_DONE = {
    "suppress": "that were suppressed",
    "drop": "though it was dropped",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Finding:
    """Columns (or the order) that tell hidden values of a treated one."""

    one: Treated
    by: tuple[str, ...]
    told: Flags
    sorted_by: bool = False

    @property
    def share(self) -> str:
        """How much of what is hidden is told."""
        found = float(self.told.sum() / self.one.hidden.sum())
        return "all" if found == 1 else percentage(found)

    @property
    def values(self) -> str:
        """The values that are told, in words."""
        which = "the values" if self.share == "all" else f"{self.share} of the values"
        return f"{which} of {self.one.name!r} {_DONE.get(self.one.method, 'as they were')}"

    def __str__(self) -> str:
        if self.sorted_by and not self.by:
            return f"the order of the records tells {self.values}: leave keep_order out"
        if self.sorted_by:
            by = f"the order of the records by {self.by[0]!r}, which stays,"
            return f"{by} tells {self.values}: drop it, or number the records anew"
        if len(self.by) == 1:
            return (
                f"{self.by[0]!r}, which stays, tells {self.values}: drop it, or do the same to it"
            )
        by = " and ".join(map(repr, self.by))
        return f"{by}, which stay, together tell {self.values}: drop one, or do the same to it"


def _said(findings: Sequence[_Finding]) -> str:
    """Say in one line which columns, each by itself, tell a treated one."""
    if len(findings) == 1:
        return str(findings[0])
    most = sorted(findings, key=lambda one: -int(one.told.sum()))
    *some, last = (f"{one.by[0]!r} ({one.share})" for one in most)
    one = most[0].one
    what = f"{one.name!r} {_DONE.get(one.method, 'as they were')}"
    return (
        f"{', '.join(some)} and {last}, which stay, each tell values of {what}: drop them, or do "
        f"the same to them"
    )


@dataclass(frozen=True, slots=True, eq=False)
class GivenAway:
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
            data = _restored(data, finding)
        return data


def _restored(data: Microdata, finding: _Finding) -> Microdata:
    name, told, truth = finding.one.name, pl.Series(finding.told), finding.one.values
    if name not in data.names:
        seen = pl.Series(name, [None], dtype=truth.dtype).new_from_index(0, data.records)
    else:
        seen = data.column(name)
    if seen.dtype != truth.dtype:
        seen, truth = as_text(seen), as_text(truth)
    put = pl.select(pl.when(told).then(truth).otherwise(seen).alias(name)).to_series()
    # Afresh: its cells are no longer the file's, with missing codes among them.
    rest = data.select([other for other in data.names if other != name])
    return rest.replace(frame=rest.frame.with_columns(put))


def given_away(
    original: Microdata, steps: Sequence[Protected], final: Microdata, *, keep_order: bool = False
) -> GivenAway:
    """Find what an outsider can read off a release.

    Parameters
    ----------
    original, steps, final
        The file, what was done to it, and the file that goes out.
    keep_order
        Whether it goes out in the order of the records.

    Examples
    --------
    >>> from keyhole.data import load
    >>> from keyhole.protection.suppression import suppress
    >>> rows = {"county": [*range(9)] * 4, "state": [*"aaaabbbbc"] * 4, "sex": [*"ffffmmmmm"] * 4}
    >>> people = load(pl.DataFrame(rows))
    >>> made = suppress(people, keys=["state", "sex"], k=6, never=["sex"])
    >>> print(*given_away(people, [made], made.data).warnings())
    'county', which stays, tells the values of 'state' that were suppressed: drop it, or do the \
same to it
    """
    found: list[_Finding] = []
    ones = [one for one in treated(original, steps, final) if len(np.unique(one.truth)) > 1]
    groups = _grouped(final) if ones else {}
    for one in ones:
        found += _alone(one, groups)
        found += _in_order(one, final, groups, keep_order)
    settled = {(f.one.name, f.one.method) for f in found if not f.sorted_by}
    left = [one for one in ones if (one.name, one.method) not in settled]
    return GivenAway((*found, *_together(left, groups)), final)


def _grouped(final: Microdata) -> dict[str, Groups]:
    """Group the records by every column; one that holds lists or objects tells nothing here."""
    found = {}
    for name in final.names:
        try:
            found[name] = Groups.of(final.codes(name).values.astype(np.int64))
        except ColumnError:
            continue
    return {name: one for name, one in found.items() if len(one.starts) > 1}


def _alone(one: Treated, groups: dict[str, Groups]) -> list[_Finding]:
    return [
        _Finding(one, (by,), told)
        for by, group in groups.items()
        if by != one.name and (told := read_by_groups(one, group)) is not None
    ]


def _in_order(
    one: Treated, final: Microdata, groups: dict[str, Groups], keep_order: bool
) -> list[_Finding]:
    """Read neighbours, in the file's order and in that of columns that number the records."""
    orders: dict[tuple[str, ...], Ints] = {(): np.arange(final.records)} if keep_order else {}
    for name, group in groups.items():
        if name != one.name and not group.says_something and _is_ordered(final, name):
            orders[(name,)] = group.order
    return [
        _Finding(one, by, told, sorted_by=True)
        for by, order in orders.items()
        if (told := read_by_neighbours(one, order)) is not None
    ]


def _is_ordered(final: Microdata, name: str) -> bool:
    dtype = final.column(name).dtype
    return dtype.is_numeric() or dtype.is_temporal()


def _together(ones: Sequence[Treated], groups: dict[str, Groups]) -> list[_Finding]:
    """Try columns two by two, those of most values first; a pair must tell a column wholly."""
    fit = {name: group for name, group in groups.items() if group.says_something}
    names = sorted(fit, key=lambda name: -len(fit[name].starts))[:MOST_PAIRED] if ones else []
    found: dict[tuple[str, str], _Finding] = {}
    for pair in itertools.combinations(names, 2):
        left = [
            one
            for one in ones
            if one.name not in pair and (one.name, one.method) not in found
        ]  # fmt: skip
        if not left:
            continue
        a, b = (fit[name] for name in pair)
        both = Groups.of(a.group * len(b.starts) + b.group)
        if not both.says_something:
            continue
        for one in left:
            told = read_by_groups(one, both, wholly=True)
            if told is not None:
                found[one.name, one.method] = _Finding(one, pair, told)
    return list(found.values())
