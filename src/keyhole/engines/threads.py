"""Work shared among threads; the kernels release the interpreter's lock."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["WORKERS", "in_threads", "workers"]

A = TypeVar("A")
T = TypeVar("T")

WORKERS = os.cpu_count() or 1


def workers() -> int:
    """Return how many threads to work with: as many as cores, but one inside a task of Spark."""
    spark = sys.modules.get("pyspark.taskcontext")
    inside = spark is not None and spark.TaskContext.get() is not None
    return 1 if inside else WORKERS


def in_threads(work: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """Work on the items on as many threads as there are cores."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(work, items))
