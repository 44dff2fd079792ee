"""Rates of a study with exact intervals, whole and by stratum, rank, agreement and variable.

All rates are by PUF record (Singer & Dajani, section 1.2): suspected is the share with at least
one suspected pair, confirmed the share with a pair that is true, conditional the one over the
other. The share of pairs that are true stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.core.options import Question
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.kernels.grading import BAND, DECIMALS, TABLE
from keyhole.reidentification.costs import Graded
from keyhole.reidentification.scores import adhoc
from keyhole.reidentification.strata import Strata
from keyhole.reidentification.variables import Category, linking_category
from keyhole.results import Table, share

__all__ = [
    "Part",
    "Rate",
    "Rates",
    "VariableUse",
    "agree",
    "agreements",
    "confirm",
    "count_use",
    "measure_rates",
    "part_table",
    "rates_by_pair",
    "rates_by_stratum",
    "use_table",
]

CONFIDENCE = 0.95
# A summary shows the first of many strata; the figures of all are in the dictionary.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its exact 95% interval; None where there is nothing to divide by."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share itself."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Clopper and Pearson's interval, which covers at least 95%.

        Examples
        --------
        >>> [round(bound, 4) for bound in Rate(0, 10).interval]
        [0.0, 0.3085]
        """
        if not self.total:
            return None
        from scipy.special import betaincinv

        tail, k, n = (1 - CONFIDENCE) / 2, self.count, self.total
        low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
        high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
        return low, high


