"""What the key tells of sensitive columns, against the same figures written in pandas and Polars.

Every rival gets the columns as small integers before the clock starts, and gives by sensitive
column the records in homogeneous cells, those in cells of the cutoff or more, the least l, the
largest t, CAP and the base rate. All must give the same figures; keyhole gives some more.

pycanon needs an older NumPy than keyhole does. Where `KEYHOLE_PYCANON` names the Python of an
environment that has it, it is measured there, on the first records of the file.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl

from benchmarks.clock import interleaved, say, spread
from benchmarks.files import encoded_alone, sample
from benchmarks.rivals import CUTOFF
from benchmarks.targets import SPREAD, Target, spread_cells
from keyhole.data import load
from keyhole.exposure.attributes import attributes

KEYS = ("sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate")
SENSITIVE = ("means", "cp", "lsr", "ethnic", "period")
LEAST_RATIO = 10.0
OURS = "keyhole"
PYCANON = (1_000, 10_000)
"""So many records pycanon is measured on: it goes through cells one by one, in Python."""
CAREFUL = "pandas, cells numbered once"
"""Beside the plain way, for whoever is that careful; no target counts against it."""
Figures = dict[str, tuple[float, ...]]
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def measure_attributes(records: int) -> dict[str, Any]:
    """Measure the verb on a file in memory, and its rivals."""
    data = encoded_alone(sample(records), [*KEYS, *SENSITIVE])
    frame = pl.DataFrame({n: data.codes(n).values for n in (*KEYS, *SENSITIVE)})
    asked = {"keys": KEYS, "sensitive": SENSITIVE, "cutoff": CUTOFF, "distance": "equal"}
    attributes(encoded_alone(sample(2_000), [*KEYS, *SENSITIVE]), **asked)  # compiled
    say(f"attributes: {records:,} records")
    whole = frame.to_pandas()
    ways: dict[str, Callable[[], Any]] = {
        OURS: lambda: attributes(data, **asked),
        "Polars": lambda: _polars(frame),
        CAREFUL: lambda: _numbered(whole),
        "pandas": lambda: _pandas(whole),
    }
    runs = interleaved(ways)
    own, found = runs.pop(OURS)
    expected = {
        name: (one.homogeneous_records, one.hidden_by_rp, one.l.distinct, one.l.entropy,
               one.t_closeness or 0.0, one.cap, one.base_rate)
        for name, one in found.sensitive.items()
    }  # fmt: skip
    for name, (_, figures) in runs.items():
        for column, given in figures.items():
            if not all(map(math.isclose, given, expected[column])):
                raise AssertionError(f"{name} finds other figures of {column} than keyhole")
    rivals = [{"name": name, **spread(times, own)} for name, (times, _) in runs.items()]
    case = {"records": records, "cells": found.cells, **spread(own), "rivals": rivals}
    smaller = [n for n in PYCANON if n <= records]
    return {"cases": [case, *_against_pycanon(frame, smaller)]}


_PYCANON = """
import json, sys, time
import pandas as pd
from pycanon import anonymity
frame, keys = pd.read_parquet(sys.argv[1]).astype(str), sys.argv[2].split(",")
begin, found = time.perf_counter(), {}
for name in sys.argv[3].split(","):
    found[name] = [
        anonymity.l_diversity(frame, keys, [name]),
        anonymity.t_closeness(frame, keys, [name]),
        anonymity.basic_beta_likeness(frame, keys, [name]),
    ]
print(json.dumps([time.perf_counter() - begin, found], default=float))
"""


def _against_pycanon(frame: pl.DataFrame, records: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the cases of pycanon, which gives l, t and β, if there is an environment with it."""
    python = os.environ.get("KEYHOLE_PYCANON")
    if not python:
        say("attributes: KEYHOLE_PYCANON names no environment with pycanon, which is left out")
        return
    for count in records:
        say(f"attributes: pycanon, {count:,} records")
        yield _pycanon(python, frame.head(count))


