"""The verdict of a review: may what is released go out, and why or why not.

Every reason is about the outgoing files, as the stage `outgoing` and the attacks measured them. A
condition is met, not met, or could not be judged; the release may go out if all are met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.core.names import quoted
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.residual_risk import LEAST_CONTROLS, Attack
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.digits import limit_percentage, percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.attacks import ATTACKS, ReleasedAttacks, few_of
from keyhole.reviews.stages.attributes import (
    RELEASED_ATTRIBUTES,
    AttributeOnKey,
    ReleasedAttributes,
)
from keyhole.reviews.stages.outgoing import (
    KEYS,
    OUTGOING,
    OnKey,
    ReleasedFiles,
    UncountedColumn,
    derived_columns,
    scenario_words,
)
from keyhole.reviews.stages.protection import PROTECTION, plan_of_release, released_product
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES
from keyhole.reviews.study_chapters import ATTACK_TITLES, rates_said
from keyhole.synthesis.associations import NEVER_RELEASED

Answer = Literal["met", "not_met", "not_judged"]
ANSWERS: Mapping[Answer, tuple[str, str]] = {
    "met": ("met", "Met"),
    "not_met": ("unmet", "Not met"),
    "not_judged": ("unjudged", "Could not be judged"),
}
"""How a page marks an answer, and its words."""
MOST_NAMED = 6
LOST = ("records.blanked", "records.removed", "suppress.values", "sample.kept")
"""Notes of protections that say how many records or values are gone."""
OLDER = "The release was not measured: run the review again with this version of keyhole."


@dataclass(frozen=True, slots=True)
class Reason(Figures):
    """A condition of the release: what was measured, and what would change the answer."""

    what: str
    answer: Answer
    said: str
    found: float | None = None
    limit: float | None = None
    remedy: str | None = None

    @property
    def state(self) -> str:
        """How a page marks it."""
        return ANSWERS[self.answer][0]

    @property
    def verdict(self) -> str:
        """Whether it is met, in a word or two."""
        return ANSWERS[self.answer][1]


@dataclass(frozen=True, slots=True)
class Verdict(Figures):
    """The answer for the whole release: its sentence, its reasons, and what was given up for it."""

    answer: Answer
    sentence: str
    reasons: tuple[Reason, ...]
    given_up: str | None = None

    @property
    def state(self) -> str:
        """How a page marks it."""
        return ANSWERS[self.answer][0]


def find_verdict(review: Review, results: Mapping[str, Any]) -> Verdict:
    """Judge what is released by everything that was measured on it."""
    if OUTGOING not in results:
        return Verdict("not_judged", OLDER, ())
    found: ReleasedFiles = results[OUTGOING]
    reasons = [_identifiers(found)]
    limit = review.exposure.limit
    if limit is None:
        remedy = "Set limit in [exposure]: the highest acceptable share of records at risk."
        reasons.append(Reason("Exposure", "not_judged", "no limit is set", remedy=remedy))
    else:
        told = recoverable_rp(review, results)
        reasons += [
            _on_key(one, found.cutoff, limit, told if one.knows == KEYS else None)
            for one in found.keys
        ]
        reasons += _scenarios_unjudged(review, results, found, limit)
        reasons += _not_counted(found, limit)
    reasons += _attributes(review, results)
    reasons += _attacks(review, results)
    reasons += _controlled(review, results)
    return Verdict(*_answer(reasons), tuple(reasons), _given_up(review, results, found))


def _answer(reasons: list[Reason]) -> tuple[Answer, str]:
    unmet = [one.what for one in reasons if one.answer == "not_met"]
    unjudged = [one.what for one in reasons if one.answer == "not_judged"]
    of = f"{len(reasons)} conditions"
    if unmet:
        several = "are" if len(unmet) > 1 else "is"
        return "not_met", (
            f"This release should not go out: {len(unmet)} of {of} {several} not met "
            f"({_listed(unmet)})."
        )
    if unjudged:
        return "not_judged", (
            f"Whether this release may go out cannot be judged yet: {len(unjudged)} of {of} could "
            f"not be judged ({_listed(unjudged)})."
        )
    return "met", f"This release may go out: all {of} are met."


def _given_up(review: Review, results: Mapping[str, Any], found: ReleasedFiles) -> str | None:
    """Say what the release has less of than the file: columns, detail, records, values."""
    plan = plan_of_release(review, results)
    coarser = {
        source: name
        for name, sources in derived_columns(review, plan).items()
        for source in sources
        if name in found.columns and source not in found.columns
    }
    roles = review.data.roles
    out = [n for n in found.left_out if n not in coarser and roles.get(n) not in NEVER_RELEASED]
    recoded = [
        name
        for step in (() if plan is None else plan.steps)
        if step.definition.effect in ("codes", "perturbs", "exchanges")
        for name in step.columns
        if name in found.columns
    ]
    steps = results["protection"].steps if "protection" in results and plan is not None else ()
    notes = [note for step in steps for note in step.notes if getattr(note, "code", "") in LOST]
    parts = [
        (out, f"{quoted(out, most=MOST_NAMED)} left out"),
        (coarser, ", ".join(f"{n!r} coarser (as {made!r})" for n, made in coarser.items())),
        (recoded, f"{quoted(list(dict.fromkeys(recoded)), most=MOST_NAMED)} changed"),
        *((True, note.hiding(smallest_shown(found.cutoff))) for note in notes),
    ]
    said = "; ".join(words for there, words in parts if there)
    return f"What was given up: {said}." if said else None


def _listed(names: list[str]) -> str:
    more = f"; {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    first = [f"{name[:1].lower()}{name[1:]}" if name[1:2].islower() else name for name in names]
    return "; ".join(first[:MOST_NAMED]) + more


def _identifiers(found: ReleasedFiles) -> Reason:
    if not found.identifiers:
        said = f"none was recognised among its {len(found.columns)} columns"
        return Reason("Direct identifiers", "met", said)
    named = [f"{one.column} ({one.reason})" for one in found.identifiers[:MOST_NAMED]]
    more = len(found.identifiers) - len(named)
    said = f"{len(found.identifiers)} left in the release: {'; '.join(named)}"
    columns = ", ".join(f'"{one.column}"' for one in found.identifiers)
    return Reason(
        "Direct identifiers", "not_met", said + (f"; {more} more" if more else ""),
        remedy=f"Drop them: drop = [{columns}] in [release].",
    )  # fmt: skip


def recoverable_rp(review: Review, results: Mapping[str, Any]) -> float | None:
    """Return RP on the keys of a protected file that is released, with recoverable values."""
    if released_product(review, results) != PROTECTION or PROTECTION not in results:
        return None
    told = results[PROTECTION].read_off
    return None if told is None else told.rp


def _on_key(one: OnKey, cutoff: int, limit: float, read_off: float | None) -> Reason:
    what = f"RP({cutoff}) on {one.knows}"
    figure = max((x for x in (one.judged, read_off) if x is not None), default=None)
    if figure is None:
        return Reason(what, "met", "none of its variables is released", 0.0, limit)
    before = "" if one.original is None else f"; {percentage(one.original)} in the original"
    most = "at most " if one.detail == "at most" else ""

    def shown(share: float, *, named: bool = False) -> str:
        return shown_share(share, one.records, cutoff, limit, named=named)

    against = f"against a limit of {limit_percentage(limit)}{before}"
    said = f"{most}{shown(figure, named=True)} {against}"
    notes = []
    if figure != one.judged:
        plain = "" if one.judged is None else f", {shown(one.judged)} without"
        notes.append(f"This includes values recoverable from retained columns{plain}.")
    if one.rp_true is not None and one.rp is not None:
        notes.append(
            f"Only records that keep their original values are counted. With synthesised values "
            f"it is {shown(one.rp)}, but a match on those is false."
        )
    if one.rp_wildcard is not None and one.rp is not None and one.rp_wildcard != one.rp:
        notes.append(
            f"If a missing value matched every other, it would be {shown(one.rp_wildcard)}."
        )
    answer: Answer = "met" if figure <= limit else "not_met"
    if answer == "not_met":
        notes.append(
            "Release fewer or coarser variables, protect more records, or let [solve] find the "
            "best release within the limit."
        )
    return Reason(what, answer, said, figure, limit, " ".join(notes) or None)


def shown_share(
    share: float, records: int, cutoff: int, limit: float | None = None, *, named: bool = False
) -> str:
    """Write a share of the records that are released; of very few only that they are few.

    `named` says what it is a share of.
    """
    smallest = smallest_shown(cutoff)
    if 0 < round(share * records) < smallest:
        return f"fewer than {smallest}" + " records" * named
    shown = percentage(share) if limit is None else percentage_beside(share, limit)
    return shown + " of the records" * named


def _scenarios_unjudged(
    review: Review, results: Mapping[str, Any], found: ReleasedFiles, limit: float
) -> Iterator[Reason]:
    stories, cutoff = results.get("scenarios"), found.cutoff
    parts = () if stories is None else stories.comparison.parts
    unfit = {part.name: f"{part.notes[-1]}" for part in parts if part.exposure is None}
    if stories is None and review.scenarios is not None:
        measured = {one.knows for one in found.keys}
        names = [n for n in review.scenarios.names if scenario_words(n) not in measured]
        unfit = dict.fromkeys(names, "the scenario was not measured yet")
    for name, why in unfit.items():
        yield Reason(f"RP({cutoff}) on {scenario_words(name)}", "not_judged", why, None, limit)


def _not_counted(found: ReleasedFiles, limit: float) -> Iterator[Reason]:
    """Judge columns in no key: what breaks the limit must be a key, or have a reason."""
    if not found.not_counted:
        return
    what = "Columns released and in no key"
    open_ = open_columns(found, limit)
    explained = sum(one.rp_if_known > limit for one in found.not_counted) - len(open_)
    many = len(found.not_counted)
    if not open_:
        within = (
            f"RP is within the limit with {many - explained} of {many}, if an intruder knows it"
        )
        why = f"; no intruder can know the other {explained}, as declared" if explained else ""
        if explained == many:
            within, why = f"no intruder can know the {many}, as declared", ""
        yield Reason(what, "met", within + why)
        return
    shown = [f"{one.name} {percentage_beside(one.rp_if_known, limit)}" for one in open_]
    more = f", {len(open_) - MOST_NAMED} more" if len(open_) > MOST_NAMED else ""
    yield Reason(
        what, "not_judged",
        f"RP exceeds {limit_percentage(limit)} with {len(open_)} of {many}, if an intruder knows "
        f"it besides the key ({', '.join(shown[:MOST_NAMED])}{more})",
        open_[0].rp_if_known, limit,
        f"Add {quoted([one.name for one in open_], most=MOST_NAMED)} to the keys, drop them, or "
        f"say in [release.not_knowable] why no intruder could know them.",
    )  # fmt: skip


def open_columns(found: ReleasedFiles, limit: float) -> list[UncountedColumn]:
    """Return the columns in no key that would break the limit if known, the worst first."""
    open_ = [one for one in found.not_counted if one.rp_if_known > limit and one.reason is None]
    return sorted(open_, key=lambda one: -one.rp_if_known)


def _attributes(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    """Judge by sensitive column the share of records whose value the key tells for certain."""
    found: ReleasedAttributes | None = results.get(RELEASED_ATTRIBUTES)
    if found is None or review.attributes is None:
        return
    limit = review.attributes.limit
    for column in dict.fromkeys(one.column for one in found.rows):
        what, worst = f"Attribute disclosure: {column}", found.worst(column)
        if worst is None:
            gone = all(not one.knows for one in found.rows if one.column == column)
            said = "it is not released" if gone else "no variable of a key is released"
            yield Reason(what, "met", said, 0.0, limit)
        elif limit is None:
            remedy = (
                "Set limit in [attributes]: the highest acceptable share of records in cells "
                "where all have one value."
            )
            yield Reason(what, "not_judged", "no limit is set", worst.judged, None, remedy)
        else:
            yield _attribute(what, worst, found.cutoff, limit)


def _attribute(what: str, worst: AttributeOnKey, cutoff: int, limit: float) -> Reason:
    figure, original = worst.judged or 0.0, worst.original
    shown = shown_share(figure, worst.records, cutoff, limit, named=True)
    few = 0 < round((original or 0.0) * worst.records) < smallest_shown(cutoff)
    told = original is not None and not few
    before = f"; {percentage(original or 0.0)} in the original" if told else ""
    where = (
        f"are in cells on {worst.knows} where all have one value"
        if worst.right is None
        else f"have a cell on {worst.knows} with one value in the release, and it is their own"
    )
    said = f"{shown} {where}, against a limit of {limit_percentage(limit)}{before}"
    if figure <= limit:
        return Reason(what, "met", said, figure, limit)
    remedy = (
        f"Release fewer or coarser keys, drop {worst.column} or change some of its values (pram, "
        f"swap), or search for a release within the limit: sensitive and homogeneous_limit in "
        f"[solve] or [selection]."
    )
    return Reason(what, "not_met", said, figure, limit, remedy)


def _controlled(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    """Judge each attack with a control by its residual risk, and by how sure that is."""
    given, found = review.attacks, results.get(ATTACKS)
    if given is None:
        return
    if found is None or given.limit is None or found.unfit:
        said, remedy = "the attacks were not made yet", None
        if found is not None:
            said, remedy = found.unfit.rstrip("."), "Name other columns in [attacks]."
        if given.limit is None:
            said, remedy = (
                "no limit is set",
                ("Set limit in [attacks]: the highest acceptable residual risk."),
            )
        yield Reason("Attacks with a control", "not_judged", said, None, given.limit, remedy)
        return
    for name in given.attacks:
        what = ATTACK_TITLES[name]
        if name in found.not_made:
            yield Reason(what, "met", found.not_made[name], 0.0, given.limit)
        elif name in found.worst:
            yield _residual(what, found.worst[name], found, given.limit)


def _residual(what: str, one: Attack, found: ReleasedAttacks, limit: float) -> Reason:
    """Judge by the risk, and only where its whole interval agrees call the limit met."""
    smallest, ends = smallest_shown(found.cutoff), one.intervals["risk"]
    said, few = rates_said(one, smallest, limit), few_of(one, smallest)
    judged = partial(Reason, what, found=one.risk, limit=limit)
    other = "Name other columns in [attacks]."
    more = "Hold out more records, up to one half, or give a larger control."
    if one.success is None and found.control != "none" and what == ATTACK_TITLES["singled-out"]:
        return judged("met", "no predicate fits exactly one record of the release")
    if one.success is None or one.control is None:
        why = f"fewer than {LEAST_CONTROLS} people of the control could be attacked"
        if found.control == "none":
            why = "there is no control of people outside the file"
        return judged("not_judged", f"{said}; {why}", remedy=(
            "Set hold_out in [synthesis], or name a file of people who are not in the file as "
            f"control in [attacks]: at least {LEAST_CONTROLS} of them."
        ))  # fmt: skip
    if one.attempts < LEAST_CONTROLS:
        why = f"fewer than {LEAST_CONTROLS} attempts could be made"
        return judged("not_judged", why, remedy=other)
    if one.control == 1:
        return judged("not_judged", f"{said}: there is nothing left to be risked", remedy=other)
    if ends is None or one.risk is None:
        # It may yet succeed more often on people of the file than on others.
        within = (one.success - one.control) / (1 - one.control) <= limit and one.of_all >= 0.5
        words = f"{said}: it is no better than the guess"
        return judged("met" if within else "not_judged", words, remedy=None if within else more)
    against = f"the limit of {limit_percentage(limit)}"
    figures = f"the residual risk is {'above' if one.risk > limit else 'within'} {against}"
    if not few & {"success", "control"}:
        risk, low, high = (percentage_beside(x, limit) for x in (one.risk, *ends))
        figures = f"residual risk {risk} (95% interval {low} to {high}) against {against}"
    if one.risk > limit:
        return judged("not_met", f"{figures}; {said}", remedy=(
            "Release coarser or fewer columns, or change more of them: more targets, more records "
            "at risk, more perturbation."
        ))  # fmt: skip
    # Counted among some of the people, an attack succeeds on no more than them.
    if ends[1] > limit * one.of_all:
        doubt = "which the interval exceeds" if ends[1] > limit else (
            f"but only {percentage(one.of_all)} of the people were counted, as many as controls"
        )  # fmt: skip
        return judged("not_judged", f"{figures}, {doubt}; {said}", remedy=more)
    return judged("met", f"{figures}; {said}")


_RELEASE_OF = {"protection": PROTECTED, "synthesis": IMPLICATE_1}


def released_rates(review: Review, results: Mapping[str, Any], metric: str) -> Rates | str:
    """Return the rates of an attack on what is released, or why there are none."""
    if study_stage(metric) not in results:
        return "the attack was not made yet"
    product = released_product(review, results)
    attacked = (metric, _RELEASE_OF.get(product))
    made, found = results.get(RELEASES), list[Rates | str]()
    if product == "file":
        found = [results[study_stage(metric)].rates]
    elif made is not None:
        found = [one.rates for one in made.found.rows if (one.metric, one.release) == attacked]
        found += [one.reason for one in made.unfit if (one.metric, one.release) == attacked]
    return found[0] if found else "what is released was not attacked"


def _attacks(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    study = review.study
    if study is None:
        return
    for metric in study.metrics:
        what = f"Attack by {metric}: matches that are correct"
        rates = released_rates(review, results, metric)
        if study.limit is None:
            yield Reason(what, "not_judged", "no limit is set", remedy="Set limit in [study].")
        elif isinstance(rates, str):
            yield Reason(what, "not_judged", rates, None, study.limit)
        else:
            overlap = results[study_stage(metric)].overlap.records
            yield _attack(what, rates, overlap, study.limit)


def _attack(what: str, rates: Rates, overlap: int, limit: float) -> Reason:
    found, interval = rates.conditional_rate, rates.intervals["conditional_rate"]
    if found is None or interval is None:
        return Reason(what, "met", "no match is suspected", 0.0, limit)
    if not overlap:
        return Reason(what, "not_judged", "the internal file has no true matches", None, limit)
    said = (
        f"{percentage_beside(found, limit)} (95% interval {percentage_beside(interval[0], limit)} "
        f"to {percentage_beside(interval[1], limit)}) against a limit of {limit_percentage(limit)}"
    )
    return Reason(what, "met" if found <= limit else "not_met", said, found, limit)
