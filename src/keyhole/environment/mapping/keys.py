"""Keys of a target: what holding a construct in some codings tells about its columns.

A key has the columns of the target that others hold too, each at the detail at which they do;
what is not in the key says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from keyhole.core.marks import HIDDEN
from keyhole.core.names import plural, quoted, shown
from keyhole.core.tables import Table
from keyhole.environment.codings import partitions
from keyhole.environment.codings.categories import Node, Weights, category_weights, next_name
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.joins import climb
from keyhole.environment.codings.relations import Day
from keyhole.environment.mapping.products import product_groups
from keyhole.environment.model import Target
from keyhole.environment.wording import frame_of, short
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl

MappingKind = Literal["pair", "class", "public", "stages"]
ColumnWeights = Mapping[str, Weights]
# Joins of larger codings are not looked up by name.
MOST = 2_000


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """One column of the target and the coding at which others hold it too.

    ``groups`` gives, for each category of the target's coding in its order (intervals
    first), the number of the group it falls into; ``labels`` names the groups. ``coding``
    is the name of the stored coding with these groups, or of the one to be minted
    (``stored`` is false then). ``entropy`` is in bits, ``lost`` what harmonising took.
    ``explanation`` says which forms, which path up the graph, which categories merged;
    ``codings`` are those in which it is held, where one holder has them all.
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

    `ruled_out` is the share of pairs of categories that cannot be the same person although
    the codings join to nothing (see `keyhole.environment.compatibility`), where known.
    `codings` are those in which it is held all the same: with others they may tell it.
    """

    column: str
    construct: str
    reason: str
    ruled_out: float | None = None
    codings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Undecided:
    """A field of a form, source or target, or a coding, on which somebody should decide.

    `column` is the column of the target of which it may tell more.
    """

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

    `key` is the upper answer, which counts what is undecided as asked; `lower` and `upper` are
    both in short, and `undecided` the fields that make them differ. `surely` is the lower answer
    whole, where it is another.

    `against` says in words who the others are and `forms` how many; `needed` is how many of
    them must hold a coding for the `threshold` asked for. `identifiers` are the direct
    identifiers they hold, with how many hold each.
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
    for field_ in target.fields:
        node = None if field_.coding is None else graph.node(field_.coding)
        if field_.identifier is not None:
            reason = f"a direct identifier ({field_.identifier}): not to be released at all"
            absent.append(Absent(field_.name, "", reason))
        elif node is None:
            absent.append(Absent(field_.name, "", "nobody has said yet which coding it has"))
        elif node.open:
            sort = "a number without bounds" if node.exact else "free text"
            text = f"{node.name} is {sort}: it has no categories to match"
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
    if not known and not told:
        return Held(None, False, tuple(word for held in helds.values() for word in held.words))
    groups = reduce(partitions.meet, [*known.values(), *told])
    words = [word for name in known for word in helds[name].words]
    if len(codings) > 1:
        words.append(f"{' and '.join(codings)} are held together: what either tells is known")
    if partitions.is_discrete(groups) or not known:
        return Held(
            groups, len(known) == len(helds) or partitions.is_discrete(groups), tuple(words)
        )
    listed = []
    for name in known:
        # Free text stands for what it can be coded into; of any other coding the overlap is known.
        coded = graph.stand_ins(name, as_of=as_of) if graph.node(name).open else [name]
        listed += [one for one in coded if graph.overlap(node.name, one, as_of=as_of).resolved]
    product = product_groups(graph, node, listed, as_of, told)
    finer = groups if product is None else partitions.meet(groups, product[0])
    if partitions.group_count(finer) > partitions.group_count(groups):
        words.append("they cut each other: held together they tell more than each alone")
    sure = product is not None and product[1] and listed == list(codings)
    return Held(finer, sure or partitions.is_discrete(finer), tuple(words))


def _held(graph: CodingGraph, node: Node, coding: str, as_of: Day) -> Held:
    other = graph.node(coding)
    relation = graph.overlap(node.name, coding, as_of=as_of)

    def unknown(words: str) -> Held:
        """Take what nobody has compared as the file has it, at most: the upper answer."""
        if graph.possible:
            return Held(np.arange(node.size), False, (words,))
        return Held(None, False, (relation.reason,))

    if other.tells(node):
        words = f"{other.name} is a number as exact as it is written"
        return Held(np.arange(node.size), True, (words,))
    if other.open and other.name != node.name:  # free text is taken for what it can be coded into
        names = graph.stand_ins(other.name, as_of=as_of)
        found = {name: graph.remembered(_held, node, name, as_of).groups for name in names}
        known = {name: groups for name, groups in found.items() if groups is not None}
        if known:
            told = reduce(partitions.meet, known.values())
            words = f"{other.name} is free text, taken as coded into {', '.join(known)}"
            return Held(told, partitions.is_discrete(told), (words,))
        return unknown(f"{other.name} is free text, taken at the detail of the file")
    if not relation.resolved:
        return unknown(f"{relation.reason}; taken at the detail of the file until decided")
    pairs = relation.left, relation.right
    groups, _ = partitions.overlap_groups(node, other, pairs, apart=graph.possible)
    exact = relation.exact and partitions.all_matched(node, other, relation)
    return Held(groups, exact, tuple(partitions.relation_words(node, other, relation, sides=1)))


def tells(column: TargetColumn, held: Held) -> bool:
    """Tell whether a holder can tell any answers apart."""
    return held.groups is not None and partitions.informative_groups(column.node, held.groups) > 1


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
        **more: Any,
    ) -> KeyVariable | Absent | None:
        """Make the variable of a column held in some codings; None if they join to one category."""
        held = held_by(self.graph, column, codings)
        if held.groups is None:
            return column.absent(f"unresolved: {'; '.join(held.words)}")
        if not tells(column, held):
            return None
        more |= {"because": because(held), "codings": codings}
        return self.make(column, held.groups, exact=held.exact, **more)

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
        """Make the key variable of a column at a partition of its categories.

        `codings` are those in which one holder has it; `near` others that may be its coding.
        """
        node = column.node
        name, stored = self.name(column, groups, (*codings, *near))
        labels, told = partitions.group_labels(node, groups), [*because]
        if stored and name != node.name:
            function = self.graph.mapping(node.name, name, as_of=column.as_of)
            firsts = np.unique(groups, return_index=True)[1]
            if function is None:  # known by their overlap, not by a map
                join = self.graph.join(node.name, name, as_of=column.as_of)
                labels = tuple(join.labels[k] for k in join.groups_left[firsts].tolist())
            else:
                names, own = self.graph.node(name).labels, enumerate(function[firsts].tolist())
                labels = tuple(names[c] if c >= 0 else labels[k] for k, c in own)
            told.append(f"the target goes up {climb(self.graph, node.name, name, column.as_of)}")
        kept = partitions.partition_entropy(groups, column.weights)
        whole = partitions.partition_entropy(np.arange(node.size), column.weights)
        return KeyVariable(
            construct=node.construct,
            column=column.name,
            target_coding=node.name,
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
            explanation=(*told, *partitions.merges(node, groups, labels)),
            codings=tuple(codings),
        )

    def name(
        self, column: TargetColumn, groups: Ints, codings: Sequence[str] = ()
    ) -> tuple[str, bool]:
        """Return the stored coding with these groups, or the name it would be minted under.

        `codings` are some in which it is held: one of them may be the coding itself.
        """
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
            letters = node.construct
            if letters not in self.taken:
                self.taken[letters] = {n for n in self.graph.names if n.startswith(letters)}
            taken = self.taken[letters]
            name = next_name(letters, partitions.group_count(groups), harmonised=True, taken=taken)
            taken.add(name)
            self.minted[node.name, key] = name
        return self.minted[node.name, key], False


def _stored_join(
    graph: CodingGraph, node: Node, coding: str, as_of: Day
) -> tuple[str | None, bytes]:
    """Return the stored coding that a join is, and its groups of the target's categories."""
    if graph.node(coding).size > MOST or node.size > MOST:
        return None, b""
    found = graph.join(node.name, coding, as_of=as_of)
    return (
        (found.coding, partitions.canonical(found.groups_left).tobytes())
        if found.stored
        else (None, b"")
    )


