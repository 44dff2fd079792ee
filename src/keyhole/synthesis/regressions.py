"""Regressions and subgroup means chosen from the data: what an analyst of the implicates finds.

Nobody knows which models will be fitted to a release. So each of its columns is regressed on all
targets, and each target on the other targets and the keys, in the original and in the implicates,
and the coefficients are combined as their analyst would (Reiter 2003). Likewise the mean of each
target is compared in every subgroup that a column of the release makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from keyhole.core.codec import members_to_plain
from keyhole.core.marks import COUNT, HIDDEN, figure
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.exposure.regrouping import level_label
from keyhole.kernels.arrays import Floats
from keyhole.results import Result
from keyhole.synthesis.associations import comparable_columns
from keyhole.synthesis.design import is_numeric, standardise
from keyhole.synthesis.implicates import Implicates
from keyhole.utility.coefficients import interval_overlap
from keyhole.utility.combining import combine

# A category enters by its most frequent levels, each held by at least this share of the records.
MOST_LEVELS, LEAST_SHARE = 4, 0.02
# A model has at least so many records a coefficient.
RECORDS_A_TERM = 20
# So many models are shown.
SHOWN = 10
# Means are compared in subgroups of so many records. Columns of more levels make no subgroups.
LEAST_SUBGROUP, MOST_SUBGROUPS = 100, 60
# The normal deviate of a 95 % interval; the smallest standard error that is divided by.
NORMAL, TINY = 1.959963984540054, 1e-300
# From this ratio of variances on, within and between implicates, t is the normal distribution.
MOST_RATIO = 1e4


@dataclass(frozen=True, slots=True)
class Regression:
    """One model: how many coefficients are kept, their mean overlap, the largest difference."""

    outcome: str
    coefficients: int
    kept: int
    overlap: float
    largest: float


@dataclass(frozen=True, slots=True, repr=False)
class Regressions(Result):
    """The models, those with the largest difference first."""

    models: tuple[Regression, ...]
    implicates: Annotated[int, HIDDEN]

    @property
    @figure()
    def coefficients(self) -> int:
        """How many coefficients all models have."""
        return sum(one.coefficients for one in self.models)

    @property
    @figure()
    def kept(self) -> float | None:
        """The share of coefficients whose combined interval holds the original's estimate."""
        return sum(one.kept for one in self.models) / self.coefficients if self.models else None

    @property
    @figure()
    def overlap(self) -> float | None:
        """The mean interval overlap of all coefficients."""
        total = sum(one.coefficients * one.overlap for one in self.models)
        return float(total / self.coefficients) if self.models else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a model."""
        return pl.DataFrame([members_to_plain(one) for one in self.models])

    def tables(self) -> list[Table]:
        """Return the models that differ most."""
        rows = [
            [one.outcome, f"{one.coefficients}", f"{one.kept}", f"{one.overlap:.3f}",
             f"{one.largest:.2f}"]
            for one in self.models[:SHOWN]
        ]  # fmt: skip
        heads = ["outcome", "coefficients", "in the interval", "overlap", "largest difference"]
        notes = [
            "Linear models: every column on the targets, every target on the others and the keys. "
            "Differences in standard errors of the original."
        ]
        if len(self.models) > SHOWN:
            notes.append(f"{SHOWN} of {len(self.models):,} models: those that differ most.")
        return [Table("Regressions chosen from the data", heads, rows, notes)]


@dataclass(frozen=True, slots=True)
class SubgroupMean:
    """The mean of a target among the records of a level, in the mean of the implicates.

    `difference` is in standard deviations of the target within the subgroup, before and after, and
    so is `reach`, the half width of the combined interval, in 95 % wide enough for all subgroups.
    """

    target: str
    column: str
    level: str
    records: Annotated[int, COUNT]
    difference: float
    reach: float

    @property
    @figure()
    def kept(self) -> bool:
        """Whether the interval holds the original's mean."""
        return abs(self.difference) <= self.reach


