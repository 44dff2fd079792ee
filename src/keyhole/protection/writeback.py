"""Columns read as numbers, and new values written back such that the file stays the same kind.

What is missing keeps its cell, and so does text: leading zeros stay. The text of numbers and times
is written anew in one form for the whole column once any of it is new: ``100000.0`` beside
``100000`` would say which is which. A column keeps its type as long as the new values fit it. New
numbers that happen to be missing codes are moved beside them, to the side they came from.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import plural
from keyhole.core.notes import Note
from keyhole.data.columns import Variable
from keyhole.data.inference import fits_text, render_floats
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Flags, Floats, Ints, number_rows
from keyhole.utility.implicates import numbers


def is_text_of_values(data: Microdata, name: str) -> bool:
    """Tell whether the frame keeps the text of a column's numbers or times."""
    parsed, cells = data.variable(name).parsed, data.frame[name]
    return parsed is not None and cells.dtype == pl.String != data.column(name).dtype


def one_form(data: Microdata, name: str) -> Microdata:
    """Return the file with the numbers or times of a text column written in one form."""
    if not is_text_of_values(data, name):
        return data
    cells, values = data.frame[name], data.column(name)
    text = in_one_form(values, cells)
    merged = pl.select(pl.when(values.is_not_null()).then(text).otherwise(cells).alias(name))
    return data.replace(frame=data.frame.with_columns(merged.to_series()))


def in_one_form(values: pl.Series, like: pl.Series) -> pl.Series:
    """Write values as text: with the decimals that older texts have, if they all have as many."""
    if not values.dtype.is_float():
        return as_text(values)
    texts = like.filter(values.is_not_null()) if len(like) == len(values) else like
    decimals = texts.str.len_bytes() - texts.str.find(".", literal=True) - 1
    places, pointless = decimals.max(), decimals.null_count() > 0
    fixed = isinstance(places, int) and decimals.min() == places and not pointless
    if isinstance(places, int) and fixed and fits_text(values, places):
        return render_floats(values, decimals=places)
    return render_floats(values, trimmed=pointless)


def as_text(
    series: pl.Series, variable: Variable | None = None, *, whole: bool = False
) -> pl.Series:
    """Write a column as text; numbers with the decimals of the variable."""
    if series.dtype.is_float():
        places = None if variable is None else variable.decimals
        trimmed = whole or variable is None or variable.trimmed
        return render_floats(series, decimals=places, trimmed=trimmed)
    if series.dtype == pl.Datetime:
        fraction = "%.f" if (series.dt.microsecond() != 0).any() else ""
        return series.dt.to_string(f"%Y-%m-%dT%H:%M:%S{fraction}")
    if series.dtype == pl.Duration:
        return series.dt.to_string("iso")
    return series.cast(pl.String)


# A range to here has no end: no number lies past it.
ENDLESS = 1e300


def past_codes(data: Microdata, name: str, new: Floats, old: Floats, changed: Flags) -> Floats:
    """Move new numbers that stand for a missing value to such as do not."""
    variable = data.variable(name)
    step = 1.0 if data.column(name).dtype.is_integer() else 10.0 ** -(variable.decimals or 6)
    codes = pl.Series(map(str, variable.missing_codes), dtype=pl.String)
    codes = codes.str.strip_chars().cast(pl.Float64, strict=False).drop_nulls()
    single = ((code, code) for code in codes.to_list() if math.isfinite(code))
    spans: list[tuple[float, float]] = []
    for low, high in sorted([*single, *variable.missing_ranges]):
        if spans and low <= spans[-1][1] + step:  # no number is between them
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((float(low), float(high)))
    for low, high in spans:
        hit = changed & (new >= low) & (new <= high)
        if not hit.any():
            continue
        below = old < low
        edge = np.where(below, _beside(low, -step), _beside(high, step))
        mirrored = edge + np.where(below, low - new, high - new)
        if variable.decimals is not None:
            edge, mirrored = (np.round(x, variable.decimals) for x in (edge, mirrored))
        within = np.any([(mirrored >= a) & (mirrored <= b) for a, b in spans], axis=0)
        new = np.where(hit, np.where(within, edge, mirrored), new)
    return new


def _beside(end: float, step: float) -> float:
    """Return the next number past an end, however coarse numbers of its size are."""
    if not abs(end) < ENDLESS:
        return end
    return float(np.nextafter(end, np.inf * step)) if end + step == end else end + step


