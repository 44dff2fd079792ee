"""Codebooks: DDI-Codebook, DDI-Lifecycle, SDMX code lists, labels of SPSS, Stata and SAS files.

Elements are found by their local names, wherever an archive put them. Counts and extremes of
the records (``catStat``, ``sumStat``) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keyhole.core.names import repeated, shown
from keyhole.data.codebook import children, local_name, own_text
from keyhole.data.formats import find_format
from keyhole.data.guarding import ask_reader
from keyhole.data.statistical import read_with_metadata
from keyhole.environment.importers import fields
from keyhole.environment.importers.reading import open_xml
from keyhole.environment.model import CapturedField, Category, Form, Intervals
from keyhole.environment.scenarios.recoding import code_text
from keyhole.screening.identifiers import words

_WIDE = 3  # a range with this many times more numbers than labels is a scale, not a list
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _all(element: Any, *names: str) -> Iterator[Any]:
    return (one for one in element.iter() if local_name(one) in names)


def _first(element: Any, *names: str) -> str:
    """Return the text of the first part of one of these names that has any, however deep."""
    return next((text for one in _all(element, *names) if (text := _text(one))), "")


# --- DDI-Codebook ------------------------------------------------------------------------------


def read_ddi(path: Path, _: str | None, form: fields.FormReading) -> fields.Asked:
    """Read the variables of a codebook, or the variables or questions of a DDI 3 document."""
    root, name = open_xml(path), path.stem
    if local_name(root) != "codeBook":
        form.title(_first(root, "Title"))
        return _lifecycle(root, form)
    form.title(_first(root, "titl"))
    days = (one.get("date", "") for one in _all(root, "collDate"))
    who = _first(root, "AuthEnty") or _first(root, "producer")
    form.form = Form(name, organisation=who, collected=fields.parse_day(next(days, "")))
    return (_variable(one, place, form) for place, one in enumerate(_all(root, "var"), 1))


def _variable(variable: Any, place: int, form: fields.FormReading) -> CapturedField:
    name = variable.get("name") or variable.get("ID") or f"variable {place}"
    asked = (own_text(one, "qstnLit") or _text(one) for one in children(variable, "qstn"))
    label = own_text(variable, "labl") or own_text(variable, "concept") or next(asked, "")
    found: dict[str, Category] = {}
    for one in children(variable, "catgry"):
        code, said = own_text(one, "catValu"), own_text(one, "labl")
        code = code or said
        if code and code not in found:
            said = said or fields.readable(code)
            kind = fields.category_kind(said)
            if one.get("missing", "").upper() == "Y" and kind in ("value", "other"):
                kind = "not stated"
            found[code] = Category(code, said, kind)
    categories = [*found.values()]
    intervals = _intervals(variable, categories, words(name) + words(label))
    if intervals is not None:
        if any(one.kind == "value" for one in categories):
            form.note("Labels of single values of a scale are left out.")
        categories = [one for one in categories if one.kind != "value"]
    path = [part for part in (variable.get("files", ""), name) if part]
    more: Any = {"categories": categories, "intervals": intervals}
    return fields.capture(path, label, name=name, universe=own_text(variable, "universe"), **more)


def _intervals(
    variable: Any, categories: list[Category], asked: tuple[str, ...]
) -> Intervals | None:
    values = sum(one.kind == "value" for one in categories)
    shape = next(children(variable, "varFormat"), None)
    if shape is not None and shape.get("category") in ("date", "time"):
        return fields.dates("day") if shape.get("category") == "date" and not values else None
    for block in children(variable, "valrng"):
        for one in children(block, "range"):
            low = fields.parse_number(one.get("min") or one.get("minExclusive") or "")
            high = fields.parse_number(one.get("max") or one.get("maxExclusive") or "")
            if low is not None and high is not None and low < high:
                wide = (high - low + 1) >= _WIDE * max(values, 1)
                return fields.number_intervals(low, high) if wide or not values else None
    continuous = variable.get("intrvl") == "contin"
    numeric = shape is not None and shape.get("type") == "numeric"
    if values and not continuous:
        return None
    return fields.usual_numbers(asked) if continuous or numeric else None


# --- DDI-Lifecycle -----------------------------------------------------------------------------

_LISTS = ("CodeListReference", "CodeSchemeReference")


def _lifecycle(root: Any, form: fields.FormReading) -> fields.Asked:
    """Read the variables, or where there are none the questions, of a DDI 3 document."""
    labels = {_id(one): _label(one) for one in _all(root, "Category")}
    lists: dict[str, list[tuple[str, str]]] = {}
    for one in _all(root, "CodeList", "CodeScheme"):
        lists[_id(one)] = [
            (own_text(code, "Value"), labels.get(_reference(code, "CategoryReference"), ""))
            for code in children(one, "Code")
        ]
    questions = {_id(one): one for one in _all(root, "QuestionItem")}
    variables = [one for one in _all(root, "Variable") if _id(one)]
    for place, one in enumerate(variables or [*questions.values()], 1):
        asked = questions.get(_reference(one, "QuestionReference", "SourceQuestion"), one)
        said = _label(one) or _first(asked, "LiteralText", "QuestionText", "Text")
        called = _first(one, "VariableName", "QuestionItemName", "Name") or f"question {place}"
        listed = _reference(one, *_LISTS) or _reference(asked, *_LISTS)
        if listed and listed not in lists:
            form.broken.append(f"the code list of {shown(called)} is not in the document")
            continue
        options = [(code or label, label) for code, label in lists.get(listed, ()) if code or label]
        several = next(
            (c.get("maximumResponses", "1") for c in _all(asked, "ResponseCardinality")), "1"
        )
        # Where variables are listed, each box is a variable of its own.
        boxes = several != "1" and bool(options) and (asked is one or not variables)
        intervals = None if options else _represented(one, asked, words(called) + words(said))
        more: Any = {"options": options, "several": boxes, "intervals": intervals}
        yield from fields.ask([called], said, name=called, **more)


def _id(element: Any) -> str:
    return own_text(element, "ID") or str(element.get("id", ""))


def _label(element: Any, name: str = "Label") -> str:
    """Return the label in English, else the first."""
    found = [c for one in children(element, name) for c in (*children(one, "Content"), one)]
    english = [one for one in found if (one.get(_LANGUAGE) or "").lower().startswith("en")]
    return next((text for one in (*english, *found) if (text := _text(one))), "")


def _reference(element: Any, *names: str) -> str:
    """Return the identifier that the first of some references leads to."""
    found = next(_all(element, *names), None)
    return "" if found is None else _first(found, "ID")


def _represented(one: Any, asked: Any, words_: tuple[str, ...]) -> Intervals | None:
    """Return the numbers or dates of a representation, if it is one of them."""
    held = [local_name(part) for element in (one, asked) for part in element.iter()]
    if any(name.startswith("DateTime") for name in held):
        return fields.dates("day")
    if not any(name.startswith("Numeric") for name in held):
        return None
    low, high = (
        fields.parse_number(_first(one, end) or _first(asked, end)) for end in ("Low", "High")
    )
    return fields.bounded_numbers(words_, low, high)


# --- SDMX --------------------------------------------------------------------------------------


def read_sdmx(path: Path, _: str | None, form: fields.FormReading) -> fields.Asked:
    """Read code lists as the fields of a form, at their finest: codes that have no children."""
    for listed in _all(open_xml(path), "Codelist"):
        name = listed.get("id", "")
        where = f"code list {shown(name)}"
        codes = [one for one in children(listed, "Code") if one.get("id")]
        above = {ref.get("id") for one in codes for up in children(one, "Parent") for ref in up}
        finest = [one for one in codes if one.get("id") not in above]
        if repeated(one.get("id") for one in codes):
            form.broken.append(f"{where} has a code twice")
        elif codes and not finest:
            form.broken.append(f"{where} has only codes that are their own ancestors")
        elif codes:
            options = [(one.get("id"), _label(one, "Name")) for one in finest]
            label = _label(listed, "Name")
            yield fields.capture([name], label, options=options, recognised=False)


# --- SPSS, Stata and SAS -------------------------------------------------------------------------

# How the formats of dates begin.
_DATES = ("DATE", "ADATE", "EDATE", "SDATE", "JDATE", "MMDDYY", "DDMMYY", "YYMMDD", "E8601DA")
_TIMES = ("YMDHMS", "%TC", "%TD", "%D")


def read_statistical_labels(
    path: Path, encoding: str | None, form: fields.FormReading
) -> fields.Asked:
    """Read what an SPSS, Stata or SAS file says of its columns; no record is read.

    Where a column has no labels, its format tells dates from numbers and text.
    """
    # Its reader may die of a damaged file.
    ask_reader(f"{__name__}:answer_metadata", path, "statistical", {"encoding": encoding})
    _, about = read_with_metadata(path, find_format(path), encoding, metadataonly=True)
    form.title(about.file_label or "")
    return (_statistical_field(name, about) for name in about.column_names)


def answer_metadata(given: Mapping[str, Any]) -> bytes:
    """See whether what a file says of its columns can be read, in the process of its own."""
    path = Path(given["path"])
    read_with_metadata(path, find_format(path), given["encoding"], metadataonly=True)
    return b""


def _statistical_field(name: str, about: Any) -> CapturedField:
    label = about.column_names_to_labels.get(name) or ""
    options = (about.variable_value_labels.get(name) or {}).items()
    missing = [(one["lo"], one["hi"]) for one in about.missing_ranges.get(name, ())]
    missing += [(one, one) for one in about.missing_user_values.get(name, ())]
    # A code that the file declares missing is at least "not stated".
    categories = [
        Category(one.code, one.label, "not stated")
        if one.kind in ("value", "other") and any(_in_span(one.code, *span) for span in missing)
        else one
        for one in fields.make_categories((code_text(value), str(text)) for value, text in options)
    ]
    written = (about.original_variable_types.get(name) or "").upper()
    intervals = None
    if any(one.kind == "value" for one in categories):
        pass  # what is listed is neither dates nor numbers
    elif written.startswith((*_DATES, *_TIMES)):
        intervals = fields.dates("day")
    elif about.readstat_variable_types.get(name) != "string":
        intervals = fields.usual_numbers(words(name) + words(label))
    return fields.capture([name], label, categories=categories, intervals=intervals)


def _in_span(code: str, low: Any, high: Any) -> bool:
    if isinstance(low, str) or isinstance(high, str):
        return code in (str(low), str(high))
    number = fields.parse_number(code)
    return number is not None and bool(low <= number <= high)
