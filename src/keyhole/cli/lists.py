"""Lists as one types them: names, alternatives, numbers, values, kinds and missing codes.

Items are separated by commas, and spaces around them do not count. What stands in double
quotes is taken as it is, so that any name can be given: ``'"born, year",sex'``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from keyhole.errors import OptionError

__all__ = [
    "amounts",
    "candidates",
    "codes",
    "kinds",
    "names",
    "number",
    "numbers",
]

Number = TypeVar("Number", int, float)


def names(text: str | None, option: str) -> tuple[str, ...]:
    """Read the names of columns.

    Examples
    --------
    >>> names('sex, age,"born, year"', "--keys")
    ('sex', 'age', 'born, year')
    """
    if text is None or not text.strip():
        return ()
    return tuple(_name(item, option) for item in _split(text, ","))


def candidates(text: str | None, option: str) -> tuple[tuple[str, ...], ...]:
    """Read candidates, each with its alternatives from the finest to the coarsest.

    Examples
    --------
    >>> candidates("sex,age|age10", "--candidates")
    (('sex',), ('age', 'age10'))
    """
    if text is None or not text.strip():
        return ()
    return tuple(
        tuple(_name(item, option) for item in _split(group, "|")) for group in _split(text, ",")
    )


def numbers(text: str, option: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Read numbers separated by commas.

    Examples
    --------
    >>> numbers("2,3,5", "--compare-cutoffs", int)
    (2, 3, 5)
    """
    return tuple(number(item, option, kind) for item in _split(text, ","))


def number(item: str, option: str, kind: Callable[[str], Number]) -> Number:
    """Read one number.

    Examples
    --------
    >>> number("0.05", "limit", float)
    0.05
    """
    try:
        return kind(item)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise OptionError(f"{option} must be {wanted}. Got {item!r} instead.") from None


def amounts(text: str | None, option: str) -> dict[str, float]:
    """Read a number for each of some variables.

    Examples
    --------
    >>> amounts("homstate=3,ms=2", "--values")
    {'homstate': 3.0, 'ms': 2.0}
    """
    like = "names with a number each, like age=2,sex=1"
    given = _assigned(text, option, like).items()
    return {name: number(item, option, float) for name, item in given}


def kinds(text: str | None) -> dict[str, str]:
    """Read the kinds of some columns.

    Examples
    --------
    >>> kinds("age=measure,zip=category")
    {'age': 'measure', 'zip': 'category'}
    """
    return _assigned(text, "--kinds", "names with a kind each, like age=measure,zip=category")


def _assigned(text: str | None, option: str, like: str) -> dict[str, str]:
    """Read what is given to each of some names."""
    found: dict[str, str] = {}
    for item in _split(text, ",") if text else ():
        name, *rest = _split(item, "=")
        if len(rest) != 1:
            raise OptionError(f"{option} must be {like}. Got {item!r} instead.")
        if _name(name, option) in found:
            raise OptionError(f"{option} names {name!r} twice. Name it once.")
        found[_name(name, option)] = rest[0]
    return found


def codes(text: str | None) -> Mapping[str, Sequence[str]]:
    """Read missing codes: for the whole file (``*``), or by column as ``age:-9|-8``.

    Examples
    --------
    >>> codes("-9,.,age:-8|-7")
    {'*': ['-9', '.'], 'age': ['-8', '-7']}
    """
    found: dict[str, list[str]] = {}
    for item in _split(text, ",") if text else ():
        name, *rest = _split(item, ":")
        listed = _split(":".join(rest), "|") if rest else [name]
        column = _name(name, "--missing-codes") if rest else "*"
        # Empty text is missing always.
        found.setdefault(column, []).extend(_plain(code) for code in listed if _plain(code))
    return found


def _split(text: str, mark: str) -> list[str]:
    """Cut at the marks that are not in quotes."""
    parts, quoted = [""], False
    for letter in text:
        quoted ^= letter == '"'
        if letter == mark and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _plain(item: str) -> str:
    """Take off the quotes of an item; a doubled one within stands for itself."""
    if len(item) > 1 and item.startswith('"') and item.endswith('"'):
        return item[1:-1].replace('""', '"')
    return item


def _name(item: str, option: str) -> str:
    if not item:
        raise OptionError(f"{option} must not have an empty name. Check its commas and bars.")
    return _plain(item)
