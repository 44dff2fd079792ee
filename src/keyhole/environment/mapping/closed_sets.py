"""Closed frequent sets: which things are held together, exactly, the best supported first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence


def closed_sets(holders: Sequence[int], everybody: int, minimum: int) -> Iterator[tuple[int, int]]:
    """Yield (items, support) of each closed set, in falling order of support.

    A set is closed if nothing can be added to it without losing a holder; every set held by
    somebody has the support of the smallest closed set around it.

    Parameters
    ----------
    holders
        For each item, its holders as the bits of a whole number.
    everybody
        How many holders there are.
    minimum
        Sets with fewer holders are left out.

    Notes
    -----
    Each closed set is made once, by adding to its parent an item after which it has no new
    earlier one (the prefix-preserving closure extension of LCM, Uno et al. 2004), best first.

    Examples
    --------
    >>> [(bin(items), support) for items, support in closed_sets([0b111, 0b011, 0b110], 3, 1)]
    [('0b1', 3), ('0b11', 2), ('0b101', 2), ('0b111', 1)]
    """
    everyone = (1 << everybody) - 1
    heap = [(-everybody, _closure(holders, everyone), -1, everyone)] if everybody >= minimum else []
    while heap:
        support, items, core, who = heapq.heappop(heap)
        yield items, -support
        for item in range(core + 1, len(holders)):
            if not items >> item & 1:
                child = _extend(holders, items, who, item, minimum)
                if child is not None:
                    heapq.heappush(heap, child)


def _closure(holders: Sequence[int], who: int) -> int:
    """Return all items that these holders have in common."""
    return sum(1 << item for item, has in enumerate(holders) if has & who == who)


def _extend(
    holders: Sequence[int], items: int, who: int, item: int, minimum: int
) -> tuple[int, int, int, int] | None:
    both = who & holders[item]
    support = both.bit_count()
    if support < max(minimum, 1):
        return None
    closure = _closure(holders, both)
    before = (1 << item) - 1
    return (-support, closure, item, both) if closure & before == items & before else None
