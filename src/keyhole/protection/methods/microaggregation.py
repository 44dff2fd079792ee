"""Microaggregation: groups of at least k near records share their mean (MDAV)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np

from keyhole.core.kinds import Columns
from keyhole.core.names import plural, were
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.core.shared import Names
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.method import WEAKER, Protected, PublicNote, method
from keyhole.protection.options import Options
from keyhole.protection.writeback import cell_numbers, infinite_notes, put_numbers
from keyhole.utility.implicates import numbers

Replace = Literal["mean", "median"]

OUTSIDE = -1
# If one record has more than this of a sum, its mean tells nearly its value.
DOMINANT = 0.8


def _sets(options: Options) -> list[tuple[str, ...]]:
    """Return the columns that are grouped together."""
    names = tuple(options["columns"])
    return [(name,) for name in names] if options.get("separately") else [names]


def _clashes(options: Options) -> list[str]:
    return [
        f"{name!r} is named in by and in columns. Leave it out of one."
        for name in options.get("by", ())
        if name in options["columns"]
    ]


def _unfit(data: Microdata, options: Options) -> list[str]:
    found, k = [], options["k"]
    for columns in _sets(options):
        counts = np.bincount(_strata(data, columns, options.get("by"))[1] + 1)[1:]
        small = int(((counts > 0) & (counts < k)).sum())
        few = f"The file has fewer than {k:,} without missing values: give a smaller k."
        if options.get("by"):
            have = f"{small:,} strata have" if small > 1 else "1 stratum has"
            few = f"{have} fewer than {k:,}: give a smaller k, or larger strata."
        if not counts.sum():
            found.append(f"no record has values in all of {', '.join(map(repr, columns))}.")
        elif small:
            found.append(f"k must be at most the number of records to be grouped. {few}")
    return found


def _strata(
    data: Microdata, columns: Sequence[str], by: Iterable[str] | None
) -> tuple[Floats, Ints]:
    """Return the values, and the stratum of each record that has them all (else -1)."""
    values = np.column_stack([numbers(data, name) for name in columns])
    cells = cell_numbers(data, tuple(by or ()))
    return values, np.where(np.isfinite(values).all(axis=1), cells, OUTSIDE)


@method(
    "microaggregate",
    "perturbs",
    note=PublicNote("Numbers were replaced by means of similar records.", WEAKER),
    clashes=_clashes,
    unfit=_unfit,
    sizes=lambda options: {"k": options.get("k")},
    holds="numbers",
    suggested={"k": 3},
)
def microaggregate(
    data: Microdata,
    *,
    columns: Annotated[Names, Option("Columns of numbers, grouped together.", kind=Columns())],
    k: Annotated[int, Option("The smallest size of a group.", low=2)],
    by: Annotated[
        Names | None,
        Option("Columns whose combinations are strata: groups do not cross them.", kind=Columns()),
    ] = None,
    separately: Annotated[
        bool | None, Option("Group each column by itself; this loses less, and protects less.")
    ] = None,
    replace: Annotated[
        Replace | None,
        Option(
            "Replace by the group's `mean` (default), which keeps the column's mean, or by its "
            "`median`. Where one record has more than 80% of a group's sum the mean would reveal "
            "its value, and the median is used."
        ),
    ] = None,
    standardise: Annotated[
        bool | None,
        Option(
            "Whether a standard deviation counts the same in every column (default); otherwise a "
            "unit does."
        ),
    ] = None,
    whole: Annotated[
        bool | None,
        Option(
            "Round the new values to the column's precision, as for ages; means are nearly kept."
        ),
    ] = None,
) -> Protected:
    """Give near records the same values, in groups of at least k.

    Notes
    -----
    MDAV, maximum distance to average vector (Domingo-Ferrer & Torra 2005); see
    `keyhole.kernels.mdav`. Records that miss one of the columns are left as they are: the note
    says how many.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"income": [10.0, 90.0, 12.0, 80.0, 14.0]}))
    >>> microaggregate(people, columns=["income"], k=2).data.frame["income"].to_list()
    [12.0, 85.0, 12.0, 85.0, 12.0]
    """
    by_column, groups, left, ruled = {}, 0, 0, 0
    for together in _sets({"columns": columns, "separately": separately}):
        values, strata = _strata(data, together, by)
        group = _grouped(values, strata, k, standardise is not False)
        new, dominated = _middles(values, group, replace == "median")
        ruled += dominated
        for place, name in enumerate(together):
            data, by_column[name] = put_numbers(data, name, new[:, place], precise=not whole)
        groups += int(group.max()) + 1
        left = max(left, int((group < 0).sum()))
    notes = [f"{plural(groups, 'group')} of {k} or more"]
    if left:
        notes.append(Note("microaggregate.left", changed=left))
    if ruled:
        notes.append(
            f"{plural(ruled, 'mean')} {were(ruled)} replaced by medians: one record had more than "
            f"{DOMINANT:.0%} of the sum"
        )
    return Protected(data, "microaggregate", by_column, (*notes, *infinite_notes(data, columns)))


def _grouped(values: Floats, strata: Ints, k: int, standardise: bool) -> Ints:
    from keyhole.kernels.mdav import mdav

    group = np.full(len(values), OUTSIDE, dtype=np.int64)
    order = np.argsort(strata, kind="stable")
    starts = np.searchsorted(strata[order], np.arange(strata.max() + 2))
    number = 0
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if a < b:
            rows = order[a:b]
            points = values[rows]
            if standardise:
                largest = np.abs(points).max(axis=0, initial=0)
                points = points / np.where(largest > 1e100, largest, 1)  # else squares are none
                spread = points.std(axis=0)
                points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1)
            group[rows] = number + mdav(np.ascontiguousarray(points), k)
            number = int(group[rows].max()) + 1
    return group


def _middles(values: Floats, group: Ints, median: bool) -> tuple[Floats, int]:
    """Return the mean (or median) of each record's group, and how many means were dominated."""
    new = values.copy()
    rows = np.flatnonzero(group >= 0)
    rows = rows[np.argsort(group[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(group[rows], prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused later
        found = np.add.reduceat(values[rows], starts, axis=0) / sizes[:, None]
    # Where one record has most of the sum, the median stands for the mean.
    size = np.abs(values[rows]) / max(np.abs(values[rows]).max(initial=0), 1.0)
    largest, total = (add.reduceat(size, starts, axis=0) for add in (np.maximum, np.add))
    apart = np.ones_like(found, dtype=np.bool_) if median else largest > DOMINANT * total
    for number in np.flatnonzero(apart.any(axis=1)).tolist():
        part = values[rows[starts[number] : starts[number] + sizes[number]]]
        found[number] = np.where(apart[number], np.median(part, axis=0), found[number])
    new[rows] = np.repeat(found, sizes, axis=0)
    return new, 0 if median else int(apart.sum())
