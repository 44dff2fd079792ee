"""What the key tells of sensitive columns, against the same figures written in pandas and Polars.

Every rival gets the columns as small integers before the clock starts, and gives by sensitive
column the records in homogeneous cells, those in cells of the cutoff or more, the least l, the
largest t, CAP and the base rate. All must give the same figures; keyhole gives some more. pycanon
1.3.6, which has some of them, needs an older NumPy than keyhole does, and is not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import polars as pl

from benchmarks.clock import best_of, say
from benchmarks.files import encoded_alone, sample
from benchmarks.rivals import CUTOFF
from benchmarks.targets import Target
from keyhole.exposure.attributes import attributes

KEYS = ("sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate")
SENSITIVE = ("means", "cp", "lsr", "ethnic", "period")
LEAST_RATIO = 10.0
Figures = dict[str, tuple[float, ...]]
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def measure_attributes(records: int, rounds: int) -> dict[str, Any]:
    """Measure the verb on a file in memory, and its rivals."""
    data = encoded_alone(sample(records), [*KEYS, *SENSITIVE])
    frame = pl.DataFrame({n: data.codes(n).values for n in (*KEYS, *SENSITIVE)})
    asked = {"keys": KEYS, "sensitive": SENSITIVE, "cutoff": CUTOFF, "distance": "equal"}
    attributes(encoded_alone(sample(2_000), [*KEYS, *SENSITIVE]), **asked)  # compiled
    say(f"attributes: {records:,} records")
    ours, found = best_of(rounds, lambda: attributes(data, **asked))
    expected = {
        name: (one.homogeneous_records, one.hidden_by_rp, one.l.distinct, one.l.entropy,
               one.t_closeness or 0.0, one.cap, one.base_rate)
        for name, one in found.sensitive.items()
    }  # fmt: skip
    whole = frame.to_pandas()
    ways: dict[str, Callable[[], Figures]] = {
        "pandas": lambda: _pandas(whole),
        "Polars": lambda: _polars(frame),
    }
    rivals = []
    for name, run in ways.items():
        say(f"attributes: {name}")
        seconds, figures = best_of(rounds, run)
        for column, given in figures.items():
            if not all(map(math.isclose, given, expected[column])):
                raise AssertionError(f"{name} finds other figures of {column} than keyhole")
        rivals.append({"name": name, "seconds": seconds, "ratio": seconds / ours})
    case = {"records": records, "cells": found.cells, "seconds": ours, "rivals": rivals}
    return {"cases": [case]}


def _pandas(frame: pd.DataFrame) -> Figures:
    keys, out = list(KEYS), {}
    for name in SENSITIVE:
        base = frame[name].value_counts(normalize=True)
        counts = frame.groupby([*keys, name], observed=True).size().rename("n").reset_index()
        counts["size"] = counts.groupby(keys)["n"].transform("sum")
        share = counts["n"] / counts["size"]
        counts["p2"] = share * counts["n"]
        counts["log"] = -share * share.map(math.log)
        margin = counts[name].map(base)
        # Values that are not in a cell are as far away as their share: half of what is left.
        counts["gap"] = (share - margin).abs() - margin
        cells = counts.groupby(keys).agg(
            size=("n", "sum"), k=("n", "size"), log=("log", "sum"), gap=("gap", "sum")
        )
        alone = cells[cells["k"] == 1]["size"]
        out[name] = (
            alone.sum(), alone[alone >= CUTOFF].sum(), cells["k"].min(),
            math.exp(cells["log"].min()), (cells["gap"].max() + 1) / 2,
            counts["p2"].sum() / len(frame), (base**2).sum(),
        )  # fmt: skip
    return out


def _polars(frame: pl.DataFrame) -> Figures:
    out, n = {}, pl.col("n")
    for name in SENSITIVE:
        base = frame.group_by(name).agg((pl.len() / frame.height).alias("q"))
        counts = frame.group_by([*KEYS, name]).agg(pl.len().alias("n")).join(base, on=name)
        p = n / n.sum()
        cells = counts.group_by(KEYS).agg(
            n.sum().alias("size"),
            pl.len().alias("k"),
            (-(p * p.log()).sum()).alias("log"),
            (p * n).sum().alias("p2"),
            ((p - pl.col("q")).abs() - pl.col("q")).sum().alias("gap"),
        )
        alone = cells.filter(pl.col("k") == 1)["size"]
        least: Any = cells["log"].min()
        far: Any = cells["gap"].max()
        out[name] = (
            float(alone.sum()), float(alone.filter(alone >= CUTOFF).sum()), float(cells["k"].min()),  # type: ignore[arg-type]
            math.exp(least), (far + 1) / 2, cells["p2"].sum() / frame.height,
            float((base["q"] ** 2).sum()),
        )  # fmt: skip
    return out


def attributes_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the section of the page; `table` lays a table out."""
    if not found:
        return
    rows = []
    for case in found["cases"]:
        rows.append([f"{case['records']:,}", f"{case['cells']:,}", f"{case['seconds']:.2f}", "1"])
        rows += [
            [f"… {one['name']}", "", f"{one['seconds']:.2f}", f"{one['ratio']:.1f}"]
            for one in case["rivals"]
        ]
    yield (
        f"## What the key tells: {len(KEYS)} keys, {len(SENSITIVE)} sensitive columns\n\n"
        "Homogeneous cells, l-diversity, t-closeness, CAP and base rate, the same from all.\n\n"
        + table(["records", "cells", "seconds", "times ours"], rows)
    )


def attributes_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    for case in (found or {}).get("cases", ()):
        for rival in case["rivals"]:
            what = f"what the key tells, {case['records']:,} records, against {rival['name']}"
            yield Target(what, rival["ratio"], LEAST_RATIO, "times", True)
