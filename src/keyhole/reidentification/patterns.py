"""A file as its distinct patterns, each with the records that have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.engines.partition import sort
from keyhole.kernels import cells
from keyhole.kernels.arrays import Ints
from keyhole.kernels.packing import layout, pack

__all__ = ["Patterns", "collapse", "entropy"]

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct patterns of a file.

    Parameters
    ----------
    codes
        One row a pattern, one column a variable.
    counts
        How many records have the pattern.
    records
        The record numbers, those of a pattern side by side and in order.
    """

    codes: Codes
    counts: Ints
    records: npt.NDArray[np.int32]

    @property
    def starts(self) -> Ints:
        """Where the records of each pattern start, and at the end their number."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def first_records(self) -> npt.NDArray[np.int32]:
        """One record of each pattern."""
        return self.records[self.starts[:-1]]


def collapse(columns: Sequence[Codes], sizes: Sequence[int]) -> Patterns:
    """Collapse the records to their distinct patterns.

    Parameters
    ----------
    columns
        The variables as codes, one array a variable.
    sizes
        By variable the number of codes.

    Examples
    --------
    >>> found = collapse([np.array([1, 0, 1]), np.array([0, 0, 0])], [2, 1])
    >>> found.codes.tolist(), found.counts.tolist(), found.records.tolist()
    ([[0, 0], [1, 0]], [1, 2], [1, 0, 2])
    """
    plan = layout(list(sizes))
    rows = pack([column.astype(np.uint32) for column in columns], plan)
    tags = np.arange(len(rows), dtype=np.int32)
    everything = range(len(columns))
    sort(rows, tags, np.array([0, len(rows)], dtype=np.int64), plan, everything)
    starts = cells.bounds(rows, plan.mask(everything))
    counts = np.diff(starts)
    # The sort is not stable: put the records of patterns that several have in order.
    several = np.flatnonzero(np.repeat(counts > 1, counts))
    cell = np.repeat(np.arange(len(counts)), np.where(counts > 1, counts, 0))
    tags[several] = tags[several][np.lexsort((tags[several], cell))]
    first = tags[starts[:-1]]
    codes = np.empty((len(first), len(columns)), dtype=np.int32)
    for v, column in enumerate(columns):
        codes[:, v] = column[first]
    return Patterns(codes, counts, tags)


def entropy(counts: npt.NDArray[np.integer] | npt.NDArray[np.floating]) -> float:
    """Return the entropy of counts by code, in bits: how much a variable tells people apart.

    Examples
    --------
    >>> entropy(np.array([7, 0, 7, 7, 7]))
    2.0
    """
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0
