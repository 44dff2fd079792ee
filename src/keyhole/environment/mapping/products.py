"""What holding several codings of one construct together tells: their product, then the join.

Whoever holds "employed or retired" and "employed or a student" knows who is employed, though
neither coding tells it alone: both join to one category with a target that asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from keyhole.environment.codings.categories import SPECIAL, Node
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.intervals import birth_edges
from keyhole.environment.codings.partitions import all_matched, canonical, components
from keyhole.environment.codings.relations import (
    MOST,
    CodingRelation,
    Day,
    Pairs,
    comparable,
    interval_pairs,
    pair_table,
)
from keyhole.environment.model import Category, Coding, Intervals, Scale
from keyhole.kernels.arrays import Ints

Product = tuple[Ints, bool]


def product_groups(
    graph: CodingGraph, node: Node, codings: Sequence[str], as_of: Day, told: Sequence[Ints] = ()
) -> Product | None:
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
    if plain and all(comparable(a, b, as_of) is None for a, b in combinations(every, 2)):
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
            return groups, all_matched(node, shared, relation)
    return _by_twos(graph, node, nodes, as_of, told)


def _cut(node: Node, nodes: Sequence[Node], as_of: Day) -> Pairs:
    """Tie the target to the product of intervals, which is cut by all their edges."""
    scale: Scale = "number" if all(one.scale == "number" for one in nodes) else "date"
    edges = [
        one.line if as_of is None or one.scale == scale else birth_edges(one.line, as_of)
        for one in nodes
    ]
    lines = [line for line in edges if line is not None]
    cut = Intervals(scale, edges=tuple(np.unique(np.concatenate(lines)).tolist()))
    kinds = [kind for kind in SPECIAL if any(len(one.of_kind(kind)) for one in nodes)]
    special = tuple(Category(kind, kind=kind) for kind in kinds)
    return interval_pairs(node, Node(Coding("", node.construct, special, cut)), as_of)


def _by_twos(
    graph: CodingGraph, node: Node, nodes: Sequence[Node], as_of: Day, told: Sequence[Ints]
) -> Product | None:
    """Keep the combinations of answers of which any two can go together; None if too many."""
    relations = [graph.overlap(node.name, other.name, as_of=as_of) for other in nodes]
    tables = [_table(node, *pair) for pair in zip(nodes, relations, strict=True)]
    table, cells = tables[0], [np.arange(nodes[0].size + 1)]
    for place, (side, further) in enumerate(zip(nodes[1:], tables[1:], strict=True), 1):
        # The pairs that go over one category of the target.
        rows = [np.diff(one.tocsr().indptr).astype(float) for one in (table, further)]
        if float(rows[0] @ rows[1]) > MOST:
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
        if (sizes[0][one] + sizes[1][other]).sum() > MOST:
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
    sure = all(
        relation.exact and all_matched(node, other, relation)
        for other, relation in zip(nodes, relations, strict=True)
    )
    exact = sure and sum(not tied(other) for other in nodes) < 2
    return _grouped(node, pairs, told), exact


def _table(target: Node, node: Node, relation: CodingRelation) -> Any:
    """Return which answers go with which of the target; those without fall into one last cell."""
    lone = target.substantive.copy()
    lone[relation.left] = False
    outside = np.flatnonzero(lone)
    rows = np.concatenate([relation.left, outside])
    columns = np.concatenate([relation.right, np.full(len(outside), node.size)])
    return pair_table((rows, columns), target.size, node.size + 1).tocsc()


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
