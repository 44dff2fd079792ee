"""How exposed the records of a file are on a key: cells, RP and CR.

A cell is a distinct pattern of the key, f the number of its records. RP(c) is the share of
records with f < c, CR the number of cells over the number of records (Lin & Garin; El Emam's
two metrics when the target is known to be in the file).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from keyhole.data.keyed import KeyedData
from keyhole.engines import Missing, Records
from keyhole.engines.choose import (
    backend_of,
    engine_notes,
    engine_of,
    local_engine,
    open_keyed,
)
from keyhole.errors import OptionError
from keyhole.exposure.checks import (
    check_cutoff,
    fraction_problems,
    listed,
    one_of,
    problems_of,
    scenario_note,
    small_group_note,
)
from keyhole.exposure.population import Approximation, PopulationRisk, measure_population
from keyhole.exposure.regrouping import groups_of
from keyhole.kernels.arrays import Ints
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["AT_RISK_BELOW", "Exposure", "asked_here", "option_problems", "risk"]


# The sizes at which exposure is always told, beside the cutoff asked for.
AT_RISK_BELOW = (2, 3, 5, 10)

# What a record takes, about, while the risk in the population is estimated.
POPULATION_BYTES = 160

POLICIES = {
    "own": "a missing key is a category of its own",
    "wildcard": "a missing key matches every value, both ways (the less cautious reading)",
    "drop": "records with a missing key are not counted",
}


@dataclass(frozen=True, slots=True, repr=False)
class Exposure(Result):
    """Exposure of a file on one key.

    `sizes` are cell sizes and `counts` how many records lie in cells of that size; `each` has
    the size of each record's cell, in the order of the file (0: not counted, under
    `missing="drop"`), and is None where the records are on Spark; see `f`.
    `unestimated` says why `population`, though asked for, is None.
    """

    keys: tuple[str, ...]
    cutoff: int
    missing: str
    records: int
    complete: int
    cells: int
    uniques: int
    rp: float
    cr: float
    at_risk: Mapping[int, int]
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    each: Ints | None
    population: PopulationRisk | None = None
    unestimated: str = ""
    groups: tuple[Group, ...] = ()
    by: str | None = None
    name_small_groups: bool = False
    engine: str = "memory"
    scenario: str | None = None
    engine_notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as `--json` prints them."""
        out: dict[str, Any] = {
            "records": self.records,
            "complete": self.complete,
            "keys": list(self.keys),
            "missing": self.missing,
            "engine": self.engine,
            "cells": self.cells,
            "uniques": self.uniques,
            "cutoff": self.cutoff,
            "rp": self.rp,
            "cr": self.cr,
            "at_risk": {str(c): count / self.records for c, count in self.at_risk.items()},
            "at_risk_records": {str(c): count for c, count in self.at_risk.items()},
            "highest_risk": self.highest_risk,
            "notes": self._notes(),
        }
        if self.scenario is not None:
            out["scenario"] = self.scenario
        if self.population is not None:
            out["population"] = self.population.to_dict()
        elif self.unestimated:
            out["population"] = None
        if self.by is not None:
            out["by"] = self.by
            out["groups"] = [{"group": g.label, **g.exposure.to_dict()} for g in self.groups]
        return out

    @property
    def highest_risk(self) -> float | None:
        """The largest 1 / f, if any record was counted."""
        return 1 / self.sizes[0] if self.sizes else None

    def _notes(self) -> list[str]:
        notes = [] if self.scenario is None else [scenario_note(self.scenario)]
        notes += self.engine_notes
        if self.missing == "wildcard":
            notes.append("cr is the mean of 1/f; cells counts patterns, a missing value as its own")
        if self.complete < self.records:
            left = self.records - self.complete
            notes.append(
                f"{left:,} records have a missing key and were not counted as at risk or as a "
                f"cell; RP and CR are of all {self.records:,} records"
            )
        if not self.sizes:
            notes.append("highest_risk is null: no record has a complete key")
        if self.unestimated:
            notes.append(f"population is null: {self.unestimated}")
        return notes

    @property
    def f(self) -> Ints:
        """The size of each record's cell, in the order of the file."""
        if self.each is None:
            raise OptionError(
                "engine must be memory or disk for the size of every record's cell. Got 'spark' "
                "instead: attach_sizes of keyhole.spark.data adds it to the records "
                "where they are."
            )
        return self.each

    def rp_at(self, cutoff: int) -> float:
        """Return RP at any cutoff."""
        at = sum(c for s, c in zip(self.sizes, self.counts, strict=True) if s < cutoff)
        return at / self.records

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record, in the order of the file: `f`, and `F` and `risk` if known."""
        import polars as pl

        frame = pl.DataFrame({"f": self.f})
        if self.population is None:
            return frame
        return frame.with_columns(self.population.to_frame().get_columns())

    def tables(self) -> list[Table]:
        """Return the figures as tables."""
        rows = [
            ["records", f"{self.records:,}"],
            ["cells", f"{self.cells:,}"],
            ["uniques", f"{self.uniques:,}"],
            [f"RP({self.cutoff})", share(self.rp)],
            ["CR", share(self.cr)],
            *([f"share with f < {c}", share(k / self.records)] for c, k in self.at_risk.items()),
        ]
        notes = [f"Missing values: {POLICIES[self.missing]}.", *self._notes()]
        out = [Table("Exposure on " + ", ".join(self.keys), ["figure", "value"], rows, notes)]
        if self.population is not None:
            out += self.population.tables()
        if self.groups:
            out.append(self._group_table())
        return out

    def _group_table(self) -> Table:
        least = 0 if self.name_small_groups else self.cutoff
        named = [g for g in self.groups if g.exposure.records >= least]
        pooled = [g.exposure for g in self.groups if g.exposure.records < least]
        rows = [_group_row(g.label, [g.exposure]) for g in named]
        rows += [_group_row(f"({len(pooled)} smaller)", pooled)] if pooled else []
        notes = [small_group_note(self.cutoff)] if pooled else []
        return Table(f"By {self.by}", ["group", "records", "uniques", "RP", "CR"], rows, notes)

    def plot(self) -> altair.TopLevelMixin:
        """Draw the cell sizes and RP by cutoff."""
        from keyhole.exposure.charts import exposure_chart

        return exposure_chart(self)


def _group_row(label: str, exposures: Sequence[Exposure]) -> list[str]:
    """Write one group, or several together; the shares are those of all their records."""
    records = sum(e.records for e in exposures)
    uniques = sum(e.uniques for e in exposures)
    shares = (
        sum(getattr(e, name) * e.records for e in exposures) / records for name in ("rp", "cr")
    )
    return [label, f"{records:,}", f"{uniques:,}", *(share(value) for value in shares)]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of records and its exposure."""

    label: str
    exposure: Exposure


