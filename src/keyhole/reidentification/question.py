"""Question of a study in figures and words: what of it matters to its metric.

The question is that of `study`, with one metric; it is handed down whole, from the verb to the
search and back to the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from keyhole.core.options import Question
from keyhole.data.microdata import Microdata

__all__ = [
    "OPTIONS_OF_METRIC",
    "Cuts",
    "Metric",
    "Orders",
    "Score",
    "Scores",
    "Threshold",
    "agreeing_in_words",
    "graded_variables",
    "question_figures",
    "suspected_in_words",
    "taken_as_categories",
    "variables_in_words",
    "with_scores",
]

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


def question_figures(question: Question, threshold: float | None) -> dict[str, Any]:
    """Return the options that matter to the metric, with the threshold in effect."""
    out: dict[str, Any] = {
        "metric": question.metric,
        "link": list(question.link),
        "numeric": list(question.numeric),
        "strata": list(question.strata),
    }
    mattering = OPTIONS_OF_METRIC[question.metric]
    out |= {name: question.values[name] for name in mattering if name != "scores"}
    if threshold is None:
        return out
    return {**out, "threshold": question.threshold, "effective_threshold": threshold}


def variables_in_words(question: Question) -> str:
    """Say which linking variables are numbers, and within what records are linked."""
    if question.metric == "adhoc":
        kinds = "How values are compared: by the declared scores."
    elif not question.numeric:
        kinds = "Numbers: none; all linking variables are categories."
    elif len(question.numeric) < len(question.link):
        kinds = f"Numbers: {', '.join(question.numeric)}; the others are categories."
    else:
        kinds = "Numbers: all linking variables."
    return f"{kinds} Linked within {', '.join(question.strata)}." if question.strata else kinds


def agreeing_in_words(question: Question) -> str:
    """Say what it means that a pair agrees on a variable."""
    if question.metric == "adhoc":
        return "A pair agrees on a variable where it has the variable's highest score."
    whose = "the PUF's values" if question.cuts == "puf" else "each file's own values"
    numbers = f", or numbers in the same fifth of {whose}" if question.numeric else ""
    return (
        f"A pair agrees on a variable where both records have the same category{numbers}. "
        f"What is missing agrees with nothing."
    )


def suspected_in_words(question: Question, threshold: float | None) -> str:
    """Say what a suspected pair is."""
    if threshold is None:
        sets = "some set" if question.orders == "all" else "the whole set"
        return f"Suspected: alone in both files with the same values on {sets} of variables."
    side = "above" if question.metric == "adhoc" else "below"
    rule = "" if question.metric == "adhoc" else f" ({question.threshold} threshold)"
    return (
        f"Suspected: a score {side} {threshold:.6g}{rule}, in ranks "
        f"that hold at most {question.rank_cap} pairs of a PUF record."
    )


def taken_as_categories(question: Question, puf: Microdata) -> list[str]:
    """Name the measures with many values that are not declared to be numbers."""
    if question.metric == "adhoc":  # the scores tell
        return []
    return [
        f"{name!r} holds many different numbers and is linked as a category, so that only the "
        f"very same number agrees: name it in numeric if near ones should count"
        for name in question.link
        if name not in question.numeric
        and puf.variable(name).kind == "measure"
        and puf.column(name).dtype.is_numeric()
        and puf.column(name).drop_nulls().n_unique() > MANY_VALUES
    ]
