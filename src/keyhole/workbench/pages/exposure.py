"""Exposure: how many records stand out on the keys, why, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core import equivalents as core
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.stages.drivers import ask_drivers
from keyhole.workbench import editing
from keyhole.workbench.changed import in_order
from keyhole.workbench.commands import equivalent
from keyhole.workbench.fields import fields_of, take_fields
from keyhole.workbench.page import Change, Page
from keyhole.workbench.view import Form, View

__all__ = ["EXPOSURE"]

MAIN = ("cutoff", "limit", "by")
"""The options that are always in sight."""


def _context(view: View) -> dict[str, Any]:
    review = view.review
    file, reading = review.data.file, review.data.reading()
    asked = {**review.exposure.values, "keys": review.keys}
    same = [core.equivalent("risk", asked, file, reading)]
    if review.uniques is not None:
        asked = {"keys": list(review.keys), "max_size": review.uniques.max_size, **_reading(view)}
        same.append(equivalent("uniques", file, asked))
    drivers = ask_drivers(review, {})
    if drivers is not None:
        same.append(core.equivalent("drivers", drivers, file, reading))
    told = view.tables("exposure")
    return {
        "equivalents": same,
        "columns": view.data.variables,
        "main_fields": fields_of(review.exposure, MAIN),
        "other_fields": fields_of(
            review.exposure, [n for n in SECTIONS["exposure"] if n not in MAIN]
        ),
        "drivers_fields": fields_of(
            review.drivers or question_of("drivers", {}), prefix="drivers."
        ),
        "figures": told if view.shows_values else [t for t in told if not _names_groups(view, t)],
        "hidden": not view.shows_values and any(_names_groups(view, t) for t in told),
    }


def _names_groups(view: View, table: Mapping[str, Any]) -> bool:
    """Tell whether a table has a row a category of the column that groups records."""
    return view.review.exposure.by is not None and table["columns"][0] == "group"


def _reading(view: View) -> dict[str, Any]:
    """Return how the file is read, as far as the command can say it."""
    codes = view.review.data.missing_codes
    return {"missing_codes": list(codes) if isinstance(codes, list | tuple) else None}


def _measure(view: View, form: Form) -> Change:
    shown = {name for name in view.review.keys if name in view.data.names}

    def edit(document: TOMLDocument) -> None:
        # Keys that are as they were stay as they are said: by roles, or as those of a scenario.
        if set(form.texts("keys")) != shown:
            editing.set_keys(document, in_order(form.texts("keys"), view.review.keys))
        take_fields(document, "exposure", SECTIONS["exposure"], form)
        if form.flag("uniques"):
            editing.take_section(document, "uniques", {"max_size": form.number("max_size")})
        else:
            editing.remove(document, "uniques")
        if form.flag("drivers"):
            take_fields(document, "drivers", SECTIONS["drivers"], form, "drivers.")
        else:
            editing.remove(document, "drivers")

    return Change("keys and limits of exposure", edit)


EXPOSURE = Page(
    "exposure",
    "Exposure",
    ("exposure", "fix", "uniques", "drivers"),
    _context,
    {"measure": _measure},
)
