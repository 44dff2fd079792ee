"""Tables from records, protected and audited: ``keyhole table``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted, repeated
from keyhole.data import Microdata, load
from keyhole.errors import ColumnError, InputError, OptionError, RunError
from keyhole.exposure.checks import is_number, one_of
from keyhole.kernels.arrays import Floats
from keyhole.protection.tables.attackers import intervals, relations
from keyhole.protection.tables.cells import (
    CrossTable,
    Rules,
    Unsafe,
    cross,
    find_unsafe,
    rule_problems,
)
from keyhole.protection.tables.demands import Problem
from keyhole.protection.tables.result import ProtectedTable, TableAudit
from keyhole.protection.tables.rounding import round_at_random, round_nearest
from keyhole.protection.tables.suppression import Pattern, suppress
from keyhole.utility.implicates import chosen, numbers

__all__ = ["option_problems", "table"]

PROTECTIONS = ("suppress", "round", "none")
COSTS = ("value", "records", "cells")
ROUNDINGS = ("nearest", "random")
# What a frame has besides the variables.
RESERVED = ("value", "suppressed", "total_over", "count", "low", "high", "unsafe", "shown")
# Programs over more cells than this do not end; a table that is only shown may be larger.
# A variable with more values than this share of the records names them; few records say nothing.
MOST_DISTINCT, FEWEST = 0.5, 50
LARGEST = {"suppress": 20_000, "round": 20_000, "none": 500_000}


def option_problems(
    *,
    rows: Sequence[str],
    cols: Sequence[str],
    rules: Rules,
    magnitude: str | None,
    protect: Any,
    base: Any,
    cost: Any,
    rounding: Any,
    seed: Any,
    seconds: Any,
) -> list[str]:
    """Return what is wrong with the options, as far as can be told without the data."""
    problems = _name_problems([*rows, *cols])
    if not rows:
        problems.append("rows must name at least one variable. Got none instead.")
    problems += rule_problems(rules, magnitude)
    problems += one_of("protect", protect, PROTECTIONS) + one_of("cost", cost, COSTS)
    problems += one_of("rounding", rounding, ROUNDINGS)
    problems += _rounding_problems(protect, base, rounding, len(rows) + len(cols), seed)
    if not (is_number(seconds) and 0 < seconds < float("inf")):
        problems.append(f"seconds must be a number above 0. Got {seconds!r} instead.")
    return problems


def _name_problems(names: Sequence[str]) -> list[str]:
    problems = [
        f"variable {name!r} is listed more than once in rows and columns. List it once."
        for name in repeated(names)
    ]
    taken = [name for name in dict.fromkeys(names) if name in RESERVED]
    if taken:
        problems.append(
            f"rows and columns must not be called as the figures of a cell are: {quoted(taken)}. "
            f"Rename them."
        )
    return problems


def _rounding_problems(protect: Any, base: Any, rounding: Any, size: int, seed: Any) -> list[str]:
    problems = []
    if base is not None and not (is_number(base) and 0 < base < float("inf")):
        problems.append(f"base must be a number above 0. Got {base!r} instead.")
    elif base is not None and protect != "round":
        problems.append("base must go with protect round. Leave it out, or ask for rounding.")
    if rounding != "random":
        return problems
    if protect != "round":
        problems.append("rounding at random must go with protect round. Leave it out.")
    if size > 2:
        problems.append(
            f"rounding at random must be of one or two variables. Got {size} instead: round to "
            f"the nearest, or make tables of fewer variables."
        )
    if seed is None:
        problems.append("rounding at random must have a seed. Give one, and keep it secret.")
    elif not isinstance(seed, Integral) or isinstance(seed, bool) or int(seed) < 0:
        problems.append("seed must be a whole number of at least 0. Got something else instead.")
    return problems


def column_problems(
    data: Microdata, names: Sequence[str], weight: str | None, magnitude: str | None
) -> list[str]:
    """Return what is wrong with the columns themselves."""
    problems: dict[str, None] = {}
    asked = (
        ([*dict.fromkeys(names)], "variable"),
        ([weight], "weight"),
        ([magnitude], "magnitude"),
    )
    for wanted, purpose in asked:
        try:
            data.require([one for one in wanted if one is not None], purpose=purpose)
        except InputError as error:
            problems.update(dict.fromkeys(error.problems))
    if magnitude is not None and magnitude in names:
        problems[f"magnitude {magnitude!r} must not be a variable of rows or columns as well."] = (
            None
        )
    if magnitude is not None and magnitude == weight:
        problems[f"magnitude {magnitude!r} must not be the weight as well. Name another."] = None
    if problems or not names:
        return list(problems)
    try:
        data.require_records()
        if weight is not None:
            data.weights(weight)
    except InputError as error:
        problems.update(dict.fromkeys(error.problems))
    if magnitude is not None and not problems:
        problems.update(dict.fromkeys(_amount_problems(data, magnitude)))
    return list(problems)


def naming_problems(data: Microdata, names: Sequence[str]) -> list[str]:
    """Return which variables would print, as labels, what names people."""
    problems = []
    for name in dict.fromkeys(names):
        if name not in data.names or data.records < FEWEST:
            continue
        if data.variable(name).role in ("identifier", "household"):
            problems.append(f"variable {name!r} names people, by its role. Tabulate another.")
        elif data.codes(name).size > MOST_DISTINCT * data.records:
            problems.append(
                f"variable {name!r} has a value of its own for nearly every record, which the "
                f"table would print. Tabulate another, or group its values first."
            )
    return problems


def _amount_problems(data: Microdata, magnitude: str) -> list[str]:
    try:
        amounts = numbers(data, magnitude)
    except InputError as error:
        return list(error.problems)
    problems = [
        f"magnitude {magnitude!r} must have no {what} values. Got {count:,} of {len(amounts):,} "
        f"instead: {remedy}."
        for count, what, remedy in (
            (
                int((amounts < 0).sum()),
                "negative",
                "tabulate its positive part, or another variable",
            ),
            (int(np.isinf(amounts).sum()), "infinite", "declare them as missing codes"),
        )
        if count
    ]
    if not problems and np.isnan(amounts).all():
        problems.append(f"magnitude {magnitude!r} must have values. Got missing for all instead.")
    return problems


def read_amounts(data: Microdata, magnitude: str | None) -> npt.NDArray[np.float64] | None:
    """Return the amounts; missing ones are not a number."""
    return None if magnitude is None else numbers(data, magnitude)


def size_problems(data: Microdata, names: Sequence[str], protect: str) -> list[str]:
    """Return that a table is too large to be protected, if it is."""
    cells = prod(data.codes(name).size + 1 for name in names)
    most = LARGEST[protect]
    if cells <= most:
        return []
    return [
        f"a table with protect {protect} must have at most {most:,} cells, totals included. Got "
        f"{cells:,} instead: group categories, or make several tables."
    ]


def total_problems(table: CrossTable, unsafe: Unsafe, rules: Rules, total_known: bool) -> list[str]:
    """Return that the whole table is unsafe, if it is."""
    records = int(table.counts[-1])
    if records < rules.threshold:
        return [
            "threshold must be at most the number of records that contribute to the table: there "
            "is nothing in it that could be shown."
        ]
    if total_known and unsafe.cells[-1]:
        return [
            "the grand total is itself unsafe by the rules, and must not be known. Say that it is "
            "not (--total-unknown), and it is suppressed too; or group what is tabulated."
        ]
    return []


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a table is protected, as `table` was asked."""

    protect: str
    cost: str
    total_known: bool
    hidden_zeros: bool
    singletons: bool
    base: float
    rounding: str
    seed: int | None
    whole: bool
    seconds: float


