"""Sources of records for Spark: text files, Parquet, or a frame of Spark's own.

Files that lie here are looked at before Spark runs. What it would read otherwise than it is named,
or leave out, is refused then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from keyhole.core.options import Problem
from keyhole.data.columns import require_flat
from keyhole.data.formats import EXTENSIONS, find_format, require_file, suffix_of
from keyhole.data.frames import from_arrow, unreadable
from keyhole.data.pieces import FramePieces, Pieces, open_pieces
from keyhole.data.text import TooLongError
from keyhole.engines.disk_encoding import GLANCE
from keyhole.engines.storage import WorkFolder
from keyhole.errors import ColumnError, FileError, OptionError, RunError
from keyhole.spark.tasks import PIECE, positions, require_header, text_reader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


SPARK_WROTE = b"org.apache.spark.version"
GLOB = frozenset("[]{}*?\\")
"""What Spark takes for a pattern in a path."""
HEAD = 1 << 20


class LocalFiles:
    """A file, or a folder of files of one kind, that is seen from here before Spark runs."""

    def __init__(
        self, path: str, *, encoding: str | None = None, delimiter: str | None = None
    ) -> None:
        self.path, self.files = path, _files(Path(path))
        self.how = {"encoding": encoding, "delimiter": delimiter}
        self._copies: list[WorkFolder] = []
        forms = {find_format(file) for file in self.files}
        if forms not in ({"text"}, {"Parquet"}):
            template = (
                "the spark engine reads Parquet and text files (.csv, .tsv). Got {0!r} instead: "
                "write it as Parquet, or use {engine} disk."
            )
            raise OptionError(Problem(template, last_of(path)))
        self.is_text = forms == {"text"}
        if not self.is_text:
            _require_names(self.files)

    @property
    def name(self) -> str:
        """What the data is called."""
        return called(self.path)

    @cached_property
    def pieces(self) -> Pieces:
        """The first file: its header, what tells the values and what is known of a column."""
        return self.pieces_of(self.files[0])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.pieces.names)

    def pieces_of(self, file: Path) -> Pieces:
        """Open one of the files."""
        if not self.is_text:
            return open_pieces(file, lambda: file)

        def copy() -> Path:
            # Gone with this, and if the process is killed, with the next one that makes a folder.
            self._copies.append(WorkFolder())
            return self._copies[-1].file(".txt")

        return open_pieces(file, copy, **self.how)


def look_at(path: str, **how: str | None) -> LocalFiles | None:
    """Look at files without Spark; None where only Spark can see them, as at ``hdfs://...``."""
    return None if "://" in path else LocalFiles(path, **how)


def called(path: str) -> str:
    """Return what a file, or a folder, is called without its extension."""
    last = Path(last_of(path))
    known = suffix_of(last).removesuffix(".gz") in EXTENSIONS
    return last.name[: len(last.name) - len(suffix_of(last))] if known else last.name or "data"


def last_of(path: str) -> str:
    """Return the last part of a path or an address."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of a folder that are no marks of a writer, by name."""
    if not path.is_dir():
        require_file(path)
        return [path.absolute()]
    try:
        files = sorted(_walk(path))
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "the system refuses"
        where = error.filename or str(path)
        raise FileError(f"{where!r} cannot be read: {reason}. Check the folder.") from None
    if not files:
        raise FileError(f"{str(path)!r} has no files in it. Give a folder of Parquet or CSV files.")
    for file in files:
        require_file(file)
    return [file.absolute() for file in files]


def _walk(path: Path) -> Iterator[Path]:
    """Yield all that is in a folder and in those below it, but for the marks of a writer."""

    def fail(error: OSError) -> None:
        raise error

    for folder, below, names in os.walk(path, onerror=fail):
        below[:] = filter(_is_data, below)
        for link in below:
            if Path(folder, link).is_symlink():
                raise FileError(
                    f"{str(Path(folder, link))!r} is a link to another folder, which is not "
                    f"followed. Put the files themselves, or links to them, into the folder."
                )
        yield from (Path(folder, name) for name in names if _is_data(name))


