"""Leaving out: columns that are dropped, and records that are not sampled.

After sampling an intruder no longer knows who is in the file.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from keyhole.core.kinds import Columns
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.protection.method import Protected, PublicNote, method
from keyhole.protection.options import Options, Seed
from keyhole.protection.writeback import cell_numbers, put_numbers
from keyhole.utility.implicates import numbers


def _drop_unfit(data: Microdata, options: Options) -> list[str]:
    if set(drop.columns(options)) < set(data.names):
        return []
    return ["columns must leave at least one column in the file. Got all of them instead."]


@method(
    "drop",
    "drops",
    note=PublicNote("Left out: {columns}."),
    unfit=_drop_unfit,
    suggest=lambda _, fix: {"columns": [fix.variable]} if fix.action == "drop" else None,
)
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


def _unfit(data: Microdata, options: Options) -> list[str]:
    size = _size(data, options)
    if 1 <= size < data.records:
        return []
    return [
        f"the sample must have at least 1 and fewer than the {data.records:,} records. It would "
        f"have {size:,}: give another fraction or size."
    ]


@method(
    "sample",
    "samples",
    public=("fraction", "size", "by", "weight"),
    note=PublicNote(
        "Only a random part of the records is in the file.",
        "Knowing that somebody was surveyed does not show whether they are in the file.",
    ),
    writes=("weight",),
    one_of=("fraction", "size"),
    unfit=_unfit,
)
def sample(
    data: Microdata,
    *,
    fraction: Annotated[
        float | None, Option("The share of the records to keep.", above=0, below=1)
    ] = None,
    size: Annotated[
        int | None, Option("The number of records to keep, instead of a share.", low=1)
    ] = None,
    by: Annotated[
        Names | None,
        Option(
            "Columns whose combinations are strata: each is sampled by itself, in proportion.",
            kind=Columns(),
        ),
    ] = None,
    weight: Annotated[
        str | None,
        Option(
            "A column of weights, to be divided by the fraction sampled (of the stratum).",
            column="weight",
        ),
    ] = None,
    seed: Seed = None,
) -> Protected:
    """Keep a random sample of the records, in their order.

    Notes
    -----
    Without replacement. The sizes of strata are n times the fraction, rounded so that they add
    to the size of the sample (largest remainders; equal ones at random). Without `weight` the
    weights in the file are what they were, and no longer add to the population.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"sex": [*"ffffmm"] * 10}))
    >>> sample(people, fraction=0.5, by=["sex"], seed=1).data.frame["sex"].to_list().count("m")
    10
    """
    generator = np.random.default_rng(seed)
    cells = cell_numbers(data, tuple(by or ()))
    counts = np.bincount(cells)
    sizes = _sizes(counts, _size(data, {"fraction": fraction, "size": size}), generator)
    order = np.lexsort([generator.random(len(cells)), cells])
    starts = np.cumsum(counts) - counts
    place = np.arange(len(cells)) - starts[cells[order]]
    rows = np.sort(order[place < sizes[cells[order]]])
    out, by_column = data.filter(np.isin(np.arange(data.records), rows)), {}
    if weight is not None:
        grown = numbers(out, weight) * (counts[cells[rows]] / sizes[cells[rows]])
        out, by_column[weight] = put_numbers(out, weight, grown, precise=True)
    notes: list[str] = [Note("sample.kept", records=int(sizes.sum()))]
    if by and not sizes.all():
        notes.append(f"{(sizes == 0).sum():,} of {len(sizes):,} strata have no record left")
    gone = data.records - out.records
    return Protected(out, "sample", by_column, tuple(notes), left_out=gone, kept=rows)


def _size(data: Microdata, options: Options) -> int:
    size = options.get("size")
    return int(np.rint(options["fraction"] * data.records)) if size is None else int(size)


def _sizes(counts: Ints, size: int, generator: np.random.Generator) -> Ints:
    """Share a size among strata in proportion, by largest remainders."""
    exact = counts * (size / counts.sum())
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    order = np.lexsort([generator.random(len(counts)), sizes - exact])
    sizes[order[: size - sizes.sum()]] += 1
    return np.asarray(sizes)
