"""Implicates drawn on Spark: each implicate of each pool of records by a task of its own.

Whatever looks at the whole file stays where it is: who is at risk, what is replaced, the pools. The
records of a pool go to a task as codes, through Arrow, and row numbers of donors come back. The
generators are made of the seed, the implicate and the pool, so that it does not matter how many
tasks there are, nor which of them is run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from keyhole.core.options import Question
from keyhole.data import Codes, Microdata, Variable, load
from keyhole.engines.choose import is_of_pyspark
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Flags, Ints
from keyhole.spark.tasks import without_words
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.constraints import Acceptance, Constraint
from keyhole.synthesis.design import LevelScores
from keyhole.synthesis.implicates import Progress, Task, draw_pool, model_columns
from keyhole.synthesis.rules import EditRules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Arrays = dict[str, npt.NDArray[Any]]

NOBODY = -1
"""The subgroup of a record that is in the pool for the sake of its model alone."""


def load_here(source: Any, session: SparkSession) -> Microdata:
    """Load a frame of Spark's own, a folder of Parquet, or what `load` reads, in Spark's order."""
    from keyhole.spark.session import collect

    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        from keyhole.spark.sources import ParquetSource, called, open_source

        opened = open_source(os.fspath(source), session)
        if not isinstance(opened, ParquetSource):
            raise OptionError(
                f"a folder to synthesise must hold Parquet files. Got others in "
                f"{os.fspath(source)!r} instead: write them as one file, or as Parquet."
            )
        held = collect(opened.frame(opened.names)).rename_columns(list(opened.names))
        return load(held, name=called(os.fspath(source)))
    if is_of_pyspark(source, "DataFrame"):
        return load(collect(source))
    return load(source)


def draw_on(
    session: SparkSession, task: Task, progress: Progress | None = None
) -> Iterator[tuple[int, Ints, Ints]]:
    """Draw a task on a Spark session; see `keyhole.synthesis.implicates.Drawing`."""
    from pyspark.sql import functions as F  # noqa: N812

    from keyhole.spark.session import collect

    if not task.pools:
        return
    every = F.sequence(F.lit(0), F.lit(task.implicates - 1))
    records = session.createDataFrame(_table(task)).withColumn("implicate", F.explode(every))
    targets = len(task.plan.targets)
    columns = ["implicate int", "row long", *(f"donor{t} long" for t in range(targets))]
    drawn = records.groupBy("pool", "implicate").applyInArrow(
        _drawing(_recipe(task), task.seed), ", ".join(columns)
    )
    found = [column.to_numpy() for column in collect(drawn).columns]
    for implicate in range(task.implicates):
        here = found[0] == implicate
        yield implicate, found[1][here], np.column_stack([one[here] for one in found[2:]])
    if progress is not None:
        progress(1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Recipe:
    """What every task needs to know: the plan but for its records, and what codes stand for."""

    targets: tuple[str, ...]
    predictors: Mapping[str, tuple[str, ...]]
    question: Question
    first: frozenset[str]
    level_scores: Mapping[str, LevelScores]
    columns: Mapping[str, tuple[Variable, pl.Series, bool]]
    rules: EditRules | None
    constraints: tuple[Constraint, ...]

    def plan(self, part: _Part, held: Arrays) -> DrawingPlan:
        """Return the plan of some records."""
        blank = self._flags("replace", held)
        constraints = tuple(
            replace(constraint, groups=held[f"constraint{i}"].astype(np.int64))
            for i, constraint in enumerate(self.constraints)
        )
        change = self._flags("must_change", held) if "must_change0" in held else None
        acceptance = Acceptance(part, self.targets, self.rules, change, constraints, blank)
        alike = self._flags("alike", held) if "alike0" in held else None
        return DrawingPlan(
            self.targets, self.predictors, blank, self.question, acceptance, self.first, alike
        )

    def _flags(self, name: str, held: Arrays) -> Flags:
        return np.column_stack([held[f"{name}{t}"] for t in range(len(self.targets))])


def _recipe(task: Task) -> _Recipe:
    data, plan = task.data, task.plan
    held = {name: data.codes(name) for name in _columns(plan)}
    about = {name: (data.variable(name), c.levels, c.has_missing) for name, c in held.items()}
    nobody = np.zeros(0, dtype=np.int64)
    constraints = tuple(replace(one, groups=nobody) for one in plan.acceptance.constraints)
    # Neither a session nor a secret leaves this process.
    question = plan.question.replace(engine="spark", rules=None, seed=None)
    return _Recipe(
        plan.targets, plan.predictors, question, plan.first, task.level_scores, about,
        plan.acceptance.rules, constraints,
    )  # fmt: skip


def _columns(plan: DrawingPlan) -> tuple[str, ...]:
    """Return the columns that drawing looks at: of the models, and of the rules."""
    rules = plan.acceptance.rules
    return tuple(dict.fromkeys([*model_columns(plan), *sorted(rules.columns if rules else ())]))


def _table(task: Task) -> Any:
    """Return the records of all pools, one below the other, as an Arrow table."""
    rows = np.concatenate([pool.rows for pool in task.pools])
    sizes = [len(pool.rows) for pool in task.pools]
    plan, acceptance = task.plan, task.plan.acceptance
    columns: Arrays = {
        "pool": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        "row": rows,
        "subgroup": np.full(len(rows), NOBODY, dtype=np.int32),
    }
    for start, pool in zip(np.cumsum([0, *sizes]), task.pools, strict=False):
        for number, places in enumerate(pool.members()):
            columns["subgroup"][start + places] = number
    for i, name in enumerate(_columns(plan)):
        columns[f"code{i}"] = task.data.codes(name).values[rows].astype(np.int32)
    for t in range(len(plan.targets)):
        columns[f"replace{t}"] = plan.replace[rows, t]
        if plan.alike is not None:
            columns[f"alike{t}"] = plan.alike[rows, t]
        if acceptance.must_change is not None:
            columns[f"must_change{t}"] = acceptance.must_change[rows, t]
    for i, constraint in enumerate(acceptance.constraints):
        columns[f"constraint{i}"] = constraint.groups[rows].astype(np.int32)
    return pa.table(columns)


class _Part:
    """The records of one pool, with the codes of the whole file."""

    def __init__(self, recipe: _Recipe, held: Arrays) -> None:
        self._about, self._codes = recipe.columns, {}
        for i, (name, (_, levels, has_missing)) in enumerate(recipe.columns.items()):
            self._codes[name] = Codes(held[f"code{i}"], levels, has_missing)

    def codes(self, name: str) -> Codes:
        return self._codes[name]

    def column(self, name: str) -> pl.Series:
        codes = self._codes[name]
        return codes.levels.extend_constant(None, 1).gather(codes.values).alias(name)

    def variable(self, name: str) -> Variable:
        return self._about[name][0]


def _drawing(recipe: _Recipe, seed: int) -> Callable[[Any, Any], Any]:
    """Return what draws one implicate of one pool inside a task.

    It tells who was given what, by the numbers of the records in the file.
    """

    def draw(key: Any, table: Any) -> Any:
        from threadpoolctl import threadpool_limits

        with without_words(), threadpool_limits(1, user_api="blas"):
            pool, implicate = (int(one.as_py()) for one in key)
            # Of several equal predictions the first is taken: records come in the file's order.
            ordered = table.sort_by("row")
            held = {name: ordered[name].to_numpy() for name in ordered.column_names}
            part, rows, groups = _Part(recipe, held), held["row"], held["subgroup"]
            every = range(int(groups.max()) + 1)
            members = [np.flatnonzero(groups == n).astype(np.int32) for n in every]
            plan, places = recipe.plan(part, held), np.arange(len(rows))
            chain = draw_pool(part, plan, places, members, recipe.level_scores, (seed, pool))
            drawn = chain(implicate)
            replaced = np.concatenate([rows[one] for one, _ in drawn])
            given = np.concatenate([rows[donors] for _, donors in drawn])
            columns = {"implicate": np.full(len(replaced), implicate, np.int32), "row": replaced}
            columns |= {f"donor{t}": given[:, t] for t in range(given.shape[1])}
            return pa.table(columns)

    return draw
