"""What holding a construct in some codings tells about a column of the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import Node, Weights, category_weights
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.groups import (
    all_matched,
    as_partition,
    climb,
    counterparts,
    group_labels,
    informative_groups,
    merges,
    overlap_groups,
    relation_words,
    special,
)
from keyhole.environment.codings.naming import next_name
from keyhole.environment.codings.partitions import (
    canonical,
    group_count,
    is_discrete,
    meet,
    partition_entropy,
)
from keyhole.environment.mapping.keys import Absent, KeyVariable
from keyhole.environment.mapping.products import product_groups
from keyhole.environment.model import Target
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

ColumnWeights = Mapping[str, Weights]


@dataclass(frozen=True, slots=True, eq=False)
class TargetColumn:
    """A column of the target with its coding and the weights of its categories."""

    name: str
    node: Node
    weights: Floats | None
    as_of: Day


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The partition of a target's categories that a holder can tell, or why there is none."""

    groups: Ints | None
    exact: bool
    words: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why there is no partition."""
        return "; ".join(self.words)


def columns_of(
    graph: CodingGraph, target: Target, weights: ColumnWeights | None
) -> tuple[list[TargetColumn], list[Absent]]:
    """Return the columns of a target that can be mapped, and why the others cannot."""
    given = dict(weights or {})
    unknown = [name for name in given if name not in {field.name for field in target.fields}]
    if unknown:
        raise InputError(
            f"weights: target {shown(target.name)} has no column {quoted(unknown, 5)}."
        )
    columns, absent = [], []
    for field in target.fields:
        if field.identifier is not None:
            reason = f"a direct identifier ({field.identifier}): not to be released at all"
            absent.append(Absent(field.name, "", reason))
        elif field.coding is None:
            absent.append(Absent(field.name, "", "nobody has said yet which coding it has"))
        else:
            node = graph.node(field.coding)
            if node.open:
                text = f"{node.name} is free text: it has no categories to match"
                absent.append(Absent(field.name, node.construct, text))
            else:
                weight = category_weights(node, given.get(field.name))
                columns.append(TargetColumn(field.name, node, weight, target.as_of))
    return columns, absent


def held_by(
    graph: CodingGraph, column: TargetColumn, codings: Sequence[str], told: Sequence[Ints] = ()
) -> Held:
    """Return what a holder of a construct in some codings can tell of the target's categories.

    A holder of several codings of the construct can tell what their product tells: at least
    what any of them can, and more where they cross. `told` are partitions of the target's
    categories that the holder knows besides.
    """
    if len(codings) == 1 and not told:
        return _held(graph, column.node, codings[0], column.as_of)
    parts = tuple(partition.tobytes() for partition in told)
    key = "held together", column.node.name, tuple(codings), parts, column.as_of
    if key not in graph.memory:
        graph.memory[key] = _held_together(graph, column, codings, told)
    found: Held = graph.memory[key]
    return found


def _held_together(
    graph: CodingGraph, column: TargetColumn, codings: Sequence[str], told: Sequence[Ints]
) -> Held:
    helds = {name: _held(graph, column.node, name, column.as_of) for name in codings}
    known = {name: held for name, held in helds.items() if held.groups is not None}
    parts = [*(held.groups for held in known.values() if held.groups is not None), *told]
    if not parts:
        return Held(None, False, tuple(word for held in helds.values() for word in held.words))
    groups = reduce(meet, parts)
    words = [word for held in known.values() for word in held.words]
    if len(codings) > 1:
        words.append(f"{' and '.join(codings)} are held together: what either tells is known")
    if is_discrete(groups) or not known:
        return Held(groups, len(known) == len(helds) or is_discrete(groups), tuple(words))
    listed = [one for name in known for one in _listed(graph, column, name)]
    product = product_groups(graph, column.node, listed, column.as_of, told)
    finer = groups if product is None else meet(groups, product.groups)
    if group_count(finer) > group_count(groups):
        words.append("they cut each other: held together they tell more than each alone")
    sure = product is not None and product.exact and listed == list(codings)
    return Held(finer, sure or is_discrete(finer), tuple(words))


def _listed(graph: CodingGraph, column: TargetColumn, name: str) -> list[str]:
    """Return the coding, or what free text can be coded into, where its overlap is known."""
    if not graph.node(name).open:
        return [name]
    names = graph.stand_ins(name, as_of=column.as_of)
    own = column.node.name
    return [one for one in names if graph.overlap(own, one, as_of=column.as_of).resolved]


def _held(graph: CodingGraph, node: Node, coding: str, as_of: Day) -> Held:
    key = "held", node.name, coding, as_of
    if key not in graph.memory:
        graph.memory[key] = _find_held(graph, node, coding, as_of)
    found: Held = graph.memory[key]
    return found


def _find_held(graph: CodingGraph, node: Node, coding: str, as_of: Day) -> Held:
    other = graph.node(coding)
    if other.open and other.name != node.name:
        return _held_text(graph, node, other, as_of)
    relation = graph.overlap(node.name, coding, as_of=as_of)
    if not relation.resolved:
        return Held(None, False, (relation.reason,))
    groups, _ = overlap_groups(node, other, (relation.left, relation.right))
    words = [relation_words(node.name, coding, relation)]
    words += counterparts(node, other, relation.left)
    exact = relation.exact and all_matched(node, other, relation)
    return Held(groups, exact, tuple(words))


def _held_text(graph: CodingGraph, node: Node, text: Node, as_of: Day) -> Held:
    """Take free text for what it can be coded into."""
    names = graph.stand_ins(text.name, as_of=as_of)
    found = [(name, _held(graph, node, name, as_of)) for name in names]
    known = [(name, held.groups) for name, held in found if held.groups is not None]
    if not known:
        return Held(None, False, (graph.overlap(node.name, text.name, as_of=as_of).reason,))
    groups = reduce(meet, [groups for _, groups in known])
    exact = is_discrete(groups)
    coded = ", ".join(name for name, _ in known)
    return Held(groups, exact, (f"{text.name} is free text, taken as coded into {coded}",))


def tells(column: TargetColumn, held: Held) -> bool:
    """Tell whether a holder can tell any answers apart."""
    return held.groups is not None and informative_groups(column.node, held.groups) > 1


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
