"""What is wrong with the options that several verbs have, each as a list of sentences.

They are collected rather than raised, so that all the problems of a question are told at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from keyhole.core.notes import Note
from keyhole.core.shared import SMALLEST_FRACTION
from keyhole.errors import ColumnError, OptionError

if TYPE_CHECKING:
    from keyhole.engines import Records

__all__ = [
    "check_cutoff",
    "fraction_problems",
    "is_number",
    "listed",
    "one_of",
    "problems_of",
    "scenario_note",
    "share_problems",
    "small_group_note",
    "value_problems",
]

# No file has cells as large as this, and counts are held in 32 bits.
LARGEST_CUTOFF = 2**31 - 1


def is_number(value: Any) -> bool:
    """Tell numbers from everything else; a truth value is none.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5"), is_number(None)
    (True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def listed(given: Any, option: str) -> tuple[Any, ...]:
    """Read names, or other things, one after the other; a name alone is a list of one.

    Examples
    --------
    >>> listed("age", "keys"), listed(["age", "sex"], "keys")
    (('age',), ('age', 'sex'))
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise OptionError(f"{option} must be a list. Got {given!r} instead.")
    return tuple(given)


def one_of(option: str, value: Any, known: Iterable[str]) -> list[str]:
    """Return what is wrong with a choice among a few words."""
    words = list(known)
    if isinstance(value, str) and value in words:
        return []
    return [f"{option} must be one of {', '.join(words)}. Got {value!r} instead."]


def check_cutoff(cutoff: Any) -> list[str]:
    """Return what is wrong with a cutoff."""
    whole = isinstance(cutoff, Integral) and not isinstance(cutoff, bool)
    if not (whole and cutoff >= 1):
        return [f"cutoff must be a whole number of at least 1. Got {cutoff!r} instead."]
    if cutoff > LARGEST_CUTOFF:
        return [f"cutoff must be at most {LARGEST_CUTOFF}. Got {cutoff!r} instead."]
    return []


def share_problems(option: str, value: Any) -> list[str]:
    """Return what is wrong with a limit, which is a share of the records."""
    if is_number(value) and 0 <= value <= 1:
        return []
    return [f"{option} must be a fraction from 0 to 1. Got {value!r} instead."]


def fraction_problems(fraction: Any) -> list[str]:
    """Return what is wrong with a sampling fraction; none at all is right."""
    if fraction is None or (is_number(fraction) and SMALLEST_FRACTION <= fraction <= 1):
        return []
    small = is_number(fraction) and 0 < fraction < SMALLEST_FRACTION
    least = f"at least {SMALLEST_FRACTION:g}" if small else "above 0"
    return [f"fraction must be {least} and at most 1. Got {fraction!r} instead."]


def value_problems(values: Any) -> list[str]:
    """Return what is wrong with what variables are worth; nothing at all is right."""
    if values is None:
        return []
    if not isinstance(values, Mapping):
        return [f"values must be a number for each variable named. Got {values!r} instead."]
    return [
        f"the value of variable {name!r} must be a finite number above 0."
        for name, value in values.items()
        if not (is_number(value) and 0 < value < float("inf"))
    ]


def problems_of(data: Records, names: Iterable[str], purpose: str) -> list[str]:
    """Return what is wrong with the columns named, instead of raising it."""
    try:
        data.require(names, purpose=purpose)
    except ColumnError as error:
        return list(error.problems)
    return []


def scenario_note(name: str) -> str:
    """Say that the file was recoded to the key of a scenario."""
    return Note("exposure.scenario", name=name)


def small_group_note(cutoff: int) -> str:
    """Say why some groups have no name: it could be that of a person."""
    return f"Groups of fewer than {cutoff} records are not named; --name-small-groups names them."