def infinite_notes(data: Microdata, names: Iterable[str]) -> tuple[str, ...]:
    """Say of each column how many of its values are infinite, and stay so."""
    floats = [data.column(name) for name in names if data.column(name).dtype.is_float()]
    return tuple(
        Note("protection.infinite", values=count, column=column.name)
        for column in floats
        if (count := int(column.is_infinite().sum()))
    )


_TOO_LARGE = (
    "the new values of column {} would be larger than it can hold: give a smaller size or base, or "
    "top-code the column first."
)


def cell_numbers(data: Microdata, names: Sequence[str]) -> Ints:
    """Number the cells of some columns from 0; missing is a category of its own."""
    return number_rows([data.codes(name).values for name in names], data.records)


def put_numbers(
    data: Microdata, name: str, values: Floats, *, precise: bool = False
) -> tuple[Microdata, int]:
    """Return the file with these numbers in a column, and how many are new.

    What is missing stays missing, whatever is given there. Unless `precise`, numbers are rounded to
    the precision that the column has.
    """
    old = numbers(data, name)
    known = np.isfinite(old)
    new = np.where(known, values if precise else keep_precision(data, name, values), old)
    new = past_codes(data, name, new, old, known & (new != old))
    most = 2.0**63 if data.column(name).dtype.is_integer() else np.inf
    if not (np.abs(new[known]) < most).all():
        raise OptionError(_TOO_LARGE.format(repr(name)))
    return put(data, name, pl.Series(name, new, nan_to_null=True))


def keep_precision(data: Microdata, name: str, values: Floats) -> Floats:
    """Round numbers to whole ones, or to the decimals that the column has."""
    if data.column(name).dtype.is_integer():
        return np.rint(values)
    places = data.variable(name).decimals
    return values if places is None else np.round(values, places)


def put_levels(
    data: Microdata, name: str, levels: list[Any], *, value_labels: Mapping[Any, str] | None = None
) -> tuple[Microdata, int]:
    """Return the file with each level of a column replaced, and how many values are new."""
    codes = data.codes(name)
    values = _plain(levels).extend_constant(None, 1)
    series = values.gather(codes.values.astype(np.uint32)).alias(name)
    return put(data, name, series, value_labels=value_labels)


def _plain(levels: list[Any]) -> pl.Series:
    """Return values in the narrowest type that holds them all."""
    if not any(isinstance(v, bool) for v in levels):
        if all(isinstance(v, int) for v in levels):
            return pl.Series(levels, dtype=pl.Int64)
        if all(isinstance(v, int | float) for v in levels):
            return pl.Series([float(v) for v in levels], dtype=pl.Float64)
    if all(isinstance(v, type(levels[0])) for v in levels):
        return pl.Series(levels)
    return pl.Series([str(v) for v in levels], dtype=pl.String)


def blank_out(data: Microdata, name: str, mask: Flags) -> tuple[Microdata, int]:
    """Return the file with some values of a column taken away, and how many those are."""
    data = one_form(data, name)
    missing, cells = data.column(name).is_null(), data.frame[name]
    gone = int((mask & ~missing.to_numpy()).sum())
    codes = cells.filter(missing)
    codes = (codes.drop_nans() if cells.dtype.is_float() else codes).drop_nulls().alias("code")
    codes = codes.filter(codes != "") if codes.dtype == pl.String else codes
    counted = codes.value_counts().sort("count", "code", descending=[True, False])
    form = pl.Series(name, counted["code"].to_list()[:1] or [None], dtype=cells.dtype)
    hit, written = missing | pl.Series(mask), form.new_from_index(0, len(cells))
    merged = pl.select(pl.when(hit).then(written).otherwise(cells).alias(name)).to_series()
    return data.replace(frame=data.frame.with_columns(merged)), gone


def missing_forms(data: Microdata, name: str) -> int:
    """Count in how many ways what is missing is written in a column."""
    return data.frame[name].filter(data.column(name).is_null()).n_unique()


