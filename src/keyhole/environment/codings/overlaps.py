"""How the overlap of two codings is found: refinement, intervals, stored, through a third."""

from __future__ import annotations

import numpy as np

from keyhole.core.names import quoted
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.family import Family
from keyhole.environment.codings.partitions import meet
from keyhole.environment.codings.relations import (
    MOST,
    Basis,
    CodingRelation,
    Pairs,
    comparable,
    function_of,
    unique_pairs,
    with_kin,
)
from keyhole.kernels.arrays import Ints

NOTHING = np.zeros(0, dtype=np.int64)


def relate(family: Family | None, left: Node, right: Node) -> CodingRelation:
    """Return which categories of two codings can describe the same person.

    Notes
    -----
    An overlap is exact where it is that of intervals, was stored, or comes from codings that
    refine both sides: two categories that share a finer one share a person. Through any
    other third coding nothing but the impossible pairs is known; then each such coding
    rules out what it can, and what remains is not exact.
    """
    if family is None:
        return _missing("unrelated", f"{left.name} and {right.name} ask about different constructs")
    i, j = family.index[left.name], family.index[right.name]
    exact = family.exact_pairs(i, j)
    if exact is not None:
        pairs, via = exact
        names = tuple(family.nodes[k].name for k in via)
        one, other = with_kin(pairs, left, right)
        return CodingRelation(one, other, _basis(family, i, j, via), via=names)
    bridges = family.bridges(i, j)
    if bridges.size:
        return _bridged(family, i, j, bridges)
    return _unknown(family, i, j)


def _missing(basis: Basis, reason: str) -> CodingRelation:
    return CodingRelation(NOTHING, NOTHING, basis, exact=False, reason=reason)


def _basis(family: Family, i: int, j: int, via: tuple[int, ...]) -> Basis:
    left, right = family.nodes[i], family.nodes[j]
    if i == j:
        return "same"
    if left.scale is not None and comparable(left, right, family.as_of) is None:
        return "intervals"
    if family.reach[i, j] or family.reach[j, i]:
        return "map"
    return "composed" if via else "stored"


def _bridged(family: Family, i: int, j: int, bridges: Ints) -> CodingRelation:
    """Keep the pairs that no third coding rules out."""
    left, right = family.nodes[i], family.nodes[j]
    sides = [(_pairs(family, i, k), _pairs(family, j, k)) for k in bridges.tolist()]
    functions = [
        (function_of(one, left.size), function_of(other, right.size)) for one, other in sides
    ]
    told = [(f, g) for f, g in functions if f is not None and g is not None]
    rest = [side for side, (f, g) in zip(sides, functions, strict=True) if f is None or g is None]
    names = tuple(family.nodes[k].name for k in bridges.tolist())
    pairs, thin = _by_functions(told) if told else (None, False)
    if not thin:
        for side, k in zip(rest, _others(functions, bridges), strict=True):
            further = _composed(*side, left.size, right.size, family.nodes[k].size)
            pairs = further if pairs is None else _both(pairs, further, right.size)
    assert pairs is not None
    one, other = with_kin(pairs, left, right)
    return CodingRelation(one, other, "composed", exact=False, via=names, thin=thin)


def _others(functions: list[tuple[Ints | None, Ints | None]], bridges: Ints) -> list[int]:
    pairs = zip(bridges.tolist(), functions, strict=True)
    return [k for k, (f, g) in pairs if f is None or g is None]


def _pairs(family: Family, i: int, k: int) -> Pairs:
    found = family.exact_pairs(i, k)
    assert found is not None
    return with_kin(found[0], family.nodes[i], family.nodes[k])


def _by_functions(told: list[tuple[Ints, Ints]]) -> tuple[Pairs, bool]:
    """Pair what falls together in every third coding; thinly where that is too many pairs."""
    left, right = _common_keys(told)
    order = np.argsort(right, kind="stable")
    begins = np.searchsorted(right[order], left, side="left")
    counts = np.searchsorted(right[order], left, side="right") - begins
    counts[left < 0] = 0
    if counts.sum() > MOST:
        return _thin(left, right), True
    one = np.repeat(np.arange(len(left)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    other = order[np.repeat(begins, counts) + np.arange(len(one)) - before]
    return (one, other), False


def _common_keys(told: list[tuple[Ints, Ints]]) -> Pairs:
    """Number the combinations of categories in all third codings, for both sides together."""
    split = len(told[0][0])
    keys = np.zeros(split + len(told[0][1]), dtype=np.int64)
    outside = np.zeros(len(keys), dtype=bool)
    for f, g in told:
        both = np.concatenate([f, g])
        outside |= both < 0
        keys = meet(keys, np.maximum(both, 0))
    keys[outside] = -1
    return keys[:split], keys[split:]


def _thin(left: Ints, right: Ints) -> Pairs:
    """Tie all of a key on the left to its first on the right, and the other way round."""
    keys, first = np.unique(left, return_index=True)
    others, second = np.unique(right, return_index=True)
    shared, a, b = np.intersect1d(keys, others, return_indices=True)
    to_right = dict(zip(shared.tolist(), second[b].tolist(), strict=True))
    to_left = dict(zip(shared.tolist(), first[a].tolist(), strict=True))
    pairs = [(i, to_right[k]) for i, k in enumerate(left.tolist()) if k >= 0 and k in to_right]
    pairs += [(to_left[k], j) for j, k in enumerate(right.tolist()) if k >= 0 and k in to_left]
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _composed(one: Pairs, other: Pairs, lefts: int, rights: int, middles: int) -> Pairs:
    from scipy.sparse import csr_matrix

    first = csr_matrix((np.ones(len(one[0]), dtype=bool), one), shape=(lefts, middles))
    second = csr_matrix((np.ones(len(other[0]), dtype=bool), other), shape=(rights, middles))
    found = (first @ second.T).tocoo()
    return found.row.astype(np.int64), found.col.astype(np.int64)


def _both(one: Pairs, other: Pairs, rights: int) -> Pairs:
    keys = np.intersect1d(one[0] * rights + one[1], other[0] * rights + other[1])
    return unique_pairs((keys // rights, keys % rights), rights)


def _unknown(family: Family, i: int, j: int) -> CodingRelation:
    """Say why nothing is known of an overlap, and what would tell."""
    left, right = family.nodes[i], family.nodes[j]
    edges = family.open_edges(i, j)
    if edges:
        names = [f"{family.nodes[a].name} -> {family.nodes[b].name}" for a, b in edges]
        text = f"the map {quoted(names, 3)} does not say how categories fall; give its pairs"
        return _missing("unresolved", text)
    for node in (left, right):
        if node.open:
            text = f"{node.name} is free text: nothing is known of its categories"
            return _missing("unresolved", text)
    if left.scale is not None and right.scale is not None:
        reason = comparable(left, right, family.as_of)
        return _missing("unresolved", str(reason))
    text = f"no map, overlap or intervals connect {left.name} and {right.name}"
    if family.as_of is None and {"number", "date"} <= {node.scale for node in family.nodes}:
        text += " without a day on which dates of birth are ages (as_of, --as-of)"
    return _missing("unrelated", text)
