"""Everything that keeps a plan from being carried out on a file and measured, told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhole.core.names import plural
from keyhole.data.microdata import Microdata
from keyhole.errors import InputError
from keyhole.exposure.cells import option_problems
from keyhole.exposure.checks import problems_of, share_problems
from keyhole.protection.drafts import Draft
from keyhole.protection.options import is_seed
from keyhole.protection.plan import Plan
from keyhole.protection.steps import Step
from keyhole.utility.formulas import formula_columns

__all__ = ["PlanLike", "draft_of", "measure_problems", "plan_problems"]

PlanLike = Plan | Draft | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def draft_of(plan: PlanLike) -> Draft:
    """Return a plan as a draft, whatever it was given as.

    Examples
    --------
    >>> draft_of([{"method": "rond", "column": "age"}]).problems
    ("step 1: 'rond' is not a method. Did you mean 'round'?",)
    """
    if isinstance(plan, Draft):
        return plan
    if isinstance(plan, Plan):
        return Draft(dict(enumerate(plan.steps, 1)), (), plan.title, plan.keep_order)
    if isinstance(plan, os.PathLike) or (isinstance(plan, str) and "[[" not in plan):
        return Draft.read(Path(plan))
    return Draft.of(plan)


def plan_problems(
    data: Microdata,
    plan: Plan | Draft,
    keys: tuple[str, ...],
    *,
    seed: Any,
    cutoff: Any,
    missing: Any,
) -> list[str]:
    """Return everything that keeps a plan from being carried out on a file, and measured."""
    draft = draft_of(plan)
    problems = option_problems(cutoff=cutoff, missing=missing) + problems_of(data, keys, "key")
    wanted = None if seed is None else is_seed(seed)
    if wanted is not None:
        problems.append(f"seed must be {wanted}. Got something else instead.")
    unfit = [f"{draft.where}{problem}" for problem in _unfit_steps(data, draft.steps)]
    return [*problems, *draft.problems, *unfit]


def _unfit_steps(data: Microdata, steps: Mapping[int, Step]) -> list[str]:
    problems: list[str] = []
    touched: set[str] = set()
    for number, step in steps.items():
        found = _unfit(data, step, touched)
        problems += [f"step {number} ({step.method}): {problem}" for problem in found]
        # After a sample no column has the records it had.
        touched |= set(data.names) if step.method == "sample" else set(step.columns)
    return problems


def _unfit(data: Microdata, step: Step, touched: set[str]) -> list[str]:
    """Check a step against the data, as far as earlier steps have not changed them."""
    method, options = step.entry.method, step.effective
    named = method.columns(options)
    if touched.isdisjoint(named):
        return method.unfit_for(data, options)
    return problems_of(data, named, "column") or _too_many(data, options)


def _too_many(data: Microdata, options: Mapping[str, Any]) -> list[str]:
    """Say of a size that no step before can make possible so."""
    sizes = {"k": options.get("k")}
    if options.get("population") is None and "areas" not in options:
        sizes["threshold"] = options.get("threshold")
    return [
        f"{option} must be at most the {plural(data.records, 'record')} of the file. Got more."
        for option, size in sizes.items()
        if isinstance(size, int | float) and size > data.records
    ]


def measure_problems(
    data: Microdata,
    keys: tuple[str, ...],
    targets: Sequence[str],
    *,
    limit: Any,
    weight: str | None,
    fraction: Any,
    formula: str | None,
) -> list[str]:
    """Return everything that keeps the ledger of a plan from being kept."""
    problems = option_problems(weight=weight, fraction=fraction)
    problems += [] if limit is None else share_problems("limit", limit)
    problems += problems_of(data, targets, "target")
    if not keys:
        problems.append("keys must name at least one column: a ledger is about the risk on them.")
    if weight is not None:
        problems += problems_of(data, [weight], "weight") or _weight_problems(data, weight)
    if formula is not None:
        try:
            formula_columns(formula, data.names)
        except InputError as error:
            problems += error.problems
    return problems


def _weight_problems(data: Microdata, weight: str) -> list[str]:
    try:
        data.weights(weight)
    except InputError as error:
        return list(error.problems)
    return []
