"""Plain values of the model, as JSON has them, and back, by the model's annotations.

Nothing is written by hand for a class: a frozen dataclass becomes an object whose keys are its
attributes in their order. An attribute that has its default is left out, so a default must not
change its meaning without a new version of what is stored. Mappings and sets are sorted: equal
things give equal text.

Whoever writes or reads a value adds what is wrong with it to a list of problems. A problem
begins with the way to its value (``.fields[0].label must be text``); whoever holds the value
puts their step in front.
"""

from __future__ import annotations

import datetime
import math
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from keyhole.core.names import nearest, quoted, shown

_ABSENT = object()
_LARGEST = 2**31 - 1
_DAY = "a day (2026-11-16)"
_INFINITIES: dict[Any, float] = {"inf": math.inf, "-inf": -math.inf}


def encode_thing(value: Any, problems: list[str]) -> Any:
    """Give a thing of the model as plain values, and add to the problems what cannot be kept."""
    found: list[str] = []
    kind: Any = type(value)
    plain = _convert(kind, value, found, True)
    problems += [problem.lstrip(".") for problem in found]
    return plain


def decode(kind: type, plain: Any, where: str, problems: list[str]) -> Any:
    """Make a thing of the model from plain values; useless if there were problems."""
    return _at(where, kind, plain, problems, False)


def decode_attributes(kind: Any, plain: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Make those attributes of a thing that are given and fit; the problems say what does not."""
    known, values = _attributes(kind), {}
    for name in (name for name in plain if name not in known):
        near = nearest(name, list(known))
        hint = f"Did you mean {quoted(near[:1])}?" if near else f"Known are {', '.join(known)}."
        problems.append(f".{shown(name)} is unknown. {hint}")
    for name in (name for name in plain if name in known):
        before = len(problems)
        found = _at(f".{name}", known[name][0], plain[name], problems, False)
        if len(problems) == before:
            values[name] = found
    return values


def _at(where: str, hint: Any, value: Any, problems: list[str], writing: bool) -> Any:
    """Convert a value, and put the way there before the problems that it has."""
    before = len(problems)
    found = _convert(hint, value, problems, writing)
    if len(problems) > before:
        problems[before:] = [f"{where}{problem}" for problem in problems[before:]]
    return found


def _convert(hint: Any, value: Any, problems: list[str], writing: bool) -> Any:
    """Convert a value of the model to its plain form, or back."""
    if hint in _SINGLE:
        return _SINGLE[hint](value, problems, writing)
    origin, inner = _parts(hint)
    if origin is None:
        return (_write_record if writing else _read_record)(hint, value, problems)
    if origin is typing.Union:
        return None if value is None else _convert(inner[0], value, problems, writing)
    if origin is typing.Literal:
        words = f"one of {', '.join(map(repr, inner))}"
        if not isinstance(value, str):
            return _must_be(words, value, problems)
        if value not in inner:
            problems.append(f" must be {words}. Got {shown(value)} instead.")
        return value
    before = len(problems)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            return _must_be("a mapping", value, problems)
        for key in value:
            _at(".a key", str, key, problems, writing)
        names = (sorted(value) if writing else value) if len(problems) == before else ()
        return {n: _at(f".{shown(n)}", inner[1], value[n], problems, writing) for n in names}
    if inner[-1] is not Ellipsis and origin is tuple:  # with a place for each of its values
        if not isinstance(value, tuple | list) or len(value) != len(inner):
            problems.append(f" must have {len(inner)} values.")
            return []
        each = [_convert(h, one, problems, writing) for h, one in zip(inner, value, strict=True)]
        return each if writing else tuple(each)
    given = origin if writing else list
    if not isinstance(value, (set, frozenset) if given is frozenset else given):
        _must_be(f"a {given.__name__}", value, problems)
        return []
    found = [_at(f"[{i}]", inner[0], one, problems, writing) for i, one in enumerate(value)]
    if len(problems) > before:
        return []
    return (sorted(found) if origin is frozenset else found) if writing else origin(found)


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take a type apart; a dataclass has no parts, and what may be missing is a union."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union, tuple(one for one in inner if one is not type(None))
    if origin in (None, typing.Literal, frozenset, tuple, Mapping):
        return origin, inner
    raise TypeError(f"{hint} has no plain form")


@cache
def _attributes(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Return the types of a dataclass's attributes, and their plain defaults."""
    hints, found = typing.get_type_hints(kind), {}
    for one in fields(kind):
        made = one.default if one.default_factory is MISSING else one.default_factory()
        plain = _ABSENT if made is MISSING else _convert(hints[one.name], made, [], True)
        found[one.name] = hints[one.name], plain
    return found


def _write_record(kind: Any, value: Any, problems: list[str]) -> Any:
    plain, known = {}, _attributes(kind)
    if type(value) is not kind:
        return _must_be(f"a {kind.__name__}", value, problems)
    for name, (hint, default) in known.items():
        one = _at(f".{name}", hint, getattr(value, name), problems, True)
        if one != default:
            plain[name] = one
    return plain


def _read_record(kind: Any, plain: Any, problems: list[str]) -> Any:
    if not isinstance(plain, dict):
        return _must_be("an object", plain, problems)
    start = len(problems)
    values = decode_attributes(kind, plain, problems)
    for name, (_, default) in _attributes(kind).items():
        if default is _ABSENT and name not in plain:
            problems.append(f".{name} is missing. Give it.")
    return kind(**values) if len(problems) == start else None


def _must_be(wanted: str, value: Any, problems: list[str]) -> Any:
    """Describe a value by its kind, never by itself."""
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    kind = names.get(type(value), f"a {type(value).__name__}")
    if value is None:
        kind = "nothing"
    elif type(value) in (int, float):
        kind = "a number" if value == value else "a number that is none (NaN)"
    problems.append(f" must be {wanted}. Got {kind} instead.")


def _text(value: Any, problems: list[str], _: bool) -> Any:
    if type(value) is not str:
        _must_be("text", value, problems)
    elif "\0" in value:
        problems.append(" must have no NUL character. Take it out.")
    elif not value.isascii() and value.encode("utf-8", "replace").decode() != value:
        problems.append(
            " must be text that UTF-8 can write. Got half a character (a lone surrogate) "
            "instead: decode the text anew."
        )
    return value


def _flag(value: Any, problems: list[str], _: bool) -> Any:
    return value if type(value) is bool else _must_be("true or false", value, problems)


def _whole(value: Any, problems: list[str], _: bool) -> Any:
    if type(value) is int and abs(value) <= _LARGEST:
        return value
    return _must_be(f"a whole number of at most {_LARGEST:,}", value, problems)


def _number(value: Any, problems: list[str], writing: bool) -> Any:
    """JSON has no infinity: it is written as text."""
    known = _INFINITIES.get(value, value) if isinstance(value, str) and not writing else value
    if isinstance(known, int | float) and not isinstance(known, bool) and known == known:
        with suppress(OverflowError):
            number = float(known) + 0.0  # minus zero is zero
            return str(number) if writing and math.isinf(number) else number
    return _must_be("a number", value, problems)


def _day(value: Any, problems: list[str], writing: bool) -> Any:
    if writing and type(value) is datetime.date:
        return value.isoformat()
    with suppress(TypeError, ValueError):
        day = datetime.date.fromisoformat(value)
        if not writing and day.isoformat() == value:
            return day
    return _must_be(_DAY, value, problems)


_SINGLE: dict[Any, Callable[[Any, list[str], bool], Any]] = {
    str: _text,
    bool: _flag,
    int: _whole,
    float: _number,
    datetime.date: _day,
}
