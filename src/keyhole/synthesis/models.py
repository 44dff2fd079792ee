"""Additive models of one target: canonical variates, regressions and quantiles to match on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from keyhole.core.options import Question
from keyhole.kernels.arrays import Floats, Ints
from keyhole.synthesis.design import Design, plain_name, scores_name

Columns = npt.NDArray[np.intp]
Model = Literal["logistic", "canonical", "linear", "quantile", "tree"]
# A model has at least so many records for each of its columns.
RECORDS_A_COLUMN = 10
# On so many canonical variates a number is matched: where it lies, and how it spreads.
OF_A_NUMBER = 2
# Conditional quantiles on which a skewed target is matched.
QUANTILES = (0.1, 0.5, 0.9)
# Widths over which the check loss is smoothed, step by step, in standard deviations; the error left
# is far below a donor's spacing.
WIDTHS: tuple[float, ...] = (1.0, 0.5, 0.25, 0.25, 0.12, 0.06, 0.06, 0.03, 0.03)
# How often the shares of a category are raked to each predictor, and what is added to its counts.
SWEEPS, STEADY_COUNT = 8, 0.5
# How far a step may go, and how much all records count in it.
FAR, STEADY = (0.0, 0.1, 0.25, 0.5, 1.0), 0.02
TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class CentredGram:
    """Centred sums of products of the design's columns, and the columns' means."""

    products: Floats
    means: Floats
    weight: float


def centred(gram: Floats) -> CentredGram:
    """Centre a Gram matrix whose column 0 is the intercept."""
    weight = float(gram[0, 0])
    means = gram[0] / weight if weight > 0 else np.zeros(len(gram))
    return CentredGram(gram - weight * np.outer(means, means), means, weight)


def canonical_fit(
    moments: CentredGram, predictors: Columns, target: Columns, dimensions: int, ridge: float
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
    moments: CentredGram, predictors: Columns, target: Columns, weights: Floats, ridge: float
) -> Floats:
    """Regress given variates of the target on the predictors; return the coefficients."""
    upper = _root(moments, predictors, ridge)
    half = _solve(upper, moments.products[np.ix_(predictors, target)] @ weights)
    return _solve(upper, half, transposed=True)


def _root(moments: CentredGram, columns: Columns, ridge: float) -> Floats:
    """Return the Cholesky factor of the columns' products with the ridge added."""
    products = moments.products[np.ix_(columns, columns)]
    np.einsum("ii->i", products)[:] += ridge
    root = np.linalg.cholesky(products)
    return root.astype(np.float64, copy=False)


