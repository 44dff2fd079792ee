"""Array types that kernels and stages share, and the numbering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
CodeRows = npt.NDArray[np.unsignedinteger]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]


def number_rows(columns: Sequence[Array], length: int) -> Ints:
    """Number the distinct rows of some columns of codes, from 0 on."""
    number: Ints = np.zeros(length, dtype=np.int64)
    for codes in columns:
        # Anew after each column: a product of all the sizes may not fit into 64 bits.
        joined = number * (int(codes.max(initial=0)) + 1) + codes
        number = np.unique(joined, return_inverse=True)[1]
    return number
