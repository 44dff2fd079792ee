"""The files of a study are loaded and checked before anything runs, like the file under review."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from keyhole.core.names import absent
from keyhole.core.options import Problem as OptionProblem
from keyhole.core.options import Question, bind, parameters_of
from keyhole.data import Microdata, load
from keyhole.data.deriving import fit_derivations
from keyhole.errors import InputError
from keyhole.reidentification.files import HOW, blank_variables, declared_for, linking_keys
from keyhole.reidentification.scores import load_scores
from keyhole.reidentification.study import study
from keyhole.reidentification.truth import find_truth
from keyhole.reidentification.variables import variable_problems
from keyhole.reviews.files import Files, ReviewFile, read_steadily
from keyhole.reviews.source import Problem, ReviewSource

if TYPE_CHECKING:
    from keyhole.environment.scenarios.recoding import ScenarioKey


PARTS = ("puf", "eif", "iuf")


def check_study(
    source: ReviewSource,
    given: Question,
    reviewed: ReviewFile | None,
    key: ScenarioKey | None = None,
) -> tuple[Question, Files, list[Problem]]:
    """Load the files of a study and say everything that is wrong with it.

    The file under review is attacked where no other is named; `key` is that of the scenario linked
    on, if it could be derived. Returned are the settings with the declared scores and a scenario's
    linking variables in place, the files by their part, and the problems.
    """
    given, problems = _with_scores(source, given)
    files: dict[str, ReviewFile] = {}
    derived = _Derived.of(reviewed)
    for part in PARTS:
        found, wrong = _file(source, given, part, reviewed, derived)
        problems += wrong
        if found is not None:
            files[part] = found
    problems += _codes(source, given, files)
    given, data, unkeyed = _keyed(source, given, files, key)
    problems += _together(source, given)
    columns = _columns(source, given, files)
    problems += [*unkeyed, *columns]
    complete, wrong = len(data) == len(PARTS) and not columns, list[Problem]()
    if complete:
        wrong = [source.problem(("study",), text) for text in _content(given, data)]
        problems += wrong
    # Where the files do not fit together, the candidates are only read.
    fit = data if complete and not wrong else {}
    candidates, more = _candidates(source, given, fit, key, derived)
    return given, {**files, **candidates}, [*problems, *more]


def _keyed(
    source: ReviewSource, given: Question, files: Files, key: ScenarioKey | None
) -> tuple[Question, dict[str, Microdata], list[Problem]]:
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
    return given.replace(link=link), recoded, []


def _candidates(
    source: ReviewSource,
    given: Question,
    data: Mapping[str, Microdata],
    key: ScenarioKey | None,
    derived: _Derived,
) -> tuple[dict[str, ReviewFile], list[Problem]]:
    """Load the candidate releases, and check each in the place of the PUF."""
    files: dict[str, ReviewFile] = {}
    problems: list[Problem] = []
    for name, path in given.candidates.items():
        at = ("study", "candidates", name)
        found, wrong = _read(source, given, path, at, derived)
        if found is not None:
            files[f"candidate:{name}"] = found
            texts = _candidate(given, data, found.data, key) if data else []
            wrong += [source.problem(at, f"[study] candidate {name!r}: {text}") for text in texts]
        problems += wrong
    return files, problems


def _candidate(
    given: Question,
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


def _with_scores(source: ReviewSource, given: Question) -> tuple[Question, list[Problem]]:
    """Read the file of scores, if one is named."""
    if given.scores_file is None:
        return given, []
    try:
        scores, _ = read_steadily(source.path.parent / given.scores_file, load_scores)
    except InputError as error:
        at = ("study", "scores")
        # Told once: with the file, not again as scores that are missing.
        told = [source.problem(at, text) for text in error.problems]
        return given.replace(metrics=_others(given.metrics)), told
    return given.replace(scores=scores), []


def _others(metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(metric for metric in metrics if metric != "adhoc")


def _together(source: ReviewSource, given: Question) -> list[Problem]:
    """Check settings against one another, as the verb does."""
    written = source.values["study"]
    lead = "metrics" if "metrics" in written else "metric"
    problems: list[Problem] = []
    if {"metric", "metrics"} <= set(written):
        text = "[study] metric and metrics say the same. Give one of them."
        problems.append(source.problem(("study", "metrics"), text))
    if not given.link:  # it is missing, or that of a scenario whose key is
        return problems
    apart = (*PARTS, "scenario")
    asked = {n: given.values[n] for n in parameters_of(study) if n in given.values}
    asked = {name: value for name, value in asked.items() if name not in apart}
    for problem in bind(study, {**asked, "metric": given.metrics or ("unicity",)}).problems:
        assert isinstance(problem, OptionProblem)
        at = lead if problem.options[0] == "metric" else problem.options[0]
        text = problem.named(lambda name: lead if name == "metric" else name)
        problems.append(source.problem(("study", at), f"[study] {text}"))
    return problems


def _file(
    source: ReviewSource,
    given: Question,
    part: str,
    reviewed: ReviewFile | None,
    derived: _Derived,
) -> tuple[ReviewFile | None, list[Problem]]:
    name = given.values[part]
    if name is None:  # what must be there and is missing has been told
        return reviewed if part == "puf" else None, []
    return _read(source, given, name, ("study", part), derived)


@dataclass(frozen=True, slots=True)
class _Derived:
    """The derived columns of the file under review, for the files that can have them.

    `read` says what they depend on, wherever the review lies.
    """

    lines: Mapping[str, str] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, reviewed: ReviewFile | None) -> _Derived:
        lines: dict[str, str] = {}
        if reviewed is not None and isinstance(reviewed.data, Microdata):
            lines = fit_derivations(reviewed.data)
        if reviewed is None or not lines:
            return cls()
        read = {name: reviewed.read[name] for name in ("derive", "codings")}
        return cls(lines, {**read, "counted in": reviewed.sha256})


def _read(
    source: ReviewSource,
    given: Question,
    name: str,
    at: tuple[str, ...],
    derived: _Derived,
) -> tuple[ReviewFile | None, list[Problem]]:
    try:
        read_it = partial(_load, given, derived.lines)
        data, digest = read_steadily(source.path.parent / name, read_it)
        data.require_records()
    except InputError as error:
        return None, [source.problem(at, text) for text in error.problems]
    read = {**_reading(given), "missing_codes": given.missing_codes}
    return ReviewFile(name, data, digest, {**read, **derived.read}), []


def _load(given: Question, derived: Mapping[str, str], path: Any) -> Microdata:
    data = load(path, **_reading(given))
    codes = declared_for(data.names, {"missing_codes": given.missing_codes or {}})["missing_codes"]
    data = load(data, missing_codes=codes) if codes else data
    return load(data, derive=derived, partial=True) if derived else data


def _reading(given: Question) -> dict[str, Any]:
    """Return how the study's own files are read, besides their missing codes."""
    return {name: given.values[name] for name in HOW}


def _codes(source: ReviewSource, given: Question, files: Files) -> list[Problem]:
    """Say which missing codes are for a column that none of the files has."""
    if not given.missing_codes or len(files) < len(PARTS):
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


def _columns(source: ReviewSource, given: Question, files: Files) -> list[Problem]:
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
