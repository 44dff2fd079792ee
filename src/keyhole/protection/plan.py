"""Plans of protections: TOML files of steps, checked wholly before anything runs.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.expressions import definition_problems
from keyhole.core.files import write_whole
from keyhole.core.names import plural, quoted, shown
from keyhole.core.options import without_columns
from keyhole.core.toml import open_toml, parse_toml, toml_key, toml_value
from keyhole.data.deriving import inline_codings
from keyhole.errors import InputError, OptionError
from keyhole.protection.method import Method, hint
from keyhole.protection.methods import METHODS
from keyhole.protection.options import is_list

# Stands in a plan that is told for an option that is not.
INTERNAL = "kept internal"


def toml_of(
    steps: Sequence[Mapping[str, Any]], title: str = "", *, keep_order: bool = False
) -> str:
    r"""Write steps as the tables of a plan."""
    head = f"title = {toml_value(title)}\n" if title else ""
    head += "keep_order = true\n" if keep_order else ""
    tables = [
        "[[step]]\n"
        + "".join(f"{toml_key(key)} = {toml_value(one)}\n" for key, one in step.items())
        for step in steps
    ]
    return "\n".join([head, *tables] if head else tables)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One line of a plan: a method, its options, and what was found in the data before."""

    method: str
    options: Mapping[str, Any]
    fitted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def definition(self) -> Method[...]:
        """The method, with all its facts."""
        return METHODS[self.method]

    @property
    def effective(self) -> dict[str, Any]:
        """The options, with what was found before instead of how to find it."""
        supersedes = self.definition.supersedes
        gone = {old for name in self.fitted for old in supersedes.get(name, ())}
        kept = {name: value for name, value in self.options.items() if name not in gone}
        return {**kept, **self.fitted}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the step changes."""
        return self.definition.columns(self.options, reads=False)

    def without_columns(self, names: Collection[str]) -> PlanStep | None:
        """Return the step for a file without some columns; None if nothing is left of it."""
        left = without_columns(self.definition.parameters, self.options, names)
        gone = any(value and not left[name] for name, value in self.options.items())
        return None if gone else dataclasses.replace(self, options=left)


def parse_step(raw: Any) -> tuple[PlanStep | None, list[str]]:
    """Read a step, and say what is wrong with it; None where its method is not known."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("method"), str):
        return None, [f"method must be given, one of {quoted(METHODS, most=len(METHODS))}."]
    name = raw["method"]
    if name not in METHODS:
        return None, [f"{shown(name)} is not a method. {hint(name, METHODS)}"]
    method = METHODS[name]
    options = {key: value for key, value in raw.items() if key not in ("method", "fitted")}
    if "columns" in method.parameters and "column" in options and "columns" not in options:
        options["columns"] = [options.pop("column")]
    fitted, found = raw.get("fitted", {}), []
    if not isinstance(fitted, Mapping):
        fitted, found = {}, ["fitted must be a table."]
    if "seed" in options or "seed" in fitted:
        found.append(
            "a seed is a secret, and a plan is read by others: give it to the run instead."
        )
        options.pop("seed", None)
    may = (*method.supersedes, *method.also_found)
    step = PlanStep(name, options, {key: fitted[key] for key in fitted if key in may})
    if INTERNAL in [options.get(key) for key in method.secret]:
        return step, found  # as it was told: it can be read, and is refused where it is to run
    strange = [key for key in fitted if key not in may and key != "seed"]
    if strange:
        holds = f"may hold {quoted(may)} only" if may else "cannot be used in such a step"
        found.append(
            f"fitted {holds}: what {name} finds in the data. Got {quoted(strange)} too: leave it "
            f"out."
        )
    found += [
        f"fitted gives another {key} than the step. Leave one of them out."
        for key, given in options.items()
        if key in step.fitted and step.fitted[key] != given
    ]
    return step, [*found, *method.problems(step.effective)]


