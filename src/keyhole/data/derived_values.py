"""Values of derived columns: what each function of an expression makes of distinct values.

Numbers are compared as they are written: whole numbers exactly, decimals by their shortest form,
so that 0.3 is the first number of the band from 0.3 of width 0.1. Bands and classes hold their
lower bound and not their upper one.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.expressions import CENSUS, LOW_POPULATION
from keyhole.core.names import plural, quoted, shown
from keyhole.data.columns import Variable
from keyhole.data.microdata import type_in_words
from keyhole.data.missing import text_forms
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Ints

OTHER = "other"
SMALL_AREA = "000"
HIPAA_PEOPLE = 20_000
"""Areas with no more people than this are not named under HIPAA, 45 CFR 164.514(b)(2)(i)(B)."""
# Quotients this near a whole number are settled exactly.
NEAR = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """Values of an expression, one for each combination of values of its columns.

    `counts` are the records that have each; `top` and `bottom` the limits of coded numbers.
    """

    values: pl.Series
    variable: Variable
    counts: Ints
    written: str = ""
    top: Any = None
    bottom: Any = None

    @property
    def called(self) -> str:
        """What a message calls the values."""
        return self.written if "(" in self.written else f"column {shown(self.variable.name)}"

    def become(self, values: pl.Series, **known: Any) -> Derived:
        """Return other values: categories in an order, if nothing else is said."""
        known = {"kind": "category", "measurement": "ordinal", **known}
        return Derived(values, Variable("", **known), self.counts)

    def labelled(self, groups: Iterable[int | None], labels: Mapping[int, str]) -> Derived:
        """Return categories by the numbers of their groups, in the order of these."""
        found = list(groups)
        used = sorted({group for group in found if group is not None})
        # Groups of one label are one category.
        kinds = pl.Enum(list(dict.fromkeys(labels[group] for group in used)))
        texts = [None if group is None else labels[group] for group in found]
        return self.become(pl.Series(texts, dtype=kinds))

    def texts(self) -> list[str | None]:
        """Return the values as text, missing ones None; whole numbers have no point."""
        if self.values.dtype.is_float():
            held = (x if x is None or math.isinf(x) else Fraction(repr(x)) for x in self.values)
            return [_plain(x) if isinstance(x, Fraction) else x and repr(x) for x in held]
        values = self.values.bin.encode("hex") if self.values.dtype == pl.Binary else self.values
        return [None if x is None else str(x) for x in values.to_list()]

    def require(self, what: str, fits: bool, remedy: str) -> None:
        """Say so where the values are not what a function needs."""
        if not fits:
            held = type_in_words(self.values.dtype)
            raise ColumnError(f"{what}. {_capital(self.called)} holds {held}: {remedy}.")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:] if text.startswith("column") else text


def _is_date(dtype: pl.DataType) -> bool:
    return dtype in (pl.Date, pl.Datetime)


def _require_numbers(given: Derived, function: str, instead: str) -> list[Any]:
    """Return numbers as Python's own; decimals as they are written."""
    dtype = given.values.dtype
    remedy = (
        f"write {instead}"
        if _is_date(dtype)
        else "declare its missing codes, or make categories with map(...)"
    )
    given.require(f"{function} needs numbers", dtype.is_numeric(), remedy)
    infinite = dtype.is_float() and int(given.values.is_infinite().sum())
    if infinite:
        raise ColumnError(
            f"{function} needs finite numbers. {_capital(given.called)} holds infinite ones: "
            f"correct them, or declare them as missing codes."
        )
    return given.values.to_list()


def band(given: Derived, width: float, origin: float = 0) -> Derived:
    """Cut numbers into bands of equal width."""
    instead = f"band(year({given.written}), {_plain(_exact(width))})"
    numbers = _require_numbers(given, "band", instead)
    step, start = _exact(width), _exact(origin)
    whole = given.values.dtype.is_integer() and step.denominator == start.denominator == 1
    groups = _floors(numbers, step, start, whole)
    used = {group for group in groups if group is not None}
    ends = {g: (start + g * step, start + (g + 1) * step) for g in used}
    labels = {g: _span(low, high, whole) for g, (low, high) in ends.items()}
    for limit, is_top in ((given.top, True), (given.bottom, False)):
        last = None if limit is None else (_exact(limit) - start) // step
        if last in used:
            low, high = ends[int(last)]
            labels[int(last)] = f"{_plain(low)} or more" if is_top else f"under {_plain(high)}"
    return given.labelled(groups, labels)


