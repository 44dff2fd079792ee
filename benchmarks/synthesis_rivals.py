"""Releases of real records, side by side with those who also fill blanks.

The records of American veterans that are alone on the key have five values replaced, five times
over: by `keyhole.synthesise` with its defaults, by the chained equations of statsmodels and of
miceforest, and by a sequence of trees of scikit-learn whose leaves hold the donors, as synthpop
does it. Counted in the files that come out, with plain Polars: records that contradict themselves,
and coefficients of `coefficients.toml` that are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from benchmarks.clock import say, timed
from benchmarks.coefficients import compare
from benchmarks.solving import ACS
from keyhole.data import Microdata, load

KEYS = ("SEX", "AGEP", "RAC1P", "MAR", "SCHL")
TARGETS = ("MAR", "RAC1P", "SCHL", "AGEP", "PINCP")
CATEGORIES = ("MAR", "RAC1P", "SCHL")
IMPLICATES, CYCLES, LEAF = 5, 3, 5
VERB = "keyhole, evaluation too"
Release = Callable[[pl.DataFrame], list[pl.DataFrame]]
DRAWING: list[float] = []
"""Processor seconds of our drawing alone: the others search no structure and designate nobody."""


def measure_releases(records: int) -> list[dict[str, Any]]:
    """Measure everybody, each in a process of its own."""
    path = Path(os.environ.get("KEYHOLE_DATA", ""), ACS)
    if not path.exists():
        say("releases: KEYHOLE_DATA names no folder with the American veterans; left out")
        return []
    out = []
    for who in (who for who in RUNS if who != VERB):
        if who == "miceforest" and find_spec(who) is None:
            say("releases: miceforest is not installed, left out")
            continue
        out.append(_in_a_fresh_process(path, records, who))
    return out


def measure_whole_release() -> dict[str, Any] | None:
    """Measure our verb, with its evaluation, on all American veterans."""
    path = Path(os.environ.get("KEYHOLE_DATA", ""), ACS)
    if not path.exists():
        say("whole release: KEYHOLE_DATA names no folder with the American veterans; left out")
        return None
    return _in_a_fresh_process(path, pl.scan_parquet(path).select(pl.len()).collect().item(), VERB)


def _in_a_fresh_process(path: Path, records: int, who: str) -> dict[str, Any]:
    say(f"releases: {records:,} records, {who}")
    words = ["-m", "benchmarks.synthesis_rivals", str(path), str(records), who]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{who} failed: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _asked(people: pl.DataFrame) -> tuple[Microdata, dict[str, Any]]:
    kinds = dict.fromkeys([*KEYS, "bracket"], "category") | {"AGEP": "measure", "PINCP": "measure"}
    banded = people.with_columns(bracket=pl.col("AGEP").cast(pl.Int64) // 10)
    data = load(banded, kinds=kinds).with_roles({"SERIALNO": "drop"})
    asked = {"keys": KEYS, "targets": TARGETS, "strata": ("bracket", "SEX"), "seed": 1}
    return data, asked | {"implicates": IMPLICATES}


def _verb(people: pl.DataFrame) -> list[pl.DataFrame]:
    from keyhole.synthesis.synthesise import synthesise

    data, asked = _asked(people)
    found = synthesise(data, **asked)
    return [found.frame(i) for i in range(1, IMPLICATES + 1)]


def _ours(people: pl.DataFrame) -> list[pl.DataFrame]:
    from keyhole.core.options import bind
    from keyhole.synthesis.designate import designate
    from keyhole.synthesis.planning import SynthesisRequest, draw_with_decoys
    from keyhole.synthesis.synthesise import find_targets_and_rules, synthesise
    from keyhole.synthesis.targets import order_targets

    data, asked = _asked(people)
    question = bind(synthesise, asked)
    targets, rules = find_targets_and_rules(question, data)
    ordered = order_targets(data, targets)
    request = SynthesisRequest(
        question, data, ordered, rules, lambda _: designate(data, keys=KEYS, seed=1)
    )
    started = process_time()
    drawn = draw_with_decoys(request, None).implicates
    DRAWING.append(process_time() - started)
    return [drawn.frame(i) for i in range(IMPLICATES)]


def _filled(people: pl.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns as numbers, what is missing as one more, and who is alone on the key."""
    numbers = people.select(
        pl.col(name).cast(pl.Float64).fill_null(-1.0)
        for name in people.columns
        if name != "SERIALNO"
    )
    return numbers.to_pandas(), (people.select(pl.len().over(KEYS)).to_series() == 1).to_numpy()


