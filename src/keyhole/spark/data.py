"""Data on a cluster: what is known of its columns, and their codes where Spark keeps them."""
# ruff: noqa: D102 (what the methods of data are for is said once, in `Records`)

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.options import Problem
from keyhole.data.columns import Codes, Variable
from keyhole.data.describing import Request
from keyhole.data.microdata import Microdata
from keyhole.engines.protocol import AskedColumns, Engine, Missing
from keyhole.engines.storage import MEMORY, Storage, count_codes
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.spark import sql
from keyhole.spark.columns import FineColumnsError, SparkColumn, describe_on_spark
from keyhole.spark.session import TemporaryView, collect
from keyhole.spark.sources import SparkSource
from keyhole.spark.sql import ViewField
from keyhole.spark.tasks import ValueCoding, code_type, coder, pair_counter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MOST_CELLS = 1 << 22
"""A pair of columns whose table could have more cells is not compared."""
CELLS_AT_ONCE = 1 << 24
"""So many cells of tables of two columns come to the driver at a time."""


def elsewhere(what: str) -> NoReturn:
    """Say that something needs the records here, and which engines have them."""
    template = (
        "{engine} must be memory or disk for {0}. Got 'spark' instead, where the records stay on "
        "the cluster."
    )
    raise OptionError(Problem(template, what))


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """Data that stays on the cluster."""

    name: ClassVar[str] = "spark"
    is_here: ClassVar[bool] = False
    notes: ClassVar[tuple[str, ...]] = ()
    storage: ClassVar[Storage] = MEMORY

    def engine(self, data: SparkData, columns: Iterable[str]) -> Engine:
        from keyhole.spark.engine import SparkEngine

        return SparkEngine(data, columns)

    def group(self, data: SparkData, by: str, code: int) -> SparkData:
        return _Part(data, by, code)


