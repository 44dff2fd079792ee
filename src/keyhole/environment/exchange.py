"""Exchange of environments: a JSON file that reads back as the same, or a store.

Equal environments give the same bytes: things, mappings and sets are sorted, and things stand on a
line each. A frozen dataclass becomes an object whose keys are its attributes in their order. An
attribute that has its default is left out, so a default must not change its meaning without a new
version of what is stored.

Whoever writes or reads a value adds what is wrong with it to a list of problems. A problem
begins with the way to its value (``.fields[0].label must be text``); whoever holds the value
puts their step in front.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.names import nearest, quoted, repeated, shown
from keyhole.core.options import Problem
from keyhole.core.toml import open_utf8
from keyhole.environment.wording import require_none, write_text
from keyhole.errors import FileError, InputError, OptionError

if TYPE_CHECKING:
    from keyhole.environment.model import Environment
    from keyhole.environment.store import Store

SCHEMA = 2
_MARK = "keyhole_environment"


def environment_to_json(environment: Environment) -> str:
    """Give an environment as JSON text."""
    from keyhole.environment.soundness import KINDS, ordered, require_sound

    require_sound(environment)
    held = ordered(environment)
    parts = [f'"{_MARK}": {SCHEMA}']
    for kind in KINDS:
        plain = (encode_thing(one, []) for one in kind.of(held))
        lines = [f"\n  {json.dumps(one, ensure_ascii=False)}" for one in plain]
        if lines:
            parts.append(f'"{kind.attribute}": [{",".join(lines)}]')
    return "{" + ",\n ".join(parts) + "}\n"


def parse_json(text: str, name: str) -> Any:
    """Read JSON in which each key of an object stands once; `name` is for messages."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key = shown(repeated(name for name, _ in pairs)[0])
            raise FileError(f"{name!r}: the key {key} occurs twice in an object. Keep one.")
        return found

    def refuse(_: str) -> Any:
        raise FileError(f"{name!r} has NaN or Infinity, which are not JSON. Remove it.")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{name!r} must be JSON. Got something else at line {error.lineno}, column "
            f"{error.colno} instead: {error.msg}."
        ) from None
    except (RecursionError, OverflowError, ValueError):
        raise FileError(
            f"{name!r} is nested too deeply, or holds a number that is too long. Export it again."
        ) from None


def from_json(text: str, *, name: str = "environment") -> Environment:
    """Make the environment that was given as JSON text; `name` is for messages."""
    from keyhole.environment.model import Environment
    from keyhole.environment.soundness import ordered, require_sound

    plain = parse_json(text, name)
    if not isinstance(plain, dict) or _MARK not in plain:
        raise FileError(
            f"{name!r} must be an environment that keyhole exported, with {_MARK!r} at its "
            f"beginning. Got other JSON instead."
        )
    schema = plain.pop(_MARK)
    if type(schema) is not int or schema < 1:
        raise FileError(f"{name!r}: {_MARK!r} must be the number of a schema, such as {SCHEMA}.")
    if schema > SCHEMA:
        raise FileError(
            f"{name!r} has schema {schema}, which a newer keyhole wrote; this one reads up to "
            f"{SCHEMA}. Install the newer keyhole."
        )
    problems: list[str] = []
    environment = decode(Environment, plain, "", problems)
    require_none((f"{name!r}: {problem.lstrip('.')}" for problem in problems), FileError)
    try:
        require_sound(environment)
    except InputError as error:
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None
    return ordered(environment)


