"""The external file arranged for the search: two trees, coarse codes and planes of bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.fields import Fields, fields_of, in_order
from keyhole.kernels.grading import TABLE, Rules, Side
from keyhole.kernels.nearest import Bins, Halves
from keyhole.kernels.packing import Layout, pack
from keyhole.kernels.scanning import COUNTERS, FULL, Planes, level_of
from keyhole.kernels.tries import Tree, plant
from keyhole.reidentification.costs import Costs, Graded
from keyhole.reidentification.patterns import Patterns, entropy

__all__ = ["Index", "make_bins", "make_index", "make_planes", "make_rules", "pack_counted"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

# Patterns in a leaf, coarse codes of a measured variable, and of any variable in planes.
LEAF = 16
BINS = 16
MOST_CODES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Two trees over the same patterns, each in its own order, with another half at the top."""

    trees: tuple[Tree, Tree]
    sides: tuple[Side, Side]
    halves: Halves
    codes: Numbers
    roots: Ints
    room: int


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
        _starts([len(graded.prices) for graded in costs.graded]),
        np.array([x for graded in banded for x in (*graded.limits, np.inf)], dtype=np.float64),
        np.array([x for graded in banded for x in graded.prices], dtype=np.float64),
        _starts([table.size for table in tables])[:-1],
        np.array([table.shape[1] for table in tables], dtype=np.int64),
        np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]),
        costs.root,
        costs.scale,
    )


def _starts(lengths: Sequence[int]) -> Ints:
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


def make_bins(costs: Costs, values: Floats) -> tuple[Bins, Numbers]:
    """Cut the graded variables into coarse codes; return them and each pattern's codes.

    Parameters
    ----------
    costs
        The prices.
    values
        The graded values of the patterns, one column a variable.
    """
    count = len(costs.graded)
    lowest, highest = np.zeros((count, MOST_CODES)), np.zeros((count, MOST_CODES))
    sizes, floors = np.zeros(count, dtype=np.int64), [np.zeros(0)]
    codes = np.zeros(values.shape, dtype=np.int32)
    for g, graded in enumerate(costs.graded):
        edges = _edges(values[:, g], MOST_CODES if graded.kind == TABLE else BINS)
        starts = np.concatenate([[-np.inf], edges])
        sizes[g] = len(starts)
        codes[:, g] = np.searchsorted(edges, values[:, g], side="right")
        codes[np.isnan(values[:, g]), g] = sizes[g]
        for b in range(sizes[g]):
            inside = values[codes[:, g] == b, g]
            if len(inside):
                lowest[g, b], highest[g, b] = inside.min(), inside.max()
        floors.append(_floors(graded, codes[:, g], values[:, g], int(sizes[g])))
    at = _starts([len(f) for f in floors[1:]])[:-1]
    return Bins(lowest, highest, sizes, at, np.concatenate(floors)), codes


def _edges(values: Floats, most: int) -> Floats:
    """Return the values at which bins of about as many patterns each start, but the first."""
    known = np.unique(values[~np.isnan(values)])
    if len(known) <= most:
        return known[1:]
    shares = np.arange(1, most) / most
    return np.unique(np.quantile(values[~np.isnan(values)], shares, method="higher"))


def _floors(graded: Graded, codes: Numbers, values: Floats, count: int) -> Floats:
    """Return the least price of each bin by value of the PUF, for a table."""
    if graded.kind != TABLE:
        return np.zeros(0)
    out = np.full((len(graded.table), count), np.inf)
    for b in range(count):
        columns = np.unique(values[codes == b]).astype(np.int64)
        if len(columns):
            out[:, b] = graded.table[:, columns].min(axis=1)
    return out.ravel()


def make_index(
    costs: Costs, patterns: Patterns, values: Floats, codes: Numbers, strata: int, trees: int
) -> Index:
    """Plant the trees.

    Parameters
    ----------
    costs
        The prices.
    patterns
        The patterns of the external file; the last column of their codes is the stratum.
    values
        Their graded values.
    codes
        Their codes, coarse for graded variables.
    strata
        The number of strata.
    trees
        Two, or one for a plain tree.
    """
    told = [entropy(codes[:, v], patterns.counts) for v in range(codes.shape[1])]
    selective = sorted(range(len(told)), key=lambda v: -told[v])
    halves = _halve(selective, told) if trees > 1 and len(told) > 1 else [selective, []]
    orders = [half + [v for v in selective if v not in half] for half in halves]
    stratum, rows = patterns.codes[:, -1], pack_counted(costs, codes)
    planted, sides = [], []
    for order in orders if halves[1] else orders[:1]:
        places = _sorted_by(codes, stratum, order)
        roots = np.searchsorted(stratum[places], np.arange(strata + 1))
        planted.append(plant(codes[places], np.array(order), roots, LEAF))
        weights = np.minimum(patterns.counts[places], np.iinfo(np.int32).max)
        sides.append(
            Side(rows[places], values[places], weights.astype(np.int32), places.astype(np.int32))
        )
    counted = len(costs.counted)
    fields = np.zeros(rows.shape[1], dtype=np.uint64)
    plan, described = _fields(costs)
    if plan is not None:
        fields = plan.mask(v for v in halves[0] if v < counted) & described.high
    graded = np.array([counted + g in halves[0] for g in range(len(costs.graded))], dtype=np.bool_)
    return Index(
        (planted[0], planted[-1]),
        (sides[0], sides[-1]),
        Halves(fields, graded, len(halves[0]), len(halves[1])),
        codes,
        roots,
        max(_room(tree) for tree in planted),
    )


