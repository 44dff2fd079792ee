"""The scenarios of a review: the environment is read, each key derived, all problems told."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.core.names import nearest, quoted
from keyhole.data import Microdata
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import environment_to_json, read_place
from keyhole.environment.model import Environment
from keyhole.environment.scenarios.recoding import ScenarioKey, scenario_key
from keyhole.environment.scenarios.scenarios import Scenario, scenario_from_dict, scenario_to_toml
from keyhole.errors import InputError
from keyhole.reviews.files import (
    KEYED,
    LINKED,
    ReviewFile,
    ScenarioFile,
    allowed,
    read_again,
    remembered,
    scenario_key_of,
)
from keyhole.reviews.settings import ScenarioSettings
from keyhole.reviews.source import SCENARIO, ReviewSource, ValuePath, named_scenario

Values = Mapping[str, Any]


def check_scenarios(
    source: ReviewSource, sections: Mapping[str, Values], reviewed: ReviewFile
) -> tuple[ScenarioSettings | None, dict[str, ReviewFile]]:
    """Read the environment and derive the key of each scenario.

    Returned are the settings (None without an environment), and the file recoded to each key under
    ``scenario:NAME``, to the review's own under ``keyed`` and to a study's under ``linked``.
    """
    asked: tuple[tuple[str, Any, ValuePath], ...] = (
        (KEYED, sections[""].get("keys"), ("keys",)),
        (LINKED, sections.get("study", {}).get("link"), ("study", "link")),
    )
    wanted = {
        part: (name, where)
        for part, value, where in asked
        if (name := named_scenario(value)) is not None
    }
    given, stories = sections.get("environment"), sections.get("scenario", {})
    if given is None or "store" not in given:
        if given is None and (stories or wanted):
            where = ("scenario",) if stories else next(iter(wanted.values()))[1]
            source.say(where, "[environment] is missing: scenarios need its store. Add it.")
        return None, {}
    environment = None
    with source.telling(("environment", "store")):
        store = given["store"]
        if "://" in store:
            from keyhole.environment.places import FilePlace, place_of_store

            place = place_of_store(store)
            if isinstance(place, FilePlace):
                allowed(place.path)
            environment = read_place(store)
        else:
            environment = read_again(source.path.parent / store, read_place)
    if environment is None:
        return None, {}
    scenarios = _scenarios(source, environment, given, stories)
    for name, where in wanted.values():
        if name not in scenarios:
            _add(source, environment, name, scenarios, where)
    files = _files(source, environment, scenarios, given, reviewed)
    for part, (name, where) in wanted.items():
        if f"{SCENARIO}{name}" in files:
            files[part] = files[f"{SCENARIO}{name}"]
            key = scenario_key_of(files, part)
            if key is not None and not key.keys:
                text = f"the key of scenario {name!r} is empty; nothing can be measured on it."
                source.say(where, f"{where[-1]}: {text}")
    chosen = wanted[KEYED][0] if KEYED in wanted else None
    settings = ScenarioSettings(given["store"], given.get("target"), tuple(scenarios), chosen)
    return settings, files


def _scenarios(
    source: ReviewSource, environment: Environment, given: Values, stories: Values
) -> dict[str, Scenario]:
    """Return the scenarios: those the review tells, and those of the environment it names."""
    found: dict[str, Scenario] = {}
    for name, plain in stories.items():
        try:
            found[name] = scenario_from_dict(plain, name=name)
        except InputError as error:
            for text in error.problems:
                # The setting that a problem is about has a line of its own.
                setting = re.match(r"scenario .*?: '?(\w+)", text)
                source.say(("scenario", name, *(setting.groups() if setting else ())), text)
    known = given.get("scenarios", [] if stories else [s.name for s in environment.scenarios])
    for i, name in enumerate(known):
        if name not in found:
            _add(source, environment, name, found, ("environment", "scenarios", i))
    return found


def _add(
    source: ReviewSource,
    environment: Environment,
    name: str,
    found: dict[str, Scenario],
    where: ValuePath,
) -> None:
    """Take a scenario of the environment, or say that it has none of this name."""
    known = {one.name: one for one in environment.scenarios}
    if name in known:
        found[name] = known[name]
        return
    near = nearest(name, list(known), most=1)
    hint = f"Did you mean {quoted(near)}?" if near else f"There are {quoted(known) or 'none'}."
    source.say(where, f"scenario {name!r} is neither in the review nor in the environment. {hint}")


def _files(
    source: ReviewSource,
    environment: Environment,
    scenarios: Mapping[str, Scenario],
    given: Values,
    reviewed: ReviewFile,
) -> dict[str, ReviewFile]:
    files: dict[str, ReviewFile] = {}
    store: ValuePath = ("environment", "store")
    with source.telling(store):
        graph, digest = remembered("the environment", (environment,), lambda: _graph(environment))
        for name, scenario in scenarios.items():
            at: ValuePath = ("scenario", name)
            with source.telling(at if at in source.lines else store):
                key = _key(graph, scenario, reviewed.data, given.get("target"))
                read = {"target": key.target.name, "scenario": scenario_to_toml(scenario)}
                shown = given["store"] if "://" not in given["store"] else "the environment"
                files[f"{SCENARIO}{name}"] = ScenarioFile(
                    Path(shown).as_posix(), key.microdata, digest, read, key
                )
    return files


def _graph(environment: Environment) -> tuple[CodingGraph, str]:
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
