"""Attribute disclosure: what an intruder who knows the key learns of sensitive columns.

Whoever knows the key finds the cell of a person. If all records of the cell share a value, or
nearly all do, the value is learnt without finding anybody: homogeneity and l-diversity
(Machanavajjhala et al. 2007), t-closeness (Li et al. 2007), β-likeness (Cao & Karras 2012), and
correct attribution (Taub, Elliot et al. 2018) against the base rate that needs no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.kinds import Columns, Data
from keyhole.core.marks import COUNT, WHEN_SET, Also, Share
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import (
    Cutoff,
    EngineOption,
    MemorySize,
    Names,
    RequiredKeys,
    WorkFolder,
)
from keyhole.core.tables import Table
from keyhole.data.implicates import find_implicates
from keyhole.engines import MemoryEngine, Records
from keyhole.engines.choose import backend_of, engine_notes, engine_of
from keyhole.engines.opening import DataFile, open_for
from keyhole.engines.resources import in_threads
from keyhole.errors import OptionError
from keyhole.exposure.attribution import against, spread_of
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.kernels.attributes import (
    homogeneous_records,
    learn_by_cell,
    rows_by_cell,
    spread_by_cell,
)
from keyhole.results import Result, share

if TYPE_CHECKING:
    import altair

Distance = Literal["auto", "equal", "ordered"]
MOST_SIDE, FEWEST_NAMED = 60, 3
"""Of a grid: the most levels of a side, and the fewest records of two levels that are named."""


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
class TellingLevel(Figures):
    """A level of a key, by its place, and how many of its records lie in homogeneous cells."""

    column: str
    level: str
    records: Annotated[int, COUNT]
    homogeneous: Annotated[int, COUNT]


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


@dataclass(frozen=True, slots=True)
class LearntColumn(Figures):
    """What the cells of a key tell of one sensitive column.

    `homogeneous` is the share of records in cells with one value, `hidden_by_rp` how many of them
    lie in cells of the cutoff or more, which RP does not count; `uncommon_records` are homogeneous
    with another value than the most frequent of the file, which anybody would guess. `cap` is the
    chance of a right guess by somebody who guesses like the cell, `base_rate` that of one who knows
    the column's distribution alone. `t_closeness` is the largest distance of a cell to the file.
    """

    homogeneous: Annotated[float, Share("records")]
    homogeneous_records: Annotated[int, COUNT]
    homogeneous_cells: int
    uncommon_records: Annotated[int, COUNT]
    hidden_by_rp: Annotated[int, COUNT]
    l: Diversity  # noqa: E741
    t_closeness: float | None
    distance: str
    beta: float
    cap: float
    base_rate: float
    short: tuple[Short, ...]
    numbers: Annotated[LearntNumbers | None, WHEN_SET] = None
    levels: Annotated[tuple[TellingLevel, ...], WHEN_SET] = ()

    @property
    def disclosed(self) -> float:
        """The homogeneous share; 0 for a column with one value, which tells nothing."""
        return self.homogeneous if self.base_rate < 1 else 0.0


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
            "CAP: the chance of a right guess from the cell; base rate: without the file.",
            *self.notes,
        ]
        found = [Table("What the key tells", head, rows, notes)]
        short = [
            [name, f"{s.measure} {s.threshold:g}", f"{s.records:,}", f"{s.cells:,}"]
            for name, one in self.sensitive.items()
            for s in one.short
        ]
        head = ["column", "falls short of", "records", "cells"]
        found.append(Table("Cells that fall short", head, short))
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

    def plot(self) -> altair.TopLevelMixin:
        """Draw CAP and the base rate of each sensitive column, and where the key tells most."""
        from keyhole.exposure.attributes_chart import attributes_chart

        return attributes_chart(self)


@documented
def attributes(
    data: Any,
    *,
    keys: RequiredKeys,
    sensitive: Annotated[
        Names | None,
        Option(
            "The columns of which nothing should be learnt; by default those with the role "
            "sensitive.",
            kind=Columns("sensitive"),
        ),
    ] = None,
    cutoff: Cutoff = 3,
    original: Annotated[
        Any, Option("The original file: what the release tells of its people.", kind=Data())
    ] = None,
    distance: Annotated[
        Distance,
        Option(
            "The distance of t-closeness: `equal`, `ordered`, or `auto`: ordered for numbers and "
            "dates, equal for categories."
        ),
    ] = "auto",
    diversity: Annotated[
        int, Option("Cells with fewer values (l) than this fall short.", low=1)
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
        float, Option("Cells farther from the file (t) than this fall short.", low=0, high=1)
    ] = 0.2,
    likeness: Annotated[
        float, Option("Cells where a value gains more (β) than this fall short.", above=0)
    ] = 1.0,
    tolerance: Annotated[
        float,
        Option("Numbers within this many standard deviations count as learnt.", above=0),
    ] = 0.05,
    closest: Annotated[
        bool,
        Option("With an original: how near release records come to it, and real ones to another."),
    ] = False,
    masked: Annotated[
        Names | None,
        Option(
            "With an original in the same order: numbers that were masked. Given are the share of "
            "records all of whose original ones lie within the tolerance (dRisk), and of those "
            "linked to their own original by distance.",
            kind=Columns("masked number"),
        ),
    ] = None,
    engine: EngineOption = "auto",
    memory: MemorySize = None,
    work_folder: WorkFolder = None,
) -> Annotated[Attributes, Also("keyhole.exposure.attribution.ReleaseAttribution")]:
    """Measure what somebody who knows the key would learn of sensitive columns.

    With `original`, the data is a release, or the folder of several implicates, and the result says
    what it tells of the people of the original.

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
    every: list[Any] = [
        open_for(
            question, one, needs_values_for="attribute disclosure", every_column=sensitive is None
        )
        for one in _implicates(data)
    ]
    opened = every[0]
    names = question.sensitive or _by_role(opened)
    clash = [name for name in names if name in question.keys]
    if clash:
        raise OptionError(
            Problem("{sensitive} must not be keys. Got {0} as both: leave it out of one.", clash)
        )
    if question.original is not None:
        return against(every, question, names)  # type: ignore[return-value]
    if len(every) > 1:
        raise OptionError(
            Problem("{original} is needed with a folder of implicates. Give it, or one file.")
        )
    return _of_file(opened, question, names)


