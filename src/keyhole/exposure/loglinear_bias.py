"""Whether a log-linear model is too simple or too rich for the population uniques it predicts.

Ordinary tests of fit say little of a table in which nearly all cells are empty. Skinner & Shlomo
(2008) estimate instead the bias of the very figure that is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from keyhole.exposure.loglinear_models import MOST_CELLS, Model, Patterns
from keyhole.kernels.arrays import Floats

__all__ = ["bias_test"]


# Drawn cells stand for a table that is too large to be gone through.
FEWEST_DRAWS, MOST_DRAWS, DRAWS_A_RECORD = 200_000, 4_000_000, 20
DRAWS_AT_ONCE = 250_000


def bias_test(model: Model, patterns: Patterns, fraction: float) -> tuple[float, float | None]:
    r"""Estimate by how much a model errs in the number of population uniques.

    Parameters
    ----------
    model, patterns
        The model, and what it was fitted to.
    fraction
        The sampling fraction π of the file.

    Returns
    -------
    tuple
        The bias, and the bias over its standard deviation (None where that is 0).

    Notes
    -----
    With λ = μ / π, over all cells, those without a record too,

    .. math:: \hat B = \sum \lambda e^{-\lambda} (1 - \pi) \left\{ (f - \mu)
              + (1 - \pi) \frac{(f - \mu)^2 - f}{2\pi} \right\}

    and with a and b the factors of the two terms the variance Σ a²μ + 2b²μ² (Skinner & Shlomo
    2008). A table of more than a million cells is not gone through: what its cells add is
    estimated from cells drawn by the model, as often as their mean is large, which leaves an
    error of a few hundredths of the standard deviation.

    Examples
    --------
    >>> from keyhole.exposure.loglinear_models import fit
    >>> twice = Patterns(np.array([[0, 0], [1, 1]]), np.array([50, 50]), (2, 2))
    >>> bias, z = bias_test(fit(twice, []), twice, 0.9)
    >>> fit(twice, []).mean(twice.codes).tolist(), z > 0
    ([25.0, 25.0], True)
    """
    base, variance = _sums(model, fraction)
    mean, f = model.mean(patterns.codes), patterns.counts
    a, b = _factors(mean, fraction)
    bias = base + float((f * (a - 2 * b * mean - b) + b * f * f).sum())
    return bias, bias / math.sqrt(variance) if variance > 0 else None


def _factors(mean: Floats, fraction: float) -> tuple[Floats, Floats]:
    rate = mean / fraction
    common = (1 - fraction) * rate * np.exp(-rate)
    return common, common * (1 - fraction) / (2 * fraction)


def _sums(model: Model, fraction: float) -> tuple[float, float]:
    """Sum over all cells what they would add without a record, and the variance."""
    base = variance = 0.0
    for mean, times in _all_cells(model):
        a, b = _factors(mean, fraction)
        base += float((times * (b * mean - a) * mean).sum())
        variance += float((times * (a * a + 2 * b * b * mean) * mean).sum())
    return base, variance


def _all_cells(model: Model) -> Iterator[tuple[Floats, Floats]]:
    """Yield means of cells, and how many cells of the table each stands for."""
    if math.prod(model.sizes) <= MOST_CELLS:
        codes = np.indices(model.sizes).reshape(len(model.sizes), -1).T
        mean = model.mean(codes)
        yield mean, np.ones(len(mean))
        return
    draws = min(max(FEWEST_DRAWS, DRAWS_A_RECORD * model.records), MOST_DRAWS)
    generator = np.random.default_rng(0)
    for start in range(0, draws, DRAWS_AT_ONCE):
        mean = model.mean(model.draw(generator, min(DRAWS_AT_ONCE, draws - start)))
        mean = mean[mean > 0]
        yield mean, model.records / draws / mean
