"""TOML and JSON that somebody wrote: what cannot be read is told in one way.

Text that is nested without end, numbers of thousands of digits and keys that stand twice are
refused here, so that no reader has to think of them.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from keyhole.core.names import repeated, shown
from keyhole.errors import FileError


class _RepeatedKeyError(ValueError):
    """A key stands twice in one object."""


class _NoNumberError(ValueError):
    """NaN or an infinite number, which JSON does not have."""


def open_utf8(path: str | os.PathLike[str], remedy: str) -> str:
    """Read a file of UTF-8 text, or say why it cannot be."""
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise FileError(f"{str(file)!r} must be a file. Got a folder or a device instead.")
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileError(f"{str(file)!r} does not exist. Check the path.") from None
    except UnicodeDecodeError:
        raise FileError(f"{file.name!r} is not UTF-8 text. {remedy}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the system refuses"
        raise FileError(f"{str(file)!r} cannot be read: {reason}. Check the path.") from None


def open_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file, or say why it cannot be."""
    return parse_toml(open_utf8(path, "Save it as UTF-8."), Path(path).name)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Read TOML; `name` is for messages.

    Examples
    --------
    >>> parse_toml("a = 1", "x.toml")
    {'a': 1}
    >>> parse_toml("a = " + "[" * 100_000, "x.toml")
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: 'x.toml' is nested too deeply, or holds a number that is too long.
    Write it anew.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # A control character of the file is not shown.
        said = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(error))
        raise FileError(f"{name!r} must be TOML. {said}. Correct it there.") from None
    except (RecursionError, OverflowError, ValueError):
        raise FileError(_too_much(name)) from None


def parse_json(text: str, name: str) -> Any:
    """Read JSON in which each key of an object stands once; `name` is for messages.

    Examples
    --------
    >>> parse_json('{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: 'x.json': the key 'a' stands twice in an object. Keep one.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except _RepeatedKeyError as error:
        raise FileError(f"{name!r}: the key {error} stands twice in an object. Keep one.") from None
    except _NoNumberError:
        raise FileError(f"{name!r} has NaN or Infinity, which are not JSON. Take it out.") from None
    except json.JSONDecodeError as error:
        raise FileError(
            f"{name!r} must be JSON. Got something else at line {error.lineno}, column "
            f"{error.colno} instead: {error.msg}."
        ) from None
    except (RecursionError, OverflowError, ValueError):
        raise FileError(_too_much(name)) from None


def _too_much(name: str) -> str:
    return f"{name!r} is nested too deeply, or holds a number that is too long. Write it anew."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError(shown(repeated(name for name, _ in pairs)[0]))
    return found


def _no_constant(_: str) -> Any:
    raise _NoNumberError
