"""What a category of many levels says of a target, in a few numbers.

A state of fifty levels needs fifty columns of a model, more than a small subgroup can carry. But
what it says of a race is told nearly as well by a few scores of each state: the coordinates of a
correspondence analysis of the two, over the whole file, where there are records enough. Levels
of few records are drawn towards the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keyhole.data import Microdata
from keyhole.kernels.arrays import Floats
from keyhole.synthesis.associations import grouped

__all__ = ["Gist", "gist_name", "make_gists"]


# A category with more levels than this has a gist.
WIDE = 10
# So many average records are added to each level.
SHRINKAGE = 20.0
# The most frequent levels of a target that count; the others count together.
MOST_LEVELS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Gist:
    """The scores of each code of a column, for the sake of one target."""

    column: str
    scores: Floats


def gist_name(column: str, target: str) -> str:
    """Return the name of a column's gist in a design; no column of a file has such a name."""
    return f"{column}\0{target}"


def make_gists(
    data: Microdata, predictors: Mapping[str, Sequence[str]], *, dimensions: int
) -> dict[str, Gist]:
    """Make the gists of all categories of many levels that predict a target.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> rows = {"state": [*"aabbccddeeffgghhiijjkk"] * 9, "race": [0, 0, 1, 1, 0, 1] * 33}
    >>> frame = pl.DataFrame(rows)
    >>> found = make_gists(load(frame), {"race": ["state"]}, dimensions=1)
    >>> {gist.column: gist.scores.shape for gist in found.values()}
    {'state': (11, 1)}
    """
    return {
        gist_name(name, target): Gist(name, _scores(data, name, target, dimensions))
        for target, names in predictors.items()
        for name in _wide(data, names)
    }


def _wide(data: Microdata, names: Iterable[str]) -> list[str]:
    return [n for n in names if data.variable(n).kind == "category" and data.codes(n).size > WIDE]


def _scores(data: Microdata, name: str, target: str, dimensions: int) -> Floats:
    """Return the principal coordinates of the column's levels, drawn towards the mean."""
    codes, goal = data.codes(name), _pooled(grouped(data, target))
    size = int(goal.max(initial=0)) + 1
    pairs = codes.values.astype(np.int64) * size + goal
    table = np.bincount(pairs, minlength=codes.size * size).reshape(codes.size, size)
    margin = table.sum(axis=0) / table.sum()
    table, margin = table[:, margin > 0], margin[margin > 0]
    records = table.sum(axis=1, keepdims=True)
    profiles = (table - records * margin) / (records + SHRINKAGE) / np.sqrt(margin)
    _, _, right = np.linalg.svd(np.sqrt(records) * profiles, full_matrices=False)
    scores: Floats = profiles @ right[:dimensions].T
    return scores


def _pooled(goal: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the most frequent codes from 0, and the others together."""
    counts = np.bincount(goal)
    place = np.full(len(counts), MOST_LEVELS, dtype=np.int64)
    frequent = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
    place[frequent] = np.arange(len(frequent))
    return place[goal]
