"""REDCap data dictionaries: a row a field, choices written ``1, Yes | 2, No``.

A dictionary is one form, whatever instruments it is split into: one database holds them all.
The identifier flag keeps free text apart. REDCap's users set it for everything that is
protected health information, so a flagged date or choice stays a field to match on.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from keyhole.core.names import shown
from keyhole.environment.importers.bands import (
    dates,
    number_intervals,
    parse_day,
    tidy,
    usual_numbers,
)
from keyhole.environment.importers.fields import (
    YES_NO,
    capture,
    distinct_fields,
    kind_of_identifier,
    split_choices,
)
from keyhole.environment.importers.opening import SheetRow, read_sheet, require_headings
from keyhole.environment.model import CapturedField, CapturedForm, Form, Intervals
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

# The names of columns in the file that is downloaded, and in that of the interface.
_COLUMNS = {
    "variable / field name": "field_name",
    "form name": "form_name",
    "field type": "field_type",
    "field label": "field_label",
    "choices, calculations, or slider labels": "choices",
    "choices or calculations": "choices",
    "select_choices_or_calculations": "choices",
    "text validation type or show slider number": "validation",
    "text_validation_type_or_show_slider_number": "validation",
    "text validation min": "lowest",
    "text_validation_min": "lowest",
    "text validation max": "highest",
    "text_validation_max": "highest",
    "identifier?": "identifier",
    "branching logic (show field only if...)": "branching_logic",
}
_CHOSEN = frozenset({"radio", "dropdown", "select"})
_TYPES = _CHOSEN | {
    *("text", "notes", "textarea", "checkbox", "yesno", "truefalse", "calc", "file", "slider"),
    *("descriptive", "sql", ""),
}
_DAY = datetime.timedelta(1)
_TAG = re.compile(r"<[^<>]{0,500}>")


def is_redcap(columns: frozenset[str]) -> bool:
    """Tell a dictionary by the names of its columns."""
    named = {_COLUMNS.get(column, column) for column in columns}
    return {"field_name", "field_type"} <= named


def read_redcap(path: Path, encoding: str | None = None) -> tuple[CapturedForm, ...]:
    """Read a data dictionary, as CSV or as a sheet."""
    rows = [
        SheetRow(row.number, {_COLUMNS.get(name, name): cell for name, cell in row.cells.items()})
        for row in read_sheet(path, encoding)
    ]
    require_headings(rows, ("field_name", "field_type"), path.name)
    problems: list[str] = []
    notes: dict[str, None] = {}
    fields = [one for row in rows for one in _fields(row, problems, notes)]
    require_none(problems, FileError)
    return (CapturedForm(Form(path.stem), distinct_fields(fields), tuple(notes)),)


def parse_choices(text: str) -> list[tuple[str, str]]:
    """Read choices: codes and labels.

    Examples
    --------
    >>> parse_choices("1, Yes | 2, No, never | 9")
    [('1', 'Yes'), ('2', 'No, never'), ('9', '')]
    """
    parts = (part.partition(",") for part in re.split(r"[|\n]", text))
    found = [(code.strip(), _plain(label)) for code, _, label in parts]
    return [(code, label) for code, label in found if code]


def _plain(text: str) -> str:
    """Take the markup off that REDCap lets labels have; what is no tag stays."""
    return " ".join(_TAG.sub(" ", text).split())


def _fields(row: SheetRow, problems: list[str], notes: dict[str, None]) -> Iterator[CapturedField]:
    kind, name = row["field_type"].lower(), row["field_name"]
    if kind == "descriptive":
        return
    if not name or kind not in _TYPES:
        what = f"field_type {shown(kind)} is not one of REDCap's" if name else "field_name is empty"
        problems.append(f"row {row.number}: {what}. Correct it.")
        return
    path, label = [part for part in (row["form_name"], name) if part], _plain(row["field_label"])
    options, universe = parse_choices(row["choices"]), row["branching_logic"]
    if kind in _CHOSEN | {"checkbox"} and not options:
        problems.append(f"row {row.number}: {shown(name)} must have choices. Got none instead.")
    elif kind == "checkbox":
        yield from split_choices(path, label, options, universe, name)
    elif kind in _CHOSEN:
        yield capture(path, label, name=name, options=options, universe=universe)
    elif kind in ("yesno", "truefalse"):
        yield capture(path, label, name=name, categories=YES_NO, universe=universe)
    else:
        yield _written(row, kind, path, label, notes)


def _written(
    row: SheetRow, kind: str, path: list[str], label: str, notes: dict[str, None]
) -> CapturedField:
    intervals = _intervals(row, kind, label)
    flagged = row["identifier"].lower() in ("y", "yes", "1", "true")
    found = capture(
        path,
        label,
        name=row["field_name"],
        intervals=intervals,
        universe=row["branching_logic"],
        identifier=_telling(kind, row["validation"].lower()),
    )
    if not flagged or found.identifier is not None:
        return found
    if intervals is not None:
        notes["Flagged dates and numbers stay fields to match on; flagged text is apart."] = None
        return found
    return replace(found, identifier=kind_of_identifier(path, label))


def _telling(kind: str, validation: str) -> str | None:
    """Return what a type by itself says."""
    if kind == "file":
        return "signature" if validation == "signature" else None
    if validation.startswith(("phone", "ssn", "email")):
        return validation.partition("_")[0]
    return "medical record number" if validation.startswith("mrn") else None


def _intervals(row: SheetRow, kind: str, label: str) -> Intervals | None:
    validation = row["validation"].lower()
    if validation.startswith("date"):
        last = parse_day(row["highest"])
        after = last + _DAY if last and last < datetime.date.max else None
        return dates("day", parse_day(row["lowest"]), after)
    if kind == "slider":
        return number_intervals(_number(row["lowest"]) or 0, _number(row["highest"]) or 100)
    if not validation.startswith(("integer", "number")):
        return None
    usual = usual_numbers(words(row["field_name"]) + words(label))
    low, high = _number(row["lowest"]), _number(row["highest"])
    if low is None and high is None:
        return usual
    low = min(usual.start, high or 0) if low is None else low
    return number_intervals(low, max(usual.stop, low) if high is None else high) or usual


def _number(text: str) -> float | None:
    return tidy(float(text)) if re.fullmatch(r"-?\d{1,15}(\.\d{1,6})?", text) else None
