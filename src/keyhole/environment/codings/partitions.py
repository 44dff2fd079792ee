"""Partitions of a list of categories: join, meet, refinement, entropy.

A partition is an array with the number of each category's group, in *canonical* form when
groups are numbered as they first occur: then equal partitions are equal arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Ints

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
    if len(one) < FEW:
        return _joined(one.tolist(), other.tolist())
    # Components are numbered from the left, whose groups are numbered as they occur.
    groups, _ = components(one, other, group_count(one), group_count(other))
    return groups[one]


def _joined(one: list[int], other: list[int]) -> Ints:
    """Join by linking groups of the one that meet the same group of the other."""
    parent = list(range(max(one, default=-1) + 1))
    first: dict[int, int] = {}
    for a, b in zip(one, other, strict=True):
        b = first.setdefault(b, a)
        if a != b:
            while parent[a] != a:
                a = parent[a]
            while parent[b] != b:
                b = parent[b]
            parent[max(a, b)] = min(a, b)
    numbers: dict[int, int] = {}
    for a, up in enumerate(parent):  # a parent comes before its children
        parent[a] = numbers.setdefault(a, len(numbers)) if up == a else parent[up]
    return np.array([parent[a] for a in one], dtype=np.int64)


def components(left: Ints, right: Ints, lefts: int, rights: int) -> tuple[Ints, Ints]:
    """Return the connected components of a two-sided graph, numbered from the left.

    `left` and `right` are the two ends of each edge.
    """
    size = lefts + rights
    label = _linked if size < FEW else _labelled
    labels = label(left, right + lefts, size)
    numbered = canonical(labels)
    return numbered[:lefts], numbered[lefts:]


def _linked(one: Ints, other: Ints, size: int) -> Ints:
    """Label components by linking vertices: SciPy takes a millisecond to begin."""
    parent = list(range(size))
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        while parent[a] != a:
            parent[a] = a = parent[parent[a]]
        while parent[b] != b:
            parent[b] = b = parent[parent[b]]
        parent[max(a, b)] = min(a, b)
    for a in range(size):  # a parent comes before its children
        parent[a] = parent[parent[a]]
    return np.array(parent, dtype=np.int64)


def _labelled(one: Ints, other: Ints, size: int) -> Ints:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(one), dtype=np.int8), (one, other)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def partition_entropy(partition: Ints, weights: npt.NDArray[np.float64] | None = None) -> float:
    """Return the entropy in bits of the group of a category drawn by its weight."""
    shares = np.bincount(partition, weights=weights).astype(np.float64)
    shares = shares[shares > 0] / shares.sum() if shares.sum() > 0 else shares[:0]
    # Sorted, so that the sum does not depend on the order of the categories.
    return float(abs(np.sort(shares * np.log2(shares)).sum()))
