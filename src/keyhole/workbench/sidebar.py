"""The sidebar: exposure now against the original, whatever page one is on."""

from __future__ import annotations

from dataclasses import dataclass

from keyhole.reviews.digits import rate
from keyhole.workbench.view import View

__all__ = ["Gauge", "gauges"]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure against its limit; `state` is how its result stands."""

    title: str
    detail: str
    value: float | None
    limit: float | None
    state: str

    @property
    def over(self) -> bool:
        """Whether it is above its limit."""
        return self.value is not None and self.limit is not None and self.value > self.limit


def gauges(view: View) -> list[Gauge]:
    """Return the figures of the sidebar: the file as it is, and each thing done to it."""
    review = view.review
    cutoff, limit = review.exposure.cutoff, review.exposure.limit
    on_keys = f"RP({cutoff}) on {len(review.keys)} keys"
    found = [_gauge(view, "exposure", "Original", on_keys, ("rp",), limit)]
    if review.selection is not None:
        found.append(_gauge(view, "proposal", "Variables proposed", f"RP({cutoff})", ("rp",),
                            review.selection.limit))  # fmt: skip
    if review.protection is not None:
        found.append(_gauge(view, "protection", "After protection", on_keys + _reading(view),
                            ("ledger", "rp"), review.protection.limit))  # fmt: skip
    if review.scenarios is not None:
        found.append(_worst_scenario(view, limit))
    if review.study is not None:
        stage = f"study-{review.study.metrics[0]}"
        detail = f"found of those suspected, {review.study.metrics[0]}"
        found.append(
            _gauge(view, stage, "Attack", detail, ("conditional_rate",), review.study.limit)
        )
    return found


def _reading(view: View) -> str:
    """Say how missing values are counted after protection, where it is not as in the original."""
    found = view.result("protection") or {}
    if found.get("ledger", {}).get("missing") != "wildcard":
        return ""
    own = found["ledger"]["lines"][-1].get("rp_own")
    return ", a missing value matching all" + ("" if own is None else f" (own: {rate(own)})")


def _gauge(
    view: View, stage: str, title: str, detail: str, at: tuple[str, ...], limit: float | None
) -> Gauge:
    value = view.result(stage)
    for name in at:
        value = None if value is None else value.get(name)
    shown = float(value) if isinstance(value, int | float) else None
    return Gauge(title, detail, shown, limit, view.standing(stage).state)


def _worst_scenario(view: View, limit: float | None) -> Gauge:
    found = view.result("scenarios") or {}
    state = view.standing("scenarios").state
    for one in found.get("scenarios", []):
        if one["scenario"] == found.get("worst"):
            return Gauge("Worst scenario", one["scenario"], one["exposure"]["rp"], limit, state)
    return Gauge("Worst scenario", "RP on its key", None, limit, state)
