"""Costs of a pair of records under each metric (Singer & Dajani, section 2.2).

Taxicab, euclidean and adhoc are additive: each linking variable has a price for a pair, and the
metric is a function of the sum. So one search serves all three. Prices are turned round where a
high score is good: the cost of an adhoc pair is what it lacks of the highest score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from keyhole.core.options import Question
from keyhole.kernels.arrays import Floats, Ints
from keyhole.kernels.grading import BAND, FARTHEST, LOGISTIC, TABLE
from keyhole.reidentification.variables import LinkCodes, LinkValues, quintiles, z_scores

BEST_SCORE = 5.0
# Scores are compared to nine decimals.
DECIMALS = 10**9


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """A linking variable whose price depends on the two values.

    `name`: the variable. `puf`, `eif`: values, not a number for missing; for a table the rows and
    columns of it. `absent`: the price where either is missing. `kind`: how it is graded, see
    `keyhole.kernels.grading`. `limits`, `prices`: the bands: the price up to each distance, the
    last one for all beyond. `table`: the price by value of the PUF and of the EIF.
    """

    name: str
    puf: Floats
    eif: Floats
    absent: float
    kind: int = LOGISTIC
    limits: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()
    table: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def price(self, puf: Floats, eif: Floats) -> Floats:
        """Return what known values cost: what they lack of the highest score, or the distance."""
        if self.kind == TABLE:
            return self.table[puf.astype(np.int64), eif.astype(np.int64)]
        gap = np.abs(puf - eif)
        if self.kind == LOGISTIC:
            return np.asarray(np.tanh(np.minimum(gap, FARTHEST) / 2) ** 2)
        if self.kind != BAND:
            with np.errstate(divide="ignore", invalid="ignore"):
                gap = np.where(gap > 0, gap / np.abs(puf), 0.0)
        # To nine decimals, as the search compares them.
        bands = np.searchsorted(self.limits, np.rint(gap * DECIMALS) / DECIMALS, side="left")
        return np.asarray(np.array(self.prices)[bands], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The prices of all linking variables, and how a total becomes a score.

    `counted`: variables that agree, differ or are missing at the same price each. `graded`: the
    other variables. `differ`, `absent`: the prices of the counted ones. `base`: what every pair
    costs. `root`: whether the score is the root of the total. `divisor`: what it is divided by for
    the score that is ranked; ties are to nine decimals. `threshold`: the score to be below, or for
    adhoc above. `bound`: the first key (a billion times the ranked score) that is not suspected.
    `warnings`: what the user should know of prices and threshold.
    """

    counted: tuple[LinkCodes, ...]
    graded: tuple[Graded, ...]
    differ: float
    absent: float
    threshold: float
    bound: int
    base: float = 0.0
    root: bool = False
    divisor: float = 1.0
    warnings: tuple[str, ...] = ()

    @property
    def eif_records(self) -> int:
        """The records of the EIF."""
        return len((self.counted or self.graded)[0].eif)

    @property
    def scale(self) -> float:
        """What a total, or its root, is multiplied by for its key."""
        return DECIMALS / self.divisor

    def by_name(self) -> dict[str, LinkCodes | Graded]:
        """Return all variables by their names."""
        variables: list[LinkCodes | Graded] = [*self.counted, *self.graded]
        return {variable.name: variable for variable in variables}

    def keys(self, puf: Ints, eif: Ints) -> Ints:
        """Return the keys of pairs, given by record numbers: a billion times the ranked score."""
        total = np.full(len(puf), self.base)
        for counted in self.counted:
            one, other = counted.puf[puf], counted.eif[eif]
            gone = (one == counted.missing) | (other == counted.missing)
            total += np.where(gone, self.absent, np.where(one != other, self.differ, 0.0))
        for graded in self.graded:
            first, second = graded.puf[puf], graded.eif[eif]
            gone = np.isnan(first) | np.isnan(second)
            cost = np.full(len(puf), graded.absent)
            cost[~gone] = graded.price(first[~gone], second[~gone])
            total += cost
        return np.rint(self.scale * (np.sqrt(total) if self.root else total)).astype(np.int64)

    def puf_base(self) -> Floats:
        """Return by PUF record what its missing values cost with anybody."""
        records = len((self.counted or self.graded)[0].puf)
        base = np.full(records, self.base)
        gone = np.zeros(records)
        for category in self.counted:
            gone += category.puf == category.missing
        base += gone * self.absent
        for graded in self.graded:
            base += np.where(np.isnan(graded.puf), graded.absent, 0.0)
        return base


def taxicab(variables: Sequence[LinkCodes | LinkValues], question: Question) -> Costs:
    """Price for taxicab: 0 same, 1 different, alpha missing; suspected below alpha / 2.

    The mean over v variables is ranked as the sum, which is exact.
    """
    counted = [v if isinstance(v, LinkCodes) else quintiles(v, question.cuts) for v in variables]
    alpha = question.alpha
    most = Fraction(str(alpha)) * len(variables) / 2 * DECIMALS
    return Costs(tuple(counted), (), 1.0, alpha, alpha / 2, math.ceil(most))


def euclidean(variables: Sequence[LinkCodes | LinkValues], question: Question) -> Costs:
    """Price for euclidean: squares of the scores; the root of the sum over v is the metric.

    Suspected below alpha / 2 (`published`) or alpha / sqrt(2 v) (`derived`).
    """
    scaled = [v if isinstance(v, LinkCodes) else z_scores(v) for v in variables]
    counted = tuple(v for v in scaled if isinstance(v, LinkCodes))
    alpha, count = question.alpha, len(variables)
    missing = alpha * alpha
    graded = tuple(
        Graded(v.name, v.puf, v.eif, missing) for v in scaled if isinstance(v, LinkValues)
    )
    derived, largest = alpha / math.sqrt(2 * count), 1 / math.sqrt(count)
    threshold = alpha / 2 if question.threshold == "published" else derived
    bound = max(1, round(threshold * DECIMALS))  # a score of 0 is below every threshold
    warning = (
        f"The threshold {threshold:.4g} lets every pair pass, since euclidean is at most "
        f"1 / sqrt(v) = {largest:.4g} for {count} variables: only the ranks "
        f"choose. Threshold 'derived' is {derived:.4g}."
    )
    return Costs(
        counted, graded, 1.0, missing, threshold, bound, root=True, divisor=count,
        warnings=(warning,) if threshold > largest else (),
    )  # fmt: skip


def additive(
    variables: Sequence[LinkCodes | Graded], lacking: float, warnings: Sequence[str] = ()
) -> Costs:
    """Price for adhoc: what a pair lacks of the highest score; suspected above 5 v / 2."""
    counted = tuple(v for v in variables if isinstance(v, LinkCodes))
    graded = tuple(v for v in variables if isinstance(v, Graded))
    threshold = BEST_SCORE * len(variables) / 2
    bound = round(threshold * DECIMALS)
    return Costs(
        counted, graded, BEST_SCORE, BEST_SCORE, threshold, bound, base=lacking,
        warnings=tuple(warnings),
    )  # fmt: skip
