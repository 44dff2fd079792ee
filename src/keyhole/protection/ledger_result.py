"""What a ledger holds: a line for each step, risk and utility side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.exposure.cells import Exposure
from keyhole.protection.apply import Protection
from keyhole.protection.method import Protected, column_list, warnings_table
from keyhole.protection.next_steps import NextStep, next_steps_table
from keyhole.protection.plan import Plan
from keyhole.protection.prices import FIGURES, Price
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair

__all__ = [
    "HEADS",
    "Ledger",
    "LedgerLine",
    "Readings",
    "figure",
    "meaning",
    "missing_notes",
    "other_reading",
    "risk_cells",
    "risk_heads",
    "shown_heads",
]

Readings = tuple[float | None, float | None]
"""RP with a missing value as a category of its own, and as one that matches every value."""

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


# More variables than this are told by their number.
_MOST_TOLD = 8


def meaning(name: str, targets: Sequence[str]) -> str:
    """Say what a figure of the ledger is; of what is lost, over which variables: it hangs on them.

    Examples
    --------
    >>> meaning("lost", ["sex", "age"])
    'share of information lost (entropy), mean over the variables sex, age'
    """
    if name != "lost" or not targets:
        return FIGURES[name]
    told = ", ".join(targets[:_MOST_TOLD])
    more = len(targets) - _MOST_TOLD
    return f"{FIGURES[name]} {told}" + (f" and {more:,} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """The state of the file after one step; step 0 is the file as it was.

    `keys` are those that are left. `rp`, `cr` and `uniques` are None where no key is left;
    `population_uniques` where it is not estimable. `rp_own` and `rp_wildcard` are RP with a
    missing value as a category of its own, and as one that matches every value.
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
    rp_own: float | None = None
    rp_wildcard: float | None = None

    @classmethod
    def of(
        cls,
        number: int,
        step: Protected | None,
        exposure: Exposure | None,
        uniques: float | None,
        price: Price,
        readings: Readings,
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
            *readings,
        )

    @property
    def words(self) -> str:
        """The step in a few words."""
        if not self.step:
            return "the file as it is"
        if len(self.columns) > 3:
            return f"{self.method} {len(self.columns)} columns"
        return f"{self.method} {column_list(self.columns) or ''}".strip()

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
            "rp_own": self.rp_own,
            "rp_wildcard": self.rp_wildcard,
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
    seed, plan
        The secret with which the plan was carried out, and the plan as it was given; in no
        dictionary and no table.
    warnings
        What is to be minded before the file goes out: what can be read off above all.
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
    plan: Plan | None = None
    warnings: tuple[str, ...] = ()

    @property
    def last(self) -> LedgerLine:
        """The line of the file after the whole plan."""
        return self.lines[-1]

    @property
    def rp(self) -> float | None:
        """RP of the file that goes out, with what an outsider can read off what stayed."""
        told = self.protection.read_off
        return self.last.rp if told is None else told.rp

    @property
    def meets(self) -> bool | None:
        """Whether the limit is met with what can be read off; None without one, or a key."""
        if self.limit is None or self.rp is None:
            return None
        return self.rp <= self.limit

    @property
    def verdict(self) -> str:
        """Whether the limit is met, in words; nothing without one."""
        return "" if self.meets is None else _verdict(self)

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
            "rp": self.rp,
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
        found += warnings_table(self.warnings)
        if self.next_steps:
            found.append(next_steps_table(self.next_steps, self.limit or 0.0, self.cutoff))
        return found

    def _table(self) -> Table:
        heads = shown_heads([line.price for line in self.lines])
        with_people = not self.unestimated
        other = other_reading(self.lines, self.missing)
        rows = [
            [str(line.step), line.words, f"{line.changed:,}" if line.step else "",
             *risk_cells(line, with_people=with_people, other=other),
             *(figure(name, getattr(line.price, name)) for name in heads)]
            for line in self.lines
        ]  # fmt: skip
        columns = ["step", "what", "changed", *risk_heads(self.cutoff, with_people, other),
                   *heads.values()]  # fmt: skip
        title = f"Ledger of {self.protection.data.name} on {', '.join(self.keys)}"
        return Table(title, columns, rows, self._notes())

    def _notes(self) -> list[str]:
        notes = [self.verdict] if self.verdict else []
        notes += missing_notes(self.missing, other_reading(self.lines, self.missing))
        if self.unestimated:
            notes.append(f"Population uniques are not estimable: {self.unestimated}.")
        heads = shown_heads([line.price for line in self.lines])
        notes += [f"{HEADS[name]}: {meaning(name, self.targets)}." for name in heads]
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
    """Say whether the limit is met; and if only in one reading, so."""
    assert found.limit is not None
    assert found.rp is not None
    limit, state = percentage(found.limit), "within" if found.meets else "above"
    told = "" if found.protection.read_off is None else ", with what can be read off"
    text = f"RP({found.cutoff}) is {share(found.rp)} after the plan{told}, {state} the limit of "
    own = found.last.rp_own
    if found.meets and found.missing == "wildcard" and own is not None and own > found.limit:
        return (
            f"{text}{limit} only where a missing value matches every value: as a category of its "
            f"own it makes RP {share(own)}, above the limit."
        )
    return f"{text}{limit}."


def missing_notes(missing: str, other: str | None) -> list[str]:
    """Say how a missing key is counted, and what the column of the other reading is."""
    notes = []
    if missing == "wildcard":
        notes.append("A missing key matches every value, both ways, in all lines.")
    if other == "rp_own":
        notes.append("RP own: with a missing key as a category of its own, the cautious reading.")
    if other == "rp_wildcard":
        notes.append("RP wild: with a missing key that matches every value, both ways.")
    return notes


def other_reading(lines: Sequence[LedgerLine], missing: str) -> str | None:
    """Return the figure of the reading that was not asked for, if it differs anywhere."""
    name = "rp_own" if missing == "wildcard" else "rp_wildcard"
    return name if any(getattr(line, name) != line.rp for line in lines) else None


def shown_heads(prices: Sequence[Price]) -> Mapping[str, str]:
    """Return the heads of the figures that there are for any file that was compared."""
    measured = [price for price in prices if price.by_variable is not None]
    return {
        name: head
        for name, head in HEADS.items()
        if name == "lost" or any(getattr(price, name) is not None for price in measured)
    }


def risk_heads(cutoff: int, with_people: bool, other: str | None) -> list[str]:
    """Return the heads of the risk of a line."""
    also = {"rp_own": ["RP own"], "rp_wildcard": ["RP wild"]}.get(other or "", [])
    people = ["in population"] if with_people else []
    return [f"RP({cutoff})", *also, "CR", "uniques", *people]


def risk_cells(line: LedgerLine, *, with_people: bool, other: str | None = None) -> list[str]:
    """Write the risk of a line."""
    uniques = "" if line.uniques is None else f"{line.uniques:,}"
    expected = line.population_uniques
    people = "not estimable" if expected is None else f"{expected:,.0f}"
    also = [] if other is None else [share(getattr(line, other))]
    return [share(line.rp), *also, share(line.cr), uniques, *([people] if with_people else [])]


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
