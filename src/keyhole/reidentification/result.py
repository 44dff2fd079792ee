"""Result of a re-identification study, in figures, tables and words.

What it cannot say stands beside what it says (Singer & Dajani, sections 1 and 3).
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.core.marks import COUNT, HIDDEN, SPREAD, WHEN_SET, Named, Share, When, figure
from keyhole.core.names import plural
from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.data.reading import load
from keyhole.data.writing import save
from keyhole.environment.scenarios.scenarios import Identification
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.baseline import Baseline
from keyhole.reidentification.linking import Pairs
from keyhole.reidentification.question import Linkage, Metric
from keyhole.reidentification.rates import (
    SMALLEST_STRATUM,
    Gaps,
    Interval,
    Rate,
    Rates,
    RatesByAgreement,
    RatesByRank,
    RatesByStratum,
    RatesBySubset,
    VariableUse,
    interval_words,
    part_table,
    stratum_table,
    use_table,
)
from keyhole.reidentification.residual_risk import Attack, attack_notes, attack_table
from keyhole.results import Result, share, tables_of

if TYPE_CHECKING:
    import altair


LINE = 88
CAVEATS = ("study.caveat.time", "study.caveat.knowledge", "study.caveat.safety")

# Chance is called an explanation if it would do as well at least this often.
DOUBTFUL = 0.05
_WORDS = {
    "putative_rate": "suspected",
    "confirmed_rate": "confirmed",
    "conditional_rate": "conditional",
    "pair_precision": "pairs that are true",
}


@dataclass(frozen=True, slots=True)
class StudyOverlap:
    """PUF records that are in the EIF too, and the share of them that the attack finds."""

    records: Annotated[int, COUNT]
    found: Annotated[float | None, Share("records")]
    interval: Interval | None

    @classmethod
    def of(cls, records: int, confirmed: int) -> StudyOverlap:
        """Return the share of an overlap that is confirmed, with its exact 95% interval."""
        found = Rate(confirmed, records)
        return cls(records, found.value, found.interval)


@dataclass(frozen=True, slots=True)
class Bought:
    """What a perturbation took off each figure."""

    confirmed: int
    confirmed_rate: float | None
    conditional_rate: float | None


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The rates with the values as they were, beside what was changed."""

    records: Annotated[int, COUNT]  # PUF records whose values the internal file carries
    changed: Annotated[Mapping[str, int], COUNT]  # of these, perturbed, by linking variable
    without: Rates
    bought: Bought

    @classmethod
    def measured(
        cls, records: int, changed: Mapping[str, int], without: Rates, with_it: Rates
    ) -> Perturbation:
        """Set the rates without the perturbation against those with it."""

        def less(before: float | None, after: float | None) -> float | None:
            return None if before is None or after is None else before - after

        bought = Bought(
            without.confirmed - with_it.confirmed,
            less(without.confirmed_rate, with_it.confirmed_rate),
            less(without.conditional_rate, with_it.conditional_rate),
        )
        return cls(records, changed, without, bought)

    def table(self, with_it: Rates) -> Table:
        """Set the rates with and without the perturbation side by side."""
        both = zip(self.without.named().items(), with_it.named().values(), strict=True)
        rows = [[_WORDS[name], share(one.value), share(two.value)] for (name, one), two in both]
        changed = ", ".join(f"{name} {count:,}" for name, count in self.changed.items())
        notes = [f"Values perturbed, in {self.records:,} records of the IUF: {changed}."]
        columns = ["rate", "without it", "with it"]
        return Table("Effect of the perturbation", columns, rows, notes)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Study(Result):
    """Whom an intruder would suspect, who of them is confirmed, and what chance would give.

    `linked` are the suspected pairs by record number and `confirmed_pairs` tells which are
    true. Ids are in no table and no dictionary: only `pairs_frame` gives them.

    Parameters
    ----------
    linkage
        The linking variables, the metric and its settings.
    rates
        Suspected, confirmed, conditional, and the share of pairs that are true.
    baseline
        The same with ids dealt out at random, if asked for.
    overlap
        PUF records that are in the EIF too, and the share of them found.
    by_stratum, by_agreement, by_rank, by_subset_size, by_variables
        The rates by stratum, by number of variables that agree, by rank or for unicity by the
        size of the smallest subset, and the share of pairs that agree on each variable.
    gaps
        With strata, what cannot be linked of the PUF, and of the EIF.
    perturbation
        The rates with the values as they were, if the IUF carries other values than the PUF.
    scenario
        The scenario to whose key the files were recoded, if they were.
    engine
        Where it was run. On Spark the pairs stay on the cluster: `linked` is None.
    identification
        p(identification) under that scenario.
    attacks
        What else was attacked, with a control, by the name of the attack.
    """

    linkage: Annotated[Linkage, SPREAD]
    eif_records: Annotated[int, COUNT]
    rates: Annotated[Rates, SPREAD]
    baseline: Annotated[
        Baseline | None, "The same pairs under random matching; null without permutations."
    ]
    seed: int
    overlap: Annotated[StudyOverlap, "PUF records that are in the EIF, and the share found."]
    by_stratum: tuple[RatesByStratum, ...]
    gaps: Annotated[
        Gaps | None, Named("unlinked"), "With strata, the records that cannot be linked."
    ]
    by_agreement: tuple[RatesByAgreement, ...]
    by_variables: tuple[VariableUse, ...]
    perturbation: Perturbation | None
    warnings: tuple[str, ...]
    by_rank: Annotated[tuple[RatesByRank, ...], When("is_ranked")] = ()
    by_subset_size: Annotated[tuple[RatesBySubset, ...], When("is_by_unicity")] = ()
    scenario: Annotated[str | None, WHEN_SET] = None
    prepared: Annotated[tuple[str, ...], WHEN_SET, "What was done to the EIF before."] = ()
    lost_to_rank_cap: Annotated[
        int | None, COUNT, WHEN_SET, "True pairs within the threshold in ranks past the cap."
    ] = None
    linked: Annotated[Pairs | None, HIDDEN] = None
    confirmed_pairs: Annotated[Flags | None, HIDDEN] = None
    puf_ids: Annotated[pl.DataFrame | None, HIDDEN] = None
    eif_ids: Annotated[pl.DataFrame | None, HIDDEN] = None
    engine: Annotated[str, HIDDEN] = "memory"
    name_small_groups: Annotated[bool, HIDDEN] = False
    identification: Annotated[Identification | None, WHEN_SET] = None
    attacks: Annotated[Mapping[str, Attack], WHEN_SET] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        """How pairs were suspected."""
        return self.linkage.metric

    @property
    def puf_records(self) -> int:
        """The size of the public file."""
        return self.rates.puf_records

    @property
    def by_place(self) -> tuple[RatesByRank, ...] | tuple[RatesBySubset, ...]:
        """The rates by rank, or for unicity by the size of the smallest subset."""
        return self.by_subset_size if self.is_by_unicity else self.by_rank

    @property
    def is_by_unicity(self) -> bool:
        """Whether pairs were suspected for being alone in both files."""
        return self.metric == "unicity"

    @property
    def is_ranked(self) -> bool:
        """Whether pairs have scores, and so ranks."""
        return not self.is_by_unicity

    @property
    def suspected(self) -> int:
        """PUF records with a suspected pair."""
        return self.rates.suspected

    @property
    def confirmed(self) -> int:
        """PUF records with a pair that is true."""
        return self.rates.confirmed

    @property
    def conditional_rate(self) -> float | None:
        """Of the suspected, the share confirmed; None if nobody is suspected."""
        return self.rates.conditional_rate

    @property
    def findings(self) -> dict[str, str]:
        """What the study says, in words, by what it is about."""
        said: dict[str, str] = {
            "finding": _finding(self.rates),
            "chance": _chance(self.baseline),
            "overlap": _overlapping(self.overlap.records, self.rates),
        }
        if self.perturbation is not None:
            said["perturbation"] = _perturbed(self.rates, self.perturbation)
        if self.linkage.strata:
            said["strata"] = (
                f"Records are linked within {', '.join(self.linkage.strata)}. Where that is finer "
                f"than what will be released, rates that are acceptable here are acceptable for "
                f"the release too, and for a finer one later."
            )
        return said

    @property
    def caveats(self) -> list[str]:
        """What no study can tell."""
        return [Note(code) for code in CAVEATS]

    @property
    def verdict(self) -> dict[str, str]:
        """What the study says, in words, by what it is about; the caveats come last."""
        caveats = {f"caveat {i}": text for i, text in enumerate(self.caveats, 1)}
        return {**self.findings, **caveats}

    @property
    @figure(Named("verdict"))
    def verdict_in_words(self) -> tuple[str, ...]:
        """The sentences of the verdict."""
        return tuple(self.verdict.values())

    @property
    def recoding(self) -> list[str]:
        """What is to be said of the files: that they were recoded to a scenario's key."""
        return [] if self.scenario is None else [Note("exposure.scenario", name=self.scenario)]

    @property
    @figure()
    def notes(self) -> list[str]:
        """Why figures are null, and what was left out."""
        notes = self.recoding
        if not self.suspected:
            notes.append("conditional_rate and pair_precision are null: nobody is suspected")
        if not self.overlap.records:
            notes.append("the share of the overlap found is null: the IUF names no pair")
        if self.baseline is None:
            notes.append("baseline is null: permutations is 0")
        return notes + attack_notes(self.attacks) + self._unlinked()

    def _unlinked(self) -> list[str]:
        """Say how many records of each file lie in a stratum that the other does not have."""
        if self.gaps is None:
            return []
        words, strata = self.gaps.puf.in_words, ", ".join(self.linkage.strata)
        return words("PUF", "EIF", strata) + self.gaps.eif.in_words("EIF", "PUF", strata)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a rate: count, total, value, interval, and what chance would give."""
        by_chance = self.by_chance
        rows = [
            [name, rate.count, rate.total, rate.value, *(rate.interval or (None, None)),
             by_chance.get(name)]
            for name, rate in self.rates.named().items()
        ]  # fmt: skip
        kinds: list[Any] = [pl.String, pl.Int64, pl.Int64, *[pl.Float64] * 4]
        names = ("rate", "count", "total", "value", "low", "high", "baseline")
        return pl.DataFrame(rows, list(zip(names, kinds, strict=True)), orient="row")

    @property
    def by_chance(self) -> dict[str, float | None]:
        """What chance would give of each rate that it can."""
        if self.baseline is None:
            return {}
        base = self.baseline
        return {"confirmed_rate": base.confirmed_rate, "conditional_rate": base.conditional_rate}

    def pairs_frame(self) -> pl.DataFrame:
        """Return the suspected pairs with their ids, in the order of the PUF.

        This is the one place where records' ids are given.

        Returns
        -------
        polars.DataFrame
            The columns of the PUF's id and of the EIF's, `score`, `rank` (for unicity `subset`,
            the smallest set of variables on which the two are alone), and `confirmed`.
        """
        if self.linked is None or self.puf_ids is None or self.eif_ids is None:
            raise OptionError(
                "engine must be memory for the pairs themselves. Got 'spark' instead, where they "
                "stay on the cluster."
            )
        subsets = self.linked.subset_names()
        place = pl.Series("rank", self.linked.rank)
        if subsets is not None:
            place = pl.Series("subset", subsets, dtype=pl.String)
        confirmed = pl.Series("confirmed", self.confirmed_pairs)
        figures = [pl.Series("score", self.linked.score), place, confirmed]
        taken = [*self.puf_ids.columns, *self.eif_ids.columns, *(one.name for one in figures)]
        ids = {"puf_": self.puf_ids[self.linked.puf], "eif_": self.eif_ids[self.linked.eif]}
        columns = [
            series.alias(prefix + series.name) if taken.count(series.name) > 1 else series
            for prefix, frame in ids.items()
            for series in frame.get_columns()
        ]
        return pl.DataFrame([*columns, *figures])

    def save_pairs(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the suspected pairs with their ids to a file, in the format of its extension."""
        save(load(self.pairs_frame()), path, force=force, private=True)

    def tables(self) -> list[Table]:
        """Return the figures as tables, then what they say in words."""
        by_place, title = "rank", "By rank within a PUF record"
        if self.is_by_unicity:
            by_place = "size"
            title = "By size of the smallest set of variables on which a pair is unique"
        out = [self._rate_table(), *([attack_table(self.attacks)] if self.attacks else [])]
        if self.perturbation is not None:
            out.append(self.perturbation.table(self.rates))
        if self.by_stratum:
            least = 0 if self.name_small_groups else SMALLEST_STRATUM
            out.append(stratum_table(self.linkage.strata, self.by_stratum, least))
        if self.suspected:
            agreement = "By number of variables on which a pair agrees"
            means = [self.linkage.agreeing_in_words]
            out.append(part_table(agreement, "agreeing", self.by_agreement, means))
            out.append(part_table(title, by_place, self.by_place))
            out.append(use_table(self.by_variables))
        words = [
            [about if i == 0 else "", line]
            for about, text in self.verdict.items()
            for i, line in enumerate(textwrap.wrap(text, LINE))
        ]
        said = Table("The findings in words", ["about", "in words"], words)
        return [*out, said, *tables_of(self.identification)]

    def _rate_table(self) -> Table:
        by_chance = self.by_chance
        rows = []
        for name, rate in self.rates.named().items():
            chance = share(by_chance[name]) if name in by_chance else ""
            figures = [f"{rate.count:,}", f"{rate.total:,}", share(rate.value)]
            rows.append([_WORDS[name], *figures, interval_words(rate.interval), chance])
        title = f"Re-identification study by {self.metric} on {', '.join(self.linkage.link)}"
        columns = ["rate", "count", "of", "value", "95% interval", "by chance"]
        asked = self.linkage
        notes = [asked.suspected_in_words, asked.variables_in_words, *self.recoding]
        notes += self.prepared
        if self.lost_to_rank_cap:
            lost = plural(self.lost_to_rank_cap, "true pair")
            notes.append(f"The rank cap left out {lost} within the threshold.")
        notes += [f"{text}." for text in self._unlinked()]
        notes += [f"Warning: {text}" for text in self.warnings]
        return Table(title, columns, rows, notes)

    def plot(self) -> altair.TopLevelMixin:
        """Draw the rates with their intervals and the baseline, and the scores of the pairs.

        Attacks with a control are drawn instead where there are any; `found` is one of them.
        """
        from keyhole.reidentification.charts import attacks_chart, study_chart

        if self.attacks:
            return attacks_chart(self.attacks)
        return study_chart(self)


