"""One line of a plan: a method, its options, and what was found in the data before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.protection.methods import METHODS, Entry
from keyhole.protection.options import value_text
from keyhole.protection.plan_text import INTERNAL, SECRET_OPTIONS

__all__ = ["Step", "read_step"]


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


def read_step(raw: Any) -> tuple[Step | None, list[str]]:
    """Read a step, and say what is wrong with it; None where its method is not known.

    Examples
    --------
    >>> read_step({"method": "rond", "column": "age"})
    (None, ["'rond' is not a method. Did you mean 'round'?"])
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("method"), str):
        return None, [f"method must be given, one of {quoted(METHODS, most=len(METHODS))}."]
    name = raw["method"]
    if name not in METHODS:
        near = nearest(name, list(METHODS))
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else (
            f"There are {quoted(METHODS, most=len(METHODS))}."
        )  # fmt: skip
        return None, [f"{shown(name)} is not a method. {hint}"]
    return _with_options(name, raw)


def _with_options(name: str, raw: Mapping[str, Any]) -> tuple[Step, list[str]]:
    method = METHODS[name].method
    options = {key: value for key, value in raw.items() if key not in ("method", "fitted")}
    if "columns" in method.checks and "column" in options and "columns" not in options:
        options["columns"] = [options.pop("column")]
    fitted, found = raw.get("fitted", {}), []
    if not isinstance(fitted, Mapping):
        fitted, found = {}, ["fitted must be a table."]
    if "seed" in options or "seed" in fitted:
        found.append(
            "a seed is a secret, and a plan is read by others: give it to the run instead."
        )
        options.pop("seed", None)
    there = {key: value for key, value in fitted.items() if key in found_options(name)}
    step = Step(name, options, there)
    if INTERNAL in [options.get(key) for key in SECRET_OPTIONS.get(name, ())]:
        return step, found  # as it was told: it can be read, and is refused where it is to run
    return step, [*found, *_contradictions(step, fitted), *method.problems(step.effective)]


def found_options(name: str) -> tuple[str, ...]:
    """Return the options of a method that it finds in the data."""
    method = METHODS[name].method
    return (*method.supersedes, *method.also_found)


def _contradictions(step: Step, fitted: Mapping[str, Any]) -> list[str]:
    """Say what of the fitted values this method never finds, or contradicts its options."""
    may = found_options(step.method)
    strange = [key for key in fitted if key not in may and key != "seed"]
    found = []
    if strange:
        holds = f"may hold {quoted(may)} only" if may else "has no place in such a step"
        found.append(
            f"fitted {holds}: what {step.method} finds in the data. Got {quoted(strange)} too: "
            f"leave it out."
        )
    return found + [
        f"fitted says that {key} is {_short(step.fitted[key])}, and the step {_short(given)}. "
        f"Leave one of them out."
        for key, given in step.options.items()
        if key in step.fitted and step.fitted[key] != given
    ]


def _short(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= 40 else "another"
