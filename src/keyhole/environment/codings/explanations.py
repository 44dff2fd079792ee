"""Why an answer is what it is, in sentences: paths, merges, what has no counterpart."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keyhole.core.names import quoted
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.groups import merges, special
from keyhole.environment.codings.relations import CodingRelation
from keyhole.kernels.arrays import Ints

if TYPE_CHECKING:
    from keyhole.environment.codings.graph import CodingGraph


def relation_words(left: str, right: str, relation: CodingRelation) -> str:
    """Say how the overlap of two codings is known."""
    via = ", ".join(relation.via)
    return {
        "same": f"{left} on both sides",
        "map": f"{left} and {right} are tied by maps",
        "intervals": f"{left} and {right} are compared by the edges of their intervals",
        "stored": f"the overlap of {left} and {right} is stored",
        "composed": f"{left} and {right} are compared through {via}",
    }.get(relation.basis, relation.reason)


def climb(graph: CodingGraph, start: str, end: str, as_of: datetime.date | None) -> str:
    """Write the path up the graph from one coding to another.

    A path that goes over no stored edge is told as a recoding.
    """
    path = graph.path(start, end, as_of=as_of)
    return " → ".join(path) if path else f"{start} → {end}"


def counterparts(node: Node, other: Node, paired: Ints) -> tuple[str, ...]:
    """Say which answers of a coding nobody on the other side can have given."""
    without = node.substantive.copy()
    without[paired] = False
    alone = np.flatnonzero(without)
    if not alone.size:
        return ()
    names = quoted([node.labels[i] for i in alone[:3].tolist()], 3)
    more = f" and {alone.size - 3:,} more" if alone.size > 3 else ""
    return (f"{names}{more} of {node.name} has no counterpart in {other.name}",)


def join_explanation(
    graph: CodingGraph,
    nodes: tuple[Node, Node],
    groups: tuple[Ints, Ints],
    relation: CodingRelation,
    labels: Sequence[str],
    stored: str | None,
    antichain: Sequence[str],
    as_of: datetime.date | None,
) -> tuple[str, ...]:
    """Tell how a join came about."""
    out = [relation_words(nodes[0].name, nodes[1].name, relation)]
    for node in nodes:
        if stored not in (None, node.name) and graph.refines(node.name, stored, as_of=as_of):
            out.append(f"path: {climb(graph, node.name, stored, as_of)}")
    for node, side in zip(nodes, groups, strict=True):
        out += [f"{text} (of {node.name})" for text in merges(node, side, labels)]
        out += special(node, side)
    out += counterparts(nodes[0], nodes[1], relation.left)
    out += counterparts(nodes[1], nodes[0], relation.right)
    if stored is None and antichain:
        out.append(f"the graph holds {', '.join(antichain)} above both, but not their join")
    out += inexact(relation.exact)
    return tuple(out)


def inexact(exact: bool) -> list[str]:
    """Say that an answer may not be the finest, unless it is."""
    if exact:
        return []
    return ["perhaps not the finest: how some categories overlap is known only in part"]
