"""Files of a study on Spark: their records, their ids and the pairs that the internal file names.

The different values come here; the records stay on the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from keyhole.core.options import Problem
from keyhole.data.columns import Variable
from keyhole.data.describing import Request
from keyhole.data.frames import from_arrow
from keyhole.data.inference import DIGITS, NUMBER
from keyhole.data.microdata import Microdata
from keyhole.data.missing import blank, parse_codes
from keyhole.data.reading import load, request_of
from keyhole.engines.choose import is_of_pyspark
from keyhole.engines.disk_encoding import FILLED, GLANCE
from keyhole.errors import ColumnError, OptionError
from keyhole.reidentification.linkage import (
    id_problems,
    require_rows,
    text_ids,
    unknown_id_problems,
)
from keyhole.reidentification.variables import WIDE
from keyhole.spark.cluster import Ids
from keyhole.spark.data import SparkColumn, describe_on_spark
from keyhole.spark.session import collect
from keyhole.spark.sources import (
    FrameSource,
    LocalFiles,
    SparkSource,
    TextSource,
    called,
    open_source,
    read_by,
)
from keyhole.spark.tasks import ChangedError, ValueCoding, coder, without_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class IdColumn:
    """A column of an id: what is known of it, and the type that `load` gives it."""

    variable: Variable
    dtype: pl.DataType
    held: pl.DataType  # the type that the values have where they come from

    @property
    def is_read(self) -> bool:
        """Whether the values are texts that stand for something else."""
        return self.held == pl.String and self.dtype != pl.String

    def unread(self, values: pl.Series, *, exact: bool) -> int:
        """Count the texts for which `load` would take the column as text."""
        known = self._known(values).drop_nulls()
        typed = parse_codes(known, self.dtype)
        read = typed.is_not_null()
        if exact and self.dtype.is_float():
            # More digits than a float has may be those of another number.
            short = known.str.len_bytes() <= DIGITS
            read &= known.str.contains(NUMBER) & typed.is_finite()
            read &= short | (typed.cast(pl.String) == known)
        elif exact and self.dtype in (pl.Int64, pl.Date):
            read &= typed.cast(pl.String) == known
        return len(known) - int(read.sum())

    def text(self, values: pl.Series) -> pl.Series:
        """Return values as they come from the file as text, the same for equal ids."""
        known = self._known(values)
        if known.dtype != pl.String or self.dtype == pl.String:
            return text_ids([known])
        typed = parse_codes(known, self.dtype)
        if typed.null_count() != known.null_count():
            raise ChangedError
        return text_ids([typed])

    def _known(self, values: pl.Series) -> pl.Series:
        return blank(values, replace(self.variable, parsed=None))

    @property
    def order(self) -> pl.DataType:
        """The type by which ids are put in order: numbers by size, all else as text."""
        if self.dtype.is_integer() and self.dtype not in WIDE:
            return pl.Int64()
        return self.dtype if self.dtype.is_numeric() and self.dtype not in WIDE else pl.String()


@dataclass(frozen=True, slots=True, eq=False)
class SparkFile:
    """A file whose records stay on the cluster."""

    name: str
    source: SparkSource
    request: Request = field(default_factory=Request)
    known: Mapping[str, Variable] = field(default_factory=dict)  # besides the request
    settled: dict[str, IdColumn] = field(default_factory=dict)  # of ids, whose types are known

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.source.names)

    def columns(self, names: Sequence[str]) -> dict[str, SparkColumn]:
        """Return the different values of columns, and how many records have each."""
        with self.source.checked():
            found = describe_on_spark(self.source, list(dict.fromkeys(names)), self.request)
        template = (
            "column {0!r} has {1:,} different values in {2!r}, too many for a study on Spark. "
            "Round it, or use {engine} memory."
        )
        problems = [
            Problem(template, name, column.size, self.name)
            for name, column in found.items()
            if column.levels is None
        ]
        if problems:
            raise OptionError(problems)
        known = {name: self.known.get(name, column.variable) for name, column in found.items()}
        return {name: replace(column, variable=known[name]) for name, column in found.items()}

    def id_columns(self, names: Sequence[str]) -> dict[str, IdColumn]:
        """Return what is known of the columns of an id, of which all values differ."""
        fresh = [name for name in names if name not in self.settled]
        if fresh:
            self.settled.update(self._settle(fresh))
        return {name: self.settled[name] for name in names}

    def _settle(self, names: Sequence[str]) -> dict[str, IdColumn]:
        """Tell the types of ids by their first values, and see whether the rest are of them."""
        pieces, head = self.source.pieces, self.source.head(names)
        out = {}
        for name in names:
            first = pa.nulls(0) if head is None else self._filled(name, head[name])
            some = pieces.values(name, first)
            kept, variable = pieces.described(some, self.request)
            known = self.known.get(name, variable)
            out[name] = IdColumn(known, known.parsed or kept.dtype, some.dtype)
        read = [name for name in names if out[name].is_read]
        if read and not (head and len(head[names[0]]) < GLANCE):
            counts = self._count_unread({name: out[name] for name in read})
            for name in (name for name, n in counts.items() if n):  # some are no more than texts
                plain = replace(out[name].variable, parsed=None)
                out[name] = replace(out[name], variable=plain, dtype=pl.String())
        return out

    def _filled(self, name: str, first: Any) -> Any:
        """Return the first values of a column, or the first that are there if none is near."""
        if first.null_count < len(first) or len(first) < GLANCE:
            return first
        column = self.source.frame([name])
        near = collect(column.where(column["v0"].isNotNull()).limit(FILLED))
        return near.column(0).combine_chunks()

    def _count_unread(self, columns: Mapping[str, IdColumn]) -> dict[str, int]:
        """Count on the cluster the texts of each column that are not of its type."""
        work = _unread(list(columns.values()), exact=isinstance(self.source, TextSource))
        kinds = [f"n{place} long" for place in range(len(columns))]
        frame = self.source.frame(list(columns)).mapInArrow(work, ", ".join(kinds))
        with self.source.checked():
            found = collect(frame)
        sums = [sum(column.to_pylist()) for column in found.columns]
        return dict(zip(columns, sums, strict=True))


def _unread(
    columns: Sequence[IdColumn], *, exact: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the task that counts the texts of each column that are not of its type."""

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        with without_words():
            for batch in batches:
                series = [from_arrow(pa.table({"v": one}))["v"] for one in batch.columns]
                both = zip(columns, series, strict=True)
                counts = [pa.array([one.unread(some, exact=exact)]) for one, some in both]
                names = [f"n{place}" for place in range(len(columns))]
                yield pa.RecordBatch.from_arrays(counts, names=names)

    return count


