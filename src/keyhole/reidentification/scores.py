"""Scores of agreement for adhoc, declared variable by variable (Singer & Dajani, section 2.2.3).

A score says how well the values of a pair match, from 0 to 5. It is declared as a mapping, in
Python or in TOML, or as a function of two arrays. Where a value is missing the score is 0.

======================================================= =======================================
declaration                                             score
======================================================= =======================================
``{"exact": 5}``                                        5 where the values agree, else 0
``{"absolute": [[0, 5], [2, 3]], "beyond": 1}``         5 up to a difference of 0, 3 up to 2
``{"relative": [[0.05, 5], [0.1, 3]]}``                 the same, as a share of the PUF's value
``{"days": [[0, 5], [31, 3]]}``                         the same, between dates
``{"table": [["m", "s", 3]], "same": 5, "other": 0}``   by PUF value and EIF value
``lambda puf, eif: ...``                                what the function of two arrays returns
======================================================= =======================================
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from keyhole.core.options import Question
from keyhole.core.toml import open_toml
from keyhole.data.columns import infinite_problems
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.kernels.grading import BAND, FARTHEST, LOGISTIC, RELATIVE_BAND, TABLE
from keyhole.reidentification.question import Score
from keyhole.reidentification.variables import (
    LinkCodes,
    LinkValues,
    common_codes,
    common_numbers,
    family_of,
    quintiles,
    strangers,
    z_scores,
)

BEST_SCORE = 5.0
# Scores are compared to nine decimals.
DECIMALS = 10**9


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """A linking variable whose price depends on the two values."""

    name: str
    puf: Floats  # values, not a number for missing; of a table its rows
    eif: Floats  # likewise its columns
    absent: float  # the price where either is missing
    kind: int = LOGISTIC  # how it is graded, see `keyhole.kernels.grading`
    limits: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()  # up to each limit, and the last for all beyond
    table: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # by both values

    def price(self, puf: Floats, eif: Floats) -> Floats:
        """Return what known values cost: what they lack of the highest score, or the distance."""
        if self.kind == TABLE:
            return self.table[puf.astype(np.int64), eif.astype(np.int64)]
        gap = np.abs(puf - eif)
        if self.kind == LOGISTIC:
            return np.asarray(np.tanh(np.minimum(gap, FARTHEST) / 2) ** 2)
        if self.kind != BAND:
            with np.errstate(divide="ignore", invalid="ignore"):
                gap = np.where(gap > 0, gap / np.abs(puf), 0.0)
        # To nine decimals, as the search compares them.
        bands = np.searchsorted(self.limits, np.rint(gap * DECIMALS) / DECIMALS, side="left")
        return np.asarray(np.array(self.prices)[bands], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The prices of all linking variables, and how a total becomes a score."""

    counted: tuple[LinkCodes, ...]  # these agree, differ or are missing at the same price each
    graded: tuple[Graded, ...]
    differ: float
    absent: float
    threshold: float  # the score to be below, or for adhoc above
    bound: int  # the first key (a billion times the ranked score) that is not suspected
    base: float = 0.0  # what every pair costs
    root: bool = False  # whether the score is the root of the total
    divisor: float = 1.0  # of the total, for the score that is ranked to nine decimals
    warnings: tuple[str, ...] = ()

    @property
    def eif_records(self) -> int:
        """The records of the EIF."""
        return len((self.counted or self.graded)[0].eif)

    @property
    def scale(self) -> float:
        """What a total, or its root, is multiplied by for its key."""
        return DECIMALS / self.divisor

    def by_name(self) -> dict[str, LinkCodes | Graded]:
        """Return all variables by their names."""
        variables: list[LinkCodes | Graded] = [*self.counted, *self.graded]
        return {variable.name: variable for variable in variables}

    def keys(self, puf: Ints, eif: Ints) -> Ints:
        """Return the keys of pairs, given by record numbers: a billion times the ranked score."""
        total = np.full(len(puf), self.base)
        for counted in self.counted:
            one, other = counted.puf[puf], counted.eif[eif]
            gone = (one == counted.missing) | (other == counted.missing)
            total += np.where(gone, self.absent, np.where(one != other, self.differ, 0.0))
        for graded in self.graded:
            first, second = graded.puf[puf], graded.eif[eif]
            gone = np.isnan(first) | np.isnan(second)
            cost = np.full(len(puf), graded.absent)
            cost[~gone] = graded.price(first[~gone], second[~gone])
            total += cost
        return np.rint(self.scale * (np.sqrt(total) if self.root else total)).astype(np.int64)

    def puf_base(self) -> Floats:
        """Return by PUF record what its missing values cost with anybody."""
        gone = np.zeros(len((self.counted or self.graded)[0].puf))
        for category in self.counted:
            gone += category.puf == category.missing
        base: Floats = self.base + gone * self.absent
        for graded in self.graded:
            base += np.where(np.isnan(graded.puf), graded.absent, 0.0)
        return base


