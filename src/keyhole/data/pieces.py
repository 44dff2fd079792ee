"""Files read in pieces, however large, by the same readers as `load` has.

What a column holds is told from its different values, a few of its first ones and how often each
comes: whatever `load` would have made of the whole column follows from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.apart import is_everything_apart
from keyhole.core.options import Problem
from keyhole.data import statistical
from keyhole.data.columns import Variable
from keyhole.data.describing import Facts, Request, describe, describe_text, spread
from keyhole.data.formats import find_format, require_file
from keyhole.data.frames import from_arrow, read_facts, require_packed, unreadable
from keyhole.data.guarding import is_small_arrow, probe_apart, read_apart
from keyhole.data.text import TextFile, open_text
from keyhole.errors import ColumnError, FileError, OptionError

Batch = Mapping[str, Any]
"""By column an array of Arrow; all of one length."""

_FEWEST_ROWS, _MOST_ROWS = 1 << 13, 1 << 20
_ROW_BYTES = 16


class Pieces(ABC):
    """A file that is read in pieces, as often as it is asked for.

    What a format tells of its columns, their types and facts, is set when it is opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path()
        self.names: tuple[str, ...] = ()
        self.types: dict[str, pl.DataType] = {}
        self._facts: dict[str, Facts] = {}

    @abstractmethod
    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        """Yield pieces of the chosen columns, each of about so many bytes."""

    def values(self, name: str, values: Any) -> pl.Series:
        """Return values of a column, given as an array of Arrow, as `load` would read them."""
        import pyarrow as pa  # type: ignore[import-untyped]

        series = from_arrow(pa.table({name: values}))[name]
        wanted = self.types.get(name, series.dtype)
        return series if series.dtype == wanted else series.cast(wanted)

    def described(self, column: pl.Series, request: Request) -> tuple[pl.Series, Variable]:
        """Return a column as `load` would keep it, and what is known of it."""
        (variable,) = describe(column.to_frame(), request, self._facts)
        return column, variable

    def finish(self) -> None:  # noqa: B027
        """Say what shows itself to be wrong only when all has been read."""


