"""Small counts, hidden from a board by one rule, which the report states.

A report about disclosure must not disclose. Totals of the whole file are shown as they are;
small counts of records of a group or a category are not, nor what they could be worked out
from. What a reader is told of a count is an interval: one number, the numbers below the smallest
shown, or nothing. Where counts add up to a known total, further ones are withheld until every
small one could still be one of several numbers.

Of counts that are each a part of the one before, like suspected and confirmed records, what one
column shows narrows the others down: they are hidden together, until for each small count another
table can be named that agrees with all that is shown. Bars of pictures are pooled.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keyhole.core.notes import restore_notes

if TYPE_CHECKING:
    from keyhole.synthesis.comparisons import TargetBars
    from keyhole.synthesis.evaluation import Evaluation

__all__ = [
    "LEAST",
    "SMALLEST",
    "WITHHELD",
    "Shown",
    "as_it_is",
    "below",
    "could_be",
    "hide_counts",
    "hide_nested",
    "in_band",
    "kept_back",
    "nested_rate",
    "pool_bars",
    "protect_count",
    "protect_notes",
    "protect_share",
    "rule",
    "smallest_shown",
    "without_small",
    "worked_out",
]

SMALLEST = 3
# A band of rates must hold this many times the smallest count that is shown.
BAND_HOLDS = 2
BANDS = (1, 2, 5, 10, 20, 50)  # percent
# The least records of a bar: more than any count that a report hides, for the usual cutoffs.
LEAST = 10
SIDES = ("original", "synthetic", "lowest", "highest")

Columns = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader is told of a count: it lies between two numbers, both included."""

    low: int
    high: int | None
    text: str

    @property
    def exact(self) -> bool:
        """Whether the count itself is told."""
        return self.low == self.high

    @property
    def kept_back(self) -> bool:
        """Whether nothing is told of the count, not even that it is small."""
        return self.high is None


def kept_back(least: int = 0) -> Shown:
    """Tell nothing of a count, of which a reader knows the least that it can be."""
    return Shown(least, None, "withheld")


WITHHELD = kept_back()


def smallest_shown(cutoff: int) -> int:
    """Return the smallest count shown: the review's cutoff, and at least 3.

    Examples
    --------
    >>> smallest_shown(2), smallest_shown(5)
    (3, 5)
    """
    return max(SMALLEST, cutoff)


def rule(smallest: int) -> str:
    """Return the rule in words."""
    return (
        f"Groups of fewer than {smallest} records are neither named nor described, unless the "
        f"review asks for them by name. In tables by group or category, counts below {smallest}, "
        f"zero among them, are shown as “<{smallest}”; the rates made of them as a band wide "
        f"enough to hold {BAND_HOLDS * smallest} different counts, or not at all. Where the "
        f"counts of a table add up to a known total and a small one could be worked out from the "
        f"others, the smallest of these is withheld too, until each small count could be at "
        f"least two numbers. Totals of the whole file, such as its uniques, are shown. No "
        f"record’s values or number appear anywhere."
    )


def protect_notes(record: Mapping[str, Any], texts: Iterable[str], smallest: int) -> list[str]:
    """Return notes of a stored record, with small counts of records hidden."""
    known = restore_notes(record)
    return [known[text].hiding(smallest) if text in known else text for text in texts]


def as_it_is(count: int) -> Shown:
    """Tell a count itself."""
    return Shown(count, count, f"{count:,}")


def below(smallest: int, floor: int = 0) -> Shown:
    """Tell of a count only that it is small."""
    return Shown(floor, smallest - 1, f"<{smallest}")


def protect_count(count: int, smallest: int = SMALLEST) -> str:
    """Write a count that stands alone: it adds up to nothing, and nothing follows from it.

    Examples
    --------
    >>> [protect_count(count) for count in (0, 1, 2, 3, 1200)]
    ['0', '<3', '<3', '3', '1,200']
    """
    return f"<{smallest}" if 0 < count < smallest else f"{count:,}"


