"""How a table is protected, as it was asked: by suppression, by rounding, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats
from keyhole.protection.tables.crossing import CrossTable
from keyhole.protection.tables.demands import Problem
from keyhole.protection.tables.primary import Unsafe
from keyhole.protection.tables.rounding import round_at_random, round_nearest
from keyhole.protection.tables.suppression import Pattern, suppress

__all__ = ["Method", "rounded", "suppressed"]


@dataclass(frozen=True, slots=True)
class Method:
    """How a table is protected, as `table` was asked."""

    protect: str
    cost: str
    total_known: bool
    hidden_zeros: bool
    singletons: bool
    base: float
    rounding: str
    seed: int | None
    whole: bool
    seconds: float


Protection = tuple[Floats, Floats, Floats, Pattern | None, tuple[str, ...]]


def suppressed(made: CrossTable, unsafe: Unsafe, method: Method) -> Protection:
    """Return what is shown, the room of an outsider, and the pattern; or all as it is."""
    nothing = np.zeros(len(made.values))
    if method.protect == "none":
        return made.values, nothing, nothing, None, ()
    problem = _problem(made, unsafe, method)
    pattern = suppress(problem, seconds=method.seconds)
    if pattern.impossible:
        raise OptionError(_no_pattern(method))
    shown = np.where(pattern.suppressed, np.nan, made.values)
    up, down = (
        np.where(pattern.suppressed, problem.up, 0.0),
        np.where(pattern.suppressed, problem.down, 0.0),
    )
    return shown, up, down, pattern, ()


def _no_pattern(method: Method) -> str:
    known = "" if not method.total_known else " Say that the grand total is not known, or"
    zeros = "" if method.hidden_zeros else " let empty cells be hidden (--hidden-zeros), or"
    return (
        f"no pattern of suppressed cells keeps every unsafe cell as uncertain as asked.{known}"
        f"{zeros} group categories, or round."
    )


def _problem(made: CrossTable, unsafe: Unsafe, method: Method) -> Problem:
    allowed = np.ones(len(made.values), dtype=bool) if method.hidden_zeros else made.counts > 0
    if method.total_known:
        allowed[-1] = False
    # Where empty cells are shown, one that is not shown has a record in it.
    least = 0.0 if method.hidden_zeros else made.least
    down = np.maximum(made.values - least, 0.0)
    return Problem(
        made.shape, np.full(len(made.values), np.inf), down, _costs(made, method.cost),
        unsafe.cells, allowed | unsafe.cells, unsafe.lower, unsafe.upper, unsafe.sliding,
        _alone(made, unsafe) if method.singletons and made.magnitude else (), method.whole,
    )  # fmt: skip


def _costs(made: CrossTable, cost: str) -> Floats:
    costs = {"value": made.values, "records": made.counts, "cells": np.ones(len(made.values))}
    found = costs[cost].astype(np.float64)
    # What is empty is not free: then it would be suppressed for nothing.
    positive = found[found > 0]
    return np.where(found > 0, found, positive.min() if len(positive) else 1.0)


def _alone(made: CrossTable, unsafe: Unsafe) -> tuple[frozenset[int], ...]:
    """Return for each record that is alone in an unsafe cell all the cells it is alone in."""
    single = unsafe.cells & (made.counts == 1)
    last = np.array(made.shape) - 1
    found = []
    for cell in np.flatnonzero(single & ~made.margin):
        place = made.places[cell]
        above = ((made.places == place) | (made.places == last)).all(axis=1)
        found.append(frozenset(np.flatnonzero(above & single).tolist()))
    return tuple(found)


def rounded(made: CrossTable, method: Method) -> Protection:
    """Return the rounded table and the room that rounding leaves to an outsider."""
    if method.rounding == "random":
        found = round_at_random(
            made.values, made.shape, method.base, np.random.default_rng(method.seed)
        )
    else:
        found = round_nearest(made.values, made.shape, method.base, seconds=method.seconds)
    width = method.base * (1 + found.beyond)
    # A value is less than this from the rounded one; a whole one by 1 less at least.
    reach = width - 1 if made.is_count and float(width).is_integer() else width
    up = np.maximum(found.values + reach - made.values, 0.0)
    down = np.maximum(np.minimum(made.values - found.values + reach, made.values), 0.0)
    more = (
        ()
        if not found.beyond
        else (f"some cells are up to {width:g} off: nearer multiples do not add up",)
    )
    return found.values, up, down, None, more
