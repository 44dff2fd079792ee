"""The result of a selection, printed as the paper prints its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from keyhole.core.notes import Note
from keyhole.exposure.checks import scenario_note, small_group_note
from keyhole.results import Result, Table

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = [
    "ASSUMPTION",
    "Reason",
    "Row",
    "Selection",
    "SelectionGroup",
    "Step",
    "StepTable",
    "Stopped",
    "why_nothing",
]

Reason = Literal["limit", "reentry", "cycle", "exhausted"]

ASSUMPTION = (
    "RP and CR are probabilities of re-identification only if the target is known to be in the "
    "file, or the file covers most of its population."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate of a step; `alpha` is missing where formula (1) divides by zero."""

    variable: str
    alpha: float | None
    rp: float
    cr: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step taken, and the set it led to."""

    step: str
    variable: str
    variables: tuple[str, ...]
    alpha: float | None
    rp: float
    cr: float
    ratio: float


@dataclass(frozen=True, slots=True)
class StepTable:
    """All the candidates of a step."""

    step: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why and where a search stopped; the variable is the one not entered or not removed."""

    step: str
    variable: str | None
    reason: Reason
    rp: float | None
    cr: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Selection(Result):
    """The path of a search, where it stopped, and the set that is within the limit.

    `selected` is where the published rule stops, which for backward lies just above the limit;
    `within_limit` is what may be released, or None if `keep` alone exceeds the limit (as it does
    even where nothing is kept, if there are fewer records than the cutoff). `shown_steps` are those
    whose candidates are printed; `beside` has the `key` of a scenario.
    """

    method: str
    criterion: str
    keep: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]
    limit: float
    drop_limit: float | None
    selected: tuple[str, ...]
    within_limit: tuple[str, ...] | None
    steps: tuple[Step, ...]
    stopped: Stopped
    step_tables: tuple[StepTable, ...]
    warnings: tuple[str, ...] = ()
    cutoff: int | None = None
    records: int | None = None
    engine: str | None = None
    by: str | None = None
    groups: tuple[SelectionGroup, ...] = ()
    name_small_groups: bool = False
    scenario: str | None = None
    engine_notes: tuple[str, ...] = ()
    shown_steps: tuple[str, ...] = ()
    beside: Mapping[str, Result] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        out = {
            "method": self.method,
            "criterion": self.criterion,
            "keep": list(self.keep),
            "candidates": ["|".join(group) for group in self.candidates],
            "cutoff": self.cutoff,
            "limit": self.limit,
            "drop_limit": self.drop_limit,
            "records": self.records,
            "engine": self.engine,
            "selected": list(self.selected),
            "within_limit": None if self.within_limit is None else list(self.within_limit),
            "steps": [
                {**dataclasses.asdict(s), "variables": list(s.variables)} for s in self.steps
            ],
            "stopped": dataclasses.asdict(self.stopped),
            "tables": [
                {"step": t.step, "rows": [dataclasses.asdict(r) for r in t.rows]}
                for t in self.step_tables
            ],
            "assumption": ASSUMPTION,
            "warnings": list(self.warnings),
            "notes": self._notes(),
        }
        if self.scenario is not None:
            out["scenario"] = self.scenario
        if self.by is not None:
            out["by"] = self.by
            out["groups"] = [{"group": g.label, **g.selection.to_dict()} for g in self.groups]
        return {**out, **{name: result.to_dict() for name, result in self.beside.items()}}

    def _notes(self) -> list[str]:
        notes = list(self.engine_notes)
        if self.within_limit is None:
            notes.append(f"{why_nothing(self.keep)}: within_limit is null")
        if any(step.alpha is None for step in self.steps):
            notes.append("alpha is undefined where the ratio it divides by is 0: it is left empty")
        return notes

    def _told(self) -> list[str]:
        """Return the notes that the summary has not told in other words."""
        return [note for note in self._notes() if note in self.engine_notes or "alpha" in note]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a step taken."""
        import polars as pl

        names = [field.name for field in dataclasses.fields(Step)]
        rows = [[getattr(s, n) for n in names] for s in self.steps]
        kinds: list[Any] = [pl.String, pl.String, pl.List(pl.String), *[pl.Float64] * 4]
        schema = list(zip(names, kinds, strict=True))
        return pl.DataFrame([[*r[:2], list(r[2]), *r[3:]] for r in rows], schema, orient="row")

    def table(self, step: str) -> Table:
        """Return all the candidates of one step, as the paper prints it."""
        found = next((t for t in self.step_tables if t.step == step), None)
        if found is None:
            known = ", ".join(t.step for t in self.step_tables)
            raise KeyError(f"no step {step!r}; there are {known}")
        kind = "newvar" if step.startswith("F") else "delvar"
        return Table(f"Step {step}", [kind, *self._figures()], [_cells(r) for r in found.rows])

    def _figures(self) -> list[str]:
        return ["alpha" if self.criterion == "ratio" else self.criterion, "rp", "cr", "ratio"]

    def tables(self) -> list[Table]:
        """Return the summary of the steps as the paper prints it, and where it ended."""
        rows = [[s.step, " ".join(s.variables), *_cells(s)[1:]] for s in self.steps]
        title = f"Summary of {self.method} selection, limit {100 * self.limit:g}%"
        summary = Table(title, ["step", "variables", *self._figures()], rows, self._ending())
        return [
            summary,
            *([self._group_table()] if self.groups else []),
            *(table for result in self.beside.values() for table in result.tables()),
            *map(self.table, self.shown_steps),
        ]

    def _group_table(self) -> Table:
        least = 0 if self.name_small_groups else self.cutoff or 0
        sized = [(g.label, g.selection.records or 0, g.selection.within_limit) for g in self.groups]
        rows = [
            [label, f"{records:,}", " ".join(within or ("nothing",))]
            for label, records, within in sized
            if records >= least
        ]
        small = [records for _, records, _ in sized if records < least]
        rows += [[f"({len(small)} smaller)", f"{sum(small):,}", "not shown"]] if small else []
        notes = [small_group_note(least)] if small else []
        return Table(f"By {self.by}", ["group", "records", "within the limit"], rows, notes)

    def _ending(self) -> list[str]:
        within = f"nothing: {why_nothing(self.keep)}"
        if self.within_limit is not None:
            within = " ".join(self.within_limit) or "no variable at all"
        return [
            Note("selection.stopped", text=_why(self.stopped, self.method, self.limit)),
            f"Within the limit: {within}",
            *(f"Warning: {w}" for w in self.warnings),
            *([] if self.scenario is None else [scenario_note(self.scenario)]),
            *(f"{note[0].upper()}{note[1:]}." for note in self._told()),
            ASSUMPTION,
        ]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the path in the plane of CR and RP, with the limit."""
        from keyhole.selection.charts import path_chart

        return path_chart([self])


def why_nothing(keep: Sequence[str]) -> str:
    """Say why no set at all is within a limit."""
    if keep:
        return "the variables kept exceed the limit by themselves"
    return "there are fewer records than the cutoff, so that RP is 1 whatever is released"


@dataclass(frozen=True, slots=True)
class SelectionGroup:
    """One group of records and its selection."""

    label: str
    selection: Selection


def _cells(row: Row | Step) -> list[str]:
    alpha = "" if row.alpha is None else f"{row.alpha:.3f}"
    return [row.variable, alpha, f"{row.rp:.3f}", f"{row.cr:.3f}", f"{row.ratio:.3f}"]


def _why(stopped: Stopped, method: str, limit: float) -> str:
    if stopped.reason == "exhausted":
        return f"Stopped at {stopped.step}: no candidate is left."
    end = {
        "limit": f"RP would be {stopped.rp:.3f}, {'below' if method == 'backward' else 'above'} "
        f"the limit of {100 * limit:g}%",
        "reentry": "it was removed in the pass just before",
        "cycle": "the set has been there before",
    }[stopped.reason]
    return f"Stopped at {stopped.step} with {stopped.variable}: {end}."
