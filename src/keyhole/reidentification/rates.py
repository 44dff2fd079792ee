"""Rates of a re-identification study, with exact intervals.

All rates are by PUF record (Singer & Dajani, section 1.2): suspected is the share with at least
one suspected pair, confirmed the share with a pair that is true, conditional the one over the
other. The share of pairs that are true stands beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Ints

__all__ = [
    "Rate",
    "Rates",
    "confirm",
    "measure_rates",
    "rates_by_pair",
    "rates_by_record",
]


CONFIDENCE = 0.95


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


def rates_by_pair(
    puf: Ints, confirmed: Flags, groups: Ints, puf_records: int
) -> list[tuple[int, Rates]]:
    """Count the rates of the pairs of each group, for the groups there are, in their order.

    A PUF record with pairs in several groups counts in each.

    Examples
    --------
    >>> found = rates_by_pair(np.array([0, 0, 1]), np.array([True, False, False]),
    ...                       np.array([1, 2, 2]), 4)
    >>> [(group, rates.suspected, rates.confirmed) for group, rates in found]
    [(1, 1, 1), (2, 2, 0)]
    """
    chosen = [(int(group), groups == group) for group in np.unique(groups)]
    return [(group, measure_rates(puf[at], confirmed[at], puf_records)) for group, at in chosen]


def rates_by_record(
    puf: Ints, confirmed: Flags, groups: npt.NDArray[np.integer[Any]], size: int
) -> list[Rates]:
    """Count the rates in each of `size` groups of PUF records.

    Examples
    --------
    >>> found = rates_by_record(np.array([0, 0, 2]), np.array([True, False, False]),
    ...                         np.array([0, 1, 1]), 2)
    >>> [(rates.puf_records, rates.pairs, rates.suspected, rates.confirmed) for rates in found]
    [(1, 2, 1, 1), (2, 1, 1, 0)]
    """
    counted = (groups, groups[puf], groups[np.unique(puf)], groups[np.unique(puf[confirmed])])
    columns = [np.bincount(one, minlength=size) for one in (*counted, groups[puf[confirmed]])]
    return [Rates(*(int(count) for count in row)) for row in zip(*columns, strict=True)]
