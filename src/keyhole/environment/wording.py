"""Problems and long texts of an environment, cut to what a reader can take in."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.errors import InputError

MOST = 100
"""Problems that are told; of more, only their number."""

LONGEST = 60
"""Characters of a name that are shown; a longer one is cut."""


def short(text: str, most: int = LONGEST) -> str:
    """Cut a long name or text for a table.

    Examples
    --------
    >>> short("sex"), len(short("a" * 200)), short("a" * 200)[-2:]
    ('sex', 60, 'a…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def require_none(problems: Iterable[str], kind: type[InputError] = InputError) -> None:
    """Raise the problems, if there are any, all at once.

    Examples
    --------
    >>> require_none([])
    >>> require_none(f"form {i} has no name" for i in range(102))
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: form 0 has no name
    ...
    and 2 more problems
    """
    found = list(problems)
    if len(found) > MOST:
        found[MOST:] = [f"and {len(found) - MOST:,} more problems"]
    if found:
        raise kind(found)
