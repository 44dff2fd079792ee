"""Linking variables of both files in one code (Singer & Dajani, sections 1.1, 1.4 and 2).

A value has the same code wherever it occurs. Numeric variables become quintiles or z-scores by
the public file's cut points, mean and standard deviation, so that both files share one scale.
What makes a variable unfit for linking (its type, nothing known, nothing in common) is told here
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.core.names import nearest
from keyhole.core.options import Question
from keyhole.data.columns import encode, infinite_problems
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Floats, Ints, Numbers
from keyhole.reidentification.question import Cuts, graded_variables

QUINTILES = (0.2, 0.4, 0.6, 0.8)
_DAY = 86_400_000_000  # in microseconds
# Whole numbers that need not fit 64 bits with a sign.
WIDE = (pl.UInt64, pl.Int128, pl.UInt128)
Counts = tuple[Ints, Ints]
# Beyond it floating-point numbers do not tell all whole numbers apart.
EXACT = 2**53
# More than the six standard deviations up to which distances are told apart.
FAR = 7.0


@dataclass(frozen=True, slots=True, eq=False)
class LinkCodes:
    """A linking variable as codes common to both files, one a record."""

    name: str
    puf: Numbers
    eif: Numbers
    levels: pl.Series  # the values the codes stand for, those of both files

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.levels)

    @property
    def size(self) -> int:
        """The number of codes, with the missing one."""
        return len(self.levels) + 1


@dataclass(frozen=True, slots=True, eq=False)
class LinkValues:
    """A linking variable as numbers in both files; not a number is missing."""

    name: str
    puf: Floats
    eif: Floats
    counts: Counts | None = None  # for how many records of each file a number stands


def common_codes(puf: Microdata, eif: Microdata, name: str) -> LinkCodes:
    """Encode a variable so that a value has the same code in both files."""
    one, other = alike(puf.column(name), eif.column(name))
    both = encode(pl.concat([one, other]))
    own, others = np.split(both.values.astype(np.int32), [len(one)])
    return LinkCodes(name, own, others, both.levels)


def common_numbers(
    puf: Microdata, eif: Microdata, name: str, *, ratios: bool = False, counts: Counts | None = None
) -> LinkValues:
    """Take a variable as numbers; dates count in days.

    Whole numbers too large to be told apart as floating-point ones are counted from the smallest,
    unless ratios are wanted of them.
    """
    both = alike(puf.column(name), eif.column(name))
    ends = [end for s in both for end in (s.min(), s.max()) if isinstance(end, int)]
    whole = all(one.dtype.is_integer() for one in both)
    if whole and not ratios and ends and max(map(abs, ends)) > EXACT:
        least = pl.lit(min(ends), dtype=pl.Int128)
        moved = pl.col("x").cast(pl.Int128) - least
        both = tuple(one.to_frame("x").select(moved).to_series() for one in both)
    first, second = map(as_floats, both)
    return LinkValues(name, first, second, counts)


def linking_variable(
    puf: Microdata, eif: Microdata, name: str, question: Question, counts: Counts | None = None
) -> LinkCodes | LinkValues:
    """Return a linking variable as numbers, if the question takes it so, or as codes."""
    if name in question.numeric:
        return common_numbers(puf, eif, name, counts=counts)
    return common_codes(puf, eif, name)


def linking_category(
    puf: Microdata, eif: Microdata, name: str, question: Question, counts: Counts | None = None
) -> LinkCodes:
    """Return a linking variable as what must be the same in both files to agree on it."""
    variable = linking_variable(puf, eif, name, question, counts)
    return variable if isinstance(variable, LinkCodes) else quintiles(variable, question.cuts)


def quintiles(number: LinkValues, cuts: Cuts = "puf") -> LinkCodes:
    """Cut a numeric variable at its quintiles into codes 0 to 4; a cut point falls below."""
    sides = (number.puf, number.eif)
    whose = (0, 0) if cuts == "puf" else (0, 1)
    counts = number.counts or (None, None)
    puf, eif = (_cut(sides[i], sides[own], counts[own]) for i, own in enumerate(whose))
    return LinkCodes(number.name, puf, eif, pl.Series(range(1, 6)))


def z_scores(number: LinkValues) -> LinkValues | LinkCodes:
    """Scale by the public file's mean and n - 1 deviation; if constant there, take categories."""
    filled = ~np.isnan(number.puf)
    known = number.puf[filled]
    if len(known) == 0 or known.min() == known.max():
        both = encode(pl.Series(np.concatenate([number.puf, number.eif])).fill_nan(None))
        own, others = np.split(both.values.astype(np.int32), [len(number.puf)])
        return LinkCodes(number.name, own, others, both.levels)
    counts = None if number.counts is None else number.counts[0][filled]
    # Over different values in order, so that it does not hang on the order of the records.
    levels, places = np.unique(_near_one(known, known), return_inverse=True)
    weights = np.bincount(places, counts)
    mean = (weights * levels).sum() / weights.sum()
    deviation = np.sqrt((weights * (levels - mean) ** 2).sum() / (weights.sum() - 1))
    puf, eif = (
        (_near_one(values, number.puf) - mean) / deviation for values in (number.puf, number.eif)
    )
    # Farther from everybody than distances count; so that nothing is infinite.
    low, high = np.nanmin(puf) - FAR, np.nanmax(puf) + FAR
    return LinkValues(number.name, puf, np.clip(eif, low, high))


def is_empty(series: pl.Series) -> bool:
    """Tell whether all values of a column are missing."""
    return series.null_count() == len(series)