_Made = tuple[Floats, Floats, Floats, Pattern | None, tuple[str, ...]]


def suppressed(made: CrossTable, unsafe: Unsafe, method: _Asked) -> _Made:
    """Return what is shown, the room of an outsider, and the pattern; or all as it is."""
    nothing = np.zeros(len(made.values))
    if method.protect == "none":
        return made.values, nothing, nothing, None, ()
    problem = _problem(made, unsafe, method)
    pattern = suppress(problem, seconds=method.seconds)
    if pattern.impossible:
        raise OptionError(_no_pattern(method))
    shown = np.where(pattern.suppressed, np.nan, made.values)
    up, down = (
        np.where(pattern.suppressed, problem.up, 0.0),
        np.where(pattern.suppressed, problem.down, 0.0),
    )
    return shown, up, down, pattern, ()


def _no_pattern(method: _Asked) -> str:
    known = "" if not method.total_known else " Say that the grand total is not known, or"
    zeros = "" if method.hidden_zeros else " let empty cells be hidden (--hidden-zeros), or"
    return (
        f"no pattern of suppressed cells keeps every unsafe cell as uncertain as asked.{known}"
        f"{zeros} group categories, or round."
    )


def _problem(made: CrossTable, unsafe: Unsafe, method: _Asked) -> Problem:
    allowed = np.ones(len(made.values), dtype=bool) if method.hidden_zeros else made.counts > 0
    if method.total_known:
        allowed[-1] = False
    # Where empty cells are shown, one that is not shown has a record in it.
    least = 0.0 if method.hidden_zeros else made.least
    down = np.maximum(made.values - least, 0.0)
    return Problem(
        made.shape, np.full(len(made.values), np.inf), down, _costs(made, method.cost),
        unsafe.cells, allowed | unsafe.cells, unsafe.lower, unsafe.upper, unsafe.sliding,
        _alone(made, unsafe) if method.singletons and made.magnitude else (), method.whole,
    )  # fmt: skip