def attributes_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `attributes` that depend on each other."""
    for name in ("closest", "masked"):
        if question.values[name] and question.original is None:
            yield Problem(f"{{{name}}} needs {{original}}, with which the release is compared.")


def _implicates(data: Any) -> list[Any]:
    """Return the files of a release in a folder, or the data as it is."""
    path, reading = (data.path, data.reading) if isinstance(data, DataFile) else (data, {})
    if not isinstance(path, str | os.PathLike) or not Path(path).is_dir():
        return [data]
    return [DataFile(one, reading) for one in find_implicates(path)]


def _by_role(data: Records) -> tuple[str, ...]:
    names = tuple(n for n in data.names if data.variable(n).role == "sensitive")
    if not names:
        raise OptionError(
            Problem("{sensitive} must name at least one column: none has the role sensitive.")
        )
    return names


def _of_file(data: Records, question: Question, names: Sequence[str]) -> Attributes:
    keys, cutoff = question.keys, question.cutoff
    cells = engine_of(data, keys).measure(keys)
    count = cells.spectrum.cells
    starts, rows = rows_by_cell(cells.numbers(), count)
    sizes = np.diff(starts)
    found = dict(
        zip(
            names,
            in_threads(lambda n: _learnt(data, n, starts, rows, sizes, question), names),
            strict=True,
        )
    )
    return Attributes(
        keys=tuple(keys),
        cutoff=cutoff,
        records=data.records,
        cells=count,
        rp=cells.spectrum.below(cutoff) / data.records,
        sensitive=found,
        grid=_grid(data, found, starts, rows, question),
        notes=engine_notes(data),
        engine=backend_of(data).name,
    )


def _learnt(
    data: Records, name: str, starts: Ints, rows: Ints, sizes: Ints, question: Question
) -> LearntColumn:
    codes = data.codes(name)
    values = codes.values[rows].astype(np.int64)
    total = np.bincount(values, minlength=codes.size)
    kind = data.variable(name).kind
    in_order = (
        kind in ("measure", "date")
        if question.distance == "auto"
        else (question.distance == "ordered")
    )
    distinct, most, rest, entropy, squares, equal, moved, gain = learn_by_cell(
        starts, values, total, question.diversity, len(codes.levels) if in_order else 0
    )
    distances = moved if in_order else equal
    alone = distinct == 1
    limits: list[tuple[str, float, Flags]] = [
        ("distinct l of", question.diversity, distinct < question.diversity),
        ("entropy l of", question.diversity, np.exp(entropy) < question.diversity - 1e-9),
        ("recursive diversity, c =", question.recursion, most >= question.recursion * rest),
        ("t of", question.closeness, distances > question.closeness + 1e-12),
        ("β of", question.likeness, gain > question.likeness + 1e-12),
    ]
    known = distances[~np.isnan(distances)]
    shares = total / total.sum()
    return LearntColumn(
        homogeneous=float(sizes[alone].sum() / data.records),
        homogeneous_records=int(sizes[alone].sum()),
        homogeneous_cells=int(alone.sum()),
        uncommon_records=int(sizes[alone & (total[values[starts[:-1]]] < total.max())].sum()),
        hidden_by_rp=int(sizes[alone & (sizes >= question.cutoff)].sum()),
        l=Diversity(int(distinct.min()), float(np.exp(entropy.min()))),
        t_closeness=float(known.max()) if len(known) else None,
        distance="ordered" if in_order else "equal",
        beta=float(gain.max()),
        cap=float(squares.sum() / data.records),
        base_rate=float((shares**2).sum()),
        short=tuple(
            Short(measure, float(x), int(sizes[flags].sum()), int(flags.sum()))
            for measure, x, flags in limits
        ),
        numbers=_numbers(data, name, starts, rows, sizes, question) if kind == "measure" else None,
        levels=tuple(_levels(data, question.keys, alone, starts, rows, question.cutoff)),
    )


def _numbers(
    data: Records, name: str, starts: Ints, rows: Ints, sizes: Ints, question: Question
) -> LearntNumbers:
    values: Floats = data.column(name).cast(pl.Float64).fill_null(np.nan).to_numpy()
    near_by = question.tolerance * spread_of(values)
    width, near, largest, held = spread_by_cell(starts, values[rows], near_by)
    narrow = (width <= 2 * near_by) & (held == sizes)
    ruled = (largest > 0.5) & (held > 1)
    several = largest[held > 1]
    several = several[~np.isnan(several)]
    return LearntNumbers(
        tolerance=near_by,
        within=float(near.sum() / held.sum()) if held.any() else None,
        narrow_records=int(sizes[narrow].sum()),
        narrow_cells=int(narrow.sum()),
        dominated_records=int(sizes[ruled].sum()),
        largest_share=float(several.max()) if len(several) else None,
    )


def homogeneous_shares(
    engine: MemoryEngine, keys: Sequence[str], sensitive: Mapping[str, Ints]
) -> dict[str, float]:
    """Return by sensitive column, in codes, the share of records in homogeneous cells of a key.

    A column with one value tells nothing, and neither does a key without variables.
    """
    told = {n: codes for n, codes in sensitive.items() if (codes[:1] != codes).any()}
    found = dict.fromkeys(sensitive, 0.0)
    if keys and told:
        cells = engine.measure(keys)
        numbers, count = cells.numbers(), cells.spectrum.cells
        found |= {n: homogeneous_records(numbers, count, c) / len(c) for n, c in told.items()}
    return found


def _grid(
    data: Records, found: Mapping[str, LearntColumn], starts: Ints, rows: Ints, question: Question
) -> TellingGrid | None:
    """Lay out the column of which most is told by the two keys with the most levels."""
    sides = {n: data.codes(n).size for n in question.keys if 1 < data.codes(n).size <= MOST_SIDE}
    worst = max(found, key=lambda name: found[name].hidden_by_rp * (found[name].base_rate < 1))
    if len(sides) < 2 or not found[worst].disclosed or not found[worst].hidden_by_rp:
        return None
    down, across = sorted(sides, key=lambda name: -sides[name])[:2]
    sizes, first = np.diff(starts), rows[starts[:-1]]
    values = data.codes(worst).values[rows]
    low, high = (f.reduceat(values, starts[:-1]) for f in (np.minimum, np.maximum))
    told = np.where((low == high) & (sizes >= question.cutoff), sizes, 0)
    width = sides[across]
    y, x = (data.codes(name).values[first].astype(np.int64) for name in (down, across))
    place = y * width + x
    total, those = (np.bincount(place, weights=w).astype(np.int64) for w in (sizes, told))
    names = [[*map(str, data.codes(n).levels.to_list()), "(missing)"] for n in (down, across)]
    cells = (
        GridCell(names[0][i // width], names[1][i % width], int(total[i]), int(those[i]))
        for i in np.flatnonzero(total >= max(question.cutoff, FEWEST_NAMED))
    )
    return TellingGrid(worst, down, across, tuple(cells))


def _levels(
    data: Records, keys: Sequence[str], alone: Flags, starts: Ints, rows: Ints, cutoff: int
) -> Iterator[TellingLevel]:
    """Yield the levels of keys by how many of their records lie in homogeneous cells."""
    sizes = np.diff(starts)
    told = np.where(alone & (sizes >= cutoff), sizes, 0)
    first = rows[starts[:-1]]  # a record of each cell: all have its levels
    found = []
    for name in keys:
        codes = data.codes(name)
        of_cell = codes.values[first]
        total = np.bincount(of_cell, weights=sizes, minlength=codes.size)
        those = np.bincount(of_cell, weights=told, minlength=codes.size)
        labels = [*map(str, codes.levels.to_list()), "(missing)"]
        found += [
            TellingLevel(name, labels[i], int(total[i]), int(those[i]))
            for i in np.flatnonzero(those)
        ]
    yield from sorted(found, key=lambda one: -one.homogeneous)[:10]
