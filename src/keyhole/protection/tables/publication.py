"""Tables from records, protected and audited: ``keyhole table``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from keyhole.core.kinds import Columns
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import EngineInMemory, Names, Seed
from keyhole.engines.opening import open_for
from keyhole.errors import ColumnError, OptionError, RunError
from keyhole.kernels.arrays import Floats
from keyhole.protection.tables.asked import (
    NOISE,
    DominanceOption,
    NoisePercent,
    table_data_problems,
    table_problems,  # noqa: F401
)
from keyhole.protection.tables.attackers import intervals, relations
from keyhole.protection.tables.cell_keys import KEYS, PerturbationTable, record_keys
from keyhole.protection.tables.cells import CrossTable, SensitivityRules, Unsafe, cross, find_unsafe
from keyhole.protection.tables.demands import SuppressionProblem
from keyhole.protection.tables.result import ProtectedTable, TableAudit
from keyhole.protection.tables.rounding import round_at_random, round_nearest
from keyhole.protection.tables.suppression import Pattern, find_pattern
from keyhole.utility.implicates import numbers

# These change every cell, so that an empty one is no news.
ALL_CELLS = ("round", "cell-key")
# What can be derived from noise is worked out for so many cells times unsafe cells.
MOST_AUDITED = 2_000_000
BASE = 5
# Fewer records than this are not counted in what may be published.
FEW = 10


def _require_total(made: CrossTable, unsafe: Unsafe, question: Question) -> None:
    """Refuse a table that is unsafe as a whole."""
    if int(made.counts[-1]) < question.threshold:
        raise OptionError(
            Problem(
                "{threshold} must be at most the number of records that contribute to the table: "
                "there is nothing in it that could be shown."
            )
        )
    if question.total_known and unsafe.cells[-1]:
        raise OptionError(
            Problem(
                "{total_known} must be false, because the grand total is itself unsafe by the "
                "rules. If outsiders do not know it, say so, and it is suppressed too; or group "
                "what is tabulated."
            )
        )


_Made = tuple[Floats, Floats, Floats, Pattern | None, tuple[str, ...]]


def suppressed(made: CrossTable, unsafe: Unsafe, question: Question) -> _Made:
    """Return what is shown, the room of an outsider, and the pattern; or all as it is."""
    nothing = np.zeros(len(made.values))
    if question.protect == "none":
        return made.values, nothing, nothing, None, ()
    problem = _problem(made, unsafe, question)
    pattern = find_pattern(problem, seconds=question.seconds)
    if pattern.impossible:
        known = " Say that the grand total is not known, or" if question.total_known else ""
        zeros = "" if question.hidden_zeros else " let empty cells be hidden ({hidden_zeros}), or"
        raise OptionError(
            Problem(
                "no pattern of suppressed cells keeps every unsafe cell as uncertain as asked."
                f"{known}{zeros} group categories, or round."
            )
        )
    shown = np.where(pattern.suppressed, np.nan, made.values)
    up, down = (np.where(pattern.suppressed, room, 0.0) for room in (problem.up, problem.down))
    return shown, up, down, pattern, ()


def _problem(made: CrossTable, unsafe: Unsafe, question: Question) -> SuppressionProblem:
    allowed = np.ones(len(made.values), dtype=bool) if question.hidden_zeros else made.counts > 0
    if question.total_known:
        allowed[-1] = False
    # Where empty cells are shown, one that is not shown has a record in it.
    least = 0.0 if question.hidden_zeros else made.least
    down = np.maximum(made.values - least, 0.0)
    return SuppressionProblem(
        made.shape, np.full(len(made.values), np.inf), down, _costs(made, question.cost),
        unsafe.cells, allowed | unsafe.cells, unsafe.lower, unsafe.upper, unsafe.sliding,
        _alone(made, unsafe) if question.singletons and made.magnitude else (), question.whole,
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


def rounded(made: CrossTable, question: Question) -> _Made:
    """Return the rounded table and the room that rounding leaves to an outsider."""
    if question.rounding == "random":
        found = round_at_random(
            made.values, made.shape, question.base, np.random.default_rng(question.seed)
        )
    else:
        found = round_nearest(made.values, made.shape, question.base, seconds=question.seconds)
    width = question.base * (1 + found.beyond)
    # A value is less than this from the rounded one; a whole one by 1 less at least.
    reach = width - 1 if made.is_count and float(width).is_integer() else width
    up = np.maximum(found.values + reach - made.values, 0.0)
    down = np.maximum(np.minimum(made.values - found.values + reach, made.values), 0.0)
    more = (f"some cells are up to {width:g} off: nearer multiples do not add up",)
    return found.values, up, down, None, more if found.beyond else ()


def perturbed(made: CrossTable, question: Question) -> _Made:
    """Return the table with the noise of its cell keys, and the room that leaves to an outsider."""
    assert made.keys is not None
    largest, variance = question.noise or NOISE[0], question.noise_variance or NOISE[1]
    by_count = PerturbationTable(largest, variance, question.smallest_published - 1)
    keys, there = made.keys % KEYS, made.counts > 0
    noise = by_count.look_up(made.counts, keys)
    if made.magnitude is None:
        # A record stands for as many people as the others of its cell.
        each = np.divide(made.values, made.counts, out=np.zeros(len(keys)), where=there)
        values = made.values + each * noise
        reach = np.where(there, each, made.is_count) * largest  # nobody sees that a count is 0
        spread = f"standard deviation {variance**0.5:.2g}"
    else:
        least, most = (percent / 100 for percent in question.noise_percent)
        # Of the key the half tells the sign, the rest how far.
        part = np.abs(2 * keys / KEYS - 1)
        off = np.where(2 * keys < KEYS, -1, 1) * (least + (most - least) * part)
        values, reach = made.values + made.largest[:, 0] * off, made.largest[:, 0] * most
        spread = f"of up to {100 * most:g}% of the largest contribution"
    notes = [f"Every cell has random noise of mean 0, {spread}; the same cell always the same"]
    if question.add_up:
        grid = np.where(made.margin, 0.0, values).reshape(made.shape)
        for axis in range(grid.ndim):
            parts = np.moveaxis(grid, axis, 0)
            parts[-1] = parts[:-1].sum(axis=0)
        values = grid.ravel()
        # A sum is off by as much as its cells are together.
        ends = np.where(made.margin, 0.0, reach).reshape(made.shape)
        for axis in range(ends.ndim):
            parts = np.moveaxis(ends, axis, 0)
            parts[-1] = parts[:-1].sum(axis=0)
        reach = ends.ravel()
        notes = [f"Every cell but totals has random noise of mean 0, {spread}; totals are sums"]
    else:
        notes.append("Totals have noise of their own: rows and columns do not add up")
    up = np.maximum(values + reach - made.values, 0.0)
    down = np.clip(made.values - values + reach, 0.0, made.values)
    inside = (
        f"Two tables that differ by one person show the true difference with probability "
        f"{by_count.differences_shown:.2f}, any other as likely as its noise"
    )
    return values, up, down, None, (*notes, inside)


@documented
def table(
    data: Any,
    *,
    rows: Annotated[
        Names,
        Option(
            "The variables of the rows; missing is a category of its own.", kind=Columns("variable")
        ),
    ],
    cols: Annotated[
        Names | None, Option("The variables of the columns.", kind=Columns("variable", least=0))
    ] = None,
    magnitude: Annotated[
        str | None,
        Option(
            "A variable to add up, not negative, instead of counting records.", column="magnitude"
        ),
    ] = None,
    weight: Annotated[
        str | None,
        Option("The column with the number of people each record represents.", column="weight"),
    ] = None,
    threshold: Annotated[
        int, Option("Cells with fewer contributors (records) than this are unsafe.", low=1)
    ] = 3,
    dominance: DominanceOption = None,
    p_percent: Annotated[
        float | None,
        Option(
            "Cells whose second largest contributor can estimate the largest within this percent "
            "are unsafe.",
            above=0,
            high=1000,
        ),
    ] = None,
    range_percent: Annotated[
        float,
        Option(
            "In tables of amounts and weighted counts, how far an outsider's interval must reach "
            "from the value of a cell with too few contributors, in percent of it.",
            above=0,
            high=1000,
        ),
    ] = 30.0,
    sliding_percent: Annotated[
        float,
        Option(
            "How wide the interval of any unsafe cell must be in all, in percent of its value.",
            low=0,
            high=1000,
        ),
    ] = 0.0,
    protect: Annotated[
        Literal["suppress", "round", "cell-key", "none"],
        Option(
            "`suppress` unsafe cells, `round` all cells, add noise by `cell-key`, the same to the "
            "same cell in every table, or `none`."
        ),
    ] = "suppress",
    cost: Annotated[
        Literal["value", "records", "cells"],
        Option(
            "What suppressing a cell costs: its `value`, its `records`, or one for all `cells`."
        ),
    ] = "value",
    total_known: Annotated[
        bool,
        Option(
            "Whether outsiders know the grand total, so that it cannot be suppressed.",
            off="--total-unknown",
        ),
    ] = True,
    hidden_zeros: Annotated[
        bool,
        Option(
            "Let empty cells be suppressed to protect others; only if nobody knows that they are "
            "empty."
        ),
    ] = False,
    singletons: Annotated[
        bool,
        Option(
            "In a table of amounts, whether the only contributor to a cell, who knows its value, "
            "must not find out others by it."
        ),
    ] = True,
    base: Annotated[
        float | None, Option("Round to multiples of this; by default 5.", above=0)
    ] = None,
    rounding: Annotated[
        Literal["nearest", "random"],
        Option(
            "Round to the `nearest` multiple, or at `random` without bias (one or two variables)."
        ),
    ] = "nearest",
    noise: Annotated[
        int | None,
        Option("Cell keys: the largest noise of a count; by default 5.", low=1, high=99),
    ] = None,
    noise_variance: Annotated[
        float | None, Option("Cell keys: the variance of the noise; by default 2.", above=0)
    ] = None,
    smallest_published: Annotated[
        int, Option("Cell keys: counts between 0 and this are never published.", low=1, high=100)
    ] = 3,
    noise_percent: NoisePercent = (5.0, 15.0),
    record_id: Annotated[
        str | None,
        Option(
            "Cell keys: a column whose value belongs to a record for good; by default records are "
            "told apart by their place in the file.",
            column="record id",
        ),
    ] = None,
    add_up: Annotated[
        bool,
        Option(
            "Cell keys: make totals the sums of their cells; they are then further off, and the "
            "same total differs between tables."
        ),
    ] = False,
    seed: Seed = None,
    whole: Annotated[bool, Option("Assume attackers know that counts are integers.")] = True,
    seconds: Annotated[
        float, Option("Time for the search; then the best safe pattern so far is used.", above=0)
    ] = 60.0,
    engine: EngineInMemory = "auto",
) -> ProtectedTable:
    """Make a table of counts or amounts that may be published, protected and audited.

    Unsafe cells are suppressed with the cheapest set of others that protects them, or all cells
    are rounded so that rows and columns still add up. The result may be published. Its `internal`
    part has the true values, the unsafe cells, and the interval that an outsider can derive for
    each: keep it as safe as the data.

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
    question = bind(table, locals())
    opened: Any = open_for(question, data, needs_memory_for="a table")
    down, across = question.rows, question.cols or ()
    problems = table_data_problems(opened, question)
    if problems:
        raise ColumnError(problems)
    rules = SensitivityRules(
        question.threshold, question.dominance, question.p_percent, question.range_percent,
        question.sliding_percent,
    )  # fmt: skip
    made = cross(
        opened, rows=down, cols=across,
        contributions=None if magnitude is None else numbers(opened, magnitude),
        weights=None if weight is None else opened.weights(weight),
        magnitude=magnitude, weight=weight, deepest=rules.deepest,
        keys=None if protect != "cell-key" else record_keys(opened, question.seed, record_id),
    )  # fmt: skip
    unsafe = find_unsafe(made, rules, hidden_zeros=hidden_zeros or protect in ALL_CELLS)
    if protect == "suppress":
        _require_total(made, unsafe, question)
    question = question.replace(base=question.base or BASE, whole=whole and made.is_count)
    missing = 0 if magnitude is None else opened.column(magnitude).null_count()
    how_many = f"{missing:,} records have" if missing >= FEW else "A few records have"
    notes = (f"{how_many} no value of {magnitude!r} and are left out",) if missing else ()
    return _published(made, unsafe, rules, question, notes)


