"""A protected file as it goes out: in another order, and without what speaks of others."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.protection.forms import forms_of

__all__ = ["in_order", "trimmed"]


def trimmed(data: Microdata) -> tuple[Microdata, list[str]]:
    """Return the file without what it knows of values that no record has any more; and say so.

    Categories of a dictionary and value labels are cut to those that occur. The label and the
    notes that a statistical file has of itself are left out.

    Examples
    --------
    >>> jobs = pl.Series("job", ["clerk"] * 3, dtype=pl.Enum(["clerk", "astronaut"]))
    >>> data = Microdata(pl.DataFrame([jobs]), [Variable("job", "category")])
    >>> trimmed(data)[0].frame["job"].dtype.categories.to_list()
    ['clerk']
    """
    origin, notes = data.origin, []
    if origin.file_label or origin.notes:
        notes.append("the label and the notes that the file had of itself are left out")
    frame = data.frame.with_columns(_cut(series) for series in data.frame)
    variables = [_labelled(frame[one.name], one) for one in data.variables]
    if any(new != old for new, old in zip(variables, data.variables, strict=True)):
        notes.append("labels of values that no record has are left out")
    types = _without_categories(origin.types)
    if not notes and frame.schema == data.frame.schema and types is origin.types:
        return data, []
    origin = dataclasses.replace(origin, file_label="", notes=(), types=types)
    return Microdata(frame, tuple(variables), name=data.name, origin=origin), notes


def in_order(data: Microdata, order: Ints) -> Microdata:
    """Return the records in another order."""
    origin = dataclasses.replace(data.origin, index=None)
    frame = data.frame[order]
    return Microdata(frame, data.variables, name=data.name, origin=origin)


def _cut(series: pl.Series) -> pl.Series:
    """Cut a dictionary to the categories that occur."""
    if series.dtype == pl.Categorical:
        return series.cast(pl.String).cast(series.dtype)
    if not isinstance(series.dtype, pl.Enum):
        return series
    there = set(series.drop_nulls().unique().to_list())
    kept = [one for one in series.dtype.categories.to_list() if one in there]
    return series.cast(pl.String).cast(pl.Enum(kept))


def _labelled(series: pl.Series, variable: Variable) -> Variable:
    """Cut value labels to the values that occur."""
    if not variable.value_labels:
        return variable
    there = forms_of(series.drop_nulls().unique().to_list())
    kept = {
        value: label
        for value, label in variable.value_labels.items()
        if not there.isdisjoint(forms_of([value]))
    }
    if len(kept) == len(variable.value_labels):
        return variable
    return dataclasses.replace(variable, value_labels=kept)


def _without_categories(types: Any) -> Any:
    """Leave out the types of a pandas frame that carry categories of their own."""
    if not isinstance(types, dict) or "category" not in map(str, types.values()):
        return types
    return {name: dtype for name, dtype in types.items() if str(dtype) != "category"}
