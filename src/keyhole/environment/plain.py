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
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from keyhole.core.names import nearest, quoted, shown

Step = Callable[[Any, list[str]], Any]
Shape = tuple[Step, Step]
"""How values of one kind are written, and read."""
_ABSENT = object()
_LARGEST = 2**31 - 1
_DAY = "a day (2026-11-16)"
_INFINITIES: dict[Any, float] = {"inf": math.inf, "-inf": -math.inf}


def encode_thing(value: Any, problems: list[str]) -> Any:
    """Give a thing of the model as plain values, and add to the problems what cannot be kept."""
    found: list[str] = []
    kind: Any = type(value)
    plain = _shape(kind)[0](value, found)
    problems += [problem.lstrip(".") for problem in found]
    return plain


def decode(kind: type, plain: Any, where: str, problems: list[str]) -> Any:
    """Make a thing of the model from plain values; useless if there were problems."""
    return _at(where, _shape(kind)[1], plain, problems)


def decode_attributes(kind: Any, plain: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Make those attributes of a thing that are given and fit; the problems say what does not."""
    known, values = _attributes(kind), {}
    for name, value in plain.items():
        before = len(problems)
        if name in known:
            values[name] = _at(f".{name}", known[name][1], value, problems)
        else:
            near = nearest(name, list(known))
            hint = f"Did you mean {quoted(near[:1])}?" if near else f"Known are {', '.join(known)}."
            problems.append(f".{shown(name)} is unknown. {hint}")
        if len(problems) > before:
            values.pop(name, None)
    return values


def _at(where: str | int, step: Step, value: Any, problems: list[str]) -> Any:
    """Take a step, and put the way there before the problems that it found."""
    before = len(problems)
    found = step(value, problems)
    if len(problems) > before:
        way = f"[{where}]" if isinstance(where, int) else where
        problems[before:] = [f"{way}{problem}" for problem in problems[before:]]
    return found


def _must_be(wanted: str, value: Any, problems: list[str]) -> Any:
    """Describe a value by its kind, never by itself."""
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    kind = names.get(type(value), f"a {type(value).__name__}")
    if value is None:
        kind = "nothing"
    elif type(value) in (int, float):
        kind = "a number" if value == value else "a number that is none (NaN)"
    problems.append(f" must be {wanted}. Got {kind} instead.")


def _text(value: Any, problems: list[str]) -> Any:
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


def _fits(wanted: str, fit: Callable[[Any], bool]) -> Step:
    """Keep a value that fits as it is."""
    return lambda value, found: value if fit(value) else _must_be(wanted, value, found)


def _read_number(plain: Any, problems: list[str]) -> Any:
    value = _INFINITIES.get(plain, plain) if isinstance(plain, str) else plain
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        try:
            return float(value) + 0.0  # minus zero is zero
        except OverflowError:
            pass
    return _must_be("a number", plain, problems)


def _write_number(value: Any, problems: list[str]) -> Any:
    """JSON has no infinity: it is written as text."""
    number = _read_number(None if isinstance(value, str) else value, problems)
    return str(number) if number is not None and math.isinf(number) else number


def _read_day(plain: Any, problems: list[str]) -> Any:
    try:
        day = datetime.date.fromisoformat(plain)
        if day.isoformat() == plain:
            return day
    except (TypeError, ValueError):
        pass
    return _must_be(_DAY, plain, problems)


def _maybe(step: Step) -> Step:
    return lambda value, problems: None if value is None else step(value, problems)


def _choice(allowed: tuple[str, ...]) -> Step:
    words = f"one of {', '.join(map(repr, allowed))}"

    def check(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, str):
            return _must_be(words, value, problems)
        if value not in allowed:
            problems.append(f" must be {words}. Got {shown(value)} instead.")
        return value

    return check


def _several(step: Step, given: Any, words: str, made: Callable[[list[Any]], Any]) -> Step:
    """Convert any number of things of one kind."""

    def convert(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, given):
            return _must_be(words, value, problems) or []
        before = len(problems)
        found = [_at(i, step, one, problems) for i, one in enumerate(value)]
        return made(found) if len(problems) == before else []

    return convert


def _fixed(steps: tuple[Step, ...], made: Callable[[list[Any]], Any]) -> Step:
    """Convert a tuple with a place for each of its values."""

    def convert(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(steps):
            problems.append(f" must have {len(steps)} values.")
            return []
        return made([step(one, problems) for step, one in zip(steps, value, strict=True)])

    return convert


def _named(step: Step, made: Callable[[Any], Any]) -> Step:
    """Convert a mapping of text to things of one kind."""

    def convert(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, Mapping):
            return _must_be("a mapping", value, problems)
        before = len(problems)
        for key in value:
            _at(".a key", _text, key, problems)
        names = made(value) if len(problems) == before else ()
        return {name: _at(f".{shown(name)}", step, value[name], problems) for name in names}

    return convert


@cache
def _attributes(kind: Any) -> dict[str, tuple[Step, Step, Any]]:
    """Return how the attributes of a dataclass are written and read, and their plain defaults."""
    hints, found = typing.get_type_hints(kind), {}
    for one in fields(kind):
        made = one.default if one.default_factory is MISSING else one.default_factory()
        write, read = _shape(hints[one.name])
        found[one.name] = write, read, _ABSENT if made is MISSING else write(made, [])
    return found


def _record(kind: Any) -> Shape:
    """Convert a dataclass of the model."""
    known = _attributes(kind)

    def write(value: Any, problems: list[str]) -> Any:
        if type(value) is not kind:
            return _must_be(f"a {kind.__name__}", value, problems)
        plain = {}
        for name, (step, _, default) in known.items():
            one = _at(f".{name}", step, getattr(value, name), problems)
            if one != default:
                plain[name] = one
        return plain

    def read(plain: Any, problems: list[str]) -> Any:
        if not isinstance(plain, dict):
            return _must_be("an object", plain, problems)
        start = len(problems)
        values = decode_attributes(kind, plain, problems)
        missing = [n for n, (*_, default) in known.items() if default is _ABSENT and n not in plain]
        problems += [f".{name} is missing. Give it." for name in missing]
        return kind(**values) if len(problems) == start else None

    return write, read


_SINGLE: dict[Any, Shape] = {
    str: (_text, _text),
    bool: (_fits("true or false", lambda value: type(value) is bool),) * 2,
    int: (
        _fits(
            f"a whole number of at most {_LARGEST:,}",
            lambda value: type(value) is int and abs(value) <= _LARGEST,
        ),
    )
    * 2,
    float: (_write_number, _read_number),
    datetime.date: (
        lambda day, found: (
            day.isoformat() if type(day) is datetime.date else _must_be(_DAY, day, found)
        ),
        _read_day,
    ),
}


@cache
def _shape(hint: Any) -> Shape:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SINGLE:
        return _SINGLE[hint]
    if is_dataclass(hint):
        return _record(hint)
    if origin is typing.Literal:
        return (_choice(inner),) * 2
    if origin in (typing.Union, types.UnionType):
        (only,) = (_shape(one) for one in inner if one is not type(None))
        return _maybe(only[0]), _maybe(only[1])
    if origin is frozenset:
        write, read = _shape(inner[0])
        return (
            _several(write, (set, frozenset), "a frozenset", sorted),
            _several(read, list, "a list", frozenset),
        )
    if origin is tuple and inner[-1] is Ellipsis:
        write, read = _shape(inner[0])
        return _several(write, tuple, "a tuple", list), _several(read, list, "a list", tuple)
    if origin is tuple:
        each = [_shape(one) for one in inner]
        return _fixed(tuple(s[0] for s in each), list), _fixed(tuple(s[1] for s in each), tuple)
    if origin is Mapping:
        write, read = _shape(inner[1])
        return _named(write, sorted), _named(read, list)
    raise TypeError(f"{hint} has no plain form")
