"""The cross-tabulation of two encoded columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["crosstab"]

Codes = npt.NDArray[np.unsignedinteger]


@njit(nogil=True, cache=True)
def crosstab(a: Codes, b: Codes, rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Count the records of every pair of codes."""
    out = np.zeros((rows, columns), dtype=np.int64)
    for i in range(len(a)):
        out[a[i], b[i]] += 1
    return out
