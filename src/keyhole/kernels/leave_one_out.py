"""Cells with each variable in turn left out.

With v left out, a pattern meets exactly the patterns that differ from it in v alone. Those lie
in one cell of any half of the variables that does not contain v: so halve the variables, sort by
one half, look for partners that differ in the other, and halve again. A small cell is settled
for all its variables at once by comparing its rows pairwise.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Ints, Numbers, Words
from keyhole.kernels.cells import same, sort_range, sort_room

# Up to this many rows all pairs of a cell are compared.
PAIRWISE = 16


@njit(nogil=True, cache=True)
def _only_difference(rows: Words, i: int, j: int, masks: Words, first: int, last: int) -> int:
    """Return the only variable in [first, last) on which distinct rows i and j differ, else -1.

    The rows agree on everything outside [first, last): so the lowest differing bit tells the
    variable, and nothing may differ outside its field.
    """
    for w in range(rows.shape[1]):
        difference = rows[i, w] ^ rows[j, w]
        if difference:
            lowest = difference & (~difference + np.uint64(1))
            for v in range(first, last):
                if masks[v, w] & lowest:
                    if difference & ~masks[v, w]:
                        return -1
                    for rest in range(w + 1, rows.shape[1]):
                        if rows[i, rest] != rows[j, rest]:
                            return -1
                    return v
    return -1


@njit(nogil=True, cache=True)
def _pairs(
    rows: Words,
    weights: Numbers,
    lo: int,
    hi: int,
    masks: Words,
    first: int,
    last: int,
    cutoff: int,
    met: Ints,
    lost: Ints,
    safe: Ints,
) -> None:
    """Settle a small cell: met[i, v] counts the records that row i meets when v is left out."""
    size = hi - lo
    met[:size, first:last] = 0
    for i in range(size):
        for j in range(i):
            v = _only_difference(rows, lo + i, lo + j, masks, first, last)
            if v >= 0:
                # Row i has met no later row yet: a zero means that this is its first partner.
                lost[v] += met[i, v] == 0
                met[i, v] += weights[lo + j]
                met[j, v] += weights[lo + i]
    for i in range(size):
        w = weights[lo + i]
        if w < cutoff:
            for v in range(first, last):
                if w + met[i, v] >= cutoff:
                    safe[v] += w


@njit(nogil=True, cache=True)
def _whole(weights: Numbers, lo: int, hi: int, v: int, cutoff: int, lost: Ints, safe: Ints) -> None:
    """Settle a cell in which only v is left out: it is one cell."""
    total = 0
    for i in range(lo, hi):
        total += weights[i]
    lost[v] += hi - lo - 1
    if total >= cutoff:
        for i in range(lo, hi):
            if weights[i] < cutoff:
                safe[v] += weights[i]


@njit(nogil=True, cache=True)
def tally_without(
    rows: Words,
    weights: Numbers,
    spare: Words,
    spare_weights: Numbers,
    keep: Words,
    masks: Words,
    digits: Ints,
    digit_starts: Ints,
    first: int,
    last: int,
    cutoff: int,
) -> tuple[Ints, Ints]:
    """Tally, for each variable in [first, last), what leaving it out saves.

    `rows` are distinct patterns sorted by `keep`, the mask of what is never left out; they are
    sorted about in place, with `spare` as room. The digits of variable v are
    digits[digit_starts[v]:digit_starts[v + 1]]. Returned are, by variable, the cells lost and
    the records at risk made safe.
    """
    count = len(masks)
    lost, safe = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    room = sort_room(spare, spare_weights, digits)
    met = np.zeros((PAIRWISE, count), dtype=np.int64)
    # A task is a range of rows that agree on all but variables [first, last), and a phase:
    # -1 looks at the cells of `keep`, 0 and 1 sort by one half and leave out the other.
    tasks = [(0, len(rows), first, last, -1)]
    while len(tasks):
        lo, hi, a, b, phase = tasks.pop()
        by, a2, b2 = keep, a, b
        if phase >= 0:
            middle = (a + b) // 2
            if phase == 0:
                tasks.append((lo, hi, a, b, 1))
                p, q, a2, b2 = middle, b, a, middle
            else:
                p, q, a2, b2 = a, middle, middle, b
            by = np.zeros_like(keep)
            for v in range(p, q):
                by |= masks[v]
            by_digits = digits[digit_starts[p] : digit_starts[q]]
            sort_range(rows, weights, lo, hi, by, by_digits, room)
        start = lo
        for i in range(lo + 1, hi + 1):
            if i == hi or not same(rows, i - 1, i, by):
                # Most cells are settled on the spot; only large ones become tasks.
                if b2 - a2 == 1:
                    _whole(weights, start, i, a2, cutoff, lost, safe)
                elif i - start > PAIRWISE:
                    tasks.append((start, i, a2, b2, 0))
                elif i - start > 1:
                    _pairs(rows, weights, start, i, masks, a2, b2, cutoff, met, lost, safe)
                start = i
    return lost, safe
