"""Groups of categories in words: what each is called, and what was merged."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import KINDS, SPECIAL, Node
from keyhole.environment.codings.intervals import label_edges
from keyhole.environment.codings.partitions import canonical, components, group_count, is_discrete
from keyhole.environment.codings.relations import CodingRelation
from keyhole.kernels.arrays import Floats, Ints

if TYPE_CHECKING:
    from keyhole.environment.codings.graph import CodingGraph


# A label lists this many categories, an explanation this many groups; the rest is counted.
LISTED = 4
SHOWN = 5


def as_partition(node: Node, function: Ints) -> Ints:
    """Group categories by where they fall; answers that fall outside are one group.

    Whoever records the coarser coding cannot tell such answers apart. "Not stated" and "not
    applicable" are no answers, and stay alone.
    """
    out = function.copy()
    alone = np.flatnonzero((out < 0) & ~node.substantive)
    out[alone] = out.max(initial=0) + 1 + np.arange(len(alone))
    out[out < 0] = out.max(initial=0) + 1
    return canonical(out)


def overlap_groups(left: Node, right: Node, pairs: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Return the groups of two overlapping codings: the connected components of their pairs.

    Answers of either side that have no counterpart on the other are one group: who records the
    other coding cannot tell them apart, and where both have such answers they may be each
    other's.
    """
    both = np.concatenate(components(*pairs, left.size, right.size))
    paired = np.zeros(len(both), dtype=np.bool_)
    paired[pairs[0]] = True
    paired[left.size + pairs[1]] = True
    lone = ~paired & np.concatenate([left.substantive, right.substantive])
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
    return any(np.isin(np.flatnonzero(node.substantive), paired).all() for node, paired in sides)


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
        first = np.full(count, node.size)
        last = np.full(count, -1)
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


def merges(node: Node, groups: Ints, labels: Sequence[str]) -> tuple[str, ...]:
    """Say which categories were merged, and into what."""
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
    return tuple(out)


def special(node: Node, groups: Ints) -> tuple[str, ...]:
    """Say what became of "not stated" and "not applicable"."""
    out = []
    for kind in SPECIAL:
        for i in node.of_kind(kind).tolist():
            with_values = node.substantive[groups == groups[i]].any()
            fate = (
                "is merged with answers, as the maps say"
                if with_values
                else "stays apart from all answers"
            )
            out.append(f"{shown(node.labels[i])} ({KINDS[node.kinds[i]]}) {fate}")
    return tuple(out[:SHOWN])


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
    """Write the path up the graph; one that goes over no stored edge is told as a recoding."""
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


def inexact(exact: bool) -> list[str]:
    """Say that an answer may not be the finest, unless it is."""
    if exact:
        return []
    return ["perhaps not the finest: how some categories overlap is known only in part"]
