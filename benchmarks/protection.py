"""How long local suppression and microaggregation take, how that grows, and what plain code takes.

`python -m benchmarks --only protection` measures. Suppression is to k = 3 on seven keys of the
example world, beside the greedy loop that a user of pandas would write; MDAV with k = 3 on four
columns beside plain NumPy, whose groups must be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from benchmarks.clock import best_of, say, timed
from benchmarks.protection_tables import measure_tables
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.exposure.cells import risk
from keyhole.kernels.mdav import mdav
from keyhole.protection.methods.microaggregation import microaggregate
from keyhole.protection.methods.suppression import suppress

K = 3
KEYS = ("sex", "ag8r", "ms", "race1", "ethnic", "homstate", "psrcd")
SIZES = (12_500, 25_000, 50_000, 100_000)
COLUMNS = 4
# Plain MDAV takes time in the square of the records: beyond this it is not waited for.
PLAIN_MOST = 12_500

Floats = npt.NDArray[np.float64]


def measure_protection(
    sizes: Sequence[int] = SIZES,
    rounds: int = 3,
    plain_most: int = PLAIN_MOST,
    hierarchies: int = 30,
) -> dict[str, Any]:
    """Time both methods on files of some sizes, and protect tables."""
    _warm_up()
    return {
        "tables": measure_tables(hierarchies),
        "suppression": [_suppression(records, rounds) for records in sizes],
        "mdav": [_microaggregation(records, rounds, records <= plain_most) for records in sizes],
    }


def _warm_up() -> None:
    data = veterans_sample(500)
    for missing in ("wildcard", "own"):
        suppress(data, keys=KEYS, k=K, missing=missing)  # type: ignore[arg-type]
    microaggregate(load(pl.DataFrame(_points(50))), columns=["column_0"], k=K)


def _suppression(records: int, rounds: int) -> dict[str, Any]:
    data = veterans_sample(records)
    out: dict[str, Any] = {"records": records}
    for missing in ("wildcard", "own"):
        seconds, made = best_of(
            rounds,
            lambda missing=missing: suppress(data, keys=KEYS, k=K, missing=missing),  # type: ignore[misc]
        )
        out[missing] = {"seconds": seconds, "values": made.changed}
    seconds, (frame, values) = timed(lambda: greedy_pandas(data.frame.to_pandas(), KEYS, K))
    found = risk(pl.from_pandas(frame[list(KEYS)]), keys=KEYS, cutoff=K)
    out["pandas"] = {"seconds": seconds, "values": values, "rp": found.rp}
    say(f"suppression of {records:,} records: {out['wildcard']['seconds']:.2f} s")
    return out


def greedy_pandas(frame: pd.DataFrame, keys: Sequence[str], k: int) -> tuple[pd.DataFrame, int]:
    """Take away values as a user would: of rare records, one column after the other.

    The column with most categories goes first; a missing value is a category of its own. Some
    records may stay rare at the end, all of their key gone.
    """
    frame = frame.astype(dict.fromkeys(keys, object))
    ordered = sorted(keys, key=lambda name: -frame[name].nunique())
    values = 0
    for name in ordered:
        sizes = frame.groupby(list(keys), dropna=False)[keys[0]].transform("size")
        rare = ((sizes < k) & frame[name].notna()).to_numpy()
        values += int(rare.sum())
        frame.loc[rare, name] = None
    return frame, values


def _microaggregation(records: int, rounds: int, plain: bool) -> dict[str, Any]:
    points = _points(records)
    data = load(pl.DataFrame(points))
    seconds, _ = best_of(
        rounds, lambda: microaggregate(data, columns=data.names, k=K, standardise=False)
    )
    out: dict[str, Any] = {"records": records, "columns": COLUMNS, "seconds": seconds}
    say(f"MDAV of {records:,} records: {seconds:.2f} s")
    if plain:
        out["plain"], groups = timed(lambda: plain_mdav(points, K))
        if not _same_groups(groups, mdav(points, K)):
            raise RuntimeError("plain NumPy and keyhole found different groups")
        say(f"plain MDAV of {records:,} records: {out['plain']:.2f} s")
    return out


def plain_mdav(points: Floats, k: int) -> npt.NDArray[np.int64]:
    """MDAV in NumPy: for every group the distances of all left, the nearest by partition."""
    left = np.arange(len(points))
    group = np.full(len(points), -1, dtype=np.int64)
    number = 0

    def close(start: int, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        distance = ((points[left] - points[start]) ** 2).sum(axis=1)
        nearest = np.argpartition(distance, k - 1)[:k]
        group[left[nearest]] = number
        return np.delete(left, nearest)

    while len(left) >= 2 * k:
        both = len(left) >= 3 * k
        centre = points[left].mean(axis=0)
        start = int(left[((points[left] - centre) ** 2).sum(axis=1).argmax()])
        left = close(start, left)
        number += 1
        if both:
            other = int(left[((points[left] - points[start]) ** 2).sum(axis=1).argmax()])
            left = close(other, left)
            number += 1
    group[left] = number
    return group


def _same_groups(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Tell whether two numberings part the records alike."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return pairs == len(np.unique(one)) == len(np.unique(other))


def _points(records: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(size=(records, COLUMNS))
