"""Donors on a sorted line or in a plane: the closest to each recipient, and partners to swap ranks.

Donors are given sorted by prediction. Those with equal predictions form a run, and within a run
every donor is as good as another: a recipient begins at a random place of the nearest run and
goes round it, then outwards run by run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Floats, Ints

Points = npt.NDArray[np.floating]


@njit(nogil=True, cache=True)
def _run(points: Points, at: int) -> tuple[int, int]:
    value = points[at]
    return np.searchsorted(points, value), np.searchsorted(points, value, side="right")


@njit(nogil=True, cache=True, inline="always")
def _go_round(begin: int, end: int, draw: float, out: Ints, found: int) -> int:
    """List the places of a run from a random one on, as far as there is room."""
    first = begin + int(draw * (end - begin))
    for place in range(first, first + min(end - begin, len(out) - found)):
        out[found] = place if place < end else place - (end - begin)
        found += 1
    return found


@njit(nogil=True, cache=True)
def closest(points: Points, queries: Points, count: int, draws: Points) -> Ints:
    """Return for each query the places of its closest donors, nearest first, -1 past the last.

    `points` are the donors' predictions, sorted; `draws` in [0, 1) say by query where it begins
    in a run of equals.
    """
    total = len(points)
    out = np.full((len(queries), count), -1, dtype=np.int64)
    for q in range(len(queries)):
        right = np.searchsorted(points, queries[q])
        left = right - 1
        found = 0
        while found < count and (left >= 0 or right < total):
            near_left = left >= 0 and (
                right == total or queries[q] - points[left] <= points[right] - queries[q]
            )
            begin, end = _run(points, left if near_left else right)
            found = _go_round(begin, end, draws[q], out[q], found)
            if near_left:
                left = begin - 1
            else:
                right = end
    return out


@njit(nogil=True, cache=True)
def _mean_distance(points: Points, sums: Points, query: float) -> float:
    """Return the mean distance of a query to all donors, by the running sums of their points."""
    below = np.searchsorted(points, query)
    total = len(points)
    left = query * below - sums[below]
    right = sums[total] - sums[below] - query * (total - below)
    return (left + right) / total


@njit(nogil=True, cache=True)
def weighted(
    points: Points, sums: Points, queries: Points, reach: float, nearest: Ints, draws: Points
) -> Ints:
    """Draw a donor for each query with tricube weights.

    The weight of a donor at distance d is (1 - (d/h)³)³ up to h = reach · mean distance, else 0.
    Drawn by rejection: a donor of the window is proposed and taken with its weight. `draws` has
    pairs of numbers in [0, 1); where they run out, or the window is empty, the nearest is taken.
    """
    out = np.empty(len(queries), dtype=np.int64)
    for q in range(len(queries)):
        width = reach * _mean_distance(points, sums, queries[q])
        begin = np.searchsorted(points, queries[q] - width)
        end = np.searchsorted(points, queries[q] + width, side="right")
        out[q] = nearest[q]
        for k in range(0, draws.shape[1] - 1, 2):
            if begin == end or width == 0:
                break
            place = begin + int(draws[q, k] * (end - begin))
            share = abs(points[place] - queries[q]) / width
            if draws[q, k + 1] < (1 - share**3) ** 3:
                out[q] = place
                break
    return out


@njit(nogil=True, cache=True)
def members(near: Ints, bounds: Ints, count: int, draws: Points) -> Ints:
    """Return the places of the members of each query's points, point after point.

    The members of point p stand at bounds[p] up to bounds[p + 1]; each query begins at a random
    one of them and goes round.
    """
    out = np.full((len(near), count), -1, dtype=np.int64)
    for q in range(len(near)):
        found = 0
        for k in range(near.shape[1]):
            found = _go_round(bounds[near[q, k]], bounds[near[q, k] + 1], draws[q], out[q], found)
    return out


@njit(nogil=True, cache=True)
def nearest_in_plane(points: Points, queries: Points) -> Ints:
    """Return for each query the place of its nearest point, by both coordinates.

    `points` are sorted by the first coordinate: they are searched outwards from the query's own, as
    long as that coordinate alone may be nearer. No tree need be made.
    """
    out = np.zeros(len(queries), dtype=np.int64)
    first, total = points[:, 0], len(points)
    for q in range(len(queries)):
        x, y = np.float64(queries[q, 0]), np.float64(queries[q, 1])
        right = np.searchsorted(first, queries[q, 0])
        left, least = right - 1, np.inf
        while left >= 0 or right < total:
            before = x - points[left, 0] if left >= 0 else np.inf
            after = points[right, 0] - x if right < total else np.inf
            if min(before, after) ** 2 >= least:
                break
            at = left if before < after else right
            distance = min(before, after) ** 2 + (y - points[at, 1]) ** 2
            if distance < least:
                least, out[q] = distance, at
            if before < after:
                left -= 1
            else:
                right += 1
    return out


@njit(nogil=True, cache=True)
def rank_partners(window: int, draws: Floats) -> Ints:
    """Return for each rank the rank it is swapped with; itself where none is free.

    `draws` in [0, 1) say by rank from which of the ranks above to look for a free one.

    Notes
    -----
    From the lowest rank on: of the next `window` ranks the first free one from a random place
    on, going round.
    """
    count = len(draws)
    partner = np.full(count, -1, dtype=np.int64)
    for i in range(count):
        if partner[i] >= 0:
            continue
        span = min(window, count - 1 - i)
        partner[i] = i
        start = int(draws[i] * span)
        for step in range(span):
            j = i + 1 + (start + step) % span
            if partner[j] < 0:
                partner[i], partner[j] = j, i
                break
    return partner
