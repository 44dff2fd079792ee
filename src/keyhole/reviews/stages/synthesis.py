"""The stage that makes a partially synthetic release of the file, and evaluates it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.core.kinds import Place
from keyhole.core.options import Question, parameters_of, without_columns, worded
from keyhole.data import Microdata, load
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import Floats
from keyhole.protection.plan import Plan
from keyhole.results import Result
from keyhole.reviews.files import KEYED, Files, ReviewFile, read_steadily
from keyhole.reviews.settings import Review
from keyhole.reviews.source import ReviewSource
from keyhole.reviews.stages.protection import (
    STARTED,
    SYNTHESIS,
    ProtectedFile,
    hash_files,
    read_parameters,
    read_release,
    told_of,
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
from keyhole.synthesis.release import in_original_order
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import held_out_records, synthesise_problems
from keyhole.utility.formulas import formula_columns

if TYPE_CHECKING:
    from keyhole.synthesis.evaluation import TargetBars

# The parts of the review that its first implicate is, and all of them.
IMPLICATE, RELEASE = "implicate", "release"
# Where records are held out: those that the implicates are made from, and the others.
MADE_FROM, HELD_OUT = "made-from", "held-out"
# The least records of a bar: more than any count that a report hides, for the usual cutoffs.
LEAST = 10
SIDES = ("original", "synthetic", "lowest", "highest")


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
    asked = {name: value for name, value in given.values.items() if name != "rules_file"}
    if given.hold_out is None:
        del asked["hold_out"]  # older reviews have none
    return asked


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


def _parts(folder: Path, review: Review, files: Files) -> Files:
    """Return the first implicate, for the stages that look at what would go out.

    Its records are those of the file that the synthesis started from, in the same order; without
    those that were held out, which are a part of their own then.
    """
    from keyhole.data.implicates import find_implicates

    started: Any = files.get(STARTED)
    plan, rows = (None, None) if started is None else (started.plan, started.rows)
    paths = tuple(find_implicates(folder / "release"))
    how = partial(_read_implicate, review, plan)
    data, digest = read_steadily(paths[0], how)
    name, place = paths[0].relative_to(folder.parent).as_posix(), paths[0].parent
    first = ReviewFile(name, data, digest)
    whole = hashlib.sha256(str(sorted(hash_files(folder).items())).encode()).hexdigest()
    reading = release_reading(review, place)
    every = ReleaseFolder(name, data, whole, folder=place, reading=reading, paths=paths, load=how)
    parts: dict[str, ReviewFile] = {RELEASE: every}
    if review.synthesis is not None and review.synthesis.hold_out is not None:
        source = files.get(STARTED, files["data"]).data
        out = held_out_records(source.records, review.synthesis)
        plan, rows = plan or Plan(()), (np.arange(len(out)) if rows is None else rows)[~out]
        for part, held in ((MADE_FROM, ~out), (HELD_OUT, out)):
            parts[part] = ReviewFile(f"{SYNTHESIS}/internal", source.filter(held), whole)
    if rows is not None:
        first = ProtectedFile(name, data, digest, plan=plan, rows=rows)
    return {IMPLICATE: first, **parts}


def _read_implicate(review: Review, plan: Plan | None, path: Path) -> Microdata:
    """Read an implicate, with its records in the order of those it was made from."""
    return in_original_order(read_release(review, plan, path), path.parents[1] / "internal")


def synthesised_from(files: Files) -> Microdata:
    """Return the records that the implicates were made from, in the same order."""
    return files.get(MADE_FROM, files.get(STARTED, files["data"])).data


def release_reading(review: Review, release: Path) -> dict[str, Any]:
    """Return how the file under review is read, without what is said of columns left out."""
    book = json.loads((release / "codebook.json").read_text(encoding="utf-8"))
    declared = {k: v for k, v in review.data.declared().items() if k != "name"}
    return told_of(declared, (variable["name"] for variable in book["variables"]))


def _draw(made: Any) -> Pictures:
    """Draw the distributions and, with a formula, the coefficients; changes are a table."""
    from keyhole.synthesis.charts import evaluation_charts

    found = made.evaluation
    bars = tuple(pool_bars(one, made.designation.records) for one in found.bars)
    charts = evaluation_charts(dataclasses.replace(found, bars=bars))
    return {name: chart for name, chart in charts.items() if name != "changes"}


def pool_bars(bars: TargetBars, records: int) -> TargetBars:
    """Put small bars together with another: a bin with its neighbour, a category with the rarest.

    Ranges of implicates are added up as well, so that they are never too narrow.
    """
    while len(bars.labels) > 1:
        counts = np.rint(np.array(bars.original) * records)
        small = np.flatnonzero(counts < LEAST)
        if not len(small):
            break
        bars = _joined(bars, int(small[0]), counts)
    return bars


def _joined(bars: TargetBars, place: int, counts: Floats) -> TargetBars:
    labels = list(bars.labels)
    if bars.ordered:
        at = place - 1 if place else 1
        first = min(place, at)
        label = labels[first]
        if not first and len(labels) > 2:
            label = f"below {labels[2]}"
    else:
        others = np.where(np.arange(len(counts)) == place, np.inf, counts)
        at = int(np.argmin(others))
        first = min(place, at)
        label = labels[at] if labels[at].endswith("others") else f"{labels[at]} and others"
    labels[first] = label
    gone = max(place, at)
    del labels[gone]
    columns: dict[str, Any] = {}
    for side in SIDES:
        values = list(getattr(bars, side))
        values[first] = values[place] + values[at]
        del values[gone]
        columns[side] = tuple(values)
    return dataclasses.replace(bars, labels=tuple(labels), **columns)


SYNTHESIS_STAGE = Stage(
    SYNTHESIS,
    "Synthesis",
    _ask,
    _run,
    reads=("data", KEYED, STARTED),
    draw=_draw,
    returns="keyhole.synthesis.release.Synthesis",
    since="0.2",  # all targets of a record are drawn, and structure is kept
    outputs=Outputs(
        lambda made, folder: made.save(folder, force=True),
        hash_files,
        lambda folder, asked: read_parameters(folder).get("seed", -1) == asked["seed"],
        secrets=("seed",),
        parts=_parts,
    ),
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
