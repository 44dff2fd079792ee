"""Local suppression where a missing value is a category of its own.

Records below k that agree on all but some variables become one cell when those are taken away
from all of them; where they are too few for a cell, records of large cells are asked to join. The
ways are gone through from the one that costs least for each record settled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Ints, Words
from keyhole.protection.putting_back import put_back
from keyhole.protection.suppression_sets import Key, Sets, as_keys

__all__ = ["suppress_as_own"]


@dataclass(slots=True, eq=False)
class _State:
    """The rows as they are by now, and who is below k."""

    key: Key
    rows: Words
    gone: Words
    below: Flags
    k: int


def suppress_as_own(key: Key, k: int, allowed: int, sets: Sets) -> Words:
    """Return by record the mask of the variables to take away.

    Parameters
    ----------
    key
        The key, packed.
    k, allowed
        The wanted size of every cell, and how many records may stay below it.
    sets
        What may be taken away, the cheapest first.
    """
    state = _State(key, key.rows.copy(), key.gone.copy(), np.zeros(len(key.rows), np.bool_), k)
    state.below = _sizes(state.rows) < k
    for place, fewest in _ways(sets, k):
        if state.below.sum() <= allowed:
            break
        _settle(state, sets.members(place), fewest)
    if state.below.sum() > allowed:
        _sacrifice(state, sets.members(len(sets.masks) - 1))
    return put_back(key, state.gone & ~key.gone, k, allowed)


def _ways(sets: Sets, k: int) -> list[tuple[int, int]]:
    """Return (set, fewest records below k) in the order of the cost of settling one record."""
    ways = [
        (cost * k / fewest, place, fewest)
        for place, cost in enumerate(sets.costs.tolist())
        for fewest in range(1, k + 1)
    ]
    return [(place, fewest) for _, place, fewest in sorted(ways)]


def _sizes(rows: Words) -> Ints:
    _, cells, counts = np.unique(as_keys(rows), return_inverse=True, return_counts=True)
    return np.asarray(counts[cells])


def _settle(state: _State, variables: list[int], fewest: int) -> None:
    """Take variables away from records below k where that makes cells of k."""
    rows = np.flatnonzero(state.below)
    new = as_keys(state.key.without(state.rows[rows], variables))
    levels, cells, counts = np.unique(new, return_inverse=True, return_counts=True)
    there = np.sort(as_keys(state.rows[~state.below]))
    held = np.searchsorted(there, levels, side="right") - np.searchsorted(there, levels)
    short = state.k - counts - held
    done = short <= 0
    if fewest < state.k:
        asked = np.flatnonzero((short > 0) & (counts >= fewest))
        if len(asked):
            done[_joined(state, variables, levels, asked, short)] = True
    hit = rows[done[cells]]
    _take(state, hit, variables)
    state.below[hit] = False


def _take(state: _State, hit: Ints, variables: list[int]) -> None:
    state.rows[hit] = state.key.without(state.rows[hit], variables)
    state.gone[hit] |= np.uint64(sum(1 << v for v in variables))


def _joined(
    state: _State,
    variables: list[int],
    levels: npt.NDArray[np.generic],
    asked: Ints,
    short: Ints,
) -> Ints:
    """Make records of cells larger than k join the cells that are short; return which are full."""
    rows = np.flatnonzero(~state.below)
    _, cells, counts = np.unique(as_keys(state.rows[rows]), return_inverse=True, return_counts=True)
    spare = counts - state.k
    able = rows[spare[cells] > 0]
    own = dict(zip(able.tolist(), cells[spare[cells] > 0].tolist(), strict=True))
    new = as_keys(state.key.without(state.rows[able], variables))
    order = np.argsort(new, kind="stable")
    first = np.searchsorted(new[order], levels[asked])
    last = np.searchsorted(new[order], levels[asked], side="right")
    full, joined = [], []
    for cell, a, b in zip(asked.tolist(), first.tolist(), last.tolist(), strict=True):
        picked = _pick(able[order[a:b]].tolist(), own, spare, int(short[cell]))
        if picked:
            joined += picked
            full.append(cell)
    _take(state, np.array(joined, dtype=np.int64), variables)
    return np.array(full, dtype=np.int64)


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


def _sacrifice(state: _State, variables: list[int]) -> None:
    """Where nobody can be spared, let whole cells join the few that are left below k."""
    while state.below.any():
        rows = np.flatnonzero(state.below)
        new = as_keys(state.key.without(state.rows, variables))
        old = as_keys(state.rows)
        others = np.flatnonzero(~state.below & (new == new[rows[0]]))
        if not len(others):
            return
        levels, counts = np.unique(old[others], return_counts=True)
        joined = others[old[others] == levels[np.argmin(counts)]]
        _take(state, np.concatenate([joined, rows[new[rows] == new[rows[0]]]]), variables)
        state.below = _sizes(state.rows) < state.k
