"""Search for the structure of a file: tests whose chance to find anything in noise is bounded.

Of n records with a property, spread at random over a file, none falls among others of which E
would be expected to be with probability at most exp(-E). So with M things tested, and at most a
share A of files allowed to show any by chance, an expected count of log(M / A) is enough. What is
tested is decided by margins alone, never by the cell itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from keyhole.data.columns import LARGEST
from keyhole.data.microdata import Microdata
from keyhole.engines.resources import in_threads
from keyhole.kernels.arrays import Array, Flags, Floats, Ints
from keyhole.screening.structure import Structure, condition, name_in_rule, rule_bound

# The chance of any structure in a file without: for three columns, and for everything else.
ERROR_TRIPLES, ERROR = 0.007, 0.001
# Planted structure in which so many records are expected is found.
FOUND_FROM = 20.0
# Categories of more levels than this are only known to be blank or not, or to be determined.
MOST_LEVELS = 60
# Columns with fewer records on either side of a condition say nothing of it.
LEAST = math.log(1 / ERROR)
# Exceptions to rules of whole columns, as a share of those that chance would make, and of all.
EXCEPTIONS, EXCEPTIONS_OF_ALL = 0.05, 0.01
# A limit is sharp if beyond it, had the records next to it carried on, so large a share of what is
# needed would be; these records are so many times those beyond.
SHARP, REACH = 0.8, 3
# Orders and sums are first looked for in so many records.
GLANCE = 2_000
# Sums are believed whose parts are each other than 0, beside another, in so many records. They are
# looked for in so many samples, as some have an exception in them.
LEAST_SUMS, SAMPLES = 20, 12
MOST_ROUTES = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """A column: the code of each record, and its levels in order; the code past them is missing."""

    name: str
    codes: Ints
    levels: pl.Series
    counts: Ints
    is_number: bool

    @property
    def blank(self) -> int:
        """How many records have no value."""
        return int(self.counts[len(self.levels)])


class _Groups(NamedTuple):
    """Codes in groups: categories one by one, numbers in bands. `other` is never tested."""

    of_code: Ints
    size: int
    other: int


def search_structure(
    data: Microdata, columns: Iterable[str] | None, about: frozenset[str] | None
) -> list[Structure]:
    """Return all structures that the file shows."""
    names = data.names if columns is None else tuple(columns)
    views = [view for name in names if (view := _column(data, name)) is not None]

    def wanted(*some: int) -> bool:
        return about is None or any(views[i].name in about for i in some)

    pairs = [pair for pair in itertools.combinations(range(len(views)), 2) if wanted(*pair)]
    found = _determinations(views, pairs)
    determined = {frozenset(one.columns) for one in found}
    routes = _routing(views, about)
    found += routes
    numbers = [i for i, view in enumerate(views) if view.is_number]
    found += _orders(views, [pair for pair in pairs if set(pair) <= set(numbers)])
    found += _sums(views, numbers, about)
    tied = {frozenset(pair) for one in found for pair in itertools.combinations(one.columns, 2)}
    open_ = [p for p in pairs if frozenset((views[p[0]].name, views[p[1]].name)) not in determined]
    ranges, edges = _ranges(views, open_)
    # Routing says already that a column is filled where its conditions hold.
    routed = [set(route.columns) for route in routes]
    found += [one for one in ranges if not any(set(one.columns) <= some for some in routed)]
    loose = [p for p in open_ if frozenset((views[p[0]].name, views[p[1]].name)) not in tied]
    found += _empty_pairs(views, loose)
    triples = [t for t in itertools.combinations(range(len(views)), 3) if wanted(*t)]
    bound_sets = [frozenset(one.columns) for one in found if len(one.columns) > 2]
    found += _empty_triples(views, triples, edges, bound_sets)
    return found


def _column(data: Microdata, name: str) -> _Column | None:
    """Return a column that can have structure."""
    variable, codes = data.variable(name), data.codes(name)
    dtype = codes.levels.dtype
    plain = dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Date)
    if variable.kind == "text" or not plain or codes.size < 2:
        return None
    values = codes.values.astype(np.int64)
    is_number = variable.kind in ("measure", "date") and dtype not in (pl.String, pl.Boolean)
    numbers = codes.levels.cast(pl.Float64).to_numpy() if dtype.is_numeric() else np.empty(0)
    if not (np.abs(numbers) < LARGEST).all():
        return None
    counts = np.bincount(values, minlength=len(codes.levels) + 1)
    return _Column(name, values, codes.levels, counts, is_number)


def _numbers(view: _Column) -> Floats:
    """Return the column's values as numbers, not a number where missing."""
    levels = view.levels.cast(pl.Int32) if view.levels.dtype == pl.Date else view.levels
    return np.append(levels.cast(pl.Float64).to_numpy(), np.nan)[view.codes]


