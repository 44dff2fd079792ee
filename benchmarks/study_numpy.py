"""The suspected pairs as a careful user of NumPy would find them: all pairs, a block at a time.

A price is a whole number of units and held in a byte; only the distances of euclidean need
floats, in single precision, which single out the pairs that are then scored exactly. The rivals
differ in how they price a block of PUF records against all EIF records.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.rivals import CORES
from benchmarks.study_answers import Found, joined, keep_ranks
from benchmarks.study_files import ALPHA, CAP
from keyhole.kernels.grading import FARTHEST, LOGISTIC, RELATIVE_BAND, TABLE
from keyhole.reidentification.scores import Costs, Graded
from keyhole.reidentification.variables import LinkCodes

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Singles = npt.NDArray[np.float32]
Array = npt.NDArray[Any]

GROUPS = 64
SLACK = 1e-5
"""More than what single precision loses of a total of 8 at most."""
MOST = np.float32(np.tanh(FARTHEST / 2) ** 2)
NEAR = np.float32(1 + 1e-6)
"""Whole numbers within a share of another: less than one of them, more than rounding."""


class Scorer:
    """Scores all pairs of a block of PUF records, and keeps the best of each."""

    name: ClassVar[str]
    kind: ClassVar[str] = "numpy"
    block: ClassVar[int] = 1 << 20
    """Pairs of a block, few enough to stay in the cache."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self.width = costs, len((costs.counted or costs.graded)[0].eif)
        self.unit = _unit(costs) or ALPHA * ALPHA
        self.measured = [g for g in costs.graded if g.kind == LOGISTIC]
        self.squares = [_Measured(graded) for graded in self.measured]
        self.stepped = [g for g in costs.graded if g.kind != LOGISTIC]
        self.differ, self.absent = (round(p / self.unit) for p in (costs.differ, costs.absent))

    def find(self, queries: int) -> Found:
        """Find the suspected pairs of the first so many PUF records."""
        rows = max(1, self.block // self.width)
        blocks = [slice(at, min(at + rows, queries)) for at in range(0, queries, rows)]
        with threadpool_limits(1), ThreadPoolExecutor(CORES) as pool:
            return joined(list(pool.map(self._block, blocks)))

    def units(self, block: slice) -> Bytes:
        """Price the counted and the stepped variables."""
        raise NotImplementedError

    def _block(self, block: slice) -> Found:
        units = self.units(block)
        if self.measured:
            totals = units.astype(np.float32)
            totals *= np.float32(self.unit)
            for square in self.squares:
                square.add(totals, block)
            row, eif = _near(totals, self._beyond(), SLACK)
        else:
            row, eif = _near(units, int(np.ceil(self._beyond() / self.unit)))
        keys = self._exact(row + block.start, eif, units[row, eif])
        below = keys < self.costs.bound
        return keep_ranks(row[below] + block.start, eif[below], keys[below])

    def _beyond(self) -> float:
        """The least total of prices that is not suspected, without what every pair costs."""
        score = self.costs.bound / self.costs.scale
        return float((score**2 if self.costs.root else score) - self.costs.base)

    def _exact(self, puf: Ints, eif: Ints, units: Bytes) -> Ints:
        """Score single pairs in double precision."""
        total = units * self.unit + self.costs.base
        for graded in self.measured:
            gap = np.minimum(np.abs(graded.puf[puf] - graded.eif[eif]), FARTHEST)
            total += np.where(np.isnan(gap), graded.absent, np.tanh(gap / 2) ** 2)
        root = np.sqrt(total) if self.costs.root else total
        keys: Ints = np.rint(root * self.costs.scale).astype(np.int64)
        return keys


def _near(totals: Array, bound: float, slack: float = 0) -> tuple[Ints, Ints]:
    """Return rows and columns of a block where the kept pairs are, and few others.

    The sixth lowest of the lowest of groups of columns is no less than the sixth lowest of all,
    whose rank is not kept: what lies below it is enough.
    """
    rows, columns = totals.shape
    width, lowest = columns // GROUPS, totals
    if width > CAP:
        lowest = totals[:, : GROUPS * width].reshape(rows, GROUPS, width).min(axis=1)
        lowest = np.concatenate([lowest, totals[:, GROUPS * width :]], axis=1)
    limit = np.full(rows, bound, np.float64)
    if lowest.shape[1] > CAP:
        limit = np.minimum(limit, np.partition(lowest, CAP, axis=1)[:, CAP])
    limits = (limit + slack).astype(totals.dtype)
    # Flat, since that is where NumPy finds few among many quickly.
    places = np.flatnonzero(totals < limits[:, None])
    return places // columns, places % columns


class _Measured:
    """A variable whose price is the square of 2 e^x / (1 + e^x) - 1 for the distance x.

    With x = a - b, A = e^a and B = e^b that is (A - B) / (A + B): no exponential a pair.
    """

    def __init__(self, graded: Graded) -> None:
        self.gone = np.isnan(graded.puf)
        self.eif_known = (~np.isnan(graded.eif)).astype(np.float32)
        self.puf, self.eif = (
            np.exp(np.nan_to_num(v)).astype(np.float32) for v in (graded.puf, graded.eif)
        )
        self.absent = np.float32(graded.absent)
        self.eif_absent = (1 - self.eif_known) * self.absent

    def add(self, totals: Singles, block: slice) -> None:
        """Add the prices of a block."""
        left = self.puf[block, None]
        out = left - self.eif
        out /= left + self.eif
        out *= out
        np.minimum(out, MOST, out=out)
        out *= self.eif_known
        out += self.eif_absent
        out[self.gone[block]] = self.absent
        totals += out


class Broadcast(Scorer):
    """Codes compared, differences banded, tables looked up: a block of bytes a variable."""

    name: ClassVar[str] = "NumPy, broadcast"

    def __init__(self, costs: Costs) -> None:
        super().__init__(costs)
        self.codes = [_smallest(category) for category in costs.counted]
        self.puf_gone, self.eif_gone = (_missing_bits(costs, file) for file in ("puf", "eif"))

    def units(self, block: slice) -> Bytes:
        """Price the counted and the stepped variables."""
        units = np.zeros((block.stop - block.start, self.width), np.uint8)
        self.add_counted(units, block)
        for graded in self.stepped:
            units += _steps(graded.puf[block], graded, self.unit)
        return units

    def add_counted(self, units: Bytes, block: slice) -> None:
        """Add what differs, then take back from what is missing, which was taken to differ."""
        for puf, eif in self.codes:
            units += (puf[block, None] != eif).view(np.uint8)
        units *= np.uint8(self.differ)
        spare = np.uint8(self.differ - self.absent)
        if spare and self.puf_gone.any():
            units -= np.bitwise_count(self.puf_gone[block, None] | self.eif_gone) * spare
        elif spare:
            units -= np.bitwise_count(self.eif_gone) * spare


def _missing_bits(costs: Costs, file: str) -> Array:
    """Return by record a bit for each counted variable that is missing."""
    bits = [
        (getattr(c, file) == c.missing).astype(np.uint32) << k for k, c in enumerate(costs.counted)
    ]
    together: Array = np.bitwise_or.reduce(bits)
    return together


def _smallest(category: LinkCodes) -> tuple[Array, Array]:
    """Return the codes in as few bytes as they need; missing ones agree with nothing."""
    kind = np.min_scalar_type(category.missing + 1)
    eif = np.where(category.eif == category.missing, category.missing + 1, category.eif)
    return category.puf.astype(kind), eif.astype(kind)


def _unit(costs: Costs) -> float:
    """Return the greatest number of which all prices are multiples; 0 if none is sensible."""
    prices = {costs.differ, costs.absent} if costs.counted else set()
    for graded in costs.graded:
        if graded.kind == LOGISTIC:
            return 0.0
        prices |= {graded.absent, *graded.prices, *np.unique(graded.table).tolist()}
    whole = [Fraction(price).limit_denominator(1000) for price in prices if price > 0]
    denominator = math.lcm(*(one.denominator for one in whole))
    return math.gcd(*(int(one * denominator) for one in whole)) / denominator


def _steps(puf: Array, graded: Graded, unit: float) -> Bytes:
    """Price a variable with bands or a table."""
    absent = np.uint8(round(graded.absent / unit))
    if graded.kind == TABLE:
        table = np.pad(
            np.rint(graded.table / unit).astype(np.uint8), (0, 1), constant_values=absent
        )
        left, right = (
            np.where(np.isnan(v), len(graded.table), v).astype(np.intp) for v in (puf, graded.eif)
        )
        return np.take(table[left], right, axis=1)
    prices = np.rint(np.array(graded.prices) / unit).astype(np.uint8)
    left, right = puf[:, None].astype(np.float32), graded.eif.astype(np.float32)
    gaps = np.abs(left - right)
    out = np.full(gaps.shape, prices[-1])
    for limit, step in zip(graded.limits, np.diff(prices), strict=True):
        most = np.abs(left) * np.float32(limit) if graded.kind == RELATIVE_BAND else limit
        out -= (gaps <= most * NEAR).view(np.uint8) * step
    if absent != prices[-1]:  # else it is right already: not a number is within nothing
        out[:, np.isnan(right)] = absent
        out[np.isnan(puf)] = absent
    return out


class OneHot(Broadcast):
    """Matrix products of one-hot codes count the agreements; long codes are compared."""

    name: ClassVar[str] = "NumPy, one-hot products"
    most_codes: ClassVar[int] = 64

    def __init__(self, costs: Costs) -> None:
        super().__init__(costs)
        short = [c for c in costs.counted if c.size <= self.most_codes]
        self.codes = [_smallest(c) for c in costs.counted if c.size > self.most_codes]
        self.short = np.float32(len(short))
        self.puf, self.eif = (
            np.hstack([_one_hot(getattr(c, file), c.missing) for c in short])
            for file in ("puf", "eif")
        )

    def add_counted(self, units: Bytes, block: slice) -> None:
        """As by comparing, with the agreements of short codes from a product."""
        agreed = self.puf[block] @ self.eif.T
        np.subtract(self.short, agreed, out=units, casting="unsafe")
        super().add_counted(units, block)


def _one_hot(codes: Array, missing: int) -> Singles:
    hot: Singles = (codes[:, None] == np.arange(missing)).astype(np.float32)
    return hot
