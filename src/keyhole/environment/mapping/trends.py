"""How the data environment changes: who asks what, at which coding, by year."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import figure
from keyhole.core.names import plural, shown
from keyhole.core.options import Option, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.mapping import forms_in
from keyhole.environment.options import ClassOption, PurposeOption, SectorOption, StorePlace
from keyhole.errors import InputError
from keyhole.results import Result, share

if TYPE_CHECKING:
    import altair
    import polars as pl


@dataclass(frozen=True, slots=True)
class Prevalence:
    """How many of a year's forms ask a construct (`coding` empty), or ask it in a coding."""

    year: int
    construct: str
    coding: str
    forms: int
    of: int

    @property
    @figure()
    def share(self) -> float:
        """The share of the year's forms."""
        return self.forms / self.of


@dataclass(frozen=True, slots=True, repr=False)
class Trend(Result):
    """Prevalence of constructs and codings among the forms collected in each year."""

    against: str
    years: tuple[int, ...]
    undated: int
    rows: tuple[Prevalence, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a year, construct and coding."""
        import polars as pl

        rows = [(r.year, r.construct, r.coding, r.forms, r.of, r.share) for r in self.rows]
        counts = {"forms": int, "of": int, "share": float}
        schema = {"year": int, "construct": str, "coding": str, **counts}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the share of each year's forms, a row for each construct and coding."""
        shares = {(r.construct, r.coding, r.year): r.share for r in self.rows}
        lines = sorted({(r.construct, r.coding) for r in self.rows})
        rows = [
            [*line, *(share(shares.get((*line, year), 0.0), 2) for year in self.years)]
            for line in lines
        ]
        notes = ["A year's column is the share of the forms collected in it."]
        if self.undated:
            notes.append(f"{plural(self.undated, 'form')} without a date: not counted.")
        columns = ["construct", "coding", *map(str, self.years)]
        return [Table(f"Prevalence by year, {self.against}", columns, rows, notes)]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the share of each year's forms that ask each construct."""
        from keyhole.environment.pictures.charts import trend_chart

        return trend_chart(self)


@documented
def trend(
    store: StorePlace,
    *,
    sector: SectorOption = None,
    purpose: PurposeOption = None,
    class_: ClassOption = None,
    construct: Annotated[str | None, Option("Only this construct.", metavar="LETTERS")] = None,
) -> Trend:
    """Count, for each year, the share of its forms that ask each construct and coding."""
    bind(trend, locals()).require()
    graph = CodingGraph.of(store)
    forms, words = forms_in(graph, sector=sector, purpose=purpose, classifications=class_)
    if construct is not None and construct not in {c.letters for c in graph.environment.constructs}:
        raise InputError(f"construct {shown(construct)} is not in the environment.")
    years: Counter[int] = Counter()
    counts: Counter[tuple[int, str, str]] = Counter()
    for form in forms:
        if form.collected is not None:
            year = form.collected.year
            years[year] += 1
            for letters, codings in graph.asked(form).items():
                if construct in (None, letters):
                    counts.update((year, letters, coding) for coding in ("", *codings))
    rows = tuple(
        Prevalence(year, letters, coding, count, years[year])
        for (year, letters, coding), count in sorted(counts.items())
    )
    return Trend(words, tuple(sorted(years)), len(forms) - years.total(), rows)
