"""Joins of two codings, what codings that cross still rule out, products, new harmonised codings.

The join is the finest coding that both can be recoded to. Decades against decades shifted by five
years have no common coarsening but the whole, yet most pairs of a decade and a shifted decade
cannot be the same person: that is what a compatibility key tells.

Whoever holds several codings of a construct knows their product. With "employed or retired" and
"employed or a student" they know who is employed, though neither coding tells it alone: both join
to one category with a target that asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from keyhole.core.marks import figure
from keyhole.core.names import quoted
from keyhole.core.tables import Table
from keyhole.environment import model
from keyhole.environment.codings import categories, partitions, relations
from keyhole.environment.codings.categories import KINDS, SPECIAL, Node, Weights
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.partitions import canonical
from keyhole.environment.codings.relations import NOTHING, Day, Pairs
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, share

SHOWN = 30
Side = tuple[Node, Ints]
Sides = tuple[Side, Side]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Join(Result):
    """The finest common coarsening of two codings.

    The group of each category is in `groups_left` and `groups_right`. `coding` is the stored coding
    with these groups, or the name under which it would be minted. `antichain` are the finest stored
    codings above both: more than one, or a coarser one, means that the join was missing. `entropy`
    and `lost` are in bits of the left coding. A join that is not `resolved` says why.
    """

    left: str
    right: str
    resolved: bool
    reason: str = ""
    coding: str = ""
    stored: bool = False
    exact: bool = True
    groups_left: Ints = field(default_factory=lambda: NOTHING)
    groups_right: Ints = field(default_factory=lambda: NOTHING)
    labels: tuple[str, ...] = ()
    informative: bool = False
    entropy: float = 0.0
    lost: float = 0.0
    antichain: tuple[str, ...] = ()
    explanation: tuple[str, ...] = ()

    @property
    @figure()
    def size(self) -> int:
        """How many groups there are."""
        return len(self.labels)

    @property
    @figure()
    def categories_lost(self) -> int:
        """How many categories of the left coding are no longer told apart."""
        return len(self.groups_left) - len(np.unique(self.groups_left))

    def to_frame(self) -> pl.DataFrame:
        """Return one row a category of either side, with its group."""
        sides = ["left"] * len(self.groups_left) + ["right"] * len(self.groups_right)
        groups = np.concatenate([self.groups_left, self.groups_right]).tolist()
        rows = [(side, k, self.labels[k]) for side, k in zip(sides, groups, strict=True)]
        return pl.DataFrame(rows, schema={"side": str, "group": int, "label": str}, orient="row")

    def tables(self) -> list[Table]:
        """Return the groups, with how many categories of each side they hold."""
        title = f"Join of {self.left} and {self.right}"
        if not self.resolved:
            return [Table(title, [], [], [f"unresolved: {self.reason}"])]
        sides = (self.groups_left, self.groups_right)
        counts = [np.bincount(groups, minlength=self.size).tolist() for groups in sides]
        rows = [[x, f"{a:,}", f"{b:,}"] for x, a, b in zip(self.labels, *counts, strict=True)]
        note = f"{self.coding}: {self.entropy:.2f} bits, {self.lost:.2f} lost"
        columns = ["group", f"of {self.left}", f"of {self.right}"]
        return [Table(title, columns, rows, [note, *self.explanation])]


def join_codings(
    graph: CodingGraph, left: str, right: str, *, as_of: Day = None, weights: Weights | None = None
) -> Join:
    """Return the finest common coarsening of two codings.

    Its groups are the connected components of the graph that ties a category of the one to
    a category of the other where both can describe one person.
    """
    one, other = graph.node(left), graph.node(right)
    values = categories.category_weights(one, weights)
    if other.tells(one) or one.tells(other):
        node, number = (one, other) if other.tells(one) else (other, one)
        every = np.arange(node.size)
        told = f"{number.name} is an exact number: it determines {node.name}"
        return Join(
            *(one.name, other.name, True, "", node.name, True, True),
            *((every, NOTHING) if node is one else (NOTHING, every)),
            labels=node.labels,
            informative=partitions.informative_groups(node, every) > 1,
            entropy=partitions.partition_entropy(every, values) if node is one else 0.0,
            antichain=(node.name,),
            explanation=(told,),
        )
    if other.open and one.name != other.name:
        return _join_text(graph, one, other, as_of, weights)
    relation = graph.overlap(left, right, as_of=as_of)
    if not relation.resolved:
        return Join(one.name, other.name, False, relation.reason, exact=False)
    groups, beside = relation.groups()
    sides = (one, groups), (other, beside)
    name, stored = _name(graph, sides, as_of)
    labels = group_names(graph, sides, name if stored else None, as_of)
    antichain = graph.minimal_common_ancestors(left, right, as_of=as_of)
    kept = partitions.partition_entropy(groups, values)
    whole = partitions.partition_entropy(np.arange(one.size), values)
    how, *without = relation.words()
    words = [how]
    for node, _ in sides if stored else ():
        if name != node.name and graph.refines(node.name, name, as_of=as_of):
            words.append(f"path: {climb(graph, node.name, name, as_of)}")
    for node, own in sides:
        words += [f"{text} (of {node.name})" for text in partitions.merges(node, own, labels)]
    words += without
    if not relation.matched:
        words.append("unmatched answers on both sides may mean the same: they form one group")
    if not stored and antichain:
        words.append(f"the graph holds {', '.join(antichain)} above both, but not their join")
    return Join(
        *(one.name, other.name, True, "", name, stored, relation.exact and relation.matched),
        *(groups, beside, labels, partitions.informative_groups(one, groups) > 1),
        *(kept, max(whole - kept, 0.0), antichain),
        (*words, *partitions.inexact(relation.exact)),
    )


def climb(graph: CodingGraph, start: str, end: str, as_of: Day) -> str:
    """Write the path up the graph; one that goes over no stored edge is told as a recoding."""
    return " → ".join(graph.path(start, end, as_of=as_of) or (start, end))


def _join_text(
    graph: CodingGraph, one: Node, text: Node, as_of: Day, weights: Weights | None
) -> Join:
    """Join with free text through the codings it can be coded into."""
    names = graph.stand_ins(text.name, as_of=as_of) if one.construct == text.construct else ()
    joins = (graph.join(one.name, name, as_of=as_of, weights=weights) for name in names)
    if not (resolved := [join for join in joins if join.resolved]):
        reason = graph.overlap(one.name, text.name, as_of=as_of).reason
        return Join(one.name, text.name, False, reason, exact=False)
    best = max(resolved, key=lambda join: (join.entropy, join.exact))
    told = f"{text.name} is free text, taken as coded into {best.right}"
    return replace(
        best,
        right=text.name,
        groups_right=NOTHING,
        exact=best.exact and graph.refines(best.right, one.name, as_of=as_of),
        antichain=graph.minimal_common_ancestors(one.name, text.name, as_of=as_of),
        explanation=(told, *best.explanation),
    )


def _name(graph: CodingGraph, sides: Sides, as_of: Day) -> tuple[str, bool]:
    """Return the name of the stored coding with these groups, or the next free one."""
    (one, groups), (other, beside) = sides
    if partitions.is_discrete(groups):
        return one.name, True
    size = partitions.group_count(np.concatenate([groups, beside]))
    if len(beside) and len(np.unique(beside)) == size == len(beside):
        return other.name, True
    # The codings that both refine, the one with the fewest categories first.
    above = {other.name, *graph.ancestors(other.name, as_of=as_of)}
    names = above.intersection(graph.ancestors(one.name, as_of=as_of))
    for name in sorted(names, key=lambda name: (graph.node(name).size, name)):
        if all(
            canonical(own).tobytes() == partition_above(graph, node, name, as_of)
            for node, own in sides
        ):
            return name, True
    return categories.next_name(one.construct, size, harmonised=True, taken=graph.names), False


def group_names(
    graph: CodingGraph, sides: Sequence[Side], stored: str | None, as_of: Day
) -> tuple[str, ...]:
    """Name the groups as the stored coding does, else by what they hold."""
    labels = [""] * partitions.group_count(np.concatenate([groups for _, groups in sides]))
    for node, groups in reversed(sides):
        numbered = canonical(groups)
        names = partitions.group_labels(node, numbered)
        for k, c in zip(groups.tolist(), numbered.tolist(), strict=True):
            labels[k] = names[c]
    for node, groups in sides if stored is not None else ():
        function = graph.mapping(node.name, str(stored), as_of=as_of)
        if function is not None:
            told = graph.node(str(stored)).labels
            inside = np.flatnonzero(function >= 0)
            for k, c in zip(groups[inside].tolist(), function[inside].tolist(), strict=True):
                labels[k] = told[c]
    return tuple(labels)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Compatibility(Result):
    """Which categories of two codings can be the same person, and how many pairs cannot.

    `ruled_out` is the share of pairs of answers that are impossible. "Not stated" and "not
    applicable" rule out nothing and are left out.
    """

    left: str
    right: str
    resolved: bool
    reason: str
    exact: bool
    ruled_out: float | None
    pairs: tuple[tuple[str, str], ...]
    explanation: tuple[str, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair of categories that can be the same person."""
        return pl.DataFrame(self.pairs, schema={"left": str, "right": str}, orient="row")

    def tables(self) -> list[Table]:
        """Return the possible counterparts of each category."""
        title = f"Compatibility of {self.left} and {self.right}"
        if not self.resolved:
            return [Table(title, [], [], [f"unresolved: {self.reason}"])]
        met: dict[str, list[str]] = {}
        for left, right in self.pairs:
            met.setdefault(left, []).append(right)
        rows = [[label, quoted(found, 6)] for label, found in list(met.items())[:SHOWN]]
        more = len(met) - len(rows)
        notes = [f"and {more:,} more categories of {self.left}"] if more else []
        notes.append(f"share of pairs ruled out: {share(self.ruled_out)}")
        columns = [self.left, f"can be in {self.right}"]
        return [Table(title, columns, rows, [*notes, *self.explanation])]


