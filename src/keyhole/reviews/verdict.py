"""The verdict of a review: may what is released go out, and why or why not; and its limits.

Every reason is about the outgoing files, as the stage `outgoing` and the attacks measured them. A
condition is met, not met, or not judged. Limits are held against everything that was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN
from keyhole.core.names import quoted
from keyhole.protection.results import Protection
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.residual_risk import LEAST_CONTROLS, Attack
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.rendering import limit_percentage, percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import attacks, outgoing
from keyhole.reviews.stages.exposure import ScenarioStories
from keyhole.reviews.stages.products import PROTECTION, plan_of_release, released_product
from keyhole.reviews.stages.selection import better_in_words, proposed_set, selection_stage
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
_LEARNT = "Attribute disclosure: "
# Notes of protections that say how many records or values are gone.
LOST = ("records.blanked", "records.removed", "suppress.values", "sample.kept")


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
    if outgoing.OUTGOING not in results:
        older = "The release was not measured: run the review again with this version of keyhole."
        return Verdict("not_judged", older, ())
    found: outgoing.ReleasedFiles = results[outgoing.OUTGOING]
    reasons, limit = [_identifiers(found)], review.exposure.limit
    if limit is None:
        remedy = "Set limit in [exposure]: the highest acceptable share of records at risk."
        reasons.append(Reason("Exposure", "not_judged", "no limit is set", remedy=remedy))
    else:
        told = recoverable_rp(review, results)
        reasons += [
            _on_key(one, found.cutoff, limit, told if one.knows == outgoing.KEYS else None)
            for one in found.keys
        ]
        reasons += _scenarios_unjudged(review, results, found, limit)
        reasons += _not_counted(found, limit)
    for judged in (_attributes, _attacks, _controlled):
        reasons += judged(review, results)
    # What is in the way comes first.
    reasons.sort(key=lambda one: ("not_met", "not_judged", "met").index(one.answer))
    return Verdict(*_answer(reasons), tuple(reasons), _given_up(review, results, found))


def _answer(reasons: list[Reason]) -> tuple[Answer, str]:
    unmet = [one.what for one in reasons if one.answer == "not_met"]
    unjudged = [one.what for one in reasons if one.answer == "not_judged"]
    open_, of = unmet or unjudged, f"{len(reasons)} conditions"
    columns = [one.removeprefix(_LEARNT) for one in open_ if one.startswith(_LEARNT)]
    first = [f"{one[:1].lower()}{one[1:]}" if one[1:2].islower() else one
             for one in open_ if not one.startswith(_LEARNT)]  # fmt: skip
    if columns:
        extra = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
        first.append(f"attribute disclosure of {', '.join(columns[:MOST_NAMED])}{extra}")
    more = f"; {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    named = f"({'; '.join(first[:MOST_NAMED])}{more})"
    if unmet:
        told = f"{len(unmet)} of {of} {'are' if len(unmet) > 1 else 'is'} not met {named}"
        return "not_met", f"This release should not go out: {told}."
    if unjudged:
        told = f"{len(unjudged)} of {of} could not be judged {named}"
        return "not_judged", f"Whether this release may go out cannot be judged yet: {told}."
    return "met", f"This release may go out: all {of} are met."


def _given_up(
    review: Review, results: Mapping[str, Any], found: outgoing.ReleasedFiles
) -> str | None:
    """Say what the release has less of than the file: columns, detail, records, values."""
    plan = plan_of_release(review, results)
    coarser = {
        source: name
        for name, sources in outgoing.derived_columns(review, plan).items()
        for source in sources
        if name in found.columns and source not in found.columns
    }
    never = {name for name, role in review.data.roles.items() if role in NEVER_RELEASED}
    out = [name for name in found.left_out if name not in {*coarser, *never}]
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


def _identifiers(found: outgoing.ReleasedFiles) -> Reason:
    what, some = "Direct identifiers", found.identifiers
    if not some:
        return Reason(what, "met", f"none were recognised among its {len(found.columns)} columns")
    named = [f"{one.column} ({one.reason})" for one in some[:MOST_NAMED]]
    named += [f"{len(some) - MOST_NAMED} more"] if len(some) > MOST_NAMED else []
    columns = ", ".join(f'"{one.column}"' for one in some)
    remedy = f"Drop them: drop = [{columns}] in [release]."
    said = f"{len(some)} left in the release: {'; '.join(named)}"
    return Reason(what, "not_met", said, remedy=remedy)


def recoverable_rp(review: Review, results: Mapping[str, Any]) -> float | None:
    """Return RP on the keys of a protected file that is released, with recoverable values."""
    if released_product(review, results) != PROTECTION or PROTECTION not in results:
        return None
    told = results[PROTECTION].read_off
    return None if told is None else told.rp


def _on_key(one: outgoing.OnKey, cutoff: int, limit: float, read_off: float | None) -> Reason:
    what = f"RP({cutoff}) on {one.knows}"
    figure = max((x for x in (one.judged, read_off) if x is not None), default=None)
    if figure is None:
        return Reason(what, "met", "none of its variables are released", 0.0, limit)
    before = "" if one.original is None else f"; {percentage(one.original)} in the original"
    most = "at most " if one.detail == "at most" else ""
    shown = partial(shown_share, records=one.records, cutoff=cutoff, limit=limit)
    said = f"{most}{shown(figure, named=True)} against a limit of {limit_percentage(limit)}{before}"
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
    if figure > limit:
        notes.append(
            "Release fewer or coarser variables, protect more records, or let [solve] find the "
            "best release within the limit."
        )
    answer: Answer = "not_met" if figure > limit else "met"
    return Reason(what, answer, said, figure, limit, " ".join(notes) or None)


def shown_share(
    share: float, records: int, cutoff: int, limit: float | None = None, *, named: bool = False
) -> str:
    """Write a share of the records released, very few only as few; `named` says of what it is."""
    smallest = smallest_shown(cutoff)
    if 0 < round(share * records) < smallest:
        return f"fewer than {smallest}" + " records" * named
    shown = percentage(share) if limit is None else percentage_beside(share, limit)
    return shown + " of the records" * named


def _scenarios_unjudged(
    review: Review, results: Mapping[str, Any], found: outgoing.ReleasedFiles, limit: float
) -> Iterator[Reason]:
    stories, cutoff = results.get("scenarios"), found.cutoff
    parts = () if stories is None else stories.comparison.parts
    unfit = {part.name: f"{part.notes[-1]}" for part in parts if part.exposure is None}
    if stories is None and review.scenarios is not None:
        measured = {one.knows for one in found.keys}
        names = [n for n in review.scenarios.names if outgoing.scenario_words(n) not in measured]
        unfit = dict.fromkeys(names, "the scenario was not measured yet")
    for name, why in unfit.items():
        yield Reason(
            f"RP({cutoff}) on {outgoing.scenario_words(name)}", "not_judged", why, None, limit
        )


def _not_counted(found: outgoing.ReleasedFiles, limit: float) -> Iterator[Reason]:
    """Judge columns in no key: what breaks the limit must be a key, or have a reason."""
    if not found.not_counted:
        return
    what = "Columns released and in no key"
    open_, many = open_columns(found, limit), len(found.not_counted)
    explained = sum(one.rp_if_known > limit for one in found.not_counted) - len(open_)
    if not open_:
        said = (
            f"{many - explained} of {many} would not raise RP above the limit, even if an intruder "
            f"knew it as well as the key"
        )
        said += (
            f"; the review declares the other {explained} unknowable to an intruder"
            if explained
            else ""
        )
        said = (
            f"the review declares all {many} unknowable to an intruder"
            if explained == many
            else said
        )
        yield Reason(what, "met", said)
        return
    shown = [f"{one.name} {percentage_beside(one.rp_if_known, limit)}" for one in open_]
    more = f", {len(open_) - MOST_NAMED} more" if len(open_) > MOST_NAMED else ""
    yield Reason(
        what, "not_judged",
        f"{len(open_)} of {many} would raise RP above {limit_percentage(limit)}, if an intruder "
        f"knew it as well as the key ({', '.join(shown[:MOST_NAMED])}{more})",
        open_[0].rp_if_known, limit,
        f"Add {quoted([one.name for one in open_], most=MOST_NAMED)} to the keys, drop them, or "
        f"state in [release.not_knowable] why no intruder could know them.",
    )  # fmt: skip


def open_columns(found: outgoing.ReleasedFiles, limit: float) -> list[outgoing.UncountedColumn]:
    """Return the columns in no key that would break the limit if known, the worst first."""
    open_ = [one for one in found.not_counted if one.rp_if_known > limit and one.reason is None]
    return sorted(open_, key=lambda one: -one.rp_if_known)


def _attributes(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    """Judge by sensitive column the share of records whose value the key tells for certain."""
    found: outgoing.ReleasedAttributes | None = results.get(outgoing.RELEASED_ATTRIBUTES)
    if found is None or review.attributes is None:
        return
    limit, most = (
        review.attributes.limit,
        {one.column: found.worst(one.column) for one in found.rows},
    )
    shares = {name: (one and one.judged) or 0.0 for name, one in most.items()}
    over = [name for name, part in shares.items() if limit is not None and part > limit]
    for column, worst in most.items():
        what = f"{_LEARNT}{column}"
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
            yield _attribute(what, worst, found.cutoff, limit, over if column in over[:1] else [])


def _attribute(
    what: str, worst: outgoing.AttributeOnKey, cutoff: int, limit: float, over: list[str]
) -> Reason:
    figure, original = worst.judged or 0.0, worst.original
    shown = shown_share(figure, worst.records, cutoff, limit, named=True)
    few = 0 < round((original or 0.0) * worst.records) < smallest_shown(cutoff)
    before = "" if few or original is None else f"; {percentage(original)} in the original"
    where = f"are in cells on {worst.knows} where all have one value"
    if worst.right is not None:
        where = f"are in cells on {worst.knows} with one value in the release, which is their own"
    said = f"{shown} {where}, against a limit of {limit_percentage(limit)}{before}"
    if figure <= limit:
        return Reason(what, "met", said, figure, limit)
    whose = "its" if len(over) == 1 else "their"
    remedy = (
        f"Release fewer or coarser keys; drop {quoted(over, most=MOST_NAMED)} or change some of "
        f"{whose} values (pram, swap); or search for a release within the limit (sensitive and "
        f"homogeneous_limit in [solve] or [selection])."
    )
    return Reason(what, "not_met", said, figure, limit, remedy if over else None)


def _controlled(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    """Judge each attack with a control by its residual risk, and by how sure that is."""
    given, found = review.attacks, results.get(attacks.ATTACKS)
    if given is None:
        return
    if found is None or given.limit is None or found.unfit:
        said, remedy = "the attacks were not made yet", None
        if given.limit is None:
            said = "no limit is set"
            remedy = "Set limit in [attacks]: the highest acceptable residual risk."
        elif found is not None:
            said, remedy = found.unfit.rstrip("."), "Name other columns in [attacks]."
        yield Reason("Attacks with a control", "not_judged", said, None, given.limit, remedy)
        return
    for name in given.attacks:
        if name in found.not_made:
            yield Reason(ATTACK_TITLES[name], "met", found.not_made[name], 0.0, given.limit)
        elif name in found.worst:
            yield _residual(ATTACK_TITLES[name], found.worst[name], found, given.limit)


def _residual(what: str, one: Attack, found: attacks.ReleasedAttacks, limit: float) -> Reason:
    """Judge by the risk, and only where its whole interval agrees call the limit met."""
    smallest, ends = smallest_shown(found.cutoff), one.intervals["risk"]
    said, few = rates_said(one, smallest, limit), attacks.few_of(one, smallest)
    judged = partial(Reason, what, found=one.risk, limit=limit)
    other = "Name other columns in [attacks]."
    more = "Hold out more records, up to one half, or give a larger control."
    if one.success is None and found.control != "none" and what == ATTACK_TITLES["singled-out"]:
        return judged("met", "no predicate matches exactly one record of the release")
    if one.success is None or one.control is None:
        why = f"fewer than {LEAST_CONTROLS} people in the control could be attacked"
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
        return judged("not_judged", f"{said}: no risk can be added by the file", remedy=other)
    if ends is None or one.risk is None:
        # It may yet succeed more often on people of the file than on others.
        within = (one.success - one.control) / (1 - one.control) <= limit and one.of_all >= 0.5
        words = f"{said}: no better than the guess"
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
            f"but only {percentage(one.of_all)} of the people were counted, as many as there are "
            f"controls"
        )  # fmt: skip
        return judged("not_judged", f"{figures}, {doubt}; {said}", remedy=more)
    return judged("met", f"{figures}; {said}")


def released_rates(review: Review, results: Mapping[str, Any], metric: str) -> Rates | str:
    """Return the rates of an attack on what is released, or why there are none."""
    if attacks.study_stage(metric) not in results:
        return "the attack was not made yet"
    product = released_product(review, results)
    attacked = (metric, {made: release for release, made in _MADE.items()}.get(product))
    made, found = results.get(attacks.RELEASES), list[Rates | str]()
    if product == "file":
        found = [results[attacks.study_stage(metric)].rates]
    elif made is not None:
        found = [one.rates for one in made.found.rows if (one.metric, one.release) == attacked]
        found += [one.reason for one in made.unfit if (one.metric, one.release) == attacked]
    return found[0] if found else "the release was not attacked"


def _attacks(review: Review, results: Mapping[str, Any]) -> Iterator[Reason]:
    study = review.study
    if study is None:
        return
    for metric in study.metrics:
        what = f"Attack by {metric}: matches that are correct"
        rates = released_rates(review, results, metric)
        limit = study.limit
        if limit is None:
            yield Reason(what, "not_judged", "no limit is set", remedy="Set limit in [study].")
        elif isinstance(rates, str):
            yield Reason(what, "not_judged", rates, None, limit)
        elif rates.conditional_rate is None or rates.intervals["conditional_rate"] is None:
            yield Reason(what, "met", "no match is suspected", 0.0, limit)
        elif not results[attacks.study_stage(metric)].overlap.records:
            yield Reason(what, "not_judged", "the internal file has no true matches", None, limit)
        else:
            figures = (rates.conditional_rate, *rates.intervals["conditional_rate"])
            rate, low, high = (percentage_beside(x, limit) for x in figures)
            against = f"against a limit of {limit_percentage(limit)}"
            said = f"{rate} (95% interval {low} to {high}) {against}"
            met = figures[0] <= limit
            yield Reason(what, "met" if met else "not_met", said, figures[0], limit)


VERDICTS = {True: ("met", "Met"), False: ("unmet", "Not met"), None: ("unjudged", "Not judged")}
"""Whether something is met: how a page marks it, and its words."""


@dataclass(frozen=True, slots=True)
class Limit(Figures):
    """One limit: what was measured against it, and what would help where it is not met.

    `found` is None where no set at all is within the limit, or (`met` is None then) there was
    nothing to judge. That of the worst scenario names it; `of` is what would be released.
    """

    what: str
    limit: float
    found: float | None
    met: bool | None
    remedy: str | None = None
    scenario: str | None = None
    p_identification: tuple[float, float] | None = None
    of: Annotated[str, HIDDEN] = outgoing.AS_IT_IS

    @property
    def state(self) -> str:
        """How a page marks it: `met`, `unmet` or `unjudged`."""
        return VERDICTS[self.met][0]

    @property
    def verdict(self) -> str:
        """Whether it is met, in a word or two."""
        return VERDICTS[self.met][1]

    @property
    def said(self) -> str:
        """What was found beside the limit, with as many digits as tell the one from the other."""
        limit = limit_percentage(self.limit)
        if self.met is None:
            return f"nothing to compare with the limit of {limit}"
        if self.found is None:
            return f"no set is within the limit of {limit}"
        return f"{percentage_beside(self.found, self.limit)} against a limit of {limit}"


_MADE = {attacks.PROTECTED: "protection", attacks.IMPLICATE_1: "synthesis"}


def find_limits(review: Review, results: Mapping[str, Any]) -> Iterator[Limit]:
    """Compare what was found with the limits that the review sets."""
    limit, protected, study = review.exposure.limit, results.get("protection"), review.study
    if limit is not None:
        found, remedy = results["exposure"].rp, None
        if found > limit:
            best = results["fix"].best if "fix" in results else None
            remedy = "No change of a single variable was found."
            if best is not None:
                how = f"{best.action} {best.variable} ({best.detail})"
                how = f"leave out {best.variable}" if best.action == "drop" else how
                end = f"RP becomes {percentage_beside(best.rp, limit)} at a price of "
                end += f"{percentage(best.price)} in CR"
                start = "Cheapest fix" if best.meets else "No single change meets it. The nearest"
                remedy = f"{start}: {how}; {end}."
        what = f"RP({review.exposure.cutoff}) on the keys, the file as it is"
        yield Limit(what, limit, found, found <= limit, remedy)
        if "scenarios" in results:
            yield from _of_scenarios(review, results["scenarios"], limit)
    if review.selection is not None:
        yield _of_selection(review, results, review.selection.limit)
    if review.protection is not None and review.protection.limit is not None and protected:
        yield _of_protection(protected, review.protection.limit)
    if limit is not None and review.synthesis is not None and "remaining" in results:
        remaining, made = results["remaining"], outgoing.PRODUCT_NAMES["synthesis"]
        # The review's keys: the synthesis may have had others.
        for row in remaining.rows:
            if row.knows == outgoing.KEYS and row.product == made and row.rp is not None:
                still = None
                if row.still is not None:  # RP counts values that were made up too
                    few = row.still < smallest_shown(remaining.cutoff)
                    still = "Very few" if few else percentage(row.still / row.records)
                    still += " of the records are still unique with their original values."
                what = f"RP({remaining.cutoff}) on the keys, {made}"
                yield Limit(what, limit, row.rp, row.rp <= limit, still, of=made)
    if study is None or study.limit is None:
        return
    # Who is in both files is as in the attack on the file itself.
    overlaps = {name: results[attacks.study_stage(name)].overlap.records for name in study.metrics}
    for metric, overlap in overlaps.items():
        yield _of_study(metric, results[attacks.study_stage(metric)].rates, overlap, study.limit)
    releases = results.get(attacks.RELEASES)
    attacked = [] if releases is None else [
        *((row.release, row.metric, row.rates) for row in releases.found.rows),
        *((one.release, one.metric, one.reason) for one in releases.unfit),
    ]  # fmt: skip
    for release, metric, rates in attacked:
        if release in _MADE:
            yield _of_study(metric, rates, overlaps[metric], study.limit, _MADE[release])


def _of_scenarios(review: Review, stories: ScenarioStories, limit: float) -> Iterator[Limit]:
    """Compare the worst scenario; one that could not be measured is named, and not judged."""
    result, worst = stories.comparison, stories.comparison.worst
    if worst is not None:
        assert worst.exposure is not None
        assert worst.identification is not None
        name, rp, interval = worst.name, worst.exposure.rp, worst.identification.probability
        words = f"not estimable ({worst.identification.basis})"
        words = words if interval is None else " to ".join(map(percentage, interval))
        said = [f"p(identification) under {name!r} is {words}."]
        if worst.example:
            said.append("The scenario is an example, not a finding about this file.")
        if rp > limit and review.scenarios is not None and review.scenarios.chosen != name:
            said.append(f'To see what would help, run the review with keys = "scenario:{name}".')
        what = f"RP({result.cutoff}) under the worst scenario, {name!r}"
        yield Limit(what, limit, rp, rp <= limit, " ".join(said), name, interval)
    for part in (one for one in result.parts if one.exposure is None):
        why = f"Scenario {part.name!r} is not judged: {part.notes[-1]}."
        what = f"RP({result.cutoff}) under scenario {part.name!r}"
        yield Limit(what, limit, None, None, why, part.name)


def _of_protection(found: Protection, limit: float) -> Limit:
    """Compare the protected file; where every key is dropped nothing is left to be matched."""
    kept, after, told = found.ledger, found.after, found.read_off
    assert kept is not None
    reading = {
        "wildcard": ", a missing value matching every other",
        "drop": ", records with a missing key left out",
    }
    what = f"RP({kept.cutoff}) after protection{reading.get(kept.missing, '')}"
    made = outgoing.PRODUCT_NAMES["protection"]
    rp = after.rp if kept.rp is None and after is not None else kept.rp  # 0.1 did not keep it
    if rp is None:
        return Limit(what, limit, 0.0, True, "No key is left.", of=made)
    said = []
    if told is not None and (after is None or f"{told.rp:.4f}" != f"{after.rp:.4f}"):
        plain = "" if after is None else f"; without them RP would be {percentage(after.rp)}"
        said.append(f"This includes values recoverable from retained columns{plain}.")
    own = kept.last.rp_own
    if kept.missing == "wildcard" and own is not None and own > limit:
        own_words = percentage_beside(own, limit)
        said.append(f"With a missing value as a category of its own RP is {own_words}.")
    met, remedy, best = rp <= limit, " ".join(said) or None, kept.next_step
    if not met and best is not None:
        end = f"RP becomes {percentage_beside(best.rp, limit)}, and {percentage(best.price)} more "
        near = "" if best.meets else " That is not enough, but comes closest."
        remedy = f"Cheapest next step: {best.words}. {end}is lost.{near}"
    return Limit(what, limit, rp, met, remedy, of=made)


def _of_selection(review: Review, results: Mapping[str, Any], limit: float) -> Limit:
    assert review.selection is not None
    method, cutoff = review.selection.methods[0], review.exposure.cutoff
    what, made = f"RP({cutoff}) on the variables proposed ({method} selection)", "selection"
    found, remedy = None, better_in_words(review, results)
    if proposed_set(review, results) is not None:
        found = results["proposal"].rp
    elif remedy is None:
        remedy = "No candidate fits within the limit."
        if results[selection_stage(method)].within_limit is None:
            remedy = "The variables kept exceed the limit by themselves: keep fewer, or regroup "
            remedy += "them."
    met = found is not None and found <= limit
    return Limit(what, limit, found, met, remedy, of=outgoing.PRODUCT_NAMES[made])


def _of_study(
    metric: str, rates: Rates | str, overlap: int, limit: float, product: str = "file"
) -> Limit:
    """Compare the conditional rate; where no match is suspected there is none, and none to fear."""
    made = outgoing.PRODUCT_NAMES[product]
    what = f"Conditional rate of the study by {metric} (confirmed, of the suspected)"
    what += "" if product == "file" else f", on {made}"
    if isinstance(rates, str):
        return Limit(what, limit, None, None, f"Not judged: {rates}", of=made)
    found, interval = rates.conditional_rate, rates.intervals["conditional_rate"]
    if found is None or interval is None:
        return Limit(what, limit, 0.0, True, "No match is suspected.", of=made)
    if not overlap:
        why = "Not judged: the internal file has no true matches."
        return Limit(what, limit, None, None, why, of=made)
    doubt = None
    if found <= limit < interval[1]:
        reach = percentage_beside(interval[1], limit)
        doubt = f"Uncertain: the 95% interval of the rate reaches {reach}."
    return Limit(what, limit, found, found <= limit, doubt, of=made)
