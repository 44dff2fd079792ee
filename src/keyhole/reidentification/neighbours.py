"""The nearest ranks of every PUF record in the EIF, exactly and without the Cartesian product.

Both files are collapsed to distinct patterns. Each pattern of the PUF is searched for in two
trees over the patterns of the EIF (`keyhole.kernels.nearest`); those that are far from everybody
are looked for among all patterns at once (`keyhole.kernels.scanning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from keyhole.engines.threads import WORKERS
from keyhole.kernels import nearest, scanning
from keyhole.kernels.grading import Asked
from keyhole.reidentification.costs import Costs
from keyhole.reidentification.files import Category
from keyhole.reidentification.indexing import (
    Index,
    make_bins,
    make_index,
    make_planes,
    make_rules,
    pack_counted,
)
from keyhole.reidentification.patterns import Patterns, collapse

__all__ = ["Progress", "Ranked", "find_nearest", "in_turn"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]
A = TypeVar("A")
T = TypeVar("T")

# Queries of one piece of work, and pieces tried before it is decided how to go on.
SPAN = 2048
PILOTS = 8
# A query is given up in the trees when it has cost about half as much as looking at all patterns.
LEAST_PATIENCE = 500
PATIENCE = 1 / 1500
NEVER = 1 << 62
# Budgets one by one up to this many units, then in larger strides.
_SMALL_STEPS = 8
_MOST_UNITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Pairs of records that the rank rule keeps: keys are a billion times the ranked score."""

    puf: Ints
    eif: Ints
    keys: Ints
    ranks: Ints


def find_nearest(
    costs: Costs,
    strata: Category | None,
    cap: int,
    *,
    trees: int = 2,
    scans: bool = True,
    progress: Progress | None = None,
) -> Ranked:
    """Find the pairs below the threshold whose ranks hold no more pairs than the cap.

    Parameters
    ----------
    costs
        The prices of a pair.
    strata
        Records are compared within the same stratum only.
    cap
        Ranks are kept while they hold no more pairs than this, all in all.
    trees
        Two, or one for a plain tree: the answer is the same.
    scans
        Whether queries far from everybody may be looked for among all patterns at once: the
        answer is the same.
    progress
        Called now and then with the patterns of the PUF done and all of them.
    """
    puf, eif = (_patterns(costs, strata, file) for file in ("puf", "eif"))
    values = _graded_values(costs, "eif")[eif.first_records]
    bins, binned = make_bins(costs, values)
    codes = np.ascontiguousarray(np.hstack([eif.codes[:, : len(costs.counted)], binned]))
    count = 1 if strata is None else len(strata.levels)
    index = make_index(costs, eif, values, codes, count, trees)
    asked = _ask(costs, puf, np.diff(index.roots) > 0)
    search = _Search(costs, index, bins, asked, cap, scans=scans)
    return _expand(np.concatenate(list(search.run(progress))), puf, eif)


def _patterns(costs: Costs, strata: Category | None, file: str) -> Patterns:
    """Collapse a file by counted variables, graded values and stratum."""
    columns = [getattr(category, file) for category in costs.counted]
    sizes = [category.size for category in costs.counted]
    for graded in costs.graded:
        levels, codes = np.unique(getattr(graded, file), return_inverse=True)
        columns.append(codes.astype(np.int32))
        sizes.append(len(levels))
    if strata is None:
        columns.append(np.zeros(len(columns[0]), dtype=np.int32))
        sizes.append(1)
    else:
        columns.append(getattr(strata, file))
        sizes.append(len(strata.levels))
    return collapse(columns, sizes)


def _graded_values(costs: Costs, file: str) -> Floats:
    records = len(getattr((costs.counted or costs.graded)[0], file))
    columns = [getattr(graded, file) for graded in costs.graded]
    return np.column_stack(columns) if columns else np.zeros((records, 0))


def _ask(costs: Costs, puf: Patterns, filled: npt.NDArray[np.bool_]) -> Asked:
    """Lay the queries out; who is in a stratum that the EIF has not is asked nothing."""
    first, counted = puf.first_records, len(costs.counted)
    values = _graded_values(costs, "puf")[first]
    codes = np.hstack([puf.codes[:, :counted], np.where(np.isnan(values), -1, 0)])
    for v, category in enumerate(costs.counted):
        codes[codes[:, v] == category.missing, v] = -1
    stratum = puf.codes[:, -1]
    return Asked(
        pack_counted(costs, puf.codes),
        values,
        codes.astype(np.int32),
        costs.puf_base()[first],
        np.where(filled[stratum], stratum, -1).astype(np.int32),
    )


