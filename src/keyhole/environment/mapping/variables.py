"""Making key variables: the name of a partition, its labels, its detail, why it is so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.explanations import climb
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.groups import as_partition, group_labels, merges, special
from keyhole.environment.codings.naming import next_name
from keyhole.environment.codings.partitions import (
    canonical,
    group_count,
    is_discrete,
    partition_entropy,
)
from keyhole.environment.mapping.holdings import TargetColumn
from keyhole.environment.mapping.keys import KeyVariable
from keyhole.kernels.arrays import Ints

# Joins of larger codings are not looked up by name.
MOST = 2_000


class VariableMaker:
    """Makes the key variables of one answer; a coding to be minted has one name in it."""

    def __init__(self, graph: CodingGraph) -> None:
        self.graph = graph
        self.taken: dict[str, set[str]] = {}
        self.minted: dict[tuple[str, bytes], str] = {}

    def make(
        self,
        column: TargetColumn,
        groups: Ints,
        *,
        holders: int,
        of: int,
        exact: bool = True,
        antichain: Sequence[str] = (),
        because: Iterable[str] = (),
        codings: Sequence[str] = (),
        near: Sequence[str] = (),
    ) -> KeyVariable:
        """Make the key variable of a column at a partition of its categories.

        `codings` are those in which one holder has it; `near` others that may be its coding.
        """
        name, stored = self.name(column, groups, (*codings, *near))
        labels = self._labels(column, groups, name if stored else None)
        kept = partition_entropy(groups, column.weights)
        whole = partition_entropy(np.arange(column.node.size), column.weights)
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
            codings=tuple(codings),
        )

    def name(
        self, column: TargetColumn, groups: Ints, codings: Sequence[str] = ()
    ) -> tuple[str, bool]:
        """Return the stored coding with these groups, or the name it would be minted under.

        `codings` are some in which it is held: one of them may be the coding itself.
        """
        node = column.node
        if is_discrete(groups):
            return node.name, True
        above = _stored(self.graph, node, column.as_of).get(groups.tobytes())
        named = (self._joined(column, groups, coding) for coding in codings)
        # One coding that is held goes by the name of the join, as `environment join` tells it.
        stored = above
        if above is None or len(codings) == 1:
            stored = next(filter(None, named), above)
        if stored is not None:
            return stored, True
        key = node.name, groups.tobytes()
        if key not in self.minted:
            taken = self._taken(node.construct)
            name = next_name(node.construct, group_count(groups), harmonised=True, taken=taken)
            taken.add(name)
            self.minted[key] = name
        return self.minted[key], False

    def _joined(self, column: TargetColumn, groups: Ints, coding: str) -> str | None:
        """Return the stored coding of the join with a held one, if it has these groups."""
        key = "joined", column.node.name, coding, column.as_of
        if key not in self.graph.memory:
            self.graph.memory[key] = _stored_join(self.graph, column, coding)
        name, known = self.graph.memory[key]
        return name if known == groups.tobytes() else None

    def _taken(self, letters: str) -> set[str]:
        if letters not in self.taken:
            self.taken[letters] = {n for n in self.graph.names if n.startswith(letters)}
        return self.taken[letters]

    def _labels(self, column: TargetColumn, groups: Ints, stored: str | None) -> tuple[str, ...]:
        labels = group_labels(column.node, groups)
        if stored in (None, column.node.name):
            return labels
        function = self.graph.mapping(column.node.name, stored, as_of=column.as_of)
        if function is None:  # known by their overlap, not by a map
            join = self.graph.join(column.node.name, stored, as_of=column.as_of)
            firsts = np.unique(groups, return_index=True)[1]
            return tuple(join.labels[k] for k in join.groups_left[firsts].tolist())
        names = self.graph.node(stored).labels
        firsts = np.unique(groups, return_index=True)[1]
        return tuple(
            names[c] if c >= 0 else labels[k] for k, c in enumerate(function[firsts].tolist())
        )

    def _told(
        self, column: TargetColumn, groups: Ints, labels: Sequence[str], stored: str | None
    ) -> list[str]:
        out = []
        if stored not in (None, column.node.name):
            path = climb(self.graph, column.node.name, stored, column.as_of)
            out.append(f"the target goes up {path}")
        out += merges(column.node, groups, labels)
        return [*out, *special(column.node, groups)]


def _stored_join(graph: CodingGraph, column: TargetColumn, coding: str) -> tuple[str | None, bytes]:
    """Return the stored coding that a join is, and its groups of the target's categories."""
    if graph.node(coding).size > MOST or column.node.size > MOST:
        return None, b""
    found = graph.join(column.node.name, coding, as_of=column.as_of)
    return (found.coding, canonical(found.groups_left).tobytes()) if found.stored else (None, b"")


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