def _published(
    made: CrossTable,
    unsafe: Unsafe,
    rules: SensitivityRules,
    question: Question,
    notes: tuple[str, ...],
) -> ProtectedTable:
    """Protect a table and audit it."""
    if question.protect == "round":
        shown, up, down, pattern, more = rounded(made, question)
    elif question.protect == "cell-key":
        shown, up, down, pattern, more = perturbed(made, question)
    else:
        shown, up, down, pattern, more = suppressed(made, unsafe, question)
    audited = unsafe.cells | np.isnan(shown)
    if question.protect == "cell-key":
        *more_published, inside = more
        notes, more = (*notes, *more_published), (inside,)
        if audited.sum() * len(shown) > MOST_AUDITED:
            audited[:] = False
            more += ("What can be derived from sums was not worked out: the table is too large",)
    # In one-way and two-way tables of counts the bounds are whole numbers by themselves.
    low, high = intervals(
        relations(made.shape), made.values, up, down,
        whole=question.whole and len(made.shape) > 2,
        only=audited,
    )  # fmt: skip
    if question.whole:
        low, high = np.ceil(low - 1e-6) + 0.0, np.floor(high + 1e-6)  # no "-0"
    said = tuple(dict.fromkeys(notes + more))
    audit = TableAudit(made, rules, unsafe, question.protect, shown, low, high, pattern, said)
    if question.protect == "suppress" and not audit.safe:
        raise RunError(
            "the audit found a suppressed cell that is not as uncertain as asked: the solver was "
            "not exact enough. Nothing is given out. Group categories, or round."
        )
    if question.protect == "round" and not audit.safe:
        raise OptionError(
            f"rounding to {question.base:g} leaves {audit.figures.narrow:,} unsafe cells too "
            f"certain: what was rounded can be worked out. Take a larger base, or suppress."
        )
    if question.protect == "cell-key" and not audit.safe:
        raise OptionError(
            Problem(
                f"with this noise {audit.figures.narrow:,} unsafe cells can be worked out from the "
                f"others, by whoever knows the largest {{noise}}. Take a larger one, or suppress."
            )
        )
    base = question.base if question.protect == "round" else None
    return ProtectedTable.of(audit, question.protect, base, notes)
