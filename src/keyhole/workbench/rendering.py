"""Page rendering: templates, which escape all text, and the gauges of the sidebar."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from keyhole.reviews.digits import limit_percentage, rate
from keyhole.reviews.rendering import page_environment
from keyhole.workbench.page import View

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = page_environment(jinja2.FileSystemLoader(_HERE / "templates"))
    environment.filters["percent"] = _percent
    environment.filters["rate"] = rate
    environment.filters["limit"] = limit_percentage
    environment.filters["zip_same"] = lambda names: [(name, name) for name in names]
    return environment


def _percent(value: Any) -> str:
    """Write a share as the number of percent that a form's field holds."""
    if not isinstance(value, int | float):
        return value or ""  # what was typed instead
    return f"{100 * value:.10g}"


def render(template: str, **context: Any) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**context)


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
    asked: list[tuple[Any, ...]] = [("exposure", "Original", on_keys, ("rp",), limit)]
    if review.selection is not None:
        words = ("Variables proposed", f"RP({cutoff})")
        asked.append(("proposal", *words, ("rp",), review.selection.limit))
    if review.protection is not None:
        words = ("After protection", on_keys + _missing_words(view.result("protection")))
        asked.append(("protection", *words, ("ledger", "rp"), review.protection.limit))
    if review.scenarios is not None:
        found = view.result("scenarios")
        worst = None if found is None else found.comparison.worst
        words = ("Worst scenario", "RP on its key" if worst is None else worst.name)
        asked.append(("scenarios", *words, ("comparison", "worst", "exposure", "rp"), limit))
    if review.study is not None:
        metric = review.study.metrics[0]
        words = ("Attack", f"found of those suspected, {metric}")
        asked.append((f"study-{metric}", *words, ("conditional_rate",), review.study.limit))
    return [_gauge(view, *one) for one in asked]


def _missing_words(found: Any) -> str:
    """Say how missing values are counted after protection, where it is not as in the original."""
    if found is None or found.ledger.missing != "wildcard":
        return ""
    own = found.ledger.last.rp_own
    return ", a missing value matching all" + ("" if own is None else f" (own: {rate(own)})")


def _gauge(
    view: View, stage: str, title: str, detail: str, at: tuple[str, ...], limit: float | None
) -> Gauge:
    value = view.result(stage)
    for name in at:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    shown = float(value) if isinstance(value, int | float) else None
    return Gauge(title, detail, shown, limit, view.standing(stage).state)
