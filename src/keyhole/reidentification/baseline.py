"""Baseline of a study: what the suspected pairs would confirm under random matching."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from keyhole.core.marks import HIDDEN, Named, Share
from keyhole.engines.resources import in_threads
from keyhole.kernels.arrays import Ints, Numbers


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the same pairs would confirm if the EIF's ids were dealt out at random.

    `confirmed` is the mean over the permutations, `by_stratum` its parts where ids were dealt
    out within strata; the intervals hold the middle 95% of the permutations, and `p_value` is
    the chance to confirm at least as many as the study did.
    """

    permutations: int
    within_strata: bool
    confirmed: Annotated[float, "Mean over the permutations."]
    confirmed_rate: Annotated[float, Share("puf_records")]
    conditional_rate: Annotated[float | None, Share("suspected")]
    p_value: Annotated[float, "The chance to confirm at least as many."]
    interval: Annotated[tuple[float, float], Named("confirmed_rate_interval")]
    conditional_interval: Annotated[
        tuple[float, float] | None, Named("conditional_rate_interval")
    ] = None
    by_stratum: Annotated[tuple[float, ...] | None, HIDDEN] = None


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

    Notes
    -----
    The suspected pairs stay; only who is who changes. So the baseline is the confirmed rate of
    an intruder who links at random as often as this one did.
    """
    suspected = len(np.unique(puf))
    chances = find_chances(puf, eif, truth_puf, truth_eif, puf_records)
    observed = chances.confirmed()
    if strata is None:
        counts = deal_all(chances, eif_records, permutations, seed)
        return summarise(counts, observed, suspected, puf_records)
    size = 1 + max(int(one.max(initial=0)) for one in strata)
    found = np.zeros((size, permutations), dtype=np.int64)
    parts = list(_within(chances, *strata))
    dealt = in_threads(lambda part: deal_stratum(*part, permutations, seed), parts)
    for (stratum, _, _), counts in zip(parts, dealt, strict=True):
        found[stratum] = counts
    return summarise(
        found.sum(axis=0), observed, suspected, puf_records, tuple(found.mean(axis=1).tolist())
    )


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Each pair once for each mate that its PUF record has: only these can be confirmed."""

    who: Ints
    linked: Ints
    mate: Ints

    def confirmed(self, dealt: Numbers | None = None) -> int:
        """Count the PUF records confirmed, with the ids as they are or dealt out."""
        linked = self.linked if dealt is None else dealt[self.linked]
        return len(np.unique(self.who[linked == self.mate]))


def deal_stratum(
    stratum: int, chances: Chances, records: int, permutations: int, seed: int
) -> Ints:
    """Deal out ids in one stratum many times, by a seed of its own; count who is confirmed."""
    random, every = np.random.default_rng([seed, stratum]), np.arange(records, dtype=np.int32)
    deals = (random.permutation(every) for _ in range(permutations))
    return np.array([chances.confirmed(dealt) for dealt in deals], dtype=np.int64)


def deal_all(chances: Chances, records: int, permutations: int, seed: int) -> Ints:
    """Deal out the ids of the whole EIF many times; return how many each deal confirms."""
    every = np.arange(records, dtype=np.int32)  # half the memory is half the time

    def confirmed(i: int) -> int:
        return chances.confirmed(np.random.default_rng([seed, i]).permutation(every))

    return np.array(in_threads(confirmed, range(permutations)), dtype=np.int64)


def _within(chances: Chances, puf: Ints, eif: Ints) -> Iterator[tuple[int, Chances, int]]:
    """Part the chances by stratum; a mate in another stratum is never dealt to the pair."""
    sizes = np.bincount(eif)
    places = np.empty_like(eif)
    places[np.argsort(eif, kind="stable")] = np.arange(len(eif))
    places -= (np.cumsum(sizes) - sizes)[eif]
    strata = puf[chances.who]
    inside = np.flatnonzero(eif[chances.mate] == strata)
    order = inside[np.argsort(strata[inside], kind="stable")]
    found, starts = np.unique(strata[order], return_index=True)
    for stratum, at in zip(found.tolist(), np.split(order, starts)[1:], strict=True):
        linked, mate = places[chances.linked[at]], places[chances.mate[at]]
        yield stratum, Chances(chances.who[at], linked, mate), int(sizes[stratum])


def find_chances(
    puf: Ints, eif: Ints, truth_puf: Ints, truth_eif: Ints, puf_records: int
) -> Chances:
    """Return each pair once for each mate of its PUF record."""
    order = np.argsort(truth_puf, kind="stable")
    mates = np.bincount(truth_puf, minlength=puf_records)
    first = np.cumsum(mates) - mates
    times = mates[puf]
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    who = np.repeat(puf, times)
    return Chances(who, np.repeat(eif, times), truth_eif[order][first[who] + nth])


def summarise(
    counts: Ints,
    observed: int,
    suspected: int,
    puf_records: int,
    by_stratum: tuple[float, ...] | None = None,
) -> Baseline:
    """Sum up how many PUF records each deal confirms, beside those the study does."""
    low, high = (float(bound) for bound in np.quantile(counts, [0.025, 0.975]))
    mean = float(counts.mean())
    return Baseline(
        permutations=len(counts),
        within_strata=by_stratum is not None,
        confirmed=mean,
        confirmed_rate=mean / puf_records,
        conditional_rate=mean / suspected if suspected else None,
        interval=(low / puf_records, high / puf_records),
        conditional_interval=(low / suspected, high / suspected) if suspected else None,
        p_value=(1 + int((counts >= observed).sum())) / (1 + len(counts)),
        by_stratum=by_stratum,
    )
