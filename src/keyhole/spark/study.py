"""A re-identification study on Spark: tasks attack the strata of both files, and counts come back.

Here are the different values of the linking variables, the strata and the counts; records, ids and
pairs stay on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata, require_records
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.baseline import (
    Baseline,
    Chances,
    deal_all,
    deal_stratum,
    find_chances,
    summarise,
)
from keyhole.reidentification.linkage import incomplete_warnings
from keyhole.reidentification.linking import LinkAttack, check_variables, only, prepare
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
    agree,
    confirm,
    count_use,
    measure_rates,
    number_strata,
    rates_by_pair,
)
from keyhole.reidentification.result import Study, StudyOverlap
from keyhole.reidentification.scores import Graded
from keyhole.reidentification.variables import LinkCodes, common_codes, linking_category
from keyhole.spark.cluster import Header, Ids, check_names, stratum_problems
from keyhole.spark.data import SparkColumn
from keyhole.spark.session import collect, failures
from keyhole.spark.study_files import (
    SparkFile,
    SparkTruth,
    StudyEncoding,
    attach_mates,
    beside,
    find_truth_on_spark,
)
from keyhole.spark.tasks import without_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


COUNTS = (
    "stratum int, kind int, key long, pairs long, suspected long, confirmed long, true_pairs long"
)
"""What a block counts: of the kinds below, by a key of each."""
KINDS = ("all", "place", "agreeing", "variable", "chance", "lost")
ALONE = -1
"""The stratum where there are none."""


@dataclass(frozen=True, slots=True, eq=False)
class StudyBlock:
    """What is done with the records of a block.

    A block is a stratum of both files, or a part of the PUF with the whole EIF. A PUF record is in
    one block alone, so that all that is counted can be summed up.
    """

    attack: LinkAttack  # the linking variables by the codes of their values, to search
    agreeing: tuple[LinkCodes | Graded, ...]  # and to tell on which of them a pair agrees
    strata: Mapping[tuple[int, ...], int]  # the number of a stratum by its variables' codes
    order: Sequence[pl.DataType]  # types by which ids of the EIF are put in order, one a column

    def count(self, puf: Any, eif: Any, stratum: int) -> Any:
        """LinkAttack the records of two tables of Arrow; return a table of counts."""
        tally = _Tally(stratum)
        if puf.num_rows and eif.num_rows:
            self._count(pl.DataFrame(puf), self._sorted(pl.DataFrame(eif)), tally)
        return tally.table()

    def _count(self, puf: pl.DataFrame, eif: pl.DataFrame, tally: _Tally) -> None:
        places = self._places(puf), self._places(eif)
        attack, truth = self.attack.only(*places), _mates(puf, eif)
        found = attack.find()
        lost = attack.lost(found, truth)
        if lost is not None:
            tally.row("lost", 0, 0, 0, 0, lost)
        pairs, records = (found["puf"], found["eif"]), puf.height
        confirmed = confirm(*pairs, *truth, eif.height)
        tally.add("all", 0, measure_rates(pairs[0], confirmed, records))
        subset = found.get("subset")
        place = found["rank"] if subset is None else found["score"].astype(np.int64)
        same = [agree(only(v, *places), pairs) for v in self.agreeing]
        agreeing, used = count_use([v.name for v in self.agreeing], same, confirmed, subset)
        for kind, groups in (("place", place), ("agreeing", agreeing)):
            for part in rates_by_pair(RatesByRank, pairs[0], confirmed, groups, records):
                tally.add(kind, part.label, part.rates)
        for i, use in enumerate(used):
            counts = use.pairs_agreeing, use.in_smallest_subset, 0, use.true_pairs_agreeing
            tally.row("variable", i, *counts)
        self._deal(find_chances(*pairs, *truth, records), eif.height, tally)

    def _deal(self, chances: Chances, records: int, tally: _Tally) -> None:
        if not len(chances.who):
            return
        question = self.attack.question
        dealt = (chances, records, question.permutations, question.seed)
        alone = tally.stratum == ALONE
        counts = deal_all(*dealt) if alone else deal_stratum(tally.stratum, *dealt)
        for i, count in enumerate(counts.tolist()):
            tally.row("chance", i, 0, 0, count, 0)

    def _places(self, frame: pl.DataFrame) -> dict[str, npt.NDArray[np.int32]]:
        return {name: frame[f"v{i}"].to_numpy() for i, name in enumerate(self.attack.question.link)}

    def _sorted(self, eif: pl.DataFrame) -> pl.DataFrame:
        """Put the EIF in order of its ids: numbers by size, all else as text."""
        parts = [(pl.col(f"part{i}"), kind) for i, kind in enumerate(self.order)]
        return eif.sort(
            column
            for part, kind in parts
            for column in ((part,) if kind == pl.String else (part.cast(kind, strict=False), part))
        )


class _Tally:
    """The counts of one block, row by row."""

    def __init__(self, stratum: int) -> None:
        self.stratum = stratum
        self._rows: list[tuple[int, ...]] = []

    def add(self, kind: str, key: int, rates: Rates) -> None:
        self.row(kind, key, rates.pairs, rates.suspected, rates.confirmed, rates.true_pairs)

    def row(self, kind: str, key: int, *counts: int) -> None:
        self._rows.append((self.stratum, KINDS.index(kind), key, *counts))

    def table(self) -> Any:
        names = [field.split()[0] for field in COUNTS.split(", ")]
        kinds = [pa.int32() if name in names[:2] else pa.int64() for name in names]
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(names)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.table(arrays, names=names)


def _mates(puf: pl.DataFrame, eif: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the true pairs of a block, by the places of their records in it."""
    named = puf.select(pl.int_range(pl.len()).alias("puf"), pl.col("mates").alias("id"))
    named = named.explode("id", empty_as_null=True).drop_nulls()
    found = named.join(eif.select(pl.int_range(pl.len()).alias("eif"), "id"), on="id")
    return found["puf"].to_numpy().astype(np.int64), found["eif"].to_numpy().astype(np.int64)


