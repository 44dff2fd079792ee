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

Shape = tuple[str, tuple[str, ...], int]  # name, columns, records


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
    kept: list[Microdata] = []
    shapes: list[Shape] = []
    problems: dict[str, None] = {}
    kind: type[InputError] = ColumnError
    for place, one in enumerate(_sources(source), 1):
        name = None if isinstance(one, str | os.PathLike | Microdata) else f"implicate-{place}"
        try:
            data = load(one, name=name, **reading)
            shapes.append((data.name, data.names, data.records))
            held = wanted or data.names
            if len(shapes) == 1:  # a column that none has is told of once
                data.require(held, purpose=purpose)
            more = [n for n in data.names if any(fnmatchcase(n, one) for one in matching)]
            every = dict.fromkeys([*held, *more])
            kept.append(data.select([column for column in every if column in data.names]))
        except InputError as error:
            kind = type(error)
            problems.update(dict.fromkeys(error.problems))
    problems.update(dict.fromkeys(_differences(shapes)))
    if problems:
        raise kind(problems)
    return tuple(kept)


def _sources(source: Any) -> list[Any]:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return [path] if path.is_file() else list(find_implicates(path))
    listed = list(source) if isinstance(source, list | tuple) else [source]
    if not listed:
        raise FileError("implicates must be at least one frame or file. Got none instead.")
    return listed


def _differences(shapes: Sequence[Shape]) -> list[str]:
    if not shapes:
        return []
    first, names, records = shapes[0]
    problems = []
    if records == 0:
        problems.append(f"{first!r} has a header but no records. Give implicates with records.")
    for other, others, count in shapes[1:]:
        both = f"{first!r} and {other!r}"
        if count != records:
            problems.append(
                f"implicates must have the same number of records. Got {records:,} and {count:,} "
                f"in {both} instead: take all from one release."
            )
        differing = set(names) ^ set(others)
        if differing:
            some = sorted(differing)
            problems.append(
                f"implicates must have the same columns. {both} differ in {quoted(some, most=5)}: "
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
    found = list(problems)
    kind: type[InputError] = OptionError
    data: list[Microdata] = []
    wanted: tuple[str, ...] = chosen(variables)
    try:
        before = load(original)
        before.require_records()
        wanted = before.names if variables is None else wanted
        wanted = tuple(dict.fromkeys([*wanted, *more]))
        data = [before.select(before.require(wanted, purpose="variable"))]
    except InputError as error:
        kind, found = type(error), [*found, *error.problems]
    try:
        data += load_implicates(implicates, wanted, purpose="variable")
    except InputError as error:
        kind, found = type(error), [*found, *error.problems]
    if found:
        raise kind(dict.fromkeys(found))
    return data
