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
import polars as pl

from keyhole.core.kinds import Text
from keyhole.core.names import plural
from keyhole.core.options import Option
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, OptionError
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
)
from keyhole.protection.recoverable import RecordGroups, Treated, read_by_groups
from keyhole.protection.writeback import put_levels


def merge_small(sizes: Floats, threshold: float, neighbours: list[list[list[int]]]) -> list[int]:
    """Return for each part the number of the group it is merged into: that of its first part.

    `neighbours` has for each part its neighbours, in lists from near to far: a farther one is
    merged with only where there is no nearer one left.

    Examples
    --------
    >>> merge_small(np.array([2.0, 1.0, 3.0]), 3, [[[1]], [[0, 2]], [[1]]])
    [0, 0, 2]
    """
    group = list(range(len(sizes)))
    members = {i: [i] for i in group}
    total = dict(enumerate(sizes.tolist()))
    while True:
        small = sorted((size, i) for i, size in total.items() if size < threshold)
        if not small:
            return group
        pair = next(
            (
                (i, j)
                for _, i in small
                if (j := _smallest(members[i], group, total, neighbours)) is not None
            ),
            None,
        )
        if pair is None:
            one = len(small) == 1
            raise OptionError(
                f"{plural(len(small), 'area')} {'stays' if one else 'stay'} below the threshold, "
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
    columns = columns_above(options.get("hierarchy"))
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


NEIGHBOURS = ("adjacency", "hierarchy", "ordered", "areas")
Hierarchy = str | Sequence[str] | Mapping[Any, Any] | Sequence[Mapping[Any, Any]]

# Of more areas than this, a merged one is called by the first and the number of the others.
MOST_NAMED = 3


def _is_population(value: Any) -> str | None:
    fit = isinstance(value, str | Mapping) and value
    return None if fit else "a column of weights, or a table of people by area"


def _is_areas(value: Any) -> str | None:
    return None if isinstance(value, Mapping) and value else "a table"


def _is_adjacency(value: Any) -> str | None:
    fit = isinstance(value, Mapping) and all(
        isinstance(ones, Sequence) and not isinstance(ones, str) for ones in value.values()
    )
    return None if fit and value else "a table that lists for each area its neighbours"


def _is_hierarchy(value: Any) -> str | None:
    ladder = isinstance(value, Sequence) and not isinstance(value, str)
    listed = list(value) if ladder else [value]
    tables = all(isinstance(one, Mapping) and one for one in listed)
    fit = bool(listed) and (tables or all(isinstance(one, str) and one for one in listed))
    return None if fit else (
        "a column of larger areas, a table from areas to larger ones, or a list of such"
    )  # fmt: skip


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
    found = [problem for table in _tables(options) for problem in _missed(*table, names)]
    above = columns_above(options.get("hierarchy"))
    above += [options["within"]] if "within" in options else []
    found += [problem for one in above for problem in units_problems(data, name, one)]
    if found or "areas" in options:
        return found
    return _too_few(data, options)


def _too_few(data: Microdata, options: Options) -> list[str]:
    """Say so where the whole file, or a part that areas merge within, is below the threshold."""
    people, least = _people(data, options), options["threshold"]
    total = float(people.sum())
    if total < least:
        what = "record" if options.get("population") is None else "person"
        most = plural(int(total), what, "records" if what == "record" else "people")
        return [
            f"threshold must be at most the {most} of the whole file, else no area reaches it. Got "
            f"{least:,} instead."
        ]
    if "within" not in options:
        return []
    unit = units(data, options["column"], options["within"])
    by_unit = np.bincount(unit, weights=people)
    small = int((by_unit < least).sum())
    if not small:
        return []
    return [
        f"threshold must be reached within each part of {options['within']!r}. {small:,} of "
        f"{len(by_unit):,} {'is' if small == 1 else 'are'} below it: give a lower threshold, or "
        f"merge within something larger."
    ]


def _tables(options: Options) -> list[tuple[str, list[Any]]]:
    """Return the areas that each table of the options names."""
    near = options.get("adjacency", {})
    steps = options.get("hierarchy", {})
    first = steps if isinstance(steps, Mapping | str) else steps[0]
    people = options.get("population")
    named = {
        "population": list(people) if isinstance(people, Mapping) else [],
        "adjacency": [*near, *(one for ones in near.values() for one in ones)],
        "hierarchy": list(first) if isinstance(first, Mapping) else [],
        "areas": list(options.get("areas", {})),
    }
    return [(option, areas) for option, areas in named.items() if areas]


def _missed(option: str, areas: list[Any], names: list[str]) -> list[str]:
    known = forms_of(areas)
    missed = sum(name not in known for name in names)
    if not missed:
        return []
    them = "it" if missed == 1 else "them"
    return [f"{option} must name every area. It misses {missed:,} of {len(names):,}: add {them}."]


def _goal(outcome: Outcome) -> GoalCheck:
    """Warn of areas of the released file that are below the threshold, alone or crossed."""
    options, before, final = outcome.options, outcome.before, outcome.released
    name, least, rows = options["column"], options["threshold"], outcome.rows
    if name not in final.names:
        return [], []
    area = _released_codes(final, name)
    people = _by_record(options.get("population"), before, rows, final)
    if people is None:
        areas = outcome.step.fitted["areas"]
        by_area = _by_table(options["population"], areas, final, name)
    else:
        by_area = np.bincount(area[area >= 0], weights=people[area >= 0]).astype(np.float64)
    found = []
    small = int((by_area[by_area > 0] < least).sum())
    if small:
        found.append(
            f"{plural(small, 'area')} of the file that goes out {'is' if small == 1 else 'are'} "
            f"below the threshold of {least:,}: merge anew, on the records that go out"
        )
    if people is None:
        return [], found
    small_areas = by_area < least
    crossed = {
        other: count
        for other in final.names
        if other != name
        and (count := _split(before, rows, name, final, other, people, least, small_areas))
    }
    found += [
        f"{other!r}, which stays, splits {count:,} of the areas into parts below the threshold: "
        f"merge within it (within), or drop it"
        for other, count in crossed.items()
    ]
    return [], found


def _by_record(given: Any, before: Microdata, rows: Ints, final: Microdata) -> Floats | None:
    """Return how many people each record stands for; None if a table gives them by area."""
    if isinstance(given, Mapping):
        return None
    if given is None:
        return np.ones(final.records)
    return final.weights(given) if given in final.names else before.weights(given)[rows]


def _by_table(
    people: Mapping[Any, float], areas: Mapping[str, str], final: Microdata, name: str
) -> Floats:
    by_text, total = by_form(people), dict[str, float]()
    for old, new in areas.items():
        total[str(new)] = total.get(str(new), 0.0) + float(by_text.get(old, 0.0))
    # An area that was recoded since has no figure, and is not judged.
    levels = final.codes(name).levels.to_list()
    return np.array([total.get(str(level), 0.0) for level in levels])


def _split(
    before: Microdata,
    rows: Ints,
    name: str,
    final: Microdata,
    other: str,
    people: Floats,
    least: float,
    small: Flags,
) -> int:
    """Count the areas that another column of places splits into parts that are too small."""
    try:
        place = _released_codes(final, other)
    except ColumnError:
        return 0
    old = before.codes(name).values.astype(np.int64)[rows]
    known = place >= 0
    # It is a column of places if the areas as they were determine it.
    one = Treated(other, "drop", before.column(name), place, np.full(len(place), -1), known)
    if (
        len(np.unique(place[known])) < 2
        or read_by_groups(one, RecordGroups.of(old), wholly=True) is None
    ):
        return 0
    area = _released_codes(final, name)
    both = (area >= 0) & known & ~small[np.maximum(area, 0)]
    size = int(place.max()) + 1
    cells, parts = np.unique(area[both] * size + place[both], return_inverse=True)
    counts = np.bincount(parts, weights=people[both])
    return len(np.unique(cells[counts < least] // size))


def _released_codes(data: Microdata, name: str) -> Ints:
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    return np.where(values == len(codes.levels), -1, values)


def _sizes(options: Options) -> Options:
    by_records = options.get("population") is None and "areas" not in options
    return {"threshold": options.get("threshold")} if by_records else {}


@method(
    "geographic-threshold",
    "codes",
    note=PublicNote("Small areas were put together in {columns}.", AS_CODED),
    clashes=_clashes,
    unfit=_unfit,
    sizes=_sizes,
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
            kind=TomlValue(_is_population, lambda value: [value] if isinstance(value, str) else ()),
        ),
    ] = None,
    adjacency: Annotated[
        Mapping[Any, Iterable[Any]] | None,
        Option(
            "For each area its neighbours; either side may name the other.",
            kind=TomlValue(_is_adjacency),
        ),
    ] = None,
    hierarchy: Annotated[
        Hierarchy | None,
        Option(
            "The column of the larger area that each area lies in, a table that gives it for each "
            "area, or a list of such columns or tables from fine to coarse: an area is merged "
            "within the smallest larger one that has others.",
            kind=TomlValue(_is_hierarchy, columns_above),
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
            kind=TomlValue(_is_areas),
        ),
    ] = None,
    separator: Annotated[
        str | None,
        Option(
            "What stands between the codes of merged areas; by default `+`. More than three are "
            "called by the first and the number of the others: `A+12 more`.",
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
    old_labels = data.variable(column).value_labels
    labels = merged_labels(old_labels, levels, values, most=MOST_NAMED)
    out, changed = put_levels(data, column, values, value_labels=labels)
    by_area = pl.DataFrame({"area": new, "people": people}).group_by("area").sum()
    fewest = float(by_area["people"].to_numpy().min())
    notes = (
        became(len(names), len(set(new)), "area", "areas"),
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


def _joined(names: list[str], group: list[int], separator: str) -> list[str]:
    """Name merged areas by their parts, or by the first of many; no two names are the same."""
    members: dict[int, list[str]] = {}
    for name, number in zip(names, group, strict=True):
        members.setdefault(number, []).append(name)
    taken, called = set(names), dict[int, str]()
    for number, parts in members.items():
        if len(parts) == 1:
            called[number] = parts[0]
            continue
        many = len(parts) > MOST_NAMED
        name = separator.join([parts[0], f"{len(parts) - 1} more"] if many else parts)
        while name in taken:
            name += "'"
        taken.add(name)
        called[number] = name
    return [called[number] for number in group]
