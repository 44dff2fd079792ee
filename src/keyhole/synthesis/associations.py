"""How closely columns hang together with a target: what must predict it, what is kept, what lost.

All columns are compared alike, by Cramér's V corrected for bias, numbers being cut into bins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from keyhole.data import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.screening.dependence import cramers_v

__all__ = ["KIN", "Association", "associate", "evenly", "grouped", "related"]


# Bias-corrected Cramér's V from which a column is kin of a target.
KIN = 0.6
# Chance alone makes a V this surprising in one column of a thousand.
SURE = 0.001
# Numbers are cut into so many bins of about as many records.
BINS = 10
# More records would not change the picture.
RECORDS = 20_000
# A table of more cells is made of its occupied ones alone.
DENSE = 1 << 20


@dataclass(frozen=True, slots=True)
class Association:
    """Cramér's V of two columns, corrected for bias, and how surprising it is.

    `least` is the smaller number of categories.
    """

    v: float
    statistic: float
    df: int
    least: int

    @property
    def p(self) -> float:
        """The probability of so large a statistic if the two had nothing to do with each other."""
        from scipy.stats import chi2

        return float(chi2.sf(self.statistic, self.df)) if self.df else 1.0

    def chance(self, records: int) -> float:
        r"""Return by how much V may rise by chance: by two standard deviations of its χ².

        Notes
        -----
        χ² of n records has about the variance :math:`2\,df + 4 n V^2 (\min(r, k) - 1)`, that of
        a noncentral one.
        """
        scale = records * (self.least - 1)
        if not scale:
            return 0.0
        spread = np.sqrt(2 * self.df + 4 * scale * self.v**2)
        return float(np.sqrt(self.v**2 + 2 * spread / scale) - self.v)


def related(
    data: Microdata, target: str, columns: Iterable[str], *, least: float = KIN
) -> tuple[str, ...]:
    """Return the columns related to a target, the closest first.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> age = pl.Series("age", range(20, 90)).extend(pl.Series(range(20, 90)))
    >>> frame = pl.DataFrame({"age": age, "old": age > 65, "coin": [0, 1] * 70})
    >>> related(load(frame, kinds={"age": "measure"}), "age", ["old", "coin"])
    ('old',)
    """
    some = evenly(data.records, RECORDS)
    goal = grouped(data, target)[some]
    found = {name: associate(goal, grouped(data, name)[some]) for name in columns if name != target}
    close = [name for name, one in found.items() if one.v >= least and one.p < SURE]
    return tuple(sorted(close, key=lambda name: -found[name].v))


def evenly(records: int, most: int) -> Ints:
    """Return the numbers of at most so many records, evenly spread over the file."""
    return np.arange(0, records, max(1, -(-records // most)))


def grouped(data: Microdata, name: str) -> Ints:
    """Return the codes of a category, and of a number the bins of its values."""
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    if data.variable(name).kind == "category" or codes.size <= BINS:
        return values
    counts = np.bincount(values, minlength=codes.size)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    bins = np.minimum(middle * BINS, BINS - 1).astype(np.int64)
    if codes.has_missing:
        bins[-1] = BINS
    out: Ints = bins[values]
    return out


def associate(a: Ints, b: Ints) -> Association:
    """Return the association of two columns given by their codes."""
    width = int(b.max(initial=0)) + 1
    pairs = a * width + b
    if (int(a.max(initial=0)) + 1) * width <= DENSE:
        dense = np.bincount(pairs)
        pair = np.flatnonzero(dense)
        counts = dense[pair]
    else:
        pair, counts = np.unique(pairs, return_counts=True)
    _, rows = np.unique(pair // width, return_inverse=True)
    _, columns = np.unique(pair % width, return_inverse=True)
    r, k = int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1
    if r == 1 or k == 1:
        return Association(0.0, 0.0, 0, 1)
    in_row, in_column = np.bincount(rows, counts)[rows], np.bincount(columns, counts)[columns]
    # Empty cells add their expected counts, as in Cramér's V.
    statistic = float(counts.sum() * ((counts / in_row * (counts / in_column)).sum() - 1))
    return Association(cramers_v(counts, rows, columns), statistic, (r - 1) * (k - 1), min(r, k))
