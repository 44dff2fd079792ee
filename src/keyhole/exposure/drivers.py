"""Drivers of risk: the levels that put records into small cells, and what could be done about them.

Lin & Garin end so: "Regrouping variables or isolating subpopulations with large estimated odds
ratios of high risk cells (with small cell size) will also prepare data better suitable for the
variables selection methods."
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core import shared
from keyhole.core.kinds import Columns
from keyhole.core.marks import COUNT, HIDDEN, WHEN_SET, Share
from keyhole.core.names import plural
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import CommandOption, Names, sensitive_problems
from keyhole.core.tables import Table
from keyhole.engines import Tally
from keyhole.engines.choose import engine_notes, engine_of
from keyhole.engines.opening import open_for
from keyhole.exposure.odds import MOST_LEVELS, Fit, OddsRatio, crude_odds, fit_logistic, level_odds
from keyhole.exposure.regrouping import (
    Apart,
    LevelGroups,
    Regrouping,
    group_levels,
    regroupings,
    set_apart,
    summed,
)
from keyhole.kernels.arrays import Flags, Ints, number_rows
from keyhole.results import Result, drawn_by, share

MODEL = "logistic, main effects, Firth's penalty"
UNADJUSTED = "adjusted odds ratios are null for levels that follow from other variables"
SHOWN = 20
MOVES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Driver:
    """One level of a variable, and how it bears on falling into a small cell."""

    variable: str
    level: str
    records: Annotated[int, COUNT]
    at_risk: Annotated[int, COUNT]
    crude: OddsRatio | None
    adjusted: OddsRatio | None
    place: Annotated[int, HIDDEN]


def ratio_text(value: float) -> str:
    """Write an odds ratio with as many digits as it deserves."""
    if value >= 1e5 or 0 < value < 1e-3:
        return f"{value:.0e}"
    if value >= 100:
        return f"{float(f'{value:.2e}'):,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _written(odds: OddsRatio | None) -> list[str]:
    if odds is None:
        return ["not estimable", ""]
    return [ratio_text(odds.value), f"{ratio_text(odds.low)} to {ratio_text(odds.high)}"]


@dataclass(frozen=True, slots=True, repr=False)
class Drivers(Result):
    """What puts records into small cells.

    `levels` are in the order of the variables; `regroupings` and `apart` from the largest gain
    in RP on. Without adjusted odds ratios `model` is None, and `notes` says why. With a `sensitive`
    column, at risk are the records in cells with one value of it, whose share is `homogeneous`.
    """

    records: Annotated[int, COUNT]
    engine: str
    keys: tuple[str, ...]
    variables: tuple[str, ...]
    cutoff: int
    rp: Annotated[float, Share("records")]
    cr: float
    confidence: float
    model: str | None
    levels: tuple[Driver, ...]
    regroupings: tuple[Regrouping, ...]
    apart: tuple[Apart, ...]
    notes: tuple[str, ...]
    name_small_groups: Annotated[bool, HIDDEN] = False
    sensitive: Annotated[str | None, WHEN_SET] = None
    homogeneous: Annotated[float | None, WHEN_SET, Share("records")] = None

    @property
    def share_at_risk(self) -> float:
        """The share of all records that are at risk."""
        return self.rp if self.homogeneous is None else self.homogeneous

    @property
    def cells_at_risk(self) -> str:
        """The cells whose records are at risk, in words."""
        if self.sensitive is None:
            return f"smaller than {self.cutoff:,}"
        return f"with one value of {self.sensitive}"

    def keeping(self, stays: Callable[[Driver | Regrouping | Apart], bool]) -> Drivers:
        """Return the result without some of its levels and of what could be done about them."""
        levels = tuple(filter(stays, self.levels))
        told = any(one.adjusted is None for one in levels)
        return replace(
            self,
            levels=levels,
            regroupings=tuple(filter(stays, self.regroupings)),
            apart=tuple(filter(stays, self.apart)),
            notes=tuple(note for note in self.notes if note != UNADJUSTED or told),
        )

    def shown(self) -> list[Driver]:
        """Return the levels that may be named, the largest odds ratio first."""
        least = 0 if self.name_small_groups else self.cutoff
        named = [d for d in self.levels if d.records >= least and d.crude is not None]
        return sorted(named, key=lambda d: -d.crude.value if d.crude else 0.0)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a level, in the order of the variables."""
        names = ("variable", "level", "records", "at_risk")
        frame = pl.DataFrame({name: [getattr(d, name) for d in self.levels] for name in names})
        for which in ("crude", "adjusted"):
            for name, figure in {"odds_ratio": "value", "low": "low", "high": "high"}.items():
                values = [getattr(getattr(d, which), figure, None) for d in self.levels]
                column = pl.Series(f"{which}_{name}", values, dtype=pl.Float64)
                frame = frame.with_columns(column)
        return frame

    def tables(self) -> list[Table]:
        """Return the levels with the largest odds ratios, and what could be done."""
        regroupings = [
            [m.variable, self._label(m.variable, m.level),
             "one category" if m.other is None else f"with {self._label(m.variable, m.other)}",
             share(m.rp), share(m.cr), share(m.gain), share(m.price)]
            for m in self.regroupings[:MOVES_SHOWN]
            if m.gain > 0
        ]  # fmt: skip
        apart = [
            [a.variable, self._label(a.variable, a.level), f"{a.records:,}", share(a.rest_rp),
             share(a.rest_cr), share(a.own_rp), share(a.own_cr), share(a.gain)]
            for a in self.apart[:MOVES_SHOWN]
            if a.gain > 0
        ]  # fmt: skip
        merged = ["variable", "level", "merged", "RP", "CR", "gain in RP", "price in CR"]
        files = ["variable", "level", "records", "RP of the rest", "CR of the rest",
                 "RP of its own file", "CR of it", "gain in RP"]  # fmt: skip
        moves = [
            Table("Effect of regrouping", merged, regroupings),
            Table("Effect of releasing a subpopulation separately", files, apart),
        ]
        return [self._odds_table(), *(table for table in moves if table.rows)]

    def _odds_table(self) -> Table:
        interval = f"{self.confidence:.0%} interval"
        columns = ["variable", "level", "records", "at risk", "odds ratio", interval, "adjusted",
                   interval]  # fmt: skip
        rows = [
            [d.variable, d.level, f"{d.records:,}", share(d.at_risk / d.records),
             *_written(d.crude), *_written(d.adjusted)]
            for d in self.shown()[:SHOWN]
        ]  # fmt: skip
        told = f"RP({self.cutoff}) is {share(self.rp)}, CR {share(self.cr)}."
        if self.sensitive is not None:
            told = f"At risk: {share(self.homogeneous)} in cells {self.cells_at_risk}. {told}"
        notes = [
            f"{told} Each level is compared with the rest of its variable; adjusted: for the other "
            f"variables."
        ]
        small = [d.records for d in self.levels if d.records < self.cutoff]
        if small and not self.name_small_groups:
            one, template = len(small) == 1, "{0} of fewer than {1} records ({2}) {3} not named; "
            counts = plural(len(small), "level"), self.cutoff, plural(sum(small), "record")
            words = ("is", "it") if one else ("are", "them")
            notes.append(Problem(template + "{name_small_groups} names {4}.", *counts, *words))
        notes += self.notes
        return Table(f"What puts records at risk on {', '.join(self.keys)}", columns, rows, notes)

    def _label(self, variable: str, level: str) -> str:
        named = (d.records for d in self.levels if (d.variable, d.level) == (variable, level))
        hidden = min(named) < self.cutoff and not self.name_small_groups
        return f"(fewer than {self.cutoff} records)" if hidden else level

    plot = drawn_by(
        "exposure.charts.forest_chart", "Draw the odds ratios with their intervals: a forest plot."
    )


