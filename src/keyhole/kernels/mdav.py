"""MDAV: groups of at least k records that are near each other.

The plain algorithm looks at every record left for each group, which takes time in the square of
the records. Here they stand in a tree of boxes: a box whose nearest (farthest) corner cannot beat
the best found so far is not opened, and boxes shrink as records are taken. The groups are exactly
those of the plain algorithm, ties going to the lowest record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints

# A box of so few records is looked through; they lie side by side, so that it goes fast.
LEAF = 64


class BoxTree(NamedTuple):
    """Records in boxes: node i has the children 2i + 1 and 2i + 2.

    `alive` counts the records left in a node, whose box is from `low` to `high`. A leaf has its
    own, those left first: their numbers in `records`, their values, by column, in `points`.
    """

    points: Floats
    records: Ints
    place: Ints
    alive: Ints
    low: Floats
    high: Floats
    leaves: int


class Room(NamedTuple):
    """What a search works with: nodes to visit, distances of a leaf, and the nearest so far."""

    stack: Ints
    out: Floats
    best: Floats
    found: Ints


@njit(nogil=True, cache=True)
def plant(points: Floats) -> BoxTree:
    """Build the tree: each node is cut in the middle of its widest side."""
    count, sides = points.shape
    leaves = 1
    while count > LEAF * leaves:
        leaves *= 2
    nodes = 2 * leaves - 1
    order = np.arange(count)
    first, last = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    last[0] = count
    tree = BoxTree(
        np.zeros((leaves, sides, LEAF)),
        np.zeros((leaves, LEAF), dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.full((nodes, sides), np.inf),
        np.full((nodes, sides), -np.inf),
        leaves,
    )
    for node in range(nodes):
        a, b = first[node], last[node]
        tree.alive[node] = b - a
        for i in range(a, b):
            for d in range(sides):
                tree.low[node, d] = min(tree.low[node, d], points[order[i], d])
                tree.high[node, d] = max(tree.high[node, d], points[order[i], d])
        if node >= leaves - 1:
            _fill(tree, node - (leaves - 1), points, order[a:b])
            continue
        side = np.argmax(tree.high[node] - tree.low[node])
        part = order[a:b].copy()
        order[a:b] = part[np.argsort(points[part, side], kind="mergesort")]
        middle = (a + b) // 2
        first[2 * node + 1], last[2 * node + 1] = a, middle
        first[2 * node + 2], last[2 * node + 2] = middle, b
    return tree


@njit(nogil=True, cache=True)
def _fill(tree: BoxTree, leaf: int, points: Floats, records: Ints) -> None:
    for j in range(len(records)):
        tree.records[leaf, j] = records[j]
        tree.place[records[j]] = leaf
        for d in range(points.shape[1]):
            tree.points[leaf, d, j] = points[records[j], d]


@njit(nogil=True, cache=True)
def take(tree: BoxTree, record: int) -> None:
    """Take a record out, and shrink the boxes it was in."""
    leaf = tree.place[record]
    node = leaf + tree.leaves - 1
    last = tree.alive[node] - 1
    at = 0
    while tree.records[leaf, at] != record:
        at += 1
    tree.records[leaf, at] = tree.records[leaf, last]
    tree.alive[node] = last
    for d in range(tree.points.shape[1]):
        column = tree.points[leaf, d]
        column[at] = column[last]
        low, high = np.inf, -np.inf
        for j in range(last):
            low, high = min(low, column[j]), max(high, column[j])
        tree.low[node, d], tree.high[node, d] = low, high
    while node > 0:
        node = (node - 1) // 2
        tree.alive[node] -= 1
        one, other = 2 * node + 1, 2 * node + 2
        for d in range(tree.points.shape[1]):
            tree.low[node, d] = min(tree.low[one, d], tree.low[other, d])
            tree.high[node, d] = max(tree.high[one, d], tree.high[other, d])


@njit(nogil=True, cache=True, inline="always")
def _distances(tree: BoxTree, node: int, centre: Floats, out: Floats) -> int:
    """Put the squared distances of a leaf's records into `out`; return how many those are."""
    leaf = node - (tree.leaves - 1)
    for j in range(LEAF):
        out[j] = 0.0
    for d in range(len(centre)):
        column, middle = tree.points[leaf, d], centre[d]
        for j in range(LEAF):  # always all, which the processor does many at a time
            gap = column[j] - middle
            out[j] += gap * gap
    return tree.alive[node]


