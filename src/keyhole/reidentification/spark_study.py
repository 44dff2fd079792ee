"""A re-identification study on Spark: tasks attack the strata of both files, and counts come back.

Here are the different values of the linking variables, the strata and the counts; records, ids and
pairs stay on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.engines.spark.jobs import failures, run
from keyhole.engines.spark.levels import Column
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.beforehand import Header, check_names, stratum_problems
from keyhole.reidentification.costs import Graded
from keyhole.reidentification.linking import Attack, check_variables, prepare
from keyhole.reidentification.question import Question
from keyhole.reidentification.result import Study
from keyhole.reidentification.spark_answers import Answers, Groups, put_together
from keyhole.reidentification.spark_blocks import COUNTS, Block, by_broadcast, by_stratum
from keyhole.reidentification.spark_files import Encoding, SparkFile
from keyhole.reidentification.spark_truth import (
    Ids,
    attach_mates,
    beside,
    find_truth_on_spark,
    named_pairs,
)
from keyhole.reidentification.strata import number_strata
from keyhole.reidentification.variables import Category, common_codes, linking_category

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["study_on_spark"]

BROADCAST = 1 << 28
"""So many bytes of the EIF, as codes and ids, may go to every worker where there are no strata."""
ID_BYTES = 48


def study_on_spark(
    files: tuple[SparkFile, SparkFile, SparkFile],
    ids: Ids,
    question: Question,
) -> Study:
    """Run a study whose records are on Spark; the answers are those of `study` in memory.

    Parameters
    ----------
    files
        The PUF, the EIF and the IUF.
    ids
        The columns that name a record of the PUF, and of the EIF.
    question
        What is asked.
    """
    question = question.with_scores()
    puf, eif, iuf = files
    if puf.name == eif.name:
        puf, eif = replace(puf, name=f"PUF {puf.name}"), replace(eif, name=f"EIF {eif.name}")
    problems = check_names([Header(one.name, one.names) for one in (puf, eif, iuf)], ids, question)
    if problems:
        raise OptionError(problems)
    sides = _Sides.look(puf, eif, question)
    check_variables(*sides.levels, question)
    _require_blocks(question, sides.records[1])
    attack = prepare(*sides.levels, question, sides.counts())
    order = [column.order for column in eif.id_columns(ids[1]).values()]
    with _kept(*sides.encoded(ids), named_pairs(iuf, ids)) as (one, other, named):
        truth = find_truth_on_spark(iuf.name, named, (one, other), ids)
        groups = sides.groups(one, other) if question.strata else None
        block = Block(
            _bare(attack), tuple(sides.agreeing(attack)), groups.numbers() if groups else {},
            order,
        )  # fmt: skip
        counts = _attack(attach_mates(one, truth), other, block)
    lacking = [
        name for name in question.link if name in iuf.names and name not in {*ids[0], *ids[1]}
    ]
    answers = Answers(attack, sides.records, truth, groups, pl.DataFrame(counts), lacking)
    return put_together(answers, sides.levels[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """The two files with the different values of their columns.

    `levels` are these values as small files: a row for each code, the last of them missing.
    """

    question: Question
    files: tuple[SparkFile, SparkFile]
    columns: tuple[dict[str, Column], dict[str, Column]]
    levels: tuple[Microdata, Microdata]

    @classmethod
    def look(cls, puf: SparkFile, eif: SparkFile, question: Question) -> _Sides:
        """Count the values of the columns that are asked for."""
        names = (*question.link, *question.strata)
        with failures():
            columns = puf.columns(names), eif.columns(names)
        found = cls(
            question, (puf, eif), columns, (_levels(puf, columns[0]), _levels(eif, columns[1]))
        )
        for file, records in zip(found.files, found.records, strict=True):
            file.require_records(records)
        return found

    @property
    def records(self) -> tuple[int, int]:
        """How many records each has."""
        puf, eif = (next(iter(one.values())).records for one in self.columns)
        return puf, eif

    def counts(self) -> dict[str, tuple[Ints, Ints]]:
        """Return by linking variable how many records have each code, in both files."""
        return {name: (self._count(0, name), self._count(1, name)) for name in self.question.link}

    def _count(self, side: int, name: str) -> Ints:
        out = np.zeros(self.levels[side].records, dtype=np.int64)
        held = self.columns[side][name].counts
        if held is not None:
            out[: len(held)] = held
        return out

    def agreeing(self, attack: Attack) -> Iterator[Category | Graded]:
        """Return what tells on which variables a pair agrees."""
        asked, counts = self.question, self.counts()
        priced = attack.costs.by_name() if asked.metric == "adhoc" and attack.costs else {}
        for name in asked.link:
            found = priced.get(name) or linking_category(*self.levels, name, asked, counts[name])
            yield _unnamed(found) if isinstance(found, Category) else found

    def encoded(self, ids: Ids) -> tuple[DataFrame, DataFrame]:
        """Return the records of both files as codes and ids, on the cluster."""
        strata = [common_codes(*self.levels, name) for name in self.question.strata]
        frames = []
        for side, file in enumerate(self.files):
            codes = {}
            for i, name in enumerate(self.question.link):
                codes[f"v{i}"] = name, self.columns[side][name].coding
            for i, common in enumerate(strata):
                own = self.columns[side][common.name].coding
                shared = (common.puf, common.eif)[side][own.codes]
                codes[f"s{i}"] = common.name, replace(own, codes=shared)
            parts = ids[1] if side else ()
            frames.append(Encoding(codes, {"id": ids[side]}, parts).apply(file))
        return frames[0], frames[1]

    def groups(self, one: DataFrame, other: DataFrame) -> Groups:
        """Count the records of each stratum, and number the strata as `study` does."""
        names, keys = self.question.strata, _keys(self.question.strata)
        table = run(beside(one, other, *keys).groupBy("side", *keys).count())
        commons = [common_codes(*self.levels, name) for name in names]
        files, counts, found = [], [], []
        for side, data in enumerate(self.levels):
            here = table.filter(np.asarray(table["side"]) == side)
            codes = [here[key].to_numpy() for key in keys]
            files.append(_strata_file(data, commons, codes))
            counts.append(here["count"].to_numpy())
            found.append([tuple(map(int, row)) for row in zip(*codes, strict=True)])
        strata = number_strata(files[0], files[1], names)
        return Groups(strata, (counts[0], counts[1]), (found[0], found[1]))


def _keys(strata: Sequence[str]) -> list[str]:
    return [f"s{i}" for i in range(len(strata))]


def _levels(file: SparkFile, columns: dict[str, Column]) -> Microdata:
    levels = {name: column.levels for name, column in columns.items() if column.levels is not None}
    height = 1 + max(len(one) for one in levels.values())
    frame = pl.DataFrame(
        [one.extend_constant(None, height - len(one)).alias(name) for name, one in levels.items()]
    )
    variables = tuple(
        replace(column.variable, missing_codes=(), missing_ranges=(), parsed=None)
        for column in columns.values()
    )
    return Microdata(frame, variables, file.name)


def _strata_file(
    levels: Microdata, commons: Sequence[Category], codes: Sequence[npt.NDArray[Any]]
) -> Microdata:
    """Return the strata of a file, a row each, as the values of their variables."""
    columns = [
        common.levels.extend_constant(None, 1).gather(own).alias(common.name)
        for common, own in zip(commons, codes, strict=True)
    ]
    return Microdata(
        pl.DataFrame(columns), tuple(levels.variable(c.name) for c in commons), levels.name
    )


def _require_blocks(question: Question, eif_records: int) -> None:
    """Say so if there is nothing to cut the work by."""
    if question.strata:
        return
    problems = stratum_problems(question)
    if problems:
        raise OptionError(problems)
    size = eif_records * (4 * len(question.link) + ID_BYTES)
    if size > BROADCAST:
        raise OptionError(
            f"strata must name columns to cut the work by, since the EIF's {eif_records:,} records "
            f"are too many to be sent to every worker. Got none instead: name some (--strata), or "
            f"use the memory engine (--engine memory), which needs none."
        )


def _bare(attack: Attack) -> Attack:
    """Return the attack without the values that codes stand for: tasks do not need them."""
    costs = attack.costs
    if costs is not None:
        costs = replace(costs, counted=tuple(map(_unnamed, costs.counted)))
    question = replace(attack.question, scores=None)
    categories = tuple(map(_unnamed, attack.categories))
    return replace(attack, question=question, categories=categories, costs=costs)


def _unnamed(category: Category) -> Category:
    return replace(category, levels=pl.Series(range(len(category.levels))))


@contextmanager
def _kept(*frames: DataFrame) -> Iterator[tuple[DataFrame, ...]]:
    """Keep frames that several jobs need, until they are done."""
    with failures():
        held = tuple(frame.persist() for frame in frames)
        try:
            yield held
        finally:
            for frame in held:
                frame.unpersist()


def _attack(puf: DataFrame, eif: DataFrame, block: Block) -> Any:
    """Run the tasks; return their counts as a table of Arrow."""
    if not block.strata:
        return run(puf.mapInArrow(by_broadcast(block, run(eif)), COUNTS))
    keys = _keys(block.attack.question.strata)
    both = puf.groupBy(*keys).cogroup(eif.groupBy(*keys))
    return run(both.applyInArrow(by_stratum(block), COUNTS))
