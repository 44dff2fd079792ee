"""Complementary suppression: the cheapest pattern that meets every demand, proven.

The exact model of Fischetti and Salazar, solved by cutting planes. A master program chooses the
pattern by inequalities that every safe pattern satisfies; the outsider attacks the choice, and
each success becomes an inequality more. First the relaxed master is worked on, since that is fast,
then the one in whole numbers. A pattern that is safe in any case is known from the start.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.cuts import (
    Cuts,
    capacity_cut,
    first_cuts,
    lone_cuts,
    no_good_cut,
)
from keyhole.protection.tables.demands import Demand, Problem, Shortfall, Witnesses
from keyhole.protection.tables.growing import grow, thin

__all__ = ["Pattern", "suppress"]


# The relaxed program may take this part of the time.
RELAXED = 0.4
ROUNDS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A safe pattern of suppressed cells, and how near it is to the cheapest.

    Parameters
    ----------
    suppressed
        The suppressed cells, the unsafe ones included.
    cost
        What the cells cost that are suppressed only to protect others.
    bound
        No safe pattern costs less than this.
    impossible
        Demands that no pattern meets: then nothing is safe.
    unprotected
        How many demands cannot be met against the only contributor of another cell.
    """

    suppressed: Flags
    cost: float
    bound: float
    impossible: tuple[Demand, ...] = ()
    unprotected: int = 0
    rounds: int = 0

    @property
    def proven(self) -> bool:
        """Whether no safe pattern costs less."""
        return self.cost <= self.bound + 1e-6 * max(1.0, self.cost)

    @property
    def gap(self) -> float:
        """How much less the cheapest pattern could cost, as a share of the cost."""
        return 0.0 if self.proven else (self.cost - self.bound) / self.cost


