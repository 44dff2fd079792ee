"""Data: what the file holds, what each column is, and what must be seen to first."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

import numpy as np
from tomlkit.toml_document import TOMLDocument

from keyhole.core.expressions import definition_problems, read_definitions, write_definition
from keyhole.data.columns import KINDS, ROLES, Variable
from keyhole.errors import OptionError
from keyhole.exposure.regrouping import level_label
from keyhole.kernels.arrays import Ints
from keyhole.reviews.schema import DERIVE, SECTIONS, question_of
from keyhole.screening.screen import Screening
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Page, ReviewChange, SentForm, View
from keyhole.workbench.pages.protect import add_to_plan, planned_steps

# Values of a column shown when values are asked for: the commonest, never a rare one.
MOST_VALUES = 8
MOST_BARS = 24
# A code of more digits is text.
_LONGEST = 18


def _context(view: View) -> dict[str, Any]:
    review = view.review
    codes = review.data.missing_codes
    screen = review.screen or question_of("screen", {})
    return {
        "columns": [_column(view, one) for one in view.data.variables],
        "roles": [("", "none"), *((role, role) for role in ROLES)],
        "reasons": _reasons(view.look.text, view.data.names),
        "kinds": [(kind, kind) for kind in KINDS],
        "missing_codes": ", ".join(map(str, codes)) if isinstance(codes, list | tuple) else None,
        "screened": _findings(view),
        "derive_lines": "\n".join(starmap(write_definition, review.data.derive.items())),
        "remedies": _remedies(view),
        "screen_fields": form_fields(screen),
        "equivalents": [view.verb_lines("screen", {**screen.values, "keys": review.keys})],
    }


def _column(view: View, variable: Variable) -> dict[str, Any]:
    """Return a column as the page lists it, with its commonest values; rare ones never show."""
    series, least = view.data.frame[variable.name], max(view.review.exposure.cutoff, 3)
    if series.dtype.is_nested():  # several values in a cell are not counted
        counts, known = np.array([series.null_count()]), np.zeros(0, np.int64)
    else:
        codes = view.data.codes(variable.name)
        counts = np.bincount(codes.values, minlength=codes.size)
        known = counts[: len(codes.levels)]
    common = np.argsort(-known, kind="stable")[:MOST_VALUES].tolist() if view.shows_values else []
    return {
        "variable": variable,
        "role": _role(view, variable) or "",
        "levels": len(known),
        "missing": int(counts[len(known) :].sum()) / max(view.data.records, 1),
        "common": [
            (level_label(view.data, variable.name, i), int(known[i]))
            for i in common
            if known[i] >= least
        ],
        "bars": _bars(known, least),
    }


def _bars(counts: Ints, least: int) -> tuple[tuple[int, bool], ...]:
    """Return the height of each part of the values, and whether it is masked: few have it."""
    parts = [int(part.sum()) for part in np.array_split(counts, min(len(counts), MOST_BARS) or 1)]
    highest = max([*parts, least])
    return tuple((100 * max(n, least) // highest if n else 0, 0 < n < least) for n in parts)


_REMARK = re.compile(r'[\s#]*("(?:[^"\\]|\\.)*"|[\w-]+)(?:\s*=\s*"[^"]*"|,)\s*#\s*(.+)')


def _reasons(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the remark that the review has beside each column: a draft says what it is and why."""
    remarks = [match for line in text.splitlines() if (match := _REMARK.match(line))]
    found = {match[1]: match[2] for match in reversed(remarks)}  # the first counts
    return {name: found.get(name) or found.get(json.dumps(name), "") for name in names}


def _role(view: View, variable: Variable) -> str | None:
    """Return the role of a column; those that the review names as keys are keys."""
    named = view.review.keys if names_keys(view) else ()
    return variable.role or ("key" if variable.name in named else None)


def names_keys(view: View) -> bool:
    """Tell whether the review lists its keys: they may be given by roles or by a scenario."""
    return isinstance(view.said.get("keys"), list | dict)


def _findings(view: View) -> Mapping[str, list[str]]:
    """Return what the screen says of each column, by name."""
    found: dict[str, list[str]] = {}
    screening: Screening | None = view.result("screen")
    if screening is None:
        return found
    for one in screening.identifiers:
        found.setdefault(one.column, []).append(one.identifier.kind.replace("_", " "))
    for name in screening.constants:
        found.setdefault(name, []).append("constant")
    return found