def compatibility(
    environment: model.Environment | CodingGraph, left: str, right: str, *, as_of: Day = None
) -> Compatibility:
    """Tell which categories of two codings of one construct can be the same person.

    On the day `as_of` dates of birth are compared with ages.
    """
    graph = CodingGraph.of(environment)
    one, other = graph.node(left), graph.node(right)
    relation = graph.overlap(left, right, as_of=as_of)
    words = relation.words()
    if relation.resolved and not relation.exact:
        words.append("more pairs may be impossible: the overlap is known through other codings")
    pairs = zip(relation.left.tolist(), relation.right.tolist(), strict=True)
    return Compatibility(
        *(one.name, other.name, relation.resolved, relation.reason, relation.exact),
        relation.ruled_out,
        tuple((one.labels[i], other.labels[j]) for i, j in pairs),
        tuple(words) if relation.resolved else (),
    )


class Minted(NamedTuple):
    """A coding to be added to an environment, with its maps."""

    coding: model.Coding
    maps: tuple[model.CategoryMap, ...]


def mint(graph: CodingGraph, join: Join, *, label: str = "") -> Minted:
    """Make the harmonised coding of a join that is not stored yet.

    Nothing is added to the environment: that is for whoever confirms it.
    """
    if not join.resolved:
        raise InputError(f"an unresolved join cannot be minted: {join.reason}.")
    if join.stored:
        raise InputError(f"the join already exists: {join.coding}.")
    if not join.informative:
        raise InputError(
            f"{join.left} and {join.right} join to one category: no answers are distinguished in "
            f"both, so there is nothing to mint."
        )
    both = (graph.node(join.left), join.groups_left), (graph.node(join.right), join.groups_right)
    sides, labels = [side for side in both if side[0].size], join.labels
    first = sides[0][0]
    name = categories.next_name(first.construct, len(labels), harmonised=True, taken=graph.names)

    kinds: list[set[int]] = [set() for _ in labels]  # of the members of each group
    for node, groups in sides:
        for k, kind in zip(groups.tolist(), node.kinds.tolist(), strict=True):
            kinds[k].add(kind)
    listed = tuple(
        model.Category(str(k), text, KINDS[min(of)] if len(of) == 1 else "value")
        for k, (text, of) in enumerate(zip(labels, kinds, strict=True), 1)
    )
    runs = _runs(sides, len(labels))
    if runs is None or first.coding.intervals is None:
        maps = []
        for node, groups in sides:
            pairs = zip(node.codes, (listed[k].code for k in groups.tolist()), strict=True)
            maps.append(model.CategoryMap(node.name, name, dict(pairs)))
        return Minted(model.Coding(name, first.construct, listed, label=label), tuple(maps))
    edges, rest = runs
    cut = model.Intervals(first.coding.intervals.scale, edges=tuple(edges.tolist()))
    coding = model.Coding(name, first.construct, tuple(listed[k] for k in rest), cut, label)
    # Intervals need no pairs: the edges tell, and dates against ages on the right day.
    return Minted(coding, tuple(model.CategoryMap(node.name, name, None) for node, _ in sides))


