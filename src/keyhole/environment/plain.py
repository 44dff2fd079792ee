"""What the model holds as plain values (as JSON has them), and back, by its annotations.

Nothing is written by hand for a class: a frozen dataclass becomes an object whose keys are its
attributes in their order. An attribute that has its default is left out, so a default must not
change its meaning without a new version of what is stored. Mappings and sets are sorted: equal
things give equal text.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

from keyhole.core.names import shown

Where = tuple[str | int, ...]
_ABSENT = object()
_LARGEST = 2**31 - 1


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
    kind: type = type(value)
    return _record(kind).encode(value, (), problems)


def decode(kind: type, plain: Any, where: Where, problems: list[str]) -> Any:
    """Make a thing of the model from plain values; useless if there were problems.

    Examples
    --------
    >>> from keyhole.environment.model import Organisation
    >>> decode(Organisation, {"name": "Registry"}, ("organisations", 0), [])
    Organisation(name='Registry', sector='')
    """
    return _record(kind).decode(plain, where, problems)


class _Shape:
    """How values of one kind are written and read; `wanted` says what they must be."""

    wanted: ClassVar[str] = ""

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        """Give the plain value, or add to the problems."""
        raise TypeError(f"{type(self).__name__}, at {_path(where)}: {value}, {problems}")

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        """Give what the plain value stands for; where nothing is said, it is the same."""
        return self.encode(plain, where, problems)

    def complain(self, value: Any, where: Where, problems: list[str]) -> None:
        problems.append(f"{_path(where)} must be {self.wanted}. Got {_kind(value)} instead.")


class _Text(_Shape):
    wanted = "text"

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if type(value) is not str:
            self.complain(value, where, problems)
        elif "\0" in value:
            problems.append(f"{_path(where)} must have no NUL character. Take it out.")
        elif not value.isascii() and not _encodable(value):
            problems.append(
                f"{_path(where)} must be text that UTF-8 can write. Got half a character (a lone "
                f"surrogate) instead: decode the text anew."
            )
        return value


class _Choice(_Shape):
    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.allowed = allowed

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if value not in self.allowed:
            got = shown(value) if isinstance(value, str) else _kind(value)
            words = ", ".join(map(repr, self.allowed))
            problems.append(f"{_path(where)} must be one of {words}. Got {got} instead.")
        return value


class _Flag(_Shape):
    wanted = "true or false"

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if type(value) is not bool:
            self.complain(value, where, problems)
        return value


class _Whole(_Shape):
    wanted = f"a whole number of at most {_LARGEST:,}"

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if type(value) is not int or abs(value) > _LARGEST:
            self.complain(value, where, problems)
        return value


class _Number(_Shape):
    """JSON has no infinity: it is written as text."""

    wanted = "a number"
    names: ClassVar[dict[Any, float]] = {"inf": math.inf, "-inf": -math.inf}

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        number = self._number(value)
        if number is None:
            self.complain(value, where, problems)
            return None
        return str(number) if math.isinf(number) else number

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        number = self.names[plain] if isinstance(plain, str) and plain in self.names else plain
        if self._number(number) is None:
            self.complain(plain, where, problems)
        return self._number(number)

    @staticmethod
    def _number(value: Any) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return None
        try:
            return float(value) + 0.0  # minus zero is zero
        except OverflowError:
            return None


class _Day(_Shape):
    wanted = "a day (2026-11-16)"

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if type(value) is not datetime.date:
            self.complain(value, where, problems)
            return None
        return value.isoformat()

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        try:
            day = datetime.date.fromisoformat(plain)
            if day.isoformat() == plain:
                return day
        except (TypeError, ValueError):
            pass
        return self.complain(plain, where, problems)


@dataclasses.dataclass(frozen=True)
class _Maybe(_Shape):
    inner: _Shape

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        return None if value is None else self.inner.encode(value, where, problems)

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        return None if plain is None else self.inner.decode(plain, where, problems)


@dataclasses.dataclass(frozen=True)
class _Several(_Shape):
    """Any number of things of one kind, in order; or sorted, where a set has no order."""

    wanted = "a list"
    inner: _Shape
    made: Callable[[Any], Any] = tuple

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        kinds = tuple if self.made is tuple else (set, frozenset)
        if not isinstance(value, kinds):
            problems.append(
                f"{_path(where)} must be a {self.made.__name__}. Got {_kind(value)} instead."
            )
            return []
        before = len(problems)
        plain = [self.inner.encode(v, (*where, i), problems) for i, v in enumerate(value)]
        return sorted(plain) if self.made is frozenset and len(problems) == before else plain

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(plain, list):
            return self.complain(plain, where, problems)
        before = len(problems)
        found = [self.inner.decode(v, (*where, i), problems) for i, v in enumerate(plain)]
        return self.made(found) if len(problems) == before else None


@dataclasses.dataclass(frozen=True)
class _Fixed(_Shape):
    """A tuple with a place for each of its values."""

    inner: tuple[_Shape, ...]

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(self.inner):
            problems.append(f"{_path(where)} must have {len(self.inner)} values.")
            return []
        pairs = enumerate(zip(self.inner, value, strict=True))
        return [shape.encode(one, (*where, i), problems) for i, (shape, one) in pairs]

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(plain, list) or len(plain) != len(self.inner):
            problems.append(f"{_path(where)} must be a list of {len(self.inner)} values.")
            return None
        pairs = enumerate(zip(self.inner, plain, strict=True))
        return tuple(shape.decode(one, (*where, i), problems) for i, (shape, one) in pairs)


@dataclasses.dataclass(frozen=True)
class _Named(_Shape):
    """A mapping of text to things of one kind."""

    wanted = "a mapping"
    inner: _Shape

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(value, Mapping):
            return self.complain(value, where, problems)
        before = len(problems)
        for key in value:
            _TEXT.encode(key, (*where, "a key"), problems)
        names = sorted(value) if len(problems) == before else ()
        return {n: self.inner.encode(value[n], (*where, shown(n)), problems) for n in names}

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(plain, dict):
            return self.complain(plain, where, problems)
        for key in plain:
            _TEXT.decode(key, (*where, "a key"), problems)
        return {
            name: self.inner.decode(one, (*where, shown(name)), problems)
            for name, one in plain.items()
        }


class _Record(_Shape):
    """A dataclass of the model."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        hints = typing.get_type_hints(kind)
        self.shapes = {f.name: _shape(hints[f.name]) for f in dataclasses.fields(kind)}
        self.defaults = {f.name: self._default(f) for f in dataclasses.fields(kind)}

    def _default(self, field: dataclasses.Field[Any]) -> Any:
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is dataclasses.MISSING:
            return _ABSENT
        return self.shapes[field.name].encode(default, (), [])

    def encode(self, value: Any, where: Where, problems: list[str]) -> Any:
        if type(value) is not self.kind:
            problems.append(
                f"{_path(where)} must be a {self.kind.__name__}. Got {_kind(value)} instead."
            )
            return None
        plain = {}
        for name, shape in self.shapes.items():
            one = shape.encode(getattr(value, name), (*where, name), problems)
            if one != self.defaults[name]:
                plain[name] = one
        return plain

    def decode(self, plain: Any, where: Where, problems: list[str]) -> Any:
        if not isinstance(plain, dict):
            problems.append(f"{_path(where)} must be an object. Got {_kind(plain)} instead.")
            return None
        before = len(problems)
        for name in plain.keys() - self.shapes.keys():
            problems.append(
                f"{_path(where)} has an attribute {shown(name)}, which is unknown. Known "
                f"are {', '.join(self.shapes)}."
            )
        for name, default in self.defaults.items():
            if default is _ABSENT and name not in plain:
                problems.append(f"{_path((*where, name))} is missing. Give it.")
        values = {
            name: self.shapes[name].decode(one, (*where, name), problems)
            for name, one in plain.items()
            if name in self.shapes
        }
        return self.kind(**values) if len(problems) == before else None


_TEXT = _Text()
_SINGLE: dict[Any, _Shape] = {
    str: _TEXT,
    bool: _Flag(),
    int: _Whole(),
    float: _Number(),
    datetime.date: _Day(),
}


@cache
def _record(kind: type) -> _Record:
    return _Record(kind)


def _shape(hint: Any) -> _Shape:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SINGLE:
        return _SINGLE[hint]
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    if origin is typing.Literal:
        return _Choice(inner)
    if origin in (typing.Union, types.UnionType):
        (only,) = (one for one in inner if one is not type(None))
        return _Maybe(_shape(only))
    if origin is frozenset:
        return _Several(_shape(inner[0]), frozenset)
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return _Several(_shape(inner[0]))
        return _Fixed(tuple(_shape(one) for one in inner))
    if origin is Mapping:
        return _Named(_shape(inner[1]))
    raise TypeError(f"{hint} has no plain form")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(where: Where) -> str:
    """Write the way to a value: ``forms[3].fields[0].label``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).lstrip(".") or "this"


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
