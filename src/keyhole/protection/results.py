"""Results of a protection: the protected file, the ledger of its steps, and plans compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.core.marks import COUNT, HIDDEN, SPREAD, WHEN_SET, Share, figure
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.engines import Missing
from keyhole.exposure.cells import Exposure
from keyhole.kernels.arrays import Ints
from keyhole.protection.method import Protected, column_list, warnings_table
from keyhole.protection.next_steps import NextStep, next_steps_table
from keyhole.protection.plan import Plan
from keyhole.protection.prices import FIGURES, Price
from keyhole.results import Result, drawn_by, share
from keyhole.utility.information import VariableLoss

if TYPE_CHECKING:
    import altair


# How the figures of utility are headed in a table.
_SHORT = {"il1s": "IL1s", "correlation": "corr.", "pmse": "pMSE"}
HEADS = {name: _SHORT.get(name, name) for name in FIGURES}
# More variables than this are told by their number.
_MOST_TOLD = 8


def meaning(name: str, targets: Sequence[str]) -> str:
    """Say what a figure of the ledger is; of what is lost, over which variables."""
    if name != "lost" or not targets:
        return FIGURES[name]
    more = len(targets) - _MOST_TOLD
    others = f" and {more:,} more" if more > 0 else ""
    return f"{FIGURES[name]} {', '.join(targets[:_MOST_TOLD])}{others}"


@dataclass(frozen=True, slots=True)
class KeyExposure(Figures):
    """Exposure on the key, as a protection reports it; `exposure` has cell sizes too."""

    records: Annotated[int, COUNT]
    keys: tuple[str, ...]
    missing: Missing
    cells: int
    uniques: Annotated[int, COUNT]
    cutoff: int
    rp: Annotated[float, Share("records")]
    cr: float
    at_risk: Annotated[Mapping[int, float], Share("records")]
    exposure: Annotated[Exposure | None, HIDDEN] = None

    @classmethod
    def of(cls, found: Exposure | None) -> KeyExposure | None:
        """Take the figures from a whole exposure; None where none was measured."""
        if found is None:
            return None
        missing: Any = found.missing
        return cls(
            found.records, found.keys, missing, found.cells, found.uniques, found.cutoff,
            found.rp, found.cr, found.at_risk_shares, found,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protection(Result):
    """A protected file, what each step did, and the exposure before and after.

    `plan` is the plan with what was found in the data (`plan.fitted`): applied to other data it
    does the same there. `steps` are the steps one by one, each with the file after it. `before`
    and `after` are on the key, None where there is none; `read_off` is with what an outsider can
    read off what stayed, None where that is nothing of the key. `warnings` are to be minded before
    the file goes out. `ledger` and `comparison` are there where they were asked for.

    `data` has the records in the order of the original. `release` has them in the order in which
    they go out, which `order` says: a secret, and in no table and no dictionary.
    """

    data: Annotated[Microdata, HIDDEN]
    plan: Annotated[Plan, HIDDEN]
    steps: tuple[Protected, ...]
    before: KeyExposure | None
    after: KeyExposure | None
    read_off: Annotated[
        KeyExposure | None,
        "With the values of keys that retained columns reveal; null where they reveal none.",
    ]
    records: Annotated[int, COUNT]
    records_after: Annotated[int, COUNT]
    notes: tuple[str, ...] = ()
    warnings: Annotated[tuple[str, ...], "What to attend to before the file is released."] = ()
    order: Annotated[Ints | None, HIDDEN] = None
    ledger: Annotated[Ledger | None, WHEN_SET] = None
    comparison: Annotated[PlanComparison | None, WHEN_SET, "Plans side by side."] = None

    @property
    def changed(self) -> int:
        """The number of values changed by all steps."""
        return sum(step.changed for step in self.steps)

    def release(self) -> Microdata:
        """Return the file as it goes out: in an order that tells nothing, unless it is kept."""
        return self.data if self.order is None else self.data.reordered(self.order)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the file as it goes out, whole or not at all; the extension says the format."""
        return self.release().save(path, force=force)

    def save_fitted(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the plan with what was found in the data, to repeat it; it stays with you."""
        return self.plan.save(path, force=force, private=True)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a step."""
        rows = [(step.method, step.column, step.changed) for step in self.steps]
        kinds = {"method": pl.String, "column": pl.String, "changed": pl.Int64}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def tables(self) -> list[Table]:
        """Return the steps, and the exposure before and after."""
        steps, columns = list(enumerate(self.steps, 1)), ["step", "method", "column", "changed"]
        rows = [[f"{i}", one.method, one.column or "", f"{one.changed:,}"] for i, one in steps]
        notes = [f"Step {i}: {note}." for i, one in steps for note in one.notes]
        title = f"Protection of {self.data.name}"
        found = [Table(title, columns, rows, [*notes, *self.notes])]
        if self.before is not None and self.after is not None:
            both_ways = "Missing values match every value, both ways; in cells they are a category."
            notes = [both_ways] if self.before.missing == "wildcard" else []
            if self.read_off is not None:
                notes.append("Recoverable: with values that retained columns reveal; see below.")
            title = f"Exposure on {', '.join(self.after.keys)}"
            found.append(Table(title, *exposure_rows(self), notes))
        if self.ledger is None:  # a ledger has the warnings
            return found + warnings_table(self.warnings)
        found += self.ledger.tables()
        return found if self.comparison is None else found + self.comparison.tables()

    def plot(self) -> altair.TopLevelMixin:
        """Draw the exposure before and after; of a ledger or a comparison, the risk-utility map."""
        beside = self.comparison or self.ledger
        if beside is not None:
            return beside.plot()
        from keyhole.protection.charts import before_after_chart

        return before_after_chart(self)


def exposure_rows(found: Protection) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of exposure before and after, and with what can be read off."""
    shown = [one for one in (found.before, found.after, found.read_off) if one is not None]
    wildcard = shown[0].missing == "wildcard"
    counts = ("records", "cells", "uniques")
    rows = [[name, *(f"{getattr(one, name):,}" for one in shown)] for name in counts]
    rows += [
        [f"RP({shown[0].cutoff})", *(share(one.rp) for one in shown)],
        ["CR (mean of 1/f)" if wildcard else "CR", *(share(one.cr) for one in shown)],
    ]
    return ["figure", "before", "after", "recoverable"][: len(shown) + 1], rows


@dataclass(frozen=True, slots=True)
class LedgerLine(Figures):
    """The state of the file after one step; step 0 is the file as it was, by no method.

    `keys` are those that are left. `rp`, `cr` and `uniques` are None where no key is left;
    `population_uniques` where it is not estimable. `rp_own` and `rp_wildcard` are RP with a
    missing value as a category of its own, and as one that matches every value.
    """

    step: Annotated[int, "0 is the file as it is."]
    method: str | None
    columns: tuple[str, ...]
    changed: Annotated[int, COUNT]
    left_out: Annotated[int, COUNT]
    keys: tuple[str, ...]
    rp: Annotated[float | None, Share("records")]
    cr: float | None
    uniques: Annotated[int | None, COUNT]
    population_uniques: float | None
    price: Annotated[Price, SPREAD]
    rp_own: Annotated[
        float | None, Share("records"), "With a missing key as a category of its own."
    ] = None
    rp_wildcard: Annotated[
        float | None, Share("records"), "With a missing key that matches every value."
    ] = None
    homogeneous: Annotated[
        Mapping[str, float] | None,
        WHEN_SET,
        "By column with the role sensitive, the share of records in cells with one value of it.",
    ] = None

    @property
    def words(self) -> str:
        """The step in a few words."""
        if not self.step:
            return "the file as it is"
        if len(self.columns) > 3:
            return f"{self.method} {len(self.columns)} columns"
        return f"{self.method} {column_list(self.columns) or ''}".strip()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ledger(Result):
    """A plan carried out, with the risk left and the price paid after each step.

    `keys` are what an intruder is assumed to know, `targets` the variables whose loss counts, and
    `variables` what is lost of each by the whole plan. `rp` is that of the file that goes out, with
    what an outsider can read off what stayed. `lines` are the file as it was, then one a step.
    `next_steps` could be added where the limit is not met, the cheapest first; `warnings` are to be
    minded before the file goes out. The protected file is the `data` of `protection`.

    `seed` and `plan` are the secret with which the plan was carried out, and the plan as it was
    given; in no dictionary and no table.
    """

    keys: tuple[str, ...]
    targets: tuple[str, ...]
    cutoff: int
    missing: Missing
    limit: float | None
    formula: str | None
    rp: Annotated[
        float | None,
        Share("records"),
        "RP of the release, including recoverable values: what is compared with the limit.",
    ]
    lines: tuple[LedgerLine, ...]
    variables: tuple[VariableLoss, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    protection: Annotated[Protection | None, HIDDEN] = None
    unestimated: Annotated[str, HIDDEN] = ""
    seed: Annotated[int | None, HIDDEN] = None
    plan: Annotated[Plan | None, HIDDEN] = None

    @property
    def last(self) -> LedgerLine:
        """The line of the file after the whole plan."""
        return self.lines[-1]

    @property
    @figure()
    def meets(self) -> bool | None:
        """Whether the limit is met with what can be read off; None without one, or a key."""
        return None if self.limit is None or self.rp is None else self.rp <= self.limit

    @property
    def changed(self) -> int:
        """The number of values changed by all steps."""
        return sum(line.changed for line in self.lines)

    @property
    def reads_off(self) -> bool:
        """Whether an outsider can read off any of the key."""
        return self.protection is not None and self.protection.read_off is not None

    @property
    def verdict(self) -> str:
        """Whether the limit is met, in words, and if only in one reading; nothing without one."""
        if self.limit is None or self.rp is None:
            return ""
        limit, state = percentage(self.limit), "within" if self.meets else "above"
        told = ", including recoverable values" if self.reads_off else ""
        text = f"RP({self.cutoff}) is {share(self.rp)} after the plan{told}, {state} the limit of "
        if self.meets_as_wildcard_only:
            return (
                f"{text}{limit} only where a missing value matches every value: as a category of "
                f"its own it makes RP {share(self.last.rp_own)}, above the limit."
            )
        return f"{text}{limit}."

    @property
    def meets_as_wildcard_only(self) -> bool:
        """Whether the limit is met only where a missing value matches every value."""
        own = self.last.rp_own
        met = self.meets and self.missing == "wildcard" and own is not None
        return bool(met and own > self.limit)  # type: ignore[operator]

    @property
    def next_step(self) -> NextStep | None:
        """The cheapest step that would meet the limit, or the one that comes nearest."""
        return self.next_steps[0] if self.next_steps else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a line, of sensitive columns that of which most is told."""
        rows = [line.to_dict() for line in self.lines]
        for row in rows if any(line.homogeneous for line in self.lines) else ():
            row["homogeneous"] = max((row.get("homogeneous") or {}).values(), default=None)
        kinds: dict[str, Any] = dict.fromkeys(rows[0], pl.Float64)
        kinds |= {"method": pl.String, "columns": pl.List(pl.String), "keys": pl.List(pl.String)}
        kinds |= dict.fromkeys(("step", "changed", "left_out", "uniques"), pl.Int64)
        return pl.DataFrame(rows, schema=kinds)

    def tables(self) -> list[Table]:
        """Return the ledger, what is lost by variable, and what could come next."""
        assert self.protection is not None
        title = f"Ledger of {self.protection.data.name} on {', '.join(self.keys)}"
        lead = [
            [str(line.step), line.words, f"{line.changed:,}" if line.step else ""]
            for line in self.lines
        ]
        columns, rows, _ = figure_columns(["step", "what", "changed"], lead, self.lines, self)
        found = [Table(title, columns, rows, self.notes)]
        if self.last.price.by_variable is not None:
            found += self.last.price.by_variable.tables()
        found += warnings_table(self.warnings)
        if self.next_steps:
            found.append(next_steps_table(self.next_steps, self.limit or 0.0, self.cutoff))
        return found

    def with_notes(self) -> Ledger:
        """Return the ledger with what to bear in mind of it."""
        notes = [self.verdict] if self.verdict else []
        notes += figure_columns([], [[] for _ in self.lines], self.lines, self)[2]
        first: dict[tuple[str, str], int] = {}
        for line in self.lines:
            for reason in line.price.reasons.items():
                first.setdefault(reason, line.step)
        notes += [
            f"{HEADS[name]} is not estimable from step {step} on: {reason}."
            for (name, reason), step in first.items()
        ]
        return replace(self, notes=tuple(notes))

    plot = drawn_by(
        "protection.charts.ledger_chart",
        "Draw the risk-utility map: RP and what is lost, a path through the steps.",
        lambda self: {"plan": self},
    )


@dataclass(frozen=True, slots=True)
class NamedLedger(Figures):
    """The ledger of one of several plans."""

    plan: str
    ledger: Annotated[Ledger, SPREAD]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlanComparison(Result):
    """The ledgers of several plans, on the same key and the same variables."""

    plans: tuple[NamedLedger, ...]

    @property
    def ledgers(self) -> dict[str, Ledger]:
        """The ledgers by the names of their plans."""
        return {one.plan: one.ledger for one in self.plans}

    @property
    @figure("The plan within the limit that loses least; null where none is.")
    def best(self) -> str | None:
        """The plan within the limit that loses least information; None if no plan is within."""
        fit = [name for name, one in self.ledgers.items() if one.meets]
        return min(fit, key=lambda name: self.ledgers[name].last.price.lost or 0.0, default=None)

    def to_frame(self) -> pl.DataFrame:
        """Return the lines of all ledgers."""
        return pl.concat(
            one.to_frame().select(pl.lit(name).alias("plan"), pl.all())
            for name, one in self.ledgers.items()
        )

    def tables(self) -> list[Table]:
        """Return the plans side by side, and what could be added to those above the limit."""
        found = [self._table()]
        for name, one in self.ledgers.items():
            found += warnings_table(one.warnings, f"Warnings after plan {name}")
            if one.next_steps:
                title = f"Cheapest next step after plan {name}"
                found.append(next_steps_table(one.next_steps, one.limit or 0.0, one.cutoff, title))
        return found

    def _table(self) -> Table:
        first, ledgers = self.plans[0].ledger, self.ledgers.items()
        lead = [[name, str(len(one.lines) - 1), f"{one.changed:,}"] for name, one in ledgers]
        lasts = [one.last for _, one in ledgers]
        columns, rows, meant = figure_columns(["plan", "steps", "changed"], lead, lasts, first)
        if first.limit is not None:
            columns.append("within the limit")
            for row, (_, one) in zip(rows, ledgers, strict=True):
                row.append({True: "yes", False: "no", None: ""}[one.meets])
        notes = [] if self.best is None else [f"Within the limit, {self.best} loses least."]
        notes += [
            f"{name}: {one.verdict}"
            for name, one in ledgers
            if one.verdict and (one.reads_off or one.meets_as_wildcard_only)
        ]
        assert first.protection is not None
        return Table(f"Plans for {first.protection.data.name}", columns, rows, [*notes, *meant])

    plot = drawn_by(
        "protection.charts.ledger_chart",
        "Draw the risk-utility map with a path for each plan.",
        lambda self: self.ledgers,
    )


def risk_columns(
    lines: Sequence[LedgerLine], cutoff: int, missing: str, *, people: bool
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return heads and rows of the risk of lines, and how a missing key counts in them."""
    other, name = ("rp_own", "RP own") if missing == "wildcard" else ("rp_wildcard", "RP wild")
    differs = any(getattr(line, other) != line.rp for line in lines)
    columns: dict[str, Callable[[LedgerLine], str]] = {f"RP({cutoff})": lambda one: share(one.rp)}
    if differs:
        columns[name] = lambda one: share(getattr(one, other))
    columns["CR"] = lambda one: share(one.cr)
    columns["uniques"] = lambda one: "" if one.uniques is None else f"{one.uniques:,}"
    if people:
        columns["in population"] = lambda one: (
            "not estimable" if one.population_uniques is None else f"{one.population_uniques:,.0f}"
        )
    if any(line.homogeneous for line in lines):
        columns["homogeneous"] = lambda one: (
            share(max(one.homogeneous.values())) if one.homogeneous else ""
        )
    notes = {
        "wildcard": "A missing key matches every value, both ways, in all lines.",
        "RP own": "RP own: with a missing key as a category of its own, the cautious reading.",
        "RP wild": "RP wild: with a missing key that matches every value, both ways.",
    }
    said = [notes[one] for one in (missing, name if differs else "") if one in notes]
    return list(columns), [[cell(line) for cell in columns.values()] for line in lines], said


def figure_columns(
    heads: list[str], lead: list[list[str]], lines: Sequence[LedgerLine], of: Ledger
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return a table's columns and rows: what leads each line, then its risk and its price."""
    measured = [line.price for line in lines if line.price.by_variable is not None]
    names = [n for n in HEADS if n == "lost" or any(getattr(p, n) is not None for p in measured)]
    risk, cells, notes = risk_columns(lines, of.cutoff, of.missing, people=not of.unestimated)
    rows = [
        [*first, *own, *(utility_figure(name, getattr(line.price, name)) for name in names)]
        for first, own, line in zip(lead, cells, lines, strict=True)
    ]
    if of.unestimated and lines is of.lines:  # of plans side by side each ledger says so
        notes.append(f"Population uniques are not estimable: {of.unestimated}.")
    if "homogeneous" in risk:
        notes.append(
            "Homogeneous: records in cells with one value of a sensitive column, the worst of them."
        )
    notes += [f"{HEADS[name]}: {meaning(name, of.targets)}." for name in names]
    return [*heads, *risk, *(HEADS[name] for name in names)], rows, notes


def utility_figure(name: str, value: float | None) -> str:
    """Write a figure of utility; pMSE is small by nature."""
    return "" if value is None else f"{value:.{5 if name == 'pmse' else 3}f}"
