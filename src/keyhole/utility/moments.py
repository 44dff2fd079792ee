"""Means, variances, shares and correlations of the original and of its implicates, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN, Named, figure
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats
from keyhole.results import Result
from keyhole.screening.dependence import codes_v
from keyhole.utility.figures import amount
from keyhole.utility.implicates import chosen, load_sides, numbers, shared_codes, split

_CATEGORIES = dict.fromkeys(("variable", "category"), pl.String) | dict.fromkeys(
    ("original", "synthetic", "difference"), pl.Float64
)
MEASURES = {"pearson": "correlation", "cramers_v": "Cramér's V"}
# A summary shows the pairs that differ most.
SHOWN = 20
_OVER = "Synthetic: the mean over {} implicates."


def _largest(differences: Iterable[float | None]) -> float | None:
    """Return the largest of the differences that are known, whatever its sign."""
    return max((abs(x) for x in differences if x is not None), default=None)


@dataclass(frozen=True, slots=True)
class MeasureMoments(Figures):
    """Mean and variance of a number; `synthetic_…` are means over the implicates.

    None where nothing can be computed: no value is there, or a single one.
    """

    variable: str
    mean: float | None
    synthetic_mean: float | None
    variance: float | None
    synthetic_variance: float | None
    missing: float
    synthetic_missing: float

    @property
    @figure()
    def relative_difference(self) -> float | None:
        """The difference of the means as a share of the original's; None if that is 0."""
        if not self.mean or self.synthetic_mean is None:
            return None
        return (self.synthetic_mean - self.mean) / abs(self.mean)

    @property
    @figure()
    def standardised_difference(self) -> float | None:
        """The difference of the means in standard deviations of the original."""
        if self.mean is None or self.synthetic_mean is None or not self.variance:
            return None
        return float((self.synthetic_mean - self.mean) / np.sqrt(self.variance))

    @property
    @figure()
    def variance_ratio(self) -> float | None:
        """The synthetic variance over the original one; None if that is 0."""
        if not self.variance or self.synthetic_variance is None:
            return None
        return self.synthetic_variance / self.variance


@dataclass(frozen=True, slots=True)
class Shares(Figures):
    """How the shares of a variable's categories differ; a missing value is one of them.

    `largest` is the largest absolute difference, `moved` half the sum of all: the share of
    records that would have to move to make the two the same.
    """

    variable: str
    categories: int
    largest: Annotated[float, Named("largest_difference")]
    moved: float


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Moments(Result):
    """How far means, variances and shares are from the original's.

    `categories` has one row a category: variable, category (as text), original and synthetic
    share, and their difference.
    """

    measures: tuple[MeasureMoments, ...]
    shares: tuple[Shares, ...]
    categories: Annotated[pl.DataFrame, HIDDEN]
    implicates: int
    weight: str | None = None

    @property
    @figure()
    def largest_relative_difference(self) -> float | None:
        """The largest relative difference of a mean, whatever its sign."""
        return _largest(one.relative_difference for one in self.measures)

    @property
    @figure()
    def largest_share_difference(self) -> float | None:
        """The largest difference of a share, whatever its sign."""
        return _largest(one.largest for one in self.shares)

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """Why a figure may be null."""
        lost = any(value is None for one in self.measures for value in one.to_dict().values())
        return ("null: there are no values, or the divisor is 0",) * lost

    def to_frame(self) -> pl.DataFrame:
        """Return one row a number: its moments before and after."""
        names = list(MeasureMoments("", None, None, None, None, 0, 0).to_dict())
        kinds: dict[str, Any] = dict.fromkeys(names, pl.Float64) | {"variable": pl.String}
        return pl.DataFrame([one.to_dict() for one in self.measures], schema=kinds)

    def tables(self) -> list[Table]:
        """Return the numbers, then the shares."""
        means = [
            [one.variable, *map(amount, (
                one.mean, one.synthetic_mean, one.relative_difference,
                one.variance, one.synthetic_variance, one.variance_ratio,
            ))]
            for one in self.measures
        ]  # fmt: skip
        shares = [
            [one.variable, f"{one.categories:,}", amount(one.largest), amount(one.moved)]
            for one in self.shares
        ]
        columns = ["variable", "mean", "synthetic", "relative difference", "variance",
                   "synthetic", "ratio"]  # fmt: skip
        notes = [_OVER.format(self.implicates)]
        heads = ["variable", "categories", "largest difference", "share moved"]
        found = [Table("Means and variances", columns, means, notes)] if means else []
        return found + ([Table("Shares of categories", heads, shares)] if shares else [])


