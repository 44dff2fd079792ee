"""The codings of one construct on one day: which refines which, and which overlap how."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.closure import closed, minimal, product, shortest_path
from keyhole.environment.codings.maps import Edge, Maps
from keyhole.environment.codings.paths import Reach, compose
from keyhole.environment.codings.relations import (
    Pairs,
    comparable,
    interval_function,
    interval_pairs,
    nested,
    pairs_of,
    push,
    unique_pairs,
)
from keyhole.kernels.arrays import Flags, Ints


class Family:
    """What is known of the codings of a construct, as of a day where dates meet ages.

    `reach[a, b]` says that a refines b; `direct[a, b]` that their overlap is given, by
    intervals, by a stored overlap or because they are the same; `known[a, b]` that it follows
    exactly from codings that refine both.
    """

    def __init__(
        self, nodes: Sequence[Node], maps: Maps, reach: Reach, as_of: datetime.date | None
    ) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.as_of = as_of
        self.index = {node.name: i for i, node in enumerate(self.nodes)}
        self.functions: dict[tuple[int, int], Ints] = {
            (self.index[a], self.index[b]): array
            for a in self.index
            for b, array in reach[a].items()
        }
        self._overlaps: dict[tuple[int, int], Pairs] = {
            (self.index[a], self.index[b]): pairs
            for (a, b), pairs in maps.overlaps.items()
            if a in self.index
        }
        self._build(maps)

    def _build(self, maps: Maps) -> None:
        size = len(self.nodes)
        intervals = self._interval_table()
        steps = np.zeros((size, size), dtype=bool)
        for finer, coarser in maps.arrays:
            if finer in self.index:
                steps[self.index[finer], self.index[coarser]] = True
        self.reach = closed(steps | intervals[0])
        # Between intervals a path counts only where the edges do not cut: what lies outside
        # one coding says nothing of how a third one cuts it.
        self.by_edges = intervals[0]
        nested_too = intervals[0] | self._nested_table(intervals[1])
        self.reach = np.where(intervals[1], nested_too, self.reach)
        mapped = {(self.index[a], self.index[b]) for a, b in maps.arrays if a in self.index}
        self.steps = _lists(steps | intervals[0])
        self.map_steps = _lists(steps)
        self.mapped = mapped
        self.direct = intervals[1].copy()
        for pair in self._overlaps:
            self.direct[pair] = True
        closed_nodes = np.array([not node.open for node in self.nodes], dtype=bool)
        self.direct |= np.diag(closed_nodes)
        self.known = product(product(self.reach.T, self.direct), self.reach)
        self.unresolved = _unresolved_table(maps.unresolved, self.index)

    def _interval_table(self) -> tuple[Flags, Flags]:
        """Return which interval codings refine which, and which can be compared at all."""
        size = len(self.nodes)
        finer, comparables = np.zeros((2, size, size), dtype=bool)
        at = [i for i, node in enumerate(self.nodes) if node.scale is not None]
        for i in at:
            for j in at:
                if comparable(self.nodes[i], self.nodes[j], self.as_of) is None:
                    comparables[i, j] = True
                    finer[i, j] = i == j or self._interval_function(i, j) is not None
        return finer, comparables

    def _nested_table(self, comparables: Flags) -> Flags:
        """Return between which codings no interval of the one is cut by an edge of the other."""
        table = np.zeros_like(comparables)
        for i, j in np.argwhere(comparables & self.reach & ~self.by_edges).tolist():
            table[i, j] = nested(self.nodes[i], self.nodes[j], self.as_of)
        return table

    def _interval_function(self, i: int, j: int) -> Ints | None:
        return interval_function(self.nodes[i], self.nodes[j], self.as_of)

    def function(self, i: int, j: int) -> Ints | None:
        """Return into which category of j each of i falls, or None if i does not refine j."""
        if not self.reach[i, j]:
            return None
        if (i, j) not in self.functions:
            self.functions[i, j] = self._function(i, j)
        return self.functions[i, j]

    def _function(self, i: int, j: int) -> Ints:
        found = np.arange(self.nodes[i].size)
        for here, there in pairwise(self.path(i, j)):
            found = compose(found, self._step(here, there))
        return found

    def _step(self, i: int, j: int) -> Ints:
        if (i, j) in self.mapped:
            return self.functions[i, j]
        found = self._interval_function(i, j)
        assert found is not None
        return found

    def path(self, i: int, j: int) -> tuple[int, ...]:
        """Return the path up from i to j that is told in explanations, the shortest."""
        if i != j and self.by_edges[i, j]:
            return (i, j)
        return shortest_path(i, j, self.map_steps) or shortest_path(i, j, self.steps)

    def common_ancestors(self, i: int, j: int) -> Ints:
        """Return the codings that both refine."""
        return np.flatnonzero(self.reach[i] & self.reach[j])

    def minimal_common_ancestors(self, i: int, j: int) -> Ints:
        """Return the finest of the codings that both refine."""
        return minimal(self.common_ancestors(i, j), self.reach)

    def exact_pairs(self, i: int, j: int) -> tuple[Pairs, tuple[int, ...]] | None:
        """Return the overlap that follows from codings refining both, and which they were."""
        if not self.known[i, j]:
            return None
        if self.direct[i, j]:
            return self._direct_pairs(i, j), ()
        up, down = self.function(i, j), self.function(j, i)
        if up is not None and not self.nodes[i].open:
            return pairs_of(up), ()
        if down is not None and not self.nodes[j].open:
            return pairs_of(down)[::-1], ()
        below, beside = self._sources(i, j)
        found = []
        for c, d in zip(below.tolist(), beside.tolist(), strict=True):
            left, right = self.function(c, i), self.function(d, j)
            assert left is not None
            assert right is not None
            found.append(push(self._direct_pairs(c, d), left, right))
        pairs = np.concatenate([p[0] for p in found]), np.concatenate([p[1] for p in found])
        via = tuple(dict.fromkeys([*below.tolist(), *beside.tolist()]))
        return unique_pairs(pairs, self.nodes[j].size), tuple(k for k in via if k not in (i, j))

    def _sources(self, i: int, j: int) -> tuple[Ints, Ints]:
        """Return the coarsest pairs of codings below i and j whose overlap is given."""
        below, beside = np.nonzero(self.direct & np.outer(self.reach[:, i], self.reach[:, j]))
        above = self.reach[np.ix_(below, below)] & self.reach[np.ix_(beside, beside)]
        dominated = (above & ~above.T).any(axis=1)
        return below[~dominated], beside[~dominated]

    def _direct_pairs(self, i: int, j: int) -> Pairs:
        if i == j:
            every = np.arange(self.nodes[i].size)
            return every, every
        # Intervals before what somebody wrote: they are computed, and on the right day.
        if comparable(self.nodes[i], self.nodes[j], self.as_of) is None:
            return interval_pairs(self.nodes[i], self.nodes[j], self.as_of)
        return self._overlaps[i, j]

    def bridges(self, i: int, j: int) -> Ints:
        """Return the finest codings whose overlap with both is known exactly."""
        usable = np.array([not node.open for node in self.nodes], dtype=bool)
        return minimal(np.flatnonzero(self.known[i] & self.known[j] & usable), self.reach)

    def stand_ins(self, i: int) -> Ints:
        """Return what free text can be coded into, at its finest; a coding stands for itself."""
        if not self.nodes[i].open:
            return np.array([i])
        coded = [k for k in np.flatnonzero(self.reach[i]) if not self.nodes[k].open]
        return minimal(np.array(coded, dtype=np.int64), self.reach)

    def open_edges(self, i: int, j: int) -> tuple[tuple[int, int], ...]:
        """Return the edges without pairs over which i and j would be connected."""
        reach = closed(self.reach | self.unresolved)
        common = bool((reach[i] & reach[j]).any())
        if not (common or product(product(reach.T, self.direct), reach)[i, j]):
            return ()
        above = reach[i] | reach[j]
        below = reach[:, i] | reach[:, j]
        edges = np.argwhere(self.unresolved & (above[:, None] | below[None, :]))
        return tuple((int(a), int(b)) for a, b in edges)


def _lists(table: Flags) -> Mapping[int, list[int]]:
    return {i: [j for j in np.flatnonzero(row).tolist() if j != i] for i, row in enumerate(table)}


def _unresolved_table(edges: set[Edge], index: Mapping[str, int]) -> Flags:
    table = np.zeros((len(index), len(index)), dtype=bool)
    for finer, coarser in edges:
        if finer in index:
            table[index[finer], index[coarser]] = True
    return table
