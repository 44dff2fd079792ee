"""Scenarios in a review file: which are compared, and those that it defines itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.toml_document import TOMLDocument

from keyhole.data import Microdata
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.scenarios.scenarios import Scenario, scenario_to_toml
from keyhole.errors import InputError
from keyhole.reviews.settings import Review
from keyhole.workbench import editing


def stories_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the scenarios that a review tells itself."""
    told = document.get("scenario", {})
    return tuple(str(name) for name in told) if isinstance(told, Mapping) else ()


def set_scenarios(document: TOMLDocument, names: Sequence[str]) -> None:
    """Set which of the environment's scenarios are looked at; none is a list without names."""
    if names:
        editing.put_setting(document, "environment", "scenarios", list(names))
        return
    section: Any = document["environment"]
    section["scenarios"] = tomlkit.array()


def hold_scenarios(document: TOMLDocument, review: Review) -> None:
    """Say which of the environment's scenarios are looked at, where that was left unsaid.

    Left unsaid it means all of them, unless the review tells some itself: then none. So it would
    change its meaning when the first story is added, or the last one goes.
    """
    section: Any = document.get("environment", {})
    if review.scenarios is None or "scenarios" in section:
        return
    own = stories_of(document)
    set_scenarios(document, [name for name in review.scenarios.names if name not in own])


def put_story(document: TOMLDocument, scenario: Scenario) -> None:
    """Write a scenario into the review, every point of it, in place of one of its name."""
    if "scenario" not in document:
        document["scenario"] = tomlkit.table(is_super_table=True)
    section: Any = document["scenario"]
    section[scenario.name] = _told(scenario)


def _told(scenario: Scenario) -> Any:
    section: Any = tomlkit.parse(scenario_to_toml(scenario))["scenario"]
    return section[scenario.name]


def change_story(document: TOMLDocument, before: Scenario, changes: Mapping[str, Any]) -> None:
    """Change attributes of one of the review's own scenarios, and leave the rest as it stands."""
    after = dataclasses.replace(before, **changes)
    names = [name for name in changes if getattr(after, name) != getattr(before, name)]
    section: Any = document["scenario"]
    story: Any = section[before.name]
    # A stage may have gone; text may be empty, and says so.
    gone = [name for name in names if getattr(after, name) in (None, (), {})]
    if "preset" in story and gone:
        # What a preset says can only be taken away by telling the whole.
        put_story(document, after)
        return
    told = _told(after)
    for name in names:
        if name in gone:
            story.pop(name, None)
        else:
            story[name] = told[name].unwrap() if name == "public" else told[name]


def remove_story(document: TOMLDocument, name: str) -> None:
    """Take one of the review's own scenarios out of it."""
    section: Any = document["scenario"]
    del section[name]
    if not section:
        document.pop("scenario")


def fit_environment(document: TOMLDocument, environment: Environment, data: Microdata) -> None:
    """Leave out the target and scenarios that an environment does not have, or has for others.

    A scenario is left out whose key cannot be derived for the file: an example's, say, whose
    target describes other columns. It can be ticked again when the file is described.
    """
    section: Any = document["environment"]
    target = _target(section.get("target"), environment, data)
    editing.put_setting(document, "environment", "target", target)
    own = stories_of(document)
    said = section.get("scenarios")
    everything = [one.name for one in environment.scenarios]
    wanted = everything if said is None and not own else [str(name) for name in said or ()]
    usable = set(_usable(environment, data, target))
    kept = [name for name in wanted if name in usable or name in own]
    if said is not None or kept != wanted:
        set_scenarios(document, kept)


def _target(said: Any, environment: Environment, data: Microdata) -> str | None:
    """Keep the target where it is there; of several take the one with most of the columns."""
    names = [one.name for one in environment.targets]
    if said in names:
        return str(said)
    if len(names) < 2:
        return None
    have = set(data.names)
    alike = {t.name: sum(f.name in have for f in t.fields) for t in environment.targets}
    return max(names, key=lambda name: (name == data.name, alike[name]))


def _usable(environment: Environment, data: Microdata, target: str | None) -> Iterator[str]:
    """Yield the scenarios whose key can be derived for the file."""
    if not environment.targets:
        return
    try:
        graph = CodingGraph.of(environment)
    except InputError:
        return
    for one in environment.scenarios:
        try:
            scenario_key(graph, one, data, target)
        except InputError:
            continue
        yield one.name
