r"""Population uniques and correct matches of a sample, estimated with intervals.

A log-linear model of the key (Skinner & Shlomo 2008) gives the mean of each cell. Real cells vary
about any such mean, the more the smaller it is: their sizes in the population are taken as Poisson
about :math:`\lambda\gamma`, with γ a gamma variable of mean 1 and shape :math:`\alpha(\mu) = \alpha
(\mu / \bar\mu)^\delta`. A sample says little of δ: several are tried, those that Skinner & Shlomo's
test does not reject are kept, and how far all of them differ is part of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.tables import Table
from keyhole.exposure.loglinear_models import (
    Model,
    PatternCounts,
    all_cells,
    bias_factors,
    shrunk_forest,
)
from keyhole.kernels.arrays import Flags, Floats
from keyhole.results import Result, share

SHAPES = (0.0, 0.25, 0.5)
"""δ: 0 if cells of all sizes vary alike, above 0 if small ones vary more."""
CRITICAL = 1.96  # of tests, and of intervals: the 5 % level
# The logarithm of α: from nearly all cells empty to no variation beyond chance.
FEWEST, MOST = -5.0, 9.0
# Cells alike to a twentieth of a logarithm are counted together.
PARTS_OF_ONE = 20
DRAWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Estimated:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ShapeTest:
    """What Skinner & Shlomo's test says of one δ.

    `z` is the estimated error of the population uniques over its standard deviation: well above 0
    there is more variation among cells than the model has, well below 0 less.
    """

    shape: float
    z: float | None
    population_uniques: float
    reidentifications: float


@dataclass(frozen=True, slots=True, repr=False)
class PopulationModel(Result):
    """Population uniques and correct matches by an over-dispersed log-linear model.

    `sample_population_uniques` are the uniques of the file that are unique in the population,
    `population_uniques` those of the population, `reidentifications` the sum of 1 / F over the
    records: how many matches are right if every record is matched to one of its cell. All are None
    where the model is rejected.
    """

    pairs: Annotated[tuple[tuple[str, str], ...], "The pairs of keys that the model has."]
    rejected: bool
    sample_population_uniques: Estimated | None
    population_uniques: Estimated | None
    reidentifications: Estimated | None
    tests: tuple[ShapeTest, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pl.DataFrame:
        """Return one row a figure: estimate, low, high."""
        names = ("estimate", "low", "high")
        rows = [(name, *(getattr(one, x, None) for x in names)) for name, one in self._figures()]
        schema = {"figure": pl.String} | dict.fromkeys(names, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the figures with their intervals."""
        none = ["not estimable", "", ""]
        rows = [
            [name, *(none if one is None else map(_people, (one.estimate, one.low, one.high)))]
            for name, one in self._figures()
        ]
        tested = ", ".join(share(test.z, 1) for test in self.tests)
        notes = [f"Test of the models (bias / sd): {tested}.", *self.notes]
        title = "By a log-linear model of the key"
        return [Table(title, ["figure", "estimate", "95% from", "to"], rows, notes)]

    def _figures(self) -> Iterator[tuple[str, Estimated | None]]:
        yield "uniques that are population uniques", self.sample_population_uniques
        yield "population uniques in all", self.population_uniques
        yield "expected re-identifications", self.reidentifications


def _people(value: float) -> str:
    """Write an expected number of people."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Occupied cells counted together: size, mean, weight of a record, and how many there are."""

    size: Floats
    mean: Floats
    weight: Floats
    count: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """All cells of the table, the empty ones too, counted together by their mean."""

    mean: Floats
    count: Floats


