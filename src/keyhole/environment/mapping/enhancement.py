"""What public data would add to a restricted dataset or a class of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.answers import KeyMapping
from keyhole.environment.mapping.holdings import ColumnWeights
from keyhole.environment.mapping.mapping import map_class, map_pair
from keyhole.environment.mapping.public import PublicKey, map_public
from keyhole.environment.mapping.stages import combine
from keyhole.environment.model import Environment, Form, Target
from keyhole.errors import OptionError
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Enhancement", "Gain", "enhance"]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more is known of a column; `sources` are the public sources that have it."""

    column: str
    before: float
    after: float
    coding: str
    sources: tuple[str, ...]

    @property
    def gained(self) -> float:
        """The bits gained."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, repr=False)
class Enhancement(Result):
    """What public sources add to what a restricted form, or a class of forms, tells.

    `identifiers` are the direct identifiers that only the public sources have.
    """

    base: KeyMapping
    public: PublicKey
    mapping: KeyMapping
    gains: tuple[Gain, ...]
    identifiers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the gains as plain values."""
        gains = [
            {
                "column": g.column,
                "before": g.before,
                "after": g.after,
                "gained": g.gained,
                "coding": g.coding,
                "sources": list(g.sources),
            }
            for g in self.gains
        ]
        return {
            "target": self.base.target,
            "against": self.base.against,
            "resources": self.public.resources,
            "gains": gains,
            "identifiers": list(self.identifiers),
        }

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
        title = f"What public sources add to {self.base.against}"
        notes = [f"Resources of {self.public.resources:g}; the intruder can link the sources."]
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


def enhance(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    resources: float,
    form: str | Form | None = None,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
    threshold: float = 0.0,
    weights: ColumnWeights | None = None,
) -> Enhancement:
    """Tell what public data would add to a restricted form or a class of forms.

    Parameters
    ----------
    target, sector, purpose, classifications, threshold, weights
        As in `keyhole.environment.mapping.mapping.map_class`.
    resources
        As in `keyhole.environment.mapping.public.map_public`.
    form
        One form, instead of a class.
    """
    graph = CodingGraph.of(environment)
    if form is not None and (sector, purpose, classifications) != (None, None, None):
        raise OptionError("give either a form or a class of forms, not both.")
    base = (
        map_class(
            graph,
            target,
            sector=sector,
            purpose=purpose,
            classifications=classifications,
            threshold=threshold,
            weights=weights,
        )
        if form is None
        else map_pair(graph, target, form, weights=weights)
    )
    public = map_public(graph, target, resources=resources, weights=weights)
    both = combine(graph, target, [base, public.mapping], weights=weights).mapping
    mine = {kind for kind, _ in base.identifiers}
    added = tuple(sorted({kind for kind, _ in public.mapping.identifiers} - mine))
    return Enhancement(base, public, both, _gains(graph, base, public, both), added)


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
