"""Targets of very many categories, pooled until a test of their distribution can tell something.

A test of thousands of categories with a few records each has no power: it would call anything
homogeneous. Rare categories are therefore put together with their neighbours in order, as codes
of areas or occupations are made.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from keyhole.data import Microdata, Variable
from keyhole.kernels.arrays import Ints
from keyhole.synthesis.implicates import Implicates

__all__ = ["pool_rare", "pooled_sides"]


# A category of fewer records than this is rare.
RARE = 25
# Rare categories are put into groups if there are more of them than this.
MOST_RARE = 20


def pool_rare(counts: Ints) -> Ints | None:
    """Return the group of each category, or None if few enough are rare.

    Examples
    --------
    >>> pool_rare(np.array([100, 3, 100])) is None
    True
    >>> groups = pool_rare(np.array([500, *[5] * 40]))
    >>> len(np.unique(groups)), int(np.bincount(groups, [500, *[5] * 40])[1:].min())
    (9, 25)
    """
    rare = np.flatnonzero(counts < RARE)
    if len(rare) <= MOST_RARE:
        return None
    groups = np.zeros(len(counts), dtype=np.int64)
    common = np.flatnonzero(counts >= RARE)
    groups[common] = np.arange(len(common))
    total = int(counts[rare].sum())
    among = max(1, min(MOST_RARE, total // RARE))
    middle = np.cumsum(counts[rare]) - counts[rare] / 2
    groups[rare] = len(common) + np.minimum(middle * among / max(total, 1), among - 1).astype(int)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def pooled_sides(
    implicates: Implicates, original: Microdata, files: list[Microdata]
) -> tuple[Microdata, list[Microdata], list[str]]:
    """Return the original and the implicates with sparse targets pooled, and what was pooled."""
    notes = []
    for target in implicates.targets:
        codes, groups = implicates.data.codes(target), None
        if implicates.data.variable(target).kind in ("category", "text"):
            groups = pool_rare(np.bincount(codes.values, minlength=codes.size))
        if groups is None:
            continue
        values = groups[codes.values]
        original = _with(original, pl.Series(target, values))
        files = [
            _with(one, pl.Series(target, values[implicates.source(place, target)]))
            for place, one in enumerate(files)
        ]
        pooled = len(np.unique(groups))
        notes.append(
            f"{target} has {codes.size:,} categories, too many to be tested one by one: they are "
            f"pooled into {pooled:,}, rare ones with their neighbours in order"
            + ("" if pooled > 1 else ", which leaves nothing to judge")
        )
    return original, files, notes


def _with(data: Microdata, column: pl.Series) -> Microdata:
    plain = Variable(column.name, "category")
    variables = [plain if one.name == column.name else one for one in data.variables]
    return Microdata(data.frame.with_columns(column), tuple(variables), data.name)
