"""Partners for rank swapping: each rank with a free one not far above it."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints

__all__ = ["rank_partners"]


@njit(nogil=True, cache=True)
def rank_partners(window: int, draws: Floats) -> Ints:
    """Return for each rank the rank it is swapped with; itself where none is free.

    Parameters
    ----------
    window
        The farthest that two partners may be apart.
    draws
        One number in [0, 1) a rank: from which of the ranks above to look for a free one.

    Notes
    -----
    From the lowest rank on: of the next `window` ranks the first free one from a random place
    on, going round.
    """
    count = len(draws)
    partner = np.full(count, -1, dtype=np.int64)
    for i in range(count):
        if partner[i] >= 0:
            continue
        span = min(window, count - 1 - i)
        partner[i] = i
        start = int(draws[i] * span)
        for step in range(span):
            j = i + 1 + (start + step) % span
            if partner[j] < 0:
                partner[i], partner[j] = j, i
                break
    return partner