def _finding(rates: Rates) -> str:
    """Say who is suspected, who confirmed, and how often a suspicion is right."""
    total = f"{rates.puf_records:,} PUF records"
    if not rates.suspected:
        return f"No record is suspected among {total}, so there is no conditional rate."
    named = rates.named()
    share_found = percentage(rates.conditional_rate or 0.0)
    low, high = (percentage(bound) for bound in named["conditional_rate"].interval or (0.0, 1.0))
    return (
        f"Of {total}, {_counted(named['putative_rate'])} are suspected and "
        f"{_counted(named['confirmed_rate'])} are confirmed: {share_found} (95% interval {low} to "
        f"{high}) of the suspected records have a true match. This conditional rate is what a "
        f"release is judged by. Of the pairs themselves {percentage(rates.pair_precision or 0.0)} "
        f"are true."
    )


def _counted(rate: Rate) -> str:
    return f"{rate.count:,} ({percentage(rate.value or 0.0)})"


def _overlapping(overlap: int, rates: Rates) -> str:
    """Say how many could be found at all, and how many were."""
    if not overlap:
        return "The IUF names no pair of the two files, so nothing can be confirmed."
    found = Rate(rates.confirmed, overlap)
    return (
        f"{overlap:,} PUF records are in the EIF, so that they could be found; the attack finds "
        f"{_counted(found)} of them. An EIF that covers more of the PUF would confirm more."
    )


