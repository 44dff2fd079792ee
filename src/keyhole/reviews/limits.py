"""The limits of a review: which are met, and the cheapest fix where one is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import better_set, proposed_set, selection_stage, study_stage
from keyhole.reviews.stages.releases import PROTECTED, RELEASES

__all__ = ["Limit", "better_in_words", "find_limits"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what was measured against it, and what would help where it is not met.

    `found` is None where nothing could be measured: no set at all is within the limit.
    """

    what: str
    limit: float
    found: float | None
    met: bool
    remedy: str | None = None

    @property
    def shown(self) -> str:
        """What was found, with as many digits as tell it from the limit."""
        if self.found is None:
            return "nothing"
        for digits in range(1, 6):
            text = f"{100 * self.found:.{digits}f}"
            if float(text) != 100 * self.limit:
                break
        return f"{text}%"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return asdict(self)


def find_limits(review: Review, results: Mapping[str, Mapping[str, Any]]) -> tuple[Limit, ...]:
    """Compare what was found with the limits that the review sets."""
    limits = []
    if review.exposure.limit is not None:
        limits.append(_of_keys(review, results, review.exposure.limit))
    if review.selection is not None:
        limits.append(_of_selection(review, results, review.selection.limit))
    if review.protection is not None and review.protection.limit is not None:
        limits.append(_of_protection(results["protection"], review.protection.limit))
    if review.study is not None and review.study.limit is not None:
        for metric in review.study.metrics:
            limits.append(_of_study(metric, results[study_stage(metric)], review.study.limit))
        limits += _of_implicate(results.get(RELEASES), review.study.limit)
    return tuple(limits)


def _of_keys(review: Review, results: Mapping[str, Mapping[str, Any]], limit: float) -> Limit:
    found = results["exposure"]["rp"]
    remedy = None
    if found > limit:
        best = results["fix"]["best"] if "fix" in results else None
        remedy = "No change of one variable was found." if best is None else _remedy(best)
    what = f"RP({review.exposure.cutoff}) on the keys, the file as it is"
    return Limit(what, limit, found, found <= limit, remedy)


def _of_protection(result: Mapping[str, Any], limit: float) -> Limit:
    """Compare the protected file; where every key is dropped nothing is left to be matched."""
    found, kept = result["ledger"], result["after"]
    reading = {
        "wildcard": ", a missing value matching every other",
        "drop": ", records with a missing key left out",
    }
    what = f"RP({found['cutoff']}) after protection{reading.get(found['missing'], '')}"
    if kept is None:
        return Limit(what, limit, 0.0, True, "No key is left.")
    met, remedy = kept["rp"] <= limit, None
    if not met and found["next_steps"]:
        best = found["next_steps"][0]
        end = f"RP becomes {best['rp']:.4f}, and {percentage(best['price'])} more is lost"
        near = "" if best["meets"] else " That is not enough, but comes nearest."
        remedy = f"Cheapest next step: {best['words']}. {end}.{near}"
    return Limit(what, limit, kept["rp"], met, remedy)


def _remedy(best: Mapping[str, Any]) -> str:
    change = f"{best['action']} {best['variable']} ({best['detail']})"
    if best["action"] == "drop":
        change = f"leave out {best['variable']}"
    end = f"RP becomes {best['rp']:.4f} at a price of {best['price']:.4f} in CR"
    if best["meets"]:
        return f"Cheapest fix: {change}; {end}."
    return f"No single change meets it. The nearest: {change}; {end}."


def _of_selection(review: Review, results: Mapping[str, Mapping[str, Any]], limit: float) -> Limit:
    assert review.selection is not None
    method, cutoff = review.selection.methods[0], review.exposure.cutoff
    what = f"RP({cutoff}) on the variables proposed ({method} selection)"
    if proposed_set(review, results) is None:
        within = results[selection_stage(method)]["within_limit"]
        why = (
            "No candidate fits within the limit."
            if within is not None
            else "The variables kept exceed the limit by themselves: keep fewer, or regroup them."
        )
        return Limit(what, limit, None, False, better_in_words(review, results) or why)
    found = results["proposal"]["rp"]
    return Limit(what, limit, found, found <= limit, better_in_words(review, results))


def better_in_words(review: Review, results: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Say that the frontier has a better set than the one proposed, where it has."""
    better = better_set(review, results)
    if better is None or review.selection is None:
        return None
    start = f"The {review.selection.methods[0]} selection's set is not the best within the limit"
    if proposed_set(review, results) is None:
        start = f"The {review.selection.methods[0]} selection found none, but there is one"
    before = "" if "proposal" not in results else f" instead of {results['proposal']['cr']:.4f}"
    return (
        f"{start}: the frontier has one with CR {better['cr']:.4f}{before}, at RP "
        f"{better['rp']:.4f} ({', '.join(better['variables'])})."
    )


def _of_implicate(result: Mapping[str, Any] | None, limit: float) -> list[Limit]:
    """Compare the conditional rates of the same attack on what the synthesis made."""
    rows = () if result is None else result["comparison"]
    return [
        _of_study(row["metric"], row, limit, ", on implicate 1 of the synthesis")
        for row in rows
        if row["release"] == PROTECTED
    ]


def _of_study(metric: str, result: Mapping[str, Any], limit: float, where: str = "") -> Limit:
    """Compare the conditional rate; where nobody is suspected there is none, and none to fear."""
    what = f"Conditional rate of the study by {metric} (confirmed, of the suspected){where}"
    found = result["conditional_rate"]
    if found is None:
        return Limit(what, limit, 0.0, True, "Nobody is suspected.")
    if "overlap" in result and not result["overlap"]["records"]:
        return Limit(what, limit, None, False, "Not judged: the IUF names nobody to be confirmed.")
    high = result["intervals"]["conditional_rate"][1]
    doubt = None
    if found <= limit < high:
        doubt = f"Not beyond doubt: the rate's 95% interval reaches {percentage(high)}."
    return Limit(what, limit, found, found <= limit, doubt)
