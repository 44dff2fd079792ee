"""Design matrices of the models: each variable's code as a few columns.

Numbers become restricted cubic splines, categories one column a level. Rare levels share a
column, and what is missing has one of its own, so that no bootstrap can lose what it needs.

A state of fifty levels needs fifty columns, more than the model of a small subgroup can carry. What
it says of a race is told nearly as well by a few level scores: the coordinates of a correspondence
analysis of the two, over the whole file, shrunk towards the mean for levels with few records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Codes, Microdata, Variable
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.synthesis.associations import BINS, grouped

# From this share of equal values at an end on, the other knots are found without them.
HEAVY = 0.05
# A category with more levels than this has level scores.
WIDE = 10
# So many of each level, at most.
MOST_SCORES = 5
# So many average records are added to each level.
SHRINKAGE = 20.0
# The most frequent levels of a target that count; the others count together.
MOST_TARGET_LEVELS = 60
# A level with fewer records than this shares a column with the other rare ones.
RARE = 5
# So many levels of a variable have a column of their own; the most frequent ones.
MOST_LEVELS = 60


def find_knots(values: Floats, count: int = 5) -> Floats:
    """Place knots at quantiles of the values, from the 5th percentile to the 95th.

    Where many values are the lowest or the highest (zero incomes, top-codes) that value is a
    knot by itself, and the others are at quantiles of the rest: heavy ties would otherwise
    swallow several knots. Fewer knots come back where there are too few distinct values.

    Notes
    -----
    Three knots are at the quantiles .1, .5 and .9; more are equally spaced from .05 to .95
    (Harrell 2015, table 2.3, rounded).

    Examples
    --------
    >>> find_knots(np.arange(101.0), 5).round(9).tolist()
    [5.0, 27.5, 50.0, 72.5, 95.0]
    """
    values = np.sort(values[np.isfinite(values)])
    if count < 3 or len(values) == 0:
        return np.zeros(0)
    heavy = [end for end in (values[0], values[-1]) if np.mean(values == end) >= HEAVY]
    inner = values[~np.isin(values, heavy)]
    margin = 0.1 if count == 3 else 0.05
    left = count - len(heavy)
    if len(inner) and left > 0:
        lowest = margin if values[0] not in heavy else 1 / (left + 1)
        highest = 1 - margin if values[-1] not in heavy else left / (left + 1)
        found = np.quantile(inner, np.linspace(lowest, highest, left) if left > 1 else [0.5])
    else:
        found = inner[:0]
    return np.unique(np.concatenate([heavy, found]))


def spline_basis(values: Floats, knots: Floats) -> Floats:
    r"""Return the spline's columns: the value itself, then one nonlinear term a knot but two.

    Notes
    -----
    With knots :math:`t_1 < \dots < t_k` and :math:`(u)_+ = \max(u, 0)`, term j is

    .. math:: \frac{1}{(t_k - t_1)^2}\Big[(x-t_j)_+^3
              - (x-t_{k-1})_+^3 \tfrac{t_k-t_j}{t_k-t_{k-1}}
              + (x-t_k)_+^3 \tfrac{t_{k-1}-t_j}{t_k-t_{k-1}}\Big]

    (Devlin & Weeks 1986; Harrell 2015, section 2.4.5). With fewer than three knots the value
    alone is left.

    Examples
    --------
    >>> spline_basis(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
    [[0.0, 0.0], [1.0, 0.25], [2.0, 1.5]]
    """
    if len(knots) < 3:
        return values[:, None]
    # Cubes are taken of distances in spans, so that very large values cannot overflow.
    span = knots[-1] - knots[0]
    at, x = (knots - knots[0]) / span, (values - knots[0]) / span
    cubes = np.clip(x[:, None] - at, 0, None) ** 3
    last = at[-1] - at[-2]
    terms = (
        cubes[:, :-2]
        - cubes[:, -2:-1] * (at[-1] - at[:-2]) / last
        + cubes[:, -1:] * (at[-2] - at[:-2]) / last
    )
    return np.column_stack([values, terms * span])


@dataclass(frozen=True, slots=True, eq=False)
class LevelScores:
    """The scores of each code of a column, for the sake of one target."""

    column: str
    scores: Floats


def scores_name(column: str, target: str) -> str:
    """Return the name of level scores in a design; no column of a file has such a name."""
    return f"{column}\0{target}"


def mark_name(target: str) -> str:
    """Return the name of the marks of a target in a design."""
    return f"\0{target}"


def plain_name(name: str) -> str:
    """Return the column that a name in a design stands for, nothing for marks."""
    return name.partition("\0")[0]


def make_level_scores(
    data: Microdata, predictors: Mapping[str, Sequence[str]], *, dimensions: int
) -> dict[str, LevelScores]:
    """Make the level scores of all categories of many levels that predict a target.

    They are the principal coordinates of the column's levels, drawn towards the mean.
    """
    found, most = {}, min(dimensions, MOST_SCORES)
    for target, name in ((target, n) for target, names in predictors.items() for n in names):
        codes, goal = data.codes(name), grouped(data, target)
        if data.variable(name).kind != "category" or codes.size <= WIDE:
            continue
        # The most frequent codes of the target are numbered from 0, and the others together.
        counts = np.bincount(goal)
        place = np.full(len(counts), MOST_TARGET_LEVELS, dtype=np.int64)
        frequent = np.argsort(-counts, kind="stable")[:MOST_TARGET_LEVELS]
        place[frequent] = np.arange(len(frequent))
        goal = place[goal]
        size = int(goal.max(initial=0)) + 1
        pairs = codes.values.astype(np.int64) * size + goal
        table = np.bincount(pairs, minlength=codes.size * size).reshape(codes.size, size)
        margin = table.sum(axis=0) / table.sum()
        table, margin = table[:, margin > 0], margin[margin > 0]
        records = table.sum(axis=1, keepdims=True)
        profiles = (table - records * margin) / (records + SHRINKAGE) / np.sqrt(margin)
        _, _, right = np.linalg.svd(np.sqrt(records) * profiles, full_matrices=False)
        found[scores_name(name, target)] = LevelScores(name, profiles @ right[:most].T)
    return found


Places = npt.NDArray[np.integer]
Weights = npt.NDArray[np.floating]
CodeRows = npt.NDArray[np.unsignedinteger]


class Coded(Protocol):
    """What drawing needs to know of records: `Microdata`, or some of its records."""

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers."""

    def column(self, name: str) -> pl.Series:
        """Return a column's values, missing ones null."""

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""


@dataclass(frozen=True, slots=True, eq=False)
class DesignBlock:
    """A variable's columns: by code their values; the last may tell which numbers are missing.

    `groups` has the group of each code: a column of a category, or a bin of a number.
    """

    columns: npt.NDArray[np.int32]
    values: Floats
    width: int
    groups: npt.NDArray[np.int32]
    is_numeric: bool
    has_missing: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Records of a pool as codes, a row a record, and what the codes stand for in a model."""

    names: tuple[str, ...]
    codes: CodeRows
    blocks: tuple[DesignBlock, ...]
    firsts: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of columns, the intercept included."""
        return self.firsts[-1] + self.blocks[-1].width

    def places(self, name: str) -> npt.NDArray[np.intp]:
        """Return where a variable and its level scores are among the codes."""
        return np.flatnonzero([plain_name(one) == name for one in self.names])

    def columns(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the numbers of the columns of some variables."""
        at = [self.names.index(name) for name in names]
        parts = [np.arange(self.firsts[v], self.firsts[v] + self.blocks[v].width) for v in at]
        return np.concatenate([np.zeros(0), *parts]).astype(np.intp)

    def only(self, names: Sequence[str]) -> Design:
        """Return the design of some variables alone."""
        at = [self.names.index(name) for name in names]
        blocks = tuple(self.blocks[v] for v in at)
        firsts = np.cumsum([1, *(block.width for block in blocks)])[:-1]
        return Design(tuple(names), self.codes[:, at], blocks, tuple(firsts.tolist()))

    def gram(self, rows: Places, weights: Weights, codes: CodeRows) -> Floats:
        """Return the weighted sums of products over some rows of the codes given."""
        from keyhole.kernels import additive

        places, weights = rows.astype(np.int32, copy=False), weights.astype(np.float32, copy=False)
        out: Floats = additive.gram(codes, places, weights, self._entries(), self.size)
        return out

    def totals(self, rows: Places, weights: Weights) -> Floats:
        """Return the weighted sums of the columns over some rows."""
        from keyhole.kernels import additive

        places = rows.astype(np.int32, copy=False)
        out: Floats = additive.totals(self.codes, places, weights, self._entries(), self.size)
        return out

    def _entries(self) -> tuple[Ints, Ints, npt.NDArray[np.int32], Floats]:
        """Return where each variable's entries begin, how many a code has, and what they are."""
        sizes = np.array([0, *(block.values.size for block in self.blocks)], dtype=np.int64)
        entries = [b.columns + first for b, first in zip(self.blocks, self.firsts, strict=True)]
        return (
            np.cumsum(sizes)[:-1],
            np.array([block.values.shape[1] for block in self.blocks], dtype=np.int64),
            np.concatenate([e.ravel() for e in entries]).astype(np.int32),
            np.concatenate([block.values.ravel() for block in self.blocks]),
        )

    def scores(self, names: Sequence[str], coefficients: Floats) -> tuple[Ints, Floats]:
        """Turn coefficients of some variables' columns into a score for each of their codes."""
        whole = np.zeros((self.size, coefficients.shape[1]))
        whole[self.columns(names)] = coefficients
        starts, tables, at = np.full(len(self.names), -1, dtype=np.int64), [], 0
        for v, (block, first) in enumerate(zip(self.blocks, self.firsts, strict=True)):
            if self.names[v] in names:
                starts[v] = at
                if block.is_numeric:
                    table = np.einsum("ck,ckd->cd", block.values, whole[block.columns + first])
                else:  # a one in a single column
                    table = whole[block.columns[:, 0] + first]
                tables.append(table)
                at += len(tables[-1])
        return starts, np.concatenate(tables)


def make_design(
    data: Coded,
    names: Sequence[str],
    rows: Ints,
    *,
    knots: int,
    level_scores: Mapping[str, LevelScores] | None = None,
) -> Design:
    """Make the design of some records, the pool of a model: columns, then their level scores."""
    short = {} if level_scores is None else level_scores
    names = (*names, *short)
    columns = [data.codes(short[name].column if name in short else name) for name in names]
    largest = max(column.size for column in columns)
    codes = np.empty((len(rows), len(names)), dtype=np.min_scalar_type(largest))
    blocks = []
    for v, (name, column) in enumerate(zip(names, columns, strict=True)):
        # The codes that occur, and each record's place among them.
        values = column.values[rows]
        seen = np.zeros(column.size, dtype=np.bool_)
        seen[values] = True
        present, codes[:, v] = np.flatnonzero(seen), (np.cumsum(seen) - 1)[values]
        counts = np.bincount(codes[:, v], minlength=len(present))
        if name in short:
            blocks.append(_block(standardise(short[name].scores[present], counts), counts))
        elif is_numeric(data, name):
            levels = column.levels.to_physical().cast(pl.Float64).to_numpy()
            levels = np.append(levels, np.nan) if column.has_missing else levels
            blocks.append(_numeric(levels[present], counts, knots))
        else:
            blocks.append(_categories(counts))
    firsts = np.cumsum([1] + [block.width for block in blocks])[:-1]
    return Design(tuple(names), codes, tuple(blocks), tuple(firsts.tolist()))


def with_marks(design: Design, marks: Mapping[str, Flags]) -> Design:
    """Add flags of the records to a design, by the names of their columns in it."""
    blocks = [_categories(np.bincount(flags, minlength=2)) for flags in marks.values()]
    codes = np.column_stack([design.codes, *(f.astype(np.uint8) for f in marks.values())])
    whole = (*design.blocks, *blocks)
    firsts = np.cumsum([1] + [block.width for block in whole])[:-1]
    return Design((*design.names, *marks), codes, whole, tuple(firsts.tolist()))


def is_numeric(data: Coded, name: str) -> bool:
    """Tell whether a column is modelled as a number: a measure or a date."""
    type_ = data.codes(name).levels.dtype
    known = type_.is_numeric() or type_.is_temporal()
    return known and data.variable(name).kind in ("measure", "date")


def _numeric(levels: Floats, counts: Ints, knots: int) -> DesignBlock:
    known = np.isfinite(levels)
    values = np.zeros((len(levels), 1))
    if known.any():
        # Centred and scaled first: splines of large numbers would lose digits.
        plain = standardise(levels[known, None], counts[known])[:, 0]
        basis = spline_basis(plain, find_knots(np.repeat(plain, counts[known]), knots))
        values = np.zeros((len(levels), basis.shape[1]))
        values[known] = standardise(basis, counts[known])
    if not known.all():
        values = np.column_stack([values, ~known])
    return _block(values, counts, has_missing=not known.all())


def _block(values: Floats, counts: Ints, *, has_missing: bool = False) -> DesignBlock:
    columns = np.tile(np.arange(values.shape[1], dtype=np.int32), (len(values), 1))
    known = counts[:-1] if has_missing else counts
    middle = (np.cumsum(known) - known / 2) / max(known.sum(), 1)
    bins = np.minimum(middle * BINS, BINS - 1).astype(np.int32)
    groups = np.append(bins, np.int32(BINS)) if has_missing else bins
    return DesignBlock(columns, values, values.shape[1], groups, True, has_missing)


def standardise(basis: Floats, counts: Ints) -> Floats:
    """Centre the columns and give them unit variance; a constant one becomes zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.abs(basis).max(axis=0)
        scaled = basis / np.where((scale > 0) & np.isfinite(scale), scale, 1)
        mean = np.average(scaled, axis=0, weights=counts)
        spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=counts))
    out: Floats = (scaled - mean) / np.where(spread > 1e-12, spread, np.inf)
    return out


def _categories(counts: Ints) -> DesignBlock:
    by_size = np.argsort(-counts, kind="stable")
    own = np.zeros(len(counts), dtype=np.bool_)
    own[by_size[:MOST_LEVELS]] = True
    own &= counts >= RARE
    columns = np.cumsum(own) - 1
    columns[~own] = own.sum()
    width = int(own.sum()) + int(not own.all())
    groups = columns.astype(np.int32)
    return DesignBlock(groups[:, None], np.ones((len(counts), 1)), width, groups, False)
