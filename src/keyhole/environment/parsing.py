"""JSON that somebody wrote: what cannot be read is told in one way.

Text that is nested without end, numbers of thousands of digits and keys that stand twice are
refused here, so that no reader has to think of them.
"""

from __future__ import annotations

import json
from typing import Any

from keyhole.core.names import repeated, shown
from keyhole.errors import FileError


def parse_json(text: str, name: str) -> Any:
    """Read JSON in which each key of an object stands once; `name` is for messages.

    Examples
    --------
    >>> parse_json('{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: 'x.json': the key 'a' stands twice in an object. Keep one.
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
