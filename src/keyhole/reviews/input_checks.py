"""Checks of a review's other inputs: scenarios of an environment, the files of a study."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keyhole.core.names import absent, nearest, quoted
from keyhole.core.options import Problem as OptionProblem
from keyhole.core.options import Question, bind, parameters_of
from keyhole.data import Microdata, load
from keyhole.data.deriving import fit_derivations
from keyhole.engines.opening import HOW
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import environment_to_json, read_place
from keyhole.environment.model import Environment
from keyhole.environment.scenarios.recoding import ScenarioKey, scenario_key
from keyhole.environment.scenarios.scenarios import Scenario, scenario_from_dict, scenario_to_toml
from keyhole.errors import InputError
from keyhole.reidentification.files import blank_variables, declared_for, linking_keys
from keyhole.reidentification.linkage import find_truth
from keyhole.reidentification.study import study
from keyhole.reidentification.variables import variable_problems
from keyhole.reviews.files import (
    KEYED,
    LINKED,
    SCENARIO,
    Files,
    ReviewFile,
    ReviewSource,
    ScenarioFile,
    ValuePath,
    allowed,
    named_scenario,
    read_again,
    read_steadily,
    remembered,
    scenario_key_of,
)
from keyhole.reviews.settings import ScenarioSettings

Values = Mapping[str, Any]


def check_scenarios(
    source: ReviewSource, sections: Mapping[str, Values], reviewed: ReviewFile
) -> tuple[ScenarioSettings | None, dict[str, ReviewFile]]:
    """Return the scenarios' settings, and the file recoded to the key of each and of the review."""
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
            from keyhole.environment.store import FilePlace, place_of_store

            place = place_of_store(store)
            if isinstance(place, FilePlace):
                allowed(place.path)
            environment = read_place(store)
        else:
            environment = read_again(source.path.parent / store, read_place)
    if environment is None:
        return None, {}
    known = {one.name: one for one in environment.scenarios}
    scenarios = _told(source, stories)
    named = given.get("scenarios", [] if stories else [*known])
    places: list[tuple[str, ValuePath]] = [
        (name, ("environment", "scenarios", place)) for place, name in enumerate(named)
    ]
    for name, where in [*places, *wanted.values()]:
        if name in known:
            scenarios.setdefault(name, known[name])
        elif name not in scenarios:
            near = nearest(name, list(known), most=1)
            hint = f"There are {quoted(known) or 'none'}."
            hint = f"Did you mean {quoted(near)}?" if near else hint
            text = f"scenario {name!r} is neither in the review nor in the environment. {hint}"
            source.say(where, text)
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


def _told(source: ReviewSource, stories: Values) -> dict[str, Scenario]:
    """Return the scenarios that the review itself tells."""
    found: dict[str, Scenario] = {}
    for name, plain in stories.items():
        try:
            found[name] = scenario_from_dict(plain, name=name)
        except InputError as error:
            for text in error.problems:
                # The setting that a problem is about has a line of its own.
                setting = re.match(r"scenario .*?: '?(\w+)", text)
                source.say(("scenario", name, *(setting.groups() if setting else ())), text)
    return found


def _files(
    source: ReviewSource,
    environment: Environment,
    scenarios: Mapping[str, Scenario],
    given: Values,
    reviewed: ReviewFile,
) -> dict[str, ReviewFile]:
    """Derive each key; it is remembered for the same file, environment and story."""
    files: dict[str, ReviewFile] = {}
    store: ValuePath = ("environment", "store")
    data, target = reviewed.data, given.get("target")

    def coded() -> tuple[CodingGraph, str]:
        graph = CodingGraph(dataclasses.replace(environment, scenarios=()))
        return graph, hashlib.sha256(environment_to_json(environment).encode()).hexdigest()

    with source.telling(store):
        graph, digest = remembered("the environment", (environment,), coded)
        for name, scenario in scenarios.items():
            at: ValuePath = ("scenario", name)
            with source.telling(at if at in source.lines else store):
                # The key keeps the file, and the graph stands beside it: neither number is given
                # to another.
                key, _ = remembered(
                    f"{SCENARIO}{name}",
                    (id(data), id(graph), scenario, target),
                    partial(_derived_key, graph, scenario, data, target),
                )
                read = {"target": key.target.name, "scenario": scenario_to_toml(scenario)}
                shown = given["store"] if "://" not in given["store"] else "the environment"
                files[f"{SCENARIO}{name}"] = ScenarioFile(
                    Path(shown).as_posix(), key.microdata, digest, read, key
                )
    return files


