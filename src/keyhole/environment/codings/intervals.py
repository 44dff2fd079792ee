"""Interval codings: edges of numbers and days, and how two partitions of a line meet.

Every interval is half open, [a, b). Dates are day ordinals (`datetime.date.toordinal`).
Everything is done on whole arrays: a date of birth by the day has more than 40,000 intervals.
"""

from __future__ import annotations

import datetime
import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from keyhole.environment.model import Intervals
from keyhole.kernels.arrays import Floats, Ints

# 1970-01-01, where NumPy's days begin, as a day ordinal.
FIRST_DAY = 719_163
# More intervals than any file has categories: a slip of the pen, and no memory for it.
MOST = 5_000_000
_LETTERS = {None: "D", "day": "D", "month": "M", "year": "Y"}


def days_of(ordinals: npt.NDArray[np.float64 | np.int64]) -> npt.NDArray[np.datetime64]:
    """Turn day ordinals into NumPy days."""
    days = np.asarray(ordinals, dtype=np.int64) - FIRST_DAY
    return days.astype("datetime64[D]")


@lru_cache(maxsize=4096)
def edges_of(intervals: Intervals) -> Floats:
    """Return the k + 1 edges of k intervals."""
    start, stop, step = intervals.start, intervals.stop, intervals.step
    if intervals.edges:
        edges = np.array(intervals.edges, dtype=np.float64)
    elif intervals.exact:
        edges = np.array([-np.inf, np.inf])
    elif intervals.scale == "date":  # cut at the beginning of days, months or years
        letter = _LETTERS[intervals.unit]
        bounds = days_of(np.array([start, stop]))
        first, last = bounds.astype(f"datetime64[{letter}]").astype(np.int64).tolist()
        units = np.arange(first, last + 1, max(int(step), 1)).astype(f"datetime64[{letter}]")
        days = units.astype("datetime64[D]").astype(np.int64) + FIRST_DAY
        inner = days[(days > start) & (days < stop)]
        edges = np.concatenate([[start], inner, [stop]]).astype(np.float64)
    else:
        # The small allowance keeps 0 to 0.3 by 0.1 from having a fourth, empty interval.
        inner = np.arange(math.ceil((stop - start) / step - 1e-9))
        edges = np.append(start + step * inner, stop).astype(np.float64)
    edges.flags.writeable = False
    return edges


def count_of(intervals: Intervals) -> int:
    """Count the intervals."""
    return len(edges_of(intervals)) - 1


def interval_problems(intervals: Intervals) -> list[str]:
    """Say what is wrong with a partition into intervals."""
    if intervals.scale not in ("number", "date"):
        return [f"scale must be 'number' or 'date'. Got {intervals.scale!r} instead."]
    if not (math.isfinite(intervals.factor) and intervals.factor > 0):
        return [f"factor must be above 0. Got {intervals.factor:g} instead."]
    if intervals.edges or intervals.exact:
        return _edge_problems(intervals) if intervals.edges else []
    start, stop, step = intervals.start, intervals.stop, intervals.step
    if not all(map(math.isfinite, (start, stop, step))) or start >= stop:
        return [f"start must lie below stop. Got {start:g} and {stop:g} instead."]
    if intervals.scale == "date":
        steps = 0 <= step <= MOST and step == int(step)
        problems = [] if steps else [f"step must be whole and not negative. Got {step:g} instead."]
        if not _are_days(np.array([start, stop])):
            problems.append("start and stop of dates must be day ordinals from 1 to 3,652,059.")
        return problems
    if step <= 0:
        return [f"step must be above 0. Got {step:g} instead."]
    if (stop - start) / step > MOST:
        return [f"at most {MOST:,} intervals can be made. Got {(stop - start) / step:,.0f}."]
    return []


def _edge_problems(intervals: Intervals) -> list[str]:
    edges = np.array(intervals.edges, dtype=np.float64)
    if len(edges) < 2:
        return ["edges must be two or more. Got one instead."]
    if np.isnan(edges).any():
        return ["edges must be numbers. Got nan instead."]
    fault = np.flatnonzero(~(edges[:-1] < edges[1:]))
    if fault.size:
        first, second = edges[fault[0]], edges[fault[0] + 1]
        return [f"edges must rise. Got {first:g} followed by {second:g} instead."]
    if intervals.scale == "date" and not _are_days(edges[np.isfinite(edges)]):
        return ["edges of dates must be day ordinals from 1 to 3,652,059. Got others instead."]
    return []


def _are_days(values: Floats) -> bool:
    inside = (values >= 1) & (values <= 3_652_059)
    return bool((inside & (values == np.floor(values))).all())


def homes(inner: Floats, outer: Floats) -> tuple[Ints, Ints]:
    """Return where each inner interval begins and ends among the outer ones.

    -1 is below all of them, their number above all. An interval lies in one outer interval
    (or wholly outside) if both are the same.
    """
    begins = np.searchsorted(outer, inner[:-1], side="right") - 1
    ends = np.searchsorted(outer, inner[1:], side="left") - 1
    return begins.astype(np.int64), ends.astype(np.int64)