def hide_counts(
    counts: Sequence[int],
    smallest: int = SMALLEST,
    *,
    floor: int = 0,
    withheld: Mapping[int, int] | None = None,
) -> list[Shown]:
    """Tell counts that add up to a known total, so that no small one can be worked out.

    Parameters
    ----------
    counts
        The counts, whose sum the reader knows.
    smallest
        Counts below this are small; zero is shown like them.
    floor
        The smallest number a count can be: 1 for groups, which are there because somebody is.
    withheld
        The places of counts to be withheld in any case, and the least that a reader knows of each.

    Examples
    --------
    >>> [s.text for s in hide_counts([40, 2, 7])], [s.text for s in hide_counts([40, 2, 1])]
    (['40', '<3', 'withheld'], ['40', '<3', '<3'])
    >>> [s.text for s in hide_counts([40, 2, 2, 12])]  # both at their highest: 54 - 40 - 12 tells
    ['40', '<3', '<3', 'withheld']
    """
    forced = withheld or {}
    shown = [below(smallest, floor) if count < smallest else as_it_is(count) for count in counts]
    for i, least in forced.items():
        shown[i] = kept_back(least)
    small = [i for i, count in enumerate(counts) if 0 < count < smallest]
    while worked_out(shown, sum(counts), small):
        others = [i for i, one in enumerate(shown) if one.exact]
        if not others:
            return [WITHHELD] * len(counts)
        # A reader who knows the rule knows that it is not a small one.
        shown[min(others, key=lambda i: counts[i])] = kept_back(smallest)
    return shown


def could_be(shown: Sequence[Shown], total: int) -> list[tuple[int, int]]:
    """Return between which numbers each count must lie, given what is told and the total.

    Examples
    --------
    >>> could_be([as_it_is(40), Shown(0, 2, "<3"), WITHHELD], 49)
    [(40, 40), (0, 2), (7, 9)]
    """
    highs = [total if one.high is None else one.high for one in shown]
    low, high = sum(one.low for one in shown), sum(highs)
    return [
        (max(one.low, total - (high - top)), min(top, total - (low - one.low)))
        for one, top in zip(shown, highs, strict=True)
    ]


def worked_out(
    shown: Sequence[Shown], total: int, places: Iterable[int], *, numbers: int = 2
) -> bool:
    """Tell whether any of the counts could be fewer than so many numbers."""
    bounds = could_be(shown, total)
    return any(bounds[i][1] - bounds[i][0] + 1 < numbers for i in places)


