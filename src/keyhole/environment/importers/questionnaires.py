"""Questionnaires: REDCap, XLSForm, LimeSurvey, ONS eQ, SurveyJS, and plain text, Markdown or CSV.

Each reader gives the fields of a document one by one; what is broken is noted in its `FormReading`.
A REDCap dictionary is one form, whatever instruments it is split into: one database holds them
all. Its identifier flag keeps free text apart; users set it for everything that is protected
health information, so a flagged date or choice stays a field to match on.

In plain text a question is a numbered line, a line that ends in ``?`` or ``:``, or one before
lines of answers (``( ) Male``, ``- [ ] White``, ``* never``). Boxes ``[ ]`` may be chosen together,
round marks and bullets only one, unless the question says "all that apply".
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from keyhole.core.names import shown
from keyhole.data.codebook import children, local_name
from keyhole.environment.importers import fields
from keyhole.environment.importers.fields import Asked, FormReading, ask, capture, plain_text
from keyhole.environment.importers.reading import (
    SheetRow,
    decoded_text,
    mapping,
    open_json,
    open_xml,
    read_sheet,
    require_headings,
    sheets,
)
from keyhole.environment.model import CapturedField, Form, Intervals
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_TABLE: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_TYPES = {
    (which, kind): sort
    for which, table in _TABLE.items()
    for sort, kinds in table.get("types", {}).items()
    for kind in kinds.split()
}
_SORTS = get_args(fields.Kind)
_DEEPEST = 60


def _asked(
    form: FormReading,
    sort: str | None,
    path: Sequence[str],
    label: str = "",
    *,
    where: str,
    options: Sequence[tuple[str, str]] = (),
    **more: Any,
) -> Asked:
    """Ask a question of a sort that the table of its format names, or say what keeps it from that.

    ``one`` and ``several`` choose among options, ``= kind`` is a direct identifier, ``hidden`` is
    not asked; the rest are kinds of `fields.ask`, or text.
    """
    if sort == "hidden":
        return
    if not path[-1]:
        form.broken.append(f"{where} has no name")
    elif sort is None:
        form.broken.append(f"{where}: the type of {shown(path[-1])} is unknown")
    elif sort in ("one", "several") and not options and not more.get("other"):
        form.broken.append(f"{where}: {shown(path[-1])} has no answers")
    else:
        more |= {"identifier": sort[2:]} if sort.startswith("= ") else {}
        kind: Any = sort if sort in _SORTS else ""
        yield from ask(path, label, options=options, several=sort == "several", kind=kind, **more)


def kind_of_columns(columns: frozenset[str]) -> str:
    """Tell the kind of a questionnaire by the names of its columns; nothing if it is of none."""
    if {"field_name", "field_type"} <= {*map(_redcap_name, columns)}:
        return "redcap"
    if {"class", "type/scale", "name", "text"} <= columns:
        return "limesurvey"
    listed = _headings(columns).keys()
    asked = "field" not in columns and "label" in listed and {"answers", "kind"} & listed
    return "questions" if asked else ""


def kind_of_json(document: Mapping[str, Any]) -> str:
    """Tell a questionnaire of the ONS by its keys, and SurveyJS by its pages of elements."""
    if "survey_id" in document and {"sections", "groups"} & document.keys():
        return "eq"
    parts = _mappings(document.get("pages", document.get("elements")))
    known = any("elements" in one or {"type", "name"} <= one.keys() for one in parts)
    return "surveyjs" if known else "json schema"


# --- REDCap ------------------------------------------------------------------------------------

_FLAGGED = "Flagged dates and numbers remain fields to match on; flagged text is kept apart."


def _redcap_name(column: str) -> str:
    name = re.sub(r"[^a-z]+", "_", column).strip("_")
    return str(_TABLE["redcap"]["columns"].get(name, name))


def read_redcap(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a data dictionary, as CSV or as a sheet."""
    rows = [
        SheetRow(row.number, {_redcap_name(name): cell for name, cell in row.cells.items()})
        for row in read_sheet(path, encoding)
    ]
    require_headings(rows, ("field_name", "field_type"), path.name)
    for row in rows:
        sort = _TYPES.get(("redcap", row["field_type"].lower() or "text"))
        name, label = row["field_name"], plain_text(row["field_label"])
        asked: Any = {"path": [*filter(None, [row["form_name"]]), name], "label": label}
        asked |= {"name": name, "universe": row["branching_logic"]}
        if name and sort in ("text", "slider"):
            yield _redcap_written(row, sort, asked, form)
            continue
        parts = (part.partition(",") for part in re.split(r"[|\n]", row["choices"]))
        options = [(code.strip(), plain_text(said)) for code, _, said in parts if code.strip()]
        yield from _asked(form, sort, options=options, where=f"row {row.number}", **asked)


