"""Survey designs: variances from replicate weights, or linearised over strata and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np

from keyhole.core.kinds import Columns, Place
from keyhole.core.options import Option, Problem, Question
from keyhole.core.shared import Names
from keyhole.data import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.utility.implicates import numbers

ReplicateType = Literal["sdr", "jk1", "brr", "fay", "bootstrap"]
Centre = Literal["full", "mean"]
# Sums by cluster and cell that are held at once.
SUMS_AT_ONCE = 1 << 22


class _Replicates(Columns):
    """The names of columns, in which `*` stands for anything."""

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the names that are complete; which columns the others mean, the file tells."""
        return ((place, name) for place, name in Columns.columns(self, value) if "*" not in name)


Replicates = Annotated[
    Names | None,
    Option(
        "The columns with the replicate weights of a survey; `PWGTP*` means all that begin "
        "with PWGTP, without the weight itself.",
        kind=_Replicates("replicate weight"),
    ),
]
ReplicateTypeOption = Annotated[
    ReplicateType | None,
    Option(
        "How the replicate weights were made: `sdr` (successive differences), `jk1` (jackknife "
        "without strata), `brr` (balanced half-samples), `fay` (those of Fay), or `bootstrap`."
    ),
]
Fay = Annotated[
    float | None, Option("The coefficient of Fay's replicate weights, like 0.3.", low=0, below=1)
]
CentreOption = Annotated[
    Centre,
    Option(
        "What deviations of the replicates are measured from: the estimate of the "
        "`full` sample, or the `mean` of theirs."
    ),
]
DesignStrata = Annotated[
    str | None, Option("The column with the strata of the survey's design.", column="stratum")
]
Clusters = Annotated[
    str | None, Option("The column with the clusters (primary sampling units).", column="cluster")
]


@dataclass(frozen=True, slots=True)
class SurveyDesign:
    """A survey's design, where it is no option of a verb; named as the options of `tabulate` are.

    Examples
    --------
    >>> SurveyDesign("PWGTP", replicates=("PWGTP*",), replicate_type="sdr").centre
    'full'
    """

    weight: str
    replicates: tuple[str, ...] = ()
    replicate_type: ReplicateType | None = None
    fay: float | None = None
    centre: Centre = "full"
    design_strata: str | None = None
    clusters: str | None = None

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the design among those of a file."""
        given = (self.weight, *self.replicates, self.design_strata, self.clusters)
        return list(dict.fromkeys(n for one in given if one for n in _fitting(one, names)))


def _fitting(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a name means, in which `*` stands for anything."""
    return [n for n in names if fnmatchcase(n, pattern)] if "*" in pattern else [pattern]


Design = Question | SurveyDesign


