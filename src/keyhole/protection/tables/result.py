"""Protected tables: what may be published, and the internal audit of what can be derived."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN, SPREAD, Named, figure
from keyhole.core.tables import Table
from keyhole.data import load
from keyhole.data.writing import save
from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.cells import CrossTable, SensitivityRules, Unsafe
from keyhole.protection.tables.demands import TOLERANCE
from keyhole.protection.tables.suppression import Pattern
from keyhole.results import Result
from keyhole.utility.figures import amount, cell_label, sentences

if TYPE_CHECKING:
    import altair


# A summary shows the first of many rows; all are in the frame.
AUDITED = 40


@dataclass(frozen=True, slots=True)
class AuditFigures(Figures):
    """What an audit found: unsafe cells by rule, and what protecting them took.

    `cost` and `bound` are those of the pattern of suppressed cells, `proven` says whether it is
    the cheapest. `narrow` counts unsafe cells whose interval is narrower than asked.
    """

    cells: int
    unsafe: Mapping[str, int]
    unsafe_cells: int
    suppressed: int
    cost: float | None
    bound: float | None
    proven: bool | None
    safe: bool
    narrow: int
    largest_margin_discrepancy: float

    @classmethod
    def of(cls, audit: TableAudit) -> AuditFigures:
        """Count what an audit found."""
        return cls(
            cells=len(audit.shown),
            unsafe={name: int(found.sum()) for name, found in audit.unsafe.by_rule.items()},
            unsafe_cells=int(audit.unsafe.cells.sum()),
            suppressed=int(audit.suppressed.sum()),
            **{name: getattr(audit.pattern, name, None) for name in ("cost", "bound", "proven")},
            safe=audit.safe,
            narrow=int(audit.narrow.sum()),
            largest_margin_discrepancy=float(np.abs(audit.discrepancy[audit.table.margin]).max()),
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableAudit(Result):
    """What an outsider can derive from a protected table, beside what is true.

    `table` has the true values, `unsafe` what the `rules` find in it, and `shown` what is
    published: not a number where a cell is suppressed. `low` and `high` are the smallest and the
    largest value of each cell that an outsider cannot exclude. `pattern` has the suppressed cells,
    and whether it is the cheapest; `notes` say what could not be done.
    """

    table: Annotated[CrossTable, HIDDEN]
    rules: Annotated[SensitivityRules, HIDDEN]
    unsafe: Annotated[Unsafe, HIDDEN]
    protect: Annotated[str, HIDDEN]
    shown: Annotated[Floats, HIDDEN]
    low: Annotated[Floats, HIDDEN]
    high: Annotated[Floats, HIDDEN]
    pattern: Annotated[Pattern | None, HIDDEN]
    notes: tuple[str, ...] = ()
    figures: Annotated[AuditFigures, SPREAD] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Count what was found."""
        if self.figures is None:
            object.__setattr__(self, "figures", AuditFigures.of(self))

    @property
    def suppressed(self) -> Flags:
        """Which cells are suppressed."""
        return np.asarray(np.isnan(self.shown))

    @property
    def asked(self) -> tuple[Floats, Floats, Floats]:
        """How far below, above and in all the intervals of unsafe cells must reach.

        Counts that are rounded or have noise must leave at least two possible counts, amounts with
        noise as much in all as is asked; else the levels of the rules.
        """
        nothing = np.zeros(len(self.low))
        if self.protect in ("round", "cell-key") and self.table.is_count:
            return nothing, nothing, self.unsafe.cells.astype(np.float64)
        if self.protect == "cell-key":
            return nothing, nothing, self.unsafe.sliding
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
        return np.asarray(self.unsafe.cells & ~enough)

    @property
    def safe(self) -> bool:
        """Whether no unsafe cell's interval is narrower than asked."""
        return not self.narrow.any()

    @property
    def discrepancy(self) -> Floats:
        """What each margin lacks, or has too much, against the true one.

        A suppressed table's margin is what its cells that are shown add up to.
        """
        if self.protect in ("round", "cell-key"):
            return self.shown - self.table.values
        inner = np.where(self.suppressed | self.table.margin, 0.0, self.table.values)
        grid = inner.reshape(self.table.shape)
        for axis in range(grid.ndim):
            parts = np.moveaxis(grid, axis, 0)
            parts[-1] = parts[:-1].sum(axis=0)
        return grid.ravel() - self.table.values

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

    def tables(self) -> list[Table]:
        """Return the figures, the cells that needed care, and the margins."""
        found = self.figures
        figures = {
            "cells, totals included": found.cells,
            **{
                f"unsafe by {name}": count
                for name, count in found.unsafe.items()
                if count or name == "threshold"
            },
            "suppressed": found.suppressed,
            "unsafe with an interval narrower than asked": found.narrow,
        }
        rows = [[name, f"{count:,}"] for name, count in figures.items()]
        title = "Audit: internal, not to be published"
        tables = [Table(title, ["figure", "value"], rows, self.said()), self._cells()]
        if self.protect != "none":
            tables.append(self._margins())
        return [table for table in tables if table.rows]

    def said(self) -> list[str]:
        """Say in sentences how good the protection is."""
        said, pattern = [], self.pattern
        if pattern is not None and not pattern.suppressed.any():
            said.append("Nothing needs to be suppressed.")
        elif pattern is not None and pattern.proven:
            said.append(f"No safe pattern costs less than this one ({amount(pattern.cost)}).")
        elif pattern is not None:
            said.append(
                f"The pattern is safe but not proven the smallest: it costs "
                f"{amount(pattern.cost)}, and none can cost less than {amount(pattern.bound)} "
                f"(gap {100 * pattern.gap:.1f}%)."
            )
        if pattern is not None and pattern.unprotected:
            said.append(
                f"{pattern.unprotected:,} demands cannot be met against a contributor who is "
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
             "no end" if np.isinf(row["high"]) else amount(row["high"]),
             "yes" if row["narrow"] else ""]
            for row in frame.head(AUDITED).iter_rows(named=True)
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
            for cell in cells[:AUDITED]
        ]  # fmt: skip
        named = {"round": "rounded", "cell-key": "with noise"}
        name = named.get(self.protect, "cells shown add up to")
        columns = [*self.table.variables, "true", name, "discrepancy"]
        return Table("Margins that differ", columns, rows, _more(len(cells)))


