"""Cells that more variables could still split, as rows of the variables that may join.

Rows of a cell are its distinct patterns of those variables, each with its weight, which is cut off
at the cutoff: a cell that holds a row of that weight is never small. Rows are sorted as numbers, so
that equal ones stay neighbours when the lowest fields are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Bytes, Ints, Numbers, Words

# Cells are dealt out for about so many codes of cells at a time, whose counters stay near.
CELLS_AT_ONCE = 1 << 12


@njit(nogil=True, cache=True)
def move_fields(rows: Words, places: Ints, moved: Ints, out: Words) -> None:
    """Copy fields of rows to other places; both are (word, shift, bits) of the same fields."""
    for i in range(len(rows)):
        for w in range(out.shape[1]):
            out[i, w] = 0
        for k in range(len(places)):
            code = rows[i, places[k, 0]] >> np.uint64(places[k, 1])
            code &= np.uint64((1 << places[k, 2]) - 1)
            out[i, moved[k, 0]] |= code << np.uint64(moved[k, 1])


@njit(nogil=True, cache=True)
def pack_cells(
    rows: Words, weights: Numbers, starts: Ints, mask: int, cell_shift: int, tag_bits: int,
    out: Words,
) -> None:  # fmt: skip
    """Pack the cell's number, the row under a mask and its weight into a word each."""
    for c in range(len(starts) - 1):
        cell = np.uint64(c) << np.uint64(cell_shift)
        for i in range(starts[c], starts[c + 1]):
            row = (rows[i, 0] & np.uint64(mask)) << np.uint64(tag_bits)
            out[i] = cell | row | np.uint64(weights[i])


@njit(nogil=True, cache=True)
def unpack_cells(words: Words, mask: int, tag_bits: int, weights: Numbers) -> None:
    """Take the weights out of words, which become rows under the mask."""
    low = np.uint64((1 << tag_bits) - 1)
    for i in range(len(words)):
        weights[i] = np.int32(words[i] & low)
        words[i] = (words[i] >> np.uint64(tag_bits)) & np.uint64(mask)


class Room(NamedTuple):
    """What cells are narrowed in: merged rows with their weights and new cells, and first rows."""

    rows: Words
    weights: Numbers
    homes: Numbers
    marks: Bytes


class Narrowed(NamedTuple):
    """Where cells go: rows, weights and where each cell starts; the closed ones from the end on.

    The last row is for those of one row, which are dropped.
    """

    rows: Words
    weights: Numbers
    starts: Ints


@njit(nogil=True, cache=True)
def narrow_cells(
    rows: Words, weights: Numbers, starts: Ints, are_open: bool, field: Ints, mask: Words,
    cutoff: int, room: Room, out: Narrowed, found: Ints,
) -> None:  # fmt: skip
    """Split cells by a field of 0 bits or more, and keep of their rows what is under a mask.

    Neighbours equal under field and mask are merged. A cell of one row is dropped. Open cells that
    stay small, or whose rows all have the weight of the cutoff, can change no more: they are
    closed, as all are if the cells are not open. `found` has where the next row and cell go, where
    the rows and cells of the closed ones begin, the cells dropped, and the records in cells that
    became small.

    There is no branch that depends on the data: it would be guessed wrong too often.
    """
    words, most = rows.shape[1], np.int32(cutoff)
    word, shift, bits = field[0], np.uint64(field[1]), np.uint64(field[2])
    top, one, none = np.uint64((1 << field[2]) - 1), np.uint64(1), np.int32(0)
    whole = mask.copy()
    whole[word] |= top << shift
    few = max(1, CELLS_AT_ONCE >> field[2])
    held = np.zeros((few << field[2], 2), dtype=np.int64)  # by new cell: its rows, its size
    place = np.empty(few << field[2], dtype=np.int64)
    seen = np.empty((few << field[2]) + 1, dtype=np.int32)
    more = np.zeros(words, dtype=np.uint64)  # the row before: its words but the first
    a, cells, b, closed, alone, small_ones = found
    for first in range(0, len(starts) - 1, few):
        block = starts[first : first + few + 1]
        low, count = np.uint64(block[0]), np.uint64(block[-1] - block[0])
        room.marks[:count] = 0
        for c in range(len(block) - 1):
            room.marks[block[c] - block[0]] = 1
        merged = cell = ~np.uint64(0)
        new, weight, i, last = np.uint64(0), none, np.uint64(0), np.uint64(0)
        while i < count:
            is_first = room.marks[i]
            cell += np.uint64(is_first)
            row = rows[low + i, 0] & whole[0]
            differs = (is_first != 0) | (row != last)
            last = row
            for w in range(1, words):
                here = rows[low + i, w] & whole[w]
                differs |= here != more[w]
                more[w] = here
            merged += np.uint64(differs)
            room.rows[merged, 0] = row
            for w in range(1, words):
                room.rows[merged, w] = more[w]
            so_far = none if differs else weight
            weight = min(weights[low + i] + so_far, most)
            room.weights[merged] = weight
            home = (cell << bits) | ((rows[low + i, word] >> shift) & top)
            room.homes[merged] = home
            seen[new] = home
            new += np.uint64(held[home, 0] == 0)
            held[home, 0] += np.int64(differs)
            held[home, 1] += np.int64(weight - so_far)
            i += one
        for k in range(new):
            home = np.uint64(seen[k])
            count_here, size = held[home]
            held[home] = 0
            is_small, is_alone = size < most, count_here == 1
            is_closed = (is_small | (size == count_here * most) | (not are_open)) & (not is_alone)
            stays = not (is_alone | is_closed)
            alone += is_alone
            small_ones += size * (is_small & are_open)
            b -= count_here * is_closed
            closed -= is_closed
            out.starts[closed] = b
            out.starts[cells] = a
            place[home] = len(out.rows) - 1 if is_alone else (b if is_closed else a)
            cells += stays
            a += count_here * stays
        i = np.uint64(0)
        while i < merged + one:
            home = np.uint64(room.homes[i])
            to = np.uint64(place[home])
            place[home] = to + one
            for w in range(words):
                out.rows[to, w] = room.rows[i, w] & mask[w]
            out.weights[to] = room.weights[i]
            i += one
    found[:] = a, cells, b, closed, alone, small_ones
