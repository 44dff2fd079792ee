"""Checks of the options of protections, and the texts by which a plan may name a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np

from keyhole.core.names import quoted, repeated
from keyhole.data.microdata import Microdata
from keyhole.data.missing import text_forms

__all__ = [
    "AtLeast",
    "Check",
    "ClosedShare",
    "ColumnName",
    "ColumnNames",
    "FiniteNumber",
    "OneOf",
    "OpenShare",
    "Options",
    "PlainText",
    "PositiveNumber",
    "Seed",
    "by_form",
    "draw_from",
    "exactly_one",
    "find_by_form",
    "forms_of",
    "is_flag",
    "is_fraction",
    "is_limit",
    "is_name",
    "is_names",
    "is_number",
    "is_positive",
    "is_seed",
    "is_share",
    "is_table",
    "is_text",
    "numeric_problems",
    "one_of",
    "option_text",
    "plain_number",
    "value_text",
]


def forms_of(values: Iterable[Any]) -> set[str]:
    """Return the texts that values may be named by.

    Examples
    --------
    >>> sorted(forms_of([1, True, "02"]))
    ['02', '1', '1.0', 'True', 'true']
    """
    listed = list(values)
    return text_forms(listed) | {str(v).lower() for v in listed if isinstance(v, bool)}


def by_form(table: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a table by every text that its keys may be named by."""
    return {form: value for key, value in table.items() for form in forms_of([key])}


def find_by_form(table: Mapping[str, Any], value: Any) -> Any:
    """Look a value up in such a table; None if it is not there.

    Examples
    --------
    >>> table = by_form({"1": "a", "true": "b"})
    >>> find_by_form(table, 1.0), find_by_form(table, True)
    ('a', 'b')
    """
    return next((table[form] for form in sorted(forms_of([value])) if form in table), None)


Check = Callable[[Any], str | None]
"""Says what a value must be where it is not; None where it is fit."""
Options = Mapping[str, Any]
Seed = int | np.random.SeedSequence | None
"""A secret number that repeats the draws; None draws from the system's entropy."""

# Characters of an option that are shown.
LONGEST = 60
# No file has as many records, and no column a number as large, that more were meant.
LARGEST_COUNT = 2**63 - 1


def draw_from(seed: Seed) -> np.random.Generator:
    """Return a generator for a secret seed."""
    return np.random.default_rng(seed)


def is_name(value: Any) -> str | None:
    """Accept a column's name."""
    return None if isinstance(value, str) and value else "a column's name"


def is_names(value: Any) -> str | None:
    """Accept a column's name, or a list of several."""
    if isinstance(value, str):
        return is_name(value)
    fit = isinstance(value, Sequence) and value and not any(map(is_name, value))
    if not fit:
        return "a list of column names"
    double = repeated(value)
    return f"a list that names each column once ({quoted(double)} is repeated)" if double else None


def is_text(value: Any) -> str | None:
    """Accept text that is not only blanks."""
    return None if isinstance(value, str) and value.strip() else "text"


def is_flag(value: Any) -> str | None:
    """Accept true and false."""
    return None if isinstance(value, bool) else "true or false"


def is_number(value: Any) -> str | None:
    """Accept a finite number.

    Examples
    --------
    >>> is_number(3), is_number(10**400)
    (None, 'a number of at most 308 digits')
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return "a number"
    try:
        return None if math.isfinite(value) else "a number"
    except OverflowError:
        return "a number of at most 308 digits"


def is_limit(value: Any) -> str | None:
    """Accept a finite number or a date."""
    wanted = None if isinstance(value, date) else is_number(value)
    return "a number or a date" if wanted == "a number" else wanted


def is_positive(value: Any) -> str | None:
    """Accept a finite number above 0."""
    return None if not is_number(value) and value > 0 else "a number above 0"


def is_share(value: Any) -> str | None:
    """Accept a share between none and all, neither of them."""
    return None if not is_number(value) and 0 < value < 1 else "a share above 0 and below 1"


def is_fraction(value: Any) -> str | None:
    """Accept a number from 0 to 1."""
    return None if not is_number(value) and 0 <= value <= 1 else "a number from 0 to 1"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Accept whole numbers from the least on."""

    least: int

    def __call__(self, value: Any) -> str | None:
        """Say what a value must be."""
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if whole and value > LARGEST_COUNT:
            return f"a whole number from {self.least} to {LARGEST_COUNT}"
        fit = whole and value >= self.least
        return None if fit else f"a whole number of at least {self.least}"


def is_seed(value: Any) -> str | None:
    """Accept a secret number."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    fit = isinstance(value, np.random.SeedSequence) or whole
    return None if fit else "a whole number of at least 0"


def is_table(value: Any) -> str | None:
    """Accept a table that is not empty."""
    return None if isinstance(value, Mapping) and value else "a table"


@dataclass(frozen=True, slots=True)
class OneOf:
    """Accept one of a few words."""

    words: tuple[str, ...]

    def __call__(self, value: Any) -> str | None:
        """Say what a value must be."""
        fit = isinstance(value, str) and value in self.words
        return None if fit else f"one of {quoted(self.words)}"


def one_of(*words: str) -> Check:
    """Accept one of a few words."""
    return OneOf(words)


# The annotations of options; a word of a few is a `Literal`, and a flag a `bool`.
ColumnName = Annotated[str, is_name]
ColumnNames = Annotated[Iterable[str], is_names]
PlainText = Annotated[str, is_text]
FiniteNumber = Annotated[float, is_number]
PositiveNumber = Annotated[float, is_positive]
OpenShare = Annotated[float, is_share]
ClosedShare = Annotated[float, is_fraction]


def plain_number(value: float) -> float:
    """Return a whole number as such.

    Examples
    --------
    >>> plain_number(5.0), plain_number(2.5)
    (5, 2.5)
    """
    return int(value) if value == int(value) else value


def exactly_one(options: Options, *names: str) -> list[str]:
    """Say so unless exactly one of some options is given."""
    given = [name for name in names if options.get(name) is not None]
    if len(given) == 1:
        return []
    got = quoted(given) if given else "none"
    return [f"exactly one of {quoted(names)} must be given. Got {got} instead."]


def numeric_problems(data: Microdata, names: Sequence[str]) -> list[str]:
    """Say of each column that does not hold numbers so."""
    return [
        f"column {name!r} must hold numbers. Got other values instead: choose another column, "
        f"or declare its missing codes."
        for name in names
        if not data.column(name).dtype.is_numeric()
    ]


def option_text(name: str, value: Any) -> str:
    """Write an option for a message; a long one is described, and a secret is not shown."""
    if name == "seed":
        return "something else"
    if isinstance(value, int) and not -(10**60) < value < 10**60:
        return "a number of more than 60 digits"
    text = value_text(value)
    if len(text) <= LONGEST:
        return text
    kinds = {"str": "a text", "list": "a list", "tuple": "a list", "dict": "a table"}
    kind = kinds.get(type(value).__name__, "something")
    return f"{kind} of {len(text):,} characters"


def value_text(value: Any) -> str:
    """Write a value for a message: a date as a plan writes it.

    Examples
    --------
    >>> value_text({"born": [date(2020, 1, 31), "x"]})
    "{'born': [2020-01-31, 'x']}"
    """
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        pairs = (f"{value_text(key)}: {value_text(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return repr(value)
