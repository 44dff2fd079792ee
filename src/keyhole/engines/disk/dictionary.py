"""A column's different values, numbered as they come, and the numbers of all its records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.arrow import from_arrow
from keyhole.data.columns import require_flat
from keyhole.engines.disk.folder import refused
from keyhole.engines.rooms import ROWS_AT_ONCE, Room
from keyhole.engines.sizes import written
from keyhole.errors import ColumnError, OptionError

__all__ = ["GLANCE", "Dictionary"]

Ids = npt.NDArray[np.int64]

# So many of the first records are kept as they come: `load` looks at no more to guess a kind.
GLANCE = 10_000
# So many of the first values that are not missing: `load` looks at no more to guess a type.
FILLED = 500
MISSING = 0
LEVEL_BYTES = 120
"""What a different value takes, about, with all that is made of it."""
TIMES = 6
"""So many times the size of the values is taken, about, where they are long."""


class _TooManyError(Exception):
    """A column has more different values than may be held."""


class Dictionary:
    """Numbers the values of one column, 0 for a missing one, and writes the numbers to a file.

    Parameters
    ----------
    name
        The column's name.
    path
        A new file for the numbers, each in as few bytes as it takes by then.
    memory
        What the different values may take.
    gives_up
        Whether a column with more of them is given up; else that is an error.
    """

    def __init__(self, name: str, path: Path, memory: int, *, gives_up: bool = False) -> None:
        self.name, self._path, self._memory = name, path, memory
        self._gives_up, self.problem = gives_up, ""
        self._passed = 0
        self._file = path.open("xb")
        self._stretches: list[tuple[np.dtype[Any], int]] = []
        self.values: Any = None
        self.counts: Ids = np.zeros(1, dtype=np.int64)
        self.first: Ids = np.zeros(0, dtype=np.int64)
        self.filled: Ids = np.zeros(0, dtype=np.int64)

    @property
    def records(self) -> int:
        """The number of records so far."""
        return self._passed

    def add(self, array: Any) -> None:
        """Number one more piece of the column; nothing is done for one that was given up."""
        self._passed += len(array)
        if self.problem:
            return
        local = self._local(array)
        places = _places(local.indices)
        counts = np.bincount(places, minlength=len(local.dictionary) + 1)
        try:
            numbers = self._numbered(local.dictionary, counts)
        except _TooManyError as error:
            self._give_up(str(error))
            return
        np.add.at(self.counts, numbers, counts)
        table = numbers.astype(np.min_scalar_type(len(self.counts) - 1))
        ids = np.take(table, places, mode="clip")  # no place is beyond it: this is the fast way
        self._remember(ids)
        self._write(ids)
        self._stretches.append((ids.dtype, len(ids)))

    def _write(self, ids: npt.NDArray[Any]) -> None:
        with self._room():
            self._file.write(ids.data)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Say so if the disk is full."""
        try:
            yield
        except OSError as error:
            raise refused(self._path.parent.parent, error) from None

    def _local(self, array: Any) -> Any:
        """Return a piece as places in a dictionary of its own."""
        import pyarrow as pa  # type: ignore[import-untyped]

        if pa.types.is_dictionary(array.type):
            return array
        try:
            return array.dictionary_encode()
        except pa.ArrowNotImplementedError:
            # Lists and the like are told as `load` tells them.
            require_flat(from_arrow(pa.table({self.name: array.slice(0, 0)}))[self.name])
            raise ColumnError(
                f"column {self.name!r} is of Arrow's type {str(array.type)!r}, which is not "
                f"supported: leave it out, or turn it into numbers or text."
            ) from None

    def _numbered(self, values: Any, counts: Ids) -> Ids:
        """Return the number of each place that any record has, the first for a missing value."""
        out = np.zeros(len(counts), dtype=np.int64)
        used = counts[1:] > 0
        if values.null_count:
            used &= values.is_valid().to_numpy(zero_copy_only=False)
        chosen = np.flatnonzero(used)
        out[chosen + 1] = self._known(values.take(_arrow(chosen)))
        return out

    def _known(self, values: Any) -> Ids:
        """Return the numbers of values, new ones added."""
        import pyarrow as pa
        from pyarrow import compute

        if self.values is None:
            self.values = values.slice(0, 0)
        places = compute.index_in(values, value_set=self.values)
        fresh = values.filter(places.is_null())
        if len(fresh):
            self.values = pa.concat_arrays([self.values, fresh])
            self.counts = np.append(self.counts, np.zeros(len(fresh), dtype=np.int64))
            self._require_few()
            places = compute.index_in(values, value_set=self.values)
        numbers: Ids = places.to_numpy(zero_copy_only=False).astype(np.int64) + 1
        return numbers

    def _require_few(self) -> None:
        held = ""
        if len(self.values) > self._memory // LEVEL_BYTES:
            held = f"more than {self._memory // LEVEL_BYTES:,} different values"
        elif self.values.nbytes > self._memory // TIMES:
            held = f"different values of more than {written(self._memory // TIMES)}"
        if held:
            raise _TooManyError(
                f"column {self.name!r} has {held}, more than the memory that it may use holds. "
                f"Leave the column out, which sets nearly every record apart, or give more "
                f"(--memory)."
            )

    def _give_up(self, problem: str) -> None:
        if not self._gives_up:
            raise OptionError(problem)
        self.problem, self.values = problem, None
        self.counts = np.zeros(1, dtype=np.int64)

    def _remember(self, ids: npt.NDArray[Any]) -> None:
        if len(self.first) < GLANCE:
            self.first = np.append(self.first, ids[: GLANCE - len(self.first)])
        if len(self.filled) < FILLED:
            filled = ids[ids != MISSING]
            self.filled = np.append(self.filled, filled[: FILLED - len(self.filled)])

    def recoded(self, codes: npt.NDArray[Any], room: Room) -> npt.NDArray[Any]:
        """Return the code of each record, given that of each number."""
        with self._room():
            self._file.close()
        out = room.empty(self.records, codes.dtype)
        at = 0
        with self._path.open("rb") as file:
            for kind, length in self._stretches:
                left = length
                while left:
                    ids = np.fromfile(file, kind, min(left, ROWS_AT_ONCE))
                    out[at : at + len(ids)] = np.take(codes, ids, mode="clip")
                    at, left = at + len(ids), left - len(ids)
        return out

    def drop(self) -> None:
        """Remove the file."""
        with suppress(OSError):  # what could not be written is not missed any more
            self._file.close()
        self._path.unlink(missing_ok=True)


def _places(indices: Any) -> npt.NDArray[Any]:
    """Return the places of a dictionary's values from 1 on, 0 for a missing one."""
    if indices.null_count or str(indices.type) != "int32":
        indices = indices.cast("int64").fill_null(-1)
    places: npt.NDArray[Any] = indices.to_numpy(zero_copy_only=False) + 1
    return places


def _arrow(numbers: Ids) -> Any:
    import pyarrow as pa

    return pa.array(numbers)