def _runs(sides: Sequence[Side], count: int) -> tuple[Floats, list[int]] | None:
    """Return the edges of the groups if all are runs of intervals, but for listed ones."""
    if any(node.scale is None for node, _ in sides):
        return None
    low, high = np.full((2, count), np.nan)
    for node, groups in sides:
        if node.scale == sides[0][0].scale:
            at, numbered = np.unique(groups, return_inverse=True)
            one, other, _ = partitions.group_edges(node, numbered)
            low[at], high[at] = np.fmin(low[at], one), np.fmax(high[at], other)
    runs, rest = np.flatnonzero(~np.isnan(low)), np.flatnonzero(np.isnan(low)).tolist()
    order = runs[np.argsort(low[runs])]
    whole = bool((high[order[:-1]] == low[order[1:]]).all()) and len(order) > 0
    unmixed = all(  # no group has intervals and listed categories
        not np.isin(groups[: node.intervals], rest).any()
        and bool(np.isin(groups[node.intervals :], rest).all())
        for node, groups in sides
    )
    return (np.append(low[order], high[order[-1]]), rest) if whole and unmixed else None


def partition_above(graph: CodingGraph, node: Node, name: str, as_of: Day) -> bytes:
    """Return the partition of a coding's categories that a coarser coding has.

    Answers that fall outside are one group: whoever records the coarser coding cannot tell them
    apart. "Not stated" and "not applicable" are no answers, and stay alone.
    """
    function = graph.mapping(node.name, name, as_of=as_of)
    assert function is not None
    out = function.copy()
    alone = np.flatnonzero((out < 0) & ~node.substantive)
    out[alone] = out.max(initial=0) + 1 + np.arange(len(alone))
    out[out < 0] = out.max(initial=0) + 1
    return canonical(out).tobytes()


