"""Geographic thresholds: small areas are merged until each has enough people.

No area with fewer than T people (or records) is released. Merging as few as possible is a hard
problem; the greedy rule here is the one offices use by hand: the smallest area that is too small
is merged with its smallest neighbour, again and again. Neighbours come from a list, from larger
areas, or from the order of the codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from keyhole.core.kinds import Text
from keyhole.core.names import plural
from keyhole.core.options import Option
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, OptionError
from keyhole.exposure.recoverable import RecordGroups, Treated, read_by_groups
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.method import AS_CODED, GoalCheck, Outcome, Protected, PublicNote, method
from keyhole.protection.methods.recoding import became, merged_labels
from keyhole.protection.options import (
    POSITIVE,
    Options,
    TomlValue,
    by_form,
    exactly_one,
    forms_of,
    given_options,
    is_list,
    is_table,
)
from keyhole.protection.writeback import put_levels


def merge_small(sizes: Floats, threshold: float, neighbours: list[list[list[int]]]) -> list[int]:
    """Return for each part the number of the group it is merged into: that of its first part.

    `neighbours` has for each part its neighbours, in lists from near to far: a farther one is
    merged with only where there is no nearer one left.
    """
    group = list(range(len(sizes)))
    members = {i: [i] for i in group}
    total = dict(enumerate(sizes.tolist()))
    while True:
        small = sorted((size, i) for i, size in total.items() if size < threshold)
        if not small:
            return group
        pairs = ((i, _smallest(members[i], group, total, neighbours)) for _, i in small)
        pair = next(((i, j) for i, j in pairs if j is not None), None)
        if pair is None:
            one = len(small) == 1
            raise OptionError(
                f"{plural(len(small), 'area')} remain{'s' * one} below the threshold, "
                f"with no neighbours left: name neighbours that connect {'it' if one else 'them'}, "
                f"or lower the threshold."
            )
        low, high = sorted(pair)
        for part in members.pop(high):
            group[part] = low
            members[low].append(part)
        total[low] += total.pop(high)


def _smallest(
    parts: list[int], group: list[int], total: dict[int, float], neighbours: list[list[list[int]]]
) -> int | None:
    """Return the smallest group beside these parts, of the nearest that there are."""
    own = group[parts[0]]
    for rung in range(max(len(neighbours[part]) for part in parts)):
        beside = {group[j] for part in parts for j in neighbours[part][rung]} - {own}
        if beside:
            return min(beside, key=lambda number: (total[number], number))
    return None


Near = list[list[list[int]]]
"""By area its neighbours, in lists from near to far."""


def columns_above(given: Any) -> list[str]:
    """Return the columns that tell the larger areas of a hierarchy, from fine to coarse."""
    listed = [given] if isinstance(given, str | Mapping) else list(given or ())
    return [one for one in listed if isinstance(one, str)]


def units_problems(data: Microdata, column: str, above: str) -> list[str]:
    """Say so where an area lies in more than one of the larger ones that a column tells."""
    areas = len(data.codes(column).levels)
    split = int((np.bincount(_pairs(data, column, above)[:, 0], minlength=areas) > 1).sum())
    return [
        f"each area of column {column!r} must lie in one value of {above!r}. {split:,} of "
        f"{plural(areas, 'area')} {'lies' if split == 1 else 'lie'} in several: give areas codes "
        f"of their own (as state and county in one), or name another column."
    ] * bool(split)


def units(data: Microdata, column: str, above: str) -> Ints:
    """Return by area the number of the larger one it lies in."""
    found = np.zeros(len(data.codes(column).levels), dtype=np.int64)
    pairs = _pairs(data, column, above)
    found[pairs[:, 0]] = pairs[:, 1]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _pairs(data: Microdata, column: str, larger: str) -> Ints:
    """Return each area with each larger one its records are in; what is missing is one too."""
    areas, above = data.codes(column), data.codes(larger)
    known = areas.values < len(areas.levels)
    there = np.unique(areas.values[known].astype(np.int64) * above.size + above.values[known])
    return np.column_stack([there // above.size, there % above.size])


def neighbours(data: Microdata, names: list[str], options: Options) -> Near:
    """Return, by area, its neighbours: in one list, or in several from near to far."""
    column, within = options["column"], options.get("within")
    unit = np.zeros(len(names), dtype=np.int64) if within is None else units(data, column, within)
    if "ordered" in options or "adjacency" in options:
        place = {name: i for i, name in enumerate(names)}
        parts = (np.flatnonzero(unit == number).tolist() for number in np.unique(unit))
        pairs = [pair for part in parts for pair in pairwise(part)]
        if "adjacency" in options:
            named = ((a, b) for a, others in options["adjacency"].items() for b in others)
            pairs = [(place.get(str(a), -1), place.get(str(b), -1)) for a, b in named]
        beside: list[set[int]] = [set() for _ in names]
        for one, other in pairs:
            if min(one, other) >= 0 and one != other:
                beside[one].add(other)
                beside[other].add(one)
        near = [[sorted(ones)] for ones in beside]
    else:
        near = _siblings(data, names, options)
    return [
        [[j for j in rung if unit[j] == unit[i]] for rung in rungs] for i, rungs in enumerate(near)
    ]


def _siblings(data: Microdata, names: list[str], options: Options) -> Near:
    """Return by area those in the same larger one, of each rung, and at last all."""
    steps: Any = options.get("hierarchy", ())
    columns = columns_above(steps)
    above: list[list[Any]] = [units(data, options["column"], one).tolist() for one in columns]
    up: list[Any] = list(names)
    for step in () if columns else [steps] if isinstance(steps, Mapping) else steps:
        by_text = by_form(step)
        up = [None if larger is None else by_text.get(str(larger)) for larger in up]
        above.append(up)
    rungs = []
    for rung in [*above, ["everything"] * len(names)]:
        together: dict[Any, list[int]] = {}
        for place, larger in enumerate(rung):
            together.setdefault(larger, []).append(place)
        rungs.append([together[larger] for larger in rung])
    return [list(near) for near in zip(*rungs, strict=True)]


NEIGHBOURS = ("adjacency", "hierarchy", "ordered", "areas")
Hierarchy = str | Sequence[str] | Mapping[Any, Any] | Sequence[Mapping[Any, Any]]

# Of more areas than this, a merged one is called by the first and the number of the others.
MOST_NAMED = 3


_PEOPLE = TomlValue(
    "a column of weights, or a table of people by area",
    lambda value: isinstance(value, str | Mapping) and value,
    lambda value: [value] if isinstance(value, str) else (),
)
_NEIGHBOURS = TomlValue(
    "a table that lists for each area its neighbours",
    lambda value: is_table(value) and all(map(is_list, value.values())),
)


def _is_hierarchy(value: Any) -> bool:
    listed = list(value) if is_list(value) else [value]
    columns = all(isinstance(one, str) and one for one in listed)
    return bool(listed) and (columns or all(map(is_table, listed)))


def _clashes(options: Options) -> list[str]:
    # Within larger areas all are neighbours, unless told otherwise.
    alone = "within" in options and not any(name in options for name in NEIGHBOURS)
    found = [] if alone else exactly_one(options, *NEIGHBOURS)
    if options.get("ordered") is False:
        found.append("ordered must be true, or left out.")
    return found


def _unfit(data: Microdata, options: Options) -> list[str]:
    people = options.get("population")
    if isinstance(people, str):
        data.weights(people)  # says what is wrong with them
    name = options["column"]
    names = _names(data, name)
    found = [
        f"{option} must name every area. It misses {missed:,} of {len(names):,}: add "
        f"{'it' if missed == 1 else 'them'}."
        for option, areas in _named(options).items()
        if areas and (missed := len(set(names) - forms_of(areas)))
    ]
    above = columns_above(options.get("hierarchy"))
    above += [options["within"]] if "within" in options else []
    found += [problem for one in above for problem in units_problems(data, name, one)]
    return found if found or "areas" in options else _too_few(data, options)


def _too_few(data: Microdata, options: Options) -> list[str]:
    """Say so where the whole file, or a part that areas merge within, is below the threshold."""
    people, least = _people(data, options), options["threshold"]
    total = float(people.sum())
    if total < least:
        most = plural(int(total), "person", "people")
        return [
            f"threshold must be at most the {most} of the whole file, else no area reaches it. Got "
            f"{least:,} instead."
        ]
    if "within" not in options:
        return []
    by_unit = np.bincount(units(data, options["column"], options["within"]), weights=people)
    small = int((by_unit < least).sum())
    return [
        f"threshold must be reached within each part of {options['within']!r}. {small:,} of "
        f"{len(by_unit):,} {'is' if small == 1 else 'are'} below it: give a lower threshold, or "
        f"merge within something larger."
    ] * bool(small)


def _named(options: Options) -> dict[str, list[Any]]:
    """Return the areas that each table of the options names."""
    near, steps = options.get("adjacency", {}), options.get("hierarchy", {})
    first = steps if isinstance(steps, Mapping | str) else steps[0]
    people = options.get("population")
    return {
        "population": list(people) if isinstance(people, Mapping) else [],
        "adjacency": [*near, *(one for ones in near.values() for one in ones)],
        "hierarchy": list(first) if isinstance(first, Mapping) else [],
        "areas": list(options.get("areas", {})),
    }


def _goal(outcome: Outcome) -> GoalCheck:
    """Warn of areas of the released file that are below the threshold, alone or crossed."""
    options, before, final = outcome.options, outcome.before, outcome.released
    name, least, given = options["column"], options["threshold"], options.get("population")
    if name not in final.names:
        return [], []
    area = _released_codes(final, name)
    if isinstance(given, Mapping):
        by_text, total = by_form(given), dict[str, float]()
        for old, new in outcome.step.fitted["areas"].items():
            total[str(new)] = total.get(str(new), 0.0) + float(by_text.get(old, 0.0))
        # An area that was recoded since has no figure, and is not judged.
        levels = final.codes(name).levels.to_list()
        by_area = np.array([total.get(str(level), 0.0) for level in levels])
    else:
        people = np.ones(final.records)
        if given is not None:
            there = given in final.names
            people = final.weights(given) if there else before.weights(given)[outcome.rows]
        by_area = np.bincount(area[area >= 0], weights=people[area >= 0]).astype(np.float64)
    found = []
    small = int((by_area[by_area > 0] < least).sum())
    if small:
        found.append(
            f"{plural(small, 'area')} of the released file {'is' if small == 1 else 'are'} "
            f"below the threshold of {least:,}: merge again, on the records that are released"
        )
    others = () if isinstance(given, Mapping) else final.names
    found += [
        f"{other!r}, which is released, splits {plural(count, 'area')} into parts below the "
        f"threshold: merge within it (within), or drop it"
        for other in others
        if other != name and (count := _split(outcome, other, area, people, by_area < least))
    ]
    return [], found


def _split(outcome: Outcome, other: str, area: Ints, people: Floats, small: Flags) -> int:
    """Count the areas that another column of places splits into parts that are too small."""
    before, name = outcome.before, outcome.options["column"]
    try:
        place = _released_codes(outcome.released, other)
    except ColumnError:
        return 0
    old = before.codes(name).values.astype(np.int64)[outcome.rows]
    known = place >= 0
    # It is a column of places if the areas as they were determine it.
    one = Treated(other, "drops", place, np.full(len(place), -1), known)
    if (
        len(np.unique(place[known])) < 2
        or read_by_groups(one, RecordGroups.of(old), wholly=True) is None
    ):
        return 0
    both = (area >= 0) & known & ~small[np.maximum(area, 0)]
    size = int(place.max()) + 1
    cells, parts = np.unique(area[both] * size + place[both], return_inverse=True)
    counts = np.bincount(parts, weights=people[both])
    return len(np.unique(cells[counts < outcome.options["threshold"]] // size))


def _released_codes(data: Microdata, name: str) -> Ints:
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    return np.where(values == len(codes.levels), -1, values)


@method(
    "geographic-threshold",
    "codes",
    note=PublicNote("Small areas were merged in {columns}.", AS_CODED),
    clashes=_clashes,
    unfit=_unfit,
    sizes=lambda given: (  # where records are counted
        {} if {"population", "areas"} & set(given) else {"threshold": given.get("threshold")}
    ),
    makes_labels=lambda _: True,
    supersedes={"areas": ("adjacency", "hierarchy", "ordered", "within")},
    not_typed=("areas",),
    goal=_goal,
)
def merge_areas(
    data: Microdata,
    *,
    column: Annotated[str, Option("The column of areas.", column="column")],
    threshold: Annotated[float, Option("The fewest people that an area may have.", kind=POSITIVE)],
    population: Annotated[
        str | Mapping[Any, float] | None,
        Option(
            "A column of weights, or a table of people by area; by default records are counted.",
            kind=_PEOPLE,
        ),
    ] = None,
    adjacency: Annotated[
        Mapping[Any, Iterable[Any]] | None,
        Option(
            "For each area its neighbours; either side may name the other.",
            kind=_NEIGHBOURS,
        ),
    ] = None,
    hierarchy: Annotated[
        Hierarchy | None,
        Option(
            "The column of the larger area that each area lies in, a table that gives it for each "
            "area, or a list of such columns or tables from fine to coarse: an area is merged "
            "within the smallest larger one that has others.",
            kind=TomlValue(
                "a column of larger areas, a table from areas to larger ones, or a list of such",
                _is_hierarchy,
                columns_above,
            ),
        ),
    ] = None,
    ordered: Annotated[bool | None, Option("Areas with neighbouring codes are neighbours.")] = None,
    within: Annotated[
        str | None,
        Option(
            "A column of larger areas, as the state, over whose borders areas are never merged. "
            "All areas in one are neighbours, unless another option says which are.",
            column="column",
        ),
    ] = None,
    areas: Annotated[
        Mapping[Any, str] | None,
        Option(
            "What each area became before, to repeat the same merging on other data.",
            kind=TomlValue("a table", is_table),
        ),
    ] = None,
    separator: Annotated[
        str | None,
        Option(
            "The separator between the codes of merged areas; by default `+`. More than three are "
            "named by the first and the number of the others: `A+12 more`.",
            kind=Text(),
        ),
    ] = None,
) -> Protected:
    """Merge areas until each has at least so many people.

    Notes
    -----
    Greedy: of the areas below the threshold the smallest is merged with the smallest of its
    neighbours, until none is below. Ties go to the first code. The result need not be the
    largest possible number of areas.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"county": [*"AABCCC"]}))
    >>> made = merge_areas(people, column="county", threshold=3, ordered=True)
    >>> made.data.frame["county"].to_list()
    ['A+B', 'A+B', 'A+B', 'C', 'C', 'C']
    """
    options = given_options(locals())
    names = _names(data, column)
    people = _people(data, options)
    if areas is not None:
        by_text = by_form(areas)
        new = [str(by_text[name]) for name in names]
    else:
        group = merge_small(people, threshold, neighbours(data, names, options))
        new = _joined(names, group, separator or "+")
    levels = data.codes(column).levels.to_list()
    values = [
        old if text == name else text for old, name, text in zip(levels, names, new, strict=True)
    ]
    known = data.variable(column).value_labels
    labels = merged_labels(known, levels, values, most=MOST_NAMED)
    out, changed = put_levels(data, column, values, value_labels=labels)
    fewest = np.bincount(np.unique(new, return_inverse=True)[1], weights=people).min()
    notes = (
        became(len(names), len(set(new)), "area", "areas"),
        f"the smallest has {fewest:,.0f}, {threshold:,} asked",
    )
    fitted = {"areas": dict(zip(names, new, strict=True))}
    return Protected(out, "geographic-threshold", {column: changed}, notes, fitted=fitted)


def _names(data: Microdata, column: str) -> list[str]:
    return [str(level) for level in data.codes(column).levels.to_list()]


def _people(data: Microdata, options: Options) -> Floats:
    given, codes = options.get("population"), data.codes(options["column"])
    if isinstance(given, Mapping):
        by_text = by_form(given)
        return np.array([float(by_text[name]) for name in _names(data, options["column"])])
    weights = None if given is None else data.weights(given)
    counts = np.bincount(codes.values, weights=weights, minlength=codes.size)
    return counts[: len(codes.levels)].astype(np.float64)


def _joined(names: list[str], group: list[int], separator: str) -> list[str]:
    """Name merged areas by their parts, or by the first of many; no two names are the same."""
    members: dict[int, list[str]] = {}
    for name, number in zip(names, group, strict=True):
        members.setdefault(number, []).append(name)
    taken, called = set(names), dict[int, str]()
    for number, parts in members.items():
        many = len(parts) > MOST_NAMED
        name = separator.join([parts[0], f"{len(parts) - 1} more"] if many else parts)
        while len(parts) > 1 and name in taken:
            name += "'"
        taken.add(name)
        called[number] = name
    return [called[number] for number in group]
