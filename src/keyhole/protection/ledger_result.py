"""What a ledger holds: a line for each step, risk and utility side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.exposure.cells import Exposure
from keyhole.protection.applying import Protection
from keyhole.protection.next_steps import NextStep, next_steps_table
from keyhole.protection.prices import FIGURES, Price
from keyhole.protection.protected import Protected, listed
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair

__all__ = ["HEADS", "Ledger", "LedgerLine", "figure", "risk_cells", "shown_heads"]

# How the figures of utility are headed in a table.
HEADS = {
    "lost": "lost",
    "il1s": "IL1s",
    "moved": "moved",
    "mean": "mean",
    "pairs": "pairs",
    "correlation": "corr.",
    "p": "p",
    "pmse": "pMSE",
    "overlap": "overlap",
}


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """The state of the file after one step; step 0 is the file as it was.

    `keys` are those that are left. `rp`, `cr` and `uniques` are None where no key is left;
    `population_uniques` where it is not estimable.
    """

    step: int
    method: str
    columns: tuple[str, ...]
    changed: int
    left_out: int
    keys: tuple[str, ...]
    rp: float | None
    cr: float | None
    uniques: int | None
    population_uniques: float | None
    price: Price

    @classmethod
    def of(
        cls,
        number: int,
        step: Protected | None,
        exposure: Exposure | None,
        uniques: float | None,
        price: Price,
    ) -> LedgerLine:
        """Make the line of a step from what was measured after it."""
        return cls(
            number,
            "" if step is None else step.method,
            () if step is None else step.columns,
            0 if step is None else step.changed,
            0 if step is None else step.left_out,
            () if exposure is None else exposure.keys,
            None if exposure is None else exposure.rp,
            None if exposure is None else exposure.cr,
            None if exposure is None else exposure.uniques,
            uniques,
            price,
        )

    @property
    def words(self) -> str:
        """The step in a few words."""
        if not self.step:
            return "the file as it is"
        if len(self.columns) > 3:
            return f"{self.method} {len(self.columns)} columns"
        return f"{self.method} {listed(self.columns) or ''}".strip()

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "step": self.step,
            "method": self.method or None,
            "columns": list(self.columns),
            "changed": self.changed,
            "left_out": self.left_out,
            "keys": list(self.keys),
            "rp": self.rp,
            "cr": self.cr,
            "uniques": self.uniques,
            "population_uniques": self.population_uniques,
            **self.price.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ledger(Result):
    """A plan carried out, with the risk left and the price paid after each step.

    Parameters
    ----------
    protection
        The plan carried out: the protected file is its `data`.
    lines
        The file as it was, then one line a step.
    keys, targets
        What an intruder is assumed to know, and the variables whose loss counts.
    cutoff, missing, limit, formula
        As asked.
    next_steps
        Where the limit is not met, what could be added to the plan, the cheapest first.
    unestimated
        Why population uniques are not estimable, if they are not.
    seed
        The secret with which the plan was carried out; in no dictionary and no table.
    warnings
        What was taken away and can be read off another column.
    """

    protection: Protection
    lines: tuple[LedgerLine, ...]
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    cutoff: int
    missing: str
    limit: float | None
    formula: str | None
    next_steps: tuple[NextStep, ...] = ()
    unestimated: str = ""
    seed: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def last(self) -> LedgerLine:
        """The line of the file after the whole plan."""
        return self.lines[-1]

    @property
    def meets(self) -> bool | None:
        """Whether the limit is met at last; None without one, or without a key."""
        if self.limit is None or self.last.rp is None:
            return None
        return self.last.rp <= self.limit

    @property
    def next_step(self) -> NextStep | None:
        """The cheapest step that would meet the limit, or the one that comes nearest."""
        return self.next_steps[0] if self.next_steps else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        loss = self.last.price.by_variable
        return {
            "keys": list(self.keys),
            "targets": list(self.targets),
            "cutoff": self.cutoff,
            "missing": self.missing,
            "limit": self.limit,
            "meets": self.meets,
            "formula": self.formula,
            "lines": [line.to_dict() for line in self.lines],
            "variables": [] if loss is None else loss.to_dict()["variables"],
            "next_steps": [step.to_dict() for step in self.next_steps],
            "warnings": list(self.warnings),
            "notes": self._notes(),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a line."""
        rows = [line.to_dict() for line in self.lines]
        kinds: dict[str, Any] = dict.fromkeys(rows[0], pl.Float64)
        kinds |= {"method": pl.String, "columns": pl.List(pl.String), "keys": pl.List(pl.String)}
        kinds |= dict.fromkeys(("step", "changed", "left_out", "uniques"), pl.Int64)
        return pl.DataFrame(rows, schema=kinds)

    def tables(self) -> list[Table]:
        """Return the ledger, what is lost by variable, and what could come next."""
        found = [self._table()]
        if self.last.price.by_variable is not None:
            found += self.last.price.by_variable.tables()
        if self.warnings:
            found.append(Table("Mind", [], [], [f"{text}." for text in self.warnings]))
        if self.next_steps:
            found.append(next_steps_table(self.next_steps, self.limit or 0.0, self.cutoff))
        return found

    def _table(self) -> Table:
        heads = shown_heads([line.price for line in self.lines])
        with_people = not self.unestimated
        rows = [
            [str(line.step), line.words, f"{line.changed:,}" if line.step else "",
             *risk_cells(line, with_people=with_people),
             *(figure(name, getattr(line.price, name)) for name in heads)]
            for line in self.lines
        ]  # fmt: skip
        people = ["in population"] if with_people else []
        columns = ["step", "what", "changed", f"RP({self.cutoff})", "CR", "uniques", *people,
                   *heads.values()]  # fmt: skip
        return Table(self._title(), columns, rows, self._notes())

    def _title(self) -> str:
        return f"Ledger of {self.protection.data.name} on {', '.join(self.keys)}"

    def _notes(self) -> list[str]:
        notes = [_verdict(self)] if self.meets is not None else []
        if self.missing == "wildcard":
            notes.append("A missing key matches every value, both ways, in all lines.")
        if self.unestimated:
            notes.append(f"Population uniques are not estimable: {self.unestimated}.")
        heads = shown_heads([line.price for line in self.lines])
        notes += [f"{HEADS[name]}: {FIGURES[name]}." for name in heads]
        return [*notes, *self._reasons()]

    def _reasons(self) -> list[str]:
        """Say why a figure is not estimable, and from which step on."""
        first: dict[tuple[str, str], int] = {}
        for line in self.lines:
            for name, reason in line.price.reasons.items():
                first.setdefault((name, reason), line.step)
        return [
            f"{HEADS[name]} is not estimable from step {step} on: {reason}."
            for (name, reason), step in first.items()
        ]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the risk-utility map: RP and what is lost, a path through the steps."""
        from keyhole.protection.charts import ledger_chart

        return ledger_chart({"plan": self})


def _verdict(found: Ledger) -> str:
    assert found.limit is not None
    state = "within" if found.meets else "above"
    asked = f"RP({found.cutoff}) is {share(found.last.rp)} after the plan"
    return f"{asked}, {state} the limit of {percentage(found.limit)}."


def shown_heads(prices: Sequence[Price]) -> Mapping[str, str]:
    """Return the heads of the figures that there are for any file that was compared."""
    measured = [price for price in prices if price.by_variable is not None]
    return {
        name: head
        for name, head in HEADS.items()
        if name == "lost" or any(getattr(price, name) is not None for price in measured)
    }


def risk_cells(line: LedgerLine, *, with_people: bool) -> list[str]:
    """Write the risk of a line."""
    uniques = "" if line.uniques is None else f"{line.uniques:,}"
    expected = line.population_uniques
    people = "not estimable" if expected is None else f"{expected:,.0f}"
    return [share(line.rp), share(line.cr), uniques, *([people] if with_people else [])]


def figure(name: str, value: float | None) -> str:
    """Write a figure of utility; pMSE is small by nature.

    Examples
    --------
    >>> figure("lost", 0.12345), figure("pmse", 0.000123), figure("p", None)
    ('0.123', '0.00012', '')
    """
    if value is None:
        return ""
    if name == "pmse":
        return f"{value:.5f}"
    return f"{value:.3f}"