def _derived_key(graph: CodingGraph, *about: Any) -> tuple[ScenarioKey, CodingGraph]:
    return scenario_key(graph, *about), graph


PARTS = ("puf", "eif", "iuf")


def check_study(
    source: ReviewSource,
    given: Question,
    reviewed: ReviewFile | None,
    key: ScenarioKey | None = None,
) -> tuple[Question, Files]:
    """Load a study's files and say all that is wrong; return its settings, completed, and files."""
    if given.scores_file is not None:
        from keyhole.reidentification.scores import load_scores

        # Told once: with the file, not again as scores that are missing.
        others = tuple(metric for metric in given.metrics if metric != "adhoc")
        metrics, given = given.metrics, given.replace(metrics=others)
        with source.telling(("study", "scores")):
            scores, _ = read_steadily(source.path.parent / given.scores_file, load_scores)
            given = given.replace(scores=scores, metrics=metrics)
    files: dict[str, ReviewFile] = {}
    # The derived columns of the file under review, and what they depend on, wherever it lies.
    derived: tuple[dict[str, str], dict[str, Any]] = {}, {}
    in_memory = reviewed is not None and isinstance(reviewed.data, Microdata)
    if reviewed is not None and in_memory and (lines := fit_derivations(reviewed.data)):
        read = {name: reviewed.read[name] for name in ("derive", "codings")}
        derived = lines, {**read, "counted in": reviewed.sha256}
    for part in PARTS:
        name = given.values[part]  # what must be there and is missing has been told
        found = reviewed if part == "puf" else None
        if name is not None:
            found = _read(source, given, name, ("study", part), derived)
        if found is not None:
            files[part] = found
    known = {"*", *(name for file in files.values() for name in file.data.names)}
    for name in given.missing_codes or () if len(files) == len(PARTS) else ():
        if name not in known:
            text = f"missing_codes names {name!r}, which is a column of none of the files."
            source.say(("study", "missing_codes", name), f"[study] {text}")
    given, data = _keyed(source, given, files, key)
    _together(source, given)
    before = len(source.problems)
    _columns(source, given, files)
    if len(data) == len(PARTS) and len(source.problems) == before:
        source.say(("study",), *_content(given, data))
    # Where the files do not fit together, the candidates are only read.
    fit = data if len(data) == len(PARTS) and len(source.problems) == before else {}
    for name, path in given.candidates.items():
        at = ("study", "candidates", name)
        found = _read(source, given, path, at, derived)
        if found is not None:
            files[f"candidate:{name}"] = found
            with source.telling(at, f"[study] candidate {name!r}: "):
                puf = found.data
                if fit and given.scenario is not None and key is not None:
                    puf = key.recode(puf, partial=True)
                if fit and (texts := _content(given, {**fit, "puf": puf}, candidate=True)):
                    raise InputError(texts)
    return given, files


def _keyed(
    source: ReviewSource, given: Question, files: Files, key: ScenarioKey | None
) -> tuple[Question, dict[str, Microdata]]:
    """Take the linking variables and the files' detail from a scenario's key, if there is one."""
    data = {part: file.data for part, file in files.items()}
    if given.scenario is None:
        return given, data
    if key is not None and key.keys and len(files) == len(PARTS):
        with source.telling(("study", "link"), "[study] "):
            if given.numeric:
                text = "numeric cannot be used with a scenario, whose key holds categories only."
                raise InputError([f"{text} Leave numeric out."])
            link = linking_keys(key, data["eif"], bind(study, {"strata": given.strata}))
            recoded = {part: key.recode(data[part], partial=True) for part in PARTS}
            return given.replace(link=link), recoded
    return given, {}