def suppress(problem: Problem, *, seconds: float = 60.0) -> Pattern:
    """Find the cheapest safe pattern, or the best found in the time.

    Parameters
    ----------
    problem
        The table, what is unsafe in it and what must stay uncertain.
    seconds
        Time after which the best pattern found so far is returned; it is safe too.
    """
    deadline = time.monotonic() + seconds
    witnesses = Witnesses(problem, problem.attacker(), problem.whole_attacker())
    search = _Search(problem, witnesses, np.where(problem.unsafe, 0.0, problem.cost))
    impossible = search.begin(deadline)
    if not impossible and not search.done():
        search.relax(time.monotonic() + RELAXED * (deadline - time.monotonic()), deadline)
        search.settle(deadline)
    return Pattern(
        search.best, search.price, min(search.bound, search.price), tuple(impossible),
        len(witnesses.hopeless), search.rounds,
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class _Search:
    """The state of a search: the best pattern, the bound, and the inequalities so far."""

    problem: Problem
    witnesses: Witnesses
    cost: Floats
    cuts: Cuts = field(init=False)
    best: Flags = field(init=False)
    price: float = np.inf
    bound: float = 0.0
    fixed: Flags = field(init=False)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.cuts = Cuts(len(self.cost))
        self.best = self.problem.unsafe.copy()
        self.fixed = ~self.problem.allowed

    def done(self) -> bool:
        """Whether the best pattern is proven the cheapest."""
        return self.price <= self.bound + 1e-6 * max(1.0, self.price)

    def begin(self, deadline: float) -> list[Demand]:
        """Find a first safe pattern; return what no pattern meets."""
        pattern, impossible = grow(self.witnesses, self.problem.unsafe)
        if not impossible:
            self._offer(pattern, deadline)
            first_cuts(self.problem, self.cuts)
        return impossible

    def _offer(self, pattern: Flags, deadline: float) -> None:
        """Keep a safe pattern, thinned out, if it is better than the best."""
        thinned = thin(self.witnesses, pattern, deadline)
        price = float(self.cost[thinned].sum())
        if price < self.price:
            self.best, self.price = thinned, price

    def relax(self, until: float, deadline: float) -> None:
        """Work on the relaxed program until it is satisfied, and let it guide to a pattern."""
        active = self.witnesses.demands
        solution = None
        for _ in range(ROUNDS):
            solution = self._relaxed()
            if solution is None or self.done() or time.monotonic() > until:
                break
            added = lone_cuts(self.problem, solution, self.cuts)
            violated = self._separate(solution, active, until)
            if not violated and not added and active is self.witnesses.demands:
                break
            active = violated or self.witnesses.demands
        if solution is not None and not self.done():
            begin = self.problem.unsafe | (solution > 0.7) & self.problem.allowed
            pattern, _ = grow(self.witnesses, begin, np.clip(solution, 0, 1))
            self._offer(pattern, deadline)
            self._relaxed()

    def _relaxed(self) -> Floats | None:
        """Solve the relaxed master; cells too dear to be in a better pattern are ruled out."""
        from scipy.optimize import linprog

        high = np.where(self.fixed, 0.0, 1.0)
        low = np.where(self.problem.unsafe, 1.0, 0.0)
        done = linprog(
            self.cost, A_ub=-self.cuts.matrix(), b_ub=-np.array(self.cuts.least),
            bounds=np.stack([low, high], axis=1),
        )  # fmt: skip
        if done.x is None:  # only if too much is ruled out: nothing beats the best
            self.bound = self.price if done.status == 2 else self.bound
            return None
        self.bound = max(self.bound, float(done.fun) * (1 - 1e-9))
        dear = done.fun + done.lower.marginals > self.price * (1 + 1e-9) + 1e-9
        self.fixed |= dear & ~self.problem.unsafe
        found: Floats = done.x
        return found

    def _separate(self, solution: Floats, active: list[Demand], until: float) -> list[Demand]:
        """Add the inequalities that a relaxed solution violates; return whose they are."""
        found = []
        for demand in active:
            if demand.side == 0 or time.monotonic() > until:
                continue
            up = np.minimum(self.problem.up, demand.level) * solution
            down = np.minimum(self.problem.down, demand.level) * solution
            reached = self.witnesses.attacker.reach(*demand, up, down)
            if reached.weights is None or reached.amount > demand.level * (1 - 1e-3):
                continue
            cut = capacity_cut(self.problem, Shortfall(demand, -1, (reached.weights,)))
            if cut is not None and cut @ solution < 1 - 1e-3 and self.cuts.add(cut):
                found.append(demand)
        return found

    def settle(self, deadline: float) -> None:
        """Solve the master in whole numbers until the outsider finds nothing, or time is up."""
        while not self.done() and time.monotonic() < deadline:
            pattern = self._master(deadline - time.monotonic())
            if pattern is None or self.done():
                return
            self.rounds += 1
            lacking = self.witnesses.shortfalls(pattern)
            if not lacking:
                self._offer(pattern, deadline)
                continue
            self._learn(pattern, lacking)
            self._offer(grow(self.witnesses, pattern)[0], deadline)

    def _learn(self, pattern: Flags, lacking: list[Shortfall]) -> None:
        """Add what the outsider's successes teach; at least that this pattern is not enough."""
        x = pattern.astype(np.float64)
        fresh = 0
        for one in lacking:
            cut = capacity_cut(self.problem, one)
            if cut is not None and cut @ x < 1 - 1e-7:
                fresh += self.cuts.add(cut)
        lone_cuts(self.problem, x, self.cuts)
        if not fresh:
            self.cuts.add(no_good_cut(self.problem, pattern))

    def _master(self, seconds: float) -> Flags | None:
        from scipy.optimize import Bounds, LinearConstraint, milp

        high = np.where(self.fixed, 0.0, 1.0)
        low = np.where(self.problem.unsafe, 1.0, 0.0)
        done: Any = milp(
            self.cost,
            constraints=LinearConstraint(self.cuts.matrix(), np.array(self.cuts.least), np.inf),
            bounds=Bounds(low, high),
            integrality=np.ones(len(self.cost)),
            options={"time_limit": max(seconds, 0.1), "mip_rel_gap": 1e-7},
        )
        if done.status == 2:  # nothing better than the best is left
            self.bound = self.price
        elif done.mip_dual_bound is not None and np.isfinite(done.mip_dual_bound):
            self.bound = max(self.bound, float(done.mip_dual_bound) * (1 - 1e-9))
        found: Flags | None = None if done.x is None else done.x > 0.5
        return found
