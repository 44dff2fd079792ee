"""Cross-tabulations of two coded columns, and which further columns are constant in their cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import CodeRows, Flags, Ints, Numbers, Words


@njit(nogil=True, cache=True)
def crosstab(a: CodeRows, b: CodeRows, rows: int, columns: int) -> Ints:
    """Count the records of every pair of codes."""
    out = np.zeros((rows, columns), dtype=np.int64)
    for i in range(len(a)):
        out[a[i], b[i]] += 1
    return out


_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def number_pairs(a: Numbers, b: Numbers, columns: int, most: int) -> tuple[Numbers, int]:
    """Number the cells of two encoded columns in the order in which they come up.

    Counting ends as soon as there are more than `most` cells; the numbers are then not whole.
    """
    bits = 4
    while (1 << bits) < 2 * most + 2:
        bits += 1
    mask = (1 << bits) - 1
    keys = np.full(1 << bits, -1, dtype=np.int64)
    held = np.empty(1 << bits, dtype=np.int32)
    out = np.empty(len(a), dtype=np.int32)
    count = 0
    for i in range(len(a)):
        key = np.int64(a[i]) * columns + b[i]
        slot = np.int64((np.uint64(key) * _MIX) >> np.uint64(64 - bits))
        while keys[slot] != key and keys[slot] != -1:
            slot = (slot + 1) & mask
        if keys[slot] == -1:
            if count == most:
                return out, most + 1
            keys[slot] = key
            held[slot] = count
            count += 1
        out[i] = held[slot]
    return out, count


@njit(nogil=True, cache=True)
def split_cells(
    rows: Words, field: Ints, numbers: Numbers, size: int, held: Numbers, used: int, out: Numbers
) -> int:
    """Number the cells that splitting numbered cells by a field of packed rows gives.

    Returned is how many there are. `held` has a place for each cell and code; what it has up to
    `used` is of earlier calls.
    """
    word, shift, top = field[0], np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    count = 0
    for i in range(len(numbers)):
        place = numbers[i] * np.int64(size) + np.int64((rows[i, word] >> shift) & top)
        if held[place] <= used:
            count += 1
            held[place] = used + count
        out[i] = held[place] - used - 1
    return count


@njit(nogil=True, cache=True)
def count_split(rows: Words, field: Ints, numbers: Numbers, size: int, met: Words) -> int:
    """Count the cells that splitting numbered cells by a field gives; `met` has a bit for each."""
    word, shift, top = field[0], np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    count = 0
    for i in range(len(numbers)):
        place = numbers[i] * np.int64(size) + np.int64((rows[i, word] >> shift) & top)
        bit = np.uint64(1) << np.uint64(place & 63)
        count += (met[place >> 6] & bit) == 0
        met[place >> 6] |= bit
    return count


@njit(nogil=True, cache=True)
def settled(numbers: Numbers, cells: int, table: Numbers, wanted: Numbers) -> Flags:
    """Tell for each row of the table that is wanted whether every cell has one value of it."""
    first = np.full(cells, -1, dtype=np.int32)
    out = np.zeros(len(wanted), dtype=np.bool_)
    for place in range(len(wanted)):
        values = table[wanted[place]]
        end = 0
        while end < len(numbers):
            cell = numbers[end]
            if first[cell] == -1:
                first[cell] = values[end]
            elif first[cell] != values[end]:
                break
            end += 1
        out[place] = end == len(numbers)
        for i in range(end):
            first[numbers[i]] = -1
    return out
