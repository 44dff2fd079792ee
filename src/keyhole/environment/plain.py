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
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

from keyhole.core.names import shown

Step = Callable[[Any, list[str]], Any]
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
    kind: type = type(value)
    plain = _record(kind).write(value, found)
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
    return _at(where, _record(kind).read, plain, problems)


class _Shape(NamedTuple):
    """How values of one kind are written, and read."""

    write: Step
    read: Step


def _at(where: str | int, step: Step, value: Any, problems: list[str]) -> Any:
    """Take a step, and put the way there before the problems that it found."""
    before = len(problems)
    found = step(value, problems)
    if len(problems) > before:
        way = f"[{where}]" if isinstance(where, int) else where
        problems[before:] = [f"{way}{problem}" for problem in problems[before:]]
    return found


def _must_be(wanted: str, value: Any, problems: list[str]) -> Any:
    problems.append(f" must be {wanted}. Got {_kind(value)} instead.")


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
    if type(value) is not bool:
        _must_be("true or false", value, problems)
    return value


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
    if type(value) is not datetime.date:
        return _must_be("a day (2026-11-16)", value, problems)
    return value.isoformat()


def _read_day(plain: Any, problems: list[str]) -> Any:
    try:
        day = datetime.date.fromisoformat(plain)
        if day.isoformat() == plain:
            return day
    except (TypeError, ValueError):
        pass
    return _must_be("a day (2026-11-16)", plain, problems)


def _choice(allowed: tuple[str, ...]) -> _Shape:
    def check(value: Any, problems: list[str]) -> Any:
        if value not in allowed:
            got = shown(value) if isinstance(value, str) else _kind(value)
            words = ", ".join(map(repr, allowed))
            problems.append(f" must be one of {words}. Got {got} instead.")
        return value

    return _Shape(check, check)


def _maybe(inner: _Shape) -> _Shape:
    def skipping_none(step: Step) -> Step:
        return lambda value, problems: None if value is None else step(value, problems)

    return _Shape(*map(skipping_none, inner))


def _each(step: Step, values: Any, problems: list[str]) -> list[Any]:
    return [_at(i, step, value, problems) for i, value in enumerate(values)]


def _several(inner: _Shape, made: type) -> _Shape:
    """Any number of things of one kind, in order; or sorted, where a set has no order."""

    def write(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, tuple if made is tuple else (set, frozenset)):
            _must_be(f"a {made.__name__}", value, problems)
            return []
        before = len(problems)
        plain = _each(inner.write, value, problems)
        return sorted(plain) if made is frozenset and len(problems) == before else plain

    def read(plain: Any, problems: list[str]) -> Any:
        if not isinstance(plain, list):
            return _must_be("a list", plain, problems)
        before = len(problems)
        found = _each(inner.read, plain, problems)
        return made(found) if len(problems) == before else None

    return _Shape(write, read)


def _fixed(inner: tuple[_Shape, ...]) -> _Shape:
    """A tuple with a place for each of its values."""

    def write(value: Any, problems: list[str]) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(inner):
            problems.append(f" must have {len(inner)} values.")
            return []
        return [shape.write(one, problems) for shape, one in zip(inner, value, strict=True)]

    def read(plain: Any, problems: list[str]) -> Any:
        if not isinstance(plain, list) or len(plain) != len(inner):
            problems.append(f" must be a list of {len(inner)} values.")
            return None
        return tuple(shape.read(one, problems) for shape, one in zip(inner, plain, strict=True))

    return _Shape(write, read)


def _named(inner: _Shape) -> _Shape:
    """A mapping of text to things of one kind."""

    def through(step: Step, kind: Any, made: Callable[[Any], Any]) -> Step:
        def convert(value: Any, problems: list[str]) -> Any:
            if not isinstance(value, kind):
                return _must_be("a mapping", value, problems)
            before = len(problems)
            for key in value:
                _at(".a key", _text, key, problems)
            names = made(value) if len(problems) == before else ()
            return {name: _at(f".{shown(name)}", step, value[name], problems) for name in names}

        return convert

    return _Shape(through(inner.write, Mapping, sorted), through(inner.read, dict, list))


@cache
def _record(kind: type) -> _Shape:
    """A dataclass of the model."""
    hints = typing.get_type_hints(kind)
    shapes = {f.name: _shape(hints[f.name]) for f in fields(kind)}
    defaults = {f.name: _default(f, shapes[f.name].write) for f in fields(kind)}
    needed = [name for name, default in defaults.items() if default is _ABSENT]
    steps = [(name, f".{name}", shape.write) for name, shape in shapes.items()]
    readers = {name: (f".{name}", shape.read) for name, shape in shapes.items()}

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
        problems += [f".{name} is missing. Give it." for name in needed if name not in plain]
        values = {n: _at(*readers[n], one, problems) for n, one in plain.items() if n in readers}
        return kind(**values) if len(problems) == start else None

    return _Shape(write, read)


def _default(field: Field[Any], write: Step) -> Any:
    if field.default_factory is not MISSING:
        return write(field.default_factory(), [])
    return _ABSENT if field.default is MISSING else write(field.default, [])


_SINGLE: dict[Any, _Shape] = {
    str: _Shape(_text, _text),
    bool: _Shape(_flag, _flag),
    int: _Shape(_whole, _whole),
    float: _Shape(_write_number, _read_number),
    datetime.date: _Shape(_write_day, _read_day),
}


def _shape(hint: Any) -> _Shape:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SINGLE:
        return _SINGLE[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    if origin is typing.Literal:
        return _choice(inner)
    if origin in (typing.Union, types.UnionType):
        (only,) = (one for one in inner if one is not type(None))
        return _maybe(_shape(only))
    if origin is frozenset or (origin is tuple and inner[-1] is Ellipsis):
        return _several(_shape(inner[0]), origin)
    if origin is tuple:
        return _fixed(tuple(map(_shape, inner)))
    if origin is Mapping:
        return _named(_shape(inner[1]))
    raise TypeError(f"{hint} has no plain form")


def _kind(value: Any) -> str:
    """Describe a value by its kind, never by itself."""
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    if value is None:
        return "nothing"
    if isinstance(value, float) and value != value:
        return "a number that is none (NaN)"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    return names.get(type(value), f"a {type(value).__name__}")
