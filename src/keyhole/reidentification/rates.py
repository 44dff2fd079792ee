"""Rates of a study with exact intervals, whole and by stratum, rank, agreement and variable.

All rates are by PUF record (Singer & Dajani, section 1.2): suspected is the share with at least
one suspected pair, confirmed the share with a pair that is true, conditional the one over the
other. The share of pairs that are true stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, SPREAD, WHEN_SET, Named, Share, figure
from keyhole.core.options import Problem, Question
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Flags, Ints, number_rows
from keyhole.reidentification.variables import LinkCodes, common_codes, linking_category
from keyhole.results import share

if TYPE_CHECKING:
    from keyhole.reidentification.scores import Graded

MISSING = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The stratum of each record of both files, and what the strata are called."""

    puf: Ints
    eif: Ints
    labels: tuple[str, ...]
    without: Flags  # whether a value is missing in each stratum

    def as_category(self) -> LinkCodes:
        """Return the strata as a variable, of which no value is missing."""
        levels = pl.Series(range(len(self.labels)))
        return LinkCodes("strata", self.puf.astype(np.int32), self.eif.astype(np.int32), levels)

    def gaps(self, counts: tuple[Ints, Ints] | None = None) -> Gaps:
        """Return what cannot be linked of both files; `counts` are the records of each place."""
        puf, eif = counts or (np.ones_like(self.puf), np.ones_like(self.eif))
        return Gaps(self._gap(self.puf, self.eif, puf), self._gap(self.eif, self.puf, eif))

    def _gap(self, own: Ints, other: Ints, counts: Ints) -> Gap:
        alone = ~np.isin(own, other)
        missing = self.without[own]
        which = (missing, missing & alone, alone & ~missing)
        return Gap(*(int(counts[chosen].sum()) for chosen in which))


@dataclass(frozen=True, slots=True)
class Gap:
    """Records of a file with a missing stratum, and those whose stratum the other has not."""

    missing: Annotated[int, COUNT, Named("missing_stratum")]
    missing_alone: Annotated[int, COUNT, Named("missing_stratum_unlinked")]
    alone: Annotated[int, COUNT, Named("other_unlinked")]

    def in_words(
        self, one: str, other: str, strata: str, count: Callable[[int], str] = "{:,}".format
    ) -> list[str]:
        """Say how many records of one file have no stratum, or one that the other has not."""
        said = []
        if self.missing:
            end = "which makes a stratum of their own"
            if self.missing_alone == self.missing:
                end = f"unlike any {other} record, and cannot be linked"
            elif self.missing_alone:
                unlike = f"{count(self.missing_alone)} of them are unlike any {other} record"
                end += f"; {unlike} and cannot be linked"
            said.append(f"{count(self.missing)} {one} records have no value of {strata}, {end}")
        if self.alone:
            said.append(
                f"{count(self.alone)} {one} records are in strata without {other} records and "
                f"cannot be linked"
            )
        return said


@dataclass(frozen=True, slots=True)
class Gaps:
    """What cannot be linked of the PUF, and of the EIF."""

    puf: Gap
    eif: Gap


def number_strata(puf: Microdata, eif: Microdata, names: Sequence[str]) -> Strata:
    """Number the strata of both files together; a missing value is a category of its own."""
    columns = [common_codes(puf, eif, name) for name in names]
    codes = [np.concatenate([column.puf, column.eif]) for column in columns]
    stratum = number_rows(codes, puf.records + eif.records)
    here, there = stratum[: puf.records], stratum[puf.records :]
    if not np.intersect1d(here, there).size:
        raise ColumnError(
            f"strata {', '.join(map(repr, names))} must have a stratum in common in "
            f"{puf.name!r} and {eif.name!r}. Got none instead: check that they are coded alike."
        )
    firsts = np.unique(stratum, return_index=True)[1]
    words, without = [], np.zeros(len(firsts), dtype=np.bool_)
    for column, own in zip(columns, codes, strict=True):
        words.append([_word(puf, column, code) for code in own[firsts].tolist()])
        without |= own[firsts] == column.missing
    labels = tuple(", ".join(label) for label in zip(*words, strict=True))
    return Strata(here, there, labels, without)


def _word(puf: Microdata, column: LinkCodes, code: int) -> str:
    if code == column.missing:
        return MISSING
    value = column.levels[code]
    return str(puf.variable(column.name).value_labels.get(value, value))