def _redcap_written(
    row: SheetRow, sort: str, asked: dict[str, Any], form: FormReading
) -> CapturedField:
    validation, intervals = row["validation"].lower(), None
    low, high = fields.parse_number(row["lowest"]), fields.parse_number(row["highest"])
    if validation.startswith("date"):
        last = fields.parse_day(row["highest"])
        after = last + datetime.timedelta(1) if last and last < datetime.date.max else None
        intervals = fields.dates("day", fields.parse_day(row["lowest"]), after)
    elif sort == "slider":
        intervals = fields.bounded_numbers((), low or 0, high or 100)
    elif validation.startswith(("intege", "number")):
        told = words(row["field_name"]) + words(asked["label"])
        intervals = fields.bounded_numbers(told, low, high)
    direct = _TABLE["redcap"]["direct"].get(validation.partition("_")[0])
    found = capture(intervals=intervals, identifier=direct, **asked)
    if found.identifier is None and row["identifier"].lower() in ("y", "yes", "1", "true"):
        if intervals is None:
            own = fields.kind_of_identifier(asked["path"], asked["label"])
            return replace(found, identifier=own)
        form.note(_FLAGGED)
    return found


# --- XLSForm (ODK, Kobo, SurveyCTO) -------------------------------------------------------------

_GROUPS = re.compile(r"(begin|end)[ _]?(group|repeat)")
_SELECT = re.compile(r"(select[ _]?one|select[ _]?multiple|rank)\s+(\S+)(\s+or[ _]other)?", re.I)
_BOUND = re.compile(r"\.\s*(>=|<=|>|<)\s*(-?\d{1,12}(?:\.\d{1,6})?)(?![\d.])")


def read_xlsform(path: Path, _: str | None, form: FormReading) -> Asked:
    """Read a form from the sheets ``survey``, ``choices`` and ``settings`` of a workbook."""
    found = sheets(path)
    require_headings(found.get("survey", []), ("type", "name"), f"{path.name} (survey)")
    settings = (found.get("settings") or [SheetRow(0, {})])[0]
    language = settings["default_language"]
    form.form = Form(settings["form_id"] or path.stem, purpose=settings["form_title"])
    choices: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in found.get("choices", []):
        name, code = row["list_name"] or row["list name"], row["name"] or row["value"]
        if name and code:
            choices[name].append((code, _xlsform_label(row, language)))
    groups: list[str] = []
    for row in found["survey"]:
        kind, where = " ".join(row["type"].split()), f"survey, row {row.number}"
        group, select = _GROUPS.fullmatch(kind.lower()), _SELECT.fullmatch(kind)
        if group and group[1] == "begin":
            groups.append(row["name"])
            if group[2] == "repeat":
                form.note("The questions of a repeated group are read once.")
        elif group and groups:
            groups.pop()
        elif group:
            form.broken.append(f"{where}: a group ends that did not begin")
        elif select and select[2] not in choices:
            told = f"the list {shown(select[2])} is not in the sheet 'choices'"
            form.broken.append(f"{where}: {told}")
        elif kind:
            first, more = kind.split()[0].lower(), dict[str, Any]()
            sort = _TYPES.get(("xlsform", first))
            if select:
                sort = "one" if "one" in select[1].lower() else "several"
                more = {"options": choices[select[2]], "other": bool(select[3])}
            elif first.startswith(("select_one_from", "select_multiple_from")):
                sort = "text"
            elif sort == "number":
                more = _bounds(row["constraint"][:1000])
            elif sort == "day":
                sort = {"year": "year", "month-year": "month"}.get(row["appearance"], sort)
            more |= {"universe": row["relevant"], "where": where}
            label = _xlsform_label(row, language)
            yield from _asked(form, sort, [*filter(None, groups), row["name"]], label, **more)
    if groups:
        form.note(f"Group {shown(groups[-1])} is not closed.")


