"""The distinct patterns of some columns, in memory, as codes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from keyhole.engines.partition import Patterns
from keyhole.kernels.arrays import Ints

__all__ = ["PatternTable"]


class PatternTable:
    """One row a distinct pattern, and how many records have it.

    Parameters
    ----------
    patterns
        The patterns.
    places
        By column its number among those the patterns are made of.
    """

    def __init__(self, patterns: Patterns, places: Mapping[str, int]) -> None:
        self._patterns, self._places = patterns, places
        self.records: Ints = patterns.weights.astype(np.int64)

    def codes(self, name: str) -> Ints:
        """Return the code of each pattern in one column."""
        plan, v = self._patterns.plan, self._places[name]
        word = self._patterns.rows[:, plan.word[v]] >> np.uint64(plan.shift[v])
        top = np.uint64((1 << int(plan.bits[v])) - 1)
        codes: Ints = (word & top).astype(np.int64)
        return codes

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return for each pattern the number of its cell on fewer columns, from 0 on."""
        mask = self._patterns.plan.mask([self._places[name] for name in names])
        words = [self._patterns.rows[:, w] & mask[w] for w in np.flatnonzero(mask)]
        number: Ints = np.zeros(len(self.records), dtype=np.int64)
        for word in words:
            dense = np.unique(word, return_inverse=True)[1]
            number = dense if word is words[0] else _both(number, dense)
        return number


def _both(one: Ints, other: Ints) -> Ints:
    pair = one * (int(other.max(initial=0)) + 1) + other
    number: Ints = np.unique(pair, return_inverse=True)[1]
    return number