@njit(nogil=True, cache=True, inline="always")
def _least_of_box(tree: BoxTree, node: int, centre: Floats, sign: float) -> float:
    """Return the least distance from a point to a box, or less the largest if the sign is -1."""
    total = 0.0
    for d in range(len(centre)):
        below, above = tree.low[node, d] - centre[d], centre[d] - tree.high[node, d]
        gap = max(below, above, 0.0) if sign > 0 else min(below, above)
        total += gap * gap
    return sign * total


@njit(nogil=True, cache=True)
def _nearest(tree: BoxTree, centre: Floats, count: int, sign: float, room: Room) -> int:
    """Find the records left that are nearest to a point, and return the nearest.

    They are the farthest if the sign is -1.
    """
    stack, out, best, found = room
    best[:count] = np.inf
    found[:count] = -1
    size = 1
    stack[0] = 0
    while size > 0:
        size -= 1
        node = stack[size]
        if tree.alive[node] == 0 or _least_of_box(tree, node, centre, sign) > best[count - 1]:
            continue
        if node >= tree.leaves - 1:
            records = tree.records[node - (tree.leaves - 1)]
            for j in range(_distances(tree, node, centre, out)):
                if sign * out[j] <= best[count - 1]:
                    _insert(sign * out[j], records[j], count, best, found)
            continue
        one, other = 2 * node + 1, 2 * node + 2
        ahead = tree.alive[one] > 0 and (
            tree.alive[other] == 0
            or _least_of_box(tree, one, centre, sign) < _least_of_box(tree, other, centre, sign)
        )
        stack[size], stack[size + 1] = (other, one) if ahead else (one, other)
        size += 2
    return found[0]


@njit(nogil=True, cache=True)
def _insert(near: float, record: int, count: int, best: Floats, found: Ints) -> None:
    """Put a record among the nearest, if it is one; of equally near ones the lowest."""
    at = count
    while at > 0 and (near < best[at - 1] or (near == best[at - 1] and record < found[at - 1])):
        at -= 1
    if at < count:
        for i in range(count - 1, at, -1):
            best[i], found[i] = best[i - 1], found[i - 1]
        best[at], found[at] = near, record


@njit(nogil=True, cache=True)
def _close(
    tree: BoxTree, points: Floats, start: int, number: int, group: Ints, total: Floats, room: Room
) -> None:
    """Make a group of a record and its k - 1 nearest, and take them out; k is the room there is."""
    k, found = len(room.found), room.found
    group[start] = number
    total -= points[start]
    take(tree, start)
    _nearest(tree, points[start], k - 1, 1.0, room)
    for i in range(k - 1):
        group[found[i]] = number
        total -= points[found[i]]
        take(tree, found[i])


@njit(nogil=True, cache=True)
def mdav(points: Floats, k: int) -> Ints:
    """Return for each record the number of its group.

    `points` are a row a record, at least k of them; k is at least 2.

    Notes
    -----
    While 3k or more records are left: r is the farthest from their centre, its group is r and
    the k - 1 nearest; s is the farthest from r, its group likewise. With 2k to 3k - 1 left, one
    such group around the farthest from the centre and one of the rest; with fewer, the rest.
    """
    count = len(points)
    tree = plant(points)
    group = np.full(count, -1, dtype=np.int64)
    total = np.zeros(points.shape[1])
    for i in range(count):
        total += points[i]
    room = Room(
        np.empty(128, dtype=np.int64), np.empty(LEAF), np.empty(k), np.empty(k, dtype=np.int64)
    )
    number, rest = 0, count
    while rest >= 2 * k:
        start = _nearest(tree, total / rest, 1, -1.0, room)
        both = rest >= 3 * k
        _close(tree, points, start, number, group, total, room)
        if both:
            other = _nearest(tree, points[start], 1, -1.0, room)
            _close(tree, points, other, number + 1, group, total, room)
        number += 1 + both
        rest -= k * (1 + both)
    for i in range(count):
        if group[i] < 0:
            group[i] = number
    return group
