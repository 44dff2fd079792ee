"""Minimal uniques and what they say of each record: SUDA, DIS-SUDA and a risk level.

A record's minimal uniques are the smallest sets of key variables on which nobody else has its
values. What is missing matches nothing and is never part of one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core import shared
from keyhole.core.kinds import Amounts, Number, Place
from keyhole.core.marks import COUNT, HIDDEN, SPREAD, WHEN_SET
from keyhole.core.names import quoted
from keyhole.core.notes import Note
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import SMALLEST_FRACTION, scenario_problems
from keyhole.core.tables import Table
from keyhole.engines.choose import engine_notes, local_engine
from keyhole.engines.memory import Progress, minimal_uniques
from keyhole.engines.opening import open_for
from keyhole.errors import OptionError
from keyhole.exposure import scores
from keyhole.exposure.levels import LevelSummary, levels, summarise_levels
from keyhole.exposure.regrouping import level_label
from keyhole.exposure.scores import MOST_VARIABLES, Contribution, Convention, UniqueSets
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, drawn_by, share, tables_of

# A category is named only if it flags at least this many records, not one or two.
NAMED_FROM = 3
# What the sets that a search keeps may take, at the most.
MOST_BYTES = 2 << 30


@dataclass(frozen=True, slots=True, repr=False)
class MinimalUniques(Result):
    """The minimal uniques of a file, and each record's score, DIS-SUDA and level.

    `score` and `dis_suda` are None where they are not defined; `notes` says why. `sets` holds
    the minimal uniques themselves, by record number; `key` is that of a scenario.
    """

    records: Annotated[int, COUNT]
    keys: tuple[str, ...]
    engine: str
    max_size: int
    cutoff: int
    convention: Convention
    minimal_uniques: int
    records_with_minimal_uniques: Annotated[int, COUNT]
    by_size: Mapping[int, int]
    by_variable: Mapping[str, int]
    score_sum: float | None
    contributions: Mapping[str, Contribution]
    level_summary: Annotated[LevelSummary, SPREAD]
    notes: tuple[str, ...]
    sets: Annotated[UniqueSets, HIDDEN]
    score: Annotated[Floats | None, HIDDEN]
    dis_suda: Annotated[Floats | None, HIDDEN]
    smallest: Annotated[npt.NDArray[np.uint8], HIDDEN]
    level: Annotated[npt.NDArray[np.uint8], HIDDEN]
    key: Annotated[Any, WHEN_SET] = None

    def to_frame(self) -> pl.DataFrame:
        """Return one row a record in the order of the file: score, dis_suda, smallest, level."""
        absent = pl.Series([None] * self.records, dtype=pl.Float64)
        scores = {"score": self.score, "dis_suda": self.dis_suda}
        known = {name: absent if one is None else one for name, one in scores.items()}
        return pl.DataFrame({**known, "smallest": self.smallest, "level": self.level})

    def contribution_frame(self) -> pl.DataFrame:
        """Return one row a variable: its minimal uniques and its share of the scores."""
        held = self.contributions
        percent = [held[name].percent if name in held else None for name in self.keys]
        return pl.DataFrame(
            {"variable": self.keys, "minimal_uniques": list(self.by_variable.values())}
        ).with_columns(pl.Series("percent", percent, dtype=pl.Float64))

    def tables(self) -> list[Table]:
        """Return the figures as tables."""
        by_size = Table(
            f"Minimal uniques on {', '.join(self.keys)} (up to {self.max_size} variables)",
            ["size", "minimal uniques"],
            [[str(k), f"{count:,}"] for k, count in self.by_size.items()],
            self.notes,
        )
        rows = [
            [name, f"{count:,}", share(None if percent is None else percent / 100)]
            for name, count, percent in self.contribution_frame().iter_rows()
        ]
        columns = ["variable", "minimal uniques", "mean share of the score"]
        by_variable = Table("By variable", columns, rows)
        return [by_size, by_variable, *tables_of(self.level_summary, self.key)]

    plot = drawn_by(
        "exposure.charts.contributions_chart",
        "Draw each variable's share of the scores.",
        lambda self: self.contribution_frame(),
    )


@dataclass(frozen=True, slots=True)
class _Factors(Amounts):
    """A number for each of some keys; also a list with one for every key."""

    def fault(self, value: Any) -> str | None:
        if not _is_list(value):
            return Amounts.fault(self, value)
        unfit = any(self.each.fault(item) for item in value)
        return f"for each key {self.each.fault(None)}" if unfit else None

    def settle(self, value: Any) -> Any:
        return tuple(map(float, value)) or {} if _is_list(value) else Amounts.settle(self, value)

    def read(self, text: str) -> Any:
        if "=" in text:
            return Amounts.read(self, text)
        return tuple(map(self.each.read, text.split(",")))

    def write(self, value: Any) -> str:
        if _is_list(value):
            return ",".join(map(self.each.write, value))
        return Amounts.write(self, value)

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:  # noqa: ARG002
        return iter(())  # whether they are keys is checked, and whether keys are columns


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


Factors = Mapping[str, float] | Sequence[float] | None


def _factors(what: str) -> Option:
    text = f"{what}, above 0 to 2; 1 if not named. Used for the risk levels."
    return Option(text, kind=_Factors("key", Number(above=0, high=2)))


FACTORS = ("availability", "identifiability")
"""The options that weigh keys, for the risk levels."""


@documented
def uniques(
    data: Any,
    *,
    keys: shared.KeyColumns = None,
    scenario: shared.ScenarioOption = None,
    store: shared.StoreOption = None,
    target: shared.TargetOption = None,
    max_size: Annotated[
        int | None,
        Option(
            "The largest size of a minimal unique; by default one less than the number of keys, "
            "with the convention `sdcmicro` all of them.",
            low=1,
        ),
    ] = None,
    cutoff: shared.Cutoff = 3,
    fraction: Annotated[
        float | None,
        Option(
            "The share of the population that was sampled, for DIS-SUDA; 0.01 by default, in a "
            "review the fraction that the weights give.",
            low=SMALLEST_FRACTION,
            high=1,
        ),
    ] = None,
    convention: Annotated[
        Convention, Option("How a minimal unique is scored: `guide`, `sdcmicro` or `ihsn`.")
    ] = "guide",
    availability: Annotated[Factors, _factors("How easily an intruder learns keys")] = (),
    identifiability: Annotated[Factors, _factors("How much keys reveal about a person")] = (),
    progress: Progress | None = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> MinimalUniques:
    """Find what makes records unique: SUDA scores and risk levels.

    A minimal unique is a set of keys on which a record is unique and from which no key can be
    left out. The fewer keys it has, the higher the risk of the record. Spark is not supported.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 41]})
    >>> found = uniques(people, keys=["sex", "age"], max_size=1)
    >>> found.smallest.tolist(), found.score.tolist()
    ([0, 0, 0, 1], [0.0, 0.0, 0.0, 1.0])
    """
    question = bind(uniques, locals())
    data = open_for(question, data, needs_values_for="minimal uniques")
    told: list[str] = []
    mapping = None
    if question.scenario:
        from keyhole.environment.scenarios.recoding import scenario_keys

        (key,) = scenario_keys(question, data)
        data, told = key.recode(data), [Note("exposure.scenario", name=key.name)]
        mapping = getattr(key, "mapping", None)
        of_scenario = {"keys": key.keys, "scenario": None, "store": None, "target": None}
        question = bind(uniques, {**question.values, **of_scenario})
        question.require()
    names: tuple[str, ...] = question.keys
    size: int = question.max_size or max(len(names) - (convention != "sdcmicro"), 1)
    columns = [data.codes(name) for name in names]
    counter = local_engine(data, names)
    cells = counter.measure(names)
    _check_work(len(names), size, cells.spectrum.cells)
    f = cells.sizes()
    owner, mask = minimal_uniques(columns, size, progress, counter.storage)
    sets = UniqueSets(owner, mask, records=data.records, variables=len(names), max_size=size)
    weights = np.ones(len(names))
    for name in FACTORS:
        given = question.values[name]
        by_key = [given.get(n, 1.0) for n in names] if isinstance(given, Mapping) else given
        weights *= by_key or 1.0
    level = levels(f, sets, weights=weights, cutoff=cutoff)
    codes = [c.values for c in columns]
    summary = summarise_levels(level, sets, names, codes)
    worst, category = summary.worst_variable, None
    if worst is not None and (summary.worst_category_flags or 0) >= NAMED_FROM:
        category = level_label(data, worst, int(summary.worst_category or 0))
    score, dis, notes = _scored(sets, f, convention, fraction)
    if size < min(3, len(names)):
        notes.append(
            f"sets of more than {size} variables were not searched: records unique only there "
            "are at level low, some of which a search to 3 would call medium"
        )
    smallest = scores.smallest_sizes(sets)
    held = [] if score is None else scores.summarise_contributions(sets, codes, convention)
    by_variable = scores.count_by_variable(sets).tolist()
    return MinimalUniques(
        records=data.records,
        keys=names,
        engine=counter.name,
        max_size=size,
        cutoff=cutoff,
        convention=convention,
        minimal_uniques=len(sets.owner),
        records_with_minimal_uniques=int((smallest > 0).sum()),
        by_size=dict(enumerate(scores.count_by_size(sets).tolist(), 1)),
        by_variable=dict(zip(names, by_variable, strict=True)),
        score_sum=None if score is None else float(score.sum()),
        contributions=dict(zip(names, held, strict=False)),
        level_summary=replace(summary, worst_category=category),
        notes=(*told, *engine_notes(data), *notes, *summary.notes),
        sets=sets,
        score=score,
        dis_suda=dis,
        smallest=smallest,
        level=level,
        key=mapping,
    )


def uniques_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `uniques` that depend on each other."""
    yield from scenario_problems(question)
    keys, size = question.keys or (), question.max_size
    if not keys:  # those of a scenario are known when the file is read
        return
    if len(keys) > MOST_VARIABLES:
        yield Problem("{keys} must be at most {0}. Got {1} instead.", MOST_VARIABLES, len(keys))
    if size is not None and size > len(keys):
        template = "{max_size} must be at most the number of {keys} ({0}). Got {1} instead."
        yield Problem(template, len(keys), size)
    for name in FACTORS:
        given = question.values[name] or ()
        others = [key for key in given if key not in keys] if isinstance(given, Mapping) else []
        if others:
            yield Problem(f"{{{name}}} must name {{keys}} only. Got {{0}} instead.", quoted(others))
        elif given and not isinstance(given, Mapping) and len(given) != len(keys):
            template = "must have a number for each of {keys} ({0}). Got {1} instead."
            yield Problem(f"{{{name}}} {template}", len(keys), len(given))


