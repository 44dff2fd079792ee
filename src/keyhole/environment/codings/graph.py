"""The graph of codings: what refines what, how categories overlap, where two paths up join.

Elliot, Mackey & Purdam (2011), Figure 1. The join of two codings is their finest common
coarsening; it is computed from the overlap of their categories, not looked up as a lowest
common ancestor, of which a stored graph may have several.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from keyhole.core.names import quoted
from keyhole.environment.codings import relations
from keyhole.environment.codings.categories import Node, Weights
from keyhole.environment.codings.relations import CodingRelation, Day, Edge, Pairs
from keyhole.environment.exchange import read_place
from keyhole.environment.model import Coding, Environment, Form, Source, Target
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.environment.soundness import KIND_OF, coding_names, graph_problems, require_sound
from keyhole.environment.wording import not_there as not_there
from keyhole.environment.wording import require_none
from keyhole.errors import InputError
from keyhole.kernels.arrays import Flags, Ints

if TYPE_CHECKING:
    from keyhole.environment.codings.joins import Join

_COMPARED = 2_000  # codings of more categories are not compared by spelling
_CERTAIN = 0.95  # answers paired by spelling, or by other words for the same
Part = TypeVar("Part", Form, Source, Target, Scenario)
Found = TypeVar("Found")
Holder = Form | Source


def _product(one: Flags, other: Flags) -> Flags:
    """Return where a step of one table can be followed by a step of the other."""
    return np.asarray(one.astype(np.float32) @ other.astype(np.float32) > 0)


def _closed(steps: Flags) -> Flags:
    """Return what can be reached in any number of steps, none included."""
    reach = steps | np.eye(len(steps), dtype=bool)
    while not ((further := _product(reach, reach)) == reach).all():
        reach = further
    return reach


def _minimal(members: Ints, reach: Flags) -> Ints:
    """Keep the members below which there is no other: `reach` goes up from finer to coarser."""
    among = reach[np.ix_(members, members)]
    return members[~(among & ~among.T).any(axis=0)]


def _shortest_path(start: int, end: int, steps: Flags) -> tuple[int, ...]:
    """Return the shortest path, the first in order among those; empty if there is none."""
    paths: dict[int, tuple[int, ...]] = {start: (start,)}
    queue = deque([start])
    while queue and end not in paths:
        here = queue.popleft()
        for there in np.flatnonzero(steps[here]).tolist():
            if there not in paths:
                paths[there] = (*paths[here], there)
                queue.append(there)
    return paths.get(end, ())


class Family:
    """What is known of the codings of a construct, as of a day where dates meet ages.

    `reach[a, b]` says that a refines b; `direct[a, b]` that their overlap is given, by
    intervals, by a stored overlap or because they are the same; `known[a, b]` that it follows
    exactly from codings that refine both.
    """

    def __init__(self, graph: CodingGraph, letters: str, as_of: Day) -> None:
        self.nodes = sorted(graph._members[letters], key=lambda node: node.name)
        self.as_of, maps = as_of, graph._maps
        self.index = at = {node.name: i for i, node in enumerate(self.nodes)}
        self._functions = {(at[a], at[b]): f for a in at for b, f in graph._reach[a].items()}
        self._overlaps = {(at[a], at[b]): p for (a, b), p in maps.overlaps.items() if a in at}
        self._map_steps, self.unresolved = self._table(maps.arrays), self._table(maps.unresolved)
        size = len(self.nodes)
        self._by_edges, comparables = np.zeros((2, size, size), dtype=bool)
        numeric = [i for i, node in enumerate(self.nodes) if node.scale is not None]
        for i, j in ((i, j) for i in numeric for j in numeric):
            if relations.comparable(self.nodes[i], self.nodes[j], as_of) is None:
                comparables[i, j] = True
                self._by_edges[i, j] = i == j or self._cut(i, j) is not None
        self._steps = self._map_steps | self._by_edges
        self.reach = _closed(self._steps)
        # Between intervals a path counts only where the edges do not cut: what lies outside
        # one coding says nothing of how a third one cuts it.
        uncut = self._by_edges.copy()
        for i, j in np.argwhere(comparables & self.reach & ~self._by_edges).tolist():
            uncut[i, j] = relations.nested(self.nodes[i], self.nodes[j], as_of)
        self.reach = np.where(comparables, uncut, self.reach)
        self.listed = np.array([not node.open for node in self.nodes], dtype=bool)
        self.direct = comparables | np.diag(self.listed)
        for pair in self._overlaps:
            self.direct[pair] = True
        self.known = _product(_product(self.reach.T, self.direct), self.reach)

    def _table(self, edges: Iterable[Edge]) -> Flags:
        """Mark the edges between the family's codings, by position."""
        table = np.zeros((len(self.nodes), len(self.nodes)), dtype=bool)
        for finer, coarser in edges:
            if finer in self.index:
                table[self.index[finer], self.index[coarser]] = True
        return table

    def _cut(self, i: int, j: int) -> Ints | None:
        return relations.interval_function(self.nodes[i], self.nodes[j], self.as_of)

    def names(self, members: Iterable[int]) -> tuple[str, ...]:
        """Return the names of some codings, sorted."""
        return tuple(sorted(self.nodes[i].name for i in members))

    def function(self, i: int, j: int) -> Ints | None:
        """Return into which category of j each of i falls, or None if i does not refine j."""
        if not self.reach[i, j]:
            return None
        if (i, j) not in self._functions:
            found = np.arange(self.nodes[i].size)
            for step in pairwise(self.path(i, j)):
                array = self._functions[step] if self._map_steps[step] else self._cut(*step)
                assert array is not None
                found = relations.compose(found, array)
            self._functions[i, j] = found
        return self._functions[i, j]

    def path(self, i: int, j: int) -> tuple[int, ...]:
        """Return the path up from i to j that is told in explanations, the shortest."""
        if i != j and self._by_edges[i, j]:
            return (i, j)
        return _shortest_path(i, j, self._map_steps) or _shortest_path(i, j, self._steps)

    def exact_pairs(self, i: int, j: int) -> tuple[Pairs, tuple[int, ...]] | None:
        """Return the overlap that follows from codings refining both, and which they were."""
        if not self.known[i, j]:
            return None
        if self.direct[i, j]:
            return self._direct_pairs(i, j), ()
        if not self.nodes[i].open and (up := self.function(i, j)) is not None:
            return relations.pairs_of(up), ()
        if not self.nodes[j].open and (down := self.function(j, i)) is not None:
            return relations.pairs_of(down)[::-1], ()
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
            pairs = self._direct_pairs(c, d)
            one, other = left[pairs[0]], right[pairs[1]]
            kept = (one >= 0) & (other >= 0)  # what falls outside is left out
            found.append((one[kept], other[kept]))
        via = dict.fromkeys([*sources[0], *sources[1]])
        return relations.unique_pairs(relations.together(found), self.nodes[j].size), tuple(
            via.keys() - {i, j}
        )

    def _direct_pairs(self, i: int, j: int) -> Pairs:
        if i == j:
            every = np.arange(self.nodes[i].size)
            return every, every
        # Intervals before what somebody wrote: they are computed, and on the right day.
        if relations.comparable(self.nodes[i], self.nodes[j], self.as_of) is None:
            return relations.interval_pairs(self.nodes[i], self.nodes[j], self.as_of)
        return self._overlaps[i, j]

    def relate(self, left: Node, right: Node) -> CodingRelation:
        """Return which categories of two codings can describe the same person.

        An overlap is exact where it is that of intervals, was stored, or comes from codings that
        refine both sides: two categories that share a finer one share a person. Through any
        other third coding nothing but the impossible pairs is known; then each such coding
        rules out what it can, and what remains is not exact.
        """
        i, j = self.index[left.name], self.index[right.name]
        if (exact := self.exact_pairs(i, j)) is not None:
            pairs, via = exact
            basis: relations.Basis = "composed" if via else "stored"
            if i == j:
                basis = "same"
            elif relations.comparable(left, right, self.as_of) is None:
                basis = "intervals"
            elif self.reach[i, j] or self.reach[j, i]:
                basis = "map"
            kin = relations.with_kin(pairs, left, right)
            return CodingRelation(left, right, basis, *kin, via=self.names(via))
        if (matched := matched_by_wording(left, right)) is not None:
            return CodingRelation(left, right, "wording", *matched, exact=False)
        # The finest codings whose overlap with both is known exactly.
        shared = np.flatnonzero(self.known[i] & self.known[j] & self.listed)
        bridges = _minimal(shared, self.reach).tolist()
        if not bridges:
            return self._unknown(i, j)
        names, found = self.names(bridges), self._bridged(i, j, bridges)
        if found is None:
            text = f"{left.name} and {right.name} have too many pairs through {', '.join(names)}"
            return CodingRelation(left, right, "unresolved", exact=False, reason=text)
        kin = relations.with_kin(found, left, right)
        return CodingRelation(left, right, "composed", *kin, exact=False, via=names)

    def _bridged(self, i: int, j: int, bridges: Sequence[int]) -> Pairs | None:
        """Keep the pairs that no third coding rules out; None where they are too many to list."""
        found: Any = None
        for k in bridges:
            sides = [self.relate(self.nodes[one], self.nodes[k]) for one in (i, j)]
            rows = [np.bincount(side.right, minlength=side.other.size) for side in sides]
            if float(rows[0].astype(float) @ rows[1]) <= relations.MOST:
                further = sides[0].table() @ sides[1].table().T
                found = further if found is None else found.multiply(further)
        if found is None:
            return None
        listed = found.tocoo()
        pairs = listed.row.astype(np.int64), listed.col.astype(np.int64)
        return relations.unique_pairs(pairs, self.nodes[j].size)

    def _unknown(self, i: int, j: int) -> CodingRelation:
        """Say why nothing is known of an overlap, and what would tell."""
        left, right = self.nodes[i], self.nodes[j]
        basis: relations.Basis = "unresolved"
        reach = _closed(self.reach | self.unresolved)
        below = _product(_product(reach.T, self.direct), reach)
        linked = (reach[i] & reach[j]).any() or below[i, j]
        around = (reach[i] | reach[j])[:, None] | (reach[:, i] | reach[:, j])[None, :]
        edges = np.argwhere(self.unresolved & around).tolist() if linked else []
        if edges:
            names = [f"{self.nodes[a].name} -> {self.nodes[b].name}" for a, b in edges]
            text = f"the map {quoted(names, 3)} does not pair the categories; give its pairs"
        elif left.open or right.open:
            node = left if left.open else right
            text = f"{node.name} is {node.sort}: its categories are unknown"
        elif left.scale is not None and right.scale is not None:
            text = str(relations.comparable(left, right, self.as_of))
        else:
            basis = "unrelated"
            text = f"no map, overlap or intervals connect {left.name} and {right.name}"
            if self.as_of is None and {"number", "date"} <= {node.scale for node in self.nodes}:
                text += " without a day on which dates of birth are ages (as_of, --as-of)"
        return CodingRelation(left, right, basis, exact=False, reason=text)


