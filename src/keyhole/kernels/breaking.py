"""The smallest set of variables, for each record, that meets all of the record's sets.

Up to sixteen variables there are few enough sets of them to try all, the smallest first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints, Words
from keyhole.kernels.fields import popcount

__all__ = ["break_all"]


@njit(nogil=True, cache=True)
def break_all(starts: Ints, sets: Words, noise: Floats, candidates: Words) -> Words:
    """Choose for each record a smallest set of variables that meets all its sets.

    Parameters
    ----------
    starts
        Where the sets of each record begin, and where the last one's end.
    sets
        The records' sets, as masks of variables; none is empty.
    noise
        By record and variable a small number that settles ties.
    candidates
        All sets of variables, the smallest first.

    Returns
    -------
    The set chosen for each record: of the smallest that meet all, the one whose variables are
    in most of the record's sets, counted with their noise. 0 for a record without sets.
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
