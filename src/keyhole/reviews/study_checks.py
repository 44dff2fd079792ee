"""The files of a study are loaded and checked before anything runs, like the file under review."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from keyhole.core.names import absent
from keyhole.core.options import bind
from keyhole.data import Microdata, load
from keyhole.errors import InputError
from keyhole.reidentification.files import blank_variables, linking_keys
from keyhole.reidentification.scores import load_scores, score_problems
from keyhole.reidentification.study import study
from keyhole.reidentification.truth import find_truth
from keyhole.reidentification.unicity import MOST_VARIABLES
from keyhole.reidentification.variables import strangers, variable_problems
from keyhole.reviews.files import Files, ReviewFile, read_steadily
from keyhole.reviews.settings import StudySettings
from keyhole.reviews.source import Problem, Source

if TYPE_CHECKING:
    from keyhole.environment.scenarios.recoding import ScenarioKey

__all__ = ["check_study"]

PARTS = ("puf", "eif", "iuf")


def check_study(
    source: Source,
    given: StudySettings,
    reviewed: ReviewFile | None,
    key: ScenarioKey | None = None,
) -> tuple[StudySettings, Files, list[Problem]]:
    """Load the files of a study and say everything that is wrong with it.

    Parameters
    ----------
    source
        The review file.
    given
        The settings, as far as they are fit.
    reviewed
        The file under review, which is attacked where no other is named.
    key
        The key of the scenario that the study links on, if it does and the key could be derived.

    Returns
    -------
    tuple
        The settings with the declared scores and a scenario's linking variables in place, the
        files by their part, and the problems.
    """
    given, problems = _with_scores(source, given)
    files: dict[str, ReviewFile] = {}
    for part in PARTS:
        found, wrong = _file(source, given, part, reviewed)
        problems += wrong
        if found is not None:
            files[part] = found
    problems += _codes(source, given, files)
    given, data, unkeyed = _keyed(source, given, files, key)
    problems += [source.problem(at, f"[study] {text}") for at, text in _together(source, given)]
    columns = _columns(source, given, files)
    problems += [*unkeyed, *columns]
    complete, wrong = len(data) == len(PARTS) and not columns, list[Problem]()
    if complete:
        wrong = [source.problem(("study",), text) for text in _content(given, data)]
        problems += wrong
    # Where the files do not fit together, the candidates are only read.
    candidates, more = _candidates(source, given, data if complete and not wrong else {}, key)
    return given, {**files, **candidates}, [*problems, *more]


def _keyed(
    source: Source, given: StudySettings, files: Files, key: ScenarioKey | None
) -> tuple[StudySettings, dict[str, Microdata], list[Problem]]:
    """Take the linking variables and the files' detail from a scenario's key, if there is one.

    Without the key that is wanted, or without all files, there is nothing to be looked into.
    """
    data = {part: file.data for part, file in files.items()}
    if given.scenario is None:
        return given, data, []
    if key is None or not key.keys or len(files) < len(PARTS):
        return given, {}, []
    try:
        question = bind(study, {"numeric": given.numeric, "strata": given.strata})
        link = linking_keys(key, data["eif"], question)
        recoded = {part: key.recode(data[part], partial=True) for part in PARTS}
    except InputError as error:
        at = ("study", "link")
        return given, {}, [source.problem(at, f"[study] {text}") for text in error.problems]
    return dataclasses.replace(given, link=link), recoded, []


def _candidates(
    source: Source,
    given: StudySettings,
    data: Mapping[str, Microdata],
    key: ScenarioKey | None,
) -> tuple[dict[str, ReviewFile], list[Problem]]:
    """Load the candidate releases, and check each in the place of the PUF."""
    files: dict[str, ReviewFile] = {}
    problems: list[Problem] = []
    for name, path in given.candidates.items():
        at = ("study", "candidates", name)
        found, wrong = _read(source, given, path, at)
        if found is not None:
            files[f"candidate:{name}"] = found
            texts = _candidate(given, data, found.data, key) if data else []
            wrong += [source.problem(at, f"[study] candidate {name!r}: {text}") for text in texts]
        problems += wrong
    return files, problems


def _candidate(
    given: StudySettings,
    data: Mapping[str, Microdata],
    puf: Microdata,
    key: ScenarioKey | None,
) -> list[str]:
    if given.scenario is not None and key is not None:
        try:
            puf = key.recode(puf, partial=True)
        except InputError as error:
            return list(error.problems)
    return _content(given, {**data, "puf": puf}, candidate=True)


def _with_scores(source: Source, given: StudySettings) -> tuple[StudySettings, list[Problem]]:
    """Read the file of scores, if one is named."""
    if given.scores_file is None:
        return given, []
    try:
        scores, _ = read_steadily(source.path.parent / given.scores_file, load_scores)
    except InputError as error:
        at = ("study", "scores")
        # Told once: with the file, not again as scores that are missing.
        told = [source.problem(at, text) for text in error.problems]
        return dataclasses.replace(given, metrics=_others(given.metrics)), told
    return dataclasses.replace(given, scores=scores), []


def _others(metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(metric for metric in metrics if metric != "adhoc")


def _together(source: Source, given: StudySettings) -> list[tuple[tuple[str, ...], str]]:
    """Check settings against one another."""
    written = source.values["study"]
    found: list[tuple[str, list[str]]] = [
        ("metrics", ["metric and metrics say the same. Give one of them."]
         if {"metric", "metrics"} <= set(written) else []),
        ("link", _link_problems(given)),
        ("numeric", strangers(given.numeric, given.link, "numeric") if given.link else []),
        ("strata", [f"{name!r} is a linking variable and a stratum. Leave it out of one of them."
                    for name in given.strata if name in given.link]),
        ("scores", _score_problems(given, written)),
    ]  # fmt: skip
    return [(("study", name), text) for name, texts in found for text in texts]


def _link_problems(given: StudySettings) -> list[str]:
    count = len(given.link)
    if count == 1:
        return ["link must name at least two variables. Got one instead."]
    if "unicity" in given.metrics and count > MOST_VARIABLES:
        return [f"link must name at most {MOST_VARIABLES} variables for unicity. Got {count}."]
    return []


def _score_problems(given: StudySettings, written: Mapping[str, Any]) -> list[str]:
    if "adhoc" not in given.metrics:
        if "scores" in written and given.scores is not None:
            return ["scores belong to metric 'adhoc', which is not asked for. Leave them out."]
        return []
    if given.scores is None:
        return ["metric 'adhoc' needs scores: a table or a TOML file, like sex = { exact = 5 }."]
    return score_problems(given.scores, given.link) if given.link else []


def _file(
    source: Source, given: StudySettings, part: str, reviewed: ReviewFile | None
) -> tuple[ReviewFile | None, list[Problem]]:
    name = getattr(given, part)
    if name is None:
        return reviewed, []
    if not name:  # it is missing, which has been told
        return None, []
    return _read(source, given, name, ("study", part))


def _read(
    source: Source, given: StudySettings, name: str, at: tuple[str, ...]
) -> tuple[ReviewFile | None, list[Problem]]:
    try:
        data, digest = read_steadily(source.path.parent / name, partial(_load, given))
        data.require_records()
    except InputError as error:
        return None, [source.problem(at, text) for text in error.problems]
    read = {**given.read(), "missing_codes": given.missing_codes}
    return ReviewFile(name, data, digest, read), []


def _load(given: StudySettings, path: Any) -> Microdata:
    data = load(path, **given.read())
    codes = given.missing_codes
    if isinstance(codes, Mapping):
        codes = {name: listed for name, listed in codes.items() if name in {*data.names, "*"}}
    return load(data, missing_codes=codes) if codes else data


def _codes(source: Source, given: StudySettings, files: Files) -> list[Problem]:
    """Say which missing codes are for a column that none of the files has."""
    if not isinstance(given.missing_codes, Mapping) or len(files) < len(PARTS):
        return []
    known = {name for file in files.values() for name in file.data.names} | {"*"}
    return [
        source.problem(
            ("study", "missing_codes", name),
            f"[study] missing_codes names {name!r}, which is a column of none of the files.",
        )
        for name in given.missing_codes
        if name not in known
    ]


def _columns(source: Source, given: StudySettings, files: Files) -> list[Problem]:
    """Say of each column that a file does not have so, on its own line."""
    wanted: list[tuple[str, str, Iterable[str], tuple[str, ...]]] = [
        ("puf_id", "PUF id", given.puf_id, ("puf", "iuf")),
        ("eif_id", "EIF id", given.eif_id, ("eif", "iuf")),
        ("link", "linking variable", given.link, ("puf", "eif")),
        ("strata", "stratum", given.strata, ("puf", "eif")),
    ]
    return [
        source.problem(("study", setting, place), f"[study] {text}")
        for setting, purpose, names, parts in wanted
        for part in parts
        if part in files
        for place, name in enumerate(names)
        for text in _absent(name, purpose, files[part].data)
    ]


def _absent(name: str, purpose: str, data: Microdata) -> list[str]:
    return absent([name], data.names, purpose=purpose, where=repr(data.name))


def _content(
    given: StudySettings, data: Mapping[str, Microdata], *, candidate: bool = False
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
