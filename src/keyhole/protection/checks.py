"""Checks of the options of protections, and the texts by which a plan may name a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from numbers import Integral, Real
from typing import Any

import numpy as np

from keyhole.core.names import nearest, quoted, repeated, shown
from keyhole.data.microdata import Microdata
from keyhole.data.missing import text_forms
from keyhole.errors import InputError, OptionError
from keyhole.exposure.checks import problems_of

__all__ = [
    "AtLeast",
    "Check",
    "Method",
    "OneOf",
    "Options",
    "Seed",
    "by_form",
    "draw_from",
    "exactly_one",
    "find",
    "forms_of",
    "is_count",
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


def find(table: Mapping[str, Any], value: Any) -> Any:
    """Look a value up in such a table; None if it is not there.

    Examples
    --------
    >>> find(by_form({"1": "a", "true": "b"}), 1.0), find(by_form({"true": "b"}), True)
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


def is_count(least: int) -> Check:
    """Accept whole numbers from the least on."""
    return AtLeast(least)


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


def _no_clash(_: Options) -> list[str]:
    return []


def _fits_all(_: Microdata, __: Options) -> list[str]:
    return []


def _never(_: Options) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Method:
    """What a protection is called and what it may be told.

    Parameters
    ----------
    name
        Its name in a plan.
    checks
        By option what a value must be.
    required
        The options that cannot be left out.
    writes, reads
        The options that name the columns it changes, and those it only looks at.
    clashes
        What is wrong with options that are each fit.
    unfit
        What in the data keeps fit options from being carried out.
    is_random
        Whether it draws, and so takes a seed.
    needs_order
        Whether its columns must hold numbers or dates.
    makes_labels
        Whether, so told, it leaves labels where numbers were.
    repeats
        Whether the same column may be treated so more than once.
    supersedes
        By option that is found in the data, the options it stands for.
    also_found
        Further options that are found in the data, and stand for none.
    """

    name: str
    checks: Mapping[str, Check]
    required: tuple[str, ...] = ("column",)
    writes: tuple[str, ...] = ("column",)
    reads: tuple[str, ...] = ()
    clashes: Callable[[Options], list[str]] = _no_clash
    unfit: Callable[[Microdata, Options], list[str]] = _fits_all
    is_random: bool = False
    needs_order: bool = False
    makes_labels: Callable[[Options], bool] = _never
    repeats: bool = False
    supersedes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also_found: tuple[str, ...] = ()

    def columns(self, options: Options, *, reads: bool = True) -> tuple[str, ...]:
        """Return the columns that the options name, each once; what is no name is left out."""
        found: list[str] = []
        for option in (*self.writes, *(self.reads if reads else ())):
            given = options.get(option)
            listed = given if isinstance(given, Sequence) else ()
            listed = [given] if isinstance(given, str) else listed
            found += [one for one in listed if isinstance(one, str) and one]
        return tuple(dict.fromkeys(found))

    def problems(self, options: Options, data: Microdata | None = None) -> list[str]:
        """Return everything that is wrong with the options, and with the data for them."""
        given = {name: value for name, value in options.items() if value is not None}
        found = [*self._names(given), *self._values(given)] or self.clashes(given)
        return found if data is None else [*found, *self.unfit_for(data, given)]

    def unfit_for(self, data: Microdata, options: Options) -> list[str]:
        """Return what in the data keeps the options from being carried out.

        Columns that are not there are told whatever else is wrong; the rest only of fit options.
        """
        given = {name: value for name, value in options.items() if value is not None}
        absent = problems_of(data, self.columns(given), "column")
        if absent or self.problems(given):
            return absent
        try:
            return self.unfit(data, given)
        except InputError as error:
            return list(error.problems)

    def _names(self, given: Options) -> list[str]:
        known = list(self.checks)
        found = []
        for name in given:
            if name in self.checks or (name == "seed" and self.is_random):
                continue
            near = nearest(name, known)
            hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else (
                f"There are {quoted(known)}."
            )  # fmt: skip
            found.append(f"{shown(name)} is not an option of {self.name}. {hint}")
        return found + [
            f"{name} must be given for {self.name}." for name in self.required if name not in given
        ]

    def _values(self, given: Options) -> list[str]:
        checks = {**self.checks, "seed": is_seed}
        wanted = {name: checks[name](value) for name, value in given.items() if name in checks}
        return [
            f"{name} must be {what}. Got {_shown(name, given[name])} instead."
            for name, what in wanted.items()
            if what is not None
        ]

    def require(self, data: Microdata, options: Options) -> None:
        """Raise everything that is wrong at once."""
        found = self.problems(options, data)
        if found:
            raise OptionError(found)
        data.require_records()


def _shown(name: str, value: Any) -> str:
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