def taxicab(variables: Sequence[LinkCodes | LinkValues], question: Question) -> Costs:
    """Price for taxicab, ranked by the sum, which is exact; suspected below alpha / 2."""
    counted = [v if isinstance(v, LinkCodes) else quintiles(v, question.cuts) for v in variables]
    alpha = question.alpha
    most = Fraction(str(alpha)) * len(variables) / 2 * DECIMALS
    return Costs(tuple(counted), (), 1.0, alpha, alpha / 2, math.ceil(most))


def euclidean(variables: Sequence[LinkCodes | LinkValues], question: Question) -> Costs:
    """Price for euclidean: squares of the scores; the root of the sum over v is the metric.

    Suspected below alpha / 2 (`published`) or alpha / sqrt(2 v) (`derived`).
    """
    scaled = [v if isinstance(v, LinkCodes) else z_scores(v) for v in variables]
    counted = tuple(v for v in scaled if isinstance(v, LinkCodes))
    alpha, count = question.alpha, len(variables)
    missing = alpha * alpha
    graded = tuple(
        Graded(v.name, v.puf, v.eif, missing) for v in scaled if isinstance(v, LinkValues)
    )
    derived, largest = alpha / math.sqrt(2 * count), 1 / math.sqrt(count)
    threshold = alpha / 2 if question.threshold == "published" else derived
    bound = max(1, round(threshold * DECIMALS))  # a score of 0 is below every threshold
    warning = (
        f"The threshold {threshold:.4g} admits every pair, since euclidean is at most 1 / sqrt(v) "
        f"= {largest:.4g} for {count} variables: only the ranks choose. Threshold 'derived' is "
        f"{derived:.4g}."
    )
    return Costs(
        counted, graded, 1.0, missing, threshold, bound, root=True, divisor=count,
        warnings=(warning,) if threshold > largest else (),
    )  # fmt: skip


KINDS = ("exact", "absolute", "relative", "days", "table")
EXTRAS = {"absolute": {"beyond"}, "relative": {"beyond"}, "days": {"beyond"},
          "table": {"same", "other"}, "exact": set()}  # fmt: skip
BANDED = ("absolute", "relative", "days")
# Entries of a table of scores that are still held in memory: 160 megabytes.
MOST_ENTRIES = 20_000_000


def load_scores(path: str | os.PathLike[str]) -> dict[str, Any]:
    r"""Read declared scores from a TOML file: one table a linking variable."""
    return open_toml(path, "scores")


def score_problems(scores: Mapping[str, Any], link: Sequence[str]) -> list[str]:
    """Say everything that is wrong with declared scores, before any data is looked at."""
    problems = strangers(scores, link, "score")
    for name in link:
        if name not in scores:
            problems.append(
                f"linking variable {name!r} must have a score. Got none instead: "
                f"declare one, such as {{'exact': 5}}."
            )
        elif not callable(scores[name]):
            problems += [f"score of {name!r}: {p}" for p in _declared_problems(scores[name])]
    return problems


