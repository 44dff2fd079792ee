"""Regrouping of levels: readable bands, and what merging levels or setting a group apart does.

Measures and dates are cut into round bands where there are more levels than can be read. Merging
two levels only joins cells that agree on all the other variables, and taking a group out only
shrinks the cells it is in, so that every change to RP and CR is counted exactly from those.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, Share
from keyhole.core.options import Problem
from keyhole.data.columns import LARGEST, Codes, Variable
from keyhole.engines import Records, Tally
from keyhole.engines.choose import backend_of
from keyhole.engines.storage import count_codes
from keyhole.kernels.arrays import Flags, Ints

MOST_BANDS = 15
MISSING = "(missing)"
# A band that holds more than this of the records hides what matters within it.
MOST_IN_ONE = 0.6
QUANTILES = np.arange(1, 10) / 10


@dataclass(frozen=True, slots=True, eq=False)
class LevelGroups:
    """A variable's levels, or its bands: the group of each code and the label of each group.

    `ordered` says that groups which follow one another are next to each other in meaning; None
    that nobody can tell, since codes are numbers either way.
    """

    name: str
    group: Ints
    labels: tuple[str, ...]
    banded: bool
    ordered: bool | None
    missing: int | None

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.labels)


_Bands = tuple[Ints, list[str]]
"""The group of each level, and the label of each group."""


def group_levels(
    variable: Variable, codes: Codes, *, most_levels: int, held: Ints | None = None
) -> LevelGroups:
    """Group the levels of a measure or a date where there are more than can be read.

    `held` are the records of each code, counted if left out.
    """
    many = len(codes.levels) > most_levels
    dtype = codes.levels.dtype
    cut: _Bands | None = None
    if many and variable.kind == "date" and dtype.is_temporal() and dtype != pl.Duration:
        cut = _by_calendar(codes.levels)
    elif many and variable.kind == "measure" and dtype.is_numeric():
        cut = _by_bands(codes, count_codes(codes.values, codes.size) if held is None else held)
    group, labels = cut or (np.arange(len(codes.levels)), level_labels(variable, codes))
    missing = len(labels) if codes.has_missing else None
    if missing is not None:
        group, labels = np.append(group, missing), [*labels, MISSING]
    ordered = _is_ordered(variable, dtype, labels)
    return LevelGroups(variable.name, group, tuple(labels), cut is not None, ordered, missing)


def _is_ordered(variable: Variable, dtype: pl.DataType, labels: list[str]) -> bool | None:
    """Tell ages in bands from races by number."""
    known = variable.kind in ("measure", "date") or variable.measurement == "ordinal"
    if known or dtype == pl.Enum:
        return True
    if dtype.is_numeric() and not variable.value_labels:
        return None
    numbered = sum(any(letter.isdigit() for letter in label) for label in labels)
    return variable.measurement != "nominal" and numbered > len(labels) / 2


def level_labels(variable: Variable, codes: Codes) -> list[str]:
    """Return the labels of a column's levels, or their values if they have none."""
    return [str(variable.value_labels.get(level, level)) for level in codes.levels.to_list()]


def level_label(data: Records, name: str, code: int) -> str:
    """Return the label of a code of a column, or its value if it has none."""
    levels = data.codes(name).levels
    if code >= len(levels):
        return MISSING
    return str(data.variable(name).value_labels.get(levels[code], levels[code]))


def groups_of(data: Records, by: str | tuple[str, ...]) -> list[tuple[str, Records]]:
    """Cut a file by the categories of a column; a missing one is a group of its own.

    Of several columns the groups are the combinations of their categories that any record has.
    """
    first, *rest = [by] if isinstance(by, str) else by
    codes = data.codes(first)
    names = level_labels(data.variable(first), codes) + [MISSING] * codes.has_missing
    backend = backend_of(data)
    found = [(name, backend.group(data, first, i)) for i, name in enumerate(names)]
    if not rest:
        return found
    return [
        (f"{name}, {inner}", part)
        for name, group in found
        if group.records
        for inner, part in groups_of(group, tuple(rest))
        if part.records
    ]


def called_by(by: str | tuple[str, ...]) -> str:
    """Name what a file is cut by."""
    return by if isinstance(by, str) else ", ".join(by)


def unnamed_groups(cutoff: int) -> Problem:
    """Say why some groups have no name: it could be that of a person."""
    template = "Groups of fewer than {0} records are not named; {name_small_groups} names them."
    return Problem(template, cutoff)