def _scored(
    sets: UniqueSets, f: Ints, convention: Convention, fraction: float | None
) -> tuple[Floats | None, Floats | None, list[str]]:
    """Return scores and DIS-SUDA, each None where it is not defined, and the reasons."""
    if sets.variables < 2:
        return None, None, ["a score is not defined for one key variable"]
    notes = []
    if fraction is None:
        fraction = 0.01
        notes.append(
            "DIS-SUDA, which each record has, assumes a sampling fraction of 0.01: give the "
            "fraction if known"
        )
    # The guide's two columns come from two scores; sdcMicro has one for both.
    behind = scores.suda_scores(sets, "sdcmicro" if convention == "sdcmicro" else "ihsn")
    pairs = int((f == 2).sum())
    dis, reason = scores.dis_suda(behind, pairs=pairs, variables=sets.variables, fraction=fraction)
    if dis is None:
        notes = [f"DIS-SUDA, which each record would have, is not estimable: {reason}"]
    if convention == "guide" and sets.max_size == sets.variables:
        return None, dis, [*notes, "the guide's score needs a size below the number of keys"]
    return scores.suda_scores(sets, convention), dis, notes


def _check_work(variables: int, max_size: int, patterns: int) -> None:
    """Refuse a search that might not fit into memory, before it begins."""
    # What all the sets smaller than each largest one take: a bit a pattern and a place each.
    a_set = 8 + 8 * -(-patterns // 64)
    sets = itertools.accumulate(math.comb(variables, k) for k in range(max_size))
    taken = [a_set * count for count in sets]
    if taken[-1] > MOST_BYTES:
        needed, fitting = f"{taken[-1] / 2**30:,.1f}", sum(b <= MOST_BYTES for b in taken)
        problem = Problem(
            "A search of {0} keys to size {1} may need {2} GiB of memory, more than the {3} "
            "allowed. Give {max_size} of at most {4}, or fewer {keys}.",
            *(variables, max_size, needed, MOST_BYTES >> 30, max(fitting, 1)),
        )
        raise OptionError([problem])
