"""How exposed the records of a file are on a key: cells, RP and CR.

A cell is a distinct pattern of the key, f the number of its records. RP(c) is the share of
records with f < c, CR the number of cells over the number of records (Lin & Garin; El Emam's
two metrics when the target is known to be in the file).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core import shared
from keyhole.core.kinds import Columns
from keyhole.core.marks import (
    COUNT,
    HIDDEN,
    PUBLIC,
    SPREAD,
    WHEN_SET,
    Also,
    Named,
    Share,
    When,
    figure,
)
from keyhole.core.notes import Note
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import CommandOption, Names, scenario_problems, sensitive_problems
from keyhole.core.tables import Table
from keyhole.engines import Records
from keyhole.engines.choose import backend_of, engine_notes, engine_of, local_engine
from keyhole.engines.opening import open_for
from keyhole.engines.protocol import Cells
from keyhole.engines.storage import MEMORY
from keyhole.errors import OptionError
from keyhole.exposure.attributes_cells import ToldColumn, told_columns, told_tables
from keyhole.exposure.dispersion import PopulationModel, model_population
from keyhole.exposure.fix import Fixes, cheapest_fix
from keyhole.exposure.loglinear_models import pattern_counts
from keyhole.exposure.measures import MEASURES
from keyhole.exposure.population import Approximation, PopulationRisk, measure_population
from keyhole.exposure.regrouping import called_by, groups_of, unnamed_groups
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, drawn_by, share, tables_of

# The sizes at which exposure is always told, beside the cutoff asked for.
AT_RISK_BELOW = (2, 3, 5, 10)
# What a record takes, about, while the risk in the population is estimated.
POPULATION_BYTES = 160
POLICIES = {
    "own": "a missing key is a category of its own",
    "wildcard": "a missing key matches every value, both ways (the less cautious reading)",
    "drop": "records with a missing key are not counted",
}


class CellSizes:
    """Gives the size of each record's cell, found when first asked for; a pickle has no more."""

    def __init__(self, find: Callable[[], Ints]) -> None:
        self._find = find

    def __call__(self) -> Ints:
        """Return the size of each record's cell, in the order of the file."""
        found = self._find()
        self._find = found.view
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return CellSizes, (self().view,)


