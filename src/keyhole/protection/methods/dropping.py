"""Columns left out of the release."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.data.microdata import Microdata
from keyhole.exposure.checks import listed
from keyhole.protection.checks import Method, Options, is_names
from keyhole.protection.protected import Protected

__all__ = ["DROP", "drop"]


def _unfit(data: Microdata, options: Options) -> list[str]:
    if set(DROP.columns(options)) < set(data.names):
        return []
    return ["columns must leave at least one column in the file. Got all of them instead."]


DROP = Method("drop", {"columns": is_names}, ("columns",), ("columns",), unfit=_unfit)


def drop(data: Microdata, *, columns: Iterable[str]) -> Protected:
    """Leave columns out of the file.

    Parameters
    ----------
    data
        The file.
    columns
        The columns that stay at home.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"name": ["Ann", "Bo"], "age": [30, 41]}))
    >>> drop(people, columns=["name"]).data.names
    ('age',)
    """
    gone = listed(columns, "columns")
    DROP.require(data, {"columns": gone})
    kept = data.select(name for name in data.names if name not in gone)
    return Protected(kept, "drop", dict.fromkeys(gone, data.records))
