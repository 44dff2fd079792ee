"""Pairs found, each with the smallest set of variables that makes it: an open hash table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.fields import popcount

__all__ = ["EMPTY", "best_size", "empty_table", "keep_smallest"]

Masks = npt.NDArray[np.uint64]

# A key is two record numbers of 31 bits each, so this one is never met.
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_START = 1 << 12


@njit(nogil=True, cache=True)
def empty_table() -> tuple[Masks, Masks]:
    """Return the keys and masks of a table without pairs."""
    return np.full(_START, EMPTY, dtype=np.uint64), np.zeros(_START, dtype=np.uint64)


@njit(nogil=True, cache=True)
def _place(keys: Masks, key: np.uint64) -> np.uint64:
    """Return where the key is, or where it would go."""
    last = np.uint64(len(keys) - 1)
    at = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & last
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + np.uint64(1)) & last
    return at


@njit(nogil=True, cache=True)
def best_size(keys: Masks, masks: Masks, key: np.uint64, unknown: int) -> int:
    """Return the number of variables of the pair's smallest set so far."""
    at = _place(keys, key)
    return popcount(masks[at]) if keys[at] == key else unknown


@njit(nogil=True, cache=True)
def _put(keys: Masks, masks: Masks, key: np.uint64, mask: np.uint64) -> bool:
    """Keep the smaller set of a pair: fewer variables, then the lower mask; true if it is new."""
    at = _place(keys, key)
    if keys[at] == EMPTY:
        keys[at], masks[at] = key, mask
        return True
    size, held = popcount(mask), popcount(masks[at])
    if size < held or (size == held and mask < masks[at]):
        masks[at] = mask
    return False


@njit(nogil=True, cache=True)
def keep_smallest(
    keys: Masks, masks: Masks, used: int, key: np.uint64, mask: np.uint64
) -> tuple[Masks, Masks, int]:
    """Put a pair's set of variables into the table; return the table and how many it holds."""
    if _put(keys, masks, key, mask):
        used += 1
    if 2 * used > len(keys):
        more_keys = np.full(2 * len(keys), EMPTY, dtype=np.uint64)
        more_masks = np.zeros(2 * len(keys), dtype=np.uint64)
        for i in range(len(keys)):
            if keys[i] != EMPTY:
                _put(more_keys, more_masks, keys[i], masks[i])
        return more_keys, more_masks, used
    return keys, masks, used
