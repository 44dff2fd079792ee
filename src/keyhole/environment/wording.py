"""How names and problems of an environment are put into messages."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.errors import InputError

__all__ = ["MOST", "quoted", "require_none", "short", "shown"]

MOST = 100
"""Problems that are told; of more, only their number."""

LONGEST = 60
"""Characters of a name that are shown; a longer one is cut."""


def short(text: str) -> str:
    """Cut a long name or text for a table.

    Examples
    --------
    >>> short("sex"), len(short("a" * 200)), short("a" * 200)[-2:]
    ('sex', 60, 'a…')
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def shown(name: object) -> str:
    r"""Quote a name for a message: control characters escaped, a long one cut.

    Examples
    --------
    >>> print(shown("Claim\x1b[2J"), shown("a" * 200)[-6:])
    'Claim\x1b[2J' aaaa…'
    """
    if not isinstance(name, str):
        return short(repr(name))
    return repr(short(name).encode("utf-8", "backslashreplace").decode())


def quoted(names: Iterable[str], most: int = 10) -> str:
    """Write names for a message, each as `shown`; a long list is cut and the rest counted.

    Examples
    --------
    >>> quoted(["age", "sex"]), quoted("abc", most=2)
    ("'age', 'sex'", "'a', 'b' and 1 more")
    """
    listed = list(names)
    text = ", ".join(map(shown, listed[:most]))
    return f"{text} and {len(listed) - most:,} more" if len(listed) > most else text


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
