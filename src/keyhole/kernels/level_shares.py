"""Shares of levels: made to fit how often each level is held, and levels drawn from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Floats, Ints

Shares = npt.NDArray[np.floating]


@njit(nogil=True, cache=True)
def fit_times(shares: Shares, held: Ints, rounds: int, tiny: float) -> Floats:
    """Return by what the levels' shares are multiplied so that each is expected as often as held.

    `shares` have a row a record, up to a factor; `held` are counts by level.
    """
    times = np.empty(len(held))
    for k in range(len(held)):
        times[k] = 1.0 if held[k] > 0 else 0.0
    for _ in range(rounds):
        expected = np.zeros(len(held))
        for i in range(len(shares)):
            total = 0.0
            for k in range(len(held)):
                total += shares[i, k] * times[k]
            weight = 1 / max(total, tiny)
            for k in range(len(held)):
                expected[k] += weight * shares[i, k]
        for k in range(len(held)):
            times[k] *= held[k] / max(times[k] * expected[k], tiny)
    return times


@njit(nogil=True, cache=True)
def levels(shares: Floats, wanted: Floats) -> Ints:
    """Return the first level whose running share is above a number; the last, if none is.

    `shares` are running sums by level, `wanted` any count of numbers a record.
    """
    out = np.zeros(wanted.shape, dtype=np.int64)
    for i in range(len(wanted)):
        for j in range(wanted.shape[1]):
            for k in range(shares.shape[1] - 1):
                out[i, j] += wanted[i, j] >= shares[i, k]
    return out
