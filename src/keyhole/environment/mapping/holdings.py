"""What holding a construct in some codings tells about a column of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import Node, Weights, category_weights
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.naming import next_name
from keyhole.environment.codings.partitions import (
    all_matched,
    as_partition,
    canonical,
    climb,
    counterparts,
    group_count,
    group_labels,
    informative_groups,
    is_discrete,
    meet,
    merges,
    overlap_groups,
    partition_entropy,
    relation_words,
    special,
)
from keyhole.environment.mapping.keys import Absent, KeyMapping, KeyVariable, MappingKind
from keyhole.environment.mapping.products import product_groups
from keyhole.environment.model import Target
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

ColumnWeights = Mapping[str, Weights]
# Joins of larger codings are not looked up by name.
MOST = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class TargetColumn:
    """A column of the target with its coding and the weights of its categories."""

    name: str
    node: Node
    weights: Floats | None
    as_of: Day

    def absent(self, reason: str, *more: Any) -> Absent:
        """Say why it is not in a key."""
        return Absent(self.name, self.node.construct, reason, *more)


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
        return graph.remembered(_held, column.node, codings[0], column.as_of)
    parts = tuple(partition.tobytes() for partition in told)
    return graph.remembered(_held_together, column.node, tuple(codings), parts, column.as_of)


def _held_together(
    graph: CodingGraph, node: Node, codings: tuple[str, ...], parts: tuple[bytes, ...], as_of: Day
) -> Held:
    told = [np.frombuffer(part, dtype=np.int64) for part in parts]
    helds = {name: graph.remembered(_held, node, name, as_of) for name in codings}
    known = {name: held.groups for name, held in helds.items() if held.groups is not None}
    if not known and not told:
        return Held(None, False, tuple(word for held in helds.values() for word in held.words))
    groups = reduce(meet, [*known.values(), *told])
    words = [word for name in known for word in helds[name].words]
    if len(codings) > 1:
        words.append(f"{' and '.join(codings)} are held together: what either tells is known")
    if is_discrete(groups) or not known:
        return Held(groups, len(known) == len(helds) or is_discrete(groups), tuple(words))
    listed = []
    for name in known:
        # Free text stands for what it can be coded into; of any other coding the overlap is known.
        coded = graph.stand_ins(name, as_of=as_of) if graph.node(name).open else [name]
        listed += [one for one in coded if graph.overlap(node.name, one, as_of=as_of).resolved]
    product = product_groups(graph, node, listed, as_of, told)
    finer = groups if product is None else meet(groups, product.groups)
    if group_count(finer) > group_count(groups):
        words.append("they cut each other: held together they tell more than each alone")
    sure = product is not None and product.exact and listed == list(codings)
    return Held(finer, sure or is_discrete(finer), tuple(words))


def _held(graph: CodingGraph, node: Node, coding: str, as_of: Day) -> Held:
    other = graph.node(coding)
    relation = graph.overlap(node.name, coding, as_of=as_of)
    if other.open and other.name != node.name:  # free text is taken for what it can be coded into
        names = graph.stand_ins(other.name, as_of=as_of)
        found = {name: graph.remembered(_held, node, name, as_of).groups for name in names}
        known = {name: groups for name, groups in found.items() if groups is not None}
        if not known:
            if graph.possible:
                words = f"{other.name} is free text, taken at the detail of the file"
                return Held(np.arange(node.size), False, (words,))
            return Held(None, False, (relation.reason,))
        told = reduce(meet, known.values())
        words = f"{other.name} is free text, taken as coded into {', '.join(known)}"
        return Held(told, is_discrete(told), (words,))
    if not relation.resolved:
        if graph.possible:  # nobody has said how they go together: at most as the file has it
            words = f"{relation.reason}; taken at the detail of the file until decided"
            return Held(np.arange(node.size), False, (words,))
        return Held(None, False, (relation.reason,))
    pairs = relation.left, relation.right
    groups, _ = overlap_groups(node, other, pairs, apart=graph.possible)
    because = [relation_words(node.name, coding, relation)]
    because += counterparts(node, other, relation.left)
    exact = relation.exact and all_matched(node, other, relation)
    return Held(groups, exact, tuple(because))


def tells(column: TargetColumn, held: Held) -> bool:
    """Tell whether a holder can tell any answers apart."""
    return held.groups is not None and informative_groups(column.node, held.groups) > 1


class VariableMaker:
    """Makes the key variables of one answer; a coding to be minted has one name in it."""

    def __init__(self, graph: CodingGraph) -> None:
        self.graph = graph
        self.taken: dict[str, set[str]] = {}
        self.minted: dict[tuple[str, bytes], str] = {}

    def held(
        self,
        column: TargetColumn,
        codings: Sequence[str],
        because: Callable[[Held], Iterable[str]],
        *,
        holders: int = 1,
        of: int = 1,
        antichain: Sequence[str] = (),
    ) -> KeyVariable | Absent | None:
        """Make the variable of a column held in some codings; None if they join to one category."""
        held = held_by(self.graph, column, codings)
        if held.groups is None:
            return column.absent(f"unresolved: {held.reason}")
        if not tells(column, held):
            return None
        return self.make(
            column,
            held.groups,
            holders=holders,
            of=of,
            exact=held.exact,
            antichain=antichain,
            because=because(held),
            codings=codings,
        )

    def make(
        self,
        column: TargetColumn,
        groups: Ints,
        *,
        holders: int,
        of: int,
        exact: bool,
        because: Iterable[str],
        antichain: Sequence[str] = (),
        codings: Sequence[str] = (),
        near: Sequence[str] = (),
    ) -> KeyVariable:
        """Make the key variable of a column at a partition of its categories.

        `codings` are those in which one holder has it; `near` others that may be its coding.
        """
        name, stored = self.name(column, groups, (*codings, *near))
        own, above = column.node.name, name if stored and name != column.node.name else None
        labels = self._labels(column, groups, above)
        kept = partition_entropy(groups, column.weights)
        whole = partition_entropy(np.arange(column.node.size), column.weights)
        told = [*because]
        if above is not None:
            told.append(f"the target goes up {climb(self.graph, own, above, column.as_of)}")
        return KeyVariable(
            construct=column.node.construct,
            column=column.name,
            target_coding=own,
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
            explanation=(
                *told,
                *merges(column.node, groups, labels),
                *special(column.node, groups),
            ),
            codings=tuple(codings),
        )

    def name(
        self, column: TargetColumn, groups: Ints, codings: Sequence[str] = ()
    ) -> tuple[str, bool]:
        """Return the stored coding with these groups, or the name it would be minted under.

        `codings` are some in which it is held: one of them may be the coding itself.
        """
        node, key = column.node, groups.tobytes()
        if is_discrete(groups):
            return node.name, True
        stored = self.graph.remembered(_stored_above, node, column.as_of).get(key)
        # One coding that is held goes by the name of the join, as `environment join` tells it.
        if stored is None or len(codings) == 1:
            joins = (
                self.graph.remembered(_stored_join, node, one, column.as_of) for one in codings
            )
            stored = next((name for name, known in joins if name and known == key), stored)
        if stored is not None:
            return stored, True
        if (node.name, key) not in self.minted:
            letters = node.construct
            if letters not in self.taken:
                self.taken[letters] = {n for n in self.graph.names if n.startswith(letters)}
            taken = self.taken[letters]
            name = next_name(letters, group_count(groups), harmonised=True, taken=taken)
            taken.add(name)
            self.minted[node.name, key] = name
        return self.minted[node.name, key], False

    def _labels(self, column: TargetColumn, groups: Ints, stored: str | None) -> tuple[str, ...]:
        labels = group_labels(column.node, groups)
        if stored is None:
            return labels
        function = self.graph.mapping(column.node.name, stored, as_of=column.as_of)
        firsts = np.unique(groups, return_index=True)[1]
        if function is None:  # known by their overlap, not by a map
            join = self.graph.join(column.node.name, stored, as_of=column.as_of)
            return tuple(join.labels[k] for k in join.groups_left[firsts].tolist())
        names = self.graph.node(stored).labels
        return tuple(
            names[c] if c >= 0 else labels[k] for k, c in enumerate(function[firsts].tolist())
        )


def _stored_join(
    graph: CodingGraph, node: Node, coding: str, as_of: Day
) -> tuple[str | None, bytes]:
    """Return the stored coding that a join is, and its groups of the target's categories."""
    if graph.node(coding).size > MOST or node.size > MOST:
        return None, b""
    found = graph.join(node.name, coding, as_of=as_of)
    return (found.coding, canonical(found.groups_left).tobytes()) if found.stored else (None, b"")


