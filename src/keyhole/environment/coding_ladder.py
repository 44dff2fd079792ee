"""Ladders of codings: the categories of a coding, and where each falls in coarser ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl

from keyhole.core.files import write_whole
from keyhole.core.kinds import File
from keyhole.core.options import Option, bind, documented
from keyhole.core.shared import ForceOption
from keyhole.core.tables import Table
from keyhole.environment.options import CodingName, StorePlace
from keyhole.environment.outcome import VerbOutcome, written
from keyhole.errors import OptionError
from keyhole.results import Result


@dataclass(frozen=True, slots=True, repr=False)
class CodingLadder(Result):
    """The codes of a coding, each with its label in every coarser coding, finest first."""

    coding: str
    coarser: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a category: its code, then its category in each coarser coding."""
        return pl.DataFrame(
            self.categories, schema=dict.fromkeys([self.coding, *self.coarser], pl.String),
            orient="row",
        )  # fmt: skip

    def tables(self) -> list[Table]:
        """Return one row a category."""
        rows = [list(one) for one in self.categories]
        return [Table(f"Ladder of {self.coding}", [self.coding, *self.coarser], rows)]


@documented
def coding_ladder(
    store: StorePlace,
    coding: CodingName,
    *,
    out: Annotated[
        str | os.PathLike[str] | None,
        Option("A CSV file, for `map(column, FILE, to=CODING)` of a derived column.", kind=File()),
    ] = None,
    force: ForceOption = False,
) -> VerbOutcome:
    """List where the categories of a coding fall in coarser ones, as a file for derived columns."""
    bind(coding_ladder, locals()).require()
    found = ladder_of(store, coding)
    if out is None:
        return VerbOutcome(found)
    with write_whole(out, force=force) as temporary:
        found.to_frame().write_csv(temporary)
    return VerbOutcome(found, (written("ladder", out),))


def ladder_of(environment: Any, coding: str) -> CodingLadder:
    """Return the ladder of a coding of an environment, or of its store."""
    from keyhole.environment.codings.categories import codes_of, labels_of, size_of
    from keyhole.environment.codings.graph import CodingGraph

    graph = CodingGraph.of(environment)
    finest = graph.coding(coding)
    coarser = sorted(graph.ancestors(coding), key=lambda name: (-size_of(graph.coding(name)), name))
    columns = [list(codes_of(finest))]
    kept = []
    for name in coarser:
        places, labels = graph.mapping(coding, name), labels_of(graph.coding(name))
        if places is not None and (places >= 0).all():
            columns.append([labels[place] for place in places])
            kept.append(name)
    if not kept:
        raise OptionError(f"coding {coding!r} leads to no coarser one. Add one, or its join.")
    return CodingLadder(finest.name, tuple(kept), tuple(zip(*columns, strict=True)))
