"""New values put back into a file such that it stays the same kind of file.

What is missing keeps its cell, and so does text: leading zeros stay. The text of numbers and times
is written anew in one form for the whole column once any of it is new, for else its form would say
which are. A column keeps its type as long as the new values have one that fits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import plural
from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.cell_text import as_text, in_one_form, is_text_of_values, one_form
from keyhole.protection.missing_numbers import past_codes

__all__ = [
    "blank_out",
    "keep_precision",
    "missing_forms",
    "numbers",
    "put",
    "put_levels",
    "put_numbers",
]


_TOO_LARGE = (
    "the new values of column {} would be larger than it can hold: give a smaller size or base, or "
    "top-code the column first."
)


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
    new = past_codes(data, name, new, old, known & (new != old))
    _require_held(data, name, new[known])
    series = pl.Series(name, new, nan_to_null=True)
    return put(data, name, series)


def _require_held(data: Microdata, name: str, new: Floats) -> None:
    """Refuse new numbers that are larger than any number, or than whole numbers can be."""
    most = 2.0**63 if data.column(name).dtype.is_integer() else np.inf
    if not (np.abs(new) < most).all():
        raise OptionError(_TOO_LARGE.format(repr(name)))


def keep_precision(data: Microdata, name: str, values: Floats) -> Floats:
    """Round numbers to whole ones, or to the decimals that the column has."""
    if data.column(name).dtype.is_integer():
        return np.rint(values)
    places = data.variable(name).decimals
    return values if places is None else np.round(values, places)


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
    """Return the file with some values of a column taken away, and how many those are.

    They are written as what is missing in the column already, and that all alike: else a reader
    who takes missing codes for categories would see others than were counted.
    """
    data = one_form(data, name)
    missing = data.column(name).is_null()
    gone = int((mask & ~missing.to_numpy()).sum())
    cells = data.frame[name]
    form = pl.Series(name, [_missing_form(cells.filter(missing))], dtype=cells.dtype)
    written = form.new_from_index(0, len(cells))
    hit = missing | pl.Series(mask)
    merged = pl.select(pl.when(hit).then(written).otherwise(cells).alias(name)).to_series()
    return data.replace(frame=data.frame.with_columns(merged)), gone


def missing_forms(data: Microdata, name: str) -> int:
    """Count in how many ways what is missing is written in a column."""
    return data.frame[name].filter(data.column(name).is_null()).n_unique()


def _missing_form(cells: pl.Series) -> Any:
    """Return the cell that stands for most of what is missing; None if they are all empty."""
    codes = cells.drop_nans() if cells.dtype.is_float() else cells
    codes = codes.drop_nulls().alias("code")
    if codes.dtype == pl.String:
        codes = codes.filter(codes != "")
    counted = codes.value_counts().sort("count", "code", descending=[True, False])
    return counted["code"][0] if len(codes) else None


def put(
    data: Microdata, name: str, new: pl.Series, *, value_labels: Mapping[Any, str] | None = None
) -> tuple[Microdata, int]:
    """Return the file with other values in a column, and how many are new.

    Where the new value is null, or is the old one, the value stays as it is.
    """
    old, cells = data.column(name), data.frame[name]
    variable = data.variable(name)
    changed = _differs(new, old) & old.is_not_null() & new.is_not_null()
    if not changed.any() and value_labels is None:
        return data, 0
    if is_text_of_values(data, name):
        merged, variable = _rewritten(cells, old, new, variable, changed)
    else:
        written, fresh = _alike(cells, new, variable, changed)
        merged = pl.select(pl.when(changed).then(fresh).otherwise(written)).to_series()
    out = data.replace(frame=data.frame.with_columns(merged.alias(name)))
    out = out.with_variables([_described(out, variable, new, cells, value_labels)])
    _require_visible(out, name, old.null_count())
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
    if new.dtype.is_numeric() and old.dtype.is_numeric():
        return _differ_as_numbers(new, old).fill_null(False)
    if new.dtype == old.dtype:
        return (new != old).fill_null(False)
    return (as_text(new) != as_text(old)).fill_null(False)


def _differ_as_numbers(new: pl.Series, old: pl.Series) -> pl.Series:
    """Compare whole numbers as such: as floats, 2^53 and 2^53 + 1 would be one."""
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


def _described(
    out: Microdata,
    old: Variable,
    new: pl.Series,
    cells: pl.Series,
    value_labels: Mapping[Any, str] | None,
) -> Variable:
    """Say of the column what is true of it now."""
    known = dataclasses.replace(out.variable(old.name), parsed=old.parsed)
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
    return [text for part in found for text in as_text(part, old).to_list()]


def _require_visible(out: Microdata, name: str, missing: int) -> None:
    lost = out.column(name).null_count() - missing
    if lost > 0:
        raise OptionError(
            f"new values of column {name!r} are empty, or declared missing codes of it, and "
            f"{plural(lost, 'record')} would be taken to miss one. Choose other values, or declare "
            f"other codes."
        )
