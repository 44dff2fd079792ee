"""The stages that attack a file as an intruder would: the one under review, and other releases.

A protection lowers the risk on a key, and a synthesis protects the key it was told of. Whether the
attack of this very review still succeeds is another question, and the one a board asks: so the
attack is made on the protected file and on the first implicate too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from keyhole.core.marks import SPREAD, Named
from keyhole.core.options import Question, bind, parameters_of
from keyhole.core.tables import Table
from keyhole.core.verbs import imported
from keyhole.data import Microdata, load
from keyhole.data.deriving import fit_derivations
from keyhole.errors import InputError
from keyhole.protection.plan import Plan
from keyhole.reidentification.attacks import people_problems
from keyhole.reidentification.compare import StudyComparison, compare_studies
from keyhole.reidentification.files import attach_ids, blank_variables
from keyhole.reidentification.linkage import find_truth
from keyhole.reidentification.question import OPTIONS_OF_METRIC
from keyhole.reidentification.residual_risk import Attack, Attacks, worst_attack
from keyhole.reidentification.study import study
from keyhole.results import Result
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.files import (
    LINKED,
    Files,
    ReviewFile,
    ReviewSource,
    read_steadily,
    scenario_key_of,
)
from keyhole.reviews.schema import METRICS
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import products
from keyhole.reviews.stages.outgoing import RELEASE_INPUTS, ask_outgoing, released_files
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, counted, own_picture

if TYPE_CHECKING:
    import altair

RELEASES = "releases"
CANDIDATE = "candidate"
# What the protected file and the first implicate are called among the releases.
PROTECTED, IMPLICATE_1 = "the protected file", "synthesis, implicate 1"


def study_stage(metric: str) -> str:
    """Return the name of the stage that runs a metric."""
    return f"study-{metric}"


def _linked(given: Question) -> Asked:
    """Return what is linked on: ids and variables, and the scenario whose key it is, if one's."""
    lists = ("puf_id", "eif_id", "link", "numeric", "strata")
    scenario = {} if given.scenario is None else {"scenario": given.scenario}
    return {**{name: list(given.values[name]) for name in lists}, **scenario}


def _ask_study(metric: str) -> Callable[[Review, Earlier], Asked | None]:
    def ask(review: Review, _: Earlier) -> Asked | None:
        given = review.study
        if given is None or metric not in given.metrics:
            return None
        chosen = {name: given.values[name] for name in OPTIONS_OF_METRIC[metric]}
        drawn = {"permutations": given.permutations, "seed": given.seed}
        return {"metric": metric, **_linked(given), **chosen, **drawn}

    return ask


