"""What holding several codings of one construct together tells: their product, then the join.

Whoever holds "employed or retired" and "employed or a student" knows who is employed, though
neither coding tells it alone: both join to one category with a target that asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from keyhole.environment.codings.categories import SPECIAL, Node
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.intervals import birth_edges
from keyhole.environment.codings.partitions import all_matched, canonical, components
from keyhole.environment.codings.relations import (
    MOST,
    CodingRelation,
    Pairs,
    comparable,
    interval_pairs,
)
from keyhole.environment.model import Category, Coding, Intervals, Scale
from keyhole.kernels.arrays import Floats, Ints

# scipy.sparse has no types; a table of yes and no by category and cell.
Table = Any


@dataclass(frozen=True, slots=True, eq=False)
class CodingProduct:
    """The groups of a target's categories that a holder of several codings can tell apart.

    `exact` is false where more may be known: which answers go together in three codings does
    not follow from which go together in two.
    """

    groups: Ints
    exact: bool


def product_groups(
    graph: CodingGraph,
    node: Node,
    codings: Sequence[str],
    as_of: Day,
    told: Sequence[Ints] = (),
) -> CodingProduct | None:
    """Return what holding codings together tells of a target's categories, if it can be found.

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
    if plain and all(comparable(a, b, as_of) is None for a, b in combinations(every, 2)):
        return CodingProduct(_grouped(node, _cut(node, nodes, as_of), told), exact=True)
    shared = _below(graph, node, nodes, as_of)
    if shared is not None:
        relation = graph.overlap(node.name, shared.name, as_of=as_of)
        pairs = _through(graph, relation, shared, nodes, as_of)
        return CodingProduct(_grouped(node, pairs, told), all_matched(node, shared, relation))
    return _by_twos(graph, node, nodes, as_of, told)


def _by_twos(
    graph: CodingGraph, node: Node, nodes: Sequence[Node], as_of: Day, told: Sequence[Ints]
) -> CodingProduct | None:
    """Keep the combinations of answers of which any two can go together."""
    relations = [graph.overlap(node.name, other.name, as_of=as_of) for other in nodes]
    if any(relation.thin for relation in relations):
        return None
    both = list(zip(nodes, relations, strict=True))
    table = _multiplied(graph, [_Side(node, *pair) for pair in both], as_of)
    if table is None:
        return None
    found = table.tocoo()
    pairs = found.row.astype(np.int64), found.col.astype(np.int64)
    sure = all(relation.exact and all_matched(node, other, relation) for other, relation in both)

    def tied(other: Node) -> bool:
        up = graph.refines(node.name, other.name, as_of=as_of)
        return up or graph.refines(other.name, node.name, as_of=as_of)

    # What can go together in all codings follows from what can by twos where all codings but one
    # and the target's follow from these, or tell the target's.
    exact = sure and sum(not tied(other) for other in nodes) < 2
    return CodingProduct(_grouped(node, pairs, told), exact)


def _cut(node: Node, nodes: Sequence[Node], as_of: Day) -> Pairs:
    """Tie the target to the product of intervals, which is cut by all their edges."""
    scale: Scale = "number" if all(one.scale == "number" for one in nodes) else "date"
    edges = [
        one.edges if as_of is None or one.scale == scale else birth_edges(one.edges, as_of)
        for one in nodes
    ]
    lines = [line for line in edges if line is not None]
    cut = Intervals(scale, edges=tuple(np.unique(np.concatenate(lines)).tolist()))
    kinds = [kind for kind in SPECIAL if any(len(one.of_kind(kind)) for one in nodes)]
    special = tuple(Category(kind, kind=kind) for kind in kinds)
    together = Node(Coding("", node.construct, special, cut))
    return interval_pairs(node, together, as_of)


def _below(graph: CodingGraph, node: Node, nodes: Sequence[Node], as_of: Day) -> Node | None:
    """Return the coarsest coding that refines all, and whose overlap with the target's is exact."""
    finer = [{one.name, *graph.descendants(one.name, as_of=as_of)} for one in nodes]
    names = sorted(set.intersection(*finer), key=lambda name: (graph.node(name).size, name))
    for name in names:
        if not graph.node(name).open:
            relation = graph.overlap(node.name, name, as_of=as_of)
            if relation.resolved and relation.exact and not relation.thin:
                return graph.node(name)
    return None


