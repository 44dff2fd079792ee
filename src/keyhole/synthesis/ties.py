"""Ties: what a target and another column may say together.

An age of 52 beside an age group of 60 to 69 tells that one of them was replaced, and which record
was at risk. So where a column nearly follows from a target, or is its kin, a record only receives
values that the original has with the record's own value of that column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Flags, Ints
from keyhole.synthesis.associations import KIN, associate, evenly, grouped
from keyhole.synthesis.design import is_number

__all__ = ["Tie", "find_ties", "telling"]


# How sure one of two columns is if the other is known, from 0 for not at all to 1.
FOLLOWS = 0.95
# Of the spread of a number this share is left if a column nearly tells it.
LEFT = 0.001
# A column of fewer records says too little of what is possible.
LEAST_RECORDS = 5
# Fewer records than this may look tied by chance.
LEAST_FILE = 200
RECORDS = 20_000
# Numbers of more values than this are cut into bins, and wider categories bind nothing.
MOST_GROUPS = 60
MOST_CELLS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Tie:
    """Which codes of a target may meet which groups of a column.

    `groups` are those of the column by record; `allowed` has a row a code of the target.
    """

    target: str
    column: str
    groups: Ints
    allowed: Flags


def find_ties(data: Microdata, targets: Iterable[str], columns: Iterable[str]) -> tuple[Tie, ...]:
    """Find the columns that a target may not contradict.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> frame = pl.DataFrame({"age": [*range(20, 90)] * 9}).with_columns(
    ...     band=pl.col("age") // 10, coin=pl.col("age") % 2
    ... )
    >>> data = load(frame, kinds={"age": "measure"})
    >>> [(tie.target, tie.column) for tie in find_ties(data, ["age"], ["band", "coin"])]
    [('age', 'band')]
    """
    if data.records < LEAST_FILE:
        return ()
    groups = {name: _groups(data, name) for name in columns}
    some = evenly(data.records, RECORDS)
    found = []
    for target in targets:
        goal, pairs = grouped(data, target)[some], _neighbours(data, target)
        for name, values in groups.items():
            size = int(values.max()) + 1
            fits = 1 < size <= MOST_GROUPS and size * data.codes(target).size <= MOST_CELLS
            if name == target or not fits:
                continue
            near = associate(goal, grouped(data, name)[some]).v >= KIN
            if near or _sureness(values, *pairs) >= FOLLOWS:
                found.append(_tie(data, target, name, values))
    return tuple(found)


def telling(
    data: Microdata, targets: Sequence[str], columns: Iterable[str]
) -> list[tuple[str, str]]:
    """Return targets with the columns that nearly tell them: replacing those protects nobody."""
    if data.records < LEAST_FILE:
        return []
    found = []
    for name in columns:
        pairs = _neighbours(data, name)
        found += [
            (target, name)
            for target in targets
            if name != target and _tells(data, name, target, *pairs)
        ]
    return found


def _tells(data: Microdata, name: str, target: str, before: Ints, after: Ints) -> bool:
    """Tell whether records alike in a column are alike in the target."""
    if min(data.codes(name).size, data.codes(target).size) < 2:
        return False
    values = data.codes(target).values.astype(np.int64)
    if not is_number(data, target):
        return _sureness(values, before, after) >= FOLLOWS
    counts = np.bincount(values)
    rank = (np.cumsum(counts) - counts / 2) / len(values)
    spread = float(np.var(rank[values]))
    if not len(before) or not spread:
        return False
    left = float(np.mean((rank[values[before]] - rank[values[after]]) ** 2)) / 2
    return left <= LEFT * spread


def _neighbours(data: Microdata, name: str) -> tuple[Ints, Ints]:
    """Return pairs of records next to each other in a column's order, equal ones in any order.

    Records of different categories are no neighbours.
    """
    values = data.codes(name).values
    shuffled = np.random.default_rng(0).permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    before, after = order[:-1], order[1:]
    if is_number(data, name):
        return before, after
    same = values[before] == values[after]
    return before[same], after[same]


def _sureness(groups: Ints, before: Ints, after: Ints) -> float:
    """Return how much more often neighbours agree than any two records, as a share of the most."""
    if 2 * len(before) < len(groups):
        return 0.0
    by_chance = float(((np.bincount(groups) / len(groups)) ** 2).sum())
    agree = float(np.mean(groups[before] == groups[after]))
    return (agree - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def _groups(data: Microdata, name: str) -> Ints:
    """Return the codes of a column, a number of very many values in bins."""
    codes = data.codes(name)
    if codes.size <= MOST_GROUPS or not is_number(data, name):
        return codes.values.astype(np.int64)
    return grouped(data, name)


def _tie(data: Microdata, target: str, name: str, groups: Ints) -> Tie:
    codes = data.codes(target)
    seen = np.zeros((codes.size, int(groups.max()) + 1), dtype=np.bool_)
    seen[codes.values, groups] = True
    if is_number(data, target):
        # Between the lowest and the highest number of a group all are possible.
        known = seen[: len(codes.levels)]
        below = np.maximum.accumulate(known, axis=0)
        above = np.maximum.accumulate(known[::-1], axis=0)[::-1]
        seen[: len(codes.levels)] = below & above
    seen[:, np.bincount(groups) < LEAST_RECORDS] = True
    return Tie(target, name, groups, seen)
