"""Stored results of a review, and its last verification, as the pages show them.

The dossier's own chapters are used, so that small counts are protected here as they are there.
Results of before a change are shown too; what they do not answer is left out.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.core.names import plural
from keyhole.core.tables import Table
from keyhole.errors import FileError
from keyhole.protection.results import Ledger
from keyhole.reviews import store, verdict
from keyhole.reviews.count_sheets import CountSheet, smallest_shown
from keyhole.reviews.files import hash_file, hash_or_none
from keyhole.reviews.product_chapters import SynthesisChapter, synthesis_chapter
from keyhole.reviews.rendering import rate
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import outgoing, restored
from keyhole.reviews.stages.attacks import ATTACKS, RELEASES, study_stage
from keyhole.reviews.stages.products import PROTECTION, SYNTHESIS
from keyhole.reviews.stages.selection import selection_stage
from keyhole.reviews.study_chapters import AttackChapter, attacks
from keyhole.selection.search import METHODS
from keyhole.workbench.page import View

Record = Mapping[str, Any]
VERIFICATION = "verification.json"
_SHAPE = {"of": str, "same": bool, "figures": int, "differences": [str], "tables": [store.TABLE]}


def stored_records(view: View) -> dict[str, Record]:
    """Return the records of the stages that the review asks for, as far as there are any."""
    return {
        name: standing.record
        for name, standing in view.look.standings.items()
        if standing.record is not None and standing.state != "unasked"
    }


def stored_attacks(view: View) -> list[AttackChapter]:
    """Return the study by each metric that has a result."""
    records = stored_records(view)
    review = _with_metrics(view.review, records)
    sheet = CountSheet(smallest_shown(review.exposure.cutoff))
    return attacks(review, restored(records), sheet)


def stored_synthesis(view: View) -> SynthesisChapter | None:
    """Return what the synthesis gave; the attack on it only where that is of now."""
    records, review = stored_records(view), view.review
    study = review.study
    wanted = [RELEASES, *(study_stage(metric) for metric in (study.metrics if study else ()))]
    if any(view.standing(stage).state != "current" for stage in wanted):
        review = dataclasses.replace(review, study=None)
    sheet = CountSheet(smallest_shown(review.exposure.cutoff))
    return synthesis_chapter(review, restored(records), sheet)


def stored_limits(view: View) -> tuple[verdict.Limit, ...]:
    """Compare what is stored with the limits; one without a result is left out."""
    records = stored_records(view)
    review = _with_metrics(view.review, records)
    if view.standing(RELEASES).state != "current" or review.study != view.review.study:
        records.pop(RELEASES, None)  # it may be of other metrics
    absent = {name for name, one in view.look.standings.items() if one.state == "absent"}
    if {"exposure", "fix"} & absent:
        review = dataclasses.replace(review, exposure=review.exposure.replace(limit=None))
    if review.selection is not None:
        stages = {selection_stage(one) for one in review.selection.methods}
        if absent & {*stages, "proposal", "frontier", "alternative"}:
            review = dataclasses.replace(review, selection=None, frontier=None)
    if "protection" not in records:
        review = dataclasses.replace(review, protection=None)
    return tuple(verdict.find_limits(review, restored(records)))


def _with_metrics(review: Review, records: Mapping[str, Record]) -> Review:
    """Leave out of the study the metrics that have no result, and one that has none at all."""
    if review.study is None:
        return review
    found = tuple(metric for metric in review.study.metrics if study_stage(metric) in records)
    study = review.study.replace(metrics=found) if found else None
    return dataclasses.replace(review, study=study)


def verify_and_keep(path: Path, _: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Verify a review's dossier; keep what was found with the results' hash."""
    from keyhole.reviews.verifying import verify

    folder = path.with_suffix("")
    store.require_no_link(folder)
    found = verify(folder, review=path, progress=tell)
    content = {
        "of": hash_file(folder / store.RESULTS),
        "same": found.same,
        "figures": found.figures,
        "differences": list(found.differences),
        "tables": [table.to_plain() for table in found.tables()],
    }
    with store.own_folder(folder, lambda: None):
        store.ResultStore(folder).write(VERIFICATION, store.to_json(content))


def last_verification(folder: Path) -> dict[str, Any] | None:
    """Return what was found, if it is of the results that are there now."""
    path = folder / VERIFICATION
    if not os.path.lexists(path):
        return None
    content: dict[str, Any] | None = None if path.is_symlink() else store.read_json(path)
    if content is None or not store.fits(content, _SHAPE):
        raise FileError(f"{VERIFICATION} is not what a verification writes. Verify again.")
    if content["of"] != hash_or_none(folder / store.RESULTS):
        return None
    return content | {"tables": [Table.from_plain(table) for table in content["tables"]]}


