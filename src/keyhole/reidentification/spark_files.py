"""The files of a study on Spark: their different values come here, their records stay there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.data.arrow import from_arrow
from keyhole.data.columns import Variable
from keyhole.data.describing import Request
from keyhole.data.microdata import Microdata
from keyhole.data.missing import blank, parse
from keyhole.data.reading import load, request_of
from keyhole.data.requiring import require_columns, require_records
from keyhole.engines.spark.levels import Column, describe_columns
from keyhole.engines.spark.sources import FrameSource, LocalFiles, Source, called, open_source
from keyhole.engines.spark.tasks import Coding, coder
from keyhole.errors import OptionError, RunError
from keyhole.reidentification.truth import text_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Encoding", "IdColumn", "SparkFile", "open_file"]


@dataclass(frozen=True, slots=True, eq=False)
class IdColumn:
    """A column of an id: what is known of it, and the type that `load` gives it."""

    variable: Variable
    dtype: pl.DataType

    def text(self, values: pl.Series) -> pl.Series:
        """Return values as they come from the file as text, the same for equal ids."""
        known = blank(values, replace(self.variable, parsed=None))
        if known.dtype != pl.String or self.dtype == pl.String:
            return text_ids([known])
        typed = parse(known, self.dtype)
        return text_ids([typed]) if typed.null_count() == known.null_count() else known

    @property
    def order(self) -> pl.DataType:
        """The type by which ids are put in order: numbers by size, all else as text."""
        if self.dtype.is_integer():
            return pl.Int64()
        return self.dtype if self.dtype.is_numeric() else pl.String()


@dataclass(frozen=True, slots=True, eq=False)
class SparkFile:
    """A file whose records stay on the cluster.

    Parameters
    ----------
    name
        What it is called.
    source
        Where its records come from.
    request
        What is declared of the columns.
    known
        What is known of columns besides, by name.
    """

    name: str
    source: Source
    request: Request = field(default_factory=Request)
    known: Mapping[str, Variable] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.source.names)

    def columns(self, names: Sequence[str]) -> dict[str, Column]:
        """Return the different values of columns, and how many records have each."""
        try:
            found = describe_columns(self.source, list(dict.fromkeys(names)), self.request)
        except RunError:
            self.source.check()
            raise
        problems = [
            f"column {name!r} has {column.size:,} different values in {self.name!r}, too many for "
            f"a study on Spark. Round it, or use the memory engine (--engine memory)."
            for name, column in found.items()
            if column.levels is None
        ]
        if problems:
            raise OptionError(problems)
        known = {name: self.known.get(name, column.variable) for name, column in found.items()}
        return {name: replace(column, variable=known[name]) for name, column in found.items()}

    def id_columns(self, names: Sequence[str]) -> dict[str, IdColumn]:
        """Return what is known of the columns of an id, of which all values differ."""
        import pyarrow as pa  # type: ignore[import-untyped]

        pieces, head = self.source.pieces, self.source.head(names) or {}
        out = {}
        for name in names:
            some = pieces.values(name, head.get(name, pa.nulls(0)))
            kept, variable = pieces.described(some, self.request)
            out[name] = IdColumn(self.known.get(name, variable), kept.dtype)
        return out

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        return require_columns(names, self.names, purpose=purpose, called=self.name)

    def require_records(self, records: int) -> None:
        """Say so if there are no records."""
        require_records(records, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How records become codes and ids on the cluster.

    Parameters
    ----------
    codes
        By the name of a column of codes the column that it is made of, and how.
    ids
        By the name of a column of ids the columns that it is made of.
    parts
        Columns of ids that are kept one by one as well, as ``part0`` and so on.
    """

    codes: Mapping[str, tuple[str, Coding]]
    ids: Mapping[str, Sequence[str]]
    parts: Sequence[str] = ()

    def apply(self, file: SparkFile) -> DataFrame:
        """Encode the records of a file, on the cluster."""
        names = list(dict.fromkeys(name for columns in self.ids.values() for name in columns))
        frame = file.source.frame([*(name for name, _ in self.codes.values()), *names])
        kinds = [f"{name} int" for name in self.codes]
        kinds += [f"{name} string" for name in (*self.ids, *self._part_names())]
        return frame.mapInArrow(self._work(file.id_columns(names)), ", ".join(kinds))

    def _part_names(self) -> list[str]:
        return [f"part{i}" for i in range(len(self.parts))]

    def _work(self, known: Mapping[str, IdColumn]) -> Callable[[Iterator[Any]], Iterator[Any]]:
        code = coder([coding for _, coding in self.codes.values()])

        def encode(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                columns = list(next(code(iter([batch]))).columns)
                columns += self._texts(batch.columns[len(columns) :], known)
                names = [*self.codes, *self.ids, *self._part_names()]
                yield pa.RecordBatch.from_arrays(columns, names=names)

        return encode

    def _texts(self, columns: Sequence[Any], known: Mapping[str, IdColumn]) -> list[Any]:
        import pyarrow as pa

        texts = {}
        for (name, about), values in zip(known.items(), columns, strict=True):
            texts[name] = about.text(from_arrow(pa.table({name: values}))[name])
        found = [text_ids([texts[name] for name in names]) for names in self.ids.values()]
        found += [texts[name] for name in self.parts]
        return [one.to_arrow().cast(pa.string()) for one in found]


def open_file(source: Any, session: SparkSession, *, name: str, **options: Any) -> SparkFile:
    """Open a file where Spark runs.

    Spark reads Parquet and text, a file or a folder of them, and frames of its own; other frames
    are handed to it.

    Parameters
    ----------
    source
        A path, what `look_at` saw there, a frame, microdata, or what this function returned
        before.
    session
        The Spark session.
    name
        What to call a frame, which has no name.
    options
        Whatever else `load` takes.
    """
    if isinstance(source, SparkFile):
        return source
    given = dict(options)
    how = {option: given.pop(option, None) for option in ("encoding", "delimiter")}
    if isinstance(source, LocalFiles):
        return _declared(SparkFile(source.name, source.read_by(session), request_of(**given)))
    if isinstance(source, str | os.PathLike):
        given.pop("sheet", None)
        path = os.fspath(source)
        opened = open_source(path, session, **how)
        return _declared(SparkFile(called(path), opened, request_of(**given)))
    if type(source).__module__.startswith("pyspark."):
        return _declared(SparkFile(name, FrameSource(source), request_of(**given)))
    return _of_microdata(load(source, **options), session, name)


def _declared(file: SparkFile) -> SparkFile:
    file.request.choose(file.names, repr(file.name))
    return file


def _of_microdata(data: Microdata, session: SparkSession, name: str) -> SparkFile:
    """Hand data to Spark with missing values blanked, so that nothing is left to declare."""
    frame = pl.DataFrame([data.column(one) for one in data.names])
    places = [f"c{i}" for i in range(frame.width)]
    there = session.createDataFrame(
        frame.rename(dict(zip(frame.columns, places, strict=True))).to_arrow()
    )
    known = {
        one.name: replace(one, missing_codes=(), missing_ranges=(), parsed=None)
        for one in data.variables
    }
    called_so = name if data.name == "data" else data.name
    return SparkFile(called_so, FrameSource(there.toDF(*frame.columns)), Request(), known)
