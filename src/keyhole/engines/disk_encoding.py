"""Columns of a file read in pieces, as codes in mapped files: the codes that `load` would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.options import Problem
from keyhole.data.columns import Codes, Variable, encode, require_flat
from keyhole.data.describing import Request
from keyhole.data.frames import from_arrow
from keyhole.data.missing import blank
from keyhole.data.pieces import Pieces
from keyhole.data.text import TooLongError
from keyhole.engines.resources import format_size, in_threads
from keyhole.engines.storage import ROWS_AT_ONCE, Storage, WorkFolder, refusing
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Ints

# So many of the first records are kept as they come: `load` looks at no more to guess a kind.
GLANCE = 10_000
# So many of the first values that are not missing: `load` looks at no more to guess a type.
FILLED = 500
MISSING = 0
# What a different value takes, about, with all that is made of it; and how many times the size of
# the values is taken, where they are long.
LEVEL_BYTES, TIMES = 120, 6


class _TooManyError(Exception):
    """A column has more different values than may be held."""


@dataclass(slots=True, eq=False)
class Numbered:
    """A column's different values by number, from 1 on; a missing one is number 0.

    `values` is an array of Arrow, None if there are none; `counts` are the records of each number;
    `first` the numbers of the first records, `filled` of the first that are not missing.
    """

    name: str
    values: Any
    counts: Ints
    first: Ints
    filled: Ints

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.counts.sum())


class Dictionary(Numbered):
    """Numbers the values of one column, and writes the numbers to a file.

    `memory` is what the different values may take. A column with more of them is given up where
    it `gives_up`; else that is an error.
    """

    def __init__(self, name: str, folder: WorkFolder, memory: int, *, gives_up: bool) -> None:
        none = np.zeros(0, dtype=np.int64)
        super().__init__(name, None, np.zeros(1, dtype=np.int64), none, none)
        self._folder, self._memory, self._path = folder, memory, folder.file(".ids")
        self._gives_up, self.problem, self.seen = gives_up, "", 0
        self._file = self._path.open("xb")
        self._stretches: list[tuple[np.dtype[Any], int]] = []

    def add(self, array: Any) -> None:
        """Number one more piece of the column; nothing is done for one that was given up."""
        self.seen += len(array)
        if self.problem:
            return
        local = self._local(array)
        indices = local.indices  # from 1 on, 0 for a missing value
        if indices.null_count or str(indices.type) != "int32":
            indices = indices.cast("int64").fill_null(-1)
        places = indices.to_numpy(zero_copy_only=False) + 1
        counts = np.bincount(places, minlength=len(local.dictionary) + 1)
        try:
            numbers = self._numbered(local.dictionary, counts)
        except _TooManyError as error:
            if not self._gives_up:
                raise OptionError(error.args[0]) from None
            self.problem, self.values = error.args[0], None
            self.counts = np.zeros(1, dtype=np.int64)
            return
        np.add.at(self.counts, numbers, counts)
        table = numbers.astype(np.min_scalar_type(len(self.counts) - 1))
        ids = np.take(table, places, mode="clip")  # no place is beyond it: this is the fast way
        if len(self.first) < GLANCE:
            self.first = np.append(self.first, ids[: GLANCE - len(self.first)])
        if len(self.filled) < FILLED:
            filled = ids[ids != MISSING]
            self.filled = np.append(self.filled, filled[: FILLED - len(self.filled)])
        with refusing(self._folder.place):
            self._file.write(ids.data)
        self._stretches.append((ids.dtype, len(ids)))

    def _local(self, array: Any) -> Any:
        """Return a piece as places in a dictionary of its own."""
        import pyarrow as pa  # type: ignore[import-untyped]

        if pa.types.is_dictionary(array.type):
            plain = _without_views(array.dictionary)
            return pa.DictionaryArray.from_arrays(array.indices, plain, safe=False)
        try:
            return _without_views(array).dictionary_encode()
        except pa.ArrowNotImplementedError:
            # Lists and the like are told as `load` tells them.
            require_flat(from_arrow(pa.table({self.name: array.slice(0, 0)}))[self.name])
            raise ColumnError(
                f"column {self.name!r} is of Arrow's type {str(array.type)!r}, which is not "
                f"supported: leave it out, or turn it into numbers or text."
            ) from None

    def _numbered(self, values: Any, counts: Ints) -> Ints:
        """Return the number of each place that any record has, the first for a missing value."""
        import pyarrow as pa
        from pyarrow import compute

        out = np.zeros(len(counts), dtype=np.int64)
        used = counts[1:] > 0
        if values.null_count:
            used &= values.is_valid().to_numpy(zero_copy_only=False)
        chosen = np.flatnonzero(used)
        values = values.take(pa.array(chosen))
        if self.values is None:
            self.values = values.slice(0, 0)
        places = compute.index_in(values, value_set=self.values)
        fresh = values.filter(places.is_null())
        if len(fresh):
            self.values = pa.concat_arrays([self.values, fresh])
            self.counts = np.append(self.counts, np.zeros(len(fresh), dtype=np.int64))
            self._require_few()
            places = compute.index_in(values, value_set=self.values)
        out[chosen + 1] = places.to_numpy(zero_copy_only=False).astype(np.int64) + 1
        return out

    def _require_few(self) -> None:
        held, most = "", self._memory // LEVEL_BYTES
        if len(self.values) > most:
            held = f"more than {most:,} different values"
        elif self.values.nbytes > self._memory // TIMES:
            held = f"different values of more than {format_size(self._memory // TIMES)}"
        if held:
            template = (
                "column {0!r} has {1}, too many for the memory allowed. Nearly every record has "
                "its own value there: leave the column out, or allow more memory ({memory})."
            )
            raise _TooManyError(Problem(template, self.name, held))

    def recoded(self, codes: npt.NDArray[Any], storage: Storage) -> npt.NDArray[Any]:
        """Return the code of each record, given that of each number."""
        with refusing(self._folder.place):
            self._file.close()
        out = storage.empty(self.seen, codes.dtype)
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


def _without_views(array: Any) -> Any:
    """Return texts that are views, as Polars writes them, as plain ones, which can be taken."""
    import pyarrow as pa

    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


# With so few levels `load` may ask how often they come, and then no more than this matters.
FEW_LEVELS, ENOUGH = 64, 70
# A piece takes about this share of the memory, since several are under way at once.
PIECE_SHARE = 20
SMALLEST_PIECE, LARGEST_PIECE = 1 << 20, 1 << 26
# The different values of all columns together take at most this share.
VALUES_SHARE = 3


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """What is known of a column, and its codes."""

    variable: Variable
    codes: Codes


def encode_pieces(
    pieces: Pieces,
    names: Sequence[str],
    request: Request,
    folder: WorkFolder,
    *,
    what_fits: bool = False,
) -> tuple[Mapping[str, EncodedColumn], Mapping[str, str], int]:
    """Read the columns named once, and encode them.

    Also returns the columns that were given up, each with what is to be said of it, and the number
    of records. `what_fits` gives up columns with more different values than memory holds.
    """
    size = min(max(folder.memory // PIECE_SHARE, SMALLEST_PIECE), LARGEST_PIECE)
    found = _read(pieces, names, folder, size, what_fits)
    out: dict[str, EncodedColumn] = {}
    given_up = {one.name: one.problem for one in found if one.problem}
    problems: list[str] = []
    try:
        pieces.finish()
        for one in found:
            if one.problem:
                continue
            try:
                variable, codes, table = coded_values(one, pieces, request)
                values = one.recoded(table, folder)
                values.setflags(write=False)
                coded = Codes(values, codes.levels, codes.has_missing)
                out[one.name] = EncodedColumn(variable, coded)
            except InputError as error:
                problems += error.problems
    finally:
        _drop(found)
    if problems:
        raise ColumnError(problems)
    return out, given_up, found[0].seen if found else 0


def _read(
    pieces: Pieces, names: Sequence[str], folder: WorkFolder, size: int, what_fits: bool
) -> list[Dictionary]:
    """Number the values of every column, a piece of all columns at a time."""
    share = max(folder.memory // VALUES_SHARE // max(len(names), 1), folder.memory // 20)
    found = [Dictionary(name, folder, share, gives_up=what_fits) for name in names]
    try:
        for batch in pieces.batches(names, size):
            in_threads(lambda one, batch=batch: one.add(batch[one.name]), found)  # type: ignore[misc]
    except TooLongError:
        _drop(found)
        return _read(pieces, names, folder, 16 * size, what_fits)
    except BaseException:
        _drop(found)
        raise
    return found


def _drop(found: Iterable[Dictionary]) -> None:
    for one in found:
        one.drop()


def coded_values(
    found: Numbered, pieces: Pieces, request: Request
) -> tuple[Variable, Codes, npt.NDArray[Any]]:
    """Return what is known of a column, its levels, and the code of each different value.

    The codes returned are those of the records that stand for the column.
    """
    ids = _stand_ins(found)
    if found.values is None:
        import pyarrow as pa

        values = pieces.values(found.name, pa.nulls(1, pa.string()))
    else:  # by their numbers; the one of number 0 is missing
        values = pieces.values(found.name, found.values)
        values = pl.concat([pl.Series(values.name, [None], dtype=values.dtype), values])
    column, variable = pieces.described(values.gather(ids), request)
    codes = encode(blank(column, variable))
    # Every number is among the stand-ins if any record has it.
    table = np.zeros(len(found.counts), dtype=codes.values.dtype)
    table[ids] = codes.values
    return variable, codes, table


def _stand_ins(found: Numbered) -> Ints:
    """Return records' numbers that stand for the whole column.

    The first ones in order, then the first that are not missing, then what has not come yet,
    and where there are few values each as often as it comes, up to enough.
    """
    if found.records <= GLANCE:
        return found.first
    seen = int((found.first != MISSING).sum())
    out = np.concatenate([found.first, found.filled[seen:]])
    held = np.bincount(out, minlength=len(found.counts))
    wanted = np.minimum(found.counts, 1)
    if len(found.counts) <= FEW_LEVELS:
        wanted = np.minimum(found.counts, ENOUGH)
    rest = np.maximum(wanted - held, 0)
    return np.concatenate([out, np.repeat(np.arange(len(rest)), rest)])
