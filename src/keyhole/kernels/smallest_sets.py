"""Smallest sets of variables: that isolate a pair, or that meet all sets of a record.

The rows of a small cell are bits of a word. Each variable on which a pair agrees gives the word of
those who share the value: its company. A set of variables isolates the pair exactly if the
companies have only the two in common: a smallest hitting set, of bits. Where a record has sets of
up to sixteen variables, there are few enough to try all, the smallest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints, Words
from keyhole.kernels.fields import popcount

_ONE = np.uint64(1)


class Search(NamedTuple):
    """Room for the search.

    By agreed variable its company and its bit in the result; by depth the company so far, the
    variables that are still to be tried there and the set so far.
    """

    companies: Words
    bits: Words
    company: Words
    untried: Words
    chosen: Words


@njit(nogil=True, cache=True)
def start_search(variables: int) -> Search:
    """Return room to search sets of so many variables."""
    return Search(
        np.zeros(variables, dtype=np.uint64),
        np.zeros(variables, dtype=np.uint64),
        np.zeros(variables + 1, dtype=np.uint64),
        np.zeros(variables + 1, dtype=np.uint64),
        np.zeros(variables + 1, dtype=np.uint64),
    )


@njit(nogil=True, cache=True)
def find_alike(
    rows: Words, a: int, middle: int, b: int, word: Ints, shift: Words, field: Words,
    missing: Ints, start: int, having: Words, alike: Words,
) -> None:  # fmt: skip
    """Find for rows [a, middle), by variable from `start` on, who of [a, b) has the same value.

    There are at most 64 rows: one bit each. `having` is by code, zero before and after.
    """
    for u in range(start, len(word)):
        for i in range(a, b):
            having[(rows[i, word[u]] >> shift[u]) & field[u]] |= _ONE << np.uint64(i - a)
        if missing[u] >= 0:  # missing is like nobody
            having[missing[u]] = 0
        for i in range(a, middle):
            alike[i - a, u] = having[(rows[i, word[u]] >> shift[u]) & field[u]]
        for i in range(a, b):
            having[(rows[i, word[u]] >> shift[u]) & field[u]] = 0


@njit(nogil=True, cache=True, inline="always")
def always_with(alike: Words, i: int, other: np.uint64, start: int) -> np.uint64:
    """Return who shares every value that row i shares with another: everybody if there is none.

    The pair can be told from all others exactly if these are the two.
    """
    always = ~np.uint64(0)
    for u in range(start, alike.shape[1]):
        if alike[i, u] & other:
            always &= alike[i, u]
    return always


@njit(nogil=True, cache=True, inline="always")
def find_companies(
    alike: Words, i: int, other: np.uint64, bit: Words, start: int, search: Search
) -> int:
    """List the variables on which row i agrees with another; return how many they are."""
    count = 0
    for u in range(start, alike.shape[1]):
        if alike[i, u] & other:
            search.companies[count] = alike[i, u]
            search.bits[count] = bit[u]
            count += 1
    return count


@njit(nogil=True, cache=True, inline="always")
def _telling(company: np.uint64, pair: np.uint64, companies: Words, count: int) -> np.uint64:
    """Return the variables that remove somebody who is hard to remove; all if nobody is there."""
    hard = company & ~pair
    for k in range(count):
        if hard & companies[k]:
            hard &= companies[k]
    somebody = hard & (~hard + _ONE)
    telling = np.uint64(0)
    for k in range(count):
        if not companies[k] & somebody:
            telling |= _ONE << np.uint64(k)
    return telling


@njit(nogil=True, cache=True)
def smallest_isolating_set(
    everybody: np.uint64, pair: np.uint64, count: int, most: int, search: Search
) -> np.uint64:
    """Find the smallest non-empty set that leaves the pair alone; of several the lowest number.

    Returns the set, made of `search.bits`, or 0 if it takes more than `most` variables, which is
    at least 1.
    """
    companies, bits, company, untried, chosen = search
    best, depth = np.uint64(0), 0
    company[0], chosen[0] = everybody, np.uint64(0)
    untried[0] = _telling(everybody, pair, companies, count)
    while depth >= 0:
        left = untried[depth]
        if not left:
            depth -= 1
            continue
        lowest = left & (~left + _ONE)
        untried[depth] = left ^ lowest
        k = popcount(lowest - _ONE)
        now = company[depth] & companies[k]
        mask = chosen[depth] | bits[k]
        if now == pair:
            if depth + 1 < most or not best or mask < best:
                best, most = mask, depth + 1
        elif depth + 1 < most:
            depth += 1
            company[depth], chosen[depth] = now, mask
            untried[depth] = _telling(now, pair, companies, count)
    return best


@njit(nogil=True, cache=True)
def break_all(starts: Ints, sets: Words, noise: Floats, candidates: Words) -> Words:
    """Choose for each record a smallest set of variables that meets all its sets.

    The sets of record r, none empty, are sets[starts[r]:starts[r + 1]]; `candidates` are all
    sets of variables, the smallest first. Of the smallest that meet all, the one is chosen
    whose variables are in most of the record's sets, counted with their `noise`; 0 for a record
    without sets.
    """
    records, variables = noise.shape
    chosen = np.zeros(records, dtype=np.uint64)
    worth = np.zeros(variables)
    for r in range(records):
        first, last = starts[r], starts[r + 1]
        if first == last:
            continue
        for v in range(variables):
            worth[v] = noise[r, v]
            bit = np.uint64(1) << np.uint64(v)
            for i in range(first, last):
                worth[v] += (sets[i] & bit) != 0
        size, best = -1, -1.0
        for c in range(len(candidates)):
            candidate = candidates[c]
            if size >= 0 and popcount(candidate) > size:
                break
            if _meets_all(sets, first, last, candidate):
                total = _total(worth, candidate)
                if total > best:
                    size, best = popcount(candidate), total
                    chosen[r] = candidate
    return chosen


@njit(nogil=True, cache=True)
def _meets_all(sets: Words, first: int, last: int, candidate: int) -> bool:
    met = 0
    for i in range(first, last):
        if not sets[i] & candidate:
            break
        met += 1
    return met == last - first


@njit(nogil=True, cache=True)
def _total(worth: Floats, candidate: int) -> float:
    total = 0.0
    for v in range(len(worth)):
        if candidate & (np.uint64(1) << np.uint64(v)):
            total += worth[v]
    return total
