"""Data on a cluster: what is known of its columns, and their codes where Spark keeps them."""
# ruff: noqa: D102 (what the methods of data are for is said once, in `Records`)

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import compute

from keyhole.core.options import Problem
from keyhole.data.columns import Codes, Variable
from keyhole.data.describing import Request
from keyhole.data.frames import from_arrow
from keyhole.data.microdata import Microdata
from keyhole.data.missing import blank
from keyhole.engines.disk_encoding import FILLED, GLANCE, Numbered, coded_values
from keyhole.engines.protocol import AskedColumns, Engine, Missing
from keyhole.engines.storage import MEMORY, Storage, count_codes
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Ints
from keyhole.spark import sql
from keyhole.spark.session import TemporaryView, collect
from keyhole.spark.sources import SparkSource, TextSource
from keyhole.spark.sql import ViewField
from keyhole.spark.tasks import (
    ValueCoding,
    code_type,
    coder,
    pair_counter,
    plain_floats,
    positions,
    value_counter,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MOST_LEVELS = 1 << 20
"""A column with more different values is not coded: they would have to come to the driver."""
AT_ONCE = 40
"""So many columns are looked at in one pass: each value travels in a row that has them all."""


@dataclass(frozen=True, slots=True, eq=False)
class SparkColumn:
    """What is known of a column on Spark; levels and counts are None where there are too many."""

    variable: Variable
    coding: ValueCoding
    levels: pl.Series | None
    has_missing: bool
    size: int
    records: int  # of the whole column
    counts: Ints | None  # the records of each code

    def field(self, name: str) -> ViewField:
        """Return the column as it is called in a view."""
        if self.levels is None:
            return ViewField(name, None)
        return ViewField(name, self.size, len(self.levels) if self.has_missing else None)


class FineColumnsError(ColumnError):
    """Columns have more different values than Spark can tell the type of; nothing else is wrong."""

    def __init__(self, problems: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(problems)
        self.columns = tuple(columns)


def describe_on_spark(
    source: SparkSource, names: Sequence[str], request: Request
) -> dict[str, SparkColumn]:
    """Look at the different values of some columns, some tens of them in one pass."""
    out: dict[str, SparkColumn] = {}
    problems: list[str] = []
    fine: list[str] = []
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        survey = _Survey(source, some)
        for place, name in enumerate(some):
            try:
                if survey.is_fine(place):
                    out[name] = _kept(survey, place, request)
                else:
                    out[name] = _coded(survey.found(place), source, request)
            except InputError as error:
                problems += error.problems
                fine += [name] if survey.is_fine(place) else []
    if problems and len(fine) + len(out) == len(names):
        raise FineColumnsError(problems, fine)
    if problems:
        raise ColumnError(problems)
    return out


class _Survey:
    """The different values of some columns with their records, counted once on the cluster."""

    def __init__(self, source: SparkSource, names: Sequence[str]) -> None:
        self.source, self.names = source, names
        self._head = source.head(names)
        self._whole = source.frame(names)
        counts = TemporaryView(_counts(self._whole))
        placed = ["place", *positions(len(names))]
        levels = counts.ask(sql.merged(counts.name, placed, weighted=True))
        self._counted = TemporaryView(levels, keep=True)
        totals = collect(self._counted.ask(sql.levels_by_column(self._counted.name)))
        self.totals = {row["place"]: row for row in totals.to_pylist()}
        few = [place for place, row in self.totals.items() if row["levels"] <= MOST_LEVELS]
        # No column has the number -1, so that the query gives no rows then.
        self._few = collect(self._counted.ask(sql.some_levels(self._counted.name, few or [-1])))

    def is_fine(self, place: int) -> bool:
        """Whether a column has too many values to be coded."""
        return bool(self.totals.get(place, {"levels": 0})["levels"] > MOST_LEVELS)

    def found(self, place: int) -> Numbered:
        """Number the values of a column, a missing one as 0."""
        some = self._few.filter(np.asarray(self._few.column("place")) == place)
        values, counts = some.column(f"v{place}").combine_chunks(), np.asarray(some.column("n"))
        known = np.asarray(values.is_valid())
        held = np.append(counts[~known].sum(), counts[known]).astype(np.int64)
        values = values.drop_null()
        if self._head is None:
            return Numbered(self.names[place], values, held, _evenly(held), _NONE)
        first = _ids(self._head[self.names[place]], values)
        return Numbered(self.names[place], values, held, first, self._filled(first, values, place))

    def _filled(self, first: Ints, values: Any, place: int) -> Ints:
        """Return the first values that are not missing, which tell the type if none is near."""
        near: Ints = first[first != 0]
        if len(first) < GLANCE or (first[:FILLED] != 0).any() or len(near) >= FILLED:
            some: Ints = near[:FILLED]
            return some
        column = self._whole[f"v{place}"]
        rest = self._whole.select(column).where(column.isNotNull()).limit(FILLED)
        return _ids(collect(rest).column(0), values)

    def sample(self, place: int) -> pl.Series:
        """Return some of the different values of a column that has too many."""
        counted = self._counted.frame
        some = counted.where(counted["place"] == place).select(f"v{place}").limit(GLANCE)
        name = self.names[place]
        return self.source.pieces.values(name, collect(some).column(0).combine_chunks())


def _counts(frame: DataFrame) -> DataFrame:
    """Count the values of all columns in the tasks that hold them."""
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    fixed = [StructField("place", IntegerType()), StructField("n", LongType())]
    schema = StructType([*fixed, *(StructField(f.name, f.dataType) for f in frame.schema)])
    return frame.mapInArrow(value_counter(len(frame.columns)), schema)


_NONE: Ints = np.zeros(0, dtype=np.int64)


def _ids(column: Any, values: Any) -> Ints:
    places = compute.index_in(column, value_set=values).fill_null(-1)
    if hasattr(places, "combine_chunks"):
        places = places.combine_chunks()
    ids: Ints = places.to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return ids


def _evenly(held: Ints) -> Ints:
    """Stand for records that have no order: each value about as often as it comes."""
    records = int(held.sum())
    drawn = np.arange(min(records, GLANCE), dtype=np.int64) * max(records, GLANCE) // GLANCE
    numbers: Ints = np.searchsorted(np.cumsum(held), drawn, side="right")
    return numbers


def _coded(found: Numbered, source: SparkSource, request: Request) -> SparkColumn:
    variable, codes, table = coded_values(found, source.pieces, request)
    missing = len(codes.levels)
    table = table.astype(np.int32)
    table[0] = missing
    counts = np.bincount(table, weights=found.counts, minlength=codes.size).astype(np.int64)
    values = plain_floats(found.values)
    # The code of a missing value, and then those of the values that are none.
    known = table[np.append(True, np.asarray(values.is_valid()))]
    coding = ValueCoding(values.drop_null(), known, has_missing=codes.has_missing)
    held = codes.levels, codes.has_missing, codes.size, found.records, counts[: codes.size]
    return SparkColumn(variable, coding, *held)


def _kept(survey: _Survey, place: int, request: Request) -> SparkColumn:
    name, total = survey.names[place], survey.totals[place]
    sample = survey.sample(place)
    kept, variable = survey.source.pieces.described(sample, request)
    if isinstance(survey.source, TextSource) or variable.parsed is not None:
        raise OptionError(
            f"column {name!r} has more than {MOST_LEVELS:,} different values, too many to "
            f"determine their type on Spark. Leave the column out, or write the file as Parquet, "
            f"which states the types."
        )
    blanks = partial(_blanks, variable, kept.dtype)
    coding = ValueCoding(None, np.zeros(0, np.int32), blanks)
    size, records = int(total["levels"]), int(total["records"])
    return SparkColumn(variable, coding, None, True, size, records, None)


def _blanks(variable: Variable, dtype: pl.DataType, column: Any) -> npt.NDArray[np.bool_]:
    """Tell which values of a column are missing, as `load` would."""
    series = from_arrow(pa.table({variable.name: column}))[variable.name].cast(dtype)
    return blank(series, variable).is_null().to_numpy()


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
        """Yield for each pair of comparable columns its occupied cells: counts, rows, columns."""
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
        """Return what is known of columns before any is encoded; texts too fine are left out."""
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
        from pyspark.sql.types import ByteType, IntegerType, ShortType, StructField, StructType

        small = {1: ByteType, 2: ShortType, 4: IntegerType}
        codings = [self._columns[name].coding for name in names]
        rest = [name for name in beside if name not in names]
        frame = self.source.frame([*names, *rest])
        types = [
            frame.schema[place].dataType
            if one.values is None
            else small[code_type(one.size).itemsize]()
            for place, one in enumerate(codings)
        ]
        codes = [StructField(f"c{place}", kind) for place, kind in enumerate(types)]
        kept = list(frame.schema.fields) if beside else []
        task = coder(codings, keep=bool(beside), small=True)
        return frame.mapInArrow(task, StructType([*kept, *codes]))


class MemoryData(SparkData):
    """Data that is in memory already."""

    def __init__(self, data: Microdata, session: SparkSession) -> None:
        super().__init__(data.name, data.names)
        self._data, self._session = data, session

    def _encode(self, names: Sequence[str]) -> Encoded:
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