def _xlsform_label(row: SheetRow, language: str) -> str:
    """Return the label in the default language, else the first there is."""
    wanted = [f"label::{language}".lower(), f"label:{language}".lower(), "label"]
    others = [name for name in row.cells if name.startswith("label:")]
    return next((row[name] for name in [*wanted, *others] if row[name]), "")


def _bounds(constraint: str) -> dict[str, Any]:
    """Read the bounds of numbers, as ``. >= 0 and . <= 120``."""
    found: dict[str, Any] = {}
    for sign, number in _BOUND.findall(constraint) if " or " not in constraint else ():
        value = float(number) if "." in number else int(number)
        if sign[0] == ">":
            found["low"] = value + 1 if sign == ">" and value != 0 else value
        else:
            found["high"] = value - 1 if sign == "<" else value
    return found


# --- LimeSurvey --------------------------------------------------------------------------------


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
        else:
            yield from _lime_fields(head, parts, group, form)


def _lime_fields(head: SheetRow, parts: Sequence[SheetRow], group: str, form: FormReading) -> Asked:
    kind, name = head["type/scale"], head["name"]
    path, label = [*filter(None, [group]), name], plain_text(head["text"])
    answers, items = (
        [(row["name"], plain_text(row["text"])) for row in parts if row["class"] == what]
        for what in ("A", "SQ")
    )
    answers = [(one, one) for one in _TABLE["limesurvey"]["scales"].get(kind, ())] or answers
    sort = _TYPES.get(("limesurvey", kind), "text")
    if sort == "several":  # the items are its answers; else each is a question
        answers, items = items, []
    more: Any = {"universe": head["relevance"] if head["relevance"] != "1" else ""}
    more |= {"where": f"row {head.number}", "options": answers}
    more["other"] = head["other"] == "Y" and bool(answers or sort == "several")
    for code, said in items or [("", "")]:
        place, what = [*path, code] if code else path, f"{label}: {said}" if said else label
        yield from _asked(form, sort, place, what, name=f"{name}.{code}" if code else name, **more)


def _lss_rows(root: Any) -> list[SheetRow]:
    """Return the parts of an ``.lss`` file as rows of the tab-separated export."""
    tables: dict[str, list[dict[str, str]]] = defaultdict(list)
    for section in root:
        rows = (row for held in children(section, "rows") for row in children(held, "row"))
        tables[local_name(section)] = [
            defaultdict(str, {local_name(cell): (cell.text or "").strip() for cell in row})
            for row in rows
        ]

    def texts(table: str, key: str) -> dict[str, dict[str, str]]:
        """Return the texts of newer files, which stand apart, in the first language."""
        return {row[key]: row for row in reversed(tables[table])}

    said = {"question": texts("question_l10ns", "qid"), "answer": texts("answer_l10ns", "aid")}
    groups = texts("groups", "gid") | texts("group_l10ns", "gid")
    parts: dict[str, list[tuple[float, dict[str, str]]]] = defaultdict(list)
    for table, (what, home, key, code, text, order) in _TABLE["limesurvey"]["parts"].items():
        for row in tables[table]:
            apart = said[text].get(row[key], {}).get(text)
            cells = {"class": what, "name": row[code], "text": apart or row[text]}
            parts[row[home]].append((fields.parse_number(row[order]) or 0, cells))
    found: list[dict[str, str]] = []
    for row in tables["questions"]:
        told = {name: row[name] for name in ("relevance", "other")}
        told |= {"name": row["title"], "type/scale": row["type"]}
        told["text"] = said["question"].get(row["qid"], row)["question"]
        named = groups.get(row["gid"], {}).get("group_name", "")
        found += [{"class": "G", "name": named}, {"class": "Q", **told}]
        found += [cells for _, cells in sorted(parts[row["qid"]], key=lambda part: part[0])]
    return [SheetRow(number, cells) for number, cells in enumerate(found, 1)]


# --- ONS eQ ------------------------------------------------------------------------------------


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


