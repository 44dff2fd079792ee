"""Keys of a target: what holding a construct in some codings tells about its columns.

A key has the columns of the target that others hold too, each at the detail at which they do;
what is not in the key says why.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN
from keyhole.core.names import plural, quoted, shown
from keyhole.core.tables import Table
from keyhole.environment.codings import partitions
from keyhole.environment.codings.categories import Node, Weights, category_weights, next_name
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.joins import climb, group_names, partition_above, product_groups
from keyhole.environment.codings.relations import Day
from keyhole.environment.model import Target
from keyhole.environment.wording import frame_of, short
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, share

MappingKind = Literal["pair", "class", "public", "stages"]
ColumnWeights = Mapping[str, Weights]
# Joins of larger codings are not looked up by name.
MOST = 2_000


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """One column of the target and the coding at which others hold it too.

    ``groups`` gives for each category of the target's coding the number of its group, ``labels``
    name the groups. ``coding`` has these groups; it is to be minted unless ``stored``. ``entropy``
    is in bits, ``lost`` what harmonising took. ``explanation`` says which forms, which path up the
    graph, which categories merged; ``codings`` are those in which it is held, where one holder has
    them all.
    """

    construct: str
    column: str
    target_coding: str
    coding: str
    stored: bool
    groups: tuple[int, ...]
    labels: tuple[str, ...]
    entropy: float
    lost: float
    holders: int
    of: int
    antichain: tuple[str, ...] = ()
    exact: bool = True
    explanation: tuple[str, ...] = ()
    codings: tuple[str, ...] = ()

    @property
    def target_categories(self) -> int:
        """How many categories the target's coding has."""
        return len(self.groups)

    @property
    def categories(self) -> int:
        """How many groups of them are told apart."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Absent:
    """A column of the target that is not in the key, and why.

    `ruled_out` is the share of pairs of categories that cannot be the same person although the
    codings join to nothing, `codings` those in which it is held: with others they may tell it.
    """

    column: str
    construct: str
    reason: str
    ruled_out: float | None = None
    codings: tuple[str, ...] = ()


Part = KeyVariable | Absent


@dataclass(frozen=True, slots=True)
class Undecided:
    """A field, or a coding, on which somebody should decide; it may tell more of the `column`."""

    form: str
    field: str
    column: str
    reason: str
    kind: str = "form"


@dataclass(frozen=True, slots=True)
class KeyBound:
    """A bound of a key: its columns, how many categories each has, how many hold it, its bits."""

    columns: tuple[str, ...] = ()
    variables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    bits: float = 0.0

    @classmethod
    def of(cls, mapping: KeyMapping) -> KeyBound:
        """Return the bound that a mapping is."""
        variables = {v.column: (len(v.labels), v.holders) for v in mapping.key}
        return cls(mapping.columns, variables, sum(v.entropy for v in mapping.key))


@dataclass(frozen=True, slots=True, repr=False)
class KeyMapping(Result):
    """The key variables of a target, at the detail at which others hold them.

    `key` is the upper answer, which counts what is undecided as asked; `lower` and `upper` are both
    in short, `undecided` the fields that make them differ, `surely` the lower answer whole where it
    is another. `against` says who the others are and `forms` how many; `needed` of them must hold a
    coding for the `threshold`. `identifiers` says how many hold each direct identifier.
    """

    kind: MappingKind
    target: str
    against: str
    forms: int
    threshold: float
    needed: int
    key: tuple[KeyVariable, ...]
    absent: tuple[Absent, ...]
    identifiers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lower: KeyBound = field(default_factory=KeyBound)
    upper: KeyBound = field(default_factory=KeyBound)
    undecided: tuple[Undecided, ...] = ()
    surely: Annotated[KeyMapping | None, HIDDEN] = None

    @property
    def settled(self) -> bool:
        """Whether the lower and the upper answer are the same."""
        return self.lower == self.upper

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(variable.column for variable in self.key)

    def variable(self, column: str) -> KeyVariable | None:
        """Return the key variable of a column, if it is in the key."""
        return next((v for v in self.key if v.column == column), None)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        names = {"column": str, "construct": str, "target_coding": str, "coding": str}
        sizes = {"stored": bool, "target_categories": int, "categories": int}
        figures = {"entropy": float, "lost": float, "holders": int, "of": int, "exact": bool}
        return frame_of(self.key, **names, **sizes, **figures)

    def tables(self) -> list[Table]:
        """Return the key, and what is not in it for which reason; see also `why`."""
        unit = " stages" if self.kind == "stages" else ""
        rows = [
            [
                short(v.column),
                v.coding if v.stored else f"{v.coding} (new)",
                f"{v.categories:,} of {v.target_categories:,}",
                share(v.entropy, 2),
                share(v.lost, 2),
                f"{v.holders:,} of {v.of:,}{unit}",
            ]
            for v in self.key
        ]
        notes = [*self.notes] if rows else ["The key is empty.", *self.notes]
        if not self.settled:
            sure = ", ".join(self.lower.columns) or "none"
            notes.append(
                f"Upper answer: undecided fields count as asked. Surely held: {sure} "
                f"({self.lower.bits:.2f} of {self.upper.bits:.2f} bits). Pending: "
                f"{plural(len(self.undecided), 'decision')} (environment waiting)."
            )
        if self.identifiers:
            held = ", ".join(f"{kind} ({count:,})" for kind, count in self.identifiers.items())
            notes.append(f"Direct identifiers held: {held}.")
        columns = ["column", "coding", "categories", "bits", "lost", "held by"]
        title = f"Key of {short(self.target)} against {self.against}"
        tables = [Table(title, columns, rows, notes)]
        reasons: dict[str, list[str]] = {}
        for part in self.absent:
            reasons.setdefault(part.reason, []).append(short(part.column))
        if reasons:
            rows = [[", ".join(names), reason] for reason, names in reasons.items()]
            tables.append(Table("Not in the key", ["columns", "reason"], rows))
        return tables

    def why(self) -> Table:
        """Return for each key variable which forms, which path up the graph, what merged."""
        rows = [[short(v.column), text] for v in self.key for text in v.explanation]
        return Table("Why", ["column", "because"], rows)


class MappedResult(Result):
    """A result with a mapping in it, whose key is its main table."""

    __slots__ = ()
    mapping: KeyMapping

    @property
    def key(self) -> tuple[KeyVariable, ...]:
        """The key variables."""
        return self.mapping.key

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        return self.mapping.to_frame()


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

    def tells(self, column: TargetColumn) -> bool:
        """Tell whether a holder can tell any answers apart."""
        found = self.groups
        return found is not None and partitions.informative_groups(column.node, found) > 1


def columns_of(
    graph: CodingGraph, target: Target, weights: ColumnWeights | None
) -> tuple[list[TargetColumn], list[Absent]]:
    """Return the columns of a target that can be mapped, and why the others cannot."""
    given = dict(weights or {})
    if unknown := [*given.keys() - {field.name for field in target.fields}]:
        told = f"target {shown(target.name)} has no column {quoted(sorted(unknown), 5)}."
        raise InputError(f"weights: {told}")
    columns, absent = [], []
    for field_ in target.fields:
        if field_.identifier is not None:
            reason = f"a direct identifier ({field_.identifier}): not to be released at all"
            absent.append(Absent(field_.name, "", reason))
        elif field_.coding is None:
            absent.append(Absent(field_.name, "", "its coding is not decided yet"))
        elif (node := graph.node(field_.coding)).open:
            text = f"{node.name} is {node.sort}: it has no categories to match"
            absent.append(Absent(field_.name, node.construct, text))
        else:
            weight = category_weights(node, given.get(field_.name))
            columns.append(TargetColumn(field_.name, node, weight, target.as_of))
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
    words = tuple(word for name in known or helds for word in helds[name].words)
    if not known and not told:
        return Held(None, False, words)
    groups = reduce(partitions.meet, [*known.values(), *told])
    if len(codings) > 1:
        words += (f"{' and '.join(codings)} are held together: what either reveals is known",)
    sure = len(known) == len(helds)
    if known and not partitions.is_discrete(groups):
        # Free text stands for what it can be coded into; any other coding for itself.
        coded = [one for name in known for one in graph.stand_ins(name, as_of=as_of)]
        listed = [one for one in coded if graph.overlap(node.name, one, as_of=as_of).resolved]
        product = product_groups(graph, node, listed, as_of, told)
        sure = product is not None and product[1] and listed == list(codings)
        finer = groups if product is None else partitions.meet(groups, product[0])
        if graph.possible and len(codings) > 1 and not (product and product[1]):
            # Nobody said which answers go together in all: as detailed as the file at most.
            finer = np.arange(node.size)
        if partitions.group_count(finer) > partitions.group_count(groups):
            words += ("they overlap: held together they reveal more than each by itself",)
        groups = finer
    return Held(groups, sure or partitions.is_discrete(groups), words)


def _held(graph: CodingGraph, node: Node, coding: str, as_of: Day) -> Held:
    other, whole = graph.node(coding), np.arange(node.size)
    if other.tells(node):
        return Held(whole, True, (f"{other.name} is an exact number",))
    relation = graph.overlap(node.name, coding, as_of=as_of)
    text = other.open and other.name != node.name
    if text:  # free text is taken for what it can be coded into
        names = graph.stand_ins(other.name, as_of=as_of)
        found = {name: graph.remembered(_held, node, name, as_of).groups for name in names}
        if known := {name: groups for name, groups in found.items() if groups is not None}:
            told = reduce(partitions.meet, known.values())
            words = f"{other.name} is free text, taken as coded into {', '.join(known)}"
            return Held(told, partitions.is_discrete(told), (words,))
    if text or not relation.resolved:
        if not graph.possible:
            return Held(None, False, (relation.reason,))
        # The upper answer: what nobody has compared is as detailed as the file at most.
        words = f"{relation.reason}; taken at the detail of the file until decided"
        return Held(whole, False, (words,))
    groups, _ = relation.groups(apart=graph.possible)
    return Held(groups, relation.exact and relation.matched, tuple(relation.words(sides=1)))


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
        because: Sequence[str],
        whose: str,
        **more: Any,
    ) -> Part:
        """Make the variable of a column that somebody holds in some codings, or say why not."""
        found, own, graph = held_by(self.graph, column, codings), column.node, self.graph
        if found.groups is None:
            return column.absent(f"unresolved: {'; '.join(found.words)}")
        if found.tells(column):
            told = [*because, *found.words, *partitions.inexact(found.exact)]
            more |= {"because": told, "codings": codings, "exact": found.exact}
            return self.make(column, found.groups, **more)
        reason = f"{own.name} and {' and '.join(codings)} of {whose} join to one category"
        shares = [graph.overlap(own.name, c, as_of=column.as_of).ruled_out for c in codings]
        most = max((share for share in shares if share is not None), default=None)
        if most:
            reason += f"; yet {most:.0%} of the pairs are ruled out (compatibility)"
        return column.absent(reason, most, tuple(codings))

    def make(
        self,
        column: TargetColumn,
        groups: Ints,
        *,
        exact: bool,
        because: Iterable[str],
        holders: int = 1,
        of: int = 1,
        antichain: Sequence[str] = (),
        codings: Sequence[str] = (),
        near: Sequence[str] = (),
    ) -> KeyVariable:
        """Make the variable of a column at a partition; `near` may be its coding too."""
        graph, node, day, told = self.graph, column.node, column.as_of, [*because]
        name, stored = self.name(column, groups, (*codings, *near))
        labels = group_names(graph, [(node, groups)], name if stored else None, day)
        if stored and name != node.name:
            if not graph.refines(node.name, name, as_of=day):  # known by their overlap, not a map
                join, firsts = graph.join(node.name, name, as_of=day), np.unique(groups, True)[1]
                labels = tuple(join.labels[k] for k in join.groups_left[firsts].tolist())
            told.append(f"the target is made coarser: {climb(graph, node.name, name, day)}")
        kept = partitions.partition_entropy(groups, column.weights)
        whole = partitions.partition_entropy(np.arange(node.size), column.weights)
        return KeyVariable(
            *(node.construct, column.name, node.name, name, stored, tuple(groups.tolist()), labels),
            *(kept, max(whole - kept, 0.0), holders, of, tuple(antichain) or (name,), exact),
            (*told, *partitions.merges(node, groups, labels)),
            tuple(codings),
        )

    def name(self, column: TargetColumn, groups: Ints, codings: Sequence[str]) -> tuple[str, bool]:
        """Return the stored coding with these groups, or the name it would be minted under."""
        node, key = column.node, groups.tobytes()
        if partitions.is_discrete(groups):
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
            letters, size = node.construct, partitions.group_count(groups)
            of_it = {name for name in self.graph.names if name.startswith(letters)}
            taken = self.taken.setdefault(letters, of_it)
            self.minted[node.name, key] = next_name(letters, size, harmonised=True, taken=taken)
            taken.add(self.minted[node.name, key])
        return self.minted[node.name, key], False


def _stored_join(
    graph: CodingGraph, node: Node, coding: str, as_of: Day
) -> tuple[str | None, bytes]:
    """Return the stored coding that a join is, and its groups of the target's categories."""
    if max(graph.node(coding).size, node.size) <= MOST:
        found = graph.join(node.name, coding, as_of=as_of)
        if found.stored:
            return found.coding, partitions.canonical(found.groups_left).tobytes()
    return None, b""


