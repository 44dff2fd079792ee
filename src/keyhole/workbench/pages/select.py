"""Select: which variables can go out, step by step, and taking one of the sets found."""

from __future__ import annotations

from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.core.kinds import Candidates, alternatives
from keyhole.core.options import Question
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.settings import Review, resolve_selection
from keyhole.selection.result import ASSUMPTION
from keyhole.selection.search import METHODS
from keyhole.workbench import editing
from keyhole.workbench.editing import in_former_order
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View
from keyhole.workbench.taking import frontier_sets, path_of, released, take

__all__ = ["SELECT"]

Groups = tuple[tuple[str, ...], ...]
KIND = Candidates()
METHOD = SECTIONS["selection"]["method"].kind
STAGES = (
    *(f"selection-{method}" for method in METHODS),
    "comparison", "frontier", "proposal", "alternative", "paths",
)  # fmt: skip
# Columns of these roles are nothing that an analyst chooses.
NOT_OFFERED = ("identifier", "household", "weight", "drop")


MAIN = ("limit", "skip_dependent")
"""The options that are always in sight."""
APART = ("keep", "candidates", "method", "methods")
"""The options with fields of their own: boxes of columns, lines of alternatives, and methods."""


def _context(view: View) -> dict[str, Any]:
    review, chosen = view.review, _chosen(view)
    named = {name for group in chosen.candidates for name in group} | set(chosen.keep)
    taken = released(view)
    return {
        "chosen": chosen,
        "columns": [
            one for one in view.data.variables if one.name in named or one.role not in NOT_OFFERED
        ],
        "single": [name for group in chosen.candidates for name in group],
        "alternatives": [KIND.write([group]) for group in chosen.candidates if len(group) > 1],
        "methods": METHODS,
        "main_fields": form_fields(chosen, MAIN),
        "other_fields": form_fields(
            chosen, [name for name in SECTIONS["selection"] if name not in (*MAIN, *APART)]
        ),
        "frontier_fields": form_fields(review.frontier or question_of("frontier", {}), ["seconds"]),
        "assumption": ASSUMPTION,
        "searches": [(method, path_of(view, method)) for method in chosen.methods],
        "sets": frontier_sets(view),
        "frontier": view.result("frontier"),
        "taken": None if taken is None else [n for n in view.data.names if n in taken],
        "equivalents": _equivalents(review) if review.selection else [],
    }


def _chosen(view: View) -> Question:
    """Return the selection, or what one would begin with."""
    review = view.review
    if review.selection is not None:
        return review.selection
    limit = 0.1 if review.exposure.limit is None else review.exposure.limit
    offered = tuple(name for name in review.keys if name in view.data.names)
    return resolve_selection({"limit": limit}, offered)


def _search(view: View, form: SentForm) -> ReviewChange:
    """Take the form; what it does not show, and what it leaves as it was, stays unsaid."""
    now, chosen = view.review.selection, _chosen(view)
    groups, methods = _groups(form, chosen.candidates), _methods(form)
    keep = in_former_order(form.texts("keep"), view.review.keys if now is None else now.keep)
    known = {name: p for name, p in SECTIONS["selection"].items() if name not in APART}

    def edit(document: TOMLDocument) -> None:
        if now is None or groups != now.candidates:
            editing.put_setting(document, "selection", "candidates", KIND.shortest(groups))
        if now is None or methods != now.methods:
            editing.remove_setting(document, "selection", "methods")
            editing.put_setting(document, "selection", "method", METHOD.shortest(methods))
        take_fields(document, "selection", known, form)
        editing.put_setting(document, "selection", "keep", keep)
        if form.flag("frontier"):
            take_fields(document, "frontier", {"seconds": SECTIONS["frontier"]["seconds"]}, form)
        else:
            editing.remove_setting(document, "frontier")

    return ReviewChange("the search for variables", edit)


def _methods(form: SentForm) -> tuple[str, ...]:
    """Return the methods ticked, the one that proposes leading."""
    first = form.text("first")
    return tuple(dict.fromkeys([*([first] if first else []), *form.texts("methods")]))


def _groups(form: SentForm, before: Groups) -> Groups:
    """Return the candidates in groups of alternatives; those there before keep their order."""
    lines = (form.text("alternatives") or "").splitlines()
    groups = [tuple(one.strip() for one in alternatives(line)) for line in lines if line.strip()]
    several = {name for group in groups for name in group}
    groups += [(name,) for name in form.texts("candidates") if name not in several]
    order = {name: place for place, group in enumerate(before) for name in group}
    return tuple(
        sorted(groups, key=lambda group: min(order.get(name, len(order)) for name in group))
    )


def _leave(view: View, form: SentForm) -> ReviewChange:  # noqa: ARG001
    def edit(document: TOMLDocument) -> None:
        editing.remove_setting(document, "selection")
        editing.remove_setting(document, "frontier")

    return ReviewChange("no search for variables", edit)


def _equivalents(review: Review) -> list[Equivalent]:
    chosen, found = review.selection, review.frontier
    assert chosen is not None
    file, reading = review.data.file, review.data.reading()
    asked = {**chosen.values, "cutoff": review.exposure.cutoff}
    same = []
    for method in chosen.methods:
        drop = chosen.drop_limit if method == "stepwise" else None
        values = {**asked, "method": method, "drop_limit": drop}
        same.append(equivalent("select", values, file, reading))
    if found is not None:
        same.append(equivalent("frontier", {**asked, **found.values}, file, reading))
    return same


SELECT = Page(
    "select",
    "Select",
    STAGES,
    _context,
    {"search": _search, "take": take, "leave": _leave},
)
