"""Nearest neighbours of every PUF record in the EIF, exactly and without the Cartesian product.

Both files are collapsed to distinct patterns. For each pattern of the PUF those of the EIF are
looked through cell by cell, the cheapest first (`keyhole.kernels.scanning`). Where that means to
look at a large part of them, two trees are tried before (`keyhole.kernels.nearest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from keyhole.engines.resources import workers
from keyhole.kernels import nearest, scanning
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.kernels.grading import Asked
from keyhole.reidentification.costs import Costs
from keyhole.reidentification.indexing import (
    FilePatterns,
    arrange,
    collapse,
    make_bins,
    make_index,
    make_rules,
    pack_counted,
)
from keyhole.reidentification.variables import LinkCodes

Progress = Callable[[int, int], None]
A = TypeVar("A")
T = TypeVar("T")

# Queries of one piece of work, and pieces tried before it is decided how to go on.
SPAN = 2048
PILOTS = 8
# Trees are tried if a scan looks at more patterns than this for a query. There a query is given
# up once it has visited this part of the number of patterns that a scan looks at.
MANY = 20_000
PATIENCE = 1 / 30
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
    strata: LinkCodes | None,
    cap: int,
    *,
    trees: int = 2,
    scans: bool = True,
    progress: Progress | None = None,
) -> Ranked:
    """Find the pairs below the threshold whose ranks hold no more pairs than the cap.

    However many `trees`, and with or without `scans` cell by cell, the answer is the same.
    """
    puf, eif = (_patterns(costs, strata, file) for file in ("puf", "eif"))
    search = _Search(costs, puf, eif, cap, trees)
    found = search.run(progress) if scans else search.climb_only(progress)
    return _expand(np.concatenate(list(found)), puf, eif)


def _patterns(costs: Costs, strata: LinkCodes | None, file: str) -> FilePatterns:
    """Collapse a file by counted variables, graded values and stratum."""
    columns = [getattr(category, file) for category in costs.counted]
    sizes = [category.size for category in costs.counted]
    for graded in costs.graded:
        levels, codes = np.unique(getattr(graded, file), return_inverse=True)
        columns.append(codes.astype(np.int32))
        sizes.append(len(levels))
    alone = np.zeros(len(columns[0]), dtype=np.int32)
    columns.append(alone if strata is None else getattr(strata, file))
    sizes.append(1 if strata is None else len(strata.levels))
    return collapse(columns, sizes)


def _graded_values(costs: Costs, file: str) -> Floats:
    records = len(getattr((costs.counted or costs.graded)[0], file))
    columns = [getattr(graded, file) for graded in costs.graded]
    return np.column_stack(columns) if columns else np.zeros((records, 0))


def _ask(costs: Costs, puf: FilePatterns, filled: Flags) -> Asked:
    """Lay the queries out; who is in a stratum that the EIF has not is asked nothing."""
    first, counted = puf.first_records, len(costs.counted)
    values = _graded_values(costs, "puf")[first]
    numbers = puf.codes[:, counted:-1]
    codes = np.hstack([puf.codes[:, :counted], np.where(np.isnan(values), -1, numbers)])
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
        self, costs: Costs, puf: FilePatterns, eif: FilePatterns, cap: int, trees: int
    ) -> None:
        self._costs, self._puf, self._eif, self._cap, self._trees = costs, puf, eif, cap, trees
        self._values = _graded_values(costs, "eif")[eif.first_records]
        strata = max(int(puf.codes[:, -1].max()), int(eif.codes[:, -1].max())) + 1
        self._strata = strata
        self._asked = _ask(costs, puf, np.bincount(eif.codes[:, -1], minlength=strata) > 0)
        self._rules = make_rules(costs)
        self._queries = np.flatnonzero(self._asked.root >= 0)

    def run(self, progress: Progress | None) -> Iterator[Ints]:
        """Yield rows of (PUF pattern, EIF pattern, key): scan, unless that looks at too many."""
        scan, groups = self._scanner()
        pieces = self._pieces(self._queries[np.argsort(groups[self._queries], kind="stable")])
        every = -(-len(pieces) // PILOTS)
        pilots, rest = pieces[::every], [p for i, p in enumerate(pieces) if i % every]
        tell, looked = _teller(progress, len(self._queries)), 0
        for piece, (found, work) in in_turn(scan, pilots):
            yield found
            looked += work
            tell(len(piece))
        each = looked / max(1, sum(map(len, pilots)))
        if rest and each > MANY:
            left = []
            for piece, (found, given_up) in in_turn(self._climber(int(each * PATIENCE)), rest):
                yield found
                left.append(given_up)
                tell(len(piece) - len(given_up))
            rest = self._pieces(np.concatenate(left))
        for piece, (found, _) in in_turn(scan, rest):
            yield found
            tell(len(piece))

    def climb_only(self, progress: Progress | None) -> Iterator[Ints]:
        """Yield the same from the trees alone."""
        tell = _teller(progress, len(self._queries))
        for piece, (found, _) in in_turn(self._climber(NEVER), self._pieces(self._queries)):
            yield found
            tell(len(piece))

    @staticmethod
    def _pieces(queries: Ints) -> list[Ints]:
        return np.array_split(queries, max(1, -(-len(queries) // SPAN)))

    def _scanner(self) -> tuple[Callable[[Ints], tuple[Ints, int]], Ints]:
        """Return what looks through the cells for a piece of the queries, and their groups.

        It gives rows of (query, pattern, key), and how many patterns were looked at. Queries of
        the same group should be asked together.
        """
        given = arrange(self._costs, self._rules, self._puf, self._eif, self._asked, self._values)
        limits = scanning.Limits(self._costs.bound, self._cap)
        return lambda queries: scanning.scan(
            given.cells, given.side, self._asked, self._rules, given.prices, limits, queries,
            given.groups, given.posts,
        ), given.groups  # fmt: skip

    def _climber(self, patience: int) -> Callable[[Ints], tuple[Ints, Ints]]:
        """Plant the trees; return what searches them for a piece of the queries."""
        costs, unit = self._costs, self._costs.unit()
        bins, binned = make_bins(costs, self._values)
        codes = np.ascontiguousarray(np.hstack([self._eif.codes[:, : len(costs.counted)], binned]))
        index = make_index(costs, self._eif, self._values, codes, self._strata, self._trees)
        budget = nearest.Budget(_steps(costs, unit), costs.bound, self._cap, patience, unit)
        return lambda queries: nearest.search(
            index.trees, index.sides, index.halves, self._asked,
            self._rules, bins, budget, queries, index.room,
        )  # fmt: skip


def _teller(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Return what is to be called with the number of queries done since."""
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    return tell


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
    pool = ThreadPoolExecutor(workers())
    try:
        yield from zip(pieces, pool.map(work, pieces), strict=True)
    except BaseException:
        if stop is not None:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _expand(found: Ints, puf: FilePatterns, eif: FilePatterns) -> Ranked:
    """Turn pairs of patterns into pairs of records, in order of PUF record, rank, EIF record."""
    query, pattern, keys = found[np.lexsort(found.T[[1, 2, 0]])].T
    # The distinct keys of each query, which are sorted already, are numbered from 1.
    fresh = np.diff(query, prepend=-1) != 0
    numbers = np.cumsum(fresh | (np.diff(keys, prepend=-1) != 0))
    starts = np.flatnonzero(fresh)
    ranks = numbers - np.repeat(numbers[starts] - 1, np.diff(starts, append=len(query)))
    # All pairs of records of each pair of patterns.
    sizes = puf.counts[query] * eif.counts[pattern]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    width = np.repeat(eif.counts[pattern], sizes)
    left = puf.records[np.repeat(puf.starts[query], sizes) + within // width].astype(np.int64)
    right = eif.records[np.repeat(eif.starts[pattern], sizes) + within % width].astype(np.int64)
    pair = np.repeat(np.arange(len(found)), sizes)
    order = _in_order(left, ranks[pair], right)
    pair = pair[order]
    return Ranked(left[order], right[order], keys[pair], ranks[pair])


def _in_order(left: Ints, ranks: Ints, right: Ints) -> Ints:
    """Return the order by the first, then the second, then the third; none is negative."""
    bits = [int(x.max(initial=0)).bit_length() for x in (left, ranks, right)]
    if sum(bits) > 63:
        return np.lexsort([right, ranks, left])
    return np.argsort((left << (bits[1] + bits[2])) | (ranks << bits[2]) | right)
