"""Tables by group: which groups have a row, and what is shown of each.

Groups below the smallest count shown are neither named nor described, unless the review asks for
them by name; of groups a few times as large only the size is shown. Nor are groups that a table to
be published suppresses: what one of the two hides the other must not show. What remains is decided
by the count sheet of the report (`keyhole.reviews.count_sheets`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.exposure.regrouping import MISSING
from keyhole.protection.tables.asked import NOISE
from keyhole.results import share
from keyhole.reviews.count_sheets import Count, CountSheet, IfExact
from keyhole.reviews.settings import counts_published

if TYPE_CHECKING:
    from keyhole.exposure.cells import Exposure
    from keyhole.protection.tables.result import ProtectedTable


# Groups smaller than this many times the smallest count shown have a size and nothing else: all
# their figures would be small.
DESCRIBED_FROM = 4


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a table, the places of those with a row, and of those `suppressed`."""

    labels: Sequence[str]
    sizes: Sequence[Count]
    named: Sequence[int]
    smallest: int
    suppressed: Collection[int] = ()

    def is_described(self, place: int, times: int = DESCRIBED_FROM) -> bool:
        """Tell whether anything but its size is shown of a group."""
        large = self.sizes[place].value >= times * self.smallest
        return large and place not in self.suppressed

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
        """Lay out a row for each named group, and one for all that are not named."""
        cells: list[list[object]] = [[self.labels[i], self.sizes[i], *rows[i]] for i in self.named]
        if len(self.named) < len(self.labels):
            cells.append([_Pooled(self), *[""] * (len(columns) - 1)])
        return Table(title, columns, cells)


@dataclass(frozen=True, slots=True)
class _Pooled:
    """The name of the row for groups that are not named."""

    groups: Groups

    def __str__(self) -> str:
        smallest, sizes = self.groups.smallest, self.groups.sizes
        suppressed = self.groups.suppressed
        sizes[0].sheet.settle()
        if any(one.state == "unknown" for i, one in enumerate(sizes) if i not in suppressed):
            return "no group can be shown without revealing the size of a small one"
        pooled = len(sizes) - len(self.groups.named)
        many = "group" if pooled == 1 else "groups"
        also = ", or suppressed in a table" if suppressed else ""
        return f"groups with fewer than {smallest} records{also} ({pooled:,} {many})"


def enter_tables(sheet: CountSheet, made: Iterable[tuple[ProtectedTable, Question]]) -> None:
    """Enter what tables to be published tell of groups; each stands beside what it was asked."""
    for table, asked in made:
        if not counts_published(asked):
            continue
        noise = asked.noise or NOISE[0]
        reach = {"round": (table.base or 1) - 1, "cell-key": noise}.get(table.protect, 0)
        for one in (table, *table.others):
            cells: Any = one.cells
            for name in one.variables:
                shown = {
                    MISSING if cell[name] is None else str(cell[name]): cell["value"]
                    for cell in cells
                    if name in cell and len(cell["total_over"]) == len(one.variables) - 1
                }
                sheet.published.setdefault(name, []).append((shown, reach))


def enter_groups(
    sheet: CountSheet,
    by: str,
    sizes: Sequence[tuple[str, int]],
    asked: Collection[str] = (),
    *,
    own: bool = True,
) -> Groups:
    """Enter groups that add up, once a chapter; `own` are those of the file that tables are of."""
    known: Groups | None = sheet.groups.get(by)
    labels, values = [label for label, _ in sizes], [size for _, size in sizes]
    if known and ([*known.labels], [one.value for one in known.sizes]) == (labels, values):
        counts, suppressed = [*known.sizes], known.suppressed
    else:
        told = _told(sheet, by, sizes) if own else [[]] * len(sizes)
        suppressed = [i for i, one in enumerate(told) if None in one]
        counts = []
        for size, bounds in zip(values, told, strict=True):
            published = None not in bounds and (size, size) in bounds
            count = sheet.total(size) if published else sheet.count(size, floor=1)
            count.state = "unknown" if None in bounds else count.state
            for low, high in () if published else filter(None, bounds):
                sheet.at_least([(count, 1)], math.ceil(low))
                sheet.at_least([(count, -1)], -math.floor(high))
            counts.append(count)
        sheet.add_up(counts, sum(values))
    named = [
        i
        for i, (label, size) in enumerate(sizes)
        if (size >= sheet.smallest or label in asked) and i not in suppressed
    ]
    groups = Groups(labels, counts, named, sheet.smallest, suppressed)
    sheet.groups.setdefault(by, groups)
    return groups


