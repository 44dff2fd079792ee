"""The finest partition that enough forms hold: a search upwards from what each form holds.

A form holds a partition if its own refines it. The candidates are all joins of forms' own
partitions; most are never made, since the search takes the finest candidate first and goes
no higher than the first that enough forms hold.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from keyhole.environment.codings.partitions import (
    group_count,
    join_partitions,
    partition_entropy,
    representatives,
)
from keyhole.kernels.arrays import Flags, Floats, Ints

# So many candidates are looked at, fewer of many categories, before the search says that it
# is not complete.
MOST = 3_000
BUDGET = 50_000_000
Counted = dict[bytes, tuple[Ints, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Finest:
    """The finest partitions held by enough forms; none of them refines another."""

    partitions: tuple[Ints, ...]
    complete: bool


def finest(
    partitions: Sequence[Ints],
    counts: Sequence[int],
    needed: int,
    *,
    substantive: Flags,
    weights: Floats | None = None,
) -> Finest:
    """Return the finest joins of partitions that enough forms hold, by entropy, then groups.

    `partitions` are the canonical ones that forms hold, `counts` how many hold each. One with a
    single group of `substantive` categories, which answer the question, is left out.

    Notes
    -----
    A join is told by the set of partitions that refine it, which is closed: nothing can be
    added without making the join coarser. Such sets are made one from another by adding a
    later member after which no new earlier one comes in (as in `closed_sets`), so that each join
    is seen once, from fine to coarse.
    """
    answers = np.flatnonzero(substantive)
    known = _raised(zip(partitions, counts, strict=True), needed, answers)
    if not known:
        return Finest((), True)
    # The commonest first, so that few forms remain to be added soon.
    ordered = sorted(known.values(), key=lambda item: (-item[1], item[0].tobytes()))
    held = [partition for partition, _ in ordered]
    forms = np.array([count for _, count in ordered], dtype=np.int64)
    firsts = np.array([representatives(partition) for partition in held])
    heap: list[tuple[float, int, bytes, int]] = []

    def add(partition: Ints, core: int) -> None:
        """Queue a candidate made by adding the partition numbered `core`."""
        bits = round(partition_entropy(partition, weights), 9)
        heapq.heappush(heap, (-bits, -group_count(partition), partition.tobytes(), core))

    def holding(partition: Ints) -> Flags:
        """Tell which of the forms' partitions refine a candidate."""
        return np.asarray((partition[firsts] == partition).all(axis=1))

    found: list[tuple[Ints, Ints]] = []  # with their representatives, to see what is coarser
    add(np.arange(firsts.shape[1]), -1)
    looked, most = 0, max(50, min(MOST, BUDGET // firsts.size))
    while heap and looked < most:
        *_, key, core = heapq.heappop(heap)
        candidate = np.frombuffer(key, dtype=np.int64)
        if any((candidate[first] == candidate).all() for _, first in found):
            continue
        looked += 1
        holds = holding(candidate)
        if forms[holds].sum() >= needed:
            found.append((candidate, representatives(candidate)))
            continue
        # Join it with later partitions, as long as enough forms can still come in.
        reachable = int(forms[holds].sum() + forms[core + 1 :][~holds[core + 1 :]].sum())
        for i in range(core + 1, len(held)):
            if reachable < needed:
                break
            if not holds[i]:
                reachable -= int(forms[i])
                further = join_partitions(candidate, held[i])
                if _tells(further, answers) and not (holding(further) & ~holds)[:i].any():
                    add(further, i)
    return Finest(tuple(partition for partition, _ in found), not heap)


def _raised(held: Iterable[tuple[Ints, int]], needed: int, answers: Ints) -> Counted:
    """Join to all partitions those without whose forms there are not enough.

    Every answer is coarser than them, so that none is lost; with a high threshold hardly
    anything remains to be searched.
    """
    known = _counted(held, answers)
    while True:
        total = sum(count for _, count in known.values())
        if total < needed:
            return {}
        must = [partition for partition, count in known.values() if total - count < needed]
        if not must:
            return known
        floor = reduce(join_partitions, must)
        joined = ((join_partitions(p, floor), count) for p, count in known.values())
        further = _counted(joined, answers)
        if further.keys() == known.keys():
            return known
        known = further


def _counted(held: Iterable[tuple[Ints, int]], answers: Ints) -> Counted:
    """Add up the forms of equal partitions; those that tell nothing are left out."""
    out: Counted = {}
    for partition, count in held:
        if _tells(partition, answers):
            key = partition.tobytes()
            out[key] = partition, count + out.get(key, (partition, 0))[1]
    return out


def _tells(partition: Ints, answers: Ints) -> bool:
    told = partition[answers]
    return len(told) > 0 and not bool((told == told[0]).all())
