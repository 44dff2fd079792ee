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

from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata, require_records
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.baseline import Baseline, summarise
from keyhole.reidentification.linkage import incomplete_warnings
from keyhole.reidentification.linking import LinkAttack, check_variables, prepare
from keyhole.reidentification.question import Linkage, taken_as_categories, with_scores
from keyhole.reidentification.rates import (
    P,
    Rate,
    Rates,
    RatesByAgreement,
    RatesByRank,
    RatesByStratum,
    RatesBySubset,
    Strata,
    VariableUse,
    number_strata,
)
from keyhole.reidentification.result import Study, StudyOverlap
from keyhole.reidentification.scores import Graded
from keyhole.reidentification.variables import LinkCodes, common_codes, linking_category
from keyhole.spark.cluster import Header, Ids, check_names, stratum_problems
from keyhole.spark.columns import SparkColumn
from keyhole.spark.session import collect, failures
from keyhole.spark.study_files import (
    SparkFile,
    SparkTruth,
    StudyEncoding,
    attach_mates,
    beside,
    find_truth_on_spark,
    named_pairs,
)
from keyhole.spark.study_tasks import (
    COUNTS,
    KINDS,
    StudyBlock,
    count_by_broadcast,
    count_by_stratum,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BROADCAST = 1 << 28
"""So many bytes of the EIF, as codes and ids, may go to every worker where there are no strata."""
ID_BYTES = 48


def study_on_spark(files: tuple[SparkFile, SparkFile, SparkFile], question: Question) -> Study:
    """Run a study whose records are on Spark; the answers are those of `study` in memory."""
    # Records stay where they are; the question goes to every worker.
    question = with_scores(question).replace(puf=None, eif=None, iuf=None, engine=None)
    ids: Ids = (question.puf_id, question.eif_id)
    puf, eif, iuf = files
    if puf.name == eif.name:
        puf, eif = replace(puf, name=f"PUF {puf.name}"), replace(eif, name=f"EIF {eif.name}")
    problems = check_names([Header(one.name, one.names) for one in (puf, eif, iuf)], question)
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
        block = StudyBlock(
            _bare(attack), tuple(sides.agreeing(attack)), groups.numbers() if groups else {},
            order,
        )  # fmt: skip
        counts = _attack(attach_mates(one, truth), other, block)
    lacking = [
        name for name in question.link if name in iuf.names and name not in {*ids[0], *ids[1]}
    ]
    answers = StudyCounts(attack, sides.records, truth, groups, pl.DataFrame(counts), lacking)
    return put_together(answers, sides.levels[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """The two files with the different values of their columns.

    `levels` are these values as small files: a row for each code, the last of them missing.
    """

    question: Question
    files: tuple[SparkFile, SparkFile]
    columns: tuple[dict[str, SparkColumn], dict[str, SparkColumn]]
    levels: tuple[Microdata, Microdata]

    @classmethod
    def look(cls, puf: SparkFile, eif: SparkFile, question: Question) -> _Sides:
        """Count the values of the columns that are asked for."""
        names = (*question.link, *question.strata)
        with failures():
            columns = puf.columns(names), eif.columns(names)
        levels = _levels(puf, columns[0]), _levels(eif, columns[1])
        found = cls(question, (puf, eif), columns, levels)
        for file, records in zip(found.files, found.records, strict=True):
            require_records(records, file.name)
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

    def agreeing(self, attack: LinkAttack) -> Iterator[LinkCodes | Graded]:
        """Return what tells on which variables a pair agrees."""
        asked, counts = self.question, self.counts()
        priced = attack.costs.by_name() if asked.metric == "adhoc" and attack.costs else {}
        for name in asked.link:
            found = priced.get(name) or linking_category(*self.levels, name, asked, counts[name])
            yield _unnamed(found) if isinstance(found, LinkCodes) else found

    def encoded(self, ids: Ids) -> tuple[DataFrame, DataFrame]:
        """Return the records of both files as codes and ids, on the cluster."""
        strata = [common_codes(*self.levels, name) for name in self.question.strata]
        frames = []
        for side, file in enumerate(self.files):
            held = self.columns[side]
            codes = {f"v{i}": (n, held[n].coding) for i, n in enumerate(self.question.link)}
            for i, common in enumerate(strata):
                own = held[common.name].coding
                shared = (common.puf, common.eif)[side][own.codes]
                codes[f"s{i}"] = common.name, replace(own, codes=shared)
            parts = ids[1] if side else ()
            frames.append(StudyEncoding(codes, {"id": ids[side]}, parts).apply(file))
        return frames[0], frames[1]

    def groups(self, one: DataFrame, other: DataFrame) -> StratumGroups:
        """Count the records of each stratum, and number the strata as `study` does."""
        names = self.question.strata
        keys = [f"s{i}" for i in range(len(names))]
        table = collect(beside(one, other, *keys).groupBy("side", *keys).count())
        commons = [common_codes(*self.levels, name) for name in names]
        files, counts, found = [], [], []
        for side, data in enumerate(self.levels):
            here = table.filter(np.asarray(table["side"]) == side)
            codes = [here[key].to_numpy() for key in keys]
            files.append(_strata_file(data, commons, codes))
            counts.append(here["count"].to_numpy())
            found.append([tuple(map(int, row)) for row in zip(*codes, strict=True)])
        strata = number_strata(files[0], files[1], names)
        return StratumGroups(strata, (counts[0], counts[1]), (found[0], found[1]))


def _levels(file: SparkFile, columns: dict[str, SparkColumn]) -> Microdata:
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
    levels: Microdata, commons: Sequence[LinkCodes], codes: Sequence[npt.NDArray[Any]]
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
        template = (
            "{strata} must name columns to cut the work by, since the EIF's {0:,} records are too "
            "many to be sent to every worker. Got none instead: name some, or use the memory "
            "engine ({engine}), which needs none."
        )
        raise OptionError(Problem(template, eif_records))


def _bare(attack: LinkAttack) -> LinkAttack:
    """Return the attack without the values that codes stand for: tasks do not need them."""
    costs = attack.costs
    if costs is not None:
        costs = replace(costs, counted=tuple(map(_unnamed, costs.counted)))
    question = attack.question.replace(scores=None)
    categories = tuple(map(_unnamed, attack.categories))
    return replace(attack, question=question, categories=categories, costs=costs)


def _unnamed(category: LinkCodes) -> LinkCodes:
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


def _attack(puf: DataFrame, eif: DataFrame, block: StudyBlock) -> Any:
    """Run the tasks; return their counts as a table of Arrow."""
    if not block.strata:
        return collect(puf.mapInArrow(count_by_broadcast(block, collect(eif)), COUNTS))
    keys = [f"s{i}" for i in range(len(block.attack.question.strata))]
    both = puf.groupBy(*keys).cogroup(eif.groupBy(*keys))
    return collect(both.applyInArrow(count_by_stratum(block), COUNTS))


SUMMED = ("pairs", "suspected", "confirmed", "true_pairs")


@dataclass(frozen=True, slots=True, eq=False)
class StratumGroups:
    """The strata: those of each file, how many records each has, and its codes on the cluster."""

    strata: Strata
    counts: tuple[Ints, Ints]
    keys: tuple[list[tuple[int, ...]], list[tuple[int, ...]]]

    def numbers(self) -> dict[tuple[int, ...], int]:
        """Return by its codes the number of each stratum of either file."""
        sides = zip(self.keys, (self.strata.puf, self.strata.eif), strict=True)
        return {
            key: number
            for keys, numbers in sides
            for key, number in zip(keys, numbers.tolist(), strict=True)
        }

    def sizes(self, side: int) -> Ints:
        """Return by number how many records of a file each stratum has."""
        out = np.zeros(len(self.strata.labels), dtype=np.int64)
        out[(self.strata.puf, self.strata.eif)[side]] = self.counts[side]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class StudyCounts:
    """What came back: the counts of all blocks, and what they are about.

    `unused` are the linking variables of the IUF.
    """

    attack: LinkAttack
    records: tuple[int, int]
    truth: SparkTruth
    groups: StratumGroups | None
    counts: pl.DataFrame
    unused: Sequence[str]

    def of(self, kind: str) -> pl.DataFrame:
        """Return the counts of one kind."""
        return self.counts.filter(pl.col("kind") == KINDS.index(kind))

    def by_key(self, kind: str) -> dict[int, tuple[int, ...]]:
        """Return the counts of one kind, summed up over all blocks, in order of their keys."""
        found = self.of(kind).group_by("key").agg(pl.col(SUMMED).sum()).sort("key")
        return {row[0]: row[1:] for row in found.iter_rows()}

    def parts(self, kind: str, part: type[P]) -> tuple[P, ...]:
        """Return the rates by a number that pairs have."""
        found = self.by_key(kind).items()
        return tuple(part(key, Rates(self.records[0], *counts)) for key, counts in found)

    def uses(self, rates: Rates) -> tuple[VariableUse, ...]:
        """Return on which variables pairs agree."""
        question, found, out = self.attack.question, self.by_key("variable"), []
        for i, name in enumerate(question.link):
            pairs, smallest, _, true = found.get(i, (0, 0, 0, 0))
            held = Rate(smallest, rates.pairs) if question.metric == "unicity" else None
            both = Rate(pairs, rates.pairs), Rate(true, rates.true_pairs)
            out.append(VariableUse.counted(name, *both, held))
        return tuple(out)

    def baseline(self, rates: Rates) -> Baseline | None:
        """Return what chance would confirm, if that was asked for."""
        permutations = self.attack.question.permutations
        if not permutations:
            return None
        counts = np.zeros(permutations, dtype=np.int64)
        for key, (_, _, confirmed, _) in self.by_key("chance").items():
            counts[key] = confirmed
        means = None
        if self.groups is not None:
            found = self.of("chance").group_by("stratum").agg(pl.col("confirmed").sum())
            sums = dict(found.iter_rows())
            strata = range(len(self.groups.strata.labels))
            means = tuple(sums.get(stratum, 0) / permutations for stratum in strata)
        return summarise(counts, rates.confirmed, rates.suspected, rates.puf_records, means)

    def by_stratum(self, baseline: Baseline | None) -> tuple[RatesByStratum, ...]:
        """Return the rates in each stratum that has PUF records."""
        if self.groups is None:
            return ()
        found = {row[0]: row[1:] for row in self.of("all").select("stratum", *SUMMED).iter_rows()}
        labels = self.groups.strata.labels
        chances = None if baseline is None else baseline.by_stratum
        puf, eif = (self.groups.sizes(side).tolist() for side in (0, 1))
        return tuple(
            RatesByStratum.measured(
                label,
                Rates(puf[i], *found.get(i, (0, 0, 0, 0))),
                eif[i],
                None if chances is None else chances[i],
            )
            for i, label in enumerate(labels)
            if puf[i]
        )


def put_together(answers: StudyCounts, puf: Microdata) -> Study:
    """Make the study of its counts."""
    question, groups, truth = answers.attack.question, answers.groups, answers.truth
    lost = None if question.metric == "unicity" else answers.by_key("lost").get(0, (0,))[-1]
    rates = Rates(answers.records[0], *answers.by_key("all").get(0, (0, 0, 0, 0)))
    baseline = answers.baseline(rates)
    place: dict[str, Any] = (
        {"by_subset_size": answers.parts("place", RatesBySubset)}
        if question.metric == "unicity"
        else {"by_rank": answers.parts("place", RatesByRank)}
    )
    left_out = [
        f"the values of {quoted(answers.unused)} in the IUF are not used: what the perturbation "
        f"bought is measured by the memory engine alone"
    ] * bool(answers.unused)
    return Study(
        linkage=Linkage.asked(question, answers.attack.threshold),
        eif_records=answers.records[1],
        rates=rates,
        baseline=baseline,
        seed=int(question.seed),
        overlap=StudyOverlap.of(truth.overlap, rates.confirmed),
        by_stratum=answers.by_stratum(baseline),
        gaps=None if groups is None else groups.strata.gaps(groups.counts),
        by_agreement=answers.parts("agreeing", RatesByAgreement),
        by_variables=answers.uses(rates),
        perturbation=None,
        warnings=(
            *taken_as_categories(question, puf),
            *answers.attack.warnings,
            *incomplete_warnings(truth.incomplete, truth.rows),
            *left_out,
        ),
        lost_to_rank_cap=lost,
        engine="spark",
        **place,
    )
