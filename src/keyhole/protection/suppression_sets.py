"""Sets of key variables whose values may be taken away, the cheapest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.kernels.arrays import Floats, Words
from keyhole.kernels.packing import Layout, layout, pack

__all__ = ["Key", "Sets", "as_keys", "make_key", "sets_by_cost"]


# So many sets are tried in all; past them only ever larger ones of a chain.
MOST_SETS = 400


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Sets of variables as masks, and what it costs to take away the values of each."""

    masks: Words
    costs: Floats

    def members(self, place: int) -> list[int]:
        """Return the variables of a set."""
        mask = int(self.masks[place])
        return [v for v in range(mask.bit_length()) if mask >> v & 1]


def sets_by_cost(importance: Sequence[float], allowed: Sequence[int], sizes: Sequence[int]) -> Sets:
    """Return the sets of the allowed variables by cost.

    All sets up to a size of which there are not too many; then a chain that adds variable after
    variable, those of most categories first, up to all that are allowed.

    Examples
    --------
    >>> sets_by_cost([1, 1, 3], [0, 1, 2], [2, 2, 2]).masks.tolist()
    [1, 2, 3, 4, 5, 6, 7]
    """
    found: list[tuple[int, ...]] = []
    size = 1
    while size <= len(allowed) and len(found) + comb(len(allowed), size) <= MOST_SETS:
        found += combinations(allowed, size)
        size += 1
    chain = sorted(allowed, key=lambda v: (importance[v] / max(sizes[v], 1), v))
    found += [tuple(sorted(chain[:length])) for length in range(size, len(allowed) + 1)]
    costs = [sum(importance[v] for v in one) for one in found]
    masks = [sum(1 << v for v in one) for one in found]
    order = sorted(range(len(found)), key=lambda i: (costs[i], len(found[i]), masks[i]))
    return Sets(
        np.array([masks[i] for i in order], dtype=np.uint64),
        np.array([costs[i] for i in order], dtype=np.float64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """The key of all records, packed, with room in every field for a missing value."""

    rows: Words
    plan: Layout
    gone: Words
    missing: tuple[int, ...]

    def without(self, rows: Words, variables: Sequence[int]) -> Words:
        """Return rows with some variables missing."""
        out = rows & ~self.plan.mask(variables)
        for v in variables:
            code = np.uint64(self.missing[v]) << np.uint64(self.plan.shift[v])
            out[:, self.plan.word[v]] |= code
        return out


def as_keys(rows: Words) -> npt.NDArray[np.generic]:
    """Return rows as single values that sort and compare."""
    if rows.shape[1] == 1:
        return np.ascontiguousarray(rows[:, 0])
    # Fixed width, so that the zeros at the end, which NumPy cuts off, do no harm.
    return np.ascontiguousarray(rows).view(f"S{8 * rows.shape[1]}")[:, 0]


def make_key(columns: Sequence[Codes]) -> Key:
    """Pack the columns of a key."""
    levels = [len(column.levels) for column in columns]
    plan = layout([count + 1 for count in levels])
    gone = np.zeros(len(columns[0].values), dtype=np.uint64)
    for v, column in enumerate(columns):
        gone |= (column.values == levels[v]).astype(np.uint64) << np.uint64(v)
    return Key(pack([column.values for column in columns], plan), plan, gone, tuple(levels))
