"""Nearest ranks of a query, by a scan of cells of patterns, the cheapest first.

Patterns that agree on the *front* variables, which have few codes, make a cell, priced once for all
queries that are alike on them. Those who agree on a variable that few share, the *anchor*, are
looked up first, which often closes the rank rule; who differs on it pays in advance, which leaves
few cells. The prices of the other variables are added up from tables by coarse codes; only
who then is within the limit is priced exactly. What is kept follows the rank rule of `grading`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Bytes, Floats, Ints, Numbers, Words
from keyhole.kernels.grading import (
    Asked,
    Kept,
    Rules,
    Side,
    counted_cost,
    grade,
    keep,
    key_of,
    known_fields,
    largest_cost,
    list_kept,
    nothing_kept,
)

# Coarse codes of a variable, patterns looked at before those within the limit are priced, and
# classes of cost into which cells are sorted.
CODES = 256
CHUNK = 128
LEVELS = 64
FEW = 16
# Prices are added up in another order than those of a pair.
SLACK = 1e-9


class CellIndex(NamedTuple):
    """The patterns cell by cell, stratum by stratum.

    By cell where its patterns start (and at the end their number) and where those start that
    miss the anchor; by front variable and cell the code. `front` and `rest` tell the variables,
    `anchor` is one or -1. By pattern: its anchor's code, and its coarse codes of the rest. The
    same patterns in order of stratum and anchor's code: which they are, their cells and coarse
    codes. `roots` has by stratum the first cell.
    """

    starts: Ints
    gone: Ints
    fronts: Numbers
    front: Ints
    rest: Ints
    anchor: int
    anchors: Numbers
    codes: Bytes
    anchored: Ints
    anchored_cells: Ints
    anchored_codes: Bytes
    roots: Ints


class Prices(NamedTuple):
    """The least prices by coarse code.

    By variable its coarse codes but the missing one, which is the last. For a counted variable
    `coarse` has, from `coarse_at` on, the coarse code of each code. For a graded one `rows` has,
    from `row_at` on, the prices of all coarse codes for the first of the queries' values, then
    those for the second.
    """

    sizes: Ints
    coarse: Numbers
    coarse_at: Ints
    rows: Floats
    row_at: Ints


class Limits(NamedTuple):
    """The key not to be reached, and the cap of the rank rule."""

    bound: int
    cap: int


@njit(nogil=True, cache=True)
def _cost_cells(
    cells: CellIndex, first: int, last: int, asked: Asked, q: int, rules: Rules, prices: Prices,
    out: Floats,
) -> None:  # fmt: skip
    """Find what the front variables cost in the cells of a stratum."""
    counted, differ, absent = len(rules.missing), rules.differ, rules.absent
    fronts, rows = cells.fronts, prices.rows
    out[first:last] = 0.0
    for f in range(len(cells.front)):
        v = cells.front[f]
        code = asked.codes[q, v]
        if code < 0:
            continue
        if v < counted:
            missing = rules.missing[v]
            for c in range(first, last):
                there = fronts[f, c]
                if there != code:
                    out[c] += absent if there == missing else differ
        else:
            row = prices.row_at[v] + code * (prices.sizes[v] + 1)
            for c in range(first, last):
                out[c] += rows[row + fronts[f, c]]


@njit(nogil=True, cache=True)
def _line_up(costs: Floats, first: int, last: int, most: float, line: Ints, ends: Ints) -> None:
    """Sort cells by class of cost; `ends` has by class where its cells end in the line."""
    scale = LEVELS / most
    ends[:] = 0
    for c in range(first, last):
        if costs[c] <= most:
            ends[min(int(costs[c] * scale), LEVELS - 1) + 1] += 1
    for level in range(LEVELS):
        ends[level + 1] += ends[level]
    # Fill every class from where the one before it ends; that moves its own entry to its end.
    for c in range(first, last):
        if costs[c] <= most:
            level = min(int(costs[c] * scale), LEVELS - 1)
            line[ends[level]] = c
            ends[level] += 1


@njit(nogil=True, cache=True)
def _tabulate(
    cells: CellIndex, asked: Asked, q: int, rules: Rules, prices: Prices, table: Floats
) -> None:
    """Put the least prices of the rest for a query side by side."""
    for k in range(len(cells.rest)):
        v = cells.rest[k]
        code, size = asked.codes[q, v], prices.sizes[v]
        if code < 0:
            table[k, : size + 1] = 0.0
        elif v < len(rules.missing):
            table[k, :size] = rules.differ
            table[k, prices.coarse[prices.coarse_at[v] + code]] = 0.0
            table[k, size] = rules.absent
        else:
            row = prices.row_at[v] + code * (size + 1)
            table[k, : size + 1] = prices.rows[row : row + size + 1]


@njit(nogil=True, cache=True, inline="always")
def _sift(
    codes: Bytes, a: int, b: int, spent: float, table: Floats, most: float,
    passed: Ints, least: Floats, count: int,
) -> int:  # fmt: skip
    """Append the patterns [a, b) within the limit, and at least how much they cost."""
    for r in range(a, b):
        cost = spent
        for k in range(codes.shape[1]):
            cost += table[k, codes[r, k]]
        passed[count], least[count] = r, cost
        count += cost <= most
    return count


@njit(nogil=True, cache=True, inline="always")
def _sift_anchored(
    codes: Bytes, cell: Ints, a: int, b: int, costs: Floats, table: Floats, most: float,
    passed: Ints, least: Floats,
) -> int:  # fmt: skip
    """List those within the limit of patterns that are each in another cell."""
    count = 0
    for r in range(a, b):
        cost = costs[cell[r]]
        for k in range(codes.shape[1]):
            cost += table[k, codes[r, k]]
        passed[count], least[count] = r, cost
        count += cost <= most
    return count


class Passed(NamedTuple):
    """Patterns that may be near, at least how much each costs, and what is kept of them.

    `state` is the number of patterns kept, and the bound on keys.
    """

    patterns: Ints
    least: Floats
    kept: Kept
    state: Ints


@njit(nogil=True, cache=True)
def _pivot(least: Floats, count: int, cap: int) -> float:
    """Return the cost that one more than the cap are within: these are to be priced first."""
    few = min(cap + 1, FEW)
    if count <= few:
        return np.inf
    best = np.full(few, np.inf)
    for i in range(count):
        cost, at = least[i], few - 1
        if cost < best[at]:
            while at > 0 and best[at - 1] > cost:
                best[at] = best[at - 1]
                at -= 1
            best[at] = cost
    return best[few - 1]


@njit(nogil=True, cache=True)
def _weigh(
    passed: Passed, count: int, side: Side, asked: Asked, q: int, known: Words, rules: Rules,
    cap: int, anchors: Numbers, seen: int,
) -> float:  # fmt: skip
    """Price patterns exactly, the likely nearest first; return the limit from now on.

    Those with the anchor's code `seen` have been looked at.
    """
    # Out of their tuples: taking an array out of one costs as much as pricing a pair.
    (rows, graded, weights, ids), (patterns, least, kept, state) = side, passed
    (low, high, absent_fields, _, differ, absent, kinds, absents, bands, limits, costs,
     table_at, width, tables, root, scale) = rules  # fmt: skip
    asked_rows, asked_graded, base = asked.rows, asked.graded, asked.base[q]
    held, bound = state[0], state[1]
    most = largest_cost(bound, root, scale) - base
    pivot = _pivot(least, count, cap)
    for late in range(2 if pivot < np.inf else 1):
        for i in range(count):
            r = patterns[i]
            if (least[i] > pivot) != late or least[i] > most + SLACK or anchors[r] == seen:
                continue
            cost = counted_cost(
                rows, r, asked_rows, q, known, low, high, absent_fields, differ, absent
            )
            for g in range(len(kinds)):
                wanted, value = asked_graded[q, g], graded[r, g]
                if np.isnan(wanted) or cost > most:
                    continue
                cost += absents[g] if np.isnan(value) else grade(
                    kinds[g], wanted, value, limits, costs, bands[g], bands[g + 1],
                    tables, table_at[g], width[g],
                )  # fmt: skip
            key = key_of(base + cost, root, scale)
            if cost <= most and key < bound:
                held, bound = keep(kept, held, ids[r], key, weights[r], cap, bound)
                most = largest_cost(bound, root, scale) - base
    state[0], state[1] = held, bound
    return most


@njit(nogil=True, cache=True, inline="always")
def _look_up(
    cells: CellIndex, a: int, end: int, costs: Floats, table: Floats, most: float, passed: Passed,
    side: Side, asked: Asked, q: int, known: Words, rules: Rules, cap: int,
) -> float:  # fmt: skip
    """Look at those who agree on the anchor, from a to end; return the limit from now on."""
    codes, cell, anchored = cells.anchored_codes, cells.anchored_cells, cells.anchored
    patterns, least = passed.patterns, passed.least
    while a < end:
        b = min(a + CHUNK, end)
        count = _sift_anchored(codes, cell, a, b, costs, table, most + SLACK, patterns, least)
        if count:
            for i in range(count):
                patterns[i] = anchored[patterns[i]]
            most = _weigh(passed, count, side, asked, q, known, rules, cap, cells.anchors, -1)
        a = b
    return most


@njit(nogil=True, cache=True, inline="always")
def _walk(
    cells: CellIndex, line: Ints, ends: Ints, farthest: float, costs: Floats, table: Floats,
    most: float, passed: Passed, side: Side, asked: Asked, q: int, known: Words, rules: Rules,
    cap: int, seen: int,
) -> None:  # fmt: skip
    """Look through the cells in line, as far as the limit lets."""
    starts, gone, codes, anchors = cells.starts, cells.gone, cells.codes, cells.anchors
    patterns, least = passed.patterns, passed.least
    differ, absent = (rules.differ, rules.absent) if seen >= 0 else (0.0, 0.0)
    i = count = 0
    for level in range(LEVELS):
        if level * farthest / LEVELS + min(differ, absent) > most + SLACK:
            break
        while i < ends[level]:
            c, i = line[i], i + 1
            # Who is missing the anchor comes last in a cell, and pays another price.
            a, spent = starts[c], costs[c] + differ
            while a < starts[c + 1]:
                if a == gone[c]:
                    spent = costs[c] + absent
                end = gone[c] if a < gone[c] else starts[c + 1]
                if spent > most + SLACK:
                    a = end
                    continue
                b = min(a + CHUNK, end)
                count = _sift(codes, a, b, spent, table, most + SLACK, patterns, least, count)
                a = b
                if count >= CHUNK:
                    most = _weigh(passed, count, side, asked, q, known, rules, cap, anchors, seen)
                    count = 0
        if count:
            most = _weigh(passed, count, side, asked, q, known, rules, cap, anchors, seen)
            count = 0


@njit(nogil=True, cache=True)
def scan(
    cells: CellIndex, side: Side, asked: Asked, rules: Rules, prices: Prices, limits: Limits,
    queries: Ints, groups: Ints, posts: Ints,
) -> Ints:  # fmt: skip
    """Find the nearest ranks of some queries, as rows of (query, pattern, key).

    `groups` number, by query, who is alike on stratum and front: they lie side by side in
    `queries`. `posts` say, by query, from where to where the patterns are that agree on its
    stratum and anchor.
    """
    found, total, group = np.empty((1024, 3), dtype=np.int64), 0, -1
    known = np.zeros(asked.rows.shape[1], dtype=np.uint64)
    table = np.zeros((max(1, len(cells.rest)), CODES))
    costs, line = np.zeros(len(cells.starts)), np.empty(len(cells.starts), dtype=np.int64)
    ends = np.zeros(LEVELS + 1, dtype=np.int64)
    passed = Passed(
        np.empty(2 * CHUNK, dtype=np.int64), np.empty(2 * CHUNK), nothing_kept(limits.cap),
        np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    farthest = max(largest_cost(limits.bound, rules.root, rules.scale), SLACK)
    for q in queries:
        if groups[q] != group:
            group, root = groups[q], asked.root[q]
            first, last = cells.roots[root], cells.roots[root + 1]
            _cost_cells(cells, first, last, asked, q, rules, prices, costs)
            _line_up(costs, first, last, farthest, line, ends)
        known_fields(asked.rows, q, rules, known)
        _tabulate(cells, asked, q, rules, prices, table)
        passed.state[0], passed.state[1], seen = 0, limits.bound, -1
        most = largest_cost(limits.bound, rules.root, rules.scale) - asked.base[q]
        if cells.anchor >= 0 and asked.codes[q, cells.anchor] >= 0:
            seen = asked.codes[q, cells.anchor]
            most = _look_up(
                cells, posts[q, 0], posts[q, 1], costs, table, most, passed,
                side, asked, q, known, rules, limits.cap,
            )  # fmt: skip
        _walk(
            cells, line, ends, farthest, costs, table, most, passed,
            side, asked, q, known, rules, limits.cap, seen,
        )  # fmt: skip
        found, total = list_kept(found, total, q, passed.kept, passed.state[0])
    return found[:total].copy()