def read_eq(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read an ONS electronic questionnaire; of the variants of a question the first counts."""
    document = open_json(path, encoding)
    form.title(_text(document.get("title")))
    return _eq_fields(document, set(), form, 0)


def _eq_fields(node: Any, seen: set[str], form: FormReading, depth: int) -> Asked:
    """Look for questions wherever they stand: in blocks, variants, groups or sections."""
    if depth > _DEEPEST:
        form.broken.append(f"a question is nested more than {_DEEPEST} deep")
    elif isinstance(node, list):
        for one in node:
            yield from _eq_fields(one, seen, form, depth + 1)
    elif isinstance(node, Mapping) and isinstance(node.get("answers"), list) and "id" in node:
        answers = _mappings(node["answers"])
        for answer in answers:
            name = _text(answer.get("id"))
            if name and name not in seen:
                seen.add(name)
                said = [_text(node.get("title"))]
                if len(answers) > 1 or not said[0]:
                    said.append(_text(answer.get("label")))
                yield from _eq_answer(answer, name, ": ".join(filter(None, said)), form)
    elif isinstance(node, Mapping):
        for key, one in node.items():
            if key not in ("routing_rules", "skip_conditions", "when", "placeholders"):
                yield from _eq_fields(one, seen, form, depth + 1)


def _eq_answer(answer: Mapping[str, Any], name: str, label: str, form: FormReading) -> Asked:
    options = [
        (_text(one.get("value")) or _text(one.get("label")), _text(one.get("label")))
        for one in _mappings(answer.get("options"))
    ]
    sort = _TYPES.get(("eq", str(answer.get("type"))), "text")
    sort = "one" if sort == "several" and len(options) == 1 else sort
    low, high = (_number(mapping(answer.get(k)).get("value")) for k in ("minimum", "maximum"))
    more: Any = {"options": options, "low": low, "high": high, "where": f"answer {name!r}"}
    yield from _asked(form, sort, [name.removesuffix("-answer")], label, name=name, **more)


# --- SurveyJS ----------------------------------------------------------------------------------


def read_surveyjs(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a SurveyJS survey."""
    document = open_json(path, encoding)
    form.title(_text(document.get("title")))
    return _js_fields(document, [], form)


def _js_fields(node: Mapping[str, Any], path: list[str], form: FormReading) -> Asked:
    if len(path) > _DEEPEST:
        form.broken.append(f"a panel is nested more than {_DEEPEST} deep")
        return
    for page in _mappings(node.get("pages")):
        yield from _js_fields(page, path, form)
    for one in _mappings(node.get("elements", node.get("templateElements"))):
        kind, name = one.get("type"), _text(one.get("name"))
        if kind in ("panel", "paneldynamic"):
            yield from _js_fields(one, [*path, name or "panel"], form)
        elif not name or not isinstance(kind, str):
            form.broken.append("an element has no name or no type")
        else:
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
    if kind in ("matrix", "multipletext", "matrixdropdown", "matrixdynamic"):
        yield from _js_parts(one, kind, path, f"{label}: " if label else "", form)
        return
    written = "surveyjs inputs", _text(one.get("inputType"))
    sort = _TYPES.get(("surveyjs", kind)) or _TYPES.get(written, "text")
    more: Any = {"universe": _text(one.get("visibleIf")), "where": f"question {'.'.join(path)!r}"}
    if sort in ("one", "several"):
        more |= {"other": bool(one.get("hasOther") or one.get("showOtherItem")), "options": options}
        sort = sort if options or more["other"] or "choicesByUrl" not in one else "text"
    elif kind == "rating":
        more |= {"low": _number(one.get("rateMin")) or 1, "high": _number(one.get("rateMax")) or 5}
    else:
        more |= {"low": _number(one.get("min")), "high": _number(one.get("max"))}
    yield from _asked(form, sort, path, label, **more)


def _js_parts(
    one: Mapping[str, Any], kind: str, path: list[str], said: str, form: FormReading
) -> Asked:
    """Read the rows of a matrix, its columns, or the items of several texts."""
    if kind == "matrix":
        options = _js_options(one.get("columns"))
        for code, row in _js_options(one.get("rows")):
            yield capture([*path, code], f"{said}{row or code}", options=options)
        return
    texts = kind == "multipletext"
    for part in _mappings(one.get("items" if texts else "columns")):
        name = _text(part.get("name"))
        listed = part.get("choices", None if texts else one.get("choices"))
        asked = {"title": f"{said}{_text(part.get('title')) or name}", "choices": listed}
        cell = str(part.get("cellType", "dropdown" if listed else "text"))
        yield from _js_question({**part, **asked}, cell, [*path, name], form)


# --- plain text, Markdown and CSV ----------------------------------------------------------------

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
    found: list[CapturedField] = []
    section = question = title = ""
    marks: list[str] = []
    options: list[str] = []

    def end() -> None:
        if question:
            numbered, name = _NUMBERED.match(question), f"q{len(found) + 1}"
            label = _BLANK.sub("", question[numbered.end() if numbered else 0 :]).strip(" :")
            listed = [(one, one) for one in options if one]
            boxes = len(listed) > 2 and marks[0] in _BOXES
            found.extend(_written(section, name, label, question, listed, several=boxes))
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
        elif question and (answer := _answer(line)):
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
    if not found:
        raise FileError(
            f"{path.name!r} must hold questions: numbered lines, or lines that end in '?' or ':'. "
            f"Got none instead."
        )
    form.title(title if title != section else "")
    return iter(found)


def _is_question(line: str) -> bool:
    asked = line.rstrip(" _.…")
    inline = len(parts := _INLINE.split(line)) > 2 and parts[0].strip("-*+• ")
    blank = asked and _BLANK.search(line)
    return bool(_NUMBERED.match(line) or asked.endswith(("?", ":")) or inline or blank)


def _answer(line: str) -> re.Match[str] | None:
    """Match a line of an answer: one with a box, or a bullet that does not ask."""
    found = _ANSWER.match(line)
    boxed = found and found[1] and found[1] not in "-*+•"
    return found if boxed or not _is_question(line) else None


def _written(
    section: str,
    name: str,
    label: str,
    hint: str,
    options: Sequence[tuple[str, str]],
    *,
    several: bool = False,
    intervals: Intervals | None = None,
) -> list[CapturedField]:
    """Ask a question of a plain list; its words say whether an answer is a date or a number."""
    path = [part for part in (section, name) if part]
    if options and (several or _ALL.search(hint)):
        return ask(path, label, name=name, options=options, several=True)
    if {one.lower() for _, one in options} == {"yes", "no"}:
        return ask(path, label, name=name, kind="yes or no")
    if intervals is None and not options and _HINT.search(hint):
        intervals = fields.dates("day")
    elif intervals is None and not options and _COUNTED.search(hint):
        intervals = fields.usual_numbers(words(label))
    return ask(path, label, name=name, options=options, intervals=intervals)


def _headings(columns: Iterable[str]) -> dict[str, str]:
    """Return the column that holds each part of a question."""
    known = set(columns)
    parts = _TABLE["listed"]["columns"].items()
    found = {what: [n for n in names if n in known] for what, names in parts}
    return {what: names[0] for what, names in found.items() if names}


def read_listed(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read a list of questions, a row each, from CSV or a sheet."""
    rows = read_sheet(path, encoding)
    require_headings(rows, (), path.name)
    named = _headings(rows[0].cells)
    for row in rows:
        told = defaultdict(str, {what: row[column] for what, column in named.items()})
        label, kind, name = told["label"], told["kind"].lower(), told["name"]
        if not label and "name" not in named:
            form.broken.append(f"row {row.number}: the question is empty")
            continue
        texts = [one.strip() for one in re.split(r"[;|\n]", told["answers"]) if one.strip()]
        parts = [re.match(r"(-?\w{1,4})\s*(?:=|:|\)|\s-)\s+?(.+)", one) for one in texts]
        options = [(m[1], m[2].strip()) if m else (o, o) for m, o in zip(parts, texts, strict=True)]
        if kind in ("boolean", "yes/no"):
            options = [("yes", "Yes"), ("no", "No")]
        hint = "" if kind in ("text", "string") else f"{label} {kind}"
        numbers = re.search("number|int|numeric", kind)
        intervals = fields.usual_numbers(words(hint)) if numbers else None
        several = bool(re.search("check|multi|several", kind))
        more: Any = {"several": several, "intervals": intervals}
        name = name or f"q{row.number - 1}"
        yield from _written(told["section"], name, label, hint, options, **more)
