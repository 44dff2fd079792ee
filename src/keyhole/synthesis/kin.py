"""Columns so closely related to a target that they must be kept consistent with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from keyhole.data import Microdata
from keyhole.screening.dependence import cramers_v

__all__ = ["KIN", "kin"]

# Bias-corrected Cramér's V from which a column is kin of a target.
KIN = 0.6
# Numbers are cut into so many bins of about as many records.
BINS = 10
# More records would not change the picture.
RECORDS = 20_000


def kin(data: Microdata, target: str, columns: Iterable[str]) -> frozenset[str]:
    """Return the columns that are kin of a target: a recode, a period of service, a pension.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> age = pl.Series("age", range(20, 90)).extend(pl.Series(range(20, 90)))
    >>> frame = pl.DataFrame({"age": age, "old": age > 65, "coin": [0, 1] * 70})
    >>> sorted(kin(load(frame, kinds={"age": "measure"}), "age", ["old", "coin"]))
    ['old']
    """
    some = np.arange(0, data.records, -(-data.records // RECORDS) or 1)
    goal = _groups(data, target)[some]
    return frozenset(
        name
        for name in columns
        if name != target and _related(goal, _groups(data, name)[some]) >= KIN
    )


def _groups(data: Microdata, name: str) -> npt.NDArray[np.int64]:
    """Return the codes of a category, and of a number the bins of its values."""
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    if data.variable(name).kind == "category" or codes.size <= BINS:
        return values
    counts = np.bincount(values, minlength=codes.size)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    bins: npt.NDArray[np.int64] = np.minimum(middle * BINS, BINS - 1).astype(np.int64)[values]
    return bins


def _related(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    pair, counts = np.unique(a * (int(b.max(initial=0)) + 1) + b, return_counts=True)
    _, rows = np.unique(pair // (int(b.max(initial=0)) + 1), return_inverse=True)
    _, columns = np.unique(pair % (int(b.max(initial=0)) + 1), return_inverse=True)
    if rows.max(initial=0) == 0 or columns.max(initial=0) == 0:
        return 0.0
    return cramers_v(counts, rows, columns)