Interval = tuple[float, float]
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
    def interval(self) -> Interval | None:
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

    puf_records: Annotated[int, COUNT]
    pairs: Annotated[int, COUNT]
    suspected: Annotated[int, COUNT, "PUF records with a suspected pair."]
    confirmed: Annotated[int, COUNT, "PUF records with a pair that is true."]
    true_pairs: Annotated[int, COUNT]

    @property
    @figure(Share("puf_records"))
    def putative_rate(self) -> float | None:
        """The share of PUF records with at least one suspected pair."""
        return Rate(self.suspected, self.puf_records).value

    @property
    @figure(Share("puf_records"))
    def confirmed_rate(self) -> float | None:
        """The share of PUF records with a pair that is true."""
        return Rate(self.confirmed, self.puf_records).value

    @property
    @figure(
        Share("suspected"), "Confirmed over suspected records: the figure a release is judged by."
    )
    def conditional_rate(self) -> float | None:
        """Of the PUF records suspected, the share confirmed: the release is judged by it."""
        return Rate(self.confirmed, self.suspected).value

    @property
    @figure(Share("pairs"))
    def pair_precision(self) -> float | None:
        """Of the suspected pairs, the share that is true."""
        return Rate(self.true_pairs, self.pairs).value

    def named(self) -> dict[str, Rate]:
        """Return the rates by their names."""
        return {
            "putative_rate": Rate(self.suspected, self.puf_records),
            "confirmed_rate": Rate(self.confirmed, self.puf_records),
            "conditional_rate": Rate(self.confirmed, self.suspected),
            "pair_precision": Rate(self.true_pairs, self.pairs),
        }

    @property
    @figure("Exact 95% intervals (Clopper and Pearson).")
    def intervals(self) -> dict[str, Interval | None]:
        """The exact 95% interval of each rate."""
        return {name: rate.interval for name, rate in self.named().items()}


@dataclass(frozen=True, slots=True)
class RatesByAgreement:
    """The rates of the pairs that agree on a number of variables."""

    label: Annotated[int, Named("agreeing")]
    rates: Annotated[Rates, SPREAD]


@dataclass(frozen=True, slots=True)
class RatesByRank:
    """The rates of the pairs of a rank within their PUF record."""

    label: Annotated[int, Named("rank")]
    rates: Annotated[Rates, SPREAD]


@dataclass(frozen=True, slots=True)
class RatesBySubset:
    """The rates of the pairs whose smallest subset of variables has a size."""

    label: Annotated[int, Named("subset_size")]
    rates: Annotated[Rates, SPREAD]


@dataclass(frozen=True, slots=True)
class StratumChance:
    """What ids dealt out at random would confirm in a stratum."""

    confirmed: float
    confirmed_rate: Annotated[float, Share("puf_records")]
    conditional_rate: Annotated[float | None, Share("suspected")]


@dataclass(frozen=True, slots=True)
class RatesByStratum:
    """The rates in a stratum, and what chance would confirm in it, if that was asked for."""

    label: Annotated[str, Named("stratum")]
    rates: Annotated[Rates, SPREAD]
    eif_records: Annotated[int, COUNT]
    baseline: StratumChance | None = None

    @classmethod
    def measured(
        cls, label: str, rates: Rates, eif_records: int, by_chance: float | None
    ) -> RatesByStratum:
        """Return the rates, with the number of records that chance confirms as shares too."""
        if by_chance is None:
            return cls(label, rates, eif_records)
        conditional = by_chance / rates.suspected if rates.suspected else None
        chance = StratumChance(by_chance, by_chance / rates.puf_records, conditional)
        return cls(label, rates, eif_records, chance)


Part = RatesByAgreement | RatesByRank | RatesBySubset | RatesByStratum
P = TypeVar("P", RatesByAgreement, RatesByRank, RatesBySubset)


@dataclass(frozen=True, slots=True)
class VariableUse:
    """How many suspected pairs, and true ones among them, agree on a variable."""

    variable: str
    pairs_agreeing: Annotated[int, COUNT]
    share_of_pairs: Annotated[float | None, Share("pairs")]
    true_pairs_agreeing: Annotated[int, COUNT]
    share_of_true_pairs: Annotated[float | None, Share("true_pairs")]
    share_in_smallest_subset: Annotated[float | None, Share("pairs"), WHEN_SET] = None
    in_smallest_subset: Annotated[int, HIDDEN] = 0  # pairs whose smallest holds it, for unicity

    @classmethod
    def counted(
        cls, variable: str, pairs: Rate, true_pairs: Rate, smallest: Rate | None
    ) -> VariableUse:
        """Return the shares of the pairs that agree, and of those in whose subset it is."""
        shares = pairs.count, pairs.value, true_pairs.count, true_pairs.value
        if smallest is None:
            return cls(variable, *shares)
        return cls(variable, *shares, smallest.value, smallest.count)


def interval_words(interval: Interval | None) -> str:
    """Write an interval for a table."""
    return "" if interval is None else f"{share(interval[0])} to {share(interval[1])}"


def confirm(puf: Ints, eif: Ints, truth_puf: Ints, truth_eif: Ints, eif_records: int) -> Flags:
    """Tell for each pair whether it is among the true ones."""
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


def rates_by_pair(
    kind: type[P], puf: Ints, confirmed: Flags, groups: Ints, puf_records: int
) -> tuple[P, ...]:
    """Count the rates of pairs by a number that each has, like its rank, in their order."""
    chosen = [(int(group), groups == group) for group in np.unique(groups)]
    return tuple(
        kind(group, measure_rates(puf[at], confirmed[at], puf_records)) for group, at in chosen
    )


