"""The result of a tabulation: one estimate a cell, as a list or as a cross-table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.results import Result, Table
from keyhole.utility.figures import amount, degrees

if TYPE_CHECKING:
    import altair

__all__ = ["RESERVED", "Tabulation", "cell_label"]

# What a cell has besides its values on the variables.
RESERVED = ("estimate", "se", "df", "low", "high")
# A summary shows the first of many cells; all are in the frame and in the dictionary.
SHOWN = 60
# A cross-table wider than this is easier to read as a list.
WIDEST = 10


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Tabulation(Result):
    """A table combined over implicates.

    Parameters
    ----------
    rows, cols
        The variables of the rows and of the columns.
    weight, mean
        The weight, and the variable that is averaged, if any.
    implicates, records
        How many implicates there are, and how many records each has.
    level
        The confidence level.
    cells
        One row a cell: its values on the variables, `estimate`, `se`, `df`, `low`, `high`.
    notes
        What could not be computed, and why.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    weight: str | None
    mean: str | None
    implicates: int
    records: int
    level: float
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: its values on the variables, then the figures."""
        return self.cells

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; an infinite df is null, as a note says."""
        cells = self.cells.to_dicts()
        for cell in cells:
            if cell["df"] is not None and math.isinf(cell["df"]):
                cell["df"] = None
        return {
            "rows": list(self.rows),
            "cols": list(self.cols),
            "weight": self.weight,
            "mean": self.mean,
            "implicates": self.implicates,
            "records": self.records,
            "level": self.level,
            "cells": cells,
            "notes": list(self.notes),
        }

    def title(self) -> str:
        """Say what is tabulated."""
        what = "Records" if self.mean is None else f"Mean of {self.mean}"
        if self.weight is not None:
            what = f"Weighted {what.lower() if self.mean is None else 'mean of ' + self.mean}"
        across = f" and {', '.join(self.cols)}" if self.cols else ""
        return f"{what} by {', '.join(self.rows)}{across}"

    def tables(self) -> list[Table]:
        """Return a cross-table of estimates with standard errors, or a list if it is too wide."""
        crossed = self._crossed() if self.cols else None
        return [crossed or self._listed()]

    def _listed(self) -> Table:
        columns = [*self.variables, "estimate", "se", "df", f"{100 * self.level:g}% from", "to"]
        rows = [
            [*(cell_label(row[name]) for name in self.variables), amount(row["estimate"]),
             amount(row["se"]), degrees(row["df"]), amount(row["low"]), amount(row["high"])]
            for row in self.cells.head(SHOWN).iter_rows(named=True)
        ]  # fmt: skip
        return Table(self.title(), columns, rows, self._notes(self.cells.height))

    def _crossed(self) -> Table | None:
        heads = self.cells.select(self.cols).unique(maintain_order=True).sort(
            self.cols, nulls_last=True
        )  # fmt: skip
        sides = self.cells.select(self.rows).unique(maintain_order=True)
        if heads.height > WIDEST:
            return None
        places = {row: f"{amount(e)} ({amount(s)})" for *row_, e, s in self._figures()
                  for row in [tuple(row_)]}  # fmt: skip
        rows = [
            [*map(cell_label, side), *(places.get((*side, *head), "") for head in heads.rows())]
            for side in sides.head(SHOWN).rows()
        ]
        names = [", ".join(map(cell_label, head)) for head in heads.rows()]
        columns = [*self.rows, *(f"{', '.join(self.cols)}: {name}" for name in names)]
        said = ["Estimates, with standard errors in brackets."]
        return Table(self.title(), columns, rows, said + self._notes(sides.height))

    def _figures(self) -> list[tuple[Any, ...]]:
        return self.cells.select(*self.variables, "estimate", "se").rows()

    def _notes(self, length: int) -> list[str]:
        count = f"{self.implicates} implicate{'s' if self.implicates > 1 else ''}"
        notes = [f"Combined over {count} of {self.records:,} records."]
        notes += [note[0].upper() + note[1:] + "." for note in self.notes]
        if length > SHOWN:
            notes.append(f"And {length - SHOWN:,} more rows, which the JSON object has.")
        return notes

    def plot(self) -> altair.TopLevelMixin:
        """Draw a bar a cell, with its interval."""
        from keyhole.utility.charts import tabulation_chart

        return tabulation_chart(self)


def cell_label(value: Any) -> str:
    """Write a value of a variable; a missing one says so.

    Examples
    --------
    >>> cell_label("f"), cell_label(3.0), cell_label(None)
    ('f', '3', 'missing')
    """
    if value is None:
        return "missing"
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
