"""Names in messages: quoted, counted, repeated, missing, and the nearest to a mistyped one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

# Characters of a name that are shown, and up to which names are looked for that come near.
LONGEST = 60
LONGEST_SOUGHT = 500
NEAR = 0.65


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
    if len(name) > LONGEST_SOUGHT:
        return []
    folded = name.casefold()
    scores = {known: alike(folded, known.casefold(), at_least=NEAR) for known in names}
    found = [known for known, score in scores.items() if score >= NEAR]
    found.sort(key=lambda known: -scores[known])
    return sorted(found[:most], key=lambda known: (-scores[known], -alike(name, known)))


@lru_cache(1 << 16)
def alike(one: str, other: str, *, at_least: float = 0.0) -> float:
    """Return the share of two spellings that they have in common, in order, from 0 to 1.

    Twice the longest common subsequence over both lengths; 0 if this is below `at_least`.

    Notes
    -----
    The subsequence is counted bit by bit, for all places of one text at once: Hyyrö (2004),
    "Bit-parallel LCS-length computation revisited".

    Examples
    --------
    >>> alike("income", "incmoe")
    0.8333333333333334
    """
    length = len(one) + len(other)
    if not length or 2 * min(len(one), len(other)) < at_least * length:
        return 0.0 if length else 1.0
    places: dict[str, int] = {}
    for place, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << place
    row = whole = (1 << len(one)) - 1
    for character in other:
        common = row & places.get(character, 0)
        row = (row + common | row - common) & whole
    score = 2 * (len(one) - row.bit_count()) / length
    return score if score >= at_least else 0.0


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
    asked = "Does its first line hold the column names?"
    return f"None of its {len(names)} columns has a name like it. {asked}"


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
