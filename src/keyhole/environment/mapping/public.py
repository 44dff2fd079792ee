"""Public sources: how much effort each takes, and what an intruder with some resources gets.

Elliot, Mackey & Purdam (2011), "Operationalising the Accessibility of Formal Public Data",
Table 4: the ranks of mode, scope and cost of access add up to a resource index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from keyhole.core.marks import SPREAD
from keyhole.core.names import quoted
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import inexact
from keyhole.environment.mapping.holdings import (
    ColumnWeights,
    TargetColumn,
    VariableMaker,
    held_by,
    map_columns,
    tells,
)
from keyhole.environment.mapping.keys import Absent, KeyMapping, KeyVariable, MappedResult
from keyhole.environment.mapping.mapping import identifiers_of
from keyhole.environment.model import Environment, Source, Target
from keyhole.environment.resources import resource_problems
from keyhole.environment.wording import require_none
from keyhole.errors import OptionError

Band = Literal["low", "low-medium", "high-medium"]


def resource_index(source: Source) -> int:
    """Add up the ranks of a source's mode, scope and cost of access."""
    return source.mode + source.scope + source.cost


def resource_band(index: int) -> Band:
    """Return the resource cost of an index: 3-4 low, 5-7 low-medium, 8 and more high-medium."""
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
class PublicKey(MappedResult):
    """What an intruder with some resources can know of a target from public sources."""

    resources: float
    sources: tuple[Reached, ...]
    mapping: Annotated[KeyMapping, SPREAD]

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
    note = "Sources are taken together: whoever can link them knows what any of them tells."
    mapping = map_columns(
        graph,
        "public",
        aim,
        f"public sources below resources of {resources:g}",
        weights,
        lambda maker, column: _variable(maker, column, sources),
        forms=len(sources),
        identifiers=identifiers_of(sources),
        notes=(note,) if len(sources) > 1 else (),
    )
    return PublicKey(resources, table, mapping)


def _variable(
    maker: VariableMaker, column: TargetColumn, sources: Sequence[Source]
) -> KeyVariable | Absent:
    graph, construct = maker.graph, column.node.construct
    asked = {s.name: graph.asked(s)[construct] for s in sources if construct in graph.asked(s)}
    if not asked:
        return column.absent(
            "no source that is reached has it" if sources else "no source is reached"
        )
    codings = sorted({name for names in asked.values() for name in names})
    telling = [one for one, names in asked.items() if tells(column, held_by(graph, column, names))]
    names = quoted(sorted(telling or asked), 5)
    found = maker.held(
        column,
        codings,
        lambda held: [f"in {names}", *held.words, *inexact(held.exact)],
        holders=len(telling),
        of=len(sources),
    )
    if found is None:
        reason = "the sources' codings join to one category"
        return column.absent(reason, None, tuple(codings))
    return found
