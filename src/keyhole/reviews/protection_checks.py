"""A protection is checked before anything runs: its plan, and the plan against the file."""

from __future__ import annotations

import dataclasses
import re

from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.protection.applying import draws, plan_problems, policy_of
from keyhole.protection.plan import Plan
from keyhole.reviews.files import read_steadily
from keyhole.reviews.lines import Path
from keyhole.reviews.settings import ProtectionSettings, Review
from keyhole.reviews.source import Problem, Source
from keyhole.utility.formulas import formula_columns

__all__ = ["check_protection"]

Found = list[tuple[Path, str]]
"""Where in the section a problem is, and what to say of it."""

_STEP = re.compile(r"step (\d+)")


def check_protection(
    source: Source, given: ProtectionSettings, data: Microdata, review: Review
) -> tuple[ProtectionSettings, list[Problem]]:
    """Say everything that is wrong with a protection, absent columns of its own settings aside.

    Parameters
    ----------
    source
        The review file.
    given
        The settings, as far as they are fit.
    data
        The file under review.
    review
        What else the review says.

    Returns
    -------
    tuple
        The settings with the plan in place, and the problems.
    """
    plan, found = _plan(source, given)
    if plan is not None:
        given = dataclasses.replace(given, plan=plan.to_toml())
        found += _unfit(plan, given, data, review)
    if given.formula is not None:
        found += _formula(given.formula, data)
    return given, [
        source.problem(("protection", *at), f"[protection] {text}") for at, text in found
    ]


def _plan(source: Source, given: ProtectionSettings) -> tuple[Plan | None, Found]:
    """Read the plan from its file, or from the review file itself."""
    steps = source.values["protection"].get("step")
    if (given.plan_file is None) == (steps is None):
        both = "plan and [[protection.step]] both give it" if steps else "none is given"
        return None, [((), f"must have one plan: {both}. Name a file, or write its steps here.")]
    try:
        if given.plan_file is not None:
            file = source.path.parent / given.plan_file
            return read_steadily(file, Plan.read)[0], []
        return Plan.parse({"step": steps}), []
    except InputError as error:
        return None, [(_place(given, text), text) for text in error.problems]


def _place(given: ProtectionSettings, text: str) -> Path:
    """Return where in the section a problem of the plan is."""
    number = _STEP.match(text)
    if given.plan_file is not None or number is None:
        return ("plan",) if given.plan_file is not None else ("step",)
    return ("step", int(number[1]) - 1)


def _unfit(plan: Plan, given: ProtectionSettings, data: Microdata, review: Review) -> Found:
    """Check the plan against the file; columns that are absent are told of by others."""
    if draws(plan) and given.seed is None:
        return [((), "needs a seed: the plan draws, and a review must give the same file again.")]
    if not given.keys or not set(given.keys) <= set(data.names):
        if review.scenarios is None or given.keys != review.keys:
            return []
        text = "needs keys that are columns of the file: those of a scenario are not. Give keys."
        return [((), text)]
    if not data.records:
        return []
    problems = plan_problems(
        data,
        plan,
        given.keys,
        seed=given.seed,
        cutoff=review.exposure.cutoff,
        missing=given.missing or policy_of(plan),
    )
    return [(_place(given, text), text) for text in problems]


def _formula(formula: str, data: Microdata) -> Found:
    try:
        formula_columns(formula, data.names)
    except InputError as error:
        return [(("formula",), text) for text in error.problems]
    return []
