"""The join of two codings: the finest coding that both can be recoded to."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from keyhole.core.marks import figure
from keyhole.core.tables import Table
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.explanations import join_explanation
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import (
    all_matched,
    as_partition,
    group_labels,
    informative_groups,
    overlap_groups,
)
from keyhole.environment.codings.naming import next_name
from keyhole.environment.codings.partitions import (
    canonical,
    group_count,
    is_discrete,
    partition_entropy,
)
from keyhole.environment.codings.relations import CodingRelation
from keyhole.environment.codings.weighing import Weights, category_weights
from keyhole.kernels.arrays import Ints
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Join(Result):
    """The finest common coarsening of two codings.

    `groups_left` and `groups_right` give the group of each category; groups with members on
    one side only are there too. `coding` is the stored coding with these groups, or the
    name under which it would be minted. `antichain` are the finest stored codings above
    both: more than one, or one that is coarser, means that the join was missing. `entropy`
    and `lost` are in bits of the left coding. A join that is not `resolved` says why.
    """

    left: str
    right: str
    resolved: bool
    reason: str = ""
    coding: str = ""
    stored: bool = False
    exact: bool = True
    groups_left: Ints = field(default_factory=lambda: NONE)
    groups_right: Ints = field(default_factory=lambda: NONE)
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
        import polars as pl

        sides = ["left"] * len(self.groups_left) + ["right"] * len(self.groups_right)
        groups = np.concatenate([self.groups_left, self.groups_right])
        labels = [self.labels[k] for k in groups.tolist()]
        return pl.DataFrame(
            {"side": sides, "group": groups, "label": labels},
            schema={"side": pl.String, "group": pl.Int64, "label": pl.String},
        )

    def tables(self) -> list[Table]:
        """Return the groups, with how many categories of each side they hold."""
        title = f"Join of {self.left} and {self.right}"
        if not self.resolved:
            return [Table(title, [], [], [f"unresolved: {self.reason}"])]
        left = np.bincount(self.groups_left, minlength=self.size)
        right = np.bincount(self.groups_right, minlength=self.size)
        rows = [
            [label, f"{a:,}", f"{b:,}"]
            for label, a, b in zip(self.labels, left.tolist(), right.tolist(), strict=True)
        ]
        note = f"{self.coding}: {self.entropy:.2f} bits, {self.lost:.2f} lost"
        columns = ["group", f"of {self.left}", f"of {self.right}"]
        return [Table(title, columns, rows, [note, *self.explanation])]


def join_codings(
    graph: CodingGraph,
    left: str,
    right: str,
    *,
    as_of: datetime.date | None = None,
    weights: Weights | None = None,
) -> Join:
    """Return the finest common coarsening of two codings.

    Notes
    -----
    Its groups are the connected components of the graph that ties a category of the one to
    a category of the other where both can describe one person. The finest common
    coarsening is unique in the lattice of partitions.
    """
    one, other = graph.node(left), graph.node(right)
    values = category_weights(one, weights)
    if other.open and one.name != other.name:
        return _join_text(graph, one, other, as_of, weights)
    relation = graph.overlap(left, right, as_of=as_of)
    if not relation.resolved:
        return Join(one.name, other.name, False, relation.reason, exact=False)
    groups, beside = overlap_groups(one, other, (relation.left, relation.right))
    name, stored = _name(graph, (one, groups), (other, beside), as_of)
    labels = _labels(graph, (one, groups), (other, beside), name if stored else None, as_of)
    antichain = graph.minimal_common_ancestors(left, right, as_of=as_of)
    kept, whole = partition_entropy(groups, values), partition_entropy(np.arange(one.size), values)
    found = Join(
        one.name,
        other.name,
        resolved=True,
        coding=name,
        stored=stored,
        exact=relation.exact and all_matched(one, other, relation),
        groups_left=groups,
        groups_right=beside,
        labels=labels,
        informative=informative_groups(one, groups) > 1,
        entropy=kept,
        lost=max(whole - kept, 0.0),
        antichain=antichain,
    )
    return replace(found, explanation=_explained(graph, found, relation, as_of))


def _explained(
    graph: CodingGraph, join: Join, relation: CodingRelation, as_of: datetime.date | None
) -> tuple[str, ...]:
    one, other = graph.node(join.left), graph.node(join.right)
    groups = join.groups_left, join.groups_right
    target = join.coding if join.stored else None
    return join_explanation(
        graph, (one, other), groups, relation, join.labels, target, join.antichain, as_of
    )


def _join_text(
    graph: CodingGraph,
    one: Node,
    text: Node,
    as_of: datetime.date | None,
    weights: Weights | None,
) -> Join:
    """Join with free text through the codings it can be coded into."""
    names = graph.stand_ins(text.name, as_of=as_of) if one.construct == text.construct else ()
    joins = [graph.join(one.name, name, as_of=as_of, weights=weights) for name in names]
    resolved = [join for join in joins if join.resolved]
    if not resolved:
        reason = graph.overlap(one.name, text.name, as_of=as_of).reason
        return Join(one.name, text.name, False, reason, exact=False)
    best = max(resolved, key=lambda join: (join.entropy, join.exact))
    told = f"{text.name} is free text, taken as coded into {best.right}"
    return replace(
        best,
        right=text.name,
        groups_right=NONE,
        exact=best.exact and graph.refines(best.right, one.name, as_of=as_of),
        antichain=graph.minimal_common_ancestors(one.name, text.name, as_of=as_of),
        explanation=(told, *best.explanation),
    )


Side = tuple[Node, Ints]


def _name(
    graph: CodingGraph, left: Side, right: Side, as_of: datetime.date | None
) -> tuple[str, bool]:
    """Return the name of the stored coding with these groups, or the next free one."""
    if is_discrete(left[1]):
        return left[0].name, True
    size = group_count(np.concatenate([left[1], right[1]]))
    if group_count(right[1] if len(right[1]) else NONE) == size == len(right[1]):
        return right[0].name, True
    for name in _above(graph, left[0].name, right[0].name, as_of):
        if all(_same_groups(graph, node, groups, name, as_of) for node, groups in (left, right)):
            return name, True
    return next_name(left[0].construct, size, harmonised=True, taken=graph.names), False


def _above(graph: CodingGraph, left: str, right: str, as_of: datetime.date | None) -> list[str]:
    """Return the codings that both refine, the one with the fewest categories first."""
    names = set(graph.ancestors(left, as_of=as_of)) & {
        right,
        *graph.ancestors(right, as_of=as_of),
    }
    return sorted(names, key=lambda name: (graph.node(name).size, name))


def _same_groups(
    graph: CodingGraph, node: Node, groups: Ints, name: str, as_of: datetime.date | None
) -> bool:
    function = graph.mapping(node.name, name, as_of=as_of)
    if function is None:
        return False
    return np.array_equal(as_partition(node, function), canonical(groups))


def _labels(
    graph: CodingGraph, left: Side, right: Side, stored: str | None, as_of: datetime.date | None
) -> tuple[str, ...]:
    """Name the groups as the stored coding does, else by what they hold."""
    count = group_count(np.concatenate([left[1], right[1]]))
    labels: list[str] = [""] * count
    for node, groups in (right, left):
        numbered = canonical(groups)
        names = group_labels(node, numbered)
        for k, c in zip(groups.tolist(), numbered.tolist(), strict=True):
            labels[k] = names[c]
    for node, groups in (left, right):
        function = None if stored is None else graph.mapping(node.name, stored, as_of=as_of)
        if stored is not None and function is not None:
            told = graph.node(stored).labels
            inside = np.flatnonzero(function >= 0)
            for k, c in zip(groups[inside].tolist(), function[inside].tolist(), strict=True):
                labels[k] = told[c]
    return tuple(labels)
