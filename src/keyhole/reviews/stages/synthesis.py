"""The stage that makes a partially synthetic release of the file, and evaluates it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from keyhole.core.kinds import Place
from keyhole.core.options import Question, parameters_of, without_columns, worded
from keyhole.data import Microdata, load
from keyhole.exposure.cells import risk
from keyhole.results import Result
from keyhole.reviews.files import KEYED, Files, ReviewFile, hash_file, read_steadily
from keyhole.reviews.settings import Review
from keyhole.reviews.source import ReviewSource
from keyhole.reviews.stages.protection import (
    STARTED,
    SYNTHESIS,
    ProtectedFile,
    read_release,
)
from keyhole.reviews.stages.stage import (
    Asked,
    Earlier,
    NothingToDoError,
    Outputs,
    Pictures,
    Progress,
    Stage,
    counted,
)
from keyhole.synthesis.planning import data_problems
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import synthesise_problems
from keyhole.utility.formulas import formula_columns

# The parts of the review that its first implicate is, and all of them.
IMPLICATE, RELEASE = "implicate", "release"
# Holds the seed, in the part of the folder that is the producer's alone.
PARAMETERS = "internal/parameters.json"


@dataclass(frozen=True, slots=True)
class ReleaseFolder(ReviewFile):
    """The implicates of a synthesis: their folder, and how the file under review is read."""

    folder: Path = Path()
    reading: Mapping[str, Any] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    load: Callable[[Path], Microdata] = load


def _ask(review: Review, _: Earlier) -> Asked | None:
    given = review.synthesis
    if given is None:
        return None
    return {name: value for name, value in given.values.items() if name != "rules_file"}


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.synthesis.synthesise import synthesise

    source, data = files["data"].data, files.get(STARTED, files["data"]).data
    if STARTED in files:
        asked = _left(asked, source.names, data)
    return synthesise(data, **asked, progress=counted(progress))


def _left(asked: Asked, names: Sequence[str], data: Microdata) -> Asked:
    """Return what is asked of the columns that the earlier steps of the release left."""
    from keyhole.synthesis.synthesise import synthesise

    gone = set(names).difference(data.names)
    found = without_columns(parameters_of(synthesise), asked, gone)
    if not found["targets"] or not found["keys"]:
        raise NothingToDoError
    if risk(data, keys=found["keys"], cutoff=found["cutoff"]).rp == 0:
        raise NothingToDoError
    rules = asked["rules"] or {}
    kept = [name for name, text in rules.items() if not EditRules.parse([text]).columns & gone]
    found["rules"] = {name: rules[name] for name in kept} or None
    if asked["formula"] and gone.intersection(formula_columns(asked["formula"], names)):
        found["formula"] = None
    return found


def _problems(folder: Path) -> list[str]:
    from keyhole.synthesis.release import require_free

    return require_free(folder, force=True)


def _save(made: Any, folder: Path) -> None:
    made.save(folder, force=True)


def _hashes(folder: Path) -> dict[str, str]:
    """Hash what was written, but for the file with the seed."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: hash_file(path) for name, path in named.items() if name != PARAMETERS}


def _parts(folder: Path, review: Review, files: Files) -> Files:
    """Return the first implicate, for the stages that look at what would go out.

    Its records are those of the file that the synthesis started from, in the same order.
    """
    from keyhole.data.implicates import find_implicates

    started: Any = files.get(STARTED)
    plan = None if started is None else started.plan
    paths = tuple(find_implicates(folder / "release"))
    how = partial(read_release, review, plan)
    data, digest = read_steadily(paths[0], how)
    name, place = paths[0].relative_to(folder.parent).as_posix(), paths[0].parent
    first = ReviewFile(name, data, digest)
    if started is not None:
        first = ProtectedFile(name, data, digest, plan=plan, rows=started.rows)
    whole = hashlib.sha256(str(sorted(_hashes(folder).items())).encode()).hexdigest()
    reading = release_reading(review, place)
    every = ReleaseFolder(name, data, whole, folder=place, reading=reading, paths=paths, load=how)
    return {IMPLICATE: first, RELEASE: every}


def release_reading(review: Review, release: Path) -> dict[str, Any]:
    """Return how the file under review is read, without what is said of columns left out."""
    book = json.loads((release / "codebook.json").read_text(encoding="utf-8"))
    there = {variable["name"] for variable in book["variables"]} | {"*"}
    declared = {k: v for k, v in review.data.declared().items() if k != "name"}
    for name in ("missing_codes", "roles", "kinds", "labels"):
        if isinstance(declared[name], Mapping):
            declared[name] = {n: v for n, v in declared[name].items() if n in there}
    return declared


def _answers(folder: Path, asked: Asked) -> bool:
    """Tell whether a release was drawn with the seed asked for."""
    try:
        made = json.loads((folder / PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(made, dict) and made.get("seed") == asked["seed"]


def _draw(made: Any) -> Pictures:
    """Draw the distributions and, with a formula, the coefficients; changes are a table."""
    from keyhole.reviews.stages.bars import without_small
    from keyhole.synthesis.charts import evaluation_charts

    charts = evaluation_charts(without_small(made.evaluation, made.designation.records))
    return {name: chart for name, chart in charts.items() if name != "changes"}


SYNTHESIS_STAGE = Stage(
    SYNTHESIS,
    "Synthesis",
    _ask,
    _run,
    reads=("data", KEYED, STARTED),
    draw=_draw,
    returns="keyhole.synthesis.result.Synthesis",
    outputs=Outputs(_problems, _save, _hashes, _answers, secrets=("seed",), parts=_parts),
)


def check_synthesis(source: ReviewSource, given: Question, data: Microdata) -> Question:
    """Say all that is wrong but absent columns; return the settings with the rules in place."""
    if given.rules_file is not None:
        with source.telling(("synthesis", "rules"), "[synthesis] "):
            read, _ = read_steadily(source.path.parent / given.rules_file, EditRules.read)
            given = given.replace(rules={rule.name: rule.text for rule in read.rules})
    found: list[tuple[Place, str]] = [((p.options[0],), p) for p in synthesise_problems(given)]
    named = {name for p, v in given.values.items() for _, name in given.parameters[p].columns(v)}
    gone = named.difference(data.names)
    left = without_columns(given.parameters, given.values, gone) if gone else given.values
    for at, text in [*found, *data_problems(given.replace(**left), data)]:
        told = worded(text, lambda name: f"[synthesis] {name}")
        source.say(
            ("synthesis", *at), told if getattr(text, "options", ()) else f"[synthesis] {text}"
        )
    return given
