"""Limits beyond which values are replaced: found by share, and held against a column exactly.

Whole numbers are compared as whole numbers: as floats, 2^53 and 2^53 + 1 would be one.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from keyhole.kernels.arrays import Flags

__all__ = ["as_held", "beyond", "find_limit", "whole_type"]


# A limit found by share is told in so many digits.
ROUND_DIGITS = 3
# The whole numbers that a file can hold.
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**64 - 1


def find_limit(series: pl.Series, share: float, *, top: bool) -> Any:
    """Return a round limit with no more than a share of the known values beyond it.

    Examples
    --------
    >>> find_limit(pl.Series([20, 30, 12_345]), 0.4, top=True)
    30
    >>> find_limit(pl.Series([20, 30, 12_345]), 0.1, top=True)
    12400
    """
    known = series.drop_nulls().sort(descending=top)
    if not len(known):
        return 0
    return _round_past(known[int(share * len(known) + 1e-9)], series.dtype, top=top)


def _round_past(value: Any, dtype: pl.DataType, *, top: bool) -> Any:
    """Return the next round number, or New Year: the value itself would tell of its person."""
    if isinstance(value, date):
        return _new_year(value, top=top)
    if isinstance(value, int):
        return _whole_past(value, dtype, top=top)
    number = float(value) if isinstance(value, Decimal) else value
    if not number or not math.isfinite(number):
        return number
    power = math.floor(math.log10(abs(number))) - (ROUND_DIGITS - 1)
    scaled = round(_scaled(number, -power), 6)
    whole = math.ceil(scaled) if top else math.floor(scaled)
    # Written and read again, 3 * 0.1 is 0.3; beyond the largest number it is the number itself.
    found = float(f"{whole}e{power}")
    return found if math.isfinite(found) else number


def _scaled(number: float, power: int) -> float:
    """Return a number times a power of ten that may itself be too large for a number."""
    half = power // 2
    return number * 10.0**half * 10.0 ** (power - half)


def _whole_past(value: int, dtype: pl.DataType, *, top: bool) -> int:
    step = 10 ** max(len(str(abs(value))) - ROUND_DIGITS, 0)
    found: int = -(-value // step) * step if top else value // step * step
    held = pl.Series(dtype=dtype)
    lowest: int = held.lower_bound().item()
    highest: int = held.upper_bound().item()
    return min(max(found, lowest), highest)


def _new_year(value: date, *, top: bool) -> date:
    last = top and value.year == date.max.year  # there is no year after it
    year = date.max if last else date(value.year + top, 1, 1)
    if not isinstance(value, datetime):
        return year
    return datetime.max.replace(microsecond=0) if last else datetime(year.year, 1, 1)


def as_held(value: Any, series: pl.Series) -> Any:
    """Return a date as a day or a point in time, whichever the column holds."""
    if series.dtype == pl.Date and isinstance(value, datetime):
        return value.date()
    if series.dtype == pl.Datetime and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def beyond(series: pl.Series, limit: Any, *, top: bool) -> Flags:
    """Tell of each value whether it lies beyond a limit; what is missing does not.

    Examples
    --------
    >>> beyond(pl.Series([2**53, 2**53 + 1]), 2**53, top=True).tolist()
    [False, True]
    """
    if series.dtype.is_integer():
        # A whole number is above 9.5 where it is above 9, and below it where it is below 10.
        whole = math.floor(limit) if top else math.ceil(limit)
        series, limit = series.cast(pl.Int128), pl.Series([whole], dtype=pl.Int128)
    elif series.dtype == pl.Decimal:
        series, limit = series.cast(pl.Float64), float(limit)
    hit = series > limit if top else series < limit
    return np.asarray(hit.fill_null(False).to_numpy())


def whole_type(value: int) -> pl.DataType:
    """Return a type that holds a whole number."""
    return pl.Int64() if -(2**63) <= value < 2**63 else pl.UInt64()
