"""Pair records that are alike on some columns and lie in different areas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Ints

__all__ = ["cell_numbers", "pair_across"]


def cell_numbers(data: Microdata, names: Sequence[str]) -> Ints:
    """Number the cells of some columns from 0; missing is a category of its own.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"sex": [*"ffm"], "age": [1, 2, 2]}))
    >>> cell_numbers(people, ["sex", "age"]).tolist(), cell_numbers(people, []).tolist()
    ([0, 1, 2], [0, 0, 0])
    """
    cells = np.zeros(data.records, dtype=np.int64)
    for name in names:
        codes = data.codes(name)
        joined = cells * max(codes.size, 1) + codes.values
        cells = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return cells


def pair_across(
    wanted: Ints, cells: Ints, areas: Ints, free: Flags, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Pair each wanted record with a free one of its cell in another area, each once.

    The partner's area is drawn by how many free records it has in the cell, and the partner at
    random among them.
    """
    pools = _pools(np.unique(cells[wanted]), cells, areas, free, generator)
    taken = np.zeros(len(cells), dtype=np.bool_)
    one, other = [], []
    for record, draw in zip(wanted.tolist(), generator.random(len(wanted)).tolist(), strict=True):
        if taken[record]:
            continue
        partner = _partner(pools[int(cells[record])], int(areas[record]), draw, taken)
        if partner is not None:
            taken[record] = taken[partner] = True
            one.append(record)
            other.append(partner)
    return np.array(one, dtype=np.int64), np.array(other, dtype=np.int64)


def _pools(
    wanted: Ints, cells: Ints, areas: Ints, free: Flags, generator: np.random.Generator
) -> dict[int, dict[int, list[int]]]:
    """Return by cell and area the free records, in random order."""
    rows = generator.permutation(np.flatnonzero(free & np.isin(cells, wanted)))
    pools: dict[int, dict[int, list[int]]] = {int(cell): {} for cell in wanted}
    for record, cell, area in zip(
        rows.tolist(), cells[rows].tolist(), areas[rows].tolist(), strict=True
    ):
        pools[cell].setdefault(area, []).append(record)
    return pools


def _partner(pool: dict[int, list[int]], own: int, draw: float, taken: Flags) -> int | None:
    for ones in pool.values():
        while ones and taken[ones[-1]]:
            ones.pop()
    others = [(area, len(ones)) for area, ones in pool.items() if area != own and ones]
    at = draw * sum(count for _, count in others)
    for area, count in others:
        if at < count:
            return pool[area].pop()
        at -= count
    return None