def _group(view: _Column, most: int, edges: Iterable[int] = ()) -> _Groups:
    """Group a column's codes: the most frequent categories, or bands cut at edges and quantiles."""
    last, counts = len(view.levels), view.counts
    missing = counts[last] > 0
    if not view.is_number:
        kept = np.argsort(-counts, kind="stable")[:most]
        kept = np.sort(kept[counts[kept] > 0])
        groups = np.full(last + 1, len(kept), dtype=np.int64)
        groups[kept] = np.arange(len(kept))
        whole = len(kept) == np.count_nonzero(counts)
        return _Groups(groups, len(kept) + (not whole), -1 if whole else len(kept))
    # An edge is the code of the first level of a band.
    held = counts[:last]
    cuts = {code for code in edges if 0 < code < last}
    room = most - missing - 1 - len(cuts)
    if room > 0:
        reached = np.cumsum(held) / max(held.sum(), 1)
        places = np.searchsorted(reached, np.arange(1, room + 1) / (room + 1)) + 1
        cuts |= {int(place) for place in places if 0 < place < last}
    first = np.array(sorted(cuts)[: most - missing - 1], dtype=np.int64)
    groups = np.searchsorted(first, np.arange(last + 1), side="right")
    groups[last] = len(first) + 1
    return _Groups(groups, len(first) + 1 + int(missing), -1)


def enough_for(tested: int, error: float) -> float:
    """Return the expected count that makes so many tests find nothing in noise."""
    return math.log(max(tested, 1) / error)


def _says(view: _Column, groups: _Groups, some: Iterable[int]) -> str:
    codes = [code for group in some for code in np.flatnonzero(groups.of_code == group).tolist()]
    held = [code for code in codes if view.counts[code] or code < len(view.levels)]
    return condition(view.name, view.levels, held)


def _table(a: Ints, b: Ints, rows: int, columns: int) -> Ints:
    return np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)


def _determinations(views: Sequence[_Column], pairs: Sequence[tuple[int, int]]) -> list[Structure]:
    """Find categories that are a function of another column."""
    found = []
    for one, other in pairs:
        for by, goal in ((views[one], views[other]), (views[other], views[one])):
            small = not goal.is_number and 1 < len(goal.levels) <= MOST_LEVELS and not goal.blank
            width = len(goal.levels)
            if not small or by.blank or len(by.levels) < width:
                continue
            table = _table(by.codes, goal.codes, len(by.levels), width)
            likeliest, rows = table.argmax(axis=1), table.sum(axis=1)
            exceptions = int(table.sum() - table.max(axis=1).sum())
            share = 1 - goal.counts.max() / len(goal.codes)
            expected = float(rows[rows > 1].sum() * share)
            # Every level may choose its own value: so many more chances to be right.
            needed = enough_for(len(pairs) * 2, ERROR) + np.count_nonzero(rows > 1) * math.log(
                width
            )
            if expected < needed or exceptions > EXCEPTIONS * EXCEPTIONS_OF_ALL * expected:
                continue
            runs = 1 + np.count_nonzero(np.diff(likeliest))
            if len(by.levels) > MOST_LEVELS and (not by.is_number or runs > MOST_LEVELS):
                continue
            parts = [
                f"({condition(by.name, by.levels, np.flatnonzero(likeliest == value).tolist())}"
                f" => {condition(goal.name, goal.levels, [value])})"
                for value in np.unique(likeliest).tolist()
            ]
            told = " and ".join(parts), len(goal.codes), exceptions, expected
            found.append(Structure("determined", (goal.name, by.name), *told))
    return found


