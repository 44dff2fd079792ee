"""Intervals that stay where an estimate can be: a count is not below zero, a share not above 1."""

from __future__ import annotations

from typing import Literal

import numpy as np

from keyhole.kernels.arrays import Floats

__all__ = ["Scale", "interval"]

Scale = Literal["plain", "log", "logit"]


def interval(
    estimate: Floats,
    se: Floats,
    df: Floats,
    *,
    level: float,
    scale: Scale = "plain",
    top: float = 1.0,
) -> tuple[Floats, Floats]:
    r"""Return the bounds of confidence intervals.

    Parameters
    ----------
    estimate, se, df
        Estimates with their standard errors and degrees of freedom, which may be infinite.
    level
        The confidence level.
    scale
        Where the estimate is taken to be normal: as it is, its logarithm, or its logit.
    top
        With `logit`, the largest value an estimate can have.

    Notes
    -----
    With :math:`g` the logarithm or the logit of :math:`q / top`, the interval is
    :math:`g^{-1}(g(q) \pm t_\nu \, g'(q) \, se)`. An estimate at its bound, which has no such
    interval, has no error either where it is a count or a share.

    Examples
    --------
    >>> few = np.array([2.0]), np.array([1.4]), np.array([np.inf])
    >>> [bound.round(2).tolist() for bound in interval(*few, level=0.95)]
    [[-0.74], [4.74]]
    >>> [bound.round(2).tolist() for bound in interval(*few, level=0.95, scale="logit", top=100)]
    [[0.5], [7.64]]
    """
    from scipy.stats import t

    half = t.ppf((1 + level) / 2, df) * se
    if scale == "plain":
        return estimate - half, estimate + half
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            ratio = np.exp(half / estimate)
            low, high = estimate / ratio, estimate * ratio
        else:
            share = estimate / top
            centre, step = np.log(share / (1 - share)), half / (top * share * (1 - share))
            low, high = (top / (1 + np.exp(-(centre + way * step))) for way in (-1, 1))
    inner = np.isfinite(low) & np.isfinite(high)
    return np.where(inner, low, estimate), np.where(inner, high, estimate)