@dataclass(frozen=True, slots=True, eq=False)
class StudyEncoding:
    """How records become codes and ids on the cluster, by the names that these have there."""

    codes: Mapping[str, tuple[str, ValueCoding]]  # the column that each is made of, and how
    ids: Mapping[str, Sequence[str]]  # the columns that each is made of
    parts: Sequence[str] = ()  # columns of ids that are kept as ``part0`` and so on as well

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
            with without_words():
                for batch in batches:
                    columns = list(next(code(iter([batch]))).columns)
                    columns += self._texts(batch.columns[len(columns) :], known)
                    names = [*self.codes, *self.ids, *self._part_names()]
                    yield pa.RecordBatch.from_arrays(columns, names=names)

        return encode

    def _texts(self, columns: Sequence[Any], known: Mapping[str, IdColumn]) -> list[Any]:
        texts = {}
        for (name, about), values in zip(known.items(), columns, strict=True):
            texts[name] = about.text(from_arrow(pa.table({name: values}))[name])
        found = [text_ids([texts[name] for name in names]) for names in self.ids.values()]
        found += [texts[name] for name in self.parts]
        return [one.to_arrow().cast(pa.string()) for one in found]


def open_file(source: Any, session: SparkSession, *, name: str, **options: Any) -> SparkFile:
    """Open a file or a frame of Spark's own where Spark runs; other frames are handed to it."""
    if isinstance(source, SparkFile):
        return source
    opened: SparkSource
    if isinstance(source, LocalFiles):
        name, opened = source.name, read_by(source, session)
    elif isinstance(source, str | os.PathLike):
        name, opened = called(os.fspath(source)), open_source(os.fspath(source), session)
    elif is_of_pyspark(source, "DataFrame"):
        opened = FrameSource(source)
    else:
        return _of_microdata(load(source, **options), session, name)
    return SparkFile(name, opened, request_of(**options))


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


