"""Cells under coarser rungs: packed patterns made coarser, merged, settled and tallied.

Rows are packed patterns (see `packing`), sorted, each with a weight: how many records have it, cut
off at the cutoff, since a cell that holds a row of that weight is never small. A table gives for
each code of a field the code that stands for its class on a coarser rung.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Ints, Numbers, Words
from keyhole.kernels.cells import same


@njit(nogil=True, cache=True)
def coarsen(rows: Words, field: Ints, table: Numbers) -> None:
    """Replace every code of one field by the code that stands for its class, in place."""
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    clear = ~(top << shift)
    for i in range(len(rows)):
        code = (rows[i, word] >> shift) & top
        rows[i, word] = (rows[i, word] & clear) | (np.uint64(table[code]) << shift)


@njit(nogil=True, cache=True)
def lay_out(
    rows: Words, weights: Numbers, starts: Ints, masks: Words, moves: Ints, cell: Ints, out: Words
) -> None:
    """Move fields of packed rows to other places, above the weight and below the cell's number.

    `masks` has fields of one word that go to one word by one shift, `moves` for each the words
    from and to and the shift to the left; `cell` the word and the shift of the number.
    """
    for c in range(len(starts) - 1):
        number = np.uint64(c) << np.uint64(cell[1])
        for i in range(starts[c], starts[c + 1]):
            for w in range(1, out.shape[1]):
                out[i, w] = 0
            out[i, 0] = np.uint64(weights[i])
            out[i, cell[0]] |= number
            for k in range(len(masks)):
                fields, shift = rows[i, moves[k, 0]] & masks[k], moves[k, 2]
                moved = fields << np.uint64(shift) if shift >= 0 else fields >> np.uint64(-shift)
                out[i, moves[k, 1]] |= moved


@njit(nogil=True, cache=True)
def settle_cells(
    rows: Words, weights: Numbers, cell: Words, whole: Words, cutoff: int, starts: Ints
) -> tuple[int, int, int]:
    """Merge equal rows of sorted ones, and drop the cells whose records can change no more.

    A cell smaller than the cutoff stays so however it is split; a cell all of whose rows have the
    weight of the cutoff never has a small part. Both are dropped, in place.

    Rows of a cell agree on the mask `cell`, equal rows on `whole`. Where each cell left starts
    is written to `starts`, with room for one more than the rows. Returned are the rows left,
    the cells left, and the records in the small cells dropped.
    """
    left = cells = at_risk = 0
    a = 0
    while a < len(rows):
        b, first = a, left
        size, is_fixed = 0, True
        # Rows are written at or before the one looked at, so that the one before b is as it was.
        while b == a or (b < len(rows) and same(rows, b - 1, b, cell)):
            size += weights[b]
            if left > first and same(rows, left - 1, b, whole):
                weights[left - 1] = min(weights[left - 1] + weights[b], cutoff)
            else:
                for w in range(rows.shape[1]):
                    rows[left, w] = rows[b, w]
                weights[left] = weights[b]
                left += 1
            b += 1
        for i in range(first, left):
            is_fixed &= weights[i] >= cutoff
        if size < cutoff:
            at_risk += size
            left = first
        elif is_fixed or left - first == 1:
            left = first
        else:
            starts[cells] = first
            cells += 1
        a = b
    starts[cells] = left
    return left, cells, at_risk


@njit(nogil=True, cache=True)
def tally_rungs(
    rows: Words,
    weights: Numbers,
    starts: Ints,
    cells: Ints,
    field: Ints,
    tables: Numbers,
    cutoff: int,
    most: int,
) -> Ints:
    """Count the records in small cells if the cells were split by each rung of one field.

    Only cells[0] up to cells[1] are looked at. Once a count is beyond `most` it goes on no more.
    Tables are those of the rungs, a row each; a coarser rung never has more than a finer one, so
    that after a rung with none all further ones have none.
    """
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    out = np.zeros(len(tables), dtype=np.int64)
    count = np.zeros(tables.shape[1], dtype=np.int64)
    for k in range(len(tables)):
        table, at_risk = tables[k], 0
        for c in range(cells[0], cells[1]):
            for i in range(starts[c], starts[c + 1]):
                count[table[(rows[i, word] >> shift) & top]] += weights[i]
            for i in range(starts[c], starts[c + 1]):
                code = table[(rows[i, word] >> shift) & top]
                at_risk += count[code] if count[code] < cutoff else 0
                count[code] = 0
            if at_risk > most:
                break
        out[k] = at_risk
        if at_risk == 0:
            break
    return out
