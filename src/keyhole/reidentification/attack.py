"""An attack made ready: the linking variables as a metric needs them, and the search for pairs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from keyhole.data.microdata import Microdata
from keyhole.reidentification.costs import (
    BEST_SCORE,
    DECIMALS,
    Costs,
    Graded,
    Threshold,
    adhoc_threshold,
    euclidean,
    euclidean_threshold,
    taxicab,
)
from keyhole.reidentification.files import (
    Category,
    Counts,
    Cuts,
    Number,
    common_codes,
    numbers,
    quintiles,
)
from keyhole.reidentification.neighbours import Progress, find_nearest
from keyhole.reidentification.scores import adhoc
from keyhole.reidentification.unicity import Orders, find_mates

__all__ = ["Asked", "Attack", "Metric", "only", "prepare"]

Metric = Literal["unicity", "taxicab", "euclidean", "adhoc"]
Places = Mapping[str, npt.NDArray[np.integer]]
Weights = Mapping[str, tuple[Counts, Counts]]
V = TypeVar("V", bound=Category | Graded)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked, as it was given."""

    link: tuple[str, ...]
    numeric: tuple[str, ...]
    strata: tuple[str, ...]
    metric: Metric
    alpha: float
    threshold: Threshold
    cuts: Cuts
    scores: Any
    orders: Orders
    rank_cap: int
    blank: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """The linking variables as a metric needs them.

    Parameters
    ----------
    asked
        What was asked.
    cap
        How many pairs of a PUF record the ranks may hold.
    categories
        For unicity the variables; none for the other metrics.
    costs
        For those the prices.
    threshold
        The score to be below, or for adhoc above; None for unicity.
    warnings
        What the user should know.
    """

    asked: Asked
    cap: int
    categories: tuple[Category, ...] = ()
    costs: Costs | None = None
    threshold: float | None = None
    warnings: tuple[str, ...] = ()

    def find(
        self, strata: Category | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Search; return the pairs, their scores and ranks by their names in `Pairs`."""
        if self.costs is None:
            return self._find_by_unicity(strata, progress)
        found = find_nearest(self.costs, strata, self.cap, progress=progress)
        score, count = found.keys / DECIMALS, len(self.asked.link)
        if self.asked.metric == "taxicab":
            score = np.round(score / count, 9)
        elif self.asked.metric == "adhoc":
            score = np.round(BEST_SCORE * count - score, 9)
        return {"puf": found.puf, "eif": found.eif, "score": score, "rank": found.ranks}

    def _find_by_unicity(
        self, strata: Category | None, progress: Progress | None
    ) -> dict[str, Any]:
        found = find_mates(self.categories, strata, self.asked.orders, progress)
        return {
            "puf": found.puf,
            "eif": found.eif,
            "score": np.bitwise_count(found.subset).astype(np.float64),
            "rank": np.ones(len(found.puf), dtype=np.int64),
            "subset": found.subset,
        }

    def only(self, puf: Places, eif: Places) -> Attack:
        """Return the attack on some records, given by their places in each variable."""
        costs = self.costs
        if costs is not None:
            counted = tuple(only(v, puf, eif) for v in costs.counted)
            graded = tuple(only(v, puf, eif) for v in costs.graded)
            costs = dataclasses.replace(costs, counted=counted, graded=graded)
        categories = tuple(only(v, puf, eif) for v in self.categories)
        return dataclasses.replace(self, categories=categories, costs=costs)


def only(variable: V, puf: Places, eif: Places) -> V:
    """Return a variable of some records, given by their places in it."""
    name = variable.name
    held: dict[str, Any] = {"puf": variable.puf[puf[name]], "eif": variable.eif[eif[name]]}
    return dataclasses.replace(variable, **held)


def prepare(puf: Microdata, eif: Microdata, asked: Asked, counts: Weights | None = None) -> Attack:
    """Make the linking variables ready for a search.

    Parameters
    ----------
    puf, eif
        The two files.
    asked
        What is asked; it is sound.
    counts
        By variable how many records each row stands for in the two files, if not for one.
    """
    cap = int(asked.rank_cap)
    if asked.metric == "unicity":
        found = _variables(puf, eif, asked, counts or {})
        cut = [v if isinstance(v, Category) else quintiles(v, asked.cuts) for v in found]
        return Attack(asked, cap, categories=tuple(cut))
    costs, threshold, warnings = _costs(puf, eif, asked, counts or {})
    return Attack(asked, cap, costs=costs, threshold=threshold, warnings=tuple(warnings))


def _variables(
    puf: Microdata, eif: Microdata, asked: Asked, counts: Weights
) -> list[Category | Number]:
    return [
        numbers(puf, eif, name, counts=counts.get(name))
        if name in asked.numeric
        else common_codes(puf, eif, name)
        for name in asked.link
    ]


def _costs(
    puf: Microdata, eif: Microdata, asked: Asked, counts: Weights
) -> tuple[Costs, float, list[str]]:
    """Return the prices, the threshold on the score, and warnings."""
    alpha, count = float(asked.alpha), len(asked.link)
    if asked.metric == "adhoc":
        costs, warnings = adhoc(puf, eif, asked.link, asked.scores)
        return costs, adhoc_threshold(count), warnings
    variables = _variables(puf, eif, asked, counts)
    if asked.metric == "taxicab":
        return taxicab(variables, alpha, asked.cuts), alpha / 2, []
    threshold = euclidean_threshold(alpha, count, asked.threshold)
    warnings = []
    if threshold > 1 / math.sqrt(count):
        warnings.append(
            f"The threshold {threshold:.4g} lets every pair pass, since euclidean is at most "
            f"1 / sqrt(v) = {1 / math.sqrt(count):.4g} for {count} variables: only the ranks "
            f"choose. Threshold 'derived' is {euclidean_threshold(alpha, count, 'derived'):.4g}."
        )
    return euclidean(variables, alpha, asked.threshold), threshold, warnings
