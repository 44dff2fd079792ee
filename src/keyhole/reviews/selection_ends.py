"""Ends of the selection methods beside the frontier's best sets: one table, one chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import HIDDEN
from keyhole.data import Microdata
from keyhole.engines.choose import engine_of
from keyhole.results import Result, Table, share
from keyhole.selection.frontier import Frontier, FrontierSet
from keyhole.selection.result import Selection

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["End", "Paths", "gather_paths"]


@dataclass(frozen=True, slots=True)
class End:
    """A set within the limit, and who found it; without figures where there is none."""

    found_by: str
    variables: tuple[str, ...] | None
    rp: float | None
    cr: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Paths(Result):
    """The sets within the limit that the methods end at, and the frontier's best."""

    ends: tuple[End, ...]
    selections: Annotated[tuple[Selection, ...], HIDDEN]
    frontier: Annotated[Frontier | None, HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a set."""
        import polars as pl

        return pl.DataFrame([asdict(end) for end in self.ends], infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a set."""
        rows = [
            [e.found_by, str(len(e.variables or ())), share(e.rp), share(e.cr),
             " ".join(e.variables or ("nothing",))]
            for e in self.ends
        ]  # fmt: skip
        columns = ["found by", "variables", "RP", "CR", "within the limit"]
        return [Table("Sets within the limit", columns, rows)]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the paths in the plane of CR and RP, the frontier behind them."""
        from keyhole.selection.charts import path_chart

        return path_chart(list(self.selections), frontier=self.frontier)


def gather_paths(data: Microdata, earlier: Mapping[str, Any]) -> Paths:
    """Set the ends of the selections, and the frontier's best, side by side.

    The data is there to measure the sets; `earlier` has the selections and the frontier by stage.
    """
    selections = tuple(found for name, found in earlier.items() if name != "frontier")
    found: Frontier | None = earlier.get("frontier")
    ends = [_end(data, selection) for selection in selections]
    if found is not None:
        named = {"cr": "frontier, largest CR", "size": "frontier, most variables"}
        ends += [_best(name, found.best[which]) for which, name in named.items()]
    return Paths(tuple(ends), selections, found)


def _end(data: Microdata, selection: Selection) -> End:
    names = selection.within_limit
    if not names:
        return End(selection.method, names, None, None)
    tally = engine_of(data, names).tally(names, cutoff=selection.cutoff or 3)
    return End(selection.method, names, tally.rp, tally.cr)


def _best(name: str, best: FrontierSet | None) -> End:
    if best is None:
        return End(name, None, None, None)
    return End(name, best.variables, best.rp, best.cr)
