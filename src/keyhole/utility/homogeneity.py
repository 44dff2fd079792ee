"""Has synthesis kept a variable's distribution? The Stuart-Maxwell test (Hawala & Funk 3.2).

The matrix that the statistic inverts is the Laplacian of a graph: its nodes are the categories,
and between two of them stand the records that went from the one to the other. So its rank needs
no tolerance: it is the number of categories less the number of connected parts. The statistic is
the sum over the parts, each with one category less, and many categories are no trouble because
the matrix is as sparse as the changes are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, Table
from keyhole.utility.figures import amount, probability

__all__ = ["Homogeneity", "holm", "homogeneity_test"]


# Below this many records that entered or left it, a category strains the chi-square distribution.
FEW = 5
# Up to so many categories the matrix is solved as a whole.
DENSE = 1500


@dataclass(frozen=True, slots=True, repr=False)
class Homogeneity(Result):
    """The Stuart-Maxwell test of one variable.

    Parameters
    ----------
    statistic, df, p
        The statistic, its degrees of freedom, and the probability of one as large if the
        distribution is the same.
    records, changed
        How many records there are, and how many changed category.
    categories
        How many categories occur, in the original or in the synthetic values.
    notes
        Which categories were collapsed, and what else was out of the ordinary.
    """

    statistic: float
    df: int
    p: float
    records: int
    changed: int
    categories: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "statistic": self.statistic,
            "df": self.df,
            "p": self.p,
            "records": self.records,
            "changed": self.changed,
            "categories": self.categories,
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as one row."""
        figures = {k: v for k, v in self.to_dict().items() if k != "notes"}
        return pl.DataFrame([figures])

    def tables(self) -> list[Table]:
        """Return the test as a table."""
        rows = [
            ["records", f"{self.records:,}"],
            ["changed", f"{self.changed:,}"],
            ["categories", f"{self.categories:,}"],
            ["X²", amount(self.statistic)],
            ["df", f"{self.df:,}"],
            ["p", probability(self.p)],
        ]
        notes = [note[0].upper() + note[1:] + "." for note in self.notes]
        return [Table("Stuart-Maxwell test", ["figure", "value"], rows, notes)]


def homogeneity_test(original: Any, synthetic: Any, levels: int | Sequence[Any]) -> Homogeneity:
    r"""Test whether original and synthetic values of the same records have one distribution.

    Parameters
    ----------
    original, synthetic
        The category of each record before and after, as whole numbers from 0.
    levels
        The categories, or how many there are; those that do not occur are collapsed.

    Returns
    -------
    Homogeneity
        The statistic with its degrees of freedom and p.

    Raises
    ------
    OptionError
        If the two are not of the same records, or are no codes of these levels.

    Notes
    -----
    With S and O the synthetic and original counts and T their cross-tabulation,

    .. math:: X^2 = (S - O)' [\mathrm{diag}(S + O) - T - T']^{-1} (S - O)

    over all categories but one, with as many degrees of freedom as the matrix has rank. Where it
    is singular its pseudo-inverse is taken: a category that no record entered or left, or a
    group of categories between which and the others none went, adds nothing to the statistic
    and takes away one degree of freedom.

    Examples
    --------
    >>> found = homogeneity_test([0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 0, 1], ["f", "m"])
    >>> found.statistic, found.df, round(found.p, 4)
    (1.0, 1, 0.3173)
    """
    size = len(levels) if isinstance(levels, Sized) else int(levels)
    before, after = _checked(original, synthetic, size)
    present = np.union1d(before, after)
    rows, cols = np.searchsorted(present, before), np.searchsorted(present, after)
    moved = rows != cols
    notes = _collapsed(size - len(present))
    if not moved.any():
        notes.append("no record changed category: the distributions are the same")
        return Homogeneity(0.0, 0, 1.0, len(rows), 0, len(present), tuple(notes))
    statistic, df, parts, alone, few = _laplacian(rows[moved], cols[moved], len(present))
    notes += _singular(parts, alone) + _sparse(few)
    p = _upper_tail(statistic, df)
    return Homogeneity(statistic, df, p, len(rows), int(moved.sum()), len(present), tuple(notes))


