"""Local suppression where a missing value matches every value.

Every record below k is considered by itself: the cheapest set of its values without which k
records agree with it. Whatever is taken away elsewhere only adds matches, so that the record stays
settled; and because it now matches more records, those gain too, and many need nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keyhole.data.columns import Codes
from keyhole.kernels.arrays import Ints, Words
from keyhole.protection.suppression_sets import Key, Sets, as_keys

__all__ = ["suppress_as_wildcards"]


# So many sets of one cost are weighed against each other, fewer where many records wait: memory.
BATCH = 64
MOST_ENTRIES = 3_000_000


def suppress_as_wildcards(
    key: Key, columns: Sequence[Codes], f: Ints, k: int, allowed: int, sets: Sets
) -> Words:
    """Return by record the mask of the variables to take away.

    Parameters
    ----------
    key, columns
        The key, packed and as codes.
    f
        How many records match each.
    k, allowed
        The wanted size, and how many records may stay below it.
    sets
        What may be taken away, the cheapest first.
    """
    from keyhole.kernels.wildcards import blank_by_company

    gone, f = key.gone.copy(), f.copy()
    at = 0
    while at < len(sets.masks) and (f < k).sum() > allowed:
        rows = np.flatnonzero(f < k)
        most = min(BATCH, max(1, MOST_ENTRIES // len(rows)))
        end = at + int(np.searchsorted(sets.costs[at : at + most], sets.costs[at], side="right"))
        places = range(at, end)
        companies = [_companies(key, rows, sets.members(place)) for place in places]
        cells = np.array([one[0] for one in companies])
        sizes = np.array([one[1] for one in companies])
        starts, members = _listed(cells)
        order, choice = _greedy(cells, sizes, gone[rows], sets.masks[at:end], k)
        codes = np.column_stack([column.values[rows].astype(np.int64) for column in columns])
        some_gone, some_f = gone[rows], f[rows]
        blank_by_company(
            codes, some_gone, some_f, k, allowed, sets.masks[at:end], cells, sizes, starts,
            members, order, choice,
        )  # fmt: skip
        gone[rows], f[rows] = some_gone, some_f
        at = end
    return gone & ~key.gone


def _companies(key: Key, rows: Ints, variables: list[int]) -> tuple[Ints, Ints]:
    """Return for some records the number of their cell on the other variables, and its size."""
    keys = as_keys(key.rows & ~key.plan.mask(variables))
    own = keys[rows]
    keys = np.sort(keys)
    levels, cells = np.unique(own, return_inverse=True)
    counts = np.asarray(np.searchsorted(keys, levels, side="right") - np.searchsorted(keys, levels))
    return cells.astype(np.int64), counts[cells].astype(np.int64)


def _listed(cells: Ints) -> tuple[Ints, Ints]:
    """List the records by cell, for each set."""
    sets, count = cells.shape
    members = np.argsort(cells, axis=1, kind="stable")
    starts = np.empty((sets, count + 1), dtype=np.int64)
    for s in range(sets):
        starts[s] = np.searchsorted(cells[s][members[s]], np.arange(count + 1))
    return starts, members.astype(np.int64)


def _greedy(cells: Ints, sizes: Ints, gone: Words, masks: Words, k: int) -> tuple[Ints, Ints]:
    """Choose for each record one of the sets; return who comes first, and the sets.

    Of the sets that give k matches, the one with fewest values still to be taken away, then the
    one whose cell has most records below k: they gain. The records whose set takes least and
    helps most come first.
    """
    gains = np.array([np.bincount(one)[one] for one in cells])
    fresh = np.bitwise_count(masks[:, None] & ~gone[None, :]).astype(np.int64)
    rank = np.where(sizes >= k, fresh * (cells.shape[1] + 1) - gains, np.iinfo(np.int64).max)
    choice = np.argmin(rank, axis=0)
    best = rank[choice, np.arange(len(choice))]
    order = np.argsort(best, kind="stable")
    order = order[best[order] < np.iinfo(np.int64).max]
    return order.astype(np.int64), choice[order].astype(np.int64)
