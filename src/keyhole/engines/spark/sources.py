"""Where the records come from: text files, Parquet, or a frame of Spark's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from keyhole.data.columns import require_flat
from keyhole.data.frames import from_arrow
from keyhole.data.pieces import FramePieces, Pieces
from keyhole.engines.disk_encoding import GLANCE
from keyhole.engines.spark.local_files import (
    LocalFiles,
    escaped,
    last_of,
    look_at,
    nanoseconds,
    read_footer,
)
from keyhole.engines.spark.tasks import PIECE, positions, require_header, text_reader
from keyhole.errors import ColumnError, FileError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "FrameSource",
    "ParquetSource",
    "Source",
    "TextSource",
    "open_source",
    "read_by",
]

HEAD = 1 << 20


class Source(Protocol):
    """Records on Spark, and what their values are by keyhole's own reader."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    @property
    def pieces(self) -> Pieces:
        """What tells the values, and what is known of a column."""
        ...

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        ...

    def head(self, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the first values of some columns as arrays of Arrow, if their order counts."""
        ...

    def check(self) -> None:
        """Say what is wrong with the data, when Spark failed on it."""
        ...


def open_source(path: str, session: SparkSession, **how: str | None) -> Source:
    """Open a file, a folder of files of one kind, or a place that only Spark reads.

    Parameters
    ----------
    path
        The path, or an address like ``hdfs://...``, where Parquet is expected.
    session
        Reads it.
    how
        The encoding and the delimiter, as in `load`.
    """
    seen = look_at(path, **how)
    if seen is None:
        return FrameSource(_read_parquet(session, [path], last_of(path)), last_of(path))
    return read_by(seen, session)


def read_by(seen: LocalFiles, session: SparkSession) -> Source:
    """Return the records of files as Spark reads them."""
    return TextSource(seen, session) if seen.is_text else ParquetSource(seen, session)


class TextSource:
    """Text files, each read by one task with the parser that `load` uses."""

    def __init__(self, seen: LocalFiles, session: SparkSession) -> None:
        self._seen, self._session = seen, session

    @property
    def pieces(self) -> Pieces:
        """What tells the values, and what is known of a column."""
        return self._seen.pieces

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._seen.names

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        paths = self._session.createDataFrame(
            [(str(file),) for file in self._seen.files], "path string"
        )
        schema = ", ".join(f"{name} string" for name in positions(len(names)))
        return paths.mapInArrow(text_reader(self.names, names, **self._seen.how), schema)

    def head(self, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the first values of some columns: they tell the type of a column."""
        import pyarrow as pa  # type: ignore[import-untyped]

        found: dict[str, list[Any]] = {name: [] for name in names}
        records = 0
        for batch in self._batches(names, HEAD):
            for name in names:
                found[name].append(batch[name].cast(pa.string()))
            records += len(batch[names[0]])
            if records >= GLANCE:
                break
        empty = [pa.array([], pa.string())]
        return {n: pa.concat_arrays(empty + arrays)[:GLANCE] for n, arrays in found.items()}

    def _batches(self, names: Sequence[str], size: int) -> Iterator[Mapping[str, Any]]:
        from keyhole.data.text import TooLongError

        for file in self._seen.files:
            pieces = self.pieces if file == self._seen.files[0] else self._seen.pieces_of(file)
            require_header(file, pieces.names, self.names)
            try:
                yield from pieces.batches(names, size)
            except TooLongError:
                if size >= PIECE:
                    raise
                yield from pieces.batches(names, PIECE)

    def check(self) -> None:
        """Say what is wrong with the texts, by reading them here."""
        for file in self._seen.files:
            pieces = self._seen.pieces_of(file)
            require_header(file, pieces.names, self.names)
            for _ in pieces.batches(pieces.names[:1], 1 << 31):
                pass
            pieces.finish()


class FrameSource:
    """A frame of Spark's own; its values are what Spark says they are."""

    def __init__(self, frame: DataFrame, called: str = "the frame") -> None:
        if frame.isStreaming:
            raise OptionError(f"{called} must be whole. Got a stream instead: write it first.")
        self._frame, self.names = frame, tuple(frame.columns)

    @cached_property
    def pieces(self) -> Pieces:
        """What tells the values, and what is known of a column."""
        with _unreadable("the frame"):
            table = self._frame.limit(0).toArrow()
        return FramePieces(from_arrow(table.rename_columns(list(self.names))))

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        for name in names:
            require_flat(pl.Series(name, [], dtype=_type_of(self.pieces, name)))
        # By place: names may differ in case alone, or have any mark in them.
        places = [self.names.index(name) for name in names]
        numbered = self._frame.toDF(*(f"x{place}" for place in range(len(self.names))))
        chosen = [_uncollated(numbered, f"x{place}") for place in places]
        return numbered.select(*chosen).toDF(*positions(len(names)))

    def head(self, names: Sequence[str]) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Nothing: the types are known, and a cluster's records have no order."""
        return None

    def check(self) -> None:
        """Nothing can be told here that Spark has not told."""


def _uncollated(frame: DataFrame, name: str) -> Column:
    """Return a column in which texts are equal only if they are the same."""
    from pyspark.sql.types import StringType

    kind, column = frame.schema[name].dataType, frame[name]
    collated = type(kind) is StringType and kind != StringType()
    return column.cast(StringType()) if collated else column


class ParquetSource(FrameSource):
    """Parquet files, whose notes and types are read here and whose values Spark reads."""

    def __init__(self, seen: LocalFiles, session: SparkSession) -> None:
        self._seen, first = seen, seen.files[0]
        known = seen.names
        self._stamps: set[str] = set()
        for file in seen.files:
            footer = read_footer(file)
            require_header(file, footer.schema.to_arrow_schema().names, known)
            self._stamps |= nanoseconds(footer)
        paths = [escaped(file) for file in seen.files]
        super().__init__(_read_parquet(session, paths, first.name), first.name)
        require_header(first, self.names, known)

    @cached_property
    def pieces(self) -> Pieces:
        """What tells the values, and what is known of a column."""
        return self._seen.pieces

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        problems = [
            f"column {name!r} of {self._seen.name!r} holds times of Parquet's old type INT96, "
            f"whose nanoseconds Spark would cut off. Write them as microseconds, or use "
            f"--engine disk."
            for name in dict.fromkeys(names)
            if name in self._stamps
        ]
        if problems:
            raise ColumnError(problems)
        return super().frame(names)


def _type_of(pieces: Pieces, name: str) -> pl.DataType:
    return pieces.types.get(name, pl.String())


def _read_parquet(session: SparkSession, paths: Sequence[str], name: str) -> DataFrame:
    with _unreadable(name):
        # What a session says of files that cannot be read would leave out records.
        return session.read.options(ignoreCorruptFiles=False, ignoreMissingFiles=False).parquet(
            *paths
        )


@contextmanager
def _unreadable(name: str) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = getattr(error, "getCondition", lambda: None)()
        why = f" ({found})" if found else ""
        raise FileError(
            f"{name!r} cannot be read by Spark{why}. Check the path and who may read it, and "
            f"that it is Parquet; columns that differ in case alone need "
            f"spark.sql.caseSensitive."
        ) from None