def _by_calendar(levels: pl.Series) -> _Bands:
    """Take the finest unit that leaves few enough."""
    if levels.dtype == pl.Time:
        return _dense(levels.dt.hour(), lambda hour: f"{hour:02}:00")
    year = levels.dt.year()
    months = _dense(year * 12 + levels.dt.month() - 1, lambda m: f"{m // 12}-{m % 12 + 1:02}")
    years = _dense(year, str)
    for found in (months, years):
        if len(found[1]) <= MOST_BANDS:
            return found
    return _dense(year // 10, lambda decade: f"{decade}0s")


def _dense(numbers: pl.Series, label: Callable[[int], str]) -> _Bands:
    held, group = np.unique(numbers.to_numpy(), return_inverse=True)
    return group.astype(np.int64), [label(int(one)) for one in held]


def round_widths(least: float) -> Iterator[float]:
    """Yield round numbers (1, 2 and 5 times a power of ten) from the least on."""
    power = 10.0 ** np.floor(np.log10(least)) if 0 < least < np.inf else 0.0
    while 0 < power < np.inf:
        yield from (float(power * factor) for factor in (1, 2, 5) if power * factor >= least)
        power *= 10


def _by_bands(codes: Codes, held: Ints) -> _Bands | None:
    levels = codes.levels.cast(pl.Float64).to_numpy()
    if np.abs(levels).max() >= LARGEST:
        return None
    held = held[: len(levels)]
    for width in itertools.islice(round_widths(float(levels[-1] - levels[0]) / MOST_BANDS), 3):
        lows, group = np.unique(np.floor(levels / width) * width, return_inverse=True)
        if group.max() <= MOST_BANDS:
            if np.bincount(group, held).max() > MOST_IN_ONE * held.sum():
                break
            whole = width >= 1 and bool((levels == np.round(levels)).all())
            return group.astype(np.int64), [
                f"{low:,.12g} to {low + width - 1:,.12g}" if whole else _span(low, low + width)
                for low in lows
            ]
    # Cut near the deciles at numbers of two digits, which are nobody's value in particular.
    below = np.cumsum(held) / held.sum()
    cuts = sorted({float(f"{levels[np.searchsorted(below, q)]:.1e}") for q in QUANTILES})
    if len(cuts) < 2:
        return None
    group = np.searchsorted(cuts, levels, side="right")
    groups, dense = np.unique(group, return_inverse=True)
    ends = [None, *cuts, None]
    return dense.astype(np.int64), [_span(ends[g], ends[g + 1]) for g in groups]


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return f"under {high:,.12g}"
    return f"{low:,.12g} and above" if high is None else f"{low:,.12g} to under {high:,.12g}"


Action = Literal["merge", "one category"]


@dataclass(frozen=True, slots=True)
class Regrouping:
    """One merge of levels, what it does to RP and CR, and what it gains and costs."""

    variable: str
    level: str
    action: Action
    other: str | None
    rp: Annotated[float, Share("records")]
    cr: float
    gain: float
    price: float
    places: Annotated[tuple[int, ...], HIDDEN] = ()


@dataclass(frozen=True, slots=True)
class Apart:
    """A subpopulation in a file of its own: what is left, and what is in that file."""

    variable: str
    level: str
    records: Annotated[int, COUNT]
    rest_rp: float | None
    rest_cr: float | None
    own_rp: Annotated[float, Share("records")]
    own_cr: float
    gain: float
    places: Annotated[tuple[int, ...], HIDDEN] = ()


def summed(numbers: Ints, amounts: Ints, least: int = 0) -> Ints:
    """Add up whole amounts by number."""
    return np.bincount(numbers, weights=amounts, minlength=least).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    other: Ints
    code: Ints
    size: Ints
    starts: Ints

    def of(self, code: int) -> slice:
        return slice(int(self.starts[code]), int(self.starts[code + 1]))


def regroupings(
    totals: Tally, cutoff: int, others: Ints, codes: Ints, grouping: LevelGroups, held: Ints
) -> Iterator[Regrouping]:
    """Try the merges of one key variable that make sense without knowing what it means.

    Bands become one category each; of other levels each is merged with its neighbours if the
    levels have an order, with the commonest level if they have none, with all three if nobody
    can tell. `others` has the cell of each pattern on the other keys, `codes` the variable's code,
    `held` how many records have it.
    """
    # The cells of the key, sorted by the code of the variable, then by the cell of the others.
    span = int(others.max(initial=0)) + 1
    place, which = np.unique(codes * span + others, return_inverse=True)
    code, counts = place // span, summed(which, held)
    starts = np.searchsorted(code, np.arange(len(grouping.group) + 1))
    cells = _Cells(place % span, code, counts, starts)
    if grouping.banded:
        moves = ((g, None, _collapse(cells, grouping.group == g, cutoff))
                 for g in range(grouping.size) if g != grouping.missing)  # fmt: skip
        action: Action = "one category"
    else:
        commonest = int(np.bincount(codes, weights=held).argmax())
        moves = _merges(cells, commonest, grouping, cutoff)  # type: ignore[assignment]
        action = "merge"
    for level, other, (fewer_at_risk, fewer_cells) in moves:
        if fewer_cells:
            rp = (totals.at_risk - fewer_at_risk) / totals.records
            cr = (totals.cells - fewer_cells) / totals.records
            places = (level,) if other is None else (level, other)
            names = [grouping.labels[place] for place in places] + [None]
            yield Regrouping(
                grouping.name, str(names[0]), action, names[1], rp, cr, totals.rp - rp,
                totals.cr - cr, places,
            )  # fmt: skip


def _merges(
    cells: _Cells, commonest: int, grouping: LevelGroups, cutoff: int
) -> Iterator[tuple[int, int | None, tuple[int, int]]]:
    last = grouping.size - 1 - (grouping.missing is not None)
    done = set()
    for level in range(grouping.size):
        with_ = [commonest] if not grouping.ordered or level == grouping.missing else []
        if grouping.ordered is not False and level < last:
            with_.append(level + 1)  # the one below was joined with it before
        for other in with_:
            pair = frozenset((level, other))
            if other != level and pair not in done:
                done.add(pair)
                yield level, other, _merge(cells, level, other, cutoff)


def _merge(cells: _Cells, one: int, other: int, cutoff: int) -> tuple[int, int]:
    """Return by how much the records at risk and the cells become fewer."""
    small, large = sorted((cells.of(one), cells.of(other)), key=lambda s: s.stop - s.start)
    there = cells.other[large]
    place = np.searchsorted(there, cells.other[small])
    inside = place < len(there)
    met = np.flatnonzero(inside)[there[place[inside]] == cells.other[small][inside]]
    a, b = cells.size[small][met], cells.size[large][place[met]]
    before = a * (a < cutoff) + b * (b < cutoff)
    after = (a + b) * (a + b < cutoff)
    return int((before - after).sum()), len(met)


def _collapse(cells: _Cells, inside: Flags, cutoff: int) -> tuple[int, int]:
    """Return by how much both become fewer if all the codes inside become one."""
    chosen = inside[cells.code]
    other, size = cells.other[chosen], cells.size[chosen]
    joined = np.bincount(np.unique(other, return_inverse=True)[1], weights=size)
    fewer = size[size < cutoff].sum() - joined[joined < cutoff].sum()
    return int(fewer), len(size) - len(joined)


def set_apart(
    totals: Tally, cutoff: int, numbers: Ints, group: Ints, held: Ints, grouping: LevelGroups
) -> Iterator[Apart]:
    """Put each group into a file of its own, and count what is left and what is in it.

    `numbers` has the cell of each pattern on all the keys, `group` its group, `held` how many
    records have it.
    """
    groups, c = grouping.size, cutoff
    sizes = summed(numbers, held, totals.cells)
    place, inside = np.unique(numbers * groups + group, return_inverse=True)
    held = summed(inside, held)
    cell, which = place // groups, place % groups
    whole, rest = sizes[cell], sizes[cell] - held
    records = summed(which, held, groups)
    at_risk = totals.at_risk + summed(which, rest * (rest < c) - whole * (whole < c), groups)
    cells = totals.cells - np.bincount(which[rest == 0], minlength=groups)
    own_risk = summed(which, held * (held < c), groups)
    own_cells = np.bincount(which, minlength=groups)
    for level in range(groups):
        left, n = totals.records - int(records[level]), int(records[level])
        if not left or not n:
            continue
        rest_rp, rest_cr = int(at_risk[level]) / left, int(cells[level]) / left
        yield Apart(
            grouping.name, grouping.labels[level], n, rest_rp, rest_cr, int(own_risk[level]) / n,
            int(own_cells[level]) / n, totals.rp - rest_rp, (level,),
        )  # fmt: skip
