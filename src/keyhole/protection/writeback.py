"""New values put back into a file such that it stays the same kind of file.

What was not changed keeps its very cell: leading zeros, missing codes, the text of a number. A
column keeps its type as long as the new values have one that fits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.inference import render_floats
from keyhole.data.microdata import Microdata
from keyhole.data.missing import blank
from keyhole.errors import OptionError

__all__ = ["blank_out", "keep_precision", "numbers", "put", "put_levels", "put_numbers"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def numbers(data: Microdata, name: str) -> Floats:
    """Return a column as numbers, NaN where it is missing."""
    found: Floats = data.column(name).cast(pl.Float64).fill_null(np.nan).to_numpy()
    return found


def put_numbers(
    data: Microdata, name: str, values: Floats, *, precise: bool = False
) -> tuple[Microdata, int]:
    """Return the file with these numbers in a column, and how many are new.

    Parameters
    ----------
    data, name
        The file and the column.
    values
        One number a record; what is missing stays missing, whatever is given there.
    precise
        Keep every digit; else numbers are rounded to the precision that the column has.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30, -9]}), [
    ...     Variable("age", "measure", missing_codes=(-9,))])
    >>> put_numbers(people, "age", np.array([31.4, 50.0]))[0].frame["age"].to_list()
    [31, -9]
    """
    old = numbers(data, name)
    known = np.isfinite(old)
    new = np.where(known, values if precise else keep_precision(data, name, values), old)
    new = _past_codes(data, name, new, known & (new != old))
    series = pl.Series(name, new, nan_to_null=True)
    return put(data, name, series)


def keep_precision(data: Microdata, name: str, values: Floats) -> Floats:
    """Round numbers to whole ones, or to the decimals that the column has."""
    if data.column(name).dtype.is_integer():
        return np.rint(values)
    places = data.variable(name).decimals
    return values if places is None else np.round(values, places)


def _past_codes(data: Microdata, name: str, new: Floats, changed: Flags) -> Floats:
    """Move new numbers that happen to be missing codes to the next number that is none."""
    variable = data.variable(name)
    step = 1.0 if data.column(name).dtype.is_integer() else 10.0 ** -(variable.decimals or 6)
    plain = dataclasses.replace(variable, parsed=None)
    while True:
        hit = blank(pl.Series(new, nan_to_null=False), plain).is_null().to_numpy() & changed
        if not hit.any():
            return new
        new = np.where(hit, new + step, new)


def put_levels(
    data: Microdata, name: str, levels: list[Any], *, value_labels: Mapping[Any, str] | None = None
) -> tuple[Microdata, int]:
    """Return the file with each level of a column replaced, and how many values are new.

    Parameters
    ----------
    data, name
        The file and the column.
    levels
        The new value of each level, in the order of `Microdata.codes`.
    value_labels
        What the new values mean; those of the column if left out.
    """
    codes = data.codes(name)
    values = _plain(levels).extend_constant(None, 1)
    series = values.gather(codes.values.astype(np.uint32)).alias(name)
    return put(data, name, series, value_labels=value_labels)


def _plain(levels: list[Any]) -> pl.Series:
    """Return values in the narrowest type that holds them all."""
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in levels)
    if whole:
        return pl.Series(levels, dtype=pl.Int64)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels):
        return pl.Series([float(v) for v in levels], dtype=pl.Float64)
    if all(isinstance(v, type(levels[0])) for v in levels):
        return pl.Series(levels)
    return pl.Series([str(v) for v in levels], dtype=pl.String)


def blank_out(data: Microdata, name: str, mask: Flags) -> tuple[Microdata, int]:
    """Return the file with some values of a column taken away, and how many those are."""
    gone = int((mask & data.column(name).is_not_null().to_numpy()).sum())
    cells = pl.select(
        pl.when(pl.Series(mask)).then(None).otherwise(data.frame[name]).alias(name)
    ).to_series()
    return data.replace(frame=data.frame.with_columns(cells)), gone


def put(
    data: Microdata, name: str, new: pl.Series, *, value_labels: Mapping[Any, str] | None = None
) -> tuple[Microdata, int]:
    """Return the file with other values in a column, and how many are new.

    Where the new value is null, or is the old one, the cell stays as it is.
    """
    old, cells = data.column(name), data.frame[name]
    variable = data.variable(name)
    changed = _differs(new, old) & old.is_not_null() & new.is_not_null()
    if not changed.any() and value_labels is None:
        return data, 0
    written, fresh = _alike(cells, new, variable, changed)
    merged = pl.select(pl.when(changed).then(fresh).otherwise(written).alias(name)).to_series()
    out = data.replace(frame=data.frame.with_columns(merged))
    out = out.with_variables([_described(out, variable, new, cells, value_labels)])
    _require_visible(out, name, old.null_count())
    return out, int(changed.sum())


def _differs(new: pl.Series, old: pl.Series) -> pl.Series:
    if new.dtype.is_numeric() and old.dtype.is_numeric():
        return (new.cast(pl.Float64) != old.cast(pl.Float64)).fill_null(False)
    if new.dtype == old.dtype:
        return (new != old).fill_null(False)
    return (_as_text(new) != _as_text(old)).fill_null(False)


def _alike(
    cells: pl.Series, new: pl.Series, variable: Variable, changed: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Bring old cells and new values to one type, the old one where the new values fit it."""
    if cells.dtype == new.dtype:
        return cells, new
    if new.dtype.is_numeric() and cells.dtype.is_numeric():
        return _alike_numbers(cells, new, changed)
    if cells.dtype in (pl.String, pl.Enum, pl.Categorical) or variable.missing_codes:
        whole = variable.parsed is not None and variable.parsed.is_integer()
        return _as_text(cells, variable), _as_text(new, whole=whole)
    if new.dtype == pl.String:
        return _as_text(cells, variable), new
    return pl.Series([None], dtype=new.dtype).new_from_index(0, len(new)), new


