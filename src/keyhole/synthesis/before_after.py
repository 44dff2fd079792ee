"""The distributions of the targets before and after, in bars fit to be drawn.

No bar is so small that it tells of a record: rare categories make one together, and the edges
of bins are round numbers that no record need have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Microdata
from keyhole.data.columns import Codes
from keyhole.kernels.arrays import Floats, Ints
from keyhole.synthesis.implicates import Implicates

__all__ = ["NAMED_FROM", "TargetBars", "bars_of"]


# A category, or a bin, of fewer records is not named.
NAMED_FROM = 3
MOST_CATEGORIES = 12
# Tried from the left until no bin is too small.
BINS = (20, 12, 6, 3)
TAIL = 0.01


@dataclass(frozen=True, slots=True)
class TargetBars:
    """Shares of records by bar, before and after.

    `synthetic` is the mean over the implicates, `lowest` and `highest` are the range of them.
    `ordered` tells bins of numbers from categories.
    """

    variable: str
    ordered: bool
    labels: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]


def bars_of(implicates: Implicates, target: str) -> TargetBars:
    """Count a target's values before and after.

    Examples
    --------
    >>> from keyhole.data import load
    >>> data = load(pl.DataFrame({"sex": [*"ffffmmm", "x"]}))
    >>> made = Implicates(data, ("sex",), np.array([0]), (np.array([[4]], dtype=np.int32),), 1, 0)
    >>> bars = bars_of(made, "sex")
    >>> bars.labels, bars.original, bars.synthetic
    (('f', 'm', '1 other'), (0.5, 0.375, 0.125), (0.375, 0.5, 0.125))
    """
    data = implicates.data
    codes = data.codes(target)
    counts = _counts(implicates, target, codes)
    numbers = _numbers(data, target, codes)
    ordered = numbers is not None and len(numbers) > MOST_CATEGORIES
    if ordered and numbers is not None:
        year = codes.levels.dtype.is_temporal()
        places, labels = _bins(numbers, counts[0], codes, year)
    else:
        places, labels = _categories(data, target, counts[0], codes)
    summed = np.stack([np.bincount(places, row, len(labels)) for row in counts])
    if ordered and not summed[:, 0].any():  # nothing is below the first edge
        summed, labels = summed[:, 1:], labels[1:]
    shares = summed / max(data.records, 1)
    after = shares[1:]
    figures = (shares[0], after.mean(axis=0), after.min(axis=0), after.max(axis=0))
    columns = [tuple(one.tolist()) for one in figures]
    return TargetBars(target, ordered, tuple(labels), *columns)


def _counts(implicates: Implicates, target: str, codes: Codes) -> Floats:
    """Count the codes of the original, then of each implicate."""
    place = implicates.targets.index(target)

    def count(rows: npt.NDArray[Any]) -> Ints:
        return np.bincount(codes.values[rows], minlength=codes.size)

    before = np.bincount(codes.values, minlength=codes.size)
    left = before - count(implicates.rows)
    files = [left + count(donors[:, place]) for donors in implicates.donors]
    return np.stack([before, *files]).astype(np.float64)


def _numbers(data: Microdata, target: str, codes: Codes) -> Floats | None:
    """Return the levels as numbers, dates as years; None for what has no such order."""
    levels = codes.levels
    if levels.dtype in (pl.Date, pl.Datetime):
        years: Floats = levels.dt.year().cast(pl.Float64).to_numpy()
        return years
    if data.variable(target).kind != "measure" or not levels.dtype.is_numeric():
        return None
    found: Floats = levels.cast(pl.Float64).to_numpy()
    return found if np.isfinite(found).all() else None


def _categories(
    data: Microdata, target: str, counts: Floats, codes: Codes
) -> tuple[Ints, list[str]]:
    """Give the frequent categories a bar each, in their order, and the others one together."""
    frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    named = np.sort(frequent[counts[frequent] >= NAMED_FROM])
    names = data.variable(target).value_labels
    values = codes.levels.gather(named[named < len(codes.levels)]).to_list()
    labels = [str(names.get(value, value)) for value in values]
    if len(labels) < len(named):
        labels.append("missing")
    places = np.full(codes.size, len(named), dtype=np.int64)
    places[named] = np.arange(len(named))
    others = codes.size - len(named)
    if others:
        labels.append(f"{others:,} other{'s' if others > 1 else ''}")
    return places, labels


def _bins(numbers: Floats, counts: Floats, codes: Codes, year: bool) -> tuple[Ints, list[str]]:
    """Give each level its bin between round edges; what is missing has one of its own."""
    held = counts[: len(numbers)]
    total = np.cumsum(held) / max(held.sum(), 1)
    low, high = (float(numbers[np.searchsorted(total, x)]) for x in (TAIL, 1 - TAIL))
    edges, places = np.empty(0), np.zeros(len(numbers), dtype=np.int64)
    for wanted in BINS:
        tried = _edges(low, high, wanted, whole=bool((numbers % 1 == 0).all()))
        there = np.searchsorted(tried, numbers, side="right")
        sizes = np.bincount(there, held, len(tried) + 1)
        if not ((sizes > 0) & (sizes < NAMED_FROM)).any():
            edges, places = tried, there
            break
    labels = _bin_labels(edges, year)
    if codes.has_missing:
        places, labels = np.append(places, len(labels)), [*labels, "missing"]
    return places, labels


def _edges(low: float, high: float, wanted: int, *, whole: bool) -> Floats:
    """Return round numbers between two others, at most so many."""
    if high <= low:
        return np.array([low])
    rough = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough)
    step = max(step, 1.0) if whole else step
    return np.arange(math.ceil(low / step), math.floor(high / step) + 1).astype(np.float64) * step


def _bin_labels(edges: Sequence[float] | Floats, year: bool) -> list[str]:
    texts = [f"{edge:.0f}" if year else _short(float(edge)) for edge in edges]
    if not texts:
        return ["all"]
    return [f"below {texts[0]}", *texts[:-1], f"{texts[-1]} or more"]


def _short(value: float) -> str:
    size = abs(value)
    for unit, word in ((1e9, "bn"), (1e6, "m"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if word == 'k' else unit):.4g}{word}"
    return f"{value:.6g}"
