"""The command and the Python line that set the scenarios of a review side by side."""

from __future__ import annotations

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.workbench.commands import review_lines
from keyhole.workbench.environments import environment_place
from keyhole.workbench.page import View

__all__ = ["scenario_lines"]


def scenario_lines(view: View, own: tuple[str, ...]) -> list[Equivalent]:
    """Write how scenarios of the environment are measured; the review's own need the review."""
    settings = view.review.scenarios
    if settings is None:
        return []
    stored = [name for name in settings.names if name not in own]
    same = [_measured(view, stored)] if stored else []
    if own or not stored:
        same.append(review_lines(view.project.path.name, view.project.results.name))
    return same


def _measured(view: View, names: list[str]) -> Equivalent:
    settings = view.review.scenarios
    assert settings is not None
    place = environment_place(view.project, settings.store)
    review = view.review
    asked = {
        "scenario": names, "store": place.name, "target": settings.target,
        "cutoff": review.exposure.cutoff,
    }  # fmt: skip
    return equivalent("risk", asked, review.data.file, review.data.reading())
