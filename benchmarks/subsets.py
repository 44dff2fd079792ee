"""The exact frontier and minimal uniques, against loops over the sets of variables.

The rivals' loops get the pruning that a careful user would think of: level by level, and only
sets all of whose parts are within the limit. Both sides answer the same question in full, and
the answers are compared.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.clock import interleaved, say, spread
from benchmarks.files import keys_of, sample
from benchmarks.rivals import CORES, Count, DuckDBSets, Key, PackedNumpy, Rival
from keyhole.data import Microdata
from keyhole.exposure.uniques import uniques
from keyhole.selection.frontier import frontier

LIMIT = 0.05
BATCH, MOST_SECONDS = 64, 60.0


def measure_frontier(records: int, free: Sequence[int]) -> list[dict[str, Any]]:
    """Measure all maximal sets within 5% over so many free variables; two are kept."""
    return [_frontier(sample(records), count) for count in free]


def _frontier(data: Microdata, free: int) -> dict[str, Any]:
    say(f"frontier: {data.records:,} records, {free} free variables")
    keep, candidates = keys_of(2), keys_of(2 + free)[2:]
    _encode(data, (*keep, *candidates))
    asked = {"keep": keep, "candidates": candidates, "limit": LIMIT}
    frontier(sample(40_000), **asked)  # compiled
    columns = {name: data.codes(name) for name in (*keep, *candidates)}
    ways: dict[str, Callable[[], Any]] = {OURS: lambda: frontier(data, **asked)}
    for make in (PackedNumpy, DuckDBSets):
        ways[make.name] = partial(_maximal, make(columns), data.records, keep, candidates)
    runs = interleaved(ways)
    found = runs[OURS][1]
    mine = {frozenset(s.variables) for s in found.sets}
    about = {"records": data.records, "free": free, "complete": found.complete, "sets": len(mine)}
    answers = {
        name: (out[0] in (None, mine), out[1]) for name, (_, out) in runs.items() if name != OURS
    }
    return {**about, "counted": found.evaluated, **_compared(runs, answers)}


OURS = "keyhole"


def _compared(
    runs: Mapping[str, tuple[list[float], Any]], answers: Mapping[str, tuple[bool, int]]
) -> dict[str, Any]:
    """Return our times and those of the rivals, who must have found the same."""
    own = runs[OURS][0]
    for name, (same, _) in answers.items():
        if not same:
            raise AssertionError(f"{name} finds something else than keyhole")
    rivals = [
        {"name": name, "counted": counted, **spread(runs[name][0], own)}
        for name, (_, counted) in answers.items()
    ]
    return {**spread(own), "rivals": rivals}


def _encode(data: Microdata, names: Sequence[str]) -> None:
    for name in names:
        data.codes(name)


def _maximal(
    rival: Rival, records: int, keep: Key, candidates: Key
) -> tuple[set[frozenset[str]] | None, int]:
    """Return the maximal sets within the limit, and how many sets were counted.

    After `MOST_SECONDS` it gives up, without the sets: its seconds are fewer than it needs.
    """
    end = time.perf_counter() + MOST_SECONDS
    level = [keep] if _within(rival, records, keep, [keep]) else []
    fitting: set[frozenset[str]] = set()
    counted = 1
    while level:
        fitting |= {frozenset(key) for key in level}
        wider = [key for key in _extended(level, candidates) if _parts_fit(key, keep, fitting)]
        counted += len(wider)
        level = _within(rival, records, keep, wider, end)
        if time.perf_counter() > end:
            return None, counted
    extended = {key - {name} for key in fitting for name in key if name not in keep}
    return fitting - extended, counted


def _extended(level: Sequence[Key], candidates: Key) -> Iterator[Key]:
    """Append to each set the candidates that come after its last, so that none comes twice."""
    for key in level:
        last = max((candidates.index(n) for n in key if n in candidates), default=-1)
        yield from ((*key, name) for name in candidates[last + 1 :])


def _parts_fit(key: Key, keep: Key, fitting: set[frozenset[str]]) -> bool:
    whole = frozenset(key)
    return all(whole - {name} in fitting for name in key if name not in keep)


def _within(
    rival: Rival, records: int, keep: Key, keys: Sequence[Key], end: float = float("inf")
) -> list[Key]:
    counts: list[Count] = []
    for start in range(0, len(keys), BATCH):
        if time.perf_counter() > end:
            break
        counts += rival.count(keep, keys[start : start + BATCH])
    return [k for k, (_, at_risk) in zip(keys, counts, strict=False) if at_risk / records <= LIMIT]


def measure_uniques(records: int, keys: int, max_size: int) -> dict[str, Any]:
    """Measure the minimal uniques up to a size."""
    say(f"minimal uniques: {records:,} records x {keys} keys, up to size {max_size}")
    data, names = sample(records), keys_of(keys)
    _encode(data, names)
    uniques(sample(2_000), keys=names[:5], max_size=3)
    ways: dict[str, Callable[[], Any]] = {
        OURS: lambda: uniques(data, keys=names, max_size=max_size),
        "packed NumPy": partial(_minimal, _numpy_finder, data, names, max_size),
        "Polars": partial(_minimal, _polars_finder, data, names, max_size),
    }
    runs = interleaved(ways)
    by_size = runs[OURS][1].by_size
    sets = sum(1 for _ in _subsets(names, max_size))
    answers = {name: (out == by_size, sets) for name, (_, out) in runs.items() if name != OURS}
    about = {"records": records, "keys": keys, "max_size": max_size}
    return {**about, "minimal_uniques": sum(by_size.values()), **_compared(runs, answers)}


def _subsets(names: Key, max_size: int) -> Iterator[Key]:
    for size in range(1, max_size + 1):
        yield from itertools.combinations(names, size)


Rows = npt.NDArray[np.integer[Any]]
Finder = Callable[[Key], Rows]
"""Answers a set of variables with the records that are unique on it."""


def _minimal(
    finder: Callable[[Microdata, Key], Finder], data: Microdata, names: Key, max_size: int
) -> dict[int, int]:
    """Count the minimal uniques by size: records unique on a set, and on none of its parts."""
    find = finder(data, names)
    unique: dict[Key, npt.NDArray[np.bool_]] = {(): np.zeros(data.records, np.bool_)}
    by_size = dict.fromkeys(range(1, max_size + 1), 0)
    for size in by_size:
        keys = list(itertools.combinations(names, size))
        before, unique = unique, {}
        with ThreadPoolExecutor(CORES) as pool:
            for key, rows in zip(keys, pool.map(find, keys), strict=True):
                unique[key] = np.zeros(data.records, np.bool_)
                unique[key][rows] = True
                parts = [before[part] for part in itertools.combinations(key, size - 1)]
                by_size[size] += int((unique[key] & ~np.logical_or.reduce(parts)).sum())
    return by_size


def _polars_finder(data: Microdata, names: Key) -> Finder:
    frame = pl.DataFrame({name: data.codes(name).values for name in names}).with_row_index()

    def find(key: Key) -> Rows:
        cells = frame.group_by(key).agg(pl.len(), pl.first("index"))
        return cells.filter(pl.col("len") == 1)["index"].to_numpy()

    return find


def _numpy_finder(data: Microdata, names: Key) -> Finder:
    packer = PackedNumpy({name: data.codes(name) for name in names})

    def find(key: Key) -> Rows:
        _, first, sizes = np.unique(packer.pack(key), return_index=True, return_counts=True)
        rows: Rows = first[sizes == 1]
        return rows

    return find
