"""What the file under review is: its size, and the columns the review is about."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import COUNT
from keyhole.data import Microdata
from keyhole.results import Result, Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ColumnDescription", "Description", "describe_columns"]


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column in a line: no values, only how many categories there are and how many miss."""

    name: str
    label: str
    kind: str
    role: str | None
    categories: int
    missing: Annotated[int, COUNT]


@dataclass(frozen=True, slots=True, repr=False)
class Description(Result):
    """The size of a file, and the columns a review is about."""

    name: str
    records: Annotated[int, COUNT]
    columns: int
    described: tuple[ColumnDescription, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column described."""
        import polars as pl

        return pl.DataFrame([asdict(column) for column in self.described])

    def tables(self) -> list[Table]:
        """Return the columns described."""
        rows = [
            [c.name, c.kind, c.role or "", f"{c.categories:,}", f"{c.missing:,}", c.label]
            for c in self.described
        ]
        title = f"{self.name}: {self.records:,} records, {self.columns:,} columns"
        heads = ["column", "kind", "role", "categories", "missing", "label"]
        return [Table(title, heads, rows)]


def describe_columns(data: Microdata, names: tuple[str, ...]) -> Description:
    """Describe the columns named, without showing a value.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"age": [30, 30, None], "id": [1, 2, 3]}))
    >>> describe_columns(people, ("age",))
    data: 3 records, 2 columns
      column  kind     role  categories  missing  label
      age     category                1        1
    """
    described = []
    for name in names:
        variable, codes = data.variable(name), data.codes(name)
        missing = int((codes.values == len(codes.levels)).sum()) if codes.has_missing else 0
        described.append(
            ColumnDescription(
                name, variable.label, variable.kind, variable.role, len(codes.levels), missing
            )
        )
    return Description(data.name, data.records, len(data.names), tuple(described))