def model_population(
    patterns: PatternCounts, names: tuple[str, ...], weights: Floats
) -> PopulationModel:
    r"""Estimate population uniques and correct matches from the cells of a sample.

    `weights` say by cell how many people a record of it stands for: at least 1.

    Notes
    -----
    With α the shape at the cell, :math:`p = (\alpha + \mu) / (\alpha + \mu w)` and q = 1 - p,

    .. math:: P(F = 1 \mid f = 1) = p^{\alpha + 1}, \qquad
              E[1/F \mid f] = p \int_0^1 s^{f-1} (p + q s)^{\alpha - 1} ds .

    The variance of a sum over records of 1/F is at most the sum of :math:`E[1/F] / f`, of
    population uniques that of their probabilities; added are the squared change where the
    likelihood of α has fallen by a half, and the variance between shapes. The interval is made on
    the logarithm's scale.
    """
    rate = patterns.records / float((patterns.counts * weights).sum())
    model = shrunk_forest(patterns)
    cells, table = _together(patterns, model, weights)
    reference = float(np.log((cells.mean * cells.size * cells.count).sum() / patterns.records))
    tests, every, kept = [], [], []
    for shape in SHAPES:
        alpha, more = _fit(cells, table, shape, reference)
        every.append(
            [_figures_of(cells, _alpha(at, shape, cells.mean, reference)) for at in (alpha, more)]
        )
        at_table = _alpha(alpha, shape, table.mean, reference)
        z = _bias_test(cells, table, at_table, rate)
        sums = every[-1][0][0]
        tests.append(ShapeTest(shape, z, float(sums[0]), float(sums[2])))
        kept.append(abs(z or 0.0) <= CRITICAL)
    pairs = tuple((names[i], names[j]) for i, j in model.pairs)
    found: tuple[Estimated | None, ...] = (None, None, None)
    notes = []
    if any(kept):
        alone = cells.count * (cells.size == 1)
        most = (alone.sum(), (alone * cells.weight).sum(), cells.count.sum())
        found = tuple(_combined(np.array(every), np.array(kept), most))
    else:
        notes.append(
            "not estimable: the test rejects the model, because cells vary in a way it does not "
            "allow for; try other keys or codings"
        )
    mine, whole, right = found
    return PopulationModel(pairs, not any(kept), mine, whole, right, tuple(tests), tuple(notes))


def _together(patterns: PatternCounts, model: Model, weights: Floats) -> tuple[_Cells, _Table]:
    """Count cells together that are alike, in the file and in the whole table."""
    mean, size = model.mean(patterns.codes), patterns.counts.astype(np.float64)
    bins = [np.floor(np.log(one) * PARTS_OF_ONE).astype(np.int64) for one in (mean, weights)]
    _, place = np.unique(np.column_stack([patterns.counts, *bins]), axis=0, return_inverse=True)
    place = place.ravel()
    count = np.bincount(place).astype(np.float64)
    alike = [np.bincount(place, one) / count for one in (size, mean, weights)]
    cells = _Cells(alike[0], alike[1], alike[2], count)
    means, times = (np.concatenate(part) for part in zip(*all_cells(model, DRAWS), strict=True))
    held = means > 0
    means, times = means[held], times[held]
    place = np.floor(np.log(means) * PARTS_OF_ONE).astype(np.int64)
    place -= place.min()
    number = np.bincount(place, times).astype(np.float64)
    total = np.bincount(place, times * means)
    some = number > 0
    return cells, _Table(total[some] / number[some], number[some])


def _alpha(logarithm: float, shape: float, mean: Floats, reference: float) -> Floats:
    alpha: Floats = np.exp(np.clip(logarithm + shape * (np.log(mean) - reference), -20.0, 20.0))
    return alpha


def _fit(cells: _Cells, table: _Table, shape: float, reference: float) -> tuple[float, float]:
    """Return the most likely logarithm of α, and the lower one whose likelihood is e^-½ of it."""
    from scipy.optimize import brentq, minimize_scalar
    from scipy.special import gammaln

    def lost(logarithm: float) -> float:
        at_table = _alpha(logarithm, shape, table.mean, reference)
        at = _alpha(logarithm, shape, cells.mean, reference)
        empty = table.mean - at_table * np.log1p(table.mean / at_table)
        held = gammaln(at + cells.size) - gammaln(at) - cells.size * np.log(at + cells.mean)
        return -float((table.count * empty).sum() + (cells.count * held).sum())

    best = minimize_scalar(lost, bounds=(FEWEST, MOST), method="bounded", options={"xatol": 0.005})
    # Rounded to what the search is good for, so that the last digits of a machine do not matter.
    most, least = round(float(best.x), 2), float(best.fun)
    if lost(FEWEST) < least + 0.5:
        return most, FEWEST
    lower = brentq(lambda at: lost(at) - least - 0.5, FEWEST, most, xtol=0.001)
    return most, round(float(lower), 2)


