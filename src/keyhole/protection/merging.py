"""Merge what is too small with its smallest neighbour, until nothing is too small."""

from __future__ import annotations

from keyhole.core.names import plural
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats

__all__ = ["merge"]


def merge(sizes: Floats, threshold: float, neighbours: list[list[list[int]]]) -> list[int]:
    """Return for each part the number of the group it is merged into: that of its first part.

    Parameters
    ----------
    sizes
        The size of each part.
    threshold
        The least size of a group.
    neighbours
        For each part its neighbours, in lists from near to far: a farther one is merged with
        only where there is no nearer one left.

    Examples
    --------
    >>> merge(np.array([2.0, 1.0, 3.0]), 3, [[[1]], [[0, 2]], [[1]]])
    [0, 0, 2]
    """
    group = list(range(len(sizes)))
    members = {i: [i] for i in group}
    total = dict(enumerate(sizes.tolist()))
    while True:
        small = sorted((size, i) for i, size in total.items() if size < threshold)
        if not small:
            return group
        pair = next(
            (
                (i, j)
                for _, i in small
                if (j := _smallest(members[i], group, total, neighbours)) is not None
            ),
            None,
        )
        if pair is None:
            one = len(small) == 1
            raise OptionError(
                f"{plural(len(small), 'area')} {'stays' if one else 'stay'} below the threshold, "
                f"with no neighbours left: name neighbours that connect {'it' if one else 'them'}, "
                f"or lower the threshold."
            )
        low, high = sorted(pair)
        for part in members.pop(high):
            group[part] = low
            members[low].append(part)
        total[low] += total.pop(high)


def _smallest(
    parts: list[int], group: list[int], total: dict[int, float], neighbours: list[list[list[int]]]
) -> int | None:
    """Return the smallest group beside these parts, of the nearest that there are."""
    own = group[parts[0]]
    for rung in range(max(len(neighbours[part]) for part in parts)):
        beside = {group[j] for part in parts for j in neighbours[part][rung]} - {own}
        if beside:
            return min(beside, key=lambda number: (total[number], number))
    return None
