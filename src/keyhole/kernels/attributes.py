"""What the cells of a key tell of another column: one pass over the records of each cell."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Floats, Ints, Numbers


@njit(nogil=True, cache=True)
def rows_by_cell(numbers: Ints, cells: int) -> tuple[Ints, Numbers]:
    """Return where each cell starts, and the records of all cells in order of their cells."""
    starts = np.zeros(cells + 1, dtype=np.int64)
    for i in range(len(numbers)):
        starts[numbers[i] + 1] += 1
    for c in range(cells):
        starts[c + 1] += starts[c]
    rows = np.empty(len(numbers), dtype=np.int32)
    at = starts[:-1].copy()
    for i in range(len(numbers)):
        rows[at[numbers[i]]] = i
        at[numbers[i]] += 1
    return starts, rows


@njit(nogil=True, cache=True)
def value_counts(
    starts: Ints, codes: Ints, counts: Ints, present: Ints, first: int
) -> tuple[int, int]:
    """Count the codes of one cell; return how many differ and the largest count.

    `counts` is zero everywhere before and must be cleared of `present[:n]` afterwards.
    """
    n, most = 0, 0
    for i in range(starts[first], starts[first + 1]):
        code = codes[i]
        if counts[code] == 0:
            present[n] = code
            n += 1
        counts[code] += 1
        most = max(most, counts[code])
    return n, most


@njit(nogil=True, cache=True)
def learn_by_cell(
    starts: Ints, codes: Ints, total: Ints, level: int, ordered: int
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats, Floats, Floats]:
    """Return by cell what it tells of a column.

    Parameters
    ----------
    starts, codes
        Where cells start, and the codes of the column, records in the order of their cells.
    total
        The count of each code in the whole file.
    level
        Of recursive diversity, how many of the most frequent values are left out of the rest.
    ordered
        How many codes, from 0 on, are values in order; 0 if none are.

    Returns
    -------
    tuple
        Different values; the largest count; the count of all but the `level - 1` most frequent;
        entropy in nats; the sum of squared counts over the size; equal distance to the file;
        ordered distance, NaN where the cell has no value in order; the largest relative gain.
    """
    cells, kinds = len(starts) - 1, len(total)
    records = starts[-1]
    shares = total / records
    known = total[:ordered].sum()
    # Cumulated shares of the values in order, and their sums, for ordered distances.
    below, sums = np.zeros(ordered + 1), np.zeros(ordered + 1)
    for k in range(ordered):
        below[k + 1] = below[k] + (total[k] / known if known else 0.0)
        sums[k + 1] = sums[k] + below[k + 1]
    distinct, most, rest = (
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells, dtype=np.int64),
    )
    entropy, squares, equal = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    moved, gain = np.full(cells, np.nan), np.zeros(cells)
    counts, present = np.zeros(kinds, dtype=np.int64), np.empty(kinds, dtype=np.int64)
    for c in range(cells):
        size = starts[c + 1] - starts[c]
        n, most[c] = value_counts(starts, codes, counts, present, c)
        distinct[c] = n
        seen = 0.0
        for j in range(n):
            code = present[j]
            p = counts[code] / size
            entropy[c] -= p * np.log(p)
            squares[c] += counts[code] * p
            equal[c] += abs(p - shares[code])
            seen += shares[code]
            gain[c] = max(gain[c], (p - shares[code]) / shares[code])
        equal[c] = (equal[c] + max(1.0 - seen, 0.0)) / 2
        rest[c] = size
        if level > 1:
            found = np.sort(counts[present[:n]])
            for j in range(min(level - 1, n)):
                rest[c] -= found[n - 1 - j]
        if ordered > 1:
            moved[c] = _moved(np.sort(present[:n]), counts, ordered, below, sums)
        elif ordered == 1 and counts[0]:
            moved[c] = 0.0
        for j in range(n):
            counts[present[j]] = 0
    return distinct, most, rest, entropy, squares, equal, moved, gain


@njit(nogil=True, cache=True)
def _moved(values: Ints, counts: Ints, ordered: int, below: Floats, sums: Floats) -> float:
    """Return the ordered distance of a cell: the mean of cumulated differences over the steps."""
    known = 0
    for code in values:
        if code < ordered:
            known += counts[code]
    if known == 0:
        return np.nan
    total, share, at = 0.0, 0.0, 0
    for code in values:
        if code >= ordered:
            break
        total += _gap(share, at, code, below, sums)
        share += counts[code] / known
        at = code
    total += _gap(share, at, ordered - 1, below, sums)
    return total / (ordered - 1)


@njit(nogil=True, cache=True)
def _gap(share: float, first: int, last: int, below: Floats, sums: Floats) -> float:
    """Sum |share - cumulated share of the file| after the steps from `first` to `last - 1`."""
    low, high = first, last  # steps whose cumulated share is at most `share` come first
    while low < high:
        middle = (low + high) // 2
        if below[middle + 1] <= share:
            low = middle + 1
        else:
            high = middle
    under = share * (low - first) - (sums[low] - sums[first])
    over = (sums[last] - sums[low]) - share * (last - low)
    return max(under, 0.0) + max(over, 0.0)


@njit(nogil=True, cache=True)
def spread_by_cell(
    starts: Ints, values: Floats, tolerance: float
) -> tuple[Floats, Floats, Floats, Ints]:
    """Return by cell how near its numbers lie together; missing ones (NaN) are left out.

    Returns
    -------
    tuple
        The range of the numbers, NaN without any; over the numbers, the sum of the share of the
        cell's numbers within the tolerance of each; the largest share of one number in the sum of
        their sizes, NaN where that is 0; how many numbers there are.
    """
    cells = len(starts) - 1
    width, near, largest = np.full(cells, np.nan), np.zeros(cells), np.full(cells, np.nan)
    held = np.zeros(cells, dtype=np.int64)
    for c in range(cells):
        some = values[starts[c] : starts[c + 1]]
        some = np.sort(some[~np.isnan(some)])
        n = len(some)
        held[c] = n
        if n == 0:
            continue
        width[c] = some[-1] - some[0]
        size = np.abs(some)
        if size.sum() > 0:
            largest[c] = size.max() / size.sum()
        low = high = 0
        for i in range(n):
            while some[i] - some[low] > tolerance:
                low += 1
            while high < n and some[high] - some[i] <= tolerance:
                high += 1
            near[c] += (high - low) / n
    return width, near, largest, held


@njit(nogil=True, cache=True)
def homogeneous_records(numbers: Ints, cells: int, codes: Ints) -> int:
    """Count the records in cells where all have one code; `numbers` has the cell of each."""
    value, size = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    for i in range(len(numbers)):
        c = numbers[i]
        if size[c] == 0:
            value[c] = codes[i]
        elif value[c] != codes[i]:
            value[c] = -1
        size[c] += 1
    return size[value >= 0].sum()


@njit(nogil=True, cache=True)
def tally_homogeneous(
    starts: Ints, codes: Ints, values: Ints, records: Ints, tables: Numbers, most: int
) -> Ints:
    """Count the records in homogeneous cells if cells were split by each rung of one column.

    Rows are patterns in the order of their cells, each with its records. Tables are those of the
    rungs, as in `tally_rungs`; once a count is beyond `most` it goes on no more.
    """
    out = np.zeros(len(tables), dtype=np.int64)
    size = np.zeros(tables.shape[1], dtype=np.int64)
    value = np.zeros(tables.shape[1], dtype=np.int64)
    for k in range(len(tables)):
        table, found = tables[k], 0
        for c in range(len(starts) - 1):
            for i in range(starts[c], starts[c + 1]):
                code = table[codes[i]]
                if size[code] == 0:
                    value[code] = values[i]
                elif value[code] != values[i]:
                    value[code] = -1
                size[code] += records[i]
            for i in range(starts[c], starts[c + 1]):
                code = table[codes[i]]
                found += size[code] if value[code] >= 0 else 0
                size[code] = 0
            if found > most:
                break
        out[k] = found
        if found == 0:
            break
    return out
