"""Survey dictionaries: REDCap, XLSForm (ODK, Kobo, SurveyCTO) and LimeSurvey.

A REDCap dictionary is one form, whatever instruments it is split into: one database holds them
all. Its identifier flag keeps free text apart; users set it for everything that is protected
health information, so a flagged date or choice stays a field to match on.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.data.codebook import children, local_name
from keyhole.environment.importers.fields import (
    Asked,
    FormReading,
    ask,
    bounded_numbers,
    capture,
    dates,
    kind_of_identifier,
    parse_day,
    parse_number,
    plain_text,
)
from keyhole.environment.importers.opening import (
    SheetRow,
    open_xml,
    read_sheet,
    require_headings,
    sheets,
)
from keyhole.environment.model import Form, Intervals
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

# --- REDCap ------------------------------------------------------------------------------------

# Columns that we call otherwise; the downloaded file has words where the interface has underscores.
_COLUMNS = {
    "variable_field_name": "field_name",
    "choices_calculations_or_slider_labels": "choices",
    "choices_or_calculations": "choices",
    "select_choices_or_calculations": "choices",
    "text_validation_type_or_show_slider_number": "validation",
    "text_validation_min": "lowest",
    "text_validation_max": "highest",
    "branching_logic_show_field_only_if": "branching_logic",
}
_CHOSEN = ("radio", "dropdown", "select", "checkbox")
_WRITTEN = ("text", "notes", "textarea", "calc", "file", "slider", "sql", "")
# What a text is checked for, or a file is of, may say that it is a direct identifier.
_REDCAP_TELLING = {one: one for one in ("phone", "ssn", "email", "signature")}
_REDCAP_TELLING["mrn"] = "medical record number"
_FLAGGED = "Flagged dates and numbers stay fields to match on; flagged text is apart."


def is_redcap(columns: frozenset[str]) -> bool:
    """Tell a dictionary by the names of its columns."""
    return {"field_name", "field_type"} <= {*map(_redcap_name, columns)}


def _redcap_name(column: str) -> str:
    name = re.sub(r"[^a-z]+", "_", column).strip("_")
    return _COLUMNS.get(name, name)


def read_redcap(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a data dictionary, as CSV or as a sheet."""
    rows = [
        SheetRow(row.number, {_redcap_name(name): cell for name, cell in row.cells.items()})
        for row in read_sheet(path, encoding)
    ]
    require_headings(rows, ("field_name", "field_type"), path.name)
    return (one for row in rows for one in _redcap_fields(row, form))


def _redcap_fields(row: SheetRow, form: FormReading) -> Asked:
    kind, name = row["field_type"].lower(), row["field_name"]
    path, label = [*filter(None, (row["form_name"], name))], plain_text(row["field_label"])
    parts = (part.partition(",") for part in re.split(r"[|\n]", row["choices"]))
    options = [(code.strip(), plain_text(said)) for code, _, said in parts if code.strip()]
    asked: Any = {"name": name, "universe": row["branching_logic"]}
    if kind == "descriptive":
        return
    if not name:
        form.broken.append(f"row {row.number}: field_name is empty")
    elif kind in _CHOSEN and not options:
        form.broken.append(f"row {row.number}: {shown(name)} has no choices")
    elif kind in _CHOSEN:
        yield from ask(path, label, options=options, several=kind == "checkbox", **asked)
    elif kind in ("yesno", "truefalse"):
        yield from ask(path, label, kind="yes or no", **asked)
    elif kind in _WRITTEN:
        intervals = _redcap_intervals(row, kind, label)
        telling = _REDCAP_TELLING.get(row["validation"].lower().partition("_")[0])
        found = capture(path, label, intervals=intervals, identifier=telling, **asked)
        if found.identifier is None and row["identifier"].lower() in ("y", "yes", "1", "true"):
            if intervals is None:
                found = replace(found, identifier=kind_of_identifier(path, label))
            else:
                form.note(_FLAGGED)
        yield found
    else:
        form.broken.append(f"row {row.number}: field_type {shown(kind)} is not one of REDCap's")


def _redcap_intervals(row: SheetRow, kind: str, label: str) -> Intervals | None:
    validation, asked = row["validation"].lower(), words(row["field_name"]) + words(label)
    if validation.startswith("date"):
        last = parse_day(row["highest"])
        after = last + datetime.timedelta(1) if last and last < datetime.date.max else None
        return dates("day", parse_day(row["lowest"]), after)
    low, high = parse_number(row["lowest"]), parse_number(row["highest"])
    if kind == "slider":
        return bounded_numbers((), low or 0, high or 100)
    return bounded_numbers(asked, low, high) if validation[:6] in ("intege", "number") else None


# --- XLSForm -----------------------------------------------------------------------------------

