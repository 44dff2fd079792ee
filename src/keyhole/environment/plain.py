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

from keyhole.core.names import shown

Step = Callable[[Any, list[str]], Any]
Shape = tuple[Step, Step]
"""How values of one kind are written, and read."""
_ABSENT = object()
_LARGEST = 2**31 - 1
_INFINITIES: dict[Any, float] = {"inf": math.inf, "-inf": -math.inf}


def encode_thing(value: Any, problems: list[str]) -> Any:
    """Give a thing of the model as plain values, and add to the problems what cannot be kept.

    Examples
    --------
    >>> from keyhole.environment.model import Organisation
    >>> problems = []
    >>> encode_thing(Organisation("Registry", sector="health"), problems), problems
    ({'name': 'Registry', 'sector': 'health'}, [])
    >>> _ = encode_thing(Organisation("Registry", sector=None), problems)
    >>> problems
    ['sector must be text. Got nothing instead.']
    """
    found: list[str] = []
    kind: Any = type(value)
    plain = _shape(kind)[0](value, found)
    problems += [problem.lstrip(".") for problem in found]
    return plain


def decode(kind: type, plain: Any, where: str, problems: list[str]) -> Any:
    """Make a thing of the model from plain values; useless if there were problems.

    Examples
    --------
    >>> from keyhole.environment.model import Organisation
    >>> decode(Organisation, {"name": "Registry"}, "organisations[0]", [])
    Organisation(name='Registry', sector='')
    """
    return _at(where, _shape(kind)[1], plain, problems)


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


def _flag(value: Any, problems: list[str]) -> Any:
    return value if type(value) is bool else _must_be("true or false", value, problems)


def _whole(value: Any, problems: list[str]) -> Any:
    if type(value) is not int or abs(value) > _LARGEST:
        _must_be(f"a whole number of at most {_LARGEST:,}", value, problems)
    return value


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


def _write_day(value: Any, problems: list[str]) -> Any:
    fit = type(value) is datetime.date
    return value.isoformat() if fit else _must_be("a day (2026-11-16)", value, problems)


def _read_day(plain: Any, problems: list[str]) -> Any:
    try:
        day = datetime.date.fromisoformat(plain)
        if day.isoformat() == plain:
            return day
    except (TypeError, ValueError):
        pass
    return _must_be("a day (2026-11-16)", plain, problems)


def _maybe(step: Step) -> Step:
    return lambda value, problems: None if value is None else step(value, problems)


def _choice(allowed: tuple[str, ...]) -> Step:
    def check(value: Any, problems: list[str]) -> Any:
        if isinstance(value, str) and value not in allowed:
            words = ", ".join(map(repr, allowed))
            problems.append(f" must be one of {words}. Got {shown(value)} instead.")
        elif not isinstance(value, str):
            _must_be(f"one of {', '.join(map(repr, allowed))}", value, problems)
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


def _record(kind: Any) -> Shape:
    """Convert a dataclass of the model."""
    hints = typing.get_type_hints(kind)
    shapes = {f.name: _shape(hints[f.name]) for f in fields(kind)}
    defaults = {}
    for one in fields(kind):
        made = one.default if one.default_factory is MISSING else one.default_factory()
        defaults[one.name] = _ABSENT if made is MISSING else shapes[one.name][0](made, [])
    steps = [(name, f".{name}", shape[0]) for name, shape in shapes.items()]
    readers = {name: (f".{name}", shape[1]) for name, shape in shapes.items()}

    def write(value: Any, problems: list[str]) -> Any:
        if type(value) is not kind:
            return _must_be(f"a {kind.__name__}", value, problems)
        every = {n: _at(way, step, getattr(value, n), problems) for n, way, step in steps}
        return {name: one for name, one in every.items() if one != defaults[name]}

    def read(plain: Any, problems: list[str]) -> Any:
        if not isinstance(plain, dict):
            return _must_be("an object", plain, problems)
        start = len(problems)
        problems += [
            f" has an attribute {shown(name)}, which is unknown. Known are {', '.join(readers)}."
            for name in plain
            if name not in readers
        ]
        missing = [n for n, made in defaults.items() if made is _ABSENT and n not in plain]
        problems += [f".{name} is missing. Give it." for name in missing]
        values = {n: _at(*readers[n], one, problems) for n, one in plain.items() if n in readers}
        return kind(**values) if len(problems) == start else None

    return write, read


_SINGLE: dict[Any, Shape] = {
    str: (_text, _text),
    bool: (_flag, _flag),
    int: (_whole, _whole),
    float: (_write_number, _read_number),
    datetime.date: (_write_day, _read_day),
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
