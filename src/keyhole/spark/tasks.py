"""Tasks of Spark: they read texts with keyhole's own parser, and turn values into codes.

Everything here works on batches of Arrow and is sent to the workers, which therefore need keyhole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import compute

Batches = Iterator[Any]
ArrowTask = Callable[[Batches], Batches]

PIECE = 1 << 26
"""So many bytes of a text are parsed at a time; no cell may be longer."""
DENSE_CELLS = 1 << 18
MOST_HELD = 1 << 17
"""A task holds so many different values of a column before it hands them on."""


DATA_CHANGED = "the data changed while it was counted"


class ChangedError(RuntimeError):
    """The data is not what it was when its values were counted."""

    def __init__(self) -> None:
        super().__init__(DATA_CHANGED)


@contextmanager
def without_words() -> Iterator[None]:
    """Raise an error of a task anew by its name alone: Spark logs it, and it may quote a value."""
    try:
        yield
    except ChangedError:
        raise ChangedError from None
    except Exception as error:
        raise RuntimeError(type(error).__name__) from None


@dataclass(frozen=True, slots=True, eq=False)
class ValueCoding:
    """How the values of a column become codes; too many stay as they are, but for missing ones."""

    values: Any  # the different ones, an array of Arrow without null; None if there are too many
    codes: npt.NDArray[np.int32]  # of a missing value, and then theirs
    blank: Callable[[Any], npt.NDArray[np.bool_]] | None = None  # which values are missing
    has_missing: bool = True  # else none may come

    @property
    def size(self) -> int:
        """How many codes there may be."""
        return int(self.codes.max(initial=0)) + 1


def text_reader(names: Sequence[str], chosen: Sequence[str], **how: str | None) -> ArrowTask:
    """Return the task that reads text files, whose paths it gets, as columns of text."""
    names, chosen = tuple(names), list(chosen)

    def text(path: Path) -> Batches:
        from keyhole.data.pieces import open_pieces
        from keyhole.engines.storage import WorkFolder

        with closing(WorkFolder()) as folder:
            pieces = open_pieces(path, lambda: folder.file(".txt"), **how)
            require_header(path, pieces.names, names)
            for batch in pieces.batches(chosen, PIECE):
                columns = [batch[name].cast(pa.string()) for name in chosen]
                yield pa.RecordBatch.from_arrays(columns, names=positions(len(chosen)))
            pieces.finish()

    def read(batches: Batches) -> Batches:
        with without_words():
            for batch in batches:
                for path in batch.column(0).to_pylist():
                    yield from text(Path(path))

    return read


def require_header(path: Path, found: Sequence[str], names: Sequence[str]) -> None:
    """Say so if a file of a folder has other columns than the first one."""
    from keyhole.errors import FileError

    if tuple(found) != tuple(names):
        raise FileError(
            f"{path.name!r} must have the same columns, in the same order, as the first file of "
            f"its folder. Got others instead: bring them to one form."
        )


def positions(columns: int) -> list[str]:
    """Name values by their places."""
    return [f"v{place}" for place in range(columns)]


def value_counter(columns: int) -> ArrowTask:
    """Return the task that counts the records of each value of so many columns.

    It gives the place of a column, the records, and the value in a column of its own, v0, v1 and
    so on; the others are null there. A value may come more than once.
    """

    def count(batches: Batches) -> Batches:
        held: list[_Values] = []
        with without_words():
            for batch in batches:
                held = held or [_Values(place, batch.schema.types) for place in range(columns)]
                for values, column in zip(held, batch.columns, strict=True):
                    values.add(column)
                    if values.are_many():
                        yield values.batch()
            for values in held:
                yield values.batch()

    return count


class _Values:
    """The different values of one column so far, with their records."""

    def __init__(self, place: int, types: Sequence[Any]) -> None:
        self._place, self._types = place, types
        self._tables: list[Any] = []
        self._rows = 0

    def add(self, column: Any) -> None:
        counted = plain_floats(column).value_counts()
        self._tables.append(pa.table({"v": counted.field(0), "n": counted.field(1)}))
        self._rows += len(counted)

    def are_many(self) -> bool:
        """Tell whether so many are held, even when the same are put together."""
        if self._rows > MOST_HELD:
            self._merge()
        return self._rows > MOST_HELD // 2

    def _merge(self) -> None:
        merged = pa.concat_tables(self._tables).group_by("v").aggregate([("n", "sum")])
        self._tables = [merged.select(["v", "n_sum"]).rename_columns(["v", "n"])]
        self._rows = len(merged)

    def batch(self) -> Any:
        """Hand on what is held."""
        self._merge()
        table, rows = self._tables[0].combine_chunks(), self._rows
        self._tables, self._rows = [table.slice(0, 0)], 0
        values = [pa.nulls(rows, kind) for kind in self._types]
        values[self._place] = pa.concat_arrays(table.column("v").chunks)
        counts = pa.concat_arrays(table.column("n").chunks).cast(pa.int64())
        places = pa.array(np.full(rows, self._place, dtype=np.int32))
        names = ["place", "n", *positions(len(values))]
        return pa.RecordBatch.from_arrays([places, counts, *values], names=names)


def code_type(size: int) -> np.dtype[Any]:
    """Return the smallest type of Spark's that holds so many codes."""
    return np.dtype(np.int8 if size <= 1 << 7 else np.int16 if size <= 1 << 15 else np.int32)