def _together(source: ReviewSource, given: Question) -> None:
    written = source.values["study"]
    lead = "metrics" if "metrics" in written else "metric"
    if {"metric", "metrics"} <= set(written):
        text = "[study] metric and metrics say the same. Give one of them."
        source.say(("study", "metrics"), text)
    if not given.link:  # it is missing, or that of a scenario whose key is
        return
    apart = (*PARTS, "scenario")
    own = [n for n in parameters_of(study) if n in given.values and n not in apart]
    asked = {name: given.values[name] for name in own}
    for problem in bind(study, {**asked, "metric": given.metrics or ("unicity",)}).problems:
        assert isinstance(problem, OptionProblem)
        at = lead if problem.options[0] == "metric" else problem.options[0]
        text = problem.named(lambda name: lead if name == "metric" else name)
        source.say(("study", at), f"[study] {text}")


def _read(
    source: ReviewSource,
    given: Question,
    name: str,
    at: tuple[str, ...],
    derived: tuple[Mapping[str, str], Mapping[str, Any]],
) -> ReviewFile | None:
    how = {name: given.values[name] for name in HOW}
    codes = given.missing_codes
    with source.telling(at):
        read_it = partial(_load, how=how, codes=codes or {}, derived=derived[0])
        data, digest = read_steadily(source.path.parent / name, read_it)
        data.require_records()
        return ReviewFile(name, data, digest, {**how, "missing_codes": codes, **derived[1]})
    return None


def _load(
    path: Any, how: Mapping[str, Any], codes: Mapping[str, Any], derived: Mapping[str, str]
) -> Microdata:
    data = load(path, **how)
    declared = declared_for(data.names, {"missing_codes": codes})["missing_codes"]
    data = load(data, missing_codes=declared) if declared else data
    return load(data, derive=derived, partial=True) if derived else data


def _columns(source: ReviewSource, given: Question, files: Files) -> None:

    wanted: list[tuple[str, str, Sequence[str], tuple[str, ...]]] = [
        ("puf_id", "PUF id", given.puf_id, ("puf", "iuf")),
        ("eif_id", "EIF id", given.eif_id, ("eif", "iuf")),
        ("link", "linking variable", given.link, ("puf", "eif")),
        ("strata", "stratum", given.strata, ("puf", "eif")),
    ]
    for setting, purpose, names, parts in wanted:
        for data in [files[part].data for part in parts if part in files]:
            for place, name in enumerate(names):
                texts = absent([name], data.names, purpose=purpose, where=repr(data.name))
                source.say(("study", setting, place), *(f"[study] {text}" for text in texts))


def _content(
    given: Question, data: Mapping[str, Microdata], *, candidate: bool = False
) -> list[str]:
    """Say what is wrong with ids and linking values; a candidate may lack some of these."""
    problems: list[str] = []
    link = given.link
    if candidate:
        link = tuple(n for n in link if n not in blank_variables(data["puf"], link))
        problems += absent(given.strata, data["puf"].names, purpose="stratum", where="it")
        if problems:
            return problems
    if given.puf_id and given.eif_id:
        try:
            find_truth(**data, puf_id=given.puf_id, eif_id=given.eif_id)
        except InputError as error:
            problems += error.problems
    for metric in given.metrics:
        own: dict[str, Any] = {"metric": metric, "numeric": given.numeric}
        if metric == "adhoc":
            own = {"metric": metric, "scores": given.scores}
        question = bind(study, {"link": link, "strata": given.strata, **own}).replace(metric=metric)
        problems += variable_problems(data["puf"], data["eif"], question)
    return list(dict.fromkeys(problems))
