"""Paths of maps: no circles, and all paths between two codings say the same."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.maps import Edge, Maps
from keyhole.environment.codings.relations import pairs_of
from keyhole.kernels.arrays import Ints

Reach = dict[str, dict[str, Ints]]


def compose(first: Ints, second: Ints) -> Ints:
    """Return where categories fall after two maps; outside stays outside.

    Examples
    --------
    >>> compose(np.array([0, 1, -1]), np.array([5, 7])).tolist()
    [5, 7, -1]
    """
    return np.append(second, -1)[first]


def circles(edges: set[Edge]) -> list[str]:
    """Say which codings are reached again by going up from themselves.

    Examples
    --------
    >>> circles({("A2.001", "A2.002"), ("A2.002", "A2.001")})
    ["the maps go in a circle through 'A2.001', 'A2.002'; none can be coarser than itself."]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    names = sorted({name for edge in edges for name in edge})
    index = {name: i for i, name in enumerate(names)}
    if not names:
        return []
    ends = np.array([[index[a], index[b]] for a, b in edges])
    ones = np.ones(len(ends), dtype=np.int8)
    graph = coo_matrix((ones, (ends[:, 0], ends[:, 1])), shape=(len(names),) * 2)
    _, labels = connected_components(graph, directed=True, connection="strong")
    rounds = [np.flatnonzero(labels == k) for k in np.flatnonzero(np.bincount(labels) > 1)]
    lists = sorted([names[i] for i in members] for members in rounds)
    return [
        f"the maps go in a circle through {quoted(members)}; none can be coarser than itself."
        for members in lists
    ]


def reach_of(nodes: Mapping[str, Node], maps: Maps) -> tuple[Reach, list[str]]:
    """Compose maps along all paths, the coarsest codings first; say where paths disagree."""
    above: dict[str, list[str]] = {}
    for finer, coarser in sorted(maps.arrays):
        above.setdefault(finer, []).append(coarser)
    reach: Reach = {name: {} for name in nodes}
    problems: list[str] = []
    for name in TopologicalSorter(above).static_order():
        for parent in above.get(name, ()):
            array = maps.arrays[name, parent]
            _take(reach, nodes, name, parent, array, problems)
            for coarser, further in reach[parent].items():
                _take(reach, nodes, name, coarser, compose(array, further), problems)
    return reach, problems


def _take(
    reach: Reach,
    nodes: Mapping[str, Node],
    finer: str,
    coarser: str,
    array: Ints,
    problems: list[str],
) -> None:
    known = reach[finer].get(coarser)
    if known is None:
        reach[finer][coarser] = array
        return
    fault = np.flatnonzero((known != array) & (known >= 0) & (array >= 0))
    if fault.size:
        problems.append(_disagreement(nodes[finer], nodes[coarser], known, array, fault))
    reach[finer][coarser] = np.where(known >= 0, known, array)


def _disagreement(finer: Node, coarser: Node, one: Ints, other: Ints, at: Ints) -> str:
    first = int(at[0])
    falls = sorted([coarser.labels[one[first]], coarser.labels[other[first]]])
    more = f" (and {at.size - 1:,} more categories)" if at.size > 1 else ""
    return (
        f"the paths from {finer.name} to {coarser.name} disagree: {shown(finer.labels[first])}"
        f" falls into {shown(falls[0])} by one and into {shown(falls[1])} by another{more}."
    )


def overlap_contradictions(maps: Maps, reach: Reach) -> list[str]:
    """Say which stored overlaps are not those of the maps between their codings."""
    problems = []
    for (left, right), pairs in sorted(maps.overlaps.items()):
        array = reach[left].get(right)
        if array is None:
            continue
        one, other = pairs_of(array)
        if not (np.array_equal(one, pairs[0]) and np.array_equal(other, pairs[1])):
            problems.append(
                f"overlap {left} ~ {right}: it contradicts the maps from {left} to {right};"
                " take one of them out."
            )
    return problems
