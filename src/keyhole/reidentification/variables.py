"""What makes variables unfit for linking: names, types, and values that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from keyhole.core.names import nearest
from keyhole.data.microdata import Microdata
from keyhole.reidentification.files import alike, as_floats, family_of, is_empty

__all__ = ["infinite_problems", "strangers", "variable_problems"]


def strangers(names: Iterable[str], link: Sequence[str], purpose: str) -> list[str]:
    """Say of each name that is no linking variable so, with those that come near.

    Examples
    --------
    >>> strangers(["agee"], ["age", "sex"], "score")
    ["score 'agee' must belong to a linking variable. Did you mean 'age'?"]
    """
    problems = []
    for name in names:
        if name not in link:
            near = [repr(other) for other in nearest(str(name), list(link))]
            remedy = f"Did you mean {' or '.join(near)}?" if near else "Leave it out."
            problems.append(f"{purpose} {name!r} must belong to a linking variable. {remedy}")
    return problems


def variable_problems(
    puf: Microdata,
    eif: Microdata,
    link: Sequence[str],
    *,
    numeric: Sequence[str] = (),
    graded: Sequence[str] = (),
    strata: Sequence[str] = (),
    blank: Sequence[str] = (),
) -> list[str]:
    """Say what makes variables unfit: types that clash, nothing known, nothing in common.

    Parameters
    ----------
    puf, eif
        The two files.
    link
        The linking variables.
    numeric, graded
        Those that are numbers, and those that need no value in common.
    strata
        The variables that make the strata.
    blank
        Those that may be missing in every record of the PUF.
    """
    both = (puf.name, eif.name)
    problems = []
    for name in strata:
        problems += _type_problems(both, name, (puf.column(name), eif.column(name)), "stratum")
    for name in link:
        pair = (puf.column(name), eif.column(name))
        if name in blank and is_empty(pair[0]) and not is_empty(pair[1]):
            continue
        found = _empty_problems(both, name, pair) or _type_problems(both, name, pair)
        if not found and name in numeric:
            found = _number_problems(name, pair)
        if not found and name not in graded and not _overlap(*alike(*pair)):
            found = [
                f"linking variable {name!r} must have a value in common in {puf.name!r} and "
                f"{eif.name!r}. Got none instead: check that they are coded alike."
            ]
        problems += found
    return problems


def _empty_problems(
    files: tuple[str, str], name: str, pair: tuple[pl.Series, pl.Series]
) -> list[str]:
    return [
        f"linking variable {name!r} must have values. Got only missing ones in {file!r} "
        f"instead: leave it out, or check the missing codes."
        for file, series in zip(files, pair, strict=True)
        if is_empty(series)
    ]


def _type_problems(
    files: tuple[str, str],
    name: str,
    pair: tuple[pl.Series, pl.Series],
    purpose: str = "linking variable",
) -> list[str]:
    one, other = (family_of(series.dtype) for series in pair)
    if one == other or any(map(is_empty, pair)):
        return []
    return [
        f"{purpose} {name!r} must be of one type. Got {one} in {files[0]!r} and {other} in "
        f"{files[1]!r} instead: turn one into the other."
    ]


def _number_problems(name: str, pair: tuple[pl.Series, pl.Series]) -> list[str]:
    family = family_of(pair[0].dtype)
    if family not in ("numbers", "dates"):
        return [
            f"numeric variable {name!r} must hold numbers. Got {family} instead: "
            f"take it out of numeric, or turn it into numbers."
        ]
    return infinite_problems(name, pair)


def infinite_problems(name: str, pair: tuple[pl.Series, pl.Series]) -> list[str]:
    """Say if a variable holds infinite numbers, between which there is no distance."""
    if all(np.isfinite(as_floats(series.drop_nulls())).all() for series in pair):
        return []
    return [
        f"numeric variable {name!r} must have finite values. Got infinite ones instead: "
        f"declare them as missing codes."
    ]


def _overlap(one: pl.Series, other: pl.Series) -> bool:
    return bool(one.drop_nulls().unique().is_in(other.drop_nulls().unique().implode()).any())
