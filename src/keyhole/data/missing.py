"""Missing values: which values stand for one, and a column with those turned to null."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any

import polars as pl

from keyhole.data.columns import Variable, require_flat

_WIDE: dict[pl.DataType, type[pl.DataType]] = {
    pl.UInt64(): pl.Int128,
    pl.Int128(): pl.Int128,
    pl.UInt128(): pl.UInt128,
}
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def text_forms(codes: Iterable[Any]) -> set[str]:
    """Return the texts that a list of missing codes stands for."""
    forms = set()
    for code in codes:
        text = str(code).strip() if isinstance(code, int | float) else str(code)
        forms.add(text)
        number = _number(text)
        if number is not None and number.is_integer():
            forms |= {str(int(number)), f"{int(number)}.0"}
    # Half a character, as a command line may hand on, is in no column.
    return {text for text in forms if text.encode(errors="ignore").decode() == text}


def blank(series: pl.Series, variable: Variable) -> pl.Series:
    """Return the column with declared missing codes, empty text and NaN turned to null."""
    series = blank_codes(require_flat(series), variable.missing_codes)
    if variable.missing_ranges and series.dtype.is_numeric():
        for lowest, highest in variable.missing_ranges:
            series = _null_where(series, series.is_between(lowest, highest))
    if variable.parsed is not None and series.dtype == pl.String:
        parsed = parse_codes(series, variable.parsed)
        # A step may have put other texts in; then the text is all there is.
        return parsed if parsed.null_count() == series.null_count() else series
    return series


def parse_codes(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Read text as values of a type; what cannot be read becomes null."""
    if dtype == pl.Datetime:
        plain = series.str.replace("T", " ", literal=True)
        return plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    if dtype == pl.Date:
        return series.str.to_date("%Y-%m-%d", strict=False)
    return series.cast(dtype, strict=False)


def blank_codes(series: pl.Series, codes: tuple[Any, ...]) -> pl.Series:
    """Return the column with these codes, empty text and NaN turned to null."""
    if series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if series.dtype == pl.String:
        hit = series.is_in(["", *sorted(text_forms(codes))]) if codes else series == ""
        return _null_where(series, hit)
    if not codes:
        return series
    if series.dtype.is_numeric():
        return _blank_numbers(series, codes)
    # As Polars writes them, for dates and truth values too.
    forms = text_forms(codes) | {text.lower() for text in text_forms(codes)}
    stamps = [c for c in codes if isinstance(c, datetime | date | time | timedelta)]
    forms |= {_as_text(pl.Series([stamp]))[0] for stamp in stamps}
    return _null_where(series, _as_text(series).is_in(sorted(forms)))


def _blank_numbers(series: pl.Series, codes: tuple[Any, ...]) -> pl.Series:
    numbers = [n for n in (_number(str(code)) for code in codes) if n is not None]
    if series.dtype.is_integer():
        # In the widest type, since a code may be no value of a narrow one.
        wide = series.cast(_WIDE.get(series.dtype, pl.Int64))
        whole = [int(n) for n in numbers if n.is_integer() and -(1 << 63) <= n < 1 << 63]
        return _null_where(series, wide.is_in(whole)) if whole else series
    return _null_where(series, series.cast(pl.Float64).is_in(numbers)) if numbers else series


def _as_text(series: pl.Series) -> pl.Series:
    if series.dtype == pl.Duration:
        return series.dt.to_string("iso")
    return series.bin.encode("hex") if series.dtype == pl.Binary else series.cast(pl.String)


def _null_where(series: pl.Series, hit: pl.Series) -> pl.Series:
    if not hit.any():
        return series
    return pl.select(pl.when(hit).then(None).otherwise(series).alias(series.name)).to_series()


def _number(text: str) -> float | None:
    """Read a number as one writes it: ``007`` and ``1_000`` are none."""
    if text in ("inf", "-inf"):
        return float(text)
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None
