"""Complementary suppression: the cheapest pattern that meets every demand, proven.

The exact model of Fischetti and Salazar, solved by cutting planes. A master program chooses the
pattern by inequalities that every safe pattern satisfies; the outsider attacks the choice, and
each success becomes an inequality more. First the relaxed master is worked on, since that is fast,
then the one in whole numbers. A pattern that is safe in any case is known from the start.

A pattern is x, 1 for suppressed cells. For any weights r with which the move of an unsafe cell is
the sum of the other moves times r, the cell can move by its level L only if

    sum over cells of min(L, up * max(r, 0) + down * max(-r, 0)) * x  >=  L.

These are the capacity constraints; the outsider who fails to move a cell far enough hands out the
weights of one that the pattern violates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.attackers import (
    TOLERANCE,
    Attacker,
    Demand,
    Shortfall,
    SuppressionProblem,
    Witnesses,
    minimise,
)
from keyhole.protection.tables.cells import Linked
from keyhole.protection.tables.hypercubes import Hypercubes, dear


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


def capacity_cut(problem: SuppressionProblem, shortfall: Shortfall) -> Floats | None:
    """Return the inequality that a demand gives, or None if there are no weights for it."""
    if not shortfall.weights:
        return None
    total = np.zeros(len(problem.up))
    for weights in shortfall.weights:
        # Infinite room times no weight is nothing.
        total += np.where(weights > 0, problem.up, 0.0) * np.where(weights > 0, weights, 1.0)
        total += problem.down * np.maximum(-weights, 0.0)
    if shortfall.knower >= 0:
        total[list(problem.knowers[shortfall.knower])] = 0.0
    return np.where(problem.allowed, np.minimum(total / shortfall.demand.level, 1.0), 0.0)


def first_cuts(problem: SuppressionProblem, cuts: Cuts) -> None:
    """Add what each sum by itself asks for: its other cells must make room for an unsafe one."""
    by_cell: dict[int, list[Ints]] = {}
    for cells in problem.sums:
        for cell in cells[problem.unsafe[cells]]:
            by_cell.setdefault(int(cell), []).append(cells)
    for demand in problem.demands():
        for cells in by_cell[demand.cell] if demand.side else ():
            signs = np.append(np.ones(len(cells) - 1), -1.0)
            # The move of the cell is minus that of the others, each with its sign in the sum.
            weights = np.zeros(len(problem.up))
            weights[cells] = -demand.side * signs[cells == demand.cell][0] * signs
            weights[demand.cell] = 0.0
            cut = capacity_cut(problem, Shortfall(demand, -1, (weights,)))
            assert cut is not None
            cuts.add(cut)


def lone_cuts(problem: SuppressionProblem, solution: Floats, cuts: Cuts, most: int = 400) -> int:
    """Add that no cell is suppressed alone in a sum, where a solution violates that."""
    candidates = problem.allowed & ~problem.unsafe
    worst: list[tuple[float, int, Ints]] = []
    for cells in problem.sums:
        lacking = 2 * solution[cells] - solution[cells].sum()
        hit = (lacking > 1e-4) & candidates[cells]
        pairs = zip(lacking[hit].tolist(), cells[hit].tolist(), strict=True)
        worst += [(lack, cell, cells) for lack, cell in pairs]
    worst.sort(key=lambda one: -one[0])
    added = 0
    for _, cell, cells in worst[:most]:
        coefficients = np.zeros(len(problem.up))
        coefficients[cells] = problem.allowed[cells]
        coefficients[cell] = -1.0
        added += cuts.add(coefficients, 0.0)
    return added


def grow(
    witnesses: Witnesses, open_: Flags, guide: Floats | None = None
) -> tuple[Flags, list[Demand]]:
    """Add cells to a pattern until it is safe; return it and the demands that no pattern meets."""
    # Each demand that is not met is met by its cheapest move; the cells that move are suppressed.
    problem = witnesses.problem
    pattern = open_.copy()
    price = problem.cost * (1.0 if guide is None else 1.0 - 0.99 * guide)
    impossible: list[Demand] = []
    for _ in range(5):  # anybody first, then those who know more; then nothing is found
        lacking = witnesses.shortfalls(pattern)
        if not lacking:
            break
        for demand, knower, _ in sorted(lacking, key=lambda one: -one.demand.level):
            moves = _meet(witnesses, demand, knower, np.where(pattern, 0.0, price))
            if moves is None and knower < 0:
                impossible.append(demand)
            elif moves is None:
                witnesses.hopeless.add((demand, knower))
            else:
                witnesses.remember(demand, moves)
                pattern |= np.any([move != 0 for move in moves], axis=0)
        if impossible:
            break
    return pattern, impossible


def _meet(
    witnesses: Witnesses, demand: Demand, knower: int, price: Floats, inside: Flags | None = None
) -> list[Floats] | None:
    """Return the moves that meet a demand at a low price, or None if nothing does."""
    attacker: Attacker = witnesses.whole or witnesses.attacker
    up, down = witnesses.room(witnesses.problem.allowed if inside is None else inside, knower)
    if not (up[demand.cell] or down[demand.cell]):
        return None
    sides = [(demand.side, demand.level)]
    if not demand.side:
        most = attacker.reach(demand.cell, 1, demand.level, up, down).amount
        sides = [(1, most), (-1, demand.level - most)]
    moves = []
    for side, level in sides:
        if level > TOLERANCE * demand.level:
            move = attacker.cheapest(demand.cell, side, level, up, down, price)
            if move is None:
                return None
            moves.append(move)
    return moves


# Blocks are joined by so many where one alone cannot meet a demand; then all cells are looked at,
# for so many demands.
WIDER, WHOLE = (1, 4, 16), 40
# Where cells are given back, programs over so many cells in all look for other moves.
WORK = 250_000
# Up to so many cells that may be suppressed, those that are not needed are sought one by one, until
# the outsider was asked so often.
THINNED, ASKED = 3_000, 1_500


def protect_by_blocks(linked: Linked, witnesses: Witnesses) -> tuple[Flags, list[Demand]]:
    """Return a safe pattern of a large table, and the demands that no pattern meets."""
    problem, blocks = witnesses.problem, linked.blocks()
    cubes = Hypercubes(linked, witnesses)
    left = cubes.protect()
    pattern = cubes.needed > 0
    home = {cell: number for number, cells in enumerate(blocks) for cell in cells.tolist()}
    whole, cheap, impossible = np.arange(linked.size), ~dear(problem), []
    joined = {
        (width, i): np.unique(np.concatenate(blocks[i : i + width]))
        for width in WIDER
        for i in range(0, len(blocks), width)
    }

    def near(demand: Demand) -> list[Ints]:
        return [joined[width, home[demand.cell] // width * width] for width in WIDER]

    tried = 0
    for demand in left:
        beside = near(demand)
        scopes = [*beside, whole] if tried < WHOLE else beside
        scopes = [*(cells[cheap[cells]] for cells in scopes), *beside, whole]
        scope = _meet_in(witnesses, demand, scopes, pattern)
        tried += scope >= len(WIDER)
        if scope == len(scopes):
            impossible.append(demand)
        else:
            cubes.take(demand, witnesses.standing(demand, pattern)[0])
    if impossible:
        return pattern, impossible
    work = 0

    def otherwise(demand: Demand, open_: Flags) -> list[Ints] | None:
        nonlocal work
        work += len(near(demand)[0])
        if work > WORK:
            return None
        pattern, scopes = cubes.needed > 0, [cells[open_[cells]] for cells in near(demand)[:2]]
        met = _meet_in(witnesses, demand, scopes, pattern) < len(scopes)
        return witnesses.standing(demand, pattern)[0] if met else None

    pattern = cubes.exchange(otherwise)
    if problem.allowed.sum() <= THINNED:
        most = witnesses.asked + ASKED
        pattern = thin(witnesses, pattern, lambda: witnesses.asked > most)
    return pattern, impossible


def _meet_in(witnesses: Witnesses, demand: Demand, scopes: list[Ints], pattern: Flags) -> int:
    """Suppress cells of the first scope that can meet a demand; return the widest looked at."""
    widest = 0
    while True:
        knowers = witnesses.doubtful(demand, pattern)
        if knowers is not None and not knowers:
            return widest
        knower = -1 if knowers is None else min(knowers)
        for number, cells in enumerate(scopes):
            inside = np.zeros(len(pattern), dtype=bool)
            inside[cells] = witnesses.problem.allowed[cells]
            # What is suppressed anyway is nearly free: moves that need few cells bind few.
            cost = witnesses.problem.cost
            price = np.where(pattern, 1e-3 * np.median(cost), cost)
            moves = _meet(witnesses, demand, knower, price, inside)
            if moves is not None:
                witnesses.remember(demand, moves)
                pattern |= np.any([move != 0 for move in moves], axis=0)
                widest = max(widest, number)
                break
        else:
            if knower < 0:
                return len(scopes)
            witnesses.hopeless.add((demand, knower))


def thin(witnesses: Witnesses, pattern: Flags, spent: Callable[[], bool]) -> Flags:
    """Take back the dearest cells that a safe pattern does not need, until the work is spent."""
    problem = witnesses.problem
    best = pattern.copy()
    extra = np.flatnonzero(best & ~problem.unsafe)
    for cell in extra[np.argsort(-problem.cost[extra], kind="stable")]:
        if spent():
            break
        best[cell] = False
        if witnesses.shortfalls(best, first=True):
            best[cell] = True
    return best


# With more cells that may be suppressed than this the exact model takes too long.
EXACT_CELLS = 700
# The search ends after the outsider was asked so often, or after so many branches of masters; the
# relaxed program may take this part of it. Without a network asking takes so many times as long.
EFFORT, BRANCHED, RELAXED, PROGRAM = 60_000, 20_000, 0.4, 10
ROUNDS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A safe pattern of suppressed cells, and how near it is to the cheapest.

    `suppressed` are the unsafe cells too; `cost` is that of the cells suppressed only to protect
    others, and no safe pattern costs less than `bound`. `impossible` are demands that no pattern
    meets: then nothing is safe. `unprotected` counts those that cannot be met against the only
    contributor of another cell.
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


def find_pattern(
    problem: SuppressionProblem, *, seconds: float | None = None, linked: Linked | None = None
) -> Pattern:
    """Find the cheapest safe pattern, or the best that some work finds; that is safe too.

    The work is counted in programs, so that the same table has the same pattern on any machine,
    unless it is to end after some `seconds`. Tables with more cells than the exact model can hold
    are protected by hypercubes, if they are given (`linked`), whatever time that takes.
    """
    witnesses = Witnesses(problem)
    if linked is not None and problem.network is None and problem.allowed.sum() > EXACT_CELLS:
        found, unmet = protect_by_blocks(linked, witnesses)
        cost = float(problem.cost[found & ~problem.unsafe].sum())
        return Pattern(found, cost, 0.0, tuple(unmet), len(witnesses.hopeless))
    search = _Search(witnesses, seconds)
    pattern, impossible = grow(witnesses, problem.unsafe)
    if not impossible:
        search.offer(pattern)
        first_cuts(problem, search.cuts)
    if not impossible and not search.done():
        search.relax()
        search.settle()
    return Pattern(
        search.best, search.price, min(search.bound, search.price), tuple(impossible),
        len(witnesses.hopeless), search.rounds,
    )  # fmt: skip


class _Search:
    """The state of a search: the best pattern, the bound, and the inequalities so far."""

    def __init__(self, witnesses: Witnesses, seconds: float | None) -> None:
        self.witnesses, self.problem = witnesses, witnesses.problem
        self.begun, self.seconds = time.monotonic(), np.inf if seconds is None else seconds
        self.branched = 0
        self.cost = np.where(self.problem.unsafe, 0.0, self.problem.cost)
        self.cuts, self.best = Cuts(len(self.cost)), self.problem.unsafe.copy()
        self.fixed = ~self.problem.allowed
        self.price, self.bound, self.rounds = np.inf, 0.0, 0

    def done(self) -> bool:
        """Whether the best pattern is proven the cheapest."""
        return self.price <= self.bound + 1e-6 * max(1.0, self.price)

    def spent(self, part: float = 1.0) -> bool:
        """Whether a part of the work, or of the time, is over."""
        if time.monotonic() - self.begun > part * self.seconds:
            return True
        each = 1 if self.problem.network else PROGRAM
        return each * self.witnesses.asked > part * EFFORT or self.branched >= BRANCHED

    def offer(self, pattern: Flags) -> None:
        """Keep a safe pattern, thinned out, if it is better than the best."""
        thinned = thin(self.witnesses, pattern, self.spent)
        price = float(self.cost[thinned].sum())
        if price < self.price:
            self.best, self.price = thinned, price

    def relax(self) -> None:
        """Work on the relaxed program until it is satisfied, and let it guide to a pattern."""
        active = self.witnesses.demands
        solution = None
        for _ in range(ROUNDS):
            solution = self._relaxed()
            if solution is None or self.done() or self.spent(RELAXED):
                break
            added = lone_cuts(self.problem, solution, self.cuts)
            violated = self._separate(solution, active)
            if not violated and not added and active is self.witnesses.demands:
                break
            active = violated or self.witnesses.demands
        if solution is not None and not self.done():
            begin = self.problem.unsafe | (solution > 0.7) & self.problem.allowed
            pattern, _ = grow(self.witnesses, begin, np.clip(solution, 0, 1))
            self.offer(pattern)
            self._relaxed()

    def _relaxed(self) -> Floats | None:
        """Solve the relaxed master; cells too dear to be in a better pattern are ruled out."""
        from scipy.optimize import linprog

        bounds = np.stack([self.problem.unsafe, ~self.fixed], axis=1).astype(np.float64)
        least = -np.array(self.cuts.least)
        done = linprog(self.cost, A_ub=-self.cuts.matrix(), b_ub=least, bounds=bounds)
        if done.x is None:  # only if too much is ruled out: nothing beats the best
            self.bound = self.price if done.status == 2 else self.bound
            return None
        self.bound = max(self.bound, float(done.fun) * (1 - 1e-9))
        dear = done.fun + done.lower.marginals > self.price * (1 + 1e-9) + 1e-9
        self.fixed |= dear & ~self.problem.unsafe
        return np.asarray(done.x)

    def _separate(self, solution: Floats, active: list[Demand]) -> list[Demand]:
        """Add the inequalities that a relaxed solution violates; return whose they are."""
        found = []
        for demand in active:
            if demand.side == 0 or self.spent(RELAXED):
                continue
            self.witnesses.asked += 1
            up = np.minimum(self.problem.up, demand.level) * solution
            down = np.minimum(self.problem.down, demand.level) * solution
            reached = self.witnesses.attacker.reach(*demand, up, down)
            if reached.weights is None or reached.amount > demand.level * (1 - 1e-3):
                continue
            cut = capacity_cut(self.problem, Shortfall(demand, -1, (reached.weights,)))
            if cut is not None and cut @ solution < 1 - 1e-3 and self.cuts.add(cut):
                found.append(demand)
        return found

    def settle(self) -> None:
        """Solve the master in whole numbers until the outsider finds nothing, or enough is done."""
        while not self.done() and not self.spent() and self.rounds < ROUNDS:
            pattern = self._master()
            if pattern is None or self.done():
                return
            self.rounds += 1
            lacking = self.witnesses.shortfalls(pattern)
            if not lacking:
                self.offer(pattern)
                continue
            x, fresh = pattern.astype(np.float64), 0
            for one in lacking:  # each success of the outsider teaches an inequality
                cut = capacity_cut(self.problem, one)
                if cut is not None and cut @ x < 1 - 1e-7:
                    fresh += self.cuts.add(cut)
            lone_cuts(self.problem, x, self.cuts)
            if not fresh:  # some cell beyond the pattern must be suppressed too
                self.cuts.add((self.problem.allowed & ~pattern).astype(np.float64))
            self.offer(grow(self.witnesses, pattern)[0])

    def _master(self) -> Flags | None:
        left = max(self.begun + self.seconds - time.monotonic(), 0.1)
        limits = {"time_limit": left, "node_limit": BRANCHED - self.branched, "mip_rel_gap": 1e-7}
        low, high = self.problem.unsafe.astype(np.float64), np.where(self.fixed, 0.0, 1.0)
        least = np.array(self.cuts.least), np.inf
        done = minimise(self.cost, self.cuts.matrix(), least, low, high, True, **limits)
        self.branched += done.mip_node_count or 0
        if done.status == 2:  # nothing better than the best is left
            self.bound = self.price
        elif done.mip_dual_bound is not None and np.isfinite(done.mip_dual_bound):
            self.bound = max(self.bound, float(done.mip_dual_bound) * (1 - 1e-9))
        return None if done.x is None else np.asarray(done.x > 0.5)
