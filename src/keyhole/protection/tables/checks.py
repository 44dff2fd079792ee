"""What is wrong with the options of a table, as sentences, so that all are told at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.core.names import quoted, repeated
from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.exposure.checks import is_number, one_of
from keyhole.protection.tables.crossing import CrossTable
from keyhole.protection.tables.primary import Rules, Unsafe, rule_problems
from keyhole.utility.implicates import numbers

__all__ = [
    "COSTS",
    "METHODS",
    "RESERVED",
    "ROUNDINGS",
    "column_problems",
    "naming_problems",
    "option_problems",
    "read_amounts",
    "size_problems",
    "total_problems",
]

METHODS = ("suppress", "round", "none")
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
    problems += one_of("protect", protect, METHODS) + one_of("cost", cost, COSTS)
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
