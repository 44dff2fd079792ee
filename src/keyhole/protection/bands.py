"""Bands of numbers: from where to where, what they are called, and which one a number is in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.options import is_number, value_text

__all__ = [
    "Bands",
    "band_problems",
    "cut_problems",
    "from_cuts",
    "from_pairs",
    "is_cuts",
    "is_pairs",
]


NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Bands in ascending order; `low` belongs to its band, `high` only if `closed`."""

    low: Floats
    high: Floats
    closed: bool

    def place(self, values: Floats) -> Ints:
        """Return the number of the band each value lies in, -1 where it is in none."""
        found = np.searchsorted(self.low, values, side="right") - 1
        high = self.high[np.maximum(found, 0)]
        inside = (values <= high) if self.closed else (values < high) | (high == math.inf)
        return np.where((found >= 0) & inside, found, NOWHERE).astype(np.int64)

    def labels(self, *, whole: bool) -> list[str]:
        """Name the bands; those of whole numbers by their first and last number.

        Examples
        --------
        >>> from_cuts([18, 65]).labels(whole=True)
        ['17 and below', '18-64', '65 and above']
        >>> from_cuts([0.5, 1]).labels(whole=False)
        ['below 0.5', '0.5 to below 1', '1 and above']
        """
        return [
            _label(low, high, self.closed, whole)
            for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True)
        ]

    def middles(self) -> list[float]:
        """Return the middle of each band."""
        return [float(middle) for middle in (self.low + self.high) / 2]

    @property
    def bounded(self) -> bool:
        """Whether every band ends on both sides."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())


def _label(low: float, high: float, closed: bool, whole: bool) -> str:
    last = math.ceil(high) - 1 if whole and not closed and math.isfinite(high) else high
    closed = closed or whole
    if low == -math.inf:
        return f"{_text(last)} and below" if closed else f"below {_text(high)}"
    if high == math.inf:
        return f"{_text(low)} and above"
    if closed and last == low:
        return _text(low)
    return f"{_text(low)}-{_text(last)}" if closed else f"{_text(low)} to below {_text(high)}"


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.12g}"


def from_cuts(cuts: Sequence[float]) -> Bands:
    """Return the bands between cuts; the outer ones are open. A cut begins the band above it."""
    edges = np.array([-math.inf, *cuts, math.inf])
    return Bands(edges[:-1], edges[1:], closed=False)


def from_pairs(pairs: Sequence[Sequence[float]]) -> Bands:
    """Return the bands from the first to the last number of each pair, both within."""
    ordered = np.array(sorted(map(tuple, pairs)), dtype=np.float64)
    return Bands(ordered[:, 0], ordered[:, 1], closed=True)


def is_cuts(value: Any) -> str | None:
    """Accept a list of numbers."""
    fit = _is_list(value) and not any(map(is_number, value))
    return None if fit else "a list of numbers where bands begin"


def is_pairs(value: Any) -> str | None:
    """Accept a list of pairs of numbers; the outermost may be infinite."""
    fit = _is_list(value) and all(_is_list(p) and len(p) == 2 and _known(p) for p in value)
    return None if fit else "a list of bands [first, last]"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0


def _known(pair: Sequence[Any]) -> bool:
    return all(is_number(v) is None or v in (-math.inf, math.inf) for v in pair)


def cut_problems(cuts: Sequence[float]) -> list[str]:
    """Say so where cuts do not ascend."""
    if all(a < b for a, b in pairwise(cuts)):
        return []
    return ["cuts must ascend, each once. Got them in another order instead."]


def band_problems(pairs: Sequence[Sequence[float]]) -> list[str]:
    """Say of each band that ends before it begins so, and of each two that overlap.

    Examples
    --------
    >>> band_problems([[0, 20], [20, 40], [60, 50]])
    ['band [60, 50] ends before it begins. Give [first, last].',
     'bands [0, 20] and [20, 40] overlap: a number must be in one only, and the last number
     of a band is within.']
    """
    found = [
        f"band {value_text(list(pair))} ends before it begins. Give [first, last]."
        for pair in pairs
        if pair[0] > pair[1]
    ]
    ordered = sorted(list(pair) for pair in pairs if pair[0] <= pair[1])
    return found + [
        f"bands {a} and {b} overlap: a number must be in one only, and the last number of a "
        f"band is within."
        for a, b in pairwise(ordered)
        if b[0] <= a[1]
    ]