Results = Mapping[str, Any]
MOST_REASONS = 3
NOT_YET = "run the whole review to see whether the release is safe."
UNDER_WAY = "the work is under way."


@dataclass(frozen=True, slots=True)
class VerdictBar:
    """The answer about what goes out: a word, its sentence, its reasons, and what was given up."""

    state: str
    word: str
    sentence: str
    reasons: tuple[verdict.Reason, ...] = ()
    given_up: str | None = None
    stale: bool = False

    @property
    def because(self) -> list[str]:
        """The first of the reasons why the release should not go out, or cannot be judged."""
        against = [one for one in self.reasons if one.state == self.state != "met"]
        return [f"{one.what}: {one.said}." for one in against[:MOST_REASONS]]


def release_results(view: View) -> dict[str, Any]:
    """Return the stored results that the answer rests on, as far as there are any."""
    standings = {name: view.standing(name) for name in _rests_on(view)}
    found = {n: s.record for n, s in standings.items() if s.record and s.state != "unasked"}
    return restored(found)


def _rests_on(view: View) -> list[str]:
    study = view.review.study
    attacks = [study_stage(metric) for metric in (study.metrics if study else ())]
    first = [outgoing.OUTGOING, *outgoing.OUTGOING_STAGE.inputs, "scenarios", RELEASES]
    return [*first, outgoing.RELEASED_ATTRIBUTES, ATTACKS, *attacks]


def verdict_bar(view: View, results: Results) -> VerdictBar:
    """Judge what goes out by what is stored; nothing is judged by halves."""
    # What goes out may be of before a plan or a synthesis; the others say what it is made of.
    needed = {outgoing.OUTGOING, *outgoing.OUTGOING_STAGE.inputs} - {PROTECTION, SYNTHESIS}
    if any(view.standing(name).state == "absent" for name in needed):
        running = view.job is not None and view.job.running
        return VerdictBar("unjudged", "Not judged yet", UNDER_WAY if running else NOT_YET)
    found = verdict.find_verdict(view.review, results)
    return VerdictBar(
        state=found.state,
        word=verdict.ANSWERS[found.answer][1],
        sentence=found.sentence,
        reasons=found.reasons,
        given_up=found.given_up,
        stale=_state(view, *_rests_on(view)) == "stale",
    )


def pipeline(view: View, results: Results) -> list[tuple[str, str, list[str]]]:
    """Return the steps that make the release: title, page, and the risk and utility they leave."""
    review, limit = view.review, view.review.exposure.limit
    exposure, steps = view.result("exposure"), review.release.steps
    order = steps if steps is not None else (review.release.product,)

    def risk(rp: float | None) -> list[str]:
        return [] if rp is None else [f"RP {rate(rp, limit)}"]

    first = risk(None if exposure is None else exposure.rp)
    found = [("File", "data", first if not review.data.derive else [])]
    if review.data.derive:
        many = plural(len(review.data.derive), "column")
        found.append(("Derive", "data", [f"{many} more", *first]))
    for name in (one for one in order if one in _PAGES):
        result, told = view.result(name), list[str]()
        if name == "solve" and result is not None:
            told = [*risk(result.rp), f"utility {rate(result.utility)}"]
        elif name == "selection" and review.release.take is not None:
            told = [*_taken_set(view, limit), f"{plural(len(review.release.take), 'variable')}"]
        elif name == SYNTHESIS and result is not None and (made := result.evaluation):
            told = [f"true exposure {rate(made.exposure.worst or 0.0)}"]
            told += [] if made.marginals is None else [f"score {made.marginals.score:.0f} of 1,000"]
        elif isinstance(result, Ledger):
            lost = result.last.price.lost
            told = [*risk(result.rp), *([] if lost is None else [f"{rate(lost)} lost"])]
        found.append((name.capitalize(), _PAGES[name], told))
    out: outgoing.ReleasedFiles | None = results.get(outgoing.OUTGOING)
    told = [] if out is None else [f"{len(out.columns)} of {len(view.data.names)} columns"]
    found.append(("Out", "dossier", [*risk(_outgoing(view, out, limit).value), *told]))
    return found