def _checked(original: Any, synthetic: Any, size: int) -> tuple[Ints, Ints]:
    problems, arrays = [], []
    for name, given in (("original", original), ("synthetic", synthetic)):
        found = np.asarray(given)
        if found.ndim != 1 or found.dtype.kind not in "iu" or found.size == 0:
            problems.append(
                f"{name} must be whole numbers, one for each of at least one record. Got "
                f"something else instead: give the codes of a column."
            )
        elif found.min() < 0 or found.max() >= size:
            problems.append(
                f"{name} must be codes from 0 to {size - 1}, since there are {size} levels. Got "
                f"others instead."
            )
        arrays.append(found)
    if not problems and len(arrays[0]) != len(arrays[1]):
        problems.append(
            f"original and synthetic must be of the same records. Got {len(arrays[0]):,} and "
            f"{len(arrays[1]):,} instead."
        )
    if problems:
        raise OptionError(problems)
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


def _laplacian(rows: Ints, cols: Ints, size: int) -> tuple[float, int, int, int, int]:
    """Return statistic, rank, connected parts, categories left alone, and those with few moves."""
    from scipy.sparse import coo_array, csgraph

    moves = coo_array((np.ones(len(rows)), (rows, cols)), shape=(size, size)).tocsr()
    between = (moves + moves.T).tocsr()
    parts, part = csgraph.connected_components(between, directed=False)
    difference = np.bincount(cols, minlength=size) - np.bincount(rows, minlength=size)
    turnover = np.bincount(cols, minlength=size) + np.bincount(rows, minlength=size)
    # The first category of each part is left out, as the test leaves one out of all.
    kept = np.ones(size, dtype=bool)
    kept[np.unique(part, return_index=True)[1]] = False
    alone = int((turnover == 0).sum())
    few = int(((turnover > 0) & (turnover < FEW)).sum())
    statistic = _quadratic(between, turnover, difference, np.flatnonzero(kept))
    return statistic, int(kept.sum()), int(parts) - alone, alone, few


def _quadratic(between: Any, turnover: Ints, difference: Ints, kept: Ints) -> float:
    from scipy.sparse import diags_array

    matrix = (diags_array(turnover.astype(np.float64)) - between).tocsr()[kept][:, kept]
    wanted = difference[kept].astype(np.float64)
    return max(0.0, float(wanted @ _solved(matrix, wanted)))


def _solved(matrix: Any, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from scipy.linalg import cho_factor, cho_solve
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg, splu

    if len(wanted) <= DENSE:
        return np.asarray(cho_solve(cho_factor(matrix.toarray()), wanted))
    # Exact factors of a large graph without order fill up; steps towards the solution do not.
    scaling = diags_array(1 / matrix.diagonal())
    found, failed = cg(matrix, wanted, rtol=1e-11, maxiter=len(wanted), M=scaling)
    return np.asarray(splu(matrix.tocsc()).solve(wanted) if failed else found)


def _upper_tail(statistic: float, df: int) -> float:
    from scipy.stats import chi2

    return float(chi2.sf(statistic, df))


def _collapsed(empty: int) -> list[str]:
    if not empty:
        return []
    return [f"{empty:,} empty {_categories(empty)} collapsed: no record is or was there"]


def _singular(parts: int, alone: int) -> list[str]:
    notes = []
    if alone:
        notes.append(
            f"{alone:,} {_categories(alone)} kept all records and took none in, which counts for "
            f"no degree of freedom"
        )
    if parts > 1:
        notes.append(
            f"records moved only within {parts:,} groups of categories: each group counts for one "
            f"degree of freedom less than it has categories"
        )
    return notes


def _sparse(few: int) -> list[str]:
    if not few:
        return []
    return [
        f"{few:,} {_categories(few)} had fewer than {FEW} records that entered or left: p is rough"
    ]


def _categories(count: int) -> str:
    return "category" if count == 1 else "categories"


def holm(p: Iterable[float]) -> list[float]:
    """Adjust p-values for being several, by Holm's (1979) steps.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(list(p), dtype=np.float64)
    if given.size and not ((given >= 0) & (given <= 1)).all():
        raise OptionError("p-values must be from 0 to 1. Got others instead.")
    order = np.argsort(given, kind="stable")
    factors = np.arange(given.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return [float(value) for value in adjusted]
