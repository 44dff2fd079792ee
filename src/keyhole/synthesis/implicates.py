"""Implicates: who receives which value from whom, for the whole file, m times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.marks import COUNT
from keyhole.data import Microdata
from keyhole.engines.resources import in_threads
from keyhole.exposure.regrouping import level_label
from keyhole.kernels.arrays import Flags, Ints
from keyhole.synthesis.chains import Chain, DrawingPlan, Folds
from keyhole.synthesis.design import (
    Coded,
    Design,
    LevelScores,
    make_design,
    make_level_scores,
    mark_name,
    with_marks,
)

# A subgroup with fewer records than this shares the model of the pooled neighbours, and released
# implicates of a pool with so many share their folds.
LARGE_POOL = 4_000
# Fewer records at risk than this, in the whole file, share the model of all others.
SMALLEST_POOL = 250
# A subgroup with so many records at risk takes their donors from among them.
SMALLEST_STATUS = 15


@dataclass(frozen=True, slots=True)
class Subgroup:
    """A subgroup by the values of its strata, how many records it has, and whether at risk."""

    strata: Mapping[str, str]
    records: Annotated[int, COUNT]
    at_risk: bool

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.strata.items())
        which = "at risk" if self.at_risk else "not at risk"
        return f"{values or 'all'} ({self.records:,} records {which})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Implicates:
    """Who receives which value from whom.

    `rows` are the records replaced, `donors` for each implicate the donor of each record and
    target; a record that keeps its value is its own donor. `placebo` has the donors of one
    implicate more, with folds of its own, which is never released: the truth of a placebo. Targets
    in `whole` are drawn for every record.
    """

    data: Microdata
    targets: tuple[str, ...]
    rows: Ints
    donors: tuple[npt.NDArray[np.int32], ...]
    subgroups: int
    borrowed: int
    borrowing: tuple[Subgroup, ...] = ()
    placebo: npt.NDArray[np.int32] | None = None
    whole: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.donors)

    @property
    def telling(self) -> tuple[str, ...]:
        """The targets whose changes tell who was designated: those not drawn for everybody."""
        return tuple(name for name in self.targets if name not in self.whole) or self.targets

    def frame(self, implicate: int) -> pl.DataFrame:
        """Return the file with the values of one implicate."""
        return self.data.frame.with_columns(self.column(implicate, name) for name in self.targets)

    def column(self, implicate: int, target: str) -> pl.Series:
        """Return one target's values in one implicate."""
        return self.data.frame[target].gather(self.source(implicate, target))

    def source(self, implicate: int, column: str) -> Ints:
        """Return for each record of the file the record whose value of a column it has."""
        source = np.arange(self.data.records)
        if column in self.targets:
            source[self.rows] = self.donors[implicate][:, self.targets.index(column)]
        return source


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Records that share a model, and the subgroups among them that use it."""

    rows: Ints
    subgroups: list[Ints]
    borrows: bool

    def members(self) -> list[npt.NDArray[np.int32]]:
        """Return for each subgroup the places of its records in the pool."""
        return [np.searchsorted(self.rows, rows).astype(np.int32) for rows in self.subgroups]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """All that is to be drawn: each implicate of each pool is a piece of work by itself."""

    data: Microdata
    plan: DrawingPlan
    pools: Sequence[Pool]
    level_scores: Mapping[str, LevelScores]
    implicates: int
    seed: int


Progress = Callable[[float], None]
Drawing = Callable[[Task, Progress | None], Iterable[tuple[int, Ints, Ints]]]
"""Draws a task: yields an implicate, records replaced, and for each the donor of each target."""


def draw_implicates(
    data: Microdata,
    plan: DrawingPlan,
    *,
    strata: Sequence[str] = (),
    at_risk: npt.NDArray[np.bool_] | None = None,
    implicates: int = 5,
    seed: int,
    progress: Progress | None = None,
    drawing: Drawing | None = None,
) -> Implicates:
    """Draw the implicates: for every record to be replaced a donor of each target.

    Each implicate and subgroup has a generator of its own, so that neither the order of the
    work nor the number of threads changes anything. Records `at_risk` are so because their values
    are rare, so that models and donors of all records together would make the file more ordinary
    than it was; where there are enough of them in a subgroup, they are one of their own. What is
    drawn beyond the implicates of the plan's question is a placebo.
    """
    replaced = np.flatnonzero(plan.replace.any(axis=1))
    place = np.full(data.records, -1, dtype=np.int64)
    place[replaced] = np.arange(len(replaced))
    own = np.repeat(replaced[:, None], len(plan.targets), axis=1).astype(np.int32)
    donors = [own.copy() for _ in range(implicates)]
    pools = list(_pools(data, plan, strata, at_risk))
    level_scores = make_level_scores(data, plan.predictors, dimensions=plan.question.dimensions)
    task = Task(data, plan, pools, level_scores, implicates, seed)
    for implicate, rows, given in (drawing or draw_here)(task, progress):
        donors[implicate][place[rows]] = given
    borrowing = []
    for rows in (rows for pool in pools if pool.borrows for rows in pool.subgroups):
        values = {n: level_label(data, n, int(data.codes(n).values[rows[0]])) for n in strata}
        risky = at_risk is not None and bool(at_risk[rows].all())
        borrowing.append(Subgroup(values, len(rows), risky))
    count = sum(len(pool.subgroups) for pool in pools)
    drawn = (tuple(donors), count, len(borrowing), tuple(borrowing))
    return Implicates(data, plan.targets, replaced, *drawn)


def draw_here(task: Task, progress: Progress | None = None) -> Iterator[tuple[int, Ints, Ints]]:
    """Draw a task in this process: pool by pool, the implicates on as many threads as cores."""
    from threadpoolctl import threadpool_limits

    work, done = sum(len(pool.rows) for pool in task.pools) or 1, 0
    for number, pool in enumerate(task.pools):
        unit = (task.seed, number)
        draw = draw_pool(task.data, task.plan, pool.rows, pool.members(), task.level_scores, unit)
        # One thread of linear algebra in each of ours, so that sums are the same every time.
        with threadpool_limits(1, user_api="blas"):
            found = in_threads(draw, range(task.implicates))
        for implicate, drawn in enumerate(found):
            for rows, given in drawn:
                yield implicate, rows, given
        done += len(pool.rows)
        if progress is not None:
            progress(done / work)


def draw_pool(
    data: Coded,
    plan: DrawingPlan,
    rows: Ints,
    members: Sequence[npt.NDArray[np.int32]],
    level_scores: Mapping[str, LevelScores],
    unit: tuple[int, int],
) -> Callable[[int], list[tuple[Ints, Ints]]]:
    """Return what draws an implicate of a pool, by its number, on one thread of linear algebra."""
    design = make_design(
        data, model_columns(plan), rows, knots=plan.question.knots, level_scores=level_scores
    )
    plan, design = _with_marks(plan, design, rows)
    seed, number = unit
    # In a small pool a fit depends on who happens to be left out: implicates have their own folds.
    shared = None
    if len(rows) >= LARGE_POOL:
        sequence = np.random.SeedSequence(seed, spawn_key=(number,))
        shared = Folds(plan, design, rows, np.random.default_rng(sequence))

    def generator(implicate: int, subgroup: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(seed, spawn_key=(implicate, number, subgroup))
        return np.random.default_rng(sequence)

    def draw(implicate: int) -> list[tuple[Ints, Ints]]:
        random = generator(implicate, 0)
        # The placebo shares nothing: it must be as far from the others as another seed's implicate.
        folds = shared if implicate < plan.question.implicates else None
        chain = Chain(folds or Folds(plan, design, rows, random), random)
        return chain.run(members, [generator(implicate, s) for s in range(1, len(members) + 1)])

    return draw


def _with_marks(plan: DrawingPlan, design: Design, rows: Ints) -> tuple[DrawingPlan, Design]:
    """Let it predict a target what else of a record is replaced, which says why it stands out.

    Nearly everybody whose Hispanic origin is replaced is Hispanic: a race drawn while the origin is
    still unknown must depend on it.
    """
    if plan.alike is None:
        return plan, design
    alike, marks, predictors = plan.alike[rows], dict[str, Flags](), dict(plan.predictors)
    for t, target in enumerate(plan.targets):
        givers = alike[alike[:, t]]
        varied = np.flatnonzero(givers.any(axis=0) & ~givers.all(axis=0))
        own = {mark_name(plan.targets[u]): alike[:, u] for u in varied}
        predictors[target], marks = (*predictors[target], *own), marks | own
    return replace(plan, predictors=predictors), with_marks(design, marks)


def model_columns(plan: DrawingPlan) -> tuple[str, ...]:
    """Return the targets and all their predictors, each once."""
    every = [*plan.targets, *(name for names in plan.predictors.values() for name in names)]
    return tuple(dict.fromkeys(every))


def _pools(
    data: Microdata, plan: DrawingPlan, strata: Sequence[str], at_risk: npt.NDArray[np.bool_] | None
) -> Iterator[Pool]:
    """Find for each subgroup with records to replace the smallest pool that can carry a model.

    A subgroup that is too small is pooled with those that differ in the last stratum variable,
    then in the last two, and so on up to the whole file; records at risk with others at risk as
    long as there are enough of them.
    """
    finest = _joined(data, strata, np.zeros(data.records, dtype=np.int64))
    apart = np.zeros(data.records, dtype=np.int64)
    if at_risk is not None and plan.question.donors == "folds":
        # Records at risk are apart from the others where a subgroup has enough of both.
        risky, others = np.bincount(finest, at_risk), np.bincount(finest, ~at_risk)
        few = (np.minimum(risky, others) < SMALLEST_STATUS)[finest]
        apart = np.where(few, (risky > others)[finest], at_risk).astype(np.int64)
    groups = [np.zeros_like(apart)]
    groups += [_joined(data, strata[:depth], apart) for depth in range(len(strata) + 1)]
    sizes = [np.bincount(g) for g in groups]
    finest, deepest = groups[-1], len(groups) - 1
    order = np.argsort(finest, kind="stable")
    bounds = np.searchsorted(finest[order], np.arange(len(sizes[-1]) + 1))
    served: dict[tuple[int, int], list[Ints]] = {}
    for group in np.unique(finest[plan.replace.any(axis=1)]):
        rows = order[bounds[group] : bounds[group + 1]]
        depth = deepest
        while depth > 1 and sizes[depth][groups[depth][rows[0]]] < LARGE_POOL:
            depth -= 1
        if sizes[depth][groups[depth][rows[0]]] < SMALLEST_POOL:
            depth = 0
        served.setdefault((depth, int(groups[depth][rows[0]])), []).append(rows)
    for (depth, group), subgroups in served.items():
        rows = np.flatnonzero(groups[depth] == group)
        # Of neighbours that only lend their records to the model, a large pool is enough.
        own = np.concatenate(subgroups)
        lending = np.setdiff1d(rows, own)
        most = min(LARGE_POOL, len(lending))
        rows = np.union1d(own, lending[np.arange(most) * len(lending) // most])
        yield Pool(rows, subgroups, bool(strata) and depth < deepest)


def _joined(data: Microdata, names: Sequence[str], group: Ints) -> Ints:
    """Number the combinations of groups and some columns."""
    for name in names:
        codes = data.codes(name)
        joined = group * codes.size + codes.values
        group = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return group
