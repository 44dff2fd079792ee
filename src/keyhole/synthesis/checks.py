"""Checks of a synthesis against its data, before anything is drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keyhole.core.kinds import Place
from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata
from keyhole.engines import MemoryEngine
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.synthesis.design import is_numeric
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.release import unsafe_columns
from keyhole.synthesis.rules import EditRules, Rule
from keyhole.synthesis.targets import TargetChoice
from keyhole.utility.formulas import formula_columns

__all__ = ["data_problems", "read_rules", "require_changes", "require_work"]

NOBODY_AT_RISK = Problem(
    "no record is at risk on {keys}, so that nothing is to be replaced. Release the file as it is, "
    "or give more keys or a higher {cutoff}."
)
ALL_AT_RISK = Problem(
    "all records are at risk, so that there is no common record to be a donor. Choose {donors} by "
    "folds, or fewer {keys}."
)

Found = Iterator[tuple[Place, str]]
"""Where in the options a problem is, and what to say of it."""


def data_problems(question: Question, data: Microdata) -> Found:
    """Say what in the data stands in the way of a synthesis; absent columns are told elsewhere."""
    yield from _columns(question, data)
    yield from _rules(question, data)
    if question.formula is not None:
        try:
            formula_columns(question.formula, data.names)
        except InputError as error:
            yield from ((("formula",), text) for text in error.problems)
    yield from _work(question, data)
    if not data.records:
        return
    home = data.with_roles({n: "drop" for n in question.drop if n in data.names})
    allow = [name for name in question.allow if name in data.names]
    for problem in unsafe_columns(
        home, keys=question.keys or (), targets=question.targets or (), allow=allow
    ):
        yield ("drop",), problem


def _columns(question: Question, data: Microdata) -> Found:
    for place, name in enumerate(question.targets or ()):
        if name in data.names and data.column(name).null_count() == data.records:
            yield (
                ("targets", place),
                Problem("target {0!r} is missing everywhere. Leave it out of {targets}.", name),
            )  # fmt: skip
    for name, model in (question.models or {}).items():
        if model != "canonical" and name in data.names and not is_numeric(data, name):
            yield (
                ("models", name),
                Problem("{models} of {0!r} must be canonical, since it is not a number.", name),
            )
    for target, names in (question.predictors or {}).items():
        for place, name in enumerate(names):
            dropped = name in data.names and data.variable(name).role == "drop"
            if dropped or name in question.drop:
                yield (
                    ("predictors", target, place),
                    Problem("{predictors} of {0!r} has {1!r}, which {drop} leaves out. Take it out "
                            "of one of the two.", target, name),
                )  # fmt: skip
    if question.weight in data.names:
        try:
            data.weights(question.weight)
        except ColumnError as error:
            yield from ((("weight",), text) for text in error.problems)


def _rules(question: Question, data: Microdata) -> Found:
    """Read and bind each rule by itself, so that every one that is wrong is told at its place."""
    given = question.rules
    parts: list[tuple[Place, Any]] = [((), given)] if given is not None else []
    if isinstance(given, Mapping):
        parts = [((name,), {name: text}) for name, text in given.items()]
    for place, part in parts:
        try:
            rules, problems = _sound_rules(part)
        except InputError as error:
            yield from ((("rules",), text) for text in error.problems)
            continue
        yield from ((("rules", *place), text) for text in problems)
        for rule in rules.rules:
            yield from ((("rules", rule.name), text) for text in _rule_problems(rule, data))


def _rule_problems(rule: Rule, data: Microdata) -> Sequence[str]:
    alone = EditRules([rule])
    try:
        alone.bind(data)
        broken = alone.broken(data)
    except InputError as error:
        return error.problems
    if not (data.records and broken.all()):
        return []
    return [f"rule {rule.name!r} is kept by no record. Correct it, or leave it out."]


def _sound_rules(given: Any) -> tuple[EditRules, list[str]]:
    if isinstance(given, EditRules):
        return given, []
    return (
        EditRules.read_sound(given)
        if isinstance(given, str | os.PathLike)
        else EditRules.sound(given)
    )


def read_rules(given: Any) -> EditRules | None:
    """Read rules: a file, texts by name, a list of them, or `EditRules`."""
    if given is None or isinstance(given, EditRules):
        return given
    return EditRules.read(given) if isinstance(given, str | os.PathLike) else EditRules.parse(given)


def _work(question: Question, data: Microdata) -> Found:
    """Find out whether there is anything to do, and anybody to give values."""
    keys = question.keys or ()
    if not data.records or not keys or not set(keys) <= set(data.names):
        return
    sizes = MemoryEngine({name: data.codes(name) for name in keys}).cell_sizes(keys)
    if not (sizes < question.cutoff).any():
        yield ("keys",), NOBODY_AT_RISK
    common = question.donors == "common" and question.least_probability is None
    if common and (sizes < question.cutoff).all():
        yield ("donors",), ALL_AT_RISK


def require_work(designation: Designation, choice: TargetChoice, question: Question) -> None:
    """Say so where nothing is designated to be replaced, or nobody can give."""
    if not designation.at_risk.any():
        raise OptionError([NOBODY_AT_RISK])
    if question.donors == "common" and designation.changed.all():
        raise OptionError([ALL_AT_RISK])
    if not choice.replace.any():
        raise OptionError("no target of a record at risk is to be replaced: give more targets.")


def require_changes(implicates: Implicates) -> None:
    """Refuse implicates in which every record is its own donor: they are the file as it is."""
    own = implicates.rows[:, None]
    if all((donors == own).all() for donors in implicates.donors):
        raise OptionError(
            "no record at risk could be given another value, so that the release would be the file "
            "as it is: give fewer strata, rules that more records keep, or more records."
        )
