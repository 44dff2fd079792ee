"""Which categories of two codings can describe the same person."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from keyhole.environment.codings.categories import SPECIAL, Node
from keyhole.environment.codings.intervals import birth_edges, homes, intersections
from keyhole.kernels.arrays import Floats, Ints

Basis = Literal["same", "map", "intervals", "stored", "composed", "unresolved", "unrelated"]
Pairs = tuple[Ints, Ints]
# Pairs are listed one by one up to this many.
MOST = 5_000_000


@dataclass(frozen=True, slots=True, eq=False)
class CodingRelation:
    """The overlap of two codings: pairs of positions that one person can have.

    `exact` is false where the pairs are only those that could not be ruled out; `via` names
    the codings it goes through. A relation that is not `resolved` says why. `thin` pairs
    give the right groups, but stand for many more pairs than are listed.
    """

    left: Ints
    right: Ints
    basis: Basis
    exact: bool = True
    via: tuple[str, ...] = ()
    reason: str = ""
    thin: bool = False

    @property
    def resolved(self) -> bool:
        """Whether it is known which categories overlap."""
        return self.basis not in ("unresolved", "unrelated")


def unique_pairs(pairs: Pairs, rights: int) -> Pairs:
    """Sort pairs and list each once."""
    if not len(pairs[0]):
        return pairs
    keys = np.unique(pairs[0] * rights + pairs[1])
    return keys // rights, keys % rights


def push(pairs: Pairs, left: Ints, right: Ints) -> Pairs:
    """Carry pairs of finer codings up to coarser ones; what falls outside is left out."""
    one, other = left[pairs[0]], right[pairs[1]]
    kept = (one >= 0) & (other >= 0)
    return one[kept], other[kept]


def pairs_of(function: Ints) -> Pairs:
    """Write a function from positions to positions as pairs."""
    inside = np.flatnonzero(function >= 0)
    return inside, function[inside]


def function_of(pairs: Pairs, size: int) -> Ints | None:
    """Return the function that pairs describe (-1: nowhere), or None if they are not one."""
    if (np.bincount(pairs[0], minlength=size) > 1).any():
        return None
    out = np.full(size, -1, dtype=np.int64)
    out[pairs[0]] = pairs[1]
    return out


def with_kin(pairs: Pairs, left: Node, right: Node) -> Pairs:
    """Let "not stated" and "not applicable" meet their own kind, where nothing else is said."""
    if not left.special or not right.special:
        return pairs
    found = [pairs]
    for kind in SPECIAL:
        one, other = left.of_kind(kind), right.of_kind(kind)
        if not (np.isin(one, pairs[0]).any() or np.isin(other, pairs[1]).any()):
            found.append(_every(one, other))
    return together(found)


def _every(one: Ints, other: Ints) -> Pairs:
    if len(one) * len(other) > MOST:  # the same groups from fewer pairs
        return np.append(one, np.full(len(other), one[0])), np.append(
            np.full(len(one), other[0]), other
        )
    return np.repeat(one, len(other)), np.tile(other, len(one))


def together(pairs: Iterable[Pairs]) -> Pairs:
    """Return all pairs of several lists, one after the other."""
    both = list(pairs)
    return np.concatenate([p[0] for p in both]), np.concatenate([p[1] for p in both])


def comparable(left: Node, right: Node, as_of: datetime.date | None) -> str | None:
    """Return None if the intervals of two codings can be compared, else why they cannot."""
    if left.scale is None or right.scale is None:
        return "they are not both intervals"
    if left.scale == right.scale:
        return None
    if as_of is None:
        return "dates and ages can only be compared on a day: that of a target (as_of, --as-of)"
    ages = left.edges if left.scale == "number" else right.edges
    if birth_edges(ages, as_of) is None:
        return "dates and ages are compared in whole years, and an age has another edge"
    return None


def _aligned(left: Node, right: Node, as_of: datetime.date | None) -> tuple[Floats, Floats]:
    """Return the edges of both on one line, ages as days of birth."""
    if left.scale == right.scale:
        return left.edges, right.edges
    assert as_of is not None
    return _on_days(left, as_of), _on_days(right, as_of)


def _on_days(node: Node, as_of: datetime.date) -> Floats:
    edges = node.edges if node.scale == "date" else birth_edges(node.edges, as_of)
    assert edges is not None
    return edges


def _turned(positions: Ints, node: Node, other: Node) -> Ints:
    """Number intervals of age from the youngest again: days of birth run the other way."""
    if node.scale in (other.scale, "date"):
        return positions
    return node.intervals - 1 - positions


def interval_pairs(left: Node, right: Node, as_of: datetime.date | None) -> Pairs:
    """Return the overlap of two comparable interval codings, their listed categories too."""
    one, other = intersections(*_aligned(left, right, as_of))
    pairs = _turned(one, left, right), _turned(other, right, left)
    if not left.coding.categories and not right.coding.categories:
        return pairs
    extras = [
        pairs,
        _same_codes(left, right),
        _every(_outside(left, right, as_of), right.of_kind("other")),
        _every(left.of_kind("other"), _outside(right, left, as_of)),
        _every(left.of_kind("other"), right.of_kind("other")),
    ]
    return with_kin(together(extras), left, right)


def _outside(inner: Node, outer: Node, as_of: datetime.date | None) -> Ints:
    """Return what reaches beyond the other's intervals: intervals, and values it does not list."""
    begins, ends = homes(*_aligned(inner, outer, as_of))
    beyond = np.flatnonzero((begins < 0) | (ends > outer.intervals - 1))
    known = {category.code for category in outer.coding.categories}
    values = [
        inner.intervals + i
        for i, category in enumerate(inner.coding.categories)
        if category.kind == "value" and category.code not in known
    ]
    return np.concatenate([_turned(beyond, inner, outer), np.array(values, dtype=np.int64)])


def _same_codes(left: Node, right: Node) -> Pairs:
    """Pair the values listed beside intervals that have the same code."""
    there = {c.code: i for i, c in enumerate(right.coding.categories) if c.kind == "value"}
    found = [
        (left.intervals + i, right.intervals + there[c.code])
        for i, c in enumerate(left.coding.categories)
        if c.kind == "value" and c.code in there
    ]
    array = np.array(found, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def interval_function(finer: Node, coarser: Node, as_of: datetime.date | None) -> Ints | None:
    """Return into which category each of a finer interval coding falls, or None if it is not finer.

    An interval that lies wholly outside the other's falls nowhere (-1).
    """
    whole = nested(finer, coarser, as_of)
    return function_of(interval_pairs(finer, coarser, as_of), finer.size) if whole else None


def nested(finer: Node, coarser: Node, as_of: datetime.date | None) -> bool:
    """Tell whether no interval of the finer of two comparable codings is cut by the other's edges.

    What is listed beside the intervals may still fall into several categories.
    """
    begins, ends = homes(*_aligned(finer, coarser, as_of))
    return not bool((begins != ends).any())
