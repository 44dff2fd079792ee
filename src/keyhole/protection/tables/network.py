"""The outsider of a two-way table: flows in a network, which are much faster than programs.

Every cell of a two-way table is in two sums. Turned so that it counts +1 in one and -1 in the
other, it is an arc between them and a move of the table is a circulation. How far a cell can move
is a largest flow from one end of its arc to the other, and what limits it is a smallest cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.tables.programs import Programs, Reach
from keyhole.protection.tables.relations import relations

__all__ = ["Network"]


# Flows are found in whole units; so many are the level asked for. Any number to 16 divides them.
UNITS = 720_720


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The outsider of a two-way table.

    Parameters
    ----------
    tails, heads
        The sums that each cell's arc leaves and enters.
    programs
        The solver that decides where whole units are too coarse.
    """

    tails: Ints
    heads: Ints
    programs: Programs

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Network:
        """Lay out the network of a table of this shape, totals included.

        Examples
        --------
        >>> network = Network.of((2, 2))
        >>> network.tails.tolist(), network.heads.tolist()
        ([2, 1, 0, 3], [0, 2, 3, 1])
        """
        matrix = relations(shape)
        rows, cols = shape
        # Sums run down the columns first, then along the rows; a total's sum is turned round.
        turn = np.concatenate([np.full(cols, -1.0), np.full(rows, 1.0)])
        turn[cols - 1] = 1.0
        turn[-1] = -1.0
        turned = (matrix * turn[:, None]).tocsc()
        turned.sort_indices()
        ends = turned.indices.reshape(-1, 2).astype(np.int64)
        first = turned.data.reshape(-1, 2)[:, 0] > 0
        tails, heads = (
            np.where(first, ends[:, 0], ends[:, 1]),
            np.where(first, ends[:, 1], ends[:, 0]),
        )
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
        from scipy.sparse.csgraph import maximum_flow

        forward = self._units(up, level)
        backward = self._units(down, level)
        own = int(forward[cell] if side > 0 else backward[cell])
        forward[cell] = backward[cell] = 0
        capacity = self._square(forward, backward)
        start, end = self._ends(cell, side)
        found = maximum_flow(capacity, start, end)
        flow = found.flow.toarray()
        amount = min(int(found.flow_value), own, UNITS)
        move = flow[self.tails, self.heads].astype(np.float64)
        move[cell] = side * int(found.flow_value)
        if found.flow_value > UNITS or own < found.flow_value:
            move *= amount / found.flow_value
        weights = self._cut(capacity.toarray() - flow, start, cell)
        return Reach(level * amount / UNITS, move * (level / UNITS), weights)

    def _units(self, room: Floats, level: float) -> Ints:
        """Write capacities in whole units; more than the level is never of use in a network."""
        return np.floor(np.minimum(room / level, 1.0) * UNITS + 1e-6).astype(np.int64)

    def _square(self, forward: Ints, backward: Ints) -> Any:
        from scipy.sparse import csr_array

        dense = np.zeros((self.size, self.size), dtype=np.int32)
        dense[self.tails, self.heads] = forward
        dense[self.heads, self.tails] = backward
        return csr_array(dense)

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
        nodes.reverse()
        return self._cells_between(np.array(nodes[:-1]), np.array(nodes[1:]))

    def _cells_between(self, sources: Ints, targets: Ints) -> tuple[Ints, Floats]:
        arcs = np.full((self.size, self.size), -1, dtype=np.int64)
        arcs[self.tails, self.heads] = np.arange(len(self.tails))
        ahead = arcs[sources, targets]
        cells = np.where(ahead >= 0, ahead, arcs[targets, sources])
        return cells, np.where(ahead >= 0, 1.0, -1.0)
