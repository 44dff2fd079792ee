"""Link a public file with an intruder's: the suspected pairs (Singer & Dajani, section 2)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, get_args

from keyhole.core.names import absent, repeated
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.errors import ColumnError, OptionError
from keyhole.reidentification.attack import Asked, Metric, prepare
from keyhole.reidentification.costs import Threshold
from keyhole.reidentification.files import Cuts, common_strata
from keyhole.reidentification.neighbours import Progress
from keyhole.reidentification.pairs import Pairs
from keyhole.reidentification.scores import Scores, load_scores, score_problems
from keyhole.reidentification.truth import names_of
from keyhole.reidentification.unicity import MOST_VARIABLES, Orders
from keyhole.reidentification.variables import strangers, variable_problems

__all__ = ["Metric", "Pairs", "asked_problems", "carried", "check_variables", "link", "read_asked"]


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
    asked = read_asked(
        link=link, numeric=numeric, strata=strata, blank=blank, metric=metric, alpha=alpha,
        threshold=threshold, cuts=cuts, scores=scores, orders=orders, rank_cap=rank_cap,
    )  # fmt: skip
    one, other = load(puf), load(eif)
    if one.name == other.name:
        one, other = one.replace(name=f"PUF {one.name}"), other.replace(name=f"EIF {other.name}")
    problems = asked_problems(asked, {one.name: one.names, other.name: other.names})
    if problems:
        raise OptionError(problems)
    check_variables(one, other, asked)
    groups = common_strata(one, other, asked.strata)
    attack = prepare(one, other, asked)
    if asked.metric != "unicity":  # nobody has more pairs
        attack = dataclasses.replace(attack, cap=min(attack.cap, other.records))
    return Pairs(
        **carried(asked, one.records, other.records),
        **attack.find(groups, progress),
        threshold=attack.threshold,
        warnings=attack.warnings,
    )


def read_asked(**given: Any) -> Asked:
    """Read what is asked: names of columns as lists, and scores that are in a file."""
    for option in ("link", "numeric", "strata", "blank"):
        given[option] = names_of(given[option])
    if given["metric"] == "adhoc" and isinstance(given["scores"], str | os.PathLike):
        given["scores"] = load_scores(given["scores"])
    return Asked(**given)


def asked_problems(asked: Asked, files: Mapping[str, Sequence[str]]) -> list[str]:
    """Say everything that is wrong with what is asked of files, given by name their columns."""
    problems = _option_problems(asked) + _name_problems(asked)
    columns = {"linking variable": asked.link, "stratum": asked.strata}
    for file, known in files.items():
        for purpose, names in columns.items():
            problems += absent(names, list(known), purpose=purpose, where=repr(file))
    return problems


def check_variables(puf: Microdata, eif: Microdata, asked: Asked) -> None:
    """Say everything that is wrong with the variables."""
    for data in (puf, eif):
        data.require_records()
    problems = variable_problems(
        puf, eif, asked.link, numeric=asked.numeric, graded=_graded(asked), strata=asked.strata,
        blank=asked.blank,
    )  # fmt: skip
    if problems:
        raise ColumnError(problems)


def _graded(asked: Asked) -> tuple[str, ...]:
    """Return the variables that need no value in common, because nearness scores too."""
    if asked.metric != "adhoc":
        return asked.numeric
    scores = asked.scores.items()
    return tuple(n for n, score in scores if not (isinstance(score, Mapping) and "exact" in score))


def _option_problems(asked: Asked) -> list[str]:
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


def _name_problems(asked: Asked) -> list[str]:
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


def carried(asked: Asked, puf_records: int, eif_records: int) -> dict[str, Any]:
    """Return what a result carries of what produced it."""
    return {
        "metric": asked.metric,
        "link": asked.link,
        "numeric": asked.numeric,
        "strata": asked.strata,
        "puf_records": puf_records,
        "eif_records": eif_records,
        "alpha": float(asked.alpha),
        "threshold_rule": asked.threshold,
        "cuts": asked.cuts,
        "orders": asked.orders,
        "rank_cap": int(asked.rank_cap),
    }
