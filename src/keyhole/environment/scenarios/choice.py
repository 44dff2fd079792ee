"""Keys of scenarios that a question names, with the data environment that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keyhole.core.names import repeated
from keyhole.core.options import Problem, Question
from keyhole.data.keyed import require_key
from keyhole.data.microdata import Microdata
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.errors import InputError, OptionError

__all__ = ["scenario_keys", "scenario_problems"]


def scenario_problems(
    question: Question, *, instead_of: str = "keys", several: bool = False, beside: bool = False
) -> Iterator[Problem]:
    """Say what is wrong with a scenario and where it is, and with its standing beside columns."""
    given, columns = question.scenario or (), question.values[instead_of]
    named = [name for name in given if isinstance(name, str)]
    if not given and not columns:
        yield Problem(
            f"{{{instead_of}}} must name at least one column, or give {{scenario}}. Got neither "
            f"instead."
        )
    if given and columns and not beside:
        yield Problem(
            f"{{{instead_of}}} and {{scenario}} exclude each other. Leave one of them out."
        )
    if not named and (question.store is not None or question.target is not None):
        yield Problem(
            "{store} and {target} go with {scenario}. Name a scenario, or leave them out."
        )
    if named and question.store is None:
        yield Problem(
            "{scenario} needs {store}, the data environment that holds it. Got none instead: make "
            "one with `keyhole environment init`."
        )
    for name in repeated(named):
        yield Problem("{scenario} names {0!r} twice. Name it once.", name)
    if len(given) > 1 and not several:
        yield Problem(
            "{scenario} must be one here. Got {0} instead: ask for one after the other; "
            "`keyhole risk` compares several.",
            len(given),
        )


def scenario_keys(question: Question, data: Microdata) -> list[Any]:
    """Return the key of each scenario; what is wrong with any of them is told at once."""
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.opening import read_place
    from keyhole.environment.scenarios.recoding import scenario_key

    graph: Any = None
    found: list[ScenarioKey] = []
    problems: list[str] = []
    for given in question.scenario or ():
        if not isinstance(given, str):
            found.append(given)
            continue
        graph = CodingGraph.of(read_place(question.store)) if graph is None else graph
        try:
            found.append(scenario_key(graph, given, data, question.target))
        except InputError as error:
            problems += error.problems
    if problems:
        raise OptionError(dict.fromkeys(problems))
    if len(found) == 1:
        require_key(found[0])
    return found
