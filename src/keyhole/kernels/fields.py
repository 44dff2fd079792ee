"""Fields of packed records, compared all at once.

A field is a variable's bits in a packed word (see `packing`). The highest bit of each field
stands for the variable: after an exclusive-or, one addition tells in those bits which fields
differ, however many there are in a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Words
from keyhole.kernels.packing import Layout


class Fields(NamedTuple):
    """By word: the lower bits and the highest bit of every field, and a record missing all."""

    low: Words
    high: Words
    missing: Words


def fields_of(plan: Layout, missing: Sequence[int]) -> Fields:
    """Return the fields of a layout; `missing` is by variable the code of a missing value."""
    high, absent = [0] * plan.words, [0] * plan.words
    for v, code in enumerate(missing):
        high[plan.word[v]] |= 1 << int(plan.shift[v] + plan.bits[v] - 1)
        absent[plan.word[v]] |= int(code) << int(plan.shift[v])
    tops = np.array(high, dtype=np.uint64)
    every = plan.mask(range(len(missing)))
    return Fields(every & ~tops, tops, np.array(absent, dtype=np.uint64))


@njit(nogil=True, cache=True)
def differing(a: np.uint64, b: np.uint64, low: np.uint64, high: np.uint64) -> np.uint64:
    """Return the highest bits of the fields on which two words differ."""
    x = a ^ b
    # Any lower bit that is set carries into the highest one.
    return (((x & low) + low) | x) & high


@njit(nogil=True, cache=True)
def popcount(x: np.uint64) -> int:
    """Return the number of bits set; the compiler makes one instruction of it."""
    count = 0
    while x:
        x = x & (x - np.uint64(1))
        count += 1
    return count