def _declared_problems(score: Any) -> list[str]:
    if not isinstance(score, Mapping):
        return [f"it must be a mapping or a function. Got {type(score).__name__} instead."]
    kinds = [kind for kind in KINDS if kind in score]
    if len(kinds) != 1:
        return [
            f"it must have one of {', '.join(KINDS)}. Got {', '.join(kinds) or 'none'} instead."
        ]
    kind = kinds[0]
    problems = [
        f"{key!r} does not belong to {kind!r}. Leave it out."
        for key in score
        if key != kind and key not in EXTRAS[kind]
    ]
    for key in EXTRAS[kind] & set(score):
        problems += _number_problems(repr(key), score[key])
    if kind == "exact":
        return problems + _number_problems("'exact'", score[kind])
    rows = score[kind]
    width = 3 if kind == "table" else 2
    if not _rows_of(rows, width):
        each = "[PUF value, EIF value, score]" if width == 3 else "[limit, score]"
        return [*problems, f"{kind!r} must be a list of {each}."]
    for row in rows:
        problems += _number_problems(f"each score of {kind!r}", row[-1])
    return problems + (_band_problems(kind, score) if kind in BANDED and not problems else [])


def _rows_of(rows: Any, width: int) -> bool:
    listed = isinstance(rows, Sequence) and not isinstance(rows, str)
    return listed and len(rows) > 0 and all(
        isinstance(row, Sequence) and not isinstance(row, str) and len(row) == width for row in rows
    )  # fmt: skip


def _number_problems(what: str, value: Any) -> list[str]:
    if _is_number(value) and 0 <= value <= BEST_SCORE:
        return []
    # What is no number may be a value of a record in the wrong place.
    got = repr(value) if _is_number(value) else type(value).__name__
    return [f"{what} must be a number from 0 to 5. Got {got} instead."]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _band_problems(kind: str, score: Mapping[str, Any]) -> list[str]:
    limits = [row[0] for row in score[kind]]
    good = all(_is_number(x) and x >= 0 for x in limits)
    if not good or any(a >= b for a, b in itertools.pairwise(limits)):
        return [f"the limits of {kind!r} must be numbers of 0 or more that rise."]
    values = [row[1] for row in score[kind]] + [score.get("beyond", 0)]
    if any(a < b for a, b in itertools.pairwise(values)):
        return [f"the scores of {kind!r} must not rise with the difference."]
    return []


def adhoc(puf: Microdata, eif: Microdata, question: Question) -> Costs:
    """Price for adhoc: what a pair lacks of the highest score; suspected above 5 v / 2."""
    warnings: list[str] = []
    priced: list[LinkCodes | Graded] = []
    problems: list[str] = []
    for name in question.link:
        try:
            priced.append(_price(puf, eif, name, question.scores[name], warnings))
        except OptionError as error:
            problems += error.problems
    if problems:
        raise OptionError(problems)
    counted = tuple(v for v in priced if isinstance(v, LinkCodes))
    graded = tuple(v for v in priced if isinstance(v, Graded))
    # What is missing lacks all of the highest score that is declared.
    lacking = sum((BEST_SCORE - v.absent for v in graded), 0.0)
    threshold = BEST_SCORE * len(priced) / 2
    bound = round(threshold * DECIMALS)
    return Costs(
        counted, graded, BEST_SCORE, BEST_SCORE, threshold, bound, base=lacking,
        warnings=tuple(warnings),
    )  # fmt: skip


def _price(
    puf: Microdata, eif: Microdata, name: str, score: Score, warnings: list[str]
) -> LinkCodes | Graded:
    if not isinstance(score, Mapping):
        return _price_function(common_codes(puf, eif, name), score)
    if "table" in score:
        return _price_table(common_codes(puf, eif, name), score, warnings)
    if "exact" not in score:
        return _price_bands(puf, eif, name, score)
    category, best = common_codes(puf, eif, name), float(score["exact"])
    if best == BEST_SCORE:
        return category
    # A difference of codes of 0, and of anything more.
    return Graded(name, *_as_values(category), best, BAND, (0.0,), (0.0, best))


