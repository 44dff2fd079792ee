"""Files of SPSS, Stata and SAS (transport), with their labels and missing values."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.data.verifying import require_written
from keyhole.errors import ColumnError

__all__ = ["write_spss", "write_stata", "write_transport"]

_EXACT = 1 << 53
_LONG = 2_147_483_620  # Stata keeps the numbers above for its missing values
# What is not 0 must be at least the first and below the second, in absolute value: SPSS and Stata
# keep the largest numbers for their missing values, SAS transport has the floats of old mainframes.
_FLOATS = {
    "SPSS": (0.0, sys.float_info.max),
    "Stata": (0.0, 2.0**1023),
    "SAS transport": (2.0**-260, 2.0**248),
}
_NONE: frozenset[str] = frozenset()
_SPSS_WORDS = frozenset(re.findall(r"\w+", "all and by eq ge gt le lt ne not or to with"))
_STATA_WORDS = frozenset(
    re.findall(
        r"\w+",
        "_all _b byte _coef _cons double float if in int long _n _pi _pred _rc _skip using with",
    )
)
_TAG = re.compile(r"^\.[A-Za-z_]$")


def write_spss(data: Microdata, path: Path) -> None:
    """Write an SPSS file with labels, formats, measurement levels and missing values."""
    import pyreadstat

    _require_names(data, "SPSS", re.compile(r"^[^\W\d_][\w.@#$]*$"), 64, _SPSS_WORDS)
    frame = _frame(data, "SPSS")
    same = data.origin.suffix in (".sav", ".zsav")
    about = [v for v in data.variables if frame.schema[v.name] != pl.String]
    pyreadstat.write_sav(
        frame,
        str(path),
        file_label=data.origin.file_label,
        note=list(data.origin.notes) or None,
        compress=path.suffix.lower() == ".zsav",
        column_labels=_labels(data),
        variable_value_labels=_value_labels(data, frame),
        missing_ranges=_spss_missing(data, frame),
        variable_measure={v.name: v.measurement for v in data.variables if v.measurement},
        variable_format={v.name: v.format for v in about if same and v.format},
        variable_display_width={v.name: v.width for v in data.variables if same and v.width},
    )
    require_written(path, "SPSS", data.names[0], data.records)


def write_stata(data: Microdata, path: Path) -> None:
    """Write a Stata file with labels, formats and its own missing values (``.a``)."""
    import pyreadstat

    _require_names(data, "Stata", re.compile(r"^[^\W\d]\w*$"), 32, _STATA_WORDS)
    frame = _frame(data, "Stata")
    same = data.origin.suffix == ".dta"
    tags = {v.name: _tags(v) for v in data.variables if frame.schema[v.name] == pl.Object}
    about = [v for v in data.variables if frame.schema[v.name] != pl.String]
    pyreadstat.write_dta(
        frame,
        str(path),
        file_label=data.origin.file_label,
        column_labels=_labels(data),
        variable_value_labels=_value_labels(data, frame, text=False),
        missing_user_values=tags or None,
        variable_format={v.name: v.format for v in about if same and v.format},
    )
    require_written(path, "Stata", data.names[0], data.records)


def write_transport(data: Microdata, path: Path) -> None:
    """Write a SAS transport file with labels and formats; it has no place for value labels."""
    import pyreadstat

    _require_names(data, "SAS transport", re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$"), 32)
    same = data.origin.suffix in (".xpt", ".sas7bdat")
    frame = _frame(data, "SAS transport")
    about = [v for v in data.variables if frame.schema[v.name] != pl.String]
    pyreadstat.write_xport(
        frame,
        str(path),
        file_label=data.origin.file_label,
        column_labels=_labels(data),
        table_name=data.origin.table_name or None,
        file_format_version=5 if _stays_old(data, frame) else 8,
        variable_format={v.name: v.format for v in about if same and v.format},
    )
    require_written(path, "SAS transport", data.names[0], data.records)


def _stays_old(data: Microdata, frame: pl.DataFrame) -> bool:
    """Whether version 5 of the transport format can hold what was read in it.

    It does not count its records: those at its end that are blank text would not be seen.
    """
    old = data.origin.suffix == ".xpt" and data.origin.version == 5
    text = all(dtype == pl.String for dtype in frame.dtypes)
    blank = text and frame.height > 0 and not any(frame.row(-1))
    return old and not blank and all(len(name) <= 8 for name in data.names)


def _require_names(
    data: Microdata, name: str, shape: re.Pattern[str], longest: int, words: frozenset[str] = _NONE
) -> None:
    problems = [
        f"column {column!r} has a name that {name} cannot hold: it must be a letter with letters, "
        f"digits and underscores after it, of {longest} bytes at most, and no word of its own. "
        f"Rename it, or write .csv."
        for column in data.names
        if not shape.fullmatch(column) or len(column.encode()) > longest or column.lower() in words
    ]
    if problems:
        raise ColumnError(problems)


def _labels(data: Microdata) -> list[str | None]:
    return [variable.label or None for variable in data.variables]


def _value_labels(
    data: Microdata, frame: pl.DataFrame, *, text: bool = True
) -> dict[str, dict[Any, str]]:
    """Return the value labels, their values in the type that the column is written in."""
    found = {}
    for variable in data.variables:
        dtype = frame.schema[variable.name]
        if not variable.value_labels or (dtype == pl.String and not text):
            continue
        convert = _converter(dtype)
        pairs = ((convert(value), label) for value, label in variable.value_labels.items())
        found[variable.name] = {value: label for value, label in pairs if value is not None}
    return found


def _converter(dtype: pl.DataType) -> Callable[[Any], Any]:
    if dtype == pl.String:
        return str
    if dtype == pl.Object:
        return lambda value: _letter(value) if _is_tag(value) else _as_number(value)
    return _as_number


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and _TAG.match(value) is not None


def _letter(code: str) -> str | None:
    return None if code == "._" else code[1:].lower()


def _as_number(value: Any) -> float | int | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else number


def _spss_missing(data: Microdata, frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Declare missing codes as SPSS can: three values, or a range and one value."""
    found, lost = {}, []
    for variable in data.variables:
        ranges = _declared(variable, frame[variable.name])
        spans = sum(isinstance(one, dict) for one in ranges)
        if spans > 1 or len(ranges) > (2 if spans else 3):
            lost.append(variable.name)
        elif ranges:
            found[variable.name] = ranges
    if lost:
        warnings.warn(
            f"SPSS holds three missing codes a column, or a range and one code: those of "
            f"{', '.join(map(repr, lost))} are written as values and not declared.",
            stacklevel=2,
        )
    return found


