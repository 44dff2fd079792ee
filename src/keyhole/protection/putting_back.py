"""Values that were taken away beyond need are given back.

Whole groups of records that are settled together may settle more than a limit asks for. Records
with the same key that gave up the same values are a group here; groups are put back as long as no
more records than allowed are left below k, those first that cost least for each value.
"""

from __future__ import annotations

import heapq

import numpy as np

from keyhole.kernels.arrays import Ints, Words
from keyhole.protection.suppression_sets import Key, as_keys

__all__ = ["put_back"]


def put_back(key: Key, gone: Words, k: int, allowed: int) -> Words:
    """Return by record what is still to be taken away; then no group can be put back.

    Parameters
    ----------
    key
        The key, packed, as it was.
    gone
        By record the mask of the variables taken away.
    k, allowed
        The wanted size of every cell, and how many records may stay below it.
    """
    rows = np.flatnonzero(gone)
    if not len(rows):
        return gone
    search = _Search(key, gone, rows, k)
    while search.restore_cheapest(allowed):
        pass  # what was put back may have made room for more
    out = gone.copy()
    out[rows[search.restored[search.group]]] = 0
    return out


class _Search:
    """The cells that records are in now and were in before, by number, and their sizes."""

    def __init__(self, key: Key, gone: Words, rows: Ints, k: int) -> None:
        blanked = key.rows.copy()
        for mask in np.unique(gone[rows]).tolist():
            hit = gone == mask
            variables = [v for v in range(mask.bit_length()) if mask >> v & 1]
            blanked[hit] = key.without(blanked[hit], variables)
        both = np.concatenate([as_keys(blanked), as_keys(key.rows[rows])])
        _, cells = np.unique(both, return_inverse=True)
        now, before = cells[: len(gone)], cells[len(gone) :]
        self.k = k
        self.sizes = np.bincount(now, minlength=int(cells.max()) + 1).tolist()
        self.below = sum(size for size in self.sizes if size < k)
        # Who has the same key, and is in the same cell now, gave up the same values.
        pairs = now[rows].astype(np.int64) * len(self.sizes) + before
        groups, first, self.group = np.unique(pairs, return_index=True, return_inverse=True)
        self.now = (groups // len(self.sizes)).tolist()
        self.before = (groups % len(self.sizes)).tolist()
        self.counts = np.bincount(self.group).tolist()
        self.values = np.bitwise_count(gone[rows[first]]).tolist()
        self.restored = np.zeros(len(groups), dtype=np.bool_)
        self.beside: dict[int, list[int]] = {}
        for number, ends in enumerate(zip(self.now, self.before, strict=True)):
            for cell in ends:
                self.beside.setdefault(cell, []).append(number)
        self.largest = {
            cell: max(self.counts[number] for number in numbers)
            for cell, numbers in self.beside.items()
        }

    def price(self, group: int) -> int:
        """Return how many more records would be below k without what was taken from a group."""
        count, now, before = self.counts[group], self.now[group], self.before[group]
        if now == before:
            return 0
        old = self._below(self.sizes[now]) + self._below(self.sizes[before])
        new = self._below(self.sizes[now] - count) + self._below(self.sizes[before] + count)
        return new - old

    def _below(self, size: int) -> int:
        return size if size < self.k else 0

    def _rank(self, group: int) -> tuple[float, int, int]:
        values = self.counts[group] * self.values[group]
        return self.price(group) / values, -values, group

    def restore_cheapest(self, allowed: int) -> bool:
        """Put groups back, the cheapest first; tell whether there were any."""
        heap = [self._rank(group) for group in np.flatnonzero(~self.restored).tolist()]
        heapq.heapify(heap)
        found = False
        while heap:
            rank = heapq.heappop(heap)
            group = rank[2]
            # An older rank is passed over: the newer one is in the heap too.
            fresh = not self.restored[group] and rank == self._rank(group)
            if fresh and self.below + self.price(group) <= allowed:
                found = True
                for other in self._restore(group):
                    heapq.heappush(heap, self._rank(other))
        return found

    def _restore(self, group: int) -> list[int]:
        """Put a group back; return the groups beside it, whose price may be another now."""
        self.below += self.price(group)
        ends = self.now[group], self.before[group]
        self.sizes[ends[0]] -= self.counts[group]
        # In a cell that can spare any of its groups nothing has another price.
        close = [cell for cell in ends if self.sizes[cell] - self.largest[cell] < self.k]
        self.sizes[ends[1]] += self.counts[group]
        self.restored[group] = True
        beside = [other for cell in close for other in self.beside[cell]]
        return [other for other in beside if not self.restored[other]]
