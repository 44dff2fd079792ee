"""The original at the detail of a protected file, so that the two can be compared at all.

A column that was recoded has other categories than before: every comparison of distributions
would say no more than that. Told in the new categories, the original shows what else was done.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from keyhole.data import Microdata

__all__ = ["at_detail_of"]


def at_detail_of(original: Microdata, protected: Microdata, names: Sequence[str]) -> Microdata:
    """Return columns of the original in the categories of the protected file.

    Measures that are still numbers stay as they are. Where every value of a column has become
    one other (a coarser column), or there are new ones, each value becomes what most of its
    records became; one that has become nothing but missing stays missing. What was swapped or
    drawn among the original's categories stays as it is.

    Parameters
    ----------
    original, protected
        The same records, in the same order.
    names
        The columns, which both files have.

    Examples
    --------
    >>> from keyhole.data import load
    >>> before = load(pl.DataFrame({"state": ["MD", "MD", "VA", "TX"]}))
    >>> after = load(pl.DataFrame({"state": ["E", None, "E", "W"]}))
    >>> at_detail_of(before, after, ["state"]).frame["state"].to_list()
    ['E', 'E', 'E', 'W']
    """
    columns = [_told(original, protected, name) for name in names]
    kept = [one.name for one in columns]
    variables = [
        (original if same else protected).variable(name)
        for name, same in ((name, _is_same(original, protected, name)) for name in kept)
    ]
    shown = original.select(names)
    return shown.replace(frame=pl.DataFrame(columns)).with_variables(variables)


def _told(original: Microdata, protected: Microdata, name: str) -> pl.Series:
    before, after = original.column(name), protected.column(name)
    if _is_same(original, protected, name):
        return before
    pairs = pl.DataFrame({"before": before, "after": after})
    usual = (
        pairs.drop_nulls()
        .group_by("before", "after")
        .len()
        .sort("len", "after", descending=[True, False])
        .unique("before", keep="first", maintain_order=True)
        .rename({"after": "told"})
    )
    joined = pairs.join(usual, on="before", how="left", maintain_order="left")
    return joined["told"].alias(name)


def _is_same(original: Microdata, protected: Microdata, name: str) -> bool:
    """Tell whether the values are still of the original's kind and detail."""
    before, after = original.column(name), protected.column(name)
    numbers = before.dtype.is_numeric() and after.dtype.is_numeric()
    if numbers and original.variable(name).kind == "measure":
        return True
    if before.dtype != after.dtype or _is_recoded(before, after):
        return False
    return set(after.drop_nulls().unique()) <= set(before.drop_nulls().unique())


def _is_recoded(before: pl.Series, after: pl.Series) -> bool:
    """Tell whether each value became one value, whatever went missing."""
    pairs = pl.DataFrame({"before": before, "after": after}).drop_nulls().unique()
    return pairs["before"].n_unique() == pairs.height
