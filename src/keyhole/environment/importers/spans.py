"""Intervals of the numbers and dates that a form asks for, at the detail it asks."""

from __future__ import annotations

import datetime
import math

from keyhole.environment.model import Intervals, Unit

# Intervals of one field at most; where there would be more, their step is widened.
MOST = 100_000
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2050, 1, 1)
_COUNTS = frozenset(
    {"count", "number", "many", "times", "hours", "weeks", "days", "months", "years", "classes"}
)
_OLDEST, _MOST_COUNTED, _RICHEST = 121, 101, 10_000_000


def dates(
    unit: Unit = "day", first: datetime.date | None = None, last: datetime.date | None = None
) -> Intervals:
    """Return dates by day, month or year, from `first` up to and without `last`.

    Examples
    --------
    >>> dates("year").unit, datetime.date.fromordinal(int(dates().start)).isoformat()
    ('year', '1900-01-01')
    """
    start, stop = (first or FIRST).toordinal(), (last or LAST).toordinal()
    if stop <= start:
        start, stop = FIRST.toordinal(), LAST.toordinal()
    return Intervals("date", start=start, stop=stop, step=1, unit=unit)


def number_intervals(
    low: float, high: float, step: float = 1, most: int = MOST
) -> Intervals | None:
    """Return numbers from `low` to `high` (both within) by `step`, widened where too fine.

    Examples
    --------
    >>> number_intervals(0, 120)
    Intervals(scale='number', edges=(), start=0, stop=121, step=1, unit=None)
    >>> number_intervals(0, 999_999_999).step
    10000
    >>> number_intervals(5, 1) is None
    True
    """
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(step)):
        return None
    if high < low or not 1e-9 <= step <= 1e15 or max(abs(low), abs(high)) > 1e15:
        return None
    while (count := math.floor((high - low) / step + 1e-9) + 1) > most:
        step *= 10
    return Intervals("number", start=low, stop=_plain(low + count * step), step=_plain(step))


def usual_numbers(asked: tuple[str, ...]) -> Intervals:
    """Return the numbers to be expected where a form sets no bounds, by what it asks.

    Examples
    --------
    >>> usual_numbers(("age",)).stop, usual_numbers(("birth", "year")).unit
    (121, 'year')
    """
    if "age" in asked:
        return Intervals("number", start=0, stop=_OLDEST, step=1)
    if "year" in asked and not {"per", "income", "earnings", "amount"} & set(asked):
        return dates("year")
    if _COUNTS & set(asked):
        return Intervals("number", start=0, stop=_MOST_COUNTED, step=1)
    return Intervals("number", start=0, stop=_RICHEST, step=_RICHEST // MOST)


def _plain(value: float) -> float:
    return int(value) if float(value).is_integer() else round(value, 12)
