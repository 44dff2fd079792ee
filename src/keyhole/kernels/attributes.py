"""What the cells of a key tell of another column: one pass over the records of each cell."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Floats, Ints, Numbers, Words

# So many numbers times their logarithms are looked up.
LOGARITHMS = 1 << 10


@njit(nogil=True, cache=True)
def count_values(words: Words, place: Ints, held: Numbers, kinds: int) -> Ints:
    """Count the records of each code.

    A code is place[1] bits of a row's word from place[0] on; `held` has the records of each row,
    one each if it is empty.
    """
    total = np.zeros((4, kinds), dtype=np.int64)  # in turns: no sum waits for the one before
    shift, top = np.uint64(place[0]), np.uint64((1 << int(place[1])) - 1)
    for i in range(len(words)):
        total[i & 3, (words[i] >> shift) & top] += held[i] if len(held) else 1
    return total.sum(axis=0)


@njit(nogil=True, cache=True)
def sum_by_level(codes: Numbers, sizes: Ints, alone: Numbers, cutoff: int, most: int) -> Ints:
    """Sum the sizes of cells by their code in each row of `codes`.

    Cells are those with one value (`alone` is not negative) and the cutoff or more records.
    """
    out = np.zeros((len(codes), most), dtype=np.int64)
    for c in range(len(sizes)):
        if alone[c] >= 0 and sizes[c] >= cutoff:
            for k in range(len(codes)):
                out[k, codes[k, c]] += sizes[c]
    return out


@njit(nogil=True, cache=True)
def learn_by_cell(
    starts: Ints,
    words: Words,
    place: Ints,
    held: Numbers,
    span: Ints,
    total: Ints,
    ordered: int,
    limits: Floats,
    cutoff: int,
    alone: Numbers,
) -> tuple[Floats, Ints, Ints]:
    """Find what the cells from span[0] up to span[1] tell of a column.

    Cells start at `starts`; `words`, `place` and `held` have the codes as in `count_values`, in the
    order of the cells, and `total` the records of each. The first `ordered` codes are in order.
    Cells fall short of five limits: different values, entropy in nats, the largest count over
    that of all but the most frequent values (as many as the first limit, less one), distance to
    the file, relative gain of a value. By cell is filled in `alone` its one value, -1 if there are
    several.

    Returns the fewest values of a cell, the least entropy, the largest distance (-1 if no cell has
    one) and gain, and the sum over cells of squared counts over the size; by limit the records in
    cells that fall short, and those cells; by code the records in cells with this one value, those
    cells, and the records of those with the cutoff or more.
    """
    shift, top, kinds = np.uint64(place[0]), np.uint64((1 << int(place[1])) - 1), len(total)
    shares = total / total.sum()
    lifts = total.sum() / total
    below, sums = _cumulated(total[:ordered])
    several, present = np.zeros((4, kinds), dtype=np.int64), np.empty(kinds + 1, dtype=np.int64)
    counts, ranked = several[0], np.empty(kinds, dtype=np.int64)
    logs = np.array([k * np.log(k) if k else 0.0 for k in range(LOGARITHMS)])
    level = int(limits[0])
    least, least_entropy, furthest, most_gain, right = kinds, np.inf, -1.0, 0.0, 0.0
    short, same = np.zeros((2, 5), dtype=np.int64), np.zeros((3, kinds), dtype=np.int64)
    for c in range(span[0], span[1]):
        first, last, n = starts[c], starts[c + 1], 0
        size = int(last - first)
        if size == 1:
            present[0], n = (words[first] >> shift) & top, 1
        elif size < kinds:
            for i in range(first, last):
                code = int((words[i] >> shift) & top)
                present[n] = code  # the next is written over it unless it is new: no branch
                n += counts[code] == 0
                counts[code] += held[i] if len(held) else 1
        else:
            for i in range(first, last):  # in turns, as above
                several[i & 3, (words[i] >> shift) & top] += held[i] if len(held) else 1
            for code in range(kinds):
                counts[code] += several[1, code] + several[2, code] + several[3, code]
                several[1, code] = several[2, code] = several[3, code] = 0
                present[n] = code
                n += counts[code] > 0
        if len(held):
            size = held[first:last].sum()
        if n == 1:  # what such a cell tells depends on its value alone: see below
            code = int(present[0])
            alone[c], counts[code] = code, 0
            same[0, code] += size
            same[1, code] += 1
            same[2, code] += size * (size >= cutoff)
            continue
        alone[c], largest, mixed, square, seen, far, gain = -1, 0, 0.0, 0, 0.0, 0.0, 0.0
        for j in range(n):
            code = int(present[j])
            count = counts[code]
            ranked[j], largest = count, max(largest, count)
            mixed += logs[count] if count < LOGARITHMS else count * np.log(count)
            square += count * count
            far += abs(count - size * shares[code])
            seen += shares[code]
            gain = max(gain, count * lifts[code])
        whole = logs[size] if size < LOGARITHMS else size * np.log(size)
        entropy = max(whole - mixed, 0.0) / size
        far, gain = (far / size + max(1.0 - seen, 0.0)) / 2, max(gain / size - 1, 0.0)
        rest = size - largest * (level > 1)
        if level > 2:
            rest = size - _largest(ranked[:n], level - 1)
        if ordered:
            far = _moved(present[:n], counts, ordered, below, sums)
        for j in range(n):
            counts[present[j]] = 0
        right += square / size
        least, least_entropy = min(least, n), min(least_entropy, entropy)
        most_gain = max(most_gain, gain)
        if far > furthest:
            furthest = far
        _fall_short(n, entropy, largest, rest, far, gain, limits, size, 1, short)
    for code in range(kinds):
        if same[1, code] == 0:
            continue
        far, gain = 1.0 - shares[code], lifts[code] - 1
        if ordered:
            present[0], counts[code] = code, 1
            far = _moved(present[:1], counts, ordered, below, sums)
        right += same[0, code]
        least, least_entropy, most_gain = 1, 0.0, max(most_gain, gain)
        if far > furthest:
            furthest = far
        rest = 0 if level > 1 else 1
        _fall_short(1, 0.0, 1, rest, far, gain, limits, same[0, code], same[1, code], short)
    return np.array([least, least_entropy, furthest, most_gain, right]), short, same


@njit(nogil=True, cache=True)
def _fall_short(
    values: int,
    entropy: float,
    largest: int,
    rest: int,
    far: float,
    gain: float,
    limits: Floats,
    records: int,
    cells: int,
    short: Ints,
) -> None:
    """Add the records and cells by limit that they fall short of."""
    for k, falls in enumerate(
        (
            values < limits[0],
            entropy < limits[1],
            largest >= limits[2] * rest,
            far > limits[3],
            gain > limits[4],
        )
    ):
        short[0, k] += records * falls
        short[1, k] += cells * falls


@njit(nogil=True, cache=True)
def _cumulated(total: Ints) -> tuple[Floats, Floats]:
    """Return the cumulated shares of values in order, and their sums, for ordered distances."""
    known, count = total.sum(), len(total)
    below, sums = np.zeros(count + 1), np.zeros(count + 1)
    for k in range(count):
        below[k + 1] = below[k] + (total[k] / known if known else 0.0)
        sums[k + 1] = sums[k] + below[k + 1]
    return below, sums


@njit(nogil=True, cache=True)
def _largest(counts: Ints, some: int) -> int:
    """Return the sum of so many of the largest counts, which are put first."""
    found = 0
    for j in range(min(some, len(counts))):
        for k in range(j + 1, len(counts)):
            if counts[k] > counts[j]:
                counts[j], counts[k] = counts[k], counts[j]
        found += counts[j]
    return found


@njit(nogil=True, cache=True)
def _moved(present: Ints, counts: Ints, ordered: int, below: Floats, sums: Floats) -> float:
    """Return the ordered distance of a cell: the mean of cumulated differences over the steps."""
    present.sort()
    known = 0
    for code in present:
        if code < ordered:
            known += counts[code]
    if known == 0:
        return np.nan
    total, share, at = 0.0, 0.0, 0
    for code in present:
        if code >= ordered:
            break
        total += _gap(share, at, code, below, sums)
        share += counts[code] / known
        at = code
    total += _gap(share, at, ordered - 1, below, sums)
    return total / max(ordered - 1, 1)


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

    Returned are the range of the numbers, NaN without any; the sum over them of the share within
    the tolerance; the largest share of one in the sum of sizes, NaN if that is 0; their number.
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
def beyond_limits(
    starts: Ints,
    codes: Ints,
    values: Numbers,
    held: Numbers,
    tables: Numbers,
    total: Ints,
    ordered: int,
    settled: Floats,
    limits: Floats,
) -> Flags:
    """Tell whether cells split by each rung of one column are beyond a limit.

    `codes`, `values` and `held` are, in the order of the cells, each row's code in the column,
    sensitive value and records; `tables` have the code that stands for each in each rung, the
    finest first; `total` are the records of each sensitive value, of which the first `ordered` are
    in order. `settled` has the records in homogeneous cells, and the sum of squares, of cells not
    among the rows; `limits` the most records in homogeneous cells, the fewest different values, the
    largest distance to the file and the largest sum of squared counts over the size.
    """
    out = np.zeros(len(tables), dtype=np.bool_)
    shares, (below, sums) = total / total.sum(), _cumulated(total[:ordered])
    rows, at = np.zeros(tables.shape[1], dtype=np.int64), np.zeros(tables.shape[1], dtype=np.int64)
    classes = np.empty(tables.shape[1], dtype=np.int64)
    counts, present = np.zeros(len(total), np.int64), np.empty(len(total), np.int64)
    order = np.empty(len(codes), dtype=np.int64)
    for k in range(len(tables)):
        table, alone, squares = tables[k], settled[0], settled[1]
        beyond = alone > limits[0] or squares > limits[3]
        for c in range(len(starts) - 1):
            if beyond:
                break
            seen, place = 0, starts[c]
            for i in range(starts[c], starts[c + 1]):
                code = table[codes[i]]
                if rows[code] == 0:
                    classes[seen] = code
                    seen += 1
                rows[code] += 1
            for j in range(seen):
                at[classes[j]] = place
                place += rows[classes[j]]
            for i in range(starts[c], starts[c + 1]):
                code = table[codes[i]]
                order[at[code]] = i
                at[code] += 1
            for j in range(seen):
                last = at[classes[j]]
                n = size = 0
                for i in order[last - rows[classes[j]] : last]:
                    value = values[i]
                    if counts[value] == 0:
                        present[n] = value
                        n += 1
                    counts[value] += held[i]
                    size += held[i]
                rows[classes[j]] = 0
                alone += size if n == 1 else 0
                far, unseen = 0.0, 1.0
                for value in present[:n]:
                    p = counts[value] / size
                    squares += counts[value] * p
                    far += abs(p - shares[value])
                    unseen -= shares[value]
                far = (far + max(unseen, 0.0)) / 2
                if ordered and limits[2] < 1:
                    far = _moved(present[:n], counts, ordered, below, sums)
                beyond |= n < limits[1] or far > limits[2]
                for value in present[:n]:
                    counts[value] = 0
            beyond |= alone > limits[0] or squares > limits[3]
        out[k] = beyond
        if not beyond:
            break
    return out