def conflicts(steps: Mapping[int, PlanStep]) -> list[str]:
    """Return what is wrong with steps beside each other, by their numbers."""
    dropped, labelled = dict[str, int](), dict[str, int]()
    treated: dict[tuple[str, str], int] = {}
    found = []
    for number, step in steps.items():
        method, options, here = step.definition, step.effective, f"step {number} ({step.method})"
        drops, samples = method.effect == "drops", method.effect == "samples"
        found += [
            f"{here}: column {shown(name)} is dropped in step {dropped[name]}"
            f"{' already' if drops else ''}. Leave one of the steps out."
            for name in method.columns(options)
            if name in dropped
        ]
        again: dict[int, list[str]] = {}
        for name in () if method.repeats else ("",) if samples else step.columns:
            before = treated.setdefault((method.effect if samples else step.method, name), number)
            if before != number and name not in dropped:
                again.setdefault(before, []).append(name)
        for before, names in again.items():
            twice = f"{quoted(names)} is treated so in step {before}"
            twice = f"step {before} samples" if samples else twice
            found.append(f"{here}: {twice} already. Leave one of them out.")
        found += [
            f"{here}: column {shown(name)} holds labels since step {labelled[name]}, which have no "
            f"order. Change the order of the steps."
            for name in step.columns
            if method.holds != "anything" and name in labelled
        ]
        if drops:
            dropped = dict.fromkeys(step.columns, number) | dropped
        if method.makes_labels(options):
            labelled = dict.fromkeys(step.columns, number) | labelled
    return found


