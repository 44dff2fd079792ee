"""Rank swapping: numbers change places with others of nearly the same rank."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.protection.method import WEAKER, Protected, PublicNote, method
from keyhole.protection.options import Options, Seed, draw_from
from keyhole.protection.writeback import one_form

__all__ = ["exchange", "rank_swap"]


def _unfit(data: Microdata, options: Options) -> list[str]:
    return [
        f"column {name!r} must hold values in an order: numbers or dates. Got text instead: "
        f"recode it to numbers first, or choose another column."
        for name in rank_swap.columns(options)
        if not (data.column(name).dtype.is_numeric() or data.column(name).dtype.is_temporal())
    ]


@method(
    "rank-swap",
    "exchanges",
    public=("columns",),
    note=PublicNote("Numbers were exchanged between records with similar ones.", WEAKER),
    unfit=_unfit,
    needs_order=True,
)
def rank_swap(
    data: Microdata,
    *,
    columns: Annotated[
        Names, Option("Columns of numbers or dates, each swapped by itself.", kind=Columns())
    ],
    share: Annotated[
        float,
        Option(
            "How far apart two ranks may be, as a share of the values that are not missing.",
            above=0,
            below=1,
        ),
    ],
    seed: Seed = None,
) -> Protected:
    """Swap the values of columns among records of nearly the same rank.

    Notes
    -----
    Moore (1996): records are ranked, equal ones in random order, and each is swapped with one
    at most p percent of the ranks away that has not been swapped. Every value stays in the file
    as often as it was: the column's distribution is exactly the same. What is missing stays.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"income": [40, 10, 30, 20]}))
    >>> made = rank_swap(people, columns=["income"], share=0.25, seed=1)
    >>> made.data.frame["income"].to_list()
    [30, 20, 40, 10]
    """
    generator = draw_from(seed)
    by_column = {}
    for name in columns:
        order = _ranked(data.codes(name), generator)
        partner = _partners(len(order), share, generator)
        source = np.arange(data.records)
        source[order] = order[partner]
        data, by_column[name] = exchange(data, name, source)
    return Protected(data, "rank-swap", by_column)


def _ranked(codes: Codes, generator: np.random.Generator) -> Ints:
    """Return the records that are not missing by rank, equal ones in random order."""
    known = np.flatnonzero(codes.values < len(codes.levels))
    shuffled = generator.permutation(known)
    return shuffled[np.argsort(codes.values[shuffled], kind="stable")]


def _partners(count: int, share: float, generator: np.random.Generator) -> Ints:
    from keyhole.kernels.nearest_donors import rank_partners

    window = max(1, int(share * count))
    found: Ints = rank_partners(window, generator.random(count))
    return found


def exchange(data: Microdata, name: str, source: Ints) -> tuple[Microdata, int]:
    """Give each record the cell of another in a column; return how many values are new."""
    codes = data.codes(name).values
    changed = int((codes[source] != codes).sum())
    # The text of a number that came along would tell whose it was.
    data = one_form(data, name) if changed else data
    moved = data.frame[name].gather(pl.Series(source, dtype=pl.UInt32))
    return data.replace(frame=data.frame.with_columns(moved.alias(name))), changed
