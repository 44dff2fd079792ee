"""Names of columns and files: which were asked for and are not there, and which come near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["absent", "nearest", "quoted", "repeated"]


def quoted(names: Iterable[str], most: int = 10) -> str:
    """Write names for a message; a long list is cut and the rest counted.

    Examples
    --------
    >>> quoted(["age", "sex"]), quoted("abc", most=2)
    ("'age', 'sex'", "'a', 'b' and 1 more")
    """
    listed = list(names)
    rest = len(listed) - most
    text = ", ".join(map(repr, listed[:most]))
    return f"{text} and {rest} more" if rest > 0 else text


def nearest(name: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Return the names that come near a mistyped one, the nearest first.

    Examples
    --------
    >>> nearest("agee", ["sex", "age", "AGE"])
    ['age', 'AGE']
    >>> nearest("zzz", ["sex", "age"])
    []
    """
    from rapidfuzz import fuzz, process

    found = process.extract(
        name, names, scorer=fuzz.ratio, processor=str.casefold, limit=most, score_cutoff=60
    )
    ranked = sorted(found, key=lambda match: (-match[1], -fuzz.ratio(name, match[0]), match[2]))
    return [match[0] for match in ranked]


def absent(
    wanted: Iterable[str], names: Sequence[str], *, purpose: str = "", where: str = "the data"
) -> list[str]:
    """Say of each wanted column that is not there so, with the names that come near.

    Examples
    --------
    >>> absent(["agee"], ["age", "sex"], purpose="key")
    ["key 'agee' is not a column of the data. Did you mean 'age'?"]
    """
    known = set(names)
    return [
        f"{purpose or 'column'} {name!r} is not a column of {where}. {_remedy(name, names)}"
        for name in wanted
        if name not in known
    ]


def _remedy(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names) if name else []
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    if any(_like_a_value(name) for name in names):
        return f"Its {len(names)} columns have no usable names. Does its first line hold names?"
    return f"Its {len(names)} columns are {quoted(names)}." if names else "It has no columns."


def _like_a_value(name: str) -> bool:
    """Tell whether a name may be a record's value: then a message must not show it."""
    return "\n" in name or name.strip().lstrip("+-").replace(".", "", 1).isdigit()


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that come more than once, in order.

    Examples
    --------
    >>> repeated(["a", "b", "a"])
    ['a']
    """
    return [name for name, count in Counter(names).items() if count > 1]
