"""The external file in two trees, with coarse codes for graded variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Floats, Ints, Words
from keyhole.kernels.fields import Fields, fields_of, in_order
from keyhole.kernels.grading import TABLE, Rules, Side
from keyhole.kernels.nearest import Bins, Halves, Tree, plant
from keyhole.kernels.packing import Layout, pack
from keyhole.reidentification.costs import Costs, Graded
from keyhole.reidentification.patterns import Patterns, entropy

__all__ = [
    "Index",
    "cut_into_bins",
    "make_bins",
    "make_index",
    "make_rules",
    "pack_counted",
    "starts_of",
]

Numbers = npt.NDArray[np.int32]

# Patterns in a leaf, coarse codes of a measured variable, and of one priced by a table.
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
        most = MOST_CODES if graded.kind == TABLE else BINS
        codes[:, g], sizes[g] = cut_into_bins(values[:, g], most)
        for b in range(sizes[g]):
            inside = values[codes[:, g] == b, g]
            if len(inside):
                lowest[g, b], highest[g, b] = inside.min(), inside.max()
        floors.append(_floors(graded, codes[:, g], values[:, g], int(sizes[g])))
    at = starts_of([len(f) for f in floors[1:]])[:-1]
    return Bins(lowest, highest, sizes, at, np.concatenate(floors)), codes


def cut_into_bins(values: Floats, most: int) -> tuple[Numbers, int]:
    """Cut values into bins of about as many patterns each; return the bins and their number.

    What is missing gets the next number.

    Examples
    --------
    >>> cut_into_bins(np.array([7.0, 1.0, np.nan, 7.0]), 16)
    (array([1, 0, 2, 1], dtype=int32), 2)
    """
    known = values[~np.isnan(values)]
    edges = np.unique(known)[1:]
    if len(edges) >= most:
        shares = np.arange(1, most) / most
        edges = np.unique(np.quantile(known, shares, method="higher"))
        edges = edges[edges > known.min()]
    bins = np.searchsorted(edges, values, side="right").astype(np.int32)
    bins[np.isnan(values)] = len(edges) + 1
    return bins, len(edges) + 1


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
    told = [
        entropy(np.bincount(codes[:, v], weights=patterns.counts)) for v in range(codes.shape[1])
    ]
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
