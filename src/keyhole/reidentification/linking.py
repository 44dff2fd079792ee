"""Link a public file with an intruder's: the suspected pairs (Singer & Dajani, section 2)."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from keyhole.data.microdata import Microdata
from keyhole.data.naming import absent, repeated
from keyhole.data.reading import load
from keyhole.errors import ColumnError, OptionError
from keyhole.reidentification.costs import (
    BEST_SCORE,
    DECIMALS,
    Costs,
    Threshold,
    adhoc_threshold,
    euclidean,
    euclidean_threshold,
    taxicab,
)
from keyhole.reidentification.files import (
    Category,
    Cuts,
    Number,
    common_codes,
    common_strata,
    numbers,
    quintiles,
    strangers,
    variable_problems,
)
from keyhole.reidentification.neighbours import Progress, find_nearest
from keyhole.reidentification.pairs import Pairs
from keyhole.reidentification.scores import Scores, adhoc, load_scores, score_problems
from keyhole.reidentification.truth import names_of
from keyhole.reidentification.unicity import MOST_VARIABLES, Orders, find_mates

__all__ = ["Metric", "Pairs", "link"]

Metric = Literal["unicity", "taxicab", "euclidean", "adhoc"]


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, as it was given."""

    link: tuple[str, ...]
    numeric: tuple[str, ...]
    strata: tuple[str, ...]
    metric: Metric
    alpha: float
    threshold: Threshold
    cuts: Cuts
    scores: Any
    orders: Orders
    rank_cap: int
    blank: tuple[str, ...] = ()


def link(
    puf: Any,
    eif: Any,
    *,
    link: Iterable[str],
    numeric: Iterable[str] = (),
    metric: Metric,
    alpha: float = 0.5,
    threshold: Threshold = "published",
    cuts: Cuts = "puf",
    scores: Scores | str | os.PathLike[str] | None = None,
    orders: Orders = "all",
    rank_cap: int = 5,
    strata: Iterable[str] = (),
    blank: Iterable[str] = (),
    progress: Progress | None = None,
) -> Pairs:
    """Find the pairs of records that an intruder would suspect to be one person.

    Parameters
    ----------
    puf, eif
        The public use file and the external intruder file: files, frames or `Microdata`.
    link
        The linking variables, which are columns of both.
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
        Ranks are kept while they hold no more pairs than this, all in all.
    strata
        Columns of both files; records are compared within the same stratum only, and a
        missing value makes a stratum of its own.
    blank
        Linking variables that may be missing in every record of the PUF.
    progress
        Called now and then with the work done and all of it.

    Notes
    -----
    Taxicab is the mean over the variables of 0 (same), 1 (different) or alpha (missing),
    suspected below alpha / 2. Euclidean is the root of the sum of squares over v, where a
    numeric variable scores 2 e^x / (1 + e^x) - 1 with x = min(abs(z - z'), 6), suspected below
    alpha / 2 (`published`) or alpha / sqrt(2 v) (`derived`). Adhoc is the sum of declared
    scores, suspected above 5 v / 2. All are compared to nine decimals. Of the pairs of a PUF
    record the ranks are kept while they hold no more than `rank_cap` pairs. Unicity pairs
    are alone with each other in a cell of some variables, among the records complete on it.

    Examples
    --------
    >>> import polars as pl
    >>> puf = pl.DataFrame({"sex": ["f", "m", "m"], "age": [31, 47, 50], "state": ["a", "b", "b"]})
    >>> eif = pl.DataFrame({"sex": ["m", "f"], "age": [47, 31], "state": ["b", None]})
    >>> found = link(puf, eif, link=["sex", "age", "state"], metric="taxicab")
    >>> found.to_frame().rows()
    [(0, 1, 0.166666667, 1), (1, 0, 0.0, 1)]
    """
    names = [names_of(given) for given in (link, numeric, strata, blank)]
    asked = _Question(
        names[0], names[1], names[2], metric, alpha, threshold, cuts, scores, orders, rank_cap,
        names[3],
    )  # fmt: skip
    one, other = load(puf), load(eif)
    if one.name == other.name:
        one, other = one.replace(name=f"PUF {one.name}"), other.replace(name=f"EIF {other.name}")
    if metric == "adhoc" and isinstance(scores, str | os.PathLike):
        asked = dataclasses.replace(asked, scores=load_scores(scores))
    _check(one, other, asked)
    groups = common_strata(one, other, asked.strata)
    if metric == "unicity":
        return _link_by_unicity(one, other, asked, groups, progress)
    return _link_by_cost(one, other, asked, groups, progress)


def _check(puf: Microdata, eif: Microdata, asked: _Question) -> None:
    """Say everything that is wrong with the question, then with the variables."""
    problems = _option_problems(asked) + _name_problems(asked)
    columns = {"linking variable": asked.link, "stratum": asked.strata}
    for data in (puf, eif):
        for purpose, names in columns.items():
            problems += absent(names, list(data.names), purpose=purpose, where=repr(data.name))
    if problems:
        raise OptionError(problems)
    for data in (puf, eif):
        data.require_records()
    problems = variable_problems(
        puf, eif, asked.link, numeric=asked.numeric, graded=_graded(asked), strata=asked.strata,
        blank=asked.blank,
    )  # fmt: skip
    if problems:
        raise ColumnError(problems)


def _graded(asked: _Question) -> tuple[str, ...]:
    """Return the variables that need no value in common, because nearness scores too."""
    if asked.metric != "adhoc":
        return asked.numeric
    scores = asked.scores.items()
    return tuple(n for n, score in scores if not (isinstance(score, Mapping) and "exact" in score))


