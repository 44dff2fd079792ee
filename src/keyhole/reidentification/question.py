"""Question of a study in figures and words: what of it matters to its metric.

The question is that of `study`, with one metric; it is handed down whole, from the verb to the
search and back to the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from keyhole.core.marks import HIDDEN, WHEN_SET
from keyhole.core.options import Question
from keyhole.data.microdata import Microdata

Metric = Literal["unicity", "taxicab", "euclidean", "adhoc"]
Threshold = Literal["published", "derived"]
Cuts = Literal["puf", "each"]
Orders = Literal["all", "highest"]
Score = Mapping[str, Any] | Callable[[Any, Any], Any]
Scores = Mapping[str, Score]

# A measure with more values than this is hardly meant as a category.
MANY_VALUES = 20


OPTIONS_OF_METRIC = {
    "unicity": ("cuts", "orders"),
    "taxicab": ("alpha", "cuts", "rank_cap"),
    "euclidean": ("alpha", "threshold", "rank_cap"),
    "adhoc": ("scores", "rank_cap"),
}
"""The options that matter to a metric; another one is no reason to run it again."""


def by_one_metric(question: Question) -> Question:
    """Return the question with the first of its metrics, which says what else matters."""
    return question.replace(metric=question.metric[0])


def with_scores(question: Question) -> Question:
    """Return the question with its scores read, if they are in a file; only adhoc has any."""
    if question.metric != "adhoc":
        return question.replace(scores=None)
    if not isinstance(question.scores, str | os.PathLike):
        return question
    from keyhole.reidentification.scores import load_scores

    return question.replace(scores=load_scores(question.scores))


def graded_variables(question: Question) -> tuple[str, ...]:
    """Return the variables that need no value in common, because nearness scores too."""
    if question.metric != "adhoc":
        numeric: tuple[str, ...] = question.numeric
        return numeric
    return tuple(
        name
        for name, score in (question.scores or {}).items()
        if not (isinstance(score, Mapping) and "exact" in score)
    )


@dataclass(frozen=True, slots=True)
class Linkage:
    """How records were linked: the options that matter to the metric, and the threshold in effect.

    `agreement_cuts` tells whose fifths make numbers agree, whatever the metric.
    """

    metric: Metric
    link: tuple[str, ...]
    numeric: tuple[str, ...]
    strata: tuple[str, ...]
    alpha: Annotated[float | None, WHEN_SET, "What a missing value costs."] = None
    cuts: Annotated[Cuts | None, WHEN_SET] = None
    orders: Annotated[Orders | None, WHEN_SET, "Which sets of variables were tried."] = None
    rank_cap: Annotated[int | None, WHEN_SET] = None
    threshold: Annotated[Threshold | None, WHEN_SET] = None
    effective_threshold: Annotated[
        float | None, WHEN_SET, "The threshold for the score of a pair."
    ] = None
    agreement_cuts: Annotated[Cuts, HIDDEN] = "puf"

    @classmethod
    def asked(cls, question: Question, threshold: float | None = None) -> Linkage:
        """Return what a question asks, with the threshold that its metric comes to."""
        every = question.values
        kept = {name: every[name] for name in OPTIONS_OF_METRIC[question.metric]}
        kept.pop("scores", None)
        if threshold is not None:
            kept |= {"threshold": every["threshold"], "effective_threshold": threshold}
        link, numeric, strata = (tuple(every[name]) for name in ("link", "numeric", "strata"))
        return cls(question.metric, link, numeric, strata, **kept, agreement_cuts=question.cuts)

    @property
    def variables_in_words(self) -> str:
        """Which linking variables are numbers, and within what records are linked."""
        if self.metric == "adhoc":
            kinds = "How values are compared: by the declared scores."
        elif not self.numeric:
            kinds = "Numbers: none; all linking variables are categories."
        elif len(self.numeric) < len(self.link):
            kinds = f"Numbers: {', '.join(self.numeric)}; the others are categories."
        else:
            kinds = "Numbers: all linking variables."
        return f"{kinds} Linked within {', '.join(self.strata)}." if self.strata else kinds

    @property
    def agreeing_in_words(self) -> str:
        """What it means that a pair agrees on a variable."""
        if self.metric == "adhoc":
            return "A pair agrees on a variable where it has the variable's highest score."
        whose = "the PUF's values" if self.agreement_cuts == "puf" else "each file's own values"
        numbers = f", or numbers in the same fifth of {whose}" if self.numeric else ""
        return (
            f"A pair agrees on a variable where both records have the same category{numbers}. A "
            f"missing value agrees with nothing."
        )

    @property
    def suspected_in_words(self) -> str:
        """What a suspected pair is."""
        if self.effective_threshold is None:
            sets = "some set" if self.orders == "all" else "the whole set"
            return f"Suspected: unique in both files with the same values on {sets} of variables."
        side = "above" if self.metric == "adhoc" else "below"
        rule = "" if self.metric == "adhoc" else f" ({self.threshold} threshold)"
        return (
            f"Suspected: a score {side} {self.effective_threshold:.6g}{rule}, in ranks that hold "
            f"at most {self.rank_cap} pairs of a PUF record."
        )


def taken_as_categories(question: Question, puf: Microdata) -> list[str]:
    """Name the measures with many values that are not declared to be numbers."""
    if question.metric == "adhoc":  # the scores tell
        return []
    return [
        f"{name!r} holds many different numbers and is linked as a category, so that only equal "
        f"numbers agree: name it in numeric if close ones should count"
        for name in question.link
        if name not in question.numeric
        and puf.variable(name).kind == "measure"
        and puf.column(name).dtype.is_numeric()
        and puf.column(name).drop_nulls().n_unique() > MANY_VALUES
    ]
