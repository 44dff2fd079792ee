"""Where two sets of plain values differ: by their paths, never by the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Compared", "compare_values", "short_name"]

_LONGEST = 60
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and the paths of those that differ."""

    figures: int
    differences: tuple[str, ...] = ()

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.figures + other.figures, self.differences + other.differences)


def compare_values(stored: Any, computed: Any, at: str = "") -> Compared:
    """Compare plain values leaf by leaf.

    Parameters
    ----------
    stored
        What was found in a file.
    computed
        What it should be.
    at
        The path of both, put before the paths that are told.

    Examples
    --------
    >>> compare_values({"rp": 0.2, "cells": [3, 4]}, {"rp": 0.2, "cells": [3, 5], "cr": 1.0})
    Compared(figures=4, differences=('cells[1]', 'cr (is not there)'))
    """
    leaves = list(_leaves(stored, computed, at))
    return Compared(len(leaves), tuple(told for told in leaves if told))


def _leaves(stored: Any, computed: Any, at: str) -> Iterator[str]:
    """Yield for each leaf its path if the sides differ there, else nothing to tell."""
    if isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name in [*computed, *(name for name in stored if name not in computed)]:
            inner = f"{at}.{short_name(name)}" if at else short_name(name)
            yield from _part(stored.get(name, _ABSENT), computed.get(name, _ABSENT), inner)
    elif isinstance(computed, list) and isinstance(stored, list):
        for i in range(max(len(stored), len(computed))):
            pair = [side[i] if i < len(side) else _ABSENT for side in (stored, computed)]
            yield from _part(pair[0], pair[1], f"{at}[{i}]")
    else:
        yield "" if type(stored) is type(computed) and stored == computed else at


def _part(stored: Any, computed: Any, at: str) -> Iterator[str]:
    if stored is _ABSENT:
        yield f"{at} (is not there)"
    elif computed is _ABSENT:
        yield f"{at} (should not be there)"
    else:
        yield from _leaves(stored, computed, at)


def short_name(name: Any) -> str:
    """Write a name that somebody else gave: printable, and of a line's length at most."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
