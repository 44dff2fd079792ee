"""The command and the Python line that do what a page does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from keyhole.core.equivalents import Equivalent, python_literal

__all__ = ["Equivalent", "equivalent", "review_lines"]


def equivalent(verb: str, source: str | None, options: Mapping[str, Any]) -> Equivalent:
    """Write a verb with its options; those that are None, false or empty are left out.

    Examples
    --------
    >>> both = equivalent("risk", "people.csv", {"keys": ["age", "home state"], "cutoff": 3})
    >>> print(both.command)
    keyhole risk people.csv --keys 'age,home state' --cutoff 3
    >>> print(both.python)
    keyhole.risk("people.csv", keys=["age", "home state"], cutoff=3)
    """
    given = {name: value for name, value in options.items() if not _is_left_out(value)}
    words = ["keyhole", verb, *([shlex.quote(source)] if source else [])]
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        word = "" if value is True else _word(value)
        # A value that begins like an option belongs to the one before it.
        words.append(option + "=" + shlex.quote(word) if word[:1] == "-" else option)
        words += [shlex.quote(word)] if word and word[0] != "-" else []
    arguments = [python_literal(source)] if source else []
    arguments += [f"{name}={python_literal(value)}" for name, value in given.items()]
    return Equivalent(" ".join(words), f"keyhole.{verb}({', '.join(arguments)})")


def review_lines(review: str, results: str) -> Equivalent:
    """Write how the whole review is run."""
    return Equivalent(
        f"keyhole review {shlex.quote(review)} --out {shlex.quote(results)}",
        f"keyhole.review({python_literal(review)}, out={python_literal(results)})",
    )


def _is_left_out(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, Sequence) and not value)


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_listed(str(one)) for one in value)
    return str(value)


def _listed(name: str) -> str:
    """Quote a name that would be taken for several in a list."""
    return '"' + name.replace('"', '""') + '"' if "," in name or name[:1] == '"' else name
