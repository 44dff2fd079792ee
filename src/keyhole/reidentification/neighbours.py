"""Nearest neighbours of every PUF record in the EIF, exactly and without the Cartesian product.

Both files are collapsed to distinct patterns. For each pattern of the PUF those of the EIF are
looked through cell by cell, the cheapest first (`keyhole.kernels.scanning`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keyhole.engines.partition import sort
from keyhole.engines.resources import in_turn
from keyhole.kernels import scanning
from keyhole.kernels.arrays import Flags, Floats, Ints, Numbers, Words
from keyhole.kernels.cells import bounds
from keyhole.kernels.fields import Fields, fields_of
from keyhole.kernels.grading import TABLE, Asked, Rules, Side, least_grades
from keyhole.kernels.packing import Layout, in_order, layout, pack
from keyhole.kernels.scanning import CODES, CellIndex, Prices
from keyhole.reidentification.scores import Costs, Graded
from keyhole.reidentification.variables import LinkCodes

# An anchor must be shared by no more than this part of the patterns, on average.
SHARED = 1 / 32
# Groups of queries times cells, as part of all pairs of patterns.
GROUPED = 1 / 400
# Prices held for the values of the queries; bins of a variable, if that allows it.
MOST_PRICES = 1 << 22
FEWEST_BINS, MOST_BINS = 16, CODES - 1


@dataclass(frozen=True, slots=True, eq=False)
class FilePatterns:
    """The distinct patterns of a file."""

    codes: Numbers  # one row a pattern, one column a variable
    counts: Ints  # how many records have each pattern
    records: Numbers  # the record numbers, those of a pattern side by side and in order

    @property
    def starts(self) -> Ints:
        """Where the records of each pattern start, and at the end their number."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def first_records(self) -> Numbers:
        """One record of each pattern."""
        return self.records[self.starts[:-1]]


def collapse(columns: Sequence[Numbers], sizes: Sequence[int]) -> FilePatterns:
    """Collapse the records to their distinct patterns."""
    plan = layout(list(sizes))
    rows = pack([column.astype(np.uint32) for column in columns], plan)
    tags = np.arange(len(rows), dtype=np.int32)
    everything = range(len(columns))
    sort(rows, tags, np.array([0, len(rows)], dtype=np.int64), plan, everything)
    starts = bounds(rows, plan.mask(everything))
    counts = np.diff(starts)
    # The sort is not stable: put the records of patterns that several have in order.
    several = np.flatnonzero(np.repeat(counts > 1, counts))
    cell = np.repeat(np.arange(len(counts)), np.where(counts > 1, counts, 0))
    tags[several] = tags[several][np.lexsort((tags[several], cell))]
    first = tags[starts[:-1]]
    codes = np.column_stack([column[first] for column in columns]).astype(np.int32)
    return FilePatterns(codes, counts, tags)


def entropy(counts: npt.NDArray[np.integer] | npt.NDArray[np.floating]) -> float:
    """Return the entropy of counts by code, in bits: how much a variable tells people apart."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def make_rules(costs: Costs) -> Rules:
    """Lay the prices out for the kernels."""
    _, fields = _fields(costs)
    banded = [graded for graded in costs.graded if graded.prices]
    tables = [graded.table for graded in costs.graded]
    return Rules(
        fields.low,
        fields.high,
        fields.missing,
        np.array([category.missing for category in costs.counted], dtype=np.int64),
        costs.differ,
        costs.absent,
        np.array([graded.kind for graded in costs.graded], dtype=np.int64),
        np.array([graded.absent for graded in costs.graded], dtype=np.float64),
        starts_of([len(graded.prices) for graded in costs.graded]),
        np.array([x for graded in banded for x in (*graded.limits, np.inf)], dtype=np.float64),
        np.array([x for graded in banded for x in graded.prices], dtype=np.float64),
        starts_of([table.size for table in tables])[:-1],
        np.array([table.shape[1] for table in tables], dtype=np.int64),
        np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]),
        costs.root,
        costs.scale,
    )


def starts_of(lengths: Sequence[int]) -> Ints:
    """Return where parts of these lengths start, and at the end where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _fields(costs: Costs) -> tuple[Layout | None, Fields]:
    if not costs.counted:
        nothing = np.zeros(1, dtype=np.uint64)
        return None, Fields(nothing, nothing, nothing)
    plan = in_order([category.size for category in costs.counted])
    return plan, fields_of(plan, [category.missing for category in costs.counted])


