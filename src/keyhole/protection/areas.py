"""A geographic threshold: small areas are merged until each has enough people.

No area with fewer than T people (or records) is told. Merging as few as possible is a hard
problem; the greedy rule here is the one offices use by hand: the smallest area that is too small
is merged with its smallest neighbour, again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.protection.forms import by_form, forms_of
from keyhole.protection.merging import merge
from keyhole.protection.options import (
    Method,
    Options,
    exactly_one,
    is_flag,
    is_name,
    is_positive,
    is_table,
    is_text,
)
from keyhole.protection.protected import Protected
from keyhole.protection.recoding import merged_labels
from keyhole.protection.writeback import put_levels

__all__ = ["GEOGRAPHIC_THRESHOLD", "merge_areas"]

NEIGHBOURS = ("adjacency", "hierarchy", "ordered", "areas")


def _is_population(value: Any) -> str | None:
    fit = not is_name(value) or not is_table(value)
    return None if fit else "a column of weights, or a table of people by area"


def _is_adjacency(value: Any) -> str | None:
    fit = isinstance(value, Mapping) and all(
        isinstance(ones, Sequence) and not isinstance(ones, str) for ones in value.values()
    )
    return None if fit and value else "a table that lists for each area its neighbours"


def _is_hierarchy(value: Any) -> str | None:
    ladder = isinstance(value, Sequence) and not isinstance(value, str) and value
    fit = all(isinstance(one, Mapping) and one for one in (value if ladder else [value]))
    return None if fit else "a table from areas to larger ones, or a list of such"


def _clashes(options: Options) -> list[str]:
    found = exactly_one(options, *NEIGHBOURS)
    if options.get("ordered") is False:
        found.append("ordered must be true, or left out.")
    return found


def _unfit(data: Microdata, options: Options) -> list[str]:
    people = options.get("population")
    if isinstance(people, str):
        data.weights(people)  # says what is wrong with them
    names = _names(data, options["column"])
    found = [problem for table in _tables(options) for problem in _missed(*table, names)]
    if found or "areas" in options:
        return found
    total, least = float(_people(data, options).sum()), options["threshold"]
    if total < least:
        return [
            f"threshold must be at most the {total:,.0f} of the whole file, else no area reaches "
            f"it. Got {least:,} instead."
        ]
    return []


def _tables(options: Options) -> list[tuple[str, list[Any]]]:
    """Return the areas that each table of the options names."""
    near = options.get("adjacency", {})
    steps = options.get("hierarchy", {})
    first = steps if isinstance(steps, Mapping) else steps[0]
    people = options.get("population")
    named = {
        "population": list(people) if isinstance(people, Mapping) else [],
        "adjacency": [*near, *(one for ones in near.values() for one in ones)],
        "hierarchy": list(first),
        "areas": list(options.get("areas", {})),
    }
    return [(option, areas) for option, areas in named.items() if areas]


def _missed(option: str, areas: list[Any], names: list[str]) -> list[str]:
    known = forms_of(areas)
    missed = sum(name not in known for name in names)
    if not missed:
        return []
    return [f"{option} must name every area. It misses {missed:,} of {len(names):,}: add them."]


GEOGRAPHIC_THRESHOLD = Method(
    "geographic-threshold",
    {
        "column": is_name,
        "threshold": is_positive,
        "population": _is_population,
        "adjacency": _is_adjacency,
        "hierarchy": _is_hierarchy,
        "ordered": is_flag,
        "areas": is_table,
        "separator": is_text,
    },
    ("column", "threshold"),
    reads=("population",),
    clashes=_clashes,
    unfit=_unfit,
    makes_labels=lambda _: True,
    supersedes={"areas": ("adjacency", "hierarchy", "ordered")},
)


def merge_areas(
    data: Microdata,
    *,
    column: str,
    threshold: float,
    population: str | Mapping[Any, float] | None = None,
    adjacency: Mapping[Any, Iterable[Any]] | None = None,
    hierarchy: Mapping[Any, Any] | Sequence[Mapping[Any, Any]] | None = None,
    ordered: bool | None = None,
    areas: Mapping[Any, str] | None = None,
    separator: str | None = None,
) -> Protected:
    """Merge areas until each has at least so many people.

    Parameters
    ----------
    data
        The file.
    column
        The column of areas.
    threshold
        The fewest people that an area may have.
    population
        A column of weights, or a table of people by area; records are counted if left out.
    adjacency
        For each area its neighbours; either side may name the other.
    hierarchy
        For each area the larger one it is in, or a list of such tables from fine to coarse: an
        area is merged within the smallest larger one that has others.
    ordered
        Instead, that areas with neighbouring codes are neighbours.
    areas
        What each area became before, to repeat the same merging on other data.
    separator
        What stands between the codes of merged areas; ``+``.

    Notes
    -----
    Greedy: of the areas below the threshold the smallest is merged with the smallest of its
    neighbours, until none is below. Ties go to the first code. The result need not be the
    largest possible number of areas.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"county": [*"AABCCC"]}))
    >>> made = merge_areas(people, column="county", threshold=3, ordered=True)
    >>> made.data.frame["county"].to_list()
    ['A+B', 'A+B', 'A+B', 'C', 'C', 'C']
    """
    given = {
        "column": column, "threshold": threshold, "population": population,
        "adjacency": adjacency, "hierarchy": hierarchy, "ordered": ordered, "areas": areas,
        "separator": separator,
    }  # fmt: skip
    GEOGRAPHIC_THRESHOLD.require(data, given)
    options = {name: value for name, value in given.items() if value is not None}
    names = _names(data, column)
    people = _people(data, options)
    if areas is not None:
        by_text = by_form(areas)
        new = [str(by_text[name]) for name in names]
    else:
        group = merge(people, threshold, _neighbours(names, options))
        new = _joined(names, group, separator or "+")
    return _protected(data, column, names, new, people, threshold)


def _protected(
    data: Microdata,
    column: str,
    names: list[str],
    new: list[str],
    people: np.ndarray[Any, np.dtype[np.float64]],
    threshold: float,
) -> Protected:
    levels = data.codes(column).levels.to_list()
    values = [
        old if text == name else text for old, name, text in zip(levels, names, new, strict=True)
    ]
    labels = merged_labels(data.variable(column).value_labels, levels, values)
    out, changed = put_levels(data, column, values, value_labels=labels)
    by_area = pl.DataFrame({"area": new, "people": people}).group_by("area").sum()
    fewest = float(by_area["people"].to_numpy().min())
    notes = (
        f"{len(names):,} areas became {len(set(new)):,}",
        f"the smallest has {fewest:,.0f}, {threshold:,} asked",
    )
    fitted = {"areas": dict(zip(names, new, strict=True))}
    return Protected(out, "geographic-threshold", {column: changed}, notes, fitted=fitted)


def _names(data: Microdata, column: str) -> list[str]:
    """Return the areas of the file as text, in the order of their codes."""
    return [str(level) for level in data.codes(column).levels.to_list()]


def _people(data: Microdata, options: Options) -> np.ndarray[Any, np.dtype[np.float64]]:
    given, codes = options.get("population"), data.codes(options["column"])
    if isinstance(given, Mapping):
        by_text = by_form(given)
        return np.array([float(by_text[name]) for name in _names(data, options["column"])])
    weights = None if given is None else data.weights(given)
    counts = np.bincount(codes.values, weights=weights, minlength=codes.size)
    return counts[: len(codes.levels)].astype(np.float64)


def _neighbours(names: list[str], options: Options) -> list[list[list[int]]]:
    """Return, by area, its neighbours: in one list, or in several from near to far."""
    place = {name: i for i, name in enumerate(names)}
    if "ordered" in options:
        return [[[j for j in (i - 1, i + 1) if 0 <= j < len(names)]] for i in range(len(names))]
    if "adjacency" in options:
        return _adjacent(place, options["adjacency"])
    steps = options["hierarchy"]
    return _siblings(names, [steps] if isinstance(steps, Mapping) else list(steps))


def _adjacent(place: dict[str, int], table: Mapping[Any, Iterable[Any]]) -> list[list[list[int]]]:
    near: list[set[int]] = [set() for _ in place]
    for one, others in table.items():
        for other in others:
            ends = [place.get(str(one)), place.get(str(other))]
            if None not in ends and ends[0] != ends[1]:
                near[ends[0]].add(ends[1])  # type: ignore[index,arg-type]
                near[ends[1]].add(ends[0])  # type: ignore[index,arg-type]
    return [[sorted(ones)] for ones in near]


def _siblings(names: list[str], steps: list[Mapping[Any, Any]]) -> list[list[list[int]]]:
    above: list[list[Any]] = [list(names)]
    for step in steps:
        by_text = by_form(step)
        above.append([None if up is None else by_text.get(str(up)) for up in above[-1]])
    above.append(["everything"] * len(names))
    rungs = []
    for rung in above[1:]:
        together: dict[Any, list[int]] = {}
        for place, larger in enumerate(rung):
            together.setdefault(larger, []).append(place)
        rungs.append([together[larger] for larger in rung])
    return [list(near) for near in zip(*rungs, strict=True)]


def _joined(names: list[str], group: list[int], separator: str) -> list[str]:
    members: dict[int, list[str]] = {}
    for name, number in zip(names, group, strict=True):
        members.setdefault(number, []).append(name)
    return [separator.join(members[number]) for number in group]
