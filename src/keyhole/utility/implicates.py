"""Implicates of a release: loaded, and checked that they belong together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.names import quoted
from keyhole.data import Microdata, load
from keyhole.data.columns import Codes, encode
from keyhole.data.implicates import find_implicates
from keyhole.data.microdata import values_in_words
from keyhole.errors import ColumnError, FileError, InputError, OptionError
from keyhole.kernels.arrays import Floats


def load_implicates(
    source: Any,
    columns: Iterable[str] | None = None,
    *,
    matching: Sequence[str] = (),
    purpose: str = "column",
    **reading: Any,
) -> tuple[Microdata, ...]:
    """Load implicates, one after the other, and keep the columns that are needed.

    The source is the folder of a release, one frame or file, or a list of them. `matching` are
    patterns of further columns, `purpose` is what a message calls the columns, and `reading` how to
    read files, as for `keyhole.load`.
    """
    wanted = None if columns is None else tuple(dict.fromkeys(columns))
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        sources = [path] if path.is_file() else list(find_implicates(path))
    else:
        sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise FileError("implicates must be at least one frame or file. Got none instead.")
    kept: list[Microdata] = []
    problems: dict[str, None] = {}
    kind: type[InputError] = ColumnError
    first: Microdata | None = None
    for place, one in enumerate(sources, 1):
        name = None if isinstance(one, str | os.PathLike | Microdata) else f"implicate-{place}"
        try:
            data = load(one, name=name, **reading)
            held, first = wanted or data.names, first or data
            problems.update(dict.fromkeys(_differences(first, data)))
            if data is first:  # a column that none has is told of once
                data.require(held, purpose=purpose)
            more = [n for n in data.names if any(fnmatchcase(n, one) for one in matching)]
            every = dict.fromkeys([*held, *more])
            kept.append(data.select([column for column in every if column in data.names]))
        except InputError as error:
            kind = type(error)
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise kind(problems)
    return tuple(kept)


def _differences(first: Microdata, other: Microdata) -> list[str]:
    """Say why files are not implicates of one release."""
    if first is other and not first.records:
        return [f"{first.name!r} has a header but no records. Give implicates with records."]
    problems, both = [], f"{first.name!r} and {other.name!r}"
    if first.records != other.records:
        problems.append(
            f"implicates must have the same number of records. Got {first.records:,} and "
            f"{other.records:,} in {both} instead: take all from one release."
        )
    if differing := sorted(set(first.names) ^ set(other.names)):
        problems.append(
            f"implicates must have the same columns. {both} differ in {quoted(differing, most=5)}: "
            f"take all from one release."
        )
    return problems


def stack(series: Sequence[pl.Series]) -> pl.Series:
    """Put columns below each other; numbers of several types become one type, else text."""
    if len({str(one.dtype) for one in series if one.dtype != pl.Null}) > 1 and not all(
        one.dtype.is_numeric() or one.dtype == pl.Null for one in series
    ):
        series = [one.cast(pl.String) for one in series]
    frames = [one.alias("").to_frame() for one in series]
    return pl.concat(frames, how="vertical_relaxed").to_series()


def shared_codes(data: Sequence[Microdata], name: str) -> Codes:
    """Encode a column over all files together, so that a code means the same in each."""
    return encode(stack([one.column(name) for one in data]).alias(name))


def split(values: npt.NDArray[Any], data: Sequence[Microdata]) -> list[npt.NDArray[Any]]:
    """Cut what was computed over stacked files into the parts of each."""
    return np.split(values, np.cumsum([one.records for one in data])[:-1])


def physical(series: pl.Series) -> Floats:
    """Return numbers, or dates as they are stored; what is missing is not a number (NaN)."""
    array: Floats = series.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
    return array


def numbers(data: Microdata, name: str) -> Floats:
    """Return a column of numbers; what is missing is not a number (NaN)."""
    series = data.column(name)
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(
            f"column {name!r} of {data.name!r} must hold numbers. Got {values_in_words(series)} "
            f"instead: choose another column, or declare its missing codes."
        )
    return physical(series)


def chosen(names: Any) -> tuple[str, ...]:
    """Return names as a tuple; one name alone is meant as a list of one."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def load_sides(
    original: Any,
    implicates: Any,
    variables: str | Sequence[str] | None = None,
    *,
    more: Sequence[str] = (),
    problems: Sequence[str] = (),
) -> list[Microdata]:
    """Return the original, then the implicates, with the same columns.

    The columns are `variables`, all the original's if left out, and `more`. What is wrong with
    other options (`problems`) is told together with what is found here.
    """
    found, data, wanted = list(problems), list[Microdata](), chosen(variables)
    kind: type[InputError] = OptionError
    try:
        before = load(original)
        before.require_records()
        named = before.names if variables is None else wanted
        wanted = tuple(dict.fromkeys([*named, *more]))
        data.append(before.select(before.require(wanted, purpose="variable")))
    except InputError as error:
        kind, found = type(error), [*found, *error.problems]
    try:
        data += load_implicates(implicates, wanted, purpose="variable")
    except InputError as error:
        kind, found = type(error), [*found, *error.problems]
    if found:
        raise kind(dict.fromkeys(found))
    return data
