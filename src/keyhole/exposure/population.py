"""Exposure in the population: what the cells of a sample say of the people behind it.

A record alone in the sample need not be alone in the population. From the size of its cell in the
sample (f) and in the population (F, estimated from weights) come the individual, global and
household risk; from the cells of one and of two the probability that a unique match is correct. A
record with f = 0 was not counted: it has no risk, which is not a risk of nought.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, WHEN_SET, When
from keyhole.core.tables import Table
from keyhole.exposure.dispersion import PopulationModel
from keyhole.exposure.scores import Check, require
from keyhole.kernels.arrays import Array, Floats, Ints
from keyhole.results import Result, share, tables_of


def household_risk(risk: npt.ArrayLike, households: npt.ArrayLike) -> Floats:
    r"""Give each record the risk that anybody of its household is re-identified.

    Parameters
    ----------
    risk
        The individual risks. Members without one (not a number) add nothing to their
        household, and a household of such members only has none.
    households
        The household of each record; equal values mean the same household.

    Notes
    -----
    :math:`1 - \prod_i (1 - r_i)` over the members, taken as independent (Templ, Kowarik &
    Meindl 2015, "hierarchical risk"). It is never below the largest risk of a member.

    Examples
    --------
    >>> household_risk([0.5, 0.5, 0.1], [3, 3, 8]).round(4).tolist()
    [0.75, 0.75, 0.1]
    """
    single, groups = np.asarray(risk, dtype=np.float64), numbered(households)
    require(
        (single.shape != groups.shape, "risk and households must each have one value a record."),
        (bool(((single < 0) | (single > 1)).any()), "risk must lie between 0 and 1."),
    )
    known = ~np.isnan(single)
    with np.errstate(divide="ignore"):
        spared = np.bincount(groups, weights=np.log1p(-np.where(known, single, 0.0)))
    joint = np.where(np.bincount(groups, weights=known) > 0, -np.expm1(spared), np.nan)
    return cast("Floats", joint[groups])


def numbered(labels: npt.ArrayLike) -> Ints:
    """Number groups, whatever they are called, so that they can be counted without a sort."""
    given = np.asarray(labels)
    whole = given.size > 0 and given.dtype.kind in "iu" and given.min() >= 0
    if whole and given.max() < 2 * given.size:
        return given.astype(np.int64, copy=False)
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


Approximation = Literal["exact", "sdcmicro"]
Estimate = tuple[float | None, str]

# Past this cell size the series needs at most sixty terms even at π = 0, since its k-th
# coefficient is 1 / C(f + k, k); below it the recurrence is short.
RECURRENCE_LIMIT = 20
_WORDS = {
    "expected_reidentifications": "expected re-identifications",
    "dis_probability": "probability that a unique match is correct",
    "sampling_bound": "chance that a given person was sampled at all",
}


def population_sizes(cells: npt.ArrayLike, weights: npt.ArrayLike) -> Floats:
    """Estimate for each record how many people of the population share its cell.

    Notes
    -----
    F is the sum of the weights in the record's cell (Benedetti & Franconi 1998), a weight
    being the number of people a record stands for.

    Examples
    --------
    >>> population_sizes([0, 0, 7], [180, 180, 215]).tolist()
    [360.0, 360.0, 215.0]
    """
    groups, amounts = numbered(cells), np.asarray(weights, dtype=np.float64)
    require(*_weight_checks(amounts, groups.shape))
    return cast("Floats", np.bincount(groups, weights=amounts)[groups])


def individual_risk(
    f: npt.ArrayLike, F: npt.ArrayLike | None = None, *, approximation: Approximation = "exact"
) -> Floats:
    r"""Give each record the probability that a match with it is right.

    Parameters
    ----------
    f
        Sample size of each record's cell; 0 (not counted) gives not a number.
    F
        Estimated population size of the cell. Without it the file is taken as the
        population: the risk is 1 / f. Where F < f, F is taken as f.
    approximation
        `"exact"`, or `"sdcmicro"` for that program's short form where f ≥ 3.

    Notes
    -----
    Given f, F is negative binomial with success probability π = f / F, and the risk is

    .. math:: E[1/F \mid f] = \frac{\pi^f}{f}\,{}_2F_1(f, f; f+1; 1-\pi)
              = \frac{\pi}{f}\,{}_2F_1(1, 1; f+1; 1-\pi)

    (Benedetti & Franconi 1998; Franconi & Polettini 2004), between 1/F and 1/f. With
    q = 1 - π it is π/q·log(1/π) for f = 1, π/q - (π/q)²·log(1/π) for f = 2, and in general
    r(f+1) = π/q·(1/f - r(f)). That recurrence loses nothing while π < 1/2; elsewhere, and for
    large f, the second series has only positive terms that fall fast (general routines for
    ₂F₁ overflow at f = 100). sdcMicro (Templ, Kowarik & Meindl 2015) has the same closed
    forms for f ≤ 2 and π/(f - q) for f ≥ 3, which lies a little above the exact value.

    Examples
    --------
    >>> individual_risk([1, 2, 4], [215, 360, 4]).round(4).tolist()
    [0.0251, 0.0054, 0.25]
    """
    sizes = np.asarray(f)
    people = np.asarray(sizes if F is None else F, dtype=np.float64)
    counted = sizes > 0
    whole = sizes.size == 0 or (sizes.dtype.kind in "iu" and sizes.min() >= 0)
    fit = people.shape == sizes.shape and _finite(people[counted])
    require(
        (not whole, "f must be whole numbers of 0 or more."),
        (not fit, "F must be a finite number of 0 or more for each record."),
        (approximation not in get_args(Approximation), "approximation must be exact or sdcmicro."),
    )
    count = sizes[counted].astype(np.float64)
    # A cell holds at least the people seen in it: π is 1 at most.
    ratio = count / np.maximum(people[counted], count)
    series = (ratio >= 0.5) | (count > RECURRENCE_LIMIT)
    value = np.empty_like(ratio)
    value[series] = _by_series(count[series], ratio[series])
    value[~series] = _by_recurrence(count[~series], ratio[~series])
    if approximation == "sdcmicro":
        value = np.where(count > 2, ratio / (count - (1.0 - ratio)), value)
    risk = np.full(sizes.shape, np.nan)
    risk[counted] = value
    return risk


def _by_series(count: Floats, ratio: Floats) -> Floats:
    """Sum π/f · Σ k!/((f+1)…(f+k)) · q^k until the terms no longer count."""
    term, total, step = np.ones_like(ratio), np.ones_like(ratio), 0
    while term.max(initial=0.0) > 1e-17:
        step += 1
        term *= (1.0 - ratio) * step / (count + step)
        total += term
    return ratio / count * total


def _by_recurrence(count: Floats, ratio: Floats) -> Floats:
    """Climb from f = 1 by r(f+1) = π/q · (1/f - r(f))."""
    odds = ratio / (1.0 - ratio)
    risk = odds * -np.log(ratio)
    for size in range(1, int(count.max(initial=1.0))):
        more = count > size
        risk[more] = odds[more] * (1.0 / size - risk[more])
    return risk


def intrusion_probability(uniques: float, pairs: float, fraction: float) -> Estimate:
    r"""Estimate how likely a unique match is right, or give None and why it cannot be.

    Parameters
    ----------
    uniques, pairs
        Number of *cells* of size one and of size two.
    fraction
        The sampling fraction π.

    Notes
    -----
    Data intrusion simulation (Skinner & Elliot 2002), n₁ and n₂ the two numbers of cells:
    :math:`\hat\theta = n_1 \pi / (n_1 \pi + 2 n_2 (1 - \pi))`.

    Examples
    --------
    >>> intrusion_probability(6, 1, 0.25), intrusion_probability(0, 0, 0.01)
    ((0.5, ''), (None, 'no cell holds one or two records'))
    """
    require(
        (not min(uniques, pairs) >= 0, "uniques and pairs must be 0 or more."),
        (not fraction > 0, f"fraction must be above 0. Got {fraction!r} instead."),
    )
    if fraction > 1:
        return None, "the weights add to fewer people than there are records"
    if uniques == pairs == 0:
        return None, "no cell holds one or two records"
    if pairs == 0 and fraction < 1:
        return None, "no cell has exactly two records, by which false matches are estimated"
    right, wrong = uniques * fraction, 2 * pairs * (1 - fraction)
    if right + wrong == 0:
        return None, "the file is the whole population and nobody in it is unique"
    return right / (right + wrong), ""


def sampling_bound(fraction: float) -> float:
    """Bound the chance of an intruder who does not know whether a person was sampled.

    The person sought is in the file with probability π only (Hawala & Funk, section 3.1).
    """
    require((not fraction > 0, f"fraction must be above 0. Got {fraction!r} instead."))
    return min(float(fraction), 1.0)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PopulationRisk(Result):
    """Exposure of a file in its population, with the risk of each record.

    `population` (F), `risk` and `household` have one value a record, not a number where it
    was not counted, or are None for want of weights, fraction or households. Figures that
    cannot be estimated are None and `notes` says why. `model` has population uniques and
    expected re-identifications by a model of the whole key, with intervals.
    """

    records: Annotated[int, COUNT]
    counted: Annotated[int, COUNT]
    approximation: Approximation
    sampling_fraction: float | None
    sampling_bound: float | None
    expected_reidentifications: float | None
    global_risk: float | None
    max_individual_risk: float | None
    household_global_risk: Annotated[float | None, When("of_households")]
    dis_probability: float | None
    notes: tuple[str, ...]
    model: Annotated[PopulationModel | None, WHEN_SET]
    population: Annotated[Floats | None, HIDDEN]
    risk: Annotated[Floats, HIDDEN]
    household: Annotated[Floats | None, HIDDEN]

    @property
    def of_households(self) -> bool:
        """Whether the households of records are known."""
        return self.household is not None or self.household_global_risk is not None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record: F, risk and household risk where there are any."""
        columns = {"F": self.population, "risk": self.risk, "household_risk": self.household}
        return pl.DataFrame({name: c for name, c in columns.items() if c is not None})

    def tables(self) -> list[Table]:
        """Return the figures as one table."""
        apart = ("records", "counted", "approximation", "notes", "model")
        rows = [
            [_WORDS.get(name, name.replace("_", " ")), share(value)]
            for name, value in self.to_dict().items()
            if name not in apart
        ]
        title = f"Exposure in the population, {self.counted:,} of {self.records:,} records"
        return [Table(title, ["figure", "value"], rows, self.notes), *tables_of(self.model)]