def intersections(left: Floats, right: Floats) -> tuple[Ints, Ints]:
    """Return the positions of all pairs of intervals that have something in common."""
    begins, ends = homes(left, right)
    begins, ends = np.maximum(begins, 0), np.minimum(ends, len(right) - 2)
    counts = np.maximum(ends - begins + 1, 0)
    positions = np.repeat(np.arange(len(counts)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return positions, np.repeat(begins, counts) + np.arange(len(positions)) - before


@lru_cache(maxsize=1024)
def interval_codes(intervals: Intervals) -> tuple[str, ...]:
    """Return the code of each interval."""
    edges = edges_of(intervals)
    return label_edges(edges[:-1], edges[1:], intervals.scale)


def label_edges(low: Floats, high: Floats, scale: str) -> tuple[str, ...]:
    """Write the interval from each low edge to each high one."""
    finite = np.isfinite(low) & np.isfinite(high)
    texts: npt.NDArray[np.object_] = np.full(len(low), "any", dtype=object)
    write = _date_labels if scale == "date" else _number_labels
    texts[finite] = write(low[finite], high[finite])
    below, above = ("before", "from") if scale == "date" else ("under", "")
    for i in np.flatnonzero(~finite).tolist():  # the first and the last at most
        known = high[i] if np.isfinite(high[i]) else low[i]
        if np.isfinite(known):
            start = below if known == high[i] else above
            edge = f"{known:g}" if start else f"{known:.15g}+"
            day = str(days_of(np.array([known]))[0]) if scale == "date" else edge
            texts[i] = f"{start} {day}".lstrip()
    return tuple(texts.tolist())


def _number_labels(low: Floats, high: Floats) -> npt.NDArray[np.object_]:
    """Write whole numbers from and to, as 20-29; others with both edges, as [0.5,1)."""
    whole = (low == np.floor(low)) & (high == np.floor(high)) & (low >= 0) & (high < 2**53)
    out = np.empty(len(low), dtype=object)
    first, last = low[whole].astype(np.int64), high[whole].astype(np.int64) - 1
    out[whole] = np.where(first == last, first.astype(str), _between(first, last, "-"))
    out[~whole] = [f"[{a:.15g},{b:.15g})" for a, b in zip(low[~whole], high[~whole], strict=True)]
    return out


def _between(
    first: npt.NDArray[np.generic], last: npt.NDArray[np.generic], mark: str
) -> npt.NDArray[np.str_]:
    texts = np.char.add(np.char.add(first.astype(str), mark), last.astype(str))
    return np.asarray(texts, dtype=np.str_)


def _date_labels(low: Floats, high: Floats) -> npt.NDArray[np.str_]:
    """Write days, months and years where an interval is one, else the first and last day."""
    first, after = days_of(low), days_of(high)
    last = after - np.timedelta64(1, "D")
    month, year = first.astype("datetime64[M]"), first.astype("datetime64[Y]")
    month_after, year_after = after.astype("datetime64[M]"), after.astype("datetime64[Y]")
    months = (month.astype("datetime64[D]") == first) & (month_after == after)
    years = (year.astype("datetime64[D]") == first) & (year_after == after)
    one_month = months & (month_after - month == np.timedelta64(1, "M"))
    one_year = years & (year_after - year == np.timedelta64(1, "Y"))
    rules = [first == last, one_month, one_year, years]
    texts = [first.astype(str), month.astype(str), year.astype(str)]
    spans = _between(year, year_after - np.timedelta64(1, "Y"), "-")
    return np.asarray(np.select(rules, [*texts, spans], _between(first, last, "/")), dtype=np.str_)


# Because most forms ask the date of birth, age harmonises to whatever coding the target uses
# (Elliot, Mackey & Purdam 2011, "The Key Variable Mapping System"). Ages are in whole years.
def last_birthdays(ages: Floats, as_of: datetime.date) -> Floats:
    """Return the first day of birth that is too late to be of each age on a day.

    Born before it: of that age or older. Someone born on 29 February has the birthday on
    1 March in other years.
    """
    finite = np.isfinite(ages)
    years = as_of.year - np.where(finite, ages, 0).astype(np.int64)
    months = ((years - 1970) * 12 + as_of.month - 1).astype("datetime64[M]")
    day = months.astype("datetime64[D]").astype(np.int64) + as_of.day
    # The day after 29 February is 1 March also where the year has no such day.
    end = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64)
    days = (np.minimum(day, end) + FIRST_DAY).astype(np.float64)
    return np.where(finite, days, -ages)


def birth_edges(ages: Floats, as_of: datetime.date) -> Floats | None:
    """Return the edges of the days of birth of people in each interval of age, rising.

    The last interval of age comes first. `None` if an edge is not a whole number of years,
    for then a day of birth does not tell on which side a person falls.
    """
    finite = ages[np.isfinite(ages)]
    if (finite != np.floor(finite)).any():
        return None
    return last_birthdays(ages, as_of)[::-1]
