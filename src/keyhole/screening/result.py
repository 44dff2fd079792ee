"""What screening found, as tables, as plain values and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.names import plural
from keyhole.results import Result, Table
from keyhole.screening.dependence import Dependence
from keyhole.screening.dependence_result import dependence_tables, near_as_dict
from keyhole.screening.determination import Determination
from keyhole.screening.identifiers import Identifier
from keyhole.screening.inspection import Inspection
from keyhole.screening.places import CENSUS
from keyhole.screening.safe_harbor import Check

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["Found", "Screening"]

_CAVEATS = (
    "Not found means that nothing was recognised: look at the file yourself as well.",
    f"Small three-digit ZIP areas are those of {CENSUS}: check them against the current census.",
    "Safe Harbor also asks that you have no actual knowledge that somebody could be identified.",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A direct identifier and the column it was found in."""

    column: str
    identifier: Identifier


@dataclass(frozen=True, slots=True, repr=False)
class Screening(Result):
    """What must be seen to in a file before it is measured or released.

    `columns` has an inspection of each column in the order of the file. With `keys` the
    dependences are those in which a key is part; `sets` says whether pairs that determine a third
    column were looked for.
    """

    records: int
    keys: tuple[str, ...]
    year: int
    sure: float
    nearly: float
    columns: tuple[Inspection, ...]
    identifiers: tuple[Found, ...]
    safe_harbor: tuple[Check, ...]
    dependencies: tuple[Determination, ...]
    near_dependencies: tuple[Dependence, ...]
    warnings: tuple[str, ...] = ()
    sets: bool = True

    @property
    def constants(self) -> tuple[str, ...]:
        """The columns with one value, or none, in the whole file."""
        return tuple(one.variable.name for one in self.columns if one.is_constant)

    @property
    def near_unique(self) -> tuple[Inspection, ...]:
        """The columns with more values than half the records that have one."""
        return tuple(one for one in self.columns if one.is_nearly_unique)

    @property
    def record_numbers(self) -> tuple[Inspection, ...]:
        """The columns by which a person's records can be linked over releases."""
        return tuple(one for one in self.columns if one.number is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values, as `--json` prints them."""
        return {
            "looked_at": ["identifiers", "safe_harbor", "columns", "dependences"],
            "records": self.records,
            "columns": len(self.columns),
            "keys": list(self.keys),
            "year": self.year,
            "sure": self.sure,
            "nearly": self.nearly,
            "sets": self.sets,
            "identifiers": [{"column": f.column, **asdict(f.identifier)} for f in self.identifiers],
            "safe_harbor": [asdict(check) for check in self.safe_harbor],
            "record_numbers": [asdict(one.number) for one in self.record_numbers if one.number],
            "constants": list(self.constants),
            "near_unique": [
                {"column": one.variable.name, "distinct": one.distinct, "filled": one.filled,
                 "alone": one.alone}
                for one in self.near_unique
            ],
            "dependencies": [asdict(d) for d in self.dependencies],
            "near_dependencies": [near_as_dict(d) for d in self.near_dependencies],
            "warnings": list(self.warnings),
            "notes": list(_CAVEATS),
        }  # fmt: skip

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column, in the order of the file."""
        import polars as pl

        items = {
            one.variable.name: [c.item for c in self.safe_harbor for f in c.findings
                                if f.column == one.variable.name]
            for one in self.columns
        }  # fmt: skip
        rows = [
            {
                "column": one.variable.name,
                "kind": one.variable.kind,
                "filled": one.filled,
                "distinct": one.distinct,
                "identifier": one.identifiers[0].kind if one.identifiers else None,
                "confidence": one.identifiers[0].confidence if one.identifiers else None,
                "safe_harbor": "".join(dict.fromkeys(items[one.variable.name])) or None,
                "record_number": one.number.sort if one.number is not None else None,
                "constant": one.is_constant,
                "near_unique": one.is_nearly_unique,
            }
            for one in self.columns
        ]
        texts = ("identifier", "safe_harbor", "record_number")
        schema: dict[str, Any] = dict.fromkeys(texts, pl.String)
        return pl.DataFrame(rows, schema_overrides={**schema, "confidence": pl.Float64})

    def tables(self) -> list[Table]:
        """Return what a person reads, the gravest first."""
        return [*self._people(), *self._columns(), *self._dependence(), *self._said()]

    def _people(self) -> Iterator[Table]:
        size = f"{plural(self.records, 'record')} and {plural(len(self.columns), 'column')}"
        title = f"Direct identifiers, in {size}"
        if self.identifiers:
            rows = [
                [f.column, f.identifier.kind, f"{f.identifier.confidence:.2f}",
                 f.identifier.safe_harbor, f.identifier.reason]
                for f in self.identifiers
            ]  # fmt: skip
            yield Table(title, ["column", "kind", "confidence", "item", "why"], rows)
        else:
            yield Table(title, [], [], ["None was recognised."])
        checks = [
            [c.item, c.title, c.status, ", ".join(dict.fromkeys(f.column for f in c.findings))]
            for c in self.safe_harbor
        ]
        notes = [f"{c.item}: {c.note}." for c in self.safe_harbor if c.note]
        columns = ["item", "what", "status", "columns"]
        yield Table("Safe Harbor, 45 CFR 164.514(b)(2)(i)", columns, checks, [*notes, *_CAVEATS])
        found = [(c.item, f) for c in self.safe_harbor for f in c.findings]
        if found:
            todo = [[item, f.column, f.what, f.reason] for item, f in found]
            ways = dict.fromkeys(f"{item}: {f.remedy}" for item, f in found)
            yield Table("What was found, and what to do", ["item", "column", "what", "why"], todo,
                        list(ways))  # fmt: skip

    def _columns(self) -> Iterator[Table]:
        if self.record_numbers:
            rows = [
                [n.column, n.sort, f"{n.distinct:.3f}", f"{n.most:,}", n.reason]
                for one in self.record_numbers
                if (n := one.number) is not None
            ]
            names = ["column", "sort", "values per record", "most records of one", "why"]
            note = (
                "The same number in the next release, or in another file, links a person's "
                "records: give each release random numbers of its own, or none."
            )
            yield Table("Record numbers", names, rows, [note])
        rows = [[name, "constant", "one value in the whole file"] for name in self.constants]
        rows += [
            [one.variable.name, "nearly unique", f"{one.alone / one.filled:.0%} of the "
             f"records that have a value have it alone"]
            for one in self.near_unique
        ]  # fmt: skip
        if rows:
            yield Table("Columns that tell nothing, or nearly everything", ["column", "is", "why"],
                        rows)  # fmt: skip

    def _dependence(self) -> Iterator[Table]:
        none = "No variable determines another, or nearly so."
        yield from dependence_tables(self.dependencies, self.near_dependencies, none)

    def _said(self) -> Iterator[Table]:
        if self.warnings:
            yield Table("Mind", [], [], list(self.warnings))

    def plot(self) -> altair.TopLevelMixin:
        """Draw which columns were found under which items, and which depend on which."""
        from keyhole.screening.charts import screening_chart

        return screening_chart(self)
