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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from keyhole.core.names import shown
from keyhole.environment import model
from keyhole.environment.codings.categories import edges_of, interval_problems
from keyhole.environment.exchange import decode_attributes
from keyhole.environment.importers.fields import (
    capture,
    category_kind,
    distinct_fields,
    kind_of_identifier,
    parse_day,
)
from keyhole.environment.importers.reading import SheetRow, read_sheet, require_headings
from keyhole.environment.soundness import require_sound
from keyhole.environment.wording import require_none, write_text
from keyhole.errors import FileError

_CAPTURE = ("statement", "search_parameters", "time_frame", "social_group")
_FORM = ("form", "organisation", "sector", "purpose", "method", "collected", *_CAPTURE)
_FIELD = ("field", "label", "coding")
COLUMNS = (*_FORM, *_FIELD, "code", "category", "kind", "from", "to", "every")
# Text that a spreadsheet would take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_KINDS: tuple[str, ...] = ("", *get_args(model.CategoryKind), "identifier", "text", "number")


def neutral(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula; numbers stay."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def restored_text(text: str) -> str:
    """Give back what `neutral` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


_Cells = tuple[str, ...]
# What is said of a field and its form, and the rows of the field.
_Group = tuple[dict[str, str], list[SheetRow]]


def read_forms_table(path: Path, encoding: str | None, _: object) -> tuple[model.CapturedForm, ...]:
    """Read forms in our own layout."""
    rows = read_sheet(path, encoding)
    require_headings(rows, ("field",), path.name)
    problems = [
        f"column {shown(name)} is not one of the layout: {', '.join(COLUMNS)}."
        for name in rows[0].cells
        if name and name not in COLUMNS
    ]
    groups = _group(rows, path.stem, problems)
    fields = [(about["form"], _field(about, of, problems)) for about, of in groups if of]
    known = {one.coding: one for _, one in fields if one.coding and not _is_open(one)}
    listed: dict[str, list[model.CapturedField]] = {about["form"]: [] for about, _ in groups}
    for name, one in fields:
        other = known.get(one.coding)  # a field that has the same coding, and lists its answers
        if other is not None and _is_open(one) and one.identifier is None:
            one = replace(one, categories=other.categories, intervals=other.intervals)
        listed[name].append(one)
    forms = {about["form"]: about for about, _ in reversed(groups)}
    captured = tuple(
        model.CapturedForm(_form(forms[name], problems), distinct_fields(held))
        for name, held in listed.items()
    )
    require_none(problems, FileError)
    return captured


def _is_open(field: model.CapturedField) -> bool:
    return not field.categories and field.intervals is None


def _group(rows: Sequence[SheetRow], only: str, problems: list[str]) -> list[_Group]:
    """Gather the rows of each field; blank cells are as above, and without a column form `only`."""
    found: dict[tuple[str, str], _Group] = {}
    named = "form" in rows[0].cells
    about = dict.fromkeys((*_FORM, *_FIELD), "")
    for number, cells in ((row.number, row.cells) for row in rows):
        row = SheetRow(number, {name: restored_text(cell) for name, cell in cells.items()})
        form, field = row["form"] if named else only, row["field"]
        if form and form != about["form"]:
            about = dict.fromkeys(about, "") | {"form": form}
        if field and field != about["field"]:
            about = about | dict.fromkeys(_FIELD, "")
        about = {column: row[column] or above for column, above in about.items()}
        if form and not any(row[column] for column in COLUMNS[len(_FORM) :]):
            found.setdefault((about["form"], ""), (about, []))  # a form without fields
        elif not about["form"] or not about["field"]:
            problems.append(f"row {number}: form and field must be given. Got blank instead.")
        else:
            found.setdefault((about["form"], about["field"]), (about, []))[1].append(row)
    return list(found.values())


def _form(about: dict[str, str], problems: list[str]) -> model.Form:
    name, found = about["form"], list[str]()
    given = {column: about[column] for column in _FORM[1:] if about[column]}
    if day := _day(about["collected"]):  # a cell of a workbook may have its midnight too
        given["collected"] = str(day)
    given |= {"method": about["method"].lower()} if about["method"] else {}
    known = decode_attributes(model.Form, given, found)
    problems += [f"form {shown(name)}: {problem.lstrip('.')}" for problem in found]
    return model.Form(name, **known)


def _field(
    about: dict[str, str], rows: Sequence[SheetRow], problems: list[str]
) -> model.CapturedField:
    name, label = about["field"], about["label"]
    kinds = {row["kind"].lower() for row in rows}
    where = f"field {shown(name)} of form {shown(about['form'])}"
    for kind in sorted(kinds - set(_KINDS)):
        problems.append(f"{where}: kind must be one of {', '.join(_KINDS[1:])}. Got {shown(kind)}.")
    identifier = None
    if "identifier" in kinds:
        identifier = rows[0]["category"] or kind_of_identifier([name], label)
    spans = [row for row in rows if row["from"] or row["to"] or row["every"]]
    spanned = {row.number for row in spans}
    intervals = model.Intervals("number") if "number" in kinds else None
    if spans:
        try:
            intervals = _regular(spans[0]) if spans[0]["every"] else _edges(spans)
            faults = interval_problems(intervals)
        except ValueError as error:
            faults = [str(error)]
        problems += [f"{where}, row {spans[0].number}: {fault}" for fault in faults]
        intervals = None if faults else intervals
    categories: dict[str, model.Category] = {}
    for row in rows:
        code, own = row["code"] or row["category"], row["kind"].lower()
        if not code or row.number in spanned or own in _KINDS[-3:]:
            continue
        if code in categories:
            problems.append(f"{where}: the code in row {row.number} occurs twice.")
        said = row["category"] or code
        kind_: Any = own or category_kind(said)
        categories.setdefault(code, model.Category(code, said, kind_))
    more: Any = {"intervals": intervals, "identifier": identifier, "recognised": kinds == {""}}
    found = capture([name], label, categories=tuple(categories.values()), **more)
    return replace(found, coding=about["coding"])


def _regular(row: SheetRow) -> model.Intervals:
    every = row["every"].lower()
    (start, dated), (stop, also) = _bound(row["from"]), _bound(row["to"])
    if dated and also:
        found = re.fullmatch(r"(?:(\d{1,6}) )?(day|month|year)s?", every)
        if found is None or found[1] == "0":
            raise ValueError(f"every must be as 'year' or '5 year' for dates. Got {shown(every)}.")
        unit: Any = found[2]
        return model.Intervals("date", (), start, stop, int(found[1] or 1), unit)
    wide, days = _bound(every)
    if dated or also or days:
        raise ValueError("from, to and every must all be numbers, or from and to days.")
    return model.Intervals("number", (), start, stop, wide)


def _edges(rows: Sequence[SheetRow]) -> model.Intervals:
    """Read intervals that follow one another; the first and the last may be open."""
    ends = [(_bound(row["from"] or "-inf"), _bound(row["to"] or "inf"), row) for row in rows]
    ends.sort(key=lambda end: end[0][0])
    for (_, high, row), (low, _, following) in pairwise(ends):
        if high[0] != low[0]:
            raise ValueError(
                f"the interval of row {following.number} must begin where that of row "
                f"{row.number} ends."
            )
    edges = (*(float(low[0]) for low, _, _ in ends), float(ends[-1][1][0]))
    dated = any(low[1] or high[1] for low, high, _ in ends)
    return model.Intervals("date" if dated else "number", edges)


def _bound(text: str) -> tuple[float, bool]:
    """Read a number or a day; return it as a number, and whether it is a day."""
    day = _day(text)
    if day is not None:
        return day.toordinal(), True
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"{shown(text)} is neither a number nor a day, as 2024-05-31.") from None
    return int(value) if value.is_integer() else value, False


def _day(text: str) -> datetime.date | None:
    found = re.fullmatch(r"(\d{4}-\d{2}-\d{2})([ T]00:00:00(\.0+)?)?", text)
    return parse_day(found[1]) if found else None


def write_forms(
    environment: model.Environment,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
) -> Path:
    """Write all forms as a CSV file: a row a category, or one for free text and intervals.

    Text that a spreadsheet would take for a formula begins with an apostrophe. A form without
    fields has no row. A whole environment is what `write_environment` keeps.
    """
    require_sound(environment)
    codings = {name: one for one in environment.codings for name in (one.name, *one.aliases)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    problems: list[str] = []
    for form in sorted(environment.forms, key=lambda form: form.name):
        rows = _rows(form, codings, problems)
        writer.writerows([neutral(cell) for cell in row] for row in rows)
    require_none(problems)
    return write_text(path, text.getvalue(), force=force)


def _rows(
    form: model.Form, codings: dict[str, model.Coding], problems: list[str]
) -> Iterator[_Cells]:
    """Give the rows of a form; a field that waits has the answers that were captured."""
    day = form.collected.isoformat() if form.collected else ""
    own = form.name, form.organisation, form.sector, form.purpose, form.method, day
    own += tuple(getattr(form, name) for name in _CAPTURE)
    for asked in form.fields:
        held = codings[asked.coding] if asked.coding else asked.question
        named = held.name if isinstance(held, model.Coding) else held.coding if held else ""
        answers: list[_Cells] = []  # the cells from ``code`` on
        some = held.intervals if held else None
        if some is not None and (faults := interval_problems(some)):
            where = f"form {shown(form.name)}, field {shown(asked.name)}"
            problems += [f"{where}: {fault}" for fault in faults]
        elif asked.identifier is not None:
            answers = [("", asked.identifier, "identifier", "", "", "")]
        elif some is not None and some.exact:
            answers = [("", "", "number", "", "", "")]
        elif some is not None:
            every = ""  # they are spelled out, unless regular by a number or one unit
            if not some.edges:
                dated = (some.unit or "day") if some.step in (0, 1) else ""
                every = _written(some.step, "number") if some.scale == "number" else dated
            ends = [(some.start, some.stop)] if every else pairwise(edges_of(some).tolist())
            told = ((_written(low, some.scale), _written(high, some.scale)) for low, high in ends)
            answers = [("", "", "", *span, every) for span in told]
        if held is not None and asked.identifier is None:
            answers += [(one.code, one.label, one.kind, "", "", "") for one in held.categories]
        for answer in answers or [("", "", "text", "", "", "")]:
            yield *own, asked.name, asked.label, named, *answer


def _written(value: float, scale: str) -> str:
    if math.isinf(value):
        return ""
    if scale == "date":
        return datetime.date.fromordinal(int(value)).isoformat()
    return str(int(value)) if float(value).is_integer() else repr(float(value))
