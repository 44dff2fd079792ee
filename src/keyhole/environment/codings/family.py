"""The codings of one construct on one day: which refines which, and which overlap how."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.maps import Edge, Maps, Reach, compose
from keyhole.environment.codings.partitions import meet
from keyhole.environment.codings.relations import (
    MOST,
    Basis,
    CodingRelation,
    Pairs,
    comparable,
    function_of,
    interval_function,
    interval_pairs,
    nested,
    pairs_of,
    push,
    together,
    unique_pairs,
    with_kin,
)
from keyhole.kernels.arrays import Flags, Ints

NOTHING = np.zeros(0, dtype=np.int64)
_COMPARED = 2_000  # codings of more categories are not compared by spelling
_CERTAIN = 0.95  # answers paired by spelling, or by other words for the same


def _product(one: Flags, other: Flags) -> Flags:
    """Return where a step of one table can be followed by a step of the other."""
    return np.asarray(one.astype(np.float32) @ other.astype(np.float32) > 0)


def _closed(steps: Flags) -> Flags:
    """Return what can be reached in any number of steps, none included."""
    reach = steps | np.eye(len(steps), dtype=bool)
    while True:
        further = _product(reach, reach)
        if (further == reach).all():
            return reach
        reach = further


def _minimal(members: npt.NDArray[np.int64], reach: Flags) -> npt.NDArray[np.int64]:
    """Keep the members below which there is no other: `reach` goes up from finer to coarser."""
    among = reach[np.ix_(members, members)]
    below = among & ~among.T
    return members[~below.any(axis=0)]


def _shortest_path(start: int, end: int, steps: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """Return the shortest path, the first in order among those; empty if there is none."""
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
        steps = self._table(maps.arrays)
        self.unresolved = self._table(maps.unresolved)
        self.mapped = {(self.index[a], self.index[b]) for a, b in maps.arrays if a in self.index}
        self.by_edges, comparables = self._interval_tables()
        self.reach = _closed(steps | self.by_edges)
        # Between intervals a path counts only where the edges do not cut: what lies outside
        # one coding says nothing of how a third one cuts it.
        uncut = self.by_edges.copy()
        for i, j in np.argwhere(comparables & self.reach & ~self.by_edges).tolist():
            uncut[i, j] = nested(self.nodes[i], self.nodes[j], as_of)
        self.reach = np.where(comparables, uncut, self.reach)
        self.steps, self.map_steps = _lists(steps | self.by_edges), _lists(steps)
        self.listed = np.array([not node.open for node in self.nodes], dtype=bool)
        self.direct = comparables | np.diag(self.listed)
        for pair in self._overlaps:
            self.direct[pair] = True
        self.known = _product(_product(self.reach.T, self.direct), self.reach)

    def _table(self, edges: Mapping[Edge, Ints] | set[Edge]) -> Flags:
        """Mark the edges between the family's codings, by position."""
        table = np.zeros((len(self.nodes), len(self.nodes)), dtype=bool)
        for finer, coarser in edges:
            if finer in self.index:
                table[self.index[finer], self.index[coarser]] = True
        return table

    def _interval_tables(self) -> tuple[Flags, Flags]:
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

    def _interval_function(self, i: int, j: int) -> Ints | None:
        return interval_function(self.nodes[i], self.nodes[j], self.as_of)

    def function(self, i: int, j: int) -> Ints | None:
        """Return into which category of j each of i falls, or None if i does not refine j."""
        if not self.reach[i, j]:
            return None
        if (i, j) not in self.functions:
            found = np.arange(self.nodes[i].size)
            for step in pairwise(self.path(i, j)):
                mapped = step in self.mapped
                array = self.functions[step] if mapped else self._interval_function(*step)
                assert array is not None
                found = compose(found, array)
            self.functions[i, j] = found
        return self.functions[i, j]

    def path(self, i: int, j: int) -> tuple[int, ...]:
        """Return the path up from i to j that is told in explanations, the shortest."""
        if i != j and self.by_edges[i, j]:
            return (i, j)
        return _shortest_path(i, j, self.map_steps) or _shortest_path(i, j, self.steps)

    def minimal_common_ancestors(self, i: int, j: int) -> Ints:
        """Return the finest of the codings that both refine."""
        return _minimal(np.flatnonzero(self.reach[i] & self.reach[j]), self.reach)

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
        # The coarsest pairs of codings below i and j whose overlap is given.
        below, beside = np.nonzero(self.direct & np.outer(self.reach[:, i], self.reach[:, j]))
        above = self.reach[np.ix_(below, below)] & self.reach[np.ix_(beside, beside)]
        coarsest = ~(above & ~above.T).any(axis=1)
        sources = below[coarsest].tolist(), beside[coarsest].tolist()
        found = []
        for c, d in zip(*sources, strict=True):
            left, right = self.function(c, i), self.function(d, j)
            assert left is not None
            assert right is not None
            found.append(push(self._direct_pairs(c, d), left, right))
        via = dict.fromkeys([*sources[0], *sources[1]])
        pairs = unique_pairs(together(found), self.nodes[j].size)
        return pairs, tuple(k for k in via if k not in (i, j))

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
        return _minimal(np.flatnonzero(self.known[i] & self.known[j] & self.listed), self.reach)

    def stand_ins(self, i: int) -> Ints:
        """Return what free text can be coded into, at its finest; a coding stands for itself."""
        if not self.nodes[i].open:
            return np.array([i])
        return _minimal(np.flatnonzero(self.reach[i] & self.listed), self.reach)

    def open_edges(self, i: int, j: int) -> tuple[tuple[int, int], ...]:
        """Return the edges without pairs over which i and j would be connected."""
        reach = _closed(self.reach | self.unresolved)
        common = bool((reach[i] & reach[j]).any())
        if not (common or _product(_product(reach.T, self.direct), reach)[i, j]):
            return ()
        above = reach[i] | reach[j]
        below = reach[:, i] | reach[:, j]
        edges = np.argwhere(self.unresolved & (above[:, None] | below[None, :]))
        return tuple((int(a), int(b)) for a, b in edges)


