"""Choose the values to take away so that records match enough others, as wildcards.

A record without its values on a set of variables matches all that agree with it on the others:
its *company*. Taking the values away also makes it match those, so that they gain one each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Ints, Words

__all__ = ["blank_by_company"]


_ONE = np.uint64(1)


@njit(nogil=True, cache=True, inline="always")
def _match(codes: Ints, gone: Words, i: int, j: int) -> bool:
    """Tell whether two records agree wherever both are known."""
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
    """Take values away from records with f < k, in an order, until few enough are left.

    Parameters
    ----------
    codes
        The codes of the records that are at risk, a column a variable.
    gone
        By record the mask of variables that are missing or taken away; changed in place.
    f
        By record how many match it, at least; changed in place.
    k, allowed
        The wanted size, and how many records may stay below it.
    masks
        The sets of variables that may be taken away.
    cells, sizes
        By set and record the number of its cell on the other variables, and that cell's size
        among all records.
    starts, members
        By set, where the records at risk of each cell are.
    order, choice
        The records in the order in which they are looked at, and the set of each.

    Returns
    -------
    How many records are still below k.
    """
    below = 0
    for i in range(len(f)):
        below += f[i] < k
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