def _option_problems(asked: _Question) -> list[str]:
    problems = []
    choices = {"metric": Metric, "threshold": Threshold, "cuts": Cuts, "orders": Orders}
    for option, choice in choices.items():
        if getattr(asked, option) not in get_args(choice):
            problems.append(
                f"{option} must be one of {', '.join(get_args(choice))}. "
                f"Got {getattr(asked, option)!r} instead."
            )
    alpha, cap = asked.alpha, asked.rank_cap
    if not (isinstance(alpha, Real) and not isinstance(alpha, bool) and 0 < alpha <= 1):
        problems.append(f"alpha must be a number above 0 and at most 1. Got {alpha!r} instead.")
    if not (isinstance(cap, Integral) and not isinstance(cap, bool) and cap >= 1):
        problems.append(f"rank_cap must be a whole number of at least 1. Got {cap!r} instead.")
    return problems


def _name_problems(asked: _Question) -> list[str]:
    problems = []
    if len(set(asked.link)) < 2:
        problems.append(
            f"link must name at least two variables. Got {len(set(asked.link))} instead."
        )
    if asked.metric == "unicity" and len(asked.link) > MOST_VARIABLES:
        problems.append(
            f"link must name at most {MOST_VARIABLES} variables for unicity. "
            f"Got {len(asked.link)} instead."
        )
    lists = {"link": asked.link, "numeric": asked.numeric, "strata": asked.strata}
    for option, names in lists.items():
        problems += [f"{option} lists {n!r} more than once. List it once." for n in repeated(names)]
    problems += strangers(asked.numeric, asked.link, "numeric")
    problems += [
        f"{name!r} is a linking variable and a stratum. Leave it out of one of them."
        for name in asked.link
        if name in asked.strata
    ]
    if asked.metric == "adhoc":
        problems += score_problems(asked.scores, asked.link)
    elif asked.scores is not None:
        problems.append(f"scores belong to metric 'adhoc'. Got metric {asked.metric!r} instead.")
    return problems


def _variables(puf: Microdata, eif: Microdata, asked: _Question) -> list[Category | Number]:
    return [
        numbers(puf, eif, name) if name in asked.numeric else common_codes(puf, eif, name)
        for name in asked.link
    ]


def _link_by_unicity(
    puf: Microdata,
    eif: Microdata,
    asked: _Question,
    strata: Category | None,
    progress: Progress | None,
) -> Pairs:
    variables = [
        v if isinstance(v, Category) else quintiles(v, asked.cuts)
        for v in _variables(puf, eif, asked)
    ]
    found = find_mates(variables, strata, asked.orders, progress)
    return Pairs(
        **_carried(puf, eif, asked),
        puf=found.puf,
        eif=found.eif,
        score=np.bitwise_count(found.subset).astype(np.float64),
        rank=np.ones(len(found.puf), dtype=np.int64),
        subset=found.subset,
    )


def _link_by_cost(
    puf: Microdata,
    eif: Microdata,
    asked: _Question,
    strata: Category | None,
    progress: Progress | None,
) -> Pairs:
    costs, threshold, warnings = _costs(puf, eif, asked)
    cap = min(int(asked.rank_cap), eif.records)  # nobody has more pairs
    found = find_nearest(costs, strata, cap, progress=progress)
    score = found.keys / DECIMALS
    if asked.metric == "taxicab":
        score = np.round(score / len(asked.link), 9)
    elif asked.metric == "adhoc":
        score = np.round(BEST_SCORE * len(asked.link) - score, 9)
    return Pairs(
        **_carried(puf, eif, asked),
        puf=found.puf,
        eif=found.eif,
        score=score,
        rank=found.ranks,
        threshold=threshold,
        warnings=tuple(warnings),
    )


def _costs(puf: Microdata, eif: Microdata, asked: _Question) -> tuple[Costs, float, list[str]]:
    """Return the prices, the threshold on the score, and warnings."""
    alpha, count = float(asked.alpha), len(asked.link)
    if asked.metric == "adhoc":
        costs, warnings = adhoc(puf, eif, asked.link, asked.scores)
        return costs, adhoc_threshold(count), warnings
    variables = _variables(puf, eif, asked)
    if asked.metric == "taxicab":
        return taxicab(variables, alpha, asked.cuts), alpha / 2, []
    threshold = euclidean_threshold(alpha, count, asked.threshold)
    warnings = []
    if threshold > 1 / math.sqrt(count):
        warnings.append(
            f"The threshold {threshold:.4g} lets every pair pass, since euclidean is at most "
            f"1 / sqrt(v) = {1 / math.sqrt(count):.4g} for {count} variables: only the ranks "
            f"choose. Threshold 'derived' is {euclidean_threshold(alpha, count, 'derived'):.4g}."
        )
    return euclidean(variables, alpha, asked.threshold), threshold, warnings


def _carried(puf: Microdata, eif: Microdata, asked: _Question) -> dict[str, Any]:
    """Return what a result carries of what produced it."""
    return {
        "metric": asked.metric,
        "link": asked.link,
        "numeric": asked.numeric,
        "strata": asked.strata,
        "puf_records": puf.records,
        "eif_records": eif.records,
        "alpha": float(asked.alpha),
        "threshold_rule": asked.threshold,
        "cuts": asked.cuts,
        "orders": asked.orders,
        "rank_cap": int(asked.rank_cap),
    }
