"""The released sample: whom it takes, and how much each stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.examples.codebook import KEYS, release
from keyhole.data.examples.draws import Draws
from keyhole.data.examples.people import Columns
from keyhole.data.examples.states import STATES
from keyhole.data.microdata import Microdata

__all__ = [
    "choose_sample",
    "first_of_household",
    "measures",
    "nominal_weights",
    "release_sample",
    "weigh",
]

Rows = npt.NDArray[np.int64]

_SMALL_STATE = 210
_SMALL = np.array([sum(state.veterans) < _SMALL_STATE for state in STATES])


def choose_sample(people: Columns, size: int, seed: int) -> Rows:
    """Choose people, by whole households, some kinds of them more often than others.

    Every household has a random number divided by its measure of size; the lowest are in
    (sequential Poisson sampling). The last household is cut where the size is reached.
    """
    draws = Draws(seed, len(people["age"]))
    head = first_of_household(people)
    key = ((draws.of("sample").astype(np.int64) << 8) // measures(people))[head]
    order = np.argsort(key, kind="stable")[:size]
    shuffle = Draws(seed, size).order("sample order")
    rows: Rows = order[shuffle]
    return rows


def first_of_household(people: Columns) -> Rows:
    """Return, for each person, the row of the first person of the household."""
    _, first = np.unique(people["household"], return_index=True)
    rows: Rows = first[people["household"] - 1]
    return rows


def measures(people: Columns) -> npt.NDArray[np.int64]:
    """Return how often a person is taken: women and small states more, the young less."""
    measure = np.full(len(people["age"]), 4, dtype=np.int64)
    measure <<= people["sex"]
    measure <<= _SMALL[people["homstate"]].astype(np.int64)
    return np.where(people["age"] < 35, measure * 3 // 4, measure)


def weigh(strata: npt.NDArray[np.int64], rows: Rows) -> npt.NDArray[np.int32]:
    """Return whole-number weights that add up to the population.

    Within a stratum they differ by at most one; strata without a sampled person are
    represented by the stratum with the most.

    Examples
    --------
    >>> weigh(np.array([4, 4, 4, 8, 4]), np.array([0, 2, 3]))
    array([2, 2, 1], dtype=int32)
    """
    kinds, stratum = np.unique(strata, return_inverse=True)
    people = np.bincount(stratum, minlength=len(kinds))
    sampled = np.bincount(stratum[rows], minlength=len(kinds))
    people[np.argmax(sampled)] += people[sampled == 0].sum()
    weights = np.zeros(len(rows), dtype=np.int32)
    for kind in np.flatnonzero(sampled):
        mine = np.flatnonzero(stratum[rows] == kind)
        weights[mine], more = divmod(int(people[kind]), len(mine))
        weights[mine[:more]] += 1
    return weights


def nominal_weights(people: Columns, seed: int) -> npt.NDArray[np.int32]:
    """Return weights of about ten, as if each person stood for others of the same kind."""
    spread = Draws(seed, len(people["age"])).of("weight") % 3
    return (44 // measures(people) + spread).astype(np.int32)


def release_sample(people: Columns, rows: Rows, weights: npt.NDArray[Any]) -> Microdata:
    """Make the public file of these people: numbered afresh, nothing that points back."""
    taken = {name: codes[rows] for name, codes in people.items()}
    columns = {
        "puf_id": np.arange(1, len(rows) + 1),
        "household": _renumber(taken["household"]),
        **{name: taken[name] for name in (*KEYS, "age", "period", "area", "income")},
        "weight": weights,
    }
    return release("sample", columns)


def _renumber(household: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Number households in the order in which the file shows them."""
    _, first, inverse = np.unique(household, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return number[inverse]
