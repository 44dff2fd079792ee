"""The result of a selection, printed as the paper prints its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, PUBLIC, SPREAD, WHEN_SET, Named, Share, When, figure
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.exposure.attributes_cells import ToldFigures
from keyhole.exposure.regrouping import unnamed_groups
from keyhole.results import Result, drawn_by, share, tables_of
from keyhole.selection.criteria import told_notes

MethodName = Literal["forward", "backward", "stepwise"]
Reason = Literal["limit", "attributes", "reentry", "cycle", "exhausted"]

ASSUMPTION = (
    "RP and CR are probabilities of re-identification only if the target is known to be in the "
    "file, or the file covers most of its population."
)


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate of a step; `alpha` is missing where formula (1) divides by zero."""

    variable: str
    alpha: float | None
    rp: Annotated[float, Share("records")]
    cr: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step taken, and the set it led to."""

    step: str
    variable: str
    variables: tuple[str, ...]
    alpha: float | None
    rp: Annotated[float, Share("records")]
    cr: float
    ratio: float


@dataclass(frozen=True, slots=True)
class StepTable:
    """All the candidates of a step."""

    step: str
    rows: tuple[CandidateRow, ...]


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
    whose candidates are printed; `key` is that of a scenario. `sensitive` has by column
    what `within_limit` tells of it, if that was limited.
    """

    method: MethodName
    criterion: str
    keep: tuple[str, ...]
    candidates: Annotated[tuple[tuple[str, ...], ...], Named("candidate_groups")]
    limit: float
    drop_limit: float | None
    selected: tuple[str, ...]
    within_limit: Annotated[tuple[str, ...] | None, PUBLIC]
    steps: tuple[Step, ...]
    stopped: Stopped
    step_tables: Annotated[tuple[StepTable, ...], Named("tables")]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cutoff: int | None = None
    records: Annotated[int | None, COUNT] = None
    engine: str | None = None
    by: Annotated[str | None, WHEN_SET] = None
    groups: Annotated[tuple[SelectionGroup, ...], When("by")] = ()
    name_small_groups: Annotated[bool, HIDDEN] = False
    scenario: Annotated[str | None, WHEN_SET] = None
    shown_steps: Annotated[tuple[str, ...], HIDDEN] = ()
    key: Annotated[Any, WHEN_SET] = None
    sensitive: Annotated[Mapping[str, ToldFigures] | None, WHEN_SET] = None

    @property
    @figure(Named("candidates"))
    def candidates_joined(self) -> tuple[str, ...]:
        """The candidates, alternatives parted by bars."""
        return tuple("|".join(group) for group in self.candidates)

    @property
    @figure()
    def assumption(self) -> str:
        """What RP and CR rest on."""
        return ASSUMPTION

    def with_notes(self, *others: str) -> Selection:
        """Return the selection with its notes, after those of others."""
        notes = [*others, *([self._nothing] if self.within_limit is None else [])]
        if any(step.alpha is None for step in self.steps):
            notes.append("alpha is undefined where the ratio it divides by is 0: it is left empty")
        return dataclasses.replace(self, notes=tuple(notes))

    @property
    def _nothing(self) -> str:
        return f"{why_nothing(self.keep)}: within_limit is null"

    def to_frame(self) -> pl.DataFrame:
        """Return one row a step taken."""
        texts: dict[str, Any] = dict.fromkeys(("step", "variable"), pl.String)
        texts["variables"] = pl.List(pl.String)
        figures = dict.fromkeys(("alpha", "rp", "cr", "ratio"), pl.Float64)
        return pl.DataFrame([dataclasses.asdict(s) for s in self.steps], {**texts, **figures})

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
            *tables_of(self.key),
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
        notes = [unnamed_groups(least)] if small else []
        return Table(f"By {self.by}", ["group", "records", "within the limit"], rows, notes)

    def _ending(self) -> list[str]:
        within = f"nothing: {why_nothing(self.keep)}"
        if self.within_limit is not None:
            within = " ".join(self.within_limit) or "no variable at all"
        return [
            self.stopped_in_words,
            f"Within the limit: {within}",
            *told_notes(self.sensitive),
            *(f"Warning: {w}" for w in self.warnings),
            *([] if self.scenario is None else [Note("exposure.scenario", name=self.scenario)]),
            *(f"{n[0].upper()}{n[1:]}." for n in self.notes if n != self._nothing),
            ASSUMPTION,
        ]

    @property
    def stopped_in_words(self) -> str:
        """Where the search stopped, and why."""
        stopped, limit = self.stopped, f"{100 * self.limit:g}%"
        if stopped.reason == "exhausted":
            return f"Stopped at {stopped.step}: no candidate is left."
        side = "below" if self.method == "backward" else "above"
        end = {
            "limit": f"RP would be {share(stopped.rp, 3)}, {side} the limit of {limit}",
            "attributes": "a limit on attribute disclosure would be exceeded",
            "reentry": "it was removed in the pass just before",
            "cycle": "the set was reached before",
        }[stopped.reason]
        return f"Stopped at {stopped.step} with {stopped.variable}: {end}."

    plot = drawn_by(
        "selection.charts.path_chart",
        "Draw the path in the plane of CR and RP, with the limit.",
        lambda self: [self],
    )


def why_nothing(keep: Sequence[str]) -> str:
    """Say why no set at all is within a limit."""
    if keep:
        return "the variables kept exceed the limit by themselves"
    return "there are fewer records than the cutoff, so that RP is 1 whatever is released"


@dataclass(frozen=True, slots=True)
class SelectionGroup:
    """One group of records and its selection."""

    label: Annotated[str, Named("group")]
    selection: Annotated[Selection, SPREAD]


def _cells(row: CandidateRow | Step) -> list[str]:
    alpha = "" if row.alpha is None else f"{row.alpha:.3f}"
    return [row.variable, alpha, f"{row.rp:.3f}", f"{row.cr:.3f}", f"{row.ratio:.3f}"]
