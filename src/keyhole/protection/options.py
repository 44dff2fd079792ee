"""What a protection may be told, and everything that is wrong with what it was told.

A `Method` knows its options without knowing any data, so that a whole plan can be checked before
anything runs; given the data too, it says what does not fit them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from numbers import Integral, Real
from typing import Any

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.data.naming import nearest, quoted, repeated
from keyhole.errors import OptionError
from keyhole.exposure.checks import problems_of

__all__ = [
    "Check",
    "Method",
    "Options",
    "Seed",
    "draw_from",
    "exactly_one",
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
]

Check = Callable[[Any], str | None]
"""Says what a value must be where it is not; None where it is fit."""
Options = Mapping[str, Any]
Seed = int | np.random.SeedSequence | None
"""A secret number that repeats the draws; None draws from the system's entropy."""


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
    """Accept a finite number."""
    fit = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return None if fit else "a number"


def is_limit(value: Any) -> str | None:
    """Accept a finite number or a date."""
    return None if isinstance(value, date) or not is_number(value) else "a number or a date"


def is_positive(value: Any) -> str | None:
    """Accept a finite number above 0."""
    return None if not is_number(value) and value > 0 else "a number above 0"


def is_share(value: Any) -> str | None:
    """Accept a share between none and all, neither of them."""
    return None if not is_number(value) and 0 < value < 1 else "a share above 0 and below 1"


def is_fraction(value: Any) -> str | None:
    """Accept a number from 0 to 1."""
    return None if not is_number(value) and 0 <= value <= 1 else "a number from 0 to 1"


def is_count(least: int) -> Check:
    """Accept whole numbers from the least on."""

    def check(value: Any) -> str | None:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return None if whole and value >= least else f"a whole number of at least {least}"

    return check


def is_seed(value: Any) -> str | None:
    """Accept a secret number."""
    fit = isinstance(value, np.random.SeedSequence) or not is_count(0)(value)
    return None if fit else "a whole number of at least 0"


def is_table(value: Any) -> str | None:
    """Accept a table that is not empty."""
    return None if isinstance(value, Mapping) and value else "a table"


def one_of(*words: str) -> Check:
    """Accept one of a few words."""

    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and value in words else f"one of {quoted(words)}"

    return check


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

    def columns(self, options: Options, *, reads: bool = True) -> tuple[str, ...]:
        """Return the columns that the options name, each once."""
        found: list[str] = []
        for option in (*self.writes, *(self.reads if reads else ())):
            given = options.get(option)
            if not isinstance(given, Mapping):
                found += [given] if isinstance(given, str) else list(given or ())
        return tuple(dict.fromkeys(found))

    def problems(self, options: Options, data: Microdata | None = None) -> list[str]:
        """Return everything that is wrong with the options, and with the data for them."""
        given = {name: value for name, value in options.items() if value is not None}
        found = [*self._names(given), *self._values(given)] or self.clashes(given)
        if found or data is None:
            return found
        return problems_of(data, self.columns(given), "column") or self.unfit(data, given)

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
            found.append(f"{name!r} is not an option of {self.name}. {hint}")
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
    text = "something else" if name == "seed" else repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__} of {len(text):,} characters"
