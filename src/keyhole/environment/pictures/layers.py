"""Laying out a graph in layers: the coarsest at the top, each node above what refines it.

Sugiyama's way in short: layers by the longest path, nodes in between for edges that span
several, orders by the mean place of neighbours, swept to and fro. Nothing is random: the same
graph gives the same picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
Step = tuple[str, str, int]
"""A place on an edge between layers: where it begins and ends, and its layer."""

SWEEPS = 12


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """Where nodes stand: layer (0 at the top) and place from 0 to `width`; edges by their bends."""

    places: Mapping[str, tuple[float, int]]
    bends: Mapping[Edge, tuple[tuple[float, int], ...]]
    width: float
    height: int


def reduce_edges(above: Mapping[str, Iterable[str]]) -> tuple[Edge, ...]:
    """Return the edges that do not follow from others; of two equal nodes one is above.

    Examples
    --------
    >>> reduce_edges({"a": ["b", "c"], "b": ["c"], "c": []})
    (('a', 'b'), ('b', 'c'))
    """
    known = {name: set(found) & set(above) for name, found in above.items()}
    strict = {
        name: {b for b in found if b != name and (name not in known[b] or name < b)}
        for name, found in known.items()
    }
    return tuple(
        (a, b)
        for a in sorted(strict)
        for b in sorted(strict[a])
        if not any(b in strict[c] for c in strict[a] if c != b)
    )


def lay_out(nodes: Sequence[str], edges: Iterable[Edge]) -> LayeredLayout:
    """Lay nodes out; an edge (finer, coarser) goes up.

    Examples
    --------
    >>> found = lay_out(["fine", "rough"], [("fine", "rough")])
    >>> found.places["rough"], found.places["fine"]
    ((0.0, 0), (0.0, 1))
    """
    drawn = sorted(set(edges))
    depth = _depths(nodes, drawn)
    layers, links = _layers(nodes, drawn, depth)
    _order(layers, links)
    x = _spread(layers, links)
    places = {name: (x[name], depth[name]) for name in nodes}
    bends = {edge: _bends(edge, depth, x) for edge in drawn}
    return LayeredLayout(
        places, bends, max(x.values(), default=0.0), max(depth.values(), default=0) + 1
    )


def _depths(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each node: one below the lowest of those above it."""
    above: dict[str, list[str]] = {name: [] for name in nodes}
    for finer, coarser in edges:
        above[finer].append(coarser)
    depth: dict[str, int] = {}
    while len(depth) < len(nodes):
        ready = [n for n in nodes if n not in depth and all(b in depth for b in above[n])]
        for name in ready or [n for n in nodes if n not in depth][:1]:  # a circle is cut
            depth[name] = max((depth[b] + 1 for b in above[name] if b in depth), default=0)
    return depth


Node = str | Step
Links = dict[Node, list[Node]]


def _layers(
    nodes: Sequence[str], edges: Sequence[Edge], depth: Mapping[str, int]
) -> tuple[list[list[Node]], Links]:
    """Return the nodes of each layer, and which are joined to which in the next layers."""
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name in sorted(nodes):
        layers[depth[name]].append(name)
    links: Links = {name: [] for name in nodes}
    for finer, coarser in edges:
        chain: list[Node] = [coarser]
        for layer in range(depth[coarser] + 1, depth[finer]):
            step = (finer, coarser, layer)
            layers[layer].append(step)
            links[step] = []
            chain.append(step)
        chain.append(finer)
        for one, other in pairwise(chain):
            links[one].append(other)
            links[other].append(one)
    return layers, links


def _order(layers: list[list[Node]], links: Links) -> None:
    """Sort each layer by where its neighbours stand; keep the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, links)
    for sweep in range(SWEEPS):
        turn = range(1, len(layers)) if sweep % 2 == 0 else range(len(layers) - 2, -1, -1)
        for k in turn:
            near = layers[k - 1] if sweep % 2 == 0 else layers[k + 1]
            rank = {node: i for i, node in enumerate(near)}
            middle = {n: _middle(links[n], rank, i) for i, n in enumerate(layers[k])}
            layers[k].sort(key=middle.__getitem__)
        found = _crossings(layers, links)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    layers[:] = best


def _middle(neighbours: Iterable[Node], rank: Mapping[Node, int], own: int) -> float:
    near = [rank[node] for node in neighbours if node in rank]
    return sum(near) / len(near) if near else own


def _crossings(layers: Sequence[Sequence[Node]], links: Links) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        rank = {node: i for i, node in enumerate(lower)}
        ends = [(i, rank[n]) for i, node in enumerate(upper) for n in links[node] if n in rank]
        count += sum(a < c and b > d for a, b in ends for c, d in ends)
    return count


def _spread(layers: Sequence[Sequence[Node]], links: Links) -> dict[Node, float]:
    """Place nodes of a layer at least one apart, each as near its neighbours as that allows."""
    x: dict[Node, float] = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for _ in range(SWEEPS):
        for layer in (*layers, *reversed(layers)):
            wanted = [_mean(links[node], x, x[node]) for node in layer]
            for node, place in zip(layer, _apart(wanted), strict=True):
                x[node] = place
    least = min(x.values(), default=0.0)
    return {node: round(place - least, 3) for node, place in x.items()}


def _mean(neighbours: Sequence[Node], x: Mapping[Node, float], own: float) -> float:
    return sum(x[n] for n in neighbours) / len(neighbours) if neighbours else own


def _apart(wanted: Sequence[float]) -> list[float]:
    """Return the places nearest to those wanted, in order and one apart (pooled means)."""
    blocks: list[tuple[float, int]] = []  # the mean of wanted - index, and how many
    for i, place in enumerate(wanted):
        mean, size = place - i, 1
        while blocks and blocks[-1][0] >= mean:
            before, number = blocks.pop()
            mean = (before * number + mean * size) / (number + size)
            size += number
        blocks.append((mean, size))
    shifts = [mean for mean, size in blocks for _ in range(size)]
    return [shift + i for i, shift in enumerate(shifts)]


def _bends(
    edge: Edge, depth: Mapping[str, int], x: Mapping[Node, float]
) -> tuple[tuple[float, int], ...]:
    finer, coarser = edge
    between = range(depth[finer] - 1, depth[coarser], -1)
    return tuple((x[(finer, coarser, layer)], layer) for layer in between)