def _halve(selective: Sequence[int], told: Sequence[float]) -> list[list[int]]:
    """Deal the variables to two halves that tell about as much."""
    halves: list[list[int]] = [[], []]
    total = [0.0, 0.0]
    for v in selective:
        to = 0 if total[0] <= total[1] else 1
        halves[to].append(v)
        total[to] += told[v]
    return halves if halves[1] else [halves[0][:-1], halves[0][-1:]]


def _sorted_by(codes: Numbers, stratum: Numbers, order: Sequence[int]) -> Ints:
    """Return the order of patterns by stratum, then by the variables in their order."""
    columns = [stratum, *(codes[:, v] for v in order)][::-1]
    plan = in_order([int(column.max(initial=0)) + 1 for column in columns])
    words = pack([column.astype(np.uint32) for column in columns], plan)
    if plan.words == 1:
        return np.argsort(words[:, 0], kind="stable")
    return np.lexsort(words.T)


def _room(tree: Tree) -> int:
    """Return how high the stack of a search can grow: the children of one node a level."""
    most = np.zeros(len(tree.order) + 1, dtype=np.int64)
    np.maximum.at(most, tree.depth, tree.children)
    return int(most.sum()) + 1


def make_planes(costs: Costs, index: Index, bins: Bins, unit: float) -> Planes:
    """Turn the patterns, in the first tree's order, into planes of bits."""
    codes = index.codes[index.sides[0].ids]
    words = -(-len(codes) // 64)
    counted = len(costs.counted)
    planes = [np.zeros(words, dtype=np.uint64), np.full(words, ~np.uint64(0))]
    at, count, coarse = [], [], []
    gaps = np.zeros(64 * (words + 1), dtype=np.int64)
    for v in range(codes.shape[1]):
        column = codes[:, v]
        size = costs.counted[v].missing if v < counted else int(bins.sizes[v - counted])
        if v < counted:
            coarse.append(_coarser(column, size))
            column, size = coarse[-1][column], int(coarse[-1][-1])
        gone = column == size
        at.append(len(planes))
        count.append(size)
        for k in range(size):
            planes.append(_as_bits((column != k) & ~gone if v < counted else column >= k, words))
        planes.append(_as_bits(gone, words))
        absent = costs.absent if v < counted else costs.graded[v - counted].absent
        level = level_of(absent, unit)
        gaps[: len(codes)] += np.where(gone & (level >= 0), 1 << max(level, 0), 0)
    return Planes(
        np.concatenate(planes),
        words,
        np.array(at, dtype=np.int64),
        np.array(count, dtype=np.int64),
        np.concatenate([np.zeros(0, dtype=np.int32), *coarse]),
        _starts([len(c) for c in coarse]),
        np.concatenate([_counters(gaps + FULL - units, words + 1) for units in range(FULL)]),
        unit,
    )


def _counters(counts: Ints, words: int) -> Words:
    """Return counters that stand at these counts, and the plane of those that overflowed."""
    planes = [_as_bits(counts >> c & 1 > 0, words) for c in range(COUNTERS)]
    return np.concatenate([*planes, _as_bits(counts >> COUNTERS > 0, words)])


def _coarser(column: Numbers, size: int) -> Numbers:
    """Return by code a coarse one, at most so many; the last is the missing code's."""
    if size <= MOST_CODES:
        return np.arange(size + 1, dtype=np.int32)
    counts = np.bincount(column, minlength=size + 1)[:size]
    shares = (np.cumsum(counts) - counts) * MOST_CODES // max(int(counts.sum()), 1)
    coarse = np.unique(shares, return_inverse=True)[1]
    return np.append(coarse, coarse.max() + 1).astype(np.int32)


def _as_bits(flags: npt.NDArray[np.bool_], words: int) -> Words:
    packed = np.packbits(flags, bitorder="little")
    out = np.zeros(8 * words, dtype=np.uint8)
    out[: len(packed)] = packed
    return out.view(np.uint64)
