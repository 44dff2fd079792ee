"""The limits of a review: which are met, and the cheapest fix where one is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.codec import Figures
from keyhole.environment.scenarios.identification import interval_shown
from keyhole.exposure.fix import Fix
from keyhole.exposure.scenarios import ScenarioExposure
from keyhole.protection.results import Ledger, Protection
from keyhole.reidentification.rates import Rates
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.digits import limit_percentage, percentage_beside, share_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import better_set, proposed_set, selection_stage, study_stage
from keyhole.reviews.stages.exposure import ScenarioStories
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES
from keyhole.reviews.stages.remaining import KEYS, PRODUCT_NAMES, KeyOnProduct, Remaining

VERDICTS = {True: ("met", "Met"), False: ("unmet", "Not met"), None: ("unjudged", "Not judged")}
"""Whether something is met: how a page marks it, and its words."""


@dataclass(frozen=True, slots=True)
class Limit(Figures):
    """One limit: what was measured against it, and what would help where it is not met.

    `found` is None where nothing could be measured: no set at all is within the limit, or (`met`
    is None then) there was nothing to judge. That of the worst scenario names it, and tells
    p(identification) under it, the lowest and the highest.
    """

    what: str
    limit: float
    found: float | None
    met: bool | None
    remedy: str | None = None
    scenario: str | None = None
    p_identification: tuple[float, float] | None = None

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

    @property
    def rate(self) -> str:
        """What was found as a fraction, likewise."""
        return "not estimable" if self.found is None else share_beside(self.found, self.limit)


def find_limits(review: Review, results: Mapping[str, Any]) -> tuple[Limit, ...]:
    """Compare what was found with the limits that the review sets."""
    limits = []
    if review.exposure.limit is not None:
        limits.append(_of_keys(review, results, review.exposure.limit))
        limits += _of_scenarios(review, results.get("scenarios"), review.exposure.limit)
    if review.selection is not None:
        limits.append(_of_selection(review, results, review.selection.limit))
    protected = results.get("protection")
    if review.protection is not None and review.protection.limit is not None and protected:
        limits.append(_of_protection(protected, review.protection.limit))
    if review.exposure.limit is not None and review.synthesis is not None:
        limits += _of_synthesis(results.get("remaining"), review.exposure.limit)
    if review.study is not None and review.study.limit is not None:
        for metric in review.study.metrics:
            study = results[study_stage(metric)]
            what, overlap = _conditional(metric), study.overlap.records
            limits.append(_of_study(what, study.rates, overlap, review.study.limit))
        limits += _of_made(results, review.study.limit)
    return tuple(limits)


def _of_keys(review: Review, results: Mapping[str, Any], limit: float) -> Limit:
    found = results["exposure"].rp
    remedy = None
    if found > limit:
        best = results["fix"].best if "fix" in results else None
        remedy = "No change of one variable was found." if best is None else _remedy(best)
    what = f"RP({review.exposure.cutoff}) on the keys, the file as it is"
    return Limit(what, limit, found, found <= limit, remedy)


def _of_scenarios(review: Review, stories: ScenarioStories | None, limit: float) -> list[Limit]:
    """Compare the worst scenario; one that could not be measured is told, and not judged."""
    if stories is None:
        return []
    result = stories.comparison
    found = [
        Limit(
            f"RP({result.cutoff}) under scenario {part.name!r}", limit, None, None,
            f"Scenario {part.name!r} is not judged: {part.notes[-1]}.", part.name,
        )
        for part in result.parts
        if part.exposure is None
    ]  # fmt: skip
    worst = result.worst
    return found if worst is None else [_of_worst(review, worst, result.cutoff, limit), *found]


def _of_worst(review: Review, worst: ScenarioExposure, cutoff: int, limit: float) -> Limit:
    assert worst.exposure is not None
    assert worst.identification is not None
    name, rp, identified = worst.name, worst.exposure.rp, worst.identification
    interval = identified.probability
    words = f"not estimable ({identified.basis})" if interval is None else interval_shown(interval)
    said = [f"p(identification) under {name!r} is {words}."]
    if worst.example:
        said.append("The scenario is an example, not a finding about this file.")
    if rp > limit and review.scenarios is not None and review.scenarios.chosen != name:
        said.append(f'To see what would help, run the review with keys = "scenario:{name}".')
    return Limit(
        what=f"RP({cutoff}) under the worst scenario, {name!r}",
        limit=limit,
        found=rp,
        met=rp <= limit,
        remedy=" ".join(said),
        scenario=name,
        p_identification=interval,
    )


def _of_protection(found: Protection, limit: float) -> Limit:
    """Compare the protected file; where every key is dropped nothing is left to be matched."""
    kept, after = found.ledger, found.after
    assert kept is not None
    reading = {
        "wildcard": ", a missing value matching every other",
        "drop": ", records with a missing key left out",
    }
    what = f"RP({kept.cutoff}) after protection{reading.get(kept.missing, '')}"
    rp = after.rp if kept.rp is None and after is not None else kept.rp  # 0.1 did not keep it
    if rp is None:
        return Limit(what, limit, 0.0, True, "No key is left.")
    met, remedy, best = rp <= limit, _as_read(found, kept, limit), kept.next_step
    if not met and best is not None:
        end = f"RP becomes {best.rp:.4f}, and {percentage(best.price)} more is lost"
        near = "" if best.meets else " That is not enough, but comes nearest."
        remedy = f"Cheapest next step: {best.words}. {end}.{near}"
    return Limit(what, limit, rp, met, remedy)


def _of_synthesis(result: Remaining | None, limit: float) -> list[Limit]:
    """Compare the first implicate on the review's keys; the synthesis may have had others."""
    if result is None:
        return []
    return [
        Limit(
            f"RP({result.cutoff}) on the keys, {row.product}",
            limit, row.rp, row.rp <= limit, _still_unique(row, result.cutoff),
        )
        for row in result.rows
        if row.knows == KEYS and row.product == PRODUCT_NAMES["synthesis"] and row.rp is not None
    ]  # fmt: skip


