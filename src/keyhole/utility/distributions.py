"""Stuart-Maxwell tests of many variables: categories, binned numbers, cross-tabulations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, Table
from keyhole.utility.figures import amount, probability
from keyhole.utility.homogeneity import Homogeneity, holm, homogeneity_test
from keyhole.utility.implicates import chosen, shared_codes, split, stack
from keyhole.utility.sides import load_sides

__all__ = ["Distributions", "VariableTest", "compare_distributions", "quantile_bins"]


@dataclass(frozen=True, slots=True)
class VariableTest:
    """The test of one variable, or of several as one, on one implicate.

    `adjusted` is p after Holm's adjustment over all tests; `bins` are the effective bins of a
    number, None for categories.
    """

    variables: tuple[str, ...]
    implicate: int
    test: Homogeneity
    adjusted: float
    bins: int | None = None

    @property
    def name(self) -> str:
        """What was tested."""
        return " × ".join(self.variables)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        own = {"variables": list(self.variables), "implicate": self.implicate, "bins": self.bins}
        return {**own, **self.test.to_dict(), "adjusted": self.adjusted}


@dataclass(frozen=True, slots=True, repr=False)
class Distributions(Result):
    """Whether synthesis kept the distributions of variables.

    Parameters
    ----------
    tests
        One for each variable and implicate.
    bins
        How many bins were asked for.
    """

    tests: tuple[VariableTest, ...]
    bins: int

    @property
    def smallest(self) -> float:
        """The smallest adjusted p: if it is at least 0.05, all tests pass at 5%."""
        return min(one.adjusted for one in self.tests)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "bins": self.bins,
            "smallest_adjusted": self.smallest,
            "tests": [one.to_dict() for one in self.tests],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a test."""
        rows = [
            {"variable": one.name, "implicate": one.implicate, "bins": one.bins,
             "categories": one.test.categories, "changed": one.test.changed,
             "statistic": one.test.statistic, "df": one.test.df, "p": one.test.p,
             "adjusted": one.adjusted}
            for one in self.tests
        ]  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"bins": pl.Int64})

    def tables(self) -> list[Table]:
        """Return the tests as a table, with their notes below."""
        rows = [
            [one.name, str(one.implicate), f"{one.test.categories:,}", f"{one.test.changed:,}",
             amount(one.test.statistic), f"{one.test.df:,}", probability(one.test.p),
             probability(one.adjusted)]
            for one in self.tests
        ]  # fmt: skip
        columns = ["variable", "implicate", "categories", "changed", "X²", "df", "p", "p (Holm)"]
        return [Table("Stuart-Maxwell tests", columns, rows, self._notes())]

    def _notes(self) -> list[str]:
        """Say what was out of the ordinary; alike in several implicates, it is said once."""
        said: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for one in self.tests:
            notes = list(one.test.notes)
            if one.bins is not None and one.bins < self.bins:
                notes.append(f"{one.bins} bins instead of {self.bins}, since values are tied")
            for note in notes:
                kind = re.sub("[0-9,]+", "", note)
                said.setdefault((one.name, kind), []).append((one.implicate, note))
        return [f"{name}: {found[0][1]}{_likewise(found)}." for (name, _), found in said.items()]


def _likewise(found: Sequence[tuple[int, str]]) -> str:
    if len({note for _, note in found}) == 1:
        return ""
    return f" (implicate {found[0][0]}; likewise in {len(found) - 1} more)"


def compare_distributions(
    original: Any,
    implicates: Any,
    *,
    variables: str | Sequence[str] = (),
    crosses: Iterable[Sequence[str]] = (),
    bins: int = 10,
) -> Distributions:
    """Test for each variable whether the implicates have the original's distribution.

    Numbers and dates are cut into bins at the original's quantiles, categories are taken as they
    are, and a missing value is a category of its own. Records must be in the same order.

    Parameters
    ----------
    original
        The data before synthesis: a frame, a file or microdata.
    implicates
        The synthetic data: a folder, a frame, or a list of them.
    variables
        The variables to be tested, each alone.
    crosses
        Sets of variables to be tested as one, like ``[("sex", "age")]``.
    bins
        How many bins numbers are cut into; ties may leave fewer.

    Returns
    -------
    Distributions
        One test a variable and implicate, with Holm's adjustment over all of them.

    Examples
    --------
    >>> before = pl.DataFrame({"sex": ["f"] * 6 + ["m"] * 6})
    >>> after = pl.DataFrame({"sex": ["f"] * 4 + ["m"] * 8})
    >>> round(compare_distributions(before, after, variables="sex").smallest, 4)
    0.1573
    """
    asked = [(name,) for name in chosen(variables)] + [chosen(cross) for cross in crosses]
    problems = _option_problems(asked, bins)
    names = list(dict.fromkeys(name for one in asked for name in one))
    data = load_sides(original, implicates, names, problems=problems)
    _require_same_records(data)
    columns = {name: _binned(data, name, bins) for name in names}
    raw = [
        (one, place, _test(columns, data, one, place), _bins_of(columns, one))
        for one in asked
        for place in range(1, len(data))
    ]
    adjusted = holm(test.p for _, _, test, _ in raw)
    tests = tuple(
        VariableTest(one, place, test, p, cut)
        for (one, place, test, cut), p in zip(raw, adjusted, strict=True)
    )
    return Distributions(tests, bins)


