"""The sums that bind the cells of a table: what an outsider can reckon with."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Ints

__all__ = ["addends", "relations"]


def addends(shape: tuple[int, ...]) -> list[Ints]:
    """Return the cells of each sum, its total last.

    Examples
    --------
    >>> [cells.tolist() for cells in addends((3, 3))][:2]
    [[0, 3, 6], [1, 4, 7]]
    """
    cells = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    found: list[Ints] = []
    for axis, width in enumerate(shape):
        found += list(np.moveaxis(cells, axis, -1).reshape(-1, width))
    return found


def relations(shape: tuple[int, ...]) -> Any:
    r"""Return the sums as a sparse matrix, one row a sum: its parts less its total is nothing.

    Notes
    -----
    For every variable and every cell of the others (totals included),
    :math:`\sum_i y_i - y_{total} = 0`.

    Examples
    --------
    >>> relations((4,)).toarray().tolist()
    [[1.0, 1.0, 1.0, -1.0]]
    """
    from scipy.sparse import csc_array

    sums = addends(shape)
    signs = [np.append(np.ones(len(cells) - 1), -1.0) for cells in sums]
    row = np.repeat(np.arange(len(sums)), [len(cells) for cells in sums])
    column = np.concatenate(sums)
    return csc_array((np.concatenate(signs), (row, column)), shape=(len(sums), prod(shape)))
