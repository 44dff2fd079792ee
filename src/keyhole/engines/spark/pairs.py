"""Tables of two columns, counted on the cluster by its tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from keyhole.engines.spark.data import SparkData
from keyhole.engines.spark.jobs import run
from keyhole.engines.spark.tasks import pair_counter

__all__ = ["MOST_CELLS", "comparable", "pair_tables"]

Ints = npt.NDArray[np.int64]

MOST_CELLS = 1 << 22
"""A pair of columns whose table could have more cells is not compared."""
CELLS_AT_ONCE = 1 << 24


def comparable(data: SparkData, first: str, second: str) -> bool:
    """Tell whether the table of two columns is small enough to come to the driver."""
    columns = data.encoded([first, second] if first != second else [first]).columns
    one, other = columns[first], columns[second]
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
