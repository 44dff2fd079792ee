"""DDI-Codebook (1.2 to 2.5), with its namespace or without: the variables of a study.

Elements are found by their local names, wherever an archive put them. Counts and extremes of
the records (``catStat``, ``sumStat``) are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keyhole.environment.importers.bands import (
    dates,
    number_intervals,
    parse_day,
    tidy,
    usual_numbers,
)
from keyhole.environment.importers.fields import (
    capture,
    category_kind,
    distinct_fields,
    readable,
    titled,
)
from keyhole.environment.importers.opening import children, local_name, open_xml
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form, Intervals
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_WIDE = 3  # a range with this many times more numbers than labels is a scale, not a list


def read_ddi(path: Path, _: str | None = None) -> tuple[CapturedForm, ...]:
    """Read the variables of a codebook."""
    root, name = open_xml(path), path.stem
    variables = [one for one in root.iter() if local_name(one) == "var"]
    if not variables:
        raise FileError(f"{name!r} must have variables ('var' in 'dataDscr'). Got none instead.")
    notes: dict[str, None] = {}
    fields = [_field(one, place, notes) for place, one in enumerate(variables, 1)]
    days = (one.get("date", "") for one in root.iter() if local_name(one) == "collDate")
    form = Form(
        name,
        organisation=_first(root, "AuthEnty") or _first(root, "producer"),
        collected=parse_day(next(days, "")),
    )
    remarks = (*titled(_first(root, "titl")), *notes)
    return (CapturedForm(form, distinct_fields(fields), remarks),)


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _first(root: Any, name: str) -> str:
    return next((_text(one) for one in root.iter() if local_name(one) == name), "")


def _own(element: Any, *names: str) -> str:
    """Return the text of the first child of one of these names that has any."""
    texts = (_text(child) for name in names for child in children(element, name))
    return next((text for text in texts if text), "")


def _field(variable: Any, place: int, notes: dict[str, None]) -> CapturedField:
    name = variable.get("name") or variable.get("ID") or f"variable {place}"
    asked = (_own(one, "qstnLit") or _text(one) for one in children(variable, "qstn"))
    label = _own(variable, "labl") or _own(variable, "concept") or next(asked, "")
    categories = _categories(variable)
    intervals = _intervals(variable, categories, words(name) + words(label))
    if intervals is not None:
        if any(one.kind == "value" for one in categories):
            notes["Labels of single values of a scale are left out."] = None
        categories = [one for one in categories if one.kind != "value"]
    path = [part for part in (variable.get("files", ""), name) if part]
    return capture(
        path,
        label,
        name=name,
        categories=categories,
        intervals=intervals,
        universe=_own(variable, "universe"),
    )


def _categories(variable: Any) -> list[Category]:
    found: dict[str, Category] = {}
    for one in children(variable, "catgry"):
        code, label = _own(one, "catValu"), _own(one, "labl")
        code = code or label
        if code and code not in found:
            said = label or readable(code)
            kind = category_kind(said)
            if one.get("missing", "").upper() == "Y" and kind in ("value", "other"):
                kind = "not stated"
            found[code] = Category(code, said, kind)
    return list(found.values())


def _intervals(
    variable: Any, categories: list[Category], asked: tuple[str, ...]
) -> Intervals | None:
    values = sum(one.kind == "value" for one in categories)
    shape = next(children(variable, "varFormat"), None)
    if shape is not None and shape.get("category") in ("date", "time"):
        return dates("day") if shape.get("category") == "date" and not values else None
    low, high = _range(variable)
    if low is not None and high is not None:
        wide = (high - low + 1) >= _WIDE * max(values, 1)
        return number_intervals(low, high) if wide or not values else None
    continuous = variable.get("intrvl") == "contin"
    numeric = shape is not None and shape.get("type") == "numeric"
    if values and not continuous:
        return None
    return usual_numbers(asked) if continuous or numeric else None


def _range(variable: Any) -> tuple[float | None, float | None]:
    for block in children(variable, "valrng"):
        for one in children(block, "range"):
            low = _number(one.get("min") or one.get("minExclusive") or "")
            high = _number(one.get("max") or one.get("maxExclusive") or "")
            if low is not None and high is not None and low < high:
                return low, high
    return None, None


def _number(text: str) -> float | None:
    try:
        return tidy(float(text), 15) if abs(float(text)) <= 1e15 else None
    except ValueError:
        return None