@dataclass(frozen=True, slots=True)
class Rates:
    """The four rates of a study or of one of its parts."""

    puf_records: int
    pairs: int
    suspected: int
    confirmed: int
    true_pairs: int

    @property
    def putative(self) -> Rate:
        """PUF records with at least one suspected pair."""
        return Rate(self.suspected, self.puf_records)

    @property
    def confirmed_rate(self) -> Rate:
        """PUF records with a pair that is true."""
        return Rate(self.confirmed, self.puf_records)

    @property
    def conditional(self) -> Rate:
        """Of the PUF records suspected, those confirmed: what a release hangs on."""
        return Rate(self.confirmed, self.suspected)

    @property
    def pair_precision(self) -> Rate:
        """Of the suspected pairs, those that are true."""
        return Rate(self.true_pairs, self.pairs)

    def named(self) -> dict[str, Rate]:
        """Return the rates by their names."""
        return {
            "putative_rate": self.putative,
            "confirmed_rate": self.confirmed_rate,
            "conditional_rate": self.conditional,
            "pair_precision": self.pair_precision,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return counts, rates and intervals as plain values."""
        rates = self.named()
        return {
            "puf_records": self.puf_records,
            "suspected": self.suspected,
            "confirmed": self.confirmed,
            "pairs": self.pairs,
            "true_pairs": self.true_pairs,
            **{name: rate.value for name, rate in rates.items()},
            "intervals": {
                name: None if rate.interval is None else list(rate.interval)
                for name, rate in rates.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Part:
    """The rates of one part of a study.

    A stratum has its `eif_records` too, and `by_chance`, the number of records that ids dealt
    out at random would confirm, if that was asked for.
    """

    label: str | int
    rates: Rates
    eif_records: int | None = None
    by_chance: float | None = None

    def to_dict(self, name: str) -> dict[str, Any]:
        """Return the figures as plain values, the label under `name`."""
        out = {name: self.label, **self.rates.to_dict()}
        if self.eif_records is None:
            return out
        return {**out, "eif_records": self.eif_records, "baseline": self._baseline()}

    def _baseline(self) -> dict[str, float | None] | None:
        if self.by_chance is None:
            return None
        suspected = self.rates.suspected
        return {
            "confirmed": self.by_chance,
            "confirmed_rate": self.by_chance / self.rates.puf_records,
            "conditional_rate": self.by_chance / suspected if suspected else None,
        }


@dataclass(frozen=True, slots=True)
class VariableUse:
    """How many suspected pairs, and true ones among them, agree on a variable.

    `smallest` counts the pairs whose smallest subset holds the variable (unicity only).
    """

    variable: str
    pairs: Rate
    true_pairs: Rate
    smallest: Rate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        out: dict[str, Any] = {
            "variable": self.variable,
            "pairs_agreeing": self.pairs.count,
            "share_of_pairs": self.pairs.value,
            "true_pairs_agreeing": self.true_pairs.count,
            "share_of_true_pairs": self.true_pairs.value,
        }
        if self.smallest is not None:
            out["share_in_smallest_subset"] = self.smallest.value
        return out


def confirm(puf: Ints, eif: Ints, truth_puf: Ints, truth_eif: Ints, eif_records: int) -> Flags:
    """Tell for each pair whether it is among the true ones.

    Examples
    --------
    >>> one, two = np.array([0, 1]), np.array([0, 0])
    >>> confirm(one, two, np.array([0]), np.array([0]), 5).tolist()
    [True, False]
    """
    return np.isin(puf * eif_records + eif, truth_puf * eif_records + truth_eif)


def measure_rates(puf: Ints, confirmed: Flags, puf_records: int) -> Rates:
    """Count the rates of suspected pairs, given by their PUF record and whether they are true."""
    return Rates(
        puf_records=puf_records,
        pairs=len(puf),
        suspected=len(np.unique(puf)),
        confirmed=len(np.unique(puf[confirmed])),
        true_pairs=int(confirmed.sum()),
    )


def rates_by_pair(puf: Ints, confirmed: Flags, groups: Ints, puf_records: int) -> tuple[Part, ...]:
    """Count the rates of pairs by a number that each has, like its rank, in their order.

    A PUF record with pairs of several numbers counts in each.

    Examples
    --------
    >>> found = rates_by_pair(np.array([0, 0, 1]), np.array([True, False, False]),
    ...                       np.array([1, 2, 2]), 4)
    >>> [(part.label, part.rates.suspected, part.rates.confirmed) for part in found]
    [(1, 1, 1), (2, 2, 0)]
    """
    chosen = [(int(group), groups == group) for group in np.unique(groups)]
    return tuple(
        Part(group, measure_rates(puf[at], confirmed[at], puf_records)) for group, at in chosen
    )


def rates_by_stratum(
    puf: Ints, confirmed: Flags, strata: Strata, by_chance: Sequence[float] | None = None
) -> tuple[Part, ...]:
    """Count the rates in each stratum that has PUF records, in the order of the labels."""
    size, groups = len(strata.labels), strata.puf
    counted = (groups, groups[puf], groups[np.unique(puf)], groups[np.unique(puf[confirmed])])
    columns = [np.bincount(one, minlength=size) for one in (*counted, groups[puf[confirmed]])]
    rates = [Rates(*(int(count) for count in row)) for row in zip(*columns, strict=True)]
    others = np.bincount(strata.eif, minlength=size).tolist()
    chances = [None] * size if by_chance is None else by_chance
    parts = map(Part, strata.labels, rates, others, chances)
    return tuple(part for part in parts if part.rates.puf_records)


def agreements(
    puf: Microdata, eif: Microdata, pairs: tuple[Ints, Ints], question: Question
) -> Iterator[Flags]:
    """Tell for each variable in turn which pairs agree on it.

    Categories agree if they are the same, numbers if they are in the same fifth of the PUF's
    values (with ``cuts="each"``, each in the same fifth of its own file's); for adhoc a pair
    agrees where it has the variable's highest declared score. What is missing agrees with
    nothing.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf = load({"sex": ["f", None], "age": [20, 60]})
    >>> eif = load({"sex": ["f", "m"], "age": [21, 60]})
    >>> pairs = np.array([0, 1]), np.array([0, 1])
    >>> from keyhole.reidentification.study import linking_question
    >>> asked = linking_question(link=["sex", "age"], numeric=["age"])
    >>> found = agreements(puf, eif, pairs, asked)
    >>> [same.tolist() for same in found]
    [[True, False], [True, True]]
    """
    priced = adhoc(puf, eif, question).by_name() if question.metric == "adhoc" else {}
    for name in question.link:
        yield agree(priced.get(name) or linking_category(puf, eif, name, question), pairs)


def agree(variable: Category | Graded, pairs: tuple[Ints, Ints]) -> Flags:
    """Tell which pairs have the same category, or the highest score of a graded variable."""
    if isinstance(variable, Category):
        codes = variable.puf[pairs[0]]
        return np.asarray((codes == variable.eif[pairs[1]]) & (codes != variable.missing))
    one, other = variable.puf[pairs[0]], variable.eif[pairs[1]]
    known = ~(np.isnan(one) | np.isnan(other))
    top = np.zeros(len(one), dtype=np.bool_)
    top[known] = _prices(variable, one[known], other[known]) == 0
    return top


def _prices(variable: Graded, puf: Floats, eif: Floats) -> Floats:
    """Return what known values lack of the variable's highest score."""
    if variable.kind == TABLE:
        return variable.table[puf.astype(np.int64), eif.astype(np.int64)]
    gap = np.abs(puf - eif)
    if variable.kind != BAND:
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(gap > 0, gap / np.abs(puf), 0.0)
    # To nine decimals, as the search compares them.
    rounded = np.rint(gap * DECIMALS) / DECIMALS
    bands = np.searchsorted(variable.limits, rounded, side="left")
    return np.asarray(variable.prices)[bands]


def count_use(
    link: Sequence[str],
    agreements: Iterable[Flags],
    confirmed: Flags,
    subsets: npt.NDArray[np.integer[Any]] | None = None,
) -> tuple[Ints, tuple[VariableUse, ...]]:
    """Count on how many variables each pair agrees, and how many pairs agree on each variable.

    Parameters
    ----------
    link
        The linking variables.
    agreements
        For each variable, which of the pairs agree on it.
    confirmed
        Which of the pairs are true.
    subsets
        For unicity the smallest subset of each pair, as bits in the order of the variables.

    Examples
    --------
    >>> same = [np.array([True, True]), np.array([False, True])]
    >>> count, use = count_use(["sex", "age"], same, np.array([False, True]))
    >>> count.tolist(), [(one.variable, one.pairs.value, one.true_pairs.value) for one in use]
    ([1, 2], [('sex', 1.0, 1.0), ('age', 0.5, 1.0)])
    """
    total, true = len(confirmed), int(confirmed.sum())
    agreeing = np.zeros(total, dtype=np.int64)
    used = []
    for i, (name, same) in enumerate(zip(link, agreements, strict=True)):
        agreeing += same
        held = None
        if subsets is not None:
            bits = (subsets >> subsets.dtype.type(i)) & subsets.dtype.type(1)
            held = Rate(int(bits.sum()), total)
        rates = Rate(int(same.sum()), total), Rate(int((same & confirmed).sum()), true)
        used.append(VariableUse(name, *rates, held))
    return agreeing, tuple(used)


def part_table(title: str, name: str, parts: Sequence[Part], said: Sequence[str] = ()) -> Table:
    """Lay parts out by what they hold, the first of very many."""
    files = any(part.eif_records is not None for part in parts)
    columns = [name, "pairs", "true pairs", "suspected", "confirmed", "conditional"]
    rows = []
    for part in parts[:SHOWN]:
        counts = [part.rates.pairs, part.rates.true_pairs, part.rates.suspected]
        cells = [f"{count:,}" for count in [*counts, part.rates.confirmed]]
        sizes = [f"{part.rates.puf_records:,}", f"{part.eif_records:,}"] if files else []
        rows.append([str(part.label), *sizes, *cells, share(part.rates.conditional.value)])
    columns[1:1] = ["PUF records", "EIF records"] if files else []
    more = len(parts) - SHOWN
    notes = [f"and {more:,} more, which the JSON object has"] if more > 0 else []
    return Table(title, columns, rows, [*said, *notes])


def use_table(uses: Sequence[VariableUse]) -> Table:
    """Lay out which variables make the suspects."""
    subsets = any(use.smallest is not None for use in uses)
    columns = ["variable", "of the pairs", "of the true pairs"]
    rows = []
    for use in uses:
        cells = [use.variable, share(use.pairs.value), share(use.true_pairs.value)]
        if use.smallest is not None:
            cells.append(share(use.smallest.value))
        rows.append(cells)
    columns += ["in the smallest subset"] if subsets else []
    return Table("Share of pairs that agree on each variable", columns, rows)
