"""What may be published of a table; what must not is in its `internal` part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.results import Result, Table
from keyhole.utility.figures import cell_label, sentences

if TYPE_CHECKING:
    import altair

    from keyhole.protection.tables.audit import TableAudit

__all__ = ["ProtectedTable", "figure"]

# A cross-table wider than this is easier to read as a list.
WIDEST = 16
# A summary shows the first of many rows; all are in the frame and in the dictionary.
SHOWN = 60
MARK = "×"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ProtectedTable(Result):
    """A table with its margins, as it may be published.

    Which suppressed cells are unsafe and which only protect others is not told, nor are the
    parameters of the rules.

    Parameters
    ----------
    rows, cols
        The variables of the rows and of the columns.
    levels
        The categories of each variable; missing is None.
    shown
        The cells, in the order of the variables with the total after the last category; not a
        number where a cell is suppressed.
    magnitude, weight
        The variable that is added up, and the weight, if any.
    protect, base
        How the table is protected, and the base of rounding.
    notes
        What a reader should know.
    internal
        The audit, with true values: it is not for publication.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    shown: npt.NDArray[np.float64]
    magnitude: str | None
    weight: str | None
    protect: str
    base: float | None
    notes: tuple[str, ...]
    internal: TableAudit

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable, and one more for its total."""
        return tuple(len(one) + 1 for one in self.levels)

    @property
    def suppressed(self) -> npt.NDArray[np.bool_]:
        """Which cells are suppressed."""
        found: npt.NDArray[np.bool_] = np.isnan(self.shown)
        return found

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: its categories as text, `value` (null if suppressed), and so on.

        A total has ``Total`` for a category, and names under `total_over` what it adds up.
        """
        places = np.stack(np.unravel_index(np.arange(len(self.shown)), self.shape), axis=1)
        columns: dict[str, Any] = {
            name: [self._label(i, place) for place in places[:, i]]
            for i, name in enumerate(self.variables)
        }
        columns["total_over"] = [", ".join(self._over(place)) for place in places]
        values = pl.Series(self.shown).fill_nan(None)
        columns["value"] = values.cast(pl.Int64) if self._holds_counts() else values
        columns["suppressed"] = self.suppressed
        return pl.DataFrame(columns)

    def _label(self, variable: int, place: int) -> str:
        levels = self.levels[variable]
        return "Total" if place == len(levels) else cell_label(levels[place])

    def _over(self, place: npt.NDArray[np.int64]) -> list[str]:
        return [
            name
            for name, at, levels in zip(self.variables, place, self.levels, strict=True)
            if at == len(levels)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published as plain values; a total lacks what it adds up."""
        return {
            "rows": list(self.rows),
            "cols": list(self.cols),
            "magnitude": self.magnitude,
            "weight": self.weight,
            "protect": self.protect,
            "base": self.base,
            "suppressed": int(self.suppressed.sum()),
            "cells": [self._cell(number) for number in range(len(self.shown))],
            "notes": list(self.notes),
        }

    def _cell(self, number: int) -> dict[str, Any]:
        places = np.unravel_index(number, self.shape)
        named = zip(self.variables, places, self.levels, strict=True)
        found = float(self.shown[number])
        value = None if np.isnan(found) else round(found) if self._holds_counts() else found
        return {
            **{name: levels[at] for name, at, levels in named if at < len(levels)},
            "total_over": self._over(np.array(places)),
            "value": value,
            "suppressed": value is None,
        }

    def _holds_counts(self) -> bool:
        """Whether all cells are whole numbers of records."""
        whole = self.base is None or float(self.base).is_integer()
        return self.magnitude is None and self.weight is None and whole

    def title(self) -> str:
        """Say what is tabulated."""
        what = "Records" if self.magnitude is None else f"Total of {self.magnitude}"
        if self.weight is not None:
            what = f"Weighted {what[0].lower()}{what[1:]}"
        across = f" and {', '.join(self.cols)}" if self.cols else ""
        more = f", rounded to {self.base:g}" if self.base is not None else ""
        more = ", not protected" if self.protect == "none" else more
        return f"{what} by {', '.join(self.rows)}{across}{more}"

    def tables(self) -> list[Table]:
        """Return a cross-table, or a list if there are no columns or too many."""
        split = len(self.rows)
        width = int(np.prod(self.shape[split:]))
        if not self.cols or width > WIDEST:
            split, width = len(self.shape), 1
        grid = self.shown.reshape(-1, width)
        digits = digits_of(self.shown)
        sides = list(itertools.product(*(range(size) for size in self.shape[:split])))
        rows = [
            [*(self._label(i, at) for i, at in enumerate(side)), *(figure(v, digits) for v in line)]
            for side, line in zip(sides[:SHOWN], grid, strict=False)
        ]
        return [Table(self.title(), self._heads(split), rows, self._notes(len(sides)))]

    def _heads(self, split: int) -> list[str]:
        names = list(self.variables[:split])
        if split == len(self.shape):
            return [*names, self.magnitude or "records"]
        for places in itertools.product(*(range(size) for size in self.shape[split:])):
            labels = [self._label(split + i, at) for i, at in enumerate(places)]
            total = set(labels) == {"Total"} and not any(
                at < len(one) for at, one in zip(places, self.levels[split:], strict=True)
            )
            names.append("Total" if total else f"{', '.join(self.cols)}: {', '.join(labels)}")
        return names

    def _notes(self, length: int) -> list[str]:
        notes = [f"{MARK} not shown, to protect contributors."] if self.suppressed.any() else []
        notes += sentences(self.notes)
        if length > SHOWN:
            notes.append(f"And {length - SHOWN:,} more rows, which the JSON object has.")
        return notes

    def plot(self) -> altair.TopLevelMixin:
        """Draw the table as a heat map with suppressed cells marked."""
        from keyhole.protection.tables.charts import table_chart

        return table_chart(self)


def digits_of(values: npt.NDArray[np.float64]) -> int:
    """Return how many decimals a table needs: none if all its cells are whole."""
    there = values[np.isfinite(values)]
    return 0 if np.array_equal(there, np.round(there)) else 2


def figure(value: float, digits: int = 0) -> str:
    """Write a cell; one that is suppressed is a mark.

    Examples
    --------
    >>> figure(1234.0), figure(float("nan")), figure(0.5, 2)
    ('1,234', '×', '0.50')
    """
    return MARK if np.isnan(value) else f"{value:,.{digits}f}"
