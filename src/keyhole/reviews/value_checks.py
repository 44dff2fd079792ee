"""What a value of a review file must be, and the columns it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from keyhole.core.names import quoted, repeated
from keyhole.engines.resources import parse_memory
from keyhole.errors import OptionError
from keyhole.reviews.source import ValuePath, named_scenario

__all__ = [
    "Check",
    "Columns",
    "Fault",
    "by_name",
    "each",
    "each_key",
    "is_codes",
    "is_flag",
    "is_keys",
    "is_mark",
    "is_memory",
    "is_name",
    "is_positive",
    "is_share",
    "is_text",
    "is_weight",
    "is_whole",
    "list_of",
    "one",
    "one_of",
    "table_of",
]

Fault = str | None
"""What a value must be, where it is not; None where it is fit."""
Check = Callable[[Any], Fault]
Columns = Callable[[Any], Iterator[tuple[ValuePath, str]]]

LARGEST = 1_000_000_000
# What a column of whole numbers can hold.
LARGEST_CODE = 2**63 - 1


def is_text(value: Any) -> Fault:
    """Accept text that is not only blanks."""
    return None if isinstance(value, str) and value.strip() else "text"


def is_name(value: Any) -> Fault:
    """Accept the name of a column, whatever it holds."""
    return None if isinstance(value, str) and value else "a column's name"


def is_mark(value: Any) -> Fault:
    """Accept any text, a tab or a blank too."""
    return None if isinstance(value, str) and value else "text"


def is_memory(value: Any) -> Fault:
    """Accept an amount of memory, as `--memory` has it."""
    try:
        parse_memory(value)
    except OptionError:
        return "an amount of memory, like '1GB'"
    return None


def is_flag(value: Any) -> Fault:
    """Accept true and false."""
    return None if isinstance(value, bool) else "true or false"


def _is_number(value: Any) -> bool:
    fit = isinstance(value, int | float) and not isinstance(value, bool)
    return fit and abs(value) <= LARGEST


def is_whole(value: Any) -> Fault:
    """Accept 1, 2, 3 and so on."""
    return _counted(value, 1)


def _counted(value: Any, least: int) -> Fault:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value > LARGEST:
        return f"a whole number of at most {LARGEST:,}"
    return None if whole and value >= least else f"a whole number of at least {least}"


def is_share(value: Any) -> Fault:
    """Accept a number from 0 to 1."""
    return None if _is_number(value) and 0 <= value <= 1 else "a number from 0 to 1"


def is_positive(value: Any) -> Fault:
    """Accept a number above 0."""
    fit = _is_number(value) and value > 0
    return None if fit else f"a number above 0 and at most {LARGEST:,}"


def is_weight(value: Any) -> Fault:
    """Accept a number from 0 on."""
    fit = _is_number(value) and value >= 0
    return None if fit else f"a number of at least 0 and at most {LARGEST:,}"


def one_of(options: Sequence[str]) -> Check:
    """Accept one of the words."""
    return lambda value: None if value in options else f"one of {quoted(options)}"


def list_of(check: Check, what: str, *, empty: bool = False) -> Check:
    """Accept a list of what another check accepts, each once; `empty` where none means none."""

    def fault(value: Any) -> Fault:
        fit = isinstance(value, list) and (empty or value)
        if not fit or any(check(item) for item in value):
            return f"a list of {what}"
        double = repeated(map(repr, value))
        return f"a list that names each once ({', '.join(double)} is repeated)" if double else None

    return fault


def table_of(check: Check, what: str) -> Check:
    """Accept a table whose values another check accepts."""

    def fault(value: Any) -> Fault:
        fit = isinstance(value, Mapping) and not any(check(item) for item in value.values())
        return None if fit else f"a table that gives for each column {what}"

    return fault


def _code(value: Any) -> Fault:
    small = not isinstance(value, int) or abs(value) <= LARGEST_CODE
    return None if isinstance(value, str | int | float | date) and small else "a value"


def is_codes(value: Any) -> Fault:
    """Accept missing codes: a list of values, or such lists by column."""
    lists = value.values() if isinstance(value, Mapping) else [value]
    items = [item for part in lists for item in (part if isinstance(part, list) else [part])]
    fit = isinstance(value, list | Mapping) and not any(_code(item) for item in items)
    return None if fit else "a list of values, or a table of such lists by column"


def is_keys(value: Any) -> Fault:
    """Accept a list of column names, or the scenario whose key is meant."""
    if named_scenario(value):
        return None
    fault = list_of(is_name, "column names")(value)
    return fault and f'{fault}, or "scenario:NAME"'


def one(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the one column named."""
    yield (), value


def each(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the columns of a list, with their places."""
    for place, name in enumerate(value):
        yield (place,), name


def each_key(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the columns of a list; a scenario's key is known later."""
    return iter(()) if isinstance(value, str) else each(value)


def by_name(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the columns that a table is about."""
    for name in value if isinstance(value, Mapping) else ():
        if name != "*":
            yield (name,), name
