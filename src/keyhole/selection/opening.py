"""Variables that a search keeps and chooses among, checked and opened with the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keyhole.core.names import quoted, repeated
from keyhole.core.options import Problem, Question
from keyhole.core.shared import scenario_problems
from keyhole.engines.opening import open_for
from keyhole.engines.protocol import Records
from keyhole.errors import OptionError

__all__ = ["choice_problems", "open_choice"]


def choice_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the variables of a search, whatever the data."""
    yield from scenario_problems(question, instead_of="candidates", beside=True)
    names = _names(question)
    for name in repeated(names):
        yield Problem(
            "{candidates} and {keep} must name each variable once. Got {0!r} twice instead.", name
        )
    if question.candidates:
        others = [name for name in question.values["values"] or () if name not in names]
        if others:
            yield Problem("{values} names {0}, not a candidate.", quoted(others))


def open_choice(
    question: Question, data: Any, *, needs_values_for: str = ""
) -> tuple[Records, Question, Any]:
    """Open the data of a search; return it with the question and the key of its scenario, if any.

    With a scenario the data is recoded, and the columns of its key are the candidates if none
    are named.
    """
    opened: Any = open_for(
        question,
        data,
        needs_values_for=needs_values_for,
        needs_memory_for="a scenario's recoding" if question.scenario else "",
        every_column=bool(question.scenario),
        offers="candidates",
    )
    if not question.scenario:
        return opened, question, None
    from keyhole.environment.scenarios.choice import scenario_keys

    (key,) = scenario_keys(question, opened)
    strange = [name for name in _names(question) if name not in key.keys]
    if strange:
        raise OptionError(
            Problem(
                "{keep} and {candidates} must be in the key of scenario {0!r}. Got {1} instead: "
                "nobody in it can match them, so leave them out here.",
                key.name,
                quoted(strange),
            )
        )
    rest = tuple((name,) for name in key.keys if name not in question.keep)
    question = question.replace(candidates=question.candidates or rest)
    if not question.candidates:
        raise OptionError(
            Problem("{keep} must leave a candidate. Got the whole key of the scenario instead.")
        )
    return key.recode(opened), question, key


def _names(question: Question) -> list[str]:
    return [*question.keep, *(name for group in question.candidates or () for name in group)]
