"""Nearest ranks of each query, found in two trees over sorted patterns.

The variables are cut into two halves. A pair whose cost is at most L has a cost of at most L / 2
in one half, or at most L / 2 in the other: so there are two trees, each with another half at the
top, where the search is let deviate by half the budget only. L grows step by step until more
pairs than the cap are found, or the threshold is reached: nothing beyond the rank that exceeds
the cap matters. A query that takes more work than it is worth is given back unfinished.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Floats, Ints, Numbers, Words
from keyhole.kernels.grading import (
    TABLE,
    Asked,
    Kept,
    Rules,
    Side,
    counted_cost,
    grade_by,
    graded_cost,
    keep,
    key_of,
    known_fields,
    largest_cost,
    list_kept,
    nothing_kept,
)


class Trie(NamedTuple):
    """Nodes: their patterns [first, last), depth, code, and children [child, child + children).

    A node at depth t is divided by variable `order[t]`; its children lie side by side in order
    of their codes. The first nodes are the roots.
    """

    order: Ints
    first: Numbers
    last: Numbers
    depth: Numbers
    code: Numbers
    child: Numbers
    children: Numbers


@njit(nogil=True, cache=True)
def _end_of_run(codes: Numbers, start: int, end: int, variable: int) -> int:
    """Return where the run of the code at `start` ends; gallop, since runs are short or long."""
    code, step, low = codes[start, variable], 1, start
    while low + step < end and codes[low + step, variable] == code:
        low += step
        step *= 2
    high = min(low + step, end)
    while low + 1 < high:
        middle = (low + high) // 2
        if codes[middle, variable] == code:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True)
def plant(codes: Numbers, order: Ints, roots: Ints, leaf: int) -> Trie:
    """Make the trees of patterns sorted by the order, root by root.

    `codes` are a row a pattern; `order` has the variables from the top down, `roots` where each
    root's patterns start, and their number. A node with no more patterns than `leaf` is not
    divided.
    """
    # By node: first, last, depth, code, child, children.
    nodes = np.zeros((2 * len(roots) + 1024, 6), dtype=np.int32)
    count = len(roots) - 1
    for i in range(count):
        nodes[i, 0], nodes[i, 1] = roots[i], roots[i + 1]
    at = 0
    while at < count:
        start, end, depth = nodes[at, 0], nodes[at, 1], nodes[at, 2]
        nodes[at, 4] = count
        if end - start > leaf and depth < len(order):
            while start < end:
                if count == len(nodes):
                    nodes = np.concatenate((nodes, np.zeros_like(nodes)))
                stop = _end_of_run(codes, start, end, order[depth])
                nodes[count, 0], nodes[count, 1] = start, stop
                nodes[count, 2], nodes[count, 3] = depth + 1, codes[start, order[depth]]
                count += 1
                nodes[at, 5] += 1
                start = stop
        at += 1
    columns = nodes[:count].T.copy()
    return Trie(order, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5])


SLACK = 1e-9


class Bins(NamedTuple):
    """Graded variables in coarse codes, as trees have them.

    By graded variable: the lowest and highest value of each bin, how many bins there are (the
    next code is missing); for a table, where its least costs by query's value and bin are.
    """

    lowest: Floats
    highest: Floats
    sizes: Ints
    floor_at: Ints
    floors: Floats


class Halves(NamedTuple):
    """The first half: its counted variables' highest bits, its graded variables; both sizes."""

    fields: Words
    graded: Flags
    first: int
    second: int


class Budget(NamedTuple):
    """How far to search: the steps L, the key not to be reached, the cap, the work allowed.

    Costs of pairs are multiples of `unit` if it is not 0.
    """

    steps: Floats
    bound: int
    cap: int
    patience: int
    unit: float


class SearchRoom(NamedTuple):
    """What a search works with.

    The counted variables known of the query, the least costs by bin, the costs allowed in each
    half; the stack of nodes with their costs; the number of patterns kept, the bound on keys
    and the work done; what is kept.
    """

    known: Words
    floors: Floats
    shares: Floats
    stack: Numbers
    costs: Floats
    state: Ints
    kept: Kept


