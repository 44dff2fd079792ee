"""HIPAA Safe Harbor: its eighteen items, and the places, dates and ages that fall under them.

A check of the list 45 CFR 164.514(b)(2)(i), (A) to (R), says what was found in which columns and
what to do about it, that nothing was found, or that a table cannot say. Item (B) allows states,
and the first three digits of a ZIP code where more than 20,000 people live in the ZIP codes that
begin so; the others become 000. Item (C) removes all elements of dates but the year where they
relate to a person, and allows ages over 89, and years that imply them, only as one category of
90 or older.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from keyhole.core.expressions import CENSUS, LOW_POPULATION
from keyhole.core.marks import COUNT
from keyhole.data.columns import Variable
from keyhole.screening.identifiers import words

_READ = tomllib.loads(Path(__file__).with_name("safe_harbor.toml").read_text("utf-8"))
_PLACE_KINDS: tuple[tuple[str, str, float], ...] = tuple(map(tuple, _READ["places"]))
# With these words a place is counted, measured or sorted, or it is no place of a person.
_NO_PLACE = re.compile(
    r"\b(size|type|kind|population|pop|density|rank|distance|miles|flag|indicator|urban|rural|"
    r"status|count|number of|years|months|same|moved|country|state|region|division|nation|surface|"
    r"body|square|(area|district) of (study|interest|expertise|practice|work)|subject|code area|"
    r"hospital ward|skin|burn|phone|tel|tax|capital|live in|lives in|category|recode)\b"
)
_LAST_SPEAKS = re.compile(r"\b(zip|county|city|puma\d*|tract|precinct)\b")
_ZIP = re.compile(r"\d{5}(?:-?\d{4})?")
_FEWEST_CODES = 20
_MOST_ZIP_CODES = 0.9


@dataclass(frozen=True, slots=True)
class Place:
    """What kind of place below the state a column tells, how sure that is, and why."""

    kind: str
    confidence: float
    reason: str


def find_place(variable: Variable, column: pl.Series, values: pl.Series) -> Place | None:
    """Tell whether a column tells places below the state."""
    name, label = " ".join(words(variable.name)), " ".join(words(variable.label))
    found = _place_by_words(name, "name") or _place_by_words(label, "label")
    if found is not None:
        return found if column.drop_nulls().n_unique() > 2 else None
    # Five digits written as text, some with a leading zero: nobody writes amounts so.
    if column.dtype != pl.String or len(values) < _FEWEST_CODES:
        return None
    texts = values.to_list()
    fits = [one for one in texts if _ZIP.fullmatch(one)]
    zeros = sum(one.startswith("0") for one in fits)
    if len(fits) < _MOST_ZIP_CODES * len(texts) or zeros < 0.01 * len(fits):
        return None
    return Place("ZIP or area code", 0.5, "its values have five digits, some a leading zero")


@lru_cache(maxsize=4096)
def _place_by_words(text: str, where: str) -> Place | None:
    if not text:
        return None
    for kind, pattern, confidence in _PLACE_KINDS:
        hit = re.search(pattern, text)
        # A name ends in what it is: state_county is a county, county_pop a number.
        sure = hit is not None and _LAST_SPEAKS.search(hit.group()) and hit.end() == len(text)
        if hit is not None and (sure or not _NO_PLACE.search(text)):
            return Place(kind, confidence, f"its {where} has {hit.group()!r}")
    return None


def zip_digits(column: pl.Series) -> tuple[int, int]:
    """Return how many digits of a ZIP code are told, and the records in small areas."""
    filled = column.drop_nulls()
    if filled.dtype.is_numeric():
        largest = filled.cast(pl.Float64).fill_nan(None).max() or 0  # may be infinite
        assert isinstance(largest, int | float)
        width = 3 if largest < 1000 else 5 if largest < 100_000 else 9
        text = filled.cast(pl.Int64, strict=False).cast(pl.String).str.zfill(width)
    else:
        text = filled.cast(pl.String).str.replace_all(r"\D", "")
    digits = int(text.str.len_chars().max() or 0)  # type: ignore[arg-type]
    small = int(text.str.slice(0, 3).is_in(list(LOW_POPULATION)).sum())
    return digits, small


Status = Literal["found", "not found", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the list, and what is done where it is found."""

    letter: str
    title: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What of an item was found in a column, how sure that is, why, and what to do.

    `records` is the number of records concerned, where that is not all of them. `line` carries the
    remedy out: a derived column to release instead, or a step of a plan.
    """

    column: str
    what: str
    confidence: float
    reason: str
    remedy: str
    records: Annotated[int | None, COUNT] = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One item of Safe Harbor, held against the file."""

    item: str
    title: str
    status: Status
    findings: tuple[Finding, ...] = ()
    note: str = ""


_NAMED = {
    "<areas>": ", ".join(LOW_POPULATION), "<number>": str(len(LOW_POPULATION)), "<census>": CENSUS
}  # fmt: skip


ITEMS = tuple(
    Item(letter, title, re.sub("<.*?>", lambda mark: _NAMED[mark[0]], remedy))
    for letter, (title, remedy) in _READ["items"].items()
)
REMEDIES = {item.letter: item.remedy for item in ITEMS}
REMEDIES["within"] = "Drop the column, or have somebody remove them from the text."
_FREE_TEXT = {"A", "B", "C"}
_PICTURES = {"P", "Q"}


