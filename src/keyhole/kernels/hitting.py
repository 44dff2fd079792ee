"""The smallest set of variables that tells a pair from everybody else in a small cell.

Each neighbour gives the set of variables on which it differs from the pair. A set of variables
isolates the pair exactly if it meets all of those sets: a smallest hitting set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.fields import popcount

__all__ = ["Search", "find_alike", "only_two", "smallest_hitting_set", "start_search"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


class Search(NamedTuple):
    """Room for the search: by depth the candidates and the word and bit chosen; the best set."""

    candidates: Words
    word: Ints
    bit: Words
    best: Words


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
            having[(rows[i, word[u]] >> shift[u]) & field[u]] |= np.uint64(1) << np.uint64(i - a)
        if missing[u] >= 0:  # missing is like nobody
            having[missing[u]] = 0
        for i in range(a, middle):
            alike[i - a, u] = having[(rows[i, word[u]] >> shift[u]) & field[u]]
        for i in range(a, b):
            having[(rows[i, word[u]] >> shift[u]) & field[u]] = 0


@njit(nogil=True, cache=True, inline="always")
def only_two(alike: Words, i: int, j: int, start: int, variables: int) -> bool:
    """Tell whether two rows are alone with each other on all variables they agree on."""
    other = np.uint64(1) << np.uint64(j)
    company = ~np.uint64(0)
    for u in range(start, variables):
        if alike[i, u] & other:
            company &= alike[i, u]
    return company == other | (np.uint64(1) << np.uint64(i))


@njit(nogil=True, cache=True)
def start_search(variables: int, words: int) -> Search:
    """Return room to search sets of so many variables in so many words."""
    return Search(
        np.zeros((variables + 2, words), dtype=np.uint64),
        np.zeros(variables + 2, dtype=np.int64),
        np.zeros(variables + 2, dtype=np.uint64),
        np.zeros(words, dtype=np.uint64),
    )


@njit(nogil=True, cache=True)
def _sort_by_size(sets: Words, count: int) -> None:
    """Sort the sets, the smallest first: they leave the fewest choices."""
    for i in range(1, count):
        j = i
        while j > 0 and _size(sets, j) < _size(sets, j - 1):
            for w in range(sets.shape[1]):
                sets[j, w], sets[j - 1, w] = sets[j - 1, w], sets[j, w]
            j -= 1


@njit(nogil=True, cache=True)
def _size(sets: Words, i: int) -> int:
    total = 0
    for w in range(sets.shape[1]):
        total += popcount(sets[i, w])
    return total


@njit(nogil=True, cache=True)
def _missed(sets: Words, count: int, word: Ints, bit: Words, chosen: int) -> int:
    """Return the first set that none of the chosen variables is in, or -1."""
    for i in range(count):
        hit = False
        for k in range(chosen):
            if sets[i, word[k]] & bit[k]:
                hit = True
                break
        if not hit:
            return i
    return -1


@njit(nogil=True, cache=True)
def _take(candidates: Words, depth: int, word: Ints, bit: Words) -> bool:
    """Choose the next candidate of this depth, if one is left."""
    for w in range(candidates.shape[1]):
        left = candidates[depth, w]
        if left:
            lowest = left & (~left + np.uint64(1))
            candidates[depth, w] = left ^ lowest
            word[depth], bit[depth] = w, lowest
            return True
    return False


@njit(nogil=True, cache=True)
def _lower(word: Ints, bit: Words, chosen: int, best: Words) -> bool:
    """Tell whether the chosen set, read as a number, is lower than the best one."""
    for w in range(len(best) - 1, -1, -1):
        mask = np.uint64(0)
        for k in range(chosen):
            if word[k] == w:
                mask |= bit[k]
        if mask != best[w]:
            return mask < best[w]
    return False


@njit(nogil=True, cache=True)
def smallest_hitting_set(sets: Words, count: int, most: int, search: Search) -> int:
    """Find the smallest set that meets all; of several the lowest, read as a number.

    There is at least one set and none is empty. Returns the size, with the set in
    `search.best`, or 0 if it takes more than `most`.
    """
    candidates, word, bit, best = search
    _sort_by_size(sets, count)
    found = depth = 0
    for w in range(sets.shape[1]):
        candidates[0, w] = sets[0, w]
    while depth >= 0:
        if not _take(candidates, depth, word, bit):
            depth -= 1
            continue
        chosen = depth + 1
        missed = _missed(sets, count, word, bit, chosen)
        if missed < 0:
            if chosen <= most and (chosen != found or _lower(word, bit, chosen, best)):
                found = most = chosen
                for w in range(len(best)):
                    best[w] = 0
                for k in range(chosen):
                    best[word[k]] |= bit[k]
        elif chosen < most:
            depth += 1
            for w in range(sets.shape[1]):
                candidates[depth, w] = sets[missed, w]
    return found
