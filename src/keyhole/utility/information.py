"""Information lost by protection, record by record: entropy, and IL1s of numbers.

Record by record, because distributions do not show everything: a swap leaves every distribution
as it was and still loses what each record told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.expressions import parse_expression, source_columns
from keyhole.core.marks import figure
from keyhole.core.tables import Table
from keyhole.data import Microdata, load
from keyhole.data.columns import encode
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result
from keyhole.utility.distributions import bin_numbers, quantile_bins
from keyhole.utility.figures import amount
from keyhole.utility.implicates import chosen, numbers, physical

# Numbers with more values than this are cut at their quantiles: each value would be its own.
FINE = 100
BINS = 20


@dataclass(frozen=True, slots=True)
class VariableLoss:
    """What is lost of one variable.

    `entropy` is what the variable told, in bits a record; `share` the part of it that is lost, 1
    where the variable is gone and no column derived from it stays. `il1s` is the mean distance of
    numbers in standard deviations, over the square root of 2. None where it does not apply.
    """

    variable: str
    entropy: float
    share: float | None
    il1s: float | None


@dataclass(frozen=True, slots=True, repr=False)
class InformationLoss(Result):
    """What is lost of each variable, and on average.

    `records` are those of the original, `kept` those of them that the protected file has.
    """

    variables: tuple[VariableLoss, ...]
    records: int
    kept: int

    @property
    @figure()
    def share(self) -> float | None:
        """The share of information lost, averaged over the variables that tell anything."""
        return _mean([one.share for one in self.variables])

    @property
    @figure()
    def il1s(self) -> float | None:
        """IL1s averaged over the numbers that are still numbers."""
        return _mean([one.il1s for one in self.variables])

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """Why a figure may be null."""
        return ("null: a constant has no information to lose, and IL1s is for numbers only",)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a variable."""
        kinds = {"variable": pl.String, **dict.fromkeys(("entropy", "share", "il1s"), pl.Float64)}
        return pl.DataFrame(self.to_dict()["variables"], schema=kinds)

    def tables(self) -> list[Table]:
        """Return the losses by variable."""
        rows = [
            [one.variable, amount(one.entropy), _figure(one.share), _figure(one.il1s)]
            for one in self.variables
        ]
        rows.append(["mean", "", _figure(self.share), _figure(self.il1s)])
        columns = ["variable", "bits told", "share lost", "IL1s"]
        notes = []
        if self.kept < self.records:
            gone = self.records - self.kept
            notes.append(
                f"{gone:,} of {self.records:,} records were removed, and all that they held."
            )
        return [Table("Information lost", columns, rows, notes)]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def information_loss(
    original: Any,
    protected: Any,
    *,
    variables: str | Sequence[str] | None = None,
    kept: npt.ArrayLike | None = None,
    derived: Mapping[str, Sequence[str]] | None = None,
) -> InformationLoss:
    r"""Measure what a protected file no longer tells of each record.

    Parameters
    ----------
    original, protected
        The data before protection, and the same records after it, in the same order.
    variables
        The variables that count; all the original's but free text if left out. Of what the
        protected file does not have, only what columns derived from it say is kept.
    kept
        Which records of the original (from 0) the protected file has, if it has not all.
    derived
        Derived columns, each with the columns that it is made from; as `derivation_sources` finds
        them in both files if left out.

    Notes
    -----
    With :math:`H(V \mid V')` the entropy of a variable given its protected version, or given all
    columns derived from it where it is gone itself,

    .. math:: \frac{H(V \mid V')}{H(V)}, \quad
              IL1s = \frac{1}{n} \sum_i \frac{|x_i - x'_i|}{\sqrt{2}\, s_x}

    (Kooiman, Willenborg & Gouweleeuw 1998; Yancey, Winkler & Creecy 2002). Numbers of more than
    100 values are cut into 20 bins at the original's quantiles for the entropy. A missing value
    is a category of its own, and is in no distance. A record left out loses all it told.

    Examples
    --------
    >>> before = pl.DataFrame({"state": ["MD", "VA", "TX", "OK"], "age": [30, 40, 50, 60]})
    >>> after = pl.DataFrame({"state": ["E", "E", "W", "W"], "age": [30, 40, 50, 50]})
    >>> found = information_loss(before, after)
    >>> [one.share for one in found.variables], round(found.il1s, 4)
    ([0.5, 0.25], 0.1369)
    """
    before, after = load(original), load(protected)
    names = tuple(one.name for one in before.variables if one.kind != "text")
    if variables is not None:
        names = before.require(chosen(variables), purpose="variable")
    before.require_records()
    after.require_records()
    rows = np.arange(before.records) if kept is None else np.asarray(kept, dtype=np.int64)
    if len(rows) != after.records or rows.min() < 0 or rows.max() >= before.records:
        raise OptionError(
            f"protected must have the original's records in its order, or kept must name those "
            f"it has. Got {after.records:,} for {before.records:,} instead."
        )
    whole = before if len(rows) == before.records else before.replace(frame=before.frame[rows])
    made = derivation_sources(before, after) if derived is None else derived
    found = [_loss(whole, after, name, len(rows) / before.records, made) for name in names]
    return InformationLoss(tuple(found), before.records, len(rows))