def _solve(lower: Floats, right: Floats, *, transposed: bool = False) -> Floats:
    from scipy.linalg import solve_triangular

    out: Floats = solve_triangular(
        lower, right, lower=True, trans=int(transposed), check_finite=False
    )
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted model: a score for each code of its predictors."""

    starts: Ints
    scores: Floats

    def predict(
        self, codes: npt.NDArray[np.unsignedinteger], rows: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float32]:
        """Predict some rows of the codes."""
        from keyhole.kernels import additive

        places = rows.astype(np.int32, copy=False)
        out: npt.NDArray[np.float32] = additive.score(codes, places, self.starts, self.scores)
        return out


def strongest(
    design: Design,
    moments: CentredGram,
    target: str,
    predictors: Sequence[str],
    ridge: float,
    first: Collection[str] = (),
) -> tuple[str, ...]:
    """Leave out the weakest predictors where there are too few records for all their columns.

    A model with a column for every few records fits its donors better than the recipients. So a
    category of many levels gives way to its level scores, and predictors enter by what each
    explains of the target by itself, for each of its columns, those in `first` before the others.
    """
    room = moments.weight / RECORDS_A_COLUMN
    if len(design.columns(predictors)) <= room:
        return tuple(predictors)
    predictors = [
        scores if (scores := scores_name(n, target)) in design.names else n for n in predictors
    ]
    goal, explained = design.columns([target]), dict.fromkeys(predictors, 0.0)
    total = np.trace(moments.products[np.ix_(goal, goal)])
    for name in predictors if total else ():
        columns = design.columns([name])
        between = moments.products[np.ix_(columns, goal)]
        within = moments.products[np.ix_(columns, columns)] + ridge * np.eye(len(columns))
        share = np.trace(between.T @ np.linalg.solve(within, between)) / total / len(columns)
        explained[name] = float(share)
    chosen: set[str] = set()
    for name in sorted(
        predictors, key=lambda name: (plain_name(name) not in {"", *first}, -explained[name])
    ):
        if len(design.columns([*chosen, name])) <= room:
            chosen.add(name)
    return tuple(name for name in predictors if name in chosen)


def fit_target(
    design: Design, moments: CentredGram, target: str, predictors: Sequence[str], question: Question
) -> tuple[Floats, Fitted]:
    """Fit a target: return the weights of its columns in its variates, and the model of those."""
    if not predictors:
        return np.zeros((0, 1)), Fitted(np.full(len(design.names), -1), np.zeros((1, 1)))
    block = design.blocks[design.names.index(target)]
    columns, goal = design.columns(predictors), design.columns([target])
    if (question.models or {}).get(target) == "linear" and block.is_numeric:
        weights = np.eye(block.width)[:, [0, -1] if block.has_missing else [0]]
        return weights, refit(design, moments, target, predictors, weights, question)
    most = min(block.width - 1, question.dimensions)
    if block.is_numeric:
        most = min(block.width, OF_A_NUMBER + block.has_missing)
    weights, found = canonical_fit(moments, columns, goal, max(1, most), question.ridge)
    return weights, Fitted(*design.scores(predictors, found))


def refit(
    design: Design,
    moments: CentredGram,
    target: str,
    predictors: Sequence[str],
    weights: Floats,
    question: Question,
) -> Fitted:
    """Fit variates of the target that are known already, so that no sign can turn."""
    columns, goal = design.columns(predictors), design.columns([target])
    found = regress(moments, columns, goal, weights, question.ridge)
    return Fitted(*design.scores(predictors, found))


def fit_shares(
    design: Design,
    target: str,
    predictors: Sequence[str],
    rows: npt.NDArray[np.integer],
) -> Fitted:
    """Fit the shares of a category's levels, from which one is drawn: logarithms up to a constant.

    A linear model adds: where hardly anybody is of a race, it predicts less than nobody for some,
    and donors as unlikely elsewhere give it to others. Factors multiply. They are raked until the
    records of each level of each predictor, numbers in bins, have as many of each level of the
    target as there are: a logistic regression that is stopped early.
    """
    from keyhole.kernels import additive

    names = [target, *predictors]
    at = [design.names.index(name) for name in names]
    tables = [design.blocks[v].groups for v in at[1:]]
    goal, *codes = design.codes[rows].T[at]
    groups = np.array([table[own] for table, own in zip(tables, codes, strict=True)])
    size = len(design.blocks[at[0]].values)
    starts = np.cumsum([0, *(int(table.max()) + 1 for table in tables)])
    factors = additive.rake(groups, starts, goal.astype(np.int64), size, SWEEPS, STEADY_COUNT)
    known = np.bincount(goal, minlength=size)
    logs = np.log(np.maximum(np.vstack([known, factors]), TINY))
    first, scores, whole = np.full(len(design.names), -1, dtype=np.int64), [], 0
    for v, table, start in zip(at[1:], tables, starts, strict=False):
        first[v] = whole
        scores.append(logs[1 + start + table] + (logs[0] if v == at[1] else 0.0))
        whole += len(table)
    return Fitted(first, np.concatenate(scores))


def fit_quantiles(
    design: Design,
    target: str,
    predictors: Sequence[str],
    rows: npt.NDArray[np.integer],
    weights: npt.NDArray[np.floating],
    question: Question,
    start: Floats | None = None,
) -> tuple[Floats, Fitted]:
    """Fit conditional quantiles of a number, on which a skewed target is matched.

    Returns the coefficients, the intercept first and a column a quantile, and the model of them.
    From the coefficients of nearly the same records (`start`) it is a step. The check loss of a
    quantile is smoothed to a parabola where a residual is within a width (Chen 2007), so that a
    step of Newton's needs the products of the records within it alone. A little of the products of
    all records keeps the step finite. The width shrinks from step to step.
    """
    small = design.only([target, *predictors])
    observed, own = small.blocks[0].values[small.codes[rows, 0], 0], weights[rows]
    columns = np.append(0, small.columns(predictors))
    square, goal = np.ix_(columns, columns), small.columns([target])[0]
    ridge = question.ridge / 2 * np.diag(np.append(0.0, np.ones(len(columns) - 1)))

    def along(direction: Floats) -> Floats:
        model = Fitted(*small.scores(predictors, direction[1:, None]))
        moved: Floats = direction[0] + model.predict(small.codes, rows)[:, 0]
        return moved

    whole: Floats = np.zeros((small.size, small.size))
    widths: tuple[float, ...] = WIDTHS[-1:]
    if start is None:
        whole, widths = small.gram(rows, weights, small.codes), WIDTHS
        least = np.linalg.solve(whole[square] + ridge, whole[columns, goal])
        start = np.repeat(least[:, None], len(QUANTILES), axis=1)
        start[0] += np.quantile(observed - along(least), QUANTILES)
    slopes, found = np.zeros(len(weights)), start.copy()
    for at, level in enumerate(QUANTILES):
        solved = found[:, at]
        residual = observed - along(solved)
        for width in widths:
            near = small.gram(rows[np.abs(residual) < width], weights, small.codes)
            slopes[rows] = own * (level - 0.5 + np.clip(residual / width, -1, 1) / 2)
            pull = small.totals(rows, slopes)[columns] - ridge @ solved
            curve = (near / (2 * width) + STEADY * whole)[square] + ridge
            direction = np.linalg.solve(curve, pull)
            moved = along(direction)
            losses = []
            for far in FAR:  # the check loss, smoothed within the width
                off = residual - far * moved
                bowl = np.where(
                    np.abs(off) < width, off**2 / (4 * width) + width / 4, np.abs(off) / 2
                )
                losses.append(own @ ((level - 0.5) * off + bowl))
            far = FAR[int(np.argmin(losses))]
            solved, residual = solved + far * direction, residual - far * moved
        found[:, at] = solved
    return found, Fitted(*design.scores(predictors, found[1:]))
