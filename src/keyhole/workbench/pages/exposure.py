"""Exposure: how many records stand out on the keys, why, and what would help."""

from __future__ import annotations

from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.errors import OptionError
from keyhole.exposure.drivers import Drivers
from keyhole.exposure.fix import Fixes
from keyhole.exposure.uniques import FACTORS
from keyhole.protection.methods import METHODS
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.stages.exposure import ask_drivers, ask_exposure, ask_uniques
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View
from keyhole.workbench.pages.protect import add_to_plan

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
        "advice": advice(view),
        "figures": shown,
        "hidden": len(shown) < len(told),
    }


# Pieces of advice with a button, of the fixes and of what drives exposure.
MOST_ADVICE = 8


def advice(view: View) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the steps that the cheapest fix and the drivers advise, each in words."""
    fixes: Fixes | None = view.result("fix")
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {"fix": [], "drivers": []}
    listed = () if fixes is None or not fixes.needed else fixes.fixes
    for fix in (one for one in listed if one.variable in view.data.names):
        words = f"{fix.action} {fix.variable} ({fix.detail})"
        given = [(name, m.suggest(view.data, fix)) for name, m in METHODS.items()]
        found["fix"] += [(words, {"method": n, **how}) for n, how in given if how is not None]
    drivers: Drivers | None = view.result("drivers")
    for one in () if drivers is None or not view.shows_values else drivers.regroupings:
        values = [_value(view, one.variable, level) for level in (one.level, one.other)]
        if one.gain > 0 and None not in values:
            step = {"method": "recode", "column": one.variable, "keep_rest": True,
                    "map": {str(values[0]): values[1]}}  # fmt: skip
            found["drivers"].append((f"merge {one.level} with {one.other} of {one.variable}", step))
    return {of: several[:MOST_ADVICE] for of, several in found.items()}


def _value(view: View, column: str, label: str | None) -> Any:
    """Return the value that a label of a driver means, if records enough have it to be named."""
    if column not in view.data.names:
        return None
    codes, labels = view.data.codes(column), view.data.variable(column).value_labels
    for at, level in enumerate(codes.levels.to_list()):
        if str(labels.get(level, level)) == label:
            many = int((codes.values == at).sum())
            return level if many >= max(view.review.exposure.cutoff, 3) else None
    return None


def _plan(view: View, form: SentForm) -> ReviewChange:
    """Add a piece of advice to the plan."""
    of, words = form.text("of") or "", form.text("words")
    step = dict(advice(view).get(of, [])).get(words or "")
    if step is None:
        raise OptionError("that advice is no longer given. Take one of those shown now.")
    return add_to_plan(view, step, f"protect: {words}")


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
EXPOSURE = Page("exposure", "Exposure", _STAGES, _context, {"measure": _measure, "plan": _plan})