_GROUPS = re.compile(r"(begin|end)[ _]?(group|repeat)")
_SELECT = re.compile(r"(select[ _]?one|select[ _]?multiple|rank)\s+(\S+)(\s+or[ _]other)?", re.I)
_BOUND = re.compile(r"\.\s*(>=|<=|>|<)\s*(-?\d{1,12}(?:\.\d{1,6})?)(?![\d.])")
_NOT_ASKED = frozenset({"note", "start", "end", "today", "audit", "hidden", "csv-external"})
_FREE = frozenset({"text", "string", "calculate", "barcode", "file", "time", "xml-external"})
# Types that are direct identifiers by themselves.
_TELLING = {
    **dict.fromkeys(("deviceid", "subscriberid", "simserial"), "device"),
    **dict.fromkeys(("geopoint", "geotrace", "geoshape", "start-geopoint"), "coordinates"),
    "phonenumber": "phone",
    "username": "user name",
    "email": "email",
    "image": "photo",
    "video": "photo",
    "audio": "biometric",
}


@dataclass(slots=True)
class _Survey:
    """What is known while the survey sheet is read from top to bottom."""

    language: str
    choices: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)


def read_xlsform(path: Path, _: str | None, form: FormReading) -> Asked:
    """Read a form from the sheets ``survey``, ``choices`` and ``settings`` of a workbook."""
    found = sheets(path)
    if "survey" not in found:
        raise FileError(f"{path.name!r} must have a sheet 'survey'. Got none of the name instead.")
    require_headings(found["survey"], ("type", "name"), f"{path.name} (survey)")
    settings = (found.get("settings") or [SheetRow(0, {})])[0]
    name, language = settings["form_id"] or path.stem, settings["default_language"]
    form.form = Form(name, purpose=settings["form_title"])
    survey = _Survey(language)
    for row in found.get("choices", []):
        name, code = row["list_name"] or row["list name"], row["name"] or row["value"]
        if name and code:
            survey.choices.setdefault(name, []).append((code, _xlsform_label(row, language)))
    for row in found["survey"]:
        yield from _xlsform_fields(row, survey, form)
    if survey.groups:
        form.note(f"Group {shown(survey.groups[-1])} is not ended.")


def _xlsform_label(row: SheetRow, language: str) -> str:
    """Return the label in the default language, else the first there is."""
    wanted = [f"label::{language}".lower(), f"label:{language}".lower(), "label"]
    others = [name for name in row.cells if name.startswith("label:")]
    return next((row[name] for name in [*wanted, *others] if row[name]), "")


def _xlsform_fields(row: SheetRow, survey: _Survey, form: FormReading) -> Asked:
    kind, name, where = " ".join(row["type"].split()), row["name"], f"survey, row {row.number}"
    if not kind or kind.lower() in _NOT_ASKED:
        return
    if group := _GROUPS.fullmatch(kind.lower()):
        if group[1] == "begin":
            survey.groups.append(name)
            if group[2] == "repeat":
                form.note("What a repeated group asks of each is read once.")
        elif survey.groups:
            survey.groups.pop()
        else:
            form.broken.append(f"{where}: a group ends that did not begin")
        return
    path, label = [*filter(None, survey.groups), name], _xlsform_label(row, survey.language)
    select, universe = _SELECT.fullmatch(kind), row["relevant"]
    options = survey.choices.get(select[2]) if select else None
    if not name:
        form.broken.append(f"{where}: name is empty")
    elif select is None:
        plain = kind.split()[0].lower()
        answers = _xlsform_answers(row, plain, words(name) + words(label))
        if answers is not None:
            yield from ask(path, label, universe=universe, **answers)
        else:
            form.broken.append(f"{where}: the type {shown(plain)} is not one of XLSForm's")
    elif options is None:
        form.broken.append(f"{where}: the list {shown(select[2])} is not in the sheet 'choices'")
    else:
        several = "one" not in select[1].lower()
        more: Any = {"several": several, "other": bool(select[3]), "universe": universe}
        yield from ask(path, label, options=options, **more)


