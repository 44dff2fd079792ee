"""Cell estimates of a table, with variances and intervals.

Records are taken as drawn with replacement, each with its weight: what a public file lets an
analyst assume when neither replicate weights nor strata and clusters are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from keyhole.core.names import plural
from keyhole.data import Microdata
from keyhole.kernels.arrays import Floats, Ints
from keyhole.utility.combining import combine
from keyhole.utility.implicates import numbers, shared_codes, split
from keyhole.utility.survey_design import Linearised, ReplicateWeights
from keyhole.utility.totals import Calibration

FIGURES = ("estimate", "se", "df", "low", "high")
"""What a cell has besides its values on the variables."""
PLAIN_ERRORS = (
    "from one implicate, se and interval are those of an ordinary file: they leave out what the "
    "synthesis adds, and are somewhat too short"
)

Scale = Literal["plain", "log", "logit"]
Share = Literal["table", "rows", "cols"]
Estimates = tuple[Floats, Floats]


def cell_counts(cells: Ints, size: int) -> Estimates:
    """Count the records of each cell: n p, with the variance n p (1 - p)."""
    counts = np.bincount(cells, minlength=size).astype(np.float64)
    return counts, counts * (1 - counts / len(cells))


def cell_totals(cells: Ints, size: int, weights: Floats) -> Estimates:
    """Add up the weights z of each cell, with the variance n/(n - 1) Σ (z - mean of z)²."""
    n = len(cells)
    totals: Floats = np.bincount(cells, weights, size).astype(np.float64)
    squares = np.bincount(cells, weights**2, size) - totals**2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return totals, np.maximum(squares, 0.0) * np.float64(n) / np.float64(n - 1)


def cell_shares(cells: Ints, groups: Ints, weights: Floats) -> Estimates:
    """Return the share of each cell in the weight of its group, linearised as a ratio."""
    n, size = len(cells), len(groups)
    total = np.bincount(cells, weights, size)
    squares = np.bincount(cells, weights**2, size)
    whole, spread = (np.bincount(groups, one)[groups] for one in (total, squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = total / whole
        errors = squares * (1 - share) ** 2 + (spread - squares) * share**2
        return share, errors / whole**2 * np.float64(n) / np.float64(n - 1)


def cell_means(cells: Ints, size: int, values: Floats, weights: Floats) -> Estimates:
    """Average a variable in each cell, over the records on which it is not missing.

    A ratio, linearised: n/(n - 1) Σ e² with e = w (y - mean) / Σ w over the cell, n the records of
    the file. Not a number in a cell without records, nor its variance in one with a single record.
    """
    there = ~np.isnan(values)
    n, cells, values, weights = len(cells), cells[there], values[there], weights[there]
    held = np.bincount(cells, weights > 0, size)
    total = np.bincount(cells, weights, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(cells, weights * values, size) / total
        shares = weights * (values - mean[cells]) / total[cells]
        variance = np.bincount(cells, shares**2, size) * np.float64(n) / np.float64(n - 1)
    return np.where(held > 0, mean, np.nan), np.where(held > 1, variance, np.nan)


def interval(
    estimate: Floats,
    se: Floats,
    df: Floats,
    *,
    level: float,
    scale: Scale = "plain",
    top: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return the bounds of confidence intervals.

    `scale` says where an estimate is taken to be normal: as it is, its logarithm, or its logit,
    with `top` the largest value it can have. An estimate at its bound, which has no such interval,
    has no error either where it is a count or a share.
    """
    from scipy.stats import t

    half = t.ppf((1 + level) / 2, df) * se
    if scale == "plain":
        return estimate - half, estimate + half
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            ratio = np.exp(half / estimate)
            low, high = estimate / ratio, estimate * ratio
        else:
            share = estimate / top
            centre, step = np.log(share / (1 - share)), half / (top * share * (1 - share))
            low, high = (top / (1 + np.exp(-(centre + way * step))) for way in (-1, 1))
    inner = np.isfinite(low) & np.isfinite(high)
    return np.where(inner, low, estimate), np.where(inner, high, estimate)


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """Estimates of the cells of tables: the implicates with weights and values, and how."""

    data: Sequence[Microdata]
    weights: Sequence[Floats] | None
    values: Sequence[Floats] | None
    share: Share | None
    level: float
    design: ReplicateWeights | Sequence[Linearised] | None = None
    calibration: Calibration | None = None

    def table(
        self, variables: Sequence[str], within: Sequence[str]
    ) -> tuple[pl.DataFrame, list[str]]:
        """Tabulate by some variables; shares are within the categories of others among them."""
        labels, cells = find_cells(self.data, variables)
        places: dict[tuple[Any, ...], int] = {}
        sides = labels[list(within)].rows() if within else [()] * (labels.height or 1)
        groups = np.array([places.setdefault(side, len(places)) for side in sides])
        figures, notes = self.figures(cells, groups)
        return labels.hstack(figures) if variables else figures, notes

    def figures(self, cells: Sequence[Ints], groups: Ints) -> tuple[pl.DataFrame, list[str]]:
        """Estimate cells, numbered by record in each implicate and alike in all."""
        # Where squares are too large for a number, there is no standard error.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._combined([self._estimate(at, one, groups) for at, one in enumerate(cells)])

    def margins(self, down: Sequence[str], across: Sequence[str]) -> dict[str, pl.DataFrame]:
        """Tabulate by rows alone, by columns alone, and as a whole."""
        sides = {
            side: self.table(variables, variables if self.share == side else ())[0]
            for side, variables in (("rows", down), ("cols", across))
            if across
        }
        return {**sides, "total": self.table((), ())[0]}

    def _estimate(self, place: int, cells: Ints, groups: Ints) -> Estimates:
        weights = None if self.weights is None else self._calibrated(place, self.weights[place])
        found, variance = self._plain(place, cells, groups, weights)
        if isinstance(self.design, ReplicateWeights):
            again = (numbers(self.data[place], name) for name in self.design.names)
            others = [
                self._plain(place, cells, groups, self._calibrated(place, one))[0] for one in again
            ]
            return found, self.design.variance(found, np.stack(others))
        if self.design is None:
            return found, variance
        amounts = np.ones(len(cells)) if weights is None else weights
        shares, alike = np.zeros(len(groups)), np.zeros_like(groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.values is not None:
                there = ~np.isnan(self.values[place])
                total = np.bincount(cells[there], amounts[there], len(groups))
                amounts = amounts * (self.values[place] - found[cells]) / total[cells]
            elif self.share is not None:
                amounts = amounts / np.bincount(groups[cells], amounts)[groups[cells]]
                shares, alike = found, groups
        linearised = self.design[place].variance(
            cells, np.nan_to_num(amounts), np.nan_to_num(shares), alike
        )
        return found, np.where(np.isnan(variance), np.nan, linearised)

    def _calibrated(self, place: int, weights: Floats) -> Floats:
        return weights if self.calibration is None else self.calibration.weights(place, weights)

    def _plain(self, place: int, cells: Ints, groups: Ints, weights: Floats | None) -> Estimates:
        """Estimate as if records had been drawn with replacement."""
        size, each = len(groups), np.ones(len(cells)) if weights is None else weights
        if self.values is not None:
            return cell_means(cells, size, self.values[place], each)
        if self.share is not None:
            return cell_shares(cells, groups, each)
        return cell_counts(cells, size) if weights is None else cell_totals(cells, size, weights)

    @property
    def _df(self) -> float:
        """The degrees of freedom of the variances of each implicate."""
        if isinstance(self.design, ReplicateWeights):
            return self.design.df
        return np.inf if self.design is None else min(one.df for one in self.design)

    def _combined(self, found: Sequence[Estimates]) -> tuple[pl.DataFrame, list[str]]:
        """Combine cell by cell; a cell that one implicate cannot estimate is not estimable."""
        q, v = (np.stack(part) for part in zip(*found, strict=True))
        estimable = np.isfinite(q).all(axis=0)
        sure = estimable & np.isfinite(v).all(axis=0)
        columns = {name: np.full(q.shape[1], np.nan) for name in FIGURES}
        columns["estimate"][estimable] = q[:, estimable].mean(axis=0)
        large = estimable & np.isinf(v).any(axis=0)
        empty, single = int((~estimable).sum()), int((estimable & ~sure & ~large).sum())
        missing = [
            ("share" if self.share else "mean", empty, "some implicate has no record there"),
            ("standard error", single, "some implicate has a single record there"),
            ("standard error", int(large.sum()), "the values are too large to square"),
        ]
        notes = [
            f"the {what} of {plural(many, 'cell')} is not estimable: {why}"
            for what, many, why in missing
            if many
        ]
        if sure.any():
            if len(q) == 1:
                se, df = np.sqrt(v[0, sure]), np.full(int(sure.sum()), self._df)
                notes.append(PLAIN_ERRORS)
            else:
                combined = combine(q[:, sure], v[:, sure], df=self._df)
                se, df = (np.asarray(one, np.float64) for one in (combined.se, combined.df))
                notes += combined.notes
            columns["se"][sure], columns["df"][sure] = se, df
            # Where an estimate is taken to be normal, and the most it can be.
            scale: Scale = "plain" if self.values is not None else "logit"
            counts = self.values is None and self.share is None
            if counts and (self.weights is not None or self.design is not None):
                scale = "log"
            top = float(self.data[0].records) if counts else 1.0
            columns["low"][sure], columns["high"][sure] = interval(
                columns["estimate"][sure], se, df, level=self.level, scale=scale, top=top
            )
        return pl.DataFrame(columns).fill_nan(None), notes


def find_cells(
    data: Sequence[Microdata], variables: Sequence[str]
) -> tuple[pl.DataFrame, list[Ints]]:
    """Return the labels of the occupied cells, and the cell of each record by implicate."""
    cells = np.zeros(sum(one.records for one in data), dtype=np.int64)
    labels: list[pl.Series] = []
    for name in variables:
        codes = shared_codes(data, name)
        # Numbered anew after each variable: a product of all the sizes may not fit into 64 bits.
        found, cells = np.unique(cells * codes.size + codes.values, return_inverse=True)
        labels = [series[found // codes.size] for series in labels]
        levels = pl.concat([codes.levels, codes.levels.clear(1)]).alias(name)
        labels.append(levels[found % codes.size])
    return pl.DataFrame(labels), split(cells, data)
