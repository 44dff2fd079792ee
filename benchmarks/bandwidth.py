"""The physical limit: bytes that kernels must move, against the machine's memory bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clock import interleaved, say, spread
from benchmarks.files import keys_of, sample
from keyhole.engines.partition import DistinctPatterns, OpenCells
from keyhole.kernels import additive, cells, crosstab
from keyhole.kernels.attributes import learn_by_cell
from keyhole.kernels.packing import layout, pack

LARGE = 1 << 25
"""So many words are copied to measure the bandwidth: far more than the caches hold."""


def measure_bandwidth(records: int) -> dict[str, Any]:
    """Measure the kernels in which selection, solve, attributes, screening and synthesis work."""
    say(f"bandwidth: {records:,} records x 16 keys")
    data, keys = sample(records), keys_of(16)
    codes = [data.codes(name) for name in keys]
    plan = layout([c.size for c in codes])
    rows = pack([c.values for c in codes], plan)
    key = plan.mask([0])
    ordered = rows[np.argsort(rows[:, 0] & key[0], kind="stable")]
    starts, weights = cells.bounds(ordered, key), np.ones(records, np.int32)
    fields = np.column_stack([plan.word, plan.shift, plan.bits])[1:]
    sizes = np.array([c.size for c in codes[1:]])
    span = np.array([0, len(starts) - 1])
    total = np.bincount(codes[1].values).astype(np.int64)
    alone = np.empty(len(starts) - 1, np.int32)
    limits = np.array([2, np.log(2), 3, 0.2, 1])
    source = np.ones(LARGE)
    target = np.empty_like(source)
    room, room_weights = np.empty_like(rows), np.empty_like(weights)
    places = np.empty(records + 1, np.int64)
    every = frozenset(range(len(keys)))
    distinct = DistinctPatterns.of(rows.copy(), weights.copy(), plan, every)
    opened = OpenCells.of(distinct, [0], range(1, len(keys)), np.array([c.size for c in codes]), 3)
    table = np.column_stack([c.values for c in codes])
    starts_of = np.cumsum([0, *(c.size for c in codes)])[:-1].astype(np.int32)
    scores, everybody = np.ones((sum(c.size for c in codes), 1)), np.arange(records, dtype=np.int32)
    rung = np.arange(sizes[0], dtype=np.int32)[None]
    each: dict[str, tuple[float, Callable[[], Any]]] = {
        "copy": (2 * source.nbytes, lambda: np.copyto(target, source)),
        "packing 16 columns": (
            sum(c.values.nbytes for c in codes) + rows.nbytes,
            lambda: pack([c.values for c in codes], plan),
        ),
        "tabulating two columns": (
            codes[0].values.nbytes + codes[1].values.nbytes,
            lambda: crosstab.crosstab(
                codes[0].values, codes[1].values, codes[0].size, codes[1].size
            ),
        ),
        "scoring 16 columns": (
            table.nbytes + 2 * everybody.nbytes,
            lambda: additive.score(table, everybody, starts_of, scores),
        ),
        "tallying a rung": (
            rows.nbytes + weights.nbytes,
            lambda: cells.tally_rungs(
                ordered, weights, starts, span, fields[0], rung, 3, records
            ),
        ),
        "sorting words": (
            2 * rows.nbytes,
            lambda: rows[:, 0].copy().sort(),
        ),
        "tallying 15 candidates": (
            rows.nbytes + weights.nbytes,
            lambda: cells.tally_splits(ordered, weights, starts, span, fields, sizes, 3),
        ),
        "splitting cells": (
            2 * (rows.nbytes + weights.nbytes),
            lambda: cells.split(
                ordered, weights, starts, span, fields[0], 3, room, room_weights, places
            ),
        ),
        "narrowing cells": (
            2 * (rows.nbytes + weights.nbytes),
            lambda: opened.narrowed(1, list(range(2, len(keys)))),
        ),
        "leaving out a key": (
            2 * (distinct.rows.nbytes + distinct.weights.nbytes),
            lambda: distinct.tally_without([0], records, 3),
        ),
        "what cells tell of one column": (
            rows.nbytes + alone.nbytes,
            lambda: learn_by_cell(
                starts, ordered[:, 0].copy(), fields[0, 1:], weights[:0], span, total, 0,
                limits, 3, alone,
            ),
        ),
    }  # fmt: skip
    for _, run in each.values():
        run()  # compiled
    times = interleaved({name: run for name, (_, run) in each.items()}, 9)
    found = [
        {"kernel": name, "megabytes": size / 1e6, **spread(times[name][0])}
        for name, (size, _) in each.items()
    ]
    return {
        "records": records,
        "gigabytes": found[0]["megabytes"] / found[0]["seconds"] / 1e3,
        "kernels": found[1:],
    }
