"""Ledgers: after every step of a plan, the risk that is left and what it cost; plans compared.

Officers recode, top-code, swap and suppress one step after the other; beside each stands the
exposure that is left and what the analyst has lost since the original.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.options import Question, bind
from keyhole.data.microdata import Microdata
from keyhole.engines import Missing
from keyhole.engines.choose import local_engine
from keyhole.errors import OptionError
from keyhole.exposure.attributes_cells import SensitiveCodes, told_figures
from keyhole.exposure.cells import Exposure, risk
from keyhole.exposure.loglinear import population_uniques
from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.apply import (
    PlanLike,
    as_draft,
    carry_out,
    keys_of,
    open_to_protect,
    protect,
)
from keyhole.protection.method import METHODS
from keyhole.protection.next_steps import NextStep, find_next_steps
from keyhole.protection.plan import Plan, PlanDraft
from keyhole.protection.prices import NOTHING_LOST, measure_overlap, measure_price
from keyhole.protection.release import rows_after
from keyhole.protection.results import (
    Ledger,
    LedgerLine,
    NamedLedger,
    PlanComparison,
    Protection,
)
from keyhole.screening.identifiers import recognise, words
from keyhole.utility.formulas import formula_columns
from keyhole.utility.information import derivation_sources, derived_from

WEIGHT = "weight"


def _population_uniques(
    people: Floats | None, data: Microdata, kept: Ints, exposure: Exposure
) -> float | None:
    """Estimate how many uniques are unique in the population, by a log-linear model.

    The model is of the same family (forest) after every step: if it were chosen anew, the
    estimates would differ by the choice too. `people` is how many each record of the original
    stands for; those that are left (`kept`) stand for the others too.
    """
    if people is None or not exposure.uniques:
        return None if people is None else 0.0
    if not people[kept].sum() > 0:
        return None
    mine = people[kept] * (people.sum() / people[kept].sum())
    columns = [data.column(name).alias(f"key {i}") for i, name in enumerate(exposure.keys)]
    frame = pl.DataFrame([*columns, pl.Series(WEIGHT, np.maximum(mine, 1.0))])
    found = population_uniques(frame, keys=frame.columns[:-1], weight=WEIGHT, model="forest")
    return float(np.nansum(found.probability[exposure.f == 1]))


# Columns of these roles are nothing to an analyst's tables.
NOT_ANALYSED = ("identifier", "household", "weight", "drop")
# How sure one must be that a name or a label is that of a direct identifier; of the number of a
# record less, since nobody makes tables of numbers.
SURE, NUMBER = 0.8, 0.5
_HOUSEHOLD = {"household", "hh", "hhid", "dwelling", "serialno"}
_NUMBERED = {"id", "number", "no", "nr", "serial", "key"}


def ledger(data: Any, plan: PlanLike, **options: Any) -> Ledger:
    """Carry out a plan and measure after each step the risk that is left and what is lost.

    The options are those of `keyhole.protect`. A step is undone by leaving its line out
    (`Plan.without`): the draws of the others stay as they were.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": [*"ffmmmf"], "age": [30, 31, 33, 34, 34, 97]})
    >>> steps = [{"method": "top-code", "column": "age", "value": 89},
    ...          {"method": "recode", "column": "age", "width": 10}]
    >>> found = ledger(people, steps, keys=["sex", "age"])
    >>> [(line.step, round(line.rp, 2), round(line.price.lost, 2)) for line in found.lines]
    [(0, 1.0, 0.0), (1, 1.0, 0.0), (2, 0.5, 0.36)]
    """
    found = protect(data, plan=plan, ledger=True, **options).ledger
    assert found is not None
    return found


def keep_ledger(data: Microdata, draft: PlanDraft, question: Question) -> Ledger:
    """Keep the ledger of a plan that was checked against the data."""
    named, policy = keys_of(question, data), question.missing
    cutoff, limit, formula = question.cutoff, question.limit, question.formula
    read, wanted = Plan.of(draft), question.targets
    if wanted is None:
        wanted = ledger_targets(data, [read], named, question.weight)
    people = None if question.weight is None else data.weights(question.weight)
    if question.fraction is not None:
        people = np.full(data.records, 1 / question.fraction)
    done = carry_out(data, draft, question)
    rows = rows_after(data.records, done.steps)
    derived = derivation_sources(data, *(step.data for step in done.steps))
    lines = _lines(data, done, rows, read.known_with(named), wanted, formula, people, derived)
    last = lines[-1]
    steps: tuple[NextStep, ...] = ()
    if limit is not None and last.rp is not None and last.rp > limit:
        steps = find_next_steps(
            data, done.data, rows[-1], keys=last.keys, targets=wanted, limit=limit,
            cutoff=cutoff, missing=policy, now=last.price, derived=derived,
        )  # fmt: skip
    loss = last.price.by_variable
    return Ledger(
        keys=named,
        targets=wanted,
        cutoff=cutoff,
        missing=policy,
        limit=limit,
        formula=formula,
        rp=last.rp if done.read_off is None else done.read_off.rp,
        lines=tuple(lines),
        variables=() if loss is None else loss.variables,
        next_steps=steps,
        warnings=(*done.warnings, *_risen(lines)),
        protection=done,
        unestimated="neither weight nor fraction is given" if people is None else "",
        seed=question.seed,
        plan=read,
    ).with_notes()


def ledger_targets(
    data: Microdata, plans: Sequence[Plan], keys: Iterable[str], weight: str | None = None
) -> tuple[str, ...]:
    """Return the variables whose loss counts unless told otherwise."""

    def is_analysed(name: str) -> bool:
        variable = data.variable(name)
        if variable.kind == "text" or variable.role is not None:
            return variable.kind != "text" and variable.role not in NOT_ANALYSED
        found, said = recognise(name, variable.label), set(words(name))
        if said <= _HOUSEHOLD | _NUMBERED and said & _HOUSEHOLD:
            return False
        return not (found and found.confidence >= (NUMBER if found.safe_harbor == "R" else SURE))

    changed = (name for plan in plans for step in plan.steps for name in step.columns)
    names = [name for name in dict.fromkeys([*keys, *changed]) if name in data.names]
    return tuple(name for name in names if name != weight and is_analysed(name))


def _risen(lines: Sequence[LedgerLine]) -> list[str]:
    """Say of steps after which RP is higher that what they made is rarer, and not the truth."""
    return [
        f"after step {line.step} ({line.method}) RP is higher than before: its new values make "
        f"keys that nobody had. RP only sees whether keys are equal; a study shows more"
        for before, line in itertools.pairwise(lines)
        if METHODS[line.method or ""].effect in ("perturbs", "exchanges")
        and line.keys == before.keys
        and (line.rp or 0.0) > (before.rp or 0.0)
    ]


def _lines(
    data: Microdata,
    done: Protection,
    rows: Sequence[Ints],
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    formula: str | None,
    people: Floats | None,
    derived: Mapping[str, Sequence[str]],
) -> list[LedgerLine]:
    """Measure after each step; what a step did not touch is not measured again."""
    assert done.before is not None  # there are keys
    exposure, every = done.before.exposure, np.arange(data.records)
    measure = partial(risk, cutoff=done.before.cutoff, missing=done.before.missing)
    modelled = formula_columns(formula, data.names) if formula else []
    # What is derived from a target stands for it once it is dropped.
    telling = {*targets, *(made for name in targets for made in derived_from(name, derived))}
    sensitive = [name for name in data.role("sensitive") if name not in keys]
    line = LedgerLine(
        step=0, method=None, columns=(), changed=0, left_out=0,
        **_risk_figures(data, exposure, people, every),
        price=NOTHING_LOST if formula else dataclasses.replace(NOTHING_LOST, overlap=None),
        homogeneous=_told(data, exposure, sensitive),
    )  # fmt: skip
    lines = [line]
    for number, (step, kept) in enumerate(zip(done.steps, rows, strict=True), 1):
        risks: dict[str, Any] = {}
        if step.left_out or not set(step.columns).isdisjoint(keys):
            left = [name for name in keys if name in step.data.names]
            exposure = measure(step.data, keys=left) if left else None
            risks = _risk_figures(step.data, exposure, people, kept)
        changed, price = {name for name, count in step.by_column.items() if count}, line.price
        if risks and not changed and not step.left_out:  # the same cells have the same estimate
            risks["population_uniques"] = line.population_uniques
        if step.left_out or not changed.isdisjoint(telling):
            found = measure_price(data, step.data, targets=targets, kept=kept, derived=derived)
            price = found.with_overlap_of(price)
        if formula and (step.left_out or not changed.isdisjoint(modelled)):
            price = price.with_overlap_of(measure_overlap(data, step.data, formula))
        line = dataclasses.replace(
            line, step=number, method=step.method, columns=step.columns, changed=step.changed,
            left_out=step.left_out, **risks, price=price,
            homogeneous=_told(step.data, exposure, sensitive),
        )  # fmt: skip
        lines.append(line)
    return lines


def _risk_figures(
    data: Microdata, found: Exposure | None, people: Floats | None, kept: Ints
) -> dict[str, Any]:
    """Return the figures of a line on its key, RP in both readings of a missing value."""
    if found is None:
        figures = ("rp", "cr", "uniques", "population_uniques", "rp_own", "rp_wildcard")
        return {"keys": (), **dict.fromkeys(figures)}
    readings = dict.fromkeys(("rp_own", "rp_wildcard"), found.rp)
    both: tuple[Missing, ...] = ("own", "wildcard")
    for reading in both if any(data.codes(name).has_missing for name in found.keys) else ():
        if reading != found.missing:
            read = risk(data, keys=found.keys, cutoff=found.cutoff, missing=reading)
            readings[f"rp_{reading}"] = read.rp
    uniques = _population_uniques(people, data, kept, found)
    counted = {"keys": found.keys, "rp": found.rp, "cr": found.cr, "uniques": found.uniques}
    return {**counted, "population_uniques": uniques, **readings}


def _told(
    data: Microdata, found: Exposure | None, sensitive: Sequence[str]
) -> dict[str, float] | None:
    """Return the homogeneous share of each sensitive column that is left, if there are any."""
    if not sensitive or found is None:
        return None
    left = {name: SensitiveCodes.of(data, name) for name in sensitive if name in data.names}
    told = told_figures(local_engine(data, found.keys), found.keys, left)
    return {name: one.homogeneous for name, one in told.items()}


def compare_plans(data: Any, plans: Mapping[str, PlanLike], **options: Any) -> PlanComparison:
    """Keep the ledgers of several plans, given by name, and set them side by side.

    The options are those of `keyhole.protect`, the same for all plans. The variables whose loss
    counts are the keys and what any of the plans changes. A missing key counts for all as it does
    for the first plan that suppresses.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": [*"ffmm"], "age": [30, 34, 91, 97]})
    >>> plans = {"top": [{"method": "top-code", "column": "age", "value": 89}],
    ...          "drop": [{"method": "drop", "columns": ["age"]}]}
    >>> compare_plans(people, plans, keys=["sex", "age"], cutoff=2, limit=0.5).best
    'top'
    """
    if not isinstance(plans, Mapping) or not plans:
        raise OptionError("plans must be a table of plans by name. Got none instead.")
    named = {str(name): plan for name, plan in plans.items()}
    drafts = {name: as_draft(plan, f"plan {name!r}: ") for name, plan in named.items()}
    first = next(iter(drafts.values()))
    inspect.signature(protect).bind(data, plan=first, **options)  # refuses names of no option
    question = bind(protect, {**options, "plan": first, "ledger": True})
    return compare_ledgers(open_to_protect(question, data, drafts), drafts, question)


def compare_ledgers(
    data: Microdata, drafts: Mapping[str, PlanDraft], question: Question
) -> PlanComparison:
    """Keep the ledgers of plans that were checked against the data."""
    plans = [Plan.of(draft) for draft in drafts.values()]
    targets = question.targets
    if targets is None:
        targets = ledger_targets(data, plans, keys_of(question, data), question.weight)
    question = question.replace(targets=targets)
    kept = ((name, keep_ledger(data, draft, question)) for name, draft in drafts.items())
    return PlanComparison(tuple(NamedLedger(name, one) for name, one in kept))
