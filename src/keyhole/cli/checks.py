"""What is wrong with options, told before the file is read and together with its problems."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["limit_problems", "name_problems"]


def limit_problems(**limits: float | None) -> list[str]:
    """Say of each limit that is no share so.

    Examples
    --------
    >>> limit_problems(limit=0.1, drop_limit=1.5)
    ['drop limit must be a fraction from 0 to 1. Got 1.5 instead.']
    """
    return [
        f"{name.replace('_', ' ')} must be a fraction from 0 to 1. Got {value!r} instead."
        for name, value in limits.items()
        if value is not None and not 0 <= value <= 1
    ]


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
