"""Closest record of each query: one exact answer however many records are equally near.

The distance of two rows is the sum over the columns of min(1, |x - y|): categories, as whole
numbers, are 0 or 1 apart; numbers are scaled by whoever asks. Rows are held in a tree of boxes: one
farther than the best row so far is passed over. Of rows equally near the first is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints

LEAF = 8


class Boxes(NamedTuple):
    """Rows in boxes: the order of the rows, and by box its rows [start, end) in that order.

    Also by box the lowest and highest value of each column, the first row, and the two boxes it is
    divided into; -1 if it is not.
    """

    order: Ints
    start: Ints
    end: Ints
    low: Floats
    high: Floats
    first: Ints
    left: Ints
    right: Ints


@njit(nogil=True, cache=True)
def _widest(rows: Floats, order: Ints, start: int, end: int) -> int:
    """Return the column on which the rows of a box lie farthest apart; -1 if they are equal.

    What counts is the mean distance to the box's middle row, column by column.
    """
    best, most = -1, 0.0
    for v in range(rows.shape[1]):
        middle, spread = rows[order[(start + end) // 2], v], 0.0
        low = high = middle
        for i in range(start, end):
            value = rows[order[i], v]
            low, high = min(low, value), max(high, value)
            spread += min(1.0, abs(value - middle))
        if high > low and spread > most:
            best, most = v, spread
    return best


@njit(nogil=True, cache=True)
def _divide(rows: Floats, order: Ints, start: int, end: int, column: int) -> int:
    """Put the rows of a box with the lower values first; return where the others begin."""
    values = np.empty(end - start)
    for i in range(start, end):
        values[i - start] = rows[order[i], column]
    at = np.median(values)
    if not (values > at).any():  # half of them or more have the highest value
        below = values[values < at]
        at = below.max()
    kept = order[start:end].copy()
    middle = start
    for i in range(len(kept)):
        if values[i] <= at:
            order[middle] = kept[i]
            middle += 1
    place = middle
    for i in range(len(kept)):
        if values[i] > at:
            order[place] = kept[i]
            place += 1
    return middle


@njit(nogil=True, cache=True)
def box(rows: Floats) -> Boxes:
    """Put rows into boxes, divided until they hold few rows or equal ones."""
    count, width = rows.shape
    order = np.arange(count)
    most = 2 * max(1, count)
    start, end = np.zeros(most, np.int64), np.zeros(most, np.int64)
    first, left, right = np.zeros(most, np.int64), np.full(most, -1), np.full(most, -1)
    low, high = np.zeros((most, width)), np.zeros((most, width))
    end[0], boxes, at = count, 1, 0
    while at < boxes:
        a, b = start[at], end[at]
        first[at] = order[a:b].min()
        for v in range(width):
            low[at, v], high[at, v] = np.inf, -np.inf
            for i in range(a, b):
                value = rows[order[i], v]
                low[at, v], high[at, v] = min(low[at, v], value), max(high[at, v], value)
        column = _widest(rows, order, a, b) if b - a > LEAF else -1
        if column >= 0:
            middle = _divide(rows, order, a, b, column)
            left[at], right[at] = boxes, boxes + 1
            start[boxes], end[boxes] = a, middle
            start[boxes + 1], end[boxes + 1] = middle, b
            boxes += 2
        at += 1
    return Boxes(
        order, start[:boxes].copy(), end[:boxes].copy(), low[:boxes].copy(), high[:boxes].copy(),
        first[:boxes].copy(), left[:boxes].copy(), right[:boxes].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True, inline="always")
def _to_box(low: Floats, high: Floats, at: int, query: Floats, most: float) -> float:
    total = 0.0
    for v in range(len(query)):
        total += min(1.0, max(0.0, low[at, v] - query[v], query[v] - high[at, v]))
        if total > most:
            break
    return total


@njit(nogil=True, cache=True)
def closest_row(
    rows: Floats, boxes: Boxes, queries: Floats, own: Ints | None = None
) -> tuple[Ints, Floats]:
    """Return the closest row of each query, the first of those equally near, and its distance.

    `own` has by query a row that it may not find. Without any row to find, the place is -1 and the
    distance infinite.
    """
    order, start, end, low, high, first, left, right = boxes
    found, distances = np.empty(len(queries), np.int64), np.empty(len(queries))
    stack, bounds = np.empty(len(start), np.int64), np.empty(len(start))
    for q in range(len(queries)):
        query = queries[q]
        best, least, height = -1, np.inf, 1
        stack[0], bounds[0] = 0, 0.0
        while height:
            height -= 1
            at, bound = stack[height], bounds[height]
            if bound > least or (bound == least and first[at] > best):
                continue
            if left[at] < 0:
                for i in range(start[at], end[at]):
                    r, total = order[i], 0.0
                    if own is not None and r == own[q]:
                        continue
                    for v in range(len(query)):
                        total += min(1.0, abs(rows[r, v] - query[v]))
                        if total > least:
                            break
                    if total < least or (total == least and r < best):
                        best, least = r, total
                continue
            near, far = left[at], right[at]
            to_near = _to_box(low, high, near, query, least)
            to_far = _to_box(low, high, far, query, least)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            stack[height], bounds[height] = far, to_far
            stack[height + 1], bounds[height + 1] = near, to_near
            height += 2
        found[q], distances[q] = best, least
    return found, distances


@njit(nogil=True, cache=True)
def matches(
    rows: Floats, columns: Ints, low: Floats, high: Floats, starts: Ints, most: int
) -> Ints:
    """Count the rows that each predicate fits, up to `most`.

    Predicate p asks that column `columns[i]` lies between `low[i]` and `high[i]`, for i from
    `starts[p]` up to `starts[p + 1]`.
    """
    found = np.zeros(len(starts) - 1, np.int64)
    for p in range(len(found)):
        for r in range(len(rows)):
            fits = True
            for i in range(starts[p], starts[p + 1]):
                value = rows[r, columns[i]]
                if value < low[i] or value > high[i]:
                    fits = False
                    break
            if fits:
                found[p] += 1
                if found[p] == most:
                    break
    return found
