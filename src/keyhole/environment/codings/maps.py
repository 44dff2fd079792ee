"""Category maps and overlaps, read into arrays and checked: total, known codes, no circles."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import KINDS, SPECIAL, Node
from keyhole.environment.codings.relations import (
    Pairs,
    comparable,
    interval_function,
    pairs_of,
    unique_pairs,
    with_kin,
)
from keyhole.environment.model import CategoryMap, Overlap
from keyhole.kernels.arrays import Ints

Edge = tuple[str, str]


@dataclass(slots=True)
class Maps:
    """The edges of the graph: `arrays` by (finer, coarser), and those without pairs."""

    arrays: dict[Edge, Ints] = field(default_factory=dict)
    unresolved: set[Edge] = field(default_factory=set)
    overlaps: dict[Edge, Pairs] = field(default_factory=dict)


class MapReader:
    """Reads maps and overlaps into arrays and collects what is wrong with them."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        names: Mapping[str, str],
        maps: Iterable[CategoryMap],
        overlaps: Iterable[Overlap],
    ) -> None:
        self.nodes = nodes
        self.names = names
        self.problems: list[str] = []
        self.maps = Maps()
        given: set[Edge] = set()
        for edge in maps:
            place = f"map {edge.finer} -> {edge.coarser}"
            ends = self._ends(place, edge.finer, edge.coarser, given)
            if ends is not None:
                given.add(ends)
                self._read_map(place, ends, edge.pairs)
        for overlap in overlaps:
            place = f"overlap {overlap.left} ~ {overlap.right}"
            ends = self._ends(place, overlap.left, overlap.right, self.maps.overlaps)
            if ends is not None:
                self._read_overlap(place, ends, overlap)

    def _ends(self, place: str, one: str, other: str, given: Container[Edge]) -> Edge | None:
        """Return the names of both ends, or say what is wrong with them."""
        missing = [name for name in (one, other) if name not in self.names]
        if missing:
            self.problems.append(f"{place}: coding {quoted(missing)} is not in the environment.")
            return None
        ends = self.names[one], self.names[other]
        if ends[0] == ends[1]:
            self.problems.append(f"{place}: a coding cannot be tied to itself.")
        elif self.nodes[ends[0]].construct != self.nodes[ends[1]].construct:
            self.problems.append(f"{place}: the codings belong to different constructs.")
        elif ends in given:
            self.problems.append(f"{place}: it is there twice; keep one.")
        else:
            return ends
        return None

    def _read_map(self, place: str, ends: Edge, pairs: Mapping[str, str] | None) -> None:
        """Read a map; between intervals it is computed, and pairs given must say the same."""
        finer, coarser = self.nodes[ends[0]], self.nodes[ends[1]]
        computed = None
        if finer.scale is not None and coarser.scale is not None:
            if comparable(finer, coarser, None) is not None:
                if pairs is not None:
                    self.problems.append(
                        f"{place}: dates fall into ages according to the day; leave the pairs out, "
                        "they are computed as of the target's day."
                    )
                return
            computed = interval_function(finer, coarser, None)
            if computed is None:
                self.problems.append(f"{place}: some intervals of {finer.name} fall into several.")
                return
        elif pairs is None:
            self.maps.unresolved.add(ends)
            return
        array = computed if pairs is None else self._array(place, finer, coarser, pairs)
        if array is not None:
            if computed is not None and (array != computed)[: finer.intervals].any():
                self.problems.append(f"{place}: the pairs contradict the intervals' edges.")
            self.maps.arrays[ends] = array

    def _array(
        self, place: str, finer: Node, coarser: Node, pairs: Mapping[str, str]
    ) -> Ints | None:
        """Return the position into which each category falls, or say why that is not told."""
        problems = [
            *_unknown(place, finer, [code for code in pairs if code not in finer.positions]),
            *_unknown(place, coarser, sorted(set(pairs.values()) - coarser.positions.keys())),
        ]
        array = np.full(finer.size, -1, dtype=np.int64)
        if not problems:
            at = [finer.positions[code] for code in pairs]
            array[at] = [coarser.positions[code] for code in pairs.values()]
            problems += self._fill_special(place, array, finer, coarser)
        left = np.flatnonzero((array < 0) & finer.substantive)
        if left.size and not problems:
            names = [finer.codes[i] for i in left[:6]] + [""] * max(0, left.size - 6)
            problems.append(
                f"{place}: a map must be total; it does not say where {quoted(names, 5)} fall."
            )
        self.problems += problems
        return None if problems else array

    def _fill_special(self, place: str, array: Ints, finer: Node, coarser: Node) -> list[str]:
        """Send "not stated" and the like to their own kind where the map is silent on them."""
        problems = []
        for kind in SPECIAL:
            silent = np.flatnonzero((array < 0) & (finer.kinds == KINDS.index(kind)))
            home = coarser.of_kind(kind)
            if len(home) > 1 and silent.size:
                problems.append(
                    f"{place}: {coarser.name} has several categories for {kind!r}; say into which"
                    f" {shown(finer.codes[silent[0]])} falls."
                )
            elif len(home) == 1:
                array[silent] = home[0]
        return problems

    def _read_overlap(self, place: str, ends: Edge, overlap: Overlap) -> None:
        """Read an overlap; "other" meets what the other side lists and this one does not."""
        left, right = self.nodes[ends[0]], self.nodes[ends[1]]
        problems = _unknown(place, left, sorted({a for a, _ in overlap.pairs} - set(left.codes)))
        problems += _unknown(place, right, sorted({b for _, b in overlap.pairs} - set(right.codes)))
        if problems:
            self.problems += problems
            return
        found = [(left.positions[a], right.positions[b]) for a, b in overlap.pairs]
        array = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
        one, other = array[:, 0], array[:, 1]
        for catch in left.of_kind("other"):
            alone = np.setdiff1d(np.flatnonzero(right.substantive), array[:, 1])
            one, other = np.append(one, np.full(len(alone), catch)), np.append(other, alone)
        for catch in right.of_kind("other"):
            alone = np.setdiff1d(np.flatnonzero(left.substantive), array[:, 0])
            one, other = np.append(one, alone), np.append(other, np.full(len(alone), catch))
        pairs = unique_pairs(with_kin((one, other), left, right), max(right.size, 1))
        self.maps.overlaps[ends] = pairs
        self.maps.overlaps[ends[::-1]] = unique_pairs(pairs[::-1], max(left.size, 1))