def product_groups(
    graph: CodingGraph, node: Node, codings: Sequence[str], as_of: Day, told: Sequence[Ints] = ()
) -> tuple[Ints, bool] | None:
    """Return the groups of a target's categories that a holder of several codings can tell apart.

    With them, whether that is exact: which answers go together in three codings does not follow
    from which go together in two. None where there are too many combinations.

    The overlap of the `codings` with the target's is known, and none is free text. `told` are
    partitions of the target's categories that are known besides.
    """
    nodes: list[Node] = []
    # A coding that another of them refines tells nothing more.
    for one in sorted(map(graph.node, codings), key=lambda one: (-one.size, one.name)):
        if not any(graph.refines(kept.name, one.name, as_of=as_of) for kept in nodes):
            nodes.append(one)
    every = [node, *nodes]
    plain = all(n.scale is not None and not n.substantive[n.intervals :].any() for n in every)
    if plain and all(relations.comparable(a, b, as_of) is None for a, b in combinations(every, 2)):
        return _grouped(node, _cut(node, nodes, as_of), told), True
    # The coarsest coding that refines all, and whose overlap with the target's is exact.
    finer = [{one.name, *graph.descendants(one.name, as_of=as_of)} for one in nodes]
    names = sorted(set.intersection(*finer), key=lambda name: (graph.node(name).size, name))
    for shared in (graph.node(name) for name in names if not graph.node(name).open):
        relation = graph.overlap(node.name, shared.name, as_of=as_of)
        if relation.resolved and relation.exact:
            cells = np.zeros(shared.size, dtype=np.int64)
            for other in nodes:
                function = graph.mapping(shared.name, other.name, as_of=as_of)
                assert function is not None
                cells = canonical(cells * (other.size + 1) + function + 1)  # 0: falls outside
            groups = _grouped(node, (relation.left, cells[relation.right]), told)
            return groups, relation.matched
    return _by_twos(graph, node, nodes, as_of, told)


