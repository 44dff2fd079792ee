"""Whether intervals from implicates cover the truth as often as they say.

Samples are drawn again and again from a population of the example world whose truth is known:
records one by one, or clusters of neighbours within strata of states, with unequal weights. Each
is synthesised by the defaults and analysed as its reader would: one estimate from every
implicate, combined by Reiter's rules. The same intervals from the samples themselves are shown
beside. Estimates and variances are plain NumPy (linearised), none of keyhole's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import t as student

from benchmarks.clock import say
from benchmarks.rivals import CORES
from keyhole.core.options import bind
from keyhole.data import Microdata, Variable
from keyhole.data.examples import veterans_sample
from keyhole.synthesis.designate import designate
from keyhole.synthesis.planning import SynthesisRequest, draw_with_decoys
from keyhole.synthesis.synthesise import find_targets_and_rules, synthesise
from keyhole.synthesis.targets import order_targets
from keyhole.utility import combine

Floats = npt.NDArray[np.float64]
POPULATION, SAMPLE, IMPLICATES = 200_000, 2_000, 5
KEYS = ("sex", "age", "race1", "ms", "ethnic")
TARGETS = ("age", "race1", "ms", "income")
STRATA, CLUSTER, TAKEN = 10, 100, 20
"""Strata of the design, people in a cluster, and how many of them are drawn."""
MOST, FEWEST = 12, 8
"""Clusters drawn in one half of the strata and in the other."""
TRAITS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "age": lambda x: x,
    "income": lambda x: x / 1_000,
    "sex": lambda x: x == 2,
    "race1": lambda x: x == "B",
    "ms": lambda x: x == "M",
    "means": lambda x: x == "C",
    "nsurg": lambda x: x > 0,
    "period": lambda x: x == 6,
    "ethnic": lambda x: x == "N",
}
"""The columns analysed, as numbers. All but sex, means, nsurg, period and ethnic are replaced."""
MODELS: dict[str, tuple[str, ...]] = {
    "income": ("age", "sex", "race1", "ms"),
    "age": ("ms", "race1"),
    "means": ("income", "ms"),
    "nsurg": ("age",),
    "period": ("age",),
    "race1": ("ethnic",),
}
"""Regressions: of replaced columns, on replaced keys, and of one tied to age (its period)."""
NAMES = (
    *(f"mean of {name}" for name in ("age", "income", "race1", "ms")),
    "mean income of the unmarried",
    *(f"{outcome} on {term}" for outcome, terms in MODELS.items() for term in terms),
)


def measure_coverage(samples: int) -> list[dict[str, Any]]:
    """Measure the coverage of 95% intervals over so many samples, of either design."""
    # A fresh start for each process: compiled code and threads do not survive a fork.
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        out = []
        for clustered in (False, True):
            say(f"coverage: {samples} samples of {SAMPLE:,}{', clustered' * clustered}")
            numbers = range(samples)
            runs = list(pool.map(_run, numbers, [clustered] * samples, chunksize=5))
            truth, _ = _estimates(_population().frame.with_columns(weight=pl.lit(1.0)))
            out += [_figures(i, truth[i], clustered, runs) for i in range(len(NAMES))]
    return out


def _figures(
    i: int, truth: float, clustered: bool, runs: list[Mapping[str, Any]]
) -> dict[str, Any]:
    out: dict[str, Any] = {"estimate": NAMES[i], "design": "clusters" if clustered else "none"}
    out |= {"truth": truth, "samples": len(runs)}
    for which in ("sample", "implicates"):
        low, high, middle = np.array([[part[i] for part in run[which]] for run in runs]).T
        out[which] = {
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "width": float(np.mean(high - low)),
            "bias": float(np.mean(middle) - truth),
        }
    return out


@cache
def _population() -> Microdata:
    """Return the people with their stratum and cluster: neighbours by state and area."""
    people = veterans_sample(POPULATION, seed=11)
    order = people.frame["area"].arg_sort()
    place = np.empty(POPULATION, dtype=np.int64)
    place[order.to_numpy()] = np.arange(POPULATION)
    more = people.frame.with_columns(
        stratum=pl.Series(place * STRATA // POPULATION), cluster=pl.Series(place // CLUSTER)
    )
    added = (Variable("stratum", "category"), Variable("cluster", "category"))
    return Microdata(more, (*people.variables, *added))


def _drawn(number: int, clustered: bool) -> pl.DataFrame:
    """Draw a sample, with `weight` the number of people that each record stands for."""
    random, people = np.random.default_rng([number, 4]), _population().frame
    if not clustered:
        rows = random.choice(POPULATION, SAMPLE, replace=False)
        return people[rows].with_columns(weight=pl.lit(POPULATION / SAMPLE))
    rows, weights = [], []
    held = people["cluster"].to_numpy()
    members = np.argsort(held, kind="stable").reshape(-1, CLUSTER)
    every = POPULATION // CLUSTER // STRATA
    for stratum in range(STRATA):
        count = MOST if stratum % 2 else FEWEST
        for cluster in random.choice(every, count, replace=False) + stratum * every:
            rows.append(random.choice(members[cluster], TAKEN, replace=False))
            weights.append(np.full(TAKEN, every / count * CLUSTER / TAKEN))
    found = people[np.concatenate(rows)]
    return found.with_columns(weight=pl.Series(np.concatenate(weights)))


def _run(number: int, clustered: bool) -> dict[str, Any]:
    """Draw one sample, synthesise it, and return lower ends, upper ends and estimates."""
    frame = _drawn(number, clustered)
    data = Microdata(frame, _population().variables)
    few = np.inf
    if clustered:
        few = float(frame["cluster"].n_unique() - STRATA)
    implicates = _synthesise(data, number)
    value, variance = _estimates(frame, clustered)
    half = student.ppf(0.975, few) * np.sqrt(variance)
    each = [_estimates(implicates.frame(i), clustered) for i in range(IMPLICATES)]
    again = combine([one[0] for one in each], [one[1] for one in each], df=few)
    return {
        "sample": (value - half, value + half, value),
        "implicates": (again.low, again.high, again.estimate),
    }


def _synthesise(data: Microdata, seed: int) -> Any:
    """Draw as `synthesise` does, without the evaluation."""
    question = bind(
        synthesise, {"keys": KEYS, "targets": TARGETS, "seed": seed, "implicates": IMPLICATES}
    )
    targets, rules = find_targets_and_rules(question, data)
    request = SynthesisRequest(
        question=question,
        data=data,
        targets=order_targets(data, targets),
        rules=rules,
        designating=lambda decoys: designate(data, keys=KEYS, seed=seed, decoys=decoys),
    )
    return draw_with_decoys(request, None).implicates


def _estimates(frame: pl.DataFrame, clustered: bool = False) -> tuple[Floats, Floats]:
    """Return all estimates with their linearised variances, in the order of the names."""
    traits = {name: as_number(pl.col(name)) for name, as_number in TRAITS.items()}
    columns = frame.select(one.cast(pl.Float64).alias(name) for name, one in traits.items())
    held = {name: columns[name].to_numpy() for name in columns.columns}
    ones, weights = np.ones(frame.height), frame["weight"].cast(pl.Float64).to_numpy()
    everybody = ones.astype(np.bool_)
    models = [((), name, everybody) for name in ("age", "income", "race1", "ms")]
    models += [((), "income", held["ms"] == 0)]
    models += [(terms, outcome, everybody) for outcome, terms in MODELS.items()]
    values, variances = [], []
    for terms, outcome, among in models:
        x = np.column_stack([ones, *(held[term] for term in terms)])
        w = np.where(among, weights, 0.0)
        inverse = np.linalg.inv((x * w[:, None]).T @ x)
        solved = inverse @ (x.T @ (w * held[outcome]))
        shares = (x * (w * (held[outcome] - x @ solved))[:, None]) @ inverse
        variance = _variance(frame, shares, clustered)
        first = 1 if terms else 0
        values += solved[first:].tolist()
        variances += variance[first:].tolist()
    return np.array(values), np.array(variances)


def _variance(frame: pl.DataFrame, shares: Floats, clustered: bool) -> Floats:
    """Return the variance of sums of records' shares: between clusters, within strata."""
    strata, totals = np.zeros(len(shares), dtype=np.int64), shares
    if clustered:
        names, cluster = np.unique(frame["cluster"].to_numpy(), return_inverse=True)
        totals = np.stack([np.bincount(cluster, one, len(names)) for one in shares.T], axis=1)
        strata = names * CLUSTER * STRATA // POPULATION
    variance = np.zeros(shares.shape[1])
    for stratum in np.unique(strata):
        mine = totals[strata == stratum]
        variance += len(mine) * mine.var(axis=0, ddof=1)
    return variance


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=500)
    json.dump(measure_coverage(parser.parse_args().samples), sys.stdout, indent=1)
