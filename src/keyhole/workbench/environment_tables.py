"""An environment as the page shows it: lists that can be narrowed, prevalence, one construct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Environment, Form, Source, Target
from keyhole.errors import InputError

__all__ = ["graph_picture", "lists", "prevalence_map", "shown_thing"]

MOST_ROWS, MOST_CONSTRUCTS = 150, 60
LISTED = ("forms", "sources", "targets", "constructs")
# What a list is titled, in the words of the page.
_TITLES = {"sources": "Public sources", "targets": "Targets"}
_TOLD = re.compile(r"<title>[^<]*</title>")


def lists(environment: Environment, find: str | None) -> list[dict[str, Any]]:
    """Return forms by sector, sources, targets and constructs; those with a word in them.

    Examples
    --------
    >>> from keyhole.environment.model import Form
    >>> known = Environment(forms=(Form("Loan"), Form("Claim"), Form("Card", sector="bank")))
    >>> [row[0] for row in lists(known, None)[0]["rows"]]
    ['Claim', 'Loan', 'Card']
    >>> [row[0] for row in lists(known, "BANK")[0]["rows"]]
    ['Card']
    """
    from keyhole.environment.listing import list_environment

    found = []
    for what in LISTED:
        listing = list_environment(environment, what)
        rows = [row for row in listing.rows if _has(row, find)]
        if what == "forms":
            rows.sort(key=lambda row: (str(row[2]), str(row[0])))
        found.append(_list(what, listing.columns, rows, len(listing.rows)))
    return found


def _has(row: Sequence[Any], find: str | None) -> bool:
    return find is None or any(find.casefold() in str(cell).casefold() for cell in row)


def _list(
    what: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], of: int
) -> dict[str, Any]:
    more = len(rows) - MOST_ROWS
    return {
        "what": what,
        "title": _TITLES.get(what, what.capitalize()),
        "columns": list(columns),
        "rows": [[f"{c:,}" if isinstance(c, int) else c for c in row] for row in rows[:MOST_ROWS]],
        "found": len(rows),
        "of": of,
        "notes": [f"and {more:,} more: find fewer by a word."] if more > 0 else [],
    }


def prevalence_map(graph: CodingGraph) -> dict[str, Any] | None:
    """Return the share of each sector's forms that ask a construct, the widest held first."""
    from keyhole.environment.pictures.charts import prevalence

    found = prevalence(graph)
    if not found:
        return None
    sectors = list(dict.fromkeys(sector for _, sector in found))
    names = {one.letters: one.name for one in graph.environment.constructs}
    totals = {letters: sum(found[letters, s][0] for s in sectors) for letters in names}
    order = sorted(names, key=lambda letters: (-totals[letters], letters))
    rows = [
        {
            "letters": letters,
            "name": names[letters],
            "cells": [_cell(*found[letters, sector]) for sector in sectors],
        }
        for letters in order[:MOST_CONSTRUCTS]
    ]
    return {"sectors": sectors, "rows": rows, "more": max(0, len(order) - MOST_CONSTRUCTS)}


def _cell(asking: int, of: int) -> dict[str, Any]:
    """Shade a cell in ten steps; one that nothing asks stays blank."""
    shade = -(-10 * asking // of) if of else 0
    return {"shade": shade, "text": f"{asking} of {of}" if asking else ""}


def graph_picture(graph: CodingGraph, letters: str, *, telling: bool) -> Markup | None:
    """Draw the codings of a construct; `telling` names categories when they are pointed at."""
    from keyhole.environment.pictures.drawing import draw_graph

    try:
        drawn = draw_graph(graph, letters)
    except InputError:
        return None
    # Every text in the drawing was escaped when it was drawn.
    return Markup(drawn if telling else _TOLD.sub("", drawn))


def shown_thing(environment: Environment, asked: str | None) -> dict[str, Any] | None:
    """Return the fields of a form, source or target that is asked for as `forms:NAME`."""
    what, _, name = (asked or "").partition(":")
    if what not in ("forms", "sources", "targets"):
        return None
    things: Sequence[Form | Source | Target] = getattr(environment, what)
    fields = next((one.fields for one in things if one.name == name), None)
    if fields is None:
        return None
    rows = [[f.name, f.label, f.coding or "", f.identifier or "", f.use] for f in fields]
    columns = ["field", "label", "coding", "identifier", "use"]
    return {"title": f"Fields of {name}", "columns": columns, "rows": rows, "notes": []}
