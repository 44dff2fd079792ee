"""Correlations of numbers and association of categories, original against implicates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.data import Microdata
from keyhole.data.columns import Codes
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats
from keyhole.results import Result, Table
from keyhole.screening.dependence import cramers_v
from keyhole.utility.figures import amount
from keyhole.utility.implicates import chosen, numbers
from keyhole.utility.sides import load_sides

__all__ = ["Correlation", "Correlations", "compare_correlations"]

MEASURES = {"pearson": "correlation", "cramers_v": "Cramér's V"}
# A summary shows the pairs that differ most.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Correlation:
    """How strongly two variables go together; `synthetic` is the mean over the implicates.

    `kind` is ``pearson`` for two numbers and ``cramers_v`` for two categorical variables. None
    where a variable does not vary.
    """

    first: str
    second: str
    kind: str
    original: float | None
    synthetic: float | None

    @property
    def difference(self) -> float | None:
        """The synthetic figure less the original one."""
        if self.original is None or self.synthetic is None:
            return None
        return self.synthetic - self.original

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "first": self.first,
            "second": self.second,
            "kind": self.kind,
            "original": self.original,
            "synthetic": self.synthetic,
            "difference": self.difference,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Correlations(Result):
    """How far correlations are from the original's.

    Parameters
    ----------
    pairs
        One for each pair of numbers, and of categorical variables.
    implicates
        How many implicates were averaged.
    """

    pairs: tuple[Correlation, ...]
    implicates: int

    def largest(self, kind: str = "pearson") -> float | None:
        """Return the largest absolute difference of a kind; None if there is none."""
        found = [one.difference for one in self.pairs if one.kind == kind]
        return max((abs(x) for x in found if x is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        lost = any(one.difference is None for one in self.pairs)
        return {
            "implicates": self.implicates,
            "largest_difference": {kind: self.largest(kind) for kind in MEASURES},
            "pairs": [one.to_dict() for one in self.pairs],
            "notes": ["null: a variable of the pair does not vary, or is missing"] if lost else [],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair."""
        kinds: dict[str, Any] = dict.fromkeys(("first", "second", "kind"), pl.String)
        kinds |= dict.fromkeys(("original", "synthetic", "difference"), pl.Float64)
        return pl.DataFrame([one.to_dict() for one in self.pairs], schema=kinds)

    def tables(self) -> list[Table]:
        """Return the pairs that differ most, of each kind."""
        return [self._table(kind) for kind in MEASURES if self._sorted(kind)]

    def _sorted(self, kind: str) -> list[Correlation]:
        mine = [one for one in self.pairs if one.kind == kind]
        return sorted(mine, key=lambda one: -abs(one.difference or 0.0))

    def _table(self, kind: str) -> Table:
        found = self._sorted(kind)
        rows = [
            [one.first, one.second, *map(amount, (one.original, one.synthetic, one.difference))]
            for one in found[:SHOWN]
        ]
        more = len(found) - SHOWN
        notes = [f"Synthetic: the mean over {self.implicates} implicates."]
        notes += [f"And {more:,} more, which differ less."] if more > 0 else []
        columns = ["first", "second", MEASURES[kind], "synthetic", "difference"]
        title = f"{MEASURES[kind][0].upper()}{MEASURES[kind][1:]} of pairs"
        return Table(title, columns, rows, notes)


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
    original
        The data before synthesis: a frame, a file or microdata.
    implicates
        The synthetic data: a folder, a frame, or a list of them.
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
    measures = _of_kind(data[0], "measure") if numeric is None else chosen(numeric)
    groups = _of_kind(data[0], "category") if categorical is None else chosen(categorical)
    return Correlations((*_correlated(data, measures), *_associated(data, groups)), len(data) - 1)


def _of_kind(data: Microdata, kind: str) -> tuple[str, ...]:
    return tuple(one.name for one in data.variables if one.kind == kind)


def _correlated(data: Sequence[Microdata], names: Sequence[str]) -> list[Correlation]:
    values, problems = [], {}
    for one in data:
        for name in names:
            try:
                values.append(numbers(one, name))
            except ColumnError as error:
                problems.update(dict.fromkeys(error.problems))
    if problems:
        raise ColumnError(problems)
    columns = [values[i : i + len(names)] for i in range(0, len(values), len(names) or 1)]
    return [
        _pair(names[i], names[j], "pearson", [pearson(one[i], one[j]) for one in columns])
        for i, j in itertools.combinations(range(len(names)), 2)
    ]


def pearson(x: Floats, y: Floats) -> float | None:
    """Return the correlation over the records that have both; None if one does not vary.

    Examples
    --------
    >>> pearson(np.array([1.0, 2.0, np.nan]), np.array([3.0, 1.0, 2.0]))
    -1.0
    """
    there = np.isfinite(x) & np.isfinite(y)
    x, y = x[there], y[there]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return None
    x, y = (v / np.abs(v).max() for v in (x, y))  # so that no sum is infinite
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _associated(data: Sequence[Microdata], names: Sequence[str]) -> list[Correlation]:
    return [
        _pair(a, b, "cramers_v", [_association(one.codes(a), one.codes(b)) for one in data])
        for a, b in itertools.combinations(names, 2)
    ]


def _association(a: Codes, b: Codes) -> float | None:
    if min(a.size, b.size) < 2:
        return None
    pairs = a.values.astype(np.int64) * b.size + b.values
    found, counts = np.unique(pairs, return_counts=True)
    return cramers_v(counts, found // b.size, found % b.size)


def _pair(first: str, second: str, kind: str, figures: Sequence[float | None]) -> Correlation:
    after = [x for x in figures[1:] if x is not None]
    synthetic = float(np.mean(after)) if len(after) == len(figures) - 1 else None
    return Correlation(first, second, kind, figures[0], synthetic)
