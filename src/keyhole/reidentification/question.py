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

    def in_words(self, threshold: float | None) -> str:
        """Say what a suspected pair is."""
        if threshold is None:
            sets = "some set" if self.orders == "all" else "the whole set"
            return f"Suspected: alone in both files with the same values on {sets} of variables."
        side = "above" if self.metric == "adhoc" else "below"
        return (
            f"Suspected: a score {side} {threshold:.6g} ({self.threshold} threshold), in ranks "
            f"that hold at most {self.rank_cap} pairs of a PUF record."
        )
