"""Recode: one column made coarser, with the risk and the loss as it is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tomlkit.toml_document import TOMLDocument

from keyhole.errors import InputError, OptionError
from keyhole.protection.apply import plan_problems
from keyhole.protection.plan import Plan
from keyhole.reviews.schema import DERIVE
from keyhole.reviews.stages.products import PROTECTION, dropped_by
from keyhole.workbench import editing, recoding
from keyhole.workbench.live import CellCounter
from keyhole.workbench.page import Action, Go, Page, ReviewChange, SentForm, View
from keyhole.workbench.pages.data import names_keys
from keyhole.workbench.pages.protect import planned_steps, steps_before
from keyhole.workbench.projects import files_below

# Columns of these roles are not recoded: they are never released, or count people.
NOT_RECODED = ("identifier", "household", "weight", "drop")
# The form as it was last sent, and its column, in the memory of the review.
DRAFT = ("recoding", "")


def _context(view: View) -> dict[str, Any]:
    gone = set(dropped_by(steps_before(view)))
    nested = {name for name, held in view.data.frame.schema.items() if held.is_nested()}
    offered = [one for one in view.data.variables
               if one.name not in gone | nested and one.role not in NOT_RECODED]  # fmt: skip
    drafted, form = view.project.memory.get(DRAFT, ("", None))
    asked = view.query.get("column") or drafted
    names = [one.name for one in offered]
    finest = max(view.review.keys, key=lambda n: view.data.codes(n).size if n in names else -1)
    name = asked if asked in names else finest if finest in names else next(iter(names), None)
    if name is None:
        return {"columns": [], "column": None}
    view.project.memory.pop(("recode", name), None)  # results may have come since
    column = _column(view, name)
    typed = form if drafted == name else SentForm({})
    begun = {} if typed.values else _begun(view, column)
    way = view.query.get("way") or typed.text("way") or begun.get("way")
    return {
        "columns": offered,
        "left_out": asked if asked in gone else None,
        "column": column,
        "label": view.data.variable(name).label,
        "is_key": name in view.review.keys,
        "recoded": any(recoding.recodes(step, name) for step in planned_steps(view.review)),
        "ways": [(one, recoding.WAYS[one]) for one in column.ways],
        "way": way if way in column.ways else column.ways[0],
        "rows": _rows(view, column, typed, begun.get("groups", {})),
        "rare": len(column.levels) - len(column.listed),
        "typed": {n: typed.text(n) or begun.get(n) or "" for n in _TYPED},
        "histogram": column.histogram() if "cuts" in column.ways else None,
        "units": [(unit, unit) for unit in recoding.CALENDAR],
        "files": files_below(view.project.path.parent)["data"] if "file" in column.ways else [],
        "figures": _figures(view, column, typed) if view.query.get("look") else None,
        "back": urlencode({"column": name, "values": view.query.get("values", "")}),
    }


_TYPED = ("cuts", "unit", "length", "file", "to", "into", "group-rare", "name")


def _column(view: View, name: str) -> recoding.RecodedColumn:
    least = max(view.review.exposure.cutoff, 3)
    return recoding.RecodedColumn(view.data, name, least, view.project.path.parent)


def _begun(view: View, column: recoding.RecodedColumn) -> dict[str, Any]:
    """Return what the plan does to the column already, as the form has it."""
    for step in planned_steps(view.review):
        if step["method"] == "recode" and recoding.recodes(step, column.name):
            if "cuts" in step:
                return {"way": "cuts", "cuts": ", ".join(map(str, step["cuts"]))}
            texts = dict(zip(map(str, column.levels), column.names, strict=True))
            new = {k: texts.get(str(v), str(v)) for k, v in step.get("map", {}).items()}
            return {"way": "merge", "groups": new}
    return {}


def _rows(
    view: View, column: recoding.RecodedColumn, typed: SentForm, begun: Mapping[str, str]
) -> list[dict[str, Any]]:
    """List the categories that may be named; a count that is small shows no height of its own."""
    if "merge" not in column.ways:
        return []
    labels = view.data.variable(column.name).value_labels
    counts = column.counts[: len(column.levels)].tolist()
    highest = max([*counts, column.least])
    return [
        {
            "at": at,
            "name": column.names[at],
            "group": typed.text(f"group-{at}") or begun.get(str(column.levels[at]))
            or column.names[at],
            "height": round(100 * max(counts[at], column.least) / highest, 1),
            "masked": counts[at] < column.least,
            "count": counts[at],
        }
        for at in column.listed
        if view.shows_values or column.levels[at] in labels
    ]  # fmt: skip


def _figures(view: View, column: recoding.RecodedColumn, typed: SentForm) -> dict[str, Any]:
    """Measure here what the resident process answers where scripts run."""
    try:
        data = recoding.coded(view.data, other_steps(view, column.name))
        there = recoding.RecodedColumn(data, column.name, column.least, column.folder)
        return recoding.recoded_figures(there, typed, view.review, CellCounter(data))
    except InputError as error:
        return {"problems": list(error.problems)}


def other_steps(view: View, name: str) -> list[dict[str, Any]]:
    """Return the steps of the release and of the plan that are not about a column's recoding."""
    return [*steps_before(view), *_others(view, name)]


