"""Stages that make a release: the protection with its ledger, and the synthesis.

Each checks what is asked and keeps its files in a folder: ``release/`` goes out, what is in
``internal/`` never does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.kinds import Place
from keyhole.core.options import Question, parameters_of, without_columns, worded
from keyhole.data import Microdata, load
from keyhole.data.formats import suffix_of, written_suffix
from keyhole.data.implicates import find_implicates, in_original_order
from keyhole.data.microdata import Origin
from keyhole.engines.opening import column_problems
from keyhole.errors import FileError, InputError, KeyholeError, OptionError
from keyhole.exposure.cells import risk
from keyhole.protection.apply import plan_problems
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import Plan, PlanDraft, toml_of
from keyhole.protection.release import rows_after
from keyhole.protection.results import Ledger, Protection
from keyhole.results import Result
from keyhole.reviews.files import (
    KEYED,
    Files,
    ReviewFile,
    ReviewSource,
    ValuePath,
    allowed,
    hash_file,
    read_steadily,
)
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import stage
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.selection.releasing import taken_into_memory
from keyhole.synthesis.associations import NEVER_RELEASED
from keyhole.synthesis.planning import data_problems
from keyhole.synthesis.release import dropped_columns, new_release
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import held_out_records, synthesise, synthesise_problems
from keyhole.utility.formulas import formula_columns

if TYPE_CHECKING:
    from keyhole.synthesis.evaluation import TargetBars

PROTECTION = "protection"
# The part of the review that the protected file is.
PROTECTED_FILE = "protected"
# The same, where the synthesis starts from it.
STARTED, SYNTHESIS = "started", "synthesis"
# Hold the seed and the plan, in the part of the folder that is the producer's alone.
PARAMETERS, FITTED = "internal/parameters.json", "internal/plan.toml"
# Says which record of the original each record of the release is.
ROWS = "internal/rows.csv"
_ROW = "row of the original"


@dataclass(frozen=True, slots=True)
class ProtectedFile(ReviewFile):
    """A protected file, with the plan as it was fitted and the rows that its records had."""

    plan: Plan | None = None
    rows: npt.NDArray[np.int64] | None = None


def read_rows(path: Path) -> npt.NDArray[np.int64]:
    """Return by record of a protected file its row in the original, from 0."""
    try:
        return pl.read_csv(path, schema={_ROW: pl.Int64}, glob=False)[_ROW].to_numpy() - 1
    except pl.exceptions.PolarsError:
        raise FileError(
            f"{path.name!r} is not as keyhole wrote it. Run the review again."
        ) from None


def write_protected(
    made: Protection, seed: int | None, folder: Path, plan: Plan | None = None
) -> None:
    """Write the protected file, the plan as fitted and as given, and which record was which."""
    with new_release(folder) as temporary:
        kept = [name for name in made.data.names if name not in dropped_columns(made.data)]
        path = temporary / "release" / f"protected{written_suffix(made.data.origin.suffix)}"
        made.release().select(kept).save(path)
        made.plan.save(temporary / FITTED)
        rows = rows_after(made.records, made.steps)[-1]
        rows = rows if made.order is None else rows[made.order]
        pl.DataFrame({_ROW: rows + 1}).write_csv(temporary / ROWS)
        asked = (plan or made.plan).to_toml()
        parameters = {"keyhole": version("keyhole"), "seed": seed, "plan": asked}
        (temporary / PARAMETERS).write_text(json.dumps(parameters) + "\n", encoding="utf-8")


def _ask_protection(review: Review, earlier: stage.Earlier) -> stage.Asked | None:
    given, exposure = review.protection, review.exposure
    if given is None:
        return None
    plan = given.plan if review.release.steps is None else released_plan(review, earlier)
    if not plan:
        return None  # nothing is dropped
    return {
        "plan": plan,
        "keys": list(given.keys),
        "targets": None if given.targets is None else list(given.targets),
        "cutoff": exposure.cutoff,
        "limit": given.limit,
        "weight": exposure.weight,
        "fraction": exposure.fraction,
        "missing": given.missing,
        "formula": given.formula,
        "seed": given.seed,
    }


def released_product(review: Review, results: Mapping[str, Any]) -> str:
    """Return what is released: a step that had nothing to do makes no product of its own."""
    release = review.release
    if release.steps is None or release.product in results:
        return release.product
    return PROTECTION if PROTECTION in results else "file"


def plan_of_release(review: Review, earlier: stage.Earlier) -> Plan | None:
    """Return the plan that the released file went through, if it went through one."""
    release, given = review.release, review.protection
    through = release.protects or (release.steps is None and release.product == PROTECTION)
    if given is None or not through:
        return None
    text = given.plan if release.steps is None else released_plan(review, earlier)
    return Plan.parse(text) if text else None


def released_plan(review: Review, earlier: stage.Earlier) -> str:
    """Return the plan of the release: columns to drop first, then its own steps on the others."""
    release, given, steps = review.release, review.protection, release_steps(review, earlier)
    assert given is not None
    if "protection" not in (release.steps or ()):
        return toml_of(steps)
    gone = dropped_by(steps)
    return Plan.parse(given.plan).without_columns(gone).after(steps).to_toml()


def dropped_by(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns that steps of a plan drop."""
    known = [(METHODS[one["method"]], one) for one in steps]
    return [name for how, one in known if how.effect == "drops" for name in how.columns(one)]


