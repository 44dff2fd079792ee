"""Environment: what is held elsewhere, so that scenarios are not guesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Environment
from keyhole.errors import InputError
from keyhole.workbench import editing
from keyhole.workbench.drafts import draft_named, drafts_of
from keyhole.workbench.environment_commands import environment_lines
from keyhole.workbench.environment_tables import (
    graph_picture,
    lists,
    prevalence_map,
    shown_thing,
)
from keyhole.workbench.environments import (
    STORE,
    Kept,
    chosen_file,
    environments_below,
    kept,
    make_store,
    start_folder,
)
from keyhole.workbench.fitting import fit_environment
from keyhole.workbench.forms_added import again, confirm, discard, draft_context, send, undecided
from keyhole.workbench.page import Change, Page
from keyhole.workbench.places import seen_from
from keyhole.workbench.view import Form, View

__all__ = ["ENVIRONMENT"]

MOST_CHANGES = 40


def _context(view: View) -> dict[str, Any]:
    settings = view.review.scenarios
    found = {"place": None, "files": environments_below(start_folder(view.project)), "store": STORE}
    if settings is None:
        return {**found, "equivalents": environment_lines(view, None, None)}
    place = kept(view.project, settings.store)
    environment, number = place.read()
    draft = draft_named(view.project, view.query.get("form"))
    return {
        **found,
        "place": place,
        "chosen": _seen(view, place),
        "target": settings.target,
        "environment": environment,
        "waiting": drafts_of(view.project) if place.writable else [],
        "undecided": undecided(environment) if place.writable else [],
        "history": place.history(MOST_CHANGES),
        **_pictures(view, environment, place.graph(environment)),
        **draft_context(view, draft, (environment, number)),
        "equivalents": environment_lines(view, place, draft),
    }


def _seen(view: View, place: Kept) -> str:
    """Return the environment as the list of files names it."""
    try:
        return seen_from(start_folder(view.project), Path(place.place))
    except ValueError:
        return ""


def _pictures(view: View, environment: Environment, graph: CodingGraph) -> dict[str, Any]:
    find = (view.query.get("find") or "").strip()[:100] or None
    letters = view.query.get("construct") or ""
    return {
        "find": find,
        "lists": lists(environment, find),
        "heat": prevalence_map(graph),
        "letters": letters,
        "graph": graph_picture(graph, letters, telling=view.shows_values) if letters else None,
        "shown": shown_thing(environment, view.query.get("show")),
    }


def _choose(view: View, form: Form) -> Change:
    """Take another environment of those below the start folder, or another target."""
    seen, place = chosen_file(view.project, form.text("environment") or "")
    environment = place.read()[0]
    return _pointed(view, seen, environment)


def _pointed(view: View, store: str, environment: Environment) -> Change:
    def edit(document: TOMLDocument) -> None:
        editing.put(document, "environment", "store", store)
        fit_environment(document, environment, view.data)

    return Change(f"environment {store!r}", edit)


def _make(view: View, form: Form) -> Change:
    """Make a store beside the review: of the example, of the JSON file in use, or empty."""
    begin = form.text("begin")
    if begin == "example":
        from keyhole.environment.example.environment import example_environment

        environment = example_environment()
    elif begin == "json" and view.review.scenarios is not None:
        environment = kept(view.project, view.review.scenarios.store).read()[0]
    elif begin == "empty":
        environment = Environment()
    else:
        raise InputError("choose what the store is to begin with.")
    make_store(view.project.path.parent / STORE, environment)
    return _pointed(view, STORE, environment)


def _target(view: View, form: Form) -> Change:
    """Take which target describes the file."""
    if view.review.scenarios is None:
        raise InputError("choose an environment first.")
    name = form.text("target")
    return Change("the target", lambda d: editing.put(d, "environment", "target", name))


ENVIRONMENT = Page(
    "environment",
    "Environment",
    ("scenarios",),
    _context,
    {
        "choose": _choose,
        "make": _make,
        "target": _target,
        "send": send,
        "again": again,
        "confirm": confirm,
        "discard": discard,
    },
)