@njit(nogil=True, cache=True)
def floors_of(asked: Asked, q: int, rules: Rules, bins: Bins, out: Floats) -> None:
    """Find the least cost of every bin for a query."""
    for g in range(len(bins.sizes)):
        value = asked.graded[q, g]
        known = not np.isnan(value)
        for b in range(bins.sizes[g]):
            if not known:
                out[g, b] = 0.0
            elif rules.kinds[g] == TABLE:
                out[g, b] = bins.floors[bins.floor_at[g] + int(value) * bins.sizes[g] + b]
            else:
                near = min(max(value, bins.lowest[g, b]), bins.highest[g, b])
                out[g, b] = grade_by(rules, g, value, near)
        out[g, bins.sizes[g]] = rules.absents[g] if known else 0.0


@njit(nogil=True, cache=True)
def _half_cost(
    side: Side, r: int, asked: Asked, q: int, rules: Rules, known: Words, halves: Halves
) -> float:
    """Return the cost of a pair in the first half."""
    within = known & halves.fields
    cost = counted_cost(
        side.rows, r, asked.rows, q, within,
        rules.low, rules.high, rules.absent_fields, rules.differ, rules.absent,
    )  # fmt: skip
    for g in range(len(rules.kinds)):
        value = asked.graded[q, g]
        if halves.graded[g] and not np.isnan(value):
            there = side.graded[r, g]
            cost += rules.absents[g] if np.isnan(there) else grade_by(rules, g, value, there)
    return cost


