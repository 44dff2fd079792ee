"""On which variables the records of a pair agree, and in which stratum each record lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.kernels.grading import BAND, DECIMALS, TABLE
from keyhole.reidentification.costs import Graded
from keyhole.reidentification.files import (
    Category,
    Counts,
    Cuts,
    common_codes,
    numbers,
    quintiles,
)
from keyhole.reidentification.scores import Scores, adhoc

__all__ = ["Gap", "Strata", "agree", "agreeing", "agreements", "number_strata", "top_scores"]


MISSING = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The stratum of each record of both files, and what the strata are called.

    `without` tells of each stratum whether a value is missing in it.
    """

    puf: Ints
    eif: Ints
    labels: tuple[str, ...]
    without: Flags

    def gaps(self, counts: tuple[Ints, Ints] | None = None) -> tuple[Gap, Gap]:
        """Return what cannot be linked of the PUF, and of the EIF.

        Where a place stands for several records, `counts` tells for how many.
        """
        puf, eif = counts or (np.ones_like(self.puf), np.ones_like(self.eif))
        return self._gap(self.puf, self.eif, puf), self._gap(self.eif, self.puf, eif)

    def _gap(self, own: Ints, other: Ints, counts: Ints) -> Gap:
        alone = ~np.isin(own, other)
        missing = self.without[own]
        which = (missing, missing & alone, alone & ~missing)
        return Gap(*(int(counts[one].sum()) for one in which))


@dataclass(frozen=True, slots=True)
class Gap:
    """Records of a file with a missing stratum, and those whose stratum the other has not.

    Parameters
    ----------
    missing
        Records with a missing value on a variable of the strata, which is a category of its own.
    missing_alone
        Those of them in a stratum that the other file does not have.
    alone
        The other records in such strata.
    """

    missing: int
    missing_alone: int
    alone: int

    def to_dict(self) -> dict[str, int]:
        """Return the figures as plain values."""
        return {
            "missing_stratum": self.missing,
            "missing_stratum_unlinked": self.missing_alone,
            "other_unlinked": self.alone,
        }


def agreements(
    puf: Microdata,
    eif: Microdata,
    pairs: tuple[Ints, Ints],
    *,
    link: Sequence[str],
    numeric: Sequence[str] = (),
    cuts: Cuts = "puf",
) -> Iterator[Flags]:
    """Tell for each variable in turn which pairs agree on it.

    Categories agree if they are the same, numbers if they are in the same fifth of the PUF's
    values (with ``cuts="each"``, each in the same fifth of its own file's); what is missing
    agrees with nothing. For adhoc see `top_scores`.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf = load({"sex": ["f", None], "age": [20, 60]})
    >>> eif = load({"sex": ["f", "m"], "age": [21, 60]})
    >>> pairs = np.array([0, 1]), np.array([0, 1])
    >>> found = agreements(puf, eif, pairs, link=["sex", "age"], numeric=["age"])
    >>> [same.tolist() for same in found]
    [[True, False], [True, True]]
    """
    for name in link:
        yield agree(agreeing(puf, eif, name, numeric=numeric, cuts=cuts), pairs)


def agreeing(
    puf: Microdata,
    eif: Microdata,
    name: str,
    *,
    numeric: Sequence[str] = (),
    cuts: Cuts = "puf",
    counts: tuple[Counts, Counts] | None = None,
) -> Category:
    """Return a variable as what must be the same in both files for a pair to agree on it."""
    if name not in numeric:
        return common_codes(puf, eif, name)
    return quintiles(numbers(puf, eif, name, counts=counts), cuts)


def top_scores(
    puf: Microdata, eif: Microdata, pairs: tuple[Ints, Ints], *, link: Sequence[str], scores: Scores
) -> Iterator[Flags]:
    """Tell for each variable in turn which pairs have its highest declared score.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf = load({"sex": ["f", "f"], "age": [20, 60]})
    >>> eif = load({"sex": ["f", "m"], "age": [21, 69]})
    >>> scores = {"sex": {"exact": 5}, "age": {"absolute": [[1, 5], [10, 3]]}}
    >>> pairs = np.array([0, 1]), np.array([0, 1])
    >>> found = top_scores(puf, eif, pairs, link=["sex", "age"], scores=scores)
    >>> [same.tolist() for same in found]
    [[True, False], [True, False]]
    """
    costs, _ = adhoc(puf, eif, link, scores)
    priced = costs.by_name()
    for name in link:
        yield agree(priced[name], pairs)


def agree(variable: Category | Graded, pairs: tuple[Ints, Ints]) -> Flags:
    """Tell which pairs have the same category, or the highest score of a graded variable."""
    if isinstance(variable, Category):
        codes = variable.puf[pairs[0]]
        return np.asarray((codes == variable.eif[pairs[1]]) & (codes != variable.missing))
    one, other = variable.puf[pairs[0]], variable.eif[pairs[1]]
    known = ~(np.isnan(one) | np.isnan(other))
    top = np.zeros(len(one), dtype=np.bool_)
    top[known] = _prices(variable, one[known], other[known]) == 0
    return top


def _prices(variable: Graded, puf: Floats, eif: Floats) -> Floats:
    """Return what known values lack of the variable's highest score."""
    if variable.kind == TABLE:
        return variable.table[puf.astype(np.int64), eif.astype(np.int64)]
    gap = np.abs(puf - eif)
    if variable.kind != BAND:
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(gap > 0, gap / np.abs(puf), 0.0)
    # To nine decimals, as the search compares them.
    rounded = np.rint(gap * DECIMALS) / DECIMALS
    bands = np.searchsorted(variable.limits, rounded, side="left")
    return np.asarray(variable.prices)[bands]


def number_strata(puf: Microdata, eif: Microdata, names: Sequence[str]) -> Strata:
    """Number the strata of both files together; a missing value is a category of its own.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf, eif = load({"state": ["ny", "ca"]}), load({"state": ["ny"]})
    >>> strata = number_strata(puf, eif, ["state"])
    >>> strata.puf.tolist(), strata.eif.tolist(), strata.labels
    ([1, 0], [1], ('ca', 'ny'))
    >>> strata.gaps()[0].alone
    1
    """
    columns = [common_codes(puf, eif, name) for name in names]
    codes = [np.concatenate([column.puf, column.eif]) for column in columns]
    stratum = np.zeros(puf.records + eif.records, dtype=np.int64)
    for column, own in zip(columns, codes, strict=True):
        stratum = np.unique(stratum * column.size + own, return_inverse=True)[1]
    firsts = np.unique(stratum, return_index=True)[1]
    labels = [
        ", ".join(_word(puf, c, int(own[i])) for c, own in zip(columns, codes, strict=True))
        for i in firsts
    ]
    without = np.zeros(len(firsts), dtype=np.bool_)
    for column, own in zip(columns, codes, strict=True):
        without |= own[firsts] == column.missing
    return Strata(stratum[: puf.records], stratum[puf.records :], tuple(labels), without)


def _word(puf: Microdata, column: Category, code: int) -> str:
    if code == column.missing:
        return MISSING
    value = column.levels[code]
    return str(puf.variable(column.name).value_labels.get(value, value))
