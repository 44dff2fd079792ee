"""Sorting packed rows into cells on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from keyhole.engines.rooms import MEMORY, Room, parts
from keyhole.engines.threads import WORKERS, in_threads
from keyhole.kernels import cells
from keyhole.kernels.arrays import Ints, Words
from keyhole.kernels.packing import Layout
from keyhole.kernels.words import join, part

__all__ = ["joined_words", "shares_of", "sort", "sort_as_words", "spans"]

Tags = npt.NDArray[np.int32]


def spans(starts: Ints, workers: int = WORKERS) -> list[Ints]:
    """Cut the cells into one span a worker, of about as many rows each."""
    goals = np.linspace(0, starts[-1], workers + 1)[1:-1]
    cuts = [0, *np.searchsorted(starts, goals).tolist(), len(starts) - 1]
    return [
        np.array(pair, dtype=np.int64) for pair in itertools.pairwise(cuts) if pair[0] < pair[1]
    ]


def shares_of(rows: Words, mask: Words, workers: int) -> list[slice]:
    """Cut sorted rows into one share a worker, none of which ends inside a cell."""
    goals = np.linspace(0, len(rows), workers + 1)[1:-1].astype(np.int64).tolist()
    cuts = [0, *(_end_of_cell(rows, mask, goal) for goal in goals), len(rows)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b] or [slice(0, 0)]


def _end_of_cell(rows: Words, mask: Words, at: int) -> int:
    """Return where the cell of the row before ends, by halving: its rows lie side by side."""
    if at == 0:
        return 0
    mine = rows[at - 1] & mask
    inside, outside = at - 1, len(rows)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if np.array_equal(rows[middle] & mask, mine):
            inside = middle
        else:
            outside = middle
    return outside


def sort(
    rows: Words,
    tags: Tags,
    starts: Ints,
    plan: Layout,
    variables: Sequence[int],
    *,
    spare: tuple[Words, Tags] | None = None,
    workers: int = WORKERS,
    room: Room = MEMORY,
) -> None:
    """Sort the rows inside each cell by more variables, in place.

    A single cell whose rows and tags fit one word is sorted by NumPy, which compares many words
    at once. Otherwise threads share the cells; a single large one is first cut by one digit.
    """
    if len(starts) == 2 and sort_as_words(rows, tags, plan, variables, room=room):
        return
    digits = plan.digits(variables)
    if spare is None:
        spare = (room.empty(rows.shape, rows.dtype), room.empty(tags.shape, tags.dtype))
    if len(starts) == 2 and workers > 1 and len(digits):
        mask, one = plan.digit_mask(digits[0]), np.array([0, 1], dtype=np.int64)
        cells.sort_cells(rows, tags, starts, one, mask, digits[:1], *spare)
        starts, digits = cells.bounds(rows, mask), digits[1:]
    mask = plan.mask(variables)
    in_threads(
        lambda span: cells.sort_cells(rows, tags, starts, span, mask, digits, *spare),
        spans(starts, workers),
    )


def sort_as_words(
    rows: Words, tags: Tags, plan: Layout, variables: Iterable[int], *, room: Room = MEMORY
) -> bool:
    """Sort all rows by some variables as single words, if rows and tags fit; tell whether."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words > 1 or int(plan.bits.sum()) + tag_bits > 64:
        return False
    masks, shifts = plan.moves(variables)
    joined = joined_words(rows, tags, masks, shifts, tag_bits, room)
    joined.sort()
    back = np.array([_shifted(m, s) for m, s in zip(masks, shifts, strict=True)], dtype=np.uint64)
    in_threads(
        lambda some: part(joined[some], back, -shifts, tag_bits, rows[some], tags[some]),
        list(parts(len(rows))),
    )
    return True


def joined_words(
    rows: Words, tags: Tags, masks: Words, shifts: Ints, tag_bits: int, room: Room
) -> Words:
    """Return one word a row: its fields moved, and its tag below them."""
    joined = room.empty(len(rows), np.uint64)

    def fill(some: slice) -> None:
        joined[some] = join(rows[some], tags[some], masks, shifts, tag_bits)

    in_threads(fill, list(parts(len(rows))))
    return joined


def _shifted(mask: np.uint64, shift: np.int64) -> int:
    return int(mask) << int(shift) if shift >= 0 else int(mask) >> -int(shift)
