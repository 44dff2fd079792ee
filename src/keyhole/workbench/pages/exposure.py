"""Exposure: how many records stand out on the keys, why, and what would help."""

from __future__ import annotations

from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.exposure.uniques import FACTORS
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.stages.exposure import ask_drivers, ask_exposure, ask_uniques
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View

MAIN = ("cutoff", "limit", "by")
"""The options that are always in sight."""


def _context(view: View) -> dict[str, Any]:
    review, earlier = view.review, {"exposure": view.result("exposure")}
    uniques = ask_uniques(review, earlier)
    if uniques is not None and review.uniques is not None:
        uniques |= {name: review.uniques.values[name] for name in FACTORS}  # by key, to be read
    asked = {
        "risk": {**ask_exposure(review, {}), "limit": review.exposure.limit},
        "uniques": uniques,
        "drivers": ask_drivers(review, earlier),
    }
    # A table of groups has a row a category of the column that groups records.
    told, by_group = view.tables("exposure"), review.exposure.by is not None
    shown = [t for t in told if view.shows_values or not (by_group and t.columns[0] == "group")]
    return {
        "equivalents": [
            view.verb_lines(v, values) for v, values in asked.items() if values is not None
        ],
        "columns": view.data.variables,
        "main_fields": form_fields(review.exposure, MAIN),
        "other_fields": form_fields(review.exposure, but=MAIN),
        **{
            f"{name}_fields": form_fields(given or question_of(name, {}), prefix=f"{name}.")
            for name, given in (("uniques", review.uniques), ("drivers", review.drivers))
        },
        "figures": shown,
        "hidden": len(shown) < len(told),
    }


def _measure(view: View, form: SentForm) -> ReviewChange:
    shown = {name for name in view.review.keys if name in view.data.names}

    def edit(document: TOMLDocument) -> None:
        # Keys that are as they were stay as they are said: by roles, or as those of a scenario.
        if set(form.texts("keys")) != shown:
            editing.set_keys(
                document, editing.in_former_order(form.texts("keys"), view.review.keys)
            )
        take_fields(document, "exposure", SECTIONS["exposure"], form)
        for section in ("uniques", "drivers"):
            if form.flag(section):
                take_fields(document, section, SECTIONS[section], form, f"{section}.")
            else:
                editing.remove_setting(document, section)

    return ReviewChange("keys and limits of exposure", edit)


_STAGES = ("exposure", "fix", "uniques", "drivers")
EXPOSURE = Page("exposure", "Exposure", _STAGES, _context, {"measure": _measure})
