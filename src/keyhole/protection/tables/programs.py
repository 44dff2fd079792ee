"""The outsider's linear programs, for tables of any number of variables.

An outsider knows the cells that are shown, the sums, and that nothing is below 0. What remains
possible is every *move* z away from the true table with z = 0 on shown cells, sums kept, and
-down <= z <= up. How far a cell can move is its protection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keyhole.kernels.arrays import Floats

__all__ = ["Attacker", "Programs", "Reach"]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How far a cell can move, a move that does it, and why not further.

    The weights r prove the limit: with sums kept, the move of the cell is the sum of r times the
    move of each cell, whatever is shown.
    """

    amount: float
    move: Floats
    weights: Floats | None


class Attacker(Protocol):
    """Somebody who works out what a table's suppressed cells may be."""

    def reach(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        """Move a cell up (side 1) or down (side -1), no further than the level."""

    def cheapest(
        self, cell: int, side: int, level: float, up: Floats, down: Floats, price: Floats
    ) -> Floats | None:
        """Return a cheap move of a cell by the level; None if there is no such move."""


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The outsider with a solver of linear programs (HiGHS).

    Parameters
    ----------
    matrix
        The sums, one row each.
    whole
        Whether cells are known to be whole numbers, which is a mixed-integer program.
    """

    matrix: Any
    whole: bool = False

    def reach(self, cell: int, side: int, level: float, up: Floats, down: Floats) -> Reach:
        """Move a cell up or down, no further than the level."""
        cells = np.flatnonzero((up > 0) | (down > 0))
        move = np.zeros(len(up))
        if cell not in cells:
            return Reach(0.0, move, None)
        low, high = -down[cells] / level, up[cells] / level
        aim = np.where(cells == cell, -float(side), 0.0)
        high[aim < 0] = np.minimum(high[aim < 0], 1.0)
        low[aim > 0] = np.maximum(low[aim > 0], -1.0)
        found, prices = self._solve(aim, self.matrix[:, cells], low, high, level)
        if found is None:
            return Reach(0.0, move, None)
        move[cells] = found * level
        return Reach(float(side * move[cell]), move, self._weights(prices, cell, side))

    def _weights(self, prices: Floats | None, cell: int, side: int) -> Floats | None:
        if prices is None:
            return None
        weights: Floats = self.matrix.T @ prices
        weights[cell] += side
        weights[np.abs(weights) < 1e-7] = 0.0
        return weights

    def _solve(
        self, aim: Floats, matrix: Any, low: Floats, high: Floats, level: float
    ) -> tuple[Floats | None, Floats | None]:
        from scipy.optimize import Bounds, LinearConstraint, linprog, milp

        zeros = np.zeros(matrix.shape[0])
        if self.whole:
            sums = LinearConstraint(matrix, 0.0, 0.0)
            bounds = Bounds(np.ceil(low * level - 1e-9), np.floor(high * level + 1e-9))
            done = milp(aim, constraints=sums, bounds=bounds, integrality=np.ones(len(aim)))
            return (None if done.x is None else np.round(done.x) / level), None
        done = linprog(aim, A_eq=matrix, b_eq=zeros, bounds=np.stack([low, high], axis=1))
        return (None, None) if done.x is None else (done.x, done.eqlin.marginals)

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
        part = self.matrix[:, cells]
        done = milp(
            np.tile(price[cells], 2),
            constraints=LinearConstraint(hstack([part, -part]), 0.0, 0.0),
            bounds=Bounds(low, high),
            integrality=np.full(len(high), int(self.whole)),
            options={"time_limit": 20.0},
        )
        if done.x is None:
            return None
        move = np.zeros(len(up))
        move[cells] = (done.x[: len(cells)] - done.x[len(cells) :]) * unit
        move[np.abs(move) < 1e-7 * level] = 0.0
        return move
