"""Demands on a protected table: what must stay uncertain, and other tables that prove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.attackers import Attacker, Network, Programs
from keyhole.protection.tables.linked import relations

# Levels are met within this part of them; programs are solved no more exactly.
TOLERANCE = 1e-6
# A table that proves a demand is kept for the next patterns; so many at most.
KEPT = 40


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


@dataclass(slots=True, eq=False)
class Witnesses:
    """Finds other tables that an outsider cannot exclude, and remembers them.

    A table differs from the true one in some cells. It stays possible under any pattern that
    suppresses these, so what was found for one pattern serves many. The `attacker` works by linear
    programs, or faster; `whole` reckons with whole numbers, where that could tell more: the bounds
    of a plain two-way table of counts are whole numbers by themselves.
    """

    problem: SuppressionProblem
    attacker: Attacker = field(init=False)
    whole: Programs | None = field(init=False)
    demands: list[Demand] = field(init=False)
    cells: dict[tuple[int, int], list[tuple[Ints, frozenset[int]]]] = field(default_factory=dict)
    hopeless: set[tuple[Demand, int]] = field(default_factory=set)
    owners: dict[int, list[int]] = field(default_factory=dict)
    asked: int = 0  # how often the outsider was

    def __post_init__(self) -> None:
        sums, shape = relations(self.problem.sums, len(self.problem.up)), self.problem.network
        self.attacker = Programs(sums) if shape is None else Network.of(shape)
        needed = self.problem.whole and shape is None
        self.whole = Programs(sums, whole=True) if needed else None
        self.demands = self.problem.demands()
        for number, known in enumerate(self.problem.knowers):
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
        """Return who might know too much: those whose cells change in every table known.

        None if no possible table is known yet.
        """
        found: set[int] | None = None
        for changed, touched in self.cells.get((demand.cell, demand.side), ()):
            if open_[changed].all():
                found = set(touched) if found is None else found & touched
                if not found:
                    break
        if not found:
            return found
        return {
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
        for key in proven:
            self.keep(key, changed)

    def keep(self, key: tuple[int, int], changed: Ints) -> None:
        """Keep the cells in which a table differs that proves a demand, by its cell and side."""
        touched = frozenset(one for cell in changed.tolist() for one in self.owners.get(cell, ()))
        kept = self.cells.setdefault(key, [])
        kept.insert(0, (changed, touched))
        del kept[KEPT:]
