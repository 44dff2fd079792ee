"""Stuart-Maxwell tests of whether synthesis kept distributions (Hawala & Funk 3.2).

Variables are categories, binned numbers or cross-tabulations. The matrix that the statistic
inverts is the Laplacian of a graph: its nodes are the categories, and between two of them stand
the records that went from the one to the other. So its rank needs no tolerance: it is the number
of categories less the number of connected parts. The statistic is the sum over the parts, each
with one category less, and many categories are no trouble because the matrix is as sparse as the
changes are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.marks import SPREAD, Named, figure
from keyhole.core.names import plural
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.errors import ColumnError, OptionError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result
from keyhole.utility.figures import amount, probability, sentences
from keyhole.utility.implicates import chosen, load_sides, physical, shared_codes, split, stack

# Below this many records that entered or left it, a category strains the chi-square distribution.
FEW = 5
# Up to so many categories the matrix is solved as a whole.
DENSE = 1500


@dataclass(frozen=True, slots=True, repr=False)
class Homogeneity(Result):
    """The Stuart-Maxwell test of one variable.

    `changed` counts the records that changed category, `categories` those that occur in the
    original or in the synthetic values.
    """

    statistic: float
    df: int
    p: float
    records: int
    changed: int
    categories: int
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as one row."""
        return pl.DataFrame([{k: v for k, v in self.to_dict().items() if k != "notes"}])

    def tables(self) -> list[Table]:
        """Return the test as a table."""
        counts = ("records", "changed", "categories")
        rows = [[name, f"{getattr(self, name):,}"] for name in counts]
        rows += [["X²", amount(self.statistic)], ["df", f"{self.df:,}"], ["p", probability(self.p)]]
        notes = sentences(self.notes)
        return [Table("Stuart-Maxwell test", ["figure", "value"], rows, notes)]


def homogeneity_test(original: Any, synthetic: Any, levels: int | Sequence[Any]) -> Homogeneity:
    r"""Test whether original and synthetic values of the same records have one distribution.

    Parameters
    ----------
    original, synthetic
        The category of each record before and after, as whole numbers from 0.
    levels
        The categories, or how many there are; those that do not occur are collapsed.

    Notes
    -----
    With S and O the synthetic and original counts and T their cross-tabulation,

    .. math:: X^2 = (S - O)' [\mathrm{diag}(S + O) - T - T']^{-1} (S - O)

    over all categories but one, with as many degrees of freedom as the matrix has rank. Where it
    is singular its pseudo-inverse is taken: a category that no record entered or left, or a
    group of categories between which and the others none went, adds nothing to the statistic
    and takes away one degree of freedom.

    Examples
    --------
    >>> found = homogeneity_test([0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 0, 1], ["f", "m"])
    >>> found.statistic, found.df, round(found.p, 4)
    (1.0, 1, 0.3173)
    """
    from scipy.stats import chi2

    size = len(levels) if isinstance(levels, Sized) else int(levels)
    before, after = _checked(original, synthetic, size)
    present = np.union1d(before, after)
    rows, cols = np.searchsorted(present, before), np.searchsorted(present, after)
    moved = rows != cols
    empty = size - len(present)
    collapsed = plural(empty, "empty category", "empty categories")
    notes = [f"{collapsed} collapsed: no record is or was there"] if empty else []
    if not moved.any():
        notes.append("no record changed category: the distributions are the same")
        return Homogeneity(0.0, 0, 1.0, len(rows), 0, len(present), tuple(notes))
    statistic, df, parts, alone, few = _laplacian(rows[moved], cols[moved], len(present))
    said = {
        f"{plural(alone, 'category', 'categories')} neither lost nor gained records and "
        f"counts for no degree of freedom": alone,
        f"records moved only within {parts:,} groups of categories: each group counts for one "
        f"degree of freedom less than it has categories": parts > 1,
        f"{plural(few, 'category', 'categories')} had fewer than {FEW} records that entered "
        f"or left: p is rough": few,
    }
    notes += [note for note, holds in said.items() if holds]
    p = float(chi2.sf(statistic, df))
    return Homogeneity(statistic, df, p, len(rows), int(moved.sum()), len(present), tuple(notes))