def _price_bands(puf: Microdata, eif: Microdata, name: str, score: Mapping[str, Any]) -> Graded:
    kind = next(kind for kind in BANDED if kind in score)
    wanted = "dates" if kind == "days" else "numbers"
    for data in (puf, eif):
        family = family_of(data.column(name).dtype)
        if family != wanted:
            raise OptionError(
                f"score of {name!r}: the variable must hold {wanted}. Got {family} in "
                f"{data.name!r} instead: declare another score."
            )
    problems = infinite_problems(f"numeric variable {name!r}", puf.column(name), eif.column(name))
    if problems:
        raise OptionError(problems)
    number = common_numbers(puf, eif, name, ratios=kind == "relative")
    best = float(score[kind][0][1])
    prices = [best - float(value) for _, value in score[kind]]
    prices.append(best - float(score.get("beyond", 0)))
    # A whole number too large for a float is beyond every difference.
    limits = tuple(float(x) if x <= sys.float_info.max else math.inf for x, _ in score[kind])
    how = RELATIVE_BAND if kind == "relative" else BAND
    return Graded(name, number.puf, number.eif, best, how, limits, tuple(prices))


def _price_table(category: LinkCodes, score: Mapping[str, Any], warnings: list[str]) -> Graded:
    size = _pairwise_size(category)
    values = np.full((size, size), float(score.get("other", 0)))
    np.fill_diagonal(values, float(score.get("same", BEST_SCORE)))
    places = {_word(level): i for i, level in enumerate(category.levels.to_list())}
    unknown = 0
    for left, right, value in score["table"]:
        pair = _word(left), _word(right)
        if pair[0] in places and pair[1] in places:
            values[places[pair[0]], places[pair[1]]] = float(value)
        else:
            unknown += 1
    if unknown:
        warnings.append(
            f"{unknown} rows of the score table of {category.name!r} name a value that is in "
            f"neither file."
        )
    return _priced_by(category, values)


def _word(value: Any) -> str:
    """Write a value as a table may name it: 40 is 40.0, and a day is its midnight."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return str(value)


def _price_function(category: LinkCodes, function: Callable[[Any, Any], Any]) -> Graded:
    size = _pairwise_size(category)
    levels = category.levels.to_numpy()
    left, right = np.repeat(levels, size), np.tile(levels, size)
    try:
        values = np.asarray(function(left, right), dtype=np.float64)
    except Exception as error:
        raise OptionError(
            f"score of {category.name!r}: the function failed with {type(error).__name__}. "
            f"It is given two arrays of as many values and must return their scores."
        ) from error
    if values.shape != left.shape:
        raise OptionError(
            f"score of {category.name!r}: the function must return one score a pair of values. "
            f"Got an array of shape {values.shape} for {left.shape} instead."
        )
    if not ((values >= 0) & (values <= BEST_SCORE)).all():
        raise OptionError(
            f"score of {category.name!r}: the function must return scores from 0 to 5. "
            f"Got others instead."
        )
    return _priced_by(category, values.reshape(size, size))


def _priced_by(category: LinkCodes, values: Floats) -> Graded:
    best = float(values.max())
    return Graded(category.name, *_as_values(category), best, TABLE, table=best - values)


def _pairwise_size(category: LinkCodes) -> int:
    """Return the number of values, if it is not too large to score them pair by pair."""
    size = len(category.levels)
    if size * size > MOST_ENTRIES:
        raise OptionError(
            f"score of {category.name!r}: {size:,} different values are too many to score pair by "
            f"pair. Round the variable, or declare bands of differences."
        )
    return size


def _as_values(category: LinkCodes) -> tuple[Floats, Floats]:
    """Return the codes as numbers, missing as not a number."""
    puf, eif = (
        np.where(codes == category.missing, np.nan, codes) for codes in (category.puf, category.eif)
    )
    return puf, eif
