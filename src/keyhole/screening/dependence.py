"""Dependence among variables: which one determines, or nearly duplicates, another.

Lin & Garin warn that similar variables lead selection astray: one of them adds nothing that the
other has not told already.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.threads import in_threads
from keyhole.kernels.crosstab import crosstab

__all__ = ["NEARLY", "Dependence", "cramers_v", "dependences"]

# Bias-corrected Cramér's V from which two variables count as near duplicates.
NEARLY = 0.9
# A cross-tabulation larger than this is made of its occupied cells alone.
DENSE_CELLS = 1 << 22


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two variables of which one nearly duplicates the other.

    `determined` is the variable that the other one determines exactly, if any.
    """

    first: str
    second: str
    cramers_v: float
    determined: str | None

    def __str__(self) -> str:
        if self.determined is None:
            return (
                f"{self.first!r} and {self.second!r} nearly duplicate each other "
                f"(Cramér's V {self.cramers_v:.2f})"
            )
        other = self.second if self.determined == self.first else self.first
        return f"{self.determined!r} is determined by {other!r}"


def dependences(columns: Mapping[str, Codes], *, nearly: float = NEARLY) -> list[Dependence]:
    """Find the pairs of variables of which one determines or nearly duplicates the other.

    A missing value is a category of its own. Constant columns, and columns with more levels
    than half the records, say nothing and are passed over.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data.columns import encode
    >>> age = pl.Series("age", [30, 31, 47, 47, 30, 31] * 9)
    >>> pairs = dependences({"age": encode(age), "band": encode((age // 10).alias("band"))})
    >>> print(pairs[0])
    'band' is determined by 'age'
    """
    fit = [n for n, c in columns.items() if 1 < c.size <= max(len(c.values) / 2, 2)]
    pairs = list(itertools.combinations(fit, 2))
    found = in_threads(lambda pair: _dependence(columns, *pair), pairs)
    return [d for d in found if d.determined is not None or d.cramers_v >= nearly]


def _dependence(columns: Mapping[str, Codes], first: str, second: str) -> Dependence:
    a, b = columns[first], columns[second]
    counts, rows, cols = _cells(a, b)
    determined = None
    if len(counts) == a.size:
        determined = second
    elif len(counts) == b.size:
        determined = first
    return Dependence(first, second, cramers_v(counts, rows, cols), determined)


def _cells(
    a: Codes, b: Codes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the counts of the occupied cells, and the row and the column of each."""
    if a.size * b.size <= DENSE_CELLS:
        table = crosstab(a.values, b.values, a.size, b.size)
        rows, cols = np.nonzero(table)
        return table[rows, cols], rows, cols
    pair = a.values.astype(np.int64) * b.size + b.values
    place, counts = np.unique(pair, return_counts=True)
    return counts, place // b.size, place % b.size


def cramers_v(
    counts: npt.NDArray[np.int64],
    rows: Sequence[int] | npt.NDArray[np.int64],
    cols: Sequence[int] | npt.NDArray[np.int64],
) -> float:
    r"""Return the bias-corrected Cramér's V of a table given by its occupied cells.

    Notes
    -----
    With :math:`\varphi^2 = \chi^2 / n`, r rows and k columns (Bergsma 2013),

    .. math:: V = \sqrt{\frac{\max(0, \varphi^2 - (k-1)(r-1)/(n-1))}{\min(\tilde k, \tilde r) - 1}},
              \quad \tilde k = k - \frac{(k-1)^2}{n-1}

    Examples
    --------
    >>> cramers_v(np.array([5, 5]), [0, 1], [0, 1])
    1.0
    """
    n = int(counts.sum())
    by_row, by_col = np.bincount(rows, counts), np.bincount(cols, counts)
    r, k = int((by_row > 0).sum()), int((by_col > 0).sum())
    # Empty cells add their expected counts, so χ²/n = Σ n_ij² / (n_i. n_.j) - 1.
    phi2 = float((counts / by_row[rows] * (counts / by_col[cols])).sum()) - 1
    corrected = max(0.0, phi2 - (k - 1) * (r - 1) / (n - 1))
    least = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(corrected / least))) if least > 0 else 0.0