def rates_by_stratum(
    puf: Ints, confirmed: Flags, strata: Strata, by_chance: Sequence[float] | None = None
) -> tuple[RatesByStratum, ...]:
    """Count the rates in each stratum that has PUF records, in the order of the labels."""
    size, groups = len(strata.labels), strata.puf
    counted = (groups, groups[puf], groups[np.unique(puf)], groups[np.unique(puf[confirmed])])
    columns = [np.bincount(one, minlength=size) for one in (*counted, groups[puf[confirmed]])]
    rates = [Rates(*(int(count) for count in row)) for row in zip(*columns, strict=True)]
    others = np.bincount(strata.eif, minlength=size).tolist()
    chances = [None] * size if by_chance is None else by_chance
    parts = zip(strata.labels, rates, others, chances, strict=True)
    return tuple(RatesByStratum.measured(*part) for part in parts if part[1].puf_records)


def agreements(
    puf: Microdata, eif: Microdata, pairs: tuple[Ints, Ints], question: Question
) -> Iterator[Flags]:
    """Tell for each variable in turn which pairs agree on it.

    Categories agree if they are the same, numbers if they are in the same fifth of the PUF's
    values (with ``cuts="each"``, each in the same fifth of its own file's); for adhoc a pair
    agrees where it has the variable's highest declared score. What is missing agrees with
    nothing.
    """
    priced: dict[str, LinkCodes | Graded] = {}
    if question.metric == "adhoc":
        from keyhole.reidentification.scores import adhoc

        priced = adhoc(puf, eif, question).by_name()
    for name in question.link:
        yield agree(priced.get(name) or linking_category(puf, eif, name, question), pairs)


def agree(variable: LinkCodes | Graded, pairs: tuple[Ints, Ints]) -> Flags:
    """Tell which pairs have the same category, or the highest score of a graded variable."""
    if isinstance(variable, LinkCodes):
        codes = variable.puf[pairs[0]]
        return np.asarray((codes == variable.eif[pairs[1]]) & (codes != variable.missing))
    one, other = variable.puf[pairs[0]], variable.eif[pairs[1]]
    known = ~(np.isnan(one) | np.isnan(other))
    top = np.zeros(len(one), dtype=np.bool_)
    top[known] = variable.price(one[known], other[known]) == 0
    return top


def count_use(
    link: Sequence[str],
    agreements: Iterable[Flags],
    confirmed: Flags,
    subsets: npt.NDArray[np.integer[Any]] | None = None,
) -> tuple[Ints, tuple[VariableUse, ...]]:
    """Count on how many variables each pair agrees, and how many pairs agree on each variable."""
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
        used.append(VariableUse.counted(name, *rates, held))
    return agreeing, tuple(used)


def part_table(title: str, name: str, parts: Sequence[Part], said: Sequence[str] = ()) -> Table:
    """Lay parts out by what they hold, the first of very many."""
    columns = [name, "pairs", "true pairs", "suspected", "confirmed", "conditional"]
    rows = []
    for part in parts[:SHOWN]:
        rates = part.rates
        counts = [rates.pairs, rates.true_pairs, rates.suspected, rates.confirmed]
        if isinstance(part, RatesByStratum):
            counts[:0] = [rates.puf_records, part.eif_records]
        cells = [f"{count:,}" for count in counts]
        rows.append([str(part.label), *cells, share(rates.conditional_rate)])
    if any(isinstance(part, RatesByStratum) for part in parts):
        columns[1:1] = ["PUF records", "EIF records"]
    more = len(parts) - SHOWN
    notes = [f"and {more:,} more, which the JSON object has"] if more > 0 else []
    return Table(title, columns, rows, [*said, *notes])


# Of a stratum with fewer records nothing is shown unless it is asked for: it may be one person.
SMALLEST_STRATUM = 3


def stratum_table(
    strata: Sequence[str], parts: Sequence[RatesByStratum], least: int = SMALLEST_STRATUM
) -> Table:
    """Lay strata out; of those with fewer records than the least only how many there are."""
    named = [part for part in parts if part.rates.puf_records >= least]
    table = part_table(f"By {', '.join(strata)}", "stratum", named)
    few = len(parts) - len(named)
    if not few:
        return table
    blank = [""] * (len(table.columns) - 1) if table.rows else []
    note = Problem(
        "Strata of fewer than {0} records are not described; {name_small_groups} names them.", least
    )
    columns = table.columns if table.rows else ["stratum"]
    rows = [*table.rows, [f"({few:,} smaller)", *blank]]
    return Table(table.title, columns, rows, [*table.notes, note])


def use_table(uses: Sequence[VariableUse]) -> Table:
    """Lay out which variables make the suspects."""
    subsets = any(use.share_in_smallest_subset is not None for use in uses)
    columns = ["variable", "of the pairs", "of the true pairs"]
    columns += ["in the smallest subset"] if subsets else []
    rows = []
    for use in uses:
        shares = [use.share_of_pairs, use.share_of_true_pairs, use.share_in_smallest_subset]
        rows.append([use.variable, *map(share, shares)][: len(columns)])
    return Table("Share of pairs that agree on each variable", columns, rows)
