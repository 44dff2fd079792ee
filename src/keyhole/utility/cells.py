"""Estimates of the cells of a table and their variances, on one implicate as if it were the file.

Records are taken as drawn with replacement, each with its weight: what a public file lets an
analyst assume when strata and clusters are not released.
"""

from __future__ import annotations

import numpy as np

from keyhole.kernels.arrays import Floats, Ints

__all__ = ["cell_counts", "cell_means", "cell_shares", "cell_totals"]

Estimates = tuple[Floats, Floats]


def cell_counts(cells: Ints, size: int) -> Estimates:
    r"""Count the records of each cell.

    Notes
    -----
    With :math:`\hat p` the share of a cell among n records, the count is :math:`n \hat p` and
    its variance :math:`n \hat p (1 - \hat p)`.

    Examples
    --------
    >>> cell_counts(np.array([0, 0, 0, 1]), 2)
    (array([3., 1.]), array([0.75, 0.75]))
    """
    counts = np.bincount(cells, minlength=size).astype(np.float64)
    return counts, counts * (1 - counts / len(cells))


def cell_totals(cells: Ints, size: int, weights: Floats) -> Estimates:
    r"""Add up the weights of each cell.

    Notes
    -----
    With :math:`z_i = w_i` for records of the cell and 0 for others, the total is
    :math:`\sum z_i` and its variance :math:`\frac{n}{n-1} \sum (z_i - \bar z)^2`; not a number
    for one record.

    Examples
    --------
    >>> cell_totals(np.array([0, 0, 0, 1]), 2, np.full(4, 10.0))
    (array([30., 10.]), array([100., 100.]))
    """
    n = len(cells)
    totals: Floats = np.bincount(cells, weights, size).astype(np.float64)
    squares = np.bincount(cells, weights**2, size) - totals**2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return totals, np.maximum(squares, 0.0) * np.float64(n) / np.float64(n - 1)


def cell_shares(cells: Ints, groups: Ints, weights: Floats) -> Estimates:
    r"""Return the share of each cell in the weight of its group of cells.

    Parameters
    ----------
    cells
        The cell of each record.
    groups
        The group of each cell.
    weights
        The weight of each record.

    Notes
    -----
    The share is the mean of an indicator over the records of the group, and its variance is
    linearised as that of a mean: :math:`\frac{n}{n-1} \sum e_i^2` with
    :math:`e_i = w_i (d_i - \hat p) / \sum w_j` over the group.

    Examples
    --------
    >>> found = cell_shares(np.array([0, 0, 0, 1]), np.array([0, 0]), np.ones(4))
    >>> found[0].tolist(), found[1].round(4).tolist()
    ([0.75, 0.25], [0.0625, 0.0625])
    """
    n, size = len(cells), len(groups)
    total = np.bincount(cells, weights, size)
    squares = np.bincount(cells, weights**2, size)
    whole, spread = (np.bincount(groups, one)[groups] for one in (total, squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = total / whole
        errors = squares * (1 - share) ** 2 + (spread - squares) * share**2
        return share, errors / whole**2 * np.float64(n) / np.float64(n - 1)


def cell_means(cells: Ints, size: int, values: Floats, weights: Floats) -> Estimates:
    r"""Average a variable in each cell, over the records on which it is not missing.

    Notes
    -----
    The mean is the ratio :math:`\bar y = \sum w_i y_i / \sum w_i` over the records of the cell;
    linearised, its variance is :math:`\frac{n}{n-1} \sum e_i^2` with
    :math:`e_i = w_i (y_i - \bar y) / \sum w_j`, n the records of the file. The mean is not a
    number in a cell without records, nor is the variance in one with a single record.

    Examples
    --------
    >>> found = cell_means(np.array([0, 0, 1]), 2, np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> found[0].tolist(), found[1].tolist()
    ([2.0, 5.0], [0.75, nan])
    """
    there = ~np.isnan(values)
    n, cells, values, weights = len(cells), cells[there], values[there], weights[there]
    held = np.bincount(cells, weights > 0, size)
    total = np.bincount(cells, weights, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(cells, weights * values, size) / total
        shares = weights * (values - mean[cells]) / total[cells]
        variance = np.bincount(cells, shares**2, size) * np.float64(n) / np.float64(n - 1)
    return np.where(held > 0, mean, np.nan), np.where(held > 1, variance, np.nan)