# Problems that are told; of more, only their number.
MOST_TOLD = 50


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan as it was given.

    `steps` are those whose method is known, by their numbers from 1; `problems` everything that
    is wrong with the plan by itself; `where` is said before each problem.
    """

    steps: Mapping[int, PlanStep]
    problems: tuple[str, ...] = ()
    title: str = ""
    keep_order: bool = False
    where: str = ""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PlanDraft:
        """Read a draft from a TOML file."""
        return cls.of(open_toml(path, "plan"), where=f"plan {str(path)!r}, ")

    def with_codings(self, locate: Callable[[str], Any]) -> PlanDraft:
        """Return the draft with codings that derived columns name as files written into it."""
        steps, problems = dict(self.steps), list(self.problems)
        for number, step in self.steps.items():
            text = step.options.get("expression", "")
            derives = step.definition.effect == "derives" and isinstance(text, str)
            if not derives or definition_problems({"derived": text}):
                continue  # what is no expression is told by the method
            try:
                written = inline_codings(text, locate)
                options = {**step.options, "expression": written}
                steps[number] = dataclasses.replace(step, options=options)
            except InputError as error:
                here = f"{self.where}step {number} ({step.method}): "
                problems += [f"{here}{problem}" for problem in error.problems]
        return dataclasses.replace(self, steps=steps, problems=tuple(problems))

    @classmethod
    def of(
        cls, given: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *, where: str = ""
    ) -> PlanDraft:
        """Take a draft from TOML text, from what such a file holds, or from a list of steps."""
        content: Any = parse_toml(given, "the plan") if isinstance(given, str) else given
        content = content if isinstance(content, Mapping) else {"step": content}
        problems = _of_the_whole(content)
        listed, derived = content.get("step"), content.get("derive")
        given_steps = [
            *({"method": "derive", "name": name, "expression": text}
              for name, text in (derived.items() if isinstance(derived, Mapping) else ())),
            *(listed if is_list(listed) else ()),
        ]  # fmt: skip
        steps: dict[int, PlanStep] = {}
        for number, raw in enumerate(given_steps, 1):
            step, found = parse_step(raw)
            called = f"{number}" if step is None else f"{number} ({step.method})"
            problems += [f"step {called}: {problem}" for problem in found]
            steps |= {} if step is None else {number: step}
        problems += conflicts(steps)
        told = tuple(f"{where}{problem}" for problem in problems)
        keep_order = content.get("keep_order") is True
        return cls(steps, told, str(content.get("title", "")), keep_order, where)


def capped(problems: Iterable[str]) -> list[str]:
    """Return the problems, each once; of very many the first and the number of the others."""
    found = list(dict.fromkeys(problems))
    more = len(found) - MOST_TOLD
    return found if more <= 0 else [*found[:MOST_TOLD], f"and {plural(more, 'more problem')}."]


def _of_the_whole(content: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with a plan apart from its steps."""
    kinds: dict[str, tuple[Any, str]] = {
        "derive": (Mapping, "[derive] must be a table of expressions by name"),
        "keep_order": (bool, "keep_order must be true or false"),
        "title": (str, "title must be text"),
    }
    found = [
        f"{shown(key)} means nothing in a plan. It has [[step]] tables, [derive], a title and "
        f"keep_order."
        for key in content
        if key not in ("step", *kinds)
    ]
    found += [
        f"{demand}. Got something else instead."
        for key, (kind, demand) in kinds.items()
        if key in content and not isinstance(content[key], kind)
    ]
    listed = content.get("step")
    if isinstance(listed, Mapping):
        found.append(
            "a plan must have one [[step]] or more. Got [step] instead: write double brackets."
        )
    elif (not is_list(listed) or not listed) and not (listed is None and content.get("derive")):
        found.append("a plan must have one [[step]] or more. Got none.")
    return found


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

    steps: tuple[PlanStep, ...]
    title: str = ""
    keep_order: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a TOML file, or say everything that is wrong with it."""
        return cls.of(PlanDraft.read(path))

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Plan:
        """Read a plan from TOML text, from what such a file holds, or from a list of steps."""
        return cls.of(PlanDraft.of(given))

    @classmethod
    def of(cls, draft: PlanDraft) -> Plan:
        """Return a draft as a plan, or say everything that is wrong with it."""
        if draft.problems:
            raise OptionError(capped(draft.problems))
        return cls(tuple(draft.steps.values()), draft.title, draft.keep_order)

    @property
    def draws(self) -> bool:
        """Whether any step really draws: rounding does so only if told to."""
        return any(
            step.definition.is_random and step.definition.draws(step.options) for step in self.steps
        )

    @property
    def fitted(self) -> tuple[Mapping[str, Any], ...]:
        """What was found in the data, for each step."""
        return tuple(step.fitted for step in self.steps)

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

    def known_with(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return columns with those that the plan derives from them: who knows one knows both."""
        known = dict.fromkeys(names)
        for step in self.steps:
            sources = step.definition.columns(step.options)
            if step.definition.effect == "derives" and set(sources) <= set(known):
                known[step.options["name"]] = None
        return tuple(known)

    def after(self, steps: Sequence[Mapping[str, Any]]) -> Plan:
        """Return the plan with further steps before its own."""
        first = Plan.parse(steps).steps if steps else ()
        return dataclasses.replace(self, steps=(*first, *self.steps))

    def without_columns(self, names: Collection[str]) -> Plan:
        """Return the plan for a file without some columns: what it does to them is left out."""
        kept = [step.without_columns(names) for step in self.steps]
        return dataclasses.replace(self, steps=tuple(step for step in kept if step is not None))

    def with_fitted(self, fitted: Sequence[Mapping[str, Any]]) -> Plan:
        """Return the plan with what was found in the data, to repeat the same on other data."""
        steps = []
        for step, found in zip(self.steps, fitted, strict=True):
            new = {name: value for name, value in found.items() if step.options.get(name) != value}
            steps.append(dataclasses.replace(step, fitted=new))
        return dataclasses.replace(self, steps=tuple(steps))

    def told(self) -> str:
        """Write the plan as it may be told: without what would help to take back what was drawn.

        Such a plan can be read, but not carried out.
        """
        tables = [
            {"method": step.method}
            | {n: INTERNAL if n in step.definition.secret else v for n, v in step.options.items()}
            for step in self.steps
        ]
        return toml_of(tables, self.title, keep_order=self.keep_order)

    def to_toml(self) -> str:
        """Write the plan as it is read; a seed is never in it."""
        tables = [
            {"method": one.method, **one.options, **({"fitted": one.fitted} if one.fitted else {})}
            for one in self.steps
        ]
        return toml_of(tables, self.title, keep_order=self.keep_order)

    def save(
        self, path: str | os.PathLike[str], *, force: bool = False, private: bool = False
    ) -> Path:
        """Write the plan to a TOML file, whole or not at all; a private one is for you alone."""
        with write_whole(Path(path), force=force, private=private) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return "Plan: " + "; ".join(
            f"{step.method} {', '.join(step.columns)}".strip() for step in self.steps
        )
