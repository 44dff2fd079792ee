"""A plan of protections: a TOML file of steps, checked wholly before anything runs.

::

    [[step]]
    method = "top-code"
    column = "age"
    value = 89

    [[step]]
    method = "suppress"
    keys = ["sex", "age", "state"]
    k = 3
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.errors import OptionError
from keyhole.protection.drafts import Draft, capped
from keyhole.protection.plan_text import INTERNAL, SECRET_OPTIONS, toml_of
from keyhole.protection.steps import Step

__all__ = ["SECRET_OPTIONS", "Plan", "Step"]


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    r"""Steps to be carried out in order; they apply to any file with the columns they name.

    Examples
    --------
    >>> plan = Plan.parse('[[step]]\nmethod = "top-code"\ncolumn = "age"\nvalue = 89')
    >>> plan
    Plan: top-code age
    >>> Plan.parse([{"method": "rond", "column": "age"}, {"method": "round", "bse": 5}])
    Traceback (most recent call last):
    ...
    keyhole.errors.OptionError: step 1: 'rond' is not a method. Did you mean 'round'?
    step 2 (round): 'bse' is not an option of round. Did you mean 'base'?
    step 2 (round): column must be given for round.
    step 2 (round): base must be given for round.
    """

    steps: tuple[Step, ...]
    title: str = ""
    keep_order: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a TOML file, or say everything that is wrong with it."""
        return cls.of(Draft.read(path))

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Plan:
        """Read a plan from TOML text, from what such a file holds, or from a list of steps."""
        return cls.of(Draft.of(given))

    @classmethod
    def of(cls, draft: Draft) -> Plan:
        """Return a draft as a plan, or say everything that is wrong with it."""
        if draft.problems:
            raise OptionError(capped(draft.problems))
        return cls(tuple(draft.steps.values()), draft.title, draft.keep_order)

    @property
    def fitted(self) -> tuple[Mapping[str, Any], ...]:
        """What was found in the data, for each step."""
        return tuple(step.fitted for step in self.steps)

    @property
    def is_random(self) -> bool:
        """Whether any step draws."""
        return any(step.entry.method.is_random for step in self.steps)

    def without(self, *numbers: int) -> Plan:
        """Return the plan without some of its steps, numbered from 1: that is how one is undone.

        Examples
        --------
        >>> plan = Plan.parse([{"method": "drop", "columns": ["name"]},
        ...                    {"method": "round", "column": "age", "base": 5}])
        >>> plan.without(2)
        Plan: drop name
        """
        there = range(1, len(self.steps) + 1)
        wrong = [number for number in numbers if number not in there]
        if wrong or len(set(numbers)) == len(self.steps):
            raise OptionError(
                f"steps to be left out must be some of 1 to {len(self.steps)}, not all. Got "
                f"{', '.join(map(str, numbers))} instead."
            )
        kept = [step for number, step in enumerate(self.steps, 1) if number not in numbers]
        return dataclasses.replace(self, steps=tuple(kept))

    def with_fitted(self, fitted: Sequence[Mapping[str, Any]]) -> Plan:
        """Return the plan with what was found in the data, to repeat the same on other data."""
        steps = [
            dataclasses.replace(step, fitted=_found(step, found))
            for step, found in zip(self.steps, fitted, strict=True)
        ]
        return dataclasses.replace(self, steps=tuple(steps))

    def told(self) -> str:
        """Write the plan as it may be told: without what would help to take back what was drawn.

        Such a plan can be read, but not carried out.

        Examples
        --------
        >>> print(Plan.parse([{"method": "pram", "column": "ms", "p": 0.8}]).told())
        [[step]]
        method = "pram"
        column = "ms"
        p = "kept internal"
        <BLANKLINE>
        """
        steps = [dataclasses.replace(step, options=_told(step), fitted={}) for step in self.steps]
        return dataclasses.replace(self, steps=tuple(steps)).to_toml()

    def to_toml(self) -> str:
        """Write the plan as it is read; a seed is never in it."""
        tables = []
        for step in self.steps:
            more = {"fitted": dict(step.fitted)} if step.fitted else {}
            tables.append({"method": step.method, **step.options, **more})
        return toml_of(tables, self.title, keep_order=self.keep_order)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the plan to a TOML file, whole or not at all."""
        from keyhole.core.files import write_whole

        with write_whole(Path(path), force=force) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return "Plan: " + "; ".join(
            f"{step.method} {', '.join(step.columns)}".strip() for step in self.steps
        )


def _told(step: Step) -> dict[str, Any]:
    secret = SECRET_OPTIONS.get(step.method, ())
    return {k: INTERNAL if k in secret else value for k, value in step.options.items()}


def _found(step: Step, found: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of what was found what the options do not say already."""
    return {name: value for name, value in found.items() if step.options.get(name) != value}
