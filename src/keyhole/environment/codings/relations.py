"""Overlaps of two codings: which of their categories can describe the same person.

From the edges of intervals, and from category maps and overlaps, which are read into arrays and
checked here: total, known codes, no circles.
"""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import (
    KINDS,
    SPECIAL,
    Node,
    birth_edges,
    homes,
    intersections,
)
from keyhole.environment.codings.partitions import canonical, components
from keyhole.environment.model import CategoryMap, Overlap
from keyhole.kernels.arrays import Floats, Ints

Basis = Literal[
    "same", "map", "intervals", "stored", "composed", "wording", "unresolved", "unrelated"
]
Pairs = tuple[Ints, Ints]
Edge = tuple[str, str]
Day = datetime.date | None
# Pairs are listed one by one up to this many.
MOST = 5_000_000


NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CodingRelation:
    """The overlap of two codings: pairs of positions that one person can have.

    `exact` is false where the pairs are only those that could not be ruled out; `via` names
    the codings it goes through. A relation that is not `resolved` says why.
    """

    one: Node
    other: Node
    basis: Basis
    left: Ints = field(default_factory=lambda: NOTHING)
    right: Ints = field(default_factory=lambda: NOTHING)
    exact: bool = True
    via: tuple[str, ...] = ()
    reason: str = ""

    @property
    def resolved(self) -> bool:
        """Whether it is known which categories overlap."""
        return self.basis not in ("unresolved", "unrelated")

    @property
    def alone(self) -> tuple[Ints, Ints]:
        """The answers of each side that have no counterpart."""
        return answers_beside(self.one, self.left), answers_beside(self.other, self.right)

    @property
    def matched(self) -> bool:
        """Whether one side at least has a counterpart for every answer.

        Where neither has, what was left over on both sides may belong together: nobody said.
        """
        return self.basis == "intervals" or not all(map(len, self.alone))

    @property
    def ruled_out(self) -> float | None:
        """The share of pairs of answers that cannot be the same person, if it is known."""
        pairs = int(self.one.substantive.sum()) * int(self.other.substantive.sum())
        if not self.resolved or not pairs:
            return None
        both = self.one.substantive[self.left] & self.other.substantive[self.right]
        return 1 - int(both.sum()) / pairs

    def groups(self, *, apart: bool = False) -> tuple[Ints, Ints]:
        """Return the groups of both codings: the connected components of their pairs.

        Answers of either side that have no counterpart on the other are one group: who records the
        other coding cannot tell them apart, and where both have such answers they may be each
        other's. With `apart`, where both have such answers those of the left are kept apart: as far
        as anybody knows the other coding may tell each of them.
        """
        size, (left, right) = self.one.size, self.alone
        both = np.concatenate(components(self.left, self.right, size, self.other.size))
        kept = apart and len(left) and len(right)
        lone = right + size if kept else np.concatenate([left, right + size])
        if len(lone):
            both[lone] = both[lone].min()
            both = canonical(both)
        return both[:size], both[size:]

    def table(self, *, beside: bool = False) -> Any:
        """Return the pairs as a sparse table; `beside` has a column for what has no counterpart."""
        from scipy.sparse import csr_matrix

        rows, columns, width = self.left, self.right, self.other.size
        if beside:
            rows = np.append(rows, self.alone[0])
            columns = np.append(columns, np.full(len(self.alone[0]), width))
        shape = self.one.size, width + beside
        return csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape)

    def words(self, sides: int = 2) -> list[str]:
        """Say how the overlap is known, and which answers have no counterpart."""
        one, other = self.one, self.other
        names = f"{one.name} and {other.name}"
        basis = {
            "same": f"{one.name} on both sides",
            "map": f"{names} are tied by maps",
            "intervals": f"{names} are compared by the edges of their intervals",
            "stored": f"the overlap of {names} is stored",
            "wording": f"{names} are matched by the words of their answers, which is not confirmed",
            "composed": f"{names} are compared through {', '.join(self.via)}",
        }
        out = [basis.get(self.basis, self.reason)]
        ends = zip(((one, other), (other, one)), self.alone, strict=True)
        for (node, beside), alone in [*ends][:sides]:
            if labels := [node.labels[i] for i in alone.tolist()]:
                out.append(
                    f"{quoted(labels, 3)} of {node.name} has no counterpart in {beside.name}"
                )
        return out