@documented
def drivers(
    data: Any,
    *,
    keys: shared.RequiredKeys,
    cutoff: shared.Cutoff = 3,
    variables: Annotated[
        Names | None,
        Option(
            "The columns whose levels are compared; the keys by default. Only keys are regrouped.",
            kind=Columns("variable"),
        ),
    ] = None,
    level: Annotated[
        float, Option("The confidence level of the intervals.", above=0, below=1)
    ] = 0.95,
    most_levels: Annotated[
        int, Option("Measures and dates with more levels than this are grouped into bands.", low=2)
    ] = 40,
    name_small_groups: Annotated[
        bool,
        Option(
            "Also name levels with fewer records than the cutoff. They may be individuals.",
            surfaces="c",
        ),
    ] = False,
    sensitive: Annotated[
        str | None,
        CommandOption(
            "A sensitive column: at risk are then the records in cells with one value of it, "
            "instead of those in small cells, and nothing is regrouped.",
            column="sensitive",
        ),
    ] = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Drivers:
    """Find the levels that put records at risk, and what to do.

    Each level has its odds ratio of lying in a small cell, or in one with a single value of a
    sensitive column. The merges of levels and the subpopulations that lower RP most are listed.

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
    >>> women.variable, women.level, women.records, women.at_risk, women.crude.corrected
    ('sex', 'f', 6, 6, True)
    """
    question = bind(drivers, locals())
    data = open_for(question, data)
    names: tuple[str, ...] = question.keys
    chosen: tuple[str, ...] = question.variables or names
    also = () if sensitive is None else (sensitive,)
    everything = tuple(dict.fromkeys((*names, *chosen, *also)))
    counter = engine_of(data, everything)
    table = counter.patterns(everything)
    held, numbers = table.records, table.numbers(names)
    sizes = summed(numbers, held)
    at_risk = sizes[numbers] < cutoff
    totals = Tally(data.records, len(sizes), int(held[at_risk].sum()))
    homogeneous = None
    if sensitive is not None:
        low, high = np.full(len(sizes), data.codes(sensitive).size), np.zeros(len(sizes), np.int64)
        np.minimum.at(low, numbers, table.codes(sensitive))
        np.maximum.at(high, numbers, table.codes(sensitive))
        at_risk = (low == high)[numbers]
        homogeneous = int(held[at_risk].sum()) / data.records
    groupings = []
    for name in chosen:
        codes = data.codes(name)
        records = summed(table.codes(name), held, codes.size)
        variable = data.variable(name)
        groupings.append(group_levels(variable, codes, most_levels=most_levels, held=records))
    groups = [g.group[table.codes(g.name)] for g in groupings]
    fit, unfitted = _fit(groupings, groups, at_risk, held)
    moves = [
        move
        for grouping in groupings
        if grouping.name in names and sensitive is None
        for move in regroupings(
            totals,
            cutoff,
            table.numbers([name for name in names if name != grouping.name]),
            table.codes(grouping.name),
            grouping,
            held,
        )
    ]
    apart = [
        one
        for grouping, group in zip(groupings, groups, strict=True)
        if sensitive is None
        for one in set_apart(totals, cutoff, numbers, group, held, grouping)
    ]
    levels = tuple(_levels(groupings, groups, at_risk, held, fit, level))
    notes = [*engine_notes(data)]
    if any(one.adjusted is None for one in levels):
        notes.append(f"adjusted odds ratios are null: {unfitted}" if unfitted else UNADJUSTED)
    return Drivers(
        records=totals.records,
        engine=counter.name,
        keys=names,
        variables=chosen,
        cutoff=cutoff,
        rp=totals.rp,
        cr=totals.cr,
        confidence=level,
        model=None if unfitted else MODEL,
        levels=levels,
        regroupings=tuple(sorted(moves, key=lambda m: (-m.gain, m.price))),
        apart=tuple(sorted(apart, key=lambda a: -a.gain)),
        notes=tuple(notes),
        name_small_groups=name_small_groups,
        sensitive=sensitive,
        homogeneous=homogeneous,
    )


def drivers_problems(question: Question) -> Iterator[Problem]:
    """Say whether the sensitive column of `drivers` is also a key."""
    if question.sensitive is not None:
        yield from sensitive_problems(
            question.replace(sensitive=(question.sensitive,)), question.keys
        )


def _fit(
    groupings: Sequence[LevelGroups], groups: Sequence[Ints], at_risk: Flags, held: Ints
) -> tuple[Fit | None, str]:
    """Fit the model on the distinct patterns, or say why there is none."""
    if at_risk.all() or not at_risk.any():
        every = "every record is" if at_risk.any() else "no record is"
        return None, f"{every} at risk, so that there are no odds to compare"
    levels = sum(g.size for g in groupings)
    if levels > MOST_LEVELS:
        return None, f"the variables have {levels:,} levels, more than {MOST_LEVELS:,}"
    number = number_rows(groups, len(at_risk))
    first = np.unique(number, return_index=True)[1]
    records, risky = summed(number, held), summed(number, held * at_risk)
    codes, sizes = [group[first] for group in groups], [g.size for g in groupings]
    fit = fit_logistic(codes, sizes, records, risky)
    return fit, "" if fit is not None else "the model did not converge"


def _levels(
    groupings: Sequence[LevelGroups],
    groups: Sequence[Ints],
    at_risk: Flags,
    held: Ints,
    fit: Fit | None,
    level: float,
) -> Iterable[Driver]:
    records, total = int(held.sum()), int(held[at_risk].sum())
    for place, (grouping, group) in enumerate(zip(groupings, groups, strict=True)):
        counts = summed(group, held, grouping.size)
        risky = summed(group, held * at_risk, grouping.size)
        adjusted = (
            [None] * grouping.size if fit is None else level_odds(fit, place, counts, level=level)
        )
        for g, label in enumerate(grouping.labels):
            a, n = int(risky[g]), int(counts[g])
            two_by_two = [a, n - a, total - a, records - n - (total - a)]
            crude = crude_odds(two_by_two, level=level)
            yield Driver(grouping.name, label, n, a, crude, adjusted[g], g)
