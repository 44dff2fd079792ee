"""Hierarchical tables: what is suppressed beside the optimum and a plain greedy rule, and the time.

Small hierarchies (areas > parts x a band, counts, threshold 3) are solved to the optimum by one
mixed-integer program, which shares nothing with keyhole: it has the pattern, and for every demand a
possible table that meets it. Such a hierarchy is a network, so that nothing has to move further
than the demand. keyhole solves tables of this size exactly; the search for large tables is measured
beside it. The greedy rule suppresses, in every sum with one suppressed cell, the cheapest other
one, until there is none: it is not safe, and how many cells it leaves open is counted.

The large table is STATE > PUMA x SEX x a band of income of the American veterans, where the folder
that ``KEYHOLE_DATA`` names has them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.clock import say, timed
from benchmarks.solving import ACS
from keyhole.errors import KeyholeError
from keyhole.protection.tables import suppression, table
from keyhole.protection.tables.attackers import Programs, Wanted, prove
from keyhole.protection.tables.cells import Linked

BANDS = (10_000, 25_000, 50_000, 75_000, 100_000, 150_000)
THRESHOLD = 3

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def measure_tables(hierarchies: int) -> dict[str, Any]:
    """Measure some small hierarchies, and the large one if its file is there."""
    small: list[dict[str, Any]] = []
    seed = 0
    while len(small) < hierarchies:
        seed += 1
        case = _small(seed)
        small += [case] if case else []
    say(f"tables: {hierarchies} small hierarchies beside their optimum")
    path = Path(os.environ.get("KEYHOLE_DATA", "."), ACS)
    return {"small": small, "large": _large(path) if path.exists() else None}


def hierarchy(seed: int) -> pl.DataFrame:
    """Make people in parts of areas, many parts with few."""
    rng = np.random.default_rng(seed)
    areas, people = int(rng.integers(2, 5)), int(rng.integers(120, 300))
    area = rng.integers(0, areas, people)
    parts = rng.geometric(rng.uniform(0.3, 0.6), people).clip(max=int(rng.integers(3, 6)))
    band = rng.geometric(0.4, people).clip(max=int(rng.integers(2, 5)))
    return pl.DataFrame({"area": area, "part": 10 * area + parts, "band": band})


def _small(seed: int) -> dict[str, Any] | None:
    frame = hierarchy(seed)
    seconds, best = timed(lambda: optimum(frame, ("area", "part"), "band"))
    if not best:  # nothing is unsafe, or nothing helps
        return None
    case: dict[str, Any] = {"seed": seed, "optimum": best, "program": seconds}
    options: Any = {"rows": ["area", "part"], "cols": "band", "nested": ["area", "part"]}
    exact = suppression.EXACT_CELLS
    for name, most in (("exact", exact), ("large", 0)):
        suppression.EXACT_CELLS = most
        try:
            found = table(frame, **options)
        except KeyholeError as error:
            raise RuntimeError(f"hierarchy {seed} has an optimum, but was refused") from error
        finally:
            suppression.EXACT_CELLS = exact
        case[name] = found.internal.pattern.cost  # type: ignore[union-attr]
    return case | {f"greedy_{name}": figure for name, figure in greedy(found).items()}


def optimum(frame: pl.DataFrame, levels: Sequence[str], across: str) -> float | None:
    """Return the least value that a safe pattern suppresses besides the unsafe cells."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    counts: dict[Any, int] = {}
    leaves: dict[Any, int] = {}
    for *path, band, count in frame.group_by(*levels, across).len().iter_rows():
        for depth in range(len(levels) + 1):
            for key in ((*path[:depth], ":", band), (*path[:depth], ":")):
                counts[key] = counts.get(key, 0) + count
                leaves[key] = leaves.get(key, 0) + 1
    place = {key: number for number, key in enumerate(counts)}
    sums = []  # a total, and what it is the sum of
    for total in counts:
        split = total.index(":")
        across_ = [key for key in counts if key[:-1] == total]
        below = [
            key for key in counts
            if key.index(":") == split + 1 and key[:split] == total[:split]
            and key[split + 1 :] == total[split:]
        ]  # fmt: skip
        sums += [(total, parts) for parts in (across_, below) if parts]
    values, cells = np.array(list(counts.values()), dtype=float), len(counts)
    unsafe = values < THRESHOLD
    down = values - np.array([leaves[key] for key in counts])  # no cell that is shown is empty
    demands = [(i, THRESHOLD - values[i]) for i in np.flatnonzero(unsafe)]
    demands += [(i, -down[i]) for i in np.flatnonzero(unsafe & (down > 0))]
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def add(terms: Sequence[tuple[int, float]], least: float, most: float) -> None:
        entries.extend((len(low), column, factor) for column, factor in terms)
        low.append(least)
        high.append(most)

    least, most = [*unsafe.astype(float)], [1.0] * cells
    most[place[(":",)]] = 0.0
    for number, (cell, move) in enumerate(demands, 1):
        at = number * cells
        for total, parts in sums:
            add([(at + place[total], -1.0), *((at + place[key], 1.0) for key in parts)], 0, 0)
        for i in range(cells):
            add([(at + i, 1.0), (i, -abs(move))], -np.inf, 0)
            add([(at + i, 1.0), (i, min(abs(move), values[i] - 1))], 0, np.inf)
        bound = [(-np.inf, np.inf)] * cells
        bound[cell] = (move, move)
        least += [one for one, _ in bound]
        most += [one for _, one in bound]
    if not demands:
        return None
    rows, columns, factors = zip(*entries, strict=True)
    matrix = coo_array((factors, (rows, columns)), shape=(len(low), len(least))).tocsr()
    cost = np.concatenate([np.where(unsafe, 0, values), np.zeros(cells * len(demands))])
    done = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(least, most),
        integrality=np.arange(len(cost)) < cells,
        options={"mip_rel_gap": 1e-6},
    )
    return None if done.x is None else float(done.fun)