def risk(
    data: Any,
    *,
    keys: Iterable[str] | None = None,
    scenario: KeyedData | None = None,
    cutoff: int = 3,
    missing: Missing = "own",
    weight: str | None = None,
    fraction: float | None = None,
    household: str | None = None,
    by: str | None = None,
    approximation: Approximation = "exact",
    name_small_groups: bool = False,
    engine: Any = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
) -> Exposure:
    """Measure how exposed the records of a file are on a key.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    keys
        What an intruder is assumed to know.
    scenario
        Instead of keys: the key of a scenario, to whose detail the file is recoded; see
        `keyhole.environment.scenarios.recoding.scenario_key`.
    cutoff
        Records in cells smaller than this are at risk.
    missing
        What a missing key means: `own` (a category of its own), `wildcard` (it matches every
        value, both ways) or `drop` (the record is not counted).
    weight, fraction
        A column with the number of people each record stands for, or the share of the
        population that was sampled: then the risk in the population is estimated too.
    household
        A column that names the household: risk that any member is re-identified.
    by
        A column whose categories are measured one by one as well.
    approximation
        `exact`, or `sdcmicro` for that program's approximation of the individual risk.
    name_small_groups
        Whether the tables name groups of fewer records than the cutoff, which may be people.
    engine, memory, work_folder, master
        Where to count: `memory`, `disk`, `spark` or `auto`, what the disk engine may use
        (`"1GB"`) and where it makes its files, and where Spark runs (`"local[*]"`); see
        `keyhole.engines.choose.open_records`.

    Notes
    -----
    RP(c) = share of records with f < c; CR = cells / n, and under `wildcard` the mean of
    1 / f. Under `drop` the denominator of both stays n. Lin & Garin; El Emam (2011).

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 41]})
    >>> exposure = risk(people, keys=["sex", "age"])
    >>> exposure.cells, exposure.uniques, exposure.rp, exposure.cr
    (3, 2, 1.0, 0.75)
    """
    data, keys = open_keyed(
        data, keys, scenario, engine=engine, memory=memory, work_folder=work_folder,
        master=master, here_for=asked_here(missing, weight, fraction, household),
    )  # fmt: skip
    names = listed(keys, "keys")
    question = _Question(names, cutoff, missing, weight, fraction, household, approximation)
    _check(data, question, by)
    whole = _measure(data, question)
    if scenario is not None:
        whole = dataclasses.replace(whole, scenario=scenario.name)
    if by is None:
        return whole
    groups = [Group(label, _measure(part, question)) for label, part in groups_of(data, by)]
    return dataclasses.replace(
        whole, by=by, groups=tuple(groups), name_small_groups=name_small_groups
    )


