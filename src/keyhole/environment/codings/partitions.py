"""Partitions of a list of categories: join, meet, product, entropy; and groups in words.

A partition is an array with the number of each category's group, in *canonical* form when
groups are numbered as they first occur: then equal partitions are equal arrays.

Whoever holds several codings of a construct knows their product. With "employed or retired" and
"employed or a student" they know who is employed, though neither coding tells it alone: both join
to one category with a target that asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import KINDS, SPECIAL, Node, birth_edges, label_edges
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
from keyhole.kernels.arrays import Floats, Ints

if TYPE_CHECKING:
    from keyhole.environment.codings.graph import CodingGraph

# Below this many categories a plain loop is quicker than arrays.
FEW = 400


def canonical(labels: npt.ArrayLike) -> Ints:
    """Number the groups as they first occur."""
    values = np.asarray(labels, dtype=np.int64)
    if len(values) < FEW:
        seen: dict[int, int] = {}
        numbers = [seen.setdefault(value, len(seen)) for value in values.tolist()]
        return np.array(numbers, dtype=np.int64)
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def group_count(partition: Ints) -> int:
    """Count the groups of a canonical partition."""
    return int(partition.max(initial=-1)) + 1


def is_discrete(partition: Ints) -> bool:
    """Tell whether a canonical partition keeps all categories apart."""
    return group_count(partition) == len(partition)


def representatives(partition: Ints) -> Ints:
    """Return the first category of each category's group, in a canonical partition."""
    first = np.empty(group_count(partition), dtype=np.int64)
    first[partition[::-1]] = np.arange(len(partition) - 1, -1, -1)  # the last to write stays
    return first[partition]


def refines(finer: Ints, coarser: Ints) -> bool:
    """Tell whether every group of the finer (canonical) partition lies in one of the coarser."""
    return bool((coarser[representatives(finer)] == coarser).all())


def meet(one: Ints, other: Ints) -> Ints:
    """Return the coarsest common refinement."""
    return canonical(one * (group_count(canonical(other)) + 1) + canonical(other))


def join_partitions(one: Ints, other: Ints) -> Ints:
    """Return the finest common coarsening, from canonical partitions."""
    # Components are numbered from the left, whose groups are numbered as they occur.
    groups, _ = components(one, other, group_count(one), group_count(other))
    return groups[one]


def components(left: Ints, right: Ints, lefts: int, rights: int) -> tuple[Ints, Ints]:
    """Return the connected components of a two-sided graph, numbered from the left.

    `left` and `right` are the two ends of each edge.
    """
    ends, root = right + lefts, np.arange(lefts + rights)
    while True:  # link roots to the lower one, then let everybody look one step further
        low, further = np.minimum(root[left], root[ends]), root.copy()
        np.minimum.at(further, root[left], low)
        np.minimum.at(further, root[ends], low)
        further = further[further]
        if np.array_equal(further, root):
            break
        root = further
    numbered = canonical(root)
    return numbered[:lefts], numbered[lefts:]


def partition_entropy(partition: Ints, weights: npt.NDArray[np.float64] | None = None) -> float:
    """Return the entropy in bits of the group of a category drawn by its weight."""
    shares = np.bincount(partition, weights=weights).astype(np.float64)
    shares = shares[shares > 0] / shares.sum() if shares.sum() > 0 else shares[:0]
    # Sorted, so that the sum does not depend on the order of the categories.
    return float(abs(np.sort(shares * np.log2(shares)).sum()))


# A label lists this many categories, an explanation this many groups; the rest is counted.
LISTED = 4
SHOWN = 5


def above(graph: CodingGraph, node: Node, name: str, as_of: Day) -> bytes:
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


def overlap_groups(
    left: Node, right: Node, pairs: tuple[Ints, Ints], *, apart: bool = False
) -> tuple[Ints, Ints]:
    """Return the groups of two overlapping codings: the connected components of their pairs.

    Answers of either side that have no counterpart on the other are one group: who records the
    other coding cannot tell them apart, and where both have such answers they may be each
    other's. With `apart`, where both have such answers those of the left are kept apart: as far
    as anybody knows the other coding may tell each of them.
    """
    both = np.concatenate(components(*pairs, left.size, right.size))
    lone = np.concatenate([left.substantive, right.substantive])
    lone[pairs[0]] = False
    lone[left.size + pairs[1]] = False
    if apart and lone[: left.size].any() and lone[left.size :].any():
        lone[: left.size] = False
    if lone.any():
        both[lone] = both[lone].min()
        both = canonical(both)
    return both[: left.size], both[left.size :]


def all_matched(left: Node, right: Node, relation: CodingRelation) -> bool:
    """Tell whether one side at least has a counterpart for every answer.

    Where neither has, what was left over on both sides may belong together: nobody said.
    """
    if relation.basis == "intervals":
        return True
    sides = ((left, relation.left), (right, relation.right))
    return not all(len(_alone(node, paired)) for node, paired in sides)