def _taken_set(view: View, limit: float | None) -> list[str]:
    """Return RP and CR of the set that was taken, where a search found it."""
    from keyhole.workbench.pages.select import every_set  # pages import this module

    found = [(one.rp, one.cr) for _, one in every_set(view, METHODS) if "taken" in one.tags]
    known = [(rp, cr) for rp, cr in found if rp is not None and cr is not None]
    return [f"RP {rate(rp, limit)}, CR {rate(cr)}" for rp, cr in known[:1]]


_PAGES = {"solve": "solve", "selection": "select", PROTECTION: "protect", SYNTHESIS: "synthesise"}


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure against its limit."""

    title: str
    detail: str
    value: float | None
    limit: float | None
    state: str  # how its result stands
    term: str = "RP"  # what the figure is, as the glossary has it
    open: bool = False  # whether columns that nobody counted would break the limit

    @property
    def over(self) -> bool:
        """Whether it is above its limit."""
        return self.value is not None and self.limit is not None and self.value > self.limit

    @property
    def answer(self) -> str:
        """Whether the limit is met, in a word or two."""
        return "could not be judged" if self.open else "not met" if self.over else "met"


def gauges(view: View, results: Results) -> list[Gauge]:
    """Return the figures of the sidebar: the original, and what goes out."""
    review = view.review
    exposure, limit = view.result("exposure"), review.exposure.limit
    on_keys = f"RP({review.exposure.cutoff}) on {len(review.keys)} keys"
    value = None if exposure is None else exposure.rp
    found = [
        Gauge("Original", on_keys, value, limit, _state(view, "exposure")),
        _outgoing(view, results.get(outgoing.OUTGOING), limit),
    ]
    if review.scenarios is not None:
        found.append(_worst_scenario(view, results.get(outgoing.OUTGOING), limit))
    if review.study is not None:
        found += [_attack(view, results, metric) for metric in review.study.metrics[:1]]
    return found


def _outgoing(view: View, found: outgoing.ReleasedFiles | None, limit: float | None) -> Gauge:
    """Show RP on what is counted, or on a column besides that would break the limit if known."""
    title, state = "The release", _state(view, outgoing.OUTGOING)
    if found is None:
        return Gauge(title, "RP on all that is released", None, limit, state)
    stories = _scenarios(view)
    worst = _worst([one for one in found.keys if one.knows not in stories])
    counted = 0.0 if worst is None else worst.judged or 0.0
    many = 0 if worst is None else len(worst.columns)
    words = f"RP({found.cutoff}) on {plural(many, 'variable')}"
    uncounted = verdict.open_columns(found, 1.0 if limit is None else limit)
    if not uncounted or (limit is not None and counted > limit):
        return Gauge(title, words, counted, limit, state)
    name, known = uncounted[0].name, uncounted[0].rp_if_known
    others = f"it and {len(uncounted) - 1} more are" if len(uncounted) > 1 else "it is"
    detail = f"{words} and {name} ({others} in no key); without it {rate(counted, limit)}"
    return Gauge(title, detail, known, limit, state, open=True)


def _worst_scenario(view: View, found: outgoing.ReleasedFiles | None, limit: float | None) -> Gauge:
    stories = _scenarios(view)
    worst = _worst([one for one in (found.keys if found else ()) if one.knows in stories])
    detail = "RP on its key" if worst is None else f"{stories[worst.knows]}, in the release"
    value = None if worst is None else worst.judged or 0.0
    return Gauge("Worst scenario", detail, value, limit, _state(view, outgoing.OUTGOING))


def _attack(view: View, results: Results, metric: str) -> Gauge:
    study, state = view.review.study, _state(view, outgoing.OUTGOING, RELEASES, study_stage(metric))
    assert study is not None
    rates = verdict.released_rates(view.review, results, metric)
    if isinstance(rates, str):
        return Gauge("Attack", rates, None, study.limit, state, "conditional rate")
    detail = f"matches that are correct, {metric}, in the release"
    value = rates.conditional_rate or 0.0
    return Gauge("Attack", detail, value, study.limit, state, "conditional rate")


def _scenarios(view: View) -> dict[str, str]:
    stories = view.review.scenarios
    return {outgoing.scenario_words(name): name for name in (stories.names if stories else ())}


def _worst(keys: list[outgoing.OnKey]) -> outgoing.OnKey | None:
    return max(keys, key=lambda one: one.judged or 0.0, default=None)


def _state(view: View, *stages: str) -> str:
    """Return how the stages stand together: the worst of them."""
    states = {view.standing(name).state for name in stages}
    return next((one for one in ("stale", "absent", "current") if one in states), "unasked")
