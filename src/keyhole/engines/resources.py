"""Memory and cores of this machine: how much memory there is, and work shared among threads."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from keyhole.core.names import shown
from keyhole.core.options import Problem
from keyhole.errors import OptionError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_AMOUNT = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([a-zA-Z]*)\s*")
_MEMINFO = Path("/proc/meminfo")
_GROUPS = Path("/sys/fs/cgroup")

# What the libraries take by themselves, and a little to work with.
LEAST = 256 * 10**6


def parse_memory(amount: Any) -> int:
    """Return an amount of memory in bytes."""
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    if isinstance(amount, int) and not isinstance(amount, bool):
        size = amount
    elif found is not None and found[2].lower() in _UNITS:
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    else:
        template = (
            "{memory} must be an amount like 1GB or 512MB. Got {0} instead: say how much the "
            "program may take."
        )
        raise OptionError(Problem(template, shown(amount)))
    if size < LEAST:
        template = "{memory} must be at least {0}. Got {1!r} instead."
        raise OptionError(Problem(template, format_size(LEAST), amount))
    return size


def format_size(size: float, digits: int = 3) -> str:
    """Write an amount of memory."""
    for unit in ("TB", "GB", "MB", "kB"):
        if size >= _UNITS[unit.lower()]:
            amount = float(f"{size / _UNITS[unit.lower()]:.{digits}g}")
            return f"{amount:g} {unit}"
    return f"{size:.0f} bytes"


def available() -> int | None:
    """Return how much memory can be had without taking it from others; None if nobody tells."""
    known = []
    with suppress(AttributeError, ValueError, OSError):
        known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2]
    with suppress(OSError, StopIteration, ValueError):
        lines = _MEMINFO.read_text().splitlines()
        known = [int(next(x for x in lines if x.startswith("MemAvailable")).split()[1]) * 1024]
    with suppress(OSError, ValueError):  # what is left of the limit of a container
        most = int((_GROUPS / "memory.max").read_text())  # "max" is no limit
        known.append(max(0, most - int((_GROUPS / "memory.current").read_text())))
    return min(known, default=None)


A = TypeVar("A")
T = TypeVar("T")

WORKERS = os.cpu_count() or 1
ROWS_TO_SHARE = 1 << 15
"""Fewer rows than this are counted sooner by one thread than shared out."""
# In so many turns each thread takes its share of many items: uneven ones come out even.
_TURNS = 64


def workers() -> int:
    """Return how many threads to work with: as many as cores, but one inside a task of Spark."""
    spark = sys.modules.get("pyspark.taskcontext")
    inside = spark is not None and spark.TaskContext.get() is not None
    return 1 if inside else WORKERS


def in_threads(work: Callable[[A], T], items: Sequence[A], rows: int = ROWS_TO_SHARE) -> list[T]:
    """Work on the items on as many threads as there are cores, unless they have few rows in all.

    Where there are many they are handed out some at a time: to hand out each takes longer than
    to look at a pair of short columns.
    """
    if len(items) < 2 or rows < ROWS_TO_SHARE:
        return [work(item) for item in items]
    threads = workers()
    size = max(1, len(items) // (threads * _TURNS))
    turns = [items[i : i + size] for i in range(0, len(items), size)]
    found: list[list[T]] = [[] for _ in turns]
    left = iter(range(len(turns)))

    def take() -> None:
        try:
            for i in left:
                found[i] = [work(item) for item in turns[i]]
        except BaseException:
            for _ in left:  # nobody begins another turn
                pass
            raise

    # The thread that asks works too: one thread less to start and to wait for.
    with ThreadPoolExecutor(max(threads - 1, 1)) as pool:
        others = [pool.submit(take) for _ in range(min(threads, len(turns)) - 1)]
        take()
    for one in others:
        one.result()
    return [one for several in found for one in several]


def in_turn(
    work: Callable[[A], T], pieces: Sequence[A], stop: Callable[[], None] | None = None
) -> Iterator[tuple[A, T]]:
    """Work on the pieces on all cores and yield them in turn; `stop` is called on an interrupt."""
    pool = ThreadPoolExecutor(workers())
    try:
        yield from zip(pieces, pool.map(work, pieces), strict=True)
    except BaseException:
        if stop is not None:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
