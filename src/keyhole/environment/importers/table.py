"""Our own simple layout of forms: a row a category, or a row for free text or a span.

It is read from CSV and Excel, and written as CSV.

Columns ``form, organisation, sector, purpose, method, collected, statement, search_parameters,
time_frame, social_group, field, label, coding, code, category, kind, from, to, every``; only
``field`` must be there. Without ``form`` the table is one
form, named like its file. What stands left of ``code`` may be blank where it is as in the row
above. ``kind`` is ``value`` (or blank), ``other``, ``not stated``, ``not applicable``,
``identifier`` (of the kind in ``category``), ``text`` or ``number`` (as exact as it is written).
``from``, ``to`` and ``every`` (a number, or day, month or year) describe a regular partition;
``from`` and ``to`` alone one interval, up to and without ``to``.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from keyhole.core.files import write_whole
from keyhole.core.names import shown
from keyhole.environment.codings.intervals import edges_of, interval_problems
from keyhole.environment.importers.bands import parse_day
from keyhole.environment.importers.fields import (
    capture,
    category_kind,
    distinct_fields,
    kind_of_identifier,
)
from keyhole.environment.importers.opening import SheetRow, read_sheet, require_headings
from keyhole.environment.model import (
    COLLECTION_METHODS,
    CapturedField,
    CapturedForm,
    CapturedQuestion,
    Category,
    CategoryKind,
    Coding,
    Environment,
    Field,
    Form,
    Intervals,
)
from keyhole.environment.soundness import require_sound
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, OptionError

_CAPTURE = ("statement", "search_parameters", "time_frame", "social_group")
_FORM = ("form", "organisation", "sector", "purpose", "method", "collected", *_CAPTURE)
_FIELD = ("field", "label", "coding")
COLUMNS = (*_FORM, *_FIELD, "code", "category", "kind", "from", "to", "every")
# Text that a spreadsheet would take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_KINDS: tuple[str, ...] = ("", *get_args(CategoryKind), "identifier", "text", "number")


def neutral(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula; numbers stay.

    Examples
    --------
    >>> neutral("=1+1"), neutral("-9"), neutral("yes")
    ("'=1+1", '-9', 'yes')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def restored_text(text: str) -> str:
    """Give back what `neutral` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


_Cells = tuple[str, ...]


@dataclass(slots=True)
class _Asked:
    """The rows of one field of one form."""

    form: dict[str, str]
    about: dict[str, str]
    rows: list[SheetRow] = field(default_factory=list)


def read_forms_table(path: Path, encoding: str | None = None) -> tuple[CapturedForm, ...]:
    """Read forms in our own layout."""
    rows = [
        SheetRow(row.number, {name: restored_text(cell) for name, cell in row.cells.items()})
        for row in read_sheet(path, encoding)
    ]
    require_headings(rows, ("field",), path.name)
    if "form" not in rows[0].cells:
        rows = [SheetRow(row.number, {**row.cells, "form": path.stem}) for row in rows]
    problems = [
        f"column {shown(name)} is not one of the layout: {', '.join(COLUMNS)}."
        for name in rows[0].cells
        if name and name not in COLUMNS
    ]
    captured = _captured(_group(rows, problems), problems)
    require_none(problems, FileError)
    return captured


def _captured(asked: Sequence[_Asked], problems: list[str]) -> tuple[CapturedForm, ...]:
    fields = [(one.form["form"], _field(one, problems)) for one in asked if one.rows]
    known = {one.coding: one for _, one in fields if one.coding and not _is_open(one)}
    forms = {one.form["form"]: one.form for one in reversed(asked)}
    listed: dict[str, list[CapturedField]] = {one.form["form"]: [] for one in asked}
    for form, one in fields:
        listed[form].append(_from_others(one, known))
    return tuple(
        CapturedForm(_form(forms[name], problems), distinct_fields(held))
        for name, held in listed.items()
    )


def _group(rows: Sequence[SheetRow], problems: list[str]) -> list[_Asked]:
    """Gather the rows of each field; blank cells are as above."""
    found: dict[tuple[str, str], _Asked] = {}
    form, asked = dict.fromkeys(_FORM, ""), dict.fromkeys(_FIELD, "")
    for row in rows:
        if row["form"] and row["form"] != form["form"]:
            form, asked = dict.fromkeys(_FORM, ""), dict.fromkeys(_FIELD, "")
        form = {column: row[column] or form[column] for column in _FORM}
        if row["field"] and row["field"] != asked["field"]:
            asked = dict.fromkeys(_FIELD, "")
        asked = {column: row[column] or asked[column] for column in _FIELD}
        if row["form"] and not any(row[column] for column in COLUMNS[len(_FORM) :]):
            found.setdefault((form["form"], ""), _Asked(form, asked))  # a form without fields
        elif not form["form"] or not asked["field"]:
            problems.append(f"row {row.number}: form and field must be given. Got blank instead.")
        else:
            key = (form["form"], asked["field"])
            found.setdefault(key, _Asked(form, asked)).rows.append(row)
    return list(found.values())