def _lists(table: Flags) -> Mapping[int, list[int]]:
    return {i: [j for j in np.flatnonzero(row).tolist() if j != i] for i, row in enumerate(table)}


def relate(family: Family | None, left: Node, right: Node) -> CodingRelation:
    """Return which categories of two codings can describe the same person.

    Notes
    -----
    An overlap is exact where it is that of intervals, was stored, or comes from codings that
    refine both sides: two categories that share a finer one share a person. Through any
    other third coding nothing but the impossible pairs is known; then each such coding
    rules out what it can, and what remains is not exact.
    """
    if family is None:
        return _missing("unrelated", f"{left.name} and {right.name} ask about different constructs")
    i, j = family.index[left.name], family.index[right.name]
    exact = family.exact_pairs(i, j)
    if exact is not None:
        pairs, via = exact
        names = tuple(family.nodes[k].name for k in via)
        return CodingRelation(*with_kin(pairs, left, right), _basis(family, i, j, via), via=names)
    matched = _matched(left, right)
    if matched is not None:
        return CodingRelation(*matched, "stored", exact=False)
    bridges = family.bridges(i, j)
    return _bridged(family, i, j, bridges) if bridges.size else _unknown(family, i, j)


def _matched(left: Node, right: Node) -> Pairs | None:
    """Return the overlap by the answers' spelling, where it leaves no answer of one side over.

    It depends on nothing but the two codings, whichever was there first.
    """
    from keyhole.environment.adding.matching_categories import answers_of, match_answers

    if max(left.size, right.size) > _COMPARED:
        return None
    sides = [answers_of(node.coding.categories, node.coding.intervals) for node in (left, right)]
    found = match_answers(*sides)
    if found.relation not in ("finer", "coarser") or found.sure < _CERTAIN:
        return None
    if any(answers.bare for answers in sides):
        return None
    pairs = sorted((left.positions[a], right.positions[b]) for a, b in found.pairs)
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return with_kin((array[:, 0], array[:, 1]), left, right)


def _missing(basis: Basis, reason: str) -> CodingRelation:
    return CodingRelation(NOTHING, NOTHING, basis, exact=False, reason=reason)


def _basis(family: Family, i: int, j: int, via: tuple[int, ...]) -> Basis:
    left, right = family.nodes[i], family.nodes[j]
    if i == j:
        return "same"
    if left.scale is not None and comparable(left, right, family.as_of) is None:
        return "intervals"
    if family.reach[i, j] or family.reach[j, i]:
        return "map"
    return "composed" if via else "stored"


