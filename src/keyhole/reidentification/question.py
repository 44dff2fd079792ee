"""What is asked of a study: the linking variables, the metric and its settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.reidentification.costs import Threshold
from keyhole.reidentification.files import Cuts
from keyhole.reidentification.linking import Metric, link
from keyhole.reidentification.pairs import Pairs
from keyhole.reidentification.scores import Scores
from keyhole.reidentification.unicity import Orders

__all__ = ["Question"]

# A measure with more values than this is hardly meant as a category.
MANY_VALUES = 20


@dataclass(frozen=True, slots=True)
class Question:
    """The linking variables, the metric and its settings, as `link` takes them."""

    link: tuple[str, ...]
    numeric: tuple[str, ...] = ()
    metric: Metric = "unicity"
    alpha: float = 0.5
    threshold: Threshold = "published"
    cuts: Cuts = "puf"
    scores: Scores | str | os.PathLike[str] | None = None
    orders: Orders = "all"
    rank_cap: int = 5
    strata: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()

    def ask(
        self, puf: Microdata, eif: Microdata, progress: Callable[..., None] | None = None
    ) -> Pairs:
        """Link two files by the metric."""
        return link(
            puf,
            eif,
            link=self.link,
            numeric=self.numeric,
            metric=self.metric,
            alpha=self.alpha,
            threshold=self.threshold,
            cuts=self.cuts,
            scores=self.scores,
            orders=self.orders,
            rank_cap=self.rank_cap,
            strata=self.strata,
            blank=self.blank,
            progress=progress,
        )

    def column_problems(self, puf: Microdata, eif: Microdata) -> list[str]:
        """Say which columns are not there, where other problems are told already."""
        problems: list[str] = []
        for purpose, names in (("linking variable", self.link), ("stratum", self.strata)):
            for data in (puf, eif):
                try:
                    data.require(names, purpose=purpose)
                except ColumnError as error:
                    problems += error.problems
        return problems

    def to_dict(self, threshold: float | None) -> dict[str, Any]:
        """Return the settings that matter to the metric, with the threshold in effect."""
        out: dict[str, Any] = {
            "metric": self.metric,
            "link": list(self.link),
            "numeric": list(self.numeric),
            "strata": list(self.strata),
        }
        if self.metric in ("taxicab", "euclidean"):
            out["alpha"] = self.alpha
        if self.metric in ("unicity", "taxicab"):
            out["cuts"] = self.cuts
        if self.metric == "unicity":
            return {**out, "orders": self.orders}
        return {
            **out,
            "threshold": self.threshold,
            "effective_threshold": threshold,
            "rank_cap": self.rank_cap,
        }

    def variables_in_words(self) -> str:
        """Say which linking variables are numbers, and within what records are linked."""
        if self.metric == "adhoc":
            kinds = "How values are compared: by the declared scores."
        elif not self.numeric:
            kinds = "Numbers: none; all linking variables are categories."
        elif len(self.numeric) < len(self.link):
            kinds = f"Numbers: {', '.join(self.numeric)}; the others are categories."
        else:
            kinds = "Numbers: all linking variables."
        return f"{kinds} Linked within {', '.join(self.strata)}." if self.strata else kinds

    def agreeing_in_words(self) -> str:
        """Say what it means that a pair agrees on a variable."""
        if self.metric == "adhoc":
            return "A pair agrees on a variable where it has the variable's highest score."
        whose = "the PUF's values" if self.cuts == "puf" else "each file's own values"
        numbers = f", or numbers in the same fifth of {whose}" if self.numeric else ""
        return (
            f"A pair agrees on a variable where both records have the same category{numbers}. "
            f"What is missing agrees with nothing."
        )

    def taken_as_categories(self, puf: Microdata) -> list[str]:
        """Name the measures with many values that are not declared to be numbers."""
        if self.metric == "adhoc":  # the scores tell
            return []
        found = [
            name
            for name in self.link
            if name not in self.numeric
            and puf.variable(name).kind == "measure"
            and puf.column(name).dtype.is_numeric()
            and puf.column(name).drop_nulls().n_unique() > MANY_VALUES
        ]
        return [
            f"{name!r} holds many different numbers and is linked as a category, so that only the "
            f"very same number agrees: name it in numeric if near ones should count"
            for name in found
        ]

    def in_words(self, threshold: float | None) -> str:
        """Say what a suspected pair is."""
        if threshold is None:
            sets = "some set" if self.orders == "all" else "the whole set"
            return f"Suspected: alone in both files with the same values on {sets} of variables."
        side = "above" if self.metric == "adhoc" else "below"
        rule = "" if self.metric == "adhoc" else f" ({self.threshold} threshold)"
        return (
            f"Suspected: a score {side} {threshold:.6g}{rule}, in ranks "
            f"that hold at most {self.rank_cap} pairs of a PUF record."
        )
