"""The result of a re-identification study."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.errors import OptionError
from keyhole.exposure.checks import scenario_note
from keyhole.reidentification import verdict
from keyhole.reidentification.agreement import Gap
from keyhole.reidentification.baseline import Baseline
from keyhole.reidentification.breakdown import Part, VariableUse, part_table, use_table
from keyhole.reidentification.pairs import Pairs
from keyhole.reidentification.perturbation import Perturbation
from keyhole.reidentification.question import Question
from keyhole.reidentification.rates import Rate, Rates
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair

__all__ = ["Study"]

LINE = 88


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Study(Result):
    """Whom an intruder would suspect, who of them is confirmed, and what chance would give.

    `linked` are the suspected pairs by record number and `confirmed_pairs` tells which are
    true. Ids are in no table and no dictionary: only `pairs_frame` gives them.

    Parameters
    ----------
    question
        The linking variables, the metric and its settings.
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
    """

    question: Question
    eif_records: int
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
    seed: int
    linked: Pairs
    confirmed_pairs: npt.NDArray[np.bool_]
    puf_ids: pl.DataFrame
    eif_ids: pl.DataFrame
    scenario: str | None = None
    engine: str = "memory"

    @property
    def metric(self) -> str:
        """How pairs were suspected."""
        return self.question.metric

    @property
    def puf_records(self) -> int:
        """The size of the public file."""
        return self.rates.puf_records

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
        said = {
            "finding": verdict.finding(self.rates),
            "chance": verdict.chance(self.baseline),
            "overlap": verdict.overlapping(self.overlap, self.rates),
        }
        if self.perturbation is not None:
            said["perturbation"] = verdict.perturbed(self.rates, self.perturbation)
        if self.question.strata:
            said["strata"] = verdict.stratified(self.question.strata)
        said.update((f"caveat {i}", text) for i, text in enumerate(verdict.CAVEATS, 1))
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        found = Rate(self.confirmed, self.overlap)
        named = {} if self.scenario is None else {"scenario": self.scenario}
        return {
            **self.question.to_dict(self.linked.threshold),
            **named,
            "puf_records": self.puf_records,
            "eif_records": self.eif_records,
            **self.rates.to_dict(),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
            "seed": self.seed,
            "overlap": {
                "records": self.overlap,
                "found": found.value,
                "interval": None if found.interval is None else list(found.interval),
            },
            "by_stratum": [part.to_dict("stratum") for part in self.by_stratum],
            "unlinked": self._gaps(),
            "by_agreement": [part.to_dict("agreeing") for part in self.by_agreement],
            f"by_{self._place}": [part.to_dict(self._place) for part in self.by_rank],
            "by_variables": [use.to_dict() for use in self.by_variables],
            "perturbation": self.perturbation and self.perturbation.to_dict(self.rates),
            "verdict": list(self.verdict.values()),
            "warnings": list(self.warnings),
            "notes": self._notes(),
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
            for text in verdict.unlinked(gap.to_dict(), one, other, named)
        ]

    def _gaps(self) -> dict[str, Any] | None:
        if self.gaps is None:
            return None
        return {name: gap.to_dict() for name, gap in zip(("puf", "eif"), self.gaps, strict=True)}

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
        subsets = self.linked.subset
        if subsets is None:
            place = pl.Series("rank", self.linked.rank)
        else:
            place = pl.Series("subset", self._named(subsets), dtype=pl.String)
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

    def _named(self, subsets: npt.NDArray[np.uint64]) -> list[str]:
        """Name the variables of each pair's smallest subset."""
        masks, places = np.unique(subsets, return_inverse=True)
        named = [" + ".join(self.linked.subset_names(mask)) for mask in masks.tolist()]
        return [named[place] for place in places]

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
            said = [self.question.agreeing_in_words()]
            out.append(part_table(agreement, "agreeing", self.by_agreement, said))
            out.append(part_table(title, by_place, self.by_rank))
            out.append(use_table(self.by_variables))
        return [*out, self._verdict_table()]

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
        notes = [self.question.in_words(self.linked.threshold)]
        notes += [self.question.variables_in_words(), *self.recoding]
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
        from keyhole.reidentification.charts import rates_chart, study_chart

        return rates_chart(self) if self.engine == "spark" else study_chart(self)


_WORDS = {
    "putative_rate": "suspected",
    "confirmed_rate": "confirmed",
    "conditional_rate": "conditional",
    "pair_precision": "pairs that are true",
}


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