def coder(codings: Sequence[ValueCoding], *, keep: bool = False, small: bool = False) -> ArrowTask:
    """Return the task that turns the first columns of values into codes c0, c1 and so on.

    With `keep` the values go out too, all of them, before the codes; with `small` codes are of
    the smallest type that holds them (`code_type`), else of four bytes.
    """
    if small:
        codings = [replace(c, codes=c.codes.astype(code_type(c.size))) for c in codings]

    def encode(batches: Batches) -> Batches:
        with without_words():
            for batch in batches:
                named = dict(zip(batch.schema.names, batch.columns, strict=True)) if keep else {}
                for place, coding in enumerate(codings):
                    named[f"c{place}"] = _coded(batch.column(place), coding)
                yield pa.RecordBatch.from_arrays(list(named.values()), names=list(named))

    return encode


def _coded(column: Any, coding: ValueCoding) -> Any:
    column = plain_floats(column)
    if coding.values is None:
        blank = coding.blank(column) if coding.blank is not None else None
        if blank is None or not blank.any():
            return column
        return compute.if_else(pa.array(~blank), column, pa.scalar(None, column.type))
    values = plain_floats(coding.values)
    values = values.cast(column.type) if values.type != column.type else values
    places = compute.index_in(column, value_set=values)
    if places.null_count != column.null_count or (column.null_count and not coding.has_missing):
        raise ChangedError
    found = places.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    return pa.array(coding.codes[found])


def plain_floats(column: Any) -> Any:
    """Return an array in which equal numbers have equal bits: no -0.0, and NaN is missing."""
    if not pa.types.is_floating(column.type):
        return column
    column = compute.add(column, pa.scalar(0, column.type))
    return compute.if_else(compute.is_nan(column), pa.scalar(None, column.type), column)


def pair_counter(pairs: Sequence[tuple[int, int]], sizes: Sequence[int]) -> ArrowTask:
    """Return the task that counts the occupied cells of pairs of columns.

    It gives for each pair, by its place, the numbers of its cells (row by row) and their
    records, once for all the records of the task.
    """

    def count(batches: Batches) -> Batches:
        held = [_Cells(sizes[a] * sizes[b]) for a, b in pairs]
        with without_words():
            for batch in batches:
                columns = [one.to_numpy().astype(np.int64) for one in batch.columns]
                for (a, b), cells in zip(pairs, held, strict=True):
                    cells.add(columns[a] * sizes[b] + columns[b])
            for place, cells in enumerate(held):
                yield from cells.batches(place)

    return count


class _Cells:
    """The occupied cells of one table: all counted in an array, or where that is long, merged."""

    def __init__(self, most: int) -> None:
        self._dense = np.zeros(most, dtype=np.int64) if most <= DENSE_CELLS else None
        self._cells = self._counts = np.zeros(0, dtype=np.int64)
        self._fresh: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._waiting = 0

    def add(self, cells: npt.NDArray[np.int64]) -> None:
        if self._dense is not None:
            self._dense += np.bincount(cells, minlength=len(self._dense))
            return
        fresh = np.unique(cells, return_counts=True)
        self._fresh.append(fresh)
        self._waiting += len(fresh[0])
        # To merge every batch with all that is held would take the square of the records.
        if self._waiting >= max(len(self._cells), DENSE_CELLS):
            self._merge()

    def _merge(self) -> None:
        parts = [(self._cells, self._counts), *self._fresh]
        cells, counts = (np.concatenate(some) for some in zip(*parts, strict=True))
        self._cells, which = np.unique(cells, return_inverse=True)
        self._counts = np.bincount(which, weights=counts).astype(np.int64)
        self._fresh, self._waiting = [], 0

    def batches(self, place: int) -> Batches:
        if self._dense is None:
            self._merge()
            cells, counts = self._cells, self._counts
        else:
            cells = np.flatnonzero(self._dense)
            counts = self._dense[cells]
        places = np.full(len(cells), place, dtype=np.int32)
        if len(cells):
            yield pa.RecordBatch.from_pydict({"pair": places, "cell": cells, "n": counts})
