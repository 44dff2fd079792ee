"""What was found by a screening that looked at dependences alone, and the tables of dependences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.names import plural
from keyhole.results import Result, Table, share
from keyhole.screening.dependence import Dependence
from keyhole.screening.determination import Determination

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["DependenceScreening", "NotCompared", "dependence_tables", "near_as_dict"]

SHOWN = 30
NOT_LOOKED_AT = (
    "Only dependences were looked at. Direct identifiers, Safe Harbor, record numbers, constants "
    "and nearly unique columns were not looked for: keyhole screen without --only-dependences does "
    "that, on memory or disk."
)


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

    records: int
    engine: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    nearly: float
    sets: bool
    not_compared: tuple[NotCompared, ...]
    dependencies: tuple[Determination, ...]
    near_dependencies: tuple[Dependence, ...]
    warnings: tuple[str, ...] = ()

    @property
    def compared(self) -> int:
        """How many columns were compared."""
        return len(self.names) - len(self.not_compared)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values, as `--json` prints them; null: not looked at."""
        return {
            "looked_at": ["dependences"],
            "records": self.records,
            "columns": len(self.names),
            "engine": self.engine,
            "keys": list(self.keys),
            "year": None,
            "sure": None,
            "nearly": self.nearly,
            "sets": self.sets,
            "identifiers": None,
            "safe_harbor": None,
            "record_numbers": None,
            "constants": None,
            "near_unique": None,
            "not_compared": [asdict(one) for one in self.not_compared],
            "dependencies": [asdict(d) for d in self.dependencies],
            "near_dependencies": [near_as_dict(d) for d in self.near_dependencies],
            "warnings": list(self.warnings),
            "notes": [NOT_LOOKED_AT],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a dependence, the exact ones first."""
        import polars as pl

        rows: list[dict[str, Any]] = [
            {"dependence": "exact", "variable": d.determined, "by": " and ".join(d.by),
             "equivalent": d.equivalent}
            for d in self.dependencies
        ]  # fmt: skip
        for near in self.near_dependencies:
            told = near_as_dict(near)
            variable, by = told.pop("first"), told.pop("second")
            rows.append({"dependence": "near", "variable": variable, "by": by, **told})
        texts = dict.fromkeys(("dependence", "variable", "by"), pl.String)
        numbers = dict.fromkeys(("cramers_v", "first_told", "second_told"), pl.Float64)
        return pl.DataFrame(rows, schema={**texts, "equivalent": pl.Boolean, **numbers})

    def tables(self) -> list[Table]:
        """Return what a person reads; first of all what was not looked at."""
        return [*self._begin(), *self._found(), *self._rest()]

    def _begin(self) -> Iterator[Table]:
        size = f"{plural(self.records, 'record')} and {plural(len(self.names), 'column')}"
        yield Table(f"Dependences alone, in {size}", [], [], [NOT_LOOKED_AT])

    def _found(self) -> Iterator[Table]:
        none = (
            f"Among the {self.compared:,} columns compared no variable determines another, or "
            f"nearly so."
        )
        if self.compared < 2:
            none = "There are no two columns to be compared."
        elif self.keys:
            none = f"{none[:-1]}, where a key is part."
        yield from dependence_tables(self.dependencies, self.near_dependencies, none)

    def _rest(self) -> Iterator[Table]:
        if self.not_compared:
            rows = [[one.column, one.reason] for one in self.not_compared]
            yield Table("Columns that were not compared", ["column", "why"], rows)
        if self.warnings:
            yield Table("Mind", [], [], list(self.warnings))

    def plot(self) -> altair.TopLevelMixin:
        """Draw which columns depend on which."""
        from keyhole.screening.charts import dependence_chart

        return dependence_chart(self)


def near_as_dict(pair: Dependence) -> dict[str, Any]:
    """Return two variables that nearly duplicate each other as plain values."""
    return {
        "first": pair.first, "second": pair.second, "cramers_v": pair.cramers_v,
        "first_told": pair.first_told, "second_told": pair.second_told,
    }  # fmt: skip


def dependence_tables(
    exact: Sequence[Determination], near: Sequence[Dependence], none: str
) -> Iterator[Table]:
    """Yield the tables of dependences.

    Parameters
    ----------
    exact, near
        The dependences.
    none
        What to say where there are none.
    """
    if exact:
        rows = [[d.determined, " and ".join(d.by), "yes" if d.equivalent else "no"] for d in exact]
        names = ["variable", "determined by", "and the other way"]
        yield Table("Exact dependences", names, rows[:SHOWN], _cut(rows))
    if near:
        rows = [
            [d.first, d.second, share(d.cramers_v, 3), share(d.first_told, 3),
             share(d.second_told, 3)]
            for d in sorted(near, key=lambda d: -d.strength)
        ]  # fmt: skip
        names = ["first", "second", "Cramér's V", "first told by second", "second by first"]
        yield Table("Near dependences", names, rows[:SHOWN], _cut(rows))
    if not exact and not near:
        yield Table("Dependences", [], [], [none])


def _cut(rows: list[list[str]]) -> list[str]:
    left = len(rows) - SHOWN
    if left <= 0:
        return []
    return [f"{left:,} more {'is' if left == 1 else 'are'} in the JSON."]
