"""SAS, SPSS and Stata files, with their labels and missing values.

Numbers without decimals become whole numbers where the format has one type of number only.
A user's own missing value (Stata's ``.a``, SAS's ``.A``) is kept as that text, and declared as
a missing code; SPSS's are kept as the numbers they are.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.extras import needing
from keyhole.core.files import require_room
from keyhole.core.options import Problem
from keyhole.data.columns import Variable
from keyhole.data.describing import Facts, Request
from keyhole.data.inference import without_decimals
from keyhole.data.microdata import Microdata, Origin
from keyhole.errors import ColumnError, FileError, RunError

_READERS = {
    "SAS": "read_sas7bdat",
    "SAS transport": "read_xport",
    "SPSS": "read_sav",
    "Stata": "read_dta",
}
_EXACT = 1 << 53
_LONG = 2_147_483_620  # Stata keeps the numbers above for its missing values
# What is not 0 must be at least the first and below the second, in absolute value: SPSS and Stata
# keep the largest numbers for their missing values, SAS transport has the floats of old mainframes.
_FLOATS = {
    "SPSS": (0.0, sys.float_info.max),
    "Stata": (0.0, 2.0**1023),
    "SAS transport": (2.0**-260, 2.0**248),
}
# What names are like, how many bytes they may have, and words that they may not be.
_NAMES = {
    "SPSS": (r"[^\W\d_][\w.@#$]*", 64, "all and by eq ge gt le lt ne not or to with"),
    "Stata": (
        r"[^\W\d]\w*",
        32,
        "_all _b byte _coef _cons double float if in int long _n _pi _pred _rc _skip using with",
    ),
    "SAS transport": (r"[A-Za-z_][A-Za-z0-9_]*", 32, ""),
}
_MAP = b"<map>"
_PLACES = 14  # of Stata's map, eight bytes each: the last is where the file ends
_TAG = re.compile(r"^\.[A-Za-z_]$")


def read_statistical(
    path: Path, name: str, request: Request, encoding: str | None = None
) -> tuple[pl.DataFrame, Origin, Mapping[str, Facts]]:
    """Read the wanted columns of a statistical file of a format, and what it says of them."""
    _, about = read_with_metadata(path, name, encoding, metadataonly=True)
    chosen = request.choose(list(about.column_names), repr(path.name))
    if not chosen or not about.column_names:
        raise FileError(f"{path.name!r} has no columns. Give a file with a header and records.")
    cells, about = read_with_metadata(path, name, encoding, usecols=chosen)
    found = {column: read_column(column, cells[column], about, name) for column in chosen}
    frame = pl.DataFrame({column: series for column, (series, _) in found.items()})
    with path.open("rb") as file:
        version = 8 if b"LIBV8" in file.read(80) else 5
    origin = Origin(
        suffix=path.suffix.lower(),
        file_label=about.file_label or "",
        notes=tuple(about.notes or ()),
        table_name=about.table_name or "",
        version=version,
    )
    return frame, origin, {column: facts for column, (_, facts) in found.items()}


@needing("statistical")
def read_with_metadata(
    path: Path, name: str, encoding: str | None, **options: Any
) -> tuple[Any, Any]:
    """Read a statistical file as its reader gives it: a frame, and what the file says of it."""
    import pyreadstat

    if name != "SAS transport":
        options["user_missing"] = True
    reader = getattr(pyreadstat, _READERS[name])
    try:
        cells, about = reader(str(path), encoding=encoding, output_format="polars", **options)
        return cells, about
    except UnicodeDecodeError:
        template = (
            "{0!r} holds text that cannot be decoded. Say which encoding it is in ({encoding} "
            "cp1252 for most files of Western Windows programs)."
        )
        raise FileError(Problem(template, path.name)) from None
    except Exception:  # the reader raises plain exceptions of many kinds, some with values
        doubt = f" Or leave out the encoding {encoding!r}." if encoding else ""
        raise FileError(
            f"{path.name!r} cannot be read as {name} data: it is damaged, incomplete, or uses "
            f"features that are not supported. Copy it again or save it again.{doubt}"
        ) from None


def read_column(column: str, series: pl.Series, about: Any, name: str) -> tuple[pl.Series, Facts]:
    """Type a column that was read, and tell what the file says of it."""
    tags = tuple(about.missing_user_values.get(column, ())) if name != "SPSS" else ()
    labels = dict(about.variable_value_labels.get(column, {}))
    measurement = about.variable_measure.get(column)
    facts: dict[str, Any] = {
        "label": about.column_names_to_labels.get(column) or "",
        "measurement": measurement if measurement in ("nominal", "ordinal", "scale") else "",
        "format": about.original_variable_types.get(column) or "",
        "width": max(about.variable_display_width.get(column) or 0, 0),
    }
    ranges = [(span["lo"], span["hi"]) for span in about.missing_ranges.get(column, ())]
    facts["missing_codes"] = tuple(_whole(low) for low, high in ranges if low == high)
    facts["missing_ranges"] = tuple((low, high) for low, high in ranges if low != high)
    stored = about.readstat_variable_types.get(column)
    if tags or series.dtype == pl.Object:
        series, parsed = _tagged(series, stored)
        facts |= {"missing_codes": tuple(f".{tag}" for tag in tags), "parsed": parsed}
    elif series.dtype in (pl.Null, pl.String):  # also where it has no values to tell
        series = series.cast(pl.String if stored == "string" else pl.Float64)
    elif series.dtype == pl.Float64 and (name != "Stata" or stored != "double"):
        series = without_decimals(series)
    labels = {f".{value}" if value in tags else value: text for value, text in labels.items()}
    facts["value_labels"] = (
        labels if series.dtype.is_float() else {_whole(key): text for key, text in labels.items()}
    )
    return series.alias(column), facts


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _tagged(series: pl.Series, stored: str | None) -> tuple[pl.Series, pl.DataType]:
    """Return numbers among which some are letters as text, the letters as ``.a``."""
    whole = stored in ("int8", "int16", "int32")
    text = [
        (f".{value}" if value else None)
        if value is None or isinstance(value, str)
        else (str(int(value)) if whole else repr(float(value)))
        for value in series.to_list()
    ]
    return pl.Series(series.name, text, dtype=pl.String), pl.Int64() if whole else pl.Float64()


@needing("statistical")
def write_spss(data: Microdata, path: Path) -> None:
    """Write an SPSS file with labels, formats, measurement levels and missing values."""
    import pyreadstat

    frame = _frame(data, "SPSS")
    same = data.origin.suffix in (".sav", ".zsav")
    pyreadstat.write_sav(
        frame,
        str(path),
        note=list(data.origin.notes) or None,
        compress=path.suffix.lower() == ".zsav",
        variable_value_labels=_value_labels(data, frame),
        missing_ranges=_spss_missing(data, frame),
        variable_measure={v.name: v.measurement for v in data.variables if v.measurement},
        variable_display_width={v.name: v.width for v in data.variables if same and v.width},
        **_labels(data, frame, formats=same),
    )
    _require_written(path, "SPSS", data)


@needing("statistical")
def write_stata(data: Microdata, path: Path) -> None:
    """Write a Stata file with labels, formats and its own missing values (``.a``)."""
    import pyreadstat

    frame = _frame(data, "Stata")
    tags = {v.name: _tags(v) for v in data.variables if frame.schema[v.name] == pl.Object}
    pyreadstat.write_dta(
        frame,
        str(path),
        variable_value_labels=_value_labels(data, frame, text=False),
        missing_user_values=tags or None,
        **_labels(data, frame, formats=data.origin.suffix == ".dta"),
    )
    _require_written(path, "Stata", data)


@needing("statistical")
def write_transport(data: Microdata, path: Path) -> None:
    """Write a SAS transport file with labels and formats; it has no place for value labels."""
    import pyreadstat

    frame, origin = _frame(data, "SAS transport"), data.origin
    # Version 5 holds what was read in it, but for long names and a last record of blanks.
    texts = all(dtype == pl.String for dtype in frame.dtypes)
    blank = texts and frame.height > 0 and not any(frame.row(-1))
    old = origin.suffix == ".xpt" and origin.version == 5 and not blank
    pyreadstat.write_xport(
        frame,
        str(path),
        table_name=origin.table_name or None,
        file_format_version=5 if old and all(len(name) <= 8 for name in data.names) else 8,
        **_labels(data, frame, formats=origin.suffix in (".xpt", ".sas7bdat")),
    )
    _require_written(path, "SAS transport", data)


def _labels(data: Microdata, frame: pl.DataFrame, *, formats: bool) -> dict[str, Any]:
    """Return the labels, and the formats if they are of the same package."""
    return {
        "file_label": data.origin.file_label,
        "column_labels": [variable.label or None for variable in data.variables],
        "variable_format": {
            variable.name: variable.format
            for variable in data.variables
            if formats and variable.format and frame.schema[variable.name] != pl.String
        },
    }


def _value_labels(
    data: Microdata, frame: pl.DataFrame, *, text: bool = True
) -> dict[str, dict[Any, str]]:
    """Return the value labels, their values in the type that the column is written in."""
    found = {}
    for variable in data.variables:
        dtype, labels = frame.schema[variable.name], variable.value_labels
        if dtype == pl.String:
            pairs: dict[Any, str] = {str(value): label for value, label in labels.items()}
        else:
            tags = {value for value in labels if dtype == pl.Object and _is_tag(value)}
            pairs = {_letter(v) if v in tags else _as_number(v): labels[v] for v in labels}
        if labels and (text or dtype != pl.String):
            found[variable.name] = {v: label for v, label in pairs.items() if v is not None}
    return found


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
    shape, longest, words = _NAMES[name]
    problems = [
        f"column {column!r} has a name that {name} cannot hold: it must be a letter with letters, "
        f"digits and underscores after it, of {longest} bytes at most, and no word of its own. "
        f"Rename it, or write .csv."
        for column in data.names
        if not re.fullmatch(shape, column)
        or len(column.encode()) > longest
        or column.lower() in words.split()
    ]
    columns: dict[str, pl.Series] = {}
    for variable in () if problems else data.variables:
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
        largest = series.cast(pl.Int128).abs().max()
        if isinstance(largest, int) and largest > _EXACT:
            raise ColumnError(
                f"column {series.name!r} holds whole numbers of more than 15 digits, which {name} "
                f"cannot hold: turn them into text first, or write .parquet."
            )
        small = not isinstance(largest, int) or largest <= _LONG
        return series.cast(pl.Int32 if small else pl.Float64)
    if dtype.is_float() or dtype.is_decimal():
        series = series.cast(pl.Float64).fill_nan(None)
        (least, beyond), size = _FLOATS[name], series.abs()
        if ((size >= beyond) | ((size < least) & (size > 0))).any():
            raise ColumnError(
                f"column {series.name!r} holds numbers that are too large or too near 0 for "
                f"{name}, or infinite: write .csv or .parquet."
            )
        return series
    if dtype == pl.Duration:
        return series.dt.total_milliseconds() / 1000
    if dtype == pl.Datetime:
        return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    return series if dtype in (pl.Date, pl.Time) else series.cast(pl.String).fill_null("")


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


def _require_written(path: Path, name: str, data: Microdata) -> None:
    """Say so unless a file holds all the records that were written."""
    records = None
    with suppress(FileError):
        records = len(read_with_metadata(path, name, None, usecols=[data.names[0]])[0])
    size = path.stat().st_size
    if name == "Stata":
        with path.open("rb") as file:
            beginning = file.read(4096)
        end = beginning.find(_MAP) + len(_MAP) + 8 * _PLACES
        size = int.from_bytes(beginning[end - 8 : end], sys.byteorder)
    if records == data.records and size == path.stat().st_size:
        return
    require_room(path)
    raise RunError(
        f"the {name} file could not be written completely: it was read back and is cut short. "
        f"Check the disk, or choose another folder."
    )