def _alone(node: Node, paired: Ints) -> Ints:
    """Return the answers that have no counterpart."""
    return np.setdiff1d(np.flatnonzero(node.substantive), paired)


def informative_groups(node: Node, groups: Ints) -> int:
    """Count the groups that answer the question; one alone tells nothing."""
    return len(np.unique(groups[node.substantive]))


def group_edges(node: Node, groups: Ints) -> tuple[Floats, Floats, Ints]:
    """Return the low and high edge of each group that is a run of intervals.

    The edges of other groups are nan; the third array counts the members of each group.
    """
    count = group_count(groups)
    sizes = np.bincount(groups, minlength=count)
    low, high = np.full((2, count), np.nan)
    if node.intervals:
        first, last = np.full(count, node.size), np.full(count, -1)
        np.minimum.at(first, groups, np.arange(node.size))
        np.maximum.at(last, groups, np.arange(node.size))
        run = (last - first + 1 == sizes) & (last < node.intervals)
        low[run], high[run] = node.edges[first[run]], node.edges[last[run] + 1]
    return low, high, sizes


def group_labels(node: Node, groups: Ints) -> tuple[str, ...]:
    """Name each group of a canonical partition by what it holds."""
    if is_discrete(groups):
        return node.labels
    low, high, sizes = group_edges(node, groups)
    run = ~np.isnan(low)
    out = np.empty(len(sizes), dtype=object)
    out[run] = label_edges(low[run], high[run], node.scale or "number")
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
    for k in np.flatnonzero(~run).tolist():
        names = [node.labels[i] for i in members[k][:LISTED]]
        if sizes[k] > LISTED:
            names[-1] = f"{sizes[k] - LISTED + 1:,} others"
        out[k] = " or ".join(names)
    return tuple(out.tolist())


def merges(node: Node, groups: Ints, labels: Sequence[str]) -> list[str]:
    """Say which categories were merged, and what became of "not stated" and the like."""
    merged = np.flatnonzero(np.bincount(groups, minlength=len(labels)) > 1)
    out = []
    for k in merged[:SHOWN].tolist():
        members = np.flatnonzero(groups == k)
        names = [repr(node.labels[i]) for i in members[:LISTED].tolist()]
        told = " and ".join(names)
        if len(members) > LISTED:
            last = shown(node.labels[int(members[-1])])
            told = f"{len(members):,} categories, {names[0]} to {last},"
        out.append(f"{told} become {shown(labels[k])}")
    if len(merged) > SHOWN:
        out.append(f"and {len(merged) - SHOWN:,} more groups of merged categories")
    special = np.concatenate([node.of_kind(kind) for kind in SPECIAL])[:SHOWN]
    for i in special.tolist():
        mixed = node.substantive[groups == groups[i]].any()
        fate = (
            "is merged with answers, as the maps say" if mixed else "is kept apart from all answers"
        )
        out.append(f"{shown(node.labels[i])} ({KINDS[node.kinds[i]]}) {fate}")
    return out


def relation_words(left: Node, right: Node, relation: CodingRelation, sides: int = 2) -> list[str]:
    """Say how the overlap of two codings is known, and which answers have no counterpart."""
    names = f"{left.name} and {right.name}"
    basis = {
        "same": f"{left.name} on both sides",
        "map": f"{names} are tied by maps",
        "intervals": f"{names} are compared by the edges of their intervals",
        "stored": f"the overlap of {names} is stored",
        "wording": f"{names} are matched by the words of their answers, which is not confirmed",
        "composed": f"{names} are compared through {', '.join(relation.via)}",
    }
    out = [basis.get(relation.basis, relation.reason)]
    ends = ((left, right, relation.left), (right, left, relation.right))
    for node, other, paired in ends[:sides]:
        alone = [node.labels[i] for i in _alone(node, paired).tolist()]
        if alone:
            out.append(f"{quoted(alone, 3)} of {node.name} has no counterpart in {other.name}")
    return out


def inexact(exact: bool) -> list[str]:
    """Say that an answer may not be the finest, unless it is."""
    if exact:
        return []
    return ["perhaps not the finest: how some categories overlap is known only in part"]


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
    outside = _alone(target, relation.left)
    rows = np.concatenate([relation.left, outside])
    columns = np.concatenate([relation.right, np.full(len(outside), node.size)])
    return pair_table((rows, columns), target.size, node.size + 1).tocsc()


def _grouped(node: Node, pairs: Pairs, told: Sequence[Ints]) -> Ints:
    """Join categories of the target that go with the same combination of answers.

    Answers that go with none are alike: nobody can tell them apart but by what else is told.
    """
    outside = _alone(node, pairs[0])
    rows = np.concatenate([pairs[0], outside])
    cells = canonical(np.concatenate([pairs[1] + 1, np.zeros(len(outside), dtype=np.int64)]))
    for partition in told:
        cells = canonical(cells * (len(partition) + 1) + partition[rows])
    groups, _ = components(rows, cells, node.size, int(cells.max(initial=-1)) + 1)
    return canonical(groups)
