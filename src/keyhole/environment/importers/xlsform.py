"""XLSForm workbooks (ODK, Kobo, SurveyCTO): sheets ``survey``, ``choices`` and ``settings``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.environment.importers.bands import dates, number_intervals, usual_numbers
from keyhole.environment.importers.fields import YES_NO, capture, distinct_fields, split_choices
from keyhole.environment.importers.opening import SheetRow, require_headings, sheets
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form, Intervals
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_GROUPS = re.compile(r"(begin|end)[ _]?(group|repeat)")
_SELECT = re.compile(r"(select[ _]?one|select[ _]?multiple|rank)\s+(\S+)(\s+or[ _]other)?", re.I)
_BOUND = re.compile(r"\.\s*(>=|<=|>|<)\s*(-?\d{1,12}(?:\.\d{1,6})?)(?![\d.])")
_OTHER = Category("other", "Other", "other")
_NOT_ASKED = frozenset({"note", "start", "end", "today", "audit", "hidden", "csv-external"})
# Types that are direct identifiers by themselves.
_TELLING = {
    "deviceid": "device",
    "subscriberid": "device",
    "simserial": "device",
    "phonenumber": "phone",
    "username": "user name",
    "email": "email",
    "geopoint": "coordinates",
    "geotrace": "coordinates",
    "geoshape": "coordinates",
    "start-geopoint": "coordinates",
    "image": "photo",
    "video": "photo",
    "audio": "biometric",
}
_FREE = frozenset({"text", "string", "calculate", "barcode", "file", "time", "xml-external"})


@dataclass(slots=True)
class _Survey:
    """What is known while the survey sheet is read from top to bottom."""

    choices: dict[str, list[tuple[str, str]]]
    language: str
    groups: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)


def read_xlsform(path: Path, _: str | None = None) -> tuple[CapturedForm, ...]:
    """Read a form from a workbook."""
    found = sheets(path)
    if "survey" not in found:
        raise FileError(f"{path.name!r} must have a sheet 'survey'. Got none of the name instead.")
    rows = found["survey"]
    require_headings(rows, ("type", "name"), f"{path.name} (survey)")
    settings = (found.get("settings") or [SheetRow(0, {})])[0]
    language = settings["default_language"]
    survey = _Survey(_choices(found.get("choices", []), language), language)
    fields = [one for row in rows for one in _fields(row, survey)]
    if survey.groups:
        survey.problems.append(f"group {shown(survey.groups[-1])} is not ended. Add 'end_group'.")
    require_none(survey.problems, FileError)
    form = Form(settings["form_id"] or path.stem, purpose=settings["form_title"])
    return (CapturedForm(form, distinct_fields(fields), tuple(survey.notes)),)


def _choices(rows: Sequence[SheetRow], language: str) -> dict[str, list[tuple[str, str]]]:
    lists: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        name = row["list_name"] or row["list name"]
        code = row["name"] or row["value"]
        if name and code:
            lists[name].append((code, _label(row, language)))
    return dict(lists)


def _label(row: SheetRow, language: str) -> str:
    """Return the label in the default language, else the first there is."""
    wanted = [f"label::{language}".lower(), f"label:{language}".lower(), "label"]
    others = [name for name in row.cells if name.startswith("label:")]
    return next((row[name] for name in [*wanted, *others] if row[name]), "")


def _fields(row: SheetRow, survey: _Survey) -> Iterator[CapturedField]:
    kind, name, where = " ".join(row["type"].split()), row["name"], f"survey, row {row.number}"
    if not kind or kind.lower() in _NOT_ASKED:
        return
    if group := _GROUPS.fullmatch(kind.lower()):
        if group[1] == "begin":
            survey.groups.append(name)
            if group[2] == "repeat":
                survey.notes["What a repeated group asks of each is read once."] = None
        elif survey.groups:
            survey.groups.pop()
        else:
            survey.problems.append(f"{where}: a group ends that did not begin.")
        return
    if not name:
        survey.problems.append(f"{where}: name must not be empty.")
        return
    path, label = [*filter(None, survey.groups), name], _label(row, survey.language)
    if not (select := _SELECT.fullmatch(kind)):
        answers = _answers(row, kind.split()[0].lower(), words(name) + words(label))
        if answers is None:
            shown_kind = shown(kind.split()[0].lower())
            survey.problems.append(f"{where}: the type {shown_kind} is not one of XLSForm's.")
        else:
            yield capture(path, label, universe=row["relevant"], **answers)
    elif (options := survey.choices.get(select[2])) is None:
        survey.problems.append(
            f"{where}: the list {shown(select[2])} is not in the sheet 'choices'."
        )
    elif "one" in select[1].lower():
        more = (_OTHER,) if select[3] else ()
        yield capture(path, label, options=options, categories=more, universe=row["relevant"])
    else:
        listed = [*options, ("other", "Other")] if select[3] else options
        yield from split_choices(path, label, listed, row["relevant"])


def _answers(row: SheetRow, kind: str, asked: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what a type other than a choice says of the answers; None of an unknown type."""
    if kind in _TELLING:
        return {"identifier": _TELLING[kind]}
    if kind in ("integer", "int", "decimal", "range"):
        return {"intervals": _numbers(row, asked)}
    if kind in ("date", "datetime"):
        unit: Any = {"year": "year", "month-year": "month"}.get(row["appearance"], "day")
        return {"intervals": dates(unit)}
    if kind in ("acknowledge", "trigger"):
        return {"categories": YES_NO}
    free = kind in _FREE or kind.startswith(("select_one_from", "select_multiple_from"))
    return {} if free else None


def _numbers(row: SheetRow, asked: tuple[str, ...]) -> Intervals:
    """Return the numbers that the constraint allows, as ``. >= 0 and . <= 120``."""
    usual = usual_numbers(asked)
    low: float | None = None
    high: float | None = None
    text = row["constraint"][:1000]
    for sign, number in _BOUND.findall(text) if " or " not in text else ():
        value = float(number) if "." in number else int(number)
        if sign[0] == ">":
            low = value + 1 if sign == ">" and value != 0 else value
        else:
            high = value - 1 if sign == "<" else value
    if low is None and high is None:
        return usual
    low = min(usual.start, high or 0) if low is None else low
    return number_intervals(low, max(usual.stop - 1, low) if high is None else high) or usual
