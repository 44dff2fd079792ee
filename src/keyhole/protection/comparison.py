"""Comparison of plans: which meet the limit, and which of those loses least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.data.reading import load
from keyhole.engines import Missing
from keyhole.errors import InputError, OptionError
from keyhole.exposure.checks import listed
from keyhole.protection.apply import PlanLike, policy_of, read_plan
from keyhole.protection.ledger import ledger, ledger_targets
from keyhole.protection.ledger_result import (
    HEADS,
    Ledger,
    figure,
    meaning,
    missing_notes,
    other_reading,
    risk_cells,
    risk_heads,
    shown_heads,
)
from keyhole.protection.plan import Plan
from keyhole.results import Result, Table

if TYPE_CHECKING:
    import altair

__all__ = ["PlanComparison", "compare_plans"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlanComparison(Result):
    """The ledgers of several plans, on the same key and the same variables."""

    ledgers: Mapping[str, Ledger]

    @property
    def best(self) -> str | None:
        """The plan within the limit that loses least information; None if no plan is within."""
        fit = [name for name, one in self.ledgers.items() if one.meets]
        return min(fit, key=lambda name: self.ledgers[name].last.price.lost or 0.0, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "best": self.best,
            "plans": [{"plan": name, **one.to_dict()} for name, one in self.ledgers.items()],
        }

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
            for table in one.tables()[1:]:
                if table.title.startswith("Cheapest") or table.title == "Mind":
                    title = f"{table.title} after plan {name}"
                    found.append(Table(title, table.columns, table.rows, table.notes))
        return found

    def _table(self) -> Table:
        heads = shown_heads([one.last.price for one in self.ledgers.values()])
        first = next(iter(self.ledgers.values()))
        people = not first.unestimated
        lasts = [one.last for one in self.ledgers.values()]
        other = other_reading(lasts, first.missing)
        rows = [
            [name, str(len(one.lines) - 1), f"{one.protection.changed:,}",
             *risk_cells(one.last, with_people=people, other=other),
             *(figure(key, getattr(one.last.price, key)) for key in heads),
             {True: "yes", False: "no", None: ""}[one.meets]]
            for name, one in self.ledgers.items()
        ]  # fmt: skip
        columns = ["plan", "steps", "changed", *risk_heads(first.cutoff, people, other),
                   *heads.values(), "within the limit"]  # fmt: skip
        if first.limit is None:
            columns, rows = columns[:-1], [row[:-1] for row in rows]
        notes = [] if self.best is None else [f"Within the limit, {self.best} loses least."]
        notes += self._verdicts() + missing_notes(first.missing, other)
        notes += [f"{HEADS[name]}: {meaning(name, first.targets)}." for name in heads]
        return Table(f"Plans for {first.protection.data.name}", columns, rows, notes)

    def _verdicts(self) -> list[str]:
        """Say of each plan what its RP comes to, where that takes more than a figure."""
        return [
            f"{name}: {one.verdict}"
            for name, one in self.ledgers.items()
            if one.verdict and (one.protection.read_off is not None or " only " in one.verdict)
        ]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the risk-utility map with a path for each plan."""
        from keyhole.protection.charts import ledger_chart

        return ledger_chart(self.ledgers)


def compare_plans(
    data: Any,
    plans: Mapping[str, PlanLike],
    *,
    keys: Iterable[str] | None = None,
    cutoff: int = 3,
    limit: float | None = None,
    weight: str | None = None,
    fraction: float | None = None,
    formula: str | None = None,
    targets: Iterable[str] | None = None,
    seed: int | None = None,
    missing: Missing | None = None,
) -> PlanComparison:
    """Keep the ledgers of several plans and set them side by side.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    plans
        The plans by name, each as in `keyhole.ledger`.
    keys, cutoff, limit, weight, fraction, formula, targets, seed, missing
        As in `keyhole.ledger`, the same for all. The variables whose loss counts are the keys
        and what any of the plans changes. A missing key counts for all as it does for the first
        plan that suppresses.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> plans = {"top": [{"method": "top-code", "column": "age", "value": 89}],
    ...          "drop": [{"method": "drop", "columns": ["age"]}]}
    >>> compare_plans(people, plans, keys=["sex", "age"], cutoff=2, limit=0.5).best
    'top'
    """
    data, read = load(data), _read(plans)
    named = data.role("key") if keys is None else listed(keys, "keys")
    counts = targets
    if targets is None:
        counts = ledger_targets(data, list(read.values()), named, weight)
    policies = [policy_of(plan) for plan in read.values()]
    policy = missing or next((one for one in policies if one != "own"), policies[0])
    found, problems = {}, []
    for name, plan in read.items():
        try:
            found[name] = ledger(
                data, plan, keys=named, cutoff=cutoff, limit=limit, weight=weight,
                fraction=fraction, formula=formula, targets=counts, seed=seed, missing=policy,
            )  # fmt: skip
        except InputError as error:
            problems += [f"plan {name!r}: {problem}" for problem in error.problems]
    if problems:
        raise OptionError(problems)
    return PlanComparison(found)


def _read(plans: Mapping[str, PlanLike]) -> dict[str, Plan]:
    if not isinstance(plans, Mapping) or not plans:
        raise OptionError("plans must be a table of plans by name. Got none instead.")
    read, problems = {}, []
    for name, plan in plans.items():
        try:
            read[str(name)] = read_plan(plan)
        except InputError as error:
            problems += [f"plan {name!r}: {problem}" for problem in error.problems]
    if problems:
        raise OptionError(problems)
    return read
