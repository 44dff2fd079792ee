"""Propensity score (pMSE): how well a model tells synthetic records from original ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import Named, figure
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats
from keyhole.results import Result
from keyhole.utility.figures import amount, sentences
from keyhole.utility.implicates import load_sides, numbers, physical, shared_codes

# Categories beyond the most frequent ones are taken as one: each term costs time and a parameter.
MOST_LEVELS = 50
MOST_STEPS = 30
CLOSE = 1e-10
# A score below this is nothing but rounding.
ROUNDING = 1e-18


@dataclass(frozen=True, slots=True, repr=False)
class Propensity(Result):
    """How well a logistic model of main effects tells synthetic records from original ones.

    `pmse` has for each implicate the mean squared difference between the predicted probability of
    being synthetic and the share of synthetic records; `expected` is what it would be if the
    synthetic records were all drawn anew from the distribution of the original ones (Snoke et al.
    2018), and `between` the mean pMSE between two implicates, None for one.
    """

    pmse: tuple[float, ...]
    expected: float
    parameters: int
    between: Annotated[float | None, Named("between_implicates")]
    variables: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    @figure()
    def mean(self) -> float:
        """The pMSE averaged over the implicates."""
        return float(np.mean(self.pmse))

    @property
    @figure()
    def ratio(self) -> float | None:
        """The mean pMSE over the expected one; None if the model has no terms."""
        return self.mean / self.expected if self.expected > 0 else None

    @property
    @figure()
    def standardised(self) -> float | None:
        """The mean pMSE less the expected one, in standard deviations of one under the null."""
        spread = np.sqrt(2 / (self.parameters - 1)) * self.expected if self.expected > 0 else 0.0
        return float((self.mean - self.expected) / spread) if spread > 0 else None

    @property
    @figure()
    def ratio_to_pairs(self) -> float | None:
        """The mean pMSE over half of that between two implicates; None where there is none.

        Two implicates differ by the chance of both, an implicate and the original by that of one.
        """
        return 2 * self.mean / self.between if self.between else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row an implicate."""
        rows = {"implicate": range(1, len(self.pmse) + 1), "pmse": self.pmse}
        frame = pl.DataFrame(rows).with_columns(expected=pl.lit(self.expected))
        return frame.with_columns(ratio=pl.col("pmse") / pl.col("expected")).fill_nan(None)

    def tables(self) -> list[Table]:
        """Return the score as a table."""
        rows = [
            ["mean pMSE", amount(self.mean)],
            ["expected if indistinguishable", amount(self.expected)],
            ["ratio", amount(self.ratio)],
            ["standardised", amount(self.standardised)],
            ["mean pMSE between implicates", amount(self.between)],
            ["ratio to half of that", amount(self.ratio_to_pairs)],
            ["parameters", f"{self.parameters:,}"],
        ]
        notes = sentences(self.notes)
        return [Table("Propensity score", ["figure", "value"], rows, notes)]


def propensity_score(
    original: Any,
    implicates: Any,
    *,
    variables: str | Sequence[str] | None = None,
    pairs: bool = True,
) -> Propensity:
    r"""Score how well synthetic records can be told from original ones.

    Parameters
    ----------
    original, implicates
        The data before synthesis, and the synthetic: frames, files, a folder, or a list of them.
    variables
        The variables of the model; all the original's if left out, except free text. Measures
        and dates enter as numbers, the others by their categories; a missing number has a term
        of its own.
    pairs
        Compare each two implicates as well.

    Notes
    -----
    With N records in all, c the share of synthetic ones, :math:`\hat p_i` the predicted
    probabilities and k parameters (Snoke et al. 2018),

    .. math:: pMSE = \frac{1}{N} \sum (\hat p_i - c)^2, \quad
              E_0(pMSE) = (k - 1) \frac{(1 - c)^2 c}{N}

    The expectation is for synthetic records that are all drawn anew, given the original. Those
    of a partial synthesis are mostly the original ones, so that the ratio is below 1 even where
    the changed ones give themselves away. The pMSE between two implicates, which leave the same
    records as they were, is then the better yardstick: half of it is what an implicate would
    have against the original if nothing but chance were between them.

    Examples
    --------
    >>> before = pl.DataFrame({"sex": ["f"] * 5 + ["m"] * 5})
    >>> after = pl.DataFrame({"sex": ["f"] * 4 + ["m"] * 6})
    >>> found = propensity_score(before, after)
    >>> round(found.mean, 6), found.expected, found.parameters
    (0.002525, 0.00625, 2)
    """
    data = load_sides(original, implicates, variables)
    if variables is None:
        kept = [one.name for one in data[0].variables if one.kind != "text"]
        data = [one.select(kept) for one in data]
    if not data[0].names:
        raise ColumnError("variables must name at least one variable. Got none instead.")
    design, notes = _design(data)
    ends = np.cumsum([0, *(one.records for one in data)])
    blocks = [design[low:high] for low, high in itertools.pairwise(ends)]
    after = range(1, len(data))
    pmse, expected, parameters = zip(*(_pmse(blocks[0], blocks[i]) for i in after), strict=True)
    two = itertools.combinations(after if pairs else (), 2)
    both = [_pmse(blocks[i], blocks[j])[0] for i, j in two]
    between = float(np.mean(both)) if both else None
    figures = (pmse, float(np.mean(expected)), max(parameters), between)
    return Propensity(*figures, data[0].names, tuple(notes))


