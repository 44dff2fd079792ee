"""What holding a construct in some codings tells about a column of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from keyhole.core.names import quoted, shown
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.explanations import counterparts, relation_words
from keyhole.environment.codings.graph import CodingGraph, Day
from keyhole.environment.codings.groups import all_matched, informative_groups, overlap_groups
from keyhole.environment.codings.partitions import group_count, is_discrete, meet
from keyhole.environment.codings.weighing import Weights, category_weights
from keyhole.environment.mapping.products import product_groups
from keyhole.environment.model import Target
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

ColumnWeights = Mapping[str, Weights]


@dataclass(frozen=True, slots=True)
class Absent:
    """A column of the target that is not in the key, and why.

    `ruled_out` is the share of pairs of categories that cannot be the same person although
    the codings join to nothing (see `keyhole.environment.codings.crossing`), where known.
    `codings` are those in which it is held all the same: with others they may tell it.
    """

    column: str
    construct: str
    reason: str
    ruled_out: float | None = None
    codings: tuple[str, ...] = ()


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