@dataclass(frozen=True, slots=True, eq=False)
class SparkTruth:
    """The pairs that are one person, on the cluster, and what is counted of them."""

    pairs: DataFrame  # the ids of the distinct true pairs, as text, in columns ``puf`` and ``eif``
    overlap: int  # PUF records that are in the EIF too
    rows: int  # of the IUF
    incomplete: int  # those of them without one of the two ids


def find_truth_on_spark(
    iuf: str, named: DataFrame, frames: tuple[DataFrame, DataFrame], ids: Ids
) -> SparkTruth:
    """Find the pairs that the IUF names, or say all that is wrong with the ids."""
    problems = []
    counted = _count_ids(frames)
    for file, names, counts in zip(("PUF", "EIF"), ids, counted, strict=True):
        problems += id_problems(file, names, *counts)
    if problems:
        raise ColumnError(problems)
    rows, incomplete, overlap, *unknown = _count_named(named, frames)
    require_rows(iuf, rows)
    for file, names, count in zip(("PUF", "EIF"), ids, unknown, strict=True):
        problems += unknown_id_problems(file, names, count, rows)
    if problems:
        raise ColumnError(problems)
    return SparkTruth(named.dropna().distinct(), overlap, rows, incomplete)


def _count_ids(frames: tuple[DataFrame, DataFrame]) -> list[tuple[int, int, int]]:
    """Return of both files how many records have no id, share theirs, and there are."""
    from pyspark.sql import functions as F  # noqa: N812

    by_id = beside(*frames, "id").groupBy("side", "id").agg(F.count("*").alias("n"))
    missing = F.when(F.col("id").isNull(), F.col("n"))
    shared = F.when(F.col("id").isNotNull() & (F.col("n") > 1), F.col("n"))
    counts = (missing, shared, F.col("n"))
    summed = [F.coalesce(F.sum(one), F.lit(0)).alias(f"n{i}") for i, one in enumerate(counts)]
    rows = collect(by_id.groupBy("side").agg(*summed)).to_pylist()
    found = {row["side"]: (row["n0"], row["n1"], row["n2"]) for row in rows}
    return [found.get(side, (0, 0, 0)) for side in (0, 1)]


def beside(puf: DataFrame, eif: DataFrame, *columns: str) -> DataFrame:
    """Return columns of both files in one frame, with the ``side`` that each row is of."""
    from pyspark.sql import functions as F  # noqa: N812

    one, other = (
        frame.select(F.lit(side).alias("side"), *columns) for side, frame in enumerate((puf, eif))
    )
    return one.union(other)


def _count_named(named: DataFrame, frames: tuple[DataFrame, DataFrame]) -> list[int]:
    """Count the rows, the incomplete ones, the PUF records of pairs, and the unknown ids."""
    from pyspark.sql import functions as F  # noqa: N812

    joined = named
    for side, frame in zip(("puf", "eif"), frames, strict=True):
        known = frame.select(F.col("id").alias(side), F.lit(1).alias(f"known_{side}"))
        joined = joined.join(known, side, "left")
    absent = {side: F.col(side).isNull() for side in ("puf", "eif")}
    neither = absent["puf"] | absent["eif"]
    counts = [
        F.count("*"),
        F.count(F.when(neither, 1)),
        F.count_distinct(F.when(~neither, F.col("puf"))),
        *(F.count(F.when(~absent[s] & F.col(f"known_{s}").isNull(), 1)) for s in absent),
    ]
    row = collect(joined.agg(*(count.alias(f"n{i}") for i, count in enumerate(counts))))
    return [int(column[0].as_py()) for column in row.columns]


def attach_mates(puf: DataFrame, truth: SparkTruth) -> DataFrame:
    """Give each PUF record the ids of its true mates, in a column ``mates``."""
    from pyspark.sql import functions as F  # noqa: N812

    mates = truth.pairs.groupBy("puf").agg(F.collect_list("eif").alias("mates"))
    return puf.join(mates.withColumnRenamed("puf", "id"), "id", "left")
