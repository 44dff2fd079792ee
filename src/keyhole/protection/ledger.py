"""The ledger: after every step of a plan, what it bought and what it cost.

Officers recode, top-code, swap and suppress one step after the other; beside each stands the
exposure that is left and what the analyst has lost since the original.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines import Missing
from keyhole.errors import InputError, OptionError
from keyhole.exposure.cells import Exposure, option_problems, risk
from keyhole.exposure.checks import listed, problems_of, share_problems
from keyhole.protection.applying import (
    PlanLike,
    Protection,
    apply_plan,
    plan_problems,
    policy_of,
    read_plan,
)
from keyhole.protection.giving_away import given_away
from keyhole.protection.ledger_result import Ledger, LedgerLine
from keyhole.protection.next_steps import NextStep, find_next_steps
from keyhole.protection.plan import Plan
from keyhole.protection.population import Population
from keyhole.protection.prices import NOTHING_LOST, measure_overlap, measure_price
from keyhole.protection.protected import Protected
from keyhole.utility.formulas import formula_columns

__all__ = ["ledger", "ledger_targets"]

Ints = npt.NDArray[np.int64]

# Columns of these roles are nothing to an analyst's tables.
NOT_ANALYSED = ("identifier", "household", "weight", "drop")


def ledger(
    data: Any,
    plan: PlanLike,
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
) -> Ledger:
    """Carry out a plan and tell after each step the risk that is left and what is lost.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    plan
        A `Plan`, a TOML file, or a list of steps. A step is undone by leaving its line out
        (`Plan.without`): the draws of the others stay as they were.
    keys
        What an intruder is assumed to know; the columns with the role ``key`` if left out.
    cutoff
        Records in cells smaller than this are at risk.
    limit
        The largest RP accepted: where the plan does not reach it, the cheapest next step is
        looked for.
    weight, fraction
        A column with the number of people each record stands for, or the share of the
        population in the file: then it is estimated how many sample uniques are unique in the
        population.
    formula
        A regression whose coefficients are compared, like ``income ~ age + sex``.
    targets
        The variables whose loss counts; the keys and what the plan changes if left out, but for
        identifiers, households and weights.
    seed
        The secret of everything random.
    missing
        How a missing key counts, as in `keyhole.apply_plan`.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": [*"ffmmmf"], "age": [30, 31, 33, 34, 34, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89},
    ...          {"method": "recode", "column": "age", "width": 10}]
    >>> found = ledger(people, steps, keys=["sex", "age"])
    >>> [(line.step, round(line.rp, 2), round(line.price.lost, 2)) for line in found.lines]
    [(0, 1.0, 0.0), (1, 1.0, 0.0), (2, 0.5, 0.36)]
    """
    data, read = load(data), read_plan(plan)
    named = data.role("key") if keys is None else listed(keys, "keys")
    policy: Missing = missing or policy_of(read)
    wanted = ledger_targets(data, [read], named) if targets is None else listed(targets, "targets")
    problems = plan_problems(data, read, named, seed=seed, cutoff=cutoff, missing=policy)
    problems += _problems(data, named, wanted, limit, weight, fraction, formula)
    if problems:
        raise OptionError(dict.fromkeys(problems))
    data.require_records()
    population = Population.of(data, weight, fraction)
    done, rows = _tracked(data, read, named, seed, cutoff, policy)
    lines = _lines(data, done, rows, named, wanted, formula, population)
    last = lines[-1]
    steps: tuple[NextStep, ...] = ()
    if limit is not None and last.rp is not None and last.rp > limit:
        steps = find_next_steps(
            data, done.data, rows[-1], keys=last.keys, targets=wanted, limit=limit,
            cutoff=cutoff, missing=policy, now=last.price,
        )  # fmt: skip
    return Ledger(
        protection=done,
        lines=tuple(lines),
        keys=named,
        targets=wanted,
        cutoff=cutoff,
        missing=policy,
        limit=limit,
        formula=formula,
        next_steps=steps,
        unestimated=population.unestimated,
        seed=seed,
        warnings=tuple(given_away(data, done.data, rows[-1], done.steps)),
    )


def ledger_targets(data: Microdata, plans: Sequence[Plan], keys: Iterable[str]) -> tuple[str, ...]:
    """Return the variables whose loss counts unless told otherwise."""
    changed = [name for plan in plans for step in plan.steps for name in step.columns]
    names = dict.fromkeys([*keys, *changed])
    return tuple(
        name
        for name in names
        if name in data.names
        and data.variable(name).role not in NOT_ANALYSED
        and data.variable(name).kind != "text"
    )


def _problems(
    data: Microdata,
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    limit: Any,
    weight: str | None,
    fraction: Any,
    formula: str | None,
) -> list[str]:
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


def _tracked(
    data: Microdata,
    plan: Plan,
    keys: tuple[str, ...],
    seed: int | None,
    cutoff: int,
    missing: Missing,
) -> tuple[Protection, list[Ints]]:
    """Carry out a plan, and tell after each step which records of the file are left.

    A column of row numbers that no step names goes along and is taken off again.
    """
    name = "row"
    while name in data.names:
        name += "_"
    numbers = pl.Series(name, np.arange(data.records))
    with_rows = data.replace(frame=data.frame.with_columns(numbers))
    done = apply_plan(with_rows, plan, keys=keys, seed=seed, cutoff=cutoff, missing=missing)
    rows = [step.data.frame[name].to_numpy().astype(np.int64) for step in done.steps]
    steps = tuple(dataclasses.replace(step, data=_without(step.data, name)) for step in done.steps)
    return dataclasses.replace(done, data=steps[-1].data, steps=steps), rows


def _without(data: Microdata, name: str) -> Microdata:
    return data.select([column for column in data.names if column != name])


def _lines(
    data: Microdata,
    done: Protection,
    rows: Sequence[Ints],
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    formula: str | None,
    population: Population,
) -> list[LedgerLine]:
    """Measure after each step; what a step did not touch is not measured again."""
    assert done.before is not None  # there are keys
    exposure: Exposure | None = done.before
    uniques = population.uniques(data, np.arange(data.records), done.before)
    price = NOTHING_LOST
    modelled: list[str] = []
    if formula is None:
        price = dataclasses.replace(price, overlap=None)
    else:
        modelled = formula_columns(formula, data.names)
    lines = [LedgerLine.of(0, None, exposure, uniques, price)]
    for number, (step, kept) in enumerate(zip(done.steps, rows, strict=True), 1):
        if step.left_out or not set(step.columns).isdisjoint(keys):
            exposure = _exposure(step.data, keys, done.before)
            uniques = population.uniques(step.data, kept, exposure)
        if step.left_out or _touches(step, targets):
            found = measure_price(data, step.data, targets=targets, kept=kept)
            price = found.with_overlap_of(price)
        if formula is not None and (step.left_out or _touches(step, modelled)):
            price = price.with_overlap_of(measure_overlap(data, step.data, formula))
        lines.append(LedgerLine.of(number, step, exposure, uniques, price))
    return lines


def _exposure(data: Microdata, keys: tuple[str, ...], like: Exposure) -> Exposure | None:
    """Measure exposure on the keys that are left; None where none is."""
    left = [name for name in keys if name in data.names]
    missing: Any = like.missing
    return risk(data, keys=left, cutoff=like.cutoff, missing=missing) if left else None


def _touches(step: Protected, names: Iterable[str]) -> bool:
    """Tell whether a step changed any value of some columns."""
    changed = {name for name, count in step.by_column.items() if count}
    return not changed.isdisjoint(names)
