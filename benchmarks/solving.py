"""The best release, exactly, against counting every combination and against plain arrays.

Every rival gets the columns at every level encoded before the clock starts. Two count each
combination; packed NumPy has the same search with the same pruning, and counts by sorting. All
must find the same Pareto points.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.clock import interleaved, say, spread, timed
from benchmarks.files import sample
from benchmarks.rivals import CUTOFF, DuckDB, Polars, Rival
from keyhole.core.options import bind
from keyhole.data import Codes, Microdata, load
from keyhole.selection.solve import SolveAsked, solve
from keyhole.selection.solving import LadderSearch, Point, RiskBound, Stairs, Steps

LIMIT = 0.05
KEYS = ("sex", "age", "race1", "homstate", "ms", "psx", "source", "means", "lsr")
ACS = "acs2024_veterans.parquet"
ACS_KEYS = ("SEX", "AGEP", "RAC1P", "HISP", "MAR", "SCHL", "STATE", "PUMA", "ESR", "DIS")
BATCH = 64
Words = npt.NDArray[np.int64]


def measure_solving(records: int, combinations: int, rounds: int) -> dict[str, Any]:
    """Measure the search as records and ladders grow, and against rivals at the size given."""
    solve(sample(2_000), keys=KEYS[:3], limit=LIMIT)
    keys = _keys(sample(records), combinations)
    smaller = [(max(records // 10, 1_000), keys)]
    cases = [_case(n, k, rounds) for n, k in [*smaller, *_shorter(records, keys), (records, keys)]]
    cases[-1] |= _rivals(records, keys)
    larger = [_case(10 * records, keys, 1)]
    return {"limit": LIMIT, "cases": cases, "larger": larger, "acs": _measure_acs()}


def _keys(data: Microdata, combinations: int) -> tuple[str, ...]:
    """Return as many keys as make at least so many combinations."""
    return next(
        (KEYS[:n] for n in range(3, len(KEYS)) if _asked(data, KEYS[:n])[1] >= combinations), KEYS
    )


def _shorter(records: int, keys: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    return [(records, keys[:n]) for n in range(4, len(keys))]


def _asked(data: Microdata, keys: Sequence[str]) -> tuple[SolveAsked, int]:
    asked = SolveAsked.of(bind(solve, {"keys": keys, "limit": LIMIT}), data)
    sizes = [len(steps.gains) for steps in asked.steps]
    return asked, int(np.prod(sizes))


def _case(records: int, keys: Sequence[str], rounds: int) -> dict[str, Any]:
    asked, combinations = _asked(sample(records), keys)
    say(f"solve: {records:,} records, {combinations:,} combinations")
    times, search = interleaved({"": lambda: asked.search(float("inf"), None)}, rounds)[""]
    return {
        "records": records,
        "keys": len(keys),
        "combinations": combinations,
        **spread(times),
        "evaluated": search.evaluated,
        "points": len(search.stairs.points),
        "complete": search.complete,
    }


def _rivals(records: int, keys: Sequence[str]) -> dict[str, Any]:
    asked, _ = _asked(sample(records), keys)
    expected = [(p.risk, p.gain, p.rungs) for p in asked.search(float("inf"), None).stairs.points]
    ways: dict[str, Callable[[], LadderSearch | Stairs]] = {
        "keyhole": lambda: asked.search(float("inf"), None),
        "packed NumPy, the same pruning": partial(_numpy, asked),
    }
    for make in (Polars, DuckDB):
        rival = make(_levels(asked))
        ways[f"{make.name}, every combination"] = partial(_every, asked, rival)
    runs = interleaved(ways)
    for name, (_, stairs) in runs.items():
        points = stairs.stairs.points if isinstance(stairs, LadderSearch) else stairs.points
        if [(p.risk, p.gain, p.rungs) for p in points] != expected:
            raise AssertionError(f"{name} finds other releases than keyhole")
    own = runs.pop("keyhole")[0]
    rivals = [{"name": name, **spread(times, own)} for name, (times, _) in runs.items()]
    return {**spread(own), "rivals": rivals}


def _levels(asked: SolveAsked) -> dict[str, Codes]:
    """Return every column at every level, as small codes."""
    found = {}
    for v, (steps, ladder) in enumerate(zip(asked.steps, asked.ladders, strict=True)):
        for rung, table in enumerate(steps.tables):
            dense = np.unique(table, return_inverse=True)[1]
            values = dense[ladder.codes.values].astype(np.min_scalar_type(int(dense.max())))
            found[f"{v} {rung}"] = Codes(values, ladder.codes.levels, False)
    return found


def _every(asked: SolveAsked, rival: Rival) -> Stairs:
    """Count every combination."""
    stairs, bound = Stairs(), _bound(asked)
    each = itertools.product(*(range(len(steps.gains)) for steps in asked.steps))
    for nodes in _batches(each):
        names = [
            tuple(f"{v} {r}" for v, r in enumerate(node) if r < len(asked.steps[v].tables))
            for node in nodes
        ]
        counts = iter(rival.count((), [key for key in names if key]))
        for node, key in zip(nodes, names, strict=True):
            at_risk = next(counts)[1] if key else 0
            gain = sum(s.gains[r] for s, r in zip(asked.steps, node, strict=True))
            if at_risk <= bound.allowed:
                stairs.offer(Point(bound.risk(at_risk), gain, (), node))
    return stairs


def _batches(nodes: Iterator[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], ...]]:
    while batch := tuple(itertools.islice(nodes, BATCH)):
        yield batch


def _bound(asked: SolveAsked) -> RiskBound:
    return asked.keys[0].bound(asked.data.records, CUTOFF, 0, 0)


class _Packed:
    """One integer a record for the columns decided, sorted to count each level."""

    def __init__(
        self, words: Words, size: int, codes: Mapping[int, Words], steps: Sequence[Steps]
    ) -> None:
        self._words, self._size, self._codes, self._steps = words, size, codes, steps
        self.at_risk = _at_risk(words)

    def concerns(self, column: int) -> bool:  # noqa: ARG002
        return True

    def _with(self, column: int, rung: int) -> Words:
        table = self._steps[column].tables[rung].astype(np.int64)
        return self._words * self._steps[column].tables.shape[1] + table[self._codes[column]]

    def split(self, column: int, first: int, most: int) -> list[int]:  # noqa: ARG002
        rungs = range(first, len(self._steps[column].tables))
        return [_at_risk(self._with(column, rung)) for rung in rungs]

    def at(self, column: int, rung: int, finest: Mapping[int, int]) -> _Packed:  # noqa: ARG002
        if rung == len(self._steps[column].tables):
            return self
        words, size = self._with(column, rung), self._size * self._steps[column].tables.shape[1]
        if size > 1 << 50:
            words = np.unique(words, return_inverse=True)[1]
            size = int(words.max()) + 1
        return _Packed(words, size, self._codes, self._steps)


def _at_risk(words: Words) -> int:
    ordered = np.sort(words)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    return int(sizes[sizes < CUTOFF].sum())


def _numpy(asked: SolveAsked) -> LadderSearch:
    order = sorted(range(len(asked.steps)), key=lambda v: -asked.steps[v].tables.shape[1])
    codes = {v: one.codes.values.astype(np.int64) for v, one in enumerate(asked.ladders)}
    search = LadderSearch(asked.steps, order, [_bound(asked)])
    words = np.zeros(asked.data.records, dtype=np.int64)
    search.run([_Packed(words, 1, codes, asked.steps)])
    return search


def _measure_acs() -> dict[str, Any] | None:
    """Measure the whole verb on the American veterans, where ``KEYHOLE_DATA`` has the file."""
    path = Path(os.environ.get("KEYHOLE_DATA", "."), ACS)
    if not path.exists():
        return None
    say(f"solve: {ACS}")
    data = load(path)
    seconds, found = timed(lambda: solve(data, keys=ACS_KEYS, limit=LIMIT))
    plans = {"solve": found.frontier[-1], **found.greedy}
    return {
        "records": found.records,
        "combinations": found.combinations,
        "evaluated": found.evaluated,
        "seconds": seconds,
        "complete": found.complete,
        "plans": {
            name: None
            if one is None
            else {"rp": one.rp, "utility": one.utility, "treated": one.suppressed + one.removed,
                  "kept_utility": one.kept_utility}
            for name, one in plans.items()
        },
    }  # fmt: skip