def pack_counted(costs: Costs, codes: Numbers) -> Words:
    """Pack the counted variables, which are the first columns of the codes."""
    plan, _ = _fields(costs)
    if plan is None:
        return np.zeros((len(codes), 1), dtype=np.uint64)
    return pack([codes[:, v].astype(np.uint32) for v in range(len(costs.counted))], plan)


def cut_into_bins(values: Floats, most: int) -> tuple[Numbers, int]:
    """Cut values into bins of about as many patterns each, missing in the next; count the bins."""
    known = values[~np.isnan(values)]
    edges = np.unique(known)[1:]
    if len(edges) >= most:
        shares = np.arange(1, most) / most
        edges = np.unique(np.quantile(known, shares, method="higher"))
        edges = edges[edges > known.min()]
    bins = np.searchsorted(edges, values, side="right").astype(np.int32)
    bins[np.isnan(values)] = len(edges) + 1
    return bins, len(edges) + 1


def arrange(
    costs: Costs, rules: Rules, puf: FilePatterns, eif: FilePatterns, asked: Asked, values: Floats
) -> tuple[CellIndex, Side, Prices, Ints, Ints]:
    """Arrange the patterns of the external file for those of the public one, the queries.

    Returns them in cells, their prices, and by query its group and where its mates are.
    """
    prices, codes = _coarsen(costs, rules, asked, eif, values)
    # The counted variable that the fewest share, if few do.
    anchor, least = -1, SHARED
    for v in range(len(costs.counted)):
        shares = np.bincount(eif.codes[:, v]) / len(eif.codes)
        if (shares**2).sum() < least:
            anchor, least = v, float((shares**2).sum())
    front, groups, by_pattern = _split(puf, np.column_stack([codes, eif.codes[:, -1]]), anchor)
    anchors = eif.codes[:, anchor] if anchor >= 0 else np.zeros(len(codes), dtype=np.int32)
    places = np.argsort(by_pattern * (int(anchors.max()) + 1) + anchors, kind="stable")
    rows = pack_counted(costs, eif.codes)
    weights = np.minimum(eif.counts[places], np.iinfo(np.int32).max).astype(np.int32)
    side = Side(rows[places], values[places], weights, places.astype(np.int32))
    cells, posts = _lay_out(costs, puf, eif, front, by_pattern[places], codes, anchor, places)
    return cells, side, prices, groups, posts


