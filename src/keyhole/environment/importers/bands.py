"""Intervals of answers: bands in words ("18-24", "65 and over"), numbers and dates as asked.

All value categories of a coding must be bands that tile: no gap, no overlap. Else the coding
stays a list of categories.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from keyhole.environment.model import Intervals, Unit

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RANGE = f"{_NUMBER} ?(?:-|to|through|thru|until) ?{_NUMBER}|between {_NUMBER} and {_NUMBER}"
_SHORT = f"{_NUMBER} ?(?:-|to|but|and)? ?(?:under|less than|below|before|<) ?{_NUMBER}"
_UNDER = (
    f"(?:under|less than|fewer than|lower than|below|before|prior to|younger than|<) ?{_NUMBER}"
)
_MOST = (
    rf"(?:up to|at most|no more than|<=|≤) ?{_NUMBER}|"
    rf"{_NUMBER} ?(?:or|and) (?:less|under|fewer|below|lower|younger|earlier|before)"
)
_LEAST = (
    rf"{_NUMBER} ?\+|(?:at least|from|since|>=|≥) ?{_NUMBER}|"
    rf"{_NUMBER} ?(?:or|and) (?:over|older|above|more|up|upwards?|higher|greater|later|after)"
)
_OVER = rf"(?:over|more than|above|older than|greater than|after|>) ?{_NUMBER}"
_DECADE = r"((?:18|19|20)\d0)'?s"
_NOTHING = r"none|zero|nothing|no income"
_FIRST_YEAR, _LAST_YEAR = 1850, 2100
_MONEY = re.compile(
    r"[$£€¥]|\b(income|earnings|salary|wage|dollars?|pay|amount|value|cost)\b", re.I
)
_NOISE = re.compile(
    r"[$£€¥%]|\b(years?|yrs?|old|of age|aged?|ages|persons?|people|children|child|hours?|hrs?|"
    r"dollars?|per year|a year|annually|per week|a week)\b\.?"
)
_CODE = re.compile(r"^\(?\d{1,2}[.)]\s+(?=\S)")
_REMARK = re.compile(r"\s*\([^()]*\)\s*$")
_PLAIN = re.compile(r"(\d{1,15}) ?(?:-|–|to) ?(\d{1,15})")
_OTHER_UNITS = re.compile(r"\b(months?|weeks?|days?)\b")
_LONGEST = 80
# Intervals of one field at most; where there would be more, their step is widened.
MOST_INTERVALS = 100_000
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2050, 1, 1)
_COUNTS = frozenset(
    {"count", "number", "many", "times", "hours", "weeks", "days", "months", "years", "classes"}
)
_NO_YEARS = frozenset({"per", "school", "schooling", "grade", "education", "completed", "old"})
_OLDEST, _MOST_COUNTED = 121, 101


@dataclass(frozen=True, slots=True)
class BandedLabels:
    """Intervals in rising order, and for each label the place of its interval."""

    intervals: Intervals
    positions: tuple[int, ...]


class _Band(NamedTuple):
    """From `low` up to and without `high`; `ends` is the last number named, if it is within."""

    low: float
    high: float
    ends: float | None = None
    ranged: bool = True


def parse_bands(labels: Sequence[str], words: str = "") -> BandedLabels | None:
    """Read labels as bands that tile a line, if they all are.

    Neighbours that name the same bound ("10 to 20", "20 to 30") share it as an edge. The
    highest band may be open; the lowest too, and then begins at 0, or without end where the
    labels or `words` speak of money (there are negative incomes). Bands of years
    ("1990-1999") are dates.
    """
    bands: list[_Band] = []
    for label in labels:
        band = _band(label)
        if band is None:
            return None
        bands.append(band)
    if len(bands) < 2 or not any(band.ranged for band in bands):
        return None
    money = _MONEY.search(f"{words} {' '.join(labels[:3])}") is not None
    order = sorted(range(len(bands)), key=lambda place: (bands[place].low, bands[place].high))
    intervals = _intervals([bands[place] for place in order], money)
    ranks = sorted(range(len(order)), key=order.__getitem__)  # the place of each label
    return None if intervals is None else BandedLabels(intervals, tuple(ranks))


def _band(label: str) -> _Band | None:
    if plain := _PLAIN.fullmatch(label):  # nearly all are, and there may be many
        low, high = float(plain[1]), float(plain[2])
        return _rising(low, high + 1, high)
    text = label.strip().lower()
    if len(text) > _LONGEST or _OTHER_UNITS.search(text):
        return None
    text = _CODE.sub("", _REMARK.sub("", text)).replace("–", "-").replace("—", "-")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(?<=\d)k\b", "000", text)
    text = " ".join(_NOISE.sub(" ", text).replace("( )", "").split())
    return _closed(text) or _open(text)


def _closed(text: str) -> _Band | None:
    if found := re.fullmatch(_SHORT, text):
        return _rising(float(found[1]), float(found[2]))
    if found := re.fullmatch(_RANGE, text):
        first, last = found[1] or found[3], found[2] or found[4]
        return _rising(float(first), float(last) + _step(first, last), float(last))
    if found := re.fullmatch(_DECADE, text):
        return _Band(float(found[1]), float(found[1]) + 10)
    if found := re.fullmatch(_NUMBER, text):
        value = float(found[1])
        return _Band(value, value + _step(found[1]), value, ranged=False)
    return _Band(0.0, 1.0, 0.0, ranged=False) if re.fullmatch(_NOTHING, text) else None


def _open(text: str) -> _Band | None:
    if found := re.fullmatch(_UNDER, text):
        return _Band(-math.inf, float(found[1]))
    if found := re.fullmatch(_OVER, text):
        return _Band(float(found[1]) + _step(found[1]), math.inf)
    if found := re.fullmatch(_MOST, text):
        value = found[1] or found[2]
        return _Band(-math.inf, float(value) + _step(value), float(value))
    if found := re.fullmatch(_LEAST, text):
        return _Band(float(found[1] or found[2] or found[3]), math.inf)
    return None


def _step(*numbers: str) -> float:
    """Return the unit of the last decimal written."""
    decimals = max(len(number.partition(".")[2]) for number in numbers)
    return float(10**-decimals)


def _rising(low: float, high: float, ends: float | None = None) -> _Band | None:
    return _Band(low, high, ends) if low < high else None


def _intervals(bands: Sequence[_Band], money: bool) -> Intervals | None:
    """Return the intervals of sorted bands, where each begins where the one before ends."""
    edges = [bands[0].low]
    for band, following in pairwise(bands):
        meet = math.isclose(band.high, following.low) or band.ends == following.low
        if not meet or following.low <= edges[-1]:
            return None
        edges.append(following.low)
    edges.append(bands[-1].high)
    if edges[0] == -math.inf and edges[1] > 0 and not money:
        edges[0] = 0.0
    finite = [edge for edge in edges if math.isfinite(edge) and edge != 0]
    if money or not all(e.is_integer() and _FIRST_YEAR <= e <= _LAST_YEAR for e in finite):
        return Intervals("number", tuple(edges))
    days = [float(datetime.date(int(e), 1, 1).toordinal()) if e in finite else e for e in edges]
    return Intervals("date", (-math.inf if edges[0] == 0 else days[0], *days[1:]))


def dates(
    unit: Unit = "day", first: datetime.date | None = None, last: datetime.date | None = None
) -> Intervals:
    """Return dates by day, month or year, from `first` up to and without `last`."""
    start, stop = (first or FIRST).toordinal(), (last or LAST).toordinal()
    if stop <= start:
        start, stop = FIRST.toordinal(), LAST.toordinal()
    return Intervals("date", start=start, stop=stop, step=1, unit=unit)


def number_intervals(
    low: float, high: float, step: float = 1, most: int = MOST_INTERVALS
) -> Intervals | None:
    """Return numbers from `low` to `high` (both within) by `step`, widened where too fine."""
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(step)):
        return None
    if high < low or not 1e-9 <= step <= 1e15 or max(abs(low), abs(high)) > 1e15:
        return None
    while (count := math.floor((high - low) / step + 1e-9) + 1) > most:
        step *= 10
    return Intervals("number", start=low, stop=tidy(low + count * step), step=tidy(step))


def unit_factor(text: str) -> float:
    """Return what turns a number into years of age, or money a year, by how it is asked."""
    told = set(text.lower().replace("(", " ").replace(")", " ").split())
    if "age" in told and not told & _UNITS["year"]:
        return next((f for unit, f in _OF_A_YEAR.items() if told & _UNITS[unit]), 1.0)
    if not _INCOME & told or told & _UNITS["year"] or re.search(r"\b(past|last) \d+\b", text):
        return 1.0
    return next((1 / f for unit, f in _OF_A_YEAR.items() if told & _UNITS[unit]), 1.0)


_OF_A_YEAR = {"month": 1 / 12, "week": 1 / 52}
_UNITS = {
    "year": frozenset({"year", "years", "annual", "yearly", "annually"}),
    "month": frozenset({"month", "months", "monthly"}),
    "week": frozenset({"week", "weeks", "weekly"}),
}
_INCOME = frozenset({"income", "earnings", "salary", "wage", "wages", "pay"})


def usual_numbers(asked: tuple[str, ...]) -> Intervals:
    """Return the numbers to be expected where a form sets no bounds, by what it asks."""
    if "age" in asked:
        months = unit_factor(" ".join(asked)) < 1
        return Intervals("number", start=0, stop=_OLDEST * (12 if months else 1), step=1)
    if _MONEY.search(" ".join(asked)):  # before counts: "income in the past 12 months" is money
        return Intervals("number")
    if "year" in asked and not _NO_YEARS & set(asked):
        return dates("year")
    if _COUNTS & set(asked):
        return Intervals("number", start=0, stop=_MOST_COUNTED, step=1)
    return Intervals("number")


def bounded_numbers(
    asked: tuple[str, ...],
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
) -> Intervals:
    """Return the numbers from `low` to `high`, both within; the usual ones where a bound lacks.

    Bounds that are both years, or one where the question speaks of years, are of dates.
    """
    usual = usual_numbers(asked)
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds or (usual.exact and len(bounds) < 2):
        return usual
    if all(1800 <= b <= 2200 for b in bounds) and (len(bounds) == 2 or "year" in asked):
        ends = low, None if high is None else high + 1
        return dates("year", *(None if e is None else datetime.date(int(e), 1, 1) for e in ends))
    low = min(0 if usual.scale == "date" else usual.start, high or 0) if low is None else low
    high = max(usual.stop - 1, low) if high is None else high
    if math.isfinite(high) and (high - low) / (step or 1) >= MOST_INTERVALS:
        return Intervals("number")  # as exact as it is written
    return number_intervals(low, high, step or 1) or usual


def tidy(value: float, digits: int = 12) -> float:
    """Return a whole number as one, and others without the dust of their last digits."""
    return int(value) if float(value).is_integer() else round(value, digits)


def parse_day(text: str) -> datetime.date | None:
    """Read a day at the beginning of a text, if one is there."""
    found = re.match(r"\d{4}-\d{2}-\d{2}", text)
    try:
        return datetime.date.fromisoformat(found.group()) if found else None
    except ValueError:
        return None


def parse_number(text: str) -> float | None:
    """Read a number, if it is one of a size that can be kept."""
    try:
        return tidy(float(text)) if abs(float(text)) <= 1e15 else None
    except ValueError:
        return None
