"""The internal part of a protected table: true values, what is unsafe, what can be derived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.crossing import CrossTable
from keyhole.protection.tables.demands import TOLERANCE
from keyhole.protection.tables.primary import Rules, Unsafe
from keyhole.protection.tables.suppression import Pattern
from keyhole.results import Result, Table
from keyhole.utility.figures import amount, sentences

__all__ = ["TableAudit"]

# A summary shows the first of many rows; all are in the frame.
SHOWN = 40


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableAudit(Result):
    """What an outsider can derive from a protected table, beside what is true.

    Parameters
    ----------
    table
        The table with its true values.
    rules, unsafe
        The rules, and what they find.
    protect
        How the table is protected.
    shown
        What is published; not a number where a cell is suppressed.
    low, high
        The smallest and largest value of each cell that an outsider cannot exclude.
    pattern
        The pattern of suppressed cells, and whether it is the cheapest.
    notes
        What could not be done.
    """

    table: CrossTable
    rules: Rules
    unsafe: Unsafe
    protect: str
    shown: Floats
    low: Floats
    high: Floats
    pattern: Pattern | None
    notes: tuple[str, ...] = ()

    @property
    def suppressed(self) -> Flags:
        """Which cells are suppressed."""
        found: Flags = np.isnan(self.shown)
        return found

    @property
    def asked(self) -> tuple[Floats, Floats, Floats]:
        """How far below, above and in all the intervals of unsafe cells must reach.

        Rounded counts must leave at least two possible counts; else the levels of the rules.
        """
        if self.protect == "round" and self.table.is_count:
            nothing = np.zeros(len(self.low))
            return nothing, nothing, self.unsafe.cells.astype(np.float64)
        return self.unsafe.lower, self.unsafe.upper, self.unsafe.sliding

    @property
    def narrow(self) -> Flags:
        """The unsafe cells whose interval is narrower than asked."""
        lower, upper, sliding = ((1 - 2 * TOLERANCE) * level for level in self.asked)
        values = self.table.values
        slack = 1e-7 * values  # solvers are no more exact
        enough = (
            (values - self.low >= lower - slack)
            & (self.high - values >= upper - slack)
            & (self.high - self.low >= sliding - slack)
        )
        found: Flags = self.unsafe.cells & ~enough
        return found

    @property
    def safe(self) -> bool:
        """Whether no unsafe cell's interval is narrower than asked."""
        return not self.narrow.any()

    @property
    def discrepancy(self) -> Floats:
        """What each margin lacks, or has too much, against the true one.

        A suppressed table's margin is what its cells that are shown add up to.
        """
        if self.protect == "round":
            return self.shown - self.table.values
        inner = np.where(self.suppressed | self.table.margin, 0.0, self.table.values)
        return _with_totals(inner, self.table.shape) - self.table.values

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: true value, records, what is unsafe, shown, and the interval."""
        table, places = self.table, self.table.places
        columns: dict[str, Any] = {
            name: [table.label(i, int(place)) for place in places[:, i]]
            for i, name in enumerate(table.variables)
        }
        columns |= {
            "value": table.values,
            "count": table.counts,
            "unsafe": self.unsafe.cells,
            "suppressed": self.suppressed,
            "shown": pl.Series(self.shown).fill_nan(None),
            "low": self.low,
            "high": self.high,
        }
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the audit as plain values."""
        return {
            "cells": len(self.shown),
            "unsafe": {name: int(found.sum()) for name, found in self.unsafe.by_rule.items()},
            "unsafe_cells": int(self.unsafe.cells.sum()),
            "suppressed": int(self.suppressed.sum()),
            "cost": None if self.pattern is None else self.pattern.cost,
            "bound": None if self.pattern is None else self.pattern.bound,
            "proven": None if self.pattern is None else self.pattern.proven,
            "safe": self.safe,
            "narrow": int(self.narrow.sum()),
            "largest_margin_discrepancy": self._largest_discrepancy(),
            "notes": list(self.notes),
        }

    def _largest_discrepancy(self) -> float:
        return float(np.abs(self.discrepancy[self.table.margin]).max())

    def tables(self) -> list[Table]:
        """Return the figures, the cells that needed care, and the margins."""
        found = [self._figures(), self._cells()]
        if self.protect != "none":
            found.append(self._margins())
        return [table for table in found if table.rows]

    def _figures(self) -> Table:
        rows = [["cells, totals included", f"{len(self.shown):,}"]]
        rows += [
            [f"unsafe by {name}", f"{int(found.sum()):,}"]
            for name, found in self.unsafe.by_rule.items()
            if found.any() or name == "threshold"
        ]
        rows.append(["suppressed", f"{int(self.suppressed.sum()):,}"])
        rows.append(["unsafe with an interval narrower than asked", f"{int(self.narrow.sum()):,}"])
        return Table("Audit: internal, not to be published", ["figure", "value"], rows, self.said())

    def said(self) -> list[str]:
        """Say in sentences how good the protection is."""
        said = [_pattern_note(self.pattern)] if self.pattern is not None else []
        if self.pattern is not None and self.pattern.unprotected:
            said.append(
                f"{self.pattern.unprotected:,} demands cannot be met against a contributor who is "
                f"alone in another cell, by no pattern."
            )
        if self.table.magnitude and not (self.rules.dominance or self.rules.p_percent):
            said.append(
                "No rule looks at the size of contributions: give p percent, or a dominance rule."
            )
        return said + sentences(self.notes)

    def _cells(self) -> Table:
        frame = self.to_frame().with_columns(narrow=pl.Series(self.narrow))
        frame = frame.filter(pl.col("unsafe") | pl.col("suppressed"))
        rows = [
            [*(row[name] for name in self.table.variables), amount(row["value"]),
             f"{row['count']:,}", "yes" if row["unsafe"] else "", amount(row["low"]),
             _high(row["high"]), "yes" if row["narrow"] else ""]
            for row in frame.head(SHOWN).iter_rows(named=True)
        ]  # fmt: skip
        columns = [*self.table.variables, "value", "records", "unsafe", "from", "to", "too narrow"]
        return Table("What an outsider can derive", columns, rows, _more(frame.height))

    def _margins(self) -> Table:
        off = self.discrepancy
        cells = np.flatnonzero(self.table.margin & (np.abs(off) > 1e-9 * self.table.values))
        rows = [
            [*(self.table.label(i, int(p)) for i, p in enumerate(self.table.places[cell])),
             amount(self.table.values[cell]), amount(self.table.values[cell] + off[cell]),
             amount(off[cell])]
            for cell in cells[:SHOWN]
        ]  # fmt: skip
        name = "rounded" if self.protect == "round" else "cells shown add up to"
        columns = [*self.table.variables, "true", name, "discrepancy"]
        return Table("Margins that differ", columns, rows, _more(len(cells)))


def _with_totals(inner: Floats, shape: tuple[int, ...]) -> Floats:
    grid = inner.reshape(shape).copy()
    for axis in range(grid.ndim):
        parts = np.moveaxis(grid, axis, 0)
        parts[-1] = parts[:-1].sum(axis=0)
    return grid.ravel()


def _pattern_note(pattern: Pattern) -> str:
    if not pattern.suppressed.any():
        return "Nothing needs to be suppressed."
    if pattern.proven:
        return f"No safe pattern costs less than this one ({amount(pattern.cost)})."
    return (
        f"The pattern is safe but not proven the smallest: it costs {amount(pattern.cost)}, and "
        f"none can cost less than {amount(pattern.bound)} (gap {100 * pattern.gap:.1f}%)."
    )


def _high(value: float) -> str:
    return "no end" if np.isinf(value) else amount(value)


def _more(length: int) -> list[str]:
    return [f"And {length - SHOWN:,} more, which the frame has."] if length > SHOWN else []