def answers_beside(node: Node, paired: Ints) -> Ints:
    """Return the answers of a coding that are not among these."""
    return np.setdiff1d(np.flatnonzero(node.substantive), paired)


def unique_pairs(pairs: Pairs, rights: int) -> Pairs:
    """Sort pairs and list each once."""
    keys = np.unique(pairs[0] * max(rights, 1) + pairs[1])
    return keys // max(rights, 1), keys % max(rights, 1)


def pairs_of(function: Ints) -> Pairs:
    """Write a function from positions to positions as pairs."""
    inside = np.flatnonzero(function >= 0)
    return inside, function[inside]


def compose(first: Ints, second: Ints) -> Ints:
    """Return where categories fall after two maps; outside stays outside."""
    return np.append(second, -1)[first]


def with_kin(pairs: Pairs, left: Node, right: Node) -> Pairs:
    """Let "not stated" and "not applicable" meet their own kind, where nothing else is said."""
    if not left.special or not right.special:
        return pairs
    found = [pairs]
    for kind in SPECIAL:
        one, other = left.of_kind(kind), right.of_kind(kind)
        if not (np.isin(one, pairs[0]).any() or np.isin(other, pairs[1]).any()):
            found.append(_every(one, other))
    return together(found)


def _every(one: Ints, other: Ints) -> Pairs:
    if len(one) * len(other) > MOST:  # the same groups from fewer pairs
        firsts = np.full(len(other), one[0]), np.full(len(one), other[0])
        return np.append(one, firsts[0]), np.append(firsts[1], other)
    return np.repeat(one, len(other)), np.tile(other, len(one))


def together(pairs: Iterable[Pairs]) -> Pairs:
    """Return all pairs of several lists, one after the other."""
    both = list(pairs)
    return np.concatenate([p[0] for p in both]), np.concatenate([p[1] for p in both])


def comparable(left: Node, right: Node, as_of: Day) -> str | None:
    """Return None if the intervals of two codings can be compared, else why they cannot."""
    if left.scale is None or right.scale is None:
        return "they are not both intervals"
    if left.scale == right.scale:
        return None
    if as_of is None:
        return "dates and ages can only be compared on a day: that of a target (as_of, --as-of)"
    ages = left.line if left.scale == "number" else right.line
    if birth_edges(ages, as_of) is None:
        return "dates and ages are compared in whole years, and an age has another edge"
    return None


def aligned(left: Node, right: Node, as_of: Day) -> tuple[Floats, Floats]:
    """Return the edges of both on one line, ages as days of birth where the other has dates."""
    if left.scale == right.scale:
        return left.line, right.line
    assert as_of is not None
    sides = [n.line if n.scale == "date" else birth_edges(n.line, as_of) for n in (left, right)]
    assert sides[0] is not None
    assert sides[1] is not None
    return sides[0], sides[1]


def _turned(positions: Ints, node: Node, other: Node) -> Ints:
    """Number intervals of age from the youngest again: days of birth run the other way."""
    return positions if node.scale in (other.scale, "date") else node.intervals - 1 - positions