class SparkCodes(Codes):
    """The levels of a column whose codes are on the cluster."""

    __slots__ = ("_column",)

    def __init__(self, column: SparkColumn) -> None:
        object.__setattr__(self, "_column", column)

    @property
    def values(self) -> Any:
        """Refuse: they stay where they are."""
        elsewhere("the codes of every record")

    @property
    def levels(self) -> pl.Series:
        """The distinct values that are not missing, sorted."""
        column: SparkColumn = self._column  # type: ignore[attr-defined]
        if column.levels is None:
            raise OptionError(
                f"column {column.variable.name!r} has {column.size:,} different values, too many "
                f"to be told one by one. Leave it out here, or regroup it."
            )
        return column.levels

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return bool(self._column.has_missing)  # type: ignore[attr-defined]

    @property
    def size(self) -> int:
        """The number of codes, missing included."""
        return int(self._column.size)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"Codes on Spark: {self.size:,} with missing"


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Columns as codes in a view: by name, what is known of each and where it is."""

    view: TemporaryView
    columns: Mapping[str, SparkColumn]
    fields: Mapping[str, ViewField]

    @classmethod
    def of(cls, view: TemporaryView, columns: Mapping[str, SparkColumn]) -> Encoded:
        """Name the columns of a view, which stand there as c0, c1 and so on."""
        places = {name: f"c{place}" for place, name in enumerate(columns)}
        return cls(view, columns, {n: c.field(places[n]) for n, c in columns.items()})


@dataclass(frozen=True, slots=True, eq=False)
class KnownColumns:
    """What is known of some columns, by name, and of how many records."""

    columns: Mapping[str, SparkColumn]
    records: int

    def comparable(self, name: str, other: str) -> bool:
        """Tell whether the table of two columns is small enough to come to the driver."""
        a, b = self.columns[name], self.columns[other]
        return a.levels is not None and b.levels is not None and a.size * b.size <= MOST_CELLS


class SparkData(AskedColumns):
    """The columns of data on a cluster; it offers what a stage needs of `Microdata`.

    Columns are encoded when they are first asked for, all those together that have been named
    by then (`require`), and the codes are kept on the cluster while this lives.
    """

    def __init__(self, name: str, names: Iterable[str]) -> None:
        super().__init__(name, names)
        self._held: Encoded | None = None

    @property
    def backend(self) -> SparkBackend:
        return SparkBackend()

    @abstractmethod
    def _encode(self, names: Sequence[str]) -> Encoded:
        """Encode columns."""

    def encoded(self, names: Iterable[str] = ()) -> Encoded:
        """Return a view that has the columns named, and all others that were asked for."""
        self.require(names, purpose="column")
        with self._lock:
            wanted = list(self._asked) or [self.names[0]]
            if self._held is None or not set(wanted) <= set(self._held.columns):
                self._held = self._encode(wanted)
            return self._held

    @property
    def records(self) -> int:
        return next(iter(self.encoded().columns.values())).records

    def variable(self, name: str) -> Variable:
        return self.encoded([name]).columns[name].variable

    def codes(self, name: str) -> Codes:
        """Return the levels of a column; the codes themselves stay on the cluster."""
        return SparkCodes(self.encoded([name]).columns[name])

    def column(self, name: str) -> pl.Series:
        """Refuse: the values stay on the cluster."""
        elsewhere(f"the values of column {name!r}")

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Refuse: the values stay on the cluster."""
        elsewhere(f"the weights in column {name!r}")

    def filter(self, mask: npt.NDArray[np.bool_]) -> SparkData:  # noqa: ARG002
        """Refuse: nobody here can tell one record from another."""
        elsewhere("choosing single records")

    def look_at_columns(self, names: Sequence[str]) -> KnownColumns:
        """Return what is known of columns, where possible before any is encoded."""
        columns = self.encoded(names).columns
        return KnownColumns({name: columns[name] for name in names}, self.records)

    def pair_tables(
        self, pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[tuple[str, str], tuple[Ints, Ints, Ints]]]:
        """Yield for each pair the counts of its occupied cells, and the row and column of each.

        The pairs are `KnownColumns.comparable`; they are counted by tasks.
        """
        if not pairs:
            return
        held = self.encoded(dict.fromkeys(itertools.chain.from_iterable(pairs)))
        sizes = {name: column.size for name, column in held.columns.items()}
        for some in _shared(pairs, sizes):
            names = list(dict.fromkeys(itertools.chain.from_iterable(some)))
            places = [(names.index(a), names.index(b)) for a, b in some]
            frame = held.view.frame.select(*(held.fields[name].name for name in names))
            task = pair_counter(places, [sizes[name] for name in names])
            counts_by_task = frame.mapInArrow(task, "pair int, cell bigint, n bigint")
            table = collect(counts_by_task.groupBy("pair", "cell").sum("n")).sort_by(
                [("pair", "ascending"), ("cell", "ascending")]
            )
            which, cells, counts = (np.asarray(column) for column in table.columns)
            cuts = np.searchsorted(which, np.arange(len(some) + 1))
            for place, pair in enumerate(some):
                part = slice(cuts[place], cuts[place + 1])
                rows, cols = np.divmod(cells[part], sizes[pair[1]])
                yield pair, (counts[part], rows, cols)


class SourceData(SparkData):
    """Data that Spark reads."""

    def __init__(self, source: SparkSource, request: Request, name: str) -> None:
        super().__init__(name, request.choose(list(source.names), repr(name)))
        self.source, self.request = source, request
        self._columns: dict[str, SparkColumn] = {}

    def _encode(self, names: Sequence[str]) -> Encoded:
        columns = self.described(names)
        return Encoded.of(TemporaryView(self.coded(names), keep=True), columns)

    def described(self, names: Sequence[str]) -> dict[str, SparkColumn]:
        """Return what is known of columns; those that are new are looked at."""
        fresh = [name for name in names if name not in self._columns]
        with self.source.checked():
            if fresh:
                self._columns.update(describe_on_spark(self.source, fresh, self.request))
        return {name: self._columns[name] for name in names}

    def look_at_columns(self, names: Sequence[str]) -> KnownColumns:
        """Return what is known of columns before any is encoded.

        Those of a text with too many values for Spark to tell their type are left out.
        """
        try:
            columns = self.described(names)
        except FineColumnsError as error:
            rest = [name for name in names if name not in error.columns]
            if not rest:
                raise
            columns = self.described(rest)
        return KnownColumns(columns, next((column.records for column in columns.values()), 0))

    def coded(self, names: Sequence[str], beside: Sequence[str] = ()) -> Any:
        """Return a frame of codes, beside the values of all the columns if any are to be kept."""
        from pyspark.sql.types import StructField, StructType

        codings = [self._columns[name].coding for name in names]
        rest = [name for name in beside if name not in names]
        frame = self.source.frame([*names, *rest])
        types = [
            frame.schema[place].dataType if one.values is None else _small(one.size)
            for place, one in enumerate(codings)
        ]
        codes = [StructField(f"c{place}", kind) for place, kind in enumerate(types)]
        kept = list(frame.schema.fields) if beside else []
        task = coder(codings, keep=bool(beside), small=True)
        return frame.mapInArrow(task, StructType([*kept, *codes]))