def checklist(
    findings: Iterable[tuple[str, Finding]],
    *,
    texts: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> tuple[Check, ...]:
    """Hold findings against the eighteen items; free `texts` and `unread` bytes may hold more."""
    found, checks = list(findings), []
    for item in ITEMS:
        mine = tuple(finding for letter, finding in found if letter == item.letter)
        notes = []
        if item.letter in _FREE_TEXT and texts:
            notes.append(f"free text may hold some: {', '.join(map(repr, texts))}")
        if item.letter == "Q":
            notes.append("images that come with the file are not checked")
        if item.letter in _PICTURES and unread:
            notes.append(f"cannot be read: {', '.join(map(repr, unread))}")
        status: Status = "found" if mine else "cannot be told" if notes else "not found"
        checks.append(Check(item.letter, item.title, status, mine, "; ".join(notes)))
    return tuple(checks)


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
    """Tell whether a column tells dates more finely than by the year; a constant is no one's."""
    if column.drop_nulls().n_unique() < 2:
        return None
    if column.dtype.is_temporal():
        found = _typed(column)
    else:
        found = _written(values, _said(variable)) or _element(variable, column, values)
    if found is None or not _PERSONAL.search(_said(variable)):
        return found
    return replace(found, confidence=min(0.98, found.confidence + 0.1))


def _typed(column: pl.Series) -> Moment | None:
    if column.dtype not in (pl.Date, pl.Datetime):
        return None
    days = column.drop_nulls()
    if bool(((days.dt.month() == 1) & (days.dt.day() == 1)).all()):
        return None  # years that are kept as dates
    if bool((days.dt.day() == 1).all()):
        return Moment("dates to the month", 0.85, "it holds dates, all of the first of a month")
    return Moment("dates to the day", 0.88, "it holds dates")


def _written(values: pl.Series, said: str) -> Moment | None:
    texts = values.to_list()
    full, month, compact = (
        sum(pattern.fullmatch(one) is not None for one in texts) / max(1, len(texts))
        for pattern in (_FULL, _MONTH, _COMPACT)
    )
    if max(full, month) >= _MOST_VALUES:
        what = "dates to the day" if full >= _MOST_VALUES else "dates to the month"
        return Moment(what, 0.88, "its values are written like dates")
    if compact >= 0.95 and len(texts) >= 2:
        reason = "its values are eight digits of year, month and day"
        return Moment("dates to the day", 0.85, reason)
    numbers = [float(one) for one in texts if re.fullmatch(r"-?\d+(?:\.\d+)?", one)]
    years = sum(_FIRST <= one <= _LAST for one in numbers)
    counted = len(numbers) == len(texts) > years and max(numbers, default=0) > _LAST
    if _SAYS_DATE.search(said) and counted:
        reason = "its name or label says so; its values are not years"
        return Moment("dates, as numbers", 0.6, reason)
    return None


def _element(variable: Variable, column: pl.Series, values: pl.Series) -> Moment | None:
    """Know months, days and quarters by a name that ends so and by few values."""
    name, label = " ".join(words(variable.name)), " ".join(words(variable.label))
    said = (text for text in (name, label) if not _NO_ELEMENT.search(text))
    hit = next((found for text in said if (found := _ELEMENT.search(text))), None)
    if hit is None or len(values) > 54 or column.dtype.is_float() or column.dtype == pl.Boolean:
        return None
    numbers = [int(one) for one in values.to_list() if one.isdigit()]
    if numbers and not (min(numbers) >= 0 and max(numbers) <= 54 and len(numbers) > 2):
        return None
    return Moment("an element of a date", 0.65, f"its name or label has {hit.group()!r}")


def find_age(
    variable: Variable, column: pl.Series, values: pl.Series, *, year: int
) -> Moment | None:
    """Tell whether ages over 89, or years of birth that tell of them, are in several categories."""
    said = _said(variable)
    if _AGE.search(said) and not _NO_AGE.search(said):
        if not column.dtype.is_numeric() or variable.value_labels:
            labels = {str(value): text for value, text in variable.value_labels.items()}
            bands = [one for one in values.to_list() if _reaches(labels.get(one, one)) > OLDEST]
            records = int(column.cast(pl.String).is_in(bands).sum())
            reason = "more than one of its bands is above 89"
            return Moment("ages over 89", 0.8, reason, records) if len(bands) > 1 else None
        ages = column.drop_nulls().cast(pl.Float64)
        old = ages.filter((ages > OLDEST) & (ages <= _LONGEST_LIFE))
        if old.is_empty() or old.unique().to_list() == [OLDEST + 1]:
            return None
        return Moment("ages over 89", 0.9, "it is an age with values over 89", len(old))
    years = _years(column) if _BORN.search(said) else None
    if years is None:
        return None
    old = years.filter((years >= _FIRST) & (years < year - OLDEST))
    labelled = [one for one in old.unique().to_list() if one in variable.value_labels]
    if old.is_empty() or (labelled == old.unique().to_list() == [year - OLDEST - 1]):
        return None  # none, or one category of them all
    reason = f"years of birth before {year - OLDEST} imply ages over 89 in {year}"
    return Moment("years of birth that imply ages over 89", 0.8, reason, len(old))


def _reaches(band: str) -> float:
    ends = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", band)]
    if not ends or max(ends) > _LONGEST_LIFE:
        return 0
    return _LONGEST_LIFE if _OLDER.search(band) else max(ends)


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
