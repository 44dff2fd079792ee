"""Building up a key in stages: restricted and public sources together, and what the public add.

Elliot, Mackey & Purdam (2011): "a multi stage process involving what public information
could potentially be combined with what restricted access information".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from keyhole.core.marks import HIDDEN, SPREAD, figure
from keyhole.core.names import shown
from keyhole.core.options import Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.groups import inexact
from keyhole.environment.codings.partitions import is_discrete
from keyhole.environment.mapping.holdings import (
    ColumnWeights,
    TargetColumn,
    VariableMaker,
    held_by,
    map_columns,
    tells,
)
from keyhole.environment.mapping.keys import Absent, KeyMapping, KeyVariable, MappedResult
from keyhole.environment.mapping.mapping import commonest, map_restricted
from keyhole.environment.mapping.public import PublicKey, map_public
from keyhole.environment.model import Environment, Target
from keyhole.environment.options import (
    ClassOption,
    FormName,
    PurposeOption,
    ResourcesOption,
    SectorOption,
    StorePlace,
    TargetName,
    ThresholdOption,
)
from keyhole.errors import InputError
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, repr=False)
class StagedKey(MappedResult):
    """What an intruder knows who holds the sources of all stages and can link them."""

    stages: tuple[KeyMapping, ...]
    mapping: Annotated[KeyMapping, SPREAD]

    def tables(self) -> list[Table]:
        """Return the bits that each stage tells of each column, and the key."""
        names = [f"stage {i + 1}" for i in range(len(self.stages))]
        rows = [
            [v.column, *(_bits(part.variable(v.column)) for part in (*self.stages, self.mapping))]
            for v in self.key
        ]
        notes = [f"Stage {i + 1}: {stage.against}." for i, stage in enumerate(self.stages)]
        title = f"Bits known of {self.mapping.target}, by stage"
        stages = Table(title, ["column", *names, "together"], rows, notes)
        return [stages, *self.mapping.tables()]


def _bits(variable: KeyVariable | None) -> str:
    return "" if variable is None else share(variable.entropy, 2)


def combine_keys(
    environment: Environment | CodingGraph,
    target: str | Target,
    stages: Sequence[KeyMapping],
    *,
    weights: ColumnWeights | None = None,
) -> StagedKey:
    """Combine the keys of several stages for one target.

    Parameters
    ----------
    target
        By name, or as it is.
    stages
        Answers of `map_pair`, `map_class` or `map_public` (its ``mapping``) for this target.
    weights
        For columns of the target, how many people are in each category (by code).

    Notes
    -----
    An intruder who holds two sources and can link them (the worst case) knows what the product
    of their codings tells of the target's categories: at least the meet of their partitions.
    Of a class of forms the partition is taken that enough of them hold.
    """
    graph = CodingGraph.of(environment)
    aim = graph.target(target)
    strange = [stage.target for stage in stages if stage.target != aim.name]
    if strange or not stages:
        raise InputError(
            f"stages must be answers for target {shown(aim.name)}. Got others or none."
        )
    identifiers: Counter[str] = Counter()
    for stage in stages:
        identifiers.update(stage.identifiers)
    mapping = map_columns(
        graph,
        "stages",
        aim,
        "; then ".join(stage.against for stage in stages),
        weights,
        lambda maker, column: _together(maker, column, stages),
        forms=sum(stage.forms for stage in stages),
        identifiers=commonest(identifiers),
        notes=("The worst case: whoever holds the sources of all stages can link them.",),
    )
    return StagedKey(tuple(stages), mapping)


def _together(
    maker: VariableMaker, column: TargetColumn, stages: Sequence[KeyMapping]
) -> KeyVariable | Absent:
    """Return a column at what all stages tell of it together."""
    parts: list[KeyVariable | Absent] = []
    for stage in stages:
        parts += [variable for variable in stage.key if variable.column == column.name]
        parts += [absent for absent in stage.absent if absent.column == column.name]
    having = [part for part in parts if isinstance(part, KeyVariable)]
    if any(variable.target_coding != column.node.name for variable in having):
        raise InputError(f"column {shown(column.name)} has another coding now than in the stages.")
    codings = tuple(sorted({name for part in parts for name in part.codings}))
    unnamed = [variable for variable in having if not variable.codings]
    told = [np.array(variable.groups, dtype=np.int64) for variable in unnamed]
    held = held_by(maker.graph, column, codings, told) if codings or told else None
    if held is None or held.groups is None or not tells(column, held):
        reasons = dict.fromkeys(part.reason for part in parts if isinstance(part, Absent))
        return column.absent("; ".join(reasons))
    sure = held.exact and all(variable.exact for variable in unnamed)
    exact = sure or is_discrete(held.groups)
    known = [(stage.against, stage.variable(column.name)) for stage in stages]
    because = [f"{against}: {v.coding}" for against, v in known if v is not None]
    holding = sum(isinstance(part, KeyVariable) or bool(part.codings) for part in parts)
    if len(having) < holding:
        because.append("codings that join to one category with the target's tell it together")
    return maker.make(
        column,
        held.groups,
        holders=holding,
        of=len(stages),
        exact=exact,
        because=[*because, *(inexact(exact) if len(having) > 1 else ())],
        codings=codings,
    )


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more is known of a column; `sources` are the public sources that have it."""

    column: str
    before: float
    after: float
    coding: str
    sources: tuple[str, ...]

    @property
    @figure()
    def gained(self) -> float:
        """The bits gained."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, repr=False)
class Enhancement(Result):
    """What public sources add to what a restricted form, or a class of forms, tells.

    `identifiers` are the direct identifiers that only the public sources have.
    """

    target: str
    against: str
    resources: float
    gains: tuple[Gain, ...]
    identifiers: tuple[str, ...]
    base: Annotated[KeyMapping, HIDDEN]
    public: Annotated[PublicKey, HIDDEN]
    mapping: Annotated[KeyMapping, HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column that public sources tell more about."""
        import polars as pl

        rows = [
            (g.column, g.before, g.after, g.gained, g.coding, list(g.sources)) for g in self.gains
        ]
        bits = {"before": float, "after": float, "gained": float}
        schema = {"column": str, **bits, "coding": str, "sources": list[str]}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the columns of which more is known, in bits."""
        rows = [
            [
                *(g.column, share(g.before, 2), share(g.after, 2), f"{g.gained:+.2f}"),
                *(g.coding, ", ".join(g.sources)),
            ]
            for g in self.gains
        ]
        title = f"What public sources add to {self.against}"
        notes = [f"Resources of {self.resources:g}; the intruder can link the sources."]
        if not rows:
            notes.insert(0, "They add nothing.")
        if self.identifiers:
            notes.append(f"Direct identifiers that only they have: {', '.join(self.identifiers)}.")
        columns = ["column", "bits before", "bits after", "gained", "coding", "sources"]
        return [Table(title, columns, rows, notes)]


@documented
def enhance(
    store: StorePlace,
    target: TargetName,
    *,
    resources: ResourcesOption,
    form: FormName | None = None,
    sector: SectorOption = None,
    purpose: PurposeOption = None,
    class_: ClassOption = None,
    threshold: ThresholdOption = 0.0,
    weights: ColumnWeights | None = None,
) -> Enhancement:
    """Find what public sources would add to what a form or class of forms holds."""
    bind(enhance, locals()).require()
    graph = CodingGraph.of(store)
    base = map_restricted(
        graph,
        target,
        form=form,
        sector=sector,
        purpose=purpose,
        classifications=class_,
        threshold=threshold,
        weights=weights,
    )
    public = map_public(graph, target, resources=resources, weights=weights)
    both = combine_keys(graph, target, [base, public.mapping], weights=weights).mapping
    added = tuple(sorted({*public.mapping.identifiers} - {*base.identifiers}))
    gains = _gains(graph, base, public, both)
    return Enhancement(
        base.target, base.against, public.resources, gains, added, base, public, both
    )


def enhance_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a form beside a class of forms."""
    if asked.form is not None and (asked.sector or asked.purpose or asked.class_):
        yield Problem("give either {form} or a class of forms, not both.")


def _gains(
    graph: CodingGraph, base: KeyMapping, public: PublicKey, both: KeyMapping
) -> tuple[Gain, ...]:
    reached = [graph.source(s.name) for s in public.sources if s.reached]
    out = []
    for variable in both.key:
        known = base.variable(variable.column)
        before = 0.0 if known is None else known.entropy
        # New detail may have no weight and no bits; it is a gain all the same.
        if known is None or len(known.labels) < len(variable.labels):
            names = [s.name for s in reached if variable.construct in graph.asked(s)]
            out.append(
                Gain(variable.column, before, variable.entropy, variable.coding, tuple(names))
            )
    return tuple(sorted(out, key=lambda gain: (-round(gain.gained, 9), gain.column)))