def _run_study(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    puf, eif, iuf = (files[part].data for part in ("puf", "eif", "iuf"))
    options = {**asked, "scenario": scenario_key_of(files, LINKED)}
    return study(puf=puf, eif=eif, iuf=iuf, **options, progress=counted(progress))


STUDY_STAGES: tuple[Stage, ...] = tuple(
    Stage(
        study_stage(metric), f"Study, {metric}", _ask_study(metric), _run_study,
        reads=("puf", "eif", "iuf", LINKED), draw=own_picture,
        returns="keyhole.reidentification.result.Study",
    )
    for metric in METRICS
)  # fmt: skip


def _ask_releases(review: Review, earlier: Earlier) -> Asked | None:
    given = review.study
    if given is None:
        return None
    # What was made of the file is attacked if the file itself is.
    own = given.puf is None
    protected, implicate = (
        own and products.PROTECTION in earlier,
        own and products.SYNTHESIS in earlier,
    )
    if not (given.candidates or protected or implicate):
        return None
    linked = _linked(given)
    apart = (*linked, "puf", "eif", "iuf", "scenario", "metrics")
    rest = [n for n in parameters_of(study) if n in given.values and n not in apart]
    return {
        "candidates": sorted(given.candidates),
        "protected": protected,
        "implicate": implicate,
        "metrics": list(given.metrics),
        **linked,
        **{name: given.values[name] for name in rest},
    }


class _Target(NamedTuple):
    """A release to be attacked, and the other two files where they are not the study's own."""

    name: str
    puf: Microdata
    files: Mapping[str, Microdata]
    # Made by the review itself: nobody could have seen beforehand that it does not fit.
    own: bool = False
    coded: tuple[str, ...] = ()
    uncoded: tuple[str, ...] = ()
    # Linked on besides: columns that both files derive from the linking variables.
    derived: tuple[str, ...] = ()


def _run_releases(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    rows: list[Any] = []
    unfit: list[NotAttacked] = []
    targets = list(_targets(files, asked))
    for target in targets:
        for metric in asked["metrics"]:
            try:
                rows += _attacked(target, metric, files, asked, progress).rows
            except InputError as error:
                if not target.own:
                    raise
                unfit.append(NotAttacked(target.name, metric, " ".join(error.problems)))
    coded = tuple(name for one in targets for name in one.coded)
    uncoded = tuple(name for one in targets for name in one.uncoded)
    link, numeric, strata = (tuple(asked[name]) for name in ("link", "numeric", "strata"))
    found = StudyComparison(link, numeric, strata, tuple(rows), asked.get("scenario"))
    return Attacked(found, tuple(unfit), coded, uncoded)


def _targets(files: Files, asked: Asked) -> Iterator[_Target]:
    """Yield the releases; the implicates keep the order of the records, the protected file not."""
    theirs = {part: files[part].data for part in ("eif", "iuf")}
    for name in asked["candidates"]:
        yield _Target(name, files[f"{CANDIDATE}:{name}"].data, theirs)
    if asked["protected"]:
        yield _protected(PROTECTED, files[products.PROTECTED_FILE], files, asked)
    if asked["implicate"]:
        made = files[products.IMPLICATE]
        if isinstance(made, products.ProtectedFile):
            yield _protected(IMPLICATE_1, made, files, asked)
        else:
            puf = attach_ids(made.data, files["data"].data, asked["puf_id"])
            yield _Target(IMPLICATE_1, puf, theirs)


def _protected(name: str, made: ReviewFile, files: Files, asked: Asked) -> _Target:
    source, eif, iuf = (files[part].data for part in ("data", "eif", "iuf"))
    assert isinstance(made, products.ProtectedFile)
    assert made.plan is not None
    assert made.rows is not None
    if len(made.rows) < source.records:  # records that the protected file leaves out
        ids = {name: asked[name] for name in ("puf_id", "eif_id")}
        named = find_truth(source, eif, iuf, **ids).rows
        iuf = iuf.filter((named < 0) | np.isin(named, made.rows))
    eif, coded, unfit = code_alike(eif, made.plan, [*asked["link"], *asked["strata"]])
    # Its records get their ids from the rows that they had.
    puf = attach_ids(made.data, source.reordered(made.rows), asked["puf_id"])
    puf = puf.select([name for name in puf.names if name not in unfit])
    more = [one for one in made.plan.known_with(asked["link"]) if one not in asked["link"]]
    derived = tuple(one for one in more if one in puf.names and one in eif.names)
    theirs = {"eif": eif, "iuf": iuf}
    return _Target(name, puf, theirs, True, tuple(coded), tuple(unfit), derived)


def _attacked(target: _Target, metric: str, files: Files, asked: Asked, progress: Progress) -> Any:
    """Attack one release; what it does not tell is missing, and strata it lacks are none."""
    puf, ours = target.puf, ("candidates", "implicate", "protected", "strata", "metrics")
    kept = {k: v for k, v in asked.items() if k not in ours}
    if metric != "adhoc":
        kept.pop("scores")
    link = kept["link"] = [*asked["link"], *target.derived]
    if target.own:
        # A column that is gone is missing; one that is text now is no number.
        text = {n for n in puf.names if not puf.column(n).dtype.is_numeric()}
        kept["numeric"] = [name for name in asked["numeric"] if name not in text]
    return compare_studies(
        {target.name: puf},
        **target.files,
        metrics=[metric],
        strata=[stratum for stratum in asked["strata"] if stratum in puf.names],
        blank=blank_variables(puf, link),
        progress=lambda step, *_: progress(str(step)),
        **{**kept, "scenario": scenario_key_of(files, LINKED)},
    )


RELEASES_STAGE = Stage(
    RELEASES,
    "Study of other releases",
    _ask_releases,
    _run_releases,
    (products.PROTECTION, products.SYNTHESIS),
    reads=("data", "eif", "iuf", LINKED, CANDIDATE, products.PROTECTED_FILE, products.IMPLICATE),
    returns="keyhole.reviews.stages.attacks.Attacked",
)


@dataclass(frozen=True, slots=True)
class NotAttacked:
    """A release on which an attack cannot be made by a metric, and why."""

    release: str
    metric: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Attacked(Result):
    """The attack of a review on other releases; `uncoded` columns could not be coded alike."""

    found: Annotated[StudyComparison, SPREAD]
    unfit: Annotated[tuple[NotAttacked, ...], Named("not_attacked")] = ()
    coded: Annotated[tuple[str, ...], Named("coded_alike")] = ()
    uncoded: Annotated[tuple[str, ...], Named("not_coded_alike")] = ()

    def tables(self) -> list[Table]:
        """Return one row a study, and what could not be attacked."""
        notes = [f"{one.release}, {one.metric}: {one.reason}" for one in self.unfit]
        tables = self.found.tables() if self.found.rows else []
        return [*tables, *([Table("Not attacked", [], [], notes)] if notes else [])]


def code_alike(
    eif: Microdata, plan: Plan, link: Sequence[str]
) -> tuple[Microdata, list[str], list[str]]:
    """Code a file as a plan codes the release; return the columns coded, and those unfit."""
    done: list[str] = []
    unfit: list[str] = []
    link = plan.known_with(link)
    for step in plan.steps:
        if step.definition.effect == "derives":
            there = set(step.definition.columns(step.options)) <= set(eif.names)
            named = [step.options["name"]] if there and step.options["name"] in link else []
        else:
            named = [name for name in step.columns if name in link and name in eif.names]
        known = step.definition
        drawn = known.is_random and known.draws(step.options)
        # Only what codes a value by itself can be done to another file.
        if not named or drawn or known.effect not in ("codes", "derives"):
            continue
        try:
            eif = step.definition(eif, **step.effective).data
            done += named
        except InputError:
            unfit += named
    left = list(dict.fromkeys(unfit))
    return eif, [name for name in dict.fromkeys(done) if name not in left], left


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


def _ask_attacks(review: Review, earlier: Earlier) -> Asked | None:
    given, outgoing = review.attacks, ask_outgoing(review, earlier)
    if given is None:
        return None
    lists = ("attacks", *SETS, "numeric")
    return {
        **{name: outgoing[name] for name in ("product", "selected", "cutoff")},
        **{name: list(given.values[name]) for name in lists},
        "seed": given.seed,
    }


def _run_attacks(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    study = imported("keyhole.reidentification.study.study")
    named, made = released_files(files, asked)
    side = _people(files, asked)
    there = [n for n in made[0].names if n in side.people.names and n not in side.unfit]
    columns: dict[str, list[str]] = {}
    for option in SETS:
        known = asked[option] if side.plan is None else side.plan.known_with(asked[option])
        taken = [name for one in columns.values() for name in one]
        columns[option] = [name for name in known if name in there and name not in taken]
    lacks = {
        "linked": "" if columns["second_link"] else "no column of the second source is released",
        "inferred": "" if columns["secret"] else "no secret is released",
    }
    if not columns["link"]:
        why = "no column that the intruder knows is released"
        lacks = dict.fromkeys(asked["attacks"], why)
    not_made = {name: lacks[name] for name in asked["attacks"] if lacks.get(name)}
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


class _Side(NamedTuple):
    """The people of a release and the control, coded as it is; `unfit` columns cannot be."""

    people: Microdata
    control: Microdata | None
    source: Literal["held out", "a file", "none"]
    plan: Plan | None
    unfit: tuple[str, ...] = ()


def _people(files: Files, asked: Asked) -> _Side:
    product, unfit = asked["product"], list[str]()
    is_made = product == products.SYNTHESIS
    protected = files.get(
        {products.SYNTHESIS: products.STARTED, products.PROTECTION: products.PROTECTED_FILE}.get(
            product, ""
        )
    )
    plan = protected.plan if isinstance(protected, products.ProtectedFile) else None
    if is_made and products.HELD_OUT in files:
        return _Side(
            files[products.MADE_FROM].data, files[products.HELD_OUT].data, "held out", plan
        )

    def coded(data: Microdata) -> Microdata:
        if plan is None:
            return data
        found, _, wrong = code_alike(data, plan, [n for one in SETS for n in asked[one]])
        unfit.extend(wrong)
        return found

    people = products.synthesised_from(files) if is_made else coded(files["data"].data)
    control = coded(files[CONTROL].data) if CONTROL in files else None
    source: Literal["a file", "none"] = "none" if control is None else "a file"
    return _Side(people, control, source, plan, tuple(unfit))


ATTACKS_STAGE = Stage(
    ATTACKS,
    "Attacks with a control",
    _ask_attacks,
    _run_attacks,
    RELEASE_INPUTS,
    reads=(
        "data",
        products.PROTECTED_FILE,
        products.STARTED,
        products.MADE_FROM,
        products.HELD_OUT,
        products.RELEASE,
        CONTROL,
    ),
    draw=lambda found: found.plot() if found.files else {},
    returns="keyhole.reviews.stages.attacks.ReleasedAttacks",
)


def check_attacks(
    source: ReviewSource, given: Question, review: Review, reviewed: ReviewFile
) -> Files:
    """Say what is wrong with attacks, absent columns of the file aside; return their control."""
    names = [name for one in SETS for name in given.values[one] or ()]  # none where unfit
    own, files = reviewed.data, dict[str, ReviewFile]()
    if given.control is not None:
        if review.synthesis is not None and review.synthesis.hold_out is not None:
            text = "control and [synthesis] hold_out both give people outside. Leave one out."
            source.say((ATTACKS, CONTROL), f"[attacks] {text}")
        with source.telling((ATTACKS, CONTROL), "[attacks] "):
            read_it = partial(_load, declared=review.data.declared(), derived=fit_derivations(own))
            data, digest = read_steadily(source.path.parent / given.control, read_it)
            files[CONTROL] = ReviewFile(given.control, data, digest, reviewed.read)
    if set(names) <= set(own.names):
        values = {name: given.values[name] for name in ("attacks", *SETS, "numeric", "seed")}
        asked = bind(study, {"puf": own, "original": own, **values})
        control = files[CONTROL].data if files else None
        texts = asked.problems or people_problems(own, own, control, asked)
        source.say((ATTACKS,), *(f"[attacks] {text}" for text in texts))
    return files


def _load(path: Path, declared: Mapping[str, Any], derived: Mapping[str, str]) -> Microdata:
    """Read a file like the one under review, with the columns that are derived there."""
    how = {name: declared[name] for name in ("encoding", "delimiter", "sheet")}
    data = load(path, **how)
    data = load(data, **products.told_of({**declared, "name": path.stem}, data.names))
    data = load(data, derive=derived, partial=True) if derived else data
    data.require_records()
    return data
