"""Question of a re-identification study: the linking variables, the metric and its settings.

One frozen `Question` is handed down whole, from the verb to the search and back to the result.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError

__all__ = ["Cuts", "Metric", "Orders", "Question", "Score", "Scores", "Threshold", "column_names"]

Metric = Literal["unicity", "taxicab", "euclidean", "adhoc"]
Threshold = Literal["published", "derived"]
Cuts = Literal["puf", "each"]
Orders = Literal["all", "highest"]
Score = Mapping[str, Any] | Callable[[Any, Any], Any]
Scores = Mapping[str, Score]

# A measure with more values than this is hardly meant as a category.
MANY_VALUES = 20


def column_names(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return names of columns; one name alone is meant as a list of one.

    Examples
    --------
    >>> column_names("age"), column_names(["age", "sex"]), column_names(None)
    (('age',), ('age', 'sex'), ())
    """
    if isinstance(names, str):
        return (names,)
    if names is not None and not isinstance(names, Iterable):
        raise OptionError(
            f"columns must be given as a name or a list of names. Got {type(names).__name__} "
            f"instead."
        )
    return tuple(map(str, names or ()))


@dataclass(frozen=True, slots=True)
class Question:
    """The linking variables, the metric and its settings.

    Parameters
    ----------
    link
        The linking variables, which are columns of both files.
    numeric
        Those of them that are numbers: quintiles in unicity and taxicab, z-scores in
        euclidean. For adhoc the scores tell.
    metric
        `unicity`, `taxicab`, `euclidean` or `adhoc`.
    alpha
        What a missing value scores in taxicab and euclidean, where 1 is different.
    threshold
        `published`, or `derived` from the paper's definition of euclidean.
    cuts
        Quintiles by the cut points of the `puf`, or of `each` file by itself.
    scores
        For adhoc: by linking variable its score, or a TOML file of them
        (`keyhole.reidentification.scores`).
    orders
        For unicity: `all` sets of variables, or the `highest` only.
    rank_cap
        Ranks are kept while they hold no more pairs of a PUF record than this, all in all.
    strata
        Columns of both files; records are compared within the same stratum only, and a
        missing value makes a stratum of its own.
    blank
        Linking variables that may be missing in every record of the PUF.
    permutations, seed
        How often ids are dealt out at random for the baseline of a study (0: never), and its seed.

    Examples
    --------
    >>> Question("age", metric="taxicab").link
    ('age',)
    """

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
    permutations: int = 200
    seed: int = 1

    def __post_init__(self) -> None:
        for field in ("link", "numeric", "strata", "blank"):
            object.__setattr__(self, field, column_names(getattr(self, field)))

    def with_scores(self) -> Question:
        """Return the question with its scores read, if they are in a file."""
        if self.metric != "adhoc" or not isinstance(self.scores, str | os.PathLike):
            return self
        from keyhole.reidentification.scores import load_scores

        return dataclasses.replace(self, scores=load_scores(self.scores))

    @property
    def graded(self) -> tuple[str, ...]:
        """The variables that need no value in common, because nearness scores too."""
        if self.metric != "adhoc":
            return self.numeric
        declared = self.scores if isinstance(self.scores, Mapping) else {}
        return tuple(
            name
            for name, score in declared.items()
            if not (isinstance(score, Mapping) and "exact" in score)
        )

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

    def taken_as_categories(self, puf: Microdata) -> list[str]:
        """Name the measures with many values that are not declared to be numbers."""
        if self.metric == "adhoc":  # the scores tell
            return []
        return [
            f"{name!r} holds many different numbers and is linked as a category, so that only the "
            f"very same number agrees: name it in numeric if near ones should count"
            for name in self.link
            if name not in self.numeric
            and puf.variable(name).kind == "measure"
            and puf.column(name).dtype.is_numeric()
            and puf.column(name).drop_nulls().n_unique() > MANY_VALUES
        ]