def _checked(original: Any, synthetic: Any, size: int) -> tuple[Ints, Ints]:
    problems, arrays = [], []
    for name, given in (("original", original), ("synthetic", synthetic)):
        found = np.asarray(given)
        if found.ndim != 1 or found.dtype.kind not in "iu" or found.size == 0:
            problems.append(
                f"{name} must be whole numbers, one for each of at least one record. Got "
                f"something else instead: give the codes of a column."
            )
        elif found.min() < 0 or found.max() >= size:
            there = f"codes from 0 to {size - 1}, since there are {size} levels"
            problems.append(f"{name} must be {there}. Got others instead.")
        arrays.append(found)
    if not problems and len(arrays[0]) != len(arrays[1]):
        got = " and ".join(f"{len(one):,}" for one in arrays)
        problems.append(f"original and synthetic must be of the same records. Got {got} instead.")
    if problems:
        raise OptionError(problems)
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


def _laplacian(rows: Ints, cols: Ints, size: int) -> tuple[float, int, int, int, int]:
    """Return statistic, rank, connected parts, categories left alone, and those with few moves."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.sparse import coo_array, csgraph, diags_array
    from scipy.sparse.linalg import cg, splu

    moves = coo_array((np.ones(len(rows)), (rows, cols)), shape=(size, size)).tocsr()
    between = (moves + moves.T).tocsr()
    parts, part = csgraph.connected_components(between, directed=False)
    left, entered = np.bincount(rows, minlength=size), np.bincount(cols, minlength=size)
    turnover = entered + left
    # The first category of each part is left out, as the test leaves one out of all.
    kept = np.ones(size, dtype=bool)
    kept[np.unique(part, return_index=True)[1]] = False
    places = np.flatnonzero(kept)
    matrix = (diags_array(turnover.astype(np.float64)) - between).tocsr()[places][:, places]
    wanted = (entered - left)[places].astype(np.float64)
    if len(wanted) <= DENSE:
        solved = cho_solve(cho_factor(matrix.toarray()), wanted)
    else:
        # Exact factors of a large graph without order fill up; steps towards the solution do not.
        scaling = diags_array(1 / matrix.diagonal())
        solved, failed = cg(matrix, wanted, rtol=1e-11, maxiter=len(wanted), M=scaling)
        solved = splu(matrix.tocsc()).solve(wanted) if failed else solved
    alone, few = int((turnover == 0).sum()), int(((turnover > 0) & (turnover < FEW)).sum())
    return max(0.0, float(wanted @ solved)), len(places), int(parts) - alone, alone, few


def holm(p: Iterable[float]) -> list[float]:
    """Adjust p-values for being several, by Holm's (1979) steps.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(list(p), dtype=np.float64)
    if given.size and not ((given >= 0) & (given <= 1)).all():
        raise OptionError("p-values must be from 0 to 1. Got others instead.")
    order = np.argsort(given, kind="stable")
    factors = np.arange(given.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return [float(value) for value in adjusted]


@dataclass(frozen=True, slots=True)
class VariableTest(Figures):
    """The test of one variable, or of several as one, on one implicate.

    `adjusted` is p after Holm's adjustment over all tests; `bins` are the effective bins of a
    number, None for categories.
    """

    variables: tuple[str, ...]
    implicate: int
    test: Annotated[Homogeneity, SPREAD]
    adjusted: float
    bins: int | None = None

    @property
    def name(self) -> str:
        """What was tested."""
        return " × ".join(self.variables)


@dataclass(frozen=True, slots=True, repr=False)
class Distributions(Result):
    """Whether synthesis kept the distributions: a test for each variable and implicate."""

    tests: tuple[VariableTest, ...]
    bins: int

    @property
    @figure(Named("smallest_adjusted"))
    def smallest(self) -> float:
        """The smallest adjusted p: if it is at least 0.05, all tests pass at 5%."""
        return min(one.adjusted for one in self.tests)

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
                kind = one.name, re.sub("[0-9,]+", "", note)
                said.setdefault(kind, []).append((one.implicate, note))
        lines = []
        for (name, _), [(implicate, note), *rest] in said.items():
            alike = all(other == note for _, other in rest)
            more = "" if alike else f" (implicate {implicate}; likewise in {len(rest)} more)"
            lines.append(f"{name}: {note}{more}.")
        return lines


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
    original, implicates
        The data before synthesis, and the synthetic: frames, files, a folder, or a list of them.
    variables
        The variables to be tested, each alone.
    crosses
        Sets of variables to be tested as one, like ``[("sex", "age")]``.
    bins
        How many bins numbers are cut into; ties may leave fewer.

    Examples
    --------
    >>> before = pl.DataFrame({"sex": ["f"] * 6 + ["m"] * 6})
    >>> after = pl.DataFrame({"sex": ["f"] * 4 + ["m"] * 8})
    >>> round(compare_distributions(before, after, variables="sex").smallest, 4)
    0.1573
    """
    problems = list[str]()
    asked = [*((name,) for name in chosen(variables)), *(chosen(cross) for cross in crosses)]
    if not asked or not all(asked):
        problems.append("variables must name at least one variable to be tested. Got none instead.")
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 2:
        problems.append(f"bins must be a whole number of at least 2. Got {bins!r} instead.")
    names = list(dict.fromkeys(name for one in asked for name in one))
    data = load_sides(original, implicates, names, problems=problems)
    if data[0].records != data[1].records:
        raise ColumnError(
            f"implicates must have the original's records, in its order. Got "
            f"{data[1].records:,} for {data[0].records:,} instead."
        )
    columns = {name: _binned(data, name, bins) for name in names}
    every = list(itertools.product(asked, range(1, len(data))))
    tests, found = [_test(columns, *one) for one in every], []
    for one, test, adjusted in zip(every, tests, holm(test.p for test in tests), strict=True):
        cut = columns[one[0][0]][2] if len(one[0]) == 1 else None
        found.append(VariableTest(*one, test, adjusted, cut))
    return Distributions(tuple(found), bins)


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
    places, size = bin_numbers(values, edges), len(edges) + 1
    return split(places, data), max(size, int(places.max(initial=0)) + 1), size


def quantile_bins(values: pl.Series, bins: int) -> Floats:
    """Return the inner edges of bins that hold about as many values each.

    A bin holds its upper edge. A value so frequent that it spans several quantiles gives one
    edge, so there may be fewer bins than asked for; a variable of few values gets a bin for
    each. Missing values do not count.

    Examples
    --------
    >>> quantile_bins(pl.Series([0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), 4).tolist()
    [0.0, 2.0]
    """
    there = physical(values)
    there = there[~np.isnan(there)]
    distinct = np.unique(there)
    if len(distinct) <= bins:
        return np.asarray(distinct[:-1])
    cuts = np.quantile(there, np.arange(1, bins) / bins, method="inverted_cdf")
    edges = np.unique(cuts)
    return np.asarray(edges[edges < distinct[-1]])


def bin_numbers(series: pl.Series, edges: Floats) -> Ints:
    """Return the bin of each number or date, which holds its upper edge; missing is the last."""
    values = physical(series)
    places = np.searchsorted(edges, values, side="left").astype(np.int64)
    places[np.isnan(values)] = len(edges) + 1
    return places


def _test(columns: dict[str, Column], names: tuple[str, ...], place: int) -> Homogeneity:
    both, size = np.zeros(1, dtype=np.int64), 0
    for name in names:
        codes, levels, _ = columns[name]
        both = both * levels + np.concatenate([codes[0], codes[place]])
        size = levels
        if len(names) > 1:
            # Numbered anew after each variable: a product of all sizes may not fit into 64 bits.
            found, both = np.unique(both, return_inverse=True)
            size = len(found)
    before, after = np.split(both, 2)
    return homogeneity_test(before, after, size)
