"""Methods, cutoffs and limits compared in one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.data.keyed import KeyedData
from keyhole.engines.choose import engine_of, open_choice
from keyhole.errors import OptionError
from keyhole.exposure.checks import listed, scenario_note
from keyhole.results import Result, Table, share
from keyhole.selection.result import Selection
from keyhole.selection.select import METHODS, select

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Comparison", "ComparisonRow", "compare"]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One selection, and RP and CR of its set within the limit (None if there is none)."""

    selection: Selection
    rp: float | None
    cr: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        found = self.selection
        return {
            "method": found.method,
            "cutoff": found.cutoff,
            "limit": found.limit,
            "size": None if found.within_limit is None else len(found.within_limit),
            "rp": self.rp,
            "cr": self.cr,
            "within_limit": None if found.within_limit is None else list(found.within_limit),
            "selected": list(found.selected),
            "stopped": found.stopped.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """What each method, cutoff and limit would let out.

    `scenario` names the scenario to whose key the file was recoded, if it was.
    """

    rows: tuple[ComparisonRow, ...]
    scenario: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        named = {} if self.scenario is None else {"scenario": self.scenario}
        return {
            **named,
            "comparison": [row.to_dict() for row in self.rows],
            "warnings": list(self.warnings),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all the selections, each once."""
        return tuple(dict.fromkeys(w for row in self.rows for w in row.selection.warnings))

    def to_frame(self) -> pl.DataFrame:
        """Return one row a selection."""
        import polars as pl

        return pl.DataFrame([row.to_dict() for row in self.rows], infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a selection."""
        rows = [
            [
                r["method"],
                str(r["cutoff"]),
                f"{r['limit']:.1%}",
                str(r["size"] or 0),
                share(r["rp"]),
                share(r["cr"]),
                " ".join(r["within_limit"] or ["nothing"]),
            ]
            for r in (row.to_dict() for row in self.rows)
        ]
        columns = ["method", "cutoff", "limit", "variables", "RP", "CR", "within the limit"]
        notes = [] if self.scenario is None else [scenario_note(self.scenario)]
        notes += [f"Warning: {w}" for w in self.warnings]
        return [Table("Selections compared", columns, rows, notes)]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the paths in the plane of CR and RP."""
        from keyhole.selection.charts import path_chart

        return path_chart([row.selection for row in self.rows])


def compare(
    data: Any,
    *,
    keep: Iterable[str] = (),
    candidates: Iterable[str | Sequence[str]] | None = None,
    scenario: KeyedData | None = None,
    methods: Sequence[str] = METHODS,
    limits: Sequence[float] = (0.05, 0.1),
    cutoffs: Sequence[int] = (3,),
    progress: Callable[[str], None] | None = None,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
    **options: Any,
) -> Comparison:
    """Run several selections and set them side by side.

    Parameters
    ----------
    data, keep, candidates, scenario
        As in `select`.
    methods, limits, cutoffs
        Every combination of these is run.
    progress
        Called with the name of each step before it is evaluated.
    engine, memory, work_folder, master
        Where to count: `memory`, `disk`, `spark` or `auto`, what the disk engine may use
        (`"1GB"`) and where it makes its files, and where Spark runs (`"local[*]"`); see
        `keyhole.engines.choose.open_records`.
    options
        Whatever else `select` takes, for all of them.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> compare(
    ...     veterans_sample(2000), keep=["sex"], candidates=["pow", "ms", "homstate"],
    ...     methods=["forward"], limits=[0.01, 0.5],
    ... )
    Selections compared
      method   cutoff  limit  variables      RP      CR  within the limit
      forward       3   1.0%          3  ...
      forward       3  50.0%          4  ...
    """
    keep = listed(keep, "keep")
    chosen = None if candidates is None else listed(candidates, "candidates")
    data, candidates = open_choice(
        data, keep, chosen, scenario, engine=engine, memory=memory, work_folder=work_folder,
        master=master,
    )  # fmt: skip
    methods, cutoffs = listed(methods, "methods"), listed(cutoffs, "cutoffs")
    limits = listed(limits, "limits")
    asked = [(m, c, limit) for m in methods for c in cutoffs for limit in limits]
    if not asked:
        raise OptionError("methods, cutoffs and limits must each name at least one. Got none.")
    rows = []
    for method, cutoff, limit in asked:
        found = select(
            data,
            method=method,
            keep=keep,
            candidates=candidates,
            limit=limit,
            cutoff=cutoff,
            progress=progress,
            **options,
        )
        rows.append(_measured(data, found))
    return Comparison(tuple(rows), None if scenario is None else scenario.name)


def _measured(data: Any, found: Selection) -> ComparisonRow:
    if not found.within_limit or found.cutoff is None:
        return ComparisonRow(found, None, None)
    tally = engine_of(data, found.within_limit).tally(found.within_limit, cutoff=found.cutoff)
    return ComparisonRow(found, tally.rp, tally.cr)
