"""Tables by group: which groups are named, and what is told of each (see `small_counts`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keyhole.reviews.small_counts import (
    WITHHELD,
    Shown,
    as_it_is,
    below,
    hide_counts,
    in_band,
    worked_out,
)

if TYPE_CHECKING:
    from keyhole.exposure.cells import Exposure, Group

__all__ = [
    "NONE_FIT",
    "ExposureRow",
    "Grouping",
    "RecordGroup",
    "group_records",
    "hide_exposure",
    "like_exposure",
]

NONE_FIT = "No group can be shown without telling the size of a small one."
# Groups smaller than this many times the smallest count shown have a size and nothing else:
# all their figures would be small.
DESCRIBED_FROM = 4
# What is hidden must add up to this many times the smallest count shown.
HIDDEN_FROM = 2


@dataclass(frozen=True, slots=True)
class RecordGroup:
    """A group of records: its name, its size, and its exposure where that was measured."""

    name: str
    records: int
    exposure: Exposure | None = None

    @classmethod
    def of(cls, group: Group) -> RecordGroup:
        """Return a group of which the exposure is known."""
        return cls(group.label, group.exposure.records, group.exposure)

    @property
    def measured(self) -> Exposure:
        """Its exposure, which is known."""
        assert self.exposure is not None
        return self.exposure

    @property
    def at_risk(self) -> int:
        """The records in cells below the cutoff."""
        return round(self.measured.rp * self.records)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What is told of each group's size, and which groups have a row.

    `named` are the places of the groups with a row of their own, `pooled` counts the others.
    """

    sizes: Sequence[Shown]
    named: Sequence[int]
    pooled: int
    smallest: int

    def pool(self, columns: int) -> list[list[str]]:
        """Return the row of the groups that are not named, if there are any."""
        if not self.pooled:
            return []
        many = "group" if self.pooled == 1 else "groups"
        text = f"groups with fewer than {self.smallest} records ({self.pooled:,} {many})"
        return [[text, *[""] * (columns - 1)]]

    @property
    def notes(self) -> list[str]:
        """Say so where no group can be shown at all."""
        return [] if self.named or self.pooled else [NONE_FIT]


def group_records(
    groups: Sequence[RecordGroup], smallest: int, asked: Collection[str] = ()
) -> Grouping:
    """Decide which groups are named; small ones only if the review asks for them by name.

    Where there are small ones, the size of one more group is withheld, else the total of the
    file would tell theirs.

    Examples
    --------
    >>> sizes = {"a": 40, "b": 1, "c": 2, "d": 60}
    >>> groups = [RecordGroup(name, records) for name, records in sizes.items()]
    >>> found = group_records(groups, 3, asked=["c"])
    >>> [size.text for size in found.sizes], found.named, found.pooled
    (['withheld', '<3', '<3', '60'], [0, 2, 3], 1)
    """
    sizes = [group.records for group in groups]
    small = [i for i, size in enumerate(sizes) if size < smallest]
    cover = _cover(groups, small, smallest) if small else None
    withheld = {} if cover is None else {cover: smallest}
    shown = hide_counts(sizes, smallest, floor=1, withheld=withheld)
    found = Grouping(shown, (), 0, smallest)
    measured = all(group.exposure is not None for group in groups)
    if all(one == WITHHELD for one in shown) or (
        measured and small and hide_exposure(groups, found) is None
    ):
        return Grouping([WITHHELD] * len(groups), (), 0, smallest)
    named = [i for i in range(len(groups)) if i not in small or groups[i].name in asked]
    return Grouping(shown, named, len(groups) - len(named), smallest)


def like_exposure(
    groups: Sequence[RecordGroup], by: str | None, exposure: Exposure | None
) -> list[RecordGroup]:
    """Take the figures of the same groups from the table of exposure, where it has them.

    Else another group might be withheld there than here, and each table tell what the other
    does not.
    """
    if by is None or exposure is None or exposure.by != by:
        return list(groups)
    known = {group.label: RecordGroup.of(group) for group in exposure.groups}
    return [known.get(group.name, group) for group in groups]


