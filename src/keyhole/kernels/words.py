"""Rows of one word joined with a tag, so that plain sorting of words sorts records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Ints, Words

__all__ = ["join", "part"]


@njit(nogil=True, cache=True)
def _moved(word: np.uint64, masks: Words, shifts: Ints) -> np.uint64:
    out = np.uint64(0)
    for k in range(len(masks)):
        if shifts[k] >= 0:
            out |= (word & masks[k]) << np.uint64(shifts[k])
        else:
            out |= (word & masks[k]) >> np.uint64(-shifts[k])
    return out


@njit(nogil=True, cache=True)
def join(
    rows: Words, tags: npt.NDArray[np.int32], masks: Words, shifts: Ints, tag_bits: int
) -> Words:
    """Return one word a row: its fields moved, and its tag below them."""
    out = np.empty(len(rows), dtype=np.uint64)
    for i in range(len(rows)):
        fields = _moved(rows[i, 0], masks, shifts)
        out[i] = (fields << np.uint64(tag_bits)) | np.uint64(tags[i])
    return out


@njit(nogil=True, cache=True)
def part(
    joined: Words,
    masks: Words,
    shifts: Ints,
    tag_bits: int,
    rows: Words,
    tags: npt.NDArray[np.int32],
) -> None:
    """Undo `join` into rows and tags."""
    low = (np.uint64(1) << np.uint64(tag_bits)) - np.uint64(1)
    for i in range(len(rows)):
        tags[i] = joined[i] & low
        rows[i, 0] = _moved(joined[i] >> np.uint64(tag_bits), masks, shifts)