def _cut(node: Node, nodes: Sequence[Node], as_of: Day) -> Pairs:
    """Tie the target to the product of intervals, which is cut by all their edges."""
    scale: model.Scale = "number" if all(one.scale == "number" for one in nodes) else "date"
    edges = [
        one.line if as_of is None or one.scale == scale else categories.birth_edges(one.line, as_of)
        for one in nodes
    ]
    lines = [line for line in edges if line is not None]
    cut = model.Intervals(scale, edges=tuple(np.unique(np.concatenate(lines)).tolist()))
    kinds = [kind for kind in SPECIAL if any(len(one.of_kind(kind)) for one in nodes)]
    special = tuple(model.Category(kind, kind=kind) for kind in kinds)
    return relations.interval_pairs(
        node, Node(model.Coding("", node.construct, special, cut)), as_of
    )


def _by_twos(
    graph: CodingGraph, node: Node, nodes: Sequence[Node], as_of: Day, told: Sequence[Ints]
) -> tuple[Ints, bool] | None:
    """Keep the combinations of answers of which any two can go together; None if too many."""
    overlaps = [graph.overlap(node.name, other.name, as_of=as_of) for other in nodes]
    tables = [relation.table(beside=True).tocsc() for relation in overlaps]
    table, cells = tables[0], [np.arange(nodes[0].size + 1)]
    for place, (side, further) in enumerate(zip(nodes[1:], tables[1:], strict=True), 1):
        # The pairs that go over one category of the target.
        rows = [np.diff(one.tocsr().indptr).astype(float) for one in (table, further)]
        if float(rows[0] @ rows[1]) > relations.MOST:
            return None
        found = (table.T @ further).tocoo()
        one, other = found.row.astype(np.int64), found.col.astype(np.int64)
        for known, places in zip(nodes[:place], cells, strict=True):
            relation = graph.overlap(known.name, side.name, as_of=as_of)
            if relation.resolved:
                allowed = relation.left * (side.size + 1) + relation.right
                keep = np.isin(places[one] * (side.size + 1) + other, allowed)
                keep |= (places[one] == known.size) | (other == side.size)  # without counterpart
                one, other = one[keep], other[keep]
        sizes = [np.diff(part.indptr).astype(float) for part in (table, further)]
        if (sizes[0][one] + sizes[1][other]).sum() > relations.MOST:
            return None
        table = table[:, one].multiply(further[:, other]).tocsc()
        table.eliminate_zeros()
        kept = np.flatnonzero(np.diff(table.indptr))
        table = table[:, kept]
        cells = [*(places[one][kept] for places in cells), other[kept]]
    both = table.tocoo()
    pairs = both.row.astype(np.int64), both.col.astype(np.int64)

    def tied(other: Node) -> bool:
        up = graph.refines(node.name, other.name, as_of=as_of)
        return up or graph.refines(other.name, node.name, as_of=as_of)

    # What can go together in all codings follows from what can by twos where all codings but one
    # and the target's follow from these, or tell the target's.
    sure = all(relation.exact and relation.matched for relation in overlaps)
    exact = sure and sum(not tied(other) for other in nodes) < 2
    return _grouped(node, pairs, told), exact


def _grouped(node: Node, pairs: Pairs, told: Sequence[Ints]) -> Ints:
    """Join categories of the target that go with the same combination of answers.

    Answers that go with none are alike: nobody can tell them apart but by what else is told.
    """
    outside = relations.answers_beside(node, pairs[0])
    rows = np.concatenate([pairs[0], outside])
    cells = canonical(np.concatenate([pairs[1] + 1, np.zeros(len(outside), dtype=np.int64)]))
    for partition in told:
        cells = canonical(cells * (len(partition) + 1) + partition[rows])
    groups, _ = partitions.components(rows, cells, node.size, int(cells.max(initial=-1)) + 1)
    return canonical(groups)
