"""From the fit values of a review file to the review: defaults, roles, one form for lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from keyhole.core.options import Question
from keyhole.data import Microdata
from keyhole.reviews.names import named_scenario
from keyhole.reviews.schema import question_of
from keyhole.reviews.settings import (
    DataSettings,
    ReleaseSettings,
    Review,
)
from keyhole.reviews.source import Source

__all__ = [
    "resolve",
    "resolve_protection",
    "resolve_selection",
    "resolve_study",
    "resolve_synthesis",
    "with_plan_file",
]

Values = dict[str, Any]


def resolve(source: Source, sections: Mapping[str, Values], data: Microdata) -> Review:
    """Build the review from the fit values of its sections.

    Where a setting is left out, a column's role answers: the keys are the columns with the role
    `key`, weight and household the one column with that role.
    """
    top = sections[""]
    keys = top.get("keys") or sections.get("keys", {}).get("columns") or data.role("key")
    selection = None
    if "selection" in sections:
        selection = resolve_selection(sections["selection"], tuple(keys))
    return Review(
        title=top.get("title", f"Review of {data.name}"),
        path=source.path,
        sha256=source.sha256,
        data=DataSettings(**sections["data"]),
        keys=tuple(keys),
        exposure=_exposure(sections.get("exposure", {}), data),
        uniques=question_of("uniques", sections["uniques"]) if "uniques" in sections else None,
        drivers=question_of("drivers", sections["drivers"]) if "drivers" in sections else None,
        selection=selection,
        frontier=_frontier(sections, selection),
        screen=question_of("screen", sections["screen"]) if "screen" in sections else None,
        release=_release(sections),
    )


def _release(sections: Mapping[str, Values]) -> ReleaseSettings:
    """Say what goes out; if the review does not, it is what the last of its work makes."""
    found = dict(sections.get("release", {}))
    made = [name for name in ("synthesis", "protection", "selection") if name in sections]
    found.setdefault("product", [*made, "file"][0])
    for name in ("conditions", "notes", "board"):
        found[name] = tuple(found.get(name, ()))
    return ReleaseSettings(**found)


def _exposure(given: Values, data: Microdata) -> Question:
    found = dict(given)
    for name in ("weight", "household"):
        with_role = data.role(name)
        told = name == "weight" and "fraction" in given
        if len(with_role) == 1 and not told:
            found.setdefault(name, with_role[0])
    return question_of("exposure", found)


def resolve_selection(given: Values, keys: tuple[str, ...]) -> Question:
    """Build the settings of a selection: `methods` in order, candidates as lists of alternatives.

    The candidates are the keys that are not kept, if none are named.
    """
    # Without a limit the review is refused; the rest of the section is checked all the same.
    found = question_of("selection", {"limit": 0.0, **given})
    methods, candidates = found.methods or found.method, found.candidates
    if candidates is None:
        candidates = tuple((name,) for name in keys if name not in found.keep)
    worth = found.values["values"] or {}
    return found.replace(method=methods, methods=methods, candidates=candidates, values=worth)


def _frontier(sections: Mapping[str, Values], selection: Question | None) -> Question | None:
    if "frontier" not in sections or selection is None:
        return None
    return question_of("frontier", {"limit": selection.limit, **sections["frontier"]})


def resolve_study(given: Values) -> Question:
    """Build the settings of a study; what is missing though needed is none."""
    found: Values = {"candidates": {}, **given, "scenario": named_scenario(given.get("link"))}
    if found["scenario"] is not None:
        del found["link"]  # known when its key is derived
    if isinstance(found.get("scores"), str):
        found["scores_file"] = found.pop("scores")
    question = question_of("study", found)
    empty = {name: question.values[name] or () for name in ("puf_id", "eif_id", "link")}
    return question.replace(**empty)


def resolve_protection(given: Values, review: Review) -> Question:
    """Build the settings of a protection; its plan is read when it is checked.

    The key and the limit are the review's. `plan` becomes the text of the plan, and `plan_file`
    the file it is in.
    """
    question = question_of("protection", {"limit": review.exposure.limit, **given})
    question = question.replace(plan="", keys=question.keys or review.keys)
    return with_plan_file(question, given.get("plan"))


def with_plan_file(question: Question, plan_file: str | None) -> Question:
    """Return a protection with the file of its plan in the place of the steps of the section."""
    values, known = dict(question.values), dict(question.parameters)
    values["plan_file"], known["plan_file"] = plan_file, known["plan"]
    del values["step"], known["step"]
    return dataclasses.replace(question, values=values, parameters=known)


def resolve_synthesis(given: Values, review: Review) -> Question:
    """Build the question of a synthesis.

    The key is the review's, and so are weight or fraction where they are needed.
    """
    found: Values = {"keys": review.keys, **given}
    if isinstance(found.get("rules"), str):
        found["rules_file"] = found.pop("rules")
    if "least_probability" in found and not {"weight", "fraction"} & set(found):
        found |= {"weight": review.exposure.weight, "fraction": review.exposure.fraction}
    return question_of("synthesis", found)
