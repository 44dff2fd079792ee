"""Selection against the rivals, over records and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.clock import interleaved, say, spread, timed
from benchmarks.files import encoded_alone, keys_of, sample
from benchmarks.rivals import RIVALS, Key, Rival
from benchmarks.walks import Walk, check_same, ours, rival_walk
from keyhole.data import Microdata

METHODS = ("forward", "backward")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and how much time a rival may take.

    Parameters
    ----------
    sizes
        (records, keys) of each case.
    rounds
        Runs of everything that is quick enough to be run again.
    budget
        After this many seconds a rival's run ends with the step it is in, and only the steps
        that it took are compared.
    again
        What took longer than this is not run again.
    most
        Nor is who has taken this many seconds in all.
    """

    sizes: tuple[tuple[int, int], ...]
    rounds: int
    budget: float
    again: float
    most: float


FULL = Plan(
    tuple((n, k) for n in (10**3, 10**4, 10**5, 10**6) for k in (8, 16, 24)), 5, 8.0, 5.0, 16.0
)
QUICK = Plan(((10**4, 16), (10**5, 8), (10**5, 16)), 2, 6.0, 3.0, 12.0)


def measure_selection(plan: Plan) -> list[dict[str, Any]]:
    """Measure every case; the files are made once for each number of records."""
    out = []
    small = sample(2_000)
    for records in sorted({records for records, _ in plan.sizes}):
        data = sample(records)
        for keys in [keys_of(count) for n, count in plan.sizes if n == records]:
            _warm_up(small, keys)
            rivals = [make({name: data.codes(name) for name in keys}) for make in RIVALS]
            out += [_case(data, keys, method, rivals, plan) for method in METHODS]
    return out


def _warm_up(small: Microdata, keys: Key) -> None:
    """Compile, load and start threads, so that no run pays for being the first."""
    for method in METHODS:
        ours(small, keys, method)
        for make in RIVALS:
            rival = make({name: small.codes(name) for name in keys})
            rival_walk(rival, small.records, keys, method, budget=1.0)


def _case(
    data: Microdata, keys: Key, method: str, rivals: Sequence[Rival], plan: Plan
) -> dict[str, Any]:
    say(f"selection: {data.records:,} records x {len(keys)} keys, {method}")
    mine: list[Walk] = []
    theirs: dict[str, list[Walk]] = {rival.name: [] for rival in rivals}
    for _ in range(plan.rounds):
        mine.append(timed(lambda: ours(data, keys, method))[1])
        for rival in rivals:
            taken = [_seconds(walk) for walk in theirs[rival.name]]
            if taken and (taken[0] > plan.again or sum(taken) > plan.most):
                continue
            run = partial(rival_walk, rival, data.records, keys, method, plan.budget)
            walk = timed(run)[1]
            check_same(mine[0], walk, rival.name)
            theirs[rival.name].append(walk)
    made = interleaved({"": lambda: _encode(encoded_alone(data, keys), keys)}, plan.rounds)
    encoding, timing = median(made[""][0]), spread([_seconds(walk) for walk in mine])
    return {
        "records": data.records,
        "keys": len(keys),
        "method": method,
        "steps": len(mine[0]),
        "sets": sum(len(step.figures) for step in mine[0]),
        **timing,
        "seconds_with_encoding": timing["seconds"] + encoding,
        "rivals": [_against(rival, theirs[rival.name], mine) for rival in rivals],
    }


def _encode(data: Microdata, keys: Key) -> None:
    for name in keys:
        data.codes(name)


def _against(rival: Rival, walks: Sequence[Walk], mine: Sequence[Walk]) -> dict[str, Any]:
    """Compare as many runs of both, on the steps that the rival took in all."""
    steps = min(len(walk) for walk in walks)
    theirs = [_seconds(walk[:steps]) for walk in walks]
    own = [_seconds(walk[:steps]) for walk in mine[: len(walks)]]
    return {
        "name": rival.name,
        "kind": rival.kind,
        "steps": steps,
        "ours_on_the_same_steps": median(own),
        **spread(theirs, own),
    }


def _seconds(walk: Walk) -> float:
    return sum(step.seconds for step in walk)


def growth(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fit how our time grows with records at 16 keys, and with keys at the most records."""
    out = []
    most = max(case["records"] for case in cases)
    for method in METHODS:
        mine = [case for case in cases if case["method"] == method]
        by_records = [(c["records"], c["seconds"]) for c in mine if c["keys"] == 16]
        by_keys = [(c["keys"], c["seconds"]) for c in mine if c["records"] == most]
        out.append(
            {
                "method": method,
                "records": [n for n, _ in by_records],
                "records_exponent": _slope(by_records),
                "last_decade_exponent": _slope(by_records[-2:]),
                "keys": [k for k, _ in by_keys],
                "keys_exponent": _slope(by_keys),
            }
        )
    return out


def _slope(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the exponent of a power law through the points, None if there is but one."""
    if len(points) < 2:
        return None
    size, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(size, seconds, 1)[0])
