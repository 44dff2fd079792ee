"""The columns of a file that may be released, captured as the fields of a target.

Codes and their labels are taken as they are; they are the file's coding. Of measures and
dates only the detail is told and a range rounded outward to a power of ten or a decade, so that
the extreme of a single record is not shown. Free text gives no categories.

Value labels may stand in a file of their own (``name,label,code,category``). A row a value: the
column's name, its label, the code, what the code means. Name and label may be left blank where
they are as above. A row without a code labels the column alone; a row without a code but with a
category says what a blank value means.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.names import quoted, shown
from keyhole.data.codebook import LABEL_COLUMNS, ColumnLabels, is_census, label_rows
from keyhole.data.columns import Variable
from keyhole.data.guarding import ask_reader
from keyhole.data.microdata import Microdata
from keyhole.environment.adding.vocabulary import WEIGHT_NAME
from keyhole.environment.importers.fields import (
    BLANK,
    SURE,
    Asked,
    FormReading,
    capture,
    category_kind,
    dates,
    make_categories,
    number_intervals,
    tidy,
    usual_numbers,
)
from keyhole.environment.importers.opening import named_rows, read_cells, require_headings
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form, Intervals
from keyhole.environment.scenarios.recoding import RARE, code_text
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import recognise, words

# Intervals of one column at most; where there would be more, their step is widened.
MOST = 1_000_000
# Values without a label that fewer records have are not shown, unless they are short codes.
FEWEST = 3
_MOST_CODES = 1_000  # whole numbers further apart are not read as counts
_SHORT_CODE = 3
_FINEST = 6
_ROUND = (1, 5)
_WEIGHTS = frozenset({"weight", "weights", "wgt", "wt", "wts", "pweight", "fweight", "aweight"})
_OF_SAMPLES = frozenset(
    {"sampling", "sample", "survey", "person", "persons", "household", "housing", "replicate"}
    | {"final", "population", "design", "analysis", "expansion", "grossing", "poststratified"}
)
_OF_BODIES = frozenset(
    {"body", "birth", "kg", "kilogram", "kilograms", "pound", "pounds", "lb", "lbs", "gram"}
    | {"grams", "height", "bmi", "infant", "baby", "loss", "gain", "vehicle", "truck"}
)


Labels = Mapping[str, ColumnLabels]
"""Labels by name of column."""


def read_labels(path: str | os.PathLike[str], *, encoding: str | None = None) -> Labels:
    """Read a file of labels, CSV or Excel, with columns ``name,label,code,category``.

    The Census Bureau's dictionaries of its microdata (rows ``NAME`` and ``VAL``) are read too.
    """
    file = Path(path)
    cells = read_cells(file, encoding)
    if not is_census(cells):
        require_headings(named_rows(cells, file.name), LABEL_COLUMNS, file.name)
    problems: list[str] = []
    found: dict[str, ColumnLabels] = {}
    for number, (name, label, code, text) in label_rows(cells, repr(file.name)):
        if not name:
            problems.append(f"row {number}: name must not be empty in the first row.")
            continue
        about = found.setdefault(name, ColumnLabels())
        about.label = about.label or label
        if isinstance(code, tuple):  # a range of values has no label of its own
            continue
        if about.codes.get(code, text) != text:
            problems.append(
                f"row {number}: the code of {shown(name)} has two labels. Keep one of them."
            )
        elif code:
            about.codes[code] = text
        else:
            about.blank = text or about.blank
    require_none(problems, FileError)
    return found


def attach_labels(microdata: Microdata, labels: Labels) -> Microdata:
    """Return the data with labels of columns and values; those of other columns are ignored.

    Codes are compared with the values as numbers in a column of numbers, else as text.
    """
    variables = [
        _labelled(one, microdata.column(one.name), labels[one.name]) if one.name in labels else one
        for one in microdata.variables
    ]
    return microdata.with_variables(variables)


def _labelled(variable: Variable, column: pl.Series, labels: ColumnLabels) -> Variable:
    number = int if column.dtype.is_integer() else float if column.dtype.is_float() else None
    typed: dict[Any, str] = {}
    for code, text in labels.codes.items():
        value: Any = code
        with suppress(ValueError):
            value = number(code) if number else code
        typed |= {value: text} if text else {}
    kind = variable.kind
    # Whole numbers that all have labels are codes, not a measure.
    if typed and kind == "measure" and not column.dtype.is_float():
        kind = "category" if set(column.drop_nulls().unique().to_list()) <= typed.keys() else kind
    label, known = labels.label or variable.label, {**variable.value_labels, **typed}
    return replace(variable, kind=kind, label=label, value_labels=known)


def capture_microdata(
    microdata: Microdata,
    *,
    name: str | None = None,
    columns: Iterable[str] | None = None,
    labels: Labels | None = None,
) -> CapturedForm:
    """Capture the columns of a file, to become a target of the environment.

    Columns with the role of weight or drop are left out, and so are those that by name and
    label are sampling weights, unless they are named in `columns`. Columns with the role of
    identifier, and those that are recognised as direct identifiers, are kept apart.

    Parameters
    ----------
    microdata
        The file.
    name
        What to call the target; the name of the data if left out.
    columns
        These columns only.
    labels
        Labels of columns and values, as `read_labels` gives them.

    Examples
    --------
    >>> from keyhole.data import load
    >>> data = load({"age": list(range(18, 88)), "sex": ["f", "m"] * 35})
    >>> age, sex = capture_microdata(data).fields
    >>> age.intervals.start, age.intervals.stop, [one.code for one in sex.categories]
    (10, 90, ['f', 'm'])
    """
    labels = labels or {}
    data = attach_labels(microdata, labels)
    chosen = data.names if columns is None else data.require(columns, purpose="column")
    notes: dict[str, None] = {}
    weights = [one for one in chosen if columns is None and _is_weight(data.variable(one))]
    if weights:
        notes[f"Left out, since they look like sampling weights: {quoted(weights, 5)}."] = None
    fields = [
        _field(data, data.variable(one), labels.get(one, ColumnLabels()), notes)
        for one in chosen
        if data.variable(one).role not in ("weight", "drop") and one not in weights
    ]
    return CapturedForm(Form(name or data.name), tuple(fields), tuple(notes))


def _field(
    data: Microdata, variable: Variable, labels: ColumnLabels, notes: dict[str, None]
) -> CapturedField:
    column = data.column(variable.name)
    identifier = _identifier(variable, column)
    if identifier is not None:
        return capture([variable.name], variable.label, identifier=identifier)
    intervals: Intervals | None = None
    categories = _missing(data, variable, column, labels)
    if variable.kind == "date":
        days = column.cast(pl.Date) if column.dtype in (pl.Date, pl.Datetime) else column.clear()
        ends: Any = days.min(), days.max()
        if None not in ends:  # rounded outward to decades
            first, last = (day.year // 10 * 10 for day in ends)
            start = datetime.date(max(first, 1), 1, 1)
            intervals = dates("day", start, datetime.date(min(last + 10, 9999), 1, 1))
    elif variable.kind == "measure":
        intervals = _numbers(column.drop_nulls(), variable, notes)
    elif variable.kind == "category":
        intervals = None if variable.value_labels else _whole_numbers(column)
    if variable.kind == "category" and intervals is None:
        listed = _levels(column, variable, notes)
        categories = (*listed, *categories) if listed else ()
    elif variable.kind not in ("category", "date", "measure"):
        categories = ()
    given: Any = {"categories": categories, "intervals": intervals, "recognised": False}
    return capture([variable.name], variable.label, **given)


def _whole_numbers(column: pl.Series) -> Intervals | None:
    """Return an interval for each whole number where they are close together.

    Without labels they may be counts as well as codes.
    """
    values = column.drop_nulls()
    if not values.dtype.is_integer() or not len(values):
        return None
    low, high = int(values.min()), int(values.max())  # type: ignore[arg-type]
    close = high - low < _MOST_CODES
    return Intervals("number", start=low, stop=high + 1, step=1) if close else None


def _is_weight(variable: Variable) -> bool:
    """Tell a sampling weight by its name and label; the weight of a body is none."""
    if variable.kind != "measure" or variable.role is not None or variable.value_labels:
        return False
    name = set(words(variable.name))
    told = name | set(words(variable.label))
    if told & _OF_BODIES or WEIGHT_NAME.fullmatch(variable.name):
        return not told & _OF_BODIES
    return bool(told & _WEIGHTS) and (bool(told & _OF_SAMPLES) or not name - _WEIGHTS)


def _identifier(variable: Variable, column: pl.Series) -> str | None:
    """Tell the kind of direct identifier; labelled values are a coding, whatever the name."""
    values = column.drop_nulls().head(1000) if column.dtype == pl.String else None
    found = recognise(variable.name, variable.label, values=values)
    if variable.role == "identifier":
        return found.kind if found else "record number"
    if found is None or found.confidence < SURE or variable.value_labels:
        return None
    return found.kind


def _levels(column: pl.Series, variable: Variable, notes: dict[str, None]) -> list[Category]:
    """Return labelled values in their order, then those that occur without a label.

    A value of few records that is no short code may tell who they are: it is not listed. If none
    is listed, the column is as good as free text.
    """
    labels = variable.value_labels
    missing = {code_text(code) for code in variable.missing_codes}
    found = {code_text(value): str(text) for value, text in labels.items()}
    counts = column.drop_nulls().alias("value").value_counts().sort("value").rows()
    new = {code_text(value): count for value, count in counts}
    new = {code: count for code, count in new.items() if code not in found and code not in missing}
    kept = [code for code, count in new.items() if count >= FEWEST or len(code) <= _SHORT_CODE]
    found |= dict.fromkeys(kept, "")
    rare = len(new) - len(kept)
    listed = [
        Category(code, label or code, category_kind(label) if label else "value")
        for code, label in found.items()
        if code not in missing
    ]
    if not rare or not listed:
        return listed
    notes[
        f"{shown(variable.name)} has {rare:,} values without a label, each of fewer than {FEWEST} "
        f"records: they are not listed, and count as one. Give their labels to tell them apart."
    ] = None
    return [*listed, Category(RARE, "Rare values", "other")]


def _missing(
    data: Microdata, variable: Variable, column: pl.Series, labels: ColumnLabels
) -> tuple[Category, ...]:
    """Return the declared missing codes, and blank where there are blank values."""
    said = {code_text(value): str(text) for value, text in variable.value_labels.items()}
    found = {code: said.get(code, "") for code in map(code_text, variable.missing_codes)}
    blank = data.frame[variable.name]
    if blank.null_count() or (blank.dtype == pl.String and (blank == "").any()) or labels.blank:
        found[BLANK] = labels.blank
    elif column.null_count() and not found:
        found[BLANK] = ""
    kinds = ((code, label, category_kind(label)) for code, label in found.items())
    return tuple(
        Category(code, label or "Missing", kind if kind == "not applicable" else "not stated")
        for code, label, kind in kinds
    )


def _numbers(values: pl.Series, variable: Variable, notes: dict[str, None]) -> Intervals | None:
    numbers = (values if values.dtype.is_numeric() else values.clear()).cast(pl.Float64)
    finite = numbers.filter(numbers.is_finite())
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())  # type: ignore[arg-type]
    step = _step(finite)
    # Both ends are rounded outward to a power of ten, beyond them also where they are round.
    span = max(10.0 ** math.floor(math.log10(max(high - low, step))), 10 * step)
    start, stop = (math.ceil(low / span) - 1) * span, (math.floor(high / span) + 1) * span
    start = 0.0 if low >= 0 > start else start
    found = number_intervals(tidy(start, _FINEST), tidy(stop - step, _FINEST), step, MOST)
    if found is not None and found.step > step:
        name = shown(variable.name)
        notes[f"{name} has too fine a detail; it is taken by {found.step:g}."] = None
    return found


def _step(values: pl.Series) -> float:
    """Return the detail of the values: the largest 1 or 5 times a power of ten that fits all."""
    distinct = values.unique()
    for decimals in range(_FINEST + 1):
        scaled = distinct * 10**decimals
        whole = scaled.round()
        if bool(((scaled - whole).abs() < 1e-6).all()) and float(whole.abs().max() or 0) < 2**53:
            common = math.gcd(*(int(one) for one in whole.to_list()))
            steps = (part * 10**n for n in range(len(str(common))) for part in _ROUND)
            fitting = (step for step in steps if common and common % step == 0)
            return float(max(fitting, default=1) / 10**decimals)
    return float(10**-_FINEST)


_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
# How the formats of dates begin.
_DATES = ("DATE", "ADATE", "EDATE", "SDATE", "JDATE", "MMDDYY", "DDMMYY", "YYMMDD", "E8601DA")
_TIMES = ("YMDHMS", "%TC", "%TD", "%D")


def read_statistical_labels(path: Path, encoding: str | None, form: FormReading) -> Asked:
    """Read what an SPSS, Stata or SAS file says of its columns; no record is read.

    Where a column has no labels, its format tells dates from numbers and text.
    """
    # Its reader may die of a damaged file.
    ask_reader(f"{__name__}:answer_metadata", path, "statistical", {"encoding": encoding})
    about = _metadata(path, encoding)
    if not about.column_names:
        raise FileError(f"{path.name!r} has no columns. Give a file that has some.")
    form.title(about.file_label or "")
    return (_statistical_field(name, about) for name in about.column_names)


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
        return getattr(pyreadstat, _READERS[suffix])(str(path), **options)[1]
    except Exception:  # the reader raises plain exceptions of many kinds
        raise FileError(
            f"{path.name!r} cannot be read as a file of a statistical package: it is broken, not "
            f"whole, or in another encoding. Copy it again, or say the encoding."
        ) from None


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
        for one in make_categories((code_text(value), str(text)) for value, text in options)
    ]
    written = (about.original_variable_types.get(name) or "").upper()
    intervals = None
    if any(one.kind == "value" for one in categories):
        pass  # what is listed is neither dates nor numbers
    elif written.startswith((*_DATES, *_TIMES)):
        intervals = dates("day")
    elif about.readstat_variable_types.get(name) != "string":
        intervals = usual_numbers(words(name) + words(label))
    return capture([name], label, categories=categories, intervals=intervals)


def _in_span(code: str, low: Any, high: Any) -> bool:
    if isinstance(low, str) or isinstance(high, str):
        return code in (str(low), str(high))
    try:
        return float(low) <= float(code) <= float(high)
    except ValueError:
        return False
