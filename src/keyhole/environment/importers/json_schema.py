"""Forms as JSON Schema (drafts 4 to 2020-12): nested objects become paths of fields.

A list of choices becomes a yes/no field for each; a list of objects is descended once, for
it tells what is asked of each. Properties named ``view:...`` are of the page, not the answer.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keyhole.environment.importers.bands import dates, number_intervals, usual_numbers
from keyhole.environment.importers.fields import (
    YES_NO,
    capture,
    clean,
    distinct_fields,
    path_label,
    split_choices,
    titled,
)
from keyhole.environment.importers.json_shapes import Shape, Shapes
from keyhole.environment.importers.opening import open_json
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    Form,
    Intervals,
    Unit,
)
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_OTHER = Category("other", "Other", "other")
_LONGEST = 300
_YEAR = r"(?:\\d\{4\}|\[0-9\]\{[24]\}|\\d\\d\\d\\d)"
_PART = r"(?:\\d\{1?,?2\}|0\??\[1-9\]|0\[|\[0-9\]\{2\}|\\d\\d)"
_DAY_PATTERN = re.compile(rf"{_YEAR}.{{0,30}}[-/].{{0,60}}{_PART}.{{0,60}}[-/].{{0,60}}{_PART}")
_MONTH_PATTERN = re.compile(rf"{_YEAR}.{{0,20}}[-/].{{0,20}}{_PART}")
_AMOUNT = re.compile(
    r"\^?-?\??(\\d|\[0-9\])[+*](\(\??:?\\\.(\\d|\[0-9\])(\{[\d,]+\}|[+*])\)\?)?\$?"
)
_DATE_WORDS = frozenset({"date", "dates", "dob", "birthdate", "birthday"})


def read(path: Path, encoding: str | None = None) -> tuple[CapturedForm, ...]:
    """Read a form from a file of JSON Schema."""
    document = open_json(path, encoding)
    if not isinstance(document, Mapping):
        raise FileError(
            f"{path.name!r} must hold a JSON Schema, an object with 'properties'. "
            f"Got {type(document).__name__} instead."
        )
    return (capture_schema(document, name=path.name.split(".")[0].removesuffix("-schema")),)


def capture_schema(document: Mapping[str, Any], *, name: str = "form") -> CapturedForm:
    """Capture the form that a JSON Schema describes.

    Examples
    --------
    >>> form = capture_schema({"properties": {"veteran": {"properties": {
    ...     "sex": {"enum": ["F", "M"]}, "birthDate": {"type": "string", "format": "date"}}}}})
    >>> [(one.name, one.label) for one in form.fields]
    [('veteran.sex', 'veteran sex'), ('veteran.birthDate', 'veteran birth date')]
    >>> form.fields[1].intervals.unit
    'day'
    """
    shapes = Shapes(document)
    root = shapes.root()
    require_none(shapes.problems)
    if not root.properties and root.items is not None:
        root = root.items
    fields = distinct_fields(_fields(root, (), "", shapes.notes))
    if not fields:
        raise FileError("the schema must have fields under 'properties'. Got none instead.")
    title = document.get("title")
    label = clean(" ".join(title.split()))[:_LONGEST] if isinstance(title, str) else ""
    return CapturedForm(Form(name), fields, (*titled(label), *shapes.notes))


def _fields(
    shape: Shape, path: tuple[str, ...], context: str, notes: dict[str, None]
) -> Iterator[CapturedField]:
    for name, child in shape.properties.items():
        if name.startswith("view:"):
            notes["Properties named 'view:...' belong to the page; they are left out."] = None
            continue
        yield from _place(child, (*path, name), context, notes)


def _place(
    shape: Shape, path: tuple[str, ...], context: str, notes: dict[str, None]
) -> Iterator[CapturedField]:
    items = shape.items
    if shape.properties:
        yield from _fields(shape, path, shape.title or context, notes)
    elif items is not None and items.properties:
        notes["What a list asks of each of its members is read once."] = None
        yield from _fields(items, path, items.title or shape.title or context, notes)
    elif items is not None and items.options is not None:
        yield from split_choices(path, _label(shape, path, context), items.options.items())
    elif items is not None and items.items is not None:
        yield from _place(items, path, context, notes)
    elif shape.types != {"object"}:
        leaf = shape if items is None else items
        leaf.title = leaf.title or shape.title
        yield _leaf(leaf, path, _label(leaf, path, context), notes)


def _label(shape: Shape, path: tuple[str, ...], context: str) -> str:
    """Return the title, after what it is a part of; nothing where the path's words must do."""
    if not shape.title or len(path) == 1:
        return shape.title
    return f"{context or path_label(path[:-1])}: {shape.title}"


def _leaf(shape: Shape, path: tuple[str, ...], label: str, notes: dict[str, None]) -> CapturedField:
    if shape.options is not None and not set(shape.options) <= {"yes", "no"}:
        more = (_OTHER,) if shape.open and "other" not in shape.options else ()
        if more:
            notes["Answers listed here and free there are taken as the list and 'Other'."] = None
        return capture(path, label, options=shape.options.items(), categories=more)
    if shape.types == {"boolean"} or shape.options is not None:
        return capture(path, label, categories=YES_NO)
    intervals = _intervals(shape, path, label)
    return capture(path, label, intervals=intervals, pattern=shape.format or shape.pattern)


def _intervals(shape: Shape, path: tuple[str, ...], label: str) -> Intervals | None:
    asked = words(path[-1]) + words(label)
    if shape.types & {"integer", "number"} and "string" not in shape.types:
        return _numbers(shape, asked)
    unit = _date_unit(shape, words(path[-1]))
    if unit is not None:
        return dates(unit)
    amount = shape.pattern and _AMOUNT.fullmatch(shape.pattern[:_LONGEST])
    return usual_numbers(asked) if amount else None


def _numbers(shape: Shape, asked: tuple[str, ...]) -> Intervals:
    usual = usual_numbers(asked)
    if shape.lowest is None and shape.highest is None:
        return usual
    if _are_years(shape, asked):
        ends = (shape.lowest, None if shape.highest is None else shape.highest + 1)
        first, last = (None if end is None else datetime.date(int(end), 1, 1) for end in ends)
        return dates("year", first, last)
    low = shape.lowest if shape.lowest is not None else min(0, shape.highest or 0)
    high = shape.highest if shape.highest is not None else max(usual.stop - 1, low)
    return number_intervals(low, high, shape.step or 1) or usual


def _are_years(shape: Shape, asked: tuple[str, ...]) -> bool:
    """Tell whether the bounds are years: both of them, or one and the name says so."""
    bounds = [bound for bound in (shape.lowest, shape.highest) if bound is not None]
    return all(1800 <= bound <= 2200 for bound in bounds) and (len(bounds) == 2 or "year" in asked)


def _date_unit(shape: Shape, asked: tuple[str, ...]) -> Unit | None:
    """Tell how finely a date is asked: by its format, its pattern, or its name."""
    pattern = shape.pattern[:_LONGEST]
    if shape.format in ("date", "date-time") or _DAY_PATTERN.search(pattern):
        return "day"
    if shape.format == "year-month" or _MONTH_PATTERN.search(pattern):
        return "month"
    if "year" in asked and re.fullmatch(rf"\^?{_YEAR}\$?", pattern):
        return "year"
    return "day" if not pattern and not shape.format and _DATE_WORDS & set(asked) else None