def _cover(groups: Sequence[RecordGroup], hidden: Collection[int], smallest: int) -> int | None:
    """Choose the group to withhold with the hidden ones: figures of its own make theirs uncertain.

    The smallest of those with uniques and with large cells; if there is none, the largest.
    """
    others = [i for i in range(len(groups)) if i not in hidden]
    if not others:
        return None
    fit = [i for i in others if _have_room([groups[i]], smallest)]
    if fit:
        return min(fit, key=lambda i: (groups[i].records, groups[i].name))
    return max(others, key=lambda i: (groups[i].records, groups[i].name))


def _have_room(groups: Iterable[RecordGroup], smallest: int) -> bool:
    """Tell whether groups have, together, uniques, other records at risk, and large cells.

    Then a small count of another group could be another one: these could make up for it.
    """
    chosen = list(groups)
    if not all(group.exposure is not None for group in chosen):
        return True
    few, many = HIDDEN_FROM * smallest, DESCRIBED_FROM * smallest
    uniques = sum(group.measured.uniques for group in chosen)
    # At a cutoff of 2 the uniques are all that is at risk.
    others = sum(g.at_risk - g.measured.uniques if g.measured.cutoff > 2 else few for g in chosen)
    large = sum(group.records - group.measured.at_risk[5] for group in chosen)
    return uniques >= few and others >= few and large >= many


@dataclass(frozen=True, slots=True)
class ExposureRow:
    """What is told of a group's exposure."""

    uniques: Shown
    at_risk: Shown
    rp: str
    cr: str


def hide_exposure(groups: Sequence[RecordGroup], grouping: Grouping) -> list[ExposureRow] | None:
    """Tell uniques, RP and CR of each group as far as no small count can be worked out.

    Where uniques are hidden RP is a band and CR is not shown: with the size they would tell how
    many uniques there are. None where whatever is told would tell too much.
    """
    smallest = grouping.smallest
    hidden = {i for i, g in enumerate(groups) if _is_closed(g, grouping.sizes[i], smallest)}
    while True:
        rows = [_row(group, grouping.sizes[i], i in hidden, smallest)
                for i, group in enumerate(groups)]  # fmt: skip
        if _is_safe(groups, rows, hidden, smallest):
            return rows
        further = _cover(groups, hidden, smallest)
        if further is None:
            return _sizes_only(groups, grouping)
        hidden.add(further)


def _sizes_only(groups: Sequence[RecordGroup], grouping: Grouping) -> list[ExposureRow] | None:
    """Tell the sizes and nothing else, if all of them are told and none is near to a small one."""
    enough = DESCRIBED_FROM * grouping.smallest
    if len(groups) < 2 or any(not s.exact or s.low < enough for s in grouping.sizes):
        return None
    return [ExposureRow(WITHHELD, WITHHELD, WITHHELD.text, WITHHELD.text)] * len(groups)


def _is_safe(
    groups: Sequence[RecordGroup],
    rows: Sequence[ExposureRow],
    hidden: Collection[int],
    smallest: int,
) -> bool:
    """Tell whether every small count could still be several numbers, given the totals."""
    uniques, risky = [g.measured.uniques for g in groups], [g.at_risk for g in groups]
    counts = zip((group.records for group in groups), uniques, risky, strict=True)
    small = [i for i, row in enumerate(counts) if any(0 < count < smallest for count in row)]
    if not small:
        return True
    if not all(_have_room([groups[j] for j in hidden if j != i], smallest) for i in small):
        return False
    # Uniques and records at risk are often odd or even together: two numbers are too few.
    return not (
        worked_out([row.uniques for row in rows], sum(uniques), small)
        or worked_out([row.at_risk for row in rows], sum(risky), small, numbers=smallest)
    )


def _is_closed(group: RecordGroup, size: Shown, smallest: int) -> bool:
    tiny = group.records < DESCRIBED_FROM * smallest
    return not size.exact or tiny or group.measured.uniques < smallest


def _row(group: RecordGroup, size: Shown, hidden: bool, smallest: int) -> ExposureRow:
    found = group.measured
    if not hidden:
        risky, uniques = as_it_is(group.at_risk), as_it_is(found.uniques)
        return ExposureRow(uniques, risky, f"{found.rp:.4f}", f"{found.cr:.4f}")
    if not size.exact or group.records < DESCRIBED_FROM * smallest:
        return ExposureRow(WITHHELD, WITHHELD, WITHHELD.text, WITHHELD.text)
    uniques = below(smallest) if found.uniques < smallest else WITHHELD
    band = in_band(found.rp, group.records, smallest)
    return ExposureRow(uniques, band, band.text, WITHHELD.text)
