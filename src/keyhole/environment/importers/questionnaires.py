"""Questionnaires: ONS eQ and SurveyJS (JSON), and plain ones in text, Markdown or CSV.

In plain text a question is a numbered line, a line that ends in ``?`` or ``:``, or one before
lines of answers (``( ) Male``, ``- [ ] White``, ``* never``). Boxes ``[ ]`` may be chosen together,
round marks and bullets only one, unless the question says "all that apply".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhole.environment.importers.fields import (
    Asked,
    FormReading,
    ask,
    capture,
    dates,
    plain_text,
    usual_numbers,
)
from keyhole.environment.importers.opening import SheetRow, decoded_text, open_json, read_sheet
from keyhole.environment.model import CapturedField, Intervals
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_DEEPEST = 60


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text, that of its first language, or that with placeholders."""
    if isinstance(value, Mapping):
        told = (value[key] for key in ("text", "default", "en") if key in value)
        value = next(told, next(iter(value.values()), ""))
    return plain_text(str(value)) if isinstance(value, str | int | float) else ""


def _number(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and abs(value) < 1e15 else None


# --- ONS eQ ------------------------------------------------------------------------------------

_EQ_KINDS: Mapping[Any, Any] = {
    **dict.fromkeys(("Number", "Currency", "Percentage", "Unit", "Duration"), "number"),
    "Date": "day",
    "MonthYearDate": "month",
    "YearDate": "year",
}
_EQ_TELLING = {"MobileNumber": "phone", "Address": "address"}


def is_eq(document: Any) -> bool:
    """Tell a questionnaire of the ONS by its keys."""
    keys = _mapping(document).keys()
    return "survey_id" in keys and bool({"sections", "groups"} & keys)


def read_eq(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read an ONS electronic questionnaire; of the variants of a question the first counts."""
    document = open_json(path, encoding)
    form.title(_text(document.get("title")))
    return _eq_fields(document, set(), form, 0)


def _eq_fields(node: Any, seen: set[str], form: FormReading, depth: int) -> Asked:
    """Look for questions wherever they stand: in blocks, variants, groups or sections."""
    if depth > _DEEPEST:
        form.broken.append(f"a question stands more than {_DEEPEST} deep")
    elif isinstance(node, list):
        for one in node:
            yield from _eq_fields(one, seen, form, depth + 1)
    elif isinstance(node, Mapping) and isinstance(node.get("answers"), list) and "id" in node:
        answers = _mappings(node["answers"])
        for answer in answers:
            name = _text(answer.get("id"))
            if not name or name in seen:
                continue
            seen.add(name)
            said = [_text(node.get("title"))]
            if len(answers) > 1 or not said[0]:
                said.append(_text(answer.get("label")))
            try:
                yield from _eq_answer(answer, name, ": ".join(filter(None, said)))
            except ValueError as error:
                form.broken.append(f"answer {name!r}: {error}")
    elif isinstance(node, Mapping):
        for key, one in node.items():
            if key not in ("routing_rules", "skip_conditions", "when", "placeholders"):
                yield from _eq_fields(one, seen, form, depth + 1)


def _eq_answer(answer: Mapping[str, Any], name: str, label: str) -> list[CapturedField]:
    kind = answer.get("type")
    options = [
        (_text(one.get("value")) or _text(one.get("label")), _text(one.get("label")))
        for one in _mappings(answer.get("options"))
    ]
    if kind in ("Radio", "Checkbox", "Dropdown", "Relationship") and not options:
        raise ValueError("it has no options")
    low, high = (_number(_mapping(answer.get(k)).get("value")) for k in ("minimum", "maximum"))
    more: Any = {"several": kind == "Checkbox" and len(options) > 1, "low": low, "high": high}
    more |= {"kind": _EQ_KINDS.get(kind, ""), "identifier": _EQ_TELLING.get(str(kind))}
    return ask([name.removesuffix("-answer")], label, name=name, options=options, **more)


# --- SurveyJS ----------------------------------------------------------------------------------

_ONE_OF = ("radiogroup", "dropdown", "imagepicker", "buttongroup")
_SEVERAL = ("checkbox", "tagbox", "ranking")
_SHOWN_ONLY = ("html", "image", "expression", "file", "signaturepad")
_INPUTS: Mapping[str, Any] = {
    **dict.fromkeys(("date", "datetime", "datetime-local"), "day"),
    "month": "month",
    "number": "number",
    "range": "number",
}
_TELLING = {"email": "email", "tel": "phone"}


def is_surveyjs(document: Any) -> bool:
    """Tell a survey of SurveyJS by its pages of elements."""
    parts = _mapping(document).get("pages", _mapping(document).get("elements"))
    return any("elements" in one or ("type" in one and "name" in one) for one in _mappings(parts))


def read_surveyjs(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a SurveyJS survey."""
    document = open_json(path, encoding)
    form.title(_text(document.get("title")))
    return _js_fields(document, [], form)


def _js_fields(node: Mapping[str, Any], path: list[str], form: FormReading) -> Asked:
    if len(path) > _DEEPEST:
        form.broken.append(f"a panel stands more than {_DEEPEST} deep")
        return
    for page in _mappings(node.get("pages")):
        yield from _js_fields(page, path, form)
    for one in _mappings(node.get("elements", node.get("templateElements"))):
        kind, name = one.get("type"), _text(one.get("name"))
        if kind in ("panel", "paneldynamic"):
            yield from _js_fields(one, [*path, name or "panel"], form)
        elif not name or not isinstance(kind, str):
            form.broken.append("an element has no name or no type")
        elif kind not in _SHOWN_ONLY:
            yield from _js_question(one, kind, [*path, name], form)


def _js_options(listed: Any) -> list[tuple[str, str]]:
    found = []
    for one in listed if isinstance(listed, list) else ():
        value = _text(one.get("value")) if isinstance(one, Mapping) else _text(one)
        label = _text(one.get("text")) if isinstance(one, Mapping) else value
        found.append((value or label, label))
    return [one for one in found if one[0]]


def _js_question(one: Mapping[str, Any], kind: str, path: list[str], form: FormReading) -> Asked:
    label, options = _text(one.get("title")), _js_options(one.get("choices"))
    other = bool(one.get("hasOther") or one.get("showOtherItem"))
    more: Any = {"universe": _text(one.get("visibleIf"))}
    if kind in ("matrix", "multipletext", "matrixdropdown", "matrixdynamic"):
        yield from _js_parts(one, kind, path, label, form)
        return
    if kind in (*_ONE_OF, *_SEVERAL):
        more |= {"options": options, "several": kind in _SEVERAL, "other": other}
        if not options and not other:
            more["several"] = False
            if "choicesByUrl" not in one:
                form.broken.append(f"question {'.'.join(path)!r} has no choices")
                return
    elif kind == "boolean":
        more["kind"] = "yes or no"
    elif kind == "rating":
        low, high = _number(one.get("rateMin")) or 1, _number(one.get("rateMax")) or 5
        more |= {"kind": "number", "low": low, "high": high}
    else:
        written = _text(one.get("inputType"))
        more |= {"kind": _INPUTS.get(written, ""), "identifier": _TELLING.get(written)}
        more |= {"low": _number(one.get("min")), "high": _number(one.get("max"))}
    yield from ask(path, label, **more)


def _js_parts(
    one: Mapping[str, Any], kind: str, path: list[str], label: str, form: FormReading
) -> Asked:
    """Read the rows of a matrix, its columns, or the items of several texts."""
    said = f"{label}: " if label else ""
    if kind == "matrix":
        options = _js_options(one.get("columns"))
        for code, row in _js_options(one.get("rows")):
            yield capture([*path, code], f"{said}{row or code}", options=options)
        return
    for part in _mappings(one.get("items" if kind == "multipletext" else "columns")):
        name = _text(part.get("name"))
        if not name:
            form.broken.append(f"a part of {'.'.join(path)!r} has no name")
            continue
        told = f"{said}{_text(part.get('title')) or name}"
        listed = part.get("choices", one.get("choices") if kind != "multipletext" else None)
        given = {**part, "title": told, "choices": listed}
        cell = part.get("cellType", "dropdown" if listed else "text")
        yield from _js_question(given, str(cell), [*path, name], form)


# --- plain text and Markdown -------------------------------------------------------------------

_NUMBERED = re.compile(r"(?:q(?:uestion)?\s*)?\d{1,3}[a-z]?\s*[.):]\s+|q\d{1,3}[.:)]?\s+", re.I)
_ANSWER = re.compile(
    r"(?:[-*+•]\s+)?(\(\s*\)|\[\s*\]|[○◯☐□❏◻]|[-*+•])\s+|([a-z]|\d{1,2})\)\s+", re.I
)
_INLINE = re.compile(r"\s*(\(\s*\)|\[\s*\]|[○◯☐□❏◻])\s*")
_BOXES = frozenset("[☐□❏◻")
_ALL = re.compile(r"all that apply|more than one|select all|check all|one or more", re.I)
_BLANK = re.compile(r"_{3,}|\.{4,}|…{2,}|\|__")
_HINT = re.compile(r"dd|mm/|yyyy|\bdate\b|birthday", re.I)
_COUNTED = re.compile(r"how (many|much|old)|number of|\bage\b|\bin (years|months|dollars)\b", re.I)
_MARKUP = re.compile(r"[*_`]{2,}|^>\s*")


def read_plain(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a questionnaire from text or Markdown."""
    fields: list[CapturedField] = []
    section = question = title = ""
    marks: list[str] = []
    options: list[str] = []

    def end() -> None:
        if question:
            fields.extend(_plain_fields(section, question, marks, options, len(fields) + 1))
        marks.clear()
        options.clear()

    for raw in decoded_text(path, encoding).splitlines():
        line = _MARKUP.sub("", raw.strip()).strip()
        if heading := re.fullmatch(r"#+\s+(.*?)#*", line):
            end()
            told = heading[1].strip()
            if _is_question(told):
                question = told
            else:
                question, section, title = "", told, title or told
        elif question and _is_answer(line) and (answer := _ANSWER.match(line)):
            marks.append((answer[1] or "(")[0])
            options.append(_BLANK.sub("", line[answer.end() :]).strip(" :"))
        elif _is_question(line):
            end()
            question, *parts = _INLINE.split(line)  # "Sex: ( ) Male ( ) Female"
            marks, options = [mark[0] for mark in parts[::2]], parts[1::2]
        elif not line and options:
            end()
            question = ""
    end()
    if not fields:
        raise FileError(
            f"{path.name!r} must hold questions: numbered lines, or lines that end in '?' or ':'. "
            f"Got none instead."
        )
    form.title(title if title != section else "")
    return iter(fields)


def _is_question(line: str) -> bool:
    asked = line.rstrip(" _.…")
    inline = len(parts := _INLINE.split(line)) > 2 and parts[0].strip("-*+• ")
    blank = asked and _BLANK.search(line)
    return bool(_NUMBERED.match(line) or asked.endswith(("?", ":")) or inline or blank)


def _is_answer(line: str) -> bool:
    """Tell lines of answers: those with a box, and bullets that do not ask."""
    found = _ANSWER.match(line)
    boxed = found and found[1] and found[1] not in "-*+•"
    return bool(boxed or (found and not _is_question(line)))


def _plain_fields(
    section: str, question: str, marks: Sequence[str], options: Sequence[str], number: int
) -> Iterable[CapturedField]:
    numbered = _NUMBERED.match(question)
    label = _BLANK.sub("", question[numbered.end() :] if numbered else question).strip(" :")
    name = f"q{number}"
    path = [part for part in (section, name) if part]
    listed = [(one, one) for one in options if one]
    if listed and (_ALL.search(question) or (marks and marks[0] in _BOXES and len(listed) > 2)):
        return ask(path, label, options=listed, several=True, name=name)
    if {one.lower() for one, _ in listed} == {"yes", "no"}:
        return ask(path, label, name=name, kind="yes or no")
    intervals = None if listed else _guessed(question, label)
    return ask(path, label, name=name, options=listed, intervals=intervals)


def _guessed(hint: str, label: str) -> Intervals | None:
    """Tell from its words whether a written answer is a date or a number."""
    if _HINT.search(hint):
        return dates("day")
    return usual_numbers(words(label)) if _COUNTED.search(hint) else None


# --- CSV ---------------------------------------------------------------------------------------

_HEADINGS = {
    "name": ("name", "variable", "variable name", "id", "question id", "item", "code"),
    "label": ("question", "question text", "text", "label", "wording", "description"),
    "answers": ("answers", "options", "choices", "response options", "responses", "answer options"),
    "kind": ("type", "answer type", "format"),
    "section": ("section", "page", "group", "topic"),
}


def _headings(columns: Iterable[str]) -> dict[str, str]:
    """Return the column that holds each part of a question."""
    known = set(columns)
    found = {what: [n for n in names if n in known] for what, names in _HEADINGS.items()}
    return {what: names[0] for what, names in found.items() if names}


def is_listed(columns: frozenset[str]) -> bool:
    """Tell a list of questions by the names of its columns."""
    found = _headings(columns)
    return "label" in found and bool({"answers", "kind"} & found.keys())


def read_listed(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a list of questions, a row each, from CSV or a sheet."""
    rows = read_sheet(path, encoding)
    named = _headings(rows[0].cells)
    return (one for row in rows for one in _listed_fields(row, named, form))


def _listed_fields(row: SheetRow, named: Mapping[str, str], form: FormReading) -> Asked:
    told = {what: row[column] for what, column in named.items()}
    label, kind = told["label"], told.get("kind", "").lower()
    name = told.get("name") or f"q{row.number - 1}"
    if not label and "name" not in told:
        form.broken.append(f"row {row.number}: the question is empty")
        return
    path = [part for part in (told.get("section", ""), name) if part]
    texts = [one.strip() for one in re.split(r"[;|\n]", told.get("answers", "")) if one.strip()]
    parts = [re.match(r"(-?\w{1,4})\s*(?:=|:|\)|\s-)\s+?(.+)", one) for one in texts]
    options = [(m[1], m[2].strip()) if m else (o, o) for m, o in zip(parts, texts, strict=True)]
    if options and (re.search("check|multi|several", kind) or _ALL.search(label)):
        yield from ask(path, label, options=options, several=True, name=name)
    elif {label.lower() for _, label in options} == {"yes", "no"} or kind in ("boolean", "yes/no"):
        yield from ask(path, label, name=name, kind="yes or no")
    else:
        hint = f"{label} {kind}"
        intervals = usual_numbers(words(hint)) if re.search("number|int|numeric", kind) else None
        if intervals is None and not options and kind not in ("text", "string"):
            intervals = _guessed(hint, label)
        yield from ask(path, label, name=name, options=options, intervals=intervals)
