"""Codings taken apart: their names, their intervals, and their categories by position.

``ES3.101`` is the first harmonised coding of employment status with three categories, ``ES3.001``
the first captured one (Elliot, Mackey & Purdam 2011, "Data Environment Analysis Methods").

Every interval is half open, [a, b). Dates are day ordinals (`datetime.date.toordinal`).
Everything is done on whole arrays: a date of birth by the day has more than 40,000 intervals.
The intervals of a coding come first, then the categories that it lists.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted, shown
from keyhole.data.columns import LARGEST
from keyhole.environment.model import CategoryKind, Coding, Intervals
from keyhole.errors import InputError
from keyhole.kernels.arrays import Floats, Ints

# A serial has two digits unless it needs more, so that each coding has one spelling; Python reads
# no number of thousands of digits.
PATTERN = re.compile(
    r"([A-Za-z]+)(0|[1-9][0-9]{0,14})\.([01])([0-9]{2}|[1-9][0-9]{2,14})", re.ASCII
)
KINDS: tuple[CategoryKind, ...] = get_args(CategoryKind)
# Not an answer to the question: these match only their own kind, or nothing.
SPECIAL: tuple[CategoryKind, ...] = ("not stated", "not applicable")
Weights = Mapping[str, float] | Sequence[float]


# 1970-01-01, where NumPy's days begin, as a day ordinal.
FIRST_DAY = 719_163
# More intervals than any file has categories: a slip of the pen, and no memory for it.
MOST = 5_000_000
_LETTERS = {None: "D", "day": "D", "month": "M", "year": "Y"}


class CodingName(NamedTuple):
    """The parts of a coding's name."""

    letters: str
    size: int
    harmonised: bool
    serial: int

    def __str__(self) -> str:
        return f"{self.letters}{self.size}.{int(self.harmonised)}{self.serial:02d}"


def is_coding_name(text: str) -> bool:
    """Tell whether a text is a coding's name."""
    return PATTERN.fullmatch(text) is not None


def parse_name(text: str) -> CodingName:
    """Take a coding's name apart."""
    found = PATTERN.fullmatch(text)
    if found is None:
        raise InputError(
            "the name of a coding must be letters, the number of its categories, '.', 0 (captured)"
            f" or 1 (harmonised) and a serial of two digits, as ES3.101. Got {shown(text)} instead."
        )
    return CodingName(found[1], int(found[2]), found[3] == "1", int(found[4]))


def next_name(letters: str, size: int, *, harmonised: bool = False, taken: Iterable[str]) -> str:
    """Name a new coding: the serial after the highest one taken by its like."""
    start = str(CodingName(letters, size, harmonised, 0))[:-2]
    alike = (parse_name(name) for name in taken if name.startswith(start) and is_coding_name(name))
    serial = max((n.serial for n in alike if n[1:3] == (size, harmonised)), default=0) + 1
    made = CodingName(letters, size, harmonised, serial)
    if not is_coding_name(str(made)) or parse_name(str(made)) != made:
        raise InputError(
            f"the letters of a construct must be A to Z. Got {shown(letters)} instead."
        )
    return str(made)


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
        bounds = (np.array([start, stop]).astype(np.int64) - FIRST_DAY).astype("datetime64[D]")
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


def interval_problems(intervals: Intervals) -> list[str]:
    """Say what is wrong with a partition into intervals: the first thing that is."""
    start, stop, step = (float(x) for x in (intervals.start, intervals.stop, intervals.step))
    days, edges = intervals.scale == "date", np.array(intervals.edges or (start, stop), float)
    finite = edges[np.isfinite(edges)]
    are_days = ((finite >= 1) & (finite <= 3_652_059) & (finite == np.floor(finite))).all()
    steep = np.flatnonzero(~(edges[:-1] < edges[1:]))
    if intervals.scale not in ("number", "date"):
        return [f"scale must be 'number' or 'date'. Got {intervals.scale!r} instead."]
    if not (math.isfinite(intervals.factor) and intervals.factor > 0):
        return [f"factor must be above 0. Got {intervals.factor:g} instead."]
    if intervals.edges and len(edges) < 2:
        return ["edges must be two or more. Got one instead."]
    if intervals.edges and np.isnan(edges).any():
        return ["edges must be numbers. Got nan instead."]
    if intervals.edges and steep.size:
        low, high = edges[steep[0]], edges[steep[0] + 1]
        return [f"edges must rise. Got {low:g} followed by {high:g} instead."]
    if not days and (np.abs(finite) > LARGEST).any():
        return [f"edges, start and stop must lie from -{LARGEST:g} to {LARGEST:g}."]
    if not (intervals.edges or intervals.exact):
        if steep.size or not all(map(math.isfinite, (start, stop, step))):
            return [f"start must lie below stop. Got {start:g} and {stop:g} instead."]
        if days and not (0 <= step <= MOST and step == int(step)):
            return [f"step must be whole and not negative. Got {step:g} instead."]
        if not days and step <= 0:
            return [f"step must be above 0. Got {step:g} instead."]
        if not days and (stop - start) / step > MOST:
            return [f"at most {MOST:,} intervals can be made. Got {(stop - start) / step:,.0f}."]
    if days and not are_days:
        return ["edges, start and stop of dates must be day ordinals from 1 to 3,652,059."]
    return []


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
    write = _date_label if scale == "date" else _number_label
    return tuple(map(write, low.tolist(), high.tolist()))


