"""The scenarios of a review: the environment is read, each key derived, all problems told."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.data.naming import nearest, quoted
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import to_json
from keyhole.environment.model import Environment
from keyhole.environment.opening import read_place
from keyhole.environment.scenarios.files import scenario_from_dict, scenario_to_toml
from keyhole.environment.scenarios.recoding import ScenarioKey, scenario_key
from keyhole.environment.scenarios.scenarios import Scenario
from keyhole.errors import InputError
from keyhole.reviews.files import ReviewFile
from keyhole.reviews.settings import ScenarioSettings
from keyhole.reviews.source import Problem, Source

__all__ = ["KEYED", "ScenarioFile", "check_scenarios", "named_scenario"]

KEYED = "keyed"
"""The part of the file under review, recoded to the key that the review is about."""
PREFIX = "scenario:"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScenarioFile(ReviewFile):
    """The file under review as one scenario's intruder could match it."""

    key: ScenarioKey | None = None


def named_scenario(keys: Any) -> str | None:
    """Return the scenario that the keys are those of: ``keys = "scenario:NAME"``.

    Examples
    --------
    >>> named_scenario("scenario:journalist"), named_scenario(["age"])
    ('journalist', None)
    """
    if isinstance(keys, str) and keys.startswith(PREFIX):
        return keys.removeprefix(PREFIX).strip()
    return None


@dataclass(slots=True)
class _Check:
    """A check under way: what was found wrong so far."""

    source: Source
    problems: list[Problem]

    def tell(self, where: tuple[str | int, ...], error: InputError) -> None:
        """Add the problems of an error, on their line."""
        self.problems += [self.source.problem(where, text) for text in error.problems]


def check_scenarios(
    source: Source, sections: Mapping[str, Values], reviewed: ReviewFile
) -> tuple[ScenarioSettings | None, dict[str, ReviewFile], list[Problem]]:
    """Read the environment and derive the key of each scenario.

    Returns
    -------
    tuple
        The settings (None without an environment), the file recoded to each key under
        ``scenario:NAME`` and to the review's own under ``keyed``, and what is wrong.
    """
    check = _Check(source, [])
    wanted = named_scenario(sections[""].get("keys"))
    given, stories = sections.get("environment"), sections.get("scenario", {})
    if given is None or "store" not in given:
        if given is None and (stories or wanted is not None):
            text = "[environment] is missing: scenarios need its store. Add it."
            check.problems.append(source.problem(("scenario",), text))
        return None, {}, check.problems
    environment = _environment(check, given["store"])
    if environment is None:
        return None, {}, check.problems
    scenarios = _scenarios(check, environment, given, stories)
    if wanted is not None and wanted not in scenarios:
        _add(check, environment, wanted, scenarios, ("keys",))
    files = _files(check, environment, scenarios, given, reviewed)
    if wanted is not None and f"{PREFIX}{wanted}" in files:
        files[KEYED] = files[f"{PREFIX}{wanted}"]
        if not files[KEYED].key.keys:  # type: ignore[attr-defined]
            text = f"keys: the key of scenario {wanted!r} is empty; nothing can be measured on it."
            check.problems.append(source.problem(("keys",), text))
    settings = ScenarioSettings(given["store"], given.get("target"), tuple(scenarios), wanted)
    return settings, files, check.problems


def _environment(check: _Check, store: str) -> Environment | None:
    place = store if "://" in store else str(check.source.path.parent / store)
    try:
        return read_place(place)
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
            check.tell(("scenario", name), error)
    known = given.get("scenarios", [] if stories else [s.name for s in environment.scenarios])
    for i, name in enumerate(known):
        if name not in found:
            _add(check, environment, name, found, ("environment", "scenarios", i))
    return found


def _add(
    check: _Check,
    environment: Environment,
    name: str,
    found: dict[str, Scenario],
    where: tuple[str | int, ...],
) -> None:
    """Take a scenario of the environment, or say that it has none of this name."""
    known = {one.name: one for one in environment.scenarios}
    if name in known:
        found[name] = known[name]
        return
    near = nearest(name, list(known), most=1)
    hint = f"Did you mean {quoted(near)}?" if near else f"There are {quoted(known) or 'none'}."
    text = f"scenario {name!r} is neither in the review nor in the environment. {hint}"
    check.problems.append(check.source.problem(where, text))


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
        graph = CodingGraph(dataclasses.replace(environment, scenarios=()))
    except InputError as error:
        check.tell(("environment", "store"), error)
        return files
    digest = hashlib.sha256(to_json(environment).encode()).hexdigest()
    for name, scenario in scenarios.items():
        try:
            key = scenario_key(graph, scenario, reviewed.data, given.get("target"))
        except InputError as error:
            told_here = ("scenario", name) in check.source.lines
            check.tell(("scenario", name) if told_here else ("environment", "store"), error)
            continue
        read = {"target": key.target.name, "scenario": scenario_to_toml(scenario)}
        shown = given["store"] if "://" not in given["store"] else "the environment"
        files[f"{PREFIX}{name}"] = ScenarioFile(
            Path(shown).as_posix(), key.microdata, digest, read, key
        )
    return files
