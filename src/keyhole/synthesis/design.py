"""The design of the models: each variable's code as a few columns.

Numbers become restricted cubic splines, categories one column a level. Rare levels share a
column, and what is missing has one of its own, so that no bootstrap can lose what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Codes, Variable
from keyhole.kernels import additive
from keyhole.kernels.arrays import Floats, Ints
from keyhole.synthesis.gists import Gist
from keyhole.synthesis.splines import find_knots, spline_basis

__all__ = ["Coded", "Design", "is_number", "make_design"]

Places = npt.NDArray[np.integer]
Weights = npt.NDArray[np.floating]
CodeRows = npt.NDArray[np.unsignedinteger]

# A level with fewer records than this shares a column with the other rare ones.
RARE = 5
# So many levels of a variable have a column of their own; the most frequent ones.
MOST_LEVELS = 60


class Coded(Protocol):
    """What drawing needs to know of records: `Microdata`, or some of its records."""

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers."""
        ...

    def column(self, name: str) -> pl.Series:
        """Return a column's values, missing ones null."""
        ...

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One variable's columns: for each of its codes, where its values stand and what they are.

    The last column of a number with missing values tells which they are.
    """

    columns: npt.NDArray[np.int32]
    values: Floats
    width: int
    is_numeric: bool
    has_missing: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Some records as codes, and what the codes stand for in a model.

    `codes` has a row for each record of the pool and a column for each variable.
    """

    names: tuple[str, ...]
    codes: CodeRows
    blocks: tuple[Block, ...]
    firsts: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of columns, the intercept included."""
        return self.firsts[-1] + self.blocks[-1].width

    def columns(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the numbers of the columns of some variables."""
        at = [self.names.index(name) for name in names]
        parts = [np.arange(self.firsts[v], self.firsts[v] + self.blocks[v].width) for v in at]
        return np.concatenate([np.zeros(0), *parts]).astype(np.intp)

    def gram(self, rows: Places, weights: Weights, codes: CodeRows) -> Floats:
        """Return the weighted sums of products over some rows of the codes given."""
        starts, at = [], 0
        for block in self.blocks:
            starts.append(at)
            at += block.values.size
        entries = [b.columns + first for b, first in zip(self.blocks, self.firsts, strict=True)]
        out: Floats = additive.gram(
            codes,
            rows.astype(np.int32, copy=False),
            weights.astype(np.float32, copy=False),
            np.array(starts, dtype=np.int64),
            np.array([block.values.shape[1] for block in self.blocks], dtype=np.int64),
            np.concatenate([e.ravel() for e in entries]).astype(np.int32),
            np.concatenate([block.values.ravel() for block in self.blocks]),
            self.size,
        )
        return out

    def scores(self, names: Sequence[str], coefficients: Floats) -> tuple[Ints, Floats]:
        """Turn coefficients of some variables' columns into a score for each of their codes."""
        whole = np.zeros((self.size, coefficients.shape[1]))
        whole[self.columns(names)] = coefficients
        starts, tables, at = np.full(len(self.names), -1, dtype=np.int64), [], 0
        for v, (block, first) in enumerate(zip(self.blocks, self.firsts, strict=True)):
            if self.names[v] in names:
                starts[v] = at
                tables.append(np.einsum("ck,ckd->cd", block.values, whole[block.columns + first]))
                at += len(tables[-1])
        return starts, np.concatenate(tables)


def make_design(
    data: Coded,
    names: Sequence[str],
    rows: Ints,
    *,
    knots: int,
    gists: Mapping[str, Gist] | None = None,
) -> Design:
    """Make the design of some records, the pool that a model is fitted on.

    The `gists` of columns follow the columns named.
    """
    short = {} if gists is None else gists
    names = (*names, *short)
    columns = [data.codes(short[name].column if name in short else name) for name in names]
    largest = max(column.size for column in columns)
    codes = np.empty((len(rows), len(names)), dtype=np.min_scalar_type(largest))
    blocks = []
    for v, (name, column) in enumerate(zip(names, columns, strict=True)):
        present, codes[:, v] = _local(column, rows)
        counts = np.bincount(codes[:, v], minlength=len(present))
        if name in short:
            blocks.append(_plain(_standard(short[name].scores[present], counts)))
        elif is_number(data, name):
            blocks.append(_numeric(_numbers(column)[present], counts, knots))
        else:
            blocks.append(_categories(counts))
    firsts = np.cumsum([1] + [block.width for block in blocks])[:-1]
    return Design(tuple(names), codes, tuple(blocks), tuple(firsts.tolist()))


def _local(column: Codes, rows: Ints) -> tuple[Ints, Ints]:
    """Return the codes that occur in some records, and each record's place among them."""
    values = column.values[rows]
    seen = np.zeros(column.size, dtype=np.bool_)
    seen[values] = True
    place = np.cumsum(seen, dtype=np.int64) - 1
    return np.flatnonzero(seen), place[values]


def is_number(data: Coded, name: str) -> bool:
    """Tell whether a column is modelled as a number: a measure or a date."""
    type_ = data.codes(name).levels.dtype
    known = type_.is_numeric() or type_.is_temporal()
    return known and data.variable(name).kind in ("measure", "date")


def _numbers(column: Codes) -> Floats:
    """Return the levels as numbers, and NaN for what is missing."""
    levels = column.levels.to_physical().cast(pl.Float64).to_numpy()
    return np.append(levels, np.nan) if column.has_missing else levels


def _numeric(levels: Floats, counts: Ints, knots: int) -> Block:
    known = np.isfinite(levels)
    weights = np.where(known, counts, 0)
    values = np.zeros((len(levels), 1))
    if known.any():
        # Centred and scaled first: splines of large numbers would lose digits.
        plain = _standard(levels[known, None], counts[known])[:, 0]
        basis = spline_basis(plain, find_knots(np.repeat(plain, counts[known]), knots))
        values = np.zeros((len(levels), basis.shape[1]))
        values[known] = _standard(basis, weights[known])
    if not known.all():
        values = np.column_stack([values, ~known])
    columns = np.tile(np.arange(values.shape[1], dtype=np.int32), (len(levels), 1))
    return Block(columns, values, values.shape[1], True, not known.all())


def _plain(values: Floats) -> Block:
    columns = np.tile(np.arange(values.shape[1], dtype=np.int32), (len(values), 1))
    return Block(columns, values, values.shape[1], True)


def _standard(basis: Floats, counts: Ints) -> Floats:
    """Centre the columns and give them unit variance; a constant one becomes zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.abs(basis).max(axis=0)
        scaled = basis / np.where((scale > 0) & np.isfinite(scale), scale, 1)
        mean = np.average(scaled, axis=0, weights=counts)
        spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=counts))
    out: Floats = (scaled - mean) / np.where(spread > 1e-12, spread, np.inf)
    return out


def _categories(counts: Ints) -> Block:
    by_size = np.argsort(-counts, kind="stable")
    own = np.zeros(len(counts), dtype=np.bool_)
    own[by_size[:MOST_LEVELS]] = True
    own &= counts >= RARE
    columns = np.cumsum(own) - 1
    columns[~own] = own.sum()
    width = int(own.sum()) + int(not own.all())
    return Block(columns.astype(np.int32)[:, None], np.ones((len(counts), 1)), width, False)
