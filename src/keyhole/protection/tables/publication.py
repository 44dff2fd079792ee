"""Tables from records, protected and audited: ``keyhole table``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns, File
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import EngineInMemory, Names, Seed
from keyhole.data import Microdata
from keyhole.engines.opening import open_for
from keyhole.errors import ColumnError, InputError, OptionError, RunError
from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.asked import (
    NOISE,
    DominanceOption,
    NoisePercent,
    Tables,
    table_data_problems,
    table_problems,  # noqa: F401
)
from keyhole.protection.tables.attackers import (
    Programs,
    SuppressionProblem,
    Wanted,
    intervals,
    prove,
)
from keyhole.protection.tables.cells import (
    CrossTable,
    Linked,
    SensitivityRules,
    Unsafe,
    cross,
    find_unsafe,
)
from keyhole.protection.tables.hierarchies import axes_of, find_chains, read_code_list, spelled
from keyhole.protection.tables.result import (
    ProtectedTable,
    TableAudit,
    published_values,
    read_register,
)
from keyhole.protection.tables.rounding import (
    KEYS,
    PerturbationTable,
    record_keys,
    round_at_random,
    round_nearest,
)
from keyhole.protection.tables.suppression import Pattern, find_pattern
from keyhole.utility.implicates import numbers

# These change every cell, so that an empty one is no news.
ALL_CELLS = ("round", "cell-key")
# What can be derived from noise is worked out for so many cells times unsafe cells.
MOST_AUDITED = 2_000_000
BASE = 5
# Fewer records than this are not counted in what may be published.
FEW = 10


@dataclass(frozen=True, eq=False)
class _Tables:
    """Tables that are protected together, and what makes their cells unsafe.

    Those from `new` on were published before: cells that they show are `fixed`, and those that they
    do not show are `forced` to stay so.
    """

    linked: Linked
    unsafe: tuple[Unsafe, ...]
    rules: tuple[SensitivityRules, ...]
    new: int
    fixed: Flags
    forced: Flags

    @property
    def made(self) -> CrossTable:
        """The first table."""
        return self.linked.tables[0]

    @property
    def unsafe_cells(self) -> Flags:
        """The joint cells that are unsafe and not published yet."""
        return np.asarray(self.linked.joined(one.cells for one in self.unsafe)) & ~self.fixed

    def levels(self, name: str) -> Floats:
        """The levels of protection of one kind that these cells need."""
        joint = self.linked.joined(getattr(one, name) for one in self.unsafe)
        return np.where(self.unsafe_cells, joint, 0.0)


# What is shown, the room of an outsider, the pattern, and what is to be said of it.
_Made = tuple[Floats, Floats, Floats, Pattern | None, tuple[str, ...]]


class ImpossibleError(OptionError):
    """Nothing protects a table as asked."""


def suppressed(tables: _Tables, question: Question) -> _Made:
    """Return what is shown, the room of an outsider, and the pattern."""
    linked, unsafe = tables.linked, tables.unsafe_cells
    allowed = np.ones(linked.size, dtype=bool) if question.hidden_zeros else linked.counts > 0
    if question.total_known:
        allowed[[place[-1] for place in linked.places]] = False
    # Where empty cells are shown, one that is not shown has a record in it.
    least = 0.0 if question.hidden_zeros else max(made.least for made in linked.tables)
    up, down = np.full(linked.size, np.inf), np.maximum(linked.values - least, 0.0)
    costs = {"value": linked.values, "records": linked.counts, "cells": np.ones(linked.size)}
    cost = costs[question.cost].astype(np.float64)
    # What is empty is not free: then it would be suppressed for nothing.
    cost = np.where(cost > 0, cost, cost[cost > 0].min() if cost.any() else 1.0)
    # By record that is alone in an unsafe cell, all the cells it is alone in.
    owned: dict[int, list[int]] = {}
    if question.singletons and tables.made.magnitude:
        for cell in np.flatnonzero(unsafe & (linked.counts == 1)).tolist():
            owned.setdefault(int(linked.marks[cell]), []).append(cell)
    must = unsafe | tables.forced
    problem = SuppressionProblem(
        linked.sums, up, down, cost, must, (allowed | must) & ~tables.fixed,
        tables.levels("lower"), tables.levels("upper"), tables.levels("sliding"),
        tuple(frozenset(cells) for cells in owned.values()),
        question.whole, linked.network,
    )  # fmt: skip
    pattern = find_pattern(problem, seconds=question.seconds, linked=linked)
    if pattern.impossible:
        raise ImpossibleError(
            "no pattern of suppressed cells keeps every unsafe cell as uncertain as asked."
        )
    shown = np.where(pattern.suppressed, np.nan, linked.values)
    up, down = (np.where(pattern.suppressed, room, 0.0) for room in (up, down))
    return shown, up, down, pattern, ()


def rounded(tables: _Tables, question: Question) -> _Made:
    """Return the rounded tables and the room that rounding leaves to an outsider."""
    linked, made = tables.linked, tables.made
    if question.rounding == "random":
        found = round_at_random(
            made.values, made.shape, question.base, np.random.default_rng(question.seed)
        )
    else:
        found = round_nearest(
            linked.values, made.shape, question.base, seconds=question.seconds, sums=linked.sums
        )
    width = question.base * (1 + found.beyond)
    # A value is less than this from the rounded one; a whole one by 1 less at least.
    reach = width - 1 if made.is_count and float(width).is_integer() else width
    up = np.maximum(found.values + reach - linked.values, 0.0)
    down = np.maximum(np.minimum(linked.values - found.values + reach, linked.values), 0.0)
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
        # A sum is off by as much as its cells are together.
        values, reach = made.add_up(values), made.add_up(reach)
        notes = [f"Every cell but totals has random noise of mean 0, {spread}; totals are sums"]
    else:
        notes.append("Totals have noise of their own: rows and columns do not add up")
    up = np.maximum(values + reach - made.values, 0.0)
    down = np.clip(made.values - values + reach, 0.0, made.values)
    inside = (
        f"Two tables that differ by one person show the true difference with probability "
        f"{by_count.differences_shown:.2f}, any other as likely as its noise"
    )
    if question.add_up:
        further = np.sqrt(np.mean(((values - made.values)[made.margin]) ** 2))
        notes.append(f"Totals are off by {further:.3g} on average (root mean square)")
    return values, up, down, None, (*notes, inside)


@documented
def table(
    data: Any,
    *,
    rows: Annotated[
        Names | None,
        Option(
            "The variables of the rows; missing is a category of its own.", kind=Columns("variable")
        ),
    ] = None,
    cols: Annotated[
        Names | None, Option("The variables of the columns.", kind=Columns("variable", least=0))
    ] = None,
    tables: Tables = (),
    nested: Annotated[
        Names | None,
        Option(
            "Variables whose categories lie within one another, the coarsest first, such as "
            "`state,county`; detected by default where no category is in two others.",
            kind=Columns("variable", least=0),
        ),
    ] = None,
    hierarchy: Annotated[
        str | None,
        Option(
            "A code list of the row variable: a file with the columns parent and child.",
            kind=File(),
        ),
    ] = None,
    against: Annotated[
        str | None,
        Option(
            "A register of tables already published, written by `--register`; this one is "
            "protected against them.",
            kind=File(),
        ),
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
            "same cell in every table, or `none`.",
            also="--method",
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
            "must be kept from working out others with it."
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
            "Cell keys: a column whose value never changes for a record; by default records are "
            "identified by their position in the file.",
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
        float | None,
        Option(
            "Stop the search after this time with the best safe pattern so far; by default it "
            "stops after a fixed amount of work, with the same table on every machine.",
            above=0,
        ),
    ] = None,
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
    # Tables published before may have other columns.
    opened: Any = open_for(
        question,
        data,
        needs_memory_for="a table",
        every_column=against is not None,
        data_problems=lambda _: _file_problems(question),
    )
    question = question.replace(base=question.base or BASE)
    asked = [(question.rows, question.cols or ()), *question.tables]
    asked = [one for one in asked if one[0]]
    codes = {} if question.hierarchy is None else read_code_list(question.hierarchy)
    listed = {asked[0][0][0]: spelled(opened, asked[0][0][0], codes)} if codes else {}
    problems = table_data_problems(opened, question, listed)
    if problems:
        raise ColumnError(problems)
    entries = [
        {
            "rows": list(down), "cols": list(across), "magnitude": magnitude, "weight": weight,
            "chains": [*find_chains(opened, down, question.nested or ()),
                       *find_chains(opened, across, question.nested or ())],
            "codes": {n: listed[n] for n in down if n in listed},
            "rules": {one.name: question.values[one.name] for one in fields(SensitivityRules)},
        }
        for down, across in asked
    ]  # fmt: skip
    earlier = [] if against is None else read_register(against)
    missing = 0 if magnitude is None else opened.column(magnitude).null_count()
    how_many = f"{missing:,} records have" if missing >= FEW else "A few records have"
    notes = (f"{how_many} no value of {magnitude!r} and are left out",) if missing else ()
    try:
        tables_ = _gathered(opened, question, entries, earlier)
        made = _published(tables_, question.replace(whole=whole and tables_.made.is_count), notes)
    except ImpossibleError as error:
        helped = _remedies(opened, question, entries, earlier)
        said = f"{error.problems[0]} {helped or 'Nothing that was tried helps: group categories.'}"
        raise OptionError(Problem(said)) from None
    made = [
        replace(one, entry={**entry, "cells": one.cells})
        for one, entry in zip(made, entries, strict=True)
    ]
    return replace(made[0], others=tuple(made[1:]), earlier=earlier)


def _file_problems(question: Question) -> list[str]:
    """Say what is wrong with the files that options name."""
    problems: list[str] = []
    for name, read in (("hierarchy", read_code_list), ("against", read_register)):
        if isinstance(path := question.values[name], str):
            try:
                read(path)
            except InputError as error:
                problems += error.problems
    return problems


def _gathered(
    data: Microdata,
    question: Question,
    entries: Sequence[Mapping[str, Any]],
    earlier: Sequence[Mapping[str, Any]],
) -> _Tables:
    """Make the tables that are asked for and those published before, and link them."""
    keys = None
    if question.protect == "cell-key":
        keys = record_keys(data, question.seed, question.record_id)
    tables, unsafe, rules = [], [], []
    for entry in (*entries, *earlier):
        magnitude, weight = entry["magnitude"], entry["weight"]
        rule = SensitivityRules(**entry["rules"])
        made = cross(
            data, rows=tuple(entry["rows"]), cols=tuple(entry["cols"]),
            axes=axes_of(data, [tuple(one) for one in entry["chains"]], entry["codes"]),
            contributions=None if magnitude is None else numbers(data, magnitude),
            weights=None if weight is None else data.weights(weight),
            magnitude=magnitude, weight=weight, deepest=rule.deepest, keys=keys,
        )  # fmt: skip
        hidden = question.hidden_zeros or question.protect in ALL_CELLS
        tables.append(made)
        unsafe.append(find_unsafe(made, rule, hidden_zeros=hidden))
        rules.append(rule)
    linked = Linked.of(tables)
    fixed, forced = np.zeros((2, linked.size), dtype=bool)
    for number, entry in enumerate(earlier):
        place, made = linked.places[len(entries) + number], tables[len(entries) + number]
        shown = published_values(entry, made, number + 1)
        fixed[place[~np.isnan(shown)]] = True
        forced[place[np.isnan(shown)]] = True
    totals = zip(tables[: len(entries)], unsafe, strict=False)
    for made, found in totals if question.protect == "suppress" else ():
        if int(made.counts[-1]) < question.threshold:
            raise OptionError(
                Problem(
                    "{threshold} must be at most the number of records that contribute to the "
                    "table: there is nothing in it that could be shown."
                )
            )
        if question.total_known and found.cells[-1]:
            raise ImpossibleError(
                "the grand total is itself unsafe by the rules, and outsiders know it."
            )
    return _Tables(linked, tuple(unsafe), tuple(rules), len(entries), fixed, forced & ~fixed)


def _remedies(
    data: Microdata,
    question: Question,
    entries: Sequence[Mapping[str, Any]],
    earlier: Sequence[Mapping[str, Any]],
) -> str:
    """Return the changes that were tried and make a table possible, in words."""
    # By kind of change, what is tried in turn until one helps.
    kinds: list[list[tuple[str, dict[str, Any], Microdata]]] = []
    pools: list[tuple[str, dict[str, Any], Microdata]]
    suppresses = question.protect == "suppress"
    for name in (*(question.rows or ()), *(question.cols or ())) if suppresses else ():
        sizes, pools = np.bincount(data.codes(name).values), []
        for least in (3, 5, 10, 20, 50):
            if 1 < (sizes < least).sum() < len(sizes) - 1:
                text = data.column(name).cast(pl.String).to_frame(name)
                few = pl.col(name).is_not_null() & (pl.len().over(name) < least)
                column = text.select(
                    pl.when(few).then(pl.lit("pooled")).otherwise(name).alias(name)
                )
                pooled = data.replace(frame=data.frame.with_columns(column[name]))
                words = f"pool categories of {name!r} with fewer than {least} records "
                pools.append((f"{words}(--derive NAME=pool({name},{least}))", {}, pooled))
        kinds.append(pools)
    largest, percent = question.noise or NOISE[0], question.noise_percent
    for words, changes, is_open in (
        ("set {{total_known}} to false, if outsiders do not know the grand total",
         [{"total_known": False}], suppresses and question.total_known),
        ("set {{hidden_zeros}}, if nobody knows which cells are empty",
         [{"hidden_zeros": True}], suppresses and not question.hidden_zeros),
        ("round to {0[base]:g} ({{protect}} 'round', {{base}} {0[base]:g})",
         [{"protect": "round", "rounding": "nearest", "base": float(base)}
          for base in (5, 10, 20, 50, 100)
          if suppresses or base > question.base],
         not earlier and question.protect in ("suppress", "round")),
        ("raise {{noise}} to {0[noise]}", [{"noise": n * largest} for n in (2, 4, 8)],
         question.protect == "cell-key" and question.magnitude is None),
        ("raise {{noise_percent}} to {0[noise_percent][0]:g},{0[noise_percent][1]:g}",
         [{"noise_percent": (n * percent[0], n * percent[1])}
          for n in (2, 4) if n * percent[1] <= 100],
         question.protect == "cell-key" and question.magnitude is not None),
        ("suppress cells instead ({{protect}} 'suppress')",
         [{"protect": "suppress"}], not suppresses),
    ):  # fmt: skip
        kinds.append([(words.format(one), one, data)
                      for one in changes if is_open])  # fmt: skip
    helped = []
    for tries in kinds:
        for words, change, file in tries:
            changed = question.replace(seconds=5.0, **change)
            try:
                tables = _gathered(file, changed, entries, earlier)
                whole = changed.whole and tables.made.is_count
                _published(tables, changed.replace(whole=whole), ())
            except (OptionError, RunError):
                continue
            helped.append(words)
            break
    return f"Tried, and each of these helps: {'; '.join(helped)}." if helped else ""


def _published(tables: _Tables, question: Question, notes: tuple[str, ...]) -> list[ProtectedTable]:
    """Protect tables and audit them."""
    linked = tables.linked
    if question.protect == "cell-key":
        each = [perturbed(made, question) for made in linked.tables]
        shown, up, down = (np.asarray(linked.joined(one[i] for one in each)) for i in range(3))
        pattern, more = None, each[0][4]
    elif question.protect == "none":
        shown, pattern, more = linked.values, None, ()
        up = down = np.zeros(linked.size)
    else:
        protect = rounded if question.protect == "round" else suppressed
        shown, up, down, pattern, more = protect(tables, question)
    audited = tables.unsafe_cells | np.isnan(shown)
    large = audited.sum() * linked.size > MOST_AUDITED
    if question.protect == "cell-key":
        *more_published, inside = more
        notes, more = (*notes, *more_published), (inside,)
        if large:
            audited[:] = False
            more += ("What can be derived from sums was not computed: the table is too large",)
    if large and question.protect == "suppress" and linked.network is None:
        wanted = []
        for side, name in (1, "upper"), (-1, "lower"), (1, "sliding"), (-1, "sliding"):
            levels = tables.levels(name)
            cells = np.flatnonzero(levels)
            one = np.ones(len(cells))
            wanted.append((cells, side * one, levels[cells], one == (name == "sliding")))
        all_wanted = Wanted(*map(np.concatenate, zip(*wanted, strict=True)))
        # Attacked by programs over blocks, over several of these, and over the whole.
        blocks = linked.blocks()
        wider = [np.unique(np.concatenate(blocks[i : i + 6])) for i in range(0, len(blocks), 6)]
        scopes = [blocks, wider, [np.arange(linked.size)]]
        below, above = prove(Programs(linked.matrix, question.whole), all_wanted, up, down, scopes)
        low, high = linked.values - below, linked.values + above
        more += ("Intervals of this large table are at least as wide as shown, perhaps wider",)
    else:
        # In plain one-way and two-way tables of counts the bounds are whole by themselves.
        plain = len(linked.tables) == 1 and len(tables.made.shape) < 3 and tables.made.is_plain
        low, high = intervals(
            linked.matrix, linked.values, up, down, whole=question.whole and not plain,
            only=audited,
        )  # fmt: skip
    if question.whole:
        low, high = np.ceil(low - 1e-6) + 0.0, np.floor(high + 1e-6)  # no "-0"
    said = tuple(dict.fromkeys(notes + more))
    base = question.base if question.protect == "round" else None
    found = []
    for number in range(tables.new):
        made, place = linked.tables[number], linked.places[number]
        audit = TableAudit(
            made, tables.rules[number], tables.unsafe[number], question.protect, shown[place],
            low[place], high[place], pattern, said,
        )  # fmt: skip
        _require_safe(audit, question)
        found.append(ProtectedTable.of(audit, question.protect, base, notes))
    return found


def _require_safe(audit: TableAudit, question: Question) -> None:
    """Refuse a table in which an unsafe cell is not as uncertain as asked."""
    if audit.safe or question.protect == "none":
        return
    if question.protect == "suppress":
        raise RunError(
            "the audit found a suppressed cell that is not as uncertain as asked: the solver was "
            "not exact enough. No table was written. Group categories, or round."
        )
    if question.protect == "round":
        raise ImpossibleError(
            f"rounding to {question.base:g} leaves {audit.figures.narrow:,} unsafe cells too "
            f"certain: what was rounded can be worked out."
        )
    raise ImpossibleError(
        f"with this noise {audit.figures.narrow:,} unsafe cells can be worked out from the others, "
        f"by whoever knows the largest noise."
    )
