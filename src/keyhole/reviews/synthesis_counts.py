"""Counts of a synthesis by risk level, and of records still exposed, protected.

The number of a level's records by how many of their variables changed adds up to the level's
size; those unique after are unique still, laid bare, or nobody. Each such row is protected as a
whole (see `small_counts`), and where one of its counts is hidden its mean is told as a band.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.results import share
from keyhole.reviews.small_counts import BAND_HOLDS, WITHHELD, Shown, as_it_is, hide_counts, in_band
from keyhole.reviews.small_counts import protect_share as alone

__all__ = ["Cell", "Heat", "HeatRow", "heat_map", "true_exposures"]

Figures = Mapping[str, Any]
STEPS = (0.1, 0.2, 0.5, 1.0)
SHADES = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """A share, and how dark it is drawn, from 0 to 10; what is hidden is light."""

    text: str
    shade: int


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A level of risk."""

    level: str
    records: str
    cells: Sequence[Cell]
    mean: str


@dataclass(frozen=True, slots=True)
class Heat:
    """Shares of each level's records by the number of their variables changed."""

    caption: str
    numbers: Sequence[int]
    rows: Sequence[HeatRow]


def heat_map(
    caption: str, levels: Sequence[Figures], variables: int, files: int, smallest: int
) -> Heat:
    """Lay out changes by level; shares are over so many files.

    Examples
    --------
    >>> rows = [{"level": "low", "records": 400, "shares": [0.0025, 0.5, 0.4975], "mean": 1.495}]
    >>> row = heat_map("", rows, 2, 1, 3).rows[0]
    >>> [cell.text for cell in row.cells], row.mean
    (['0.00–0.02', '0.5000', 'withheld'], '1.4–1.5')
    """
    sizes = hide_counts([level["records"] for level in levels], smallest)
    rows = [
        _row(level, size, variables, files, smallest)
        for level, size in zip(levels, sizes, strict=True)
    ]
    return Heat(caption, range(variables + 1), rows)


def _row(level: Figures, size: Shown, variables: int, files: int, smallest: int) -> HeatRow:
    if not size.exact or not level["records"]:
        return HeatRow(level["level"], size.text, [Cell("", 0)] * (variables + 1), "")
    total = level["records"] * files
    counts = [round(part * total) for part in level["shares"]]
    # Where all records are in one cell the others are empty, whatever is told of them.
    told = [*map(as_it_is, counts)] if total in counts else hide_counts(counts, smallest)
    cells = [
        _cell(part, one, total, smallest) for part, one in zip(level["shares"], told, strict=True)
    ]
    whole = all(one.exact for one in told)
    mean = f"{level['mean']:.2f}" if whole else _mean_band(level, total, variables, smallest)
    return HeatRow(level["level"], size.text, cells, mean)


def _cell(part: float, told: Shown, total: int, smallest: int) -> Cell:
    if told.exact:
        return Cell(share(part), round(SHADES * part))
    return Cell(told.text if told.kept_back else in_band(part, total, smallest).text, 0)


def _mean_band(level: Figures, total: int, variables: int, smallest: int) -> str:
    """Tell a mean between round numbers: with the shares that are told it would tell the others."""
    # One record more or less in a cell moves the sum by as much as there are variables.
    wide = [step for step in STEPS if step * total >= BAND_HOLDS * smallest * variables]
    if not wide:
        return WITHHELD.text
    low = math.floor(level["mean"] / wide[0] + 1e-9) * wide[0]
    return f"{low:.1f}–{low + wide[0]:.1f}"


def true_exposures(result: Figures, smallest: int) -> list[dict[str, Any]]:
    """Return the true exposure of each implicate, then after the attack, as far as it is told.

    `counted` is the figure that counts for the goals, and `rate` that figure itself, to find the
    largest by.
    """
    found = result["true_exposure"]
    only = found["designated_only"]
    return [
        _exposed(one, result["at_risk"] if only else None, smallest)
        for one in (*found["implicates"], found["reconstruction"])
    ]


def _exposed(one: Figures, designated: int | None, smallest: int) -> dict[str, Any]:
    """Tell those unique after: they are still so, laid bare, or nobody, and add up."""
    before, after, still = (one[name] for name in ("unique_before", "unique_after", "still_unique"))
    shares = [one[name] or 0.0 for name in ("nobody", "laid_bare")]
    counts = [still, *(round(part * after) for part in shares)]
    told = hide_counts(counts, smallest)
    exposure = _part(still, before, told[0], smallest)
    counted, rate = exposure, one["true_exposure"]
    if designated is not None:
        rate = one["designated_exposure"]
        counted = alone(round((rate or 0.0) * designated), designated, smallest)
    return {
        "of": one["of"],
        "unique_before": f"{before:,}",
        "still": told[0].text,
        "exposure": exposure,
        "unique_after": f"{after:,}",
        "nobody": _share_of(counts[1], after, told[1], smallest),
        "laid_bare": _share_of(counts[2], after, told[2], smallest),
        "counted": counted,
        "rate": rate,
    }


def _share_of(count: int, total: int, told: Shown, smallest: int) -> str:
    """Write a share of a known total; where the rest is small it would tell the rest."""
    if told.exact and 0 < total - count < smallest:
        return in_band(count / total, total, smallest).text
    return _part(count, total, told, smallest)


def _part(count: int, total: int, told: Shown, smallest: int) -> str:
    if not total:
        return share(None)
    if told.exact:
        return share(count / total)
    return told.text if told.kept_back else in_band(count / total, total, smallest).text
