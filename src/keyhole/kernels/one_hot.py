"""Sums over a design of ones: each row has a one in a few columns, and nothing else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Floats

__all__ = ["gram", "quadratic", "totals"]

Places = npt.NDArray[np.int64]


@njit(nogil=True, cache=True)
def gram(places: Places, weights: Floats, size: int) -> Floats:
    """Return X'WX; `places` has the columns with a one, a row of the design each."""
    out = np.zeros((size, size))
    for i in range(len(places)):
        for a in places[i]:
            for b in places[i]:
                out[a, b] += weights[i]
    return out


@njit(nogil=True, cache=True)
def quadratic(places: Places, matrix: Floats) -> Floats:
    """Return x'Mx of each row."""
    out = np.zeros(len(places))
    for i in range(len(places)):
        total = 0.0
        for a in places[i]:
            for b in places[i]:
                total += matrix[a, b]
        out[i] = total
    return out


@njit(nogil=True, cache=True)
def totals(places: Places, amounts: Floats, size: int) -> Floats:
    """Return X'y."""
    out = np.zeros(size)
    for i in range(len(places)):
        for a in places[i]:
            out[a] += amounts[i]
    return out