def design_problems(question: Design) -> Iterator[Problem]:
    """Say what is wrong with the options of a survey's design."""
    if question.replicates and question.replicate_type is None:
        yield Problem("{replicates} need {replicate_type}: say how they were made.")
    if question.replicates and question.weight is None:
        yield Problem("{replicates} need {weight}, the weight of the full sample. Name it.")
    if not question.replicates and (question.replicate_type or question.centre != "full"):
        yield Problem("{replicate_type} and {centre} need {replicates}. Name the columns.")
    if (question.replicate_type == "fay") != (question.fay is not None):
        yield Problem("{fay} can only be used with {replicate_type} fay, and is needed there.")
    if question.replicates and (question.design_strata or question.clusters):
        yield Problem(
            "{replicates} hold the design already. Leave out {design_strata} and {clusters}, or "
            "the replicates."
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReplicateWeights:
    """Replicate weights of each implicate: how they were made, and their columns."""

    names: tuple[str, ...]
    kind: ReplicateType
    fay: float | None
    centre: Centre

    @property
    def df(self) -> float:
        """The degrees of freedom of a variance."""
        return len(self.names) - 1.0

    def __str__(self) -> str:
        words = {"brr": "BRR", "fay": f"Fay ({self.fay})", "bootstrap": "bootstrap"}
        made = words.get(self.kind, self.kind.upper())
        return f"{len(self.names)} {made} replicate weights"

    @property
    def scale(self) -> float:
        """What the sum of squared deviations is multiplied by, as each type is defined."""
        count = len(self.names)
        fay = 1 / (count * (1 - (self.fay or 0.0)) ** 2)
        bootstrap = 1 / (count - (self.centre == "mean"))
        plain = {"sdr": 4 / count, "jk1": (count - 1) / count, "brr": 1 / count}
        return {**plain, "fay": fay, "bootstrap": bootstrap}[self.kind]

    def variance(self, full: Floats, replicates: Floats) -> Floats:
        """Return the variance of estimates, from those with each replicate weight."""
        centre = full if self.centre == "full" else replicates.mean(axis=0)
        squares: Floats = self.scale * ((replicates - centre) ** 2).sum(axis=0)
        return squares


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """The cluster of each record of an implicate, clusters numbered by stratum."""

    cluster: Ints
    stratum: Ints  # of each cluster, in order

    @classmethod
    def of(cls, data: Microdata, strata: str | None, clusters: str | None) -> Linearised:
        """Read the design of an implicate; without clusters each record is one."""
        problems = []
        parts: list[Ints] = [np.zeros(data.records, dtype=np.int64), np.arange(data.records)]
        for place, name in enumerate((strata, clusters)):
            if name is None:
                continue
            codes = data.codes(name)
            parts[place] = codes.values.astype(np.int64)
            if codes.has_missing:
                problems.append(
                    f"column {name!r} of {data.name!r} must have a value for each record, because "
                    f"it is part of the survey's design. Some are missing: fill them."
                )
        both = np.column_stack(parts)
        held, found = np.unique(both, axis=0, return_inverse=True)
        numbered = np.unique(held[:, 0], return_inverse=True)[1]
        alone = int((np.bincount(numbered) < 2).sum())
        if alone:
            problems.append(
                f"the strata of {data.name!r} must have at least two clusters each. Got {alone:,} "
                f"with one instead: join each with a stratum like it."
            )
        if problems:
            raise ColumnError(problems)
        return cls(found.ravel(), numbered)

    @property
    def df(self) -> float:
        """The degrees of freedom of a variance: clusters less strata."""
        return float(len(self.stratum) - self.stratum[-1] - 1)

    def __str__(self) -> str:
        return f"{self.stratum[-1] + 1:,} strata and {len(self.stratum):,} clusters, linearised"

    def variance(self, cells: Ints, amounts: Floats, shares: Floats, groups: Ints) -> Floats:
        """Return the linearised variance of a sum over each cell, less a share of its group's."""
        count, found = len(self.stratum), np.zeros(len(shares))
        held = np.bincount(self.stratum)
        factor, starts = held / (held - 1.0), np.cumsum(held) - held
        step = max(1, SUMS_AT_ONCE // count)
        for group in range(int(groups.max()) + 1):
            mine, inside = np.flatnonzero(groups == group), groups[cells] == group
            whole = np.bincount(self.cluster[inside], amounts[inside], count)
            for first in range(0, len(mine), step):
                some = mine[first : first + step]
                place = np.full(len(shares), -1)
                place[some] = np.arange(len(some))
                part = np.flatnonzero(place[cells] >= 0)
                at = self.cluster[part] * len(some) + place[cells[part]]
                sums = np.bincount(at, amounts[part], count * len(some)).reshape(count, len(some))
                sums = sums - np.outer(whole, shares[some])
                means = np.add.reduceat(sums, starts) / held[:, None]
                squares = np.add.reduceat((sums - means[self.stratum]) ** 2, starts)
                found[some] = factor @ squares
        return found


def read_design(
    data: Sequence[Microdata], question: Design
) -> ReplicateWeights | list[Linearised] | None:
    """Read the design that was asked for, or say all that is wrong with its columns."""
    if not question.replicates:
        if question.design_strata is None and question.clusters is None:
            return None
        return [Linearised.of(one, question.design_strata, question.clusters) for one in data]
    found: dict[str, None] = {}
    problems: list[str] = []
    for given in question.replicates:
        held = [n for n in _fitting(given, data[0].names) if n != question.weight or n == given]
        if not held:
            text = "{replicates} must fit columns of the file. {0!r} fits none."
            problems.append(Problem(text, given))
        found |= dict.fromkeys(held)
    problems += [
        f"column {name!r} of {one.name!r} must have a finite number for each record, because it "
        f"is a replicate weight. Got others instead."
        for name in found
        for one in data
        if not np.isfinite(numbers(one, name)).all()
    ]
    if len(found) == 1:
        problems.append(Problem("{replicates} must be at least two columns. Got one instead."))
    if problems:
        raise ColumnError(problems)
    kind: ReplicateType = question.replicate_type or "sdr"  # without it the question is refused
    return ReplicateWeights(tuple(found), kind, question.fay, question.centre)
