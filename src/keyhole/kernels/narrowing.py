"""Cells that more variables could still split, as rows of the variables that may join.

Rows of a cell are its distinct patterns of those variables, each with its weight, which is cut off
at the cutoff: a cell that holds a row of that weight is never small. Rows are sorted as numbers, so
that equal ones stay neighbours when the lowest fields are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Bytes, Ints, Numbers, Words
from keyhole.kernels.cells import sort_range, sort_room

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


class Room(NamedTuple):
    """What cells are narrowed in: rows and weights dealt out, where to, and numbers by cell."""

    rows: Words
    weights: Numbers
    homes: Numbers
    marks: Bytes
    held: Numbers
    size: Numbers
    small: Numbers


@njit(nogil=True, cache=True)
def _deal(
    rows: Words, weights: Numbers, starts: Ints, field: Ints, mask: Words, at: Numbers, room: Room
) -> int:
    """Deal the rows of cells out by a field; mark and count the first rows of the new cells."""
    first, count, bits = starts[0], starts[-1] - starts[0], np.uint64(field[2])
    shift, top = np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    column, homes, marks = rows[first : starts[-1], field[0]], room.homes[:count], room.marks
    weights = weights[first : starts[-1]]
    for c in range(len(starts) - 1):
        base = np.uint64(c) << bits
        for i in range(starts[c] - first, starts[c + 1] - first):
            home = base | ((column[i] >> shift) & top)
            homes[i] = home
            at[home] += np.int32(1)
    marks[: count + 1] = 0
    total = np.int32(0)
    cells = 0
    for home in range((len(starts) - 1) << field[2]):
        marks[np.uint64(total)] = 1  # if none is here, the next cell starts at the same row
        cells += at[home] > 0
        total, at[home] = total + at[home], total
    for i in range(count):
        home = np.uint64(homes[i])
        to = np.uint64(at[home])
        at[home] += np.int32(1)
        homes[i] = to
        room.weights[to] = weights[i]
    for w in range(len(mask)):
        column, target, kept = rows[first : starts[-1], w], room.rows[:, w], mask[w]
        for i in range(count):
            target[np.uint64(homes[i])] = column[i] & kept
    at[: (len(starts) - 1) << field[2]] = 0
    return cells


@njit(nogil=True, cache=True)
def _sort(count: int, digits: Ints, room: Room, spare: tuple[Words, Numbers]) -> None:
    """Sort the rows of each cell."""
    whole = ~np.zeros(room.rows.shape[1], dtype=np.uint64)
    sorting, low = sort_room(spare[0], spare[1], digits), 0
    for i in range(1, count + 1):
        if i == count or room.marks[i]:
            if i - low > 1:
                sort_range(room.rows, room.weights, low, i, whole, digits, sorting)
            low = i


@njit(nogil=True, cache=True)
def _merge(count: int, cells: int, cutoff: int, room: Room) -> int:
    """Merge equal neighbours of a cell; return how many rows are left.

    The home of a row is now the number of its cell, of which is noted how many rows it has, how
    many of them are below the cutoff, and its size.
    """
    weights, homes, marks = room.weights, room.homes, room.marks
    most, weight = np.int32(cutoff), np.int32(0)
    room.held[:cells] = 0
    room.size[:cells] = 0
    room.small[:cells] = 0
    end: Any = np.uint64(0)
    cell = np.uint64(0)
    before = room.rows[0] ^ room.rows[0]
    for i in range(count):
        differs = np.uint64(marks[i])
        cell += differs
        for w in range(len(before)):
            word = room.rows[i, w]
            differs |= np.uint64(word != before[w])
            before[w] = word
        end += differs
        weight = min(weights[i] + (np.int32(0) if differs else weight), most)
        to = end - np.uint64(1)
        weights[to], homes[to] = weight, cell - np.uint64(1)
        for w in range(len(before)):
            room.rows[to, w] = before[w]
    for i in range(np.int64(end)):
        cell = np.uint64(homes[i])
        room.held[cell] += np.int32(1)
        room.size[cell] += weights[i]
        room.small[cell] += np.int32(weights[i] < most)
    return int(end)


@njit(nogil=True, cache=True)
def _store(
    rows: int, cells: int, room: Room, to: tuple[Words, Numbers, Ints],
    other: tuple[Words, Numbers, Ints], found: Ints,
) -> None:  # fmt: skip
    """Append cells of kind 1 to some, and those of kind 2 to others; the kind is in `held`."""
    a, b = found[0], found[2]
    for c in range(cells):
        kind = room.held[c]
        to[2][found[1]], other[2][found[3]] = a, b
        found[1] += kind == 1
        found[3] += kind == 2
        a += room.small[c] if kind == 1 else np.int32(0)
        b += room.small[c] if kind == 2 else np.int32(0)
    for w in range(room.rows.shape[1]):
        column, one, two = room.rows[:rows, w], to[0][:, w], other[0][:, w]
        a, b = np.uint64(found[0]), np.uint64(found[2])
        for i in range(rows):
            kind = room.held[np.uint64(room.homes[i])]
            one[a], two[b] = column[i], column[i]
            to[1][a], other[1][b] = room.weights[i], room.weights[i]
            a += np.uint64(kind == 1)
            b += np.uint64(kind == 2)
    found[0], found[2] = a, b


@njit(nogil=True, cache=True)
def narrow_cells(
    rows: Words,
    weights: Numbers,
    starts: Ints,
    are_open: bool,
    field: Ints,
    mask: Words,
    digits: Ints,
    spare: tuple[Words, Numbers],
    cutoff: int,
    room: Room,
    out: tuple[Words, Numbers, Ints],
    closed: tuple[Words, Numbers, Ints],
    found: Ints,
) -> None:
    """Split cells by a field of 0 bits or more, and keep of their rows what is under a mask.

    Equal neighbours are merged, after a sort if there are digits to sort by. A cell of one row
    is dropped. Open cells that stay small, or whose rows all have the weight of the cutoff, can
    change no more: they go to `closed`, as do all if the cells are not open, others to `out`.
    `found` counts the rows and cells in `out`, those in `closed`, the cells dropped, and the
    records in cells that became small.
    """
    few = max(1, CELLS_AT_ONCE >> field[2])
    at = np.zeros(few << field[2], dtype=np.int32)
    for first in range(0, len(starts) - 1, few):
        block = starts[first : first + few + 1]
        count, cells = block[-1] - block[0], _deal(rows, weights, block, field, mask, at, room)
        if len(digits):
            _sort(count, digits, room, spare)
        count = _merge(count, cells, cutoff, room)
        for c in range(cells):
            held, is_small = room.held[c], room.size[c] < cutoff
            found[4] += held == 1
            found[5] += room.size[c] if is_small and are_open else 0
            is_closed = is_small or room.small[c] == 0 or not are_open
            room.held[c] = 0 if held == 1 else 1 + is_closed
            room.small[c] = held
        _store(count, cells, room, out, closed, found)