def interval_pairs(left: Node, right: Node, as_of: Day) -> Pairs:
    """Return the overlap of two comparable interval codings, their listed categories too."""
    one, other = intersections(*aligned(left, right, as_of))
    pairs = _turned(one, left, right), _turned(other, right, left)
    if not left.coding.categories and not right.coding.categories:
        return pairs
    values = [_listed_values(node) for node in (left, right)]
    same = [(i, values[1][code]) for code, i in values[0].items() if code in values[1]]
    array = np.array(same, dtype=np.int64).reshape(-1, 2)
    extras = [
        pairs,
        (array[:, 0], array[:, 1]),
        _every(_outside(left, right, as_of), right.of_kind("other")),
        _every(left.of_kind("other"), _outside(right, left, as_of)),
        _every(left.of_kind("other"), right.of_kind("other")),
    ]
    return with_kin(together(extras), left, right)


def _listed_values(node: Node) -> dict[str, int]:
    """Return where the values stand that are listed beside intervals."""
    listed = enumerate(node.coding.categories, node.intervals)
    return {category.code: i for i, category in listed if category.kind == "value"}


def _outside(inner: Node, outer: Node, as_of: Day) -> Ints:
    """Return what reaches beyond the other's intervals: intervals, and values it does not list."""
    begins, ends = homes(*aligned(inner, outer, as_of))
    beyond = np.flatnonzero((begins < 0) | (ends > outer.intervals - 1))
    known = {category.code for category in outer.coding.categories}
    values = [place for code, place in _listed_values(inner).items() if code not in known]
    return np.concatenate([_turned(beyond, inner, outer), np.array(values, dtype=np.int64)])


def nested(finer: Node, coarser: Node, as_of: Day) -> bool:
    """Tell whether no interval of the finer of two comparable codings is cut by the other's edges.

    What is listed beside the intervals may still fall into several categories.
    """
    begins, ends = homes(*aligned(finer, coarser, as_of))
    return not bool((begins != ends).any())


def interval_function(finer: Node, coarser: Node, as_of: Day) -> Ints | None:
    """Return into which category each of a finer interval coding falls, or None if it is not finer.

    An interval that lies wholly outside the other's falls nowhere (-1).
    """
    if not nested(finer, coarser, as_of):
        return None
    pairs = interval_pairs(finer, coarser, as_of)
    out = np.full(finer.size, -1, dtype=np.int64)
    out[pairs[0]] = pairs[1]
    return None if (np.bincount(pairs[0], minlength=finer.size) > 1).any() else out


