"""Cross-tabulations of two and three coded columns, and what margins expect in their cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Bytes, CodeRows, Flags, Floats, Ints, Numbers


@njit(nogil=True, cache=True)
def crosstab(a: CodeRows, b: CodeRows, rows: int, columns: int) -> Ints:
    """Count the records of every pair of codes."""
    out = np.zeros((rows, columns), dtype=np.int64)
    for i in range(len(a)):
        out[a[i], b[i]] += 1
    return out


@njit(nogil=True, cache=True)
def strong_pairs(
    codes: Numbers, sizes: Ints, wanted: Flags, nearly: float, told: float, most: int
) -> Flags:
    """Tell which wanted pairs of rows of codes may determine or nearly duplicate each other.

    A pair does if there are as many cells as codes of either, if its bias-corrected Cramér's V is
    at least `nearly` or the share of either one's entropy that the other tells at least `told`, or
    if it might have more than `most` cells.
    """
    columns, n = codes.shape
    logs = np.zeros(n + 1)
    for i in range(2, n + 1):
        logs[i] = i * np.log(i)
    counts = np.zeros((columns, sizes.max()), dtype=np.int64)
    levels, entropy = np.zeros(columns, dtype=np.int64), np.zeros(columns)
    for one in range(columns):
        for i in range(n):
            counts[one, codes[one, i]] += 1
        for count in counts[one]:
            levels[one] += count > 0
            entropy[one] -= logs[count]
        entropy[one] += logs[n]
    out = np.zeros(wanted.shape, dtype=np.bool_)
    table = np.zeros(min(sizes.max() ** 2, most), dtype=np.int32)
    met = np.empty(n, dtype=np.int64)
    for one in range(columns):
        for other in range(columns):
            size = sizes[other]
            if not wanted[one, other] or sizes[one] * size > most:
                out[one, other] = wanted[one, other]
                continue
            cells, phi, shared = 0, -1.0, entropy[one] + entropy[other] - logs[n]
            for i in range(n):
                place = codes[one, i] * size + codes[other, i]
                if table[place] == 0:
                    met[cells] = place
                    cells += 1
                table[place] += 1
            for i in range(cells):
                count = table[met[i]]
                expected = counts[one, met[i] // size] * counts[other, met[i] % size]
                phi += count * count / expected
                shared += logs[count]
                table[met[i]] = 0
            r, k = levels[one] - 1.0, levels[other] - 1.0
            least = min(r - r * r / (n - 1), k - k * k / (n - 1))
            out[one, other] = (
                cells == sizes[one]
                or cells == size
                or max(phi - r * k / (n - 1), 0.0) >= nearly * abs(nearly) * least
                or shared >= told * min(entropy[one], entropy[other])
            )
    return out


_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def number_pairs(a: Numbers, b: Numbers, columns: int, most: int) -> tuple[Numbers, int]:
    """Number the cells of two encoded columns in the order in which they come up.

    Counting ends as soon as there are more than `most` cells; the numbers are then not whole.
    """
    bits = 4
    while (1 << bits) < 2 * most + 2:
        bits += 1
    mask = (1 << bits) - 1
    keys = np.full(1 << bits, -1, dtype=np.int64)
    held = np.empty(1 << bits, dtype=np.int32)
    out = np.empty(len(a), dtype=np.int32)
    count = 0
    for i in range(len(a)):
        key = np.int64(a[i]) * columns + b[i]
        slot = np.int64((np.uint64(key) * _MIX) >> np.uint64(64 - bits))
        while keys[slot] != key and keys[slot] != -1:
            slot = (slot + 1) & mask
        if keys[slot] == -1:
            if count == most:
                return out, most + 1
            keys[slot] = key
            held[slot] = count
            count += 1
        out[i] = held[slot]
    return out, count


@njit(nogil=True, cache=True)
def settled(numbers: Numbers, cells: int, table: Numbers, wanted: Numbers) -> Flags:
    """Tell for each row of the table that is wanted whether every cell has one value of it."""
    first = np.full(cells, -1, dtype=np.int32)
    out = np.zeros(len(wanted), dtype=np.bool_)
    for place in range(len(wanted)):
        values = table[wanted[place]]
        end = 0
        while end < len(numbers):
            cell = numbers[end]
            if first[cell] == -1:
                first[cell] = values[end]
            elif first[cell] != values[end]:
                break
            end += 1
        out[place] = end == len(numbers)
        for i in range(end):
            first[numbers[i]] = -1
    return out


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