def release_steps(review: Review, earlier: stage.Earlier) -> list[dict[str, Any]]:
    """Return the steps that a release takes before those of the plan: what is dropped or solved."""
    release = review.release
    if release.steps is None:
        return []
    dropped = [name for name, role in review.data.roles.items() if role in NEVER_RELEASED]
    dropped += release.drop
    if review.selection is not None and "selection" in release.steps:
        taken = release.take or proposed_set(review, earlier) or ()
        every = [name for group in review.selection.candidates for name in group]
        dropped += [name for name in every if name not in taken]
    dropped = list(dict.fromkeys(dropped))
    steps: list[dict[str, Any]] = [{"method": "drop", "columns": dropped}] if dropped else []
    if review.solve is not None and "solve" in release.steps:
        solved = earlier["solve"].plan()
        # Without a step every key is released as it is.
        plan = Plan.parse(solved).without_columns(dropped).steps if "[" in solved else ()
        steps += [{"method": one.method, **one.options} for one in plan]
    return steps


def _run_protection(
    files: Files, asked: stage.Asked, _: stage.Earlier, __: stage.Progress
) -> Ledger:
    from keyhole.protection.ledger import ledger

    data: Any = files["data"].data
    drops = (one for one in Plan.parse(asked["plan"]).steps if one.definition.effect == "drops")
    if {name for one in drops for name in one.columns} >= set(data.names):
        raise OptionError(
            "no column is left to release: [release], [selection] and [solve] drop all of them. "
            "Allow more risk (limit) or suppression ([solve] suppress), or name columns that must "
            "be released ([solve] must, [selection] keep)."
        )
    if not isinstance(data, Microdata):  # counted on disk: what goes out must fit into memory
        data = taken_into_memory(data, data.names)
        data = dataclasses.replace(data, origin=Origin(suffix_of(Path(files["data"].file))))
    return ledger(data, **asked)


def hash_files(folder: Path, part: str = "") -> dict[str, str]:
    """Hash what was written, or a part of it; none of the file with the seed, to guess it by."""
    found = sorted(path for path in (folder / part).rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: hash_file(path) for name, path in named.items() if name != PARAMETERS}


hash_release = partial(hash_files, part="release")


def _protected_parts(folder: Path, review: Review, __: Files) -> Files:
    """Return the protected file, for the stages that look at what would go out."""
    path = next((folder / "release").glob("protected.*"))
    # The digest stays that of the release: of what is internal no hash is kept anywhere.
    plan, _ = read_steadily(folder / FITTED, Plan.read)
    rows, _ = read_steadily(folder / ROWS, read_rows)
    data, digest = read_steadily(path, partial(read_release, review, plan))
    name = path.relative_to(folder.parent).as_posix()
    found = ProtectedFile(name, data, digest, plan=plan, rows=rows)
    starts = review.release.product == SYNTHESIS and review.release.protects
    return {PROTECTED_FILE: found, **({STARTED: found} if starts else {})}


def read_release(review: Review, plan: Plan | None, path: Path) -> Microdata:
    """Read a file made of the one under review like it; what a step recoded may be another kind."""
    given = review.data.declared() | {"name": path.stem}
    how = {name: given.pop(name) for name in ("encoding", "delimiter", "sheet")}
    book = review.data.codebook and review.path.parent / review.data.codebook
    data = load(path, **how, codebook=book)
    changed = {name for step in (plan.steps if plan else ()) for name in step.columns}
    return load(data, **told_of(given, data.names, changed))


