"""What is wrong with options, told before the file is read and together with its problems."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.cli import lists
from keyhole.errors import InputError

__all__ = ["name_problems", "read_names"]


def read_names(text: str | None, option: str, problems: list[str]) -> tuple[str, ...]:
    """Read the names of columns; what is wrong with them is added to the problems.

    Examples
    --------
    >>> problems = []
    >>> read_names("sex,,age", "--keys", problems), problems
    ((), ['--keys must not have an empty name. Check its commas and bars.'])
    """
    try:
        return lists.names(text, option)
    except InputError as error:
        problems += error.problems
        return ()


def name_problems(option: str, named: Iterable[str], known: Iterable[str]) -> list[str]:
    """Say of each variable that an option names in vain so.

    Examples
    --------
    >>> name_problems("--values", ["agee"], ["age", "sex"])
    ["--values names 'agee', which is not among the variables 'age', 'sex'."]
    """
    from keyhole.core.names import quoted

    listed = list(known)
    return [
        f"{option} names {name!r}, which is not among the variables {quoted(listed)}."
        for name in named
        if name not in listed
    ]
