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
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.names import quoted, shown
from keyhole.data.codebook import Codebook, ColumnLabels, label_rows, read_codebook
from keyhole.data.columns import LARGEST, Variable
from keyhole.data.microdata import Microdata
from keyhole.environment.importers import fields
from keyhole.environment.importers.fields import capture, category_kind
from keyhole.environment.importers.reading import WORKBOOKS, read_cells
from keyhole.environment.matching.questions import is_weight
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form, Intervals
from keyhole.environment.scenarios.recoding import RARE, code_text
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import recognise

# Intervals of one column at most; where there would be more, their step is widened.
MOST = 1_000_000
# Values without a label that fewer records have are not shown, unless they are short codes.
FEWEST = 3
_MOST_CODES = 1_000  # whole numbers further apart are not read as counts
_MOST_ALIKE = 10  # records that share a record number, on average
_SHORT_CODE = 3
_FINEST = 6
_ROUND = (1, 5)


def read_labels(path: str | os.PathLike[str], *, encoding: str | None = None) -> Codebook:
    """Read labels: any codebook that `load` takes, a table of labels also as a workbook."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".tsv", ".txt", *WORKBOOKS):
        return read_codebook(file)
    problems: list[str] = []
    found: dict[str, ColumnLabels] = {}
    for number, (name, label, code, text) in label_rows(
        read_cells(file, encoding), repr(file.name)
    ):
        about = found.setdefault(name, ColumnLabels())
        about.label = about.label or label
        if not name:
            problems.append(f"row {number}: name must not be empty in the first row.")
        elif isinstance(code, str) and about.codes.get(code, text) != text:
            problems.append(
                f"row {number}: the code of {shown(name)} has two labels. Keep one of them."
            )
        elif code and isinstance(code, str):  # a range of values has no label of its own
            about.codes[code] = text
        elif not code:
            about.blank = text or about.blank
    require_none(problems, FileError)
    return found


def attach_labels(microdata: Microdata, labels: Codebook) -> Microdata:
    """Return the data with labels; those of codes that no record has are kept, for the coding."""
    variables = []
    for one in microdata.variables:
        about, column = labels.get(one.name, ColumnLabels()), microdata.column(one.name)
        number = int if column.dtype.is_integer() else float if column.dtype.is_float() else str
        typed: dict[Any, str] = {}
        for code, text in about.codes.items():
            with suppress(ValueError):
                typed |= {number(code): text} if text else {}
        found = about.apply(one, column)
        known = {**one.value_labels, **typed}
        variables.append(replace(found, label=about.label or one.label, value_labels=known))
    return microdata.with_variables(variables)


def capture_microdata(
    microdata: Microdata,
    *,
    name: str | None = None,
    columns: Iterable[str] | None = None,
    labels: Codebook | None = None,
) -> CapturedForm:
    """Capture the columns of a file, to become a target of the environment.

    Columns with the role of weight or drop are left out, and so are those that by name and
    label are sampling weights, unless they are named in `columns` (then only these are captured).
    Columns with the role of identifier, and those that are recognised as direct identifiers, are
    kept apart. The target has the `name` of the data by default; `labels` are of columns and
    values, as `read_labels` gives them.

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
    every = list(map(data.variable, chosen))
    plain = [v for v in every if v.kind == "measure" and v.role is None and not v.value_labels]
    weights = [v.name for v in plain if columns is None and is_weight(v.name, v.label)]
    if weights:
        notes[f"Left out, since they look like sampling weights: {quoted(weights, 5)}."] = None
    kept = [v for v in every if v.role not in ("weight", "drop") and v.name not in weights]
    found = [_field(data, one, labels.get(one.name, ColumnLabels()), notes) for one in kept]
    return CapturedForm(Form(name or data.name), tuple(found), tuple(notes))


