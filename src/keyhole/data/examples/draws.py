"""Draws that are the same on every machine: whole numbers against whole-number tables.

Every column of the world has a stream of random bits of its own, named by the seed and the
column, and uses one number a person. So a column does not change when another is added, and
the first thousand people of a large world are the people of a small one. Only the raw bits of
the generator are used, never its distributions, and no floating-point number decides a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Draws", "Table", "chance"]

Whole = npt.NDArray[Any]

_BITS = 20
_SCALE = 1 << _BITS


class Draws:
    """The random numbers of a world, by seed and purpose.

    Parameters
    ----------
    seed
        A whole number, 0 or more.
    size
        How many numbers each purpose gets.

    Examples
    --------
    >>> Draws(seed=1, size=3).of("sex")
    array([3240502577, 1039672812, 2571714815], dtype=uint32)
    """

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size

    def of(self, purpose: str) -> npt.NDArray[np.uint32]:
        """Return 32 random bits a person for a purpose."""
        source = np.random.PCG64(np.random.SeedSequence([self.seed, *purpose.encode()]))
        raw: npt.NDArray[np.uint64] = np.asarray(source.random_raw(self.size), dtype=np.uint64)
        return (raw >> np.uint64(32)).astype(np.uint32)

    def hits(self, purpose: str, rate: float) -> npt.NDArray[np.bool_]:
        """Mark the people to whom something happens at a rate."""
        return self.of(purpose) < np.uint64(chance(rate))

    def order(self, purpose: str) -> npt.NDArray[np.int64]:
        """Return the people in a random order."""
        return np.argsort(self.of(purpose), kind="stable")


def chance(rate: float) -> int:
    """Turn a rate into the number of 32-bit draws that count as a hit.

    Examples
    --------
    >>> chance(0.5) == 2**31, chance(1.0) == 2**32
    (True, True)
    """
    return round(rate * (1 << 32))


class Table:
    """Shares of categories, in rows by condition, made ready for drawing.

    Parameters
    ----------
    weights
        Whole numbers; the last axis is the categories, the axes before it the conditions.
        A row need not add up to anything, since it is scaled by its own sum.

    Examples
    --------
    >>> married = Table([[2, 8], [10, 0]])
    >>> married.pick(Draws(seed=1, size=4).of("married"), np.array([0, 0, 1, 1]))
    array([1, 1, 0, 0], dtype=uint8)
    """

    def __init__(self, weights: npt.ArrayLike) -> None:
        table = np.asarray(weights, dtype=np.int64)
        self.conditions = table.shape[:-1]
        self.categories = table.shape[-1]
        self._dtype = np.min_scalar_type(self.categories - 1)
        rows = table.reshape(-1, self.categories)
        scaled = np.cumsum(rows, axis=1) * _SCALE // rows.sum(axis=1, keepdims=True)
        self._bounds = (scaled + np.arange(len(rows))[:, None] * _SCALE).ravel()

    def pick(self, draws: npt.NDArray[np.uint32], *conditions: Whole) -> Whole:
        """Draw a category for each person, given one code a condition."""
        row: Whole = np.zeros(1, dtype=np.int64)
        for codes, size in zip(conditions, self.conditions, strict=True):
            row = row * size + codes
        points = row * _SCALE + (draws >> np.uint32(32 - _BITS))
        found: Whole = np.searchsorted(self._bounds, points, side="right")
        found -= row * self.categories
        return found.astype(self._dtype)
