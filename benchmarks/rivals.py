"""What a user would write instead: the cells of many keys, counted by well-known libraries.

Every rival gets the same encoded columns as keyhole's engine does, as small unsigned integers,
in the form it likes best, made before the clock starts. It answers each key with the number of
its cells and the number of its records in cells smaller than the cutoff.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Literal, Protocol

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
import polars as pl

from keyhole.data import Codes

Kind = Literal["loop", "patterns", "array"]
"""A plain loop in a frame engine, one over collapsed patterns, or arrays by hand."""
Key = tuple[str, ...]
Count = tuple[int, int]
Packed = npt.NDArray[np.int64]
Digits = tuple[Packed, int]
CUTOFF = 3
CORES = os.cpu_count() or 1


class Rival(Protocol):
    """Counts the cells of keys."""

    name: ClassVar[str]
    kind: ClassVar[Kind]

    def __init__(self, columns: Mapping[str, Codes]) -> None: ...

    def start(self) -> None:
        """Forget what an earlier run has found out."""

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:
        """Count the cells of each key; all are neighbours of the base."""


class Pandas:
    """One `groupby(...).size()` a key."""

    name: ClassVar[str] = "pandas"
    kind: ClassVar[Kind] = "loop"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        self._frame = pd.DataFrame({name: codes.values for name, codes in columns.items()})

    def start(self) -> None:
        """There is nothing to forget."""

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:  # noqa: ARG002
        return [self._one(key) for key in keys]

    def _one(self, key: Key) -> Count:
        sizes = self._frame.groupby(list(key), sort=False).size().to_numpy()
        return len(sizes), int(sizes[sizes < CUTOFF].sum())


class Polars:
    """One lazy `group_by(...).len()` a key; a step's queries are collected together."""

    name: ClassVar[str] = "Polars"
    kind: ClassVar[Kind] = "loop"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        self._frame = pl.DataFrame({name: codes.values for name, codes in columns.items()})

    def start(self) -> None:
        """There is nothing to forget."""

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:  # noqa: ARG002
        """Count the cells of each key."""
        lazy = self._frame.lazy()
        return _collect([lazy.group_by(key).len("size") for key in keys])


class PolarsPatterns:
    """As `Polars`, on the distinct patterns of the step's variables with their sizes."""

    name: ClassVar[str] = "Polars, patterns first"
    kind: ClassVar[Kind] = "patterns"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        frame = pl.DataFrame({name: codes.values for name, codes in columns.items()})
        self._frame = frame.with_columns(size=pl.lit(1, pl.UInt32))
        self.start()

    def start(self) -> None:
        self._patterns = self._frame

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:
        wanted = sorted({*base, *(name for key in keys for name in key)})
        if self._patterns is self._frame or len(wanted) + 1 < self._patterns.width:
            self._patterns = self._patterns.group_by(wanted).agg(pl.col("size").sum())
        lazy = self._patterns.lazy()
        return _collect([lazy.group_by(key).agg(pl.col("size").sum()) for key in keys])


def _collect(sizes: Sequence[pl.LazyFrame]) -> list[Count]:
    size = pl.col("size")
    asked = [
        s.select(pl.len().alias("cells"), size.filter(size < CUTOFF).sum().alias("at_risk"))
        for s in sizes
    ]
    return [(int(row[0]), int(row[1])) for row in (f.row(0) for f in pl.collect_all(asked))]