def compare_moments(
    original: Any,
    implicates: Any,
    *,
    variables: str | Sequence[str] | None = None,
    weight: str | None = None,
) -> Moments:
    """Set means, variances and shares of implicates beside the original's.

    Parameters
    ----------
    original, implicates
        The data before synthesis, and the synthetic: frames, files, a folder, or a list of them.
    variables
        The variables to be compared; all the original's if left out. Measures get means and
        variances over the values that are there, the others shares.
    weight
        A weight, which may differ between implicates.

    Examples
    --------
    >>> before = pl.DataFrame({"income": [10.5, 20.0, 30.0], "sex": ["f", "f", "m"]})
    >>> after = pl.DataFrame({"income": [10.5, 21.0, 30.0], "sex": ["f", "m", "m"]})
    >>> found = compare_moments(before, after)
    >>> round(found.largest_relative_difference, 4), round(found.largest_share_difference, 4)
    (0.0165, 0.3333)
    """
    data = load_sides(original, implicates, variables, more=chosen(weight))
    weights = [np.ones(one.records) if weight is None else one.weights(weight) for one in data]
    names = [name for name in data[0].names if name != weight or name in chosen(variables)]
    measures = [name for name in names if data[0].variable(name).kind == "measure"]
    others = [_shares(data, name, weights) for name in names if name not in measures]
    frames = pl.concat([pl.DataFrame(schema=_CATEGORIES), *(frame for _, frame in others)])
    found = tuple(_moments(data, name, weights) for name in measures)
    return Moments(found, tuple(one for one, _ in others), frames, len(data) - 1, weight)


def _moments(data: Sequence[Microdata], name: str, weights: Sequence[Floats]) -> MeasureMoments:
    """Return mean, variance and the share that is missing, before and after."""
    found = []
    for one, every in zip(data, weights, strict=True):
        values = numbers(one, name)
        there = ~np.isnan(values)
        kept, w = values[there], every[there]
        held, n = float(w.sum()), int((w > 0).sum())
        # Infinite and very large values have no moments; they come out as not estimable.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mean = w @ kept / np.float64(held)
            variance = w @ (kept - mean) ** 2 / held * n / (n - 1) if n > 1 else np.nan
        found.append([float(mean), float(variance), 1 - held / float(every.sum())])
    pairs = zip(found[0], np.mean(found[1:], axis=0), strict=True)
    figures = [float(value) if np.isfinite(value) else None for pair in pairs for value in pair]
    return MeasureMoments(name, *figures)  # type: ignore[arg-type]


def _shares(
    data: Sequence[Microdata], name: str, weights: Sequence[Floats]
) -> tuple[Shares, pl.DataFrame]:
    codes = shared_codes(data, name)
    parts = split(codes.values, data)
    found = np.array(
        [np.bincount(c, w, codes.size) / w.sum() for c, w in zip(parts, weights, strict=True)]
    )
    before, after = found[0], found[1:].mean(axis=0)
    gaps = np.abs(after - before)
    gaps[gaps < 1e-15] = 0.0  # a mean of equal shares need not be that share to the last digit
    labels = codes.levels.cast(pl.String).to_list() + ["missing"] * codes.has_missing
    frame = pl.DataFrame(
        {"variable": [name] * codes.size, "category": labels, "original": before,
         "synthetic": after, "difference": after - before},
        schema=_CATEGORIES,
    )  # fmt: skip
    return Shares(name, codes.size, float(gaps.max(initial=0)), float(gaps.sum() / 2)), frame


@dataclass(frozen=True, slots=True)
class Correlation(Figures):
    """How strongly two variables go together; `synthetic` is the mean over the implicates.

    `kind` is ``pearson`` for two numbers and ``cramers_v`` for two categorical variables. None
    where a variable does not vary.
    """

    first: str
    second: str
    kind: Literal["pearson", "cramers_v"]
    original: float | None
    synthetic: float | None

    @property
    @figure()
    def difference(self) -> float | None:
        """The synthetic figure less the original one."""
        if self.original is None or self.synthetic is None:
            return None
        return self.synthetic - self.original