@dataclass(frozen=True, slots=True, repr=False)
class SubgroupMeans(Result):
    """The means that differ most, those outside their interval first.

    `compared` is how many there are, `inside` how many hold the original's in a 95 % interval of
    their own.
    """

    means: tuple[SubgroupMean, ...]
    compared: int
    inside: int

    @property
    @figure()
    def kept(self) -> float | None:
        """The share of means whose own 95 % interval holds the original's."""
        return self.inside / self.compared if self.compared else None

    @property
    @figure()
    def largest(self) -> float | None:
        """The largest difference outside the interval for all; None if there is no mean."""
        return max((abs(one.difference) * (not one.kept) for one in self.means), default=None)

    def tables(self) -> list[Table]:
        """Return the means that differ most."""
        rows = [
            [one.target, one.column, one.level, f"{one.records:,}", f"{one.difference:+.3f}",
             f"± {one.reach:.3f}"]
            for one in self.means
        ]  # fmt: skip
        heads = ["target", "column", "level", "records", "difference", "interval"]
        notes = [
            f"Differences of means and shares in standard deviations within the subgroup, of "
            f"subgroups of at least {LEAST_SUBGROUP:,} records. {self.inside:,} of "
            f"{self.compared:,} are within their combined 95 % interval. Shown are the largest "
            f"outside intervals that hold for all of them at once (Bonferroni), then the others."
        ]
        return [Table("Means within subgroups", heads, rows, notes)] if rows else []


def compare_subgroups(implicates: Implicates) -> SubgroupMeans:
    """Compare the mean of each target in every subgroup that a column of the release makes."""
    from scipy.stats import t

    data, found, count = implicates.data, [], len(implicates)
    groups = {
        name: data.codes(name).values
        for name in comparable_columns(data)
        if not is_numeric(data, name) and data.codes(name).size <= MOST_SUBGROUPS
    }
    sizes = {name: np.bincount(codes) for name, codes in groups.items()}
    everybody = np.arange(data.records)
    for term in (term for target in implicates.targets for term in _outcomes(data, target)):
        values = term.values[data.codes(term.column).values]
        known = np.isfinite(values)
        plain = np.where(known, values, 0.0)
        for name in (name for name in groups if name != term.column):
            powers = []
            for i in range(-1, count):  # the original first
                sources = (implicates.source(i, one) for one in (term.column, name))
                of, at = (everybody, everybody) if i < 0 else sources
                codes = groups[name][at]
                sums = [
                    np.bincount(codes, x[of], len(sizes[name])) for x in (known, plain, plain**2)
                ]
                powers.append(np.stack(sums[1:]) / np.maximum(sums[0], 1))
            (before, squares), (after, squared) = powers[0], np.mean(powers[1:], axis=0)
            variance = np.maximum(squares - before**2 + squared - after**2, 0) / 2
            spread = np.where(variance > TINY, np.sqrt(variance), np.inf)
            # Reiter's rules, with the variance before and after: a share of 0 has none by itself.
            within = variance / np.maximum(sizes[name], 1)
            between = np.var([one[0] for one in powers[1:]], axis=0) / max(count - 1, 1) + TINY
            df = max(count - 1, 1) * (1 + np.minimum(within / between, MOST_RATIO)) ** 2
            figures = np.stack([after - before, np.sqrt(within + between)]) / spread
            levels = np.flatnonzero(sizes[name] >= LEAST_SUBGROUP).tolist()
            found += [(*figures[:, n].tolist(), df[n], term.label, name, n) for n in levels]
    if not found:
        return SubgroupMeans((), 0, 0)
    off, error, freedom = np.array([one[:3] for one in found]).T
    own, all_ = (t.ppf(1 - 0.025 / tests, freedom) * error for tests in (1, len(found)))
    order = np.lexsort((-np.abs(off), np.abs(off) <= all_))[:SHOWN].tolist()
    shown = []
    for i in order:
        label, name, level = found[i][3:]
        named = (label, name, level_label(data, name, level), int(sizes[name][level]))
        shown.append(SubgroupMean(*named, float(off[i]), float(all_[i])))
    return SubgroupMeans(tuple(shown), len(found), int((np.abs(off) <= own).sum()))


class _Term(NamedTuple):
    """A column of a model: by the code of a variable its value; NaN where that is missing."""

    label: str
    column: str
    values: Floats


