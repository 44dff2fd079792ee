"""Timing: rounds in which everybody takes a turn, and lines that tell of the progress."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_BEGUN = time.monotonic()
ROUNDS, BUDGET = 5, 20.0
"""Everybody takes so many turns, unless the seconds of all its turns are over before."""


def say(line: str) -> None:
    """Tell of the progress on standard error, with the minutes since the beginning."""
    minutes, seconds = divmod(int(time.monotonic() - _BEGUN), 60)
    print(f"[{minutes:02}:{seconds:02}] {line}", file=sys.stderr, flush=True)


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """Return how long a run took, and what it gave."""
    gc.collect()
    begin = time.perf_counter()
    out = run()
    return time.perf_counter() - begin, out


def processor_seconds() -> float:
    """Return what all processes started until now have taken of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def best_of(rounds: int, run: Callable[[], T]) -> tuple[float, T]:
    """Return the shortest time of some runs, and what the last gave."""
    runs = [timed(run) for _ in range(rounds)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def interleaved(
    ways: Mapping[str, Callable[[], T]], rounds: int = ROUNDS, budget: float = BUDGET
) -> dict[str, tuple[list[float], T]]:
    """Run everything in turns, round by round; return the times of each, and what it gave last."""
    found: dict[str, tuple[list[float], T]] = {}
    for _ in range(rounds):
        for name, run in ways.items():
            times = found[name][0] if name in found else []
            if sum(times) < budget:
                seconds, out = timed(run)
                found[name] = ([*times, seconds], out)
    return found


def spread(times: Sequence[float], ours: Sequence[float] | None = None) -> dict[str, Any]:
    """Return the median of some times, the least and the most, and how many times as long as ours.

    A rival with fewer turns is compared with as many of ours.
    """
    out: dict[str, Any] = {"seconds": statistics.median(times), "runs": len(times)}
    out |= {"low": min(times), "high": max(times)}
    if ours is not None:
        out["ratio"] = out["seconds"] / statistics.median(ours[: len(times)])
    return out
