"""The limits of a review: which are met, and the cheapest fix where one is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from keyhole.reviews.settings import Review
from keyhole.reviews.stages import proposed_set, selection_stage

__all__ = ["Limit", "find_limits"]


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
    return tuple(limits)


def _of_keys(review: Review, results: Mapping[str, Mapping[str, Any]], limit: float) -> Limit:
    found = results["exposure"]["rp"]
    remedy = None
    if found > limit:
        best = results["fix"]["best"] if "fix" in results else None
        remedy = "No change of one variable was found." if best is None else _remedy(best)
    what = f"RP({review.exposure.cutoff}) on the keys, the file as it is"
    return Limit(what, limit, found, found <= limit, remedy)


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
        return Limit(what, limit, None, False, why)
    found = results["proposal"]["rp"]
    return Limit(what, limit, found, found <= limit)