def _through(
    graph: CodingGraph, relation: CodingRelation, shared: Node, nodes: Sequence[Node], as_of: Day
) -> Pairs:
    """Tie the target to what is alike in all codings among the categories of a finer one."""
    cells = np.zeros(shared.size, dtype=np.int64)
    for other in nodes:
        function = graph.mapping(shared.name, other.name, as_of=as_of)
        assert function is not None
        cells = canonical(cells * (other.size + 1) + function + 1)  # 0: falls outside
    return relation.left, cells[relation.right]


class _Side:
    """One of the codings beside the target's; what has no counterpart falls into one last cell."""

    def __init__(self, target: Node, node: Node, relation: CodingRelation) -> None:
        from scipy.sparse import coo_matrix

        self.node = node
        self.outside = node.size
        paired = np.zeros(target.size, dtype=np.bool_)
        paired[relation.left] = True
        lone = np.flatnonzero(~paired & target.substantive)
        rows = np.concatenate([relation.left, lone])
        columns = np.concatenate([relation.right, np.full(len(lone), self.outside)])
        ones = np.ones(len(rows), dtype=np.int32)
        self.table: Table = coo_matrix(
            (ones, (rows, columns)), shape=(target.size, node.size + 1)
        ).tocsc()
        self.counts = np.asarray(self.table.sum(axis=0)).ravel()


def _multiplied(graph: CodingGraph, sides: Sequence[_Side], as_of: Day) -> Table | None:
    """Return which categories of the target can go with which combination of answers."""
    table, cells = sides[0].table, [(sides[0], np.arange(sides[0].node.size + 1))]
    for side in sides[1:]:
        pairs = _possible(graph, table, cells, side, as_of)
        if pairs is None:
            return None
        one, other = pairs
        table = table[:, one].multiply(side.table[:, other]).tocsc()
        table.eliminate_zeros()
        kept = np.flatnonzero(np.diff(table.indptr))
        table = table[:, kept]
        cells = [(known, places[one][kept]) for known, places in cells]
        cells.append((side, other[kept]))
    return table


def _possible(
    graph: CodingGraph,
    table: Table,
    cells: Sequence[tuple[_Side, Ints]],
    side: _Side,
    as_of: Day,
) -> Pairs | None:
    """Pair the cells so far with the answers of a further coding that can go with them.

    None if they are too many to be listed.
    """
    held = np.diff(table.indptr).astype(np.float64)
    # The pairs that go over one category of the target.
    rows, others = (_row_sums(one) for one in (table, side.table))
    if float(rows @ others) > MOST:
        return None
    found = (table.T.astype(bool) @ side.table.astype(bool)).tocoo()
    one, other = found.row.astype(np.int64), found.col.astype(np.int64)
    for known, places in cells:
        relation = graph.overlap(known.node.name, side.node.name, as_of=as_of)
        if not relation.resolved or relation.thin:
            continue
        allowed = relation.left * (side.outside + 1) + relation.right
        keep = np.isin(places[one] * (side.outside + 1) + other, allowed)
        keep |= (places[one] == known.outside) | (other == side.outside)
        one, other = one[keep], other[keep]
    return None if (held[one] + side.counts[other]).sum() > MOST else (one, other)


def _row_sums(table: Table) -> Floats:
    return np.asarray(table.astype(np.float64).sum(axis=1)).ravel()


def _grouped(node: Node, pairs: Pairs, told: Sequence[Ints]) -> Ints:
    """Join categories of the target that go with the same combination of answers.

    Answers that go with none are alike: nobody can tell them apart but by what else is told.
    """
    lone = node.substantive.copy()
    lone[pairs[0]] = False
    outside = np.flatnonzero(lone)
    rows = np.concatenate([pairs[0], outside])
    cells = canonical(np.concatenate([pairs[1] + 1, np.zeros(len(outside), dtype=np.int64)]))
    for partition in told:
        cells = canonical(cells * (len(partition) + 1) + partition[rows])
    groups, _ = components(rows, cells, node.size, int(cells.max(initial=-1)) + 1)
    return canonical(groups)