def compare_regressions(implicates: Implicates, keys: Sequence[str]) -> Regressions:
    """Fit the models chosen from the data to the original and to each of several implicates."""
    data, targets, count = implicates.data, implicates.targets, len(implicates)
    if count < 2:
        return Regressions((), count)
    others = [name for name in comparable_columns(data) if name not in targets]
    near = [*targets, *(key for key in keys if key in others)]
    terms = {name: list(_terms(data, name)) for name in near}
    codes = {name: data.codes(name).values for name in dict.fromkeys([*near, *others])}
    drawn = [
        codes | {name: codes[name][implicates.source(i, name)] for name in targets}
        for i in range(count)
    ]
    models: list[tuple[list[str], list[_Term]]] = [
        (list(targets), [term for name in others for term in _outcomes(data, name)]),
        *(([n for n in near if n != t], list(_outcomes(data, t))) for t in targets),
    ]
    found = []
    for names, outcomes in models:
        used = [term for name in names for term in terms[name]]
        fits: list[list[Fit | None]] = [[] for _ in outcomes]
        for file in (codes, *drawn):
            columns = [one.values[file[one.column]] for one in used]
            x = np.column_stack([np.ones(data.records), *columns])
            for outcome, each in zip(outcomes, fits, strict=True):
                y = outcome.values[file[outcome.column]]
                each.append(fit_linear(x[np.isfinite(y)], y[np.isfinite(y)]))
        for outcome, each in zip(outcomes, fits, strict=True):
            known = [fit for fit in each if fit is not None]
            if len(known) == len(each) and used:
                found.append(_compared(outcome.label, known[0], known[1:]))
    return Regressions(tuple(sorted(found, key=lambda one: -one.largest)), count)


def _terms(data: Microdata, name: str) -> Iterator[_Term]:
    """Return the columns of a predictor: a number and whether it is missing, or levels."""
    shares = np.bincount(data.codes(name).values, minlength=data.codes(name).size) / data.records
    if is_numeric(data, name):
        number = _number(data, name)
        yield _Term(name, name, np.nan_to_num(number))
        if data.codes(name).has_missing and shares[-1] >= LEAST_SHARE:
            yield _Term(name, name, np.isnan(number).astype(np.float64))
        return
    for code in np.argsort(-shares, kind="stable")[1:MOST_LEVELS]:  # the first is the reference
        if shares[code] >= LEAST_SHARE:
            yield _Term(name, name, (np.arange(len(shares)) == code).astype(np.float64))


def _outcomes(data: Microdata, name: str) -> Iterator[_Term]:
    """Return what is predicted of a column: a number, or whether it has a frequent level."""
    codes = data.codes(name)
    if is_numeric(data, name):
        yield _Term(name, name, _number(data, name))
        return
    shares = np.bincount(codes.values, minlength=codes.size) / data.records
    order = np.argsort(-shares, kind="stable")
    for place, code in enumerate(order[: min(codes.size - 1, MOST_LEVELS)], 1):
        if shares[code] >= LEAST_SHARE:
            label = name if codes.size == 2 else f"{name}, its level {place} by size"
            yield _Term(label, name, (np.arange(codes.size) == code).astype(np.float64))


def _number(data: Microdata, name: str) -> Floats:
    """Return the numbers of a column's codes, in standard deviations; NaN if not finite."""
    codes = data.codes(name)
    levels = codes.levels.to_physical().cast(pl.Float64).to_numpy()
    counts = np.bincount(codes.values, minlength=codes.size)[: len(levels)]
    values, known = np.full(codes.size, np.nan), np.flatnonzero(np.isfinite(levels))
    if len(known):
        values[known] = standardise(levels[known, None], counts[known])[:, 0]
    return values


Fit = tuple[Floats, Floats]


def fit_linear(x: Floats, y: Floats) -> Fit | None:
    """Return slopes and variances; None with too few records, or columns that depend."""
    records, columns = x.shape
    if records < RECORDS_A_TERM * columns:
        return None
    products = x.T @ x
    if np.linalg.matrix_rank(products, hermitian=True) < columns:
        return None
    inverse = np.linalg.inv(products)
    solved = inverse @ (x.T @ y)
    residual = y - x @ solved
    variance = (residual @ residual) / (records - columns) * np.diag(inverse)
    return solved[1:], variance[1:]


def _compared(outcome: str, before: Fit, drawn: Sequence[Fit]) -> Regression:
    """Set the coefficients of the original beside those combined over the implicates."""
    estimate, error = before[0], np.sqrt(before[1])
    combined = combine([one[0] for one in drawn], [one[1] for one in drawn])
    intervals = combined.estimates.select("low", "high").to_numpy()
    inside = int(((intervals[:, 0] <= estimate) & (estimate <= intervals[:, 1])).sum())
    mine = np.column_stack([estimate - NORMAL * error, estimate + NORMAL * error])
    overlap = [interval_overlap(one, other) for one, other in zip(mine, intervals, strict=True)]
    off = np.abs(combined.estimates["estimate"].to_numpy() - estimate) / np.maximum(error, TINY)
    return Regression(outcome, len(estimate), inside, float(np.mean(overlap)), float(off.max()))
