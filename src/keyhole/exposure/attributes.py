"""Attribute disclosure: what an intruder who knows the key learns of sensitive columns.

Whoever knows the key finds the cell of a person. If all records of the cell share a value, or
nearly all do, the value is learnt without finding anybody: homogeneity and l-diversity
(Machanavajjhala et al. 2007), t-closeness (Li et al. 2007), β-likeness (Cao & Karras 2012), and
correct attribution (Taub, Elliot et al. 2018) against a draw from the whole file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core import shared
from keyhole.core.codec import Figures
from keyhole.core.kinds import Columns, Data
from keyhole.core.marks import COUNT, WHEN_SET, Also, Share
from keyhole.core.names import quoted
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import Names, sensitive_problems
from keyhole.core.tables import Table
from keyhole.data.implicates import find_implicates
from keyhole.engines import Records
from keyhole.engines.choose import backend_of, engine_notes
from keyhole.engines.opening import DataFile, open_for
from keyhole.engines.resources import in_threads
from keyhole.errors import ColumnError, OptionError
from keyhole.exposure.attributes_cells import (
    DRAWN,
    AttributeCells,
    LearntCells,
    ToldColumn,
    learn,
    ordered_values,
    sensitive_by_role,
)
from keyhole.exposure.attribution import against, measure_problems, numbers_of, spread_of
from keyhole.results import Result, drawn_by, share

Distance = Literal["auto", "equal", "ordered"]
# Of a grid: the most levels of a side, and the fewest records of two levels that are named.
MOST_SIDE, FEWEST_NAMED = 60, 3


LIMITS = (
    ("distinct l of", "diversity"),
    ("entropy l of", "diversity"),
    ("recursive diversity, c =", "recursion"),
    ("t of", "closeness"),
    ("β of", "likeness"),
)
"""What cells may fall short of, and the option that says how much is asked for."""


@dataclass(frozen=True, slots=True)
class Diversity(Figures):
    """The least l of any cell: different values, and exp of the entropy."""

    distinct: int
    entropy: float


@dataclass(frozen=True, slots=True)
class Short(Figures):
    """Records in cells that fall short of a threshold, and the threshold."""

    measure: str
    threshold: float
    records: Annotated[int, COUNT]
    cells: int


@dataclass(frozen=True, slots=True)
class LearntNumbers(Figures):
    """What cells tell of numbers.

    `within` is the mean share of a record's cell that lies within the tolerance of its value;
    `narrow_records` are in cells whose numbers all lie within twice the tolerance; `dominated` in
    cells of several where one number is more than half of the sum.
    """

    tolerance: float
    within: float | None
    narrow_records: Annotated[int, COUNT]
    narrow_cells: int
    dominated_records: Annotated[int, COUNT]
    largest_share: float | None


@dataclass(frozen=True, slots=True)
class GridCell(Figures):
    """A level of each of two keys, and how many of their records lie in homogeneous cells."""

    row: str
    column: str
    records: Annotated[int, COUNT]
    homogeneous: Annotated[int, COUNT]


@dataclass(frozen=True, slots=True)
class TellingGrid(Figures):
    """Where the key tells most of one sensitive column: the levels of two keys against each other.

    Counted are records in homogeneous cells of the cutoff or more. Pairs of levels with few records
    are left out.
    """

    sensitive: str
    rows: str
    columns: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntColumn(ToldColumn):
    """What the cells of a key tell of one sensitive column.

    `cap` is the chance of a right guess by somebody who guesses like the cell; `t_closeness` the
    largest distance of a cell to the file.
    """

    l: Diversity  # noqa: E741
    t_closeness: float | None
    distance: str
    beta: float
    cap: float
    short: tuple[Short, ...]
    numbers: Annotated[LearntNumbers | None, WHEN_SET] = None


@dataclass(frozen=True, slots=True, repr=False)
class Attributes(Result):
    """Attribute disclosure of a file on one key, by sensitive column."""

    keys: tuple[str, ...]
    cutoff: int
    records: Annotated[int, COUNT]
    cells: int
    rp: Annotated[float, Share("records")]
    sensitive: Mapping[str, LearntColumn]
    grid: Annotated[TellingGrid | None, WHEN_SET] = None
    notes: tuple[str, ...] = ()
    engine: str = "memory"

    def to_frame(self) -> pl.DataFrame:
        """Return one row a sensitive column."""
        rows = [
            {
                "column": name, "homogeneous": one.homogeneous, "hidden_by_rp": one.hidden_by_rp,
                "l_distinct": one.l.distinct, "l_entropy": one.l.entropy, "t": one.t_closeness,
                "beta": one.beta, "cap": one.cap, "base_rate": one.base_rate,
            }
            for name, one in self.sensitive.items()
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a sensitive column, the shortfalls, and levels that tell most."""
        head = ["column", "homogeneous", "hidden by RP", "least l", "least entropy l", "largest t",
                "largest β", "CAP", "base rate"]  # fmt: skip
        rows = [
            [name, share(one.homogeneous), f"{one.hidden_by_rp:,}", f"{one.l.distinct:,}",
             f"{one.l.entropy:.2f}", share(one.t_closeness), f"{one.beta:.2f}", share(one.cap),
             share(one.base_rate)]
            for name, one in self.sensitive.items()
        ]  # fmt: skip
        notes = [
            f"RP({self.cutoff}) on {', '.join(self.keys)} is {share(self.rp)}.",
            f"Homogeneous: records in cells where all share one value; hidden by RP: those of them "
            f"in cells of {self.cutoff} or more.",
            DRAWN,
            *self.notes,
        ]
        found = [Table("What the key reveals", head, rows, notes)]
        short = [
            [name, f"{s.measure} {s.threshold:g}", f"{s.records:,}", f"{s.cells:,}"]
            for name, one in self.sensitive.items()
            for s in one.short
        ]
        head = ["column", "falls short of", "records", "cells"]
        found.append(Table("Cells that fail", head, short))
        numbers = [
            [name, f"{n.tolerance:g}", share(n.within), f"{n.narrow_records:,}",
             f"{n.dominated_records:,}"]
            for name, one in self.sensitive.items()
            if (n := one.numbers) is not None
        ]  # fmt: skip
        if numbers:
            head = ["column", "tolerance", "share within", "in narrow cells", "dominated"]
            found.append(Table("Numbers", head, numbers))
        return found

    plot = drawn_by(
        "exposure.charts.attributes_chart",
        "Draw CAP and the base rate of each sensitive column, and where the key reveals most.",
    )


