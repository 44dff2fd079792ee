"""Swapping: numbers change places with others of nearly the same rank, records at risk with others.

In targeted record swapping, records at risk change areas with others that are like them. An area's
tables on the matched variables stay exactly what they were, because the two records have the same
values there; what else they have moves with them.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import Flags, Ints
from keyhole.protection.method import WEAKER, Protected, PublicNote, method
from keyhole.protection.options import Options, Seed
from keyhole.protection.writeback import cell_numbers, one_form


@method(
    "rank-swap",
    "exchanges",
    public=("columns",),
    note=PublicNote("Numbers were exchanged between records with similar ones.", WEAKER),
    holds="order",
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
    from keyhole.kernels.nearest_donors import rank_partners

    generator = np.random.default_rng(seed)
    by_column = {}
    for name in columns:
        codes = data.codes(name)
        # Those that are not missing by rank, equal ones in random order.
        shuffled = generator.permutation(np.flatnonzero(codes.values < len(codes.levels)))
        order = shuffled[np.argsort(codes.values[shuffled], kind="stable")]
        window = max(1, int(share * len(order)))
        partner = rank_partners(window, generator.random(len(order)))
        source = np.arange(data.records)
        source[order] = order[partner]
        data, by_column[name] = exchange(data, name, source)
    return Protected(data, "rank-swap", by_column)


def exchange(data: Microdata, name: str, source: Ints) -> tuple[Microdata, int]:
    """Give each record the cell of another in a column; return how many values are new."""
    codes = data.codes(name).values
    changed = int((codes[source] != codes).sum())
    # The text of a number that came along would tell whose it was.
    data = one_form(data, name) if changed else data
    moved = data.frame[name].gather(pl.Series(source, dtype=pl.UInt32))
    return data.replace(frame=data.frame.with_columns(moved.alias(name))), changed


def pair_across(
    wanted: Ints, cells: Ints, areas: Ints, free: Flags, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Pair each wanted record with a free one of its cell in another area, each once."""
    rows = generator.permutation(np.flatnonzero(free & np.isin(cells, cells[wanted])))
    pools: dict[int, dict[int, list[int]]] = {int(cell): {} for cell in np.unique(cells[wanted])}
    for row, cell, area in np.column_stack([rows, cells[rows], areas[rows]]).tolist():
        pools[cell].setdefault(area, []).append(row)
    taken = np.zeros(len(cells), dtype=np.bool_)
    pairs: list[tuple[int, int]] = []
    for record, draw in zip(wanted.tolist(), generator.random(len(wanted)).tolist(), strict=True):
        if taken[record]:
            continue
        pool = pools[int(cells[record])]
        for ones in pool.values():
            while ones and taken[ones[-1]]:
                ones.pop()
        others = [ones for area, ones in pool.items() if area != areas[record] and ones]
        at = draw * sum(map(len, others))
        for ones in others:
            if at < len(ones):
                pairs.append((record, ones.pop()))
                taken[list(pairs[-1])] = True
                break
            at -= len(ones)
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return one, other


def _swap_clashes(options: Options) -> list[str]:
    both = (name for name in options["area"] if name in options["match"])
    found = [f"{name!r} is an area and a match. Leave it out of one." for name in both]
    if "keys" not in options and not options.get("share"):
        found.append("keys, or a share, must be given: who is to be swapped.")
    return found


@method(
    "swap-records",
    "exchanges",
    public=("area", "match", "keys"),
    note=PublicNote("Values were exchanged between pairs of similar records.", WEAKER),
    writes=("area",),
    goes_with={"cutoff": "keys"},
    clashes=_swap_clashes,
    unfit=lambda data, given: (
        ["area must have two or more areas, to swap between. Got one instead."]
        * (not cell_numbers(data, given["area"]).any())
    ),
)
def swap_records(
    data: Microdata,
    *,
    area: Annotated[
        Names,
        Option(
            "The columns that change places, all together: region, county, tract.", kind=Columns()
        ),
    ],
    match: Annotated[
        Names,
        Option(
            "The columns on which two partners agree; the most important first.", kind=Columns()
        ),
    ],
    keys: Annotated[
        Names | None,
        Option("The key on which records at risk are found, to be swapped.", kind=Columns()),
    ] = None,
    cutoff: Annotated[
        int | None, Option("Records in cells smaller than this are at risk; by default 3.", low=2)
    ] = None,
    share: Annotated[
        float | None,
        Option(
            "The smallest share of all records to be swapped: others are drawn at random beside "
            "those at risk, so that a swap does not reveal that a record was at risk.",
            low=0,
            high=1,
        ),
    ] = None,
    relax: Annotated[
        bool | None,
        Option(
            "For records without a partner, leave out the last of `match`, then the one before."
        ),
    ] = None,
    seed: Seed = None,
) -> Protected:
    """Swap the areas of records at risk with those of like records elsewhere.

    Notes
    -----
    A record is swapped once at most, so the columns of `area` keep their distribution exactly,
    and without `relax` so does their table by `match`. After Dalenius & Reiss (1982) and the
    targeted swapping of the 2001 and 2011 British censuses.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"county": [*"AAABBB"], "sex": [*"ffmffm"],
    ...                             "age": [30, 31, 40, 30, 30, 40]}))
    >>> made = swap_records(people, area=["county"], match=["sex"], keys=["sex", "age"],
    ...                     cutoff=2, seed=1)
    >>> made.changed, sorted(made.data.frame["county"]) == [*"AAABBB"]
    (2, True)
    """
    areas = tuple(area)
    generator = np.random.default_rng(seed)
    at_risk = np.zeros(data.records, dtype=np.bool_)
    if keys is not None:
        at_risk = risk(data, keys=keys).f < (3 if cutoff is None else cutoff)
    # In the order in which they choose: those at risk first.
    wanted = generator.permutation(np.flatnonzero(at_risk))
    rest = generator.permutation(np.flatnonzero(~at_risk))
    source, free = np.arange(data.records), np.ones(data.records, dtype=np.bool_)
    places, alike = cell_numbers(data, areas), tuple(match)
    while len(wanted) or len(rest):
        for length in range(len(alike), -1 if relax else len(alike) - 1, -1):
            cells = cell_numbers(data, alike[:length])
            one, other = pair_across(wanted[free[wanted]], cells, places, free, generator)
            source[one], source[other] = other, one
            free[one] = free[other] = False
        # A swap takes two, who may both have been wanted, and some find no partner.
        more = max(0, int(np.ceil(((share or 0.0) * data.records - (~free).sum()) / 2)))
        rest = rest[free[rest]]
        wanted, rest = rest[:more], rest[more:] if more else rest[:0]
    by_column: dict[str, int] = {}
    for name in areas:
        data, by_column[name] = exchange(data, name, source)
    notes = [Note("swap.moved", records=int((~free).sum()))]
    if at_risk.any():
        stuck = int((at_risk & free).sum())
        notes.append(Note("swap.stuck", at_risk=int(at_risk.sum()), stuck=stuck))
    return Protected(data, "swap-records", by_column, tuple(notes))
