"""Forms as a CSV file in our simple layout, which the importers read."""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from keyhole.core.files import write_whole
from keyhole.core.names import shown
from keyhole.environment.codings.intervals import edges_of, interval_problems
from keyhole.environment.model import CapturedQuestion, Coding, Environment, Field, Form, Intervals
from keyhole.environment.soundness import require_sound
from keyhole.environment.spreadsheet import COLUMNS, neutral
from keyhole.environment.wording import require_none
from keyhole.errors import OptionError

Cells = tuple[str, ...]


def write_forms(
    environment: Environment,
    path: str | os.PathLike[str],
    *,
    forms: Iterable[str] | None = None,
    force: bool = False,
) -> Path:
    """Write forms as a CSV file: a row a category, or one for free text and intervals.

    Regular intervals are one row with ``from``, ``to`` and ``every`` (a number, or day, month
    or year); others are a row each, with an open end left empty. Text that a spreadsheet would
    take for a formula begins with an apostrophe. A form without fields has no row. A whole
    environment, with what this layout has no columns for, is what `write_environment` keeps.

    Parameters
    ----------
    environment
        Where the forms and their codings are.
    path
        The file to be written.
    forms
        The names of the forms; all of them if left out.
    force
        Replace the file if it exists.

    Returns
    -------
    Path
        The file that was written.
    """
    require_sound(environment)
    require_none(_span_problems(environment))
    chosen = _chosen(environment, forms)
    codings = {name: coding for coding in environment.codings for name in _names(coding)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for form in chosen:
        writer.writerows([neutral(cell) for cell in row] for row in _rows(form, codings))
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(text.getvalue().encode())
    return Path(path)


def _span_problems(environment: Environment) -> Iterator[str]:
    for coding in environment.codings:
        for problem in interval_problems(coding.intervals) if coding.intervals else ():
            yield f"coding {shown(coding.name)}: {problem}"
    for form in environment.forms:
        for field in form.fields:
            some = field.question.intervals if field.question else None
            for problem in interval_problems(some) if some else ():
                yield f"form {shown(form.name)}, field {shown(field.name)}: {problem}"


def _names(coding: Coding) -> tuple[str, ...]:
    return coding.name, *coding.aliases


def _chosen(environment: Environment, forms: Iterable[str] | None) -> list[Form]:
    known = {form.name: form for form in environment.forms}
    names = sorted(known) if forms is None else list(dict.fromkeys(forms))
    require_none(
        (
            f"form {shown(name)} is not there. Check its name."
            for name in names
            if name not in known
        ),
        OptionError,
    )
    return [known[name] for name in names]


def _rows(form: Form, codings: dict[str, Coding]) -> Iterator[Cells]:
    day = form.collected.isoformat() if form.collected else ""
    own = form.name, form.organisation, form.sector, form.purpose, form.method, day
    for field in form.fields:
        held = codings[field.coding] if field.coding else field.question
        named = held.name if isinstance(held, Coding) else held.coding if held else ""
        asked = field.name, field.label, named
        for answer in _answers(field, held):
            yield *own, *asked, *answer


def _answers(field: Field, held: Coding | CapturedQuestion | None) -> Iterator[Cells]:
    """Give the cells from ``code`` on; a field that waits has the answers that were captured."""
    if field.identifier is not None:
        yield "", field.identifier, "identifier", "", "", ""
        return
    if held is None or not (held.categories or held.intervals):
        yield "", "", "text", "", "", ""
        return
    if held.intervals is not None:
        for bounds in _intervals(held.intervals):
            yield "", "", "", *bounds
    for category in held.categories:
        yield category.code, category.label, category.kind, "", "", ""


def _intervals(some: Intervals) -> Iterator[Cells]:
    every = _every(some)
    if every:
        yield _bound(some.start, some.scale), _bound(some.stop, some.scale), every
        return
    for low, high in pairwise(edges_of(some).tolist()):
        yield _bound(low, some.scale), _bound(high, some.scale), ""


def _every(some: Intervals) -> str:
    """Give the step of a regular partition; one of several units has none, and is spelled out."""
    if some.edges:
        return ""
    if some.scale == "number":
        return _number(some.step)
    return (some.unit or "day") if some.step in (0, 1) else ""


def _bound(value: float, scale: str) -> str:
    if math.isinf(value):
        return ""
    return datetime.date.fromordinal(int(value)).isoformat() if scale == "date" else _number(value)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