def _stored_above(graph: CodingGraph, node: Node, as_of: Day) -> dict[bytes, str]:
    """Return the coding above a target's for each partition that one has."""
    above = graph.ancestors(node.name, as_of=as_of)
    found: dict[bytes, str] = {}
    for name in sorted(above, key=lambda name: (graph.node(name).size, name)):
        function = graph.mapping(node.name, name, as_of=as_of)
        assert function is not None
        found.setdefault(as_partition(node, function).tobytes(), name)
    return found


def map_columns(
    graph: CodingGraph,
    kind: MappingKind,
    target: Target,
    against: str,
    weights: ColumnWeights | None,
    find: Callable[[VariableMaker, TargetColumn], KeyVariable | Absent],
    *,
    forms: int = 1,
    threshold: float = 0.0,
    needed: int = 1,
    identifiers: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
) -> KeyMapping:
    """Map a target column by column; `find` says what the others hold of each."""
    columns, absent = columns_of(graph, target, weights)
    maker = VariableMaker(graph)
    found = [find(maker, column) for column in columns]
    return KeyMapping(
        kind,
        target.name,
        against,
        forms,
        threshold,
        needed,
        tuple(part for part in found if isinstance(part, KeyVariable)),
        (*absent, *(part for part in found if isinstance(part, Absent))),
        dict(identifiers or {}),
        notes,
    )
