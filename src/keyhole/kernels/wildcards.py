"""Counting matches where a missing value matches every value, both ways.

Two patterns match when they agree wherever both are known. Patterns that miss the same
variables form a class; two classes are joined on the variables that both know. With very many
classes, comparing all pairs of patterns is cheaper, and is done instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Ints, Words
from keyhole.kernels.cells import bounds, sort_cells

__all__ = ["match"]

Amounts = npt.NDArray[Any]

# Measured: a join costs about this many pair comparisons a pattern, and this many to set up.
JOIN_PER_PATTERN = 60
JOIN_SET_UP = 30_000


def match(rows: Words, counts: Amounts, known: Words, digits: Ints) -> Amounts:
    """Return for each distinct pattern how many records match it, its own among them.

    Parameters
    ----------
    rows, counts
        The distinct patterns and the number of records of each (or any amount to add up).
    known
        For each pattern the mask of the fields that it knows.
    digits
        (word, shift, bits) of the digits of all fields.
    """
    classes, member = np.unique(known, axis=0, return_inverse=True)
    member = member.ravel()
    joins = len(classes) ** 2 / 2 * JOIN_SET_UP + len(classes) * len(rows) * JOIN_PER_PATTERN
    if joins > len(rows) ** 2 / 2:
        return _match_pairs(rows, counts, known)
    by_class = [np.flatnonzero(member == c) for c in range(len(classes))]
    out = counts.copy()
    for a in range(len(classes)):
        for b in range(a):
            both = np.concatenate([by_class[a], by_class[b]])
            _join(rows, counts, both, len(by_class[a]), classes[a] & classes[b], digits, out)
    return out


def _join(
    rows: Words, counts: Amounts, both: Ints, first: int, mask: Words, digits: Ints, out: Amounts
) -> None:
    """Add to each pattern of either class the records of the other that match it."""
    picked = rows[both] & mask
    tags = np.arange(len(both), dtype=np.int32)
    one, span = np.array([0, len(both)]), np.array([0, 1])
    sort_cells(picked, tags, one, span, mask, digits, np.empty_like(picked), np.empty_like(tags))
    _add_other_class(both[tags], tags < first, bounds(picked, mask), counts, out)


@njit(nogil=True, cache=True)
def _add_other_class(
    patterns: Ints, in_first: npt.NDArray[np.bool_], starts: Ints, counts: Amounts, out: Amounts
) -> None:
    for c in range(len(starts) - 1):
        one = other = counts[0] - counts[0]  # a zero of the amounts' kind
        for i in range(starts[c], starts[c + 1]):
            if in_first[i]:
                one += counts[patterns[i]]
            else:
                other += counts[patterns[i]]
        for i in range(starts[c], starts[c + 1]):
            out[patterns[i]] += other if in_first[i] else one


@njit(nogil=True, cache=True)
def _match_pairs(rows: Words, counts: Amounts, known: Words) -> Amounts:
    out = counts.copy()
    for i in range(len(rows)):
        for j in range(i):
            agree = True
            for w in range(rows.shape[1]):
                if (rows[i, w] ^ rows[j, w]) & known[i, w] & known[j, w]:
                    agree = False
                    break
            if agree:
                out[i] += counts[j]
                out[j] += counts[i]
    return out
