"""The stages that attack a file as an intruder would: the one under review, and other releases.

A protection lowers the risk on a key, and a synthesis protects the key it was told of. Whether the
attack of this very review still succeeds is another question, and the one a board asks: so the
attack is made on the protected file and on the first implicate too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from keyhole.core.marks import SPREAD, Named
from keyhole.core.options import Question, parameters_of
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.protection.plan import Plan
from keyhole.reidentification.compare import StudyComparison
from keyhole.reidentification.files import attach_ids
from keyhole.reidentification.linkage import find_truth
from keyhole.reidentification.question import OPTIONS_OF_METRIC
from keyhole.results import Result
from keyhole.reviews.files import LINKED, Files, ReviewFile, scenario_key_of
from keyhole.reviews.schema import METRICS
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.protection import PROTECTED_FILE, PROTECTION, SYNTHESIS, ProtectedFile
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, counted, own_picture
from keyhole.reviews.stages.synthesis import IMPLICATE

RELEASES = "releases"
CANDIDATE = "candidate"
# What the protected file and the first implicate are called among the releases.
PROTECTED, IMPLICATE_1 = "the protected file", "synthesis, implicate 1"
_COLUMNS = ("coded", "uncoded")


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
    from keyhole.reidentification.study import study

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


def _ask(review: Review, earlier: Earlier) -> Asked | None:
    given = review.study
    if given is None:
        return None
    # What was made of the file is attacked if the file itself is.
    own = given.puf is None
    protected, implicate = own and PROTECTION in earlier, own and SYNTHESIS in earlier
    if not (given.candidates or protected or implicate):
        return None
    from keyhole.reidentification.study import study

    linked = _linked(given)
    apart = (*linked, "puf", "eif", "iuf", "scenario", "metrics")
    return {
        "candidates": sorted(given.candidates),
        "protected": protected,
        "implicate": implicate,
        "metrics": list(given.metrics),
        **linked,
        **{
            n: given.values[n] for n in parameters_of(study) if n in given.values and n not in apart
        },
    }


@dataclass(frozen=True, slots=True)
class _Target:
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


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
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
    coded, uncoded = (sum((getattr(one, name) for one in targets), ()) for name in _COLUMNS)
    link, numeric, strata = (tuple(asked[name]) for name in ("link", "numeric", "strata"))
    found = StudyComparison(link, numeric, strata, tuple(rows), asked.get("scenario"))
    return Attacked(found, tuple(unfit), coded, uncoded)


def _targets(files: Files, asked: Asked) -> Iterator[_Target]:
    """Yield the releases; the implicates keep the order of the records, the protected file not."""
    theirs = {part: files[part].data for part in ("eif", "iuf")}
    for name in asked["candidates"]:
        yield _Target(name, files[f"{CANDIDATE}:{name}"].data, theirs)
    if asked["protected"]:
        yield _protected(PROTECTED, files[PROTECTED_FILE], files, asked)
    if asked["implicate"]:
        made = files[IMPLICATE]
        if isinstance(made, ProtectedFile):
            yield _protected(IMPLICATE_1, made, files, asked)
        else:
            puf = attach_ids(made.data, files["data"].data, asked["puf_id"])
            yield _Target(IMPLICATE_1, puf, theirs)


def _protected(name: str, made: ReviewFile, files: Files, asked: Asked) -> _Target:
    source = files["data"].data
    assert isinstance(made, ProtectedFile)
    assert made.plan is not None
    assert made.rows is not None
    eif, iuf = files["eif"].data, files["iuf"].data
    if len(made.rows) < source.records:  # records that the protected file leaves out
        ids = {name: asked[name] for name in ("puf_id", "eif_id")}
        named = find_truth(source, eif, iuf, **ids).rows
        iuf = iuf.filter((named < 0) | np.isin(named, made.rows))
    eif, coded, unfit = code_alike(eif, made.plan, [*asked["link"], *asked["strata"]])
    # Its records get their ids from the rows that they had.
    puf = attach_ids(made.data, source.reordered(made.rows), asked["puf_id"])
    puf = puf.select([name for name in puf.names if name not in unfit])
    derived = tuple(
        one
        for one in made.plan.known_with(asked["link"])
        if one not in asked["link"] and one in puf.names and one in eif.names
    )
    theirs = {"eif": eif, "iuf": iuf}
    return _Target(name, puf, theirs, True, tuple(coded), tuple(unfit), derived)


def _attacked(target: _Target, metric: str, files: Files, asked: Asked, progress: Progress) -> Any:
    """Attack one release; what it does not tell is missing, and strata it lacks are none."""
    from keyhole.reidentification.compare import compare_studies
    from keyhole.reidentification.files import blank_variables

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
    _ask,
    _run,
    (PROTECTION, SYNTHESIS),
    reads=("data", "eif", "iuf", LINKED, CANDIDATE, PROTECTED_FILE, IMPLICATE),
    returns="keyhole.reviews.stages.releases.Attacked",
)


@dataclass(frozen=True, slots=True)
class NotAttacked:
    """A release on which an attack cannot be made by a metric, and why."""

    release: str
    metric: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Attacked(Result):
    """What the attack of a review achieves on other releases than the file under review.

    `coded` are the columns of the intruder's file that were coded as the protected file is, and
    `uncoded` those in which that cannot be done.
    """

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
    """Code an intruder's file as a plan codes the released one.

    Returned are the file, the columns in which that was done, and those whose values do not fit.
    """
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
