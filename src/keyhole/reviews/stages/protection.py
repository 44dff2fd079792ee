"""The stage of protection: its plan is checked, carried out, and its ledger and files are kept.

``release/`` holds the protected file, which goes out; what is in ``internal/`` never does.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.options import Question
from keyhole.data import Microdata, load
from keyhole.data.formats import suffix_of, written_suffix
from keyhole.data.microdata import Origin
from keyhole.engines.opening import column_problems
from keyhole.errors import FileError, InputError, KeyholeError
from keyhole.protection.apply import plan_problems
from keyhole.protection.methods import METHODS
from keyhole.protection.plan import Plan, PlanDraft, toml_of
from keyhole.protection.release import rows_after
from keyhole.protection.results import Ledger, Protection
from keyhole.reviews.files import Files, ReviewFile, allowed, hash_file, read_steadily
from keyhole.reviews.settings import Review
from keyhole.reviews.source import ReviewSource, ValuePath
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.reviews.stages.stage import Asked, Earlier, Outputs, Progress, Stage, own_picture
from keyhole.selection.releasing import taken_into_memory
from keyhole.selection.solution import Solution
from keyhole.synthesis.associations import NEVER_RELEASED
from keyhole.synthesis.release import dropped_columns, new_release
from keyhole.utility.formulas import formula_columns

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


def find_protected(folder: Path) -> Path:
    """Return the protected file in the folder of a protection."""
    return next((folder / "release").glob("protected.*"))


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
    """Write the protected file, the plan as it was fitted, and which record was which.

    Columns with the role identifier, household or drop are not released. `plan` is the plan as it
    was given; the one that was fitted is that of `made`.
    """
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


def _ask(review: Review, earlier: Earlier) -> Asked | None:
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


def plan_of_release(review: Review, earlier: Earlier) -> Plan | None:
    """Return the plan that the released file went through, if it went through one."""
    release, given = review.release, review.protection
    through = release.protects or (release.steps is None and release.product == PROTECTION)
    if given is None or not through:
        return None
    text = given.plan if release.steps is None else released_plan(review, earlier)
    return Plan.parse(text) if text else None


def released_plan(review: Review, earlier: Earlier) -> str:
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


def release_steps(review: Review, earlier: Earlier) -> list[dict[str, Any]]:
    """Return the steps that a release takes before those of the plan: what is dropped or solved."""
    release = review.release
    if release.steps is None:
        return []
    never = [name for name, role in review.data.roles.items() if role in NEVER_RELEASED]
    dropped = list(dict.fromkeys([*never, *release.drop, *_unselected(review, earlier)]))
    steps: list[dict[str, Any]] = [{"method": "drop", "columns": dropped}] if dropped else []
    if review.solve is not None and "solve" in release.steps:
        steps += _solved_steps(earlier["solve"], dropped)
    return steps


def _solved_steps(found: Solution, dropped: Sequence[str]) -> list[dict[str, Any]]:
    """Return the steps that make the best release, but for columns that are dropped already."""
    text = found.plan()
    if "[" not in text:
        return []  # every key is released as it is
    steps = Plan.parse(text).without_columns(dropped).steps
    return [{"method": one.method, **one.options} for one in steps]


def _unselected(review: Review, earlier: Earlier) -> list[str]:
    """Return the candidates that are not released, if a selection is among the steps."""
    release, chosen = review.release, review.selection
    if chosen is None or "selection" not in (release.steps or ()):
        return []
    taken = release.take or proposed_set(review, earlier) or ()
    return [name for group in chosen.candidates for name in group if name not in taken]


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Ledger:
    from keyhole.protection.ledger import ledger

    data: Any = files["data"].data
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


def _parts(folder: Path, review: Review, __: Files) -> Files:
    """Return the protected file, for the stages that look at what would go out."""
    path = find_protected(folder)
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


def _answers(folder: Path, asked: Asked) -> bool:
    made = read_parameters(folder)
    if made.get("seed", -1) != asked["seed"] or made.get("plan") != asked["plan"]:
        return False
    try:
        Plan.read(folder / FITTED)
        return len(read_rows(folder / ROWS)) > 0
    except (KeyholeError, OSError):
        return False


PROTECTION_STAGE = Stage(
    PROTECTION,
    "Protection",
    _ask,
    _run,
    ("solve", *SELECTIONS),
    reads=("data",),
    draw=own_picture,
    figures=lambda found: {**found.protection.to_dict(), "ledger": found.to_dict()},
    outputs=Outputs(
        lambda made, folder: write_protected(made.protection, made.seed, folder, made.plan),
        hash_release,
        _answers,
        secrets=("seed", "plan"),
        parts=_parts,
    ),
    returns="keyhole.protection.results.Protection",
)


NEEDS_SEED = "needs a seed: the plan draws, and a review must give the same file again."
_STEP = re.compile(r"step (\d+)(?: \([\w-]+\))?: '?(\w+)")


def check_protection(source: ReviewSource, given: Question, data: Microdata) -> Question:
    """Say everything that is wrong with a protection, absent columns of its own settings aside.

    Returned are the settings with the plan in place.
    """
    if "protection" not in source.values:
        return given  # only columns that the release drops
    at, steps = ("protection",), source.values["protection"].get("step")
    if (given.plan_file is None) == (steps is None):
        both = "plan and [[protection.step]] both give it" if steps else "none is given"
        text = f"must have one plan: {both}. Name a file, or write its steps here."
        source.say(at, f"[protection] {text}")
    else:
        try:
            plan = _plan(source, given, steps)
            given = given.replace(plan=plan.to_toml())
            texts = _unfit(source, plan, given, data)
        except InputError as error:
            texts = error.problems
        for text in texts:
            source.say((*at, *_place(given, text)), f"[protection] {text}")
    if not given.plan and given.plan_file is None:
        _say_absent(source, steps, data)
    if given.formula is not None:
        with source.telling((*at, "formula"), "[protection] "):
            formula_columns(given.formula, data.names)
    return given


def _plan(source: ReviewSource, given: Question, steps: Any) -> Plan:
    path = source.path
    if given.plan_file is None:
        draft = PlanDraft.of({"step": steps})
    else:
        path = path.parent / given.plan_file
        draft, _ = read_steadily(path, PlanDraft.read)
    return Plan.of(draft.with_codings(lambda file: allowed(path.parent / file)))


def _place(given: Question, text: str) -> ValuePath:
    number = _STEP.match(text)
    if given.plan_file is not None or number is None:
        return ("plan",) if given.plan_file is not None else ("step",)
    return ("step", int(number[1]) - 1, number[2])


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


def _unfit(source: ReviewSource, plan: Plan, given: Question, data: Microdata) -> Sequence[str]:
    """Check the plan against the file; keys that are absent are told of by others."""
    if plan.draws and given.seed is None:
        source.say(("protection",), f"[protection] {NEEDS_SEED}")
    if not data.records or not given.keys or not set(given.keys) <= set(data.names):
        return ()
    return plan_problems(data, plan)