@dataclass(frozen=True, slots=True, repr=False)
class Exposure(Result):
    """Exposure of a file on one key.

    `sizes` are cell sizes and `counts` how many records lie in cells of that size; `each` gives the
    size of each record's cell, in the order of the file (0: not counted, under `missing="drop"`),
    and is None where the records are on Spark; see `f`. `unestimated` says why `population`, though
    asked for, is None. Beside it may stand what the key tells of `sensitive` columns, the cheapest
    `fix`, and the `key` and `identification` of a scenario.
    """

    keys: Annotated[tuple[str, ...], PUBLIC]
    cutoff: Annotated[int, PUBLIC]
    missing: Annotated[Literal["own", "wildcard", "drop"], PUBLIC]
    records: Annotated[int, COUNT, PUBLIC]
    complete: Annotated[int, COUNT, "Records that were counted."]
    cells: int
    uniques: Annotated[int, COUNT, "Records alone in their cell."]
    rp: Annotated[float, Share("records"), PUBLIC, "Share of records in cells below the cutoff."]
    cr: Annotated[float, "Cells over records; under wildcard the mean of 1/f."]
    at_risk: Annotated[Mapping[int, int], Named("at_risk_records"), COUNT]
    measures: Annotated[Mapping[str, Any], SPREAD]
    notes: tuple[str, ...]
    sizes: Annotated[tuple[int, ...], HIDDEN] = ()
    counts: Annotated[tuple[int, ...], HIDDEN] = ()
    each: Annotated[CellSizes | None, HIDDEN] = None
    population: Annotated[PopulationRisk | None, When("estimates_population")] = None
    unestimated: Annotated[str, WHEN_SET] = ""
    by: Annotated[str | None, WHEN_SET] = None
    groups: Annotated[tuple[Group, ...], When("by")] = ()
    name_small_groups: Annotated[bool, HIDDEN] = False
    engine: str = "memory"
    sensitive: Annotated[Mapping[str, ToldColumn] | None, WHEN_SET] = None
    scenario: Annotated[str | None, WHEN_SET] = None
    identification: Annotated[Any, WHEN_SET] = None
    key: Annotated[Any, WHEN_SET] = None
    fix: Annotated[Fixes | None, WHEN_SET] = None

    @property
    @figure(Named("at_risk"), Share("records"))
    def at_risk_shares(self) -> dict[int, float]:
        """The share of records in cells smaller than each of some sizes."""
        return {cutoff: count / self.records for cutoff, count in self.at_risk.items()}

    @property
    def estimates_population(self) -> bool:
        """Whether the risk in the population was asked for."""
        return self.population is not None or bool(self.unestimated)

    @property
    def f(self) -> Ints:
        """The size of each record's cell, in the order of the file."""
        if self.each is None:
            raise OptionError(
                "engine must be memory or disk for the size of every record's cell. Got 'spark' "
                "instead: attach_sizes of keyhole.spark.data adds it to the records "
                "where they are."
            )
        return self.each()

    def rp_at(self, cutoff: int) -> float:
        """Return RP at any cutoff."""
        at = sum(c for s, c in zip(self.sizes, self.counts, strict=True) if s < cutoff)
        return at / self.records

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record, in the order of the file: `f`, and `F` and `risk` if known."""
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
            *(
                [f"records in cells smaller than {c}", share(k / self.records)]
                for c, k in self.at_risk.items()
            ),
            *([m.label, share(self.measures[m.name])] for m in MEASURES.values()),
        ]
        notes = [f"Missing values: {POLICIES[self.missing]}.", *self.notes]
        out = [Table("Exposure on " + ", ".join(self.keys), ["figure", "value"], rows, notes)]
        out += tables_of(self.population)
        out += [self._group_table()] if self.groups else []
        out += told_tables(self.sensitive, self.cutoff) if self.sensitive else []
        return [*out, *tables_of(self.identification, self.key, self.fix)]

    def _group_table(self) -> Table:
        least = 0 if self.name_small_groups else self.cutoff
        small = [g.exposure for g in self.groups if g.exposure.records < least]
        shown = [(g.label, [g.exposure]) for g in self.groups if g.exposure.records >= least]
        shown += [(f"({len(small)} smaller)", small)] if small else []
        rows = []
        for label, some in shown:  # the shares are those of all their records
            records, uniques = sum(e.records for e in some), sum(e.uniques for e in some)
            rp, cr = (sum(getattr(e, x) * e.records for e in some) / records for x in ("rp", "cr"))
            rows.append([label, f"{records:,}", f"{uniques:,}", share(rp), share(cr)])
        notes = [unnamed_groups(self.cutoff)] if small else []
        return Table(f"By {self.by}", ["group", "records", "uniques", "RP", "CR"], rows, notes)

    plot = drawn_by("exposure.charts.exposure_chart", "Draw the cell sizes and RP by cutoff.")


@dataclass(frozen=True, slots=True)
class Group:
    """One group of records and its exposure."""

    label: Annotated[str, Named("group")]
    exposure: Annotated[Exposure, SPREAD]


@documented
def risk(
    data: Any,
    *,
    keys: shared.KeyColumns = None,
    scenario: shared.ScenarioOption = None,
    store: shared.StoreOption = None,
    target: shared.TargetOption = None,
    undecided: shared.UndecidedOption = False,
    cutoff: shared.Cutoff = 3,
    missing: shared.MissingOption = "own",
    weight: shared.Weight = None,
    fraction: shared.Fraction = None,
    household: shared.Household = None,
    by: shared.By = None,
    name_small_groups: shared.NameSmallGroups = False,
    sensitive: Annotated[
        Names | None,
        CommandOption(
            "Sensitive columns: for each, the share of records in cells with one value is given "
            "beside RP, and the levels of the keys behind it.",
            kind=Columns("sensitive"),
        ),
    ] = None,
    limit: Annotated[
        float | None,
        Option(
            "The highest acceptable RP; where it is exceeded, the cheapest change of one key that "
            "meets it is named.",
            low=0,
            high=1,
        ),
    ] = None,
    approximation: Annotated[
        Approximation,
        Option("The individual risk: `exact`, or `sdcmicro` for that program's approximation."),
    ] = "exact",
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Annotated[Exposure, Also("keyhole.exposure.scenarios.ScenarioComparison")]:
    """Measure how exposed the records are on a key.

    RP is the share of records in cells smaller than the cutoff, CR the number of cells over the
    number of records. Several scenarios are compared (in Python: `ScenarioComparison`).

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
    question = bind(risk, locals())
    needs = "the cheapest fix (limit)" if question.limit is not None else ""
    if question.missing == "wildcard":
        needs = "missing values that match everything (wildcard)"
    elif (weight, fraction, household) != (None, None, None):
        needs = "the risk in the population"
    opened: Any = open_for(question, data, needs_values_for=needs)
    if weight is not None:
        opened.weights(weight)  # says what is wrong with them
    if not question.scenario:
        return _whole(opened, question)
    from keyhole.environment.scenarios.recoding import scenario_keys

    chosen = scenario_keys(question, opened)
    if len(chosen) > 1:
        from keyhole.exposure.scenarios import compare_scenarios

        return compare_scenarios(  # type: ignore[return-value]
            opened,
            chosen,
            cutoff=cutoff,
            weight=weight,
            fraction=fraction,
            sensitive=question.sensitive,
        )
    (key,) = chosen
    recoded, question = key.recode(opened), question.replace(keys=key.keys)
    found = _whole(recoded, question)
    return replace(
        found,
        scenario=key.name,
        notes=(Note("exposure.scenario", name=key.name), *found.notes),
        identification=key.identification(found) if hasattr(key, "identification") else None,
        key=getattr(key, "mapping", None),
    )


