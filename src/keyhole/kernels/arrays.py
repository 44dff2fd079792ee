"""Array types that kernels and stages share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Flags", "Floats", "Ints", "Words"]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
