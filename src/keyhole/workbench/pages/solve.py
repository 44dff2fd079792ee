"""Solve: the best release within the limits, and taking another of its Pareto points."""

from __future__ import annotations

from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.options import Question
from keyhole.errors import OptionError
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View, leaving

MAIN = ("limit", "suppress", "remove", "must")
"""The options that are always in sight, in this order."""


def _context(view: View) -> dict[str, Any]:
    asked, review = _asked(view), view.review
    given = {**asked.values, "cutoff": review.exposure.cutoff, "weight": review.exposure.weight}
    return {
        "columns": [one for one in view.data.variables if one.name in asked.keys],
        "main_fields": sorted(form_fields(asked, MAIN), key=lambda one: MAIN.index(one.name)),
        "other_fields": form_fields(asked, but=MAIN),
        "solution": view.result("solve"),
        "plane": _plane(view),
        "released": "solve" in (review.release.steps or ()),
        "equivalents": [view.verb_lines("solve", given)] if review.solve else [],
    }


def _asked(view: View) -> Question:
    """Return the question of the best release, or what one would begin with."""
    review = view.review
    if review.solve is not None:
        return review.solve
    limit = 0.05 if review.exposure.limit is None else review.exposure.limit
    offered = [name for name in review.keys if name in view.data.names]
    return question_of("solve", {"keys": offered, "limit": limit})


def _plane(view: View) -> list[dict[str, Any]]:
    """Return the Pareto points with their risk and utility, for the plane that is drawn of them."""
    solution, released = view.result("solve"), "solve" in (view.review.release.steps or ())
    points = () if solution is None else solution.frontier
    return [
        {"of": "frontier", "place": f"release {len(points) - at}", "token": at, "rp": one.rp,
         "cr": one.utility, "variables": ", ".join(column.level for column in one.columns),
         "taken": released and at == len(points) - 1}
        for at, one in enumerate(points)
    ]  # fmt: skip


def _search(view: View, form: SentForm) -> ReviewChange:
    now = _asked(view).values

    def edit(document: TOMLDocument) -> None:
        take_fields(document, "solve", SECTIONS["solve"], form, now=now)
        editing.release_by(document, "solve")

    return ReviewChange("the best release", edit)


def _take(view: View, form: SentForm) -> ReviewChange:
    """Make the figures of a Pareto point the limits: it is the best release there."""
    solution, chosen = view.result("solve"), form.number("set")
    points = () if solution is None else solution.frontier
    if not isinstance(chosen, int) or not 0 <= chosen < len(points):
        raise OptionError("that release is not among the results any more. Take one shown now.")

    def edit(document: TOMLDocument) -> None:
        point = points[chosen]
        editing.put_setting(document, "solve", "limit", point.rp)
        for name, many in (("suppress", point.suppressed), ("remove", point.removed)):
            editing.put_setting(document, "solve", name, many / solution.records or None)
        editing.release_by(document, "solve")

    return ReviewChange("take another release", edit)


SOLVE = Page(
    "solve",
    "Solve",
    ("solve", "protection", "outgoing"),
    _context,
    {"search": _search, "take": _take, "leave": leaving("no search for the best release", "solve")},
)
