"""Data on a cluster: what is known of its columns, and their codes where Spark keeps them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.data.describing import Request
from keyhole.data.microdata import Microdata
from keyhole.engines.protocol import AskedColumns
from keyhole.engines.spark.expressions import Field
from keyhole.engines.spark.jobs import View
from keyhole.engines.spark.levels import Column, describe_columns
from keyhole.engines.spark.sources import Source
from keyhole.engines.spark.tasks import Coding, code_type, coder
from keyhole.engines.storage import counted
from keyhole.errors import OptionError, RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Encoded", "SourceData", "SparkCodes", "SparkData", "elsewhere"]


def elsewhere(what: str) -> NoReturn:
    """Say that something needs the records here, and which engines have them."""
    raise OptionError(
        f"engine must be memory or disk for {what}. Got 'spark' instead, where the records stay "
        f"on the cluster."
    )


class SparkCodes(Codes):
    """The levels of a column whose codes are on the cluster."""

    __slots__ = ("_column",)

    def __init__(self, column: Column) -> None:
        object.__setattr__(self, "_column", column)

    @property
    def values(self) -> Any:
        """Refuse: they stay where they are."""
        elsewhere("the codes of every record")

    @property
    def levels(self) -> pl.Series:
        """The distinct values that are not missing, sorted."""
        column: Column = self._column  # type: ignore[attr-defined]
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

    view: View
    columns: Mapping[str, Column]
    fields: Mapping[str, Field]

    @classmethod
    def of(cls, view: View, columns: Mapping[str, Column]) -> Encoded:
        """Name the columns of a view, which stand there as c0, c1 and so on."""
        places = {name: f"c{place}" for place, name in enumerate(columns)}
        return cls(view, columns, {n: _field(places[n], c) for n, c in columns.items()})


def _field(name: str, column: Column) -> Field:
    if column.levels is None:
        return Field(name, None)
    return Field(name, column.size, len(column.levels) if column.has_missing else None)


class SparkData(AskedColumns):
    """The columns of data on a cluster; it offers what a stage needs of `Microdata`.

    Columns are encoded when they are first asked for, all those together that have been named
    by then (`require`), and the codes are kept on the cluster while this lives.
    """

    engine_name = "spark"

    def __init__(self, name: str, names: Iterable[str], *, note: str = "") -> None:
        super().__init__(name, names, note=note)
        self._held: Encoded | None = None

    @classmethod
    def of_source(cls, source: Source, request: Request, *, name: str) -> SparkData:
        """Take data that Spark reads."""
        chosen = request.choose(list(source.names), repr(name))
        return SourceData(name, chosen, source, request)

    @classmethod
    def of_microdata(cls, data: Microdata, session: SparkSession) -> SparkData:
        """Take data that is in memory, whose codes are sent to the cluster."""
        return _MemoryData(data, session)

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
        """The number of records."""
        return next(iter(self.encoded().columns.values())).records

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""
        return self.encoded([name]).columns[name].variable

    def codes(self, name: str) -> Codes:
        """Return the levels of a column; the codes themselves stay on the cluster."""
        return SparkCodes(self.encoded([name]).columns[name])

    def where(self, name: str, code: int) -> SparkData:
        """Return the records that have one code in a column."""
        return _Part(self, name, code)

    def column(self, name: str) -> pl.Series:
        """Refuse: the values stay on the cluster."""
        elsewhere(f"the values of column {name!r}")

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Refuse: the values stay on the cluster."""
        elsewhere(f"the weights in column {name!r}")

    def filter(self, mask: npt.NDArray[np.bool_]) -> SparkData:  # noqa: ARG002
        """Refuse: nobody here can tell one record from another."""
        elsewhere("choosing single records")


class SourceData(SparkData):
    """Data that Spark reads."""

    def __init__(self, name: str, names: Iterable[str], source: Source, request: Request) -> None:
        super().__init__(name, names)
        self.source, self.request = source, request
        self._columns: dict[str, Column] = {}

    def _encode(self, names: Sequence[str]) -> Encoded:
        columns = self.described(names)
        return Encoded.of(View(self.coded(names), keep=True), columns)

    def described(self, names: Sequence[str]) -> dict[str, Column]:
        """Return what is known of columns; those that are new are looked at."""
        fresh = [name for name in names if name not in self._columns]
        try:
            if fresh:
                self._columns.update(describe_columns(self.source, fresh, self.request))
        except RunError:
            self.source.check()
            raise
        return {name: self._columns[name] for name in names}

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


class _MemoryData(SparkData):
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
        return Encoded.of(View(frame, keep=True), columns)

    def _column(self, name: str, codes: Codes) -> Column:
        return Column(
            variable=self._data.variable(name),
            coding=Coding(None, np.zeros(0, np.int32)),
            levels=codes.levels,
            has_missing=codes.has_missing,
            size=codes.size,
            records=len(codes.values),
            counts=counted(codes.values, codes.size),
        )


class _Part(SparkData):
    """The records of other data that have one code in a column."""

    def __init__(self, whole: SparkData, by: str, code: int) -> None:
        super().__init__(whole.name, whole.names, note=whole.note)
        self._whole, self._by, self._code = whole, by, code

    def _encode(self, names: Sequence[str]) -> Encoded:
        held = self._whole.encoded([self._by])
        held = self._whole.encoded([n for n in names if n != self._by]) if names else held
        field = held.fields[self._by]
        frame = held.view.frame
        # The view of the whole is held as well: with it would go what was kept.
        part = _PartView(frame.where(frame[field.name] == self._code), held.view)
        return Encoded(part, held.columns, held.fields)

    @property
    def records(self) -> int:
        """The number of records."""
        counts = self._whole.encoded([self._by]).columns[self._by].counts
        return 0 if counts is None else int(counts[self._code])


class _PartView(View):
    def __init__(self, frame: Any, whole: View) -> None:
        super().__init__(frame)
        self._whole = whole
