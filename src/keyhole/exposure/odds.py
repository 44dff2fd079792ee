"""Odds ratios: one level against the rest, by itself and with the other variables held equal.

By itself it is that of a two-by-two table with Woolf's interval. Held equal, it comes from a
logistic model of main effects with Firth's penalty: rare levels are often at risk without
exception, where plain maximum likelihood runs off to infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Floats, Ints

STEPS = 100
# A step that promises less of log-likelihood than this moves no effect by a thousandth of its
# standard error.
CLOSE = 1e-7
FARTHEST = 5.0  # of one step, in log-odds
# A step must gain this share of what the slope promises, or it is halved.
PROMISED = 0.3
# A model with more levels than this would take minutes.
MOST_LEVELS = 1_500
# Share of a level's records that others must leave for it to have an effect of its own.
ALIASED = 1e-9
_FAR = 700.0  # the largest logarithm whose number is finite


@dataclass(frozen=True, slots=True)
class OddsRatio:
    """An odds ratio with its interval; `corrected` where a half was added to the counts."""

    value: float
    low: float
    high: float
    corrected: bool


def crude_odds(counts: Sequence[int], *, level: float = 0.95) -> OddsRatio | None:
    r"""Return the odds ratio of a two-by-two table, or nothing where it has none.

    Parameters
    ----------
    counts
        At risk and not, in the level; at risk and not, in the rest.
    level
        The confidence level of the interval.

    Notes
    -----
    Woolf's interval: :math:`\log(ad/bc) \pm z \sqrt{1/a + 1/b + 1/c + 1/d}`. Where a count is 0,
    a half is added to all four (Haldane 1956, Anscombe 1956).

    Examples
    --------
    >>> ratio = crude_odds([8, 12, 10, 70])
    >>> round(ratio.value, 3), round(ratio.low, 3), round(ratio.high, 3)
    (4.667, 1.533, 14.206)
    """
    table = np.array(counts, dtype=float).reshape(2, 2)
    if (table.sum(axis=0) == 0).any() or (table.sum(axis=1) == 0).any():
        return None
    corrected = bool((table == 0).any())
    table += 0.5 * corrected
    (a, b), (c, d) = np.log(table)
    spread = float(np.sqrt((1 / table).sum()))
    return _ratio(float(a + d - b - c), spread, level, corrected)


def _ratio(centre: float, spread: float, level: float, corrected: bool = False) -> OddsRatio:
    from scipy.special import ndtri

    reach = float(ndtri((1 + level) / 2)) * spread
    value, low, high = (
        float(np.exp(np.clip(x, -_FAR, _FAR))) for x in (centre, centre - reach, centre + reach)
    )
    return OddsRatio(value, low, high, corrected)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A logistic model of main effects.

    `effects` has the log-odds of each level against the variable's reference, all variables one
    after the other from `starts`; `covariance` goes with them. The intercept is not among them.
    `aliased` levels follow from others (missing in two columns at once), and have no effect of
    their own.
    """

    effects: Floats
    covariance: Floats
    aliased: Flags
    starts: Ints
    steps: int


def fit_logistic(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    records: Ints,
    at_risk: Ints,
    *,
    penalised: bool = True,
) -> Fit | None:
    r"""Fit the odds of being at risk by main effects of encoded variables.

    Parameters
    ----------
    codes
        The level of each variable in each pattern.
    sizes
        The number of levels of each variable.
    records, at_risk
        How many records have each pattern, and how many of them are at risk.
    penalised
        Whether Firth's penalty is used; without it the estimates are maximum likelihood.

    Returns
    -------
    Fit or None
        Nothing if the search does not come to an end.

    Notes
    -----
    Newton's steps on the score :math:`\sum x \left(r - m p + m h (1/2 - p)\right)`, with m records
    of which r are at risk, and h the leverage of one (Firth 1993; Heinze & Schemper 2002). The
    reference of a variable is its commonest level; the penalty does not depend on it.

    Examples
    --------
    >>> sex, counts, risky = np.array([0, 1]), np.array([80, 20]), np.array([10, 8])
    >>> fit = fit_logistic([sex], [2], counts, risky, penalised=False)
    >>> round(float(np.exp(fit.effects[1])), 3)
    4.667
    """
    design = _Design.of(codes, sizes, records)
    beta = np.zeros(design.free.sum())
    beta[0] = np.log((at_risk.sum() + 0.5) / (records.sum() - at_risk.sum() + 0.5))
    now = design.at(beta, at_risk, penalised)
    for step in range(1, STEPS + 1):
        move = now.inverse @ now.score
        if float(move @ now.score) < CLOSE:
            return design.fit(beta, now, step)
        move *= min(1.0, FARTHEST / np.abs(move).max())
        # A step must keep its promise; the penalty bends the slope, so that steps overshoot.
        for _ in range(30):
            then = design.at(beta + move, at_risk, penalised)
            promise = PROMISED * float(move @ now.score)
            if then.likelihood >= now.likelihood + promise - 1e-12 * abs(now.likelihood):
                break
            move = move / 2
        now, beta = then, beta + move
        if not np.isfinite(beta).all() or np.abs(beta).max() > _FAR:
            return None
    return None


