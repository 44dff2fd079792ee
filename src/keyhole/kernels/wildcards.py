"""Matches where a missing value matches every value: counted, and made by suppressing values.

Two patterns match when they agree wherever both are known. Patterns that miss the same
variables form a class; two classes are joined on the variables that both know. With very many
classes, comparing all pairs of patterns is cheaper, and is done instead.

A record without its values on a set of variables matches all that agree with it on the others:
its *company*. Taking the values away also makes it match those, so that they gain one each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Flags, Ints, Words
from keyhole.kernels.cells import bounds, sort_cells

Amounts = npt.NDArray[Any]

# Measured: a join costs about this many pair comparisons a pattern, and this many to set up.
JOIN_PER_PATTERN = 60
JOIN_SET_UP = 30_000


def match(rows: Words, counts: Amounts, known: Words, digits: Ints) -> Amounts:
    """Return for each distinct pattern how many records match it, its own among them.

    `counts` may be any amounts to add up; `known` masks the fields that each pattern knows,
    `digits` are those of all fields.
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
    patterns: Ints, in_first: Flags, starts: Ints, counts: Amounts, out: Amounts
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


_ONE = np.uint64(1)


@njit(nogil=True, cache=True, inline="always")
def _match(codes: Ints, gone: Words, i: int, j: int) -> bool:
    known = ~(gone[i] | gone[j])
    agree = True
    for v in range(codes.shape[1]):
        if (known >> np.uint64(v)) & _ONE and codes[i, v] != codes[j, v]:
            agree = False
            break
    return agree


@njit(nogil=True, cache=True)
def blank_by_company(
    codes: Ints, gone: Words, f: Ints, k: int, allowed: int, masks: Words, cells: Ints,
    sizes: Ints, starts: Ints, members: Ints, order: Ints, choice: Ints,
) -> int:  # fmt: skip
    """Take values away from records, all with f < k, in an order, until few enough are left.

    By record, `gone` masks what is missing or taken away and `f` counts at least how many match it;
    both are changed in place. At most `allowed` records may stay below k. By set of `masks` and
    record, `cells` is its cell on the other variables and `sizes` that cell's size among all
    records; `starts` and `members` list the records at risk of each cell. `order` and `choice` are
    the records in turn, and the set of each. Returned is how many records are still below k.
    """
    below = len(f)
    for place in range(len(order)):
        if below <= allowed:
            break
        i = order[place]
        s = choice[place]
        if f[i] >= k or sizes[s, i] < k:
            continue
        cell = cells[s, i]
        before = gone[i]
        for at in range(starts[s, cell], starts[s, cell + 1]):
            j = members[s, at]
            if j == i or f[j] >= k:
                continue
            if not _match(codes, gone, i, j):
                f[j] += 1
                below -= f[j] == k
        gone[i] = before | masks[s]
        f[i] = max(f[i], sizes[s, i])
        below -= 1
    return below