def _coarsen(
    costs: Costs, rules: Rules, asked: Asked, eif: FilePatterns, values: Floats
) -> tuple[Prices, Numbers]:
    """Return the least prices, and the codes of the patterns, coarse for graded variables."""
    counted = len(costs.counted)
    sizes = [min(category.missing, CODES - 1) for category in costs.counted]
    coarse = [_coarse_codes(category.missing) for category in costs.counted]
    rows, codes = [np.zeros(0)], [eif.codes[:, v] for v in range(counted)]
    for g, graded in enumerate(costs.graded):
        # The queries' values in the order of their numbers; a missing one has none.
        numbers = asked.codes[:, counted + g]
        wanted = np.zeros(int(numbers.max(initial=-1)) + 1)
        wanted[numbers[numbers >= 0]] = asked.graded[numbers >= 0, g]
        most = min(MOST_BINS, max(FEWEST_BINS, MOST_PRICES // max(1, len(wanted))))
        bins, size = cut_into_bins(values[:, g], most)
        rows.append(_price_rows(graded, rules, g, wanted, values[:, g], bins, size).ravel())
        codes.append(bins)
        sizes.append(size)
    return Prices(
        np.array(sizes, dtype=np.int64),
        np.concatenate([np.zeros(0, dtype=np.int32), *coarse]),
        starts_of([len(c) for c in coarse]),
        np.concatenate(rows),
        np.concatenate([np.zeros(counted, dtype=np.int64), starts_of([len(r) for r in rows[1:]])]),
    ), np.column_stack(codes)


def _coarse_codes(missing: int) -> Numbers:
    """Return by code of a counted variable a coarse one, which for several may be the same."""
    codes = np.arange(missing + 1, dtype=np.int32) % (CODES - 1)
    codes[missing] = min(missing, CODES - 1)
    return codes


def _price_rows(
    graded: Graded, rules: Rules, g: int, wanted: Floats, values: Floats, bins: Numbers, size: int
) -> Floats:
    """Return by query's value the least price of each bin, and at the end that of missing."""
    out = np.full((len(wanted), size + 1), graded.absent)
    inside = np.sort(values[bins < size])
    ends = starts_of(np.bincount(bins[bins < size], minlength=size).tolist())
    if graded.kind == TABLE:
        for b in range(size):
            columns = np.unique(inside[ends[b] : ends[b + 1]]).astype(np.int64)
            out[:, b] = graded.table[wanted.astype(np.int64)][:, columns].min(axis=1)
    elif len(inside):
        least_grades(rules, g, wanted, inside[ends[:-1]], inside[ends[1:] - 1], out)
    return out


def _split(puf: FilePatterns, codes: Numbers, anchor: int) -> tuple[list[int], Ints, Ints]:
    """Take variables to the front, those of few codes first, while there are few cells.

    Returns them, and by query and by pattern the number of its cell.
    """
    strata, variables = puf.codes.shape[1] - 1, range(puf.codes.shape[1] - 1)
    groups, cells = puf.codes[:, strata].astype(np.int64), codes[:, strata].astype(np.int64)
    front: list[int] = []
    sizes = {v: int(puf.codes[:, v].max()) * int(codes[:, v].max()) for v in variables}
    for v in sorted((v for v in variables if v != anchor), key=lambda v: sizes[v]):
        finer = _number(groups, puf.codes[:, v]), _number(cells, codes[:, v])
        if (finer[0].max() + 1) * (finer[1].max() + 1) > GROUPED * len(groups) * len(cells):
            break
        (groups, cells), front = finer, [*front, v]
    return front, groups, _number(cells, np.zeros_like(cells))


def _number(cells: Ints, codes: npt.NDArray[np.integer]) -> Ints:
    """Number the cells that codes divide cells into, in order of cell and code."""
    ids = cells * (int(codes.max()) + 1) + codes
    if ids.max() > 16 * len(ids):
        return np.unique(ids, return_inverse=True)[1]
    held = np.bincount(ids) > 0
    return np.asarray((np.cumsum(held) - 1)[ids], dtype=np.int64)


def _lay_out(
    costs: Costs, puf: FilePatterns, eif: FilePatterns, front: list[int], cell: Ints,
    codes: Numbers, anchor: int, places: Ints,
) -> tuple[CellIndex, Ints]:  # fmt: skip
    """Put the patterns into their places; return them and by query where its mates are."""
    strata = eif.codes[places, -1]
    starts = starts_of(np.bincount(cell).tolist())
    anchors, wanted = np.zeros(len(cell), dtype=np.int32), np.zeros(len(puf.codes), dtype=np.int32)
    gone = np.zeros(len(starts) - 1, dtype=np.int64)
    if anchor >= 0:
        anchors, wanted = eif.codes[places, anchor], puf.codes[:, anchor]
        missing = anchors == costs.counted[anchor].missing
        gone = np.bincount(cell[missing], minlength=len(gone))
    rest = [v for v in range(codes.shape[1]) if v not in front and v != anchor]
    coarse = np.zeros((len(cell), len(rest)), dtype=np.uint8)
    for k, v in enumerate(rest):
        column = codes[places, v]
        if v < len(costs.counted):
            column = _coarse_codes(costs.counted[v].missing)[column]
        coarse[:, k] = column
    width = max(int(anchors.max()), int(wanted.max())) + 1
    keys = strata.astype(np.int64) * width + anchors
    anchored = np.argsort(keys, kind="stable")
    sought = puf.codes[:, -1].astype(np.int64) * width + wanted
    ends = [np.searchsorted(keys[anchored], sought, side=side) for side in ("left", "right")]
    cells = CellIndex(
        starts,
        starts[1:] - gone,
        np.ascontiguousarray(codes[places[starts[:-1]]][:, front].T, dtype=np.int32),
        np.array(front, dtype=np.int64),
        np.array(rest, dtype=np.int64),
        anchor,
        np.ascontiguousarray(anchors),
        coarse,
        anchored,
        cell[anchored],
        coarse[anchored],
        np.searchsorted(strata[starts[:-1]], np.arange(int(puf.codes[:, -1].max()) + 2)),
    )
    return cells, np.column_stack(ends)


Progress = Callable[[int, int], None]

# Queries of one piece of work.
SPAN = 2048


class Ranked(NamedTuple):
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
    cells, side, prices, groups, posts = arrange(costs, rules, puf, eif, asked, values)
    limits = scanning.Limits(costs.bound, cap)

    def scan(queries: Ints) -> Ints:
        rows: Ints = scanning.scan(
            cells, side, asked, rules, prices, limits, queries, groups, posts
        )
        return rows

    # Queries of the same group are asked together.
    queries = np.flatnonzero(asked.root >= 0)
    queries = queries[np.argsort(groups[queries], kind="stable")]
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
