"""XLSForm workbooks (ODK, Kobo, SurveyCTO): sheets ``survey``, ``choices`` and ``settings``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


def read(path: Path, _: str | None = None) -> tuple[CapturedForm, ...]:
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
    kind, name = " ".join(row["type"].split()), row["name"]
    if not kind or kind.lower() in _NOT_ASKED:
        return
    if group := _GROUPS.fullmatch(kind.lower()):
        _enter(group[1], group[2], name, row.number, survey)
    elif not name:
        survey.problems.append(f"survey, row {row.number}: name must not be empty.")
    elif select := _SELECT.fullmatch(kind):
        yield from _selected(row, select[1], select[2], bool(select[3]), survey)
    else:
        yield from _written(row, kind.split()[0].lower(), survey)


def _enter(what: str, kind: str, name: str, number: int, survey: _Survey) -> None:
    if what == "begin":
        survey.groups.append(name)
        if kind == "repeat":
            survey.notes["What a repeated group asks of each is read once."] = None
    elif survey.groups:
        survey.groups.pop()
    else:
        survey.problems.append(f"survey, row {number}: a group ends that did not begin.")


def _path(row: SheetRow, survey: _Survey) -> list[str]:
    return [*(group for group in survey.groups if group), row["name"]]


def _selected(
    row: SheetRow, kind: str, list_name: str, other: bool, survey: _Survey
) -> Iterator[CapturedField]:
    options = survey.choices.get(list_name)
    path, label = _path(row, survey), _label(row, survey.language)
    if options is None:
        survey.problems.append(
            f"survey, row {row.number}: the list {shown(list_name)} is not in the sheet 'choices'."
        )
    elif "one" in kind.lower():
        more = (_OTHER,) if other else ()
        yield capture(path, label, options=options, categories=more, universe=row["relevant"])
    else:
        listed = [*options, ("other", "Other")] if other else options
        yield from split_choices(path, label, listed, row["relevant"])


def _written(row: SheetRow, kind: str, survey: _Survey) -> Iterator[CapturedField]:
    path, label = _path(row, survey), _label(row, survey.language)
    asked = words(row["name"]) + words(label)
    universe = row["relevant"]
    if kind in _TELLING:
        yield capture(path, label, identifier=_TELLING[kind], universe=universe)
    elif kind in ("integer", "int", "decimal", "range"):
        yield capture(path, label, intervals=_numbers(row, asked), universe=universe)
    elif kind in ("date", "datetime"):
        unit = {"year": "year", "month-year": "month"}.get(row["appearance"], "day")
        yield capture(path, label, intervals=dates(unit), universe=universe)  # type: ignore[arg-type]
    elif kind in ("acknowledge", "trigger"):
        yield capture(path, label, categories=YES_NO, universe=universe)
    elif kind in _FREE or kind.startswith(("select_one_from", "select_multiple_from")):
        yield capture(path, label, universe=universe)
    else:
        survey.problems.append(
            f"survey, row {row.number}: the type {shown(kind)} is not one of XLSForm's."
        )


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
