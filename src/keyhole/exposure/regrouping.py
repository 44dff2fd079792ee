"""What merging levels, or setting a subpopulation apart, does to RP and CR.

The cells of the key are counted once. Merging two levels only joins cells that agree on all the
other variables, and taking a group out only shrinks the cells it is in, so that every change is
counted exactly from the cells it touches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from keyhole.exposure.groupings import Grouping
from keyhole.kernels.arrays import Ints

__all__ = ["Apart", "Regrouping", "Totals", "regroupings", "set_apart"]

Action = Literal["merge", "one category"]


@dataclass(frozen=True, slots=True)
class Totals:
    """The file as it is."""

    records: int
    cells: int
    at_risk: int
    cutoff: int

    @property
    def rp(self) -> float:
        """Risk proportion."""
        return self.at_risk / self.records

    @property
    def cr(self) -> float:
        """Cell ratio."""
        return self.cells / self.records


@dataclass(frozen=True, slots=True)
class Regrouping:
    """One merge of levels, what it does to RP and CR, and what it gains and costs."""

    variable: str
    level: int
    action: Action
    other: int | None
    rp: float
    cr: float
    gain: float
    price: float


@dataclass(frozen=True, slots=True)
class Apart:
    """A subpopulation in a file of its own: what is left, and what is in that file."""

    variable: str
    level: int
    records: int
    rest_rp: float | None
    rest_cr: float | None
    own_rp: float
    own_cr: float
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells of the key, sorted by the code of one variable, then by the cell of the others."""

    other: Ints
    code: Ints
    size: Ints
    starts: Ints

    def of(self, code: int) -> slice:
        return slice(int(self.starts[code]), int(self.starts[code + 1]))


def _cells(others: Ints, codes: Ints, size: int, held: Ints) -> _Cells:
    span = int(others.max(initial=0)) + 1
    place, which = np.unique(codes * span + others, return_inverse=True)
    counts = np.bincount(which, weights=held).astype(np.int64)
    code = place // span
    return _Cells(place % span, code, counts, np.searchsorted(code, np.arange(size + 1)))


def regroupings(
    totals: Totals,
    others: Ints,
    codes: Ints,
    grouping: Grouping,
    held: Ints,
) -> Iterator[Regrouping]:
    """Try the merges of one key variable that make sense without knowing what it means.

    Bands become one category each; of other levels each is merged with its neighbours if the
    levels have an order, with the commonest level if they have none, with all three if nobody
    can tell.

    Parameters
    ----------
    totals
        The file as it is.
    others
        The cell of each pattern on the other keys.
    codes
        The variable's codes, by pattern.
    grouping
        Its levels or bands.
    held
        How many records have each pattern.
    """
    cells = _cells(others, codes, len(grouping.group), held)
    if grouping.banded:
        moves = ((g, None, _collapse(cells, grouping.group == g, totals.cutoff))
                 for g in range(grouping.size) if g != grouping.missing)  # fmt: skip
        action: Action = "one category"
    else:
        moves = _merges(cells, _commonest(codes, held), grouping, totals.cutoff)  # type: ignore[assignment]
        action = "merge"
    for level, other, (fewer_at_risk, fewer_cells) in moves:
        if fewer_cells:
            rp = (totals.at_risk - fewer_at_risk) / totals.records
            cr = (totals.cells - fewer_cells) / totals.records
            yield Regrouping(
                grouping.name, level, action, other, rp, cr, totals.rp - rp, totals.cr - cr
            )


def _commonest(codes: Ints, held: Ints) -> int:
    return int(np.bincount(codes, weights=held).argmax())


def _merges(
    cells: _Cells, commonest: int, grouping: Grouping, cutoff: int
) -> Iterator[tuple[int, int | None, tuple[int, int]]]:
    last = grouping.size - 1 - (grouping.missing is not None)
    done = set()
    for level in range(grouping.size):
        with_ = [commonest] if not grouping.ordered or level == grouping.missing else []
        if grouping.ordered is not False and level != grouping.missing:
            with_ += [one for one in (level - 1, level + 1) if 0 <= one <= last]
        for other in with_:
            pair = frozenset((level, other))
            if other != level and pair not in done:
                done.add(pair)
                yield level, other, _merge(cells, level, other, cutoff)


def _merge(cells: _Cells, one: int, other: int, cutoff: int) -> tuple[int, int]:
    """Return by how much the records at risk and the cells become fewer."""
    small, large = sorted((cells.of(one), cells.of(other)), key=lambda s: s.stop - s.start)
    there = cells.other[large]
    place = np.searchsorted(there, cells.other[small])
    inside = place < len(there)
    met = np.flatnonzero(inside)[there[place[inside]] == cells.other[small][inside]]
    a, b = cells.size[small][met], cells.size[large][place[met]]
    before = a * (a < cutoff) + b * (b < cutoff)
    after = (a + b) * (a + b < cutoff)
    return int((before - after).sum()), len(met)


def _collapse(cells: _Cells, inside: npt.NDArray[np.bool_], cutoff: int) -> tuple[int, int]:
    """Return by how much both become fewer if all the codes inside become one."""
    chosen = inside[cells.code]
    other, size = cells.other[chosen], cells.size[chosen]
    joined = np.bincount(np.unique(other, return_inverse=True)[1], weights=size)
    before = size[size < cutoff].sum()
    after = joined[joined < cutoff].sum()
    return int(before - after), len(size) - len(joined)


def set_apart(
    totals: Totals, numbers: Ints, group: Ints, held: Ints, *, name: str, groups: int
) -> Iterator[Apart]:
    """Put each group into a file of its own, and count what is left and what is in it.

    Parameters
    ----------
    totals
        The file as it is.
    numbers
        The cell of each pattern on all the keys.
    group
        The group of each pattern.
    held
        How many records have each pattern.
    name
        The variable that makes the groups.
    groups
        How many there are.
    """
    c = totals.cutoff
    sizes = np.bincount(numbers, weights=held, minlength=totals.cells).astype(np.int64)
    place, inside = np.unique(numbers * groups + group, return_inverse=True)
    held = np.bincount(inside, weights=held).astype(np.int64)
    cell, which = place // groups, place % groups
    whole, rest = sizes[cell], sizes[cell] - held

    def summed(amount: npt.NDArray[np.int64]) -> Ints:
        return np.bincount(which, weights=amount, minlength=groups).astype(np.int64)

    records = summed(held)
    at_risk = totals.at_risk + summed(rest * (rest < c) - whole * (whole < c))
    cells = totals.cells - summed((rest == 0).astype(np.int64))
    own_risk, own_cells = summed(held * (held < c)), summed(np.ones_like(held))
    for level in range(groups):
        left, n = totals.records - int(records[level]), int(records[level])
        if not left or not n:
            continue
        rest_rp, rest_cr = int(at_risk[level]) / left, int(cells[level]) / left
        yield Apart(
            name, level, n, rest_rp, rest_cr, int(own_risk[level]) / n, int(own_cells[level]) / n,
            totals.rp - rest_rp,
        )  # fmt: skip
