"""Cells: patterns sorted together, merged, split and tallied, also under coarser rungs.

Rows are packed records (see `packing`), each with a weight: how many records have exactly this
pattern. A partition is rows sorted so that a cell's rows lie side by side, plus the cells'
bounds. A row alone in its cell can never be split again, so `split` drops it for good.

Under rungs weights are cut off at the cutoff, since a cell that holds a row of that weight is never
small; a table gives for each code of a field the code that stands for its class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Array, Ints, Numbers, Words

# Up to this many rows an insertion sort on whole masked words beats another radix pass.
SMALL = 24
# So many cells, of so many rows, are tallied for all candidates before the next ones.
CELLS_AT_ONCE, ROWS_AT_ONCE = 512, 1 << 14
# Up to so many codes a row, or in all, each code of each cell has a counter of its own.
CODES_A_ROW, FEW_CODES = 4, 1 << 10


class SortRoom(NamedTuple):
    """What a sort works with: spare rows and tags, ranges left to sort, and ends of digits."""

    rows: Words
    tags: Numbers
    stack: Ints
    at: Ints


@njit(nogil=True, cache=True)
def sort_room(spare: Words, spare_tags: Numbers, digits: Ints) -> SortRoom:
    """Return room to sort by some digits: each level leaves its cells on the stack."""
    stack = np.empty((len(digits) * 256 + 2, 3), dtype=np.int64)
    return SortRoom(spare, spare_tags, stack, np.empty(256, dtype=np.int64))


@njit(nogil=True, cache=True)
def _less(rows: Words, i: int, key: Words, mask: Words) -> bool:
    """Tell whether the key is less than row i under the mask."""
    for w in range(len(mask)):
        a, b = key[w] & mask[w], rows[i, w] & mask[w]
        if a != b:
            return a < b
    return False


@njit(nogil=True, cache=True)
def same(rows: Words, i: int, j: int, mask: Words) -> bool:
    """Tell whether rows i and j agree under the mask."""
    for w in range(len(mask)):  # noqa: SIM110 - compiled
        if (rows[i, w] ^ rows[j, w]) & mask[w]:
            return False
    return True


@njit(nogil=True, cache=True)
def _insertion(rows: Words, tags: Numbers, lo: int, hi: int, mask: Words, key: Words) -> None:
    for i in range(lo + 1, hi):
        tag = tags[i]
        for w in range(len(mask)):
            key[w] = rows[i, w]
        j = i
        while j > lo and _less(rows, j - 1, key, mask):
            for w in range(len(mask)):
                rows[j, w] = rows[j - 1, w]
            tags[j] = tags[j - 1]
            j -= 1
        for w in range(len(mask)):
            rows[j, w] = key[w]
        tags[j] = tag


@njit(nogil=True, cache=True)
def _spread(rows: Words, tags: Numbers, lo: int, hi: int, digit: Ints, room: SortRoom) -> None:
    """One radix pass over [lo, hi); afterwards room.at[d] is where digit value d ends."""
    spare, spare_tags, _, at = room
    word, shift, top = digit[0], np.uint64(digit[1]), np.uint64((1 << digit[2]) - 1)
    at[: int(top) + 1] = 0
    for i in range(lo, hi):
        at[(rows[i, word] >> shift) & top] += 1
    total = lo
    for d in range(int(top) + 1):
        total, at[d] = total + at[d], total
    for i in range(lo, hi):
        d = (rows[i, word] >> shift) & top
        to = at[d]
        for w in range(rows.shape[1]):
            spare[to, w] = rows[i, w]
        spare_tags[to] = tags[i]
        at[d] = to + 1
    rows[lo:hi] = spare[lo:hi]
    tags[lo:hi] = spare_tags[lo:hi]


@njit(nogil=True, cache=True)
def sort_range(
    rows: Words, tags: Numbers, lo: int, hi: int, mask: Words, digits: Ints, room: SortRoom
) -> None:
    """Sort rows [lo, hi) and their tags so that rows equal under the mask lie side by side."""
    stack, at = room.stack, room.at
    key = np.empty(len(mask), dtype=np.uint64)
    stack[0, 0], stack[0, 1], stack[0, 2] = lo, hi, 0
    depth = 1
    while depth:
        depth -= 1
        a, b, level = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if level == len(digits) or b - a < 2:
            continue
        if b - a <= SMALL:
            _insertion(rows, tags, a, b, mask, key)
            continue
        _spread(rows, tags, a, b, digits[level], room)
        start = a
        for d in range(1 << digits[level, 2]):
            if at[d] - start > 1:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, at[d], level + 1
                depth += 1
            start = at[d]


@njit(nogil=True, cache=True)
def sort_cells(
    rows: Words,
    tags: Numbers,
    starts: Ints,
    cells: Ints,
    mask: Words,
    digits: Ints,
    spare: Words,
    spare_tags: Numbers,
) -> None:
    """Sort inside each cell from cells[0] up to cells[1] by the mask, in place."""
    room = sort_room(spare, spare_tags, digits)
    for c in range(cells[0], cells[1]):
        sort_range(rows, tags, starts[c], starts[c + 1], mask, digits, room)


@njit(nogil=True, cache=True)
def count_digits(words: Words, shift: int, at: Words) -> None:
    """Count the words of each digit: eight bits from `shift` on."""
    at[:] = 0
    for i in range(len(words)):
        at[(words[i] >> np.uint64(shift)) & np.uint64(255)] += np.uint64(1)


@njit(nogil=True, cache=True)
def move_digits(words: Words, shift: int, at: Words, out: Words) -> None:
    """Move each word to the next free place of its digit; `at` has the places."""
    for i in range(len(words)):
        word = words[i]
        digit = (word >> np.uint64(shift)) & np.uint64(255)
        to = at[digit]
        out[to] = word
        at[digit] = to + np.uint64(1)


@njit(nogil=True, cache=True)
def tally_words(words: Words, tag_bits: int, cutoff: int) -> tuple[int, int]:
    """Count the cells of sorted words, and the records in those smaller than the cutoff.

    The lowest bits of a word are its weight, up to the cutoff; cells agree on those above.
    """
    shift, low = np.uint64(tag_bits), np.uint64((1 << tag_bits) - 1)
    found, before = 0, np.uint64(0)
    at_risk: Any = 0
    size: Any = 0
    for i in range(len(words)):
        key, weight = words[i] >> shift, np.int64(words[i] & low)
        is_first = i == 0 or key != before
        found += is_first
        at_risk += size if is_first and size < cutoff else 0
        size = weight if is_first else size + weight
        before = key
    return found, at_risk + (size if size < cutoff else 0)


@njit(nogil=True, cache=True)
def add_field(words: Words, codes: Array, shift: np.uint64) -> None:
    """Put codes into the bits of words from `shift` on, which are 0 yet."""
    for i in range(len(words)):
        words[i] |= np.uint64(codes[i]) << shift


@njit(nogil=True, cache=True)
def word_starts(words: Words, low: int, starts: Ints) -> int:
    """Write where each cell of words, sorted by the bits from `low` on, starts; return how many.

    At the end stands the number of words.
    """
    count = 0
    for i in range(len(words)):
        if i == 0 or (words[i] ^ words[i - 1]) >> np.uint64(low):
            starts[count] = i
            count += 1
    starts[count] = len(words)
    return count


@njit(nogil=True, cache=True)
def bounds(rows: Words, mask: Words) -> Ints:
    """Return where each cell of sorted rows starts, and at the end the number of rows."""
    count = 0
    for i in range(len(rows)):
        if i == 0 or not same(rows, i - 1, i, mask):
            count += 1
    out = np.empty(count + 1, dtype=np.int64)
    count = 0
    for i in range(len(rows)):
        if i == 0 or not same(rows, i - 1, i, mask):
            out[count] = i
            count += 1
    out[count] = len(rows)
    return out


@njit(nogil=True, cache=True)
def merge(rows: Words, weights: Numbers, mask: Words) -> int:
    """Merge neighbours equal under the mask in place, adding weights; return how many remain.

    Fields outside the mask keep the value of the first row of each cell.
    """
    last = -1
    for i in range(len(rows)):
        if last >= 0 and same(rows, last, i, mask):
            weights[last] += weights[i]
        else:
            last += 1
            for w in range(rows.shape[1]):
                rows[last, w] = rows[i, w]
            weights[last] = weights[i]
    return last + 1


@njit(nogil=True, cache=True)
def split(
    rows: Words,
    weights: Numbers,
    starts: Ints,
    cells: Ints,
    field: Ints,
    cutoff: int,
    out: Words,
    out_weights: Numbers,
    out_starts: Ints,
) -> tuple[int, int, int, int]:
    """Split the cells from cells[0] up to cells[1] by one field, and drop rows alone in theirs.

    What is left is written to `out`, where each new cell starts to `out_starts`, which needs room
    for half the rows. Returns the number of rows left, of cells left, of cells dropped and of the
    records at risk in those.
    """
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    # By code the rows of the cell that have it, then where the next of them goes; -1: it is alone.
    at = np.zeros(int(top) + 1, dtype=np.int64)
    seen = np.empty_like(at)
    left = kept = dropped = at_risk = 0
    for c in range(cells[0], cells[1]):
        codes = 0
        for i in range(starts[c], starts[c + 1]):
            code = (rows[i, word] >> shift) & top
            if at[code] == 0:
                seen[codes] = code
                codes += 1
            at[code] += 1
        for k in range(codes):
            held = at[seen[k]]
            if held == 1:
                at[seen[k]] = -1
            else:
                out_starts[kept], at[seen[k]] = left, left
                kept += 1
                left += held
        for i in range(starts[c], starts[c + 1]):
            code = (rows[i, word] >> shift) & top
            to = at[code]
            if to < 0:
                dropped += 1
                at_risk += weights[i] if weights[i] < cutoff else 0
            else:
                for w in range(rows.shape[1]):
                    out[to, w] = rows[i, w]
                out_weights[to] = weights[i]
                at[code] = to + 1
        for k in range(codes):
            at[seen[k]] = 0
    return left, kept, dropped, at_risk


@njit(nogil=True, cache=True)
def _tally_counts(
    rows: Words, weights: Numbers, field: Ints, numbers: Array, cutoff: int, counts: Numbers
) -> tuple[int, int]:
    """Tally one field of numbered cells: count every code of every cell, then look.

    Where there are more rows than numbers these begin again: one cell, of which all are 0.
    """
    shift, top = np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    bits, least = np.uint64(field[2]), np.int32(cutoff)
    for low in range(0, len(rows), len(numbers)):
        column, held = rows[low : low + len(numbers), field[0]], weights[low : low + len(numbers)]
        for i in range(len(column)):
            place = (np.uint64(numbers[i]) << bits) | ((column[i] >> shift) & top)
            counts[place] += held[i]
    found: Any = np.int32(0)
    at_risk: Any = np.int32(0)
    for k in range(len(counts)):
        found += np.int32(counts[k] > 0)
        at_risk += counts[k] if counts[k] < least else np.int32(0)
        counts[k] = 0
    return found, at_risk


@njit(nogil=True, cache=True)
def _tally_small(
    rows: Words, weights: Numbers, field: Ints, numbers: Array, base: int, cutoff: int, count: Ints
) -> tuple[int, int]:
    """Tally one field of small cells as their rows come; a count below its base stands for zero."""
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    found = at_risk = 0
    for low in range(0, len(rows), len(numbers)):
        for i in range(min(len(numbers), len(rows) - low)):
            code = (rows[low + i, word] >> shift) & top
            here = (base + np.int64(numbers[i])) << 32
            before = max(count[code] - here, 0)
            after = before + weights[low + i]
            count[code] = here + after
            found += before == 0
            at_risk += (after if after < cutoff else 0) - (before if before < cutoff else 0)
    return found, at_risk


@njit(nogil=True, cache=True)
def tally_splits(
    rows: Words,
    weights: Numbers,
    starts: Ints,
    cells: Ints,
    fields: Ints,
    sizes: Ints,
    cutoff: int,
    most: int = -1,
) -> Ints:
    """Tally what splitting the cells by each field alone would give.

    Returned are, a row a field, the cells and the records in cells smaller than the cutoff. Only
    cells[0] up to cells[1] are looked at, a few at a time for all candidates, so that their rows
    stay near. `fields` have (word, shift, bits), `sizes` their numbers of codes; what has more
    than `most` records at risk is not counted to the end. Counts of small cells are never cleared:
    each cell counts from a base above all earlier ones.
    """
    out = np.zeros((len(fields), 2), dtype=np.int64)
    ends = np.cumsum(sizes)
    counts = np.zeros(ends[-1] if len(ends) else 0, dtype=np.int64)
    numbers = np.empty(ROWS_AT_ONCE, dtype=np.uint32)
    held = min(starts[cells[1]] - starts[cells[0]], ROWS_AT_ONCE)
    by_code = np.zeros(max(held * CODES_A_ROW, FEW_CODES), dtype=np.int32)
    last = cells[0]
    while last < cells[1]:
        first, last = last, last + 1
        while (
            last < min(first + CELLS_AT_ONCE, cells[1])
            and starts[last + 1] - starts[first] <= ROWS_AT_ONCE
        ):
            last += 1
        a, b = starts[first], starts[last]
        for c in range(first, last):
            numbers[starts[c] - a : starts[c + 1] - a] = c - first
        some = numbers[: min(b - a, ROWS_AT_ONCE)]
        most_codes = max(min(b - a, ROWS_AT_ONCE) * CODES_A_ROW, FEW_CODES)
        for v in range(len(fields)):
            if 0 <= most < out[v, 1]:
                continue
            codes = (last - first) << fields[v, 2]
            if codes <= most_codes:
                found, at_risk = _tally_counts(
                    rows[a:b], weights[a:b], fields[v], some, cutoff, by_code[:codes]
                )
            else:
                count = counts[ends[v] - sizes[v] : ends[v]]
                found, at_risk = _tally_small(
                    rows[a:b], weights[a:b], fields[v], some, first + 1, cutoff, count
                )
            out[v, 0] += found
            out[v, 1] += at_risk
    return out


@njit(nogil=True, cache=True)
def coarsen(rows: Words, field: Ints, table: Numbers) -> None:
    """Replace every code of one field by the code that stands for its class, in place."""
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    clear = ~(top << shift)
    for i in range(len(rows)):
        code = (rows[i, word] >> shift) & top
        rows[i, word] = (rows[i, word] & clear) | (np.uint64(table[code]) << shift)


@njit(nogil=True, cache=True)
def settle_cells(
    rows: Words, weights: Numbers, cell: Words, whole: Words, cutoff: int, starts: Ints
) -> tuple[int, int, int]:
    """Merge equal rows of sorted ones, and drop the cells whose records can change no more.

    A cell smaller than the cutoff stays so however it is split; a cell all of whose rows have the
    weight of the cutoff never has a small part. Both are dropped, in place.

    Rows of a cell agree on the mask `cell`, equal rows on `whole`. Where each cell left starts
    is written to `starts`, with room for one more than the rows. Returned are the rows left,
    the cells left, and the records in the small cells dropped.
    """
    left = cells = at_risk = 0
    a = 0
    while a < len(rows):
        b, first = a, left
        size, is_fixed = 0, True
        # Rows are written at or before the one looked at, so that the one before b is as it was.
        while b == a or (b < len(rows) and same(rows, b - 1, b, cell)):
            size += weights[b]
            if left > first and same(rows, left - 1, b, whole):
                weights[left - 1] = min(weights[left - 1] + weights[b], cutoff)
            else:
                for w in range(rows.shape[1]):
                    rows[left, w] = rows[b, w]
                weights[left] = weights[b]
                left += 1
            b += 1
        for i in range(first, left):
            is_fixed &= weights[i] >= cutoff
        if size < cutoff:
            at_risk += size
            left = first
        elif is_fixed or left - first == 1:
            left = first
        else:
            starts[cells] = first
            cells += 1
        a = b
    starts[cells] = left
    return left, cells, at_risk


@njit(nogil=True, cache=True)
def tally_rungs(
    rows: Words,
    weights: Numbers,
    starts: Ints,
    cells: Ints,
    field: Ints,
    tables: Numbers,
    cutoff: int,
    most: int,
) -> Ints:
    """Count the records in small cells if the cells were split by each rung of one field.

    Only cells[0] up to cells[1] are looked at. Once a count is beyond `most` it goes on no more.
    Tables are those of the rungs, a row each; a coarser rung never has more than a finer one, so
    that after a rung with none all further ones have none.
    """
    word, shift = field[0], np.uint64(field[1])
    top = np.uint64((1 << field[2]) - 1)
    out = np.zeros(len(tables), dtype=np.int64)
    count = np.zeros(tables.shape[1], dtype=np.int64)
    for k in range(len(tables)):
        table, at_risk = tables[k], 0
        for c in range(cells[0], cells[1]):
            for i in range(starts[c], starts[c + 1]):
                count[table[(rows[i, word] >> shift) & top]] += weights[i]
            for i in range(starts[c], starts[c + 1]):
                code = table[(rows[i, word] >> shift) & top]
                at_risk += count[code] if count[code] < cutoff else 0
                count[code] = 0
            if at_risk > most:
                break
        out[k] = at_risk
        if at_risk == 0:
            break
    return out
