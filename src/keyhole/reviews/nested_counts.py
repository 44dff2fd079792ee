"""Counts of which each is a part of the one before, like suspected and confirmed records.

Each column adds up to a known total, and a part is never more than its whole: what one column
shows narrows the others down. So they are hidden together (see `small_counts`): until for each
small count another table can be named that agrees with all that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

from keyhole.reviews.small_counts import (
    WITHHELD,
    Shown,
    as_it_is,
    below,
    in_band,
    kept_back,
)

__all__ = ["hide_nested", "nested_rate"]

Columns = Sequence[Sequence[int]]


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
