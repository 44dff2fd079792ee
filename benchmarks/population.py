"""Whether the estimates of risk in the population are right over repeated samples.

The veterans of the American Community Survey are the population, on the keys of `population.toml`,
which were written down before the models were tuned. Where the file is not at hand the part is
left out.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.clock import say
from benchmarks.solving import ACS
from benchmarks.targets import Target
from keyhole.exposure.cells import risk

ASKED = tomllib.loads(Path(__file__).with_name("population.toml").read_text("utf-8"))
FIGURES = ("sample_population_uniques", "population_uniques", "reidentifications")
WORDS = ("uniques that are population uniques", "population uniques in all", "Σ 1/F")


def measure_population(samples: int = ASKED["samples"]) -> list[dict[str, Any]]:
    """Draw so many samples of each size on each key, and compare with the truth."""
    path = Path(os.environ.get("KEYHOLE_DATA", "")) / ACS
    if not path.is_file():
        say("population: KEYHOLE_DATA names no folder with the American veterans; left out")
        return []
    people = pl.read_parquet(path)
    found = []
    for name, keys in ASKED["keys"].items():
        say(f"population: {samples} samples on the key {name}")
        frame = people.select(keys).with_columns(pl.len().over(keys).alias("F"))
        found += [_case(name, frame, fraction, samples) for fraction in ASKED["fractions"]]
    return found


def _case(name: str, frame: pl.DataFrame, fraction: float, samples: int) -> dict[str, Any]:
    keys, size = frame.columns[:-1], round(frame.height * fraction)
    rows, rejected, old, alone = [], 0, [], []
    for number in range(samples):
        rng = np.random.default_rng([number, 3])
        sample = frame[rng.choice(frame.height, size, replace=False)]
        found = risk(sample.select(keys), keys=keys, fraction=size / frame.height)
        people, unique = sample["F"].to_numpy(), found.f == 1
        truth = ((people[unique] == 1).sum(), (frame["F"] == 1).sum(), (1 / people).sum())
        old.append(found.population.expected_reidentifications / truth[2])
        alone.append(unique.mean())
        model = found.population.model
        if model.rejected:
            rejected += 1
            continue
        said = [getattr(model, figure) for figure in FIGURES]
        rows.append(
            [(t, e.estimate, e.low <= t <= e.high) for t, e in zip(truth, said, strict=True)]
        )
    out = {"key": name, "fraction": fraction, "samples": samples, "rejected": rejected}
    out |= {"uniques": float(np.mean(alone)), "benedetti_franconi": float(np.mean(old)) - 1}
    for place, figure in enumerate(FIGURES):
        truth, estimate, held = np.array([row[place] for row in rows], float).reshape(-1, 3).T
        out[figure] = {
            "truth": float(truth.mean()),
            "bias": float(estimate.mean() / truth.mean() - 1),
            "coverage": float(held.mean()),
        }
    return out


def population_sections(
    cases: Sequence[Mapping[str, Any]] | None, table: Callable[..., str]
) -> Iterator[str]:
    """Lay out the bias and the coverage of each figure on each key."""
    if not cases:
        return
    rows = [
        [
            f"{case['key']}, {case['fraction']:.0%}",
            f"{case['uniques']:.0%}",
            *(
                text
                for figure in FIGURES
                for text in (f"{case[figure]['bias']:+.1%}", f"{case[figure]['coverage']:.3f}")
            ),
            f"{case['benedetti_franconi']:+.0%}",
            f"{case['rejected']} of {case['samples']}",
        ]
        for case in cases
    ]
    heads = ["key, sampled", "unique"]
    heads += [text for word in WORDS for text in (f"{word}: bias", "covered")]
    heads += ["Σ 1/F, Benedetti–Franconi: bias", "rejected"]
    yield (
        "## Risk in the population\n\nRepeated samples of American veterans, who are all known; "
        "estimates of `keyhole risk`, with 95 % intervals, where the model is not rejected.\n\n"
        + table(heads, rows)
    )


def population_targets(cases: Sequence[Mapping[str, Any]] | None) -> Iterator[Target]:
    """Judge the worst case of each figure."""
    for figure, words in zip(FIGURES, WORDS, strict=True) if cases else ():
        worst = max(abs(case[figure]["bias"]) for case in cases or ())
        least = min(case[figure]["coverage"] for case in cases or ())
        yield Target(f"{words}, largest bias", 100 * worst, 100 * ASKED["bias"], "%")
        yield Target(f"{words}, least coverage", least, ASKED["coverage"], "", at_least=True)