class DuckDB:
    """One `GROUP BY` query a key, on all cores."""

    name: ClassVar[str] = "DuckDB"
    kind: ClassVar[Kind] = "loop"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        frame = pl.DataFrame({name: codes.values for name, codes in columns.items()})
        self._connection = self.connect()
        self._connection.execute("SET enable_progress_bar = false")
        self._connection.register("given", frame.to_arrow())
        self._connection.execute("CREATE TABLE records AS SELECT * FROM given")
        self._connection.unregister("given")

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a database in memory."""
        return duckdb.connect(config={"threads": CORES})

    def start(self) -> None:
        """There is nothing to forget."""

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:  # noqa: ARG002
        return [self._one(key) for key in keys]

    def _one(self, key: Key) -> Count:
        ((cells, at_risk),) = self._ask(
            f"SELECT count(*), coalesce(sum(size) FILTER (size < {CUTOFF}), 0) FROM "
            f"(SELECT count(*) AS size FROM records GROUP BY {_listed(key)})"
        )
        return int(cells), int(at_risk)

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()


class DuckDBSets(DuckDB):
    """One query a step, with `GROUPING SETS`."""

    name: ClassVar[str] = "DuckDB, grouping sets"

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:  # noqa: ARG002
        names = sorted({name for key in keys for name in key})
        sets = ", ".join(f"({_listed(key)})" for key in keys)
        found = self._ask(
            f"SELECT which, count(*), coalesce(sum(size) FILTER (size < {CUTOFF}), 0) FROM "
            f"(SELECT grouping({_listed(names)}) AS which, count(*) AS size "
            f"FROM records GROUP BY GROUPING SETS ({sets})) GROUP BY which"
        )
        by_mask = {which: (int(cells), int(at_risk)) for which, cells, at_risk in found}
        return [by_mask[_grouping(names, key)] for key in keys]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _grouping(names: Sequence[str], key: Key) -> int:
    """Return what `grouping(names)` gives in the set: a bit for each name that is not in it."""
    return int("".join("0" if name in key else "1" for name in names), 2)


class PackedNumpy:
    """A 64-bit integer a record, sorted; the keys of a step on all cores.

    Where all variables fit into one integer each has bits of its own, and a key is a mask. Else
    a key's integers are made digit by digit, and numbered afresh before they overflow.
    """

    name: ClassVar[str] = "packed NumPy"
    kind: ClassVar[Kind] = "array"

    def __init__(self, columns: Mapping[str, Codes]) -> None:
        self._columns = {name: codes.values for name, codes in columns.items()}
        self._sizes = {name: codes.size for name, codes in columns.items()}
        self._records = len(next(iter(self._columns.values())))
        self.start()

    def start(self) -> None:
        """Lay the variables out, and pack them if they fit."""
        ends = np.cumsum([(size - 1).bit_length() for size in self._sizes.values()]).tolist()
        starts = dict(zip(self._sizes, [0, *ends], strict=False))
        self._masks = {
            name: (1 << end) - (1 << starts[name])
            for name, end in zip(self._sizes, ends, strict=True)
        }
        self._whole: Packed | None = None
        if ends[-1] < 64:
            self._whole = np.zeros(self._records, np.int64)
            for name, values in self._columns.items():
                self._whole |= values.astype(np.int64) << starts[name]

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:
        """Count the cells of each key."""
        shared = set(base).intersection(*keys)
        start = None
        if self._whole is None:
            start = self._digits([name for name in base if name in shared])
        with ThreadPoolExecutor(CORES) as pool:
            return list(pool.map(lambda key: self._one(key, shared, start), keys))

    def pack(
        self, key: Key, shared: AbstractSet[str] = frozenset(), start: Digits | None = None
    ) -> Packed:
        """Return an integer a record that stands for its values of the key."""
        if self._whole is not None:
            packed: Packed = self._whole & sum(self._masks[name] for name in key)
            return packed
        return self._digits([name for name in key if name not in shared], start)[0]

    def _digits(self, names: Sequence[str], start: Digits | None = None) -> Digits:
        """Append digits to the integers; return them and the number of values they can have."""
        packed, values = start or (np.zeros(self._records, np.int64), 1)
        packed = packed.copy()
        for name in names:
            if values * self._sizes[name] >= 1 << 63:
                distinct, packed = np.unique(packed, return_inverse=True)
                values = len(distinct)
            packed *= self._sizes[name]
            packed += self._columns[name]
            values *= self._sizes[name]
        return packed, values

    def _one(self, key: Key, shared: AbstractSet[str], start: Digits | None) -> Count:
        packed = self.pack(key, shared, start)
        packed.sort()
        edges = np.flatnonzero(packed[1:] != packed[:-1])
        sizes = np.diff(edges, prepend=-1, append=len(packed) - 1)
        return len(sizes), int(sizes[sizes < CUTOFF].sum())


RIVALS: tuple[type[Rival], ...] = (
    *(Pandas, Polars, PolarsPatterns, DuckDB, DuckDBSets, PackedNumpy),
)