def _floors(numbers: list[Any], step: Fraction, start: Fraction, whole: bool) -> list[int | None]:
    """Return the number of the band of each: the whole part of a quotient, exactly."""
    if whole:
        width, first = int(step), int(start)
        return [None if x is None else (x - first) // width for x in numbers]
    known = np.array([0 if x is None else x for x in numbers], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        quotients = (known - float(start)) / float(step)
        size = np.abs(quotients)
        near = ~(np.abs(quotients - np.rint(quotients)) > NEAR * np.maximum(size, 1))
    rows = zip(numbers, quotients.tolist(), (near | (size > 1e12)).tolist(), strict=True)
    return [
        None if x is None else int((_exact(x) - start) // step) if exact else math.floor(quotient)
        for x, quotient, exact in rows
    ]


def _exact(number: Any) -> Fraction:
    """Return a number as it is written."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _plain(number: Fraction) -> str:
    """Write a number without an exponent."""
    if number.denominator == 1:
        return str(number.numerator)
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(number * 10**places))).rjust(places + 1, "0")
    return f"{'-' * (number < 0)}{digits[:-places]}.{digits[-places:]}"


def _span(low: Fraction, high: Fraction, whole: bool) -> str:
    if not whole:
        return f"{_plain(low)} to under {_plain(high)}"
    if high - low == 1:
        return _plain(low)
    return f"{_plain(low)}{'-' if low >= 0 else ' to '}{_plain(high - 1)}"


def cut(given: Derived, *points: Any) -> Derived:
    """Cut numbers or dates into classes between points; the first and the last are open."""
    if isinstance(points[0], date):
        fits = _is_date(given.values.dtype)
        given.require("cut at dates needs dates", fits, "give numbers as cut points")
        days = [one.isoformat() for one in points]
        before = [(one - timedelta(days=1)).isoformat() if one > date.min else "" for one in points]
        labels = {0: f"before {days[0]}", len(days): f"{days[-1]} or later"}
        labels |= {i + 1: f"{days[i]} to {before[i + 1]}" for i in range(len(days) - 1)}
        return given.labelled(_places(given.values.cast(pl.Date).to_list(), points), labels)
    instead = f"cut(year({given.written}), ...), or dates as cut points"
    numbers = _require_numbers(given, "cut", instead)
    limits = list(map(_exact, points))
    whole = given.values.dtype.is_integer() and all(one.denominator == 1 for one in limits)
    labels = {0: f"under {_plain(limits[0])}", len(limits): f"{_plain(limits[-1])} or more"}
    labels |= {i + 1: _span(limits[i], limits[i + 1], whole) for i in range(len(limits) - 1)}
    return given.labelled(_places(numbers, points), labels)


def _places(values: list[Any], points: tuple[Any, ...]) -> list[int | None]:
    """Return how many of the points, which rise, each value reaches."""
    return [None if x is None else bisect_right(points, x) for x in values]


def _coded(function: str, given: Derived, limit: float) -> Derived:
    """Put the highest (`top`) or the lowest numbers at a limit."""
    is_top = function == "top"
    numbers = _require_numbers(given, function, f"{function}(year({given.written}), ...)")
    is_whole = given.values.dtype.is_integer()
    if is_whole and _exact(limit).denominator != 1:
        raise ColumnError(
            f"{function} needs a whole number as its limit, since {given.called} holds whole "
            f"numbers. Got {limit} instead."
        )
    put = int(limit) if is_whole else float(limit)
    pick: Callable[[Any, Any], Any] = min if is_top else max
    numbers = [float(x) if isinstance(x, Decimal) else x for x in numbers]
    found = [None if x is None else pick(x, put) for x in numbers]
    is_wide = is_whole and any(x is not None and abs(x) >= 1 << 63 for x in found)
    dtype = pl.Int128() if is_wide else pl.Int64() if is_whole else pl.Float64()
    words = f"{_plain(_exact(limit))} or {'more' if is_top else 'less'}"
    hit = any(x == put for x in found)
    labels = {**given.variable.value_labels, **({put: words} if hit else {})}
    variable = Variable("", given.variable.kind, value_labels=labels, measurement="ordinal")
    new = dataclasses.replace(given, values=pl.Series(found, dtype=dtype), variable=variable)
    return dataclasses.replace(new, top=put) if is_top else dataclasses.replace(new, bottom=put)


_DATE_PARTS: Mapping[str, Callable[[Any], pl.Series]] = {
    "year": lambda dates: dates.year().cast(pl.Int64),
    "quarter": lambda dates: dates.to_string("%Y-Q") + dates.quarter().cast(pl.String),
    "month": lambda dates: dates.to_string("%Y-%m"),
}


def _date_part(function: str, given: Derived) -> Derived:
    """Take the year of a date, or its quarter or month with its year."""
    remedy = "write its dates as 2020-01-31 in the file"
    given.require(f"{function} needs dates", _is_date(given.values.dtype), remedy)
    return given.become(_DATE_PARTS[function](given.values.dt))


def prefix(
    given: Derived,
    length: int,
    *,
    populations: str = "",
    above: int = HIPAA_PEOPLE,
    other: str | None = None,
) -> Derived:
    """Take the first characters of a text; small areas have none of their own."""
    dtype = given.values.dtype
    name = given.written
    remedy = (
        f"write prefix(text({name}, 5), {length}) for numbers of 5 digits"
        if dtype.is_integer()
        else f"write year({name}) or month({name})"
        if dtype.is_temporal()
        else "make categories with map(...) or band(...)"
    )
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    given.require("prefix needs text", is_text, remedy)
    found = given.values.cast(pl.String).str.slice(0, length)
    if not populations:
        return given.become(found, measurement="nominal")
    seen = found.to_list()
    if populations == CENSUS:
        small = [SMALL_AREA if x in LOW_POPULATION else x for x in seen]
        return given.become(pl.Series(small, dtype=pl.String), measurement="nominal")
    people = read_populations(populations, length)
    _require_known(given, seen, people, other, populations)
    kept = [
        x if x is None or people.get(x, -1) > above else SMALL_AREA if x in people else other
        for x in seen
    ]
    return given.become(pl.Series(kept, dtype=pl.String), measurement="nominal")


def text(given: Derived, digits: int) -> Derived:
    """Write whole numbers with leading zeros."""
    dtype = given.values.dtype
    fits = dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)
    given.require("text needs whole numbers", fits, "use band(...) or month(...)")
    found = given.values.cast(pl.String).str.zfill(digits)
    return given.become(found, measurement="nominal")


def labels(given: Derived) -> Derived:
    """Take the labels of values; a value without one stands for itself."""
    known = given.variable.value_labels
    if not known:
        raise ColumnError(
            f"labels needs a column with value labels, as SPSS and Stata files have them. "
            f"{_capital(given.called)} has none: give a coding with map(...)."
        )
    by_text = {form: words for value, words in known.items() for form in text_forms([value])}
    order = {words: place for place, words in enumerate(dict.fromkeys(known.values()))}
    texts = [None if x is None else by_text.get(x, x) for x in given.texts()]
    groups = [None if one is None else order.setdefault(one, len(order)) for one in texts]
    return given.labelled(groups, {place: words for words, place in order.items()})


def map_(
    given: Derived, coding: str | Mapping[str, str], *, to: str | None = None, other: Any = None
) -> Derived:
    """Give each value the category that a coding has for it, in the order of the coding."""
    where = "the coding" if isinstance(coding, Mapping) else coding
    pairs = coding if isinstance(coding, Mapping) else read_coding(coding, to)
    by_text = {form: new for old, new in pairs.items() for form in text_forms([old])}
    seen = given.texts()
    _require_known(given, seen, by_text, other, where)
    order = {new: place for place, new in enumerate(dict.fromkeys(pairs.values()))}
    if other is not None:
        order.setdefault(other, len(order))
    groups = [None if x is None else order[by_text.get(x, other)] for x in seen]
    return given.labelled(groups, {place: words for words, place in order.items()})


def _require_known(
    given: Derived, seen: list[Any], known: Mapping[str, Any], other: str | None, where: str
) -> None:
    strange = [
        n for x, n in zip(seen, given.counts, strict=True) if x is not None and x not in known
    ]
    if strange and other is None:
        total = int(given.counts.sum())
        raise ColumnError(
            f"{given.called} has values in {int(sum(strange)):,} of {plural(total, 'record')} that "
            f'are not in {where}. Add them, or give other="..." for them.'
        )


def pool(given: Derived, least: int, *, other: str = OTHER) -> Derived:
    """Pool the categories that few records have."""
    texts = given.texts()
    order = given.values.rank("dense").to_list()
    held: Counter[int] = Counter()
    for place, count in zip(order, given.counts.tolist(), strict=True):
        held.update({} if place is None else {place: count})
    last = len(held) + 1
    words = {p: str(word) for p, word in zip(order, texts, strict=True) if p is not None}
    kept = {place: word for place, word in words.items() if held[place] >= least}
    rest = next((place for place, word in kept.items() if word == other), last)
    groups = [None if p is None else p if p in kept else rest for p in order]
    return given.labelled(groups, {last: other, **kept})


def joined_values(*parts: Derived) -> Derived:
    """Take several columns as one category; it is missing where any of them is."""
    ranks = [part.values.rank("dense").to_list() for part in parts]
    rows = [None if None in row else row for row in zip(*ranks, strict=True)]
    texts = zip(*(part.texts() for part in parts), strict=True)
    known = {row: text for row, text in zip(rows, texts, strict=True) if row is not None}
    order = {row: place for place, row in enumerate(sorted(known))}
    words: dict[int, str] = {}
    taken: Counter[str] = Counter()
    for row, place in order.items():
        label = ", ".join(map(str, known[row]))
        taken[label] += 1
        words[place] = label if taken[label] == 1 else f"{label} ({taken[label]})"
    return parts[0].labelled([None if row is None else order[row] for row in rows], words)


def read_coding(path: str, to: str | None) -> dict[str, str]:
    """Read a coding: the values in the first column, the categories in another."""
    table = _read_table(path)
    names = table.columns
    if to is None and len(names) > 2:
        raise ColumnError(
            f'{path} has {len(names)} columns. Say which has the categories, as in to="{names[1]}".'
        )
    if (to is not None and to not in names[1:]) or len(names) < 2:
        raise ColumnError(
            f"{path} must have the values in its first column and the categories in another"
            + (f". {to!r} is none of the others: {quoted(names[1:])}." if to else ".")
        )
    found: dict[str, str] = {}
    for old, new in zip(table[names[0]], table[to or names[1]], strict=True):
        if old is None or new is None:
            raise ColumnError(f"{path} has empty cells. Give every value a category.")
        if found.setdefault(old, new) != new:
            raise ColumnError(f"{path} has a value twice, with different categories.")
    return found


def read_populations(path: str, length: int) -> dict[str, float]:
    """Read the people of areas: codes in the first column, people in the second."""
    table = _read_table(path)
    if len(table.columns) < 2:
        raise ColumnError(f"{path} must have areas in its first column and people in its second.")
    codes, people = table.to_series(0), table.to_series(1).cast(pl.Float64, strict=False)
    if codes.null_count() or people.null_count() or bool((people < 0).any()):
        raise ColumnError(f"{path} must have an area and its number of people in every row.")
    longest = max([length, *map(len, codes.to_list())])
    found: dict[str, float] = {}
    for code, count in zip(codes.to_list(), people.to_list(), strict=True):
        # A spreadsheet takes leading zeros away.
        area = (code.zfill(longest) if code.isdigit() else code)[:length]
        found[area] = found.get(area, 0) + count
    return found


def _read_table(path: str) -> pl.DataFrame:
    """Read a small table, all its cells as text."""
    from keyhole.data.reading import load

    table, nobody = load(path), np.zeros(0, np.int64)
    if not table.records:
        raise ColumnError(f"{path} has no rows.")
    texts = {v.name: Derived(table.frame[v.name], v, nobody).texts() for v in table.variables}
    cells = {name: [x or None for x in column] for name, column in texts.items()}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


EVALUATORS: Mapping[str, Callable[..., Derived]] = {
    **{function.__name__: function for function in (band, cut, prefix, text, labels, pool)},
    **{name: partial(_coded, name) for name in ("top", "bottom")},
    **{name: partial(_date_part, name) for name in _DATE_PARTS},
    "map": map_,
    "join": joined_values,
}