class _Search:
    """The queries to be searched for, and how."""

    def __init__(
        self, costs: Costs, index: Index, bins: nearest.Bins, asked: Asked, cap: int, *, scans: bool
    ) -> None:
        self._costs, self._index, self._bins, self._asked = costs, index, bins, asked
        self._rules, self._scans = make_rules(costs), scans
        unit = costs.unit()
        patience = LEAST_PATIENCE + int(PATIENCE * index.codes.size) if scans else NEVER
        self._budget = nearest.Budget(_steps(costs, unit), costs.bound, cap, patience, unit)

    def run(self, progress: Progress | None) -> Iterator[Ints]:
        """Yield rows of (PUF pattern, EIF pattern, key)."""
        queries = np.flatnonzero(self._asked.root >= 0)
        pieces = np.array_split(queries, max(1, -(-len(queries) // SPAN)))
        every = -(-len(pieces) // PILOTS)
        pilots, rest = pieces[::every], [p for i, p in enumerate(pieces) if i % every]
        done, left, asked = 0, [np.zeros(0, dtype=np.int64)], sum(map(len, pilots))
        for stage in (pilots, rest):
            if stage is rest and 2 * sum(map(len, left)) > asked:
                left += rest
                break
            for piece, (found, given_up) in in_turn(self._climb, stage):
                yield found
                left.append(given_up)
                done += len(piece) - len(given_up)
                if progress is not None:
                    progress(done, len(queries))
        for piece, found in self._look(np.concatenate(left)):
            yield found
            done += len(piece)
            if progress is not None:
                progress(done, len(queries))

    def _climb(self, queries: Ints) -> tuple[Ints, Ints]:
        index = self._index
        found: tuple[Ints, Ints] = nearest.search(
            index.trees, index.sides, index.halves, self._asked,
            self._rules, self._bins, self._budget, queries, index.room,
        )  # fmt: skip
        return found

    def _look(self, queries: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Look for the queries among all patterns at once."""
        if not len(queries):
            return
        index = self._index
        planes = make_planes(self._costs, index, self._bins, self._costs.counting_unit())
        yield from in_turn(
            lambda piece: scanning.scan(
                planes, index.sides[0], index.roots, self._asked,
                self._rules, self._bins, self._budget, piece, index.trees[0],
            ),
            np.array_split(queries, -(-len(queries) // SPAN)),
        )  # fmt: skip


def _steps(costs: Costs, unit: float) -> Floats:
    """Return the budgets to try in turn; the last is without limit."""
    most = costs.largest
    if unit and most <= unit * _MOST_UNITS:
        units = list(range(min(_SMALL_STEPS, int(most / unit)) + 1))
        while units[-1] * 1.25 < most / unit:
            units.append(int(units[-1] * 1.25) + 1)
        return np.array([*units, np.inf]) * unit
    return np.array([*(most / 2.0**k for k in range(6, 0, -1)), np.inf])


def in_turn(
    work: Callable[[A], T], pieces: Sequence[A], stop: Callable[[], None] | None = None
) -> Iterator[tuple[A, T]]:
    """Work on the pieces on all cores and yield them in turn.

    If it is interrupted, pieces not yet begun are dropped, and `stop` is called for the others.
    """
    pool = ThreadPoolExecutor(WORKERS)
    try:
        yield from zip(pieces, pool.map(work, pieces), strict=True)
    except BaseException:
        if stop is not None:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _expand(found: Ints, puf: Patterns, eif: Patterns) -> Ranked:
    """Turn pairs of patterns into pairs of records, in order of PUF record, rank, EIF record."""
    found = found[np.lexsort([found[:, 1], found[:, 2], found[:, 0]])]
    query, pattern, keys = found.T
    ranks = _dense_ranks(query, keys)
    left, right = _product(puf, query, eif, pattern)
    pair = np.repeat(np.arange(len(found)), puf.counts[query] * eif.counts[pattern])
    order = np.lexsort([right, ranks[pair], left])
    pair = pair[order]
    return Ranked(left[order], right[order], keys[pair], ranks[pair])


def _dense_ranks(query: Ints, keys: Ints) -> Ints:
    """Number the distinct keys of each query from 1; both are sorted already."""
    fresh = np.diff(query, prepend=-1) != 0
    numbers = np.cumsum(fresh | (np.diff(keys, prepend=-1) != 0))
    starts = np.flatnonzero(fresh)
    before = np.repeat(numbers[starts] - 1, np.diff(starts, append=len(query)))
    return np.asarray(numbers - before, dtype=np.int64)


def _product(puf: Patterns, query: Ints, eif: Patterns, pattern: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of records of each pair of patterns."""
    sizes = puf.counts[query] * eif.counts[pattern]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    width = np.repeat(eif.counts[pattern], sizes)
    left = np.repeat(puf.starts[query], sizes) + within // width
    right = np.repeat(eif.starts[pattern], sizes) + within % width
    return puf.records[left].astype(np.int64), eif.records[right].astype(np.int64)