def _bridged(family: Family, i: int, j: int, bridges: Ints) -> CodingRelation:
    """Keep the pairs that no third coding rules out."""
    left, right = family.nodes[i], family.nodes[j]
    functions: list[tuple[Ints, Ints]] = []
    rest: list[tuple[Pairs, Pairs, int]] = []
    for k in bridges.tolist():
        one, other = _bridge_pairs(family, i, k), _bridge_pairs(family, j, k)
        f, g = function_of(one, left.size), function_of(other, right.size)
        if f is not None and g is not None:
            functions.append((f, g))
        else:
            rest.append((one, other, family.nodes[k].size))
    pairs, thin = _by_functions(functions) if functions else (None, False)
    for one, other, middles in rest if not thin else ():
        further = _composed(one, other, left.size, right.size, middles)
        if pairs is None:
            pairs = further
        else:
            known, new = (p[0] * right.size + p[1] for p in (pairs, further))
            shared = np.intersect1d(known, new)
            pairs = shared // right.size, shared % right.size
    assert pairs is not None
    names = tuple(family.nodes[k].name for k in bridges.tolist())
    paired = with_kin(pairs, left, right)
    return CodingRelation(*paired, "composed", exact=False, via=names, thin=thin)


def _bridge_pairs(family: Family, i: int, k: int) -> Pairs:
    found = family.exact_pairs(i, k)
    assert found is not None
    return with_kin(found[0], family.nodes[i], family.nodes[k])


def _by_functions(told: list[tuple[Ints, Ints]]) -> tuple[Pairs, bool]:
    """Pair what falls together in every third coding; thinly where that is too many pairs."""
    # Number the combinations of categories in all third codings, for both sides together.
    split = len(told[0][0])
    keys = np.zeros(split + len(told[0][1]), dtype=np.int64)
    outside = np.zeros(len(keys), dtype=bool)
    for f, g in told:
        both = np.concatenate([f, g])
        outside |= both < 0
        keys = meet(keys, np.maximum(both, 0))
    keys[outside] = -1
    left, right = keys[:split], keys[split:]
    order = np.argsort(right, kind="stable")
    begins = np.searchsorted(right[order], left, side="left")
    counts = np.searchsorted(right[order], left, side="right") - begins
    counts[left < 0] = 0
    if counts.sum() > MOST:
        return _thin(left, right), True
    one = np.repeat(np.arange(len(left)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    other = order[np.repeat(begins, counts) + np.arange(len(one)) - before]
    return (one, other), False


def _thin(left: Ints, right: Ints) -> Pairs:
    """Tie all of a key on the left to its first on the right, and the other way round."""
    keys, first = np.unique(left, return_index=True)
    others, second = np.unique(right, return_index=True)
    shared, a, b = np.intersect1d(keys, others, return_indices=True)
    to_right = dict(zip(shared.tolist(), second[b].tolist(), strict=True))
    to_left = dict(zip(shared.tolist(), first[a].tolist(), strict=True))
    pairs = [(i, to_right[k]) for i, k in enumerate(left.tolist()) if k >= 0 and k in to_right]
    pairs += [(to_left[k], j) for j, k in enumerate(right.tolist()) if k >= 0 and k in to_left]
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _composed(one: Pairs, other: Pairs, lefts: int, rights: int, middles: int) -> Pairs:
    from scipy.sparse import csr_matrix

    first = csr_matrix((np.ones(len(one[0]), dtype=bool), one), shape=(lefts, middles))
    second = csr_matrix((np.ones(len(other[0]), dtype=bool), other), shape=(rights, middles))
    found = (first @ second.T).tocoo()
    return found.row.astype(np.int64), found.col.astype(np.int64)


def _unknown(family: Family, i: int, j: int) -> CodingRelation:
    """Say why nothing is known of an overlap, and what would tell."""
    left, right = family.nodes[i], family.nodes[j]
    edges = family.open_edges(i, j)
    if edges:
        names = [f"{family.nodes[a].name} -> {family.nodes[b].name}" for a, b in edges]
        text = f"the map {quoted(names, 3)} does not say how categories fall; give its pairs"
        return _missing("unresolved", text)
    for node in (left, right):
        if node.open:
            text = f"{node.name} is free text: nothing is known of its categories"
            return _missing("unresolved", text)
    if left.scale is not None and right.scale is not None:
        return _missing("unresolved", str(comparable(left, right, family.as_of)))
    text = f"no map, overlap or intervals connect {left.name} and {right.name}"
    if family.as_of is None and {"number", "date"} <= {node.scale for node in family.nodes}:
        text += " without a day on which dates of birth are ages (as_of, --as-of)"
    return _missing("unrelated", text)
