"""Drivers: which levels put records into small cells, and what could be done about them.

Lin & Garin end so: "Regrouping variables or isolating subpopulations with large estimated odds
ratios of high risk cells (with small cell size) will also prepare data better suitable for the
variables selection methods."
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, engine_of, open_records
from keyhole.engines.partition import PatternTable
from keyhole.errors import OptionError
from keyhole.exposure.checks import check_cutoff, is_number, listed, problems_of
from keyhole.exposure.driver_results import Driver, Drivers
from keyhole.exposure.groupings import Grouping, group_levels
from keyhole.exposure.odds import MOST_LEVELS, Fit, crude_odds, fit_logistic, level_odds
from keyhole.exposure.regrouping import Totals, regroupings, set_apart
from keyhole.kernels.arrays import Ints

__all__ = ["drivers", "option_problems"]


def drivers(
    data: Any,
    *,
    keys: Iterable[str],
    cutoff: int = 3,
    variables: Iterable[str] | None = None,
    level: float = 0.95,
    most_levels: int = 40,
    name_small_groups: bool = False,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
) -> Drivers:
    """Find the levels that put records into small cells, and what regrouping them would do.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    keys
        What an intruder is assumed to know.
    cutoff
        Records in cells smaller than this are at risk.
    variables
        Whose levels are looked at; the keys if left out. One that is no key is not regrouped.
    level
        The confidence level of the intervals.
    most_levels
        Measures and dates with more levels than this are taken in round bands.
    name_small_groups
        Whether the tables name levels of fewer records than the cutoff, which may be people.
    engine, memory, work_folder, master
        Where to count: `memory`, `disk`, `spark` or `auto`, what the disk engine may use
        (`"1GB"`) and where it makes its files, and where Spark runs (`"local[*]"`); see
        `keyhole.engines.choose.open_records`.

    Notes
    -----
    Each level is held against the rest of its variable: by itself in a two-by-two table, and
    with the other variables held equal in a logistic model with Firth's penalty. Missing values
    are a level of their own.

    Examples
    --------
    >>> import polars as pl
    >>> sex, age = ["f"] * 6 + ["m"] * 34, [20, 30, 40, 50, 60, 70] + [20, 30] * 17
    >>> found = drivers(pl.DataFrame({"sex": sex, "age": age}), keys=["sex", "age"])
    >>> women = found.levels[0]
    >>> women.variable, women.label, women.records, women.at_risk, women.crude.corrected
    ('sex', 'f', 6, 6, True)
    """
    data = open_records(data, engine=engine, memory=memory, work_folder=work_folder, master=master)
    names = listed(keys, "keys")
    chosen = names if variables is None else listed(variables, "variables")
    _check(data, names, chosen, cutoff=cutoff, level=level, most_levels=most_levels)
    everything = tuple(dict.fromkeys((*names, *chosen)))
    counter = engine_of(data, everything)
    table = counter.patterns(everything)
    held, numbers = table.records, table.numbers(names)
    sizes = _summed(numbers, held)
    at_risk = sizes[numbers] < cutoff
    totals = Totals(data.records, len(sizes), int(held[at_risk].sum()), cutoff)
    groupings = [_grouping(data, table, name, most_levels) for name in chosen]
    groups = [g.group[table.codes(g.name)] for g in groupings]
    fit, unfitted = _fit(groupings, groups, at_risk, held)
    moves = [
        move
        for grouping in groupings
        if grouping.name in names
        for move in regroupings(
            totals, _others(table, names, grouping.name), table.codes(grouping.name), grouping, held
        )
    ]
    apart = [
        one
        for grouping, group in zip(groupings, groups, strict=True)
        for one in set_apart(totals, numbers, group, held, name=grouping.name, groups=grouping.size)
    ]
    return Drivers(
        keys=names,
        variables=tuple(chosen),
        totals=totals,
        confidence=level,
        levels=tuple(_levels(groupings, groups, at_risk, held, fit, level)),
        regroupings=tuple(sorted(moves, key=lambda m: (-m.gain, m.price))),
        apart=tuple(sorted(apart, key=lambda a: -a.gain)),
        unfitted=unfitted,
        name_small_groups=name_small_groups,
        engine=counter.name,
        engine_notes=engine_notes(data),
    )


def option_problems(*, cutoff: Any = 3, level: Any = 0.95, most_levels: Any = 40) -> list[str]:
    """Return what is wrong with the options of `drivers`, whatever the data."""
    problems = check_cutoff(cutoff)
    if not (is_number(level) and 0 < level < 1):
        problems.append(f"level must be above 0 and below 1. Got {level!r} instead.")
    if not isinstance(most_levels, int) or isinstance(most_levels, bool) or most_levels < 2:
        problems.append(
            f"most levels must be a whole number of at least 2. Got {most_levels!r} instead."
        )
    return problems


def _check(data: Records, names: Sequence[str], chosen: Sequence[str], **options: Any) -> None:
    problems = option_problems(**options)
    for what, given in (("keys", names), ("variables", chosen)):
        if not given:
            problems.append(f"{what} must name at least one column. Got none instead.")
    problems += problems_of(data, names, "key")
    if chosen is not names:
        problems += problems_of(data, chosen, "variable")
    if problems:
        raise OptionError(problems)
    data.require_records()


def _grouping(data: Records, table: PatternTable, name: str, most_levels: int) -> Grouping:
    codes = data.codes(name)
    held = _summed(table.codes(name), table.records, codes.size)
    return group_levels(data.variable(name), codes, most_levels=most_levels, held=held)


def _others(table: PatternTable, names: Sequence[str], name: str) -> Ints:
    return table.numbers([one for one in names if one != name])


def _summed(numbers: Ints, amounts: Ints, least: int = 0) -> Ints:
    """Add up whole amounts by number."""
    return np.bincount(numbers, weights=amounts, minlength=least).astype(np.int64)


def _fit(
    groupings: Sequence[Grouping],
    groups: Sequence[Ints],
    at_risk: npt.NDArray[np.bool_],
    held: Ints,
) -> tuple[Fit | None, str]:
    """Fit the model on the distinct patterns, or say why there is none."""
    if at_risk.all() or not at_risk.any():
        every = "every record is" if at_risk.any() else "no record is"
        return None, f"{every} at risk, so that there are no odds to compare"
    levels = sum(g.size for g in groupings)
    if levels > MOST_LEVELS:
        return None, f"the variables have {levels:,} levels, more than {MOST_LEVELS:,}"
    number = np.zeros(len(at_risk), dtype=np.int64)
    for grouping, group in zip(groupings, groups, strict=True):
        # Numbered anew at each step, so that many variables do not run over.
        number = np.unique(number * grouping.size + group, return_inverse=True)[1]
    first = np.unique(number, return_index=True)[1]
    records, risky = _summed(number, held), _summed(number, held * at_risk)
    codes, sizes = [group[first] for group in groups], [g.size for g in groupings]
    fit = fit_logistic(codes, sizes, records, risky)
    return fit, "" if fit is not None else "the model did not settle"


def _levels(
    groupings: Sequence[Grouping],
    groups: Sequence[Ints],
    at_risk: npt.NDArray[np.bool_],
    held: Ints,
    fit: Fit | None,
    level: float,
) -> Iterable[Driver]:
    records, total = int(held.sum()), int(held[at_risk].sum())
    for place, (grouping, group) in enumerate(zip(groupings, groups, strict=True)):
        counts = _summed(group, held, grouping.size)
        risky = _summed(group, held * at_risk, grouping.size)
        adjusted = (
            [None] * grouping.size if fit is None else level_odds(fit, place, counts, level=level)
        )
        for g, label in enumerate(grouping.labels):
            a, n = int(risky[g]), int(counts[g])
            two_by_two = [a, n - a, total - a, records - n - (total - a)]
            crude = crude_odds(two_by_two, level=level)
            yield Driver(grouping.name, g, label, n, a, crude, adjusted[g])
