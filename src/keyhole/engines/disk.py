"""Data on disk: columns of a file too large for memory, as codes in mapped files."""
# ruff: noqa: D102 (what the methods of data are for is said once, in `Records`)

from __future__ import annotations

import errno
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.data.deriving import Derivation, derive_codes
from keyhole.data.describing import Request
from keyhole.data.formats import suffix_of
from keyhole.data.microdata import Microdata
from keyhole.data.missing import blank
from keyhole.data.pieces import Pieces, open_pieces
from keyhole.engines.disk_encoding import EncodedColumn, encode_pieces
from keyhole.engines.memory import LocalBackend
from keyhole.engines.protocol import AskedColumns
from keyhole.engines.storage import WorkFolder, copied, parts, refused
from keyhole.errors import ColumnError, FileError, OptionError

# What a value takes in a column of values, about, and while it is made.
VALUE_BYTES = 48
# What it takes to look at a column from all sides: if it has codes, and if not.
LOOK_BYTES, FINE_BYTES = 130, 300
FEWEST = 100_000
WHOLE_PIECE = 1 << 24


class DiskData(AskedColumns):
    """The columns of a file as codes on disk; it offers what a stage needs of `Microdata`.

    Columns are encoded when they are first asked for, with all that were named by then (`require`),
    so that the file is read once. `note` says why the data is here, if nobody asked for it.
    """

    def __init__(
        self, name: str, names: Iterable[str], folder: WorkFolder, *, note: str = ""
    ) -> None:
        super().__init__(name, names)
        self.folder, self.note = folder, note
        self.roles: Mapping[str, str] = {}
        self._encoded: dict[str, EncodedColumn] = {}
        self._given_up: dict[str, str] = {}
        self._variables: dict[str, Variable] = {}  # of those that were given up
        self._known_records: int | None = None

    @property
    def backend(self) -> LocalBackend:
        return LocalBackend(self.folder, (self.note,) if self.note else ())

    @classmethod
    def of_file(
        cls,
        path: Path,
        request: Request,
        folder: WorkFolder,
        *,
        name: str | None = None,
        note: str = "",
        **options: str | None,
    ) -> DiskData:
        """Open a file; `options` are the encoding, delimiter and sheet of `load`."""
        version = _version(path)
        try:
            pieces = open_pieces(path, lambda: folder.file(".txt"), folder.memory, **options)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise refused(folder.place, error) from None
        chosen = request.choose(list(pieces.names), repr(path.name))
        called = name or path.name[: len(path.name) - len(suffix_of(path))] or "data"
        data = _FileData(called, chosen, folder, note=note)
        data.pieces, data.request, data.roles = pieces, request, request.roles
        data.path, data.version = path, version
        return _Derived.of(data, request) if request.derived else data

    @classmethod
    def of_microdata(cls, data: Microdata, folder: WorkFolder) -> DiskData:
        """Take data that is in memory, whose codes are copied as they are asked for."""
        out = _MemoryData(data.name, data.names, folder)
        out.data = data
        out.roles = {one.name: one.role for one in data.variables if one.role}
        return out

    @abstractmethod
    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        """Encode columns that are asked for the first time."""

    def encode_what_fits(self, names: Iterable[str]) -> tuple[str, ...]:
        """Encode columns; return those with more different values than memory holds.

        These have no codes, but they can be looked at (`look`).
        """
        self.require(names, purpose="column")
        return ()

    def _fresh(self, names: Iterable[str]) -> list[str]:
        """Return the columns that have not been read yet."""
        return [one for one in names if one not in self._encoded and one not in self._given_up]

    def _read(self, name: str, most: int) -> tuple[pl.Series, Variable]:  # noqa: ARG002
        """Read the first records of a column that has no codes, as `load` would."""
        raise OptionError(self._given_up[name])

    def look(self, name: str, *, in_part: bool = False) -> pl.Series:
        """Return a column's values to be looked at from all sides.

        Of one that has no codes these are the first ones, as many as memory holds; of others only
        if a part of them is enough.
        """
        if name not in self._given_up:
            size = self.records * LOOK_BYTES
            if in_part and size > self.folder.memory:
                codes = self.codes(name)
                some = codes.values[: self.folder.memory // LOOK_BYTES]
                return codes.decoded(some).alias(name)
            self.folder.require(size, f"looking at what column {name!r} holds")
            return self.column(name)
        most = min(self.records, max(self.folder.memory // FINE_BYTES, FEWEST))
        values, self._variables[name] = self._read(name, most)
        return values

    def _column(self, name: str) -> EncodedColumn:
        self.require([name], purpose="column")
        if name in self._given_up:
            raise OptionError(self._given_up[name])
        with self._lock:
            if name not in self._encoded:
                self._encoded.update(self._encode(self._fresh(self._asked)))
            return self._encoded[name]

    @property
    def records(self) -> int:
        with self._lock:
            if self._known_records is not None:
                return self._known_records
            read = (name for name in self._encoded if name in self.names)
            known = next(read, next(iter(self._asked), self.names[0]))
        return len(self._column(known).codes.values)

    def variable(self, name: str) -> Variable:
        if name not in self._given_up:
            return self._column(name).variable
        if name not in self._variables:
            self._variables[name] = self._read(name, FEWEST)[1]
        return self._variables[name]

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers, which lie in a mapped file."""
        return self._column(name).codes

    def column(self, name: str) -> pl.Series:
        """Return a column's values, missing ones null; the whole column must fit into memory."""
        codes = self.codes(name)
        size = len(codes.values) * VALUE_BYTES
        self.folder.require(size, f"reading column {name!r} as values")
        return codes.decoded().alias(name)

    def role(self, role: str) -> tuple[str, ...]:
        """Return the names of the columns that were given a role, in the order of the file."""
        return tuple(name for name in self.names if self.roles.get(name) == role)

    def select(self, names: Iterable[str]) -> DiskData:
        """Return the data with only these columns."""
        out = _Derived(self.name, self.require(names), self.folder, note=self.note)
        out.whole, out.request, out.roles = self, Request(), self.roles
        return out

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of sampling weights; see `Microdata.weights`."""
        values = self.column(name).to_frame()
        return Microdata(values, (Variable(name, "measure"),)).weights(name)

    def filter(self, mask: npt.NDArray[np.bool_]) -> DiskData:
        out = _Filtered(self.name, self.names, self.folder, note=self.note)
        out.whole, out.mask, out.roles = self, mask, self.roles
        return out


class _FileData(DiskData):
    """A file that is read in pieces."""

    pieces: Pieces
    request: Request
    path: Path
    version: tuple[int, ...]

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        with self._unchanged():
            encoded, _, self._known_records = encode_pieces(
                self.pieces, names, self.request, self.folder
            )
        return encoded

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Say so if the file is not the one that was opened, before it is read or after."""
        self._require_same()
        yield
        self._require_same()

    def _require_same(self) -> None:
        if _version(self.path) != self.version:
            raise FileError(
                f"{self.path.name!r} was changed while it was being counted. Run this again when "
                f"nothing writes to the file."
            )

    def encode_what_fits(self, names: Iterable[str]) -> tuple[str, ...]:
        asked = self.require(names, purpose="column")
        with self._lock:
            if fresh := self._fresh(asked):
                with self._unchanged():
                    found, given_up, self._known_records = encode_pieces(
                        self.pieces, fresh, self.request, self.folder, what_fits=True
                    )
                self._encoded.update(found)
                self._given_up.update(given_up)
            return tuple(name for name in asked if name in self._given_up)

    def _read(self, name: str, most: int) -> tuple[pl.Series, Variable]:
        import pyarrow as pa  # type: ignore[import-untyped]

        arrays, left = [], most
        with self._unchanged():
            for batch in self.pieces.batches([name], WHOLE_PIECE):
                arrays.append(batch[name].slice(0, left))
                left -= len(arrays[-1])
                if left <= 0:
                    break
        values = self.pieces.values(name, pa.chunked_array(arrays).combine_chunks())
        column, variable = self.pieces.described(values, self.request)
        return blank(column, variable), variable


class _MemoryData(DiskData):
    """Data that is in memory already."""

    data: Microdata

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        out = {}
        for name in names:
            codes = self.data.codes(name)
            kept = Codes(copied(codes.values, self.folder), codes.levels, codes.has_missing)
            out[name] = EncodedColumn(self.data.variable(name), kept)
        return out


class _Derived(DiskData):
    """Some columns of other data, and columns derived from them; see `keyhole.data.deriving`."""

    whole: DiskData
    request: Request

    @classmethod
    def of(cls, whole: DiskData, request: Request) -> _Derived:
        names = (*whole.names, *request.making(whole.names))
        wanted = [n for n in names if request.columns is None or n in request.columns]
        out = cls(whole.name, wanted, whole.folder, note=whole.note)
        out.whole, out.request, out.roles = whole, request, request.roles
        return out

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        # Also those that nothing uses: a line that cannot be carried out is refused.
        every = [] if self._encoded else self.request.making(self.whole.names)
        made = [name for name in (*names, *every) if name in self.request.derived]
        own = [name for name in names if name not in self.request.derived]
        sources = [source for one in made for source in self._sources(self._derivation(one))]
        self.whole.require(dict.fromkeys([*own, *sources]))  # so that they are read together
        problems: dict[str, None] = {}
        for name in made:
            try:
                self._made(name)
            except ColumnError as error:
                problems |= dict.fromkeys(error.problems)
        if problems:
            raise ColumnError(problems)
        return {name: self._made(name) for name in names}

    def _derivation(self, name: str) -> Derivation:
        return Derivation.of(name, self.request.derived[name])

    def _sources(self, made: Derivation) -> list[str]:
        """Return the columns of the file that a derived one is made from, in the end."""
        derived = self.request.derived
        return [
            source
            for name in made.columns
            for source in (self._sources(self._derivation(name)) if name in derived else [name])
        ]

    def _made(self, name: str) -> EncodedColumn:
        if name not in self.request.derived:
            return self.whole._column(name)
        if name not in self._encoded:
            # Also those derived on the way, for which nobody asks.
            known = self._made
            steps = SimpleNamespace(
                variable=lambda one: known(one).variable, codes=lambda one: known(one).codes
            )
            variable, codes = derive_codes(steps, self._derivation(name), self.folder.empty)
            self._encoded[name] = EncodedColumn(self.request.declared(variable), codes)
        return self._encoded[name]

    def encode_what_fits(self, names: Iterable[str]) -> tuple[str, ...]:
        asked = self.require(names, purpose="column")
        own = [name for name in asked if name not in self.request.derived]
        if not own:
            return ()
        found = self.whole.encode_what_fits(own)
        self._given_up.update({name: self.whole._given_up[name] for name in found})
        self._known_records = self.whole.records
        return found

    def _read(self, name: str, most: int) -> tuple[pl.Series, Variable]:
        return self.whole._read(name, most)


class _Filtered(DiskData):
    """Some records of other data; the levels stay those of the whole."""

    whole: DiskData
    mask: npt.NDArray[np.bool_]

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        out = {}
        records = int(np.count_nonzero(self.mask))
        for name in names:
            codes = self.whole.codes(name)
            values, at = self.folder.empty(records, codes.values.dtype), 0
            for some in parts(len(codes.values)):
                held = codes.values[some][self.mask[some]]
                values[at : at + len(held)] = held
                at += len(held)
            of_these = Codes(values, codes.levels, codes.has_missing)
            out[name] = EncodedColumn(self.whole.variable(name), of_these)
        return out


def _version(path: Path) -> tuple[int, ...]:
    """Return what tells one version of a file from another; nothing if it is not there."""
    try:
        told = path.stat()
    except OSError:
        return ()
    return told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns
