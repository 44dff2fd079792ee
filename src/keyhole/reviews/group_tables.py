"""Tables by group: which groups have a row, and what is shown of each.

Groups below the smallest count shown are neither named nor described, unless the review asks for
them by name; of groups a few times as large only the size is shown. What remains is decided by the
count sheet of the chapter (`keyhole.reviews.count_sheets`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keyhole.core.tables import Table
from keyhole.reviews.count_sheets import Count, CountSheet, IfExact

if TYPE_CHECKING:
    from keyhole.exposure.cells import Exposure


# Groups smaller than this many times the smallest count shown have a size and nothing else: all
# their figures would be small.
DESCRIBED_FROM = 4


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a table: their names and sizes, and the places of those with a row."""

    labels: Sequence[str]
    sizes: Sequence[Count]
    named: Sequence[int]
    smallest: int

    def is_described(self, place: int, times: int = DESCRIBED_FROM) -> bool:
        """Tell whether anything but its size is shown of a group."""
        return self.sizes[place].value >= times * self.smallest

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
        """Lay out a row for each named group, and one for all that are not named."""
        cells: list[list[object]] = [[self.labels[i], self.sizes[i], *rows[i]] for i in self.named]
        if len(self.named) < len(self.labels):
            cells.append([_Pooled(self), *[""] * (len(columns) - 1)])
        return Table(title, columns, cells)

    def is_of(self, sizes: Sequence[tuple[str, int]]) -> bool:
        """Tell whether these are the groups of another table too."""
        values = [size.value for size in self.sizes]
        return [*sizes] == [*zip(self.labels, values, strict=True)]


@dataclass(frozen=True, slots=True)
class _Pooled:
    """The name of the row for groups that are not named."""

    groups: Groups

    def __str__(self) -> str:
        smallest, sizes = self.groups.smallest, self.groups.sizes
        sizes[0].sheet.settle()
        if any(size.state == "unknown" for size in sizes):
            return "no group can be shown without telling the size of a small one"
        pooled = len(sizes) - len(self.groups.named)
        many = "group" if pooled == 1 else "groups"
        return f"groups with fewer than {smallest} records ({pooled:,} {many})"


def enter_groups(
    sheet: CountSheet, by: str, sizes: Sequence[tuple[str, int]], asked: Collection[str] = ()
) -> Groups:
    """Enter the sizes of groups, which add up to a known total.

    The same groups in another table of the chapter are entered once.

    Examples
    --------
    >>> sheet = CountSheet(3)
    >>> sizes = [("a", 40), ("b", 1), ("c", 1), ("d", 60)]
    >>> groups = enter_groups(sheet, "where", sizes, asked=["c"])
    >>> print(groups.table("By where", ["group", "records"], [[]] * 4).to_text())
    By where
      group                                       records
      a                                          withheld
      c                                                <3
      d                                                60
      groups with fewer than 3 records (1 group)
    """
    known: Groups | None = sheet.groups.get(by)
    same = known is not None and known.is_of(sizes)
    if known is None or not same:
        counts = [sheet.count(size, floor=1) for _, size in sizes]
        sheet.add_up(counts, sum(size for _, size in sizes))
    else:
        counts = [*known.sizes]
    labels = [label for label, _ in sizes]
    named = [i for i, (label, size) in enumerate(sizes) if size >= sheet.smallest or label in asked]
    groups = Groups(labels, counts, named, sheet.smallest)
    sheet.groups.setdefault(by, groups)
    return groups


def exposure_by_group(sheet: CountSheet, found: Exposure, asked: Collection[str] = ()) -> Table:
    """Return uniques, RP and CR of each group of an exposure."""
    parts = [group.exposure for group in found.groups]
    sizes = [(group.label, group.exposure.records) for group in found.groups]
    groups = enter_groups(sheet, found.by or "", sizes, asked)
    rows: list[list[object]] = []
    entered: list[tuple[Count, Count, Count]] = []
    for place, (part, size) in enumerate(zip(parts, groups.sizes, strict=True)):
        counts, row = _exposure(sheet, part, size, shown=groups.is_described(place))
        entered.append(counts)
        rows.append(row)
    for column in zip(*entered, strict=True):
        sheet.add_up(column, sum(count.value for count in column))
    columns = ["group", "records", "uniques", f"RP({found.cutoff})", "CR"]
    return groups.table(f"By {found.by}", columns, rows)


def _exposure(
    sheet: CountSheet, part: Exposure, size: Count, *, shown: bool
) -> tuple[tuple[Count, Count, Count], list[object]]:
    """Enter the uniques, the records at risk and the cells of a group, and return its row.

    Cells of each size make up all three, which ties them together.
    """
    risky_records = round(part.rp * part.records)
    uniques = sheet.count(part.uniques, of=size) if shown else sheet.unshown(part.uniques, of=size)
    risky = sheet.unshown(risky_records, of=size)
    cells = sheet.unshown(part.cells, of=size, guarded=False)
    if part.missing == "own":
        _tie(sheet, part, (size, uniques, risky, cells))
    if not shown:
        return (uniques, risky, cells), ["", "", ""]
    cr: object = sheet.rate(cells, size)
    if part.missing == "wildcard":  # no number of cells is behind it
        cr = IfExact([uniques], f"{part.cr:.4f}")
    return (uniques, risky, cells), [uniques, sheet.rate(risky, size), cr]


def _tie(sheet: CountSheet, part: Exposure, counts: tuple[Count, Count, Count, Count]) -> None:
    """Enter what every reader knows: records lie in cells, and cells below the cutoff are at risk.

    How many cells of each size there are is open to the reader, whatever it is.
    """
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