def _blanked(people: pl.DataFrame) -> pd.DataFrame:
    frame, alone = _filled(people)
    frame.loc[alone, list(TARGETS)] = np.nan
    return frame


def _released(people: pl.DataFrame, files: Iterable[pd.DataFrame]) -> list[pl.DataFrame]:
    return [
        people.with_columns(
            pl.Series(name, one[name].astype(float).to_numpy()).cast(people[name].dtype)
            for name in TARGETS
        )
        for one in files
    ]


def _statsmodels(people: pl.DataFrame) -> list[pl.DataFrame]:
    from statsmodels.imputation.mice import MICEData

    imputed = MICEData(_blanked(people), k_pmm=5)

    def files() -> Iterator[pd.DataFrame]:
        for _ in range(IMPLICATES):
            imputed.update_all(CYCLES)
            yield imputed.data.copy()

    return _released(people, files())


def _miceforest(people: pl.DataFrame) -> list[pl.DataFrame]:
    import miceforest

    frame = _blanked(people)
    for name in CATEGORIES:
        frame[name] = frame[name].astype("category")
    # By predicted probability: its way by nearest neighbours fails where one of them is 1.
    match = {name: "fast" if name in CATEGORIES else "normal" for name in TARGETS}
    kernel = miceforest.ImputationKernel(
        frame, num_datasets=IMPLICATES, mean_match_candidates=5, mean_match_strategy=match,
        random_state=1,
    )  # fmt: skip
    kernel.mice(CYCLES, verbose=False)
    return _released(people, (kernel.complete_data(i) for i in range(IMPLICATES)))


def _trees(people: pl.DataFrame) -> list[pl.DataFrame]:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    whole, alone = _filled(people)
    known = [name for name in whole.columns if name not in TARGETS]
    rows, donors = np.flatnonzero(alone), np.flatnonzero(~alone)

    def files() -> Iterator[pd.DataFrame]:
        for seed in range(IMPLICATES):
            random, made, used = np.random.default_rng(seed), whole.copy(), list(known)
            for name in TARGETS:
                kind = DecisionTreeClassifier if name in CATEGORIES else DecisionTreeRegressor
                some = random.choice(donors, len(donors))
                tree = kind(min_samples_leaf=LEAF, random_state=seed)
                tree.fit(whole[used].to_numpy()[some], whole[name].to_numpy()[some])
                held = tree.apply(whole[used].to_numpy()[some])
                order = np.argsort(held, kind="stable")
                wanted = tree.apply(made[used].to_numpy()[rows])
                low, high = (
                    np.searchsorted(held[order], wanted, side=s) for s in ("left", "right")
                )
                chosen = some[order[random.integers(low, high)]]
                made.loc[rows, name] = whole[name].to_numpy()[chosen]
                used.append(name)
            yield made

    return _released(people, files())


RUNS: dict[str, Release] = {
    "keyhole": _ours,
    "statsmodels": _statsmodels,
    "miceforest": _miceforest,
    "sequential trees": _trees,
    VERB: _verb,
}


def contradictions(people: pl.DataFrame) -> tuple[int, int]:
    """Count impossible answers to the question on births, and incomes below wages."""
    asked = (pl.col("SEX") == 2) & (pl.col("AGEP") <= 50)
    births = people.filter(pl.col("FER").is_not_null() != asked).height
    return births, people.filter(pl.col("PINCP") < pl.col("WAGP")).height


def _measure(path: str, records: int, who: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    people = pl.read_parquet(path).sample(records, seed=5)
    RUNS[who](people.head(2_000))  # what is compiled is compiled
    started = process_time()
    seconds, files = timed(lambda: RUNS[who](people))
    processor = process_time() - started
    table, counts = compare(people, files), [contradictions(one) for one in (people, *files)]
    return {
        "who": who,
        "records": records,
        "replaced": int((people.select(pl.len().over(KEYS)).to_series() == 1).sum()),
        "seconds": seconds,
        "processor": processor,
        "drawing": DRAWING[-1] if DRAWING else processor,
        "kept": int(table["kept"].sum()),
        "coefficients": table.height,
        "off": float(table["off"].abs().mean()),
        "births": [one[0] for one in counts],
        "below_wages": [one[1] for one in counts],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("records", type=int)
    parser.add_argument("who", choices=RUNS)
    asked = parser.parse_args()
    print(json.dumps(_measure(asked.path, asked.records, asked.who)))
