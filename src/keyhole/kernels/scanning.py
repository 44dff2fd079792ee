"""The nearest ranks of a query by looking at every pattern, sixty-four at a time.

Patterns are columns of bits: a plane has one bit a pattern. For a counted variable there is a
plane for each coarse code, that tells who differs from it; for a graded one a plane for each
coarse code k, that tells who has k or more; the last plane tells who is missing. Lower bounds of
the cost are summed up in whole units for all patterns of a word at once, in counters that are
words of bits too, and start where they overflow beyond the limit. Only who does not overflow is
priced. The limit falls as the rank rule closes. The work hardly depends on how far the
neighbours are: this is for queries that are too far from everybody for the trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.fields import popcount
from keyhole.kernels.grading import (
    Asked,
    Rules,
    Side,
    counted_cost,
    graded_cost,
    key_of,
    known_fields,
    largest_cost,
)
from keyhole.kernels.nearest import Bins, Budget, floors_of
from keyhole.kernels.ranking import Kept, keep, list_kept, nothing_kept
from keyhole.kernels.tries import Tree

__all__ = ["COUNTERS", "FULL", "ONES", "ZEROS", "Planes", "level_of", "scan"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Five bits a counter: it overflows at 32 units. Prices count as 1, 2, 4 or 8 units.
COUNTERS = 5
FULL = 31
HIGHEST = 3
ZEROS, ONES = 0, 1
SLACK = 1e-9
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Planes(NamedTuple):
    """The planes, by variable where they start and how many codes there are.

    Planes lie one behind the other in `bits`; the first two are all zeros and all ones.
    `coarse` has, from `coarse_at` on, the coarse code of each code of a counted variable.
    `starts` are by limit the counters of what is missing, such that they overflow beyond it,
    and the plane of those that do already; the last word is that of nothing missing. `unit` is
    the cost that counts as one.
    """

    bits: Words
    words: int
    at: Ints
    sizes: Ints
    coarse: Numbers
    coarse_at: Ints
    starts: Words
    unit: float


class Terms(NamedTuple):
    """What to count for a query, three at a time.

    `planes` are those of the counted variables; `ranges` are by level (below, above, without):
    who is not in `below`, or in `above`, and not in `without`. Planes are told by where they
    lie in the bits. `size` has the entries of `planes`, and then those of `ranges` by level.
    """

    planes: Words
    ranges: Words
    size: Ints


@njit(nogil=True, cache=True)
def level_of(price: float, unit: float) -> int:
    """Return the counter bit of the largest power of two units within a price; -1: none."""
    level = -1
    while level < HIGHEST and unit * (2 << level if level >= 0 else 1) <= price + SLACK:
        level += 1
    return level


@njit(nogil=True, cache=True)
def _add_range(terms: Terms, below: int, above: int, without: int, level: int, words: int) -> None:
    if level >= 0:
        i = terms.size[1 + level]
        terms.ranges[level, i], terms.ranges[level, i + 1] = below * words, above * words
        terms.ranges[level, i + 2] = without * words
        terms.size[1 + level] = i + 3


@njit(nogil=True, cache=True)
def _round_up(terms: Terms, words: int) -> None:
    """Fill up with terms that count nobody, since three are counted at a time."""
    while terms.size[0] % 3:
        terms.planes[terms.size[0]] = ZEROS * words
        terms.size[0] += 1
    for level in range(HIGHEST + 1):
        while terms.size[1 + level] % 9:
            _add_range(terms, ONES, ZEROS, ZEROS, level, words)


@njit(nogil=True, cache=True)
def _add_graded(planes: Planes, v: int, floors: Floats, g: int, terms: Terms) -> None:
    """List who costs at least 1, 2, 4 … units; each adds what the one before has not."""
    at, codes = planes.at[v], planes.sizes[v]
    for level in range(HIGHEST + 2):
        price = planes.unit * (1 << level)
        low, high = codes, 0
        for b in range(codes):
            if floors[g, b] < price - SLACK:
                low, high = min(low, b), b + 1
        if low > high:  # everybody
            low = high = codes
        elif low == 0 and high == codes:  # nobody
            break
        _add_range(terms, at + low, at + high, at + codes, max(level - 1, 0), planes.words)


@njit(nogil=True, cache=True)
def _list_terms(
    planes: Planes, asked: Asked, q: int, rules: Rules, floors: Floats, terms: Terms
) -> bool:
    """List everything that is to be counted for a query; true if it knows all variables."""
    counted, variables = len(rules.missing), len(planes.at)
    complete = True
    for v in range(variables):
        complete &= asked.codes[q, v] >= 0
    terms.size[:] = 0
    for v in range(variables):
        code = asked.codes[q, v]
        if code < 0:
            continue
        gone = planes.at[v] + planes.sizes[v]
        if v < counted:
            home = planes.at[v] + planes.coarse[planes.coarse_at[v] + code]
            terms.planes[terms.size[0]] = home * planes.words
            terms.size[0] += 1
        else:
            _add_graded(planes, v, floors, v - counted, terms)
        if not complete:
            absent = rules.absent if v < counted else rules.absents[v - counted]
            level = level_of(absent, planes.unit)
            _add_range(terms, ONES, gone, ZEROS, level, planes.words)
    _round_up(terms, planes.words)
    return complete


Counter = tuple[int, int, int, int, int, int]


@njit(nogil=True, cache=True, inline="always")
def _add(x: int, level: int, c0: int, c1: int, c2: int, c3: int, c4: int, over: int) -> Counter:
    """Add a bit of a level to the counters of all patterns of a word."""
    if level == 0:
        c0, x = c0 ^ x, c0 & x
    if level <= 1:
        c1, x = c1 ^ x, c1 & x
    if level <= 2:
        c2, x = c2 ^ x, c2 & x
    if level <= 3:
        c3, x = c3 ^ x, c3 & x
    c4, x = c4 ^ x, c4 & x
    return c0, c1, c2, c3, c4, over | x


@njit(nogil=True, cache=True, inline="always")
def _add_three(
    x: int, y: int, z: int, level: int,
    c0: int, c1: int, c2: int, c3: int, c4: int, over: int,
) -> Counter:  # fmt: skip
    """Add three bits of a level: first among themselves, which saves half the work."""
    either = x ^ y
    carry = (x & y) | (either & z)
    c0, c1, c2, c3, c4, over = _add(either ^ z, level, c0, c1, c2, c3, c4, over)
    return _add(carry, level + 1, c0, c1, c2, c3, c4, over)


@njit(nogil=True, cache=True, inline="always")
def _add_three_at(
    x: int, y: int, z: int, level: int,
    c0: int, c1: int, c2: int, c3: int, c4: int, over: int,
) -> Counter:  # fmt: skip
    """Add three bits of a level known at run time only."""
    if level == 0:
        return _add_three(x, y, z, 0, c0, c1, c2, c3, c4, over)
    if level == 1:
        return _add_three(x, y, z, 1, c0, c1, c2, c3, c4, over)
    if level == 2:
        return _add_three(x, y, z, 2, c0, c1, c2, c3, c4, over)
    return _add_three(x, y, z, 3, c0, c1, c2, c3, c4, over)


@njit(nogil=True, cache=True, inline="always")
def _in_range(bits: Words, ranges: Words, level: int, i: int, w: int) -> int:
    x = ~bits[ranges[level, i] + w] | bits[ranges[level, i + np.uint64(1)] + w]
    return x & ~bits[ranges[level, i + np.uint64(2)] + w]


@njit(nogil=True, cache=True, inline="always")
def _count_word(
    bits: Words, w: int, level: int, planes: Words, ranges: Words, size: Ints,
    c0: int, c1: int, c2: int, c3: int, c4: int, over: int,
) -> int:  # fmt: skip
    """Count the terms for a word of patterns; return who overflowed."""
    i, end = np.uint64(0), np.uint64(size[0])
    while i < end:
        x, y = bits[planes[i] + w], bits[planes[i + np.uint64(1)] + w]
        z = bits[planes[i + np.uint64(2)] + w]
        c0, c1, c2, c3, c4, over = _add_three_at(x, y, z, level, c0, c1, c2, c3, c4, over)
        i += np.uint64(3)
    for k in range(HIGHEST, -1, -1):
        i, end = np.uint64(0), np.uint64(size[1 + k])
        while i < end and over != ALL:
            x = _in_range(bits, ranges, k, i, w)
            y = _in_range(bits, ranges, k, i + np.uint64(3), w)
            z = _in_range(bits, ranges, k, i + np.uint64(6), w)
            c0, c1, c2, c3, c4, over = _add_three_at(x, y, z, k, c0, c1, c2, c3, c4, over)
            i += np.uint64(9)
    return over


@njit(nogil=True, cache=True)
def _home(tree: Tree, asked: Asked, q: int, counted: int, floors: Floats) -> int:
    """Return a pattern that is likely near: follow the best child as far as it goes."""
    node = asked.root[q]
    while tree.children[node]:
        v, best, least = tree.order[tree.depth[node]], -1, np.inf
        for x in range(tree.child[node], tree.child[node] + tree.children[node]):
            if v < counted:
                cost = 0.0 if tree.code[x] == asked.codes[q, v] else 1.0
            else:
                cost = floors[v - counted, tree.code[x]]
            if cost < least:
                best, least = x, cost
        node = best
    return tree.first[node]


@njit(nogil=True, cache=True)
def _scan_one(
    planes: Planes, side: Side, start: int, end: int, home: int, asked: Asked, q: int,
    rules: Rules, known: Words, terms: Terms, complete: bool, budget: Budget, kept: Kept,
) -> int:  # fmt: skip
    """Look at the patterns from start to end, those around `home` first; return what is kept."""
    bits, starts, unit, stride = (
        planes.bits,
        planes.starts,
        planes.unit,
        np.uint64(planes.words + 1),
    )
    level = level_of(rules.differ, unit)
    listed, ranges, size = terms
    rows, graded, weights, ids = side
    asked_rows, asked_graded, base = asked.rows, asked.graded, asked.base[q]
    low, high, absent_fields = rules.low, rules.high, rules.absent_fields
    differ, absent, measured = rules.differ, rules.absent, graded.shape[1] > 0
    root, scale, cap = rules.root, rules.scale, budget.cap
    count, bound = 0, budget.bound
    most = largest_cost(bound, root, scale) - base
    units = int(most / unit + SLACK)
    first, last = start >> 6, (end + 63) >> 6
    w = min(max(home >> 6, first), last - 1)
    for _ in range(last - first):
        lanes = ALL
        if units < FULL:
            at = np.uint64(w if complete else planes.words) + np.uint64(6 * units) * stride
            lanes = ~_count_word(
                bits, np.uint64(w), level, listed, ranges, size,
                starts[at], starts[at + stride], starts[at + np.uint64(2) * stride],
                starts[at + np.uint64(3) * stride], starts[at + np.uint64(4) * stride],
                starts[at + np.uint64(5) * stride],
            )  # fmt: skip
        while lanes:
            lowest = lanes & (~lanes + np.uint64(1))
            lanes ^= lowest
            r = (w << 6) + popcount(lowest - np.uint64(1))
            if r < start or r >= end:
                continue
            cost = counted_cost(
                rows, r, asked_rows, q, known, low, high, absent_fields, differ, absent
            )
            if measured and cost <= most:
                cost = graded_cost(graded, r, asked_graded, q, rules, cost, most)
            if cost > most:
                continue
            key = key_of(base + cost, root, scale)
            if key < bound:
                count, bound = keep(kept, count, ids[r], key, weights[r], cap, bound)
                most = largest_cost(bound, root, scale) - base
                units = int(most / unit + SLACK)
        if most < 0:
            break
        w = w + 1 if w + 1 < last else first
    return count


@njit(nogil=True, cache=True)
def scan(
    planes: Planes, side: Side, roots: Ints, asked: Asked, rules: Rules, bins: Bins,
    budget: Budget, queries: Ints, tree: Tree,
) -> Ints:  # fmt: skip
    """Find the nearest ranks of some queries.

    Parameters
    ----------
    planes, side
        The patterns as planes of bits, and as they are, in the same order.
    roots
        Where the patterns of each root start, and at the end their number.
    asked, rules, bins, budget
        The queries, the prices, the coarse codes and how far to search.
    queries
        The numbers of the queries.
    tree
        A tree over the patterns in this order, to start near each query.

    Returns
    -------
    Rows of (query, pattern, key).
    """
    found, total = np.empty((1024, 3), dtype=np.int64), 0
    kept = nothing_kept(budget.cap)
    known = np.zeros(asked.rows.shape[1], dtype=np.uint64)
    floors = np.zeros((len(bins.sizes), bins.lowest.shape[1] + 1))
    terms = Terms(
        np.zeros(len(planes.at) + 3, dtype=np.uint64),
        np.zeros((HIGHEST + 1, 6 * len(planes.at) + 9), dtype=np.uint64),
        np.zeros(HIGHEST + 2, dtype=np.int64),
    )
    for q in queries:
        known_fields(asked.rows, q, rules, known)
        floors_of(asked, q, rules, bins, floors)
        complete = _list_terms(planes, asked, q, rules, floors, terms)
        start, end = roots[asked.root[q]], roots[asked.root[q] + 1]
        home = _home(tree, asked, q, len(rules.missing), floors)
        count = _scan_one(
            planes, side, start, end, home, asked, q, rules, known, terms, complete, budget,
            kept,
        )  # fmt: skip
        found, total = list_kept(found, total, q, kept, count)
    return found[:total].copy()
