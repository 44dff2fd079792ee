"""Marginals of three columns at a time, before and after: the k-marginal score of SDNist.

Every three released columns with a target among them make a table of shares; how far those of the
implicates are from the original's is the density difference, from 0 for the same to 2 for nothing
in common. Another sample of the same people would differ too: that is shown beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result
from keyhole.synthesis.associations import RECORDS, Relations, evenly, grouped
from keyhole.synthesis.implicates import Implicates

# So many columns make a marginal, of so many altogether; of each so many levels, the rest as one.
K, MOST_COLUMNS, MOST_LEVELS = 3, 20, 20
# The density difference at which the score is 0, and the score at which nothing differs.
WORST, BEST = 2.0, 1000.0
# So many marginals are shown.
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Marginal:
    """The density difference of a marginal, and that of another sample of the same people."""

    columns: tuple[str, ...]
    difference: float
    chance: float


@dataclass(frozen=True, slots=True, repr=False)
class Marginals(Result):
    """The k-marginal score, 1000 where nothing differs, and where it is lost.

    `chance` is the score of another sample of the same people, `worst` the marginals that differ
    most, and `columns` the mean over those that a column has part in, the largest first.
    """

    count: int
    score: float
    chance: float
    worst: tuple[Marginal, ...]
    columns: tuple[Marginal, ...]

    def tables(self) -> list[Table]:
        """Return the score and the marginals that differ most."""
        rows = [
            [", ".join(one.columns), f"{one.difference:.4f}", f"{one.chance:.4f}"]
            for one in self.worst
        ]
        notes = [
            f"Score {self.score:.0f} of {BEST:.0f} over {self.count:,} marginals of {K} columns; "
            f"another sample of the same size has {self.chance:.0f}. Numbers are cut into ten bins."
        ]
        return [Table("Marginals", ["columns", "density difference", "by chance"], rows, notes)]


def summarise_marginals(found: Sequence[Marginal]) -> Marginals:
    """Return the scores of some marginals, the worst of them, and their means by column."""
    means = [_mean("", found)]
    for name in dict.fromkeys(name for one in found for name in one.columns):
        means.append(_mean(name, [one for one in found if name in one.columns]))
    whole, *columns = means
    score, chance = (BEST * (1 - gap / WORST) for gap in (whole.difference, whole.chance))
    worst, ordered = (sorted(some, key=lambda one: -one.difference) for some in (found, columns))
    return Marginals(len(found), score, chance, tuple(worst[:SHOWN]), tuple(ordered))


def _mean(name: str, some: Sequence[Marginal]) -> Marginal:
    gaps = np.mean([(one.difference, one.chance) for one in some], axis=0).tolist()
    return Marginal((name,), *gaps)


def compare_marginals(
    implicates: Implicates, keys: Sequence[str], relations: Relations, *, seed: int
) -> list[Marginal]:
    """Compare the marginals of targets, keys and the columns most related to a target.

    There is none where no target has two values.
    """
    data, targets = implicates.data, implicates.targets
    near = sorted(relations.pairs, key=lambda one: -one.original)
    every = dict.fromkeys([*targets, *keys, *(one.column for one in near)])
    names = [name for name in every if data.codes(name).size > 1][:MOST_COLUMNS]
    some = evenly(data.records, RECORDS)
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(14, 0)))
    again = some[random.integers(len(some), size=len(some))]
    # By column the levels in the original, in each implicate, and in another sample.
    files: dict[str, Ints] = {}
    for name in names:
        levels = _levels(data, name)
        drawn = [levels[implicates.source(i, name)[some]] for i in range(len(implicates))]
        files[name] = np.stack([levels[some], *drawn, levels[again]])
    found = []
    for columns in combinations(names, min(K, len(names))) if names else ():
        if set(columns).intersection(targets):
            gaps = density_differences([files[name] for name in columns])
            found.append(Marginal(columns, float(gaps[:-1].mean()), float(gaps[-1])))
    return found


def density_differences(columns: Sequence[Ints]) -> Floats:
    """Return how far the shares of each file (row) after the first are from those of the first."""
    cells, size = np.zeros_like(columns[0]), 1
    for levels in columns:
        width = int(levels.max(initial=0)) + 1
        cells, size = cells * width + levels, size * width
    files, records = cells.shape
    cells = cells + size * np.arange(files)[:, None]
    shares = np.bincount(cells.ravel(), minlength=files * size).reshape(files, size) / records
    out: Floats = np.abs(shares[1:] - shares[0]).sum(axis=1)
    return out


def _levels(data: Microdata, name: str) -> Ints:
    """Return the most frequent levels of a category, or the bins of a number; the rest as one."""
    groups = grouped(data, name)
    order = np.argsort(-np.bincount(groups), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.minimum(np.arange(len(order)), MOST_LEVELS)
    out: Ints = place[groups]
    return out
