"""Public sources: how much effort each takes, and what an intruder with some resources gets.

Elliot, Mackey & Purdam (2011), "Operationalising the Accessibility of Formal Public Data",
Table 4: the ranks of mode, scope and cost of access add up to a resource index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from keyhole.core.marks import SPREAD
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import inexact
from keyhole.environment.mapping.holdings import (
    ColumnWeights,
    TargetColumn,
    VariableMaker,
    columns_of,
    held_by,
    tells,
)
from keyhole.environment.mapping.keys import Absent, KeyMapping, KeyVariable
from keyhole.environment.mapping.mapping import holder_names, identifiers_of
from keyhole.environment.model import Environment, Source, Target
from keyhole.environment.resources import resource_problems
from keyhole.environment.wording import require_none
from keyhole.errors import OptionError
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


Band = Literal["low", "low-medium", "high-medium"]


def resource_index(source: Source) -> int:
    """Add up the ranks of a source's mode, scope and cost of access.

    Examples
    --------
    >>> resource_index(Source("register", mode=1, scope=2, cost=1))
    4
    """
    return source.mode + source.scope + source.cost


def resource_band(index: int) -> Band:
    """Return the resource cost of an index: 3-4 low, 5-7 low-medium, 8 and more high-medium.

    Examples
    --------
    >>> [resource_band(index) for index in (3, 4, 5, 7, 8, 10)]
    ['low', 'low', 'low-medium', 'low-medium', 'high-medium', 'high-medium']
    """
    if index < 3:
        raise OptionError(f"a resource index must be 3 or more. Got {index} instead.")
    return "low" if index <= 4 else "low-medium" if index <= 7 else "high-medium"


@dataclass(frozen=True, slots=True)
class Reached:
    """A public source, what it takes, and whether an intruder's resources exceed that."""

    name: str
    index: int
    band: Band
    reached: bool


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey(Result):
    """What an intruder with some resources can know of a target from public sources."""

    resources: float
    sources: tuple[Reached, ...]
    mapping: Annotated[KeyMapping, SPREAD]

    @property
    def key(self) -> tuple[KeyVariable, ...]:
        """The key variables."""
        return self.mapping.key

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        return self.mapping.to_frame()

    def tables(self) -> list[Table]:
        """Return the sources and the key."""
        rows = [[s.name, str(s.index), s.band, "yes" if s.reached else "no"] for s in self.sources]
        note = "A source is reached if the resources exceed its index."
        title = f"Public sources with resources of {self.resources:g}"
        columns = ["source", "index", "resource cost", "reached"]
        return [Table(title, columns, rows, [note]), *self.mapping.tables()]


def map_public(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    resources: float,
    weights: ColumnWeights | None = None,
) -> PublicKey:
    """Map a target against the public sources that an intruder's resources exceed.

    Parameters
    ----------
    target
        By name, or as it is.
    resources
        On the scale of the resource index (3 to 10), from 0 to 100; a source is reached if its
        index lies strictly below.
    weights
        For columns of the target, how many people are in each category (by code).

    Notes
    -----
    Several sources that are reached are taken together: the intruder can link them (the
    worst case) and knows what any of them tells.
    """
    require_none(resource_problems(resources), OptionError)
    graph = CodingGraph.of(environment)
    aim = graph.target(target)
    ordered = sorted(graph.environment.sources, key=lambda s: (resource_index(s), s.name))
    sources = [s for s in ordered if resources > resource_index(s)]
    table = tuple(
        Reached(s.name, resource_index(s), resource_band(resource_index(s)), s in sources)
        for s in ordered
    )
    return PublicKey(resources, table, _mapping(graph, aim, sources, resources, weights))


def _mapping(
    graph: CodingGraph,
    aim: Target,
    sources: Sequence[Source],
    resources: float,
    weights: ColumnWeights | None,
) -> KeyMapping:
    columns, absent = columns_of(graph, aim, weights)
    maker, key = VariableMaker(graph), list[KeyVariable]()
    for column in columns:
        found = _variable(graph, maker, column, sources)
        (key if isinstance(found, KeyVariable) else absent).append(found)  # type: ignore[arg-type]
    note = "Sources are taken together: whoever can link them knows what any of them tells."
    return KeyMapping(
        "public",
        aim.name,
        f"public sources below resources of {resources:g}",
        len(sources),
        0.0,
        1,
        tuple(key),
        tuple(absent),
        identifiers_of(sources),
        (note,) if len(sources) > 1 else (),
    )


def _variable(
    graph: CodingGraph, maker: VariableMaker, column: TargetColumn, sources: Sequence[Source]
) -> KeyVariable | Absent:
    construct = column.node.construct
    having = [source for source in sources if construct in graph.asked(source)]
    if not having:
        reason = "no source is reached" if not sources else "no source that is reached has it"
        return Absent(column.name, construct, reason)
    codings = sorted({name for source in having for name in graph.asked(source)[construct]})
    held = held_by(graph, column, codings)
    if held.groups is None:
        return Absent(column.name, construct, f"unresolved: {held.reason}")
    if not tells(column, held):
        reason = "the sources' codings join to one category"
        return Absent(column.name, construct, reason, codings=tuple(codings))
    telling = [
        source
        for source in having
        if tells(column, held_by(graph, column, graph.asked(source)[construct]))
    ]
    because = [f"in {holder_names(telling or having, 5)}", *held.words, *inexact(held.exact)]
    return maker.make(
        column,
        held.groups,
        holders=len(telling),
        of=len(sources),
        exact=held.exact,
        because=because,
        codings=codings,
    )
