"""Packed records: a few machine words each, so that a set of variables is a mask.

Every variable gets a field of bits in a row of 64-bit words. Two records agree on a set of
variables when their words agree under the set's mask, however many variables it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Ints, Words

# A digit is what one pass of the radix sort looks at: 256 counters stay in the first-level cache.
DIGIT_BITS = 8
# So many rows of all columns are packed before the next ones, so that they stay in the cache.
ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each variable lives: word, shift and number of bits, in the order given."""

    word: Ints
    shift: Ints
    bits: Ints
    words: int

    def mask(self, variables: Iterable[int]) -> Words:
        """Return the words whose set bits are the fields of the variables."""
        out = [0] * self.words
        for v in variables:
            out[self.word[v]] |= ((1 << int(self.bits[v])) - 1) << int(self.shift[v])
        return np.array(out, dtype=np.uint64)

    def masks(self, variables: Sequence[int]) -> Words:
        """Return the mask of each variable, a row each."""
        some = np.asarray(variables, dtype=np.int64)
        out = np.zeros((len(some), self.words), dtype=np.uint64)
        tops = (np.uint64(1) << self.bits[some].astype(np.uint64)) - np.uint64(1)
        out[np.arange(len(some)), self.word[some]] = tops << self.shift[some].astype(np.uint64)
        return out

    def digit_mask(self, digit: Ints) -> Words:
        """Return the words whose set bits are one digit."""
        out = np.zeros(self.words, dtype=np.uint64)
        out[digit[0]] = ((1 << int(digit[2])) - 1) << int(digit[1])
        return out

    def digits(self, variables: Iterable[int]) -> Ints:
        """Return (word, shift, bits) of every digit to sort by, widest fields first.

        Wide fields first make small cells soonest, and small cells are the cheapest to finish.
        """
        out = []
        for v in sorted(variables, key=lambda v: -int(self.bits[v])):
            top = int(self.shift[v] + self.bits[v])
            while top > self.shift[v]:
                low = max(int(self.shift[v]), top - DIGIT_BITS)
                out.append((int(self.word[v]), low, top - low))
                top = low
        return np.array(out, dtype=np.int64).reshape(-1, 3)


def in_order(sizes: Sequence[int]) -> Layout:
    """Lay variables out in the order given, from the lowest bit up, none without a bit.

    Sets of variables then compare as numbers in the same way as their fields do.
    """
    word, shift, bits = [], [], []
    home = used = 0
    for size in sizes:
        width = max(1, (int(size) - 1).bit_length())
        if used + width > 64:
            home, used = home + 1, 0
        word.append(home)
        shift.append(used)
        bits.append(width)
        used += width
    as_ints = [np.array(x, dtype=np.int64) for x in (word, shift, bits)]
    return Layout(as_ints[0], as_ints[1], as_ints[2], home + 1)


def layout(sizes: Sequence[int]) -> Layout:
    """Lay variables with these numbers of codes out in as few words as first-fit finds."""
    bits = [(size - 1).bit_length() if size > 1 else 0 for size in sizes]
    used: list[int] = [0]
    word, shift = [0] * len(bits), [0] * len(bits)
    for v in sorted(range(len(bits)), key=lambda v: -bits[v]):
        home = next((w for w, u in enumerate(used) if u + bits[v] <= 64), len(used))
        if home == len(used):
            used.append(0)
        word[v], shift[v] = home, used[home]
        used[home] += bits[v]
    as_ints = [np.array(x, dtype=np.int64) for x in (word, shift, bits)]
    return Layout(as_ints[0], as_ints[1], as_ints[2], len(used))


def pack(
    columns: Sequence[npt.NDArray[np.unsignedinteger]], plan: Layout, out: Words | None = None
) -> Words:
    """Pack columns of codes into rows of words by the layout; into `out` if it is given."""
    shape = (len(columns[0]), plan.words)
    rows = np.empty(shape, dtype=np.uint64) if out is None else out
    for lo in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(lo, lo + ROWS_AT_ONCE)
        rows[some] = 0
        for v, column in enumerate(columns):
            codes = column[some].astype(np.uint64)
            rows[some, plan.word[v]] |= codes << np.uint64(plan.shift[v])
    return rows