def _xlsform_answers(row: SheetRow, kind: str, asked: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what a type other than a choice says of the answers; None of an unknown type."""
    if kind in _TELLING:
        return {"identifier": _TELLING[kind]}
    if kind in ("integer", "int", "decimal", "range"):
        return {"intervals": _constrained(row["constraint"][:1000], asked)}
    if kind in ("date", "datetime"):
        return {"kind": {"year": "year", "month-year": "month"}.get(row["appearance"], "day")}
    if kind in ("acknowledge", "trigger"):
        return {"kind": "yes or no"}
    free = kind in _FREE or kind.startswith(("select_one_from", "select_multiple_from"))
    return {} if free else None


def _constrained(text: str, asked: tuple[str, ...]) -> Intervals:
    """Return the numbers that a constraint allows, as ``. >= 0 and . <= 120``."""
    low: float | None = None
    high: float | None = None
    for sign, number in _BOUND.findall(text) if " or " not in text else ():
        value = float(number) if "." in number else int(number)
        if sign[0] == ">":
            low = value + 1 if sign == ">" and value != 0 else value
        else:
            high = value - 1 if sign == "<" else value
    return bounded_numbers(asked, low, high)


# --- LimeSurvey --------------------------------------------------------------------------------

_ONE_OF = "L!O"
_SEVERAL = "MP"
_SHOWN_ONLY = "X|*"
_SCALES = {
    "5": "12345",
    "A": "12345",
    "B": [str(n) for n in range(1, 11)],
    "C": ("Yes", "No", "Uncertain"),
    "E": ("Increase", "Same", "Decrease"),
    "G": ("Female", "Male"),
    "Y": ("Yes", "No"),
}
# Of the parts of a question in an .lss file: their class, and the columns that name the question,
# the part itself, its code, its text and its place.
_PARTS = {
    "subquestions": ("SQ", "parent_qid", "qid", "title", "question", "question_order"),
    "answers": ("A", "qid", "aid", "code", "answer", "sortorder"),
}


def is_limesurvey(columns: frozenset[str]) -> bool:
    """Tell the tab-separated export of a survey by the names of its columns."""
    return {"class", "type/scale", "name", "text"} <= columns


def read_limesurvey(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a survey structure: ``.lss`` or its tab-separated export."""
    packed = path.suffix.lower() in (".lss", ".xml")
    rows = _lss_rows(open_xml(path)) if packed else read_sheet(path, encoding)
    language = next((row["text"] for row in rows if row["name"] == "language"), "")
    kept = [row for row in rows if row["language"] in ("", language or row["language"])]
    starts = [i for i, row in enumerate(kept) if row["class"] in ("Q", "G")] + [len(kept)]
    group = ""
    for start, end in pairwise(starts):
        head, parts = kept[start], kept[start + 1 : end]
        if head["class"] == "G":
            group = plain_text(head["name"])
        elif not head["name"]:
            form.broken.append(f"row {head.number}: name is empty")
        else:
            yield from _lime_fields(head, parts, group, form)


def _lime_fields(head: SheetRow, parts: Sequence[SheetRow], group: str, form: FormReading) -> Asked:
    kind, name = head["type/scale"], head["name"]
    path, label = [part for part in (group, name) if part], plain_text(head["text"])
    listed = {
        what: [(row["name"], plain_text(row["text"])) for row in parts if row["class"] == what]
        for what in ("A", "SQ")
    }
    answers, items = listed["A"], listed["SQ"]
    if kind in _SCALES:
        answers = [(one, one) for one in _SCALES[kind]]
    universe = head["relevance"] if head["relevance"] != "1" else ""
    if kind in _SHOWN_ONLY:
        return
    other = head["other"] == "Y"
    if kind in _ONE_OF and not answers:
        form.broken.append(f"row {head.number}: {shown(name)} has no answers")
    elif kind in _SEVERAL:
        asked: Any = {"name": name, "universe": universe, "other": other}
        yield from ask(path, label, options=items, several=True, **asked)
    else:
        for code, said in items or [("", "")]:
            told = words(name) + words(label) + words(said)
            intervals = dates("day") if kind == "D" else None
            yield from ask(
                [*path, code] if code else path,
                f"{label}: {said}" if said else label,
                name=f"{name}.{code}" if code else name,
                options=answers,
                other=other and bool(answers),
                intervals=bounded_numbers(told) if kind in ("N", "K", ":") else intervals,
                universe=universe,
            )


def _lss_rows(root: Any) -> list[SheetRow]:
    """Return the parts of an ``.lss`` file as rows of the tab-separated export."""
    tables: dict[str, list[dict[str, str]]] = {}
    for section in root:
        rows = (row for held in children(section, "rows") for row in children(held, "row"))
        tables[local_name(section)] = [
            {local_name(cell): (cell.text or "").strip() for cell in row} for row in rows
        ]

    def texts(table: str, key: str) -> dict[str, dict[str, str]]:
        """Return the texts of newer files, which stand apart, in the first language."""
        return {row.get(key, ""): row for row in reversed(tables.get(table, []))}

    said = {"question": texts("question_l10ns", "qid"), "answer": texts("answer_l10ns", "aid")}
    groups = {row.get("gid", ""): row for row in tables.get("groups", [])}
    groups |= texts("group_l10ns", "gid")
    parts: dict[str, list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for table, (what, home, key, code, text, order) in _PARTS.items():
        for row in tables.get(table, []):
            apart = said[text].get(row.get(key, ""), {}).get(text)
            cells = {"class": what, "name": row.get(code, ""), "text": apart or row.get(text, "")}
            place = row.get(order, "0")
            parts[row.get(home, "")].append((int(place) if place.isdecimal() else 0, cells))
    found: list[dict[str, str]] = []
    for row in tables.get("questions", []):
        qid = row.get("qid", "")
        named = groups.get(row.get("gid", ""), {}).get("group_name", "")
        told = {name: row.get(name, "") for name in ("relevance", "other")}
        told |= {"name": row.get("title", ""), "type/scale": row.get("type", "")}
        told["text"] = said["question"].get(qid, row).get("question", "")
        found += [{"class": "G", "name": named}, {"class": "Q", **told}]
        found += [cells for _, cells in sorted(parts[qid], key=lambda part: part[0])]
    return [SheetRow(number, cells) for number, cells in enumerate(found, 1)]
