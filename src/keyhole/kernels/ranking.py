"""The rank rule: keep the best ranks while they hold no more pairs than the cap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Ints

__all__ = ["Kept", "keep", "list_kept", "nothing_kept"]


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