def _form(about: dict[str, str], problems: list[str]) -> Form:
    name, method = about["form"], about["method"].lower() or COLLECTION_METHODS[0]
    if method not in COLLECTION_METHODS:
        problems.append(
            f"form {shown(name)}: method must be one of {', '.join(COLLECTION_METHODS)}. "
            f"Got {shown(method)} instead."
        )
    collected = _day(about["collected"])
    if about["collected"] and collected is None:
        problems.append(f"form {shown(name)}: collected must be a day, as 2024-05-31.")
    words = ("organisation", "sector", "purpose", *_CAPTURE)
    given: Any = {column: about[column] for column in words}
    return Form(name, method=method, collected=collected, **given)  # type: ignore[arg-type]


def _field(asked: _Asked, problems: list[str]) -> CapturedField:
    name, label = asked.about["field"], asked.about["label"]
    kinds = {row["kind"].lower() for row in asked.rows}
    where = f"field {shown(name)} of form {shown(asked.form['form'])}"
    for kind in sorted(kinds - set(_KINDS)):
        problems.append(f"{where}: kind must be one of {', '.join(_KINDS[1:])}. Got {shown(kind)}.")
    identifier = None
    if "identifier" in kinds:
        identifier = asked.rows[0]["category"] or kind_of_identifier([name], label)
    intervals = _intervals([row for row in asked.rows if _spans(row)], where, problems)
    if "number" in kinds and intervals is None:
        intervals = Intervals("number")
    found = capture(
        [name],
        label,
        categories=tuple(_categories(asked.rows, where, problems)),
        intervals=intervals,
        identifier=identifier,
        recognised=kinds == {""},
    )
    return replace(found, coding=asked.about["coding"])


def _spans(row: SheetRow) -> bool:
    return bool(row["from"] or row["to"] or row["every"])


def _is_open(field_: CapturedField) -> bool:
    return not field_.categories and field_.intervals is None


def _from_others(one: CapturedField, known: dict[str, CapturedField]) -> CapturedField:
    """Take the categories from a field that has the same coding and lists them."""
    if one.coding not in known or not _is_open(one) or one.identifier is not None:
        return one
    other = known[one.coding]
    return replace(one, categories=other.categories, intervals=other.intervals)


def _categories(rows: Sequence[SheetRow], where: str, problems: list[str]) -> Iterator[Category]:
    seen: set[str] = set()
    for row in rows:
        code = row["code"] or row["category"]
        if not code or _spans(row) or row["kind"].lower() in _KINDS[-3:]:
            continue
        if code in seen:
            problems.append(f"{where}: the code in row {row.number} is there twice.")
        seen.add(code)
        label = row["category"] or code
        kind: Any = row["kind"].lower() or category_kind(label)
        yield Category(code, label, kind)


def _intervals(rows: Sequence[SheetRow], where: str, problems: list[str]) -> Intervals | None:
    if not rows:
        return None
    try:
        found = _regular(rows[0]) if rows[0]["every"] else _edges(rows)
        faults = interval_problems(found)
    except ValueError as error:
        faults = [str(error)]
    if not faults:
        return found
    problems += [f"{where}, row {rows[0].number}: {fault}" for fault in faults]
    return None


def _regular(row: SheetRow) -> Intervals:
    every = row["every"].lower()
    start, stop = _bound(row["from"]), _bound(row["to"])
    if isinstance(start, datetime.date) and isinstance(stop, datetime.date):
        found = re.fullmatch(r"(?:(\d{1,6}) )?(day|month|year)s?", every)
        if found is None or found[1] == "0":
            raise ValueError(f"every must be as 'year' or '5 year' for dates. Got {shown(every)}.")
        unit: Any = found[2]
        step = int(found[1] or 1)
        return Intervals("date", (), start.toordinal(), stop.toordinal(), step, unit)
    wide = _bound(every)
    if any(isinstance(one, datetime.date) for one in (start, stop, wide)):
        raise ValueError("from, to and every must all be numbers, or from and to days.")
    return Intervals("number", (), start, stop, wide)  # type: ignore[arg-type]


