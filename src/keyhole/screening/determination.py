"""What two variables determine together, exactly: A and B leave C no choice.

Such a set is told only where it is minimal (neither A nor B determines C, nor does a coarser
pair that follows from this one) and where chance can hardly have made it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.resources import in_threads
from keyhole.kernels.pairing import number_pairs, settled
from keyhole.screening.dependence import Dependence, says_something

__all__ = ["Determination", "determinations"]

# The chance that a set of strangers would look like this: at most about one in ten thousand
# over all the sets that are tried.
CHANCE = 1e-4
SHUFFLE = 7
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Determination:
    """One or two variables that determine another exactly.

    `equivalent` says that a single one is determined by the other, too.
    """

    by: tuple[str, ...]
    determined: str
    equivalent: bool = False

    def __str__(self) -> str:
        return f"{self.determined!r} is determined by {' and '.join(map(repr, self.by))}"


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The columns, shuffled so that a contradiction comes up early, and what is known."""

    names: tuple[str, ...]
    table: Ints
    sizes: tuple[int, ...]
    known: frozenset[tuple[str, str]]

    def tells(self, one: int, other: int) -> bool:
        return (self.names[one], self.names[other]) in self.known


def determinations(
    columns: Mapping[str, Codes], pairs: Sequence[Dependence]
) -> list[Determination]:
    """Find the pairs of variables that together determine a third.

    Parameters
    ----------
    columns
        The encoded columns by name.
    pairs
        What `dependences` found among the same columns.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data.columns import encode
    >>> from keyhole.screening.dependence import dependences
    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.integers(0, 4, (2, 300))
    >>> frame = pl.DataFrame({"a": a, "b": b, "sum": a + b})
    >>> codes = {name: encode(frame[name]) for name in frame.columns}
    >>> print(determinations({n: codes[n] for n in ("sum", "a", "b")}, dependences(codes))[0])
    'b' is determined by 'sum' and 'a'
    """
    search = _search(columns, pairs)
    chosen = list(itertools.combinations(range(len(search.names)), 2))
    chosen = [(a, b) for a, b in chosen if not (search.tells(a, b) or search.tells(b, a))]
    chance = CHANCE / max(1, len(chosen) * len(search.names))
    found = in_threads(lambda pair: _of_pair(search, *pair, chance), chosen)
    return _minimal(search, [one for several in found for one in several])


def _search(columns: Mapping[str, Codes], pairs: Sequence[Dependence]) -> _Search:
    """Leave out what says nothing, and of columns that are the same in other words all but one."""
    known = {(str(d.determining), str(d.determined)) for d in pairs if d.determined is not None}
    known |= {(one, other) for d in pairs if d.equivalent for one, other in _both(d)}
    again = {d.second for d in pairs if d.equivalent}
    names = tuple(n for n, c in columns.items() if says_something(c) and n not in again)
    records = len(next(iter(columns.values())).values) if columns else 0
    order = np.random.default_rng(SHUFFLE).permutation(records)
    table = np.empty((len(names), records), dtype=np.int32)
    for place, name in enumerate(names):
        table[place] = columns[name].values[order]
    sizes = tuple(columns[name].size for name in names)
    return _Search(names, table, sizes, frozenset(known))


def _both(pair: Dependence) -> list[tuple[str, str]]:
    return [(pair.first, pair.second), (pair.second, pair.first)]


def _of_pair(search: _Search, a: int, b: int, chance: float) -> list[tuple[int, int, int]]:
    records = search.table.shape[1]
    numbers, cells = number_pairs(search.table[a], search.table[b], search.sizes[b], records // 2)
    if cells > records // 2:
        return []
    wanted = [
        c
        for c in range(len(search.names))
        if c not in (a, b) and not search.tells(a, c) and not search.tells(b, c)
    ]
    holds = settled(numbers, cells, search.table, np.array(wanted, dtype=np.int32))
    return [
        (a, b, c)
        for c, it_does in zip(wanted, holds, strict=True)
        if it_does and all(_luck(search, numbers, cells, one, c) < np.log(chance) for one in (a, b))
    ]


def _luck(search: _Search, numbers: Ints, cells: int, one: int, target: int) -> float:
    """Bound the log-probability that the cells settle the target by chance, given one alone.

    Within a level of that one, f records of a cell agree with probability Σ p^f, which is at
    most (the largest p)^(f - 1).
    """
    rows = search.table[one]
    joint, several = number_pairs(rows, search.table[target], search.sizes[target], len(rows))
    row_of = np.empty(several, dtype=np.int64)
    row_of[joint] = rows
    largest = np.zeros(search.sizes[one])
    np.maximum.at(largest, row_of, np.bincount(joint, minlength=several))
    largest /= np.bincount(rows, minlength=search.sizes[one])
    level = np.empty(cells, dtype=np.int64)
    level[numbers] = rows
    repeats = np.bincount(numbers, minlength=cells) - 1
    return float((repeats * np.log(largest[level])).sum())


def _minimal(search: _Search, found: Sequence[tuple[int, int, int]]) -> list[Determination]:
    """Leave out what follows from another set that was found."""
    triples = {(frozenset((a, b)), c) for a, b, c in found}

    def follows(a: int, b: int, c: int) -> bool:
        coarser = any(
            (frozenset((x, y)), c) in triples
            for x in range(len(search.names))
            for y in range(len(search.names))
            if {x, y} != {a, b}
            and (x == a or search.tells(a, x))
            and (y == b or search.tells(b, y))
        )
        finer = any(
            (frozenset((a, b)), x) in triples and search.tells(x, c)
            for x in range(len(search.names))
            if x != c
        )
        return coarser or finer

    return [
        Determination((search.names[a], search.names[b]), search.names[c])
        for a, b, c in found
        if not follows(a, b, c)
    ]
