"""Three-way tables, and what their two-way margins expect in each cell."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Bytes, Floats, Ints

# Proportional fitting ends when no expected count changes by more than this share, or after so
# many rounds.
CLOSE, ROUNDS = 1e-4, 60


@njit(nogil=True, cache=True)
def triple_table(a: Bytes, b: Bytes, c: Bytes, sizes: Ints) -> Ints:
    """Count the records of every triple of codes."""
    out = np.zeros((sizes[0], sizes[1], sizes[2]), dtype=np.int64)
    for i in range(len(a)):
        out[a[i], b[i], c[i]] += 1
    return out


@njit(nogil=True, cache=True)
def _scale_lines(table: Ints, fitted: Floats) -> float:
    """Give each line of expected counts the sum of its counts; return the largest change."""
    r, k, s = table.shape
    change = 0.0
    for i in range(r):
        for j in range(k):
            seen, have = 0, 0.0
            for h in range(s):
                seen += table[i, j, h]
                have += fitted[i, j, h]
            by = seen / have if have > 0 else 0.0
            change = max(change, abs(by - 1.0) if seen else 0.0)
            for h in range(s):
                fitted[i, j, h] *= by
    return change


@njit(nogil=True, cache=True)
def fit_pairs(table: Ints) -> Floats:
    """Return the expected counts with the table's two-way margins and no three-way interaction.

    They are found by iterative proportional fitting (Deming & Stephan 1940).
    """
    fitted = np.ones(table.shape)
    for _ in range(ROUNDS):
        change = _scale_lines(table, fitted)
        change = max(change, _scale_lines(table.transpose(0, 2, 1), fitted.transpose(0, 2, 1)))
        change = max(change, _scale_lines(table.transpose(1, 2, 0), fitted.transpose(1, 2, 0)))
        if change < CLOSE:
            break
    return fitted


@njit(nogil=True, cache=True)
def empty_triples(
    codes: Bytes, sizes: Ints, others: Ints, triples: Ints, least: float
) -> tuple[Ints, Floats, int]:
    """Find the empty cells of three-way tables in which records would be expected.

    `codes` has a row a column of the file; `others` is the code of a column's remaining values,
    which is never tested, or -1; `triples` has three columns a row. Returned are the triple and
    the three codes of each empty cell in which at least `least` are expected, how many are, and
    in how many cells, empty or not, that many are.
    """
    cells, expected, tested = [], [], 0
    for t in range(len(triples)):
        one, two, three = triples[t]
        size = np.array([sizes[one], sizes[two], sizes[three]])
        table = triple_table(codes[one], codes[two], codes[three], size)
        fitted = fit_pairs(table)
        for i in range(size[0]):
            for j in range(size[1]):
                for h in range(size[2]):
                    if fitted[i, j, h] < least:
                        continue
                    if i == others[one] or j == others[two] or h == others[three]:
                        continue
                    tested += 1
                    if table[i, j, h] == 0:
                        cells.append((t, i, j, h))
                        expected.append(fitted[i, j, h])
    found = np.zeros((len(cells), 4), dtype=np.int64)
    for n in range(len(cells)):
        for part in range(4):
            found[n, part] = cells[n][part]
    return found, np.array(expected), tested
