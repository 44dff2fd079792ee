"""Search for the values that local suppression sets to missing.

Where a missing value is a category of its own, records below k that agree on all but some
variables become one cell when those are suppressed in all of them; where they are too few for a
cell, records of large cells are asked to join. What that suppresses beyond need is put back.

Where a missing value matches every value, each record below k is considered by itself: the
cheapest set of its values without which k records agree with it. Whatever is suppressed elsewhere
only adds matches, so that the record stays settled and others gain too.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.kernels.arrays import Floats, Ints, Words
from keyhole.kernels.packing import Layout, layout, pack

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
    """Return the sets of the allowed variables by cost."""
    found: list[tuple[int, ...]] = []
    size = 1
    while size <= len(allowed) and len(found) + comb(len(allowed), size) <= MOST_SETS:
        found += combinations(allowed, size)
        size += 1
    chain = sorted(allowed, key=lambda v: (importance[v] / max(sizes[v], 1), v))
    found += [tuple(sorted(chain[:length])) for length in range(size, len(allowed) + 1)]
    ranked = sorted(
        (sum(importance[v] for v in one), len(one), sum(1 << v for v in one)) for one in found
    )
    costs, _, masks = zip(*ranked, strict=True)
    return Sets(np.array(masks, dtype=np.uint64), np.array(costs, dtype=np.float64))


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


def put_back(key: Key, gone: Words, k: int, allowed: int) -> Words:
    """Return by record what is still to be taken away; then no group can be put back."""
    rows = np.flatnonzero(gone)
    if not len(rows):
        return gone
    search = _Restoring(key, gone, rows, k)
    while search.restore_cheapest(allowed):
        pass  # what was put back may have made room for more
    out = gone.copy()
    out[rows[search.restored[search.group]]] = 0
    return out


class _Restoring:
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


def suppress_as_own(key: Key, k: int, allowed: int, sets: Sets) -> Words:
    """Return by record the mask of the variables to take away, the cheapest of the sets first."""
    search = _Settling(key, k)
    ways = (
        (cost * k / fewest, place, fewest)
        for place, cost in enumerate(sets.costs.tolist())
        for fewest in range(1, k + 1)
    )
    for _, place, fewest in sorted(ways):  # by the cost of settling one record
        if search.below.sum() <= allowed:
            break
        search.settle(sets.members(place), fewest)
    if search.below.sum() > allowed:
        search.sacrifice(sets.members(len(sets.masks) - 1))
    return put_back(key, search.gone & ~key.gone, k, allowed)


class _Settling:
    """The rows as they are by now, and who is below k."""

    def __init__(self, key: Key, k: int) -> None:
        self.key, self.k, self.rows, self.gone = key, k, key.rows.copy(), key.gone.copy()
        self.below = self._sizes() < k

    def _sizes(self) -> Ints:
        _, cells, counts = np.unique(as_keys(self.rows), return_inverse=True, return_counts=True)
        return np.asarray(counts[cells])

    def settle(self, variables: list[int], fewest: int) -> None:
        """Take variables away from records below k where that makes cells of k."""
        rows = np.flatnonzero(self.below)
        new = as_keys(self.key.without(self.rows[rows], variables))
        levels, cells, counts = np.unique(new, return_inverse=True, return_counts=True)
        there = np.sort(as_keys(self.rows[~self.below]))
        held = np.searchsorted(there, levels, side="right") - np.searchsorted(there, levels)
        short = self.k - counts - held
        done = short <= 0
        asked = np.flatnonzero((short > 0) & (counts >= fewest))
        if fewest < self.k and len(asked):
            done[self._joined(variables, levels, asked, short)] = True
        hit = rows[done[cells]]
        self._take(hit, variables)
        self.below[hit] = False

    def _take(self, hit: Ints, variables: list[int]) -> None:
        self.rows[hit] = self.key.without(self.rows[hit], variables)
        self.gone[hit] |= np.uint64(sum(1 << v for v in variables))

    def _joined(
        self, variables: list[int], levels: npt.NDArray[np.generic], asked: Ints, short: Ints
    ) -> Ints:
        """Make records of cells larger than k join those that are short; return the full ones."""
        rows = np.flatnonzero(~self.below)
        keys = as_keys(self.rows[rows])
        _, cells, counts = np.unique(keys, return_inverse=True, return_counts=True)
        spare = counts - self.k
        able = rows[spare[cells] > 0]
        own = dict(zip(able.tolist(), cells[spare[cells] > 0].tolist(), strict=True))
        new = as_keys(self.key.without(self.rows[able], variables))
        order = np.argsort(new, kind="stable")
        first = np.searchsorted(new[order], levels[asked])
        last = np.searchsorted(new[order], levels[asked], side="right")
        full, joined = [], []
        for cell, a, b in zip(asked.tolist(), first.tolist(), last.tolist(), strict=True):
            picked = _pick(able[order[a:b]].tolist(), own, spare, int(short[cell]))
            if picked:
                joined += picked
                full.append(cell)
        self._take(np.array(joined, dtype=np.int64), variables)
        return np.array(full, dtype=np.int64)

    def sacrifice(self, variables: list[int]) -> None:
        """Where nobody can be spared, let whole cells join the few that are left below k."""
        while self.below.any():
            rows = np.flatnonzero(self.below)
            new, old = as_keys(self.key.without(self.rows, variables)), as_keys(self.rows)
            others = np.flatnonzero(~self.below & (new == new[rows[0]]))
            if not len(others):
                return
            levels, counts = np.unique(old[others], return_counts=True)
            joined = others[old[others] == levels[np.argmin(counts)]]
            self._take(np.concatenate([joined, rows[new[rows] == new[rows[0]]]]), variables)
            self.below = self._sizes() < self.k


def _pick(able: list[int], own: dict[int, int], spare: Ints, wanted: int) -> list[int]:
    """Pick so many records whose cells can spare them; none if there are too few."""
    picked: list[int] = []
    for record in able:
        if len(picked) == wanted:
            break
        if spare[own[record]] > 0:
            spare[own[record]] -= 1
            picked.append(record)
    if len(picked) < wanted:
        for record in picked:
            spare[own[record]] += 1
        return []
    return picked


# So many sets of one cost are weighed against each other, fewer where many records wait: memory.
BATCH = 64
MOST_ENTRIES = 3_000_000


def suppress_as_wildcards(
    key: Key, columns: Sequence[Codes], f: Ints, k: int, allowed: int, sets: Sets
) -> Words:
    """Return by record the mask of the variables to take away, the cheapest of the sets first."""
    from keyhole.kernels.wildcards import blank_by_company

    gone, f = key.gone.copy(), f.copy()
    at = 0
    while at < len(sets.masks) and (f < k).sum() > allowed:
        rows = np.flatnonzero(f < k)
        most = min(BATCH, max(1, MOST_ENTRIES // len(rows)))
        end = at + int(np.searchsorted(sets.costs[at : at + most], sets.costs[at], side="right"))
        companies = (_companies(key, rows, sets.members(place)) for place in range(at, end))
        cells, sizes = map(np.array, zip(*companies, strict=True))
        # The records by cell, for each set.
        members = np.argsort(cells, axis=1, kind="stable")
        starts = np.array(
            [
                np.searchsorted(own[listed], np.arange(len(rows) + 1))
                for own, listed in zip(cells, members, strict=True)
            ]
        )
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


def _greedy(cells: Ints, sizes: Ints, gone: Words, masks: Words, k: int) -> tuple[Ints, Ints]:
    """Choose for each record one of the sets; return who comes first, and the sets."""
    # The set with fewest values still to be taken away, then that which most below k gain by.
    gains = np.array([np.bincount(one)[one] for one in cells])
    fresh = np.bitwise_count(masks[:, None] & ~gone[None, :]).astype(np.int64)
    rank = np.where(sizes >= k, fresh * (cells.shape[1] + 1) - gains, np.iinfo(np.int64).max)
    choice = np.argmin(rank, axis=0)
    best = rank[choice, np.arange(len(choice))]
    order = np.argsort(best, kind="stable")
    order = order[best[order] < np.iinfo(np.int64).max]
    return order.astype(np.int64), choice[order].astype(np.int64)
