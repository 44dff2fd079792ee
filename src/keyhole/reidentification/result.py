"""Result of a re-identification study, in figures, tables and words.

What it cannot say stands beside what it says (Singer & Dajani, sections 1 and 3).
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.core.notes import Note
from keyhole.core.options import Question
from keyhole.data.reading import load
from keyhole.errors import OptionError
from keyhole.exposure.checks import scenario_note
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.baseline import Baseline
from keyhole.reidentification.linking import Pairs
from keyhole.reidentification.question import (
    agreeing_in_words,
    question_figures,
    suspected_in_words,
    variables_in_words,
)
from keyhole.reidentification.rates import (
    Part,
    Rate,
    Rates,
    VariableUse,
    part_table,
    use_table,
)
from keyhole.reidentification.strata import Gap, unlinked
from keyhole.reidentification.truth import Perturbation
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair

__all__ = ["Study"]

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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Study(Result):
    """Whom an intruder would suspect, who of them is confirmed, and what chance would give.

    `linked` are the suspected pairs by record number and `confirmed_pairs` tells which are
    true. Ids are in no table and no dictionary: only `pairs_frame` gives them.

    Parameters
    ----------
    rates
        Suspected, confirmed, conditional, and the share of pairs that are true.
    baseline
        The same with ids dealt out at random, if asked for.
    overlap
        PUF records that are in the EIF too.
    by_stratum, by_agreement, by_rank, by_variables
        The rates by stratum, by number of variables that agree, by rank (for unicity by the
        size of the smallest subset), and the share of pairs that agree on each variable.
    gaps
        With strata, what cannot be linked of the PUF, and of the EIF.
    perturbation
        The rates with the values as they were, if the IUF carries other values than the PUF.
    scenario
        The scenario to whose key the files were recoded, if they were.
    engine
        Where it was run. On Spark the pairs stay on the cluster: `linked` has none.
    beside
        Further results that belong to it: the `identification` of a scenario.
    """

    rates: Rates
    baseline: Baseline | None
    overlap: int
    by_stratum: tuple[Part, ...]
    gaps: tuple[Gap, Gap] | None
    by_agreement: tuple[Part, ...]
    by_rank: tuple[Part, ...]
    by_variables: tuple[VariableUse, ...]
    perturbation: Perturbation | None
    warnings: tuple[str, ...]
    linked: Pairs
    confirmed_pairs: Flags
    puf_ids: pl.DataFrame
    eif_ids: pl.DataFrame
    scenario: str | None = None
    engine: str = "memory"
    beside: Mapping[str, Result] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The linking variables, the metric and its settings."""
        return self.linked.question

    @property
    def metric(self) -> str:
        """How pairs were suspected."""
        return str(self.question.metric)

    @property
    def puf_records(self) -> int:
        """The size of the public file."""
        return self.rates.puf_records

    @property
    def eif_records(self) -> int:
        """The size of the intruder's file."""
        return self.linked.eif_records

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
        return self.rates.conditional.value

    @property
    def verdict(self) -> dict[str, str]:
        """What the study says, in words, by what it is about; the caveats come last."""
        said: dict[str, str] = {
            "finding": _finding(self.rates),
            "chance": _chance(self.baseline),
            "overlap": _overlapping(self.overlap, self.rates),
        }
        if self.perturbation is not None:
            said["perturbation"] = _perturbed(self.rates, self.perturbation)
        if self.question.strata:
            said["strata"] = (
                f"Records are linked within {', '.join(self.question.strata)}. Where that is finer "
                f"than what will be released, rates that are acceptable here speak for the "
                f"release, and for a finer one later."
            )
        said.update((f"caveat {i}", Note(code)) for i, code in enumerate(CAVEATS, 1))
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        found = Rate(self.confirmed, self.overlap)
        named = {} if self.scenario is None else {"scenario": self.scenario}
        gaps = self.gaps and {"puf": self.gaps[0].to_dict(), "eif": self.gaps[1].to_dict()}
        return {
            **question_figures(self.question, self.linked.threshold),
            **named,
            "puf_records": self.puf_records,
            "eif_records": self.eif_records,
            **self.rates.to_dict(),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
            "seed": int(self.question.seed),
            "overlap": {
                "records": self.overlap,
                "found": found.value,
                "interval": None if found.interval is None else list(found.interval),
            },
            "by_stratum": [part.to_dict("stratum") for part in self.by_stratum],
            "unlinked": gaps,
            "by_agreement": [part.to_dict("agreeing") for part in self.by_agreement],
            f"by_{self._place}": [part.to_dict(self._place) for part in self.by_rank],
            "by_variables": [use.to_dict() for use in self.by_variables],
            "perturbation": self.perturbation and self.perturbation.to_dict(self.rates),
            "verdict": list(self.verdict.values()),
            "warnings": list(self.warnings),
            "notes": self._notes(),
            **{name: result.to_dict() for name, result in self.beside.items()},
        }

    @property
    def recoding(self) -> list[str]:
        """What is to be said of the files: that they were recoded to a scenario's key."""
        return [] if self.scenario is None else [scenario_note(self.scenario)]

    @property
    def _place(self) -> str:
        return "subset_size" if self.metric == "unicity" else "rank"

    def _notes(self) -> list[str]:
        notes = self.recoding
        if not self.suspected:
            notes.append("conditional_rate and pair_precision are null: nobody is suspected")
        if not self.overlap:
            notes.append("the share of the overlap found is null: the IUF names no pair")
        if self.baseline is None:
            notes.append("baseline is null: no permutations were asked for")
        return notes + self._unlinked()

    def _unlinked(self) -> list[str]:
        """Say how many records of each file lie in a stratum that the other does not have."""
        if self.gaps is None:
            return []
        named = ", ".join(self.question.strata)
        files = (("PUF", "EIF"), ("EIF", "PUF"))
        return [
            text
            for (one, other), gap in zip(files, self.gaps, strict=True)
            for text in unlinked(gap.to_dict(), one, other, named)
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a rate: count, total, value, interval, and what chance would give."""
        by_chance = self._by_chance()
        rows = [
            [name, rate.count, rate.total, rate.value, *(rate.interval or (None, None)),
             by_chance.get(name)]
            for name, rate in self.rates.named().items()
        ]  # fmt: skip
        kinds: list[Any] = [pl.String, pl.Int64, pl.Int64, *[pl.Float64] * 4]
        names = ("rate", "count", "total", "value", "low", "high", "baseline")
        return pl.DataFrame(rows, list(zip(names, kinds, strict=True)), orient="row")

    def _by_chance(self) -> dict[str, float | None]:
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
        if self.engine == "spark":
            raise OptionError(
                "engine must be memory for the pairs themselves. Got 'spark' instead, where they "
                "stay on the cluster."
            )
        subsets = self.linked.subset_names()
        if subsets is None:
            place = pl.Series("rank", self.linked.rank)
        else:
            place = pl.Series("subset", subsets, dtype=pl.String)
        figures = [
            pl.Series("score", self.linked.score),
            place,
            pl.Series("confirmed", self.confirmed_pairs),
        ]
        columns = _named_apart(
            [
                ("puf_", self.puf_ids[self.linked.puf].get_columns()),
                ("eif_", self.eif_ids[self.linked.eif].get_columns()),
            ],
            {series.name for series in figures},
        )
        return pl.DataFrame([*columns, *figures])

    def save_pairs(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the suspected pairs with their ids to a file, in the format of its extension."""
        load(self.pairs_frame()).save(path, force=force)

    def tables(self) -> list[Table]:
        """Return the figures as tables, then what they say in words."""
        by_place = "size" if self.metric == "unicity" else "rank"
        title = (
            "By size of the smallest subset of variables on which a pair is alone"
            if self.metric == "unicity"
            else "By rank within a PUF record"
        )
        out = [self._rate_table()]
        if self.perturbation is not None:
            out.append(self.perturbation.table(self.rates))
        if self.by_stratum:
            name = ", ".join(self.question.strata)
            out.append(part_table(f"By {name}", "stratum", self.by_stratum))
        if self.suspected:
            agreement = "By number of variables on which a pair agrees"
            said = [Note("study.agreeing", text=agreeing_in_words(self.question))]
            out.append(part_table(agreement, "agreeing", self.by_agreement, said))
            out.append(part_table(title, by_place, self.by_rank))
            out.append(use_table(self.by_variables))
        beside = (table for result in self.beside.values() for table in result.tables())
        return [*out, self._verdict_table(), *beside]

    def _rate_table(self) -> Table:
        by_chance = self._by_chance()
        rows = []
        for name, rate in self.rates.named().items():
            low, high = rate.interval or (None, None)
            interval = "" if low is None else f"{share(low)} to {share(high)}"
            chance = share(by_chance[name]) if name in by_chance else ""
            counts = [f"{rate.count:,}", f"{rate.total:,}"]
            rows.append([_WORDS[name], *counts, share(rate.value), interval, chance])
        title = f"Re-identification study by {self.metric} on {', '.join(self.question.link)}"
        columns = ["rate", "count", "of", "value", "95% interval", "by chance"]
        notes: list[str] = [
            Note("study.suspects", text=suspected_in_words(self.question, self.linked.threshold)),
            Note("study.variables", text=variables_in_words(self.question)),
            *self.recoding,
        ]
        notes += [f"{text}." for text in self._unlinked()]
        notes += [f"Warning: {text}" for text in self.warnings]
        return Table(title, columns, rows, notes)

    def _verdict_table(self) -> Table:
        rows = [
            [about if i == 0 else "", line]
            for about, text in self.verdict.items()
            for i, line in enumerate(textwrap.wrap(text, LINE))
        ]
        return Table("What it says", ["about", "in words"], rows)

    def plot(self) -> altair.TopLevelMixin:
        """Draw the rates with their intervals and the baseline, and the scores of the pairs."""
        from keyhole.reidentification.charts import study_chart

        return study_chart(self)


def _named_apart(groups: list[tuple[str, list[pl.Series]]], taken: set[str]) -> list[pl.Series]:
    """Give a column a prefix where its name is another's."""
    names = [series.name for _, columns in groups for series in columns]
    return [
        series.alias(prefix + series.name)
        if names.count(series.name) > 1 or series.name in taken
        else series
        for prefix, columns in groups
        for series in columns
    ]


def _finding(rates: Rates) -> str:
    """Say who is suspected, who confirmed, and how often a suspicion is right."""
    total = f"{rates.puf_records:,} PUF records"
    if not rates.suspected:
        return f"No record is suspected among {total}, so there is no conditional rate."
    share_found = percentage(rates.conditional.value or 0.0)
    low, high = (percentage(bound) for bound in rates.conditional.interval or (0.0, 1.0))
    return (
        f"Of {total}, {_counted(rates.putative)} are suspected and "
        f"{_counted(rates.confirmed_rate)} are confirmed: {share_found} (95% interval {low} to "
        f"{high}) of the suspected have a pair that is true. This conditional rate is what a "
        f"release hangs on. "
        f"Of the pairs themselves {percentage(rates.pair_precision.value or 0.0)} are true."
    )


def _counted(rate: Rate) -> str:
    return f"{rate.count:,} ({percentage(rate.value or 0.0)})"


def _overlapping(overlap: int, rates: Rates) -> str:
    """Say how many could be found at all, and how many were."""
    if not overlap:
        return "The IUF names no pair of the two files, so nothing can be confirmed."
    found = Rate(rates.confirmed, overlap)
    return (
        f"{overlap:,} PUF records are in the EIF and could be found at all; the attack finds "
        f"{_counted(found)} of them. An EIF that covers more of the PUF would confirm more."
    )


def _chance(baseline: Baseline | None) -> str:
    """Say what dealing out ids at random would confirm."""
    if baseline is None:
        return "What chance alone would confirm was not asked for (permutations = 0)."
    if baseline.conditional_rate is None or baseline.conditional_interval is None:
        return "Nobody is suspected, so chance has nothing to confirm."
    low, high = (percentage(bound) for bound in baseline.conditional_interval)
    more = (baseline.p_value or 0.0) < DOUBTFUL
    return (
        f"With ids dealt out at random {percentage(baseline.conditional_rate)} of the suspected "
        f"would be confirmed (middle 95% of {baseline.permutations:,} times: {low} to {high}). "
        + ("The study confirms more." if more else "The study confirms no more than chance does.")
    )


def _perturbed(rates: Rates, perturbation: Perturbation) -> str:
    """Say what the perturbation bought."""
    before, after = perturbation.without, rates
    saved = before.confirmed - after.confirmed
    effect = f"{saved:,} fewer" if saved > 0 else f"{-saved:,} more" if saved < 0 else "as many"
    said = (
        f"Without the perturbation {_counted(before.confirmed_rate)} would be confirmed; with it "
        f"{_counted(after.confirmed_rate)} are, {effect}."
    )
    first, second = before.conditional.value, after.conditional.value
    if first is None or second is None:
        return said
    return f"{said} The conditional rate goes from {percentage(first)} to {percentage(second)}."
