"""A study put together from the counts of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.core.names import quoted
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.baseline import Baseline, summarise
from keyhole.reidentification.linking import Attack, Pairs
from keyhole.reidentification.question import Question
from keyhole.reidentification.rates import Part, Rate, Rates, VariableUse
from keyhole.reidentification.result import Study
from keyhole.reidentification.spark_blocks import KINDS
from keyhole.reidentification.spark_truth import SparkTruth
from keyhole.reidentification.strata import Strata
from keyhole.reidentification.truth import incomplete_warnings

__all__ = ["Answers", "Groups", "put_together"]

SUMMED = ("pairs", "suspected", "confirmed", "true_pairs")


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
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
class Answers:
    """What came back: the counts of all blocks, and what they are about.

    `unused` are the linking variables of the IUF.
    """

    attack: Attack
    records: tuple[int, int]
    truth: SparkTruth
    groups: Groups | None
    counts: pl.DataFrame
    unused: Sequence[str]

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.attack.question

    def of(self, kind: str) -> pl.DataFrame:
        """Return the counts of one kind."""
        return self.counts.filter(pl.col("kind") == KINDS.index(kind))

    def by_key(self, kind: str) -> dict[int, tuple[int, ...]]:
        """Return the counts of one kind, summed up over all blocks, in order of their keys."""
        found = self.of(kind).group_by("key").agg(pl.col(SUMMED).sum()).sort("key")
        return {row[0]: row[1:] for row in found.iter_rows()}

    def rates(self) -> Rates:
        """Return the rates of the study."""
        return Rates(self.records[0], *self.by_key("all").get(0, (0, 0, 0, 0)))

    def parts(self, kind: str) -> tuple[Part, ...]:
        """Return the rates by a number that pairs have."""
        found = self.by_key(kind).items()
        return tuple(Part(key, Rates(self.records[0], *counts)) for key, counts in found)

    def uses(self, rates: Rates) -> tuple[VariableUse, ...]:
        """Return on which variables pairs agree."""
        found, unicity = self.by_key("variable"), self.question.metric == "unicity"
        out = []
        for i, name in enumerate(self.question.link):
            pairs, smallest, _, true = found.get(i, (0, 0, 0, 0))
            held = Rate(smallest, rates.pairs) if unicity else None
            both = Rate(pairs, rates.pairs), Rate(true, rates.true_pairs)
            out.append(VariableUse(name, *both, held))
        return tuple(out)

    def baseline(self, rates: Rates) -> Baseline | None:
        """Return what chance would confirm, if that was asked for."""
        permutations = int(self.question.permutations)
        if not permutations:
            return None
        counts = np.zeros(permutations, dtype=np.int64)
        for key, (_, _, confirmed, _) in self.by_key("chance").items():
            counts[key] = confirmed
        means = None
        if self.groups is not None:
            means = tuple(self._by_chance(permutations, len(self.groups.strata.labels)))
        return summarise(counts, rates.confirmed, rates.suspected, rates.puf_records, means)

    def _by_chance(self, permutations: int, strata: int) -> list[float]:
        found = self.of("chance").group_by("stratum").agg(pl.col("confirmed").sum())
        sums = dict(found.iter_rows())
        return [sums.get(stratum, 0) / permutations for stratum in range(strata)]

    def by_stratum(self, baseline: Baseline | None) -> tuple[Part, ...]:
        """Return the rates in each stratum that has PUF records."""
        if self.groups is None:
            return ()
        found = {row[0]: row[1:] for row in self.of("all").select("stratum", *SUMMED).iter_rows()}
        labels = self.groups.strata.labels
        chances = None if baseline is None else baseline.by_stratum
        puf, eif = (self.groups.sizes(side).tolist() for side in (0, 1))
        out = []
        for i, label in enumerate(labels):
            rates = Rates(puf[i], *found.get(i, (0, 0, 0, 0)))
            out.append(Part(label, rates, eif[i], None if chances is None else chances[i]))
        return tuple(part for part in out if part.rates.puf_records)


def put_together(answers: Answers, puf: Microdata) -> Study:
    """Make the study of its counts.

    Parameters
    ----------
    answers
        The counts.
    puf
        The different values of the PUF.
    """
    groups, truth = answers.groups, answers.truth
    rates = answers.rates()
    baseline = answers.baseline(rates)
    nothing = pl.DataFrame()
    return Study(
        rates=rates,
        baseline=baseline,
        overlap=truth.overlap,
        by_stratum=answers.by_stratum(baseline),
        gaps=None if groups is None else groups.strata.gaps(groups.counts),
        by_agreement=answers.parts("agreeing"),
        by_rank=answers.parts("place"),
        by_variables=answers.uses(rates),
        perturbation=None,
        warnings=(
            *answers.question.taken_as_categories(puf),
            *answers.attack.warnings,
            *incomplete_warnings(truth.incomplete, truth.rows),
            *_left_out(answers.unused),
        ),
        linked=_no_pairs(answers),
        confirmed_pairs=np.zeros(0, dtype=np.bool_),
        puf_ids=nothing,
        eif_ids=nothing,
        engine="spark",
    )


def _left_out(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        f"the values of {quoted(names)} in the IUF are not used: what the perturbation bought is "
        f"measured by the memory engine alone"
    ]


def _no_pairs(answers: Answers) -> Pairs:
    """Return what is known of the pairs, which stay on the cluster."""
    none = np.zeros(0, dtype=np.int64)
    return Pairs(
        answers.question,
        *answers.records,
        puf=none,
        eif=none,
        score=none.astype(np.float64),
        rank=none,
        subset=none.astype(np.uint64) if answers.question.metric == "unicity" else None,
        threshold=answers.attack.threshold,
        warnings=answers.attack.warnings,
    )
