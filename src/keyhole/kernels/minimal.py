"""Minimal uniques: every smallest set of variables on which a record is alone.

Sets of variables are visited depth first in the order of their masks read as numbers, so that
every subset of a set comes before it. For each set the records alone on it are kept as bits.
A record is minimal on a set if it is alone there and on none of the sets with one variable
less: a few bit operations settle sixty-four records at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import CodeRows, Ints, Numbers, Words


@njit(nogil=True, cache=True)
def _split(
    codes: CodeRows,
    weights: Numbers,
    missing: int,
    variable: int,
    order: Numbers,
    starts: Numbers,
    cells: int,
    counts: Numbers,
    new_order: Numbers,
    new_starts: Numbers,
    alone: Numbers,
) -> tuple[int, int]:
    """Split every cell by one variable; return the number of cells left and of patterns alone.

    What is missing matches nothing and leaves. A pattern left without company leaves, and is
    listed in `alone` if it is a single record. A cell without single records leaves too:
    nobody in it can ever be alone. `counts` holds, by code, the rows, the single records, the
    place to fill and the codes met in this cell; rows are zero on entry and on return.
    """
    size, singles, place, met = counts[0], counts[1], counts[2], counts[3]
    left = filled = lonely = 0
    for c in range(cells):
        a, b = starts[c], starts[c + 1]
        kinds = 0
        for i in range(a, b):
            code = codes[order[i], variable]
            if size[code] == 0:
                met[kinds], singles[code] = code, 0
                kinds += 1
            size[code] += 1
            singles[code] += weights[order[i]] == 1
        for k in range(kinds):
            code = met[k]
            place[code] = -1
            if code != missing and size[code] > 1 and singles[code] > 0:
                place[code], new_starts[left] = filled, filled
                filled += size[code]
                left += 1
        for i in range(a, b):
            code = codes[order[i], variable]
            if place[code] >= 0:
                new_order[place[code]] = order[i]
                place[code] += 1
            elif size[code] == 1 and singles[code] == 1 and code != missing:
                alone[lonely] = order[i]
                lonely += 1
        for k in range(kinds):
            size[met[k]] = 0
    new_starts[left] = filled
    return left, lonely


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
    codes: CodeRows,
    weights: Numbers,
    missing: Ints,
    sizes: Ints,
    known: Words,
    max_size: int,
    binomials: Ints,
    watch: Ints,
) -> tuple[Numbers, Words]:
    """Find every minimal unique of up to `max_size` variables.

    Returned are the pattern and the mask (bit v is variable v) of each. `codes` are distinct
    patterns, `weights` how many records have each: only single records can be unique. By
    variable `missing` is the code of a missing value or -1, `known` a bit a pattern. By
    `binomials`, n over k, a set is numbered among those of its size. `watch` is shared with
    another thread: the sets visited, which are counted here, and a wish to stop.
    """
    patterns, variables = codes.shape
    blocks = (patterns + 63) // 64
    order = np.empty((max_size + 1, patterns), dtype=np.int32)
    starts = np.empty((max_size + 1, patterns + 2), dtype=np.int32)
    cells = np.zeros(max_size + 1, dtype=np.int64)
    counts = np.zeros((4, max(sizes.max(), 1)), dtype=np.int32)
    alone = np.empty(patterns, dtype=np.int32)
    owners, found = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.uint64)
    total = 0

    offsets = np.zeros(max_size + 1, dtype=np.int64)
    for k in range(1, max_size + 1):
        offsets[k] = offsets[k - 1] + binomials[variables, k - 1]
    # Where the bits of each set lie; -1: everybody who knows its variables is alone on it.
    home = np.full(offsets[max_size], -1, dtype=np.int64)
    unique = np.zeros((2, blocks), dtype=np.uint64)
    home[0], stored = 0, 1

    order[0] = np.arange(patterns)
    starts[0, 0], starts[0, 1] = 0, patterns
    cells[0] = 1
    fresh = np.zeros(blocks, dtype=np.uint64)
    members = np.zeros(max_size + 1, dtype=np.int64)
    following = np.zeros(max_size + 1, dtype=np.int64)
    limit = np.zeros(max_size + 1, dtype=np.int64)
    limit[0] = variables
    depth = 0
    while depth >= 0:
        v = following[depth]
        if v >= limit[depth]:
            depth -= 1
            continue
        if watch[1]:
            break
        watch[0] += 1
        following[depth] = v + 1
        members[depth] = v
        left, lonely = _split(
            codes, weights, missing[v], v,
            order[depth], starts[depth], cells[depth],
            counts, order[depth + 1], starts[depth + 1], alone,
        )  # fmt: skip
        size = depth + 1
        if lonely:
            fresh[:] = 0
            _set_bits(fresh, alone, lonely)
            for skip in range(depth):
                at = home[_rank(members, size, skip, binomials, offsets)]
                if at < 0:
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
        if left and size < max_size:
            if stored == len(unique):
                unique = np.concatenate((unique, np.zeros_like(unique)))
            parent = home[_rank(members, depth, -1, binomials, offsets)]
            for b in range(blocks):
                unique[stored, b] = unique[parent, b] & known[v, b]
            _set_bits(unique[stored], alone, lonely)
            home[_rank(members, size, -1, binomials, offsets)] = stored
            stored += 1
            depth += 1
            cells[depth], following[depth], limit[depth] = left, 0, v
    return owners[:total].copy(), found[:total].copy()


@njit(nogil=True, cache=True)
def _list(fresh: Words, mask: int, owners: Numbers, found: Words, total: int) -> int:
    """Append the records whose bit is set, with the mask; return the new length."""
    for b in range(len(fresh)):
        word = fresh[b]
        at = 64 * b
        while word:
            if word & np.uint64(1):
                owners[total], found[total] = at, mask
                total += 1
            word >>= np.uint64(1)
            at += 1
    return total
