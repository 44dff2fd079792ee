"""Values as the text of cells, all of a column in one form.

A number that was not touched and one that is new must not be told apart by how they are written:
``100000.0`` beside ``100000`` would say which is which.
"""

from __future__ import annotations

import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.inference import fits, render_floats
from keyhole.data.microdata import Microdata

__all__ = ["as_text", "in_one_form", "is_text_of_values", "one_form"]


def is_text_of_values(data: Microdata, name: str) -> bool:
    """Tell whether the frame keeps the text of a column's numbers or times."""
    parsed, cells = data.variable(name).parsed, data.frame[name]
    return parsed is not None and cells.dtype == pl.String != data.column(name).dtype


def one_form(data: Microdata, name: str) -> Microdata:
    """Return the file with the numbers or times of a text column written in one form.

    Missing codes, and columns that are no text of values, stay as they are.

    Examples
    --------
    >>> known = Variable("x", "measure", missing_codes=("N",), parsed=pl.Float64())
    >>> data = Microdata(pl.DataFrame({"x": ["1.5", "N", ".5", "1.50"]}), [known])
    >>> one_form(data, "x").frame["x"].to_list()
    ['1.5', 'N', '0.5', '1.5']
    """
    if not is_text_of_values(data, name):
        return data
    cells, values = data.frame[name], data.column(name)
    text = in_one_form(values, cells)
    merged = pl.select(pl.when(values.is_not_null()).then(text).otherwise(cells).alias(name))
    return data.replace(frame=data.frame.with_columns(merged.to_series()))


def in_one_form(values: pl.Series, like: pl.Series) -> pl.Series:
    """Write values as text: with the decimals that older texts have, if they all have as many.

    Examples
    --------
    >>> in_one_form(pl.Series([2.0, None]), pl.Series(["1.0", "N"])).to_list()
    ['2.0', None]
    >>> in_one_form(pl.Series([2.25, None]), pl.Series(["1.0", "N"])).to_list()
    ['2.25', None]
    """
    if not values.dtype.is_float():
        return as_text(values)
    texts = like.filter(values.is_not_null()) if len(like) == len(values) else like
    decimals = texts.str.len_bytes() - texts.str.find(".", literal=True) - 1
    places, pointless = decimals.max(), decimals.null_count() > 0
    fixed = isinstance(places, int) and decimals.min() == places and not pointless
    if isinstance(places, int) and fixed and fits(values, places):
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