def _costs(made: CrossTable, cost: str) -> Floats:
    costs = {"value": made.values, "records": made.counts, "cells": np.ones(len(made.values))}
    found = costs[cost].astype(np.float64)
    # What is empty is not free: then it would be suppressed for nothing.
    positive = found[found > 0]
    return np.where(found > 0, found, positive.min() if len(positive) else 1.0)


def _alone(made: CrossTable, unsafe: Unsafe) -> tuple[frozenset[int], ...]:
    """Return for each record that is alone in an unsafe cell all the cells it is alone in."""
    single = unsafe.cells & (made.counts == 1)
    last = np.array(made.shape) - 1
    found = []
    for cell in np.flatnonzero(single & ~made.margin):
        place = made.places[cell]
        above = ((made.places == place) | (made.places == last)).all(axis=1)
        found.append(frozenset(np.flatnonzero(above & single).tolist()))
    return tuple(found)


def rounded(made: CrossTable, method: _Asked) -> _Made:
    """Return the rounded table and the room that rounding leaves to an outsider."""
    if method.rounding == "random":
        found = round_at_random(
            made.values, made.shape, method.base, np.random.default_rng(method.seed)
        )
    else:
        found = round_nearest(made.values, made.shape, method.base, seconds=method.seconds)
    width = method.base * (1 + found.beyond)
    # A value is less than this from the rounded one; a whole one by 1 less at least.
    reach = width - 1 if made.is_count and float(width).is_integer() else width
    up = np.maximum(found.values + reach - made.values, 0.0)
    down = np.maximum(np.minimum(made.values - found.values + reach, made.values), 0.0)
    more = (
        ()
        if not found.beyond
        else (f"some cells are up to {width:g} off: nearer multiples do not add up",)
    )
    return found.values, up, down, None, more


BASE = 5
# Fewer records than this are not counted in what may be published.
FEW = 10


def table(
    data: Any,
    *,
    rows: str | Sequence[str],
    cols: str | Sequence[str] | None = None,
    magnitude: str | None = None,
    weight: str | None = None,
    threshold: int = 3,
    dominance: tuple[int, float] | None = None,
    p_percent: float | None = None,
    range_percent: float = 30.0,
    sliding_percent: float = 0.0,
    protect: str = "suppress",
    cost: str = "value",
    total_known: bool = True,
    hidden_zeros: bool = False,
    singletons: bool = True,
    base: float | None = None,
    rounding: str = "nearest",
    seed: int | None = None,
    whole: bool = True,
    seconds: float = 60.0,
) -> ProtectedTable:
    """Make a frequency or magnitude table with all its margins that may be published.

    Unsafe cells are found by the rules. By suppression they are left out, with as few others as
    protect them from being worked out; by rounding every cell becomes a multiple of a base. The
    result shows what may go out. Its `internal` part has the true values, which cells are unsafe,
    and the interval that an outsider can derive for each: it stays with you.

    Parameters
    ----------
    data
        `Microdata`, a frame, or a file.
    rows, cols
        The variables of the rows and of the columns; missing is a category of its own.
    magnitude
        A variable to be added up, not negative; else records are counted.
    weight
        The column that tells how many people a record stands for.
    threshold
        Cells of fewer contributors are unsafe; a contributor is a record.
    dominance
        (n, k): a cell is unsafe if its n largest contributors have more than k percent of it.
    p_percent
        A cell is unsafe if its second largest contributor can estimate the largest within p
        percent.
    range_percent
        In tables of amounts and of weighted counts, how far an outsider's interval must reach
        from the value of a cell of too few contributors, in percent of it.
    sliding_percent
        How wide the interval of an unsafe cell must be in all, in percent of its value.
    protect
        ``suppress``, ``round`` or ``none``.
    cost
        What suppressing a cell costs: its ``value``, its ``records``, or one for all ``cells``.
    total_known
        Whether outsiders know the grand total anyway, so that it cannot be suppressed.
    hidden_zeros
        Whether empty cells may be suppressed to protect others. Only if no outsider knows that
        they are empty.
    singletons
        In a magnitude table, whether the only contributor to a cell, who knows its value, must
        not find out others by it.
    base, rounding, seed
        The base (5 if left out), and whether to round to the ``nearest`` or at ``random`` without
        bias (one or two variables), with a secret seed.
    whole
        Whether outsiders reckon with counts being whole numbers.
    seconds
        Time for the search; then the best safe pattern so far is taken.

    Returns
    -------
    ProtectedTable
        What may be published, and apart from it `internal`.

    Raises
    ------
    InputError
        If columns or options are wrong, or no pattern is safe; all problems at once.

    Examples
    --------
    >>> import polars as pl
    >>> cells = {("north", "a"): 20, ("north", "b"): 1, ("north", "c"): 9,
    ...          ("south", "a"): 8, ("south", "b"): 6, ("south", "c"): 7}
    >>> people = [key for key, count in cells.items() for _ in range(count)]
    >>> frame = pl.DataFrame(people, schema=["area", "trade"], orient="row")
    >>> table(frame, rows="area", cols="trade")
    Records by area and trade
      area   trade: a  trade: b  trade: c  Total
      north  20        ×         ×            30
      south  8         ×         ×            21
      Total  28        7         16           51
      × not shown, to protect contributors.
    """
    down, across = chosen(rows), chosen(cols)
    rules = Rules(threshold, dominance, p_percent, range_percent, sliding_percent)
    problems = option_problems(
        rows=down, cols=across, rules=rules, magnitude=magnitude, protect=protect, base=base,
        cost=cost, rounding=rounding, seed=seed, seconds=seconds,
    )  # fmt: skip
    microdata = _read(data, problems)
    problems += column_problems(microdata, [*down, *across], weight, magnitude)
    problems += naming_problems(microdata, [*down, *across])
    if not problems:
        problems += size_problems(microdata, [*down, *across], protect)
    if problems:
        raise ColumnError(problems)
    made = _crossed(microdata, down, across, rules, magnitude, weight)
    unsafe = find_unsafe(made, rules, hidden_zeros=hidden_zeros or protect == "round")
    method = _Asked(
        protect, cost, total_known, hidden_zeros, singletons, base or BASE, rounding, seed,
        whole and made.is_count, seconds,
    )  # fmt: skip
    if protect == "suppress":
        problems = total_problems(made, unsafe, rules, total_known)
        if problems:
            raise OptionError(problems)
    return _published(made, unsafe, rules, method, _left_out(microdata, magnitude))


