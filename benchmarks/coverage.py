"""Whether intervals from implicates cover the truth as often as they say.

Samples are drawn again and again from a population of the example world whose truth is known.
Each is synthesised and analysed as its reader would: one estimate from every implicate, combined
by Reiter's rules. The same intervals from the samples themselves are shown beside.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.clock import say
from benchmarks.rivals import CORES
from keyhole.core.options import bind
from keyhole.data import Microdata
from keyhole.data.examples import veterans_sample
from keyhole.synthesis.designate import designate
from keyhole.synthesis.planning import SynthesisRequest, draw_with_decoys
from keyhole.synthesis.synthesise import synthesise
from keyhole.synthesis.targets import order_targets
from keyhole.utility import combine

Floats = npt.NDArray[np.float64]
POPULATION, SAMPLE, IMPLICATES = 200_000, 2_000, 5
KEYS = ("sex", "age", "race1", "ms", "ethnic")
TARGETS = ("age", "race1", "ms", "income")


def measure_coverage(samples: int) -> list[dict[str, Any]]:
    """Measure the coverage of 95% intervals over so many samples."""
    say(f"coverage: {samples} samples of {SAMPLE:,}")
    truth = _estimates(_population().frame)
    # A fresh start for each process: compiled code and threads do not survive a fork.
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        runs = list(pool.map(_run, range(samples), chunksize=5))
    return [_figures(name, value, runs) for name, (value, _) in truth.items()]


def _figures(name: str, truth: float, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"estimate": name, "truth": truth, "samples": len(runs)}
    for which in ("sample", "implicates"):
        low, high, middle = np.array([run[which][name] for run in runs]).T
        out[which] = {
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "width": float(np.mean(high - low)),
            "bias": float(np.mean(middle) - truth),
        }
    return out


_HELD: dict[str, Microdata] = {}


def _population() -> Microdata:
    if "population" not in _HELD:
        _HELD["population"] = veterans_sample(POPULATION, seed=11)
    return _HELD["population"]


def _run(number: int) -> dict[str, Any]:
    """Draw one sample, synthesise it, and return the intervals."""
    random = np.random.default_rng([number, 4])
    population = _population()
    frame = population.frame[random.choice(POPULATION, SAMPLE, replace=False)]
    data = Microdata(frame, population.variables)
    drawn = _synthesise(data, number)
    found: dict[str, Any] = {"sample": {}, "implicates": {}}
    versions = [_estimates(drawn.frame(i)) for i in range(IMPLICATES)]
    for name, (value, variance) in _estimates(frame).items():
        half = 1.96 * variance**0.5
        found["sample"][name] = (value - half, value + half, value)
        both = np.array([version[name] for version in versions])
        one = combine(both[:, 0], both[:, 1])
        low, high = one.low, one.high
        found["implicates"][name] = (float(low), float(high), float(one.estimate))
    return found


def _synthesise(data: Microdata, seed: int, **options: Any) -> Any:
    """Draw as `synthesise` does, without the evaluation."""
    request = SynthesisRequest(
        question=bind(
            synthesise,
            {"keys": KEYS, "targets": TARGETS, "seed": seed, "implicates": IMPLICATES, **options},
        ),
        data=data,
        targets=order_targets(data, TARGETS),
        rules=None,
        designating=lambda decoys: designate(data, keys=KEYS, seed=seed, decoys=decoys),
    )
    return draw_with_decoys(request, None).implicates


def _estimates(frame: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Return estimates with their variances: means, a share, and a regression."""
    out: dict[str, tuple[float, float]] = {}
    columns: dict[str, Callable[[], Floats]] = {
        "mean age": lambda: frame["age"].to_numpy().astype(float),
        "mean income": lambda: frame["income"].to_numpy().astype(float),
        "share of the commonest race": lambda: _is_commonest(frame),
    }
    for name, values in columns.items():
        found = values()
        out[name] = (float(found.mean()), float(found.var(ddof=1) / len(found)))
    out.update(_regression(frame))
    return out


def _is_commonest(frame: pl.DataFrame) -> Floats:
    commonest = _population().frame["race1"].mode().sort()[0]
    return (frame["race1"] == commonest).to_numpy().astype(float)


def _regression(frame: pl.DataFrame) -> Iterator[tuple[str, tuple[float, float]]]:
    """Regress income (in thousands) on age, sex and race, with robust variances."""
    sex = frame["sex"].cast(pl.String).rank("dense").to_numpy().astype(float) - 1
    age = frame["age"].to_numpy().astype(float)
    x = np.column_stack([np.ones(len(age)), age, sex, _is_commonest(frame)])
    y = frame["income"].to_numpy().astype(float) / 1_000
    inverse = np.linalg.inv(x.T @ x)
    solved = inverse @ x.T @ y
    residual = y - x @ solved
    variance = inverse @ (x.T * residual**2) @ x @ inverse
    for i, name in enumerate(("age", "sex", "race"), start=1):
        yield f"regression of income: {name}", (float(solved[i]), float(variance[i, i]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=500)
    json.dump(measure_coverage(parser.parse_args().samples), sys.stdout, indent=1)