def count_by_stratum(block: StudyBlock) -> Callable[[Any, Any, Any], Any]:
    """Return what counts a stratum, given the codes of its variables and its records."""

    def count(key: Any, puf: Any, eif: Any) -> Any:
        with without_words():
            stratum = block.strata[tuple(int(code.as_py()) for code in key)]
            return block.count(puf, eif, stratum)

    return count


def count_by_broadcast(block: StudyBlock, eif: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what counts a part of the PUF against the whole EIF."""

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        with without_words():
            held = list(batches)
            if held:
                yield from block.count(pa.Table.from_batches(held), eif, ALONE).to_batches()

    return count


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
    # The ids that each row of the IUF names, as text.
    pairs = StudyEncoding({}, {"puf": ids[0], "eif": ids[1]}).apply(iuf)
    with _kept(*sides.encoded(ids), pairs) as (one, other, named):
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
    """The two files with the different values of their columns."""

    question: Question
    files: tuple[SparkFile, SparkFile]
    columns: tuple[dict[str, SparkColumn], dict[str, SparkColumn]]
    levels: tuple[Microdata, Microdata]  # small files: a row for each code, the last missing

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
            # The strata of the file, a row each, as the values of their variables.
            values = [
                common.levels.extend_constant(None, 1).gather(own).alias(common.name)
                for common, own in zip(commons, codes, strict=True)
            ]
            variables = tuple(data.variable(name) for name in names)
            files.append(Microdata(pl.DataFrame(values), variables, data.name))
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
    """What came back: the counts of all blocks, and what they are about."""

    attack: LinkAttack
    records: tuple[int, int]
    truth: SparkTruth
    groups: StratumGroups | None
    counts: pl.DataFrame
    unused: Sequence[str]  # the linking variables of the IUF

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
        f"the values of {quoted(answers.unused)} in the IUF are not used: only the memory "
        f"engine measures the effect of the perturbation"
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
