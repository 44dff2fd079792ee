"""The different values of columns on Spark, and the codes that `load` would give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.describing import Request
from keyhole.data.missing import blank
from keyhole.engines.disk_encoding import FILLED, GLANCE, Numbered, coded_values
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Ints
from keyhole.spark import sql
from keyhole.spark.session import TemporaryView, collect
from keyhole.spark.sources import SparkSource, TextSource
from keyhole.spark.sql import ViewField
from keyhole.spark.tasks import ValueCoding, plain_floats, positions, value_counter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MOST_LEVELS = 1 << 20
"""A column with more different values is not coded: they would have to come to the driver."""
AT_ONCE = 40
"""So many columns are looked at in one pass: each value travels in a row that has them all."""


@dataclass(frozen=True, slots=True, eq=False)
class SparkColumn:
    """What is known of a column on Spark.

    `levels` is None where there are too many; `counts` are the records of each code then, too.
    `records` are those of the whole column.
    """

    variable: Variable
    coding: ValueCoding
    levels: pl.Series | None
    has_missing: bool
    size: int
    records: int
    counts: Ints | None

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
        levels = counts.ask(sql.level_counts(counts.name, positions(len(names))))
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
    from pyarrow import compute  # type: ignore[import-untyped]

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
            f"column {name!r} has more than {MOST_LEVELS:,} different values, too many to find "
            f"out their type on Spark. Leave the column out, which sets nearly every record "
            f"apart, or write the file as Parquet, which tells the types."
        )
    blanks = partial(_blanks, variable, kept.dtype)
    coding = ValueCoding(None, np.zeros(0, np.int32), blanks)
    size, records = int(total["levels"]), int(total["records"])
    return SparkColumn(variable, coding, None, True, size, records, None)


def _blanks(variable: Variable, dtype: pl.DataType, column: Any) -> npt.NDArray[np.bool_]:
    """Tell which values of a column are missing, as `load` would."""
    import pyarrow as pa

    from keyhole.data.frames import from_arrow

    series = from_arrow(pa.table({variable.name: column}))[variable.name].cast(dtype)
    return blank(series, variable).is_null().to_numpy()
