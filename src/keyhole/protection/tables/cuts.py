"""The inequalities that every safe pattern satisfies.

A pattern is x, 1 for suppressed cells. For any weights r with which the move of an unsafe cell is
the sum of the other moves times r, the cell can move by its level L only if

    sum over cells of min(L, up * max(r, 0) + down * max(-r, 0)) * x  >=  L.

These are the capacity constraints of Fischetti and Salazar; the outsider who fails to move a cell
far enough hands out the weights of one that the pattern violates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.demands import Demand, Problem, Shortfall
from keyhole.protection.tables.relations import addends

__all__ = ["Cuts", "capacity_cut", "first_cuts", "lone_cuts", "no_good_cut"]


@dataclass(slots=True, eq=False)
class Cuts:
    """A growing list of inequalities: coefficients times x is at least a number."""

    size: int
    rows: list[tuple[Ints, Floats]] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    known: set[bytes] = field(default_factory=set)

    def add(self, coefficients: Floats, least: float = 1.0) -> bool:
        """Take an inequality in, unless it is known; tell whether it is new."""
        cells = np.flatnonzero(coefficients)
        values = np.round(coefficients[cells], 9)
        name = cells.tobytes() + values.tobytes()
        if name in self.known:
            return False
        self.known.add(name)
        self.rows.append((cells, values))
        self.least.append(least)
        return True

    def matrix(self) -> Any:
        """Return them as a sparse matrix, one row each."""
        from scipy.sparse import csr_array

        starts = np.cumsum([0, *(len(cells) for cells, _ in self.rows)])
        cells = np.concatenate([cells for cells, _ in self.rows] or [np.zeros(0, np.int64)])
        values = np.concatenate([values for _, values in self.rows] or [np.zeros(0)])
        return csr_array((values, cells, starts), shape=(len(self.rows), self.size))


def capacity_cut(problem: Problem, shortfall: Shortfall) -> Floats | None:
    """Return the inequality that a demand gives, or None if there are no weights for it."""
    demand = shortfall.demand
    if not shortfall.weights:
        return None
    total = np.zeros(len(problem.up))
    for weights in shortfall.weights:
        # Infinite room times no weight is nothing.
        total += np.where(weights > 0, problem.up, 0.0) * np.where(weights > 0, weights, 1.0)
        total += problem.down * np.maximum(-weights, 0.0)
    if shortfall.knower >= 0:
        total[list(problem.knowers[shortfall.knower])] = 0.0
    found: Floats = np.minimum(total / demand.level, 1.0)
    return np.where(problem.allowed, found, 0.0)


def no_good_cut(problem: Problem, pattern: Flags) -> Floats:
    """Return that some cell beyond an unsafe pattern must be suppressed too."""
    return (problem.allowed & ~pattern).astype(np.float64)


def first_cuts(problem: Problem, cuts: Cuts) -> None:
    """Add what each sum by itself asks for: its other cells must make room for an unsafe one."""
    by_cell: dict[int, list[Ints]] = {}
    for cells in addends(problem.shape):
        for cell in cells[problem.unsafe[cells]]:
            by_cell.setdefault(int(cell), []).append(cells)
    for demand in problem.demands():
        for cells in by_cell[demand.cell] if demand.side else ():
            cuts.add(_single_sum(problem, demand, cells))


def _single_sum(problem: Problem, demand: Demand, cells: Ints) -> Floats:
    signs = np.append(np.ones(len(cells) - 1), -1.0)
    own = signs[cells == demand.cell][0]
    # The move of the cell is minus that of the others, each with its sign in the sum.
    weights = np.zeros(len(problem.up))
    weights[cells] = -demand.side * own * signs
    weights[demand.cell] = 0.0
    found = capacity_cut(problem, Shortfall(demand, -1, (weights,)))
    assert found is not None
    return found


def lone_cuts(problem: Problem, solution: Floats, cuts: Cuts, most: int = 400) -> int:
    """Add that no cell is suppressed alone in a sum, where a solution violates that.

    A cell that cannot move protects nothing, so a cheapest pattern has none.
    """
    candidates = problem.allowed & ~problem.unsafe
    worst: list[tuple[float, int, Ints]] = []
    for cells in addends(problem.shape):
        lacking = 2 * solution[cells] - solution[cells].sum()
        worst += [
            (float(lack), int(cell), cells)
            for cell, lack in zip(cells, lacking, strict=True)
            if lack > 1e-4 and candidates[cell]
        ]
    worst.sort(key=lambda one: -one[0])
    return sum(cuts.add(_lone(problem, cell, cells), 0.0) for _, cell, cells in worst[:most])


def _lone(problem: Problem, cell: int, cells: Ints) -> Floats:
    coefficients = np.zeros(len(problem.up))
    coefficients[cells] = problem.allowed[cells]
    coefficients[cell] = -1.0
    return coefficients