def _stored_above(graph: CodingGraph, node: Node, as_of: Day) -> dict[bytes, str]:
    """Return the coding above a target's for each partition that one has."""
    names = graph.ancestors(node.name, as_of=as_of)
    finest = sorted(names, key=lambda name: (graph.node(name).size, name), reverse=True)
    return {partition_above(graph, node, name, as_of): name for name in finest}


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Those against whom a target is mapped; `find` says what they hold of each column."""

    kind: MappingKind
    words: str
    find: Callable[[VariableMaker, TargetColumn], Part]
    forms: int = 1
    threshold: float = 0.0
    needed: int = 1
    identifiers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def settled(graph: CodingGraph, *, upper: bool) -> CodingGraph:
    """Return a graph that answers by itself: once, as the lower or the upper bound."""
    made = copy.copy(graph)
    made.settled, made.possible = True, upper
    made.memory = {} if upper else graph.memory
    return made


def bounded(
    graph: CodingGraph,
    target: str | Target,
    weights: ColumnWeights | None,
    against: Callable[[CodingGraph], Holders],
) -> KeyMapping:
    """Map a target against holders with what may be asked, and tell beside it what surely is."""
    from keyhole.environment.mapping.undecided import possible

    if graph.settled:
        aim, others, maker = graph.find(Target, target), against(graph), VariableMaker(graph)
        columns, absent = columns_of(graph, aim, weights)
        found = [others.find(maker, column) for column in columns]
        key = tuple(part for part in found if isinstance(part, KeyVariable))
        absent += [part for part in found if isinstance(part, Absent)]
        who = others.kind, aim.name, others.words, others.forms, others.threshold, others.needed
        return KeyMapping(*who, key, tuple(absent), others.identifiers, others.notes)
    sure = settled(graph, upper=False)
    lower = bounded(sure, target, weights, against)
    may = possible(graph, target)
    open_codings = [part for part in lower.absent if part.reason.startswith("unresolved")]
    # Codings of which each by itself tells nothing may tell something together.
    together = any(len(part.codings) > 1 for part in lower.absent)
    loose = together or any(not variable.exact for variable in lower.key)
    if not (may.fields or open_codings or loose):
        bound = KeyBound.of(lower)
        return replace(lower, lower=bound, upper=bound)
    named = target if isinstance(target, str) else may.target
    upper = bounded(may.graph, named, weights, against)
    below, above = KeyBound.of(lower), KeyBound.of(upper)
    changed = {name for name, size in above.variables.items() if size != below.variables.get(name)}
    told = [one for one in may.fields if one.column in changed]
    reasons = {part.column: part.reason.removeprefix("unresolved: ") for part in open_codings}
    known = {one.column for one in told}
    for variable in upper.key:  # codings on which somebody should decide
        column, words = variable.column, "what some forms hold of it"
        if column in reasons:
            told.append(Undecided("", "", column, reasons[column], "coding"))
        elif column in changed - known:
            words = f"{words} is known only in part: tie their codings to {variable.target_coding}"
            told.append(Undecided("", "", column, words, "coding"))
    return replace(upper, lower=below, upper=above, undecided=tuple(told), surely=lower)


def upper_graph(graph: CodingGraph, target: str | Target) -> tuple[CodingGraph, Target]:
    """Return the graph of the upper answer, and the target as it is there."""
    from keyhole.environment.mapping.undecided import possible

    return (graph, graph.find(Target, target)) if graph.settled else possible(graph, target)[:2]