def open_pieces(
    path: Path,
    copy: Callable[[], Path],
    memory: int | None = None,
    /,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Pieces:
    """Open a file that is to be read in pieces.

    `copy` gives a place for a copy of a text that is packed or not in UTF-8; a reader in a process
    of its own may take `memory` bytes.
    """
    require_file(path)
    form = find_format(path)
    if form == "text":
        return _Text(open_text(path, copy, encoding=encoding, delimiter=delimiter))
    if form == "Excel" or is_small_arrow(path, form):
        # A sheet has a million rows at most.
        columns, _, facts = read_apart(path, form, Request(), sheet=sheet, memory=memory)
        return FramePieces(spread(columns), facts)
    if form in ("Parquet", "Arrow"):
        if is_everything_apart():
            probe_apart(path, form, None, memory)
        return _Parquet(path) if form == "Parquet" else _Arrow(path)
    return _Statistical(path, form, encoding, memory)


def _rows(size: int, columns: int) -> int:
    return min(max(size // (_ROW_BYTES * max(columns, 1)), _FEWEST_ROWS), _MOST_ROWS)


class _Text(Pieces):
    def __init__(self, file: TextFile) -> None:
        super().__init__()
        self._file, self.names = file, file.names

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        for batch in self._file.batches(chosen, size):
            yield dict(zip(chosen, batch.columns, strict=True))

    def values(self, name: str, values: Any) -> pl.Series:
        return pl.Series(name, values, dtype=pl.String)

    def described(self, column: pl.Series, request: Request) -> tuple[pl.Series, Variable]:
        frame, (variable,), _ = describe_text({column.name: column}, request)
        return frame.to_series(), variable

    def finish(self) -> None:
        self._file.check_quotes()


@contextmanager
def _sound(path: Path, form: str) -> Iterator[None]:
    """Say so if a file of Parquet or Arrow cannot be read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError):
        raise unreadable(path, form) from None


class _Parquet(Pieces):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with _sound(path, "Parquet"):
            opened = self._open()
            self._facts.update(read_facts(opened.metadata.metadata))
            self.names = tuple(opened.schema_arrow.names)
        try:
            self.types.update(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            self.types.clear()  # it has types that Polars has not

    def _open(self, chosen: Sequence[str] = ()) -> Any:
        from pyarrow import parquet

        texts = [name for name in chosen if self.types.get(name) == pl.String]
        return parquet.ParquetFile(self.path, read_dictionary=texts)

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        with _sound(self.path, "Parquet"):
            file = self._open(chosen)
            require_packed(self.path, file.metadata, chosen, whole=False)
            for batch in file.iter_batches(_rows(size, len(chosen)), columns=list(chosen)):
                batch.validate(full=True)  # else a changed byte leads outside of a dictionary
                yield {name: batch.column(name) for name in chosen}


class _Arrow(Pieces):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with _sound(path, "Arrow"), self._opened() as file:
            self._facts.update(read_facts(file.schema.metadata))
            self.names = tuple(file.schema.names)
            self.types.update(_types(file.schema))

    def _opened(self) -> Any:
        import pyarrow as pa
        from pyarrow import ipc

        return ipc.open_file(pa.memory_map(str(self.path)))

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        rows = _rows(size, len(chosen))
        with _sound(self.path, "Arrow"), self._opened() as file:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                batch.validate(full=True)  # else a changed byte leads outside of the file
                for start in range(0, batch.num_rows, rows):
                    some = batch.slice(start, rows)
                    yield {name: some.column(name) for name in chosen}


def _types(schema: Any) -> dict[str, pl.DataType]:
    """Return the types of the columns, but for those that no frame has."""
    import pyarrow as pa

    found: dict[str, pl.DataType] = {}
    for field in schema:
        with suppress(ColumnError):
            found |= from_arrow(pa.schema([field]).empty_table()).schema
    return found


class _Statistical(Pieces):
    """A file of SAS, SPSS or Stata; what it says of a column is known once it has been read."""

    def __init__(self, path: Path, form: str, encoding: str | None, memory: int | None) -> None:
        super().__init__(path)
        self._form, self._encoding = form, encoding
        probe_apart(path, form, encoding, memory)
        _, self._about = statistical.read_with_metadata(path, form, encoding, metadataonly=True)
        if not self._about.column_names:
            raise FileError(f"{path.name!r} has no columns. Give a file with a header and records.")
        self.names = tuple(self._about.column_names)

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        rows, start = _rows(size, len(chosen)), 0
        while True:
            cells, about = statistical.read_with_metadata(
                self.path, self._form, self._encoding,
                usecols=list(chosen), row_offset=start, row_limit=rows,
            )  # fmt: skip
            if not len(cells):
                return
            yield {name: self._plain(cells[name], about) for name in chosen}
            start += len(cells)

    def _plain(self, series: pl.Series, about: Any) -> Any:
        """Bring the pieces of a column to one type: they differ by what is missing in them."""
        name = series.name
        tags = self._form != "SPSS" and about.missing_user_values.get(name)
        if tags or series.dtype == pl.Object:
            template = (
                "column {0!r} has user-defined missing values, such as .a, which only {engine} "
                "memory reads from {1}. Write the file as Parquet on a machine with enough memory, "
                "or leave the column out."
            )
            raise OptionError(Problem(template, name, self._form))
        if series.dtype == pl.Null:
            text = self._about.readstat_variable_types.get(name) == "string"
            series = series.cast(pl.String if text else pl.Float64)
        series = series.cast(pl.Float64) if series.dtype.is_numeric() else series
        return series.alias("").to_arrow()

    def described(self, column: pl.Series, request: Request) -> tuple[pl.Series, Variable]:
        kept, facts = statistical.read_column(column.name, column, self._about, self._form)
        (variable,) = describe(kept.to_frame(), request, {column.name: facts})
        return kept, variable


class FramePieces(Pieces):
    """A frame in memory, in pieces like the others."""

    def __init__(self, frame: pl.DataFrame, facts: Mapping[str, Facts] | None = None) -> None:
        super().__init__()
        self._facts.update(facts or {})
        self._frame, self.names = frame, tuple(frame.columns)
        self.types.update(frame.schema)

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Batch]:
        """Yield pieces of the chosen columns, each of about so many bytes."""
        rows = _rows(size, len(chosen))
        for start in range(0, self._frame.height, rows):
            some = self._frame.slice(start, rows)
            yield {name: some[name].alias("").to_arrow() for name in chosen}
