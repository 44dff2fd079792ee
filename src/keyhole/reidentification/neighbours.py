"""Nearest neighbours of every PUF record in the EIF, exactly and without the Cartesian product.

Both files are collapsed to distinct patterns. For each pattern of the PUF those of the EIF are
looked through cell by cell, the cheapest first (`keyhole.kernels.scanning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from keyhole.engines.resources import workers
from keyhole.kernels import scanning
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.kernels.grading import Asked
from keyhole.reidentification.costs import Costs
from keyhole.reidentification.indexing import (
    FilePatterns,
    arrange,
    collapse,
    make_rules,
    pack_counted,
)
from keyhole.reidentification.variables import LinkCodes

Progress = Callable[[int, int], None]
A = TypeVar("A")
T = TypeVar("T")

# Queries of one piece of work.
SPAN = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Pairs of records that the rank rule keeps: keys are a billion times the ranked score."""

    puf: Ints
    eif: Ints
    keys: Ints
    ranks: Ints


def find_nearest(
    costs: Costs, strata: LinkCodes | None, cap: int, *, progress: Progress | None = None
) -> Ranked:
    """Find the pairs below the threshold whose ranks hold no more pairs than the cap."""
    puf, eif = (_patterns(costs, strata, file) for file in ("puf", "eif"))
    values = _graded_values(costs, "eif")[eif.first_records]
    last = max(int(puf.codes[:, -1].max()), int(eif.codes[:, -1].max()))
    asked = _ask(costs, puf, np.bincount(eif.codes[:, -1], minlength=last + 1) > 0)
    rules = make_rules(costs)
    given = arrange(costs, rules, puf, eif, asked, values)
    limits = scanning.Limits(costs.bound, cap)

    def scan(queries: Ints) -> Ints:
        rows: Ints = scanning.scan(
            given.cells, given.side, asked, rules, given.prices, limits, queries,
            given.groups, given.posts,
        )  # fmt: skip
        return rows

    # Queries of the same group are asked together.
    queries = np.flatnonzero(asked.root >= 0)
    queries = queries[np.argsort(given.groups[queries], kind="stable")]
    found, done = [], 0
    pieces = np.array_split(queries, max(1, -(-len(queries) // SPAN)))
    for piece, rows in in_turn(scan, pieces):
        found.append(rows)
        done += len(piece)
        if progress is not None:
            progress(done, len(queries))
    return _expand(np.concatenate(found), puf, eif)


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