class _At(NamedTuple):
    likelihood: float
    score: Floats
    inverse: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """One column for the intercept and one a level; references are not free."""

    places: Ints
    starts: Ints
    free: Flags
    aliased: Flags
    records: Ints

    @classmethod
    def of(cls, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int], records: Ints) -> _Design:
        from keyhole.kernels import additive

        starts = 1 + np.cumsum([0, *sizes])
        free = np.ones(starts[-1], dtype=bool)
        places = np.zeros((len(records), len(codes) + 1), dtype=np.int64)
        for v, code in enumerate(codes):
            places[:, v + 1] = starts[v] + code
            held = np.bincount(code, weights=records, minlength=sizes[v])
            free[starts[v] + int(held.argmax())] = False
        gram = additive.indicator_gram(places, records.astype(np.float64), len(free))
        aliased = np.zeros(len(free), dtype=bool)
        aliased[np.flatnonzero(free)[_dependent(gram[np.ix_(free, free)])]] = True
        return cls(places, starts, free & ~aliased, aliased, records)

    def at(self, beta: Floats, at_risk: Ints, penalised: bool) -> _At:
        """Return likelihood, score and information; sums over levels, never a wide matrix."""
        from keyhole.kernels import additive

        every = np.zeros(len(self.free))
        every[self.free] = beta
        eta = every[self.places].sum(axis=1)
        p = 1 / (1 + np.exp(-np.clip(eta, -_FAR, _FAR)))
        held = self.records * p * (1 - p)
        information = additive.indicator_gram(self.places, held, len(every))[
            np.ix_(self.free, self.free)
        ]
        # A level that is settled beyond the precision of numbers would leave a hole.
        information[np.diag_indices_from(information)] += 1e-12
        inverse = np.linalg.inv(information)
        likelihood = float((at_risk * eta - self.records * np.logaddexp(0, eta)).sum())
        left = at_risk - self.records * p
        if penalised:
            likelihood += 0.5 * float(np.linalg.slogdet(information)[1])
            left = left + held * additive.indicator_quadratic(
                self.places, self._padded(inverse)
            ) * (0.5 - p)
        score = additive.indicator_totals(self.places, left, len(every))[self.free]
        return _At(likelihood, score, inverse)

    def _padded(self, inverse: Floats) -> Floats:
        padded = np.zeros((len(self.free), len(self.free)))
        padded[np.ix_(self.free, self.free)] = inverse
        return padded

    def fit(self, beta: Floats, now: _At, steps: int) -> Fit:
        every = np.zeros(len(self.free))
        every[self.free] = beta
        covariance = self._padded(now.inverse)[1:, 1:]
        return Fit(every[1:], covariance, self.aliased[1:], self.starts - 1, steps)


def _dependent(gram: Floats) -> list[int]:
    """Return the columns that follow from those before them, by elimination."""
    left, scale, out = gram.copy(), gram.diagonal().copy(), []
    for column in range(len(left)):
        if left[column, column] <= ALIASED * scale[column]:
            out.append(column)
            continue
        row = left[column] / np.sqrt(left[column, column])
        left[column:, column:] -= np.outer(row[column:], row[column:])
    return out


def level_odds(
    fit: Fit, variable: int, records: Sequence[int] | Ints, *, level: float = 0.95
) -> list[OddsRatio | None]:
    r"""Return the adjusted odds ratio of each level of a variable against the rest of it.

    Parameters
    ----------
    fit
        What `fit_logistic` returned.
    variable
        Which of the variables.
    records
        How many records have each level.
    level
        The confidence level of the intervals.

    Notes
    -----
    :math:`\beta_l - \sum_{j \ne l} \frac{n_j}{n - n_l} \beta_j`, so that no reference need be
    chosen, and a variable of two levels has the usual odds ratio. Aliased levels have none, and
    are not part of the rest.
    """
    first, end = int(fit.starts[variable]), int(fit.starts[variable + 1])
    own = ~fit.aliased[first:end]
    held = np.asarray(records, dtype=float)[own]
    out: list[OddsRatio | None] = [None] * (end - first)
    if len(held) < 2:
        return out
    contrast = -held[None, :] / (held.sum() - held)[:, None]
    np.fill_diagonal(contrast, 1.0)
    centre = contrast @ fit.effects[first:end][own]
    block = fit.covariance[first:end, first:end][np.ix_(own, own)]
    spread = np.sqrt(np.maximum(0.0, ((contrast @ block) * contrast).sum(axis=1)))
    for place, c, s in zip(np.flatnonzero(own), centre, spread, strict=True):
        out[place] = _ratio(float(c), float(s), level)
    return out
