"""What public data would add to a restricted dataset or a class of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import HIDDEN, figure
from keyhole.core.options import Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.holdings import ColumnWeights
from keyhole.environment.mapping.mapping import map_class, map_pair
from keyhole.environment.mapping.public import PublicKey, map_public
from keyhole.environment.mapping.stages import combine_keys
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
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


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
        bits = pl.Float64
        kinds: list[Any] = [pl.String, bits, bits, bits, pl.String, pl.List(pl.String)]
        names = ("column", "before", "after", "gained", "coding", "sources")
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def tables(self) -> list[Table]:
        """Return the columns of which more is known, in bits."""
        rows = [
            [g.column, *map(_bits, (g.before, g.after)), f"{g.gained:+.2f}", g.coding, *_named(g)]
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


def _bits(value: float) -> str:
    return share(value, 2)


def _named(gain: Gain) -> list[str]:
    return [", ".join(gain.sources)]


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
    base = (
        map_class(
            graph,
            target,
            sector=sector,
            purpose=purpose,
            classifications=class_,
            threshold=threshold,
            weights=weights,
        )
        if form is None
        else map_pair(graph, target, form, weights=weights)
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
