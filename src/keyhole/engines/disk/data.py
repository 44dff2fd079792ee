"""A file too large for memory: what is known of its columns, and their codes in mapped files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.data.describing import Request
from keyhole.data.formats import suffix_of
from keyhole.data.microdata import Microdata
from keyhole.data.pieces import Pieces, open_pieces
from keyhole.engines.asked import AskedColumns
from keyhole.engines.disk.encoding import EncodedColumn, encode_pieces
from keyhole.engines.disk.folder import WorkFolder
from keyhole.engines.rooms import copied, parts

__all__ = ["DiskData"]

# What a value takes in a column of values, about, and while it is made.
VALUE_BYTES = 48


class DiskData(AskedColumns):
    """The columns of a file as codes on disk; it offers what a stage needs of `Microdata`.

    Columns are encoded when they are first asked for, all those together that have been named
    by then (`require`), so that the file is read once.

    Parameters
    ----------
    name
        What the data is called.
    names
        The columns, in the order of the file.
    folder
        Where the codes are.
    note
        Why the data is here rather than in memory, if nobody asked for it.
    """

    def __init__(
        self,
        name: str,
        names: Iterable[str],
        folder: WorkFolder,
        *,
        note: str = "",
    ) -> None:
        super().__init__(name, names, note=note)
        self.folder = folder
        self.roles: Mapping[str, str] = {}
        self._encoded: dict[str, EncodedColumn] = {}

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
        pieces = open_pieces(path, lambda: folder.file(".txt"), **options)
        chosen = request.choose(list(pieces.names), repr(path.name))
        called = name or path.name[: len(path.name) - len(suffix_of(path))] or "data"
        data = _FileData(called, chosen, folder, note=note)
        data.pieces, data.request, data.roles = pieces, request, request.roles
        return data

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

    def _column(self, name: str) -> EncodedColumn:
        self.require([name], purpose="column")
        with self._lock:
            if name not in self._encoded:
                fresh = [one for one in self._asked if one not in self._encoded]
                self._encoded.update(self._encode(fresh))
            return self._encoded[name]

    @property
    def records(self) -> int:
        """The number of records."""
        with self._lock:
            known = next(iter(self._encoded), next(iter(self._asked), self.names[0]))
        return len(self._column(known).codes.values)

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""
        return self._column(name).variable

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers, which lie in a mapped file."""
        return self._column(name).codes

    def column(self, name: str) -> pl.Series:
        """Return a column's values, missing ones null; the whole column must fit into memory."""
        codes = self.codes(name)
        size = len(codes.values) * VALUE_BYTES
        self.folder.require(size, f"reading column {name!r} as values")
        levels = codes.levels.clone()
        if codes.has_missing:
            levels = levels.extend_constant(None, 1)
        return levels.gather(codes.values).alias(name)

    def role(self, role: str) -> tuple[str, ...]:
        """Return the names of the columns that were given a role, in the order of the file."""
        return tuple(name for name in self.names if self.roles.get(name) == role)

    def select(self, names: Iterable[str]) -> DiskData:
        """Return the data with only these columns."""
        out = _Chosen(self.name, self.require(names), self.folder, note=self.note)
        out.whole, out.roles = self, self.roles
        return out

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of sampling weights; see `Microdata.weights`."""
        values = self.column(name)
        variable = Variable(name, "measure")
        return Microdata(values.to_frame(), (variable,)).weights(name)

    def filter(self, mask: npt.NDArray[np.bool_]) -> DiskData:
        """Return the records for which the mask is true."""
        out = _Filtered(self.name, self.names, self.folder, note=self.note)
        out.whole, out.mask, out.roles = self, mask, self.roles
        return out


class _FileData(DiskData):
    """A file that is read in pieces."""

    pieces: Pieces
    request: Request

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        return encode_pieces(self.pieces, names, self.request, self.folder)


class _MemoryData(DiskData):
    """Data that is in memory already."""

    data: Microdata

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        return {
            name: EncodedColumn(self.data.variable(name), _kept(self.data.codes(name), self.folder))
            for name in names
        }


class _Chosen(DiskData):
    """Some columns of other data."""

    whole: DiskData

    def _encode(self, names: list[str]) -> Mapping[str, EncodedColumn]:
        return {name: self.whole._column(name) for name in names}


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


def _kept(codes: Codes, folder: WorkFolder) -> Codes:
    return Codes(copied(codes.values, folder), codes.levels, codes.has_missing)
