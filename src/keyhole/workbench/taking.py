"""Sets of variables that a search came by, and taking one: the other candidates stay at home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tomlkit.toml_document import TOMLDocument

from keyhole.errors import OptionError
from keyhole.reviews.stages import selection_stage
from keyhole.reviews.store import digest
from keyhole.workbench import editing
from keyhole.workbench.page import ReviewChange, SentForm, View
from keyhole.workbench.plan_editing import bring_in, drop_candidates
from keyhole.workbench.pricing import planned_steps

if TYPE_CHECKING:
    from keyhole.selection.frontier import Frontier
    from keyhole.selection.result import Selection, Stopped

__all__ = ["FoundSet", "columns_of_step", "frontier_sets", "path_of", "released", "take"]

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
        tags = _tags(step.variables, within, taken)
        found.append(
            FoundSet(
                f"step {number} of {method}", step.step, step.variable if enters else None,
                None if enters else step.variable, step.variables, step.rp, step.cr, step.ratio,
                tags,
            )
        )  # fmt: skip
    if within is not None and not any(set(one.variables) == set(within) for one in found):
        found.append(_end(within, result.stopped, method, taken))
    return found


def _end(
    within: tuple[str, ...], stopped: Stopped, method: str, taken: frozenset[str] | None
) -> FoundSet:
    """Return the set within the limit where it is no step: backward stops just above the limit."""
    follows = method == "backward" and stopped.reason == "limit" and stopped.variable not in within
    return FoundSet(
        f"the end of {method}", "end", None, stopped.variable if follows else None, within,
        stopped.rp if follows else None, stopped.cr if follows else None,
        tags=_tags(within, within, taken),
    )  # fmt: skip


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


def _tags(
    names: Sequence[str], within: Sequence[str] | None, taken: frozenset[str] | None
) -> tuple[str, ...]:
    tags = ["within the limit"] if within is not None and set(within) == set(names) else []
    return (*tags, "taken") if taken == frozenset(names) else tuple(tags)


def _candidates(view: View) -> list[str]:
    chosen = view.review.selection
    return [] if chosen is None else [name for group in chosen.candidates for name in group]


def released(view: View) -> frozenset[str] | None:
    """Return the variables of the selection that the plan lets go out, if it drops any of them."""
    chosen, candidates = view.review.selection, set(_candidates(view))
    dropped = {
        name
        for step in planned_steps(view.review)
        if step["method"] == "drop"
        for name in columns_of_step(step)
        if name in candidates
    }
    if chosen is None or not dropped:
        return None
    return frozenset({*chosen.keep, *candidates} - dropped)


def columns_of_step(step: Mapping[str, Any]) -> list[str]:
    """Return the columns that a step names."""
    named = step.get("columns", [])
    return [named] if isinstance(named, str) else list(named)


def take(view: View, form: SentForm) -> ReviewChange:
    """Have the plan drop the candidates that are not of a step, so that the rest goes out."""
    one = _found(view, form.text("set"), form.text("place"))
    candidates = _candidates(view)
    left = [name for name in candidates if name not in one.variables and name in view.data.names]

    def edit(document: TOMLDocument) -> None:
        bring_in(document, planned_steps(view.review))
        drop_candidates(document, left, candidates)
        release: Any = document.get("release", {})
        # What goes out is then what the plan makes of the file.
        if left and release.get("product") in ("file", "selection"):
            editing.put_setting(document, "release", "product", "protection")

    return ReviewChange(f"take {one.place}", edit, ("protection",))


def _found(view: View, token: str | None, place: str | None) -> FoundSet:
    chosen = view.review.selection
    methods = () if chosen is None else chosen.methods
    known = [one for method in methods for one in path_of(view, method)]
    known += frontier_sets(view)
    fit = [one for one in known if one.token == token]
    if not fit:
        raise OptionError(
            "that step is not among the results any more. Take one of those shown now."
        )
    return next((one for one in fit if one.place == place), fit[0])