def _still_unique(row: KeyOnProduct, cutoff: int) -> str | None:
    """Say how many are unique as before: RP counts values that were made up too."""
    if row.still is None:
        return None
    few = row.still < smallest_shown(cutoff)
    share = "Hardly any" if few else percentage(row.still / row.records)
    return f"{share} of the records are unique as before, with the values they had."


def _as_read(found: Protection, kept: Ledger, limit: float) -> str | None:
    """Say what the figure rests on: what can be read off, or that a missing value matches all."""
    told, after, said = found.read_off, found.after, []
    if told is not None and (after is None or f"{told.rp:.4f}" != f"{after.rp:.4f}"):
        plain = "" if after is None else f"; without it RP would be {after.rp:.4f}"
        said.append(f"This is with what columns that stay tell of others{plain}.")
    own = kept.last.rp_own
    if kept.missing == "wildcard" and own is not None and own > limit:
        said.append(f"With a missing value as a category of its own RP is {own:.4f}.")
    return " ".join(said) or None


def _remedy(best: Fix) -> str:
    change = f"{best.action} {best.variable} ({best.detail})"
    if best.action == "drop":
        change = f"leave out {best.variable}"
    end = f"RP becomes {best.rp:.4f} at a price of {best.price:.4f} in CR"
    if best.meets:
        return f"Cheapest fix: {change}; {end}."
    return f"No single change meets it. The nearest: {change}; {end}."


def _of_selection(review: Review, results: Mapping[str, Any], limit: float) -> Limit:
    assert review.selection is not None
    method, cutoff = review.selection.methods[0], review.exposure.cutoff
    what = f"RP({cutoff}) on the variables proposed ({method} selection)"
    if proposed_set(review, results) is None:
        within = results[selection_stage(method)].within_limit
        why = (
            "No candidate fits within the limit."
            if within is not None
            else "The variables kept exceed the limit by themselves: keep fewer, or regroup them."
        )
        return Limit(what, limit, None, False, better_in_words(review, results) or why)
    found = results["proposal"].rp
    return Limit(what, limit, found, found <= limit, better_in_words(review, results))


def better_in_words(review: Review, results: Mapping[str, Any]) -> str | None:
    """Say that the frontier has a better set than the one proposed, where it has."""
    better = better_set(review, results)
    if better is None or review.selection is None:
        return None
    start = f"The {review.selection.methods[0]} selection's set is not the best within the limit"
    if proposed_set(review, results) is None:
        start = f"The {review.selection.methods[0]} selection found none, but there is one"
    before = "" if "proposal" not in results else f" instead of {results['proposal'].cr:.4f}"
    return (
        f"{start}: the frontier has one with CR {better.cr:.4f}{before}, at RP "
        f"{better.rp:.4f} ({', '.join(better.variables)})."
    )


def _of_made(results: Mapping[str, Any], limit: float) -> list[Limit]:
    if RELEASES not in results:
        return []
    found = []
    for row in results[RELEASES].found.rows:
        if row.release in _MADE:
            # Who is in both files is as in the attack on the file itself.
            overlap = results[study_stage(row.metric)].overlap.records
            what = _conditional(row.metric, _MADE[row.release])
            found.append(_of_study(what, row.rates, overlap, limit))
    for one in results[RELEASES].unfit:
        what = _conditional(one.metric, _MADE[one.release])
        found.append(Limit(what, limit, None, None, f"Not judged: {one.reason}"))
    return found


_MADE = {PROTECTED: ", on the protected file", IMPLICATE_1: ", on implicate 1 of the synthesis"}


def _conditional(metric: str, where: str = "") -> str:
    return f"Conditional rate of the study by {metric} (confirmed, of the suspected){where}"


def _of_study(what: str, rates: Rates, overlap: int, limit: float) -> Limit:
    """Compare the conditional rate; where nobody is suspected there is none, and none to fear."""
    found, interval = rates.conditional_rate, rates.intervals["conditional_rate"]
    if found is None or interval is None:
        return Limit(what, limit, 0.0, True, "Nobody is suspected.")
    if not overlap:
        return Limit(what, limit, None, None, "Not judged: the IUF names nobody to be confirmed.")
    doubt = None
    if found <= limit < interval[1]:
        reach = percentage_beside(interval[1], limit)
        doubt = f"Not beyond doubt: the rate's 95% interval reaches {reach}."
    return Limit(what, limit, found, found <= limit, doubt)