def measure_population(
    f: npt.ArrayLike,
    *,
    cells: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    fraction: float | None = None,
    population: npt.ArrayLike | None = None,
    households: npt.ArrayLike | None = None,
    approximation: Approximation = "exact",
    model: PopulationModel | None = None,
) -> PopulationRisk:
    """Measure a file's exposure in the population it was drawn from.

    `f` and `cells` are the size (0 where not counted) and number of each record's cell. Without
    weights and fraction the file is taken as the population. `population` is F where cells overlap,
    as when a missing key matches every value; half the records with f = 2 then stand for the cells
    of size two. `model` is that of the whole key, if there is one.

    The global risk is the mean individual risk (Templ, Kowarik & Meindl 2015), the sampling
    fraction n / Σ weights. Benedetti & Franconi's model takes each cell by itself: on sparse keys
    its sum of 1/F is far too low, and a note says so; `model` has no such fault.
    """
    sizes = np.asarray(f)
    amounts = None if weights is None else np.asarray(weights, dtype=np.float64)
    require(*([] if amounts is None else _weight_checks(amounts, sizes.shape)))
    # F and the sampling fraction, each None where nothing tells it.
    rate = None if fraction is None else float(fraction)
    rate = rate if amounts is None else amounts.size / float(amounts.sum())
    people = None if rate is None else sizes / rate
    if population is not None:
        people = np.asarray(population, dtype=np.float64)
    elif amounts is not None and cells is not None:
        people = population_sizes(cells, amounts)
    risk = individual_risk(sizes, people, approximation=approximation)
    joint = None if households is None else household_risk(risk, households)
    right: Estimate = (None, "neither weights nor a sampling fraction are given")
    if rate is not None:
        pairs = float((sizes == 2).sum()) / 2
        right = intrusion_probability(int((sizes == 1).sum()), pairs, rate)
    counted = sizes > 0
    some = bool(counted.any())
    found = PopulationRisk(
        records=len(sizes),
        counted=int(counted.sum()),
        approximation=approximation,
        sampling_fraction=rate,
        sampling_bound=None if rate is None else sampling_bound(rate),
        expected_reidentifications=float(risk[counted].sum()) if some else None,
        global_risk=float(risk[counted].mean()) if some else None,
        max_individual_risk=float(risk[counted].max()) if some else None,
        household_global_risk=float(joint[counted].mean()) if some and joint is not None else None,
        dis_probability=right[0],
        notes=(),
        model=model,
        population=None if people is None else np.where(counted, people, np.nan),
        risk=risk,
        household=joint,
    )
    return replace(found, notes=tuple(_notes(found, sizes, right[1])))