def greedy(found: Any) -> dict[str, Any]:
    """Suppress the cheapest other cell of every sum with one suppressed cell, again and again."""
    audit = found.internal
    linked, unsafe = Linked.of([audit.table]), audit.unsafe
    cost, hidden = np.maximum(audit.table.values, 1.0), unsafe.cells.copy()
    sums = [cells[linked.counts[cells] > 0] for cells in linked.sums]
    changed = True
    while changed:
        changed = False
        for cells in sums:
            if len(cells) > 1 and hidden[cells].sum() == 1:
                others = cells[~hidden[cells]]
                hidden[others[np.argmin(cost[others])]] = changed = True
    # What it leaves open: unsafe cells that cannot be as large as the threshold.
    asked = np.flatnonzero(unsafe.upper > 0)
    up = np.where(hidden, np.inf, 0.0)
    down = np.where(hidden, np.maximum(linked.values - 1, 0.0), 0.0)
    ones = np.ones(len(asked))
    wanted = Wanted(asked, ones, unsafe.upper[asked], ones > 1)
    blocks = linked.blocks()
    wider = [np.unique(np.concatenate(blocks[i : i + 6])) for i in range(0, len(blocks), 6)]
    _, high = prove(Programs(linked.matrix), wanted, up, down, [blocks, wider])
    left = int((high[asked] < unsafe.upper[asked] * (1 - 1e-6)).sum())
    value = float(cost[hidden & ~unsafe.cells].sum())
    return {"cells": int(hidden.sum()), "value": value, "open": left}


def _large(path: Path) -> dict[str, Any]:
    options: Any = {
        "rows": ["STATE", "PUMA"],
        "cols": ["SEX", "BAND"],
        "nested": ["STATE", "PUMA"],
    }
    table(_veterans(path).head(400), **options)  # what is compiled is compiled
    begun, processor = time.monotonic(), time.process_time()
    found = table(_veterans(path), **options)
    seconds, busy = time.monotonic() - begun, time.process_time() - processor
    audit: Any = found.internal
    say(f"tables: the large one in {seconds:.1f} s ({busy:.1f} s of processor time)")
    return {
        "seconds": seconds,
        "processor": busy,
        "areas": len(audit.table.axes[0].paths),
        "table": len(audit.shown),
        "unsafe": int(audit.unsafe.cells.sum()),
        "cells": int(audit.suppressed.sum()),
        "value": audit.pattern.cost,
        "narrow": int(audit.narrow.sum()),
        **{f"greedy_{name}": figure for name, figure in greedy(found).items()},
    }


def _veterans(path: Path) -> pl.DataFrame:
    frame = pl.read_parquet(path, columns=["STATE", "PUMA", "SEX", "PINCP"])
    band = sum((pl.col("PINCP") > limit).cast(pl.Int8) for limit in BANDS)
    return frame.with_columns(BAND=band).drop("PINCP")