def _small(size: int) -> Any:
    """Return what Spark calls the type of so many codes."""
    from pyspark.sql.types import ByteType, IntegerType, ShortType

    return {1: ByteType, 2: ShortType, 4: IntegerType}[code_type(size).itemsize]()


class MemoryData(SparkData):
    """Data that is in memory already."""

    def __init__(self, data: Microdata, session: SparkSession) -> None:
        super().__init__(data.name, data.names)
        self._data, self._session = data, session

    def _encode(self, names: Sequence[str]) -> Encoded:
        import pyarrow as pa  # type: ignore[import-untyped]

        codes = {name: self._data.codes(name) for name in names}
        values = [pa.array(c.values.astype(code_type(c.size))) for c in codes.values()]
        table = pa.table(values, names=[f"c{place}" for place in range(len(names))])
        frame = self._session.createDataFrame(table)
        columns = {name: self._column(name, c) for name, c in codes.items()}
        return Encoded.of(TemporaryView(frame, keep=True), columns)

    def _column(self, name: str, codes: Codes) -> SparkColumn:
        return SparkColumn(
            variable=self._data.variable(name),
            coding=ValueCoding(None, np.zeros(0, np.int32)),
            levels=codes.levels,
            has_missing=codes.has_missing,
            size=codes.size,
            records=len(codes.values),
            counts=count_codes(codes.values, codes.size),
        )


class _Part(SparkData):
    """The records of other data that have one code in a column."""

    def __init__(self, whole: SparkData, by: str, code: int) -> None:
        super().__init__(whole.name, whole.names)
        self._whole, self._by, self._code = whole, by, code

    def _encode(self, names: Sequence[str]) -> Encoded:
        held = self._whole.encoded([self._by])
        held = self._whole.encoded([n for n in names if n != self._by]) if names else held
        field = held.fields[self._by]
        frame = held.view.frame
        part = TemporaryView(frame.where(frame[field.name] == self._code), made_of=held.view)
        return Encoded(part, held.columns, held.fields)

    @property
    def records(self) -> int:
        counts = self._whole.encoded([self._by]).columns[self._by].counts
        return 0 if counts is None else int(counts[self._code])


def _shared(
    pairs: Sequence[tuple[str, str]], sizes: dict[str, int]
) -> Iterator[list[tuple[str, str]]]:
    """Cut the pairs into such as come to the driver together."""
    some: list[tuple[str, str]] = []
    cells = 0
    for pair in pairs:
        more = sizes[pair[0]] * sizes[pair[1]]
        if some and cells + more > CELLS_AT_ONCE:
            yield some
            some, cells = [], 0
        some.append(pair)
        cells += more
    if some:
        yield some


def attach_sizes(data: Any, *, keys: Sequence[str], missing: Missing = "own") -> DataFrame:
    """Return the records with a column ``f`` beside theirs: the size of each one's cell.

    The sizes are joined to the records on the cluster; nothing is collected. Write the frame
    with Spark, or go on with it.
    """
    if not isinstance(data, SourceData):
        raise OptionError(
            "data must be what open_records gives for a file or a frame on Spark. Got "
            f"{type(data).__name__} instead."
        )
    if missing == "wildcard":
        elsewhere("missing values that match everything")
    if "f" in data.names:
        raise OptionError("the data has a column 'f' already. Rename it, or leave it out.")
    names = data.require(keys)
    columns = data.described(names)
    ordered = [*names, *(name for name in data.names if name not in columns)]
    view = TemporaryView(data.coded(names, beside=ordered))
    key = list(Encoded.of(view, columns).fields.values())
    values = [f"v{ordered.index(name)}" for name in data.names]
    sized = view.ask(sql.attached(view.name, key, values, drop=missing == "drop"))
    view.close()  # the frame knows by now what it is made of
    return sized.toDF(*data.names, "f")