def family_of(dtype: pl.DataType) -> str:
    """Name the kind of values that may be compared with each other."""
    if dtype.is_numeric():
        return "numbers"
    if dtype in (pl.Date, pl.Datetime):
        return "dates"
    words = {pl.Boolean: "truth values", pl.Time: "times", pl.Duration: "durations"}
    return words.get(dtype.base_type(), "text")


def alike(*columns: pl.Series) -> tuple[pl.Series, ...]:
    """Bring columns of one family, some perhaps without any value, to one type."""
    known = [column for column in columns if not is_empty(column)]
    if len(known) > 1:
        columns = tuple(c if is_empty(c) else _plain(c, known) for c in columns)
    kind = next((c.dtype for c in columns if not is_empty(c)), columns[-1].dtype)
    return tuple(c.clear(len(c)).cast(kind) if is_empty(c) else c for c in columns)


def _plain(series: pl.Series, known: Sequence[pl.Series]) -> pl.Series:
    family = family_of(series.dtype)
    if family == "numbers":
        if not all(column.dtype.is_integer() for column in known):
            return series.cast(pl.Float64)
        wide = any(c.dtype in WIDE for c in known)
        # As text where no type that can be counted with tells all of them apart.
        wide = wide and any((c.cast(pl.Float64).abs() >= 2.0**62).any() for c in known)
        return series.cast(pl.String if wide else pl.Int64)
    if family == "dates":
        return series.cast(pl.Datetime("us"))
    if family == "durations":
        return series.cast(pl.Duration("us"))
    if series.dtype == pl.Binary:
        return series.bin.encode("hex")
    return series.cast(pl.String) if family == "text" else series


def as_floats(series: pl.Series) -> Floats:
    """Return a column as numbers, dates in days, missing ones as not a number."""
    if family_of(series.dtype) == "dates":
        series = series.cast(pl.Datetime("us")).to_physical() / _DAY
    values: Floats = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values


def _near_one(values: Floats, own: Floats) -> Floats:
    """Divide by the power of two at the largest number, which is exact and never overflows."""
    largest = np.nanmax(np.abs(own), initial=0.0)
    with np.errstate(over="ignore"):  # far beyond them is infinite
        return np.asarray(np.ldexp(values, -np.frexp(largest)[1]), dtype=np.float64)


def _cut(values: Floats, own: Floats, counts: Ints | None = None) -> Numbers:
    filled = ~np.isnan(own)
    known = _near_one(own[filled], own)
    points = np.zeros(len(QUINTILES))
    if len(known) and counts is None:
        points = np.quantile(known, QUINTILES)
    elif len(known) and counts is not None:
        points = _cut_points(known, counts[filled])
    codes = np.searchsorted(points, _near_one(values, own), side="left")
    return np.where(np.isnan(values), len(QUINTILES) + 1, codes).astype(np.int32)


def _cut_points(values: Floats, counts: Ints) -> Floats:
    """Return the quintiles of values that each stand for some records."""
    order = np.argsort(values)
    values, ends = values[order], np.cumsum(counts[order])
    points = []
    for share in QUINTILES:
        at = (int(ends[-1]) - 1) * share
        below = int(at)
        pair = np.searchsorted(ends, [below, min(below + 1, int(ends[-1]) - 1)], side="right")
        points.append(np.quantile(values[pair], at - below))  # between two records, as above
    return np.array(points)


def strangers(names: Iterable[str], link: Sequence[str], purpose: str) -> list[str]:
    """Say of each name that is no linking variable so, with those that come near."""
    problems = []
    for name in names:
        if name not in link:
            near = [repr(other) for other in nearest(str(name), list(link))]
            remedy = f"Did you mean {' or '.join(near)}?" if near else "Leave it out."
            problems.append(f"{purpose} {name!r} must belong to a linking variable. {remedy}")
    return problems


def variable_problems(puf: Microdata, eif: Microdata, question: Question) -> list[str]:
    """Say what makes variables unfit: types that clash, nothing known, nothing in common."""
    both = (puf.name, eif.name)
    problems = []
    for name in question.strata:
        problems += _type_problems(both, name, (puf.column(name), eif.column(name)), "stratum")
    for name in question.link:
        pair = (puf.column(name), eif.column(name))
        if name in question.blank and is_empty(pair[0]) and not is_empty(pair[1]):
            continue
        wrong = [
            f"linking variable {name!r} must have values. Got only missing ones in {file!r} "
            f"instead: leave it out, or check the missing codes."
            for file, series in zip(both, pair, strict=True)
            if is_empty(series)
        ] or _type_problems(both, name, pair, "linking variable")
        family = family_of(pair[0].dtype)
        if not wrong and name in question.numeric and family not in ("numbers", "dates"):
            wrong = [
                f"numeric variable {name!r} must hold numbers. Got {family} instead: "
                f"take it out of numeric, or turn it into numbers."
            ]
        elif not wrong and name in question.numeric:
            wrong = infinite_problems(f"numeric variable {name!r}", *pair)
        if not wrong and name not in graded_variables(question):
            one, other = (series.drop_nulls().unique() for series in alike(*pair))
            if one.is_in(other.implode()).any():
                continue
            wrong = [
                f"linking variable {name!r} must have a value in common in {puf.name!r} and "
                f"{eif.name!r}. Got none instead: check that they are coded alike."
            ]
        problems += wrong
    return problems


def _type_problems(
    files: tuple[str, str], name: str, pair: tuple[pl.Series, ...], purpose: str
) -> list[str]:
    one, other = (family_of(series.dtype) for series in pair)
    if one == other or any(map(is_empty, pair)):
        return []
    return [
        f"{purpose} {name!r} must be of one type. Got {one} in {files[0]!r} and {other} in "
        f"{files[1]!r} instead: turn one into the other."
    ]