def _more(length: int) -> list[str]:
    return [f"And {length - AUDITED:,} more, which the frame has."] if length > AUDITED else []


# A cross-table wider than this is easier to read as a list.
WIDEST = 16
# A summary shows the first of many rows; all are in the frame and in the dictionary.
SHOWN = 60
MARK = "×"


class PublishedCell(TypedDict):
    """What each cell has, beside its category of each variable under the variable's name."""

    total_over: list[str]
    value: float | None
    suppressed: bool


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ProtectedTable(Result):
    """A table with its margins, as it may be published.

    Which suppressed cells are unsafe and which only protect others is not told, nor are the
    parameters of the rules. `magnitude` is the variable that is added up, and `base` that of
    rounding, if any. `cells` are in the order of the variables, with the total after the last
    category: each has its category of each variable but those that are added up, `total_over`,
    `value` and `suppressed`. `levels` are the categories of each variable, of which missing is
    None, and `shown` the values, not a number where a cell is suppressed. `internal` is the audit,
    with true values: it is not for publication.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    magnitude: Annotated[str | None, "The variable that is added up; null for counts."]
    weight: str | None
    protect: Literal["suppress", "round", "cell-key", "none"]
    base: Annotated[float | None, "What cells are multiples of; null if they are not rounded."]
    cells: Annotated[
        tuple[PublishedCell, ...],
        "One object a cell: its category of each variable under the variable's name, of which null "
        "is missing; a total lacks the variables it adds up, which total_over names. The value is "
        "null where the cell is suppressed.",
    ]
    notes: tuple[str, ...]
    internal: Annotated[TableAudit, HIDDEN] = None  # type: ignore[assignment]
    levels: Annotated[tuple[tuple[Any, ...], ...], HIDDEN] = ()
    shown: Annotated[Floats, HIDDEN] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Find the categories and the values of a table that is given by its cells."""
        if self.shown is not None:
            return
        cells: Any = self.cells
        named = ([cell[one] for cell in cells if one in cell] for one in self.variables)
        levels = tuple(tuple(dict.fromkeys(values)) for values in named)
        shown = [np.nan if cell["value"] is None else cell["value"] for cell in self.cells]
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "shown", np.array(shown, dtype=np.float64))

    @classmethod
    def of(
        cls, audit: TableAudit, protect: Any, base: float | None, notes: tuple[str, ...]
    ) -> ProtectedTable:
        """Return what may be published of a table that was audited."""
        table, shown, levels_of = audit.table, audit.shown, audit.table.levels
        if protect in ("round", "cell-key"):
            levels_of, shown = _without_empty(levels_of, shown)
        whole = table.is_count and (base is None or float(base).is_integer())
        cells: list[Any] = []
        shape = tuple(len(one) + 1 for one in levels_of)
        for places, found in zip(np.ndindex(shape), shown, strict=True):
            value = None if np.isnan(found) else round(found) if whole else float(found)
            named = list(zip(table.variables, places, levels_of, strict=True))
            cells.append(
                {
                    **{name: levels[at] for name, at, levels in named if at < len(levels)},
                    "total_over": [name for name, at, levels in named if at == len(levels)],
                    "value": value,
                    "suppressed": value is None,
                }
            )
        return cls(
            table.rows, table.cols, table.magnitude, table.weight, protect, base, tuple(cells),
            notes, audit, levels_of, shown,
        )  # fmt: skip

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable, and one more for its total."""
        return tuple(len(one) + 1 for one in self.levels)

    @property
    def suppressed(self) -> Flags:
        """Which cells are suppressed."""
        return np.asarray(np.isnan(self.shown))

    @property
    @figure(Named("suppressed"), "How many cells are suppressed.")
    def _suppressed_cells(self) -> int:
        return int(self.suppressed.sum())

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: its categories as text, `value` (null if suppressed), and so on.

        A total has ``Total`` for a category, and names under `total_over` what it adds up.
        """
        cells: Any = self.cells
        columns: dict[str, Any] = {
            name: [cell_label(cell[name]) if name in cell else "Total" for cell in cells]
            for name in self.variables
        }
        columns["total_over"] = [", ".join(cell["total_over"]) for cell in self.cells]
        whole = self.base is None or float(self.base).is_integer()
        counts = self.magnitude is None and self.weight is None
        kind = pl.Int64 if counts and whole else pl.Float64
        columns["value"] = pl.Series([c["value"] for c in self.cells], dtype=kind)
        columns["suppressed"] = self.suppressed
        return pl.DataFrame(columns)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the table that may be published, one row per cell."""
        return load(self.to_frame()).save(path, force=force)

    def save_internal(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the audit, one row per cell with true values: keep it as safe as the data."""
        return save(load(self.internal.to_frame()), path, force=force, private=True)

    def internal_summary(self) -> str:
        """Say, apart from what may be published, how good the protection is."""
        audit = self.internal
        unsafe, hidden = audit.figures.unsafe_cells, audit.figures.suppressed
        more = f", {hidden - unsafe:,} more are suppressed to protect them." if hidden else "."
        said = [f"Internal: {unsafe:,} cells are unsafe{more}"]
        if audit.figures.narrow and self.protect != "suppress":
            said.append(f"{audit.figures.narrow:,} of them are not as uncertain as asked.")
        return " ".join([*said, *audit.said()])

    def _label(self, variable: int, place: int) -> str:
        levels = self.levels[variable]
        return "Total" if place == len(levels) else cell_label(levels[place])

    def title(self) -> str:
        """Say what is tabulated."""
        what = "Records" if self.magnitude is None else f"Total of {self.magnitude}"
        if self.weight is not None:
            what = f"Weighted {what[0].lower()}{what[1:]}"
        across = f" and {', '.join(self.cols)}" if self.cols else ""
        more = f", rounded to {self.base:g}" if self.base is not None else ""
        more = {"none": ", not protected", "cell-key": ", with noise"}.get(self.protect, more)
        return f"{what} by {', '.join(self.rows)}{across}{more}"

    def tables(self) -> list[Table]:
        """Return a cross-table, or a list if there are no columns or too many."""
        split = len(self.rows)
        width = int(np.prod(self.shape[split:]))
        if not self.cols or width > WIDEST:
            split, width = len(self.shape), 1
        grid, digits = self.shown.reshape(-1, width), digits_of(self.shown)
        rows = []
        for side, line in zip(np.ndindex(self.shape[:split]), grid[:SHOWN], strict=False):
            labels = [self._label(i, at) for i, at in enumerate(side)]
            rows.append([*labels, *(cell_figure(value, digits) for value in line)])
        notes = [f"{MARK} not shown, to protect contributors."] if self.suppressed.any() else []
        notes += sentences(self.notes)
        if len(grid) > SHOWN:
            notes.append(f"And {len(grid) - SHOWN:,} more rows, which the JSON object has.")
        return [Table(self.title(), self._heads(split), rows, notes)]

    def _heads(self, split: int) -> list[str]:
        names = list(self.variables[:split])
        if split == len(self.shape):
            return [*names, self.magnitude or "records"]
        across = [*np.ndindex(self.shape[split:])]
        for places in across[:-1]:
            labels = [self._label(split + i, at) for i, at in enumerate(places)]
            names.append(f"{', '.join(self.cols)}: {', '.join(labels)}")
        return [*names, "Total"]

    def plot(self) -> altair.TopLevelMixin:
        """Draw the table as a heat map with suppressed cells marked."""
        from keyhole.protection.charts import table_chart

        return table_chart(self)


def _without_empty(
    levels: tuple[tuple[Any, ...], ...], shown: Floats
) -> tuple[tuple[tuple[Any, ...], ...], Floats]:
    """Leave out categories of which every cell is 0.

    Nobody has a category that is not there; of one that is there and 0, somebody would be known to.
    """
    grid = shown.reshape([len(one) + 1 for one in levels])
    found = []
    for axis, one in enumerate(levels):
        others = tuple(i for i in range(grid.ndim) if i != axis)
        there = (grid != 0).any(axis=others)
        there[-1] = True  # the total
        grid = grid.compress(there, axis=axis)
        found.append(tuple(level for level, kept in zip(one, there[:-1], strict=True) if kept))
    return tuple(found), grid.ravel()


def digits_of(values: Floats) -> int:
    """Return how many decimals a table needs: none if all its cells are whole."""
    there = values[np.isfinite(values)]
    return 0 if np.array_equal(there, np.round(there)) else 2


def cell_figure(value: float, digits: int = 0) -> str:
    """Write a cell; one that is suppressed is a mark."""
    return MARK if np.isnan(value) else f"{value:,.{digits}f}"
