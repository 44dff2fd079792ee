"""Hypercubes of table cells: the cheapest one in which a cell moves."""

from __future__ import annotations

import numpy as np
from numba import njit

from keyhole.kernels.arrays import Flags, Floats, Ints


@njit(nogil=True, cache=True)
def cheapest_hypercube(
    chains: Ints,
    ups: Ints,
    downs: Ints,
    options: Ints,
    places: Ints,
    first: Flags,
    shares: Ints,
    open_: Flags,
    up: Floats,
    down: Floats,
    step: float,
    cost: Floats,
    needed: Ints,
    shared: float,
) -> tuple[float, Ints]:
    """Return the price of the cheapest hypercube that has room, and its corners.

    By axis, table and leaf `chains` has what the nodes of the leaf add to the number of a cell (-1
    to fill); by axis `ups` are leaves that go up, `downs` those that go down for them (-1: none),
    `options` how many there are. By table and cell `places` is the joint number, `first` whether no
    table before has it. By joint cell: how many tables have it (`shares`), whether it is `open_` to
    move, how far `up` and `down` (it must by `step`), its `cost`, and how many `needed` it already:
    then it costs a part `shared`. A cell moves alike in all tables that have it, or sums break.

    Without room the price is infinite. Corners that go down are written as -1 less their number.
    """
    axes, tables, deep = chains.shape[0], chains.shape[1], chains.shape[3]
    most = options.max()
    at = np.empty((axes, most, tables, 2 * deep), dtype=np.int64)
    sign = np.empty((axes, most, tables, 2 * deep), dtype=np.int64)
    width = np.zeros((axes, most, tables), dtype=np.int64)
    corners = 1
    for a in range(axes):
        corners *= 2 * deep
        for k in range(options[a]):
            for t in range(tables):
                n = 0
                for way in range(2):
                    one, other = (ups[a, k], downs[a, k]) if way == 0 else (downs[a, k], ups[a, k])
                    if one < 0:
                        continue
                    for i in range(deep):
                        node = chains[a, t, one, i]
                        both = node < 0
                        for j in range(deep):
                            if other >= 0 and chains[a, t, other, j] == node:
                                both = True
                        if not both:
                            at[a, k, t, n] = node
                            sign[a, k, t, n] = 1 - 2 * way
                            n += 1
                width[a, k, t] = n
    best, found = np.inf, np.empty(0, dtype=np.int64)
    cells = np.empty(corners * tables, dtype=np.int64)
    seen = np.zeros(len(shares), dtype=np.int64)
    pick, turn = np.zeros(axes, dtype=np.int64), np.zeros(axes, dtype=np.int64)
    going = True
    while going:
        price, n, fits = 0.0, 0, True
        for t in range(tables):
            inside = fits
            for a in range(axes):
                turn[a] = 0
                inside = inside and width[a, pick[a], t] > 0
            while inside:
                cell, side = 0, 1
                for a in range(axes):
                    cell += at[a, pick[a], t, turn[a]]
                    side *= sign[a, pick[a], t, turn[a]]
                joint = places[t, cell]
                fits = open_[joint] and (up[joint] if side > 0 else down[joint]) >= step
                if first[t, cell]:
                    price += cost[joint] * (shared if needed[joint] > 0 else 1.0) + 1e-6
                if not fits or price >= best:
                    fits = False
                    break
                cells[n] = joint if side > 0 else -1 - joint
                n += 1
                inside = False
                for a in range(axes):
                    turn[a] += 1
                    if turn[a] < width[a, pick[a], t]:
                        inside = True
                        break
                    turn[a] = 0
        if fits and tables > 1:
            for i in range(n):
                joint = cells[i] if cells[i] >= 0 else -1 - cells[i]
                seen[joint] += 1 if cells[i] >= 0 else -1
            for i in range(n):
                joint = cells[i] if cells[i] >= 0 else -1 - cells[i]
                if abs(seen[joint]) != shares[joint]:
                    fits = False
            for i in range(n):
                seen[cells[i] if cells[i] >= 0 else -1 - cells[i]] = 0
        if fits:
            best, found = price, cells[:n].copy()
        going = False
        for a in range(axes):
            pick[a] += 1
            if pick[a] < options[a]:
                going = True
                break
            pick[a] = 0
    return best, found
