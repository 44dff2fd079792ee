"""A whole environment as one JSON file, which reads back as the same environment.

Equal environments give the same bytes: things are sorted by name and stand on a line each, so
that two files can be compared line by line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from keyhole.core.files import write_whole
from keyhole.core.names import shown
from keyhole.environment.kinds import KINDS, ordered
from keyhole.environment.model import Environment
from keyhole.environment.parsing import parse_json
from keyhole.environment.plain import decode, encode_thing
from keyhole.environment.soundness import require_sound
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError

SCHEMA = 2
_MARK = "keyhole_environment"


def environment_to_json(environment: Environment) -> str:
    """Give an environment as JSON text.

    Examples
    --------
    >>> from keyhole.environment.model import Construct
    >>> print(environment_to_json(Environment(constructs=(Construct("SX", "sex"),))), end="")
    {"keyhole_environment": 2,
     "constructs": [
      {"letters": "SX", "name": "sex"}]}
    """
    require_sound(environment)
    held = ordered(environment)
    parts = [f'"{_MARK}": {SCHEMA}']
    for kind in KINDS:
        lines = [f"\n  {_line(encode_thing(one, []))}" for one in kind.of(held)]
        if lines:
            parts.append(f'"{kind.attribute}": [{",".join(lines)}]')
    return "{" + ",\n ".join(parts) + "}\n"


def from_json(text: str, *, name: str = "environment") -> Environment:
    """Make the environment that was given as JSON text; `name` is for messages.

    Examples
    --------
    >>> from_json('{"keyhole_environment": 1, "organisations": [{"nam": "Registry"}]}')
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: 'environment': organisations[0] has an attribute 'nam', which is
    unknown. Known are name, sector.
    'environment': organisations[0].name is missing. Give it.
    """
    plain = _parsed(text, name)
    _check_schema(plain, name)
    problems: list[str] = []
    things = {}
    for kind in KINDS:
        listed = plain.pop(kind.attribute, [])
        if not isinstance(listed, list):
            problems.append(f"{kind.attribute} must be a list.")
            continue
        places = enumerate(listed)
        things[kind.attribute] = tuple(
            decode(kind.type, one, f"{kind.attribute}[{i}]", problems) for i, one in places
        )
    problems += [f"{shown(key)} is no part of an environment. Leave it out." for key in plain]
    require_none((f"{name!r}: {problem}" for problem in problems), FileError)
    return _sound(Environment(**things), name)


def write_environment(
    environment: Environment, path: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write an environment as one JSON file, whole or not at all.

    Parameters
    ----------
    environment
        What is written.
    path
        The file to be written.
    force
        Replace the file if it exists.

    Returns
    -------
    Path
        The file that was written.
    """
    content = environment_to_json(environment).encode()
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(content)
    return Path(path)


def read_environment(path: str | os.PathLike[str]) -> Environment:
    """Read an environment that `write_environment` wrote, or say all that is wrong with it."""
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise FileError(f"{str(file)!r} must be a file. Got a folder or a device instead.")
        content = file.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{str(file)!r} does not exist. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the system refuses"
        raise FileError(f"{str(file)!r} cannot be read: {reason}. Check the path.") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{file.name!r} is not UTF-8 text. Export the environment anew.") from None
    return from_json(text, name=file.name)


def _line(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False)


def _parsed(text: str, name: str) -> dict[str, Any]:
    plain = parse_json(text, name)
    if not isinstance(plain, dict) or _MARK not in plain:
        raise FileError(
            f"{name!r} must be an environment that keyhole exported, with {_MARK!r} at its "
            f"beginning. Got other JSON instead."
        )
    return plain


def _check_schema(plain: dict[str, Any], name: str) -> None:
    schema = plain.pop(_MARK)
    if type(schema) is not int or schema < 1:
        raise FileError(f"{name!r}: {_MARK!r} must be the number of a schema, such as {SCHEMA}.")
    if schema > SCHEMA:
        raise FileError(
            f"{name!r} has schema {schema}, which a newer keyhole wrote; this one reads up to "
            f"{SCHEMA}. Install the newer keyhole."
        )


def _sound(environment: Environment, name: str) -> Environment:
    try:
        require_sound(environment)
    except InputError as error:
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None
    return ordered(environment)
