"""Tables of two columns, counted on the cluster by its tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.engines.spark.data import SourceData, SparkData
from keyhole.engines.spark.jobs import run
from keyhole.engines.spark.levels import Column, FineColumnsError
from keyhole.engines.spark.tasks import pair_counter
from keyhole.kernels.arrays import Ints

__all__ = ["MOST_CELLS", "Known", "comparable", "look_at_columns", "pair_tables"]


MOST_CELLS = 1 << 22
"""A pair of columns whose table could have more cells is not compared."""
CELLS_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of some columns, by name, and of how many records."""

    columns: Mapping[str, Column]
    records: int


def look_at_columns(data: SparkData, names: Sequence[str]) -> Known:
    """Look at columns before any is encoded.

    Those of a text with too many values for Spark to tell their type are left out.
    """
    if not isinstance(data, SourceData):
        columns = data.encoded(names).columns
        return Known({name: columns[name] for name in names}, data.records)
    try:
        found = data.described(names)
    except FineColumnsError as error:
        rest = [name for name in names if name not in error.columns]
        if not rest:
            raise
        found = data.described(rest)
    return Known(found, next((column.records for column in found.values()), 0))


def comparable(one: Column, other: Column) -> bool:
    """Tell whether the table of two columns is small enough to come to the driver."""
    coded = one.levels is not None and other.levels is not None
    return coded and one.size * other.size <= MOST_CELLS


def pair_tables(
    data: SparkData, pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], tuple[Ints, Ints, Ints]]]:
    """Yield for each pair the counts of its occupied cells, and the row and column of each.

    Parameters
    ----------
    data
        The data.
    pairs
        Pairs of columns that are `comparable`.
    """
    if not pairs:
        return
    held = data.encoded(dict.fromkeys(itertools.chain.from_iterable(pairs)))
    sizes = {name: column.size for name, column in held.columns.items()}
    for some in _shared(pairs, sizes):
        names = list(dict.fromkeys(itertools.chain.from_iterable(some)))
        places = [(names.index(a), names.index(b)) for a, b in some]
        frame = held.view.frame.select(*(held.fields[name].name for name in names))
        task = pair_counter(places, [sizes[name] for name in names])
        counted = frame.mapInArrow(task, "pair int, cell bigint, n bigint")
        table = run(counted.groupBy("pair", "cell").sum("n")).sort_by(
            [("pair", "ascending"), ("cell", "ascending")]
        )
        which, cells, counts = (np.asarray(column) for column in table.columns)
        cuts = np.searchsorted(which, np.arange(len(some) + 1))
        for place, pair in enumerate(some):
            part = slice(cuts[place], cuts[place + 1])
            rows, cols = np.divmod(cells[part], sizes[pair[1]])
            yield pair, (counts[part], rows, cols)


def _shared(
    pairs: Sequence[tuple[str, str]], sizes: dict[str, int]
) -> Iterator[list[tuple[str, str]]]:
    """Cut the pairs into such as come to the driver together."""
    some: list[tuple[str, str]] = []
    cells = 0
    for pair in pairs:
        more = sizes[pair[0]] * sizes[pair[1]]
        if some and cells + more > CELLS_AT_ONCE:
            yield some
            some, cells = [], 0
        some.append(pair)
        cells += more
    if some:
        yield some