def _number_label(low: float, high: float) -> str:
    """Write whole numbers from and to, as 20-29; others with both edges, as [0.5,1)."""
    if math.isinf(low):
        return "any" if math.isinf(high) else f"under {high:g}"
    if math.isinf(high):
        return f"{low:.15g}+"
    if low >= 0 and high < 2**53 and low.is_integer() and high.is_integer():
        return f"{low:.0f}" if high == low + 1 else f"{low:.0f}-{high - 1:.0f}"
    return f"[{low:.15g},{high:.15g})"


def _date_label(low: float, high: float) -> str:
    """Write days, months and years where an interval is one, else the first and last day."""
    if math.isinf(low):
        return "any" if math.isinf(high) else f"before {_day(high)}"
    if math.isinf(high):
        return f"from {_day(low)}"
    first, last, after = _day(low), _day(high - 1), _day(high)
    if first == last:
        return str(first)
    if first.day == after.day == 1 and (first.year, first.month) == (last.year, last.month):
        return str(first)[:7]
    if first.timetuple().tm_yday == after.timetuple().tm_yday == 1:
        years = str(first)[:4], str(last)[:4]
        return years[0] if years[0] == years[1] else "-".join(years)
    return f"{first}/{last}"


def _day(ordinal: float) -> datetime.date:
    return datetime.date.fromordinal(int(ordinal))


def birth_edges(ages: Floats, as_of: datetime.date) -> Floats | None:
    """Return the edges of the days of birth of people in each interval of age, rising.

    Because most forms ask the date of birth, age harmonises to whatever coding the target uses
    (Elliot, Mackey & Purdam 2011, "The Key Variable Mapping System"). An edge is the first day of
    birth that is too late to be of that age: someone born on 29 February has the birthday on
    1 March in other years. The last interval of age comes first. `None` if an edge is not a whole
    number of years, for then a day of birth does not tell on which side a person falls.
    """
    finite = np.isfinite(ages)
    if (ages[finite] != np.floor(ages[finite])).any():
        return None
    years = as_of.year - np.where(finite, ages, 0).astype(np.int64)
    months = ((years - 1970) * 12 + as_of.month - 1).astype("datetime64[M]")
    day = months.astype("datetime64[D]").astype(np.int64) + as_of.day
    # The day after 29 February is 1 March also where the year has no such day.
    end = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64)
    days = (np.minimum(day, end) + FIRST_DAY).astype(np.float64)
    return np.where(finite, days, -ages)[::-1]


def size_of(coding: Coding) -> int:
    """Count the categories of a coding, its intervals among them."""
    cut = 0 if coding.intervals is None else len(edges_of(coding.intervals)) - 1
    return cut + len(coding.categories)


def codes_of(coding: Coding) -> tuple[str, ...]:
    """Return the code of each category."""
    cut = () if coding.intervals is None else interval_codes(coding.intervals)
    return (*cut, *(category.code for category in coding.categories))


class Node:
    """A coding in the graph, with what is asked of its categories again and again."""

    def __init__(self, coding: Coding) -> None:
        self.coding, self.name, self.construct = coding, coding.name, coding.construct
        self.size = size_of(coding)
        self.intervals = self.size - len(coding.categories)
        self.exact = coding.intervals is not None and coding.intervals.exact
        # An exact number is like free text: what its categories are depends on the other coding.
        self.open = coding.open or self.exact
        intervals = None if self.exact else coding.intervals
        self.scale = None if intervals is None else intervals.scale
        self.special = any(category.kind in SPECIAL for category in coding.categories)

    @property
    def sort(self) -> str:
        """What an open coding is, in words."""
        return "a number without bounds" if self.exact else "free text"

    @property
    def edges(self) -> Floats:
        """The edges of its intervals, in its own unit."""
        assert self.coding.intervals is not None
        return edges_of(self.coding.intervals)

    @cached_property
    def line(self) -> Floats:
        """The edges of its intervals in the unit of the construct."""
        assert self.coding.intervals is not None
        factor = self.coding.intervals.factor
        return self.edges if factor == 1 else np.round(self.edges * factor, 9)

    def tells(self, other: Node) -> bool:
        """Tell whether it is an exact number, and so tells every interval of numbers."""
        return self.exact and other.scale == "number"

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The code of each category."""
        return codes_of(self.coding)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each category."""
        listed = self.coding.categories
        return (*self.codes[: self.intervals], *(one.label or one.code for one in listed))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each code."""
        return {code: i for i, code in enumerate(self.codes)}

    @cached_property
    def kinds(self) -> npt.NDArray[np.int8]:
        """The number in `KINDS` of each category's kind; an interval is a value."""
        kinds = np.zeros(self.size, dtype=np.int8)
        kinds[self.intervals :] = [KINDS.index(c.kind) for c in self.coding.categories]
        return kinds

    @cached_property
    def substantive(self) -> npt.NDArray[np.bool_]:
        """Which categories answer the question."""
        return np.asarray(self.kinds < KINDS.index(SPECIAL[0]))

    def of_kind(self, kind: CategoryKind) -> Ints:
        """Return the positions of the categories of a kind."""
        return np.flatnonzero(self.kinds == KINDS.index(kind))


def category_weights(node: Node, weights: Weights | None) -> Floats | None:
    """Return the weight of each category, given by code or in the order of the categories."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        if unknown := [code for code in weights if code not in node.positions]:
            told = f"weights of {node.name}: {quoted(unknown, 5)} is not among its codes."
            raise InputError(told)
        weights = [weights.get(code, 0) for code in node.codes]
    values = np.asarray(weights, dtype=np.float64)
    fit = values.shape == (node.size,) and np.isfinite(values).all() and (values >= 0).all()
    if not (fit and values.sum() > 0):
        raise InputError(
            f"weights of {node.name} must be one for each of its {node.size:,} categories, finite, "
            f"not negative and not all 0. Got others instead."
        )
    return values
