"""What is wrong with options, told before the file is read and together with its problems."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["name_problems"]


def name_problems(option: str, named: Iterable[str], known: Iterable[str]) -> list[str]:
    """Say of each variable that an option names in vain so.

    Examples
    --------
    >>> name_problems("--values", ["agee"], ["age", "sex"])
    ["--values names 'agee', which is not among the variables 'age', 'sex'."]
    """
    from keyhole.data.naming import quoted

    listed = list(known)
    return [
        f"{option} names {name!r}, which is not among the variables {quoted(listed)}."
        for name in named
        if name not in listed
    ]