@dataclass(frozen=True, slots=True, repr=False)
class Correlations(Result):
    """How far correlations are from the original's, by pair of numbers or of categories."""

    pairs: tuple[Correlation, ...]
    implicates: int

    def largest(self, kind: str = "pearson") -> float | None:
        """Return the largest absolute difference of a kind; None if there is none."""
        return _largest(one.difference for one in self.pairs if one.kind == kind)

    @property
    @figure()
    def largest_difference(self) -> dict[str, float | None]:
        """The largest absolute difference of each kind."""
        return {kind: self.largest(kind) for kind in MEASURES}

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """Why a figure may be null."""
        lost = any(one.difference is None for one in self.pairs)
        return ("null: a variable of the pair does not vary, or is missing",) * lost

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair."""
        kinds: dict[str, Any] = dict.fromkeys(("first", "second", "kind"), pl.String)
        kinds |= dict.fromkeys(("original", "synthetic", "difference"), pl.Float64)
        return pl.DataFrame([one.to_dict() for one in self.pairs], schema=kinds)

    def tables(self) -> list[Table]:
        """Return the pairs that differ most, of each kind."""
        tables = []
        for kind, measure in MEASURES.items():
            mine = [one for one in self.pairs if one.kind == kind]
            mine.sort(key=lambda one: -abs(one.difference or 0.0))
            rows = [
                [one.first, one.second, *map(amount, (one.original, one.synthetic, one.difference))]
                for one in mine[:SHOWN]
            ]
            notes, more = [_OVER.format(self.implicates)], len(mine) - SHOWN
            notes += [f"And {more:,} more, which differ less."] if more > 0 else []
            columns = ["first", "second", measure, "synthetic", "difference"]
            title = f"{measure[0].upper()}{measure[1:]} of pairs"
            tables += [Table(title, columns, rows, notes)] if mine else []
        return tables


def compare_correlations(
    original: Any,
    implicates: Any,
    *,
    numeric: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
) -> Correlations:
    """Set correlations of implicates beside the original's.

    Numbers are correlated pair by pair over the records that have both (Pearson); categorical
    variables are compared by Cramér's V, corrected for bias, with a missing value as a category
    of its own.

    Parameters
    ----------
    original, implicates
        The data before synthesis, and the synthetic: frames, files, a folder, or a list of them.
    numeric
        The numbers; all measures if left out.
    categorical
        The categorical variables; all categories if left out. Give ``()`` for none.

    Examples
    --------
    >>> before = pl.DataFrame({"a": [1.5, 2.5, 3.5, 4.5], "b": [2.0, 4.5, 6.0, 8.0]})
    >>> after = pl.DataFrame({"a": [1.5, 2.5, 4.5, 3.5], "b": [2.0, 4.5, 6.0, 8.0]})
    >>> round(compare_correlations(before, after).largest(), 4)
    0.2042
    """
    named = (*chosen(numeric), *chosen(categorical))
    every = numeric is None or categorical is None
    data = load_sides(original, implicates, None if every else named, more=named)
    kinds = {one.name: one.kind for one in data[0].variables}
    measures = [name for name, kind in kinds.items() if kind == "measure"]
    groups = [name for name, kind in kinds.items() if kind == "category"]
    measures = measures if numeric is None else list(chosen(numeric))
    groups = groups if categorical is None else list(chosen(categorical))
    columns, problems = [dict[str, Floats]() for _ in data], dict[str, None]()
    for one, held in zip(data, columns, strict=True):
        for name in measures:
            try:
                held[name] = numbers(one, name)
            except ColumnError as error:
                problems.update(dict.fromkeys(error.problems))
    if problems:
        raise ColumnError(problems)
    pairs = []
    for a, b in itertools.combinations(measures, 2):
        pairs.append(_pair(a, b, "pearson", [pearson(held[a], held[b]) for held in columns]))
    for a, b in itertools.combinations(groups, 2):
        found: list[float | None] = []
        for one in data:
            codes = [one.codes(name) for name in (a, b)]
            values = [each.values.astype(np.int64) for each in codes]
            found.append(codes_v(*values) if min(each.size for each in codes) > 1 else None)
        pairs.append(_pair(a, b, "cramers_v", found))
    return Correlations(tuple(pairs), len(data) - 1)


def _pair(first: str, second: str, kind: Any, figures: Sequence[float | None]) -> Correlation:
    after = [x for x in figures[1:] if x is not None]
    synthetic = float(np.mean(after)) if len(after) == len(figures) - 1 else None
    return Correlation(first, second, kind, figures[0], synthetic)


def pearson(x: Floats, y: Floats) -> float | None:
    """Return the correlation over the records that have both; None if one does not vary."""
    there = np.isfinite(x) & np.isfinite(y)
    x, y = x[there], y[there]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return None
    x, y = (v / np.abs(v).max() for v in (x, y))  # so that no sum is infinite
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))
