"""New harmonised codings: the coding of a join, with the maps that lead up to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.environment.codings.categories import KINDS, Node
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import group_edges
from keyhole.environment.codings.joins import Join
from keyhole.environment.codings.naming import next_name
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.environment.model import Category, CategoryKind, CategoryMap, Coding, Intervals
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

Side = tuple[Node, Ints]


@dataclass(frozen=True, slots=True)
class Minted:
    """A coding to be added to an environment, with its maps."""

    coding: Coding
    maps: tuple[CategoryMap, ...]


def mint(graph: CodingGraph, join: Join, *, label: str = "") -> Minted:
    """Make the harmonised coding of a join that is not stored yet.

    Nothing is added to the environment: that is for whoever confirms it.
    """
    if not join.resolved:
        raise InputError(f"a join that is not resolved cannot be minted: {join.reason}.")
    if join.stored:
        raise InputError(f"the join is there already: {join.coding}.")
    if not join.informative:
        raise InputError(
            f"{join.left} and {join.right} join to one category: they have no answers in common "
            f"that could be told apart, so that there is nothing to mint."
        )
    sides = [(graph.node(join.left), join.groups_left), (graph.node(join.right), join.groups_right)]
    return _mint(graph, [side for side in sides if side[0].size], join.labels, label)


def mint_key(graph: CodingGraph, variable: KeyVariable, *, label: str = "") -> Minted:
    """Make the harmonised coding of a key variable that is not stored yet."""
    if variable.stored:
        raise InputError(f"the coding is there already: {variable.coding}.")
    side = graph.node(variable.target_coding), np.array(variable.groups, dtype=np.int64)
    return _mint(graph, [side], variable.labels, label)


def _mint(graph: CodingGraph, sides: Sequence[Side], labels: Sequence[str], label: str) -> Minted:
    construct = sides[0][0].construct
    name = next_name(construct, len(labels), harmonised=True, taken=graph.names)
    runs = _runs(sides, len(labels))
    coding = _listed(name, construct, sides, labels, label)
    maps = [_pairs(node, groups, name) for node, groups in sides]
    if runs is not None:
        edges, listed = runs
        rest = tuple(coding.categories[k] for k in listed)
        cut = Intervals(sides[0][0].coding.intervals.scale, edges=tuple(edges.tolist()))  # type: ignore[union-attr]
        coding = Coding(name, construct, rest, cut, label)
        # Intervals need no pairs: the edges tell, and dates against ages on the right day.
        maps = [CategoryMap(node.name, name, None) for node, _ in sides]
    return Minted(coding, tuple(maps))


def _listed(
    name: str, construct: str, sides: Sequence[Side], labels: Sequence[str], label: str
) -> Coding:
    kinds = [_kind(sides, k) for k in range(len(labels))] if len(labels) < 1_000 else None
    categories = tuple(
        Category(str(k + 1), text, "value" if kinds is None else kinds[k])
        for k, text in enumerate(labels)
    )
    return Coding(name, construct, categories, label=label)


def _kind(sides: Sequence[Side], k: int) -> CategoryKind:
    """Give a group the kind of its members if they are all of one, else it is a value."""
    kinds = {int(kind) for node, groups in sides for kind in node.kinds[groups == k].tolist()}
    return KINDS[kinds.pop()] if len(kinds) == 1 else "value"


def _pairs(node: Node, groups: Ints, name: str) -> CategoryMap:
    pairs = {code: str(k + 1) for code, k in zip(node.codes, groups.tolist(), strict=True)}
    return CategoryMap(node.name, name, pairs)


def _runs(sides: Sequence[Side], count: int) -> tuple[Floats, list[int]] | None:
    """Return the edges of the groups if all are runs of intervals, but for listed ones."""
    if any(node.scale is None for node, _ in sides):
        return None
    low, high = np.full((2, count), np.nan)
    alike = [side for side in sides if side[0].scale == sides[0][0].scale]
    for node, groups in alike:
        _, numbered = np.unique(groups, return_inverse=True)
        at = np.unique(groups)
        one, other, _ = group_edges(node, numbered)
        low[at], high[at] = np.fmin(low[at], one), np.fmax(high[at], other)
    runs = np.flatnonzero(~np.isnan(low))
    rest = np.flatnonzero(np.isnan(low)).tolist()
    order = runs[np.argsort(low[runs])]
    whole = bool((high[order[:-1]] == low[order[1:]]).all()) and len(order) > 0
    if not whole or not _only_listed(sides, rest):
        return None
    return np.append(low[order], high[order[-1]]), rest


def _only_listed(sides: Sequence[Side], rest: Sequence[int]) -> bool:
    """Tell whether no group mixes intervals with listed categories."""
    return all(
        not np.isin(groups[: node.intervals], rest).any()
        and bool(np.isin(groups[node.intervals :], rest).all())
        for node, groups in sides
    )
