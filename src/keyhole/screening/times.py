"""Dates finer than the year, and ages over 89.

Safe Harbor takes out all elements of dates but the year where they relate to a person, and
lets ages over 89, and years that tell of them, stand only as one category of 90 or older
(45 CFR 164.514(b)(2)(i)(C)).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from keyhole.data.columns import Variable
from keyhole.screening.identifiers import words

__all__ = ["OLDEST", "Moment", "find_age", "find_date"]

OLDEST = 89
_LONGEST_LIFE = 130
_MOST_VALUES = 0.8
_FIRST, _LAST = 1850, 2100

_FULL = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})(?: .*)?|"
    r"(?i:\d{1,2}[- ]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-, ]*\d{2,4})|"
    r"(?i:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2},? \d{4})"
)
_MONTH = re.compile(
    r"\d{4}[-/.](?:0?[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])/\d{4}|"
    r"(?i:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ]\d{4})"
)
_COMPACT = re.compile(r"(?:18[5-9]|19\d|20\d)\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_SAYS_DATE = re.compile(r"\b(date|dob|dod|dt|bday|birth ?day|birth ?date|timestamp)\b")
_ELEMENT = re.compile(
    r"\b(month|mon|mo|mth|day|dow|week ?day|week|quarter|qtr)$|\b(month|day) of\b"
)
_NO_ELEMENT = re.compile(
    r"\b(number|per|last|past|next|every|each|since|length|duration|in the|income|days|months|"
    r"any|amount|pay|use[sd]?|care|times|day ?care|same|how|worked|working)\b"
)
_PERSONAL = re.compile(
    r"\b(birth|born|dob|death|died|dod|deceased|admi\w+|discharge\w*|visit|service|enrol\w*|"
    r"diagnos\w*|surg\w*|treat\w*|entry|separation|marriage|hire|injury|onset|exam\w*|test)\b"
)
_AGE = re.compile(r"\bage(p|s|yrs?|years?)?\b|\bageyrs?\b|\byears old\b|\bhow old\b")
_NO_AGE = re.compile(r"\b(house|home|building|vehicle|car|equipment|group code|flag|adjusted)\b")
_BORN = re.compile(
    r"\b(birth ?ye?a?r|ye?a?r (of )?birth|yob|byear|birthyr|born|birth ?date|date of birth|dob)\b"
)
_OLDER = re.compile(r"(?i)\+|\bor (older|over|more|above)|\band (over|older|above|up)|≥|>")


@dataclass(frozen=True, slots=True)
class Moment:
    """What a column tells of days or ages, how sure that is, why, and for how many records."""

    what: str
    confidence: float
    reason: str
    records: int | None = None


def _said(variable: Variable) -> str:
    return f"{' '.join(words(variable.name))} | {' '.join(words(variable.label))}"


def find_date(variable: Variable, column: pl.Series, values: pl.Series) -> Moment | None:
    """Tell whether a column tells dates more finely than by the year.

    A constant date is that of the file, not of a person.

    Examples
    --------
    >>> days = pl.Series(["03/14/1952", "11/02/1948"])
    >>> find_date(Variable("dob", "category"), days, days).what
    'dates to the day'
    """
    if column.drop_nulls().n_unique() < 2:
        return None
    if column.dtype.is_temporal():
        found = _typed(column)
    else:
        found = _written(values, _said(variable)) or _element(variable, column, values)
    if found is None:
        return None
    what, confidence, reason = found
    personal = _PERSONAL.search(_said(variable)) is not None
    return Moment(what, min(0.98, confidence + (0.1 if personal else 0.0)), reason)


def _typed(column: pl.Series) -> tuple[str, float, str] | None:
    if column.dtype not in (pl.Date, pl.Datetime):
        return None
    days = column.drop_nulls()
    if bool(((days.dt.month() == 1) & (days.dt.day() == 1)).all()):
        return None  # years that are kept as dates
    if bool((days.dt.day() == 1).all()):
        return "dates to the month", 0.85, "it holds dates, all of the first of a month"
    return "dates to the day", 0.88, "it holds dates"


def _written(values: pl.Series, said: str) -> tuple[str, float, str] | None:
    texts = values.to_list()

    def share(pattern: re.Pattern[str]) -> float:
        return sum(pattern.fullmatch(one) is not None for one in texts) / max(1, len(texts))

    for what, pattern in (("dates to the day", _FULL), ("dates to the month", _MONTH)):
        if share(pattern) >= _MOST_VALUES:
            return what, 0.88, "its values are written like dates"
    if share(_COMPACT) >= 0.95 and len(texts) >= 2:
        return "dates to the day", 0.85, "its values are eight digits of year, month and day"
    numbers = [float(one) for one in texts if re.fullmatch(r"-?\d+(?:\.\d+)?", one)]
    years = sum(_FIRST <= one <= _LAST for one in numbers)
    counted = len(numbers) == len(texts) > years and max(numbers, default=0) > _LAST
    if _SAYS_DATE.search(said) and counted:
        return "dates, as numbers", 0.6, "its name or label says so; its values are no years"
    return None


def _element(
    variable: Variable, column: pl.Series, values: pl.Series
) -> tuple[str, float, str] | None:
    """Know months, days and quarters by a name that ends so and by few values."""
    name, label = " ".join(words(variable.name)), " ".join(words(variable.label))
    said = (text for text in (name, label) if not _NO_ELEMENT.search(text))
    hit = next((found for text in said if (found := _ELEMENT.search(text))), None)
    if hit is None or len(values) > 54 or column.dtype.is_float() or column.dtype == pl.Boolean:
        return None
    numbers = [int(one) for one in values.to_list() if one.isdigit()]
    if numbers and not (min(numbers) >= 0 and max(numbers) <= 54 and len(numbers) > 2):
        return None
    return "an element of a date", 0.65, f"its name or label has {hit.group()!r}"


def find_age(
    variable: Variable, column: pl.Series, values: pl.Series, *, year: int
) -> Moment | None:
    """Tell whether ages over 89, or years of birth that tell of them, are kept apart.

    One category of 90 or older is as Safe Harbor wants it.

    Examples
    --------
    >>> ages = pl.Series([34, 90, 97])
    >>> find_age(Variable("AGEP", "measure"), ages, ages.cast(pl.String), year=2024).records
    2
    """
    said = _said(variable)
    if _AGE.search(said) and not _NO_AGE.search(said):
        return (
            _old_numbers(column)
            if column.dtype.is_numeric() and not variable.value_labels
            else _old_bands(variable, column, values)
        )
    if _BORN.search(said):
        return _born_long_ago(column, year)
    return None


def _old_numbers(column: pl.Series) -> Moment | None:
    ages = column.drop_nulls().cast(pl.Float64)
    old = ages.filter((ages > OLDEST) & (ages <= _LONGEST_LIFE))
    if old.is_empty() or old.unique().to_list() == [OLDEST + 1]:
        return None
    return Moment("ages over 89", 0.9, "it is an age with values over 89", len(old))


def _old_bands(variable: Variable, column: pl.Series, values: pl.Series) -> Moment | None:
    """Find more than one band of ages that reaches beyond 89."""
    labels = {str(value): text for value, text in variable.value_labels.items()}
    old = [one for one in values.to_list() if _reaches(labels.get(one, one)) > OLDEST]
    if len(old) < 2:
        return None
    records = int(column.cast(pl.String).is_in(old).sum())
    return Moment("ages over 89", 0.8, "more than one of its bands goes beyond 89", records)


def _reaches(band: str) -> float:
    ends = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", band)]
    if not ends or max(ends) > _LONGEST_LIFE:
        return 0
    return _LONGEST_LIFE if _OLDER.search(band) else max(ends)


def _born_long_ago(column: pl.Series, year: int) -> Moment | None:
    years = _years(column)
    if years is None:
        return None
    old = int(((years >= _FIRST) & (years < year - OLDEST)).sum())
    if not old:
        return None
    reason = f"years of birth before {year - OLDEST} tell of ages over 89 in {year}"
    return Moment("years of birth that tell of ages over 89", 0.8, reason, old)


def _years(column: pl.Series) -> Any:
    filled = column.drop_nulls()
    if filled.dtype in (pl.Date, pl.Datetime):
        return filled.dt.year()
    if filled.dtype.is_numeric():
        numbers = filled.cast(pl.Float64)
        return pl.select(
            pl.when(numbers > 10_000_000).then(numbers // 10_000).otherwise(numbers)
        ).to_series()
    if filled.dtype == pl.String:
        return filled.str.extract(r"((?:18|19|20)\d{2})").cast(pl.Int32, strict=False).drop_nulls()
    return None
