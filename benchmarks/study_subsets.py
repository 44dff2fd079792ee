"""Unicity as loops over all sets of variables: cells with one PUF and one EIF record."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.rivals import CORES
from benchmarks.study_answers import Found, smallest_sets
from keyhole.reidentification.variables import LinkCodes

Ints = npt.NDArray[np.int64]
Mates = tuple[Ints, Ints]


class Sets:
    """Answers each set of variables with the pairs that are alone in a cell of it."""

    name: ClassVar[str]
    kind: ClassVar[str] = "numpy"

    def __init__(self, variables: Sequence[LinkCodes]) -> None:
        self.variables = variables
        self.complete = [
            [getattr(v, file) != v.missing for v in variables] for file in ("puf", "eif")
        ]

    def find(self, queries: int) -> Found:  # noqa: ARG002
        """Find the pairs of all sets; there is no asking for some of the records."""
        parts = [
            (puf, eif, np.full(len(puf), mask, np.int64))
            for mask, (puf, eif) in self.answers(list(self._sets()))
        ]
        return smallest_sets(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _sets(self) -> Iterator[tuple[int, ...]]:
        count = len(self.variables)
        for size in range(1, count + 1):
            yield from itertools.combinations(range(count), size)

    def answers(self, sets: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Mates]]:
        """Yield the mask and the pairs of each set, worked on by all cores."""
        with ThreadPoolExecutor(CORES) as pool:
            masks = [sum(1 << v for v in chosen) for chosen in sets]
            yield from zip(masks, pool.map(self.mates, sets), strict=True)

    def mates(self, chosen: tuple[int, ...]) -> Mates:
        """Find the pairs of a set."""
        raise NotImplementedError


class _Packed(Sets):
    """A 64-bit integer a record: under a set's mask it stands for the cell."""

    def __init__(self, variables: Sequence[LinkCodes]) -> None:
        super().__init__(variables)
        bits = [(v.size - 1).bit_length() for v in variables]
        starts = [0, *itertools.accumulate(bits)]
        self.bits = starts[-1]
        self.masks = [((1 << b) - 1) << at for b, at in zip(bits, starts, strict=False)]
        self.packed = [
            sum(
                getattr(v, f).astype(np.int64) << at
                for v, at in zip(variables, starts, strict=False)
            )
            for f in ("puf", "eif")
        ]

    def cells(self, chosen: tuple[int, ...], file: int) -> tuple[Ints, Ints]:
        """Return the records of a file that are complete on the set, and their cells."""
        rows = np.flatnonzero(np.logical_and.reduce([self.complete[file][v] for v in chosen]))
        return rows, self.packed[file][rows] & sum(self.masks[v] for v in chosen)


class SetsByUnique(_Packed):
    """`np.unique` on both sides, and a join of the cells of one record each."""

    name: ClassVar[str] = "NumPy, unique and join"

    def mates(self, chosen: tuple[int, ...]) -> Mates:
        """Find the pairs of a set."""
        alone = []
        for file in (0, 1):
            rows, cells = self.cells(chosen, file)
            values, first, counts = np.unique(cells, return_index=True, return_counts=True)
            alone.append((values[counts == 1], rows[first[counts == 1]]))
        (left, puf), (right, eif) = alone
        _, at, there = np.intersect1d(left, right, assume_unique=True, return_indices=True)
        return puf[at], eif[there]


class SetsBySorting(_Packed):
    """Both files in one array of integers, each cell followed by the record's number, sorted.

    Only where cell and number fit into 64 bits together.
    """

    name: ClassVar[str] = "NumPy, sorted together"

    def __init__(self, variables: Sequence[LinkCodes]) -> None:
        super().__init__(variables)
        self.most = max(len(v) for v in (variables[0].puf, variables[0].eif))
        self.shift = self.most.bit_length() + 1
        if self.bits + self.shift >= 64:
            raise ValueError("cell and record number must fit into 64 bits")

    def mates(self, chosen: tuple[int, ...]) -> Mates:
        """Find the pairs of a set."""
        parts = []
        for file in (0, 1):
            rows, cells = self.cells(chosen, file)
            parts.append((cells << self.shift) | (rows << 1) | file)
        both = np.concatenate(parts)
        both.sort()
        cells = both >> self.shift
        fresh = np.concatenate([[True], cells[1:] != cells[:-1], [True]])
        two = np.flatnonzero(fresh[:-2] & ~fresh[1:-1] & fresh[2:])
        two = two[((both[two] ^ both[two + 1]) & 1).astype(np.bool_)]
        pair = np.stack([both[two], both[two + 1]])
        rows = (pair >> 1) & ((1 << (self.shift - 1)) - 1)
        turned = (pair[0] & 1).astype(np.bool_)
        return np.where(turned, rows[1], rows[0]), np.where(turned, rows[0], rows[1])


class SetsBySql(Sets):
    """One `GROUP BY` query a set over both files in DuckDB, on all cores."""

    name: ClassVar[str] = "DuckDB"
    kind: ClassVar[str] = "sql"

    def __init__(self, variables: Sequence[LinkCodes]) -> None:
        super().__init__(variables)
        frames = [self._frame(file, side) for side, file in enumerate(("puf", "eif"))]
        self._connection = duckdb.connect(config={"threads": CORES})
        self._connection.execute("SET enable_progress_bar = false")
        self._connection.register("given", pl.concat(frames).to_arrow())
        self._connection.execute("CREATE TABLE records AS SELECT * FROM given")
        self._connection.unregister("given")

    def _frame(self, file: str, side: int) -> pl.DataFrame:
        columns = {}
        for k, v in enumerate(self.variables):
            codes = pl.Series(getattr(v, file)).cast(pl.UInt16)
            columns[f"c{k}"] = codes.set(codes == v.missing, None)
        frame = pl.DataFrame(columns).with_row_index("record")
        return frame.with_columns(side=pl.lit(side, pl.UInt8))

    def answers(self, sets: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Mates]]:
        """Yield the mask and the pairs of each set; a query uses all cores by itself."""
        for chosen in sets:
            yield sum(1 << v for v in chosen), self.mates(chosen)

    def mates(self, chosen: tuple[int, ...]) -> Mates:
        """Find the pairs of a set."""
        names = [f"c{v}" for v in chosen]
        found = self._connection.execute(
            "SELECT sum(record) FILTER (side = 0) AS puf, sum(record) FILTER (side = 1) AS eif "
            f"FROM records WHERE {' AND '.join(f'{n} IS NOT NULL' for n in names)} "
            f"GROUP BY {', '.join(names)} HAVING count(*) = 2 AND sum(side) = 1"
        ).fetchnumpy()
        return found["puf"].astype(np.int64), found["eif"].astype(np.int64)
