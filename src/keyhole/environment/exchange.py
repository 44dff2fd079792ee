"""Environments where they are kept: a JSON file that reads back as the same, or a store.

Equal environments give the same bytes: things are sorted by name and stand on a line each, so
that two files can be compared line by line.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.files import write_whole
from keyhole.core.names import repeated, shown
from keyhole.core.options import Problem
from keyhole.core.toml import open_utf8
from keyhole.environment.model import Environment
from keyhole.environment.plain import decode, encode_thing
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError, OptionError

if TYPE_CHECKING:
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
    """Read JSON in which each key of an object stands once; `name` is for messages.

    Nesting without end and numbers of thousands of digits are refused here too.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key = shown(repeated(name for name, _ in pairs)[0])
            raise FileError(f"{name!r}: the key {key} stands twice in an object. Keep one.")
        return found

    def refuse(_: str) -> Any:
        raise FileError(f"{name!r} has NaN or Infinity, which are not JSON. Take it out.")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{name!r} must be JSON. Got something else at line {error.lineno}, column "
            f"{error.colno} instead: {error.msg}."
        ) from None
    except (RecursionError, OverflowError, ValueError):
        raise FileError(
            f"{name!r} is nested too deeply, or holds a number that is too long. Write it anew."
        ) from None


def from_json(text: str, *, name: str = "environment") -> Environment:
    """Make the environment that was given as JSON text; `name` is for messages."""
    from keyhole.environment.soundness import KINDS, ordered, require_sound

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
    things = {}
    for kind in KINDS:
        listed = plain.pop(kind.attribute, [])
        if not isinstance(listed, list):
            problems.append(f"{kind.attribute} must be a list.")
            continue
        things[kind.attribute] = tuple(
            decode(kind.type, one, f"{kind.attribute}[{i}]", problems)
            for i, one in enumerate(listed)
        )
    problems += [f"{shown(key)} is no part of an environment. Leave it out." for key in plain]
    require_none((f"{name!r}: {problem}" for problem in problems), FileError)
    environment = Environment(**things)
    try:
        require_sound(environment)
    except InputError as error:
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None
    return ordered(environment)


def write_environment(
    environment: Environment, path: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write an environment as one JSON file, whole or not at all; `force` replaces a file."""
    content = environment_to_json(environment).encode()
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(content)
    return Path(path)


def read_environment(path: str | os.PathLike[str]) -> Environment:
    """Read an environment that `write_environment` wrote, or say all that is wrong with it."""
    return from_json(open_utf8(path, "Export the environment anew."), name=Path(path).name)


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
    """Read an environment from a ``.json`` file, an SQLite file or a PostgreSQL URL.

    Nothing is changed there. An environment is its own place, and so is its graph.
    """
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
            "{0!r} is an exported environment, which is only read. Make a store of it first: "
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
