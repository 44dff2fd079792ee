"""Controlled rounding and noise by cell keys: what may be done to every cell of a table.

Rounding takes every cell to a multiple of a base, and all sums still hold.

For cell keys every record has a secret number, its record key. The keys of a cell's records, added
up without their carry, are the cell key, which looks up the noise in a perturbation table (Fraser &
Wooton 2005; Thompson, Broadfoot & Elazar 2013). The same records have the same noise in every
table, so that asking again brings nothing. Totals are totals with noise of their own, not sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.errors import RunError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.attackers import minimise
from keyhole.protection.tables.cells import addends, relations

# What is nearer to a multiple than this part of the base is that multiple.
EXACT = 1e-9
# A table of many variables may need cells further off than the next multiple; so far at most.
FURTHEST = 3
# How far its program may branch.
BRANCHED = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """Rounded values, and by how many multiples beyond the two next ones some had to go."""

    values: Floats
    beyond: int = 0


def round_nearest(
    values: Floats,
    shape: tuple[int, ...],
    base: float,
    *,
    seconds: float | None = None,
    sums: Sequence[Ints] | None = None,
) -> Rounded:
    r"""Round a table with its margins so that sums hold and little is changed.

    `sums` are the cells of each sum, its total last, where the table is not a plain one.

    Notes
    -----
    Each value becomes one of the two multiples of the base around it, a multiple stays as it is
    (zero-restricted), and :math:`\sum |r - a|` is the smallest there is (a mixed-integer
    program). For one and two variables such a rounding exists always, for more it may not; then
    cells may go one multiple further, at the same price by distance, then two.

    Examples
    --------
    >>> table = np.array([1.0, 3, 4, 2, 3, 5, 3, 6, 9])
    >>> round_nearest(table, (3, 3), base=3).values.reshape(3, 3).tolist()
    [[0.0, 3.0, 3.0], [3.0, 3.0, 6.0], [3.0, 6.0, 9.0]]
    """
    for beyond in range(FURTHEST + 1):
        matrix = relations(addends(shape) if sums is None else sums, len(values))
        found = _solved(values / base, matrix, beyond, seconds)
        if found is not None:
            return Rounded(found * base, beyond)
    raise RunError(
        f"no controlled rounding to base {base:g} was found within the search limit. Use fewer or "
        f"coarser categories, or suppress cells instead."
    )


def _solved(scaled: Floats, matrix: Any, beyond: int, seconds: float | None) -> Floats | None:
    from scipy.sparse import hstack

    below, part = _split(scaled)
    n = len(scaled)
    # A cell is its lower multiple, perhaps one more, and where needed some beyond either.
    high = np.concatenate([part > 0, np.full(n, beyond), np.minimum(beyond, below)])
    cost = np.concatenate([1 - 2 * part, np.ones(n), np.ones(n)])
    rows, sums = hstack([matrix, matrix, -matrix]), (-(matrix @ below),) * 2
    limits = {"node_limit": BRANCHED} if seconds is None else {"time_limit": seconds}
    done = minimise(cost, rows, sums, np.zeros(3 * n), high, True, **limits)
    if done.x is None:
        return None
    up, more, less = np.round(done.x).reshape(3, n)
    return np.asarray(below + up + more - less)


def _split(scaled: Floats) -> tuple[Floats, Floats]:
    """Return the lower multiples, and what is above them."""
    nearest = np.round(scaled)
    exact = np.abs(scaled - nearest) <= EXACT + 1e-12 * np.abs(scaled)
    below = np.where(exact, nearest, np.floor(scaled))
    return below, np.where(exact, 0.0, scaled - below)


def round_at_random(
    values: Floats, shape: tuple[int, ...], base: float, generator: np.random.Generator
) -> Rounded:
    """Round a one-way or two-way table without bias: every cell is right on average.

    Notes
    -----
    Cox's procedure. Margins are written with a minus sign, so that every row and column adds up
    to 0 and with one broken entry has another. Along a cycle of broken entries, up and down in
    turn, the table is moved until an entry is whole, in one direction or the other with the odds
    that leave the expectation as it is.

    Examples
    --------
    >>> table = np.array([1.0, 3, 4, 2, 3, 5, 3, 6, 9])
    >>> rounded = round_at_random(table, (3, 3), 3, np.random.default_rng(1)).values
    >>> bool((rounded[:2].sum() == rounded[2]) & (abs(rounded - table) < 3).all())
    True
    """
    if len(shape) == 1:
        # A table of one variable, beside which a variable of one category stands.
        doubled = round_at_random(np.repeat(values, 2), (shape[0], 2), base, generator)
        return Rounded(doubled.values[::2])
    # Margins are added up anew. Only what is above the lower multiples is walked on: it is small.
    below, part = (np.pad(one.reshape(shape)[:-1, :-1], (0, 1)) for one in _split(values / base))
    for one in (below, part):
        one[-1] = one.sum(axis=0)
        one[:, -1] = one.sum(axis=1)
    signs = np.outer(np.append(np.ones(shape[0] - 1), -1), np.append(np.ones(shape[1] - 1), -1))
    entries = part * signs
    _walk_until_whole(entries, generator)
    return Rounded((below + np.round(entries * signs)).ravel() * base)


def _walk_until_whole(entries: Floats, generator: np.random.Generator) -> None:
    broken = np.abs(entries - np.round(entries)) > EXACT
    while broken.any():
        rows, cols = _cycle(broken)
        turn = np.where(np.arange(len(rows)) % 2 == 0, 1.0, -1.0)
        along = entries[rows, cols]
        above, beneath = np.ceil(along) - along, along - np.floor(along)
        forth = np.where(turn > 0, above, beneath).min()
        back = np.where(turn > 0, beneath, above).min()
        step = forth if generator.random() * (forth + back) < back else -back
        entries[rows, cols] += turn * step
        near = np.abs(entries[rows, cols] - np.round(entries[rows, cols])) <= EXACT
        entries[rows[near], cols[near]] = np.round(entries[rows[near], cols[near]])
        broken[rows[near], cols[near]] = False


def _cycle(broken: Flags) -> tuple[Ints, Ints]:
    """Walk over broken entries, along a row and along a column in turn, until one comes back."""
    row, col = (int(one[0]) for one in np.nonzero(broken))
    path = [(row, col)]
    seen = {("row", row): 0}  # where a line was walked on first
    while True:
        if len(path) % 2:
            col = int(next(c for c in np.flatnonzero(broken[row]) if c != col))
            line = ("column", col)
        else:
            row = int(next(r for r in np.flatnonzero(broken[:, col]) if r != row))
            line = ("row", row)
        path.append((row, col))
        first = seen.setdefault(line, len(path) - 1)
        if first < len(path) - 1:
            rows, cols = np.array(path[first + 1 :], dtype=np.int64).T
            return rows, cols


KEYS = 1 << 32
"""Record keys are whole numbers below this."""


@dataclass(frozen=True)
class PerturbationTable:
    r"""How likely each noise is, by the count of a cell.

    `largest` is the largest noise, `variance` that of the noise, and counts from 1 up to `never`
    are never published; there are fewer than `largest` of these. Zeros stay zeros.

    Notes
    -----
    For a count i the noise v is one of the whole numbers from :math:`-\min(i, D)` to D for which
    i + v is not a count that is never published. Among all probabilities on them with mean 0 and
    the variance asked for, the one with the largest entropy is taken:
    :math:`p_v \propto \exp(a v + b v^2)` (Giessing 2016). Where no probabilities have
    that variance (next to zero), the nearest that some have is taken; the mean is 0 always.
    """

    largest: int
    variance: float
    never: int

    @cached_property
    def noise(self) -> Ints:
        """All the noise there is."""
        return np.arange(-self.largest, self.largest + 1)

    @cached_property
    def probabilities(self) -> Floats:
        """One row for each count, the last for all counts from there on; one column a noise."""
        rows = np.zeros((self.largest + self.never + 2, len(self.noise)))
        rows[0, self.largest] = 1.0
        for count in range(1, len(rows)):
            after = count + self.noise
            possible = (after >= 0) & ((after == 0) | (after > self.never))
            rows[count, possible] = _widest(self.noise[possible], self.variance)
        return rows

    @cached_property
    def variances(self) -> Floats:
        """The variance of the noise by count, as it is."""
        return np.asarray(self.probabilities @ self.noise**2)

    def look_up(self, counts: Ints, keys: Ints) -> Ints:
        """Return the noise of cells, by their counts and keys."""
        rows = np.minimum(counts, len(self.probabilities) - 1)
        chances = np.cumsum(self.probabilities, axis=1)[rows]
        # What is added up to 1 but for the last digit must not lie beyond the last noise.
        place = (keys[:, None] / KEYS >= chances).sum(axis=1)
        possible = self.probabilities[rows] > 0
        last = len(self.noise) - 1 - np.argmax(possible[:, ::-1], axis=1)
        return np.asarray(self.noise[np.minimum(place, last)])

    @property
    def differences_shown(self) -> float:
        """The probability that two large counts differ by as much as they truly do."""
        return float((self.probabilities[-1] ** 2).sum())


def _widest(noise: Ints, variance: float) -> Floats:
    """Return the probabilities of the largest entropy with mean 0 and a variance, or the nearest.

    The smallest and the largest variance there is are those of two points on either side of 0.
    """
    below, above = noise[noise < 0], noise[noise > 0]
    near = (0, 0) if 0 in noise else (below[-1], above[0])
    for low, high, beyond in ((*near, -1), (below[0], above[-1], 1)):
        if beyond * (variance + low * high) >= -1e-9:
            # The mean of two points is 0 if each has the weight of the other's distance.
            weights = (noise == low) * float(high) - (noise == high) * float(low)
            return np.asarray(weights / weights.sum() if low else noise == 0, dtype=float)

    moments, wanted = np.stack([noise, noise**2]).astype(float), np.array([0.0, variance])

    def chances(tilt: Floats) -> tuple[Floats, float]:
        powers = tilt @ moments
        weights = np.exp(powers - powers.max())
        total = weights.sum()
        return weights / total, float(np.log(total) + powers.max() - tilt @ wanted)

    # Newton's method on a convex function, whose slope is how far the moments are off.
    tilt = np.array([0.0, -0.5 / variance])
    found, height = chances(tilt)
    for _ in range(200):
        slope = moments @ found - wanted
        if np.abs(slope).max() < 1e-11:
            break
        curve = (moments * found) @ moments.T - np.outer(moments @ found, moments @ found)
        step = np.linalg.lstsq(curve, -slope)[0]
        while True:
            after, lower = chances(tilt + step)
            if lower <= height + 1e-4 * slope @ step or np.abs(step).max() < 1e-11:
                break
            step = step / 2
        tilt, found, height = tilt + step, after, lower
    return found


def record_keys(data: Microdata, seed: int, record_id: str | None) -> Ints:
    """Return a secret number for each record: by its place in the file, or by its id."""
    if record_id is None:
        return np.random.default_rng(seed).integers(0, KEYS, data.records, dtype=np.int64)
    secret = hashlib.sha256(str(seed).encode()).digest()

    def key(value: Any) -> int:
        digest = hashlib.blake2b(str(value).encode(), key=secret, digest_size=4).digest()
        return int.from_bytes(digest, "big")

    return np.fromiter(map(key, data.column(record_id).to_list()), np.int64, data.records)
