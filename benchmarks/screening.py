"""How long screening takes, and how that grows: up to 10⁵ records, and up to 10,000 columns.

`python -m benchmarks.screening` prints a table. The columns of the long files are codes, words,
amounts, days, text and numbers, with planted dependences of one and of two columns. Those of the
wide ones are nearly unique, so that each is looked at and none is compared with another, or have
three levels each, so that each is compared with its neighbours. The structure of the largest long
file (rules that its records obey) is also searched for by itself.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl

from benchmarks.clock import best_of, say, timed
from keyhole.data import load
from keyhole.screening.screen import screen
from keyhole.screening.structure import find_structure

SIZES = (12_500, 25_000, 50_000, 100_000)
WIDTHS = (1_000, 2_000, 4_000, 8_000)
FEW = 4
LEVELS, LONG = 3, 2_000


def measure_screening(
    sizes: tuple[int, ...] = SIZES,
    widths: tuple[int, ...] = WIDTHS,
    alike: tuple[int, ...] = (5_000, 10_000),
    rounds: int = 3,
) -> list[dict[str, Any]]:
    """Time the screening of files of some sizes and widths, encoding included."""
    screen(_file(2_000))  # compiled once
    out = []
    for records in sizes:
        frame = _file(records)
        seconds, found = best_of(rounds, lambda frame=frame: screen(load(frame)))  # type: ignore[misc]
        told = {(*d.by, d.determined) for d in found.dependencies}
        if not {("age", "band"), ("code 3", "code 4", "sum")} <= told:
            raise RuntimeError("a planted dependence was not found")
        say(f"screening {records:,} records: {seconds:.2f} s")
        out.append({"records": records, "columns": frame.width, "seconds": seconds})
    for width in widths:
        wide = pl.DataFrame({f"column {i}": range(i, i + FEW) for i in range(width)})
        seconds, _ = best_of(rounds, lambda frame=wide: screen(load(frame)))  # type: ignore[misc]
        say(f"screening {width:,} columns: {seconds:.2f} s")
        out.append({"records": FEW, "columns": width, "seconds": seconds})
    for width in alike:
        codes = np.random.default_rng(1).integers(0, LEVELS, (LONG, width))
        wide = pl.DataFrame(codes, schema=[f"column {i}" for i in range(width)])
        seconds, _ = timed(lambda frame=wide: screen(load(frame)))  # type: ignore[misc]
        say(f"screening {width:,} columns of {LEVELS} levels: {seconds:.2f} s")
        out.append({"records": LONG, "columns": width, "seconds": seconds})
    data = load(_file(sizes[-1]))
    seconds, _ = best_of(rounds, lambda: find_structure(data))
    say(f"structure of {sizes[-1]:,} records: {seconds:.2f} s")
    about = {"records": sizes[-1], "columns": len(data.names), "seconds": seconds}
    return [*out, {**about, "structure": True}]


def _file(records: int, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for i in range(12):
        columns[f"code {i}"] = random.integers(0, 2 + 3 * i, records)
    for i in range(8):
        words = np.array([f"v{k:03}" for k in range(10 + 40 * i)])
        columns[f"word {i}"] = words[random.integers(0, len(words), records)]
    for i in range(8):
        columns[f"amount {i}"] = random.integers(0, 1_000 * (i + 1), records)
    columns["age"] = random.integers(0, 100, records)
    columns["band"] = columns["age"] // 10
    columns["sum"] = (columns["code 3"] + columns["code 4"]) % 7
    columns["copy"] = columns["word 5"]
    columns["income"] = np.round(np.exp(random.normal(10, 1, records)), -2)
    columns["zip"] = np.char.zfill(random.integers(501, 99_950, records).astype(str), 5)
    columns["day"] = np.datetime64("1990-01-01") + random.integers(0, 9_000, records)
    columns["note"] = np.char.add(
        "seen, doing well ", random.integers(0, 10**9, records).astype(str)
    )
    columns["token"] = [f"{x:032x}" for x in random.integers(0, 2**62, records)]
    columns["measured"] = random.normal(size=records)
    columns["number"] = np.arange(records)
    columns["one"] = np.ones(records, dtype=int)
    return pl.DataFrame(columns)


if __name__ == "__main__":
    print(json.dumps(measure_screening(), indent=2))