def _routing(views: Sequence[_Column], about: frozenset[str] | None) -> list[Structure]:
    """Find what decides whether a column is blank."""
    found = []
    for goal in views:
        blank = goal.codes == len(goal.levels)
        if min(goal.blank, len(blank) - goal.blank) < FOUND_FROM:
            continue
        route = _route(goal, [view for view in views if view is not goal], blank)
        if route is None:
            continue
        columns, says, exceptions = route
        if about is not None and not about.intersection([goal.name, *columns]):
            continue
        when, gone = " or ".join(says), f"{name_in_rule(goal.name)} is missing"
        rule = f"({gone} => {when}) and ({when} => {gone})"
        p = goal.blank / len(blank)
        told = rule, len(blank), exceptions, 2 * p * (1 - p) * len(blank)
        found.append(Structure("routing", (goal.name, *columns), *told))
    return found


def _route(
    goal: _Column, others: Sequence[_Column], blank: Flags
) -> tuple[list[str], list[str], int] | None:
    """Cover the blank records by conditions on at most three columns, the widest first."""
    left, columns, says, exceptions = np.ones(len(blank), dtype=np.bool_), [], [], 0
    most = EXCEPTIONS_OF_ALL * min(goal.blank, len(blank) - goal.blank)
    for _ in range(MOST_ROUTES):
        gone = blank[left]
        share = float(gone.mean())
        best: tuple[int, int, _Column, Ints] | None = None
        for view in others:
            if view.name in columns:
                continue
            codes, rows = _always_blank(view, view.codes[left], gone)
            covered = int(rows[codes].sum())
            # Chance may pick any set of categories, or either end of a number.
            choices = 1 if view.is_number else int(np.count_nonzero(rows))
            surprise = -covered * math.log(share) - choices * math.log(2)
            if covered and surprise >= enough_for(2 * len(others) ** 2, ERROR):
                rank = (covered, -choices)
                if best is None or rank > best[:2]:
                    best = (*rank, view, codes)
        if best is None:
            return None
        view, codes = best[2], best[3]
        inside = left & np.isin(view.codes, codes)
        exceptions += int((inside & ~blank).sum())
        left &= ~inside
        columns.append(view.name)
        says.append(condition(view.name, view.levels, codes.tolist()))
        remaining = int(blank[left].sum())
        if remaining + exceptions <= most:
            return columns, says, remaining + exceptions
    return None


def _always_blank(view: _Column, codes: Ints, blank: Flags) -> tuple[Ints, Ints]:
    """Return the codes of a column, or the end of a number, with which all are blank.

    With them come how many records have each code.
    """
    last = len(view.levels)
    rows = np.bincount(codes, minlength=last + 1)
    gone = np.bincount(codes[blank], minlength=last + 1)
    pure = gone == rows
    if not view.is_number:
        if last > MOST_LEVELS:
            pure[:last] = False
        few = (rows - gone) * 200 <= rows  # a slip or two in many records
        return np.flatnonzero((pure | few) & (rows > 0)).astype(np.int64), rows
    start = int(np.argmin(pure[:last])) if not pure[:last].all() else last
    stop = last - int(np.argmin(pure[:last][::-1])) if not pure[:last].all() else last
    low, high = np.arange(start), np.arange(stop, last)
    end = low if rows[low].sum() >= rows[high].sum() else high
    both = rows[low].sum() and rows[high].sum() and min(rows[low].sum(), rows[high].sum()) >= LEAST
    found = np.concatenate([low, high]) if both else end
    found = np.append(found, last) if rows[last] and pure[last] else found
    return found.astype(np.int64), rows


