"""Options of protection methods: their kinds, and the texts by which a plan may name a value."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time
from typing import Annotated, Any, ClassVar

import numpy as np

from keyhole.core.kinds import Kind, Number, Place, Whole
from keyhole.core.names import quoted
from keyhole.core.options import Option
from keyhole.core.toml import toml_value
from keyhole.data.microdata import Microdata, values_in_words
from keyhole.data.missing import text_forms
from keyhole.errors import InputError

Options = Mapping[str, Any]

# Values of columns may be larger than any setting.
FINITE = Number(high=math.inf)
POSITIVE = Number(above=0, high=math.inf)


@dataclass(frozen=True, slots=True)
class TomlValue(Kind):
    """A value that a function checks, typed as a plan writes it.

    `what` says what a value must be, `check` whether it is, and `named` which columns it names.
    """

    what: str
    check: Callable[[Any], Any] = lambda _: True
    named: Callable[[Any], Iterable[str]] = lambda _: ()

    widget: ClassVar[str] = "lines"

    def fits(self, value: Any) -> bool:
        """Tell whether the function accepts a value."""
        return bool(self.check(value))

    def read(self, text: str) -> Any:
        """Read a list with commas, a table of a line for each entry, or both as a plan has them."""
        read = list[Any]()
        for written in (f"value = {text}", f"value = [{text}]", text):
            with suppress(tomllib.TOMLDecodeError, RecursionError):
                found = tomllib.loads(written)
                read.append(found if written is text else found["value"])
        entries = [line.partition("=") for line in text.splitlines() if line.strip()]
        if entries and all(sign and name[:1] not in '{["' for name, sign, _ in entries):
            read.append({name.strip(): value.strip() for name, _, value in entries})
        return next((one for one in read if not self.fault(one)), read[0] if read else text)

    def write(self, value: Any) -> str:
        """Write numbers with commas, and what else there is as a plan does; text stays."""
        if is_list(value) and value and all(isinstance(one, int | float) for one in value):
            return ", ".join(map(toml_value, value))
        return value if isinstance(value, str) else toml_value(value)

    def schema(self) -> dict[str, Any]:
        """Describe nothing: the function decides."""
        return {}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that a fit value names."""
        return (((), name) for name in self.named(value))


class _Seed(Whole):
    """A secret number; in Python also what numpy makes of one."""

    __slots__ = ()

    def fault(self, value: Any) -> str | None:
        return None if isinstance(value, np.random.SeedSequence) else Whole.fault(self, value)

    def settle(self, value: Any) -> Any:
        return value


Seed = Annotated[
    int | np.random.SeedSequence | None,
    Option("The secret of the draws.", kind=_Seed(low=0, high=math.inf), secret=True),
]


def is_list(value: Any) -> bool:
    """Tell whether a value is a list of others, and not a text."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_table(value: Any) -> bool:
    """Tell whether a value is a table, and not empty."""
    return isinstance(value, Mapping) and bool(value)


def given_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among a method's arguments (its `locals`) that were given."""
    return {n: v for n, v in values.items() if v is not None and n not in ("data", "seed")}


def forms_of(values: Iterable[Any]) -> set[str]:
    """Return the texts that values may be named by."""
    listed = list(values)
    return text_forms(listed) | {str(v).lower() for v in listed if isinstance(v, bool)}


def by_form(table: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a table by every text that its keys may be named by."""
    return {form: value for key, value in table.items() for form in forms_of([key])}


def find_by_form(table: Mapping[str, Any], value: Any) -> Any:
    """Look a value up in such a table; None if it is not there."""
    return next((table[form] for form in sorted(forms_of([value])) if form in table), None)


def plain_number(value: float) -> float:
    """Return a whole number as such."""
    return int(value) if value == int(value) else value


def raised(work: Callable[[], Any]) -> list[str]:
    """Return the problems of an input that work raises; none if it succeeds."""
    try:
        work()
    except InputError as error:
        return list(error.problems)
    return []


def exactly_one(options: Options, *names: str) -> list[str]:
    """Say so unless exactly one of some options is given."""
    given = [name for name in names if options.get(name) is not None]
    if len(given) == 1:
        return []
    got = quoted(given) if given else "none"
    return [f"exactly one of {quoted(names)} must be given. Got {got} instead."]


def numeric_problems(data: Microdata, names: Sequence[str], *, dates: bool = False) -> list[str]:
    """Say of each column that does not hold numbers, or dates where these will do, so."""
    columns = {name: data.column(name) for name in names}
    return [
        f"column {name!r} must hold numbers{' or dates' * dates}. Got {values_in_words(one)} "
        f"instead: choose another column, or declare its missing codes."
        for name, one in columns.items()
        if not (one.dtype.is_numeric() or (dates and one.dtype.is_temporal()))
    ]


def value_text(value: Any) -> str:
    """Write a value for a message: a date as a plan writes it."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        pairs = (f"{value_text(key)}: {value_text(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return repr(value)
