"""Select: which variables can go out, step by step, and taking one of the sets found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent
from keyhole.core.kinds import Candidates, alternatives
from keyhole.core.options import Question
from keyhole.errors import OptionError
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.settings import resolve_selection
from keyhole.reviews.stages.selection import selection_stage
from keyhole.reviews.store import digest
from keyhole.selection.frontier import Frontier
from keyhole.selection.result import ASSUMPTION, Selection
from keyhole.selection.search import METHODS
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Action, Page, ReviewChange, SentForm, View, leaving

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
    single = [name for group in chosen.candidates for name in group]
    named, taken = {*single, *chosen.keep}, released(view)
    return {
        "chosen": chosen,
        "columns": [
            one for one in view.data.variables if one.name in named or one.role not in NOT_OFFERED
        ],
        "single": single,
        "alternatives": [KIND.write([group]) for group in chosen.candidates if len(group) > 1],
        "methods": METHODS,
        "main_fields": form_fields(chosen, MAIN),
        "other_fields": form_fields(chosen, but=(*MAIN, *APART)),
        "frontier_fields": form_fields(review.frontier or question_of("frontier", {}), ["seconds"]),
        "assumption": ASSUMPTION,
        "searches": [(method, path_of(view, method)) for method in chosen.methods],
        "sets": frontier_sets(view),
        "plane": _plane(view, chosen),
        "frontier": view.result("frontier"),
        "taken": None if taken is None else [n for n in view.data.names if n in taken],
        "equivalents": _equivalents(view) if review.selection else [],
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
    groups = _groups(form, chosen.candidates)
    # The method that proposes leads.
    methods = tuple(dict.fromkeys([*form.texts("first"), *form.texts("methods")]))
    keep = editing.in_former_order(
        form.texts("keep"), view.review.keys if now is None else now.keep
    )
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


def _groups(form: SentForm, before: Groups) -> Groups:
    """Return the candidates in groups of alternatives; those there before keep their order."""
    lines = (form.text("alternatives") or "").splitlines()
    groups = [tuple(one.strip() for one in alternatives(line)) for line in lines if line.strip()]
    several = {name for group in groups for name in group}
    groups += [(name,) for name in form.texts("candidates") if name not in several]
    order = {name: place for place, group in enumerate(before) for name in group}
    places = {group: min(order.get(name, len(order)) for name in group) for group in groups}
    return tuple(sorted(groups, key=lambda group: places[group]))


def _equivalents(view: View) -> list[Equivalent]:
    chosen, found = view.review.selection, view.review.frontier
    assert chosen is not None
    asked = {**chosen.values, "cutoff": view.review.exposure.cutoff}
    drops = [chosen.drop_limit if method == "stepwise" else None for method in chosen.methods]
    ways = zip(chosen.methods, drops, strict=True)
    same = [view.verb_lines("select", {**asked, "method": m, "drop_limit": d}) for m, d in ways]
    more = [] if found is None else [view.verb_lines("frontier", {**asked, **found.values})]
    return same + more


# Of the frontier's sets, the largest CR first; the rest is in the table of `keyhole frontier`.
MOST_SETS = 25
BEST = {"cr": "most detail", "size": "most variables", "value": "most value"}


@dataclass(frozen=True, slots=True)
class FoundSet:
    """A set of variables, where it was found, and what it would mean to release it."""

    place: str
    words: str
    entered: str | None
    removed: str | None
    variables: tuple[str, ...]
    rp: float | None
    cr: float | None
    ratio: float | None = None
    tags: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        """What a form names it by: the set itself, wherever it stands in a newer result."""
        return digest(sorted(self.variables))[:24]


def path_of(view: View, method: str) -> list[FoundSet]:
    """Return the steps of a method's path."""
    result: Selection | None = view.result(selection_stage(method))
    if result is None:
        return []
    within, taken = result.within_limit, released(view)
    found: list[FoundSet] = []
    for number, step in enumerate(result.steps, 1):
        enters = step.variable in step.variables
        found.append(
            FoundSet(
                f"step {number} of {method}", step.step, step.variable if enters else None,
                None if enters else step.variable, step.variables, step.rp, step.cr, step.ratio,
                _tags(step.variables, within, taken),
            )
        )  # fmt: skip
    if within is not None and not any(set(one.variables) == set(within) for one in found):
        # The set within the limit is no step where backward stops just above the limit.
        end = result.stopped
        follows = method == "backward" and end.reason == "limit" and end.variable not in within
        last = (end.variable, within, end.rp, end.cr) if follows else (None, within, None, None)
        tags = _tags(within, within, taken)
        found.append(FoundSet(f"the end of {method}", "end", None, *last, tags=tags))
    return found


