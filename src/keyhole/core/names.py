"""Names in messages: quoted, counted, repeated, missing, and the nearest to a mistyped one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

# Characters of a name that are shown, and up to which names are looked for that come near.
LONGEST = 60
LONGEST_SOUGHT = 500


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write a number of things."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def were(count: int) -> str:
    """Return the verb of a number of things."""
    return "was" if count == 1 else "were"


def printable(text: str) -> str:
    """Keep control characters of hostile names out of terminals, pages and pictures."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown(name: object) -> str:
    """Quote a name for a message: control characters escaped, a long one cut."""
    text = name if isinstance(name, str) else repr(name)
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    if not isinstance(name, str):
        return text
    return repr(text.encode("utf-8", "backslashreplace").decode())


def quoted(names: Iterable[str], most: int = 10) -> str:
    """Write names for a message; a long list is cut and the rest counted."""
    listed = list(names)
    rest = len(listed) - most
    text = ", ".join(map(shown, listed[:most]))
    return f"{text} and {rest:,} more" if rest > 0 else text


def nearest(name: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Return the names that come near a mistyped one, the nearest first."""
    from rapidfuzz import fuzz, process

    if len(name) > LONGEST_SOUGHT:
        return []
    found = process.extract(
        name, names, scorer=fuzz.ratio, processor=str.casefold, limit=most, score_cutoff=65
    )
    ranked = sorted(found, key=lambda match: (-match[1], -fuzz.ratio(name, match[0]), match[2]))
    return [match[0] for match in ranked]


def absent(
    wanted: Iterable[str], names: Sequence[str], *, purpose: str = "", where: str = "the data"
) -> list[str]:
    """Say of each wanted column that is not there so, with the names that come near."""
    asked, known = list(wanted), set(names)
    vouched = are_vouched(asked, names)
    return [
        f"{purpose or 'column'} {shown(name)} is not a column of {where}. "
        f"{_remedy(name, names, vouched)}"
        for name in asked
        if name not in known
    ]


def are_vouched(asked: Iterable[str], names: Iterable[str]) -> bool:
    """Tell whether names may be shown: if none was asked for, they may be a record's values."""
    return not set(names).isdisjoint(asked)


def _remedy(name: str, names: Sequence[str], vouched: bool) -> str:
    near = nearest(name, names) if name else []
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    if not names:
        return "It has no columns."
    if vouched:
        return f"Its {len(names)} columns are {quoted(names)}."
    return f"None of its {len(names)} columns has a name like it. Does its first line hold names?"


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that come more than once, in order."""
    return [name for name, count in Counter(names).items() if count > 1]


def repeated_places(names: Sequence[str], most: int = 10) -> str:
    """Say which columns share a name, by their places and not by the name."""
    groups = []
    for name in repeated(names):
        *places, last = (str(place) for place, one in enumerate(names, 1) if one == name)
        groups.append(f"columns {', '.join(places[:most])} and {last}")
    rest = f" and {len(groups) - most} more" if len(groups) > most else ""
    return "; ".join(groups[:most]) + rest
