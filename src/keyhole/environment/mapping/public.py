"""Public sources: what each takes to reach, what it tells, and what it adds to restricted ones.

Elliot, Mackey & Purdam (2011), "Operationalising the Accessibility of Formal Public Data",
Table 4: the ranks of mode, scope and cost of access add up to a resource index. A key is built up
in "a multi stage process involving what public information could potentially be combined with
what restricted access information".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.marks import SPREAD, figure
from keyhole.core.names import quoted, shown
from keyhole.core.options import Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.environment import options
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.partitions import inexact, is_discrete
from keyhole.environment.mapping import keys
from keyhole.environment.mapping.mapping import commonest, identifiers_of, map_restricted
from keyhole.environment.model import Environment, Source, Target
from keyhole.environment.scenarios.scenarios import resource_problems
from keyhole.environment.wording import frame_of, require_none
from keyhole.errors import InputError, OptionError
from keyhole.results import Result, share

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
class PublicKey(keys.MappedResult):
    """What an intruder with some resources can know of a target from public sources."""

    resources: float
    sources: tuple[Reached, ...]
    mapping: Annotated[keys.KeyMapping, SPREAD]

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
    weights: keys.ColumnWeights | None = None,
) -> PublicKey:
    """Map a target against the public sources that an intruder's resources exceed.

    `resources` are on the scale of the resource index (3 to 10), from 0 to 100; a source is
    reached if its index lies strictly below. `target` and `weights` are as in `map_class`.

    Notes
    -----
    Several sources that are reached are taken together: the intruder can link them (the
    worst case) and knows what any of them tells.
    """
    require_none(resource_problems(resources), OptionError)
    graph = CodingGraph.of(environment)
    indices = sorted((resource_index(s), s.name) for s in graph.environment.sources)
    table = tuple(Reached(name, i, resource_band(i), resources > i) for i, name in indices)
    note = "Sources are combined: whoever can link them knows what any of them holds."
    names = {source.name for source in table if source.reached}

    def against(graph: CodingGraph) -> keys.Holders:
        """Take the sources as this graph has them."""
        reached = [one for one in graph.environment.sources if one.name in names]
        return keys.Holders(
            "public",
            f"public sources below resources of {resources:g}",
            lambda maker, column: _variable(maker, column, reached),
            forms=len(reached),
            identifiers=identifiers_of(reached),
            notes=(note,) if len(reached) > 1 else (),
        )

    return PublicKey(resources, table, keys.bounded(graph, target, weights, against))


def _variable(
    maker: keys.VariableMaker, column: keys.TargetColumn, sources: Sequence[Source]
) -> keys.Part:
    graph, construct = maker.graph, column.node.construct
    every = {source.name: graph.asked(source).get(construct, ()) for source in sources}
    asked = {name: codings for name, codings in every.items() if codings}
    if not asked:
        return column.absent(f"no source {'that is reached has it' if sources else 'is reached'}")
    codings = sorted({name for names in asked.values() for name in names})
    telling = [s for s, held in asked.items() if keys.held_by(graph, column, held).tells(column)]
    because = [f"in {quoted(sorted(telling or asked), 5)}"]
    counts = {"holders": len(telling), "of": len(sources)}
    return maker.held(column, codings, because, "public sources", **counts)


@dataclass(frozen=True, slots=True, repr=False)
class StagedKey(keys.MappedResult):
    """What an intruder knows who holds the sources of all stages and can link them."""

    stages: tuple[keys.KeyMapping, ...]
    mapping: Annotated[keys.KeyMapping, SPREAD]

    def tables(self) -> list[Table]:
        """Return the bits that each stage tells of each column, and the key."""
        names = [f"stage {i + 1}" for i in range(len(self.stages))]
        rows = []
        for v in self.key:
            each = [stage.variable(v.column) for stage in self.stages]
            told = ["" if u is None else share(u.entropy, 2) for u in (*each, v)]
            rows.append([v.column, *told])
        notes = [f"Stage {i + 1}: {stage.against}." for i, stage in enumerate(self.stages)]
        title = f"Bits known of {self.mapping.target}, by stage"
        stages = Table(title, ["column", *names, "together"], rows, notes)
        return [stages, *self.mapping.tables()]


def combine_keys(
    environment: Environment | CodingGraph,
    target: str | Target,
    stages: Sequence[keys.KeyMapping],
    *,
    weights: keys.ColumnWeights | None = None,
) -> StagedKey:
    """Combine the keys of several stages for one target.

    `stages` are answers of `map_pair`, `map_class` or `map_public` (its ``mapping``) for this
    target; `target` and `weights` are as in `map_class`.

    Notes
    -----
    An intruder who holds two sources and can link them (the worst case) knows what the product
    of their codings tells of the target's categories: at least the meet of their partitions.
    Of a class of forms the partition is taken that enough of them hold.
    """
    graph = CodingGraph.of(environment)
    aim = graph.find(Target, target)
    strange = [stage.target for stage in stages if stage.target != aim.name]
    if strange or not stages:
        raise InputError(
            f"stages must be answers for target {shown(aim.name)}. Got others or none."
        )
    held = commonest(sum((Counter(stage.identifiers) for stage in stages), Counter[str]()))

    def against(graph: CodingGraph) -> keys.Holders:
        """Combine the upper or the lower answers of the stages."""
        parts = stages if graph.possible else [stage.surely or stage for stage in stages]
        return keys.Holders(
            "stages",
            "; then ".join(stage.against for stage in stages),
            lambda maker, column: _together(maker, column, parts),
            forms=sum(stage.forms for stage in stages),
            identifiers=held,
            notes=("The worst case: whoever holds the sources of all stages can link them.",),
        )

    return StagedKey(tuple(stages), keys.bounded(graph, target, weights, against))


def _together(
    maker: keys.VariableMaker, column: keys.TargetColumn, stages: Sequence[keys.KeyMapping]
) -> keys.Part:
    """Return a column at what all stages tell of it together."""
    every: list[keys.Part] = [variable for stage in stages for variable in stage.key]
    every += [part for stage in stages for part in stage.absent]
    parts = [part for part in every if part.column == column.name]
    having = [part for part in parts if isinstance(part, keys.KeyVariable)]
    if any(variable.target_coding != column.node.name for variable in having):
        raise InputError(f"column {shown(column.name)} has another coding now than in the stages.")
    codings = tuple(sorted({name for part in parts for name in part.codings}))
    unnamed = [variable for variable in having if not variable.codings]
    told = [np.array(variable.groups, dtype=np.int64) for variable in unnamed]
    held = keys.held_by(maker.graph, column, codings, told) if codings or told else None
    if held is None or held.groups is None or not held.tells(column):
        reasons = dict.fromkeys(part.reason for part in parts if isinstance(part, keys.Absent))
        return column.absent("; ".join(reasons))
    sure = held.exact and all(variable.exact for variable in unnamed)
    exact = sure or is_discrete(held.groups)
    each = [(stage.against, stage.variable(column.name)) for stage in stages]
    because = [f"{against}: {v.coding}" for against, v in each if v is not None]
    holding = sum(isinstance(part, keys.KeyVariable) or bool(part.codings) for part in parts)
    if len(having) < holding:
        because.append("codings that each join to one category determine it together")
    because += inexact(exact) if len(having) > 1 else ()
    counts: Any = {"holders": holding, "of": len(stages)}
    return maker.make(column, held.groups, exact=exact, because=because, codings=codings, **counts)


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

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column that public sources tell more about."""
        bits = {"before": float, "after": float, "gained": float}
        return frame_of(self.gains, column=str, **bits, coding=str, sources=list[str])

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
    store: options.StorePlace,
    target: options.TargetName,
    *,
    resources: options.ResourcesOption,
    form: options.FormName | None = None,
    sector: options.SectorOption = None,
    purpose: options.PurposeOption = None,
    class_: options.ClassOption = None,
    threshold: options.ThresholdOption = 0.0,
    weights: keys.ColumnWeights | None = None,
) -> Enhancement:
    """Find what public sources would add to what a form or class of forms holds."""
    bind(enhance, locals()).require()
    graph = CodingGraph.of(store)
    forms = {"sector": sector, "purpose": purpose, "classifications": class_}
    base = map_restricted(graph, target, form=form, weights=weights, threshold=threshold, **forms)
    public = map_public(graph, target, resources=resources, weights=weights)
    both = combine_keys(graph, target, [base, public.mapping], weights=weights).mapping
    added = tuple(sorted({*public.mapping.identifiers} - {*base.identifiers}))
    reached = [graph.find(Source, s.name) for s in public.sources if s.reached]
    gains = []
    for variable in both.key:
        known = base.variable(variable.column)
        before = 0.0 if known is None else known.entropy
        # New detail may have no weight and no bits; it is a gain all the same.
        if known is None or len(known.labels) < len(variable.labels):
            names = tuple(s.name for s in reached if variable.construct in graph.asked(s))
            after = variable.entropy
            gains.append(Gain(variable.column, before, after, variable.coding, names))
    gains.sort(key=lambda gain: (-round(gain.gained, 9), gain.column))
    return Enhancement(base.target, base.against, public.resources, tuple(gains), added)


def enhance_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a form beside a class of forms."""
    if asked.form is not None and (asked.sector or asked.purpose or asked.class_):
        yield Problem("give either {form} or a class of forms, not both.")