# From this share of uniques on the cells of a sample are called sparse.
SPARSE = 0.05


def _notes(found: PopulationRisk, sizes: Array, reason: str) -> Iterator[str]:
    """Say what to bear in mind; `reason` is why a right match cannot be estimated."""
    people, rate, model = found.population, found.sampling_fraction, found.model
    if left_out := int((sizes == 0).sum()):
        yield f"{left_out:,} records were not counted and have no risk"
    if people is None:
        yield "the file is taken as the population: the risk is 1 / f"
    # A sum of weights may fall short of a whole number by rounding alone.
    elif short := int((people < sizes * (1 - 1e-9)).sum()):
        yield f"{short:,} records are in cells whose weights add to less than f: F is taken as f"
    if reason:
        yield f"probability of a correct match not estimable: {reason}"
    # Benedetti & Franconi's sum is too low, by how much if the model tells it.
    expected, lower = None if model is None else model.reidentifications, ""
    matches = found.expected_reidentifications or 0.0
    if expected is not None and expected.estimate > 0 and matches < expected.low:
        lower = f"{1 - matches / expected.estimate:.0%} below the estimate of the model"
    elif expected is None and (sizes == 1).sum() >= SPARSE * len(sizes):
        lower = "far too low"
    if lower and rate is not None and rate < 1:
        yield (
            "cells are sparse: the expected re-identifications and individual risks, estimated "
            f"cell by cell (Benedetti and Franconi), are {lower}"
        )


def _finite(amounts: Floats) -> bool:
    with np.errstate(over="ignore"):
        return bool((amounts >= 0).all() and np.isfinite(amounts.sum()))


def _weight_checks(weights: Floats, shape: tuple[int, ...]) -> list[Check]:
    return [
        (weights.shape != shape, "weights must be given for each record."),
        (not _finite(weights), "weights must be finite, also together, and 0 or more."),
        (not weights.any(), "weights must not all be 0."),
    ]
