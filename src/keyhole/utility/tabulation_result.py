"""The result of a tabulation: one estimate a cell, as a list or as a cross-table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from keyhole.results import Result, Table
from keyhole.utility.figures import NONE, decimals_for, degrees, fixed

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
    weight, mean, share
        The weight, the variable that is averaged, and of what the cells are shares, if any.
    implicates, records
        How many implicates there are, and how many records each has.
    level
        The confidence level.
    cells
        One row a cell: its values on the variables, `estimate`, `se`, `df`, `low`, `high`.
    margins
        The same figures by `rows` alone, by `cols` alone, and for the `total`.
    notes
        What could not be computed, and why.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    weight: str | None
    mean: str | None
    share: str | None
    implicates: int
    records: int
    level: float
    cells: pl.DataFrame
    margins: Mapping[str, pl.DataFrame] = field(default_factory=dict)
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
        margins = {name: _plain(frame) for name, frame in self.margins.items()}
        return {
            "rows": list(self.rows),
            "cols": list(self.cols),
            "weight": self.weight,
            "mean": self.mean,
            "share": self.share,
            "implicates": self.implicates,
            "records": self.records,
            "level": self.level,
            "cells": _plain(self.cells),
            "margins": margins,
            "notes": list(self.notes),
        }

    def title(self) -> str:
        """Say what is tabulated."""
        what = "records" if self.mean is None else f"mean of {self.mean}"
        what = what if self.weight is None else f"weighted {what}"
        if self.share is not None:
            whole = {"table": "", "rows": ", within rows", "cols": ", within columns"}[self.share]
            what = f"share of {what}{whole}"
        across = f" and {', '.join(self.cols)}" if self.cols else ""
        return f"{what[0].upper()}{what[1:]} by {', '.join(self.rows)}{across}"

    def tables(self) -> list[Table]:
        """Return a cross-table of estimates with standard errors, or a list if it is too wide."""
        crossed = self._crossed() if self.cols else None
        return [crossed or self._listed()]

    def _decimals(self) -> int:
        """Return the decimals that all figures of the table have."""
        return decimals_for(self.cells["se"].to_list(), self.cells["estimate"].to_list())

    def _listed(self) -> Table:
        columns = [*self.variables, "estimate", "se", "df", f"{100 * self.level:g}% from", "to"]
        rows = [
            [*(cell_label(row[name]) for name in self.variables), *self._written(row)]
            for row in self.cells.head(SHOWN).iter_rows(named=True)
        ]
        for row in self.margins["total"].to_dicts() if self.cells.height > 1 else ():
            rows.append(["total", *[""] * (len(self.variables) - 1), *self._written(row)])
        return Table(self.title(), columns, rows, self._notes(self.cells.height, rows))

    def _written(self, row: Mapping[str, Any]) -> list[str]:
        places = self._decimals()
        df = NONE if row["df"] is None else degrees(row["df"])
        estimate, se, low, high = (fixed(row[n], places) for n in ("estimate", "se", "low", "high"))
        return [estimate, se, df, low, high]

    def _crossed(self) -> Table | None:
        heads = self.cells.select(self.cols).unique(maintain_order=True).sort(
            self.cols, nulls_last=True
        )  # fmt: skip
        sides = self.cells.select(self.rows).unique(maintain_order=True)
        if heads.height > WIDEST:
            return None
        cells = self._brackets(self.cells, self.variables)
        ends, feet = (self._brackets(self.margins[n], getattr(self, n)) for n in ("rows", "cols"))
        rows = [
            [*map(cell_label, side), *(cells.get((*side, *head), "") for head in heads.rows()),
             ends[side]]
            for side in sides.head(SHOWN).rows()
        ]  # fmt: skip
        total = self._brackets(self.margins["total"], ())[()]
        last = ["total", *[""] * (len(self.rows) - 1)]
        rows.append([*last, *(feet[head] for head in heads.rows()), total])
        names = [", ".join(map(cell_label, head)) for head in heads.rows()]
        columns = [*self.rows, *(f"{', '.join(self.cols)}: {name}" for name in names), "total"]
        said = ["Estimates, with standard errors in brackets."]
        return Table(self.title(), columns, rows, said + self._notes(sides.height, rows))

    def _brackets(self, frame: pl.DataFrame, names: tuple[str, ...]) -> dict[Any, str]:
        """Write estimates with errors in brackets, by the values of some variables."""
        places = self._decimals()
        return {
            tuple(row[name] for name in names): NONE
            if row["estimate"] is None
            else f"{fixed(row['estimate'], places)} ({fixed(row['se'], places)})"
            for row in frame.iter_rows(named=True)
        }

    def _notes(self, length: int, rows: list[list[str]]) -> list[str]:
        count = f"{self.implicates} implicate{'s' if self.implicates > 1 else ''}"
        verb = "Combined over" if self.implicates > 1 else "From"
        notes = [f"{verb} {count} of {self.records:,} records."]
        if any(NONE in cell for row in rows for cell in row):
            notes.append(f"{NONE} is not estimable.")
        notes += [note[0].upper() + note[1:] + "." for note in self.notes]
        if length > SHOWN:
            notes.append(f"And {length - SHOWN:,} more rows, which the JSON object has.")
        return notes

    def plot(self) -> altair.TopLevelMixin:
        """Draw a bar a cell, with its interval."""
        from keyhole.utility.charts import tabulation_chart

        return tabulation_chart(self)


def _plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values; an infinite df is null."""
    rows = frame.to_dicts()
    for row in rows:
        if row["df"] is not None and math.isinf(row["df"]):
            row["df"] = None
    return rows


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