def _option_problems(asked: Sequence[tuple[str, ...]], bins: Any) -> list[str]:
    problems = []
    if not asked or not all(asked):
        problems.append("variables must name at least one variable to be tested. Got none instead.")
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 2:
        problems.append(f"bins must be a whole number of at least 2. Got {bins!r} instead.")
    return problems


def _require_same_records(data: Sequence[Microdata]) -> None:
    before, after = data[0].records, data[1].records
    if before != after:
        raise ColumnError(
            f"implicates must have the original's records, in its order. Got {after:,} for "
            f"{before:,} instead."
        )


Column = tuple[list[Ints], int, int | None]


def _binned(data: Sequence[Microdata], name: str, bins: int) -> Column:
    """Return codes by file, how many there are, and the effective bins of a number."""
    if data[0].variable(name).kind not in ("measure", "date"):
        codes = shared_codes(data, name)
        return split(codes.values.astype(np.int64), data), codes.size, None
    values = stack([one.column(name) for one in data])
    if not (values.dtype.is_numeric() or values.dtype.is_temporal()):
        raise ColumnError(
            f"variable {name!r} must hold numbers in the implicates as in the original. Got text "
            f"instead: declare its missing codes."
        )
    edges = quantile_bins(values[: data[0].records], bins)
    there = values.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
    found = np.searchsorted(edges, there, side="left")  # a bin holds its upper edge
    missing = np.isnan(there)
    found[missing] = len(edges) + 1
    size = len(edges) + 1
    return split(found.astype(np.int64), data), size + bool(missing.any()), size


def quantile_bins(values: pl.Series, bins: int) -> npt.NDArray[np.float64]:
    """Return the inner edges of bins that hold about as many values each.

    A bin holds its upper edge. A value so frequent that it spans several quantiles gives one
    edge, so there may be fewer bins than asked for; a variable of few values gets a bin for
    each.

    Parameters
    ----------
    values
        Numbers or dates; missing ones do not count.
    bins
        How many bins at most.

    Examples
    --------
    >>> quantile_bins(pl.Series([0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), 4).tolist()
    [0.0, 2.0]
    """
    plain = values.drop_nulls().to_physical().cast(pl.Float64).drop_nans()
    there: npt.NDArray[np.float64] = plain.to_numpy()
    distinct = np.unique(there)
    if len(distinct) <= bins:
        return np.asarray(distinct[:-1])
    cuts = np.quantile(there, np.arange(1, bins) / bins, method="inverted_cdf")
    edges = np.unique(cuts)
    return np.asarray(edges[edges < distinct[-1]])


def _test(
    columns: dict[str, Column], data: Sequence[Microdata], names: tuple[str, ...], place: int
) -> Homogeneity:
    if len(names) == 1:
        codes, levels, _ = columns[names[0]]
        return homogeneity_test(codes[0], codes[place], levels)
    both = np.zeros(2 * data[0].records, dtype=np.int64)
    for name in names:
        codes, levels, _ = columns[name]
        crossed = both * levels + np.concatenate([codes[0], codes[place]])
        # Numbered anew after each variable: a product of all the sizes may not fit into 64 bits.
        both = np.unique(crossed, return_inverse=True)[1]
    before, after = np.split(both, 2)
    return homogeneity_test(before, after, int(both.max()) + 1)


def _bins_of(columns: dict[str, Column], names: tuple[str, ...]) -> int | None:
    return columns[names[0]][2] if len(names) == 1 else None