def _require_names(files: Sequence[Path]) -> None:
    """Say so if a Parquet file is called, or lies, as Hadoop cannot name it."""
    for file in files:
        if ":" in file.name:
            reason = "has a colon in its name"
        elif not _is_data(file.name):
            reason = "begins with '_' or '.', as the marks of a writer do"
        elif ":" in str(file) and any(mark in GLOB for mark in str(file)):
            reason = "has a colon and one of []{}*?\\ in its path"
        else:
            continue
        template = "{0!r} {1}, so that Spark cannot read it. Rename it, or use {engine} disk."
        raise FileError(Problem(template, file.name, reason))


def escaped(path: Path) -> str:
    """Return a path that Spark takes for itself, and not for a pattern."""
    return "".join(f"\\{mark}" if mark in GLOB else mark for mark in str(path))


def _is_data(name: str) -> bool:
    return not name.startswith(("_", "."))


def open_source(path: str, session: SparkSession, **how: str | None) -> SparkSource:
    """Open a file, a folder of files of one kind, or a place that only Spark reads."""
    seen = look_at(path, **how)
    if seen is None:
        return FrameSource(_read_parquet(session, [path], last_of(path)), last_of(path))
    return read_by(seen, session)


def read_by(seen: LocalFiles, session: SparkSession) -> SparkSource:
    """Return the records of files as Spark reads them."""
    return TextSource(seen, session) if seen.is_text else ParquetSource(seen, session)


class _Checked:
    """What says what is wrong with data when Spark failed on it."""

    @contextmanager
    def checked(self) -> Iterator[None]:
        try:
            yield
        except RunError:
            self.check()
            raise

    def check(self) -> None:
        """Say nothing: nothing can be told here that Spark has not told."""


class TextSource(_Checked):
    """Text files, each read by one task with the parser that `load` uses."""

    def __init__(self, seen: LocalFiles, session: SparkSession) -> None:
        self._seen, self._session = seen, session
        self.pieces, self.names = seen.pieces, seen.names

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        paths = self._session.createDataFrame(
            [(str(file),) for file in self._seen.files], "path string"
        )
        schema = ", ".join(f"{name} string" for name in positions(len(names)))
        return paths.mapInArrow(text_reader(self.names, names, **self._seen.how), schema)

    def head(self, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the first values of some columns: they tell the type of a column."""
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


class FrameSource(_Checked):
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
            require_flat(pl.Series(name, [], dtype=self.pieces.types.get(name, pl.String())))
        # By place: names may differ in case alone, or have any mark in them.
        places = [self.names.index(name) for name in names]
        numbered = self._frame.toDF(*(f"x{place}" for place in range(len(self.names))))
        chosen = [_uncollated(numbered, f"x{place}") for place in places]
        return numbered.select(*chosen).toDF(*positions(len(names)))

    def head(self, names: Sequence[str]) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Nothing: the types are known, and a cluster's records have no order."""
        return None


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
            try:
                footer = parquet.read_metadata(file)
            except (pa.ArrowException, OSError):
                raise unreadable(file, "Parquet") from None
            require_header(file, footer.schema.to_arrow_schema().names, known)
            # Times may have more digits than Spark's, unless it wrote them itself.
            if SPARK_WROTE not in (footer.metadata or {}):
                columns = map(footer.schema.column, range(len(footer.schema)))
                self._stamps |= {one.path for one in columns if one.physical_type == "INT96"}
        paths = [escaped(file) for file in seen.files]
        super().__init__(_read_parquet(session, paths, first.name), first.name)
        self.pieces = seen.pieces
        require_header(first, self.names, known)

    def frame(self, names: Sequence[str]) -> DataFrame:
        """Return the values of some columns, named v0, v1 and so on."""
        template = (
            "column {0!r} of {1!r} holds times of Parquet's old type INT96, whose nanoseconds "
            "Spark would cut off. Write them as microseconds, or use {engine} disk."
        )
        problems = [
            Problem(template, name, self._seen.name)
            for name in dict.fromkeys(names)
            if name in self._stamps
        ]
        if problems:
            raise ColumnError(problems)
        return super().frame(names)


SparkSource = TextSource | FrameSource
"""Records on Spark, and what their values are by keyhole's own reader."""


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
