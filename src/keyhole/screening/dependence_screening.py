"""The screening of dependences alone: on any engine, with its result and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, SPREAD, figure
from keyhole.core.names import plural
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata, require_records
from keyhole.engines import Records
from keyhole.engines.choose import backend_of
from keyhole.engines.resources import in_threads
from keyhole.results import Result, drawn_by, share
from keyhole.screening.dependence import (
    Dependence,
    Determination,
    concerns,
    dependences,
    dependences_of,
    determinations,
    is_fit,
    reach_notes,
)
from keyhole.screening.inspection import is_unreadable

SHOWN = 30
NOT_LOOKED_AT = Problem(
    "Only dependences were looked for. Direct identifiers, Safe Harbor items, record numbers, "
    "constants and nearly unique columns were not looked for: leave out {only_dependences} to "
    "have them looked for, on memory or disk."
)


@dataclass(frozen=True, slots=True)
class NotLookedAt:
    """Members of a whole screening, null where only dependences were looked at."""

    year: None = None
    sure: None = None
    identifiers: None = None
    safe_harbor: None = None
    record_numbers: None = None
    constants: None = None
    near_unique: None = None


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A column that was compared with no other, and why."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class DependenceScreening(Result):
    """Which columns determine, or nearly duplicate, which; nothing else was looked at.

    It has no members for identifiers, Safe Harbor and the like, so that nobody can take for
    absent what was not looked for. `names` are the columns of the file, and `sets` says whether
    pairs that determine a third together were looked for. With `keys` the dependences are those in
    which a key is part.
    """

    records: Annotated[int, COUNT]
    columns: int
    engine: str
    keys: tuple[str, ...]
    nearly: float
    sets: bool
    not_compared: tuple[NotCompared, ...]
    dependencies: tuple[Determination, ...]
    near_dependencies: tuple[Dependence, ...]
    warnings: tuple[str, ...]
    names: Annotated[tuple[str, ...], HIDDEN]
    not_looked_at: Annotated[NotLookedAt, SPREAD] = NotLookedAt()

    @property
    @figure()
    def looked_at(self) -> tuple[str, ...]:
        """What was looked for."""
        return ("dependences",)

    @property
    @figure()
    def notes(self) -> tuple[str, ...]:
        """What was not looked at."""
        return (NOT_LOOKED_AT,)

    @property
    def compared(self) -> int:
        """How many columns were compared."""
        return self.columns - len(self.not_compared)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a dependence, the exact ones first."""
        nothing = (None, None, None)
        rows: list[tuple[Any, ...]] = [
            ("exact", d.determined, " and ".join(d.by), d.equivalent, *nothing)
            for d in self.dependencies
        ]
        rows += [
            ("near", d.first, d.second, None, d.cramers_v, d.first_told, d.second_told)
            for d in self.near_dependencies
        ]
        texts = dict.fromkeys(("dependence", "variable", "by"), pl.String)
        numbers = dict.fromkeys(("cramers_v", "first_told", "second_told"), pl.Float64)
        schema = {**texts, "equivalent": pl.Boolean, **numbers}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return what a person reads; first of all what was not looked at."""
        size = f"{plural(self.records, 'record')} and {plural(self.columns, 'column')}"
        out = [Table(f"Dependences alone, in {size}", [], [], [NOT_LOOKED_AT])]
        where = ", where a key is part" if self.keys else ""
        among = f"Among the {self.compared:,} columns compared"
        none = f"{among} no variable determines another, or nearly so{where}."
        if self.compared < 2:
            none = "There are no two columns to compare."
        out += dependence_tables(self.dependencies, self.near_dependencies, none, self.keys)
        if self.not_compared:
            rows = [[one.column, one.reason] for one in self.not_compared]
            out.append(Table("Columns that were not compared", ["column", "why"], rows))
        if self.warnings:
            out.append(Table("Warnings", [], [], list(self.warnings)))
        return out

    plot = drawn_by("screening.charts.dependence_chart", "Draw which columns depend on which.")


def dependence_tables(
    exact: Sequence[Determination], near: Sequence[Dependence], none: str, keys: Sequence[str] = ()
) -> Iterator[Table]:
    """Yield the tables of dependences."""
    of = " of the keys" if keys else ""
    if exact:
        rows = [[d.determined, " and ".join(d.by), "yes" if d.equivalent else "no"] for d in exact]
        names = ["variable", "determined by", "both ways"]
        yield Table(f"Exact dependences{of}", names, rows[:SHOWN], _cut(rows))
    if near:
        rows = [
            [d.first, d.second, f"{d.cramers_v:.3f}", share(d.first_told, 3),
             share(d.second_told, 3)]
            for d in sorted(near, key=lambda d: -d.strength)
        ]  # fmt: skip
        names = ["first", "second", "Cramér's V", "first explained by second", "second by first"]
        yield Table(f"Near dependences{of}", names, rows[:SHOWN], _cut(rows))
    if not exact and not near:
        yield Table("Dependences", [], [], [none])


def _cut(rows: list[list[str]]) -> list[str]:
    left = len(rows) - SHOWN
    return [f"{left:,} more {'is' if left == 1 else 'are'} in the JSON."] if left > 0 else []


CONSTANT = "it has one value in the whole file"
FINE = "it has more levels than half the records, and would determine everything"
UNREADABLE = "it has no plain values"
UNHELD = "it has more different values than fit in the memory allowed"
UNTOLD = "it has more different values than Spark can determine the type of"
ON_SPARK = (
    "On Spark near dependences are judged by Cramér's V alone: shares of entropy are not computed "
    "there."
)
NO_SETS = "Pairs that determine a third column together were not looked for."
NO_SETS_ON_SPARK = (
    "On Spark pairs that determine a third column together are not looked for: memory and disk do "
    "that."
)


def screen_dependences(
    data: Records, keys: tuple[str, ...], *, nearly: float, sets: bool
) -> DependenceScreening:
    """Tell which columns determine or nearly duplicate which, and look at nothing else."""
    backend = backend_of(data)
    here = backend.is_here
    if here:
        unheld = encode_all(data)
        data.require_records()
        records = data.records
        reasons = in_threads(lambda name: _reason(data, name, unheld), list(data.names))
    else:
        remote: Any = data
        known = remote.look_at_columns(data.names)
        records, columns = known.records, known.columns
        require_records(records, data.name)
        reasons = [
            _why_left_out(columns[name].size, records) if name in columns else UNTOLD
            for name in data.names
        ]
    left_out = {name: why for name, why in zip(data.names, reasons, strict=True) if why}
    names = [name for name in data.names if name not in left_out]
    together: list[Determination] = []
    if here:
        pairs, together, told = find_dependences(data, names, nearly, sets, keys)
        told += [] if sets else [NO_SETS]
    else:
        pairs, told = dependences_of(data, names, nearly=nearly, keys=keys)
        told += [ON_SPARK, NO_SETS_ON_SPARK]
    return DependenceScreening(
        records=records,
        columns=len(data.names),
        engine=backend.name,
        keys=keys,
        nearly=nearly,
        sets=here and sets,
        not_compared=tuple(NotCompared(name, reason) for name, reason in left_out.items()),
        dependencies=exact_ones(pairs, together, keys),
        near_dependencies=near_ones(pairs, keys),
        warnings=(*given_away(pairs, keys), *told, *backend.notes),
        names=tuple(data.names),
    )


def find_dependences(
    data: Records, names: Sequence[str], nearly: float, sets: bool, with_all: Iterable[str]
) -> tuple[list[Dependence], list[Determination], list[str]]:
    """Find the dependences among columns whose codes are here, and say what was not compared."""
    encoded: list[Codes] = in_threads(data.codes, names)
    columns = dict(zip(names, encoded, strict=True))
    pairs = dependences(columns, nearly=nearly, with_uncertainty=True, with_all=with_all)
    if sets:
        size = data.records * (8 * len(names) + 64)
        what = "looking for pairs that determine a third (sets)"
        backend_of(data).storage.require(size, what)
    together = determinations(columns, pairs) if sets else []
    return pairs, together, reach_notes(columns, sets=sets)


def exact_ones(
    pairs: Iterable[Dependence], together: Iterable[Determination], keys: Sequence[str]
) -> tuple[Determination, ...]:
    """Return the exact dependences, single ones first, in which a key is part."""
    single = [
        Determination((d.determining,), d.determined, d.equivalent)
        for d in pairs
        if d.determined is not None and d.determining is not None
    ]
    return tuple(d for d in [*single, *together] if concerns((*d.by, d.determined), keys))


def near_ones(pairs: Iterable[Dependence], keys: Sequence[str]) -> tuple[Dependence, ...]:
    """Return the near dependences in which a key is part."""
    near = (d for d in pairs if d.determined is None)
    return tuple(d for d in near if concerns((d.first, d.second), keys))


def given_away(pairs: Iterable[Dependence], keys: Sequence[str]) -> list[str]:
    """Warn of columns outside the keys that tell a key."""
    return [
        f"{by!r}, which is not among the keys, reveals key {told!r}: protect both in the same way."
        for by, told in told_exactly(pairs, keys)
    ]


def told_exactly(pairs: Iterable[Dependence], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that determine one of these and are not among them, and which it is."""
    for d in pairs:
        for told, by in ((d.determined, d.determining), (d.determining, d.determined)):
            is_exact = by is not None and (told == d.determined or d.equivalent)
            if is_exact and told in names and by not in names:
                yield str(by), str(told)


def encode_all(data: Records) -> tuple[str, ...]:
    """Have all columns encoded; return those whose values the disk engine cannot hold."""
    names = data.require(data.names, purpose="column")
    if isinstance(data, Microdata):
        return ()
    on_disk: Any = data
    unheld: tuple[str, ...] = on_disk.encode_what_fits(names)
    return unheld


def not_compared(names: Iterable[str]) -> list[str]:
    """Say of columns that they were compared with no other."""
    template = (
        "{0!r} was compared with no other column: {1}. Allow more memory ({memory}) to find what "
        "depends on it."
    )
    return [Problem(template, name, UNHELD) for name in names]


def _reason(data: Records, name: str, unheld: Sequence[str]) -> str:
    if name in unheld:
        return UNHELD
    if isinstance(data, Microdata):
        if is_unreadable(data.frame.get_column(name)):
            return UNREADABLE
        # Encoding what is nearly unique would only take time.
        if data.column(name).drop_nulls().n_unique() > max(2, data.records / 2):
            return FINE
    return _why_left_out(data.codes(name).size, data.records)


def _why_left_out(size: int, records: int) -> str:
    return "" if is_fit(size, records) else CONSTANT if size <= 1 else FINE
