"""Trees over sorted patterns: a variable a level, patterns few enough in a leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Ints

__all__ = ["Tree", "plant"]

Numbers = npt.NDArray[np.int32]


class Tree(NamedTuple):
    """Nodes: their patterns [first, last), depth, code, and children [child, child + children).

    A node at depth t is divided by variable `order[t]`; its children lie side by side in order
    of their codes. The first nodes are the roots.
    """

    order: Ints
    first: Numbers
    last: Numbers
    depth: Numbers
    code: Numbers
    child: Numbers
    children: Numbers


@njit(nogil=True, cache=True)
def _end_of_run(codes: Numbers, start: int, end: int, variable: int) -> int:
    """Return where the run of the code at `start` ends; gallop, since runs are short or long."""
    code, step, low = codes[start, variable], 1, start
    while low + step < end and codes[low + step, variable] == code:
        low += step
        step *= 2
    high = min(low + step, end)
    while low + 1 < high:
        middle = (low + high) // 2
        if codes[middle, variable] == code:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True)
def plant(codes: Numbers, order: Ints, roots: Ints, leaf: int) -> Tree:
    """Make the trees of patterns sorted by the order, root by root.

    Parameters
    ----------
    codes
        One row a pattern, one column a variable.
    order
        The variables from the top down.
    roots
        Where the patterns of each root start, and at the end their number.
    leaf
        A node with no more patterns than this is not divided.
    """
    # By node: first, last, depth, code, child, children.
    nodes = np.zeros((2 * len(roots) + 1024, 6), dtype=np.int32)
    count = len(roots) - 1
    for i in range(count):
        nodes[i, 0], nodes[i, 1] = roots[i], roots[i + 1]
    at = 0
    while at < count:
        start, end, depth = nodes[at, 0], nodes[at, 1], nodes[at, 2]
        nodes[at, 4] = count
        if end - start > leaf and depth < len(order):
            while start < end:
                if count == len(nodes):
                    nodes = np.concatenate((nodes, np.zeros_like(nodes)))
                stop = _end_of_run(codes, start, end, order[depth])
                nodes[count, 0], nodes[count, 1] = start, stop
                nodes[count, 2], nodes[count, 3] = depth + 1, codes[start, order[depth]]
                count += 1
                nodes[at, 5] += 1
                start = stop
        at += 1
    columns = nodes[:count].T.copy()
    return Tree(order, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5])
