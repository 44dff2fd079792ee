"""Codes of intervals, which are their labels too: "20-29", "65+", "1980-05", "1980-1989"."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from keyhole.environment.codings.intervals import days_of, edges_of
from keyhole.environment.model import Intervals
from keyhole.kernels.arrays import Floats

Texts = npt.NDArray[np.str_]


@lru_cache(maxsize=1024)
def interval_codes(intervals: Intervals) -> tuple[str, ...]:
    """Return the code of each interval.

    Examples
    --------
    >>> interval_codes(Intervals("number", edges=(0, 1, 20, 65, float("inf"))))
    ('0', '1-19', '20-64', '65+')
    >>> interval_codes(Intervals("number", edges=(0, 0.5, 1)))
    ('[0,0.5)', '[0.5,1)')
    """
    edges = edges_of(intervals)
    return label_edges(edges[:-1], edges[1:], intervals.scale)


def label_edges(low: Floats, high: Floats, scale: str) -> tuple[str, ...]:
    """Write the interval from each low edge to each high one."""
    write = _date_labels if scale == "date" else _number_labels
    finite = np.isfinite(low) & np.isfinite(high)
    texts: npt.NDArray[np.object_] = np.full(len(low), "any", dtype=object)
    texts[finite] = write(low[finite], high[finite])
    for i in np.flatnonzero(~finite).tolist():  # the first and the last at most
        texts[i] = _open_label(float(low[i]), float(high[i]), scale)
    return tuple(texts.tolist())


def _open_label(low: float, high: float, scale: str) -> str:
    if np.isfinite(high):
        return f"before {_day(high)}" if scale == "date" else f"under {high:g}"
    if np.isfinite(low):
        return f"from {_day(low)}" if scale == "date" else f"{low:.15g}+"
    return "any"


def _day(ordinal: float) -> str:
    return str(days_of(np.array([ordinal]))[0])


def _number_labels(low: Floats, high: Floats) -> npt.NDArray[np.object_]:
    """Write whole numbers from and to, as 20-29; others with both edges, as [0.5,1)."""
    whole = (low == np.floor(low)) & (high == np.floor(high)) & (low >= 0) & (high < 2**53)
    out = np.empty(len(low), dtype=object)
    first, last = low[whole].astype(np.int64), high[whole].astype(np.int64) - 1
    out[whole] = np.where(first == last, first.astype(str), _between(first, last, "-"))
    out[~whole] = [f"[{a:.15g},{b:.15g})" for a, b in zip(low[~whole], high[~whole], strict=True)]
    return out


def _between(first: npt.NDArray[np.generic], last: npt.NDArray[np.generic], mark: str) -> Texts:
    texts = np.char.add(np.char.add(first.astype(str), mark), last.astype(str))
    return np.asarray(texts, dtype=np.str_)


def _date_labels(low: Floats, high: Floats) -> Texts:
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
