"""Types and kinds of columns, inferred from their values.

A column read as text is typed only if its text can be made again from its values: ``02134``
stays text. Where the values are plainly numbers or times but the text is not to be had again
(``.5``, ``2020-01-01T12:00:00``), or where declared missing codes are in the way (``.`` among
ages), the frame keeps the text and the variable says what it is `parsed` to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import polars as pl

from keyhole.data.columns import Kind
from keyhole.data.missing import blank_codes, parse_codes

_GLANCE, _KIND_GLANCE = 500, 10_000
_FEW_CODES = 32
_LONG_TEXT = 20
_NEARLY_ALL = 0.95
DIGITS = 15
_EXACT = 1 << 53
NUMBER = r"^-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_MARKS = re.compile(r"[-+.:0-9eET ]*")  # what numbers, dates and times are written with
_STAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"


@dataclass(frozen=True, slots=True)
class Inferred:
    """A column as the frame keeps it, and how to read or write its values."""

    series: pl.Series
    parsed: pl.DataType | None = None
    decimals: int | None = None
    trimmed: bool = False


def infer(series: pl.Series, codes: tuple[Any, ...] = ()) -> Inferred:
    """Type a column of text, whose empty cells are null; missing codes do not spoil a type."""
    found = _type(series)
    if found is None and codes:
        rest = blank_codes(series, codes)
        if rest.null_count() > series.null_count():
            found = _type(rest)
            if found is not None:
                return Inferred(series, parsed=found.parsed or found.series.dtype)
    return found or Inferred(series)


def _type(series: pl.Series) -> Inferred | None:
    if series.null_count() == len(series):
        return None
    glance = series[:_GLANCE]
    if glance.null_count() == len(glance):
        glance = series.drop_nulls()[:_GLANCE]
    if not _MARKS.fullmatch(str(glance.max())):
        return None  # one text tells that the column holds neither
    whole, day = partial(_exact, pl.Int64()), partial(_exact, pl.Date())
    for attempt in (whole, _fixed, _shortest, _loose, day, _stamp):
        # A glance tells most types apart at no cost; only a promising one reads the column.
        found = attempt(glance)
        if found is not None and len(glance) < len(series):
            found = attempt(series)
        if found is not None:
            return found
    return None


def _exact(dtype: pl.DataType, series: pl.Series) -> Inferred | None:
    values = parse_codes(series, dtype)
    return Inferred(values) if _same(values.cast(pl.String), series) else None


def _fixed(series: pl.Series) -> Inferred | None:
    decimals = series.str.len_bytes() - series.str.find(".", literal=True) - 1
    places = decimals.max()
    if decimals.null_count() > series.null_count() or decimals.min() != places:
        return None
    values = _floats(series)
    if values is None or not isinstance(places, int) or not _sized(values, places):
        return None
    same = _same(render_floats(values, decimals=places), series)
    return Inferred(values, decimals=places) if same else None


def _shortest(series: pl.Series) -> Inferred | None:
    values = _floats(series)
    if values is None or not _has_point(series):
        return None
    for trimmed in (False, True):
        if _same(render_floats(values, trimmed=trimmed), series):
            return Inferred(values, trimmed=trimmed)
    return None


def _loose(series: pl.Series) -> Inferred | None:
    """Numbers whose text cannot be made again."""
    if not _has_point(series) or not series.str.contains(NUMBER).all():
        return None
    values = _floats(series)
    if values is None:
        return None
    if (series.str.len_bytes().max() or 0) > DIGITS:  # type: ignore[operator]
        # Different numbers of many digits may become one value: then they must stay text.
        forms = pl.DataFrame({"text": series, "value": values}).drop_nulls().unique()
        alike = forms.group_by("value").agg("text").filter(pl.col("text").list.len() > 1)
        # Most are one number in two forms, as 1.5 and 1.50 are.
        if any(len({Decimal(text) for text in texts}) > 1 for texts in alike["text"].to_list()):
            return None
    return Inferred(series, parsed=pl.Float64())


def _stamp(series: pl.Series) -> Inferred | None:
    fits = bool(series.str.contains(_STAMP).all())
    fits = fits and parse_codes(series, pl.Datetime("us")).null_count() == series.null_count()
    return Inferred(series, parsed=pl.Datetime("us")) if fits else None


def _has_point(series: pl.Series) -> bool:
    """Whether a decimal point shows that these are numbers: ``12E3`` may be a room."""
    return bool(series.str.contains(".", literal=True).any())


def _floats(series: pl.Series) -> pl.Series | None:
    values = series.cast(pl.Float64, strict=False)
    if values.null_count() > series.null_count() or not values.is_finite().all():
        return None
    return values


def _same(text: pl.Series, series: pl.Series) -> bool:
    return text.null_count() == series.null_count() and bool((text == series).all())


def fits_text(values: pl.Series, decimals: int) -> bool:
    """Whether numbers can be written with so many decimals and read back the same."""
    if not _sized(values, decimals):
        return False
    text = render_floats(values, decimals=decimals)
    return bool((text.cast(values.dtype) == values).all())


def _sized(values: pl.Series, decimals: int) -> bool:
    """Whether the numbers have few enough digits to be written with fixed decimals."""
    return 1 <= decimals <= DIGITS and bool((values.abs() < 10.0**DIGITS).all())


def without_decimals(series: pl.Series) -> pl.Series:
    """Return whole numbers as such, where a format has one type of number only."""
    filled = series.drop_nulls()
    whole = (filled.is_finite() & (filled == filled.round()) & (filled.abs() < _EXACT)).all()
    return series.cast(pl.Int64) if whole and len(filled) else series


def render_floats(
    values: pl.Series, *, decimals: int | None = None, trimmed: bool = False
) -> pl.Series:
    """Write numbers as text, with fixed decimals or in the shortest way that reads back."""
    if decimals is not None:
        text = values.cast(pl.Decimal(38, decimals), strict=False).cast(pl.String)
        below = (values == 0) & (1 / values < 0)  # a decimal has no -0.00, though files have
        return pl.select(pl.when(below).then("-" + text).otherwise(text)).to_series()
    text = values.cast(pl.String)
    return text.str.strip_suffix(".0") if trimmed else text


def guess_kind(
    series: pl.Series,
    *,
    labelled: bool = False,
    measurement: str = "",
    levels: pl.Series | None = None,
) -> Kind:
    """Say what kind of column this is; missing values are null already.

    1. A statistical file's word counts first: *nominal* and *ordinal* are categories,
       *scale* is a measure if the values are numbers.
    2. A column with labelled values, of truth values, or with no values at all is a category.
    3. Dates and times are dates; durations and decimals are measures.
    4. Text is a category, unless among the first 10,000 values nearly all (95 %) differ and
       they are long (20 characters in the mean): that is free text.
    5. Whole numbers are a category where they take at most 32 distinct values and at most
       half as many as there are records; else a measure. Other numbers are a measure.

    `labelled` is whether any value other than a missing code has a label; `levels` are the
    different values, if they are known.
    """
    dtype = series.dtype
    if dtype.is_temporal():
        return "measure" if dtype == pl.Duration else "date"
    if measurement == "scale" and dtype.is_numeric():
        return "measure"
    if measurement in ("nominal", "ordinal", "scale") or labelled or not dtype.is_numeric():
        if dtype != pl.String or labelled:
            return "category"
        glance = series[:_KIND_GLANCE]
        filled = len(glance) - glance.null_count()
        most = glance.n_unique() if levels is None else len(levels)
        if filled > 1 and most - (filled < len(glance)) >= _NEARLY_ALL * filled:
            glance = glance.drop_nulls()
            lengths = glance.str.len_chars().mean()
            if isinstance(lengths, float) and lengths >= _LONG_TEXT:
                return "text" if glance.n_unique() >= _NEARLY_ALL * filled else "category"
        return "category"
    return "category" if not dtype.is_decimal() and _is_coded(series, levels) else "measure"


def _is_coded(series: pl.Series, levels: pl.Series | None) -> bool:
    """Whether numbers are whole and few enough to be codes."""
    filled = len(series) - series.null_count()
    if levels is None:
        if not is_of_few(series):
            return False
        levels = series.unique()
    found = levels.n_unique() - (levels.null_count() > 0)
    if found > _FEW_CODES or (found > 1 and 2 * found > filled):
        return False
    return not series.dtype.is_float() or bool((levels == levels.round()).all())


def is_of_few(series: pl.Series) -> bool:
    """Whether the first numbers are few enough to be codes."""
    return series[:_KIND_GLANCE].n_unique() <= _FEW_CODES + 1