class Maps:
    """The maps and overlaps of a graph as arrays, and what is wrong with them.

    `arrays` and `overlaps` are by the names of both codings; `unresolved` are maps without pairs.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        names: Mapping[str, str],
        maps: Iterable[CategoryMap],
        overlaps: Iterable[Overlap],
    ) -> None:
        self.nodes, self.names = nodes, names
        self.problems: list[str] = []
        self.arrays: dict[Edge, Ints] = {}
        self.unresolved: set[Edge] = set()
        self.overlaps: dict[Edge, Pairs] = {}
        given: set[Edge] = set()
        for edge in maps:
            place = f"map {edge.finer} -> {edge.coarser}"
            ends = self._ends(place, edge.finer, edge.coarser, given)
            if ends is not None:
                given.add(ends)
                self._read_map(place, ends, edge.pairs)
        for overlap in overlaps:
            place = f"overlap {overlap.left} ~ {overlap.right}"
            ends = self._ends(place, overlap.left, overlap.right, self.overlaps)
            if ends is not None:
                self._read_overlap(place, ends, overlap)

    def _ends(self, place: str, one: str, other: str, given: Container[Edge]) -> Edge | None:
        """Return the names of both ends, or say what is wrong with them."""
        ends = self.names[one], self.names[other]
        if ends[0] == ends[1]:
            self.problems.append(f"{place}: a coding cannot be tied to itself.")
        elif self.nodes[ends[0]].construct != self.nodes[ends[1]].construct:
            self.problems.append(f"{place}: the codings belong to different constructs.")
        elif ends in given:
            self.problems.append(f"{place}: it is listed twice; keep one.")
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
            self.unresolved.add(ends)
            return
        array = computed if pairs is None else self._array(place, finer, coarser, pairs)
        if array is not None:
            if computed is not None and (array != computed)[: finer.intervals].any():
                self.problems.append(f"{place}: the pairs contradict the intervals' edges.")
            self.arrays[ends] = array

    def _array(
        self, place: str, finer: Node, coarser: Node, pairs: Mapping[str, str]
    ) -> Ints | None:
        """Return the position into which each category falls, or say why that is not told."""
        problems = _unknown(place, finer, pairs) + _unknown(place, coarser, pairs.values())
        array = np.full(finer.size, -1, dtype=np.int64)
        if not problems:
            at = [finer.positions[code] for code in pairs]
            array[at] = [coarser.positions[code] for code in pairs.values()]
            # "Not stated" and the like go to their own kind where the map is silent on them.
            for kind in SPECIAL:
                silent = np.flatnonzero((array < 0) & (finer.kinds == KINDS.index(kind)))
                home = coarser.of_kind(kind)
                if len(home) > 1 and silent.size:
                    problems.append(
                        f"{place}: {coarser.name} has several categories for {kind!r}; say into "
                        f"which {shown(finer.codes[silent[0]])} falls."
                    )
                elif len(home) == 1:
                    array[silent] = home[0]
        left = np.flatnonzero((array < 0) & finer.substantive)
        if left.size and not problems:
            names = [finer.codes[i] for i in left[:6]] + [""] * max(0, left.size - 6)
            problems.append(
                f"{place}: a map must be total; it does not say where {quoted(names, 5)} fall."
            )
        self.problems += problems
        return None if problems else array

    def _read_overlap(self, place: str, ends: Edge, overlap: Overlap) -> None:
        """Read an overlap; "other" meets what the other side lists and this one does not."""
        left, right = self.nodes[ends[0]], self.nodes[ends[1]]
        problems = _unknown(place, left, (a for a, _ in overlap.pairs))
        problems += _unknown(place, right, (b for _, b in overlap.pairs))
        self.problems += problems
        if problems:
            return
        found = [(left.positions[a], right.positions[b]) for a, b in overlap.pairs]
        array = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
        parts = [
            (array[:, 0], array[:, 1]),
            _every(left.of_kind("other"), answers_beside(right, array[:, 1])),
            _every(answers_beside(left, array[:, 0]), right.of_kind("other")),
        ]
        pairs = unique_pairs(with_kin(together(parts), left, right), right.size)
        self.overlaps[ends] = pairs
        self.overlaps[ends[::-1]] = unique_pairs(pairs[::-1], left.size)


def _unknown(place: str, node: Node, codes: Iterable[str]) -> list[str]:
    strange = sorted(set(codes) - node.positions.keys())
    told = f"{place}: {quoted(strange, 5)} is not among the codes of {node.name}."
    return [told] if strange else []


Reach = dict[str, dict[str, Ints]]


def circles(edges: Iterable[Edge]) -> list[str]:
    """Say which codings are reached again by going up from themselves: one circle."""
    above: dict[str, set[str]] = {}
    for finer, coarser in sorted(edges):
        above.setdefault(finer, set()).add(coarser)
    try:
        TopologicalSorter(above).prepare()
    except CycleError as error:
        names = quoted(sorted(set(error.args[1])))
        return [f"the maps form a cycle through {names}; no coding can be coarser than itself."]
    return []


def reach_of(nodes: Mapping[str, Node], maps: Maps) -> tuple[Reach, list[str]]:
    """Compose maps along all paths, the coarsest codings first; say what contradicts what."""
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
    if problems:
        return reach, problems
    for (left, right), pairs in sorted(maps.overlaps.items()):
        told = reach[left].get(right)
        if told is not None and not all(map(np.array_equal, pairs_of(told), pairs)):
            problems.append(
                f"overlap {left} ~ {right}: it contradicts the maps from {left} to {right};"
                " remove one of them."
            )
    return reach, problems
