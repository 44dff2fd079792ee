"""Where two sets of plain values differ: by their paths, never by the values themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Compared", "compare_values", "short_name"]

_LONGEST = 60
_ABSENT = object()
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and the paths of those that differ."""

    figures: int
    differences: tuple[str, ...] = ()

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.figures + other.figures, self.differences + other.differences)


def compare_values(stored: Any, computed: Any, at: str = "", *, older: bool = False) -> Compared:
    """Compare plain values leaf by leaf.

    Parameters
    ----------
    stored
        What was found in a file.
    computed
        What it should be.
    at
        The path of both, put before the paths that are told.
    older
        Whether an older version wrote what is stored: members may have been added since, and a
        sentence may have other words around its numbers.

    Examples
    --------
    >>> compare_values({"rp": 0.2, "cells": [3, 4]}, {"rp": 0.2, "cells": [3, 5], "cr": 1.0})
    Compared(figures=4, differences=('cells[1]', 'cr (is not there)'))
    >>> compare_values({"rp": 0.2, "note": "2 left out"}, {"rp": 0.2, "note": "without 2", "cr": 1},
    ...                older=True)
    Compared(figures=2, differences=())
    """
    leaves = list(_leaves(stored, computed, at, older))
    return Compared(len(leaves), tuple(told for told in leaves if told))


def _leaves(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    """Yield for each leaf its path if the sides differ there, else nothing to tell."""
    if isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name in [*computed, *(name for name in stored if name not in computed)]:
            inner = f"{at}.{short_name(name)}" if at else short_name(name)
            if name in stored or not older:
                pair = stored.get(name, _ABSENT), computed.get(name, _ABSENT)
                yield from _part(*pair, inner, older)
    elif isinstance(computed, list) and isinstance(stored, list):
        for i in range(max(len(stored), len(computed))):
            one, other = (side[i] if i < len(side) else _ABSENT for side in (stored, computed))
            yield from _part(one, other, f"{at}[{i}]", older)
    else:
        same = type(stored) is type(computed) and stored == computed
        yield "" if same or (older and _means_same(stored, computed)) else at


def _means_same(stored: Any, computed: Any) -> bool:
    """Tell whether two numbers are as good as equal, or two sentences have the same numbers."""
    if isinstance(stored, str) and isinstance(computed, str):
        return " " in stored and sorted(_NUMBER.findall(stored)) == sorted(
            _NUMBER.findall(computed)
        )
    if any(
        isinstance(side, bool) or not isinstance(side, int | float) for side in (stored, computed)
    ):
        return False
    return math.isclose(stored, computed, rel_tol=1e-9)


def _part(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    if stored is _ABSENT:
        yield f"{at} (is not there)"
    elif computed is _ABSENT:
        yield f"{at} (should not be there)"
    else:
        yield from _leaves(stored, computed, at, older)


def short_name(name: Any) -> str:
    """Write a name that somebody else gave: printable, and of a line's length at most."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
