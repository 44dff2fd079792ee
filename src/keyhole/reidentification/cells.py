"""The external file in cells, for looking through them the cheapest first.

See `keyhole.kernels.scanning` for what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Floats, Ints
from keyhole.kernels.grading import TABLE, Asked, Rules, Side, least_grades
from keyhole.kernels.scanning import CODES, Cells, Prices
from keyhole.reidentification.costs import Costs, Graded
from keyhole.reidentification.indexing import cut_into_bins, pack_counted, starts_of
from keyhole.reidentification.patterns import Patterns

__all__ = ["Arrangement", "arrange"]

Numbers = npt.NDArray[np.int32]

# An anchor must be shared by no more than this part of the patterns, on average.
SHARED = 1 / 32
# Groups of queries times cells, as part of all pairs of patterns.
GROUPED = 1 / 400
# Prices held for the values of the queries; bins of a variable, if that allows it.
MOST_PRICES = 1 << 22
FEWEST_BINS, MOST_BINS = 16, CODES - 1


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """The patterns in cells, their prices, and by query its group and where its mates are."""

    cells: Cells
    side: Side
    prices: Prices
    groups: Ints
    posts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """Which variables are in front, and by query and by pattern the number of its cell."""

    front: list[int]
    groups: Ints
    cells: Ints


def arrange(
    costs: Costs, rules: Rules, puf: Patterns, eif: Patterns, asked: Asked, values: Floats
) -> Arrangement:
    """Arrange the patterns of the external file for those of the public one.

    Parameters
    ----------
    costs, rules
        The prices, and as kernels have them.
    puf, eif
        The patterns; the last column of their codes is the stratum.
    asked
        The queries, which are the patterns of the public file.
    values
        The graded values of the external patterns.
    """
    prices, codes = _coarsen(costs, rules, asked, eif, values)
    anchor = _anchor(costs, eif)
    split = _split(puf, np.column_stack([codes, eif.codes[:, -1]]), anchor)
    anchors = eif.codes[:, anchor] if anchor >= 0 else np.zeros(len(codes), dtype=np.int32)
    places = np.argsort(split.cells * (int(anchors.max()) + 1) + anchors, kind="stable")
    weights = np.minimum(eif.counts[places], np.iinfo(np.int32).max)
    side = Side(
        pack_counted(costs, eif.codes)[places],
        values[places],
        weights.astype(np.int32),
        places.astype(np.int32),
    )
    cells, posts = _lay_out(costs, puf, eif, split, codes, anchor, places)
    return Arrangement(cells, side, prices, split.groups, posts)


def _coarsen(
    costs: Costs, rules: Rules, asked: Asked, eif: Patterns, values: Floats
) -> tuple[Prices, Numbers]:
    """Return the least prices, and the codes of the patterns, coarse for graded variables."""
    counted = len(costs.counted)
    sizes = [min(category.missing, CODES - 1) for category in costs.counted]
    coarse = [_coarse_codes(category.missing) for category in costs.counted]
    rows, codes = [np.zeros(0)], [eif.codes[:, v] for v in range(counted)]
    for g, graded in enumerate(costs.graded):
        wanted = _values_by_number(asked.graded[:, g], asked.codes[:, counted + g])
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


def _values_by_number(values: Floats, numbers: Numbers) -> Floats:
    """Return the queries' values in the order of their numbers; a missing one has none."""
    known = numbers >= 0
    out = np.zeros(int(numbers.max(initial=-1)) + 1)
    out[numbers[known]] = values[known]
    return out


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


def _anchor(costs: Costs, eif: Patterns) -> int:
    """Return the counted variable that the fewest share, if few do; else -1."""
    best, least = -1, SHARED
    for v in range(len(costs.counted)):
        shares = np.bincount(eif.codes[:, v]) / len(eif.codes)
        if (shares**2).sum() < least:
            best, least = v, float((shares**2).sum())
    return best


def _split(puf: Patterns, codes: Numbers, anchor: int) -> _Split:
    """Take variables to the front, those of few codes first, while there are few cells."""
    strata, variables = puf.codes.shape[1] - 1, range(puf.codes.shape[1] - 1)
    groups, cells = puf.codes[:, strata].astype(np.int64), codes[:, strata].astype(np.int64)
    front: list[int] = []
    sizes = {v: int(puf.codes[:, v].max()) * int(codes[:, v].max()) for v in variables}
    for v in sorted((v for v in variables if v != anchor), key=lambda v: sizes[v]):
        finer = _number(groups, puf.codes[:, v]), _number(cells, codes[:, v])
        if (finer[0].max() + 1) * (finer[1].max() + 1) > GROUPED * len(groups) * len(cells):
            break
        (groups, cells), front = finer, [*front, v]
    return _Split(front, groups, _number(cells, np.zeros_like(cells)))


def _number(cells: Ints, codes: npt.NDArray[np.integer]) -> Ints:
    """Number the cells that codes divide cells into, in order of cell and code."""
    ids = cells * (int(codes.max()) + 1) + codes
    if ids.max() > 16 * len(ids):
        return np.unique(ids, return_inverse=True)[1]
    held = np.bincount(ids) > 0
    return np.asarray((np.cumsum(held) - 1)[ids], dtype=np.int64)


def _lay_out(
    costs: Costs, puf: Patterns, eif: Patterns, split: _Split, codes: Numbers, anchor: int,
    places: Ints,
) -> tuple[Cells, Ints]:  # fmt: skip
    """Put the patterns into their places; return them and by query where its mates are."""
    cell, strata = split.cells[places], eif.codes[places, -1]
    starts = starts_of(np.bincount(cell).tolist())
    anchors, wanted = np.zeros(len(cell), dtype=np.int32), np.zeros(len(puf.codes), dtype=np.int32)
    gone = np.zeros(len(starts) - 1, dtype=np.int64)
    if anchor >= 0:
        anchors, wanted = eif.codes[places, anchor], puf.codes[:, anchor]
        missing = anchors == costs.counted[anchor].missing
        gone = np.bincount(cell[missing], minlength=len(gone))
    rest = [v for v in range(codes.shape[1]) if v not in split.front and v != anchor]
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
    cells = Cells(
        starts,
        starts[1:] - gone,
        np.ascontiguousarray(codes[places[starts[:-1]]][:, split.front].T, dtype=np.int32),
        np.array(split.front, dtype=np.int64),
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
