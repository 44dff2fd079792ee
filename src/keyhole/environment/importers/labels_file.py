"""Value labels in a file of their own (``name,label,code,category``), for data without any.

A row a value: the column's name, its label, the code, what the code means. Name and label
may be left blank where they are as above. A row without a code labels the column alone; a
row without a code but with a category says what a blank value means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.names import shown
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.environment.importers.opening import SheetRow, read_cells, read_sheet, require_headings
from keyhole.environment.wording import require_none
from keyhole.errors import FileError


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """The label of a column, of its codes (as text), and of a blank value."""

    label: str = ""
    codes: Mapping[str, str] = field(default_factory=dict)
    blank: str = ""


Labels = Mapping[str, ColumnLabels]
"""Labels by name of column."""


def read_labels(path: str | os.PathLike[str], *, encoding: str | None = None) -> Labels:
    """Read a file of labels, CSV or Excel, with columns ``name,label,code,category``.

    The Census Bureau's dictionaries of its microdata (rows ``NAME`` and ``VAL``) are read too.
    """
    file = Path(path)
    rows = _census_rows(file, encoding) or read_sheet(file, encoding)
    require_headings(rows, ("name", "label", "code", "category"), file.name)
    problems: list[str] = []
    names: dict[str, str] = {}
    codes: dict[str, dict[str, str]] = {}
    blanks: dict[str, str] = {}
    name = ""
    for row in rows:
        name = row["name"] or name
        if not name:
            problems.append(f"row {row.number}: name must not be empty in the first row.")
            continue
        names[name] = names.get(name) or row["label"]
        listed = codes.setdefault(name, {})
        if listed.get(row["code"], row["category"]) != row["category"]:
            problems.append(
                f"row {row.number}: the code of {shown(name)} has two labels. Keep one of them."
            )
        elif row["code"]:
            listed[row["code"]] = row["category"]
        elif row["category"]:
            blanks[name] = row["category"]
    require_none(problems, FileError)
    return {one: ColumnLabels(names[one], codes[one], blanks.get(one, "")) for one in names}


def is_census(cells: Sequence[Sequence[str]]) -> bool:
    """Tell a dictionary of the Census Bureau: each row says NAME or VAL, and has no header."""
    return bool(cells) and all(row[0] in ("NAME", "VAL") and len(row) >= 5 for row in cells if row)


def _census_rows(path: Path, encoding: str | None) -> list[SheetRow]:
    """Read a dictionary of the Census Bureau as rows of labels; nothing if it is none.

    A range of values has no label of its own; a code of nothing but b is a blank value.
    """
    if path.suffix.lower() not in (".csv", ".txt"):
        return []
    cells = read_cells(path, encoding)
    if not is_census(cells):
        return []
    found: dict[tuple[str, str, str], SheetRow] = {}
    for number, row in enumerate(cells, 1):
        named = dict(zip(("name", "label", "code", "category"), (row[1], "", "", ""), strict=True))
        if row[0] == "NAME":
            named["label"] = row[4]
        elif len(row) < 7 or row[4] != row[5]:
            continue
        else:
            code = "" if row[4] and set(row[4]) == {"b"} else row[4]
            named |= {"code": code, "category": row[6]}
        key = named["name"], named["code"], "label" if named["label"] else "value"
        found.setdefault(key, SheetRow(number, named))
    return list(found.values())


def attach_labels(microdata: Microdata, labels: Labels) -> Microdata:
    """Return the data with labels of columns and values; those of other columns are ignored.

    Codes are compared with the values as numbers in a column of numbers, else as text.

    Examples
    --------
    >>> from keyhole.data import load
    >>> labels = {"sex": ColumnLabels("Sex", {"1": "Male"})}
    >>> data = attach_labels(load({"sex": [1, 2, 1, 2]}), labels)
    >>> data.variable("sex").label, dict(data.variable("sex").value_labels)
    ('Sex', {1: 'Male'})
    """
    variables = [
        _labelled(one, microdata, labels[one.name]) if one.name in labels else one
        for one in microdata.variables
    ]
    return microdata.with_variables(variables)


def _labelled(variable: Variable, microdata: Microdata, labels: ColumnLabels) -> Variable:
    dtype = microdata.column(variable.name).dtype
    typed = {_typed(code, dtype): text for code, text in labels.codes.items() if text}
    kind = variable.kind
    if typed and kind == "measure" and not dtype.is_float() and _covers(typed, variable, microdata):
        kind = "category"
    return replace(
        variable,
        kind=kind,
        label=labels.label or variable.label,
        value_labels={**variable.value_labels, **typed},
    )


def _covers(typed: Mapping[Any, str], variable: Variable, microdata: Microdata) -> bool:
    """Tell whether all values have labels: then whole numbers are codes, not a measure."""
    values = microdata.column(variable.name).drop_nulls().unique()
    return all(value in typed for value in values.to_list())


def _typed(code: str, dtype: pl.DataType) -> Any:
    try:
        if dtype.is_integer():
            return int(code)
        return float(code) if dtype.is_float() else code
    except ValueError:
        return code
