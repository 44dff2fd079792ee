"""Environment page: the data that others hold, from which scenarios derive their keys."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from markupsafe import Markup
from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import COLLECTION_METHODS, Environment
from keyhole.errors import InputError
from keyhole.workbench import editing, environments, form_adding
from keyhole.workbench.page import Action, Page, ReviewChange, SentForm, View
from keyhole.workbench.projects import path_below

MOST_ROWS, MOST_CONSTRUCTS, MOST_CHANGES = 150, 60, 40
LISTED = ("forms", "sources", "targets", "constructs")
# What a list is titled, in the words of the page.
_TITLES = {"sources": "Public sources"}
_TOOLTIP = re.compile(r"<title>[^<]*</title>")


def _context(view: View) -> dict[str, Any]:
    from keyhole.environment.prevalence import draw_graph

    settings = view.review.scenarios
    found = {
        "place": None,
        "files": environments.environments_below(view.project.state.folder),
        "store": environments.STORE,
    }
    if settings is None:
        return {**found, "equivalents": _equivalents(view, None, None)}
    place = environments.environment_place(view.project, settings.store)
    environment, number = place.read()
    graph, letters = place.graph(environment), view.query.get("construct") or ""
    find = (view.query.get("find") or "").strip()[:100] or None
    draft, chosen = form_adding.draft_named(view.project, view.query.get("form")), ""
    picture = None
    with suppress(InputError):
        # Every text in the drawing was escaped when it was drawn.
        drawn = draw_graph(graph, letters) if letters else ""
        picture = Markup(drawn if view.shows_values else _TOOLTIP.sub("", drawn)) or None
    with suppress(ValueError):  # the environment as the list of files names it
        chosen = path_below(view.project.state.folder, Path(place.place))
    return {
        **found,
        "place": place,
        "chosen": chosen,
        "target": settings.target,
        "environment": environment,
        "waiting": form_adding.drafts_of(view.project) if place.writable else [],
        "pending": form_adding.pending_decisions(view, graph) if place.writable else None,
        "number": number,
        "places": form_adding.known_places(environment),
        "methods": COLLECTION_METHODS,
        "history": Table(
            "Changes, the last first",
            ["when (UTC)", "who", "what", "note"],
            place.history(MOST_CHANGES),
        ),
        "find": find,
        "lists": _lists(environment, find),
        "heat": prevalence_map(graph),
        "letters": letters,
        "graph": picture,
        "shown": _shown_fields(environment, view.query.get("show")),
        **form_adding.draft_context(view, draft, (environment, number)),
        "equivalents": _equivalents(view, place, draft),
    }


def _choose(view: View, form: SentForm) -> ReviewChange:
    """Take another environment of those below the start folder, or another target."""
    seen, place = environments.chosen_file(view.project, form.text("environment") or "")
    return _use_environment(view, seen, place.read()[0])


def _use_environment(view: View, store: str, environment: Environment) -> ReviewChange:
    def edit(document: TOMLDocument) -> None:
        editing.put_setting(document, "environment", "store", store)
        environments.fit_environment(document, environment, view.data)

    return ReviewChange(f"environment {store!r}", edit)


def _make(view: View, form: SentForm) -> ReviewChange:
    """Make a store beside the review: of the example, of the JSON file in use, or empty."""
    begin = form.text("begin")
    if begin == "example":
        from keyhole.environment.exchange import example_environment

        environment = example_environment()
    elif begin == "json" and view.review.scenarios is not None:
        environment = environments.review_environment(view)
    elif begin == "empty":
        environment = Environment()
    else:
        raise InputError("choose what the store is to begin with.")
    environments.make_store(view.project.path.parent / environments.STORE, environment)
    return _use_environment(view, environments.STORE, environment)


def _target(view: View, form: SentForm) -> ReviewChange:
    """Take which target describes the file."""
    if view.review.scenarios is None:
        raise InputError("choose an environment first.")
    name = form.text("target")
    return ReviewChange(
        "the target", lambda d: editing.put_setting(d, "environment", "target", name)
    )


def _lists(environment: Environment, find: str | None) -> list[dict[str, Any]]:
    """Return forms by sector, sources, targets and constructs; those with a word in them."""
    from keyhole.environment.listing import list_environment

    found = []
    for what in LISTED:
        listing = list_environment(environment, what)
        rows = [
            row
            for row in listing.cells
            if find is None or any(find.casefold() in str(cell).casefold() for cell in row)
        ]
        if what == "forms":
            rows.sort(key=lambda row: (str(row[2]), str(row[0])))
        more = len(rows) - MOST_ROWS
        table = Table(
            _TITLES.get(what, what.capitalize()),
            listing.columns,
            [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows[:MOST_ROWS]],
            [f"and {more:,} more: find fewer by a word."] if more > 0 else [],
        )
        listed = len(listing.cells)
        found.append({"what": what, "table": table, "found": len(rows), "of": listed})
    return found


def prevalence_map(graph: CodingGraph) -> dict[str, Any] | None:
    """Return the share of each sector's forms that ask a construct, the widest held first."""
    from keyhole.environment.prevalence import prevalence

    found = prevalence(graph)
    if not found:
        return None
    sectors = list(dict.fromkeys(sector for _, sector in found))
    names = {one.letters: one.name for one in graph.environment.constructs}
    totals = {letters: sum(found[letters, s][0] for s in sectors) for letters in names}
    order = sorted(names, key=lambda letters: (-totals[letters], letters))
    rows = []
    for letters in order[:MOST_CONSTRUCTS]:
        cells = [_cell(*found[letters, sector]) for sector in sectors]
        rows.append({"letters": letters, "name": names[letters], "cells": cells})
    return {"sectors": sectors, "rows": rows, "more": max(0, len(order) - MOST_CONSTRUCTS)}


