"""Making key variables: the name of a partition, its labels, its detail, why it is so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.explanations import climb
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.groups import as_partition, group_labels, merges, special
from keyhole.environment.codings.naming import next_name
from keyhole.environment.codings.partitions import Ints, entropy, group_count, is_discrete
from keyhole.environment.mapping.holdings import Column
from keyhole.environment.mapping.keys import KeyVariable

__all__ = ["VariableMaker"]


class VariableMaker:
    """Makes the key variables of one answer; a coding to be minted has one name in it."""

    def __init__(self, graph: CodingGraph) -> None:
        self.graph = graph
        self.taken: dict[str, set[str]] = {}
        self.minted: dict[tuple[str, bytes], str] = {}

    def make(
        self,
        column: Column,
        groups: Ints,
        *,
        holders: int,
        of: int,
        exact: bool = True,
        antichain: Sequence[str] = (),
        because: Iterable[str] = (),
    ) -> KeyVariable:
        """Make the key variable of a column at a partition of its categories."""
        name, stored = self.name(column, groups)
        labels = self._labels(column, groups, name if stored else None)
        kept = entropy(groups, column.weights)
        whole = entropy(np.arange(column.node.size), column.weights)
        return KeyVariable(
            construct=column.node.construct,
            column=column.name,
            target_coding=column.node.name,
            coding=name,
            stored=stored,
            groups=tuple(groups.tolist()),
            labels=labels,
            entropy=kept,
            lost=max(whole - kept, 0.0),
            holders=holders,
            of=of,
            antichain=tuple(antichain) or (name,),
            exact=exact,
            explanation=(*because, *self._told(column, groups, labels, name if stored else None)),
        )

    def name(self, column: Column, groups: Ints) -> tuple[str, bool]:
        """Return the stored coding with these groups, or the name it would be minted under."""
        node = column.node
        if is_discrete(groups):
            return node.name, True
        stored = _stored(self.graph, node, column.as_of).get(groups.tobytes())
        if stored is not None:
            return stored, True
        key = node.name, groups.tobytes()
        if key not in self.minted:
            taken = self._taken(node.construct)
            name = next_name(node.construct, group_count(groups), harmonised=True, taken=taken)
            taken.add(name)
            self.minted[key] = name
        return self.minted[key], False

    def _taken(self, letters: str) -> set[str]:
        if letters not in self.taken:
            self.taken[letters] = {n for n in self.graph.names if n.startswith(letters)}
        return self.taken[letters]

    def _labels(self, column: Column, groups: Ints, stored: str | None) -> tuple[str, ...]:
        labels = group_labels(column.node, groups)
        if stored in (None, column.node.name):
            return labels
        function = self.graph.mapping(column.node.name, stored, as_of=column.as_of)
        assert function is not None
        names = self.graph.node(stored).labels
        firsts = np.unique(groups, return_index=True)[1]
        return tuple(
            names[c] if c >= 0 else labels[k] for k, c in enumerate(function[firsts].tolist())
        )

    def _told(
        self, column: Column, groups: Ints, labels: Sequence[str], stored: str | None
    ) -> list[str]:
        out = []
        if stored not in (None, column.node.name):
            path = climb(self.graph, column.node.name, stored, column.as_of)
            out.append(f"the target goes up {path}")
        out += merges(column.node, groups, labels)
        return [*out, *special(column.node, groups)]


def _stored(graph: CodingGraph, node: Node, as_of: Day) -> dict[bytes, str]:
    """Return the coding above a target's for each partition that one has."""
    key = "stored", node.name, as_of
    if key not in graph.memory:
        above = graph.ancestors(node.name, as_of=as_of)
        found: dict[bytes, str] = {}
        for name in sorted(above, key=lambda name: (graph.node(name).size, name)):
            function = graph.mapping(node.name, name, as_of=as_of)
            assert function is not None
            found.setdefault(as_partition(node, function).tobytes(), name)
        graph.memory[key] = found
    known: dict[bytes, str] = graph.memory[key]
    return known
