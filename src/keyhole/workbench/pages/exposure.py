"""Exposure: how many records stand out on the keys, why, and what would help."""

from __future__ import annotations

from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import equivalent
from keyhole.core.tables import Table
from keyhole.exposure.uniques import FACTORS
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.stages.exposure import ask_drivers, ask_exposure, ask_uniques
from keyhole.workbench import editing
from keyhole.workbench.editing import in_former_order
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View

MAIN = ("cutoff", "limit", "by")
"""The options that are always in sight."""


def _context(view: View) -> dict[str, Any]:
    review = view.review
    file, reading = review.data.file, review.data.reading()
    earlier = {"exposure": view.result("exposure")}
    uniques = ask_uniques(review, earlier)
    if uniques is not None and review.uniques is not None:
        uniques |= {name: review.uniques.values[name] for name in FACTORS}  # by key, to be read
    asked = {
        "risk": {**ask_exposure(review, {}), "limit": review.exposure.limit},
        "uniques": uniques,
        "drivers": ask_drivers(review, earlier),
    }
    told = view.tables("exposure")
    return {
        "equivalents": [
            equivalent(verb, values, file, reading)
            for verb, values in asked.items()
            if values is not None
        ],
        "columns": view.data.variables,
        "main_fields": form_fields(review.exposure, MAIN),
        "other_fields": form_fields(
            review.exposure, [n for n in SECTIONS["exposure"] if n not in MAIN]
        ),
        "uniques_fields": form_fields(
            review.uniques or question_of("uniques", {}), prefix="uniques."
        ),
        "drivers_fields": form_fields(
            review.drivers or question_of("drivers", {}), prefix="drivers."
        ),
        "figures": told if view.shows_values else [t for t in told if not _names_groups(view, t)],
        "hidden": not view.shows_values and any(_names_groups(view, t) for t in told),
    }


def _names_groups(view: View, table: Table) -> bool:
    """Tell whether a table has a row a category of the column that groups records."""
    return view.review.exposure.by is not None and table.columns[0] == "group"


def _measure(view: View, form: SentForm) -> ReviewChange:
    shown = {name for name in view.review.keys if name in view.data.names}

    def edit(document: TOMLDocument) -> None:
        # Keys that are as they were stay as they are said: by roles, or as those of a scenario.
        if set(form.texts("keys")) != shown:
            editing.set_keys(document, in_former_order(form.texts("keys"), view.review.keys))
        take_fields(document, "exposure", SECTIONS["exposure"], form)
        for section in ("uniques", "drivers"):
            if form.flag(section):
                take_fields(document, section, SECTIONS[section], form, f"{section}.")
            else:
                editing.remove_setting(document, section)

    return ReviewChange("keys and limits of exposure", edit)


EXPOSURE = Page(
    "exposure",
    "Exposure",
    ("exposure", "fix", "uniques", "drivers"),
    _context,
    {"measure": _measure},
)