def write_environment(
    environment: Environment, path: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write an environment as one JSON file, whole or not at all; `force` replaces a file."""
    return write_text(path, environment_to_json(environment), force=force)


def read_environment(path: str | os.PathLike[str]) -> Environment:
    """Read an environment that `write_environment` wrote, or say all that is wrong with it."""
    return from_json(open_utf8(path, "Export the environment again."), name=Path(path).name)


@cache
def example_environment() -> Environment:
    """Return an example environment, matched to the example world of veterans.

    Fifteen forms in five sectors, twenty constructs, eight public sources, a target that describes
    the columns of `keyhole.data.examples.veterans`, and scenarios. Nothing in it was collected; its
    codings were written by us in the manner of American forms, not copied from any.

    Examples
    --------
    >>> environment = example_environment()
    >>> len(environment.forms), len({form.sector for form in environment.forms})
    (15, 5)
    >>> [scenario.name for scenario in environment.scenarios if not scenario.restricted]
    ['journalist', 'nosy neighbour']
    """
    return read_environment(Path(__file__).with_name("example.json"))


def is_exported(place: str | os.PathLike[str]) -> bool:
    """Tell whether a place is an exported environment, which is read and never written."""
    text = os.fspath(place)
    return "://" not in text and Path(text).suffix.lower() == ".json"


def read_place(place: Any) -> Environment:
    """Read an environment from a ``.json`` file, an SQLite file or a URL; one is its own place."""
    if not isinstance(place, str | os.PathLike):
        held: Environment = getattr(place, "environment", place)
        return held
    if is_exported(place):
        return read_environment(place)
    from keyhole.environment.store import open_store

    return open_store(place, writing=False).read().environment


def open_writing(place: str | os.PathLike[str], *, create: bool = False) -> Store:
    """Open a store to be written; what is exported is only read."""
    from keyhole.environment.store import open_store

    if not isinstance(place, str | os.PathLike):
        template = "{store} must be the place of a store, to be written to. Got an environment."
        raise OptionError(Problem(template))
    if is_exported(place):
        template = (
            "{0!r} is an exported environment, which is read-only. Make a store from it first: "
            "`keyhole environment init` with {from_}."
        )
        raise OptionError(Problem(template, os.fspath(place)))
    return open_store(place, create=create)


def current_user() -> str:
    """Return who is working, for the history of a store."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody has this number here
        return "unknown"


_ABSENT = object()
_LARGEST = 2**31 - 1
_INFINITIES: dict[Any, float] = {"inf": math.inf, "-inf": -math.inf}
Converter = Callable[[Any, list[str], bool], Any]
"""Makes the plain form of a value (the last argument: writing), or the value of a plain form."""


def encode_thing(value: Any, problems: list[str]) -> Any:
    """Give a thing of the model as plain values, and add to the problems what cannot be kept."""
    found: list[str] = []
    plain = _record(type(value), value, found, True)
    problems += [problem.lstrip(".") for problem in found]
    return plain


def decode(kind: type, plain: Any, where: str, problems: list[str]) -> Any:
    """Make a thing of the model from plain values; useless if there were problems."""
    return _at(where, partial(_record, kind), plain, problems, False)


def decode_attributes(kind: Any, plain: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Make those attributes of a thing that are given and fit; the problems say what does not."""
    known, values = _plan(kind), {}
    for name, value in plain.items():
        if name not in known:
            near = nearest(name, list(known))
            hint = f"Did you mean {quoted(near[:1])}?" if near else f"Known are {', '.join(known)}."
            problems.append(f".{shown(name)} is unknown. {hint}")
            continue
        before = len(problems)
        values[name] = _at(f".{name}", known[name][0], value, problems, False)
        if len(problems) > before:
            del values[name]
    return values


def _at(where: str, convert: Converter, value: Any, problems: list[str], writing: bool) -> Any:
    """Convert a value, and put the way there before the problems that it has."""
    before = len(problems)
    found = convert(value, problems, writing)
    if len(problems) > before:
        problems[before:] = [f"{where}{problem}" for problem in problems[before:]]
    return found


@cache
def _converter(hint: Any) -> Converter:
    """Return what converts a value of the model to its plain form, and back."""
    if hint in _SINGLE:
        return _SINGLE[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return partial(_record, hint)
    if origin in (typing.Union, types.UnionType):
        one = _converter(next(part for part in inner if part is not type(None)))
        return lambda value, problems, writing: (
            None if value is None else one(value, problems, writing)
        )
    if origin is typing.Literal:
        return partial(_word, inner)
    if origin is Mapping:
        return partial(_mapping, _converter(inner[0]), _converter(inner[1]))
    if origin is tuple and inner[-1] is not Ellipsis:  # with a place for each of its values
        return partial(_places, [*map(_converter, inner)])
    return partial(_several, _converter(inner[0]), origin)


def _word(known: Sequence[str], value: Any, problems: list[str], _: bool) -> Any:
    if value not in known:
        got = shown(value) if type(value) is str else _kind(value)
        problems.append(f" must be one of {', '.join(map(repr, known))}. Got {got} instead.")
    return value


def _mapping(
    key: Converter, convert: Converter, value: Any, problems: list[str], writing: bool
) -> Any:
    if not isinstance(value, Mapping):
        return _must_be("a mapping", value, problems)
    before = len(problems)
    for name in value:
        _at(".a key", key, name, problems, writing)
    names = (sorted(value) if writing else value) if len(problems) == before else ()
    return {name: _at(f".{shown(name)}", convert, value[name], problems, writing) for name in names}


def _places(each: Sequence[Converter], value: Any, problems: list[str], writing: bool) -> Any:
    if not isinstance(value, tuple | list) or len(value) != len(each):
        return problems.append(f" must have {len(each)} values.")
    found = [convert(one, problems, writing) for convert, one in zip(each, value, strict=True)]
    return found if writing else tuple(found)


def _several(
    convert: Converter, origin: Any, value: Any, problems: list[str], writing: bool
) -> Any:
    given, before = origin if writing else list, len(problems)
    if not isinstance(value, (set, frozenset) if given is frozenset else given):
        return _must_be(f"a {given.__name__}", value, problems)
    found = [_at(f"[{i}]", convert, one, problems, writing) for i, one in enumerate(value)]
    if len(problems) > before:
        return None
    return (sorted(found) if origin is frozenset else found) if writing else origin(found)


@cache
def _plan(kind: Any) -> dict[str, tuple[Converter, Any]]:
    """Return how each attribute of a dataclass is converted, and its plain default."""
    hints, found = typing.get_type_hints(kind), {}
    for one in fields(kind):
        convert = _converter(hints[one.name])
        made = one.default if one.default_factory is MISSING else one.default_factory()
        found[one.name] = convert, _ABSENT if made is MISSING else convert(made, [], True)
    return found


def _record(kind: Any, value: Any, problems: list[str], writing: bool) -> Any:
    fits = type(value) is (kind if writing else dict)
    if writing and fits:
        plain = {}
        for name, (convert, default) in _plan(kind).items():
            one = _at(f".{name}", convert, getattr(value, name), problems, True)
            if one != default:
                plain[name] = one
        return plain
    if not fits:
        return _must_be(f"a {kind.__name__}" if writing else "an object", value, problems)
    with suppress(TypeError):  # most forms ask the same: equal parts are made once
        if (found := _made(kind, *value, *value.values())) is not None:
            return found
    return _new_record(kind, value, problems)


def _new_record(kind: Any, plain: dict[str, Any], problems: list[str]) -> Any:
    start = len(problems)
    values = decode_attributes(kind, plain, problems)
    needed = (name for name, (_, default) in _plan(kind).items() if default is _ABSENT)
    problems += [f".{name} is missing. Give it." for name in needed if name not in plain]
    return kind(**values) if len(problems) == start else None


@lru_cache(maxsize=20_000, typed=True)
def _made(kind: Any, *parts: Any) -> Any:
    half = len(parts) // 2
    return _new_record(kind, dict(zip(parts[:half], parts[half:], strict=True)), [])


_NAMES = {str: "text", bool: "true or false", dict: "an object", list: "a list", int: "a number"}


def _kind(value: Any) -> str:
    """Describe a value by its kind, never by itself."""
    if type(value) is float:
        return "a number" if value == value else "not a number (NaN)"
    return "nothing" if value is None else _NAMES.get(type(value), f"a {type(value).__name__}")


def _must_be(wanted: str, value: Any, problems: list[str]) -> Any:
    problems.append(f" must be {wanted}. Got {_kind(value)} instead.")


def _text(value: Any, problems: list[str], _: bool) -> Any:
    if type(value) is not str:
        _must_be("text", value, problems)
    elif "\0" in value:
        problems.append(" must have no NUL character. Remove it.")
    elif not value.isascii() and value.encode("utf-8", "replace").decode() != value:
        problems.append(
            " must be text that UTF-8 can write. Got half a character (a lone surrogate) "
            "instead: decode the text again."
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
    return _must_be("a day (2026-11-16)", value, problems)


_SINGLE: dict[Any, Converter] = {
    str: _text,
    bool: _flag,
    int: _whole,
    float: _number,
    datetime.date: _day,
}