def frontier_sets(view: View) -> list[FoundSet]:
    """Return the sets of the frontier, those that are best at something first."""
    result: Frontier | None = view.result("frontier")
    if result is None:
        return []
    taken, found = released(view), []
    best = {kind: set(one.variables) for kind, one in result.best.items() if one is not None}
    for number, one in enumerate(result.sets, 1):
        tags = [words for kind, words in BEST.items() if best.get(kind) == set(one.variables)]
        tags += _tags(one.variables, None, taken)
        found.append(
            FoundSet(f"set {number} of the frontier", str(number), None, None, one.variables,
                     one.rp, one.cr, tags=tuple(tags))
        )  # fmt: skip
    return sorted(found, key=lambda one: (not one.tags, -(one.cr or 0.0)))[:MOST_SETS]


def every_set(view: View, methods: Sequence[str]) -> list[tuple[str, FoundSet]]:
    """Return the sets of the paths and of the frontier, each with where it was found."""
    found = [(method, one) for method in methods for one in path_of(view, method)]
    return found + [("frontier", one) for one in frontier_sets(view)]


def _plane(view: View, chosen: Question) -> list[dict[str, Any]]:
    """Return every set with its risk and detail, for the plane that is drawn of them."""
    return [
        {"of": name, "place": one.place, "token": one.token, "rp": one.rp, "cr": one.cr,
         "variables": ", ".join(one.variables), "taken": "taken" in one.tags}
        for name, one in every_set(view, chosen.methods)
        if one.rp is not None and one.cr is not None
    ]  # fmt: skip


def _tags(
    names: Sequence[str], within: Sequence[str] | None, taken: frozenset[str] | None
) -> tuple[str, ...]:
    tags = ["within the limit"] if within is not None and set(within) == set(names) else []
    return (*tags, "taken") if taken == frozenset(names) else tuple(tags)


def released(view: View) -> frozenset[str] | None:
    """Return the variables of the selection that were taken, if the release is made of them."""
    release, chosen = view.review.release, view.review.selection
    if chosen is None or release.take is None or "selection" not in (release.steps or ()):
        return None
    return frozenset({*chosen.keep, *release.take})


def take(view: View, form: SentForm) -> ReviewChange:
    """Release the variables of a step: the other candidates are left out."""
    one = _found(view, form.text("set"), form.text("place"))

    def edit(document: TOMLDocument) -> None:
        editing.put_setting(document, "release", "take", list(one.variables))
        editing.release_by(document, "selection")

    return ReviewChange(f"take {one.place}", edit, ("protection", "outgoing"))


def _found(view: View, token: str | None, place: str | None) -> FoundSet:
    chosen = view.review.selection
    methods = () if chosen is None else chosen.methods
    fit = [one for _, one in every_set(view, methods) if one.token == token]
    if not fit:
        raise OptionError(
            "that step is not among the results any more. Take one of those shown now."
        )
    return next((one for one in fit if one.place == place), fit[0])


_ACTIONS: dict[str, Action] = {
    "search": _search,
    "take": take,
    "leave": leaving("no search for variables", "selection", "frontier"),
}
SELECT = Page("select", "Select", STAGES, _context, _ACTIONS)
