"""Unicity: the sets of variables on which one record of each file is alone with the other.

Sets are visited depth first and the records of both files are split together, cell by cell. A
cell leaves as soon as one side has nobody who could be alone, or it is one to one. Beside what
is split, three things keep the work small: when a variable is left out for good, records of one
file that now are alike on all that remain are merged, and stand there only as company; a
variable on which a whole cell agrees is skipped, since it isolates nobody; and a small cell is
settled at once for all sets that remain, pair by pair (see `smallest_sets`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Ints, Numbers, Words
from keyhole.kernels.cells import same
from keyhole.kernels.fields import popcount
from keyhole.kernels.smallest_sets import (
    Search,
    always_with,
    find_alike,
    find_companies,
    smallest_isolating_set,
    start_search,
)

# So many rows are settled faster pair by pair than set by set: a bit each in a word.
SMALL = 64
# Who stands for several records is nobody in particular.
SEVERAL = -1


class Visits(NamedTuple):
    """The variables in the order they are visited, and where they are in a packed row.

    `bit` is the variable's bit in a result (0: always part of the set, such as a stratum, whose
    missing value is a value: -1 in `missing`). `rest[t]` masks the variables from t on. A cell of
    up to `small` rows, at least 2, is settled pair by pair.
    """

    word: Ints
    shift: Words
    field: Words
    missing: Ints
    bit: Words
    rest: Words
    small: int


class CellRoom(NamedTuple):
    """Room to settle a small cell: the search of a pair's sets, and who has which value.

    By code of a variable, and by row and variable, the rows of the cell that have it, as bits.
    """

    search: Search
    having: Words
    alike: Words


@njit(nogil=True, cache=True)
def _merge(rows: Words, ids: Numbers, a: int, b: int, mask: Words, to: int) -> tuple[int, int]:
    """Move rows [a, b) down to `to`, those alike under the mask as one; return end and singles."""
    out, singles = to, 0
    for i in range(a, b):
        if out > to and same(rows, out - 1, i, mask):
            singles -= ids[out - 1] >= 0
            ids[out - 1] = SEVERAL
        else:
            for w in range(rows.shape[1]):
                rows[out, w] = rows[i, w]
            ids[out] = ids[i]
            singles += ids[i] >= 0
            out += 1
    return out, singles


@njit(nogil=True, cache=True)
def _tally(
    rows: Words, ids: Numbers, a: int, middle: int, b: int, plan: Visits, t: int, tally: Ints
) -> tuple[int, bool]:
    """Count a cell's rows by code; return the number of codes and whether all have the same.

    By code: PUF rows, EIF rows, PUF and EIF records (2 or more: several), who a single one
    is in each; then the codes met, and room for the places of both. Codes that no PUF row has
    are not looked at.
    """
    word, shift, field = plan.word[t], plan.shift[t], plan.field[t]
    codes = 0
    for i in range(a, middle):
        code = (rows[i, word] >> shift) & field
        if tally[0, code] == 0:
            tally[6, codes] = code
            codes += 1
            tally[1, code] = tally[2, code] = tally[3, code] = 0
            tally[4, code] = tally[5, code] = SEVERAL
        tally[0, code] += 1
        tally[2, code] += 1 + (ids[i] < 0)
        if ids[i] >= 0:
            tally[4, code] = ids[i]
    alike = codes == 1 and tally[6, 0] != plan.missing[t]
    for i in range(middle, b):
        code = (rows[i, word] >> shift) & field
        if tally[0, code] == 0:
            alike = False
            continue
        tally[1, code] += 1
        tally[3, code] += 1 + (ids[i] < 0)
        if ids[i] >= 0:
            tally[5, code] = ids[i]
    return codes, alike


@njit(nogil=True, cache=True)
def _spread(
    rows: Words, ids: Numbers, a: int, b: int, plan: Visits, t: int, tally: Ints, place: int
) -> None:
    """Copy rows [a, b) to the place of their code, in order; a code without place is left."""
    word, shift, field = plan.word[t], plan.shift[t], plan.field[t]
    for i in range(a, b):
        code = (rows[i, word] >> shift) & field
        to = tally[place, code]
        if tally[0, code] and to >= 0:
            for w in range(rows.shape[1]):
                rows[to, w] = rows[i, w]
            ids[to] = ids[i]
            tally[place, code] = to + 1


@njit(nogil=True, cache=True)
def _pair(puf: int, eif: int) -> np.uint64:
    return (np.uint64(puf) << np.uint64(32)) | np.uint64(eif)


@njit(nogil=True, cache=True)
def _divide(
    tally: Ints, codes: int, plan: Visits, t: int, chosen: Flags, cells: Ints, filled: int, top: int
) -> tuple[int, int, int]:
    """Give a place to every code that becomes a cell.

    Returns the new ends of the cells and of the rows, and the number of codes that are one to
    one: these are moved to the front of the codes met. `chosen` is empty if all codes are.
    """
    ones = 0
    for k in range(codes):
        code = tally[6, k]
        tally[7, code] = tally[8, code] = -1
        alive = code != plan.missing[t] and tally[4, code] >= 0 and tally[5, code] >= 0
        if not alive or (len(chosen) and not chosen[code]):
            continue
        if tally[2, code] == 1 and tally[3, code] == 1 and plan.bit[t]:
            tally[6, k], tally[6, ones] = tally[6, ones], code
            ones += 1
        elif t + 1 < len(plan.word):
            tally[7, code], tally[8, code] = top, top + tally[0, code]
            cells[filled, 0], cells[filled, 1] = top, top + tally[0, code]
            top += tally[0, code] + tally[1, code]
            cells[filled, 2] = top
            filled += 1
    return filled, top, ones


@njit(nogil=True, cache=True)
def _grown(
    rows: Words, ids: Numbers, cells: Ints, needed: int, filled: int
) -> tuple[Words, Numbers, Ints]:
    """Return the arrays, larger where they have too little room."""
    if needed > len(rows):
        more = 2 * needed - len(rows)
        rows = np.concatenate((rows, np.empty((more, rows.shape[1]), dtype=np.uint64)))
        ids = np.concatenate((ids, np.empty(more, dtype=np.int32)))
    if filled > len(cells):
        cells = np.concatenate((cells, np.empty((2 * filled - len(cells), 3), dtype=np.int64)))
    return rows, ids, cells


@njit(nogil=True, cache=True)
def _leave_out(rows: Words, ids: Numbers, cell: Ints, rest: Words) -> None:
    """Go on without a variable: merge what is alike on the rest; nobody left to find: empty."""
    a, middle, b = cell[0], cell[1], cell[2]
    cell[1], singles = _merge(rows, ids, a, middle, rest, a)
    cell[2], others = _merge(rows, ids, middle, b, rest, cell[1])
    if singles == 0 or others == 0:
        cell[2] = a


@njit(nogil=True, cache=True)
def _settle(
    rows: Words, ids: Numbers, cell: Ints, plan: Visits, t: int, path: np.uint64, room: CellRoom,
    keys: Words, masks: Words, used: int,
) -> tuple[Words, Words, int]:  # fmt: skip
    """Find the pairs of a small cell for all sets of variables from t on; empty it."""
    a, middle, b = cell[0], cell[1], cell[2]
    search, having, alike = room
    everybody = ~np.uint64(0) >> np.uint64(64 - (b - a))
    find_alike(
        rows, a, middle, b, plan.word, plan.shift, plan.field, plan.missing, t, having, alike
    )
    for i in range(a, middle):
        if ids[i] < 0:
            continue
        for j in range(middle, b):
            if ids[j] < 0:
                continue
            other = np.uint64(1) << np.uint64(j - a)
            pair = other | (np.uint64(1) << np.uint64(i - a))
            if always_with(alike, i - a, other, t) != pair:
                continue
            key = _pair(ids[i], ids[j])
            most = best_size(keys, masks, key, len(plan.word)) - popcount(path)
            if most > 0:
                count = find_companies(alike, i - a, other, plan.bit, t, search)
                found = smallest_isolating_set(everybody, pair, count, most, search)
                if found:
                    keys, masks, used = keep_smallest(keys, masks, used, key, path | found)
    cell[2] = a
    return keys, masks, used


@njit(nogil=True, cache=True)
def _start(
    puf: Words, puf_ids: Numbers, eif: Words, eif_ids: Numbers, rest: Words
) -> tuple[Words, Numbers, Ints]:
    """Return the rows of both files as one cell, with room behind them, and the cells."""
    both = len(puf) + len(eif)
    rows = np.empty((2 * both + 1, puf.shape[1]), dtype=np.uint64)
    ids = np.empty(2 * both + 1, dtype=np.int32)
    rows[: len(puf)], ids[: len(puf)] = puf, puf_ids
    rows[len(puf) : both], ids[len(puf) : both] = eif, eif_ids
    cells = np.empty((1024, 3), dtype=np.int64)
    cells[0, 0], cells[0, 1], cells[0, 2] = 0, len(puf), both
    _leave_out(rows, ids, cells[0], rest)
    return rows, ids, cells


@njit(nogil=True, cache=True)
def find(
    puf: Words, puf_ids: Numbers, eif: Words, eif_ids: Numbers, plan: Visits,
    lead: int, chosen: Flags, watch: Ints,
) -> tuple[Words, Words]:  # fmt: skip
    """Find the pairs, and the smallest set of each, among the sets whose first variable is `lead`.

    Patterns are distinct and sorted so that those alike on the variables from t on lie side by
    side, for every t; the ids tell who has one, -1 for several. `chosen` says by code of the first
    variable whether to look at it, for sharing the work; the first entry of `watch` is set from
    outside to stop early. Returned are pairs (PUF number in the upper half) and masks of variables.
    """
    variables = len(plan.word)
    rows, ids, cells = _start(puf, puf_ids, eif, eif_ids, plan.rest[lead])
    # By depth: this cell, the end of the cells, the end of the rows, the next variable.
    at = np.zeros((variables + 2, 4), dtype=np.int64)
    at[0, 1], at[0, 2], at[0, 3] = 1, cells[0, 2], lead
    skipped = np.zeros(variables + 2, dtype=np.uint64)
    path = np.zeros(variables + 2, dtype=np.uint64)
    tally = np.zeros((9, int(plan.field.max()) + 1), dtype=np.int64)
    everything = np.zeros(0, dtype=np.bool_)
    room = CellRoom(
        start_search(variables),
        np.zeros(int(plan.field.max()) + 1, dtype=np.uint64),
        np.zeros((plan.small, variables), dtype=np.uint64),
    )
    keys, masks = empty_table()
    used = depth = 0
    while depth >= 0 and not watch[0]:
        cell, t = at[depth, 0], at[depth, 3]
        if cell == at[depth, 1]:
            depth -= 1
            continue
        a, middle, b = cells[cell, 0], cells[cell, 1], cells[cell, 2]
        if t == variables or a == b or (depth == 0 and t > lead):
            at[depth, 0] += 1
            if depth:
                at[depth, 3], skipped[depth] = at[depth - 1, 3], skipped[depth - 1]
            continue
        if depth and b - a <= plan.small:
            keys, masks, used = _settle(
                rows, ids, cells[cell], plan, t, path[depth], room, keys, masks, used
            )
            continue
        at[depth, 3] = t + 1
        if skipped[depth] & plan.bit[t]:
            continue
        codes, alike = _tally(rows, ids, a, middle, b, plan, t, tally)
        if alike and (depth or (plan.bit[t] and b - a > 2)):
            skipped[depth] |= plan.bit[t]
            tally[0, tally[6, 0]] = 0
            continue
        rows, ids, cells = _grown(rows, ids, cells, at[depth, 2] + b - a, at[depth, 1] + codes)
        wanted = everything if depth else chosen
        filled, top, ones = _divide(
            tally, codes, plan, t, wanted, cells, at[depth, 1], at[depth, 2]
        )
        for k in range(ones):
            key = _pair(tally[4, tally[6, k]], tally[5, tally[6, k]])
            keys, masks, used = keep_smallest(keys, masks, used, key, path[depth] | plan.bit[t])
        if filled > at[depth, 1]:
            _spread(rows, ids, a, middle, plan, t, tally, 7)
            _spread(rows, ids, middle, b, plan, t, tally, 8)
        for k in range(codes):
            tally[0, tally[6, k]] = 0
        if depth:
            _leave_out(rows, ids, cells[cell], plan.rest[t + 1])
        if filled > at[depth, 1]:
            path[depth + 1], skipped[depth + 1] = path[depth] | plan.bit[t], skipped[depth]
            at[depth + 1, 0], at[depth + 1, 1] = at[depth, 1], filled
            at[depth + 1, 2], at[depth + 1, 3] = top, t + 1
            depth += 1
    held = keys != EMPTY
    return keys[held], masks[held]


# A key is two record numbers of 31 bits each, so this one is never met.
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_START = 1 << 12


@njit(nogil=True, cache=True)
def empty_table() -> tuple[Words, Words]:
    """Return the keys and masks of a table without pairs."""
    return np.full(_START, EMPTY, dtype=np.uint64), np.zeros(_START, dtype=np.uint64)


@njit(nogil=True, cache=True)
def _place(keys: Words, key: np.uint64) -> np.uint64:
    last = np.uint64(len(keys) - 1)
    at = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & last
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + np.uint64(1)) & last
    return at


@njit(nogil=True, cache=True)
def best_size(keys: Words, masks: Words, key: np.uint64, unknown: int) -> int:
    """Return the number of variables of the pair's smallest set so far."""
    at = _place(keys, key)
    return popcount(masks[at]) if keys[at] == key else unknown


@njit(nogil=True, cache=True)
def _put(keys: Words, masks: Words, key: np.uint64, mask: np.uint64) -> bool:
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
    keys: Words, masks: Words, used: int, key: np.uint64, mask: np.uint64
) -> tuple[Words, Words, int]:
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
