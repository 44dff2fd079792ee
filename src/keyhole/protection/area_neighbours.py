"""Which areas lie beside which: by a list of neighbours, by larger areas, or by their codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from keyhole.core.names import plural
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.protection.forms import by_form
from keyhole.protection.options import Options

__all__ = ["columns_above", "neighbours", "units", "units_problems"]

Near = list[list[list[int]]]
"""By area its neighbours, in lists from near to far."""


def columns_above(options: Options) -> list[str]:
    """Return the columns that tell the larger areas, from fine to coarse."""
    given = options.get("hierarchy")
    listed = [given] if isinstance(given, str | Mapping) else list(given or ())
    return [one for one in listed if isinstance(one, str)]


def units_problems(data: Microdata, column: str, above: str) -> list[str]:
    """Say so where an area lies in more than one of the larger ones that a column tells."""
    pairs = _pairs(data.codes(column), data.codes(above))
    areas = len(data.codes(column).levels)
    split = int((np.bincount(pairs[:, 0], minlength=areas) > 1).sum())
    if not split:
        return []
    lies = "lies in several" if split == 1 else "lie in several"
    return [
        f"each area of column {column!r} must lie in one value of {above!r}. {split:,} of "
        f"{plural(areas, 'area')} {lies}: give areas codes of their own (as state and county in "
        f"one), or name another column."
    ]


def units(data: Microdata, column: str, above: str) -> Ints:
    """Return by area the number of the larger one it lies in."""
    found = np.zeros(len(data.codes(column).levels), dtype=np.int64)
    pairs = _pairs(data.codes(column), data.codes(above))
    found[pairs[:, 0]] = pairs[:, 1]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _pairs(areas: Codes, above: Codes) -> Ints:
    """Return each area with each larger one its records are in; what is missing is one too."""
    known = areas.values < len(areas.levels)
    both = areas.values[known].astype(np.int64) * above.size + above.values[known]
    there = np.unique(both)
    return np.column_stack([there // above.size, there % above.size])


def neighbours(data: Microdata, names: list[str], options: Options) -> Near:
    """Return, by area, its neighbours: in one list, or in several from near to far."""
    column, within = options["column"], options.get("within")
    unit = np.zeros(len(names), dtype=np.int64) if within is None else units(data, column, within)
    if "ordered" in options:
        return _next_to(unit)
    if "adjacency" in options:
        near = _adjacent({name: i for i, name in enumerate(names)}, options["adjacency"])
    else:
        near = _siblings(_above(data, names, options))
    return [
        [[j for j in rung if unit[j] == unit[i]] for rung in rungs] for i, rungs in enumerate(near)
    ]


def _next_to(unit: Ints) -> Near:
    """Return the areas before and after each in the order of their codes, in the same unit."""
    near: Near = [[[]] for _ in unit]
    for number in np.unique(unit).tolist():
        for one, other in pairwise(np.flatnonzero(unit == number).tolist()):
            near[one][0].append(other)
            near[other][0].append(one)
    return near


def _above(data: Microdata, names: list[str], options: Options) -> list[list[Any]]:
    """Return the larger areas of each rung, and everything at the end."""
    steps, rungs = options.get("hierarchy", ()), []
    columns = columns_above(options)
    if columns:
        rungs = [units(data, options["column"], one).tolist() for one in columns]
    elif steps:
        rungs = _climbed(names, [steps] if isinstance(steps, Mapping) else list(steps))
    return [*rungs, ["everything"] * len(names)]


def _adjacent(place: dict[str, int], table: Mapping[Any, Iterable[Any]]) -> Near:
    near: list[set[int]] = [set() for _ in place]
    for one, others in table.items():
        for other in others:
            ends = [place.get(str(one)), place.get(str(other))]
            if None not in ends and ends[0] != ends[1]:
                near[ends[0]].add(ends[1])  # type: ignore[index,arg-type]
                near[ends[1]].add(ends[0])  # type: ignore[index,arg-type]
    return [[sorted(ones)] for ones in near]


def _climbed(names: list[str], steps: list[Mapping[Any, Any]]) -> list[list[Any]]:
    """Return the larger areas of each rung of a ladder of tables."""
    above: list[list[Any]] = [list(names)]
    for step in steps:
        by_text = by_form(step)
        above.append([None if up is None else by_text.get(str(up)) for up in above[-1]])
    return above[1:]


def _siblings(above: list[list[Any]]) -> Near:
    rungs = []
    for rung in above:
        together: dict[Any, list[int]] = {}
        for place, larger in enumerate(rung):
            together.setdefault(larger, []).append(place)
        rungs.append([together[larger] for larger in rung])
    return [list(near) for near in zip(*rungs, strict=True)]
