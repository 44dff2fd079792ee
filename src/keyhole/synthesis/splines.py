"""Restricted cubic splines: cubic between the knots, linear beyond the outer ones."""

from __future__ import annotations

import numpy as np

from keyhole.kernels.arrays import Floats

__all__ = ["find_knots", "spline_basis"]


# From this share of equal values at an end on, the other knots are found without them.
HEAVY = 0.05


def find_knots(values: Floats, count: int = 5) -> Floats:
    """Place knots at quantiles of the values, from the 5th percentile to the 95th.

    Where many values are the lowest or the highest (zero incomes, top-codes) that value is a
    knot by itself, and the others are at quantiles of the rest: heavy ties would otherwise
    swallow several knots. Fewer knots come back where there are too few distinct values.

    Notes
    -----
    Three knots are at the quantiles .1, .5 and .9; more are equally spaced from .05 to .95
    (Harrell 2015, table 2.3, rounded).

    Examples
    --------
    >>> find_knots(np.arange(101.0), 5).round(9).tolist()
    [5.0, 27.5, 50.0, 72.5, 95.0]
    """
    values = np.sort(values[np.isfinite(values)])
    if count < 3 or len(values) == 0:
        return np.zeros(0)
    heavy = [end for end in (values[0], values[-1]) if np.mean(values == end) >= HEAVY]
    inner = values[~np.isin(values, heavy)]
    margin = 0.1 if count == 3 else 0.05
    left = count - len(heavy)
    if len(inner) and left > 0:
        lowest = margin if values[0] not in heavy else 1 / (left + 1)
        highest = 1 - margin if values[-1] not in heavy else left / (left + 1)
        found = np.quantile(inner, np.linspace(lowest, highest, left) if left > 1 else [0.5])
    else:
        found = inner[:0]
    return np.unique(np.concatenate([heavy, found]))


def spline_basis(values: Floats, knots: Floats) -> Floats:
    r"""Return the spline's columns: the value itself, then one nonlinear term a knot but two.

    Notes
    -----
    With knots :math:`t_1 < \dots < t_k` and :math:`(u)_+ = \max(u, 0)`, term j is

    .. math:: \frac{1}{(t_k - t_1)^2}\Big[(x-t_j)_+^3
              - (x-t_{k-1})_+^3 \tfrac{t_k-t_j}{t_k-t_{k-1}}
              + (x-t_k)_+^3 \tfrac{t_{k-1}-t_j}{t_k-t_{k-1}}\Big]

    (Devlin & Weeks 1986; Harrell 2015, section 2.4.5). With fewer than three knots the value
    alone is left.

    Examples
    --------
    >>> spline_basis(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
    [[0.0, 0.0], [1.0, 0.25], [2.0, 1.5]]
    """
    if len(knots) < 3:
        return values[:, None]
    # Cubes are taken of distances in spans, so that very large values cannot overflow.
    span = knots[-1] - knots[0]
    at, x = (knots - knots[0]) / span, (values - knots[0]) / span
    cubes = np.clip(x[:, None] - at, 0, None) ** 3
    last = at[-1] - at[-2]
    terms = (
        cubes[:, :-2]
        - cubes[:, -2:-1] * (at[-1] - at[:-2]) / last
        + cubes[:, -1:] * (at[-2] - at[:-2]) / last
    )
    return np.column_stack([values, terms * span])
