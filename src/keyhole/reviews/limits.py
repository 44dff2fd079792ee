"""The limits of a review: which are met, and the cheapest fix where one is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN
from keyhole.environment.scenarios.identification import interval_shown
from keyhole.protection.results import Protection
from keyhole.reidentification.rates import Rates
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.digits import limit_percentage, percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import better_set, proposed_set, selection_stage, study_stage
from keyhole.reviews.stages.exposure import ScenarioStories
from keyhole.reviews.stages.outgoing import AS_IT_IS, KEYS, PRODUCT_NAMES
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES

VERDICTS = {True: ("met", "Met"), False: ("unmet", "Not met"), None: ("unjudged", "Not judged")}
"""Whether something is met: how a page marks it, and its words."""


@dataclass(frozen=True, slots=True)
class Limit(Figures):
    """One limit: what was measured against it, and what would help where it is not met.

    `found` is None where nothing could be measured: no set at all is within the limit, or (`met`
    is None then) there was nothing to judge. That of the worst scenario names it, and has
    p(identification) under it, the lowest and the highest. `of` is what would be released.
    """

    what: str
    limit: float
    found: float | None
    met: bool | None
    remedy: str | None = None
    scenario: str | None = None
    p_identification: tuple[float, float] | None = None
    of: Annotated[str, HIDDEN] = AS_IT_IS

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
            return f"nothing to be held against the limit of {limit}"
        if self.found is None:
            return f"no set is within the limit of {limit}"
        return f"{percentage_beside(self.found, self.limit)} against a limit of {limit}"


_MADE = {PROTECTED: "protection", IMPLICATE_1: "synthesis"}


def find_limits(review: Review, results: Mapping[str, Any]) -> tuple[Limit, ...]:
    """Compare what was found with the limits that the review sets."""
    return tuple(_limits(review, results))


def limits_by_product(limits: tuple[Limit, ...]) -> dict[str, list[Limit]]:
    """Return limits by what would be released, in the order of the work."""
    found: dict[str, list[Limit]] = {}
    for one in limits:
        found.setdefault(one.of, []).append(one)
    return found


def _limits(review: Review, results: Mapping[str, Any]) -> Iterator[Limit]:
    limit, protected, study = review.exposure.limit, results.get("protection"), review.study
    if limit is not None:
        found, remedy = results["exposure"].rp, None
        if found > limit:
            best = results["fix"].best if "fix" in results else None
            remedy = "No change of one variable was found."
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
        remaining, made = results["remaining"], PRODUCT_NAMES["synthesis"]
        # The review's keys: the synthesis may have had others.
        for row in remaining.rows:
            if row.knows == KEYS and row.product == made and row.rp is not None:
                still = None
                if row.still is not None:  # RP counts values that were made up too
                    few = row.still < smallest_shown(remaining.cutoff)
                    share = "Hardly any" if few else percentage(row.still / row.records)
                    still = (
                        f"{share} of the records are unique as before, with the values they had."
                    )
                what = f"RP({remaining.cutoff}) on the keys, {made}"
                yield Limit(what, limit, row.rp, row.rp <= limit, still, of=made)
    if study is None or study.limit is None:
        return
    for metric in study.metrics:
        found = results[study_stage(metric)]
        yield _of_study(metric, found.rates, found.overlap.records, study.limit)
    releases = results.get(RELEASES)
    for row in () if releases is None else releases.found.rows:
        if row.release in _MADE:
            # Who is in both files is as in the attack on the file itself.
            overlap = results[study_stage(row.metric)].overlap.records
            yield _of_study(row.metric, row.rates, overlap, study.limit, _MADE[row.release])
    for one in () if releases is None else releases.unfit:
        made = PRODUCT_NAMES[_MADE[one.release]]
        what, why = f"{_conditional(one.metric)}, on {made}", f"Not judged: {one.reason}"
        yield Limit(what, study.limit, None, None, why, of=made)


def _of_scenarios(review: Review, stories: ScenarioStories, limit: float) -> Iterator[Limit]:
    """Compare the worst scenario; one that could not be measured is named, and not judged."""
    result, worst = stories.comparison, stories.comparison.worst
    if worst is not None:
        assert worst.exposure is not None
        assert worst.identification is not None
        name, rp, identified = worst.name, worst.exposure.rp, worst.identification
        interval = identified.probability
        words = f"not estimable ({identified.basis})"
        words = words if interval is None else interval_shown(interval)
        said = [f"p(identification) under {name!r} is {words}."]
        if worst.example:
            said.append("The scenario is an example, not a finding about this file.")
        if rp > limit and review.scenarios is not None and review.scenarios.chosen != name:
            said.append(f'To see what would help, run the review with keys = "scenario:{name}".')
        what = f"RP({result.cutoff}) under the worst scenario, {name!r}"
        yield Limit(what, limit, rp, rp <= limit, " ".join(said), name, interval)
    for part in result.parts:
        if part.exposure is None:
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
    made = PRODUCT_NAMES["protection"]
    rp = after.rp if kept.rp is None and after is not None else kept.rp  # 0.1 did not keep it
    if rp is None:
        return Limit(what, limit, 0.0, True, "No key is left.", of=made)
    said = []
    if told is not None and (after is None or f"{told.rp:.4f}" != f"{after.rp:.4f}"):
        plain = "" if after is None else f"; without it RP would be {percentage(after.rp)}"
        said.append(f"This includes values recoverable from retained columns{plain}.")
    own = kept.last.rp_own
    if kept.missing == "wildcard" and own is not None and own > limit:
        own_words = percentage_beside(own, limit)
        said.append(f"With a missing value as a category of its own RP is {own_words}.")
    met, remedy, best = rp <= limit, " ".join(said) or None, kept.next_step
    if not met and best is not None:
        end = f"RP becomes {percentage_beside(best.rp, limit)}, and {percentage(best.price)} more "
        near = "" if best.meets else " That is not enough, but comes nearest."
        remedy = f"Cheapest next step: {best.words}. {end}is lost.{near}"
    return Limit(what, limit, rp, met, remedy, of=made)


def _of_selection(review: Review, results: Mapping[str, Any], limit: float) -> Limit:
    assert review.selection is not None
    method, cutoff = review.selection.methods[0], review.exposure.cutoff
    what, made = f"RP({cutoff}) on the variables proposed ({method} selection)", PRODUCT_NAMES
    better = better_in_words(review, results)
    if proposed_set(review, results) is None:
        within = results[selection_stage(method)].within_limit
        why = "No candidate fits within the limit."
        if within is None:
            why = "The variables kept exceed the limit by themselves: keep fewer, or regroup them."
        return Limit(what, limit, None, False, better or why, of=made["selection"])
    found = results["proposal"].rp
    return Limit(what, limit, found, found <= limit, better, of=made["selection"])


def better_in_words(review: Review, results: Mapping[str, Any]) -> str | None:
    """Say that the frontier has a better set than the one proposed, where it has."""
    better = better_set(review, results)
    if better is None or review.selection is None:
        return None
    method, limit = review.selection.methods[0], review.selection.limit
    start = f"The {method} selection's set is not the best within the limit"
    if proposed_set(review, results) is None:
        start = f"The {method} selection found none, but there is one"
    before = ""
    if "proposal" in results:
        before = f" instead of {percentage(results['proposal'].cr)}"
    return (
        f"{start}: the frontier has one with CR {percentage(better.cr)}{before}, at RP "
        f"{percentage_beside(better.rp, limit)} ({', '.join(better.variables)})."
    )


def _conditional(metric: str) -> str:
    return f"Conditional rate of the study by {metric} (confirmed, of the suspected)"


def _of_study(
    metric: str, rates: Rates, overlap: int, limit: float, product: str = "file"
) -> Limit:
    """Compare the conditional rate; where no match is suspected there is none, and none to fear."""
    made = PRODUCT_NAMES[product]
    what = _conditional(metric) + ("" if product == "file" else f", on {made}")
    found, interval = rates.conditional_rate, rates.intervals["conditional_rate"]
    if found is None or interval is None:
        return Limit(what, limit, 0.0, True, "No match is suspected.", of=made)
    if not overlap:
        why = "Not judged: the internal file has no true matches."
        return Limit(what, limit, None, None, why, of=made)
    doubt = None
    if found <= limit < interval[1]:
        reach = percentage_beside(interval[1], limit)
        doubt = f"Not beyond doubt: the 95 % interval of the rate reaches {reach}."
    return Limit(what, limit, found, found <= limit, doubt, of=made)
