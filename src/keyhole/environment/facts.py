"""Values of the model in words, and what changed between two states of a thing."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from keyhole.environment.wording import short

_TOLD = 6
_NAMES = ("name", "code", "letters")
# What a field asked is kept while it waits; that it has been placed is told by its coding.
_ASKED = "question"


def in_words(value: Any) -> str:
    """Write a value of the model as a person would; nothing is the empty text.

    Examples
    --------
    >>> in_words(None), in_words(("a", "b")), in_words({"size": "large"}), in_words(True)
    ('', 'a; b', 'size: large', 'yes')
    >>> in_words(datetime.date(2024, 5, 31)), in_words(0.5)
    ('2024-05-31', '0.5')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {in_words(one)}" for name, one in value.items())
    if isinstance(value, tuple | list | frozenset | set):
        return "; ".join(in_words(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def changes_told(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Tell what changed between two plain forms of a thing, attribute by attribute.

    Examples
    --------
    >>> old = {"name": "claim", "fields": [{"name": "sex"}, {"name": "age", "label": "Age"}]}
    >>> fields = [{"name": "sex", "coding": "SX2.001"}]
    >>> changes_told(old, {"name": "claim", "sector": "health", "fields": fields})
    'sector: nothing → health; fields, sex, coding: nothing → SX2.001; fields, age: taken out'
    """
    if before is None or after is None:
        return ""
    told = list(_told(before, after, ()))
    more = len(told) - _TOLD
    return "; ".join(told[:_TOLD]) + (f"; and {more:,} more" if more > 0 else "")


def _told(
    before: Mapping[str, Any], after: Mapping[str, Any], where: tuple[str, ...]
) -> Iterator[str]:
    names = [*(n for n in after if n not in before), *before]
    for name in names:
        old, new = before.get(name), after.get(name)
        if old == new or name == _ASKED:
            continue
        place = (*where, name.replace("_", " "))
        keyed = _keyed(old), _keyed(new)
        if keyed[0] is not None and keyed[1] is not None:
            yield from _parts_told(keyed[0], keyed[1], place)
        else:
            yield f"{', '.join(place)}: {_value(old)} → {_value(new)}"


def _parts_told(
    before: Mapping[str, Any], after: Mapping[str, Any], where: tuple[str, ...]
) -> Iterator[str]:
    for name in [*before, *(n for n in after if n not in before)]:
        place = ", ".join((*where, short(name)))
        if name not in after:
            yield f"{place}: taken out"
        elif name not in before:
            yield f"{place}: put in"
        elif isinstance(before[name], Mapping) and isinstance(after[name], Mapping):
            yield from _told(before[name], after[name], (*where, short(name)))
        elif before[name] != after[name]:
            yield f"{place}: {_value(before[name])} → {_value(after[name])}"


def _keyed(value: Any) -> dict[str, Any] | None:
    """Return parts that have names by their names."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return None
    found = [next((str(one[n]) for n in _NAMES if n in one), "") for one in value]
    if len(set(found)) < len(found) or "" in found:
        return None
    return dict(zip(found, value, strict=True))


def _value(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, list | Mapping):
        return short(in_words(value)) if len(value) <= 2 else f"{len(value):,} entries"
    return short(in_words(value))
