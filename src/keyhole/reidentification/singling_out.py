"""Singling out: predicates that fit one record of the release, counted on people.

A predicate asks for values of one column (univariate) or of several (multivariate). It singles
somebody out if it fits exactly one person (Article 29 Working Party, Opinion 05/2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.core.notes import Note
from keyhole.core.options import Question
from keyhole.kernels import closest as kernel
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.reidentification.people import BEYOND, MISSING, People
from keyhole.reidentification.residual_risk import Attack, Trials

# Predicates that are tried, columns in one of several, and times as many are drawn.
PREDICATES, COLUMNS, DRAWS = 2_000, 3, 10


@dataclass(frozen=True, slots=True, eq=False)
class Predicates:
    """Predicates: what each asks of which columns, as `kernels.closest.matches` takes it."""

    columns: Ints
    low: Floats
    high: Floats
    starts: Ints

    @classmethod
    def of(cls, columns: Any, low: Any, high: Any) -> Predicates:
        """Return predicates from one row each, of so many columns."""
        columns, low, high = (np.atleast_2d(np.asarray(one)) for one in (columns, low, high))
        starts = np.arange(len(columns) + 1, dtype=np.int64) * columns.shape[1]
        return cls(columns.ravel().astype(np.int64), low.ravel(), high.ravel(), starts)

    def isolate(self, rows: Floats) -> Flags:
        """Tell which predicates fit exactly one row."""
        fit = kernel.matches(rows, self.columns, self.low, self.high, self.starts, 2)
        return np.asarray(fit == 1)


def single_out(people: People, _: Question, rng: np.random.Generator) -> Attack:
    """Single people out with predicates that fit one record of the release.

    The people and the control are as many: in a larger file fewer predicates fit one person.
    """
    original, control, notes = people.original, people.control, people.notes
    if control is not None:
        size = min(len(original), len(control))
        drawn = (rng.choice(len(rows), size, replace=False) for rows in (original, control))
        original, control = original[next(drawn)], control[next(drawn)]
    parts = {}
    draws = {"univariate": (univariate, 1), "multivariate": (multivariate, COLUMNS)}
    for kind, (draw, width) in draws.items():
        if kind == "multivariate" and len(people.names) < 2:
            continue
        guesses = draw(people, rng)
        if guesses is None:
            lacking = "success and risk are null: no predicate fits exactly one record"
            parts[kind] = Attack.measured(None, None, None, (lacking,))
            continue
        why = notes
        if len(original) < len(people.original):
            everybody = Trials.of(guesses.isolate(people.original))
            sizes = {"counted": len(original), "people": len(people.original)}
            every = {"hits": everybody.hits, "total": everybody.total}
            why = (*notes, Note("attacks.counted", **sizes, **every))
        naive = at_random(people, width, len(guesses.starts) - 1, rng)
        against = None if control is None else Trials.of(guesses.isolate(control))
        parts[kind] = Attack.measured(
            Trials.of(guesses.isolate(original)), against, Trials.of(naive.isolate(original)), why
        )
    return Attack.worst_of(parts)


def univariate(people: People, rng: np.random.Generator) -> Predicates | None:
    """Draw predicates on one column: a value that one record has, the smallest and the largest."""
    found = []
    for place, is_number in enumerate(people.numbers):
        values, counts = np.unique(people.release[:, place], return_counts=True)
        found += [(place, value, value) for value in values[counts == 1]]
        known = values[values < MISSING] if is_number else values[:0]
        if len(known):
            found += [(place, -BEYOND, known[0]), (place, known[-1], 1 + BEYOND)]
    if not found:
        return None
    chosen = rng.permutation(len(found))[:PREDICATES]
    rows = np.array(found)[chosen]
    return Predicates.of(rows[:, :1], rows[:, 1:2], rows[:, 2:])


def multivariate(people: People, rng: np.random.Generator) -> Predicates | None:
    """Draw predicates on several columns from records of the release that they alone fit.

    A category must be the record's; a number at least as large if it is above the median, else at
    most as large.
    """
    release, total = people.release, PREDICATES * DRAWS
    middle = np.median(release, axis=0)
    columns = _some_columns(people, COLUMNS, total, rng)
    record = rng.integers(len(release), size=total)
    values = release[record[:, None], columns]
    low, high = values.copy(), values.copy()
    open_end = people.numbers[columns] & (values < MISSING)
    above = values >= middle[columns]
    high[open_end & above], low[open_end & ~above] = 1 + BEYOND, -BEYOND
    every = np.unique(np.hstack([columns, low, high]), axis=0)
    every = every[rng.permutation(len(every))]
    width, kept = columns.shape[1], []
    for piece in np.array_split(every, DRAWS):
        own = Predicates.of(*np.split(piece, [width, 2 * width], axis=1)).isolate(release)
        kept.append(piece[own])
        if sum(map(len, kept)) >= PREDICATES:
            break
    chosen = np.concatenate(kept)[:PREDICATES]
    return Predicates.of(*np.split(chosen, [width, 2 * width], axis=1)) if len(chosen) else None


def at_random(people: People, width: int, count: int, rng: np.random.Generator) -> Predicates:
    """Draw predicates whose values are those of the release, but column by column at random."""
    columns = _some_columns(people, width, count, rng)
    levels = [np.unique(people.release[:, place]) for place in range(len(people.names))]
    sizes = np.array([len(one) for one in levels])
    at = (rng.random(columns.shape) * sizes[columns]).astype(np.int64)
    values = np.concatenate(levels)[(np.cumsum(sizes) - sizes)[columns] + at]
    low, high = values.copy(), values.copy()
    open_end = people.numbers[columns] & (values < MISSING)
    up = rng.random(columns.shape) < 0.5
    high[open_end & up], low[open_end & ~up] = 1 + BEYOND, -BEYOND
    return Predicates.of(columns, low, high)


def _some_columns(people: People, width: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw sets of columns, one row each, in their order."""
    draws = rng.random((count, len(people.names)))
    return np.sort(np.argsort(draws, axis=1)[:, :width], axis=1)
