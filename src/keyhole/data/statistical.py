"""Files of SAS, SPSS and Stata, with their labels and missing values.

Numbers without decimals become whole numbers where the format has one type of number only.
A user's own missing value (Stata's ``.a``, SAS's ``.A``) is kept as that text, and declared as
a missing code; SPSS's are kept as the numbers they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.data.describing import Facts, Request
from keyhole.data.inference import without_decimals
from keyhole.data.origin import Origin
from keyhole.errors import FileError

__all__ = ["read_statistical"]


def read_statistical(
    path: Path, name: str, request: Request, encoding: str | None = None
) -> tuple[pl.DataFrame, Origin, Mapping[str, Facts]]:
    """Read the wanted columns of a statistical file, and what it says of them.

    Parameters
    ----------
    path
        The file.
    name
        Its format: ``SAS``, ``SAS transport``, ``SPSS`` or ``Stata``.
    request
        What the caller asked for.
    encoding
        The encoding of its text, if it tells none or the wrong one.
    """
    _, about = _read(path, name, encoding, metadataonly=True)
    chosen = request.choose(list(about.column_names), repr(path.name))
    if not chosen or not about.column_names:
        raise FileError(f"{path.name!r} has no columns. Give a file with a header and records.")
    cells, about = _read(path, name, encoding, usecols=chosen)
    found = {column: _column(column, cells[column], about, name) for column in chosen}
    frame = pl.DataFrame({column: series for column, (series, _) in found.items()})
    return frame, _origin(path, about), {column: facts for column, (_, facts) in found.items()}


def _read(path: Path, name: str, encoding: str | None, **options: Any) -> tuple[Any, Any]:
    import pyreadstat

    readers: dict[str, Any] = {
        "SAS": pyreadstat.read_sas7bdat,
        "SAS transport": pyreadstat.read_xport,
        "SPSS": pyreadstat.read_sav,
        "Stata": pyreadstat.read_dta,
    }
    if name != "SAS transport":
        options["user_missing"] = True
    try:
        cells, about = readers[name](
            str(path), encoding=encoding, output_format="polars", **options
        )
        return cells, about
    except UnicodeDecodeError:
        raise FileError(
            f"{path.name!r} holds text that cannot be decoded. Say which encoding it is in "
            f"(--encoding cp1252 for most files of Western Windows programs)."
        ) from None
    except Exception:  # the reader raises plain exceptions of many kinds, some with values
        raise FileError(
            f"{path.name!r} cannot be read as {name} data: it is broken, not whole, or has "
            f"features that are not supported. Copy it again or write it anew.{_doubt(encoding)}"
        ) from None


def _doubt(encoding: str | None) -> str:
    return f" Or leave out the encoding {encoding!r}." if encoding else ""


def _origin(path: Path, about: Any) -> Origin:
    with path.open("rb") as file:
        modern = b"LIBV8" in file.read(80)
    return Origin(
        suffix=path.suffix.lower(),
        file_label=about.file_label or "",
        notes=tuple(about.notes or ()),
        table_name=about.table_name or "",
        version=8 if modern else 5,
    )


def _column(column: str, series: pl.Series, about: Any, name: str) -> tuple[pl.Series, Facts]:
    tags = tuple(about.missing_user_values.get(column, ())) if name != "SPSS" else ()
    labels = dict(about.variable_value_labels.get(column, {}))
    facts: dict[str, Any] = {
        "label": about.column_names_to_labels.get(column) or "",
        "measurement": _measurement(about.variable_measure.get(column)),
        "format": about.original_variable_types.get(column) or "",
        "width": max(about.variable_display_width.get(column) or 0, 0),
    }
    facts |= _missing(about.missing_ranges.get(column, ()))
    stored = about.readstat_variable_types.get(column)
    if tags or series.dtype == pl.Object:
        series, parsed = _tagged(series, stored)
        facts |= {"missing_codes": tuple(f".{tag}" for tag in tags), "parsed": parsed}
    else:
        series = _typed(series, stored, name)
    labels = {f".{value}" if value in tags else value: text for value, text in labels.items()}
    facts["value_labels"] = labels if series.dtype.is_float() else _whole_keys(labels)
    return series.alias(column), facts


def _measurement(said: str | None) -> str:
    return said if said in ("nominal", "ordinal", "scale") else ""


def _missing(ranges: Any) -> dict[str, Any]:
    single = tuple(_whole(one["lo"]) for one in ranges if one["lo"] == one["hi"])
    spans = tuple((one["lo"], one["hi"]) for one in ranges if one["lo"] != one["hi"])
    return {"missing_codes": single, "missing_ranges": spans}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_keys(labels: Mapping[Any, str]) -> dict[Any, str]:
    return {_whole(value): label for value, label in labels.items()}


def _typed(series: pl.Series, stored: str | None, name: str) -> pl.Series:
    """Give a column the type that the file says, also where it has no values to tell."""
    if series.dtype in (pl.Null, pl.String):
        return series.cast(pl.String if stored == "string" else pl.Float64)
    if series.dtype == pl.Float64 and (name != "Stata" or stored != "double"):
        return without_decimals(series)
    return series


def _tagged(series: pl.Series, stored: str | None) -> tuple[pl.Series, pl.DataType]:
    """Return numbers among which some are letters as text, the letters as ``.a``."""
    whole = stored in ("int8", "int16", "int32")
    text = [_as_text(value, whole) for value in series.to_list()]
    return pl.Series(series.name, text, dtype=pl.String), pl.Int64() if whole else pl.Float64()


def _as_text(value: Any, whole: bool) -> str | None:
    if value is None or isinstance(value, str):
        return f".{value}" if value else None
    return str(int(value)) if whole else repr(float(value))