@njit(nogil=True, cache=True, inline="always")
def _push_counted(
    code: Numbers, a: int, b: int, wanted: int, spent: float, top: float,
    differ: float, absent: float, missing: int, stack: Numbers, costs: Floats, height: int,
) -> int:  # fmt: skip
    """Put the children worth a visit on the stack, the best last; return its height."""
    if wanted < 0:
        for x in range(a, b):
            stack[height], costs[height] = x, spent
            height += 1
        return height
    if spent + differ <= top:
        for x in range(a, b):
            if code[x] != wanted and code[x] != missing:
                stack[height], costs[height] = x, spent + differ
                height += 1
    if spent + absent <= top and code[b - 1] == missing:
        stack[height], costs[height] = b - 1, spent + absent
        height += 1
    low, high = a, b
    while low < high:
        middle = (low + high) >> 1
        if code[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < b and code[low] == wanted:
        stack[height], costs[height] = low, spent
        height += 1
    return height


@njit(nogil=True, cache=True, inline="always")
def _push_graded(
    code: Numbers, a: int, b: int, floors: Floats, g: int, spent: float, top: float,
    stack: Numbers, costs: Floats, height: int,
) -> int:  # fmt: skip
    """Put the children worth a visit on the stack, the best last; return its height."""
    best = -1
    for x in range(a, b):
        cost = floors[g, code[x]]
        if spent + cost > top:
            continue
        if cost == 0 and best < 0:
            best = x
        else:
            stack[height], costs[height] = x, spent + cost
            height += 1
    if best >= 0:
        stack[height], costs[height] = best, spent
        height += 1
    return height


@njit(nogil=True, cache=True)
def _climb(
    tree: Trie, side: Side, asked: Asked, q: int, rules: Rules, halves: Halves, second: bool,
    budget: Budget, room: SearchRoom,
) -> bool:  # fmt: skip
    """Search one tree for a query; False if the work grew too much.

    With two trees a pair is counted once: by the first if it is within its share of the first
    half, else by the second.
    """
    # Out of their tuples: taking an array out of one costs as much as a node's visit.
    rows, graded, weights, ids = side
    order, first, last, depths, code, child, children = tree
    low, high, absent_fields, missing = rules.low, rules.high, rules.absent_fields, rules.missing
    differ, absent, root, scale = rules.differ, rules.absent, rules.root, rules.scale
    asked_rows, asked_graded, asked_codes = asked.rows, asked.graded, asked.codes
    known, floors, shares, stack, costs, state, kept = room
    counted, measured, base = len(missing), graded.shape[1] > 0, asked.base[q]
    half, twice = halves.second if second else halves.first, halves.second > 0
    # A node's cost is a bound in other roundings than the pair's own cost.
    share = (shares[1] if second else shares[0]) + SLACK
    count, bound, work, height = state[0], state[1], state[2], 1
    most = largest_cost(bound, root, scale) - base
    stack[0], costs[0] = asked.root[q], 0.0
    while height:
        height -= 1
        node, spent = stack[height], costs[height]
        if spent > most:
            continue
        work += 1
        a, b = child[node], child[node] + children[node]
        if a < b:
            v = order[depths[node]]
            top = min(most, share) if depths[node] < half else most
            if v < counted:
                height = _push_counted(
                    code, a, b, asked_codes[q, v], spent, top,
                    differ, absent, missing[v], stack, costs, height,
                )  # fmt: skip
            else:
                height = _push_graded(
                    code, a, b, floors, v - counted, spent, top, stack, costs, height
                )
            continue
        work += (last[node] - first[node]) >> 1
        if work > budget.patience:
            return False
        for r in range(first[node], last[node]):
            cost = counted_cost(
                rows, r, asked_rows, q, known, low, high, absent_fields, differ, absent
            )
            if measured and cost <= most:
                cost = graded_cost(graded, r, asked_graded, q, rules, cost, most)
            if cost > most:
                continue
            key = key_of(base + cost, root, scale)
            if key >= bound:
                continue
            if twice:
                within = _half_cost(side, r, asked, q, rules, known, halves) <= shares[0]
                if within == second:
                    continue
            count, bound = keep(kept, count, ids[r], key, weights[r], budget.cap, bound)
            most = largest_cost(bound, root, scale) - base
    state[0], state[1], state[2] = count, bound, work
    return True


@njit(nogil=True, cache=True)
def _share_out(most: float, unit: float, halves: Halves, shares: Floats) -> None:
    """Allow each half its share of the cost: who exceeds the first keeps within the second."""
    if not halves.second:
        shares[0], shares[1] = most, -1.0
    elif unit > 0:
        units = np.floor(most / unit + SLACK)
        shares[0] = (units // 2) * unit + SLACK
        shares[1] = (units - units // 2 - 1) * unit + SLACK
    else:
        shares[0] = shares[1] = most / 2


@njit(nogil=True, cache=True)
def _deepen(
    trees: tuple[Trie, Trie], sides: tuple[Side, Side], halves: Halves, asked: Asked, q: int,
    rules: Rules, budget: Budget, room: SearchRoom,
) -> bool:  # fmt: skip
    """Search for a query with growing budget; False if the work grew too much."""
    base, state = asked.base[q], room.state
    farthest = largest_cost(budget.bound, rules.root, rules.scale) - base
    state[0] = state[2] = 0
    for step in budget.steps:
        most = min(step, farthest)
        if most < 0:
            break
        bound = min(budget.bound, key_of(base + most, rules.root, rules.scale) + 1)
        state[0], state[1] = 0, bound
        most = largest_cost(bound, rules.root, rules.scale) - base
        _share_out(most, budget.unit, halves, room.shares)
        for second in range(2):
            if room.shares[second] < 0 or state[1] <= 0:
                continue
            tree, side = trees[second], sides[second]
            if not _climb(tree, side, asked, q, rules, halves, second == 1, budget, room):
                return False
        if state[1] < bound or bound == budget.bound:
            break
    return True


@njit(nogil=True, cache=True)
def search(
    trees: tuple[Trie, Trie], sides: tuple[Side, Side], halves: Halves, asked: Asked,
    rules: Rules, bins: Bins, budget: Budget, queries: Ints, height: int,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Find the nearest ranks of some queries.

    Returned are rows of (query, pattern, key), and the queries given up. The second tree is not
    looked at if its half has no variables; `height` is how high the stack can grow.
    """
    found, total = np.empty((1024, 3), dtype=np.int64), 0
    unfinished, left = np.empty(len(queries), dtype=np.int64), 0
    room = SearchRoom(
        np.zeros(asked.rows.shape[1], dtype=np.uint64),
        np.zeros((len(bins.sizes), bins.lowest.shape[1] + 1)),
        np.zeros(2),
        np.empty(height, dtype=np.int32),
        np.empty(height),
        np.zeros(3, dtype=np.int64),
        nothing_kept(budget.cap),
    )
    for q in queries:
        known_fields(asked.rows, q, rules, room.known)
        floors_of(asked, q, rules, bins, room.floors)
        if _deepen(trees, sides, halves, asked, q, rules, budget, room):
            found, total = list_kept(found, total, q, room.kept, room.state[0])
        else:
            unfinished[left] = q
            left += 1
    return found[:total].copy(), unfinished[:left].copy()