def _chance(baseline: Baseline | None) -> str:
    """Say what dealing out ids at random would confirm."""
    if baseline is None:
        return "What chance alone would confirm was not computed (permutations = 0)."
    if baseline.conditional_rate is None or baseline.conditional_interval is None:
        return "No record is suspected, so chance has nothing to confirm."
    low, high = (percentage(bound) for bound in baseline.conditional_interval)
    more = (baseline.p_value or 0.0) < DOUBTFUL
    return (
        f"Under random matching {percentage(baseline.conditional_rate)} of the suspected "
        f"would be confirmed (middle 95% of {baseline.permutations:,} times: {low} to {high}). "
        + ("The study confirms more." if more else "The study confirms no more than chance would.")
    )


def _perturbed(rates: Rates, perturbation: Perturbation) -> str:
    """Say what the perturbation bought."""
    before, after = perturbation.without, rates
    saved = before.confirmed - after.confirmed
    effect = f"{saved:,} fewer" if saved > 0 else f"{-saved:,} more" if saved < 0 else "as many"
    said = (
        f"Without the perturbation {_counted(before.named()['confirmed_rate'])} would be "
        f"confirmed; with it {_counted(after.named()['confirmed_rate'])} are, {effect}."
    )
    first, second = before.conditional_rate, after.conditional_rate
    if first is None or second is None:
        return said
    return f"{said} The conditional rate goes from {percentage(first)} to {percentage(second)}."
