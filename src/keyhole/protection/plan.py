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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.data.naming import nearest, quoted
from keyhole.errors import FileError, OptionError
from keyhole.protection.conflicts import conflicts
from keyhole.protection.methods import METHODS, Entry
from keyhole.protection.plan_text import toml_of

__all__ = ["Plan", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a plan: a method, its options, and what was found in the data before."""

    method: str
    options: Mapping[str, Any]
    fitted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> Entry:
        """The method, and the function that carries it out."""
        return METHODS[self.method]

    @property
    def effective(self) -> dict[str, Any]:
        """The options, with what was found before instead of how to find it."""
        supersedes = self.entry.method.supersedes
        gone = {old for name in self.fitted for old in supersedes.get(name, ())}
        kept = {name: value for name, value in self.options.items() if name not in gone}
        return {**kept, **self.fitted}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the step changes."""
        return self.entry.method.columns(self.options, reads=False)


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

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a TOML file, or say everything that is wrong with it."""
        where = f"plan {str(path)!r}"
        try:
            return cls.parse(_read(Path(path), where))
        except OptionError as error:
            raise OptionError(f"{where}, {problem}" for problem in error.problems) from None

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Plan:
        """Read a plan from TOML text, from what such a file holds, or from a list of steps."""
        content: Any = _loads(given, "the plan") if isinstance(given, str) else given
        content = content if isinstance(content, Mapping) else {"step": content}
        problems = [
            f"{key!r} means nothing in a plan. It has [[step]] tables and a title."
            for key in content
            if key not in ("step", "title")
        ]
        listed = content.get("step")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise OptionError([*problems, "a plan must have one [[step]] or more. Got none."])
        steps = []
        for number, raw in enumerate(listed, 1):
            step, found = _step(raw)
            steps.append(step)
            problems += [f"step {_called(number, step)}: {problem}" for problem in found]
        known = {number: step for number, step in enumerate(steps, 1) if step is not None}
        problems += conflicts(known)
        if problems:
            raise OptionError(problems)
        return cls(tuple(known.values()), str(content.get("title", "")))

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

    def to_toml(self) -> str:
        """Write the plan as it is read; a seed is never in it."""
        tables = []
        for step in self.steps:
            more = {"fitted": dict(step.fitted)} if step.fitted else {}
            tables.append({"method": step.method, **step.options, **more})
        return toml_of(tables, self.title)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the plan to a TOML file, whole or not at all."""
        from keyhole.data.whole import write_whole

        with write_whole(Path(path), force=force) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return "Plan: " + "; ".join(
            f"{step.method} {', '.join(step.columns)}".strip() for step in self.steps
        )


def _called(number: int, step: Step | None) -> str:
    return f"{number}" if step is None else f"{number} ({step.method})"


def _found(step: Step, found: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of what was found what the options do not say already."""
    return {name: value for name, value in found.items() if step.options.get(name) != value}


def _step(raw: Any) -> tuple[Step | None, list[str]]:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("method"), str):
        return None, [f"method must be given, one of {quoted(METHODS, most=len(METHODS))}."]
    name = raw["method"]
    if name not in METHODS:
        near = nearest(name, list(METHODS))
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else (
            f"There are {quoted(METHODS, most=len(METHODS))}."
        )  # fmt: skip
        return None, [f"{name!r} is not a method. {hint}"]
    options = {key: value for key, value in raw.items() if key not in ("method", "fitted")}
    method = METHODS[name].method
    if "columns" in method.checks and "column" in options and "columns" not in options:
        options["columns"] = [options.pop("column")]
    fitted = raw.get("fitted", {})
    if not isinstance(fitted, Mapping):
        return None, ["fitted must be a table."]
    step = Step(name, options, dict(fitted))
    if "seed" in options:
        secret = "a seed is a secret, and a plan is read by others: give it to the run instead."
        options.pop("seed")
        return step, [secret, *method.problems(step.effective)]
    return step, method.problems(step.effective)


def _read(path: Path, where: str) -> Any:
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the system refuses"
        raise FileError(f"{where} cannot be read: {reason}. Check the path.") from None
    try:
        return _loads(content.decode("utf-8-sig"), where)
    except UnicodeDecodeError:
        raise FileError(f"{where} must be TOML in UTF-8. Got other bytes instead.") from None


def _loads(text: str, where: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"{where} is not TOML: {error}.") from None