def _read(data: Any, problems: list[str]) -> Microdata:
    try:
        return data if isinstance(data, Microdata) else load(data)
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None


def _crossed(
    data: Microdata, rows: tuple[str, ...], cols: tuple[str, ...], rules: Rules,
    magnitude: str | None, weight: str | None,
) -> CrossTable:  # fmt: skip
    return cross(
        data, rows=rows, cols=cols, contributions=read_amounts(data, magnitude),
        weights=None if weight is None else data.weights(weight), magnitude=magnitude,
        weight=weight, deepest=rules.deepest,
    )  # fmt: skip


def _left_out(data: Microdata, magnitude: str | None) -> tuple[str, ...]:
    missing = 0 if magnitude is None else data.column(magnitude).null_count()
    if not missing:
        return ()
    how_many = f"{missing:,} records have" if missing >= FEW else "A few records have"
    return (f"{how_many} no value of {magnitude!r} and are left out",)


def _published(
    made: CrossTable, unsafe: Unsafe, rules: Rules, method: _Asked, notes: tuple[str, ...]
) -> ProtectedTable:
    """Protect a table and audit it."""
    if method.protect == "round":
        shown, up, down, pattern, more = rounded(made, method)
    else:
        shown, up, down, pattern, more = suppressed(made, unsafe, method)
    # In one-way and two-way tables of counts the bounds are whole numbers by themselves.
    low, high = intervals(
        relations(made.shape), made.values, up, down,
        whole=method.whole and len(made.shape) > 2,
        only=unsafe.cells | np.isnan(shown),
    )  # fmt: skip
    if method.whole:
        low, high = np.ceil(low - 1e-6) + 0.0, np.floor(high + 1e-6)  # no "-0"
    audit = TableAudit(made, rules, unsafe, method.protect, shown, low, high, pattern, notes + more)
    if method.protect == "suppress" and not audit.safe:
        raise RunError(
            "the audit found a suppressed cell that is not as uncertain as asked: the solver was "
            "not exact enough. Nothing is given out. Group categories, or round."
        )
    if method.protect == "round" and not audit.safe:
        raise OptionError(
            f"rounding to {method.base:g} leaves {int(audit.narrow.sum()):,} unsafe cells too "
            f"certain: what was rounded can be worked out. Take a larger base, or suppress."
        )
    return ProtectedTable(
        made.rows, made.cols, made.levels, shown, made.magnitude, made.weight, method.protect,
        method.base if method.protect == "round" else None, notes, audit,
    )  # fmt: skip
