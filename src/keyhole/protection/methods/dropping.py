"""Columns left out of the release."""

from __future__ import annotations

from typing import Annotated

from keyhole.core.kinds import Columns
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.exposure.fix import Fix
from keyhole.protection.method import Protected, PublicNote, method
from keyhole.protection.options import Options

__all__ = ["drop"]


def _unfit(data: Microdata, options: Options) -> list[str]:
    if set(drop.columns(options)) < set(data.names):
        return []
    return ["columns must leave at least one column in the file. Got all of them instead."]


def _suggest(_: Microdata, fix: Fix) -> Options | None:
    return {"columns": [fix.variable]} if fix.action == "drop" else None


@method("drop", "drops", note=PublicNote("Left out: {columns}."), unfit=_unfit, suggest=_suggest)
def drop(
    data: Microdata,
    *,
    columns: Annotated[Names, Option("The columns to drop from the release.", kind=Columns())],
) -> Protected:
    """Leave columns out of the file.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"name": ["Ann", "Bo"], "age": [30, 41]}))
    >>> drop(people, columns=["name"]).data.names
    ('age',)
    """
    gone = tuple(columns)
    kept = data.select(name for name in data.names if name not in gone)
    return Protected(kept, "drop", dict.fromkeys(gone, data.records))