def _edges(rows: Sequence[SheetRow]) -> Intervals:
    """Read intervals that follow one another; the first and the last may be open."""
    bounds = [(_bound(row["from"] or "-inf"), _bound(row["to"] or "inf")) for row in rows]
    dated = any(isinstance(one, datetime.date) for pair in bounds for one in pair)
    lows, highs = zip(*((_place(a), _place(b)) for a, b in bounds), strict=True)
    order = sorted(range(len(rows)), key=lambda place: lows[place])
    for one, following in pairwise(order):
        if highs[one] != lows[following]:
            raise ValueError(
                f"the interval of row {rows[following].number} must begin where that of row "
                f"{rows[one].number} ends."
            )
    edges = (*(lows[place] for place in order), highs[order[-1]])
    return Intervals("date" if dated else "number", edges)


def _place(bound: float | datetime.date) -> float:
    return float(bound.toordinal()) if isinstance(bound, datetime.date) else float(bound)


def _bound(text: str) -> float | datetime.date:
    day = _day(text)
    if day is not None:
        return day
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"{shown(text)} is neither a number nor a day, as 2024-05-31.") from None
    if math.isnan(value):
        raise ValueError("bounds must be numbers. Got nan instead.")
    return int(value) if value.is_integer() else value


def _day(text: str) -> datetime.date | None:
    found = re.fullmatch(r"(\d{4}-\d{2}-\d{2})([ T]00:00:00(\.0+)?)?", text)
    return parse_day(found[1]) if found else None


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
    known = {form.name: form for form in environment.forms}
    names = sorted(known) if forms is None else list(dict.fromkeys(forms))
    absent = (name for name in names if name not in known)
    require_none(
        (f"form {shown(name)} is not there. Check its name." for name in absent), OptionError
    )
    require_none(_span_problems(environment))
    codings = {name: one for one in environment.codings for name in (one.name, *one.aliases)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name in names:
        rows = _rows(known[name], codings)
        writer.writerows([neutral(cell) for cell in row] for row in rows)
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(text.getvalue().encode())
    return Path(path)


def _span_problems(environment: Environment) -> Iterator[str]:
    held = [(f"coding {shown(one.name)}", one.intervals) for one in environment.codings]
    held += [
        (f"form {shown(form.name)}, field {shown(one.name)}", one.question.intervals)
        for form in environment.forms
        for one in form.fields
        if one.question
    ]
    for where, some in held:
        for problem in interval_problems(some) if some else ():
            yield f"{where}: {problem}"


def _rows(form: Form, codings: dict[str, Coding]) -> Iterator[_Cells]:
    day = form.collected.isoformat() if form.collected else ""
    own = form.name, form.organisation, form.sector, form.purpose, form.method, day
    own += tuple(getattr(form, name) for name in _CAPTURE)
    for asked in form.fields:
        held = codings[asked.coding] if asked.coding else asked.question
        named = held.name if isinstance(held, Coding) else held.coding if held else ""
        for answer in _answers(asked, held):
            yield *own, asked.name, asked.label, named, *answer


def _answers(asked: Field, held: Coding | CapturedQuestion | None) -> Iterator[_Cells]:
    """Give the cells from ``code`` on; a field that waits has the answers that were captured."""
    if asked.identifier is not None:
        yield "", asked.identifier, "identifier", "", "", ""
        return
    if held is None or not (held.categories or held.intervals):
        yield "", "", "text", "", "", ""
        return
    if held.intervals is not None and held.intervals.exact:
        yield "", "", "number", "", "", ""
    elif held.intervals is not None:
        for bounds in _spelled(held.intervals):
            yield "", "", "", *bounds
    for category in held.categories:
        yield category.code, category.label, category.kind, "", "", ""


def _spelled(some: Intervals) -> Iterator[_Cells]:
    """Spell intervals out, unless they are a regular partition by a number or one unit."""
    every = ""
    if not some.edges:
        dated = (some.unit or "day") if some.step in (0, 1) else ""
        every = _number(some.step) if some.scale == "number" else dated
    spans = [(some.start, some.stop)] if every else pairwise(edges_of(some).tolist())
    for low, high in spans:
        yield _written(low, some.scale), _written(high, some.scale), every


def _written(value: float, scale: str) -> str:
    if math.isinf(value):
        return ""
    return datetime.date.fromordinal(int(value)).isoformat() if scale == "date" else _number(value)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