def _orders(views: Sequence[_Column], pairs: Sequence[tuple[int, int]]) -> list[Structure]:
    """Find numbers of which one is never larger than the other, with few exceptions."""
    numbers = {i: _numbers(views[i]) for i in {i for pair in pairs for i in pair}}
    kinds = {i: views[i].levels.dtype == pl.Date for i in numbers}
    found = []
    for one, other in pairs:
        if kinds[one] != kinds[other]:
            continue
        for low, high in ((one, other), (other, one)):
            a, b = numbers[low], numbers[high]
            some = slice(None, None, max(1, len(a) // GLANCE))
            if (a[some] > b[some]).mean() > EXCEPTIONS:
                continue
            both = ~np.isnan(a) & ~np.isnan(b)
            n = int(both.sum())
            if n < FOUND_FROM:
                continue
            x, y = a[both], b[both]
            apart = y - x
            exceptions = int((apart < 0).sum())
            expected = float(np.searchsorted(np.sort(y), x, side="left").mean() * 1.0)
            most = min(EXCEPTIONS * expected, EXCEPTIONS_OF_ALL * n)
            if expected < enough_for(2 * len(pairs), ERROR) or exceptions > most:
                continue
            # A limit, not just the end of a tail: records crowd on one side of it.
            near = np.sort(apart[apart >= 0])[: max(int(FOUND_FROM), n // 1000)]
            if not len(near) or (apart[apart < 0] >= -near[-1]).sum() > EXCEPTIONS * len(near):
                continue
            if near[-1] > np.median(apart):
                continue
            rule = f"{name_in_rule(views[low].name)} <= {name_in_rule(views[high].name)}"
            names = (views[low].name, views[high].name)
            found.append(Structure("order", names, rule, n, exceptions, expected))
    return found


def _sums(
    views: Sequence[_Column], numbers: Sequence[int], about: frozenset[str] | None
) -> list[Structure]:
    """Find numbers that are the sum of others, each of which adds to it in enough records."""
    numbers = [i for i in numbers if views[i].levels.dtype != pl.Date]
    values = {i: _numbers(views[i]) for i in numbers}
    found = []
    for goal, parts in sorted(_balances(values)):
        names = tuple(views[i].name for i in (goal, *parts))
        if about is not None and not about.intersection(names):
            continue
        some: Floats = np.stack([values[i] for i in parts])
        total = some.sum(axis=0)
        known = ~np.isnan(total) & ~np.isnan(values[goal])
        adds = (some != 0) & (np.count_nonzero(some, axis=0) > 1) & known
        rows = np.flatnonzero(adds.any(axis=0))
        shuffled = np.random.default_rng(0).permutation(rows)
        expected = float((~_equal(values[goal][shuffled], total[rows])).sum())
        off = int((~_equal(values[goal][rows], total[rows])).sum())
        if adds.sum(axis=1).min() < LEAST_SUMS or off > EXCEPTIONS_OF_ALL * expected:
            continue
        off = int((~_equal(values[goal][known], total[known])).sum())
        first, *rest = map(name_in_rule, names)
        rule = f"{first} == {' + '.join(rest)}"
        found.append(Structure("sum", names, rule, int(known.sum()), off, expected))
    return found


def _balances(values: dict[int, Floats]) -> set[tuple[int, tuple[int, ...]]]:
    """Return the numbers that are the sum of others in one of several samples, with their parts."""
    names, found = list(values), set()
    whole: Array = np.stack([values[i] for i in names], axis=1) if names else np.empty((0, 0))
    while names and (~np.isnan(whole).any(axis=1)).sum() < len(names) + LEAST_SUMS:
        least = int(np.isnan(whole).sum(axis=0).argmax())  # known of the fewest records
        names.pop(least)
        whole = np.delete(whole, least, axis=1)
    if len(names) < 3:
        return set()
    whole = whole[~np.isnan(whole).any(axis=1)]
    scale = np.maximum(np.abs(whole).max(axis=0), 1)
    holders = [np.flatnonzero(whole[:, c]) for c in range(len(names))]
    random = np.random.default_rng(0)
    for _ in range(SAMPLES):
        rows = [random.choice(some, min(3, len(some)), replace=False) for some in holders]
        rows.append(random.choice(len(whole), LEAST_SUMS, replace=False))
        sample = whole[np.unique(np.concatenate(rows))] / scale
        sizes, directions = np.linalg.svd(sample)[1:]
        free = directions[np.count_nonzero(sizes > 1e-9 * sizes[0]) :]
        for goal in np.flatnonzero(np.abs(free).max(axis=0, initial=0) > 1e-6).tolist():
            parts = _summands(sample, scale, goal)
            if len(parts) > 1:
                found.add((names[goal], tuple(names[part] for part in parts)))
    return found


def _summands(sample: Floats, scale: Floats, goal: int) -> list[int]:
    """Return the fewest columns whose sum is the goal, none if there are no such."""
    from scipy.optimize import nnls

    def weigh(parts: Sequence[int]) -> Floats | None:
        weights, miss = nnls(sample[:, parts], sample[:, goal])
        fits = miss <= 1e-9 * max(float(np.linalg.norm(sample[:, goal])), 1e-9)
        return weights * scale[goal] / scale[parts] if fits else None

    parts = [part for part in range(sample.shape[1]) if part != goal]
    weights = weigh(parts)
    for part in np.argsort(np.abs(sample).sum(axis=0) * scale).tolist():
        fewer = [one for one in parts if one != part]
        if weights is None or not fewer:
            return []
        if part in parts and (again := weigh(fewer)) is not None:
            parts, weights = fewer, again
    return parts if weights is not None and np.allclose(weights, 1, atol=1e-6) else []


def _equal(a: Floats, b: Floats) -> Flags:
    """Compare as rules do, to nine digits."""
    with np.errstate(invalid="ignore"):
        near: Flags = np.abs(a - b) <= 1e-9 * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0)
    return near


# Codes of a number that a group never has: the group, the first, the last, the records expected,
# those of the group, and whether the group has codes on both sides.
_Range = tuple[int, int, int, float, int, bool]


def _ranges(
    views: Sequence[_Column], pairs: Sequence[tuple[int, int]]
) -> tuple[list[Structure], dict[int, set[int]]]:
    """Find categories in which a number stops short of where it ends in the file, or has a gap."""
    tasks = [
        (number, by)
        for pair in pairs
        for number, by in (pair, pair[::-1])
        if views[number].is_number and (views[by].blank or not views[by].is_number)
    ]
    looks = in_threads(lambda task: _empty_ranges(views[task[0]], views[task[1]]), tasks)
    # A gap may begin at any record.
    enough = {
        is_gap: enough_for(sum(look[2] if is_gap else look[1] for look in looks), ERROR)
        for is_gap in (False, True)
    }
    found: dict[tuple[int, int, int], Structure] = {}
    limits: dict[tuple[int, int, int], str] = {}
    edges: dict[int, set[int]] = {}
    for (number, by), (groups, _, _, empty) in zip(tasks, looks, strict=True):
        view = views[number]
        column, last = name_in_rule(view.name), len(view.levels)
        for group, start, stop, expected, support, is_gap in empty:
            if expected < enough[is_gap]:
                continue
            edges.setdefault(number, set()).update({start, stop + 1} - {0, last})
            sides = []
            if start:
                sides.append(f"{column} <= {rule_bound(view.levels, start - 1, up=True)}")
            if stop < last - 1:
                sides.append(f"{column} >= {rule_bound(view.levels, stop + 1, up=False)}")
            limit = f"({' or '.join(sides)})" if is_gap else sides[0]
            key, chance = (number, by, group), expected
            if key in found:
                limit = f"{limits[key]} and {limit}"
                chance += found[key].expected
            limits[key] = limit
            rule = f"{_says(views[by], groups, [group])} => {limit}"
            names = (view.name, views[by].name)
            found[key] = Structure("range", names, rule, support, 0, chance)
    return list(found.values()), edges


def _empty_ranges(number: _Column, by: _Column) -> tuple[_Groups, int, int, list[_Range]]:
    """Return the groups, how many ends and gaps were tested, and which of them are empty."""
    last = len(number.levels)
    if by.is_number or len(by.levels) > MOST_LEVELS:  # known to be blank or not
        blank = np.zeros(len(by.levels) + 1, dtype=np.int64)
        blank[-1] = 1
        groups = _Groups(blank, 2, -1)
    else:
        groups = _group(by, MOST_LEVELS + 1)
    known = number.codes < last
    table = _table(groups.of_code[by.codes[known]], number.codes[known], groups.size, last)
    rows, below = table.sum(axis=1), np.concatenate([[0], np.cumsum(table.sum(axis=0))])
    found, ends, gaps = [], 0, 0
    for group in np.flatnonzero((rows >= LEAST) & (rows < below[-1])).tolist():
        ends, gaps = ends + 2, gaps + int(rows[group])
        held, share = np.flatnonzero(table[group]), rows[group] / below[-1]
        mine = np.concatenate([[0], np.cumsum(table[group])])
        starts, stops = np.append(0, held + 1), np.append(held - 1, last - 1)
        expected = (below[stops + 1] - below[starts]) * share
        for place in np.flatnonzero(expected >= LEAST).tolist():
            start, stop = int(starts[place]), int(stops[place])
            sides = []
            if start > 0:
                sides.append(_carried_on(mine, below, start, stop + 1))
            if stop < last - 1:
                upside = last - stop - 1, last - start
                sides.append(_carried_on(mine[-1] - mine[::-1], below[-1] - below[::-1], *upside))
            chance = min(float(expected[place]), min(sides) / SHARP)
            found.append((group, start, stop, chance, int(rows[group]), len(sides) > 1))
    return groups, ends, gaps, found


def _carried_on(mine: Ints, below: Ints, start: int, stop: int) -> float:
    """Return how many of a group an empty range would have if what is below it carried on."""
    outside = below[stop] - below[start]
    edges = [start]
    for _ in range(2):
        reach = int(np.searchsorted(below, below[edges[-1]] - REACH * outside, side="right")) - 1
        edges.append(max(reach, 0))
    shares = [
        (mine[b] - mine[a]) / (below[b] - below[a]) if below[b] > below[a] else None
        for b, a in itertools.pairwise(edges)
    ]
    near, before = shares[0] or 0.0, shares[1]
    falls = min(near / before, 1.0) if before else 1.0
    return float(outside * near * falls)


def _empty_pairs(views: Sequence[_Column], pairs: Sequence[tuple[int, int]]) -> list[Structure]:
    """Find the pairs of categories that nobody has."""
    groups = [_group(view, MOST_LEVELS + 1) for view in views]
    coded = [g.of_code[view.codes] for g, view in zip(groups, views, strict=True)]
    small = [not view.is_number and len(view.levels) <= MOST_LEVELS for view in views]
    fit = [(one, other) for one, other in pairs if small[one] and small[other]]

    def look(pair: tuple[int, int]) -> tuple[int, Floats, Ints]:
        one, other = pair
        table = _table(coded[one], coded[other], groups[one].size, groups[other].size)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
        tested = expected >= LEAST
        if groups[one].other >= 0:
            tested[groups[one].other] = False
        if groups[other].other >= 0:
            tested[:, groups[other].other] = False
        return int(tested.sum()), np.where(tested & (table == 0), expected, 0.0), table

    looks = in_threads(look, fit)
    enough = enough_for(sum(tested for tested, _, _ in looks), ERROR)
    found = []
    for (one, other), (_, expected, table) in zip(fit, looks, strict=True):
        empty = expected >= enough
        # Rules are fewer if said of the column with fewer groups in empty cells.
        if empty.any(axis=0).sum() < empty.any(axis=1).sum():
            one, other, table, expected, empty = other, one, table.T, expected.T, empty.T
        for group in np.flatnonzero(empty.any(axis=1)).tolist():
            mine = np.flatnonzero(empty[group])
            says = _says(views[one], groups[one], [group])
            rule = f"{says} => not {_says(views[other], groups[other], mine.tolist())}"
            left = np.flatnonzero(table[group])
            if len(left) == 1 and int(left[0]) != groups[other].other:
                rule = f"{says} => {_says(views[other], groups[other], left.tolist())}"
            names = (views[other].name, views[one].name)
            support, chance = int(table[group].sum()), sum(expected[group, mine].tolist())
            found.append(Structure("impossible", names, _spelt(rule), support, 0, chance))
    return found


def _spelt(rule: str) -> str:
    """Put the negation of a plain condition in plain words."""
    head, _, tail = rule.partition(" => not ")
    if tail.endswith(" is missing") and " or " not in tail:
        return f"{head} => {tail.removesuffix(' is missing')} is not missing"
    if tail and not tail.startswith("("):
        tail = f"({tail})"
    return f"{head} => not {tail}" if tail else rule


def _empty_triples(
    views: Sequence[_Column],
    triples: Sequence[tuple[int, int, int]],
    edges: dict[int, set[int]],
    bound_sets: Sequence[frozenset[str]],
) -> list[Structure]:
    """Find the triples of categories or bands that nobody has, though every two of them meet."""
    from keyhole.kernels.crosstab import empty_triples

    if not triples:
        return []
    # So many groups a column that all the cells together can be tested.
    room = ERROR_TRIPLES * math.exp(FOUND_FROM) / len(triples)
    most = int(min(max(room ** (1 / 3), 3), 12))
    groups = [_group(view, most, edges.get(i, ())) for i, view in enumerate(views)]
    coded: Array = np.stack(
        [g.of_code[v.codes].astype(np.uint8) for g, v in zip(groups, views, strict=True)]
    )
    sizes = np.array([g.size for g in groups])
    others = np.array([g.other for g in groups])
    every = np.array(triples, dtype=np.int64)
    parts = np.array_split(every, min(len(every), 16))
    looks = in_threads(lambda part: empty_triples(coded, sizes, others, part, LEAST), parts)
    enough = enough_for(sum(tested for _, _, tested in looks), ERROR_TRIPLES)
    # Those that differ in the last column make one rule.
    together: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for part, (cells, expected, _) in zip(parts, looks, strict=True):
        for (number, *cell), chance in zip(cells.tolist(), expected.tolist(), strict=True):
            columns = part[number].tolist()
            names = {views[c].name for c in columns}
            if chance >= enough and not any(names <= one for one in bound_sets):
                together.setdefault((*columns, *cell[:2]), []).append((cell[2], chance))
    found = []
    for (a, b, c, i, j), empty in together.items():
        both = f"{_says(views[a], groups[a], [i])} and {_says(views[b], groups[b], [j])}"
        never = _says(views[c], groups[c], [cell for cell, _ in empty])
        names_of = (views[c].name, views[a].name, views[b].name)
        support = int(((coded[a] == i) & (coded[b] == j)).sum())
        chance = sum(chance for _, chance in empty)
        rule = _spelt(f"{both} => not {never}")
        found.append(Structure("impossible", names_of, rule, support, 0, chance))
    return found