def _told(
    sheet: CountSheet, by: str, sizes: Sequence[tuple[str, int]]
) -> list[list[tuple[float, float] | None]]:
    """Return what published tables show of groups; None if suppressed, or finer than theirs."""
    told: list[list[tuple[float, float] | None]] = [[] for _ in sizes]
    for shown, reach in sheet.published.get(by, []):
        for place, (label, _) in enumerate(sizes):
            # A group that rounding or noise leaves with zeros has no row.
            value = shown.get(label, 0 if reach else None)
            told[place].append(None if value is None else (value - reach, value + reach))
    finer = any(name in sheet.published for name in by.split(", ") if name != by)
    true = all(
        low <= size <= high
        for (_, size), bounds in zip(sizes, told, strict=True)
        for low, high in filter(None, bounds)
    )
    return told if true and not finer else [[None]] * len(sizes)


def exposure_by_group(sheet: CountSheet, found: Exposure, asked: Collection[str] = ()) -> Table:
    """Return uniques, RP and CR of each group of an exposure."""
    parts = [group.exposure for group in found.groups]
    sizes = [(group.label, group.exposure.records) for group in found.groups]
    groups = enter_groups(sheet, found.by or "", sizes, asked)
    rows: list[list[object]] = []
    entered: list[tuple[Count, Count, Count]] = []
    for place, (part, size) in enumerate(zip(parts, groups.sizes, strict=True)):
        shown = groups.is_described(place)
        uniques = (sheet.count if shown else sheet.unshown)(part.uniques, of=size)
        risky = sheet.unshown(round(part.rp * part.records), of=size)
        cells = sheet.unshown(part.cells, of=size, guarded=False)
        if part.missing == "own":
            _tie(sheet, part, (size, uniques, risky, cells))
        entered.append((uniques, risky, cells))
        cr: object = sheet.rate(cells, size) if shown and part.missing != "wildcard" else None
        cr = cr or IfExact([uniques], share(part.cr))  # no number of cells is behind it
        rows.append([uniques, sheet.rate(risky, size), cr] if shown else ["", "", ""])
    for column in zip(*entered, strict=True):
        sheet.add_up(column, sum(count.value for count in column))
    columns = ["group", "records", "uniques", f"RP({found.cutoff})", "CR"]
    return groups.table(f"By {found.by}", columns, rows)


def _tie(sheet: CountSheet, part: Exposure, counts: tuple[Count, Count, Count, Count]) -> None:
    """Enter what every reader knows: cells below the cutoff are at risk, however many there are."""
    size, uniques, risky, cells = counts
    small = [(sheet.unshown(0, guarded=False), f) for f in range(2, part.cutoff)]
    large = sheet.unshown(0, guarded=False)
    at_risk = [(uniques, 1), *small] if part.cutoff > 1 else []
    sheet.weigh_up(at_risk, risky)
    rest = [(cell, -1) for cell, _ in at_risk]
    sheet.weigh_up([(cells, 1), *rest], large)
    sheet.at_least([(size, 1), (risky, -1), (large, -part.cutoff)], 0)
    # Without a large cell everybody is at risk.
    sheet.at_least([(large, part.records + 1), (risky, 1), (size, -1)], 0)
