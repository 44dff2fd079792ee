"""Geography below the state: ZIP codes, counties, cities, tracts and what else tells a place.

Safe Harbor allows states, and the first three digits of a ZIP code where more than 20,000 people
live in the ZIP codes that begin so; the others become 000 (45 CFR 164.514(b)(2)(i)(B)).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from keyhole.data.columns import Variable
from keyhole.screening.identifiers import words

__all__ = ["CENSUS", "LOW_POPULATION", "Place", "find_place", "zip_digits"]

# Three-digit ZIP codes with 20,000 people or fewer, as the guidance of the Department of Health
# and Human Services lists them.
LOW_POPULATION = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878",
    "879", "884", "890", "893",
)  # fmt: skip
CENSUS = "Census 2000"

_KINDS: tuple[tuple[str, str, float], ...] = (
    (
        "ZIP code",
        r"\b(zip|zips|zcta|post ?code|plz)\b|\bzip ?(code|cd)\b|\bpostal (code|zip)\b",
        0.95,
    ),
    ("county", r"\b(county|cnty|parish|borough)\b|\bcounty ?fips\b|\bfips( code| cd)?\b", 0.9),
    ("city or town", r"\b(city|town|village|municipality|suburb|township|hamlet|locality)\b", 0.9),
    (
        "census area",
        r"\b(puma\d*|tract|block ?group|blkgrp|geoid\d*|msa|cbsa|csa|lsoa|msoa|nuts ?[23])\b"
        r"|\bcensus (tract|block)\b|\benumeration (district|area)\b|\bmetro(politan)?( area)?\b",
        0.95,
    ),
    (
        "district",
        r"\b(precinct|ward|neighbou?rhood|congressional district|school district)\b",
        0.85,
    ),
    ("area", r"\b(area|district|location|locale|residence|birth ?place|place of birth)\b", 0.6),
)
# With these words a place is counted, measured or sorted, or it is no place of a person.
_UNLESS = re.compile(
    r"\b(size|type|kind|population|pop|density|rank|distance|miles|flag|indicator|urban|rural|"
    r"status|count|number of|years|months|same|moved|country|state|region|division|nation|surface|"
    r"body|square|(area|district) of (study|interest|expertise|practice|work)|subject|code area|"
    r"hospital ward|skin|burn|phone|tel|tax|capital|live in|lives in|category|recode)\b"
)
_LAST_SPEAKS = re.compile(r"\b(zip|county|city|puma\d*|tract|precinct)\b")
_FIVE = re.compile(r"\d{5}(?:-?\d{4})?")
_FEWEST_CODES = 20
_MOST_VALUES = 0.9


@dataclass(frozen=True, slots=True)
class Place:
    """What kind of place below the state a column tells, how sure that is, and why."""

    kind: str
    confidence: float
    reason: str


def find_place(variable: Variable, column: pl.Series, values: pl.Series) -> Place | None:
    """Tell whether a column tells places below the state.

    Parameters
    ----------
    variable
        What is known of the column.
    column
        Its values.
    values
        Some of them as text.

    Examples
    --------
    >>> codes = pl.Series(["02134", "10001", "60614"])
    >>> find_place(Variable("homeZip", "category"), codes, codes).kind
    'ZIP code'
    >>> find_place(Variable("state", "category"), codes, codes) is None
    True
    """
    found = _by_words(" ".join(words(variable.name)), "name") or _by_words(
        " ".join(words(variable.label)), "label"
    )
    if found is not None and column.drop_nulls().n_unique() > 2:
        return found
    return _by_codes(column, values) if found is None else None


@lru_cache(maxsize=4096)
def _by_words(text: str, where: str) -> Place | None:
    if not text:
        return None
    for kind, pattern, confidence in _KINDS:
        hit = re.search(pattern, text)
        # A name ends in what it is: state_county is a county, county_pop a number.
        sure = hit is not None and _LAST_SPEAKS.search(hit.group()) and hit.end() == len(text)
        if hit is not None and (sure or not _UNLESS.search(text)):
            return Place(kind, confidence, f"its {where} has {hit.group()!r}")
    return None


def _by_codes(column: pl.Series, values: pl.Series) -> Place | None:
    """Five digits written as text, some with a leading zero: nobody writes amounts so."""
    if column.dtype != pl.String or len(values) < _FEWEST_CODES:
        return None
    texts = values.to_list()
    fits = [one for one in texts if _FIVE.fullmatch(one)]
    zeros = sum(one.startswith("0") for one in fits)
    if len(fits) < _MOST_VALUES * len(texts) or zeros < 0.01 * len(fits):
        return None
    return Place("ZIP or area code", 0.5, "its values have five digits, some a leading zero")


def zip_digits(column: pl.Series) -> tuple[int, int]:
    """Return how many digits of a ZIP code are told, and how many records are in small ones.

    Small are the three-digit areas of `LOW_POPULATION`.

    Examples
    --------
    >>> zip_digits(pl.Series([3601, 2134])), zip_digits(pl.Series(["036", "021"]))
    ((5, 1), (3, 1))
    """
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