def risk_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `risk` that depend on each other."""
    yield from scenario_problems(question, several=True)
    yield from sensitive_problems(question, question.keys)
    if question.weight is not None and question.fraction is not None:
        yield Problem("{weight} and {fraction} both give the population. Give one of them.")
    for name in ("limit", "sensitive"):
        if question.values[name] is not None and question.missing != "own":
            needs = f"{{{name}}} needs {{missing}} to be 'own', the only reading it supports. "
            got = "Got {0!r} instead: leave one of the two out."
            yield Problem(needs + got, question.missing)
    if len(question.scenario or ()) > 1:
        single = ("missing", "household", "by", "name_small_groups", "limit", "approximation")
        wrong = [name for name in single if name in question.given()]
        if wrong:
            names = ", ".join(f"{{{name}}}" for name in wrong)
            got = " can only be used with one {scenario}. Got several instead: leave {0} out, or "
            them = "it" if len(wrong) == 1 else "them"
            yield Problem(f"{names}{got}give one scenario at a time.", them)


def _whole(data: Records, question: Question) -> Exposure:
    keys, cutoff, found = question.keys, question.cutoff, _measure(data, question)
    if question.by is not None:  # a model of each group would know less than that of the whole
        groups = tuple(
            Group(label, _measure(part, question, modelled=False))
            for label, part in groups_of(data, question.by)
        )
        small = question.name_small_groups
        found = replace(found, by=called_by(question.by), groups=groups, name_small_groups=small)
    if question.sensitive:  # what is in the key of a scenario is known in it
        names = [n for n in question.sensitive if n not in keys]
        found = replace(found, sensitive=told_columns(data, keys, names, cutoff))
    if question.limit is not None:
        fix = cheapest_fix(data, keys=keys, limit=question.limit, cutoff=cutoff)
        found = replace(found, fix=fix)
    return found


def _measure(data: Records, asked: Question, *, modelled: bool = True) -> Exposure:
    engine = engine_of(data, asked.keys)
    measured = engine.measure(asked.keys, missing=asked.missing)
    found = measured.spectrum
    backend, each = backend_of(data), None
    if backend.is_here and backend.storage is MEMORY:
        each = CellSizes(lambda: engine.measure(asked.keys, missing=asked.missing).sizes())
    elif backend.is_here:  # the folder may be gone by the time they are asked for
        each = CellSizes(measured.sizes().view)
    population, unestimated = _population(data, asked, measured, modelled)
    exposure = Exposure(
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
        measures={},
        notes=engine_notes(data),
        sizes=found.sizes,
        counts=found.counts,
        each=each,
        population=population,
        unestimated=unestimated,
        engine=engine.name,
    )
    measures = {name: measure.compute(exposure) for name, measure in MEASURES.items()}
    exposure = replace(exposure, measures=measures)
    return replace(exposure, notes=(*exposure.notes, *_notes(exposure)))


def _notes(found: Exposure) -> Iterator[str]:
    if found.missing == "wildcard":
        yield "cr is the mean of 1/f; cells counts patterns, a missing value as its own"
    if left := found.records - found.complete:
        yield Note("exposure.left-out", left=left, records=found.records)
    for name, value in found.measures.items():
        if value is None:
            yield f"{name} is null: {MEASURES[name].undefined}"
    if found.unestimated:
        yield f"population is null: {found.unestimated}"


def _population(
    data: Records, asked: Question, measured: Cells, modelled: bool
) -> tuple[PopulationRisk | None, str]:
    """Return the risk in the population where it is asked for, or why there is none."""
    asks = (asked.weight, asked.fraction, asked.household) != (None, None, None)
    if not asks or not backend_of(data).is_here:
        return None, ""
    size = data.records * (POPULATION_BYTES + 8 * len(asked.keys) * modelled)
    backend_of(data).storage.require(size, "estimating the risk in the population")
    if asked.weight is not None and data.column(asked.weight).max() == 0:
        return None, "the weights of these records are all 0"
    weights = None if asked.weight is None else data.weights(asked.weight)
    people = None
    if asked.missing == "wildcard" and weights is not None:
        people = local_engine(data, asked.keys).matched(asked.keys, weights)
    homes = None
    if asked.household is not None:
        codes = data.codes(asked.household)
        homes = codes.values.astype(np.int64)
        if codes.has_missing:  # a record without a household lives alone
            alone = np.flatnonzero(homes == codes.size - 1)
            homes[alone] = codes.size + alone
    model = None
    if modelled and asked.missing == "own" and (asked.weight, asked.fraction) != (None, None):
        model = _model(data, asked, measured.numbers(), weights)
    found = measure_population(
        measured.sizes(),
        cells=measured.numbers(),
        weights=weights,
        fraction=asked.fraction,
        population=people,
        households=homes,
        approximation=asked.approximation,
        model=model,
    )
    return found, ""


def _model(
    data: Records, asked: Question, numbers: Ints, weights: Floats | None
) -> PopulationModel | None:
    """Model population uniques and matches; None where the file is all of the population."""
    each = np.full(data.records, 1 / (asked.fraction or 1)) if weights is None else weights
    cells = pattern_counts(data, asked.keys, numbers)
    # A record stands for itself at the least.
    people = np.maximum(np.bincount(numbers, each) / cells.counts, 1.0)
    if len(asked.keys) < 2 or float((people * cells.counts).sum()) <= data.records * (1 + 1e-9):
        return None
    return model_population(cells, asked.keys, people)