def _cell(asking: int, of: int) -> dict[str, Any]:
    """Shade a cell in ten steps; one that nothing asks stays blank."""
    shade = -(-10 * asking // of) if of else 0
    return {"shade": shade, "text": f"{asking} of {of}" if asking else ""}


def _shown_fields(environment: Environment, asked: str | None) -> Table | None:
    """Return the fields of a form, source or target that is asked for as `forms:NAME`."""
    from keyhole.environment.listing import field_table

    what, _, name = (asked or "").partition(":")
    if what not in ("forms", "sources", "targets"):
        return None
    found = next((one for one in getattr(environment, what) if one.name == name), None)
    return None if found is None else field_table(f"Fields of {name}", found.fields)


def _equivalents(
    view: View, place: environments.EnvironmentPlace | None, draft: form_adding.FormDraft | None
) -> list[Equivalent]:
    """Write how the environment is made, listed, drawn and added to."""
    if place is None:
        return [equivalent("environment init", {"store": environments.STORE, "example": True})]
    if place.kind == "json":
        return [equivalent("environment init", {"store": environments.STORE, "from_": place.name})]
    store = {"store": place.name}
    found = [equivalent("environment list", {**store, "what": "forms"})]
    letters = view.query.get("construct")
    if letters:
        drawn = {**store, "name": letters, "plot": "codings.svg"}
        found.append(equivalent("environment show", drawn))
    if draft is not None:
        file = draft.file or view.review.data.file
        asked = {**store, "files": [file], "as_": draft.what, "propose": "decisions.toml"}
        found.append(equivalent("environment import", asked))
    return found


_ACTIONS: dict[str, Action] = {
    "choose": _choose,
    "make": _make,
    "target": _target,
    "send": form_adding.send,
    "decide": form_adding.decide_pending,
    "confirm": form_adding.confirm_form,
    "discard": form_adding.discard,
}
ENVIRONMENT = Page("environment", "Environment", ("scenarios",), _context, _ACTIONS)
