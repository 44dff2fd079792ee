"""Attacks with a control in a review: the stage that attacks what is released.

Every file of the release is attacked, on the people it was made from and on people who were not
among them: those that the synthesis held out, or a file of others. An intruder sees how a
protected file is coded, so people are coded as its plan codes them before they are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from keyhole.core.marks import SPREAD
from keyhole.core.options import Question, bind
from keyhole.core.tables import Table
from keyhole.core.verbs import imported
from keyhole.data import Microdata, load
from keyhole.data.deriving import fit_derivations
from keyhole.errors import InputError
from keyhole.protection.plan import Plan
from keyhole.reidentification.attacks import people_problems
from keyhole.reidentification.residual_risk import Attack, Attacks, worst_attack
from keyhole.results import Result
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.files import Files, ReviewFile, read_steadily
from keyhole.reviews.settings import Review
from keyhole.reviews.source import ReviewSource
from keyhole.reviews.stages.outgoing import RELEASE_INPUTS, ask_outgoing, released_files
from keyhole.reviews.stages.protection import (
    PROTECTED_FILE,
    PROTECTION,
    STARTED,
    SYNTHESIS,
    ProtectedFile,
    told_of,
)
from keyhole.reviews.stages.releases import code_alike
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.reviews.stages.synthesis import HELD_OUT, MADE_FROM, RELEASE, synthesised_from

if TYPE_CHECKING:
    import altair

ATTACKS, CONTROL = "attacks", "control"
SETS = ("link", "second_link", "secret")
"""The options that name columns: known, held by a second source, to be learnt."""
_RATES = {"success": "attempts", "control": "controls", "baseline": "attempts"}


@dataclass(frozen=True, slots=True)
class FileAttacked:
    """One file of a release and what the attacks on it achieve."""

    file: str
    found: Annotated[Attacks, SPREAD]


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedAttacks(Result):
    """Attacks with a control on every file of a release.

    `control` tells where the people outside are from: held out before the synthesis, a file, or
    nowhere. `not_made` are attacks that lack their columns, because these are not released;
    `unfit` says why none could be made at all. `left_out` are columns that are not released, or
    that cannot be coded as the release is.
    """

    cutoff: int
    control: Literal["held out", "a file", "none"]
    files: tuple[FileAttacked, ...]
    not_made: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    unfit: str = ""

    def tables(self) -> list[Table]:
        """Return one table a file."""
        return [
            dataclasses.replace(one.found.tables()[0], title=f"Attacks on {one.file}")
            for one in self.files
        ]

    @property
    def worst(self) -> dict[str, Attack]:
        """By attack the figures of the file on which it does most."""
        names = dict.fromkeys(name for one in self.files for name in one.found.attacks)
        return {n: worst_attack(one.found.attacks[n] for one in self.files) for n in names}

    def plot(self) -> altair.TopLevelMixin:
        """Draw the worst of each attack, without figures of very few people."""
        from keyhole.reidentification.charts import attacks_chart

        smallest = smallest_shown(self.cutoff)
        return attacks_chart({n: without_small(one, smallest) for n, one in self.worst.items()})


def without_small(one: Attack, smallest: int) -> Attack:
    """Leave out rates of fewer people than are shown, and the risk if it would tell them."""
    few = few_of(one, smallest)
    hidden: dict[str, Any] = dict.fromkeys(few)
    if few & {"success", "control"}:
        hidden["risk"] = None
    return dataclasses.replace(
        one,
        **hidden,
        intervals={**one.intervals, **dict.fromkeys(hidden)},
        parts={name: without_small(part, smallest) for name, part in one.parts.items()},
    )


def few_of(one: Attack, smallest: int) -> set[str]:
    """Name the rates of an attack that are those of very few people."""
    counts = {n: round((getattr(one, n) or 0) * getattr(one, of)) for n, of in _RATES.items()}
    return {name for name, count in counts.items() if 0 < count < smallest}


def _ask(review: Review, earlier: Earlier) -> Asked | None:
    given, outgoing = review.attacks, ask_outgoing(review, earlier)
    if given is None or outgoing is None:
        return None
    lists = ("attacks", *SETS, "numeric")
    return {
        **{name: outgoing[name] for name in ("product", "selected", "cutoff")},
        **{name: list(given.values[name]) for name in lists},
        "seed": given.seed,
    }


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    study = imported("keyhole.reidentification.study.study")
    named, made = released_files(files, asked)
    side = _people(files, asked)
    there = [n for n in made[0].names if n in side.people.names and n not in side.unfit]
    columns: dict[str, list[str]] = {}
    for option in SETS:
        known = asked[option] if side.plan is None else side.plan.known_with(asked[option])
        taken = [name for one in columns.values() for name in one]
        columns[option] = [name for name in known if name in there and name not in taken]
    not_made = {name: why for name in asked["attacks"] if (why := _lacking(name, columns))}
    attacks = [name for name in asked["attacks"] if name not in not_made]
    every = [name for one in columns.values() for name in one]
    both = (made[0], side.people)
    numeric = [n for n in asked["numeric"] if n in every
               and all(data.column(n).dtype.is_numeric() for data in both)]  # fmt: skip
    seed, unfit, found = asked["seed"], "", list[FileAttacked]()
    options: dict[str, Any] = {"attacks": attacks, "numeric": numeric, "seed": seed, **columns}
    try:
        for file, puf in zip(named, made, strict=True) if attacks else ():
            progress(file)
            given = {"puf": puf, "original": side.people, "control": side.control}
            found.append(FileAttacked(file, study(**given, **options)))
    except InputError as error:
        found, unfit = [], " ".join(error.problems)
    left = [n for n in dict.fromkeys(n for one in SETS for n in asked[one]) if n not in every]
    return ReleasedAttacks(asked["cutoff"], side.source, tuple(found), not_made, tuple(left), unfit)


@dataclass(frozen=True, slots=True)
class _Side:
    """The people that a release was made from and the control, coded as the release is.

    `unfit` are columns whose values cannot be coded so.
    """

    people: Microdata
    control: Microdata | None
    source: Literal["held out", "a file", "none"]
    plan: Plan | None
    unfit: tuple[str, ...] = ()


def _people(files: Files, asked: Asked) -> _Side:
    product, unfit = asked["product"], list[str]()
    is_made = product == SYNTHESIS
    protected = files.get({SYNTHESIS: STARTED, PROTECTION: PROTECTED_FILE}.get(product, ""))
    plan = protected.plan if isinstance(protected, ProtectedFile) else None
    if is_made and HELD_OUT in files:
        return _Side(files[MADE_FROM].data, files[HELD_OUT].data, "held out", plan)

    def coded(data: Microdata) -> Microdata:
        if plan is None:
            return data
        found, _, wrong = code_alike(data, plan, [n for one in SETS for n in asked[one]])
        unfit.extend(wrong)
        return found

    people = synthesised_from(files) if is_made else coded(files["data"].data)
    control = coded(files[CONTROL].data) if CONTROL in files else None
    source: Literal["a file", "none"] = "none" if control is None else "a file"
    return _Side(people, control, source, plan, tuple(unfit))


def _lacking(attack: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Say why an attack cannot be made on the columns that are released, if it cannot."""
    if not columns["link"]:
        return "no column that the intruder knows is released"
    if attack == "linked" and not columns["second_link"]:
        return "no column of the second source is released"
    return "no secret is released" if attack == "inferred" and not columns["secret"] else ""


