"""Value labels of SPSS, Stata and SAS files, from what the file says of its columns.

No record is read. Where a column has no labels, its format tells dates from numbers and text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.data.guarding import ask_reader
from keyhole.environment.importers.bands import dates, usual_numbers
from keyhole.environment.importers.fields import capture, distinct_fields, make_categories, titled
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form, Intervals
from keyhole.environment.scenarios.recoding import code_text
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_DATES = ("DATE", "ADATE", "EDATE", "SDATE", "JDATE", "MMDDYY", "DDMMYY", "YYMMDD", "E8601DA")
_TIMES = ("DATETIME", "YMDHMS", "%TC", "%TD", "%D")


def read_statistical_labels(path: Path, encoding: str | None = None) -> tuple[CapturedForm, ...]:
    """Read the columns of a statistical file and their value labels."""
    # Its reader may die of a damaged file.
    ask_reader(f"{__name__}:answer_metadata", path, "statistical", {"encoding": encoding})
    about = _metadata(path, encoding)
    if not about.column_names:
        raise FileError(f"{path.name!r} has no columns. Give a file that has some.")
    fields = distinct_fields(_field(name, about) for name in about.column_names)
    return (CapturedForm(Form(path.stem), fields, titled(about.file_label or "")),)


def answer_metadata(given: Mapping[str, Any]) -> bytes:
    """See whether what a file says of its columns can be read, in the process of its own."""
    _metadata(Path(given["path"]), given["encoding"])
    return b""


def _metadata(path: Path, encoding: str | None) -> Any:
    import pyreadstat

    suffix = path.suffix.lower()
    options: dict[str, Any] = {"metadataonly": True}
    if suffix not in (".por", ".xpt"):
        options["user_missing"] = True  # else the missing codes that it declares are not told
    if encoding and suffix != ".por":
        options["encoding"] = encoding
    try:
        return getattr(pyreadstat, READERS[suffix])(str(path), **options)[1]
    except Exception:  # the reader raises plain exceptions of many kinds
        raise FileError(
            f"{path.name!r} cannot be read as a file of a statistical package: it is broken, not "
            f"whole, or in another encoding. Copy it again, or say the encoding."
        ) from None


def _field(name: str, about: Any) -> CapturedField:
    label = about.column_names_to_labels.get(name) or ""
    options = (about.variable_value_labels.get(name) or {}).items()
    missing = [(one["lo"], one["hi"]) for one in about.missing_ranges.get(name, ())]
    missing += [(one, one) for one in about.missing_user_values.get(name, ())]
    # A code that the file declares missing is at least "not stated".
    categories = [
        Category(one.code, one.label, "not stated")
        if one.kind in ("value", "other") and any(_within(one.code, *span) for span in missing)
        else one
        for one in make_categories((code_text(value), str(text)) for value, text in options)
    ]
    listed = any(one.kind == "value" for one in categories)
    intervals = None if listed else _intervals(name, label, about)
    return capture([name], label, categories=categories, intervals=intervals)


def _within(code: str, low: Any, high: Any) -> bool:
    if isinstance(low, str) or isinstance(high, str):
        return code in (str(low), str(high))
    try:
        return float(low) <= float(code) <= float(high)
    except ValueError:
        return False


def _intervals(name: str, label: str, about: Any) -> Intervals | None:
    shown = (about.original_variable_types.get(name) or "").upper()
    if shown.startswith((*_DATES, *_TIMES)):
        return dates("day")
    if about.readstat_variable_types.get(name) == "string":
        return None
    return usual_numbers(words(name) + words(label))
