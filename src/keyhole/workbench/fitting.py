"""Bringing a review to another environment: names that it does not have are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.data import Microdata
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.errors import InputError
from keyhole.workbench import editing
from keyhole.workbench.scenario_editing import set_scenarios, stories_of

__all__ = ["fit_environment"]


def fit_environment(document: TOMLDocument, environment: Environment, data: Microdata) -> None:
    """Leave out the target and scenarios that an environment does not have, or has for others.

    A scenario is left out whose key cannot be derived for the file: an example's, say, whose
    target describes other columns. It can be ticked again when the file is described.
    """
    section: Any = document["environment"]
    target = _target(section.get("target"), environment, data)
    editing.put(document, "environment", "target", target)
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