def _others(view: View, name: str) -> list[dict[str, Any]]:
    return [step for step in planned_steps(view.review) if not recoding.recodes(step, name)]


def _keep(view: View, form: SentForm) -> recoding.RecodedColumn:
    """Keep what was typed, so that nothing is lost if it is refused, and return the column."""
    name = form.text("column") or ""
    if name not in view.data.names:
        raise OptionError("that column is no longer in the file. Choose one from the list.")
    view.project.memory[DRAFT] = name, form
    return _column(view, name)


def _look(view: View, form: SentForm) -> Go:
    name = _keep(view, form).name
    shown = {"values": "shown"} if view.shows_values else {}
    return Go("recode?" + urlencode({"column": name, **shown, "look": "yes"}))


def _add(view: View, form: SentForm) -> ReviewChange:
    """Make the recoding a step of the plan, in place of one before, or a derived column."""
    column = _keep(view, form)
    with view.project.reading():
        found = column.read(form)
    if form.text("do") == "derive":
        return _derive(view, form, found)
    old, name = planned_steps(view.review), column.name
    plan = Plan.parse([*_others(view, name), *found.steps])
    if problems := plan_problems(view.data, plan):
        raise OptionError(problems)

    def edit(document: TOMLDocument) -> None:
        editing.bring_in(document, old, found.steps)
        for place in reversed([at for at, step in enumerate(old) if recoding.recodes(step, name)]):
            editing.remove_step(document, place)
        view.project.memory.pop(DRAFT, None)

    return ReviewChange(f"recode {name}", edit, to=f"recode?{urlencode({'column': name})}")


def _derive(view: View, form: SentForm, found: recoding.Recoding) -> ReviewChange:
    """Derive the coarser column, and have it stand for the old one where that is wanted."""
    old, new = found.column.name, form.text("name") or found.derived
    if new in view.data.names and new not in view.review.data.derive:
        raise OptionError(f"there is a column {new!r} already. Give the derived one another name.")

    def edit(document: TOMLDocument) -> None:
        editing.put_setting(document, DERIVE, new, found.expression)
        if form.flag("instead"):
            roles = {**view.review.data.roles, old: "drop"}
            if names_keys(view):
                keys = [new if key == old else key for key in view.review.keys]
                editing.set_keys(document, list(dict.fromkeys(keys)))
            elif old in view.review.keys:
                roles[new] = "key"
            editing.put_setting(document, "data", "roles", roles)
        view.project.memory.pop(DRAFT, None)

    stages = ("data", "exposure", PROTECTION, "outgoing")
    return ReviewChange(f"derive {new}", edit, stages, f"recode?{urlencode({'column': new})}")


_ACTIONS: dict[str, Action] = {"add": _add, "look": _look}
RECODE = Page("recode", "Recode", (PROTECTION, "outgoing"), _context, _ACTIONS)
