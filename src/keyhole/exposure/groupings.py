"""The levels of a variable as a reader can take them in: measures and dates in round bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.engines.storage import counted
from keyhole.kernels.arrays import Ints

__all__ = ["Grouping", "group_levels"]

MOST_BANDS = 15
# A band that holds more than this of the records hides what matters within it.
MOST_IN_ONE = 0.6
QUANTILES = np.arange(1, 10) / 10
LARGEST = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """A variable's levels, or its bands: the group of each code and the label of each group.

    `ordered` says that groups which follow one another are next to each other in meaning; None
    that nobody can tell, since codes are numbers either way.
    """

    name: str
    group: Ints
    labels: tuple[str, ...]
    banded: bool
    ordered: bool | None
    missing: int | None

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.labels)


def group_levels(
    variable: Variable, codes: Codes, *, most_levels: int, held: Ints | None = None
) -> Grouping:
    """Group the levels of a measure or a date where there are more than can be read.

    Parameters
    ----------
    variable, codes
        The column.
    most_levels
        So many can be read.
    held
        The records of each code; counted if left out.

    Examples
    --------
    >>> from keyhole.data.columns import encode
    >>> ages = encode(pl.Series("age", list(range(20, 80)) * 2))
    >>> group_levels(Variable("age", "measure"), ages, most_levels=40).labels[:2]
    ('20 to 24', '25 to 29')
    """
    many = len(codes.levels) > most_levels
    dtype = codes.levels.dtype
    cut: tuple[Ints, list[str]] | None = None
    if many and variable.kind == "date" and dtype.is_temporal() and dtype != pl.Duration:
        cut = _by_calendar(codes.levels)
    elif many and variable.kind == "measure" and dtype.is_numeric():
        cut = _by_bands(codes, counted(codes.values, codes.size) if held is None else held)
    if cut is None:
        labels = _level_labels(codes, variable.value_labels)
        group = np.arange(len(codes.levels))
    else:
        group, labels = cut
    missing = len(labels) if codes.has_missing else None
    if missing is not None:
        group, labels = np.append(group, missing), [*labels, "(missing)"]
    ordered = _is_ordered(variable, dtype, labels)
    return Grouping(variable.name, group, tuple(labels), cut is not None, ordered, missing)


def _is_ordered(variable: Variable, dtype: pl.DataType, labels: list[str]) -> bool | None:
    """Tell ages in bands from races by number."""
    if (
        variable.kind in ("measure", "date")
        or variable.measurement == "ordinal"
        or dtype == pl.Enum
    ):
        return True
    if dtype.is_numeric() and not variable.value_labels:
        return None
    numbered = sum(any(letter.isdigit() for letter in label) for label in labels)
    return variable.measurement != "nominal" and numbered > len(labels) / 2


def _level_labels(codes: Codes, labels: Mapping[Any, str]) -> list[str]:
    return [str(labels.get(level, level)) for level in codes.levels.to_list()]


def _by_calendar(levels: pl.Series) -> tuple[Ints, list[str]]:
    """Take the finest unit that leaves few enough."""
    if levels.dtype == pl.Time:
        return _dense(levels.dt.hour(), lambda hour: f"{hour:02}:00")
    year = levels.dt.year()
    months = _dense(year * 12 + levels.dt.month() - 1, lambda m: f"{m // 12}-{m % 12 + 1:02}")
    years = _dense(year, str)
    for found in (months, years):
        if len(found[1]) <= MOST_BANDS:
            return found
    return _dense(year // 10, lambda decade: f"{decade}0s")


def _dense(numbers: pl.Series, label: Callable[[int], str]) -> tuple[Ints, list[str]]:
    held, group = np.unique(numbers.to_numpy(), return_inverse=True)
    return group.astype(np.int64), [label(int(one)) for one in held]


def _widths(levels: npt.NDArray[np.float64]) -> Iterator[float]:
    """Yield round widths (1, 2 and 5 times a power of ten) that leave at most `MOST_BANDS`."""
    least = float(levels[-1] - levels[0]) / MOST_BANDS
    power = 10.0 ** np.floor(np.log10(least)) if 0 < least < np.inf else np.nan
    for factor in (1, 2, 5, 10, 20) if np.isfinite(power) and power > 0 else ():
        if power * factor >= least:
            yield power * factor


def _by_bands(codes: Codes, held: Ints) -> tuple[Ints, list[str]] | None:
    levels = codes.levels.cast(pl.Float64).to_numpy()
    if np.abs(levels).max() >= LARGEST:
        return None
    held = held[: len(levels)]
    for width in _widths(levels):
        group = np.unique(np.floor(levels / width), return_inverse=True)[1]
        if group.max() <= MOST_BANDS:
            if np.bincount(group, held).max() > MOST_IN_ONE * held.sum():
                break
            return _labelled(levels, np.floor(levels / width) * width, width)
    return _by_quantiles(levels, held)


def _by_quantiles(levels: npt.NDArray[np.float64], held: Ints) -> tuple[Ints, list[str]] | None:
    """Cut near the deciles at round numbers, which are nobody's value in particular."""
    below = np.cumsum(held) / held.sum()
    cuts = sorted({_rounded(levels[np.searchsorted(below, q)]) for q in QUANTILES})
    if len(cuts) < 2:
        return None
    group = np.searchsorted(cuts, levels, side="right")
    held_groups, dense = np.unique(group, return_inverse=True)
    ends = [None, *cuts, None]
    return dense.astype(np.int64), [_span(ends[g], ends[g + 1]) for g in held_groups]


def _rounded(value: float) -> float:
    """Keep two significant digits."""
    return float(f"{value:.1e}")


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return f"under {high:,.12g}"
    return f"{low:,.12g} and above" if high is None else f"{low:,.12g} to under {high:,.12g}"


def _labelled(
    levels: npt.NDArray[np.float64], lows: npt.NDArray[np.float64], width: float
) -> tuple[Ints, list[str]]:
    held, group = np.unique(lows, return_inverse=True)
    whole = width >= 1 and bool((levels == np.round(levels)).all())
    labels = [
        f"{low:,.12g} to {low + width - 1:,.12g}" if whole else _span(low, low + width)
        for low in held
    ]
    return group.astype(np.int64), labels
