"""Where the suspects come from: the rates by stratum, rank, agreement and variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Ints
from keyhole.reidentification.agreement import Strata
from keyhole.reidentification.rates import Rate, Rates, rates_by_pair, rates_by_record
from keyhole.results import Table, share

__all__ = ["Part", "VariableUse", "by_pair", "by_stratum", "count_use", "part_table", "use_table"]


# A summary shows the first of many strata; the figures of all are in the dictionary.
SHOWN = 20


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


def by_pair(puf: Ints, confirmed: Flags, groups: Ints, puf_records: int) -> tuple[Part, ...]:
    """Count the rates of pairs by a number that each has, like its rank."""
    found = rates_by_pair(puf, confirmed, groups, puf_records)
    return tuple(Part(group, rates) for group, rates in found)


def by_stratum(
    puf: Ints, confirmed: Flags, strata: Strata, by_chance: Sequence[float] | None = None
) -> tuple[Part, ...]:
    """Count the rates in each stratum that has PUF records, in the order of the labels."""
    size = len(strata.labels)
    rates = rates_by_record(puf, confirmed, strata.puf, size)
    others = np.bincount(strata.eif, minlength=size).tolist()
    chances = [None] * size if by_chance is None else by_chance
    parts = map(Part, strata.labels, rates, others, chances)
    return tuple(part for part in parts if part.rates.puf_records)


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
