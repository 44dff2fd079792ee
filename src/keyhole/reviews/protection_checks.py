"""A protection is checked before anything runs: its plan, and the plan against the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keyhole.core.options import Question
from keyhole.data import Microdata
from keyhole.engines.opening import column_problems
from keyhole.errors import InputError
from keyhole.protection.apply import draws, plan_problems, raised
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import Plan
from keyhole.reviews.files import read_steadily
from keyhole.reviews.source import Problem, ReviewSource, ValuePath
from keyhole.utility.formulas import formula_columns

__all__ = ["check_protection"]

Found = list[tuple[ValuePath, str]]
"""Where in the section a problem is, and what to say of it."""

NEEDS_SEED = "needs a seed: the plan draws, and a review must give the same file again."
_STEP = re.compile(r"step (\d+)(?: \([\w-]+\))?: '?(\w+)")


def check_protection(
    source: ReviewSource, given: Question, data: Microdata
) -> tuple[Question, list[Problem]]:
    """Say everything that is wrong with a protection, absent columns of its own settings aside.

    Returns the settings with the plan in place, and the problems.
    """
    plan, found = _plan(source, given)
    if plan is not None:
        given = given.replace(plan=plan.to_toml())
        found += _unfit(plan, given, data)
    elif given.plan_file is None:
        found += _absent(source.values["protection"].get("step"), data)
    if given.formula is not None:
        problems = raised(lambda: formula_columns(given.formula, data.names))
        found += [(("formula",), text) for text in problems]
    return given, [
        source.problem(("protection", *at), f"[protection] {text}") for at, text in found
    ]


def _plan(source: ReviewSource, given: Question) -> tuple[Plan | None, Found]:
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


def _place(given: Question, text: str) -> ValuePath:
    """Return where in the section a problem of the plan is."""
    number = _STEP.match(text)
    if given.plan_file is not None or number is None:
        return ("plan",) if given.plan_file is not None else ("step",)
    return ("step", int(number[1]) - 1, number[2])


def _absent(steps: Any, data: Microdata) -> Found:
    """Say which columns the steps of a plan that cannot be read name in vain."""
    return [
        (("step", place), f"step {place + 1} ({raw['method']}): {text}")
        for place, raw in enumerate(steps if isinstance(steps, list) else ())
        if isinstance(raw, Mapping) and raw.get("method") in METHODS
        for text in column_problems(data, _named(raw), "column")
    ]


def _named(raw: Mapping[str, Any]) -> list[str]:
    """Return the columns that a step names, as far as they are names."""
    texts = {name: value for name, value in raw.items() if isinstance(value, str | list)}
    named = METHODS[raw["method"]].columns(texts)
    return [name for name in named if isinstance(name, str)]


def _unfit(plan: Plan, given: Question, data: Microdata) -> Found:
    """Check the plan against the file; keys that are absent are told of by others."""
    found: Found = []
    if draws(plan) and given.seed is None:
        found.append(((), NEEDS_SEED))
    if not data.records or not given.keys or not set(given.keys) <= set(data.names):
        return found
    return [*found, *((_place(given, text), text) for text in plan_problems(data, plan))]