def _unknown(place: str, node: Node, codes: list[str]) -> list[str]:
    if not codes:
        return []
    return [f"{place}: {quoted(codes, 5)} is not among the codes of {node.name}."]


Reach = dict[str, dict[str, Ints]]


def compose(first: Ints, second: Ints) -> Ints:
    """Return where categories fall after two maps; outside stays outside."""
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

    def take(finer: str, coarser: str, array: Ints) -> None:
        known = reach[finer].get(coarser, array)
        fault = np.flatnonzero((known != array) & (known >= 0) & (array >= 0))
        if fault.size:
            names, first = nodes[coarser].labels, fault[0]
            falls = sorted([names[known[first]], names[array[first]]])
            more = f" (and {fault.size - 1:,} more categories)" if fault.size > 1 else ""
            problems.append(
                f"the paths from {finer} to {coarser} disagree: {shown(nodes[finer].labels[first])}"
                f" falls into {shown(falls[0])} by one and into {shown(falls[1])} by another{more}."
            )
        reach[finer][coarser] = np.where(known >= 0, known, array)

    for name in TopologicalSorter(above).static_order():
        for parent in above.get(name, ()):
            array = maps.arrays[name, parent]
            take(name, parent, array)
            for coarser, further in reach[parent].items():
                take(name, coarser, compose(array, further))
    return reach, problems


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