def matched_by_wording(left: Node, right: Node) -> Pairs | None:
    """Return the overlap by the answers' wording, where it leaves no answer of either side over.

    It depends on nothing but the two codings, whichever was there first.
    """
    from keyhole.environment.matching.categories import answers_of, match_answers

    if max(left.size, right.size) > _COMPARED or left.open or right.open:
        return None
    sides = [answers_of(node.coding.categories, node.coding.intervals) for node in (left, right)]
    found = match_answers(*sides)
    sure = found.relation in ("finer", "coarser") and found.sure >= _CERTAIN
    if not sure or any(answers.bare for answers in sides):
        return None
    pairs = sorted((left.positions[a], right.positions[b]) for a, b in found.pairs)
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    for side, node in enumerate((left, right)):
        if not np.isin(np.flatnonzero(node.substantive), array[:, side]).all():
            return None  # who gives an answer that the other lacks gives another there
    return relations.with_kin((array[:, 0], array[:, 1]), left, right)


class CodingGraph:
    """The codings of an environment, their maps checked and ready to be asked.

    Everything in the environment is checked: names, sizes, intervals, maps that are not total or go
    in circles, paths that disagree. All problems are raised at once.

    Examples
    --------
    >>> from keyhole.environment.model import Category, CategoryMap, Construct
    >>> fine = Coding("ES3.001", "ES", tuple(map(Category, ["full", "part", "none"])))
    >>> rough = Coding("ES2.001", "ES", tuple(map(Category, ["yes", "no"])))
    >>> pairs = {"full": "yes", "part": "yes", "none": "no"}
    >>> graph = CodingGraph(
    ...     Environment(
    ...         (Construct("ES", "employment status"),),
    ...         (fine, rough),
    ...         (CategoryMap("ES3.001", "ES2.001", pairs),),
    ...     )
    ... )
    >>> graph.refines("ES3.001", "ES2.001"), graph.mapping("ES3.001", "ES2.001").tolist()
    (True, [0, 0, 1])
    """

    def __init__(self, environment: Environment) -> None:
        if not isinstance(environment, Environment):
            got = type(environment).__name__
            raise InputError(f"environment must be an Environment. Got {got} instead.")
        try:
            self._build(environment)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            require_sound(environment)  # says which part is not what it must be
            raise

    def _build(self, environment: Environment) -> None:
        self.environment = environment
        self.settled = self.possible = False  # see `keyhole.environment.mapping.undecided`
        self.names: Mapping[str, str] = coding_names(environment)
        require_none(dict.fromkeys(graph_problems(environment)))
        self._nodes = {coding.name: Node(coding) for coding in environment.codings}
        self._maps = relations.Maps(self._nodes, self.names, environment.maps, environment.overlaps)
        edges = set(self._maps.arrays) | self._maps.unresolved
        require_none(dict.fromkeys([*self._maps.problems, *relations.circles(edges)]))
        self._reach, problems = relations.reach_of(self._nodes, self._maps)
        require_none(dict.fromkeys(problems))
        self.memory: dict[object, Any] = {}
        self._members: dict[str, list[Node]] = {}
        for node in self._nodes.values():
            self._members.setdefault(node.construct, []).append(node)
        sorts = {name: {node.scale for node in nodes} for name, nodes in self._members.items()}
        self._dated = {letters for letters, held in sorts.items() if held >= {"number", "date"}}
        self._asked: dict[int, Mapping[str, tuple[str, ...]]] = {}
        holders: list[Holder] = [*environment.forms, *environment.sources]
        self._asked = {id(holder): self.asked(holder) for holder in holders}

    @classmethod
    def of(cls, environment: Environment | CodingGraph | str | os.PathLike[str]) -> CodingGraph:
        """Return the graph of an environment, or of a store; a graph is its own."""
        if isinstance(environment, CodingGraph):
            return environment
        return cls(read_place(environment))

    def _placed(self, name: str, as_of: Day) -> tuple[Family, int]:
        node = self.node(name)
        day = as_of if node.construct in self._dated else None
        family: Family = self.remembered(Family, node.construct, day)
        return family, family.index[node.name]

    def asked(self, holder: Holder) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the codings a form or source holds, by the letters of constructs."""
        if (known := self._asked.get(id(holder))) is not None:
            return known
        found: dict[str, set[str]] = {}
        for field in holder.fields:
            if field.coding is not None:
                node = self.node(field.coding)
                found.setdefault(node.construct, set()).add(node.name)
        return {letters: tuple(sorted(names)) for letters, names in found.items()}

    def remembered(self, find: Callable[..., Found], *given: Any) -> Found:
        """Return what a function finds in this graph; it is asked once."""
        key = find, *given
        if key not in self.memory:
            self.memory[key] = find(self, *given)
        found: Found = self.memory[key]
        return found

    def node(self, name: str) -> Node:
        """Return the node of a coding, by its name or an alias."""
        if name not in self.names:
            raise InputError(not_there("coding", name, self.names))
        return self._nodes[self.names[name]]

    def coding(self, name: str) -> Coding:
        """Return a coding by its name or an alias."""
        return self.node(name).coding

    def family(self, letters: str) -> tuple[str, ...]:
        """Return the names of a construct's codings, sorted."""
        return tuple(sorted(node.name for node in self._members.get(letters, ())))

    def ancestors(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the names of the codings that a coding refines, itself left out."""
        family, i = self._placed(name, as_of)
        return family.names(set(np.flatnonzero(family.reach[i]).tolist()) - {i})

    def descendants(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the names of the codings that refine a coding, itself left out."""
        family, i = self._placed(name, as_of)
        return family.names(set(np.flatnonzero(family.reach[:, i]).tolist()) - {i})

    def refines(self, finer: str, coarser: str, *, as_of: Day = None) -> bool:
        """Tell whether each category of the finer coding falls into one of the coarser."""
        return self.mapping(finer, coarser, as_of=as_of) is not None

    def mapping(self, finer: str, coarser: str, *, as_of: Day = None) -> Ints | None:
        """Return into which category each falls, by position; -1 is outside the coarser coding.

        `None` if the one coding does not refine the other, as far as is known.
        """
        if self.node(finer).construct != self.node(coarser).construct:
            return None
        family, i = self._placed(finer, as_of)
        return family.function(i, family.index[self.node(coarser).name])

    def path(self, finer: str, coarser: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the codings on the shortest path up from one to the other, both included."""
        family, i = self._placed(finer, as_of)
        path = family.path(i, family.index[self.node(coarser).name])
        return tuple(family.nodes[k].name for k in path)

    def minimal_common_ancestors(
        self, left: str, right: str, *, as_of: Day = None
    ) -> tuple[str, ...]:
        """Return the finest stored codings that both refine; several mean the join is missing."""
        if self.node(left).construct != self.node(right).construct:
            return ()
        family, i = self._placed(left, as_of)
        both = family.reach[i] & family.reach[family.index[self.node(right).name]]
        return family.names(_minimal(np.flatnonzero(both), family.reach).tolist())

    def stand_ins(self, name: str, *, as_of: Day = None) -> tuple[str, ...]:
        """Return the finest codings free text can be coded into; any other gives itself."""
        family, i = self._placed(name, as_of)
        if not family.nodes[i].open:
            return (family.nodes[i].name,)
        into = np.flatnonzero(family.reach[i] & family.listed)
        return family.names(_minimal(into, family.reach).tolist())

    def overlap(self, left: str, right: str, *, as_of: Day = None) -> CodingRelation:
        """Return which categories of two codings can describe the same person."""
        return self.remembered(CodingGraph._overlap, self.node(left), self.node(right), as_of)

    def _overlap(self, one: Node, other: Node, as_of: Day) -> CodingRelation:
        if one.construct != other.construct:
            reason = f"{one.name} and {other.name} ask about different constructs"
            return CodingRelation(one, other, "unrelated", exact=False, reason=reason)
        return self._placed(one.name, as_of)[0].relate(one, other)

    def join(
        self, left: str, right: str, *, as_of: Day = None, weights: Weights | None = None
    ) -> Join:
        """Return the finest common coarsening of two codings; see `codings.joins`."""
        from keyhole.environment.codings.joins import join_codings

        return join_codings(self, left, right, as_of=as_of, weights=weights)

    def find(self, kind: type[Part], name: str | Part) -> Part:
        """Return a form, source, target or scenario by its name; one that is given is its own."""
        if not isinstance(name, str):
            return name
        sort = kind.__name__.lower()
        known: dict[str, Part] = {one.name: one for one in KIND_OF[sort].of(self.environment)}
        if name not in known:
            remedy = f" There are {quoted(known) or 'none'}."
            raise InputError(not_there(sort, name, known, remedy))
        return known[name]
