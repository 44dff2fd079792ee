"""Timing: collected garbage, the best of a few runs, and lines that tell of the progress."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_BEGUN = time.monotonic()


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


def best_of(rounds: int, run: Callable[[], T]) -> tuple[float, T]:
    """Return the shortest time of some runs, and what the last gave."""
    runs = [timed(run) for _ in range(rounds)]
    return min(seconds for seconds, _ in runs), runs[-1][1]