def _alike_numbers(
    cells: pl.Series, new: pl.Series, changed: pl.Series
) -> tuple[pl.Series, pl.Series]:
    picked = new.filter(changed)
    whole = not new.dtype.is_float() or bool((picked == picked.round()).all())
    if cells.dtype.is_integer() and whole:
        wide = pl.select(pl.when(changed).then(new)).to_series().cast(pl.Int64)
        narrow = wide.cast(cells.dtype, strict=False)
        if narrow.null_count() == wide.null_count():
            return cells, narrow
        return cells.cast(pl.Int64), wide
    if cells.dtype.is_float():
        return cells, new.cast(cells.dtype)
    return cells.cast(pl.Float64), new.cast(pl.Float64)


def _as_text(
    series: pl.Series, variable: Variable | None = None, *, whole: bool = False
) -> pl.Series:
    if series.dtype.is_float():
        places = None if variable is None else variable.decimals
        trimmed = whole or variable is None or variable.trimmed
        return render_floats(series, decimals=places, trimmed=trimmed)
    if series.dtype == pl.Datetime:
        return series.dt.to_string("%Y-%m-%dT%H:%M:%S")
    return series.cast(pl.String)


def _described(
    out: Microdata,
    old: Variable,
    new: pl.Series,
    cells: pl.Series,
    value_labels: Mapping[Any, str] | None,
) -> Variable:
    """Say of the column what is true of it now."""
    known = out.variable(old.name)
    if value_labels is not None:
        known = dataclasses.replace(known, value_labels=dict(value_labels))
    if new.dtype == pl.String and not (cells.dtype == pl.String and old.parsed is None):
        codes = dict.fromkeys([*old.missing_codes, *_coded(cells, old)])
        known = dataclasses.replace(
            known, kind="category", parsed=None, missing_codes=tuple(codes), missing_ranges=()
        )
    return known


def _coded(cells: pl.Series, old: Variable) -> list[str]:
    """Return the values within missing ranges, which text cannot have."""
    if not old.missing_ranges or not cells.dtype.is_numeric():
        return []
    found = [
        cells.filter(cells.is_between(lowest, highest)).unique().sort()
        for lowest, highest in old.missing_ranges
    ]
    return [text for part in found for text in _as_text(part, old).to_list()]


def _require_visible(out: Microdata, name: str, missing: int) -> None:
    lost = out.column(name).null_count() - missing
    if lost > 0:
        raise OptionError(
            f"{lost:,} new values of column {name!r} are declared missing codes of it, and would "
            f"be taken for missing. Choose other values, or declare other codes."
        )