def _pycanon(python: str, frame: pl.DataFrame) -> dict[str, Any]:
    data = load(frame, kinds=dict.fromkeys(frame.columns, "category"))
    asked = {"keys": KEYS, "sensitive": SENSITIVE, "cutoff": CUTOFF}
    own, found = interleaved({OURS: lambda: attributes(data, **asked)})[OURS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        frame.write_parquet(path)
        command = [python, "-c", _PYCANON, str(path), ",".join(KEYS), ",".join(SENSITIVE)]
        seconds, given = json.loads(subprocess.check_output(command, text=True))
    for name, one in found.sensitive.items():
        if not all(map(math.isclose, given[name], (one.l.distinct, one.t_closeness, one.beta))):
            raise AssertionError(f"pycanon finds other figures of {name} than keyhole")
    rival = {"name": "pycanon", **spread([seconds], own)}
    return {"records": frame.height, "cells": found.cells, **spread(own), "rivals": [rival]}


def _pandas(frame: pd.DataFrame) -> Figures:
    keys, out = list(KEYS), {}
    for name in SENSITIVE:
        base = frame[name].value_counts(normalize=True)
        counts = frame.groupby([*keys, name], sort=False).size().rename("n").reset_index()
        share = counts["n"] / counts.groupby(keys, sort=False)["n"].transform("sum")
        counts["p2"] = share * counts["n"]
        counts["log"] = -share * np.log(share)
        margin = counts[name].map(base)
        # Values that are not in a cell are as far away as their share: half of what is left.
        counts["gap"] = (share - margin).abs() - margin
        cells = counts.groupby(keys, sort=False).agg(
            size=("n", "sum"), k=("n", "size"), log=("log", "sum"), gap=("gap", "sum")
        )
        alone = cells[cells["k"] == 1]["size"]
        out[name] = (
            alone.sum(), alone[alone >= CUTOFF].sum(), cells["k"].min(),
            math.exp(cells["log"].min()), (cells["gap"].max() + 1) / 2,
            counts["p2"].sum() / len(frame), (base**2).sum(),
        )  # fmt: skip
    return out


def _numbered(frame: pd.DataFrame) -> Figures:
    """The same with the cells numbered first, once for all columns, and NumPy for the rest."""
    cell = frame.groupby(list(KEYS), observed=True, sort=False).ngroup().to_numpy()
    size, out = np.bincount(cell), {}
    for name in SENSITIVE:
        value, kinds = frame[name].to_numpy(), int(frame[name].max()) + 1
        base = np.bincount(value, minlength=kinds) / len(frame)
        pair = pd.Series(cell * kinds + value).value_counts(sort=False)
        which, n, margin = pair.index // kinds, pair.to_numpy(), base[pair.index % kinds]
        share = n / size[which]
        kept = np.bincount(which)
        log = np.bincount(which, -share * np.log(share))
        gap = np.bincount(which, np.abs(share - margin) - margin)
        alone = size[kept == 1]
        out[name] = (
            alone.sum(), alone[alone >= CUTOFF].sum(), kept.min(), math.exp(log.min()),
            (gap.max() + 1) / 2, (share * n).sum() / len(frame), (base**2).sum(),
        )  # fmt: skip
    return out


def _polars(frame: pl.DataFrame) -> Figures:
    out, n, p, q = {}, pl.col("n"), pl.col("p"), pl.col("q")
    sizes = frame.group_by(KEYS).agg(pl.len().alias("size"))
    for name in SENSITIVE:
        base = frame.group_by(name).agg((pl.len() / frame.height).alias("q"))
        counts = frame.group_by([*KEYS, name]).agg(pl.len().alias("n"))
        counts = counts.join(base, on=name).join(sizes, on=KEYS)
        counts = counts.with_columns((n / pl.col("size")).alias("p"))
        cells = (
            counts.with_columns(
                (-p * p.log()).alias("log"), (p * n).alias("p2"), ((p - q).abs() - q).alias("gap")
            )
            .group_by(KEYS)
            .agg(
                n.sum().alias("size"),
                pl.len().alias("k"),
                pl.col("log").sum(),
                pl.col("p2").sum(),
                pl.col("gap").sum(),
            )
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
        rows.append([f"{case['records']:,}", f"{case['cells']:,}", *spread_cells(case)])
        rows += [[f"… {one['name']}", "", *spread_cells(one)] for one in case["rivals"]]
    yield (
        f"## What the key tells: {len(KEYS)} keys, {len(SENSITIVE)} sensitive columns\n\n"
        "Homogeneous cells, l-diversity, t-closeness, CAP and base rate, the same from all; of "
        "pycanon l, t and β, on fewer records.\n\n" + table(["records", "cells", *SPREAD], rows)
    )


def attributes_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    for case in (found or {}).get("cases", ()):
        if case["records"] == 10**6:
            yield Target("what the key tells, 1,000,000 records", case["seconds"], 10, "s")
        for rival in (one for one in case["rivals"] if one["name"] != CAREFUL):
            what = f"what the key tells, {case['records']:,} records, against {rival['name']}"
            few = case["records"] < 10**5 and rival["name"] != "pycanon"
            yield Target(what, rival["ratio"], 1.0 if few else LEAST_RATIO, "times", True)
