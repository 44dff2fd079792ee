"""Cell keys: noise drawn from the records of a cell, so that the same cell always has the same.

Every record has a secret number, its record key. The keys of a cell's records, added up without
their carry, are the cell key, which looks up the noise in a perturbation table (Fraser & Wooton
2005; Thompson, Broadfoot & Elazar 2013). The same records have the same noise in every table, so
that asking again brings nothing. Cells are perturbed one by one: totals are totals with noise of
their own, not sums.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Floats, Ints

KEYS = 1 << 32
"""Record keys are whole numbers below this."""
EXACT = 1e-11


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

    Examples
    --------
    >>> made = PerturbationTable(largest=2, variance=1.0, never=1)
    >>> made.noise.tolist()
    [-2, -1, 0, 1, 2]
    >>> made.probabilities[2].round(3).tolist()  # a cell of two people is never published as 1
    [0.155, 0.0, 0.572, 0.238, 0.036]
    >>> made.probabilities[-1].round(3).tolist()
    [0.064, 0.245, 0.383, 0.245, 0.064]
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
        if np.abs(slope).max() < EXACT:
            break
        curve = (moments * found) @ moments.T - np.outer(moments @ found, moments @ found)
        step = np.linalg.lstsq(curve, -slope)[0]
        while True:
            after, lower = chances(tilt + step)
            if lower <= height + 1e-4 * slope @ step or np.abs(step).max() < EXACT:
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
