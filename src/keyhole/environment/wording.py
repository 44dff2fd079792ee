"""How names and problems of an environment are put into messages."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.errors import InputError

__all__ = ["MOST", "require_none", "shown"]

MOST = 100
"""Problems that are told; of more, only their number."""

_LONGEST = 80


def shown(name: str) -> str:
    r"""Quote a name for a message: control characters escaped, a long one cut.

    Examples
    --------
    >>> print(shown("Claim\x1b[2J"), shown("a" * 200)[-8:])
    'Claim\x1b[2J' aaaa...'
    """
    text = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    return repr(text.encode("utf-8", "backslashreplace").decode())


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
