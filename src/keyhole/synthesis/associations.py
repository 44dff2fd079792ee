"""Associations of targets with other columns: which must predict a target, which are kept or lost.

All columns are compared alike, by Cramér's V corrected for bias, numbers being cut into bins, and
every target with every column of the release, not only with those that somebody thought of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl

from keyhole.charts import listed
from keyhole.core.codec import members_to_plain
from keyhole.core.marks import HIDDEN, Named, figure
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.results import Result
from keyhole.screening.dependence import cramers_v

if TYPE_CHECKING:
    from keyhole.synthesis.implicates import Implicates


NEVER_RELEASED = ("identifier", "household", "drop")
"""Columns with these roles are in no release, no model and no comparison."""
# Bias-corrected Cramér's V from which a column is kin of a target.
KIN = 0.6
# Chance alone makes a V this surprising in one column of a thousand.
SURE = 0.001
# Numbers are cut into so many bins of about as many records.
BINS = 10
# More records would not change the picture of which columns are kin, and of what is kept.
RECORDS, RECORDS_COMPARED = 20_000, 200_000
# A table of more cells is made of its occupied ones alone.
DENSE = 1 << 20
# A category is compared if it has at least so many records a level.
RECORDS_A_LEVEL = 20
# Levels of fewer records are compared together.
LEAST_LEVEL = 25
# So many pairs are shown.
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Association:
    """Cramér's V of two columns, its χ², and the smaller number of categories."""

    v: float
    statistic: float
    df: int
    least: int

    @property
    def p(self) -> float:
        """The probability of so large a statistic if the two had nothing to do with each other."""
        from scipy.stats import chi2

        return float(chi2.sf(self.statistic, self.df)) if self.df else 1.0

    def chance(self, records: int) -> float:
        """Return by how much V may rise by chance: by two standard deviations of noncentral χ²."""
        scale = records * (self.least - 1)
        if not scale:
            return 0.0
        spread = np.sqrt(2 * self.df + 4 * scale * self.v**2)
        return float(np.sqrt(self.v**2 + 2 * spread / scale) - self.v)


def related(
    data: Microdata, target: str, columns: Iterable[str], *, least: float = KIN
) -> tuple[str, ...]:
    """Return the columns related to a target, the closest first."""
    some = evenly(data.records, RECORDS)
    goal = grouped(data, target)[some]
    found = {name: associate(goal, grouped(data, name)[some]) for name in columns if name != target}
    close = [name for name, one in found.items() if one.v >= least and one.p < SURE]
    return tuple(sorted(close, key=lambda name: -found[name].v))