ATTACKS_STAGE = Stage(
    ATTACKS,
    "Attacks with a control",
    _ask,
    _run,
    RELEASE_INPUTS,
    reads=("data", PROTECTED_FILE, STARTED, MADE_FROM, HELD_OUT, RELEASE, CONTROL),
    draw=lambda found: found.plot() if found.files else {},
    returns="keyhole.reviews.stages.attacks.ReleasedAttacks",
)


def check_attacks(
    source: ReviewSource, given: Question, review: Review, reviewed: ReviewFile
) -> Files:
    """Say what is wrong with attacks, absent columns of the file aside; return their control."""
    from keyhole.reidentification.study import study

    names = [name for one in SETS for name in given.values[one] or ()]  # none where unfit
    found: ReviewFile | None = None
    if given.control is not None:
        if review.synthesis is not None and review.synthesis.hold_out is not None:
            text = "control and [synthesis] hold_out both give people outside. Leave one out."
            source.say((ATTACKS, CONTROL), f"[attacks] {text}")
        with source.telling((ATTACKS, CONTROL), "[attacks] "):
            derived = fit_derivations(reviewed.data)
            read_it = partial(_load, declared=review.data.declared(), derived=derived)
            data, digest = read_steadily(source.path.parent / given.control, read_it)
            found = ReviewFile(given.control, data, digest, reviewed.read)
    own = reviewed.data
    if set(names) <= set(own.names):
        values = {name: given.values[name] for name in ("attacks", *SETS, "numeric", "seed")}
        asked = bind(study, {"puf": own, "original": own, **values})
        control = None if found is None else found.data
        source.say((ATTACKS,), *(f"[attacks] {text}" for text in asked.problems or
                                 people_problems(own, own, control, asked)))  # fmt: skip
    return {} if found is None else {CONTROL: found}


def _load(path: Path, declared: Mapping[str, Any], derived: Mapping[str, str]) -> Microdata:
    """Read a file like the one under review, with the columns that are derived there."""
    how = {name: declared[name] for name in ("encoding", "delimiter", "sheet")}
    data = load(path, **how)
    data = load(data, **told_of({**declared, "name": path.stem}, data.names))
    data = load(data, derive=derived, partial=True) if derived else data
    data.require_records()
    return data
