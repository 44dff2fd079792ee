"""Keys of scenarios that a question names, with the data environment that holds them."""

from __future__ import annotations

from typing import Any

from keyhole.core.options import Question
from keyhole.data.microdata import Microdata, require_key
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.errors import InputError, OptionError


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
