"""Searches over sets of variables in memory: minimal uniques."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.columns import Codes
from keyhole.engines.memory import SortedCells
from keyhole.engines.storage import MEMORY, Storage
from keyhole.kernels import minimal

Progress = Callable[[int, int], None]

POLL_SECONDS = 0.2
# What a record takes, about, until its score and its level are known.
RECORD_BYTES = 64


def minimal_uniques(
    columns: Sequence[Codes],
    max_size: int,
    progress: Progress | None = None,
    storage: Storage = MEMORY,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Find the minimal uniques of every record.

    Returns the record and the mask of variables (bit j is column j) of each. The storage refuses
    a search that needs too much memory; `progress` hears of the sets visited and of all there may
    be.
    """
    cells = SortedCells(columns, drop=False, storage=storage)
    storage.require(_bytes(columns, len(cells.counts), max_size), "the search for minimal uniques")
    first = cells.first_records()
    # Wide variables in the high bits: they come first in a set and leave small cells to the rest.
    places = sorted(range(len(columns)), key=lambda v: columns[v].size)
    ordered = [columns[v] for v in places]
    codes = np.column_stack([c.values[first] for c in ordered])
    missing = np.array([c.size - 1 if c.has_missing else -1 for c in ordered])
    known = np.array([_bits(codes[:, v] != m) for v, m in enumerate(missing)])
    sizes = np.array([c.size for c in ordered])
    most = sum(math.comb(len(columns), k) for k in range(1, max_size + 1))
    arguments = (codes, cells.counts.astype(np.int32), missing, sizes, known, max_size)
    owner, mask = _watched(arguments, most, progress)
    return first[owner].astype(np.int64), _moved_bits(mask, places)


def _bytes(columns: Sequence[Codes], patterns: int, max_size: int) -> int:
    """Return about what a search takes: patterns, their order by size of set, and bits by set."""
    codes = sum(max(c.values.dtype.itemsize for c in columns) for _ in columns)
    sets = sum(math.comb(len(columns), k) for k in range(max_size))
    records = len(columns[0].values)
    return (
        patterns * (2 * codes + 8 * max_size + 40) + sets * patterns // 8 + records * RECORD_BYTES
    )


def _watched(
    arguments: tuple[Any, ...], most: int, progress: Progress | None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]:
    """Run the kernel on a thread, tell of its progress, and stop it when interrupted."""
    watch = np.zeros(2, dtype=np.int64)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(lambda: minimal.find_minimal(*arguments, watch))
        try:
            while progress is not None and not work.done():
                progress(int(watch[0]), most)
                time.sleep(POLL_SECONDS)
            owner, mask = work.result()
        except BaseException:
            watch[1] = 1
            raise
    return owner, mask


def _bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    padded = np.zeros(-(-len(flags) // 64) * 64, dtype=np.bool_)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


def _moved_bits(mask: npt.NDArray[np.uint64], places: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Move bit i of every mask to bit places[i]."""
    out = np.zeros_like(mask)
    for bit, place in enumerate(places):
        out |= ((mask >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
    return out
