"""Names as a review file writes them: of columns, taken as they stand, and of scenarios."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["SCENARIO", "alternatives", "named_scenario"]

SCENARIO = "scenario:"
# Between bars stands a name, or a name in double quotes, in which a bar is a letter like others.
_PART = re.compile(r'("(?:[^"]|"")*"|[^|"][^|]*|)(\||$)')


def alternatives(candidate: str | list[str]) -> tuple[str, ...]:
    r"""Return the alternatives that a candidate names, the finest first.

    A bar parts them. A name that holds one stands in double quotes, a doubled one within standing
    for itself; or the alternatives are given as a list, whose names are taken as they are.

    Examples
    --------
    >>> alternatives("age|age10"), alternatives('"a|b"|c'), alternatives(["a|b"])
    (('age', 'age10'), ('a|b', 'c'), ('a|b',))
    """
    if isinstance(candidate, list):
        return tuple(candidate)
    parts: list[str] = []
    place, more = 0, True
    while more:
        match = _PART.match(candidate, place)
        if match is None:  # quotes that do not close, or stand inside a name, are letters
            return tuple(candidate.split("|"))
        parts.append(_plain(match[1]))
        place, more = match.end(), match[2] == "|"
    return tuple(parts)


def named_scenario(keys: Any) -> str | None:
    """Return the scenario that keys are those of: ``keys = "scenario:NAME"``.

    Examples
    --------
    >>> named_scenario("scenario:journalist"), named_scenario(["age"])
    ('journalist', None)
    """
    if isinstance(keys, str) and keys.startswith(SCENARIO):
        return keys.removeprefix(SCENARIO).strip()
    return None


def _plain(part: str) -> str:
    quoted = len(part) > 1 and part[0] == part[-1] == '"'
    return part[1:-1].replace('""', '"') if quoted else part
