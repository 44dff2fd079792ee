"""Additive models of coded variables.

A variable's code leads to a few entries of a table: for a category one column with the value 1,
for a number the columns of its spline. No row of the design is made as a whole: the Gram matrix
adds up the products of its few entries, and a prediction one score a variable. A design of
indicators, with a one in a few columns of each row, is given by the places of its ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import CodeRows, Floats, Ints, Numbers

Rows = npt.NDArray[np.integer]
Weights = npt.NDArray[np.floating]
Entries = tuple[Rows, Rows, Numbers, Floats]


@njit(nogil=True, cache=True)
def gram(codes: CodeRows, rows: Rows, weights: Weights, entries: Entries, size: int) -> Floats:
    """Return the weighted sum of products of the design's columns over some rows.

    `entries` are starts, widths, columns and values: those of code c of variable v begin at
    ``starts[v] + c * widths[v]``, ``widths[v]`` of them; columns grow along a row. Column 0 is the
    intercept, which no entry names. `weights` are by record of `codes`.
    """
    starts, widths, columns, values = entries
    out = np.zeros((size, size))
    index = np.zeros(1 + widths.sum(), dtype=np.int64)
    value = np.ones(1 + widths.sum())
    for r in rows:
        weight = weights[r]
        if weight == 0:
            continue
        filled = 1
        for v in range(len(starts)):
            first = starts[v] + np.int64(codes[r, v]) * widths[v]
            for k in range(first, first + widths[v]):
                if values[k] != 0:
                    index[filled], value[filled] = columns[k], values[k]
                    filled += 1
        for a in range(filled):
            product = weight * value[a]
            row = out[index[a]]
            for b in range(a + 1):
                row[index[b]] += product * value[b]
    for a in range(size):
        for b in range(a):
            out[b, a] = out[a, b]
    return out


@njit(nogil=True, cache=True)
def totals(codes: CodeRows, rows: Rows, weights: Weights, entries: Entries, size: int) -> Floats:
    """Return the weighted sum of the design's columns over some rows, by the entries of `gram`."""
    starts, widths, columns, values = entries
    out = np.zeros(size)
    for r in rows:
        weight = weights[r]
        out[0] += weight
        for v in range(len(starts)):
            first = starts[v] + np.int64(codes[r, v]) * widths[v]
            for k in range(first, first + widths[v]):
                out[columns[k]] += weight * values[k]
    return out


@njit(nogil=True, cache=True)
def score(codes: CodeRows, rows: Rows, starts: Rows, scores: Floats) -> npt.NDArray[np.float32]:
    """Return for some rows the sum over the variables of the score of its code.

    The scores of code c of variable v are row ``starts[v] + c`` of `scores`; a variable with a
    negative start has no part in it. Sums are in double precision and given in single, so that
    their last bits decide nothing.
    """
    out = np.empty((len(rows), scores.shape[1]), dtype=np.float32)
    total, used = np.empty(scores.shape[1]), np.flatnonzero(starts >= 0)
    for i in range(len(rows)):
        total[:] = 0.0
        for v in used:
            own = scores[starts[v] + np.int64(codes[rows[i], v])]
            for d in range(len(total)):
                total[d] += own[d]
        out[i] = total
    return out


# Levels are added up in so many lanes, which a processor does at once, always in one order.
LANES = 4
# A place that cannot be negative is not checked for it.
ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)


@njit(nogil=True, cache=True)
def rake(groups: Rows, starts: Rows, goal: Rows, size: int, sweeps: int, steady: float) -> Floats:
    """Return factors of a goal's levels by which each group of each variable has its own counts.

    `groups` has a row a variable and a column a record; the factors of group g of variable v are
    row ``starts[v] + g``, and ``starts`` ends with their number. Variable by variable the shares of
    all records are multiplied by observed over expected counts, `steady` added to both.
    """
    variables, records = groups.shape
    width = -(-size // LANES) * LANES  # nobody holds a level past the last
    observed = np.zeros((starts[variables], width))
    share = np.zeros(width)
    for i in range(records):
        share[goal[i]] += 1
        for v in range(variables):
            observed[starts[v] + groups[v, i], goal[i]] += 1
    shares = np.empty((records, width))
    shares[:] = share / records
    factors = np.ones((starts[variables], width))
    expected = np.zeros((starts[1] - starts[0], width))
    for i in range(records):
        expected[groups[0, i]] += shares[i]
    for step in range(sweeps * variables):
        v, after = step % variables, (step + 1) % variables
        first, past = starts[v], starts[v + 1]
        ratio = (observed[first:past] + steady) / (expected + steady)
        factors[first:past] *= ratio
        expected = np.zeros((starts[after + 1] - starts[after], width))
        _sweep(shares, ratio, groups[v], expected, groups[after])
    return factors[:, :size]


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep(shares: Floats, ratio: Floats, group: Rows, counts: Floats, after: Rows) -> None:
    """Multiply the shares by the ratios of their groups, and count those of the next variable."""
    width = np.uint64(shares.shape[1])
    for i in range(np.uint64(len(shares))):
        here, there = np.uint64(group[i]), np.uint64(after[i])
        for k in range(width):
            shares[i, k] *= ratio[here, k]
        a = b = c = d = 0.0
        for k in range(ZERO, width, np.uint64(LANES)):
            a += shares[i, k]
            b += shares[i, k + ONE]
            c += shares[i, k + TWO]
            d += shares[i, k + THREE]
        scale = 1 / ((a + b) + (c + d))
        for k in range(width):
            share = shares[i, k] * scale
            shares[i, k] = share
            counts[there, k] += share


@njit(nogil=True, cache=True)
def indicator_gram(places: Ints, weights: Floats, size: int) -> Floats:
    """Return X'WX; `places` has the columns with a one, a row of the design each."""
    out = np.zeros((size, size))
    for i in range(len(places)):
        for a in places[i]:
            for b in places[i]:
                out[a, b] += weights[i]
    return out


@njit(nogil=True, cache=True)
def indicator_quadratic(places: Ints, matrix: Floats) -> Floats:
    """Return x'Mx of each row."""
    out = np.zeros(len(places))
    for i in range(len(places)):
        total = 0.0
        for a in places[i]:
            for b in places[i]:
                total += matrix[a, b]
        out[i] = total
    return out


@njit(nogil=True, cache=True)
def indicator_totals(places: Ints, amounts: Floats, size: int) -> Floats:
    """Return X'y."""
    out = np.zeros(size)
    for i in range(len(places)):
        for a in places[i]:
            out[a] += amounts[i]
    return out