def put(
    data: Microdata, name: str, new: pl.Series, *, value_labels: Mapping[Any, str] | None = None
) -> tuple[Microdata, int]:
    """Return the file with other values in a column, and how many are new."""
    old, cells = data.column(name), data.frame[name]
    variable = data.variable(name)
    changed = _differs(new, old).fill_null(False) & old.is_not_null() & new.is_not_null()
    if not changed.any() and value_labels is None:
        return data, 0
    if is_text_of_values(data, name):
        merged, variable = _rewritten(cells, old, new, variable, changed)
    else:
        written, fresh = _alike(cells, new, variable, changed)
        merged = pl.select(pl.when(changed).then(fresh).otherwise(written)).to_series()
    out = data.replace(frame=data.frame.with_columns(merged.alias(name)))
    known = dataclasses.replace(out.variable(name), parsed=variable.parsed)
    if value_labels is not None:
        known = dataclasses.replace(known, value_labels=dict(value_labels))
    if new.dtype == pl.String and not (cells.dtype == pl.String and variable.parsed is None):
        codes = list(variable.missing_codes)
        # Text has no ranges: the values within them become codes.
        for low, high in variable.missing_ranges if cells.dtype.is_numeric() else ():
            within = cells.filter(cells.is_between(low, high)).unique().sort()
            codes += as_text(within, variable).to_list()
        told = tuple(dict.fromkeys(codes))
        known = dataclasses.replace(
            known, kind="category", parsed=None, missing_codes=told, missing_ranges=()
        )
    out = out.with_variables([known])
    lost = out.column(name).null_count() - old.null_count()
    if lost > 0:
        raise OptionError(
            f"new values of column {name!r} are empty, or declared missing codes of it, and "
            f"{plural(lost, 'record')} would be taken to miss one. Choose other values, or declare "
            f"other codes."
        )
    return out, int(changed.sum())


def _rewritten(
    cells: pl.Series, old: pl.Series, new: pl.Series, variable: Variable, changed: pl.Series
) -> tuple[pl.Series, Variable]:
    """Write all values of a text column anew, in one form; what is missing keeps its cell."""
    if new.dtype.is_numeric() and old.dtype.is_numeric():
        kept, fresh = _alike_numbers(old, new, changed)
    elif new.dtype == old.dtype:
        kept, fresh = old, new
    else:
        kept, fresh = in_one_form(old, cells), as_text(new)
    values = pl.select(pl.when(changed).then(fresh).otherwise(kept)).to_series()
    if values.dtype != pl.String:
        variable = dataclasses.replace(variable, parsed=values.dtype)
        values = in_one_form(values, cells)
    text = pl.select(pl.when(old.is_not_null()).then(values).otherwise(cells)).to_series()
    return text, variable


def _differs(new: pl.Series, old: pl.Series) -> pl.Series:
    """Compare whole numbers as such: as floats, 2^53 and 2^53 + 1 would be one."""
    if not (new.dtype.is_numeric() and old.dtype.is_numeric()):
        return new != old if new.dtype == old.dtype else as_text(new) != as_text(old)
    if not old.dtype.is_integer():
        return new.cast(pl.Float64) != old.cast(pl.Float64)
    if new.dtype.is_integer():
        return new.cast(pl.Int128) != old.cast(pl.Int128)
    whole = new.cast(pl.Float64).round()
    return (whole != new) | (whole.cast(pl.Int128, strict=False) != old.cast(pl.Int128))


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
        return as_text(cells, variable), as_text(new, whole=whole)
    if new.dtype == pl.String:
        return as_text(cells, variable), new
    return pl.Series([None], dtype=new.dtype).new_from_index(0, len(new)), new


def _alike_numbers(
    cells: pl.Series, new: pl.Series, changed: pl.Series
) -> tuple[pl.Series, pl.Series]:
    picked = new.filter(changed)
    whole = not new.dtype.is_float() or bool((picked == picked.round()).all())
    if cells.dtype.is_integer() and whole:
        wide = pl.select(pl.when(changed).then(new)).to_series().cast(pl.Int128)
        for dtype in (cells.dtype, pl.Int64(), pl.UInt64()):
            kept, narrow = (one.cast(dtype, strict=False) for one in (cells, wide))
            if (kept.null_count(), narrow.null_count()) == (cells.null_count(), wide.null_count()):
                return kept, narrow
        raise OptionError(_TOO_LARGE.format(repr(cells.name)))
    if cells.dtype == pl.Decimal:
        exact = new.cast(cells.dtype, strict=False)
        if ((exact.cast(pl.Float64) == new.cast(pl.Float64)) | ~changed).all():
            return cells, exact
    if cells.dtype.is_float():
        return cells, new.cast(cells.dtype)
    return cells.cast(pl.Float64), new.cast(pl.Float64)