@documented
def attributes(
    data: Any,
    *,
    keys: shared.RequiredKeys,
    sensitive: shared.Sensitive = None,
    cutoff: shared.Cutoff = 3,
    original: Annotated[
        Any,
        Option(
            "The original file, to measure what the release reveals about its people.", kind=Data()
        ),
    ] = None,
    distance: Annotated[
        Distance,
        Option(
            "The distance of t-closeness: `equal`, `ordered`, or `auto`: ordered for numbers and "
            "dates, equal for categories."
        ),
    ] = "auto",
    diversity: Annotated[
        int, Option("Cells with fewer different values (l) than this fail l-diversity.", low=1)
    ] = 2,
    recursion: Annotated[
        float,
        Option(
            "c of recursive (c, l)-diversity: the most frequent value must be rarer than c times "
            "all but the l - 1 most frequent.",
            above=0,
        ),
    ] = 2.0,
    closeness: Annotated[
        float,
        Option("Cells farther from the whole file (t) than this fail t-closeness.", low=0, high=1),
    ] = 0.2,
    likeness: Annotated[
        float,
        Option(
            "Cells in which the share of a value grows by more than this (β) over that in the "
            "file, relative to it, fail β-likeness.",
            above=0,
        ),
    ] = 1.0,
    tolerance: Annotated[
        float, Option("Numbers within this many standard deviations count as learnt.", above=0)
    ] = 0.05,
    closest: Annotated[
        bool,
        Option(
            "With an original: the distance of released records to the closest original record, "
            "beside that between original records."
        ),
    ] = False,
    masked: Annotated[
        Names | None,
        Option(
            "With an original in the same order: columns of masked numbers. Reported are the share "
            "of records whose original values all lie within the tolerance (dRisk), and the share "
            "linked to their own original by distance.",
            kind=Columns("masked number"),
        ),
    ] = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Annotated[Attributes, Also("keyhole.exposure.attribution.ReleaseAttribution")]:
    """Measure what somebody who knows the key would learn about sensitive columns.

    With `original`, the data is a release, or the folder of several implicates, and the result
    shows what it discloses about the people in the original.

    Notes
    -----
    A missing value is a category, of keys and of sensitive columns; ordered distances leave it out.
    Ordered distance: the sum of absolute cumulated differences over the number of values less one.
    Recursive: r₁ < c (r_l + … + r_m), counts in descending order. β: the largest (p - q) / q.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": [*"fffmmm"], "ill": [*"yyyyno"]})
    >>> found = attributes(people, keys=["sex"], sensitive=["ill"]).sensitive["ill"]
    >>> found.homogeneous, found.hidden_by_rp, found.l.distinct
    (0.5, 3, 1)
    """
    question = bind(attributes, locals())
    path, reading = (data.path, data.reading) if isinstance(data, DataFile) else (data, {})
    files = [data]
    if isinstance(path, str | os.PathLike) and Path(path).is_dir():
        files = [DataFile(one, reading) for one in find_implicates(path)]
    needs = "" if original is None else "a release against the original"
    every: list[Any] = [
        open_for(question, one, needs_values_for=needs, every_column=sensitive is None)
        for one in files
    ]
    opened = every[0]
    names = question.sensitive or sensitive_by_role(opened, question.keys)
    if not names:
        template = "{sensitive} must name at least one column: none has the role sensitive."
        raise OptionError(Problem(template))
    if question.original is not None:
        return against(every, question, names)  # type: ignore[return-value]
    if len(every) > 1:
        template = "{original} is needed with a folder of implicates. Give it, or one file."
        raise OptionError(Problem(template))
    return _of_file(opened, question, names)


def attributes_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `attributes` that depend on each other."""
    yield from sensitive_problems(question, question.keys)
    for name in ("closest", "masked"):
        if question.values[name] and question.original is None:
            yield Problem(f"{{{name}}} needs {{original}}, with which the release is compared.")


def _of_file(data: Records, question: Question, names: Sequence[str]) -> Attributes:
    keys, cutoff, is_here = question.keys, question.cutoff, backend_of(data).is_here
    measures = [name for name in names if is_here and data.variable(name).kind == "measure"]
    if problems := [*measure_problems(data, measures)]:
        raise ColumnError(problems)
    cells = AttributeCells.by_column(data, keys, names)
    ordered = {name: ordered_values(data, name, question.distance) for name in names}
    values = [cells[name].values(name, ordered[name]) for name in names]
    limits = (
        question.diversity, math.log(question.diversity - 1e-9), question.recursion,
        question.closeness + 1e-12, question.likeness + 1e-12,
    )  # fmt: skip
    told = dict(zip(names, learn(values, limits, cutoff), strict=True))
    learnt = in_threads(
        lambda name: _learnt(cells[name], name, told[name], ordered[name], question),
        names,
        data.records * len(measures),  # the rest takes no time
    )
    found = dict(zip(names, learnt, strict=True))
    notes = [*engine_notes(data)]
    if same := [name for name, one in found.items() if one.base_rate == 1]:
        alike = f"all records have one value of {quoted(same)}"
        notes.append(f"{alike}: it is not a secret, so nothing is learnt")
    if not is_here and any(data.variable(name).kind == "measure" for name in found):
        near = "how close numbers are to each other is not measured on Spark"
        notes.append(f"{near}, where their values stay")
    sizes = cells[names[0]].sizes
    return Attributes(
        keys=tuple(keys),
        cutoff=cutoff,
        records=data.records,
        cells=len(sizes),
        rp=int(sizes[sizes < cutoff].sum()) / data.records,
        sensitive=found,
        grid=_grid(cells, found, told, cutoff),
        notes=tuple(notes),
        engine=backend_of(data).name,
    )


def _learnt(
    cells: AttributeCells, name: str, found: LearntCells, ordered: int, question: Question
) -> LearntColumn:
    data = cells.data
    has_numbers = data.variable(name).kind == "measure" and backend_of(data).is_here
    return LearntColumn(
        **cells.told(found, question.cutoff),
        l=Diversity(found.distinct, math.exp(found.entropy)),
        t_closeness=found.furthest,
        distance="ordered" if ordered else "equal",
        beta=found.gain,
        cap=found.right / data.records,
        short=tuple(
            Short(measure, float(question.values[option]), *counts)
            for (measure, option), counts in zip(LIMITS, found.short, strict=True)
        ),
        numbers=_numbers(cells, name, question) if has_numbers else None,
    )


def _numbers(cells: AttributeCells, name: str, question: Question) -> LearntNumbers:
    from keyhole.kernels.attributes import spread_by_cell

    values = numbers_of(cells.data, name)
    near_by = question.tolerance * spread_of(values)
    width, near, largest, held = spread_by_cell(cells.starts, values[cells.rows], near_by)
    narrow = (width <= 2 * near_by) & (held == cells.sizes)
    ruled = (largest > 0.5) & (held > 1)
    several = largest[held > 1]
    several = several[~np.isnan(several)]
    return LearntNumbers(
        tolerance=near_by,
        within=float(near.sum() / held.sum()) if held.any() else None,
        narrow_records=int(cells.sizes[narrow].sum()),
        narrow_cells=int(narrow.sum()),
        dominated_records=int(cells.sizes[ruled].sum()),
        largest_share=float(several.max()) if len(several) else None,
    )


def _grid(
    by_column: Mapping[str, AttributeCells],
    found: Mapping[str, LearntColumn],
    told: Mapping[str, LearntCells],
    cutoff: int,
) -> TellingGrid | None:
    """Lay out the column of which most is told by the two keys with the most levels."""
    worst = max(found, key=lambda name: found[name].hidden_by_rp * (found[name].base_rate < 1))
    cells = by_column[worst]
    levels = {name: cells.data.codes(name).size for name in cells.keys}
    sides = {name: size for name, size in levels.items() if 1 < size <= MOST_SIDE}
    if len(sides) < 2 or not found[worst].disclosed or not found[worst].hidden_by_rp:
        return None
    down, across = sorted(sides, key=lambda name: -sides[name])[:2]
    hidden = np.where((told[worst].alone >= 0) & (cells.sizes >= cutoff), cells.sizes, 0)
    width = sides[across]
    y, x = (cells.key_codes[cells.keys.index(name)] for name in (down, across))
    total, those = (
        np.bincount(y * width + x, weights=w).astype(np.int64) for w in (cells.sizes, hidden)
    )
    names = [cells.labels(name) for name in (down, across)]
    pairs = (
        GridCell(names[0][i // width], names[1][i % width], int(total[i]), int(those[i]))
        for i in np.flatnonzero(total >= max(cutoff, FEWEST_NAMED))
    )
    return TellingGrid(worst, down, across, tuple(pairs))
