"""A hierarchical table of American veterans: time, cells and value suppressed, beside other rules.

    python benchmarks/protection_tables.py acs2024_veterans.parquet

STATE > PUMA x SEX x a band of income (counts, threshold 3). The plain greedy rule suppresses, in
every sum with one suppressed cell, the cheapest other one, until there is none; it is not safe, and
what it leaves open is counted by the same programs. Small hierarchies are single states, with
bands pooled to three, where the exact model is proven.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

from keyhole.errors import KeyholeError
from keyhole.protection.tables import suppression, table
from keyhole.protection.tables.attackers import Programs, Wanted, prove
from keyhole.protection.tables.cells import Linked

BANDS = (10_000, 25_000, 50_000, 75_000, 100_000, 150_000)


def veterans(path: str, bands: tuple[int, ...] = BANDS) -> pl.DataFrame:
    frame = pl.read_parquet(path, columns=["STATE", "PUMA", "SEX", "PINCP"])
    band = sum((pl.col("PINCP") > limit).cast(pl.Int8) for limit in bands)
    return frame.with_columns(BAND=band).drop("PINCP")


def greedy(linked: Linked, unsafe: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Suppress the cheapest other cell of every sum with one suppressed cell, again and again."""
    hidden = unsafe.copy()
    sums = [cells[linked.counts[cells] > 0] for cells in linked.sums]
    changed = True
    while changed:
        changed = False
        for cells in sums:
            if len(cells) > 1 and hidden[cells].sum() == 1:
                others = cells[~hidden[cells]]
                hidden[others[np.argmin(cost[others])]] = changed = True
    return hidden


def open_cells(linked: Linked, found: object, hidden: np.ndarray) -> int:
    """Count the unsafe cells that cannot be as large as the threshold under a pattern."""
    unsafe = found.internal.unsafe
    cells = np.flatnonzero(unsafe.cells & (unsafe.upper > 0))
    up = np.where(hidden, np.inf, 0.0)
    down = np.where(hidden, np.maximum(linked.values - 1, 0.0), 0.0)
    wanted = Wanted(cells, np.ones(len(cells)), unsafe.upper[cells])
    blocks = linked.blocks()
    wider = [np.unique(np.concatenate(blocks[i : i + 6])) for i in range(0, len(blocks), 6)]
    _, high = prove(Programs(linked.matrix), wanted, up, down, [blocks, wider])
    return int((high[cells] < unsafe.upper[cells] * (1 - 1e-6)).sum())


def large(path: str) -> None:
    options = {"rows": ["STATE", "PUMA"], "cols": ["SEX", "BAND"], "nested": ["STATE", "PUMA"]}
    frame = veterans(path)
    table(frame.head(400), **options, protect="none")  # what is compiled is compiled
    begun, processor = time.monotonic(), time.process_time()
    found = table(frame, **options)
    took, busy = time.monotonic() - begun, time.process_time() - processor
    audit = found.internal
    linked = Linked.of([audit.table])
    unsafe, cost = audit.unsafe.cells, np.maximum(audit.table.values, 1.0)
    print(f"areas {len(audit.table.axes[0].paths):,}, cells {len(unsafe):,}, "
          f"not empty {(audit.table.counts > 0).sum():,}, unsafe {unsafe.sum():,}")  # fmt: skip
    print(f"keyhole: {took:.1f} s ({busy:.1f} s of processor), audited safe: {audit.safe}; "
          f"{audit.suppressed.sum():,} cells suppressed, value "
          f"{cost[audit.suppressed & ~unsafe].sum():,.0f} besides the unsafe")  # fmt: skip
    plain = greedy(linked, unsafe, cost)
    print(f"greedy: {plain.sum():,} cells, value {cost[plain & ~unsafe].sum():,.0f}; leaves "
          f"{open_cells(linked, found, plain):,} unsafe cells open")  # fmt: skip


def small(path: str) -> None:
    frame = veterans(path, (25_000, 75_000))
    options = {"rows": ["STATE", "PUMA"], "cols": ["BAND"], "nested": ["STATE", "PUMA"]}
    states = frame["STATE"].unique().sort().to_list()
    ratios = []
    for some in (states[i : i + 2] for i in range(0, len(states), 2)):
        part = frame.filter(pl.col("STATE").is_in(some)).filter(pl.col("SEX") == 2)
        try:
            suppression.EXACT_CELLS = 10_000
            best = table(part, **options, seconds=40).internal.pattern
            suppression.EXACT_CELLS = 0
            fast = table(part, **options, seconds=40).internal.pattern
        except KeyholeError as error:
            print(some, str(error)[:80])
            continue
        if best.cost and best.proven:
            ratios.append(fast.cost / best.cost)
            print(some, f"best {best.cost:,.0f}, by hypercubes {fast.cost:,.0f}, {ratios[-1]:.3f}")
    suppression.EXACT_CELLS = 700
    print(f"{len(ratios)} hierarchies proven: mean {np.mean(ratios):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    small(sys.argv[1])
    large(sys.argv[1])
