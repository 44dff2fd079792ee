"""Attackers of a table: what can be derived from the cells that are shown.

An outsider knows the cells that are shown, the sums, and that nothing is below 0. What remains
possible is every *move* z away from the true table with z = 0 on shown cells, sums kept, and
-down <= z <= up. How far a cell can move is its protection. Linear programs answer that for tables
of any number of variables; in a two-way table every cell is in two sums, so that it is an arc
between them, a move is a circulation, and a largest flow answers it much faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.errors import RunError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.cells import addends
from keyhole.protection.tables.linked import relations

# How far a program in whole numbers may branch. Not seconds: an answer must not hang on the clock.
NODES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How far a cell can move, a move that does it, and why not further.

    The weights r prove the limit: with sums kept, the move of the cell is the sum of r times the
    move of each cell, whatever is shown.
    """

    amount: float
    move: Floats
    weights: Floats | None


class Wanted(NamedTuple):
    """How far cells should move at once, and to which side (1 up, -1 down)."""

    cells: Ints
    sides: Floats
    levels: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The outsider with a solver of linear programs (HiGHS).

    `matrix` has the sums, one row each. Cells that are known to be `whole` numbers make it a
    mixed-integer program.
    """

    matrix: Any
    whole: bool = False

    def reach(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        """Move a cell up (side 1) or down (side -1), no further than the level."""
        from scipy.optimize import Bounds, LinearConstraint, linprog, milp

        cells = np.flatnonzero((up > 0) | (down > 0))
        move = np.zeros(len(up))
        if cell not in cells:
            return Reach(0.0, move, None)
        low, high = -down[cells] / level, up[cells] / level
        aim = np.where(cells == cell, -float(side), 0.0)
        high[aim < 0] = np.minimum(high[aim < 0], 1.0)
        low[aim > 0] = np.maximum(low[aim > 0], -1.0)
        part, weights = self.matrix[:, cells].tocsr(), None
        bound = np.diff(part.indptr) > 0  # the other sums have nothing that moves
        part = part[bound]
        if self.whole:
            sums = LinearConstraint(part, 0.0, 0.0)
            bounds = Bounds(np.ceil(low * level - 1e-9), np.floor(high * level + 1e-9))
            done = milp(aim, constraints=sums, bounds=bounds, integrality=np.ones(len(aim)))
        else:
            zeros = np.zeros(part.shape[0])
            done = linprog(aim, A_eq=part, b_eq=zeros, bounds=np.stack([low, high], axis=1))
        if done.x is None:
            return Reach(0.0, move, None)
        move[cells] = (np.round(done.x) / level if self.whole else done.x) * level
        if not self.whole:
            marginals = np.zeros(len(bound))
            marginals[bound] = done.eqlin.marginals
            weights = self.matrix.T @ marginals
            weights[cell] += side
            weights[np.abs(weights) < 1e-7] = 0.0
        return Reach(float(side * move[cell]), move, weights)

    def cheapest(
        self, cell: int, side: int, level: float, up: Floats, down: Floats, price: Floats
    ) -> Floats | None:
        """Return the cheapest move of a cell by the level, at a price for each unit moved."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import hstack

        cells = np.flatnonzero((up > 0) | (down > 0))
        unit = 1.0 if self.whole else level
        high = np.concatenate([up[cells], down[cells]]) / unit
        low = np.zeros(len(high))
        ahead, back = np.searchsorted(cells, cell) + np.array([0, len(cells)])[::side]
        high[back] = 0.0
        if high[ahead] < level / unit * (1 - 1e-9):
            return None
        low[ahead] = high[ahead] = np.ceil(level / unit - 1e-9)
        part = self.matrix[:, cells].tocsr()
        part = part[np.diff(part.indptr) > 0]
        # Most programs have a solution in whole numbers by themselves.
        for whole in (False, True) if self.whole else (False,):
            done = milp(
                np.tile(price[cells], 2),
                constraints=LinearConstraint(hstack([part, -part]), 0.0, 0.0),
                bounds=Bounds(low, high),
                integrality=np.full(len(high), int(whole)),
                options={"node_limit": NODES},
            )
            if done.x is None:
                return None
            if np.abs(done.x - np.round(done.x)).max() < 1e-7:
                break
        move = np.zeros(len(up))
        move[cells] = (done.x[: len(cells)] - done.x[len(cells) :]) * unit
        move[np.abs(move) < 1e-7 * level] = 0.0
        return np.round(move) if self.whole else move

    def together(self, wanted: Wanted, up: Floats, down: Floats) -> Floats:
        """Return a move that meets as many of the demands as it can at once."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import block_array, csr_array

        move, cells = np.zeros(len(up)), np.flatnonzero((up > 0) | (down > 0))
        if not len(cells) or not len(wanted.cells):
            return move
        unit = 1.0 if self.whole else float(np.median(wanted.levels))
        part = self.matrix[:, cells].tocsr()
        part = part[np.diff(part.indptr) > 0]
        n, m = len(cells), len(wanted.cells)
        levels = np.ceil(wanted.levels - 1e-9) if self.whole else wanted.levels / unit
        at = np.searchsorted(cells, wanted.cells)
        picked = csr_array((wanted.sides, (np.arange(m), at)), shape=(m, n))
        met = csr_array((-levels, (np.arange(m), np.arange(m))), shape=(m, m))
        rows = block_array([[part, -part, None], [picked, -picked, met]])
        # Nothing that is met costs more than what it is worth.
        worth = 100.0 * levels
        cost = np.concatenate([np.full(2 * n, 1e-6), -worth])
        high = np.concatenate([up[cells] / unit, down[cells] / unit, np.ones(m)])
        done = milp(
            cost,
            constraints=LinearConstraint(rows, 0.0, np.repeat([0.0, np.inf], [part.shape[0], m])),
            bounds=Bounds(np.zeros(len(high)), np.floor(high + 1e-9) if self.whole else high),
            integrality=np.full(len(high), int(self.whole)),
            options={"node_limit": NODES, "mip_rel_gap": 0.01},
        )
        if done.x is None:
            return move
        found = (done.x[:n] - done.x[n : 2 * n]) * unit
        move[cells] = (
            np.round(found) if self.whole else np.where(np.abs(found) < 1e-7 * unit, 0.0, found)
        )
        return move


# Flows are found in whole units; so many are the level asked for. Any number to 16 divides them.
UNITS = 720_720


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The outsider of a two-way table.

    Each cell's arc leaves one sum (`tails`) and enters another (`heads`); `programs` decides where
    whole units are too coarse.
    """

    tails: Ints
    heads: Ints
    programs: Programs

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Network:
        """Lay out the network of a table of this shape, totals included."""
        rows, cols = shape
        matrix = relations(addends(shape), rows * cols)
        # Sums run down the columns first, then along the rows; a total's sum is turned round.
        turn = np.concatenate([np.full(cols, -1.0), np.full(rows, 1.0)])
        turn[cols - 1] = 1.0
        turn[-1] = -1.0
        turned = (matrix * turn[:, None]).tocsc()
        turned.sort_indices()
        one, other = turned.indices.reshape(-1, 2).astype(np.int64).T
        first = turned.data.reshape(-1, 2)[:, 0] > 0
        tails, heads = np.where(first, one, other), np.where(first, other, one)
        return cls(tails, heads, Programs(matrix))

    @property
    def size(self) -> int:
        """The number of sums."""
        return int(self.programs.matrix.shape[0])

    def reach(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        """Move a cell up or down, no further than the level."""
        found = self._largest_flow(cell, side, level, up, down)
        near = level * (1 - 4096 / UNITS)
        if near <= found.amount < level:
            return self.programs.reach(cell, side, level, up, down)
        return found

    def _largest_flow(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        # In whole units; more than the level is never of use in a network.
        forward, backward = (
            np.floor(np.minimum(room / level, 1.0) * UNITS + 1e-6).astype(np.int64)
            for room in (up, down)
        )
        own = int(forward[cell] if side > 0 else backward[cell])
        forward[cell] = backward[cell] = 0
        dense = np.zeros((self.size, self.size), dtype=np.int32)
        dense[self.tails, self.heads] = forward
        dense[self.heads, self.tails] = backward
        capacity = csr_array(dense)
        start, end = self._ends(cell, side)
        found = maximum_flow(capacity, start, end)
        flow = found.flow.toarray()
        amount = min(int(found.flow_value), own, UNITS)
        move = flow[self.tails, self.heads].astype(np.float64)
        move[cell] = side * int(found.flow_value)
        if found.flow_value > UNITS or own < found.flow_value:
            move *= amount / found.flow_value
        weights = self._cut(dense - flow, start, cell)
        return Reach(level * amount / UNITS, move * (level / UNITS), weights)

    def _ends(self, cell: int, side: int) -> tuple[int, int]:
        """Return where the flow must start and end, that the cell's arc sends it back."""
        tail, head = int(self.tails[cell]), int(self.heads[cell])
        return (head, tail) if side > 0 else (tail, head)

    def _cut(self, residual: Any, start: int, cell: int) -> Floats:
        """Return the weights of a smallest cut: cells from the reached side to the other."""
        reached = np.zeros(self.size, dtype=bool)
        reached[start] = True
        fresh = reached
        while fresh.any():
            fresh = (residual[fresh] > 0).any(axis=0) & ~reached
            reached |= fresh
        weights = reached[self.tails].astype(np.float64) - reached[self.heads]
        weights[cell] = 0.0
        return weights

    def cheapest(
        self, cell: int, side: int, level: float, up: Floats, down: Floats, price: Floats
    ) -> Floats | None:
        """Return a cheap move of a cell by the level: one cheapest path after the other."""
        forward, backward = up.copy(), down.copy()
        if (up if side > 0 else down)[cell] < level * (1 - 1e-9):
            return None
        forward[cell] = backward[cell] = 0.0
        move = np.zeros(len(up))
        start, end = self._ends(cell, side)
        cost, left = price.copy(), level
        while left > 1e-9 * level:
            path = self._path(start, end, forward, backward, cost)
            if path is None:
                return None
            cells, signs = path
            room = np.where(signs > 0, forward[cells], backward[cells])
            step = min(left, float(room.min()))
            move[cells] += signs * step
            forward[cells] -= signs * step
            backward[cells] += signs * step
            cost[cells] = 0.0
            left -= step
        move[cell] = side * level
        return move

    def _path(
        self, start: int, end: int, forward: Floats, backward: Floats, cost: Floats
    ) -> tuple[Ints, Floats] | None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        # A path of free cells is still better short, and 0 would mean that there is no arc.
        length = cost + 1e-9 * (1 + cost.max())
        tiny = 1e-9
        dense = np.zeros((self.size, self.size))
        dense[self.tails, self.heads] = np.where(forward > tiny, length, 0.0)
        dense[self.heads, self.tails] = np.where(backward > tiny, length, 0.0)
        distance, before = dijkstra(csr_array(dense), indices=start, return_predecessors=True)
        if not np.isfinite(distance[end]):
            return None
        nodes = [end]
        while nodes[-1] != start:
            nodes.append(int(before[nodes[-1]]))
        targets, sources = np.array(nodes[:-1])[::-1], np.array(nodes[1:])[::-1]
        arcs = np.full((self.size, self.size), -1, dtype=np.int64)
        arcs[self.tails, self.heads] = np.arange(len(self.tails))
        ahead = arcs[sources, targets]
        cells = np.where(ahead >= 0, ahead, arcs[targets, sources])
        return cells, np.where(ahead >= 0, 1.0, -1.0)


Attacker = Programs | Network


def prove(
    programs: Programs, wanted: Wanted, up: Floats, down: Floats, scopes: list[list[Ints]]
) -> tuple[Floats, Floats]:
    """Return how far below and above their values cells can be at least.

    The demands of a scope are attacked together: each program moves as many cells as far as wanted
    as it can. Those that are left are attacked again in the next wider scopes; those that stand in
    each other's way are at last taken apart, down to each by itself in the whole.
    """
    low, high = np.zeros(len(up)), np.zeros(len(up))
    left = np.ones(len(wanted.cells), dtype=bool)
    # What one scope leaves is mostly met in a wider one; only then is it worth taking apart.
    for cover, apart in [(cover, apart) for apart in (False, True) for cover in scopes]:
        for cells in cover if left.any() else ():
            inside = np.zeros(len(up), dtype=bool)
            inside[cells] = True
            rooms = np.where(inside, up, 0.0), np.where(inside, down, 0.0)
            waiting = [np.flatnonzero(left & inside[wanted.cells])]
            while waiting:
                mine = waiting.pop()
                mine = mine[left[mine]]
                first = np.unique(wanted.cells[mine], return_index=True)[1]
                pick = mine[first]
                some = Wanted(wanted.cells[pick], wanted.sides[pick], wanted.levels[pick])
                move = programs.together(some, *rooms)
                low, high = np.maximum(low, -move), np.maximum(high, move)
                at = wanted.cells[mine]
                reached = np.where(wanted.sides[mine] > 0, high[at], low[at])
                met = reached >= wanted.levels[mine] * (1 - 1e-6)
                left[mine[met]] = False
                rest = mine[~met]
                if len(rest) and met.any():
                    waiting.append(rest)
                elif len(rest) > 1 and apart:
                    waiting += [rest[::2], rest[1::2]]
    return low, high


def intervals(
    matrix: Any,
    values: Floats,
    up: Floats,
    down: Floats,
    *,
    whole: bool = False,
    only: Flags | None = None,
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of every cell that an outsider cannot exclude.

    `matrix` has the sums, one row each, and `values` the true values. `up` and `down` are how far
    each cell may be from them as far as the outsider knows: 0 for cells that are shown. `whole`
    reckons with whole numbers only (mixed-integer programs). `only` are the cells to be worked
    out; others get what is known of each by itself.

    Examples
    --------
    >>> values = np.array([1.0, 5.0, 6.0, 2.0, 7.0, 9.0, 3.0, 12.0, 15.0])
    >>> hidden = np.array([1, 1, 0, 1, 1, 0, 0, 0, 0])
    >>> up = np.where(hidden, np.inf, 0.0)
    >>> low, high = intervals(relations(addends((3, 3)), 9), values, up, hidden * values)
    >>> low[:2].tolist(), high[:2].tolist()
    ([0.0, 3.0], [3.0, 6.0])
    """
    cells = np.flatnonzero((up > 0) | (down > 0))
    low, high = values - down, values + up
    if not len(cells):
        return low, high
    # Solvers work to absolute tolerances, so amounts are brought near 1.
    scale = 1.0 if whole else float(np.median(np.maximum(values[cells], 1e-9)))
    part = matrix[:, cells]
    room = -down[cells] / scale, up[cells] / scale
    for place, cell in enumerate(cells):
        if only is not None and not only[cell]:
            continue
        low[cell] = values[cell] - scale * _furthest(part, *room, place, -1, whole)
        high[cell] = values[cell] + scale * _furthest(part, *room, place, 1, whole)
    if whole:
        return np.round(low), np.round(high)
    return np.maximum(low, values - down), high


def _furthest(matrix: Any, low: Floats, high: Floats, place: int, side: int, whole: bool) -> float:
    """Move one cell as far as it goes; infinity if nothing stops it."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    aim = np.zeros(len(low))
    aim[place] = -side
    if whole:
        low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    done = milp(
        aim,
        constraints=LinearConstraint(matrix, 0.0, 0.0),
        bounds=Bounds(low, high),
        integrality=np.full(len(low), int(whole)),
    )
    if done.status == 0:
        return float(max(0.0, -done.fun))
    if done.status in (3, 4):  # unbounded; HiGHS may not tell it from infeasible, which it is not
        return float("inf")
    raise RunError(
        "the audit of a suppressed cell did not end: the solver gave up. Make the table smaller, "
        "or ask for less exact bounds."
    )
