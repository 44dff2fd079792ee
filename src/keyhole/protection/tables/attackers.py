"""Attackers of a table: what can be derived from the cells that are shown, and what must not be.

An outsider knows the cells that are shown, the sums, and that nothing is below 0. What remains
possible is every *move* z away from the true table with z = 0 on shown cells, sums kept, and
-down <= z <= up. How far a cell can move is its protection. Linear programs answer that for tables
of any number of variables; in a two-way table every cell is in two sums, so that it is an arc
between them, a move is a circulation, and a largest flow answers it much faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.errors import RunError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.cells import addends, relations

# How far a program in whole numbers may branch. Not seconds: an answer must not hang on the clock.
NODES = 200
# Levels are met within this part of them; programs are solved no more exactly.
TOLERANCE = 1e-6
# A table that proves a demand is kept for the next patterns; so many at most.
KEPT = 40


def minimise(
    aim: Floats, matrix: Any, sums: tuple[Any, Any], low: Any, high: Any, whole: bool, **limits: Any
) -> Any:
    """Minimise by HiGHS; `sums` are the least and the most of `matrix` times the solution."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    return milp(
        aim,
        constraints=LinearConstraint(matrix, *sums),
        bounds=Bounds(low, high),
        integrality=np.full(len(aim), int(whole)),
        options=limits,
    )


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
    """How far cells should move at once, to which side (1 up, -1 down), or `across` both sides."""

    cells: Ints
    sides: Floats
    levels: Floats
    across: Flags

    def only(self, some: Ints) -> Wanted:
        """Return some of them."""
        cells, sides, levels, across = self
        return Wanted(cells[some], sides[some], levels[some], across[some])


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The outsider with a solver of linear programs (HiGHS)."""

    matrix: Any
    whole: bool = False

    def _moving(self, up: Floats, down: Floats) -> tuple[Ints, Any, Flags]:
        """Return the cells that can move, their sums, and which of all sums those are."""
        cells = np.flatnonzero((up > 0) | (down > 0))
        part = self.matrix[:, cells].tocsr()
        bound = np.diff(part.indptr) > 0
        return cells, part[bound], bound

    def reach(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        """Move a cell up (side 1) or down (side -1), no further than the level."""
        from scipy.optimize import linprog

        (cells, part, bound), move = self._moving(up, down), np.zeros(len(up))
        if cell not in cells:
            return Reach(0.0, move, None)
        low, high = -down[cells] / level, up[cells] / level
        aim = np.where(cells == cell, -float(side), 0.0)
        high[aim < 0] = np.minimum(high[aim < 0], 1.0)
        low[aim > 0] = np.maximum(low[aim > 0], -1.0)
        if self.whole:
            low, high = np.ceil(low * level - 1e-9), np.floor(high * level + 1e-9)
            done = minimise(aim, part, (0.0, 0.0), low, high, True)
        else:
            zeros = np.zeros(part.shape[0])
            done = linprog(aim, A_eq=part, b_eq=zeros, bounds=np.stack([low, high], axis=1))
        if done.x is None:
            return Reach(0.0, move, None)
        if self.whole:
            move[cells] = np.round(done.x)
            return Reach(float(side * move[cell]), move, None)
        move[cells] = done.x * level
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
        from scipy.sparse import hstack

        cells, part, _ = self._moving(up, down)
        unit = 1.0 if self.whole else level
        high = np.concatenate([up[cells], down[cells]]) / unit
        low = np.zeros(len(high))
        ahead, back = np.searchsorted(cells, cell) + np.array([0, len(cells)])[::side]
        high[back] = 0.0
        if high[ahead] < level / unit * (1 - 1e-9):
            return None
        low[ahead] = high[ahead] = np.ceil(level / unit - 1e-9)
        prices, both = np.tile(price[cells], 2), hstack([part, -part])
        # Most programs have a solution in whole numbers by themselves.
        for whole in (False, True) if self.whole else (False,):
            done = minimise(prices, both, (0.0, 0.0), low, high, whole, node_limit=NODES)
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
        (cells, part, _), move = self._moving(up, down), np.zeros(len(up))
        if not len(cells) or not len(wanted.cells):
            return move
        unit = 1.0 if self.whole else float(np.median(wanted.levels))
        low, high, aim = -down[cells] / unit, up[cells] / unit, np.zeros(len(cells))
        # No cell that is wanted moves further than that; then how far all move is what is met.
        levels = np.ceil(wanted.levels - 1e-9) if self.whole else wanted.levels / unit
        ends, at = wanted.sides * levels, np.searchsorted(cells, wanted.cells)
        high[at], low[at] = (
            np.where(ends > 0, np.minimum(high[at], ends), high[at]),
            np.where(ends < 0, np.maximum(low[at], ends), low[at]),
        )
        aim[at] = -wanted.sides
        for whole in (False, True) if self.whole else (False,):
            if self.whole:
                low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
            limits = {"node_limit": NODES, "mip_rel_gap": 0.01}
            done = minimise(aim, part, (0.0, 0.0), low, high, whole, **limits)
            if done.x is None:
                return move
            if np.abs(done.x - np.round(done.x)).max() < 1e-6:
                break
        move[cells] = np.round(done.x) if self.whole else done.x * unit
        move[np.abs(move) < 1e-7 * unit] = 0.0
        return move


# Flows are found in whole units; so many are the level asked for. Any number to 16 divides them.
UNITS = 720_720


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The outsider of a two-way table."""

    tails: Ints  # the sum that each cell's arc leaves
    heads: Ints  # the sum that it enters
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
        start, end = self._ends(cell, side)
        found = maximum_flow(csr_array(dense), start, end)
        amount = min(int(found.flow_value), own, UNITS)
        if UNITS - 4096 <= amount < UNITS:  # units are too coarse to tell
            return self.programs.reach(cell, side, level, up, down)
        flow = found.flow.toarray()
        move = flow[self.tails, self.heads].astype(np.float64)
        move[cell] = side * int(found.flow_value)
        if found.flow_value > UNITS or own < found.flow_value:
            move *= amount / found.flow_value
        # The weights of a smallest cut: cells from the reached side to the other.
        residual, reached = dense - flow, np.zeros(self.size, dtype=bool)
        reached[start] = True
        fresh = reached
        while fresh.any():
            fresh = (residual[fresh] > 0).any(axis=0) & ~reached
            reached |= fresh
        weights = reached[self.tails].astype(np.float64) - reached[self.heads]
        weights[cell] = 0.0
        return Reach(level * amount / UNITS, move * (level / UNITS), weights)

    def _ends(self, cell: int, side: int) -> tuple[int, int]:
        """Return where the flow must start and end, that the cell's arc sends it back."""
        tail, head = int(self.tails[cell]), int(self.heads[cell])
        return (head, tail) if side > 0 else (tail, head)

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
    """Return how far below and above their values cells can be at least."""
    # The demands of a scope are attacked together; those left, in the next wider scopes; those that
    # stand in each other's way are at last taken apart.
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
                move = programs.together(wanted.only(mine[first]), *rooms)
                low, high = np.maximum(low, -move), np.maximum(high, move)
                at, sides, levels, across = wanted.only(mine)
                reached = np.where(sides > 0, high[at], low[at])
                met = np.where(across, low[at] + high[at], reached) >= levels * (1 - 1e-6)
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
    aim = np.zeros(len(low))
    aim[place] = -side
    if whole:
        low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    done = minimise(aim, matrix, (0.0, 0.0), low, high, whole)
    if done.status == 0:
        return float(max(0.0, -done.fun))
    if done.status in (3, 4):  # unbounded; HiGHS may not tell it from infeasible, which it is not
        return float("inf")
    raise RunError(
        "the audit of a suppressed cell did not end: the solver gave up. Make the table smaller, "
        "or ask for less exact bounds."
    )