def _field(
    data: Microdata, variable: Variable, labels: ColumnLabels, notes: dict[str, None]
) -> CapturedField:
    column = data.column(variable.name)
    values = column.drop_nulls()
    texts = values.head(1000) if column.dtype == pl.String else None
    direct = recognise(variable.name, variable.label, values=texts)
    # Labelled values are a coding, whatever the name.
    sure = direct is not None and direct.confidence >= fields.SURE and not variable.value_labels
    if direct is not None and direct.kind == "record number":  # not that of a person in a household
        sure = sure and values.n_unique() * _MOST_ALIKE > len(values)
    if sure or variable.role == "identifier":
        kind = direct.kind if direct else "record number"
        return capture([variable.name], variable.label, identifier=kind)
    intervals: Intervals | None = None
    categories = _missing(data, variable, column, labels)
    if variable.kind == "date":
        days = column.cast(pl.Date) if column.dtype in (pl.Date, pl.Datetime) else column.clear()
        ends: Any = days.min(), days.max()
        if None not in ends:  # rounded outward to decades
            first, last = (day.year // 10 * 10 for day in ends)
            start = datetime.date(max(first, 1), 1, 1)
            intervals = fields.dates("day", start, datetime.date(min(last + 10, 9999), 1, 1))
    elif variable.kind == "measure":
        intervals = _numbers(values, variable, notes)
    elif variable.kind == "category" and values.dtype.is_integer() and len(values):
        # Whole numbers without labels, close together, may be counts as well as codes.
        low, high = int(values.min()), int(values.max())  # type: ignore[arg-type]
        if not variable.value_labels and 0 < high - low < _MOST_CODES:
            intervals = Intervals("number", start=low, stop=high + 1, step=1)
    if variable.kind == "category" and intervals is None:
        listed = _levels(column, variable, notes)
        categories = (*listed, *categories) if listed else ()
    elif variable.kind not in ("category", "date", "measure"):
        categories = ()
    given: Any = {"categories": categories, "intervals": intervals, "recognised": False}
    return capture([variable.name], variable.label, **given)


def _levels(column: pl.Series, variable: Variable, notes: dict[str, None]) -> list[Category]:
    """Return labelled values in their order, then those that occur without a label.

    A value of few records that is no short code may tell who they are: it is not listed.
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
    if len(listed) == 1 and not rare and not labels:  # a codebook would tell the other answers
        return [*listed, Category(RARE, "Any other value", "other")]
    if not rare or not listed:
        return listed
    notes[
        f"{shown(variable.name)} has {rare:,} values without a label, each of fewer than {FEWEST} "
        f"records: they are not listed, and count as one. Give labels to distinguish them."
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
        found[fields.BLANK] = labels.blank
    elif column.null_count() and not found:
        found[fields.BLANK] = ""
    kinds = ((code, label, category_kind(label)) for code, label in found.items())
    return tuple(
        Category(code, label or "Missing", kind if kind == "not applicable" else "not stated")
        for code, label, kind in kinds
    )


def _numbers(values: pl.Series, variable: Variable, notes: dict[str, None]) -> Intervals | None:
    numbers = (values if values.dtype.is_numeric() else values.clear()).cast(pl.Float64)
    finite = numbers.filter(numbers.is_finite())
    low, high = float(finite.min() or 0), float(finite.max() or 0)  # type: ignore[arg-type]
    if not len(finite) or max(-low, high) > LARGEST:
        return None
    step = _step(finite)
    # Both ends are rounded outward to a power of ten, beyond them also where they are round.
    span = max(10.0 ** math.floor(math.log10(max(high - low, step))), 10 * step)
    start, stop = (math.ceil(low / span) - 1) * span, (math.floor(high / span) + 1) * span
    start = 0.0 if low >= 0 > start else start
    found = fields.number_intervals(
        fields.tidy(start, _FINEST), fields.tidy(stop - step, _FINEST), step, MOST
    )
    if found is not None and found.step > step:
        name = shown(variable.name)
        notes[f"{name} is too detailed; it is rounded to multiples of {found.step:g}."] = None
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
