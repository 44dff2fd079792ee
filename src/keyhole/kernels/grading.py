"""Costs of a pair of patterns, variable by variable, and the rank rule; lower is better.

Some variables are *counted*: they agree, differ or are missing, each at the same price, and whole
words of them are compared at once (see `fields`). The others are *graded*: the cost depends on the
two values. What is missing in the query is added up beforehand by the caller. The rank rule keeps
the best ranks while they hold no more pairs than the cap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints, Numbers, Words
from keyhole.kernels.fields import differing, popcount

# How a graded variable is graded: the square of 2 e^x / (1 + e^x) - 1 for the distance x, at
# most 6; by the band the distance falls into, absolute or relative to the query; by a table.
LOGISTIC, BAND, RELATIVE_BAND, TABLE = 0, 1, 2, 3

FARTHEST = 6.0
# Distances are compared to nine decimals, so that 0.8 - 0.6 lies within 0.2.
DECIMALS = 1e9
SLACK = 1e-12


class Rules(NamedTuple):
    """The prices.

    The first three describe the counted variables' fields, `missing` has their codes of a
    missing value, then come the prices of differing and missing. By graded variable: its kind,
    the price of missing, and where its bands or its table are: band i costs `costs[i]` up to
    the distance `limits[i]`. A cost c has the rank key `scale` times c, or times the root of c
    if `root`, to the nearest whole number.
    """

    low: Words
    high: Words
    absent_fields: Words
    missing: Ints
    differ: float
    absent: float
    kinds: Ints
    absents: Floats
    bands: Ints
    limits: Floats
    costs: Floats
    table_at: Ints
    table_width: Ints
    tables: Floats
    root: bool
    scale: float


class Side(NamedTuple):
    """Patterns to search: packed counted variables, graded values, records and numbers."""

    rows: Words
    graded: Floats
    weights: Numbers
    ids: Numbers


class Asked(NamedTuple):
    """Patterns to find neighbours for.

    `codes` has one column a variable, the counted ones first: the code, -1 for missing; for
    a graded variable the number of its value. `base` is what the missing ones cost; `root` the
    number of the tree's root to start from, -1 for none.
    """

    rows: Words
    graded: Floats
    codes: Numbers
    base: Floats
    root: Numbers


@njit(nogil=True, cache=True)
def known_fields(rows: Words, q: int, rules: Rules, out: Words) -> None:
    """Find the counted variables that row q knows."""
    for w in range(rows.shape[1]):
        out[w] = differing(rows[q, w], rules.absent_fields[w], rules.low[w], rules.high[w])


@njit(nogil=True, cache=True, inline="always")
def counted_cost(
    rows: Words, r: int, asked: Words, q: int, within: Words,
    low: Words, high: Words, absent_fields: Words, differ: float, absent: float,
) -> float:  # fmt: skip
    """Return the cost of the counted variables whose highest bits are set in `within`."""
    apart = gone = 0
    for w in range(rows.shape[1]):
        there = differing(rows[r, w], absent_fields[w], low[w], high[w])
        unlike = differing(rows[r, w], asked[q, w], low[w], high[w])
        apart += popcount(within[w] & there & unlike)
        gone += popcount(within[w] & ~there)
    return apart * differ + gone * absent


@njit(nogil=True, cache=True)
def _band(gap: float, limits: Floats, costs: Floats, first: int, last: int) -> float:
    rounded = np.rint(gap * DECIMALS) / DECIMALS
    for i in range(first, last - 1):
        if rounded <= limits[i]:
            return costs[i]
    return costs[last - 1]


@njit(nogil=True, cache=True)
def grade(
    kind: int, asked: float, value: float, limits: Floats, costs: Floats, first: int, last: int,
    tables: Floats, table_at: int, width: int,
) -> float:  # fmt: skip
    """Return the cost of a graded variable that both know: its bands are [first, last)."""
    if kind == LOGISTIC:
        power = math.exp(min(abs(asked - value), FARTHEST))
        return (2 * power / (1 + power) - 1) ** 2
    if kind == TABLE:
        return tables[table_at + int(asked) * width + int(value)]
    gap = abs(asked - value)
    if kind == RELATIVE_BAND and gap > 0:
        gap = gap / abs(asked) if asked != 0 else np.inf
    return _band(gap, limits, costs, first, last)


@njit(nogil=True, cache=True)
def least_grades(
    rules: Rules, g: int, asked: Floats, lowest: Floats, highest: Floats, out: Floats
) -> None:
    """Find by query's value and interval of values the least cost of a graded variable."""
    kind, limits, costs, tables = rules.kinds[g], rules.limits, rules.costs, rules.tables
    first, last, table_at, width = (
        rules.bands[g], rules.bands[g + 1], rules.table_at[g], rules.table_width[g],
    )  # fmt: skip
    for i in range(len(asked)):
        for b in range(len(lowest)):
            near = min(max(asked[i], lowest[b]), highest[b])
            out[i, b] = grade(
                kind, asked[i], near, limits, costs, first, last, tables, table_at, width
            )


@njit(nogil=True, cache=True)
def key_of(cost: float, root: bool, scale: float) -> int:
    """Return the rank key of a cost: equal keys are ties."""
    return int(np.rint(scale * (math.sqrt(cost) if root else cost)))


@njit(nogil=True, cache=True)
def largest_cost(key: int, root: bool, scale: float) -> float:
    """Return a cost that no cost with a lower key exceeds."""
    most = (key - 0.5) / scale
    cost = most * most if root else most
    return cost + SLACK * (1 + cost) if most > 0 else -1.0


class Kept(NamedTuple):
    """The best so far in order of key: patterns, keys and records."""

    ids: Ints
    keys: Ints
    weights: Ints


@njit(nogil=True, cache=True)
def nothing_kept(cap: int) -> Kept:
    """Return room for as many patterns as the rule can keep, and one more."""
    return Kept(
        np.zeros(cap + 1, dtype=np.int64),
        np.zeros(cap + 1, dtype=np.int64),
        np.zeros(cap + 1, dtype=np.int64),
    )


@njit(nogil=True, cache=True)
def keep(
    kept: Kept, count: int, pattern: int, key: int, weight: int, cap: int, bound: int
) -> tuple[int, int]:
    """Add a pattern with a key below the bound; return the new count and the new bound.

    Only keys below the bound can be kept from now on: once more records than the cap lie at
    or below a key, that key and all beyond it are dropped. So never more than `cap` remain.
    """
    ids, keys, weights = kept
    i = count
    while i > 0 and keys[i - 1] > key:
        ids[i], keys[i], weights[i] = ids[i - 1], keys[i - 1], weights[i - 1]
        i -= 1
    ids[i], keys[i], weights[i] = pattern, key, weight
    count += 1
    total = start = 0
    for i in range(count):
        if keys[i] != keys[start]:
            start = i
        total += weights[i]
        if total > cap:
            return start, keys[start]
    return count, bound


@njit(nogil=True, cache=True)
def list_kept(found: Ints, total: int, query: int, kept: Kept, count: int) -> tuple[Ints, int]:
    """Append what is kept of a query as rows of (query, pattern, key); return the new number."""
    if total + count > len(found):
        found = np.concatenate((found, np.empty((len(found) + count, 3), dtype=np.int64)))
    for i in range(count):
        found[total, 0], found[total, 1], found[total, 2] = query, kept.ids[i], kept.keys[i]
        total += 1
    return found, total