def _remedies(view: View) -> list[tuple[str, str]]:
    """Return the lines that put right what the screen found, each with its column."""
    screening: Screening | None = view.result("screen")
    found = [] if screening is None else [f for c in screening.safe_harbor for f in c.findings]
    lines = {one.line: one.column for one in found if one.line is not None}
    planned = planned_steps(view.review)
    derived = dict(view.review.data.derive).items()

    def is_done(line: str) -> bool:
        step = _step(line)
        return step in planned if step else dict(read_definitions(line)).items() <= derived

    return [(column, line) for line, column in lines.items() if not is_done(line)]


def _step(line: str) -> dict[str, Any] | None:
    """Return the step of a plan that a line holds, if it does."""
    return tomllib.loads(line)["step"][0] if line.startswith("step = [") else None


def _remedy(view: View, form: SentForm) -> ReviewChange:
    """Carry out one remedy of the screen: derive a column, or add a step to the plan."""
    line = form.text("line") or ""
    if line not in [one for _, one in _remedies(view)]:
        raise OptionError("this remedy is not one of the page. Look at the page again.")
    step = _step(line)
    if step is not None:
        return add_to_plan(view, step, "leave a column out")
    made = {**view.review.data.derive, **dict(read_definitions(line))}
    return ReviewChange("derive a column", lambda document: _put_derived(view, document, made))


def _derive(view: View, form: SentForm) -> ReviewChange:
    """Take the derived columns as they are typed, a line each."""
    text = form.text("lines") or ""
    if text.strip() and (problems := definition_problems(text)):
        raise OptionError(problems)
    made = dict(read_definitions(text))
    return ReviewChange("derived columns", lambda document: _put_derived(view, document, made))


def _put_derived(view: View, document: TOMLDocument, made: Mapping[str, str]) -> None:
    for name in view.review.data.derive:
        if name not in made:
            editing.remove_setting(document, DERIVE, name)
    for name, expression in made.items():
        editing.put_setting(document, DERIVE, name, expression)
    if not made:
        editing.remove_setting(document, DERIVE)


def _describe(view: View, form: SentForm) -> ReviewChange:
    """Take roles, kinds and labels of the columns; what is as it was read stays unsaid."""
    said = view.review.data
    roles, kinds, labels = dict(said.roles), dict(said.kinds), dict(said.labels)
    listed, keys = names_keys(view), list(view.review.keys)
    for place, variable in enumerate(view.data.variables):
        if f"role-{place}" not in form.values:
            continue
        name = variable.name
        role = form.text(f"role-{place}")
        if listed and "key" in (role, _role(view, variable)):
            others = [key for key in keys if key != name]
            keys = editing.in_former_order([*others, name], keys) if role == "key" else others
            role = None if role == "key" else role
        _say(roles, name, role, variable.role)
        _say(kinds, name, form.text(f"kind-{place}"), variable.kind)
        _say(labels, name, form.text(f"label-{place}"), variable.label or None)

    def edit(document: TOMLDocument) -> None:
        for setting, values in (("roles", roles), ("kinds", kinds), ("labels", labels)):
            editing.put_setting(document, "data", setting, values)
        if listed and set(keys) != set(view.review.keys):
            editing.set_keys(document, keys)
        told: Any = document.get("attributes")
        if told is not None and "sensitive" not in told and "sensitive" not in roles.values():
            editing.remove_setting(document, "attributes")  # nothing is left to be told
        if "missing" in form.values:
            editing.put_setting(document, "data", "missing_codes", _codes(form.text("missing")))

    return ReviewChange("what the columns are", edit)


def _say(said: dict[str, str], name: str, given: str | None, now: str | None) -> None:
    if given is not None and given != now:
        said[name] = given
    elif given != now:
        said.pop(name, None)


def _codes(text: str | None) -> list[Any]:
    """Read missing codes as they are typed: numbers as numbers, the rest as text."""
    words = filter(None, (word.strip() for word in (text or "").split(",")))
    whole = re.compile(r"-?[0-9]+")
    return [int(w) if whole.fullmatch(w) and len(w) < _LONGEST else w for w in words]


def _screen(_: View, form: SentForm) -> ReviewChange:
    known = SECTIONS["screen"]
    return ReviewChange("screen the file", lambda one: take_fields(one, "screen", known, form))


DATA = Page("data", "Data", ("data", "screen"), _context,
            {"describe": _describe, "derive": _derive, "screen": _screen,
             "remedy": _remedy})  # fmt: skip