def derivation_sources(*files: Microdata) -> dict[str, tuple[str, ...]]:
    """Return the derived columns of files, each with the columns that it is made from."""
    every = [variable for file in files for variable in file.variables]
    return {v.name: source_columns(parse_expression(v.derived)) for v in every if v.derived}


def derived_from(name: str, derived: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns made from one, or from such a column, in their order."""
    found = {name}
    for _ in derived:
        found |= {made for made, sources in derived.items() if not found.isdisjoint(sources)}
    return [made for made in derived if made in found]


Derived = Mapping[str, Sequence[str]]


def _loss(
    before: Microdata, after: Microdata, name: str, kept: float, derived: Derived
) -> VariableLoss:
    there = name in after.names
    one, other = paired_codes(before, after if there else before, name)
    if not there:
        other = np.zeros_like(one)
        for made in derived_from(name, derived):
            if made in after.names:
                other = _both(other, _own(after.column(made)))
    # H(V | V') is the entropy of both together less that of V'.
    entropy, lost = _entropy(one), max(0.0, _entropy(_both(one, other)) - _entropy(other))
    share = (1 - kept) + kept * (lost / entropy) if entropy > 0 else None
    return VariableLoss(name, entropy, share, _il1s(before, after, name) if there else None)


def _both(one: Ints, other: Ints) -> Ints:
    """Return the combinations of two columns of codes, numbered from 0."""
    pairs = one * (int(other.max(initial=0)) + 1) + other
    numbered: Ints = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbered


def paired_codes(before: Microdata, after: Microdata, name: str) -> tuple[Ints, Ints]:
    """Return the categories before and after; numbers that are still numbers are coded alike."""
    x, y = before.column(name), after.column(name)
    numeric = [one.dtype.is_numeric() or one.dtype.is_temporal() for one in (x, y)]
    if not numeric[0] or before.variable(name).kind not in ("measure", "date"):
        return _own(x), _own(y)
    levels = np.unique(physical(x.drop_nulls()))
    edges = (levels[1:] + levels[:-1]) / 2 if len(levels) <= FINE else quantile_bins(x, BINS)
    alike = numeric[1] and x.dtype.is_temporal() == y.dtype.is_temporal()
    return bin_numbers(x, edges), bin_numbers(y, edges) if alike else _own(y)


def _own(series: pl.Series) -> Ints:
    return encode(series).values.astype(np.int64)


def _entropy(codes: Ints) -> float:
    counts = np.unique(codes, return_counts=True)[1]
    shares = counts / counts.sum()
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def _il1s(before: Microdata, after: Microdata, name: str) -> float | None:
    series = after.column(name)
    if before.variable(name).kind != "measure" or not series.dtype.is_numeric():
        return None
    x, y = numbers(before, name), numbers(after, name)
    there = np.isfinite(x) & np.isfinite(y)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may be too large for a variance
        spread = float(np.std(x[np.isfinite(x)], ddof=1)) if np.isfinite(x).sum() > 1 else 0.0
        if not there.any() or not 0 < spread < np.inf:
            return None
        lost = float(np.abs(x - y)[there].mean() / (np.sqrt(2) * spread))
    return lost if np.isfinite(lost) else None


def at_detail_of(original: Microdata, protected: Microdata, names: Sequence[str]) -> Microdata:
    """Return columns of the original in the categories of the protected file.

    Measures that are still numbers stay as they are. Where every value of a column has become
    one other (a coarser column), or there are new ones, each value becomes what most of its
    records became; one that has become nothing but missing stays missing. What was swapped or
    drawn among the original's categories stays as it is.

    Both have the same records in the same order, and the columns.
    """
    columns, variables = [], []
    for name in names:
        before, after = original.column(name), protected.column(name)
        pairs = pl.DataFrame({"before": before, "after": after})
        counts = pairs.drop_nulls().group_by("before", "after").len()
        both = before.dtype.is_numeric() and after.dtype.is_numeric()
        # What is still of the original's kind and detail; not where each value became one value.
        same = (both and original.variable(name).kind == "measure") or (
            before.dtype == after.dtype
            and counts["before"].n_unique() < counts.height
            and set(after.drop_nulls().unique()) <= set(before.drop_nulls().unique())
        )
        if not same:
            usual = counts.sort("len", "after", descending=[True, False])
            usual = usual.unique("before", keep="first", maintain_order=True)
            joined = pairs.join(usual, on="before", how="left", maintain_order="left")
            before = joined["after_right"].alias(name)
        columns.append(before)
        variables.append((original if same else protected).variable(name))
    shown = original.select(names)
    return shown.replace(frame=pl.DataFrame(columns)).with_variables(variables)
