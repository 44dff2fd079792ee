"""Which columns are categories, measures, dates or free text, when nobody says so."""

from __future__ import annotations

import polars as pl

from keyhole.data.columns import Kind

__all__ = ["guess_kind"]

_FEW = 32
_GLANCE = 10_000
_LONG = 20
_NEARLY_ALL = 0.95


def guess_kind(series: pl.Series, *, labelled: bool = False, measurement: str = "") -> Kind:
    """Say what kind of column this is; missing values are null already.

    1. A statistical file's word counts first: *nominal* and *ordinal* are categories,
       *scale* is a measure if the values are numbers.
    2. A column with labelled values, of truth values, or with no values at all is a category.
    3. Dates and times are dates; durations and decimals are measures.
    4. Text is a category, unless among the first 10,000 values nearly all (95 %) differ and
       they are long (20 characters in the mean): that is free text.
    5. Whole numbers are a category where they take at most 32 distinct values and at most
       half as many as there are records; else a measure. Other numbers are a measure.

    Parameters
    ----------
    series
        The column.
    labelled
        Whether any value other than a missing code has a label.
    measurement
        ``nominal``, ``ordinal``, ``scale`` or nothing.

    Examples
    --------
    >>> guess_kind(pl.Series([1, 2, 2, 1])), guess_kind(pl.Series([1.5, 2.0]))
    ('category', 'measure')
    """
    dtype = series.dtype
    if dtype.is_temporal():
        return "measure" if dtype == pl.Duration else "date"
    if measurement == "scale" and dtype.is_numeric():
        return "measure"
    if measurement in ("nominal", "ordinal", "scale") or labelled or not dtype.is_numeric():
        return "text" if dtype == pl.String and not labelled and _is_free(series) else "category"
    if dtype.is_decimal():
        return "measure"
    return "category" if _is_coded(series) else "measure"


def _is_free(series: pl.Series) -> bool:
    glance = series.head(_GLANCE).drop_nulls()
    lengths = glance.str.len_chars().mean()
    if not isinstance(lengths, float) or lengths < _LONG or len(glance) < 2:
        return False
    return glance.n_unique() >= _NEARLY_ALL * len(glance)


def _is_coded(series: pl.Series) -> bool:
    """Whether numbers are whole and few enough to be codes."""
    missing = series.null_count()
    if series[:_GLANCE].n_unique() > _FEW + 1:
        return False
    levels = series.n_unique() - (missing > 0)
    if levels > _FEW or (levels > 1 and 2 * levels > len(series) - missing):
        return False
    return not series.dtype.is_float() or bool((series == series.round()).all())
