"""Scenario: who would attack the file, with what key, and how exposed it is under each."""

from __future__ import annotations

import tomllib
from typing import Any
from urllib.parse import urlencode

from tomlkit.toml_document import TOMLDocument

from keyhole.environment.model import Environment
from keyhole.environment.scenarios.presets import PRESETS
from keyhole.environment.scenarios.scenarios import ORIGINS, POINTS, Scenario
from keyhole.errors import InputError
from keyhole.reviews.files import key_of
from keyhole.reviews.names import SCENARIO as NAMED
from keyhole.workbench import editing
from keyhole.workbench.environments import kept
from keyhole.workbench.page import Change, Page
from keyhole.workbench.scenario_commands import scenario_lines
from keyhole.workbench.scenario_editing import (
    change_story,
    hold_scenarios,
    put_story,
    remove_story,
    set_scenarios,
    stories_of,
)
from keyhole.workbench.scenario_forms import changes_of, fields_of
from keyhole.workbench.scenario_keys import key_rows, side_by_side
from keyhole.workbench.view import Form, View

__all__ = ["SCENARIO"]

EXAMPLES = tuple(PRESETS.values())


def _own(view: View) -> tuple[str, ...]:
    return stories_of(tomllib.loads(view.look.text))


def _environment(view: View) -> Environment:
    settings = view.review.scenarios
    if settings is None:
        return Environment()
    return kept(view.project, settings.store).read()[0]


def _context(view: View) -> dict[str, Any]:
    settings = view.review.scenarios
    if settings is None:
        return {"settings": None, "equivalents": []}
    environment, own = _environment(view), _own(view)
    known = {one.name: one for one in environment.scenarios} | _looked_at(view)
    rows = side_by_side(view, own)
    name = _chosen(view, list(known), rows)
    key = key_of(view.look.files, f"{NAMED}{name}")
    return {
        "settings": settings,
        "theirs": [one for one in environment.scenarios if one.name not in own],
        "own": own,
        "copied": _copied(environment, own),
        "rows": rows,
        "story": known.get(name) if name else None,
        "fields": fields_of(view, known[name], environment) if name in own else None,
        "points": POINTS,
        "origins": ORIGINS,
        "key": key,
        "key_rows": key_rows(view, key) if key is not None else [],
        "equivalents": scenario_lines(view, own),
    }


def _looked_at(view: View) -> dict[str, Scenario]:
    settings = view.review.scenarios
    keys = {n: key_of(view.look.files, f"{NAMED}{n}") for n in (settings.names if settings else ())}
    return {name: key.scenario for name, key in keys.items() if key is not None}


def _chosen(view: View, known: list[str], rows: list[dict[str, Any]]) -> str:
    """Return the scenario to show: the one asked for, the worst, or the first."""
    asked = view.query.get("scenario")
    if asked in known:
        return asked
    worst = [row["name"] for row in rows if row["worst"]]
    return next((name for name in [*worst, *known]), "")


def _copied(environment: Environment, own: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return what a scenario of the review's own can begin as."""
    presets = [(f"preset:{one.name}", f"{one.name}: {one.title} (example)") for one in EXAMPLES]
    stored = [
        (f"environment:{one.name}", f"{one.name}: {one.title}")
        for one in environment.scenarios
        if one.name not in own and one.name not in PRESETS
    ]
    return [*presets, *stored]


def _require_environment(view: View) -> None:
    if view.review.scenarios is None:
        raise InputError("a scenario needs an environment. Choose or make one first.")


def _look(view: View, form: Form) -> Change:
    """Take which of the environment's scenarios are looked at."""
    _require_environment(view)
    return Change("scenarios looked at", lambda d: set_scenarios(d, form.texts("scenarios")))


def _copy(view: View, form: Form) -> Change:
    """Copy an example or a scenario of the environment into the review, to be edited."""
    import dataclasses

    _require_environment(view)
    sort, _, name = (form.text("from") or "").partition(":")
    stored = {one.name: one for one in _environment(view).scenarios}
    found = (PRESETS if sort == "preset" else stored).get(name)
    if found is None:
        raise InputError("there is no such scenario to begin with. Choose one of the list.")
    title = form.text("name") or name
    if title in _own(view):
        raise InputError(
            "the review has a scenario of that name already. Give the new one another name."
        )

    def edit(document: TOMLDocument) -> None:
        hold_scenarios(document, view.review)
        put_story(document, dataclasses.replace(found, name=title))

    return Change(f"scenario {title!r}", edit)


def _story(view: View) -> Scenario:
    """Return the review's own scenario that the address names."""
    name = view.query.get("scenario", "")
    if name not in _own(view):
        raise InputError("only a scenario of the review itself can be changed. Copy it first.")
    return _looked_at(view)[name]


def _edit(view: View, form: Form) -> Change:
    """Take the words of one of the review's own scenarios, and what defines its key."""
    story = _story(view)
    changes = changes_of(view, story, form)
    return Change(
        f"scenario {story.name!r}",
        lambda d: change_story(d, story, changes),
        to=f"scenario?{urlencode({'scenario': story.name})}",
    )


def _remove(view: View, form: Form) -> Change:  # noqa: ARG001
    name = _story(view).name

    def edit(document: TOMLDocument) -> None:
        hold_scenarios(document, view.review)
        remove_story(document, name)

    return Change(f"without scenario {name!r}", edit)


def _use(view: View, form: Form) -> Change:
    """Measure everything on the key of a scenario; a plan of protection keeps plain columns."""
    name, plain = form.text("scenario") or "", list(view.review.keys)

    def edit(document: TOMLDocument) -> None:
        editing.set_keys(document, f"{NAMED}{name}")
        planned: Any = document.get("protection")
        if planned is not None and "keys" not in planned and _is_plain(view):
            editing.put(document, "protection", "keys", plain)

    return Change(f"keys of scenario {name!r}", edit)


def _is_plain(view: View) -> bool:
    settings = view.review.scenarios
    return settings is None or settings.chosen is None


def _plain(view: View, form: Form) -> Change:  # noqa: ARG001
    """Go back to columns as the file has them: those of the key."""
    keys = list(view.review.keys)
    return Change("keys as the file has them", lambda d: editing.set_keys(d, keys))


SCENARIO = Page(
    "scenario",
    "Scenario",
    ("scenarios",),
    _context,
    {"look": _look, "copy": _copy, "edit": _edit, "remove": _remove, "use": _use, "plain": _plain},
)
