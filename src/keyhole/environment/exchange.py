"""A whole environment as one JSON file, which reads back as the same environment.

Equal environments give the same bytes: things are sorted by name and stand on a line each, so
that two files can be compared line by line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyhole.core.files import write_whole
from keyhole.core.names import shown
from keyhole.core.toml import open_utf8
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
        plain = (encode_thing(one, []) for one in kind.of(held))
        lines = [f"\n  {json.dumps(one, ensure_ascii=False)}" for one in plain]
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
    return from_json(open_utf8(path, "Export the environment anew."), name=Path(path).name)