def asked_here(
    missing: Any, weight: str | None, fraction: float | None, household: str | None
) -> str:
    """Say what is asked that needs the records here."""
    if missing == "wildcard":
        return "missing values that match everything (--missing wildcard)"
    given = any(option is not None for option in (weight, fraction, household))
    return "the risk in the population" if given else ""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a file, or of each of its groups."""

    keys: tuple[str, ...]
    cutoff: int
    missing: Missing
    weight: str | None
    fraction: float | None
    household: str | None
    approximation: Approximation


def option_problems(
    *,
    cutoff: Any = 3,
    missing: Any = "own",
    weight: str | None = None,
    fraction: Any = None,
    approximation: Any = "exact",
) -> list[str]:
    """Return what is wrong with the options of `risk`, whatever the data."""
    problems = check_cutoff(cutoff) + one_of("missing", missing, get_args(Missing))
    problems += one_of("approximation", approximation, get_args(Approximation))
    if weight is not None and fraction is not None:
        problems.append("weight and fraction both tell the population: give one of them.")
    return problems + fraction_problems(fraction)


def _check(data: Records, asked: _Question, by: str | None) -> None:
    problems = option_problems(
        cutoff=asked.cutoff,
        missing=asked.missing,
        weight=asked.weight,
        fraction=asked.fraction,
        approximation=asked.approximation,
    )
    if not asked.keys:
        problems.append("keys must name at least one column. Got none instead.")
    columns = {"weight": asked.weight, "household": asked.household, "by": by}
    problems += problems_of(data, asked.keys, "key")
    for purpose, name in columns.items():
        problems += [] if name is None else problems_of(data, [name], purpose)
    if problems:
        raise OptionError(problems)
    data.require_records()
    if asked.weight is not None:
        data.weights(asked.weight)  # says what is wrong with them


def _measure(data: Records, asked: _Question) -> Exposure:
    engine = engine_of(data, asked.keys)
    measured = engine.measure(asked.keys, missing=asked.missing)
    found = measured.spectrum
    f = measured.sizes() if backend_of(data).is_here else None
    population, unestimated = _population(data, asked, f, measured.numbers)
    return Exposure(
        keys=asked.keys,
        cutoff=asked.cutoff,
        missing=asked.missing,
        records=data.records,
        complete=found.counted,
        cells=found.cells,
        uniques=found.below(2),
        rp=found.below(asked.cutoff) / data.records,
        cr=found.mean_risk(data.records)
        if asked.missing == "wildcard"
        else found.cells / data.records,
        at_risk={c: found.below(c) for c in AT_RISK_BELOW},
        sizes=found.sizes,
        counts=found.counts,
        each=f,
        population=population,
        unestimated=unestimated,
        engine=engine.name,
        engine_notes=engine_notes(data),
    )


def _population(
    data: Records,
    asked: _Question,
    f: Ints | None,
    numbers: Callable[[], Ints],
) -> tuple[PopulationRisk | None, str]:
    """Return the risk in the population where it is asked for, or why there is none."""
    if f is None or (asked.weight, asked.fraction, asked.household) == (None, None, None):
        return None, ""
    size = data.records * POPULATION_BYTES
    backend_of(data).storage.require(size, "estimating the risk in the population")
    if asked.weight is not None and data.column(asked.weight).max() == 0:
        return None, "the weights of these records are all 0"
    weights = None if asked.weight is None else data.weights(asked.weight)
    people = None
    if asked.missing == "wildcard" and weights is not None:
        people = local_engine(data, asked.keys).matched(asked.keys, weights)
    found = measure_population(
        f,
        cells=numbers(),
        weights=weights,
        fraction=asked.fraction,
        population=people,
        households=None if asked.household is None else _households(data, asked.household),
        approximation=asked.approximation,
    )
    return found, ""


def _households(data: Records, name: str) -> Ints:
    """Number the households; a record without one lives alone."""
    codes = data.codes(name)
    homes = codes.values.astype(np.int64)
    if codes.has_missing:
        alone = np.flatnonzero(homes == codes.size - 1)
        homes[alone] = codes.size + alone
    return homes