def _declared(variable: Variable, series: pl.Series) -> list[Any]:
    if series.dtype == pl.String:
        texts = [str(code) for code in variable.missing_codes]
        present = set(series.unique().to_list())
        return [code for code in texts if code in present and len(code.encode()) <= 8]
    if not series.dtype.is_numeric():
        return []
    numbers = dict.fromkeys(map(_as_number, variable.missing_codes))
    codes = [number for number in numbers if number is not None]
    if len(codes) > 3:  # a list for the whole file: keep those that this column uses
        codes = [code for code in codes if (series == code).any()]
    return [*({"lo": low, "hi": high} for low, high in variable.missing_ranges), *codes]


def _tags(variable: Variable) -> list[str]:
    """Return the letters of missing values; Stata has those of SAS in lower case."""
    letters = [code[1:].lower() for code in variable.missing_codes if _is_tag(code)]
    return [letter for letter in dict.fromkeys(letters) if letter != "_"]


def _frame(data: Microdata, name: str) -> pl.DataFrame:
    """Bring every column to a type that the format has, or say all that cannot be."""
    columns: dict[str, pl.Series] = {}
    problems: list[str] = []
    for variable in data.variables:
        try:
            columns[variable.name] = _written(data.frame[variable.name], variable, name)
        except ColumnError as error:
            problems += error.problems
    if problems:
        raise ColumnError(problems)
    return pl.DataFrame(columns)


def _written(series: pl.Series, variable: Variable, name: str) -> pl.Series:
    dtype = series.dtype
    if dtype == pl.Object or dtype.is_nested() or dtype == pl.Binary:
        raise ColumnError(
            f"column {variable.name!r} holds lists, bytes or objects, which {name} cannot hold: "
            f"leave it out, or write .parquet."
        )
    if dtype == pl.String and variable.parsed is not None and _tags(variable):
        return _untagged(series, variable, name)
    if dtype.is_integer() or dtype == pl.Boolean:
        return _written_whole(series, name)
    if dtype.is_float() or dtype.is_decimal():
        return _written_float(series.cast(pl.Float64).fill_nan(None), name)
    if dtype == pl.Duration:
        return series.dt.total_milliseconds() / 1000
    if dtype == pl.Datetime:
        return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    return series if dtype in (pl.Date, pl.Time) else series.cast(pl.String).fill_null("")


def _written_whole(series: pl.Series, name: str) -> pl.Series:
    largest = series.cast(pl.Int128).abs().max()
    if not isinstance(largest, int) or largest <= _LONG:
        return series.cast(pl.Int32)
    if largest > _EXACT:
        raise ColumnError(
            f"column {series.name!r} holds whole numbers of more than 15 digits, which {name} "
            f"cannot hold: turn them into text first, or write .parquet."
        )
    return series.cast(pl.Float64)


def _written_float(series: pl.Series, name: str) -> pl.Series:
    least, beyond = _FLOATS[name]
    size = series.abs()
    if ((size >= beyond) | ((size < least) & (size > 0))).any():
        raise ColumnError(
            f"column {series.name!r} holds numbers that are too large or too near 0 for {name}, "
            f"or infinite: write .csv or .parquet."
        )
    return series


def _untagged(series: pl.Series, variable: Variable, name: str) -> pl.Series:
    """Turn the text ``.a`` back into Stata's missing value; SPSS and XPT have none like it."""
    number = int if variable.parsed is not None and variable.parsed.is_integer() else float
    tagged = series.str.contains(_TAG.pattern)
    if name != "Stata":
        plain = series.set(tagged.fill_null(False), None)
        return plain.cast(pl.Int32 if number is int else pl.Float64, strict=False)
    values = [
        None if text is None else _letter(text) if _is_tag(text) else number(text)
        for text in series.to_list()
    ]
    return pl.Series(series.name, values, dtype=pl.Object)