def in_band(rate: float, size: int, smallest: int = SMALLEST) -> Shown:
    """Tell of a share of a group's records only between which round numbers it lies.

    The band is wide enough that the count behind it could be many numbers; where no band is,
    the rate is withheld.

    Examples
    --------
    >>> in_band(0.05, 40), in_band(0.34, 700).text, in_band(1.0, 9).text
    (Shown(low=0, high=7, text='0.00–0.20'), '0.34–0.35', 'withheld')
    """
    wide = [step for step in BANDS if step * size >= 100 * BAND_HOLDS * smallest]
    if not wide or wide[0] == BANDS[-1]:
        return WITHHELD
    step = wide[0]
    place = min(math.floor(rate * 100 / step + 1e-9), 100 // step - 1)
    low, high = place * step, (place + 1) * step
    most = size if high == 100 else math.ceil(high * size / 100) - 1
    return Shown(math.ceil(low * size / 100), most, f"{low / 100:.2f}–{high / 100:.2f}")


def protect_share(count: int, total: int, smallest: int = SMALLEST) -> str:
    """Write a share that stands alone; of a small count, or one short of all, as a band.

    Examples
    --------
    >>> protect_share(50, 100), protect_share(1, 100), protect_share(0, 0)
    ('0.5000', '0.00–0.10', 'not estimable')
    """
    if not total:
        return "not estimable"
    if any(0 < one < smallest for one in (count, total - count)):
        return in_band(count / total, total, smallest).text
    return f"{count / total:.4f}"


def hide_nested(
    columns: Columns, smallest: int, first: Sequence[Shown] | None = None
) -> list[list[Shown]] | None:
    """Tell columns of counts, each a part of the one before, so that no small one is worked out.

    Parameters
    ----------
    columns
        The counts, column by column.
    smallest
        Counts below this are small.
    first
        What is told of the first column, if that is settled; where it is not told itself, nothing
        is told of the others.

    Returns
    -------
    list or None
        What is told, column by column; None where nothing can be.

    Examples
    --------
    >>> told = hide_nested([[90, 80, 70], [40, 30, 20], [9, 8, 1]], 3)
    >>> [[one.text for one in column] for column in told]
    [['90', '80', '70'], ['40', '30', '20'], ['9', 'withheld', '<3']]
    """
    # From which column on a row is withheld.
    closed = {i: 1 for i, one in enumerate(first or ()) if not one.exact}
    start = 0 if first is None else 1
    while True:
        shown = _shown(columns, smallest, closed, first)
        told = _told_at(columns, shown, smallest)
        if told is None:
            return shown
        level = max(told, start)
        others = [i for i in range(len(columns[0])) if closed.get(i, len(columns)) > level]
        if not others:
            return None
        closed[_cover(others, columns, smallest)] = level


def _shown(
    columns: Columns, smallest: int, closed: Mapping[int, int], first: Sequence[Shown] | None
) -> list[list[Shown]]:
    out = [
        [kept_back() if closed.get(i, len(columns)) <= level
         else below(smallest) if count < smallest
         else as_it_is(count) for i, count in enumerate(column)]
        for level, column in enumerate(columns)
    ]  # fmt: skip
    if first is not None:
        out[0] = list(first)
    return out


def _cover(rows: Sequence[int], columns: Columns, smallest: int) -> int:
    """Choose the row to withhold: the smallest with nothing small in it, else the largest."""
    fit = [i for i in rows if columns[-1][i] > smallest]
    if fit:
        return min(fit, key=lambda i: columns[-1][i])
    return max(rows, key=lambda i: columns[0][i])


def _told_at(columns: Columns, shown: Sequence[Sequence[Shown]], smallest: int) -> int | None:
    """Return a column of which a small count might be worked out, or None."""
    table = list(zip(*columns, strict=True))
    marks = list(zip(*shown, strict=True))
    for level, i in product(range(len(columns)), range(len(table))):
        if 0 < table[i][level] < smallest and not _could_differ(table, marks, i, level):
            return level
    return None


def _could_differ(
    table: Sequence[Sequence[int]], marks: Sequence[Sequence[Shown]], i: int, level: int
) -> bool:
    """Tell whether one more or less there and one less or more elsewhere agrees with the marks."""
    return any(
        _agrees(_moved(table[i], move, 1), marks[i])
        and any(j != i and _agrees(_moved(table[j], move, -1), marks[j]) for j in range(len(table)))
        for move in _moves(len(table[i]), level)
    )


def _moves(columns: int, level: int) -> Iterator[tuple[int, ...]]:
    """Yield what may be added to a row: one more or less in a column, and in others with it."""
    for move in product((0, 1), repeat=columns):
        if move[level]:
            yield move
            yield tuple(-step for step in move)


def _moved(row: Sequence[int], move: Sequence[int], sign: int) -> list[int]:
    return [count + sign * step for count, step in zip(row, move, strict=True)]


def _agrees(row: Sequence[int], marks: Sequence[Shown]) -> bool:
    parts = all(part <= whole for whole, part in pairwise(row))
    return parts and all(
        mark.low <= count and (mark.high is None or count <= mark.high)
        for count, mark in zip(row, marks, strict=True)
    )


def nested_rate(part: int, whole: int, told: tuple[Shown, Shown], smallest: int) -> str:
    """Write the share of a part in its whole, as far as the two are told."""
    small, every = told
    if not every.exact or small.kept_back:
        return WITHHELD.text
    return f"{part / whole:.4f}" if small.exact else in_band(part / whole, whole, smallest).text


def without_small(found: Evaluation, records: int) -> Evaluation:
    """Return an evaluation whose bars all stand for several records of the original."""
    return dataclasses.replace(found, bars=tuple(pool_bars(one, records) for one in found.bars))


def pool_bars(bars: TargetBars, records: int) -> TargetBars:
    """Put small bars together with another: a bin with its neighbour, a category with the rarest.

    Ranges of implicates are added up as well, so that they are never too narrow.

    Examples
    --------
    >>> from keyhole.synthesis.comparisons import TargetBars
    >>> shares = (0.5, 0.48, 0.02)
    >>> few = TargetBars("ms", False, ("M", "S", "W"), shares, shares, shares, shares)
    >>> pool_bars(few, 100).labels, pool_bars(few, 100).original
    (('M', 'S and others'), (0.5, 0.5))
    """
    while len(bars.labels) > 1:
        counts = np.rint(np.array(bars.original) * records)
        small = np.flatnonzero(counts < LEAST)
        if not len(small):
            break
        bars = _joined(bars, int(small[0]), counts)
    return bars


def _joined(bars: TargetBars, place: int, counts: npt.NDArray[np.float64]) -> TargetBars:
    """Put the bar at a place together with another."""
    labels = list(bars.labels)
    if bars.ordered:
        at = place - 1 if place else 1
        first = min(place, at)
        label = labels[first]
        if not first and len(labels) > 2:
            label = f"below {labels[2]}"
    else:
        others = np.where(np.arange(len(counts)) == place, np.inf, counts)
        at = int(np.argmin(others))
        first = min(place, at)
        label = labels[at] if labels[at].endswith("others") else f"{labels[at]} and others"
    labels[first] = label
    gone = max(place, at)
    del labels[gone]
    columns: dict[str, Any] = {}
    for side in SIDES:
        values = list(getattr(bars, side))
        values[first] = values[place] + values[at]
        del values[gone]
        columns[side] = tuple(values)
    return dataclasses.replace(bars, labels=tuple(labels), **columns)
