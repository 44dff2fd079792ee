"""On which variables the records of a pair agree, and in which stratum each record lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.data.microdata import Microdata
from keyhole.reidentification.files import Category, Cuts, common_codes, numbers, quintiles

__all__ = ["Strata", "agreements", "number_strata"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MISSING = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The stratum of each record of both files, and what the strata are called."""

    puf: Ints
    eif: Ints
    labels: tuple[str, ...]


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
    agrees with nothing. This holds for every metric, so that they can be compared.

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
        column = (
            quintiles(numbers(puf, eif, name), cuts)
            if name in numeric
            else common_codes(puf, eif, name)
        )
        codes = column.puf[pairs[0]]
        yield (codes == column.eif[pairs[1]]) & (codes != column.missing)


def number_strata(puf: Microdata, eif: Microdata, names: Sequence[str]) -> Strata:
    """Number the strata of both files together; a missing value is a category of its own.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf, eif = load({"state": ["ny", "ca"]}), load({"state": ["ny"]})
    >>> strata = number_strata(puf, eif, ["state"])
    >>> strata.puf.tolist(), strata.eif.tolist(), strata.labels
    ([1, 0], [1], ('ca', 'ny'))
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
    return Strata(stratum[: puf.records], stratum[puf.records :], tuple(labels))


def _word(puf: Microdata, column: Category, code: int) -> str:
    if code == column.missing:
        return MISSING
    value = column.levels[code]
    return str(puf.variable(column.name).value_labels.get(value, value))
