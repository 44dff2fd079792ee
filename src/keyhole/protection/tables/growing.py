"""Safe patterns found quickly: suppress what is cheap until all demands are met, then thin out."""

from __future__ import annotations

import time

import numpy as np

from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.demands import TOLERANCE, Demand, Witnesses
from keyhole.protection.tables.programs import Attacker

__all__ = ["grow", "thin"]


def grow(
    witnesses: Witnesses, open_: Flags, guide: Floats | None = None
) -> tuple[Flags, list[Demand]]:
    """Add cells to a pattern until it is safe.

    Each demand that is not met is met by its cheapest move over all the cells that may be
    suppressed; the cells that move are suppressed from then on. What was met stays met.

    Parameters
    ----------
    witnesses
        The demands.
    open_
        The pattern to begin with.
    guide
        How much each cell is wanted, from 0 to 1: the solution of a relaxed program.

    Returns
    -------
    tuple
        The pattern, and the demands that no pattern meets. Those of lone contributors are
        noted as hopeless and dropped.
    """
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


def _meet(witnesses: Witnesses, demand: Demand, knower: int, price: Floats) -> list[Floats] | None:
    """Return the moves that meet a demand at a low price, or None if nothing does."""
    attacker: Attacker = witnesses.whole or witnesses.attacker
    up, down = witnesses.room(witnesses.problem.allowed, knower)
    if demand.side:
        move = attacker.cheapest(demand.cell, demand.side, demand.level, up, down, price)
        return None if move is None else [move]
    most = attacker.reach(demand.cell, 1, demand.level, up, down).amount
    moves = []
    for side, level in ((1, most), (-1, demand.level - most)):
        if level > TOLERANCE * demand.level:
            move = attacker.cheapest(demand.cell, side, level, up, down, price)
            if move is None:
                return None
            moves.append(move)
    return moves


def thin(witnesses: Witnesses, pattern: Flags, deadline: float) -> Flags:
    """Take back the dearest cells that a safe pattern does not need."""
    problem = witnesses.problem
    best = pattern.copy()
    extra = np.flatnonzero(best & ~problem.unsafe)
    for cell in extra[np.argsort(-problem.cost[extra], kind="stable")]:
        if time.monotonic() > deadline:
            break
        best[cell] = False
        if witnesses.shortfalls(best, first=True):
            best[cell] = True
    return best