def told_of(
    declared: Mapping[str, Any], names: Iterable[str], changed: Iterable[str] = ()
) -> dict[str, Any]:
    """Return how a file is read, without what is said of columns that are not there."""
    found, there = dict(declared), {*names, "*"}
    for name in ("missing_codes", "roles", "kinds", "labels"):
        if isinstance(found[name], Mapping):
            left = there.difference(changed) if name == "kinds" else there
            found[name] = {n: value for n, value in found[name].items() if n in left}
    return found


def read_parameters(folder: Path) -> Mapping[str, Any]:
    """Return the secrets that the files of a folder were made with; nothing if there are none."""
    try:
        made = json.loads((folder / PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return made if isinstance(made, dict) else {}


def _answers(folder: Path, asked: stage.Asked) -> bool:
    made = read_parameters(folder)
    if made.get("seed", -1) != asked["seed"] or made.get("plan") != asked["plan"]:
        return False
    try:
        Plan.read(folder / FITTED)
        return len(read_rows(folder / ROWS)) > 0
    except (KeyholeError, OSError):
        return False


PROTECTION_STAGE = stage.Stage(
    PROTECTION,
    "Protection",
    _ask_protection,
    _run_protection,
    ("solve", *SELECTIONS),
    reads=("data",),
    draw=stage.own_picture,
    figures=lambda found: {**found.protection.to_dict(), "ledger": found.to_dict()},
    outputs=stage.Outputs(
        lambda made, folder: write_protected(made.protection, made.seed, folder, made.plan),
        hash_release,
        _answers,
        secrets=("seed", "plan"),
        parts=_protected_parts,
    ),
    returns="keyhole.protection.results.Protection",
)


NEEDS_SEED = "needs a seed: the plan draws, and a review must give the same file again."
_STEP = re.compile(r"step (\d+)(?: \([\w-]+\))?: '?(\w+)")


def check_protection(source: ReviewSource, given: Question, data: Microdata) -> Question:
    """Say all that is wrong with a protection; return its settings with the plan in place."""
    if "protection" not in source.values:
        return given  # only columns that the release drops
    at, steps = ("protection",), source.values["protection"].get("step")
    if (given.plan_file is None) == (steps is None):
        both = "plan and [[protection.step]] both give it" if steps else "none is given"
        text = f"must have one plan: {both}. Name a file, or write its steps here."
        source.say(at, f"[protection] {text}")
    else:
        texts: Sequence[str] = ()
        try:
            if given.plan_file is None:
                folder, draft = source.path.parent, PlanDraft.of({"step": steps})
            else:
                path = source.path.parent / given.plan_file
                folder, draft = path.parent, read_steadily(path, PlanDraft.read)[0]
            plan = Plan.of(draft.with_codings(lambda file: allowed(folder / file)))
            given = given.replace(plan=plan.to_toml())
            if plan.draws and given.seed is None:
                source.say(at, f"[protection] {NEEDS_SEED}")
            # Keys that are absent are told of by others.
            if data.records and given.keys and set(given.keys) <= set(data.names):
                texts = plan_problems(data, plan)
        except InputError as error:
            texts = error.problems
        for text in texts:
            where: ValuePath = ("step",) if given.plan_file is None else ("plan",)
            if given.plan_file is None and (number := _STEP.match(text)) is not None:
                where = ("step", int(number[1]) - 1, number[2])
            source.say((*at, *where), f"[protection] {text}")
    if not given.plan and given.plan_file is None:
        _say_absent(source, steps, data)
    if given.formula is not None:
        with source.telling((*at, "formula"), "[protection] "):
            formula_columns(given.formula, data.names)
    return given


def _say_absent(source: ReviewSource, steps: Any, data: Microdata) -> None:
    """Say which columns the steps of a plan that cannot be read name in vain."""
    for place, raw in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(raw, Mapping) or raw.get("method") not in METHODS:
            continue
        texts = {name: value for name, value in raw.items() if isinstance(value, str | list)}
        named = [n for n in METHODS[raw["method"]].columns(texts) if isinstance(n, str)]
        step = f"[protection] step {place + 1} ({raw['method']}): "
        for text in column_problems(data, named, "column"):
            source.say(("protection", "step", place), f"{step}{text}")


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


def _ask_synthesis(review: Review, _: stage.Earlier) -> stage.Asked | None:
    given = review.synthesis
    if given is None:
        return None
    asked = {name: value for name, value in given.values.items() if name != "rules_file"}
    if given.hold_out is None:
        del asked["hold_out"]  # older reviews have none
    return asked


def _run_synthesis(
    files: Files, asked: stage.Asked, _: stage.Earlier, progress: stage.Progress
) -> Result:
    names, data = files["data"].data.names, files.get(STARTED, files["data"]).data
    found = dict(asked)
    if STARTED in files:  # of the columns that the earlier steps of the release left
        gone = set(names).difference(data.names)
        found = without_columns(parameters_of(synthesise), asked, gone)
        if not found["targets"] or not found["keys"]:
            raise stage.NothingToDoError
        if risk(data, keys=found["keys"], cutoff=found["cutoff"]).rp == 0:
            raise stage.NothingToDoError
        rules = asked["rules"] or {}
        kept = [name for name, text in rules.items() if not EditRules.parse([text]).columns & gone]
        found["rules"] = {name: rules[name] for name in kept} or None
        if asked["formula"] and gone.intersection(formula_columns(asked["formula"], names)):
            found["formula"] = None
    return synthesise(data, **found, progress=stage.counted(progress))


def _synthesis_parts(folder: Path, review: Review, files: Files) -> Files:
    """Return the implicates, in the order of the records they are made from, and those held out."""
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
    return in_original_order(read_release(review, plan, path), path)


def synthesised_from(files: Files) -> Microdata:
    """Return the records that the implicates were made from, in the same order."""
    return files.get(MADE_FROM, files.get(STARTED, files["data"])).data


def release_reading(review: Review, release: Path) -> dict[str, Any]:
    """Return how the file under review is read, without what is said of columns left out."""
    book = json.loads((release / "codebook.json").read_text(encoding="utf-8"))
    declared = {k: v for k, v in review.data.declared().items() if k != "name"}
    return told_of(declared, (variable["name"] for variable in book["variables"]))


def _draw(made: Any) -> stage.Pictures:
    """Draw the distributions and, with a formula, the coefficients; changes are a table."""
    from keyhole.synthesis.charts import evaluation_charts

    found = made.evaluation
    bars = tuple(pool_bars(one, made.designation.records) for one in found.bars)
    charts = evaluation_charts(dataclasses.replace(found, bars=bars))
    return {name: chart for name, chart in charts.items() if name != "changes"}


def pool_bars(bars: TargetBars, records: int) -> TargetBars:
    """Join small bars: a bin with its neighbour, a category with the rarest, ranges added up."""
    labels, sides = list(bars.labels), {side: list(getattr(bars, side)) for side in SIDES}
    while len(labels) > 1:
        counts = np.rint(np.array(sides["original"]) * records)
        small = np.flatnonzero(counts < LEAST)
        if not len(small):
            break
        place = int(small[0])
        if bars.ordered:
            at = place - 1 if place else 1
            first, gone = sorted((place, at))
            label = f"below {labels[2]}" if not first and len(labels) > 2 else labels[first]
        else:
            at = int(np.argmin(np.where(np.arange(len(counts)) == place, np.inf, counts)))
            first, gone = sorted((place, at))
            label = labels[at] if labels[at].endswith("others") else f"{labels[at]} and others"
        labels[first] = label
        del labels[gone]
        for values in sides.values():
            values[first] += values[gone]
            del values[gone]
    joined: Any = {side: tuple(values) for side, values in sides.items()}
    return dataclasses.replace(bars, labels=tuple(labels), **joined)


SYNTHESIS_STAGE = stage.Stage(
    SYNTHESIS,
    "Synthesis",
    _ask_synthesis,
    _run_synthesis,
    reads=("data", KEYED, STARTED),
    draw=_draw,
    returns="keyhole.synthesis.release.Synthesis",
    since="0.2",  # all targets of a record are drawn, and structure is kept
    outputs=stage.Outputs(
        lambda made, folder: made.save(folder, force=True),
        hash_files,
        lambda folder, asked: read_parameters(folder).get("seed", -1) == asked["seed"],
        secrets=("seed",),
        parts=_synthesis_parts,
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
        options = getattr(text, "options", ())
        told = (
            worded(text, lambda name: f"[synthesis] {name}") if options else f"[synthesis] {text}"
        )
        source.say(("synthesis", *at), told)
    return given
