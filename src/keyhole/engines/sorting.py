"""Sorting packed rows into cells on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from keyhole.engines.threads import WORKERS, in_threads
from keyhole.kernels import cells
from keyhole.kernels.packing import Layout
from keyhole.kernels.words import join, part

__all__ = ["sort", "sort_as_words", "spans"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Tags = npt.NDArray[np.int32]


def spans(starts: Ints, workers: int = WORKERS) -> list[Ints]:
    """Cut the cells into one span a worker, of about as many rows each."""
    goals = np.linspace(0, starts[-1], workers + 1)[1:-1]
    cuts = [0, *np.searchsorted(starts, goals).tolist(), len(starts) - 1]
    return [
        np.array(pair, dtype=np.int64) for pair in itertools.pairwise(cuts) if pair[0] < pair[1]
    ]


def sort(
    rows: Words,
    tags: Tags,
    starts: Ints,
    plan: Layout,
    variables: Sequence[int],
    *,
    spare: tuple[Words, Tags] | None = None,
    workers: int = WORKERS,
) -> None:
    """Sort the rows inside each cell by more variables, in place.

    A single cell whose rows and tags fit one word is sorted by NumPy, which compares many words
    at once. Otherwise threads share the cells; a single large one is first cut by one digit.
    """
    if len(starts) == 2 and sort_as_words(rows, tags, plan, variables):
        return
    digits = plan.digits(variables)
    spare = (np.empty_like(rows), np.empty_like(tags)) if spare is None else spare
    if len(starts) == 2 and workers > 1 and len(digits):
        mask, one = plan.digit_mask(digits[0]), np.array([0, 1], dtype=np.int64)
        cells.sort_cells(rows, tags, starts, one, mask, digits[:1], *spare)
        starts, digits = cells.bounds(rows, mask), digits[1:]
    mask = plan.mask(variables)
    in_threads(
        lambda span: cells.sort_cells(rows, tags, starts, span, mask, digits, *spare),
        spans(starts, workers),
    )


def sort_as_words(rows: Words, tags: Tags, plan: Layout, variables: Iterable[int]) -> bool:
    """Sort all rows by some variables as single words, if rows and tags fit; tell whether."""
    tag_bits = int(tags.max(initial=0)).bit_length()
    if plan.words > 1 or int(plan.bits.sum()) + tag_bits > 64:
        return False
    masks, shifts = plan.moves(variables)
    joined = join(rows, tags, masks, shifts, tag_bits)
    joined.sort()
    back = np.array([_shifted(m, s) for m, s in zip(masks, shifts, strict=True)], dtype=np.uint64)
    part(joined, back, -shifts, tag_bits, rows, tags)
    return True


def _shifted(mask: np.uint64, shift: np.int64) -> int:
    return int(mask) << int(shift) if shift >= 0 else int(mask) >> -int(shift)