def _stored_above(graph: CodingGraph, node: Node, as_of: Day) -> dict[bytes, str]:
    """Return the coding above a target's for each partition that one has."""
    above = graph.ancestors(node.name, as_of=as_of)
    found: dict[bytes, str] = {}
    for name in sorted(above, key=lambda name: (graph.node(name).size, name)):
        function = graph.mapping(node.name, name, as_of=as_of)
        assert function is not None
        found.setdefault(partitions.as_partition(node, function).tobytes(), name)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Those against whom a target is mapped; `find` says what they hold of each column."""

    kind: MappingKind
    words: str
    find: Callable[[VariableMaker, TargetColumn], KeyVariable | Absent]
    forms: int = 1
    threshold: float = 0.0
    needed: int = 1
    identifiers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def map_columns(
    graph: CodingGraph, target: Target, weights: ColumnWeights | None, others: Holders
) -> KeyMapping:
    """Map a target column by column."""
    columns, absent = columns_of(graph, target, weights)
    maker = VariableMaker(graph)
    found = [others.find(maker, column) for column in columns]
    key = tuple(part for part in found if isinstance(part, KeyVariable))
    absent += [part for part in found if isinstance(part, Absent)]
    who = others.kind, target.name, others.words, others.forms, others.threshold, others.needed
    return KeyMapping(*who, key, tuple(absent), others.identifiers, others.notes)
