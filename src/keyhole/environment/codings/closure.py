"""Reachability among the codings of a construct, as square tables of yes and no."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags


def product(one: Flags, other: Flags) -> Flags:
    """Return where a step of one table can be followed by a step of the other."""
    return np.asarray(one.astype(np.float32) @ other.astype(np.float32) > 0)


def closed(steps: Flags) -> Flags:
    """Return what can be reached in any number of steps, none included.

    Examples
    --------
    >>> closed(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)).astype(int).tolist()
    [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    """
    reach = steps | np.eye(len(steps), dtype=bool)
    while True:
        further = product(reach, reach)
        if (further == reach).all():
            return reach
        reach = further


def minimal(members: npt.NDArray[np.int64], reach: Flags) -> npt.NDArray[np.int64]:
    """Keep the members below which there is no other: `reach` goes up from finer to coarser."""
    among = reach[np.ix_(members, members)]
    below = among & ~among.T
    return members[~below.any(axis=0)]


def shortest_path(start: int, end: int, steps: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """Return the shortest path, the first in order among those; empty if there is none.

    Examples
    --------
    >>> shortest_path(0, 3, {0: [1, 2], 1: [3], 2: [3]})
    (0, 1, 3)
    """
    came: dict[int, int] = {start: start}
    queue = deque([start])
    while queue and end not in came:
        here = queue.popleft()
        for there in steps.get(here, ()):
            if there not in came:
                came[there] = here
                queue.append(there)
    if end not in came:
        return ()
    path = [end]
    while path[-1] != start:
        path.append(came[path[-1]])
    return tuple(reversed(path))