def evenly(records: int, most: int) -> Ints:
    """Return the numbers of at most so many records, evenly spread over the file."""
    return np.arange(0, records, max(1, -(-records // most)))


def grouped(data: Microdata, name: str) -> Ints:
    """Return the codes of a category, and of a number the bins of its values."""
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    if data.variable(name).kind == "category" or codes.size <= BINS:
        return values
    counts = np.bincount(values, minlength=codes.size)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    bins = np.minimum(middle * BINS, BINS - 1).astype(np.int64)
    if codes.has_missing:
        bins[-1] = BINS
    out: Ints = bins[values]
    return out


def _frequent(codes: Ints) -> Ints:
    """Put rare levels together: V would be a matter of the single records that have them."""
    counts = np.bincount(codes)
    rare = counts < LEAST_LEVEL
    # Where they are too few together, they count as the commonest level.
    rest = len(counts) if counts[rare].sum() >= LEAST_LEVEL else int(counts.argmax())
    places = np.where(rare, rest, np.arange(len(counts)))
    out: Ints = places[codes]
    return out


def associate(a: Ints, b: Ints) -> Association:
    """Return the association of two columns given by their codes."""
    width = int(b.max(initial=0)) + 1
    pairs = a * width + b
    if (int(a.max(initial=0)) + 1) * width <= DENSE:
        dense = np.bincount(pairs)
        pair = np.flatnonzero(dense)
        counts = dense[pair]
    else:
        pair, counts = np.unique(pairs, return_counts=True)
    _, rows = np.unique(pair // width, return_inverse=True)
    _, columns = np.unique(pair % width, return_inverse=True)
    r, k = int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1
    if r == 1 or k == 1:
        return Association(0.0, 0.0, 0, 1)
    in_row, in_column = np.bincount(rows, counts)[rows], np.bincount(columns, counts)[columns]
    # Empty cells add their expected counts, as in Cramér's V.
    statistic = float(counts.sum() * ((counts / in_row * (counts / in_column)).sum() - 1))
    return Association(cramers_v(counts, rows, columns), statistic, (r - 1) * (k - 1), min(r, k))


@dataclass(frozen=True, slots=True)
class Relation:
    """Cramér's V of a target and a column before and after, and what chance alone may change."""

    target: str
    column: str
    original: float
    synthetic: float
    chance: float = 0.0

    @property
    @figure()
    def difference(self) -> float:
        """How much stronger the relation has become."""
        return self.synthetic - self.original


@dataclass(frozen=True, slots=True, repr=False)
class Relations(Result):
    """The relations of all targets with all columns, the largest difference first.

    `left_out` are columns with too few records a value to be compared.
    """

    pairs: tuple[Relation, ...]
    implicates: Annotated[int, HIDDEN]
    left_out: Annotated[tuple[str, ...], Named("not_compared")] = ()

    @property
    @figure()
    def largest(self) -> float | None:
        """The largest difference beyond chance, whatever its sign; None if there is no pair."""
        found = self.beyond(0.0)
        return (abs(found[0].difference) if found else 0.0) if self.pairs else None

    def beyond(self, limit: float) -> tuple[Relation, ...]:
        """Return the relations that differ by more than so much, and by more than chance."""
        return tuple(one for one in self.pairs if abs(one.difference) > max(limit, one.chance))

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair."""
        return pl.DataFrame([members_to_plain(one) for one in self.pairs])

    def tables(self) -> list[Table]:
        """Return the pairs that differ most."""
        rows = [
            [one.target, one.column, f"{one.original:.4f}", f"{one.synthetic:.4f}",
             f"{one.difference:+.4f}", f"{one.chance:.4f}"]
            for one in self.pairs[:SHOWN]
        ]  # fmt: skip
        columns = ["target", "column", "original", "synthetic", "difference", "by chance"]
        notes = [
            f"Cramér's V corrected for bias, numbers in ten bins, levels of fewer than "
            f"{LEAST_LEVEL} records together. A difference that chance alone may make is not "
            f"judged."
        ]
        if len(self.pairs) > SHOWN:
            notes.append(f"{SHOWN} of {len(self.pairs):,} pairs: those that differ most.")
        if self.left_out:
            notes.append(f"Not compared, with too few records a value: {listed(self.left_out)}.")
        return [Table("Relations with other columns", columns, rows, notes)]


def comparable_columns(data: Microdata) -> tuple[str, ...]:
    """Return the columns of a release that a target can be compared with."""
    found = []
    for one in data.variables:
        if one.role not in NEVER_RELEASED and one.kind != "text":
            size = data.codes(one.name).size
            most = data.records // RECORDS_A_LEVEL if one.kind == "category" else size
            found += [one.name] if 1 < size <= most else []
    return tuple(found)


def compare_relations(implicates: Implicates, *, targets: Iterable[str] | None = None) -> Relations:
    """Compare the relations of targets with other columns, in the original and the implicates.

    All targets are compared if none are named.
    """
    data = implicates.data
    some = evenly(data.records, RECORDS_COMPARED)
    wanted = tuple(implicates.targets if targets is None else targets)
    others = comparable_columns(data)
    groups = {name: _frequent(grouped(data, name)) for name in dict.fromkeys([*wanted, *others])}
    drawn = [
        {name: values[implicates.source(place, name)[some]] for name, values in groups.items()}
        for place in range(len(implicates))
    ]
    original = {name: values[some] for name, values in groups.items()}
    pairs = {
        tuple(sorted((target, name))): (target, name)
        for target in wanted
        for name in others
        if name != target and data.codes(target).size > 1
    }
    found = []
    for target, name in pairs.values():
        before = associate(original[target], original[name])
        after = float(np.mean([associate(one[target], one[name]).v for one in drawn]))
        found.append(Relation(target, name, before.v, after, before.chance(len(some))))
    ordered = tuple(sorted(found, key=lambda one: -abs(one.difference)))
    left_out = tuple(
        v.name
        for v in data.variables
        if v.role not in NEVER_RELEASED and v.name not in others and data.codes(v.name).size > 1
    )
    return Relations(ordered, len(implicates), left_out)