class Demand(NamedTuple):
    """That a cell may be larger (side 1) or smaller (-1) by a level, or both by it (0)."""

    cell: int
    side: int
    level: float


class Shortfall(NamedTuple):
    """A demand that is not met, who knows too much (-1: anybody), and why: weights of a cut."""

    demand: Demand
    knower: int
    weights: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SuppressionProblem:
    """A table whose cells are to be suppressed.

    `sums` are the cells of each sum, its total last; `network` is the shape of a plain table of two
    variables. `up` and `down` are how far
    each cell may be from its value, as far as an outsider knows without the table; `cost` what
    suppressing it costs. The `unsafe` cells must be suppressed, those `allowed` may be (the unsafe
    ones included). `lower`, `upper` and `sliding` are the levels of protection that unsafe cells
    need. `knowers` has for each contributor who is alone in cells these cells, whose values he
    knows. `whole` says whether an outsider knows that cells are whole numbers.
    """

    sums: Sequence[Ints]
    up: Floats
    down: Floats
    cost: Floats
    unsafe: Flags
    allowed: Flags
    lower: Floats
    upper: Floats
    sliding: Floats
    knowers: tuple[frozenset[int], ...] = ()
    whole: bool = False
    network: tuple[int, int] | None = None

    def demands(self) -> list[Demand]:
        """Return the demands of all unsafe cells; a level of 0 asks for nothing."""
        sides = ((1, self.upper), (-1, self.lower), (0, self.sliding))
        return [
            Demand(int(cell), side, float(level[cell]))
            for cell in np.flatnonzero(self.unsafe)
            for side, level in sides
            if level[cell] > 0
        ]


