"""What one protection gives back: the new file, and a line for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.results import Result, Table

__all__ = ["Protected", "listed", "minded"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protected(Result):
    """A file after one protection, with what was done to it.

    `changed` counts the values that are no longer what they were, by column: those taken away
    too (dropped, suppressed). `left_out` counts records that are gone, and `kept` says which are
    not; None where all are there. `fitted` are options found in the data that repeat the same
    protection on other data; `internal` is what must not leave the house, and is in no table and
    no dictionary.
    """

    data: Microdata
    method: str
    by_column: Mapping[str, int]
    notes: tuple[str, ...] = ()
    left_out: int = 0
    fitted: Mapping[str, Any] = field(default_factory=dict)
    internal: Mapping[str, Any] = field(default_factory=dict)
    kept: npt.NDArray[np.int64] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the method was to change."""
        return tuple(self.by_column)

    @property
    def changed(self) -> int:
        """The number of values changed; of a sample, of records left out."""
        return sum(self.by_column.values()) + self.left_out

    def to_dict(self) -> dict[str, Any]:
        """Return the line of the report as plain values."""
        return {
            "method": self.method,
            "column": listed(self.columns),
            "columns": list(self.columns),
            "changed": self.changed,
            "by_column": dict(self.by_column),
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column with the number of its values that were changed."""
        rows = {"column": list(self.by_column), "changed": list(self.by_column.values())}
        return pl.DataFrame(rows, schema={"column": pl.String, "changed": pl.Int64})

    def tables(self) -> list[Table]:
        """Return the line as a table."""
        row = [self.method, listed(self.columns) or "", f"{self.changed:,}"]
        return [Table("Protected", ["method", "column", "changed"], [row], self.notes)]


def minded(warnings: Sequence[str]) -> list[Table]:
    """Return what is to be minded as a table of sentences; none if there is nothing.

    Examples
    --------
    >>> print(minded(["the seed is small"])[0].to_text())
    Mind
      The seed is small.
    """
    lines = [f"{text[:1].upper()}{text[1:]}." for text in warnings]
    return [Table("Mind", [], [], lines)] if lines else []


def listed(columns: tuple[str, ...]) -> str | None:
    """Write columns as the command line takes them: with commas, odd names in quotes.

    Examples
    --------
    >>> listed(("age", "born, year")), listed(())
    ('age,"born, year"', None)
    """
    odd = {name: '"' + name.replace('"', '""') + '"' for name in columns if set(name) & set(',"')}
    return ",".join(odd.get(name, name) for name in columns) or None
