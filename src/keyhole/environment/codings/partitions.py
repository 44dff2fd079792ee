"""Partitions of a list of categories: join, meet, entropy; and groups in words.

A partition is an array with the number of each category's group, in *canonical* form when
groups are numbered as they first occur: then equal partitions are equal arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from keyhole.core.names import shown
from keyhole.environment.codings.categories import KINDS, SPECIAL, Node, label_edges
from keyhole.kernels.arrays import Floats, Ints

# A label lists this many categories, an explanation this many groups; the rest is counted.
LISTED = 4
SHOWN = 5


def canonical(labels: npt.ArrayLike) -> Ints:
    """Number the groups as they first occur."""
    values = np.asarray(labels, dtype=np.int64)
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


def inexact(exact: bool) -> list[str]:
    """Say that an answer may not be the finest, unless it is."""
    if exact:
        return []
    return ["perhaps not the finest: how some categories overlap is known only in part"]