def _design(data: Sequence[Microdata]) -> tuple[Any, list[str]]:
    """Return the terms of all files below each other as a sparse matrix, the intercept first."""
    from scipy.sparse import csr_array, hstack

    total = sum(one.records for one in data)
    terms, notes = [csr_array(np.ones((total, 1)))], []
    for variable in data[0].variables:
        if variable.kind in ("measure", "date"):
            terms += [csr_array(term[:, None]) for term in _number_terms(data, variable.name)]
            continue
        codes = shared_codes(data, variable.name)
        ranked = np.argsort(-np.bincount(codes.values, minlength=codes.size), kind="stable")
        places = np.empty(codes.size, dtype=np.int64)
        # The most frequent category has no term: the others are compared with it.
        places[ranked] = np.minimum(np.arange(codes.size), MOST_LEVELS) - 1
        there = places[codes.values]
        rows, size = np.flatnonzero(there >= 0), min(codes.size - 1, MOST_LEVELS)
        terms.append(csr_array((np.ones(len(rows)), (rows, there[rows])), shape=(total, size)))
        if (pooled := codes.size - MOST_LEVELS) > 0:
            notes.append(f"{pooled:,} rare categories of {variable.name!r} are taken as one")
    return hstack(terms, format="csr"), notes


def _number_terms(data: Sequence[Microdata], name: str) -> list[Floats]:
    is_date = [one.column(name).dtype.is_temporal() for one in data]
    both = zip(data, is_date, strict=True)
    values = np.concatenate([physical(d.column(name)) if t else numbers(d, name) for d, t in both])
    missing = ~np.isfinite(values)
    terms = [missing.astype(np.float64)] if missing.any() else []
    there = values[~missing]
    if there.size and (there != there[0]).any():
        # Scaled before they are squared, so that very large values do not overflow.
        largest = np.abs(there).max()
        there, values = there / largest, np.where(missing, 0.0, values) / largest
        values = (values - there.mean()) / there.std()
        values[missing] = 0.0
        terms.append(values)
    return terms


def _pmse(one: Any, other: Any) -> tuple[float, float, int]:
    """Return pMSE, its expectation if nothing differs, and the parameters of the model."""
    from scipy.linalg import qr
    from scipy.sparse import vstack

    flags = np.repeat([0.0, 1.0], [one.shape[0], other.shape[0]])
    design = vstack([one, other], format="csr")
    # Columns that others determine are left out; each would count as a parameter. The columns of
    # X'X depend on each other as those of X do, and are much shorter.
    products = (design.T @ design).toarray()
    scale = np.sqrt(np.diag(products))
    there = np.flatnonzero(scale > 0)
    scaled = products[np.ix_(there, there)] / np.outer(scale[there], scale[there])
    triangle, order = qr(scaled, mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    design = design[:, np.sort(there[order[: int((sizes > 1e-10 * sizes[0]).sum())]])]
    share, k = float(flags.mean()), design.shape[1]
    expected = (k - 1) * (1 - share) ** 2 * share / len(flags)
    score = float(np.mean((_probabilities(design, flags) - share) ** 2))
    return (score if score > ROUNDING else 0.0), expected, k


def _probabilities(design: Any, flags: Floats) -> Floats:
    """Fit a logistic model by weighted least squares, step by step, and return what it predicts.

    A category of one side alone sends its coefficient to infinity, and its probability, which is
    all that counts here, to 0 or 1: such a fit ends after so many steps, and fails in none.
    """
    slopes = np.zeros(design.shape[1])
    chance = np.full(len(flags), 0.5)
    for _ in range(MOST_STEPS):
        spread = np.maximum(chance * (1 - chance), 1e-12)
        information = (design.T @ design.multiply(spread[:, None]).tocsr()).toarray()
        slopes += np.linalg.lstsq(information, design.T @ (flags - chance), rcond=None)[0]
        before, chance = chance, 1 / (1 + np.exp(-np.clip(design @ slopes, -30, 30)))
        if np.abs(chance - before).max() < CLOSE:
            break
    return chance
