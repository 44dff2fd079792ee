"""Comparison of plans: which meet the limit, and which of those loses least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.core.options import Question, bind
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.engines import Missing
from keyhole.errors import InputError, OptionError
from keyhole.protection.apply import (
    PlanLike,
    as_draft,
    keys_of,
    open_to_protect,
    policy_of,
    protect,
)
from keyhole.protection.ledger import keep_ledger, ledger_targets
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
from keyhole.protection.plan import Plan, PlanDraft
from keyhole.results import Result, Table

if TYPE_CHECKING:
    import altair

__all__ = ["PlanComparison", "compare_ledgers", "compare_plans"]


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
    keys: Names | None = None,
    cutoff: int = 3,
    limit: float | None = None,
    weight: str | None = None,
    fraction: float | None = None,
    formula: str | None = None,
    targets: Names | None = None,
    seed: int | None = None,
    missing: Missing | None = None,
) -> PlanComparison:
    """Keep the ledgers of several plans, given by name, and set them side by side.

    The options are those of `keyhole.protect`, the same for all plans. The variables whose loss
    counts are the keys and what any of the plans changes. A missing key counts for all as it does
    for the first plan that suppresses.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> plans = {"top": [{"method": "top-code", "column": "age", "value": 89}],
    ...          "drop": [{"method": "drop", "columns": ["age"]}]}
    >>> compare_plans(people, plans, keys=["sex", "age"], cutoff=2, limit=0.5).best
    'top'
    """
    if not isinstance(plans, Mapping) or not plans:
        raise OptionError("plans must be a table of plans by name. Got none instead.")
    drafts = {str(name): _draft(str(name), plan) for name, plan in plans.items()}
    first = next(iter(drafts.values()))
    question = bind(protect, {**locals(), "plan": first, "ledger": True})
    return compare_ledgers(open_to_protect(question, data, drafts), drafts, question)


def _draft(name: str, plan: PlanLike) -> PlanDraft:
    """Read a plan whose problems name it."""
    where = f"plan {name!r}: "
    try:
        draft = as_draft(plan)
    except InputError as error:
        return PlanDraft({}, tuple(f"{where}{problem}" for problem in error.problems))
    problems = tuple(f"{where}{problem}" for problem in draft.problems)
    return replace(draft, problems=problems, where=f"{where}{draft.where}")


def compare_ledgers(
    data: Microdata, drafts: Mapping[str, PlanDraft], question: Question
) -> PlanComparison:
    """Keep the ledgers of plans that were checked against the data."""
    plans = {name: Plan.of(draft) for name, draft in drafts.items()}
    targets, policies = question.targets, [policy_of(plan) for plan in plans.values()]
    if targets is None:
        keys = keys_of(question, data)
        targets = ledger_targets(data, list(plans.values()), keys, question.weight)
    missing = question.missing or next((one for one in policies if one != "own"), policies[0])
    question = question.replace(targets=targets, missing=missing)
    return PlanComparison(
        {name: keep_ledger(data, draft, question) for name, draft in drafts.items()}
    )
