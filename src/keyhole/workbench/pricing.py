"""The price of a step: the ledger of the plan with it, computed without changing the review."""

from __future__ import annotations

import dataclasses
import secrets
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhole.data import Microdata
from keyhole.errors import OptionError, RunError
from keyhole.protection.apply import draws, plan_problems, policy_of
from keyhole.protection.ledger import ledger
from keyhole.protection.ledger_result import Ledger
from keyhole.protection.plan import Plan, toml_of
from keyhole.reviews.checks import read_review
from keyhole.reviews.resolving import resolve_protection
from keyhole.reviews.settings import ProtectionSettings, Review
from keyhole.reviews.stages.protection import PROTECTION_STAGE
from keyhole.workbench.proposals import Price

__all__ = ["planned_steps", "price_step", "protection_of", "require_fit", "with_step"]

MOST_SEED = 2**53


def protection_of(review: Review) -> ProtectionSettings:
    """Return what the review says of protection, or would say if it had a plan."""
    return review.protection or resolve_protection({}, review)


def planned_steps(review: Review) -> list[dict[str, Any]]:
    """Return the steps of the review's plan, as the file has them."""
    if review.protection is None or not review.protection.plan:
        return []
    found: list[dict[str, Any]] = tomllib.loads(review.protection.plan)["step"]
    return found


def with_step(review: Review, step: Mapping[str, Any]) -> Plan:
    """Return the plan with one more step, or say what is wrong with it."""
    return Plan.parse([*planned_steps(review), step])


def require_fit(review: Review, data: Microdata, step: Mapping[str, Any]) -> None:
    """Refuse a step that the file or the plan has no room for, before anything is computed."""
    plan, given = with_step(review, step), protection_of(review)
    problems = plan_problems(
        data,
        plan,
        given.keys,
        seed=given.seed if given.seed is not None else 0,
        cutoff=review.exposure.cutoff,
        missing=given.missing or policy_of(plan),
    )
    if problems:
        raise OptionError(problems)


def price_step(path: Path, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Compute the price of a step, and keep it in a file.

    Parameters
    ----------
    path
        The review file.
    asked
        `step` as TOML, or `next`: the words of one of the ledger's next steps; `version`, that of
        the review it is asked for; `into`, the file for the price.
    tell
        Called with a few words as the work goes on.
    """
    tell("checking the review file")
    review, files = read_review(path)
    data = files["data"].data
    if "step" in asked:
        step = tomllib.loads(asked["step"])["step"][0]
    else:
        step = _next_step(review, data, asked["next"], tell)
    tell(f"pricing {step['method']}")
    plan = with_step(review, step)
    seed = protection_of(review).seed
    drawn = secrets.randbelow(MOST_SEED) if draws(plan) and seed is None else None
    seed = seed if drawn is None else drawn
    found = _ledger(review, data, plan, seed)
    planned = planned_steps(review)
    before = _ledger(review, data, Plan.parse(planned), seed).rp if planned else None
    _price(found, before, step, asked["version"], drawn).save(Path(asked["into"]))


def _ledger(review: Review, data: Microdata, plan: Plan, seed: int | None) -> Ledger:
    """Ask what the stage would ask if the plan were the review's."""
    given = dataclasses.replace(protection_of(review), plan=plan.to_toml(), seed=seed)
    asked = PROTECTION_STAGE.ask(dataclasses.replace(review, protection=given), {})
    assert asked is not None
    return ledger(data, **{**asked, "plan": plan})


def _next_step(
    review: Review, data: Microdata, words: str, tell: Callable[[str], None]
) -> Mapping[str, Any]:
    """Find a next step by its words: its map of categories is written nowhere."""
    tell("finding the next step")
    plan = Plan.parse(planned_steps(review))
    found = _ledger(review, data, plan, protection_of(review).seed)
    for one in found.next_steps:
        if one.words == words:
            return one.step
    raise RunError("That step is no longer among the cheapest. Choose one that is listed now.")


def _price(
    found: Ledger, rp: float | None, step: Mapping[str, Any], version: str, seed: int | None
) -> Price:
    first, before, last = found.lines[0], found.lines[-2], found.lines[-1]
    return Price(
        version=version,
        toml=toml_of([step]),
        words=last.words,
        lines=tuple(line.to_dict() for line in (first, before, last)),
        changed=last.changed,
        left_out=last.left_out,
        limit=found.limit,
        cutoff=found.cutoff,
        read_off=(rp, found.rp),
        notes=tuple(_notes(found)),
        targets=found.targets,
        seed=seed,
    )


def _notes(found: Ledger) -> Sequence[str]:
    own = [f"{note}." for note in found.protection.steps[-1].notes]
    reading = (
        ["A missing key matches every value, both ways, before and after."]
        if found.missing == "wildcard"
        else []
    )
    return [*own, *reading, *(f"{text}." for text in found.warnings)]