class Witnesses:
    """Finds other tables that an outsider cannot exclude, and remembers them.

    A table differs from the true one in some cells. It stays possible under any pattern that
    suppresses these, so what was found for one pattern serves many. The `attacker` works by linear
    programs, or faster; `whole` reckons with whole numbers, where that could tell more: the bounds
    of a plain two-way table of counts are whole numbers by themselves.
    """

    def __init__(self, problem: SuppressionProblem) -> None:
        self.problem, self.demands = problem, problem.demands()
        self.asked = 0  # how often the outsider was
        sums, shape = relations(problem.sums, len(problem.up)), problem.network
        self.attacker: Attacker = Programs(sums) if shape is None else Network.of(shape)
        needed = problem.whole and shape is None
        self.whole = Programs(sums, whole=True) if needed else None
        self.cells: dict[tuple[int, int], list[tuple[Ints, frozenset[int]]]] = {}
        self.hopeless: set[tuple[Demand, int]] = set()
        self.owners: dict[int, list[int]] = {}
        for number, known in enumerate(problem.knowers):
            for cell in known:
                self.owners.setdefault(cell, []).append(number)

    def shortfalls(self, open_: Flags, *, first: bool = False) -> list[Shortfall]:
        """Return the demands that a pattern of suppressed cells does not meet, also of knowers."""
        found: list[Shortfall] = []
        for demand in self.demands:
            if self.doubtful(demand, open_) is None:
                found += self._lack(demand, -1, open_)
            # Where it is met against anybody, those who know some cells are asked.
            for knower in sorted(self.doubtful(demand, open_) or ()):
                if knower in (self.doubtful(demand, open_) or ()):
                    found += self._lack(demand, knower, open_)
            if first and found:
                break
        return found

    def doubtful(self, demand: Demand, open_: Flags) -> set[int] | None:
        """Return whose cells change in every table known; None if no possible table is."""
        return self.standing(demand, open_)[1]

    def standing(self, demand: Demand, open_: Flags) -> tuple[list[Ints], set[int] | None]:
        """Return the tables known that meet a demand under a pattern, and whom all leave doubt."""
        used: list[Ints] = []
        found: set[int] | None = None
        for changed, touched in self.cells.get((demand.cell, demand.side), ()):
            if open_[changed].all():
                found = set(touched) if found is None else found & touched
                used.append(changed)
                if not found:
                    break
        return used, found and {
            one
            for one in found
            if demand.cell not in self.problem.knowers[one] and (demand, one) not in self.hopeless
        }

    def _lack(self, demand: Demand, knower: int, open_: Flags) -> list[Shortfall]:
        """Try to meet a demand; remember the table that does, or return why none does."""
        reached, moves, weights = self._tried(self.attacker, demand, knower, open_)
        if reached < demand.level * (1 - TOLERANCE):
            return [Shortfall(demand, knower, weights)]
        if self.whole is not None:
            reached, moves, _ = self._tried(self.whole, demand, knower, open_)
            if reached < demand.level * (1 - TOLERANCE):
                return [Shortfall(demand, knower, ())]
        self.remember(demand, moves)
        return []

    def _tried(
        self, attacker: Any, demand: Demand, knower: int, open_: Flags
    ) -> tuple[float, list[Floats], tuple[Floats, ...]]:
        """Move the cell as far as the demand asks, on one side or both."""
        self.asked += 1
        up, down = self.room(open_, knower)
        sides = (demand.side,) if demand.side else (1, -1)
        found = [attacker.reach(demand.cell, side, demand.level, up, down) for side in sides]
        weights = tuple(one.weights for one in found if one.weights is not None)
        return (
            sum(one.amount for one in found),
            [one.move for one in found],
            weights if len(weights) == len(sides) else (),
        )

    def room(self, open_: Flags, knower: int = -1) -> tuple[Floats, Floats]:
        """Return how far cells can be up and down, for one who knows some cells besides."""
        up, down = np.where(open_, self.problem.up, 0.0), np.where(open_, self.problem.down, 0.0)
        if knower >= 0:
            known = list(self.problem.knowers[knower])
            up[known] = down[known] = 0.0
        return up, down

    def remember(self, demand: Demand | None, moves: list[Floats]) -> None:
        """Keep the cells in which a possible table differs, for every demand that it proves."""
        changed = np.flatnonzero(np.any([move != 0 for move in moves], axis=0))
        proven = set() if demand is None else {(demand.cell, demand.side)}
        if len(moves) == 1:
            move, problem = moves[0], self.problem
            sides = ((1, problem.upper, move), (-1, problem.lower, -move))
            for side, level, moved in (*sides, (0, problem.sliding, np.abs(move))):
                enough = problem.unsafe & (level > 0) & (moved >= level * (1 - TOLERANCE / 2))
                proven |= {(cell, side) for cell in np.flatnonzero(enough).tolist()}
        self.keep(proven, changed)

    def keep(self, proven: Iterable[tuple[int, int]], changed: Ints) -> None:
        """Keep the cells in which a table differs that proves demands, by their cell and side."""
        cells = changed.tolist() if self.owners else []
        touched = frozenset(one for cell in cells for one in self.owners.get(cell, ()))
        for key in proven:
            kept = self.cells.setdefault(key, [])
            kept.insert(0, (changed, touched))
            del kept[KEPT:]
