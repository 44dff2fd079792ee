"""Canonical variates of a target and its predictors, found from a Gram matrix alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Floats

__all__ = ["Moments", "canonical_fit", "centred", "regress"]

Columns = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Centred sums of products of the design's columns, and the columns' means."""

    products: Floats
    means: Floats
    weight: float


def centred(gram: Floats) -> Moments:
    """Centre a Gram matrix whose column 0 is the intercept."""
    weight = float(gram[0, 0])
    means = gram[0] / weight if weight > 0 else np.zeros(len(gram))
    return Moments(gram - weight * np.outer(means, means), means, weight)


def canonical_fit(
    moments: Moments,
    predictors: Columns,
    target: Columns,
    dimensions: int,
    ridge: float,
) -> tuple[Floats, Floats]:
    r"""Find the target's canonical variates, and regress them on the predictors.

    Returns
    -------
    The weights of the target's columns in its variates, which have unit variance, and the
    coefficients of the predictors' columns: they predict the variates.

    Notes
    -----
    With the sums of products :math:`S` of predictors x and target y, ridges added to the
    diagonals and Cholesky factors :math:`S_{xx}=LL'`, :math:`S_{yy}=MM'`, the singular values of
    :math:`L^{-1}S_{xy}M'^{-1} = UDV'` are the canonical correlations, and :math:`M'^{-1}V` the
    weights up to scale. The sign makes the largest weight positive.
    """
    upper, lower = _root(moments, predictors, ridge), _root(moments, target, ridge)
    half = _solve(upper, moments.products[np.ix_(predictors, target)])
    _, _, right = np.linalg.svd(_solve(lower, half.T).T, full_matrices=False)
    weights = _solve(lower, right[:dimensions].T, transposed=True) * np.sqrt(moments.weight)
    largest = np.abs(weights).argmax(axis=0)
    weights *= np.sign(weights[largest, np.arange(weights.shape[1])])
    return weights, _solve(upper, half @ weights, transposed=True)


def regress(
    moments: Moments, predictors: Columns, target: Columns, weights: Floats, ridge: float
) -> Floats:
    """Regress given variates of the target on the predictors; return the coefficients."""
    upper = _root(moments, predictors, ridge)
    half = _solve(upper, moments.products[np.ix_(predictors, target)] @ weights)
    return _solve(upper, half, transposed=True)


def _root(moments: Moments, columns: Columns, ridge: float) -> Floats:
    """Return the Cholesky factor of the columns' products with the ridge added."""
    products = moments.products[np.ix_(columns, columns)]
    root = np.linalg.cholesky(products + ridge * np.eye(len(columns)))
    return root.astype(np.float64, copy=False)


def _solve(lower: Floats, right: Floats, *, transposed: bool = False) -> Floats:
    from scipy.linalg import solve_triangular

    out: Floats = solve_triangular(
        lower, right, lower=True, trans=int(transposed), check_finite=False
    )
    return out
