"""The closest row of another table, by the mean distance over columns of mixed kinds."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints


@njit(nogil=True, cache=True)
def closest_rows(rows: Floats, others: Floats, own: Ints) -> tuple[Floats, Ints]:
    """Return for each row the distance to the closest of the others, and its place.

    Values from 0 to 1 are numbers, negative ones categories: 0 apart if equal, else 1; a missing
    number (NaN) is 0 apart from another and 1 from all else. `own` is the place among the others
    that a row may not find, -1 for none. Where there is no other, the distance is infinite.
    """
    columns = rows.shape[1]
    distance, place = np.full(len(rows), np.inf), np.full(len(rows), -1, dtype=np.int64)
    for i in range(len(rows)):
        best = np.inf
        for j in range(len(others)):
            if j == own[i]:
                continue
            total = 0.0
            for c in range(columns):
                a, b = rows[i, c], others[j, c]
                if a >= 0 and b >= 0:
                    total += abs(a - b)
                elif a != b and not (np.isnan(a) and np.isnan(b)):
                    total += 1.0
                if total >= best:
                    break
            if total < best:
                best, place[i] = total, j
                if best == 0:
                    break
        distance[i] = best / columns
    return distance, place
