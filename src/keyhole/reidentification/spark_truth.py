"""Who is who on Spark: the ids of the files, and the pairs that the internal file names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keyhole.engines.spark.jobs import run
from keyhole.errors import ColumnError
from keyhole.reidentification.spark_files import Encoding, SparkFile
from keyhole.reidentification.truth import (
    id_problems,
    require_rows,
    unknown_problems,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "SparkTruth",
    "attach_mates",
    "beside",
    "find_truth_on_spark",
    "named_pairs",
]

Ids = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class SparkTruth:
    """The pairs that are one person, on the cluster, and what is counted of them.

    Parameters
    ----------
    pairs
        The ids of the distinct true pairs, as text, in columns ``puf`` and ``eif``.
    overlap
        PUF records that are in the EIF too.
    rows, incomplete
        The rows of the IUF, and those of them without one of the two ids.
    """

    pairs: DataFrame
    overlap: int
    rows: int
    incomplete: int


def named_pairs(iuf: SparkFile, ids: Ids) -> DataFrame:
    """Return the ids that each row of the IUF names, as text in columns ``puf`` and ``eif``."""
    return Encoding({}, {"puf": ids[0], "eif": ids[1]}).apply(iuf)


def find_truth_on_spark(
    iuf: str, named: DataFrame, frames: tuple[DataFrame, DataFrame], ids: Ids
) -> SparkTruth:
    """Find the pairs that the IUF names, or say all that is wrong with the ids.

    Parameters
    ----------
    iuf, named
        What the internal file is called, and the ids that it names.
    frames
        The encoded records of the PUF and of the EIF, with the column ``id``.
    ids
        The columns of each id.
    """
    problems = []
    counted = _count_ids(frames)
    for file, names, counts in zip(("PUF", "EIF"), ids, counted, strict=True):
        problems += id_problems(file, names, *counts)
    if problems:
        raise ColumnError(problems)
    rows, incomplete, overlap, *unknown = _count_named(named, frames)
    require_rows(iuf, rows)
    for file, names, count in zip(("PUF", "EIF"), ids, unknown, strict=True):
        problems += unknown_problems(file, names, count, rows)
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
    rows = run(by_id.groupBy("side").agg(*summed)).to_pylist()
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
    row = run(joined.agg(*(count.alias(f"n{i}") for i, count in enumerate(counts))))
    return [int(column[0].as_py()) for column in row.columns]


def attach_mates(puf: DataFrame, truth: SparkTruth) -> DataFrame:
    """Give each PUF record the ids of its true mates, in a column ``mates``."""
    from pyspark.sql import functions as F  # noqa: N812

    mates = truth.pairs.groupBy("puf").agg(F.collect_list("eif").alias("mates"))
    return puf.join(mates.withColumnRenamed("puf", "id"), "id", "left")
