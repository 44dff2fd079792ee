"""Names of columns as a review file writes them: taken as they stand, blanks and all."""

from __future__ import annotations

import re

__all__ = ["alternatives"]

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


def _plain(part: str) -> str:
    quoted = len(part) > 1 and part[0] == part[-1] == '"'
    return part[1:-1].replace('""', '"') if quoted else part