def _figures_of(cells: _Cells, alpha: Floats) -> Floats:
    """Return the three sums, and below them what bounds their variances."""
    unique = (cells.size == 1) * cells.count * unique_probability(cells.mean, cells.weight, alpha)
    right = cells.count * match_probability(cells.size, cells.mean, cells.weight, alpha)
    sums = (unique, unique * cells.weight, right * cells.size)
    bounds = (unique, unique * cells.weight**2, right)
    return np.array([[float(one.sum()) for one in part] for part in (sums, bounds)])


def _combined(every: Floats, kept: Flags, most: tuple[float, ...]) -> Iterator[Estimated | None]:
    """Average the shapes that are kept; a figure of nobody at all has no interval.

    `every` has by shape, for the most likely α and a lower one, the sums and their bounds; `most`
    is what each figure can be at the most: that of a file whose cells have nobody else in them.
    """
    for place, limit in enumerate(most):
        sums, bounds = every[:, 0, 0, place], every[:, 0, 1, place]
        centre = float(sums[kept].mean())
        if not sums.min() > 0:
            yield Estimated(centre, centre, centre) if centre == 0 else None
            continue
        changed = np.log(np.maximum(every[:, 1, 0, place], 1e-300) / sums)
        with np.errstate(over="ignore"):  # of next to nobody anything can be
            variance = (bounds / sums / sums + changed**2)[kept].mean() + np.log(sums).var(ddof=1)
        reach = math.exp(min(CRITICAL * math.sqrt(variance), 700.0))
        yield Estimated(centre, centre / reach, min(centre * reach, float(limit)))


def unique_probability(mean: Floats, weight: Floats, alpha: Floats) -> Floats:
    """Return P(F = 1 | f = 1) of cells with these means in the sample."""
    probability: Floats = np.exp(
        (alpha + 1) * (np.log1p(mean / alpha) - np.log1p(mean * weight / alpha))
    )
    return probability


def match_probability(size: Floats, mean: Floats, weight: Floats, alpha: Floats) -> Floats:
    r"""Return E[1/F | f] of cells with these sizes and means in the sample.

    With :math:`s = (e^{-y} - p) / q` the integral is that of :math:`s^{f-1} e^{-\alpha y} / q` over
    y from 0 to log 1/p, by Gauss's rule, as far as the integrand matters.
    """
    drop = np.log1p(mean * weight / alpha) - np.log1p(mean / alpha)  # log 1/p
    known = drop <= 1e-12  # nobody else is left to be met
    rest = np.where(known, 1.0, -np.expm1(-drop))
    top = np.minimum(np.where(known, 1.0, drop), 40.0 / (size - 1 + alpha))
    nodes, parts = np.polynomial.legendre.leggauss(32)
    total = np.zeros(len(size))
    for node, part in zip((nodes + 1) / 2, parts / 2, strict=True):
        y = top * node
        s = np.maximum(1 + np.expm1(-y) / rest, 0.0)
        total += part * s ** (size - 1) * np.exp(-alpha * y)
    right: Floats = np.where(known, 1 / size, (1 - rest) / rest * top * total)
    return right


def _bias_test(cells: _Cells, table: _Table, at_table: Floats, rate: float) -> float | None:
    """Return Skinner & Shlomo's bias over its standard deviation, with the variation allowed for.

    As in `bias_test`, less what α adds to the mean of (f - μ)² - f; the variances are those of a
    negative binomial number.
    """
    a, b = bias_factors(table.mean, rate)
    m, phi = table.mean, 1 / at_table
    # Factorial moments of f.
    second = m**2 * (1 + phi)
    third = second * m * (1 + 2 * phi)
    fourth = third * m * (1 + 3 * phi)
    square = fourth + 4 * third + 2 * second - 4 * m * (third + 2 * second)
    square += 4 * m**2 * (second + m) + 2 * m**2 * second - 3 * m**4
    both = third + 2 * second - 2 * m * (second + m) + m**3 - m * (second - m**2)
    spread = a**2 * (m + phi * m**2) + b**2 * (square - (phi * m**2) ** 2) + 2 * a * b * both
    variance = float((table.count * spread).sum())
    bias = float((table.count * (b * m**2 * (1 - phi) - a * m)).sum())
    a, b = bias_factors(cells.mean, rate)
    f = cells.size
    bias += float((cells.count * (a * f + b * (f * f - 2 * f * cells.mean - f))).sum())
    return bias / math.sqrt(variance) if variance > 0 else None
