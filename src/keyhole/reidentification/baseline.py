"""What chance alone would confirm: the suspected pairs with ids dealt out at random."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Baseline", "permuted_baseline"]

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the same pairs would confirm if the EIF's ids were dealt out at random.

    `confirmed` is the mean over the permutations, `by_stratum` its parts where ids were dealt
    out within strata; the intervals hold the middle 95% of the permutations, and `p_value` is
    the chance to confirm at least as many as the study did.
    """

    permutations: int
    confirmed: float
    confirmed_rate: float
    conditional_rate: float | None
    interval: tuple[float, float]
    conditional_interval: tuple[float, float] | None = None
    p_value: float | None = None
    by_stratum: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        conditional = self.conditional_interval
        return {
            "permutations": self.permutations,
            "within_strata": self.by_stratum is not None,
            "confirmed": self.confirmed,
            "confirmed_rate": self.confirmed_rate,
            "conditional_rate": self.conditional_rate,
            "p_value": self.p_value,
            "confirmed_rate_interval": list(self.interval),
            "conditional_rate_interval": None if conditional is None else list(conditional),
        }


def permuted_baseline(
    puf: Ints,
    eif: Ints,
    truth_puf: Ints,
    truth_eif: Ints,
    *,
    puf_records: int,
    eif_records: int,
    strata: tuple[Ints, Ints] | None = None,
    permutations: int = 200,
    seed: int = 1,
) -> Baseline:
    """Confirm the pairs against ids dealt out at random, many times.

    Parameters
    ----------
    puf, eif
        The suspected pairs.
    truth_puf, truth_eif
        The true pairs.
    puf_records, eif_records
        The sizes of the files.
    strata
        The stratum of each PUF record and of each EIF record: ids are dealt out within
        strata, as pairs are made.
    permutations, seed
        How often, and where the chance comes from.

    Notes
    -----
    The suspected pairs stay; only who is who changes. So the baseline is the confirmed rate of
    an intruder who links at random as often as this one did.
    """
    suspected = len(np.unique(puf))
    who, linked, mate = _chances(puf, eif, truth_puf, truth_eif, puf_records)
    observed = len(np.unique(who[linked == mate]))
    deal = _dealer(eif_records, None if strata is None else strata[1])

    def confirmed(i: int) -> Ints:
        dealt = deal(np.random.default_rng([seed, i]))
        return np.unique(who[dealt[linked] == mate])

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = list(threads.map(confirmed, range(permutations)))
    counts = np.array([len(records) for records in found])
    by_stratum = None if strata is None else _mean_by_stratum(found, *strata)
    return _summarise(counts, observed, suspected, puf_records, by_stratum)


def _mean_by_stratum(found: list[Ints], puf: Ints, eif: Ints) -> tuple[float, ...]:
    size = 1 + max(int(one.max(initial=0)) for one in (puf, eif))
    places = puf[np.concatenate(found)]
    return tuple((np.bincount(places, minlength=size) / len(found)).tolist())


def _chances(
    puf: Ints, eif: Ints, truth_puf: Ints, truth_eif: Ints, puf_records: int
) -> tuple[Ints, Ints, Ints]:
    """Return each pair once for each mate its PUF record has: only these can be confirmed."""
    order = np.argsort(truth_puf, kind="stable")
    mates = np.bincount(truth_puf, minlength=puf_records)
    first = np.cumsum(mates) - mates
    times = mates[puf]
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    who = np.repeat(puf, times)
    return who, np.repeat(eif, times), truth_eif[order][first[who] + nth]


def _summarise(
    counts: Ints,
    observed: int,
    suspected: int,
    puf_records: int,
    by_stratum: tuple[float, ...] | None,
) -> Baseline:
    low, high = (float(bound) for bound in np.quantile(counts, [0.025, 0.975]))
    mean = float(counts.mean())
    return Baseline(
        permutations=len(counts),
        confirmed=mean,
        confirmed_rate=mean / puf_records,
        conditional_rate=mean / suspected if suspected else None,
        interval=(low / puf_records, high / puf_records),
        conditional_interval=(low / suspected, high / suspected) if suspected else None,
        p_value=(1 + int((counts >= observed).sum())) / (1 + len(counts)),
        by_stratum=by_stratum,
    )


def _dealer(records: int, strata: Ints | None) -> Callable[[np.random.Generator], Ids]:
    """Return what deals out ids: whose id each record gets."""
    every = np.arange(records, dtype=np.int32)  # half the memory is half the time
    if strata is None:
        return lambda random: random.permutation(every)
    # Numbers of two bytes are sorted several times faster.
    small = strata.astype(np.min_scalar_type(int(strata.max(initial=0))))
    places = np.argsort(small, kind="stable")

    def deal(random: np.random.Generator) -> Ids:
        shuffled = random.permutation(every)
        dealt = np.empty_like(every)
        # Both orders go stratum by stratum, so that an id stays in its stratum.
        dealt[places] = shuffled[np.argsort(small[shuffled], kind="stable")]
        return dealt

    return deal
