"""Minimal uniques: every smallest set of variables on which a record is alone.

Sets of variables are visited depth first in the order of their masks read as numbers, so that
every subset of a set comes before it. For each set the records alone on it are kept as bits.
A record is minimal on a set if it is alone there and on none of the sets with one variable
less: a few bit operations settle sixty-four records at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Floats, Ints, Numbers, Words
from keyhole.kernels.fields import popcount


@njit(nogil=True, cache=True)
def _split(
    rows: Words,
    field: Ints,
    single: Ints,
    missing: int,
    order: Numbers,
    starts: Numbers,
    cells: int,
    counts: Numbers,
    new_rows: Words,
    new_order: Numbers,
    new_starts: Numbers,
    alone: Numbers,
) -> tuple[int, int]:
    """Split every cell by one variable; return the number of cells left and of patterns alone.

    `rows` are packed and in their order; `field` has the word, the shift and the bits of the
    variable, `single` of the bit of single records. What is missing matches nothing and leaves. A
    pattern left without company leaves, and is listed in `alone` if it is a single record. A cell
    without single records leaves too: nobody in it can ever be alone. `counts` holds, by code, the
    rows, the single records, the place to fill and the codes met in this cell; rows are zero on
    entry and on return.
    """
    size, singles, place, met = counts[0], counts[1], counts[2], counts[3]
    near, shift, top = rows[:, field[0]], np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    ones, one_shift, one = rows[:, single[0]], np.uint64(single[1]), np.uint64(1)
    left = filled = lonely = 0
    for c in range(cells):
        a, b = starts[c], starts[c + 1]
        kinds = 0
        for i in range(a, b):
            code = np.int64(near[i] >> shift & top)
            if size[code] == 0:
                met[kinds], singles[code] = code, 0
                kinds += 1
            size[code] += 1
            singles[code] += ones[i] >> one_shift & one
        for k in range(kinds):
            code = met[k]
            place[code] = -1
            if code != missing and size[code] > 1 and singles[code] > 0:
                place[code], new_starts[left] = filled, filled
                filled += size[code]
                left += 1
        for i in range(a, b):
            code = np.int64(near[i] >> shift & top)
            to = place[code]
            if to >= 0:
                new_order[to] = order[i]
                for w in range(rows.shape[1]):
                    new_rows[to, w] = rows[i, w]
                place[code] = to + 1
            elif size[code] == 1 and singles[code] == 1 and code != missing:
                alone[lonely] = order[i]
                lonely += 1
        for k in range(kinds):
            size[met[k]] = 0
    new_starts[left] = filled
    return left, lonely


@njit(nogil=True, cache=True)
def _find_alone(
    rows: Words,
    field: Ints,
    single: Ints,
    missing: int,
    order: Numbers,
    starts: Numbers,
    cells: int,
    counts: Numbers,
    alone: Numbers,
) -> int:
    """List the patterns that `_split` would list, without splitting; return how many.

    `counts` has four lines of counts by code, zero on entry and on return, and one of places.
    """
    lonely, kinds, count, place = 0, counts.shape[1], counts[0], counts[4]
    near, shift, top = rows[:, field[0]], np.uint64(field[1]), np.uint64((1 << field[2]) - 1)
    ones, one_shift, one = rows[:, single[0]], np.uint64(single[1]), np.uint64(1)
    for c in range(cells):
        a, b = starts[c], starts[c + 1]
        if b - a < kinds:
            for i in range(a, b):
                count[near[i] >> shift & top] += 1
            for i in range(a, b):
                code, is_single = near[i] >> shift & top, ones[i] >> one_shift & one
                alone[lonely] = order[i]  # the next is written over it unless it is alone
                lonely += (count[code] == 1) & (is_single == one) & (np.int64(code) != missing)
            for i in range(a, b):
                count[near[i] >> shift & top] = 0
        else:
            for i in range(a, b):  # in turns: no sum waits for the one before
                code = near[i] >> shift & top
                counts[i & 3, code] += 1
                place[code] = i
            for code in range(kinds):
                held = count[code] + counts[1, code] + counts[2, code] + counts[3, code]
                if held == 1 and code != missing and ones[place[code]] >> one_shift & one:
                    alone[lonely] = order[place[code]]
                    lonely += 1
                count[code] = counts[1, code] = counts[2, code] = counts[3, code] = 0
    return lonely


@njit(nogil=True, cache=True)
def _rank(members: Ints, size: int, skip: int, binomials: Ints, offsets: Ints) -> int:
    """Number the set of the first `size` members, the one at `skip` left out.

    Members come in falling order; sets of one size are numbered as their masks are ordered.
    """
    count = size - (0 <= skip < size)
    rank, k = offsets[count], count
    for i in range(size):
        if i != skip:
            rank += binomials[members[i], k]
            k -= 1
    return rank


@njit(nogil=True, cache=True)
def _set_bits(bits: Words, members: Numbers, count: int) -> None:
    for i in range(count):
        bits[members[i] >> 6] |= np.uint64(1) << np.uint64(members[i] & 63)


@njit(nogil=True, cache=True)
def find_minimal(
    rows: Words,
    fields: Ints,
    missing: Ints,
    sizes: Ints,
    known: Words,
    max_size: int,
    binomials: Ints,
    branch: int,
    unique: Words,
    home: Flags,
    watch: Ints,
) -> tuple[Numbers, Words]:
    """Find the minimal uniques of up to `max_size` variables of which `branch` is the highest.

    Returned are the pattern and the mask (bit v is variable v) of each, except that nobody has
    looked at the set without the highest variable: see `drop_larger`. `rows` are distinct
    patterns, packed; `fields` have the word, the shift and the bits of each variable, and last of
    a bit that says whether one record has the pattern: only single ones can be unique. By
    variable `missing` is the code of a missing value or -1, `known` a bit a pattern. By
    `binomials`, n over k, a set is numbered among those of its size. By this number of a set
    smaller than `max_size`, `unique` gets the bits of the patterns alone on it, and `home` whether
    it does; otherwise everybody who knows its variables is alone on it. `watch` is shared with
    other threads: by branch the sets visited, and last a wish to stop.
    """
    patterns, variables = len(rows), len(missing)
    blocks = (patterns + 63) // 64
    order = np.empty((max_size + 1, patterns), dtype=np.int32)
    starts = np.empty((max_size + 1, patterns + 2), dtype=np.int32)
    # By depth the rows in their order, which are read once for each variable below.
    near = np.empty((max_size, patterns, rows.shape[1]), dtype=np.uint64)
    cells = np.zeros(max_size + 1, dtype=np.int64)
    counts = np.zeros((4, max(sizes.max(), 1)), dtype=np.int32)
    turns = np.zeros((5, max(sizes.max(), 1)), dtype=np.int32)
    alone = np.empty(patterns + 1, dtype=np.int32)
    owners, found = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.uint64)
    total = 0
    offsets = _offsets(binomials, variables, max_size)

    order[0] = np.arange(patterns)
    starts[0, 0], starts[0, 1] = 0, patterns
    cells[0] = 1
    near[0] = rows
    fresh = np.zeros(blocks, dtype=np.uint64)
    members = np.zeros(max_size + 1, dtype=np.int64)
    following = np.zeros(max_size + 1, dtype=np.int64)
    limit = np.zeros(max_size + 1, dtype=np.int64)
    following[0], limit[0] = branch, branch + 1
    depth = 0
    while depth >= 0:
        v = following[depth]
        if v >= limit[depth]:
            depth -= 1
            continue
        if watch[-1]:
            break
        watch[branch] += 1
        following[depth] = v + 1
        members[depth] = v
        size = depth + 1
        if size < max_size:
            left, lonely = _split(
                near[depth], fields[v], fields[-1], missing[v],
                order[depth], starts[depth], cells[depth],
                counts, near[depth + 1], order[depth + 1], starts[depth + 1], alone,
            )  # fmt: skip
        else:  # who is alone is all that is asked
            left, lonely = 0, _find_alone(
                near[depth], fields[v], fields[-1], missing[v],
                order[depth], starts[depth], cells[depth], turns[:, : sizes[v]], alone,
            )  # fmt: skip
        if lonely:
            fresh[:] = 0
            _set_bits(fresh, alone, lonely)
            for skip in range(1, depth):
                at = _rank(members, size, skip, binomials, offsets)
                if not home[at]:
                    fresh[:] = 0
                    break
                for b in range(blocks):
                    fresh[b] &= ~unique[at, b]
            mask = np.uint64(0)
            for i in range(size):
                mask |= np.uint64(1) << np.uint64(members[i])
            if total + lonely > len(owners):
                more = 2 * total + lonely - len(owners)
                owners = np.concatenate((owners, np.empty(more, dtype=np.int32)))
                found = np.concatenate((found, np.empty(more, dtype=np.uint64)))
            total = _list(fresh, mask, owners, found, total)
        if left:
            parent = _rank(members, depth, -1, binomials, offsets)
            at = _rank(members, size, -1, binomials, offsets)
            for b in range(blocks):
                unique[at, b] = unique[parent, b] & known[v, b]
            _set_bits(unique[at], alone, lonely)
            home[at] = True
            depth += 1
            cells[depth], following[depth], limit[depth] = left, 0, v
    return owners[:total].copy(), found[:total].copy()


@njit(nogil=True, cache=True)
def _offsets(binomials: Ints, variables: int, max_size: int) -> Ints:
    """Return the number of the first set of each size."""
    out = np.zeros(max_size + 1, dtype=np.int64)
    for k in range(1, max_size + 1):
        out[k] = out[k - 1] + binomials[variables, k - 1]
    return out


@njit(nogil=True, cache=True)
def drop_larger(
    owners: Numbers, masks: Words, binomials: Ints, max_size: int, unique: Words, home: Flags
) -> int:
    """Drop those who are alone on their set without its highest variable too, in place.

    Returns how many are left.
    """
    variables, left = len(binomials) - 1, 0
    offsets = _offsets(binomials, variables, max_size)
    members = np.zeros(max_size + 1, dtype=np.int64)
    before, at, is_new = np.uint64(0), np.int64(0), True
    for i in range(len(owners)):
        if masks[i] != before:
            size = 0
            for v in range(variables - 1, -1, -1):
                if masks[i] >> np.uint64(v) & np.uint64(1):
                    members[size] = v
                    size += 1
            before, is_new = masks[i], size == 1  # nobody is alone on the empty set
            at = _rank(members, size, 0, binomials, offsets)
        if is_new or (
            home[at] and not unique[at, owners[i] >> 6] >> np.uint64(owners[i] & 63) & np.uint64(1)
        ):
            owners[left], masks[left] = owners[i], masks[i]
            left += 1
    return left


@njit(nogil=True, cache=True)
def add_held(owners: Ints, masks: Words, variable: int, values: Floats, out: Floats) -> None:
    """Add to each owner's sum the values, by their sizes, of its sets that hold the variable."""
    for i in range(len(owners)):
        if masks[i] >> np.uint64(variable) & np.uint64(1):
            out[owners[i]] += values[popcount(masks[i])]


@njit(nogil=True, cache=True)
def _list(fresh: Words, mask: int, owners: Numbers, found: Words, total: int) -> int:
    """Append the records whose bit is set, with the mask; return the new length."""
    for b in range(len(fresh)):
        word = fresh[b]
        while word:
            rest = word & (word - np.uint64(1))
            owners[total], found[total] = 64 * b + popcount((word ^ rest) - np.uint64(1)), mask
            total += 1
            word = rest
    return total
