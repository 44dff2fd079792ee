"""The scenarios of a review: the environment is read, each key derived, all problems told."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.core.names import nearest, quoted
from keyhole.data import Microdata
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import environment_to_json
from keyhole.environment.model import Environment
from keyhole.environment.opening import read_place
from keyhole.environment.scenarios.files import scenario_from_dict, scenario_to_toml
from keyhole.environment.scenarios.recoding import ScenarioKey, scenario_key
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.errors import InputError
from keyhole.reviews.files import (
    KEYED,
    LINKED,
    ReviewFile,
    ScenarioFile,
    read_again,
    remembered,
    scenario_key_of,
)
from keyhole.reviews.settings import ScenarioSettings
from keyhole.reviews.source import SCENARIO, Problem, ReviewSource, named_scenario

Values = Mapping[str, Any]
Where = tuple[str | int, ...]


@dataclass(slots=True)
class _Check:
    """A check under way: what was found wrong so far."""

    source: ReviewSource
    problems: list[Problem]

    def say(self, where: Where, text: str) -> None:
        """Add a problem, on its line."""
        self.problems.append(self.source.problem(where, text))

    def tell(self, where: Where, error: InputError) -> None:
        """Add the problems of an error, on their line."""
        self.problems += [self.source.problem(where, text) for text in error.problems]


def check_scenarios(
    source: ReviewSource, sections: Mapping[str, Values], reviewed: ReviewFile
) -> tuple[ScenarioSettings | None, dict[str, ReviewFile], list[Problem]]:
    """Read the environment and derive the key of each scenario.

    Returned are the settings (None without an environment), and the file recoded to each key under
    ``scenario:NAME``, to the review's own under ``keyed`` and to a study's under ``linked``.
    """
    check = _Check(source, [])
    wanted = _wanted(sections)
    given, stories = sections.get("environment"), sections.get("scenario", {})
    if given is None or "store" not in given:
        if given is None and (stories or wanted):
            where = ("scenario",) if stories else next(iter(wanted.values())).where
            check.say(where, "[environment] is missing: scenarios need its store. Add it.")
        return None, {}, check.problems
    environment = _environment(check, given["store"])
    if environment is None:
        return None, {}, check.problems
    scenarios = _scenarios(check, environment, given, stories)
    for one in wanted.values():
        if one.name not in scenarios:
            _add(check, environment, one.name, scenarios, one.where)
    files = _files(check, environment, scenarios, given, reviewed)
    for part, one in wanted.items():
        if f"{SCENARIO}{one.name}" in files:
            files[part] = files[f"{SCENARIO}{one.name}"]
            key = scenario_key_of(files, part)
            if key is not None and not key.keys:
                _tell_empty(check, one)
    chosen = wanted[KEYED].name if KEYED in wanted else None
    settings = ScenarioSettings(given["store"], given.get("target"), tuple(scenarios), chosen)
    return settings, files, check.problems


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A scenario whose key something is to be measured on, and where the review says so."""

    name: str
    where: Where


def _wanted(sections: Mapping[str, Values]) -> dict[str, _Wanted]:
    """Return the scenarios that the review and its study are about, by the part they make."""
    asked = (
        (KEYED, sections[""].get("keys"), ("keys",)),
        (LINKED, sections.get("study", {}).get("link"), ("study", "link")),
    )
    named = ((part, named_scenario(value), where) for part, value, where in asked)
    return {part: _Wanted(name, where) for part, name, where in named if name is not None}


def _tell_empty(check: _Check, wanted: _Wanted) -> None:
    what = wanted.where[-1]
    text = f"{what}: the key of scenario {wanted.name!r} is empty; nothing can be measured on it."
    check.say(wanted.where, text)


def _environment(check: _Check, store: str) -> Environment | None:
    try:
        if "://" in store:
            return read_place(store)
        return read_again(check.source.path.parent / store, read_place)
    except InputError as error:
        check.tell(("environment", "store"), error)
        return None


def _scenarios(
    check: _Check, environment: Environment, given: Values, stories: Values
) -> dict[str, Scenario]:
    """Return the scenarios: those the review tells, and those of the environment it names."""
    found: dict[str, Scenario] = {}
    for name, plain in stories.items():
        try:
            found[name] = scenario_from_dict(plain, name=name)
        except InputError as error:
            for text in error.problems:
                check.say(("scenario", name, *_setting(text)), text)
    known = given.get("scenarios", [] if stories else [s.name for s in environment.scenarios])
    for i, name in enumerate(known):
        if name not in found:
            _add(check, environment, name, found, ("environment", "scenarios", i))
    return found


def _setting(text: str) -> tuple[str, ...]:
    """Return the setting that a problem of a scenario is about, which has a line of its own."""
    found = re.match(r"scenario .*?: '?(\w+)", text)
    return (found[1],) if found else ()


def _add(
    check: _Check,
    environment: Environment,
    name: str,
    found: dict[str, Scenario],
    where: Where,
) -> None:
    """Take a scenario of the environment, or say that it has none of this name."""
    known = {one.name: one for one in environment.scenarios}
    if name in known:
        found[name] = known[name]
        return
    near = nearest(name, list(known), most=1)
    hint = f"Did you mean {quoted(near)}?" if near else f"There are {quoted(known) or 'none'}."
    check.say(where, f"scenario {name!r} is neither in the review nor in the environment. {hint}")


def _files(
    check: _Check,
    environment: Environment,
    scenarios: Mapping[str, Scenario],
    given: Values,
    reviewed: ReviewFile,
) -> dict[str, ReviewFile]:
    """Derive the key of each scenario and recode the file to it."""
    files: dict[str, ReviewFile] = {}
    try:
        graph, digest = remembered("the environment", (environment,), lambda: _graph(environment))
    except InputError as error:
        check.tell(("environment", "store"), error)
        return files
    for name, scenario in scenarios.items():
        try:
            key = _key(graph, scenario, reviewed.data, given.get("target"))
        except InputError as error:
            told_here = ("scenario", name) in check.source.lines
            check.tell(("scenario", name) if told_here else ("environment", "store"), error)
            continue
        read = {"target": key.target.name, "scenario": scenario_to_toml(scenario)}
        shown = given["store"] if "://" not in given["store"] else "the environment"
        files[f"{SCENARIO}{name}"] = ScenarioFile(
            Path(shown).as_posix(), key.microdata, digest, read, key
        )
    return files


def _graph(environment: Environment) -> tuple[CodingGraph, str]:
    """Return the graph of an environment, and the hash of all that it holds."""
    graph = CodingGraph(dataclasses.replace(environment, scenarios=()))
    return graph, hashlib.sha256(environment_to_json(environment).encode()).hexdigest()


def _key(
    graph: CodingGraph, scenario: Scenario, data: Microdata, target: str | None
) -> ScenarioKey:
    """Derive a scenario's key; it is remembered for the same file, environment and story."""
    # The key keeps the file, and the graph stands beside it: neither number is given to another.
    state = (id(data), id(graph), scenario, target)
    found, _ = remembered(
        f"{SCENARIO}{scenario.name}",
        state,
        lambda: (scenario_key(graph, scenario, data, target), graph),
    )
    return found
