"""Protected tables: what may be published, its files, and the audit of what can be derived."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import polars as pl

from keyhole.core.codec import Figures
from keyhole.core.extras import require_extra
from keyhole.core.files import write_whole
from keyhole.core.marks import HIDDEN, SPREAD, WHEN_SET, Named, figure
from keyhole.core.tables import Table
from keyhole.data import load
from keyhole.data.writing import save
from keyhole.errors import FileError, OptionError
from keyhole.kernels.arrays import Flags, Floats
from keyhole.protection.tables.attackers import TOLERANCE
from keyhole.protection.tables.cells import CrossTable, SensitivityRules, Unsafe, label_cells
from keyhole.protection.tables.suppression import Pattern
from keyhole.results import Result, drawn_by
from keyhole.utility.figures import ValueLabels, amount, sentences

# A summary shows the first of many rows; all are in the frame.
AUDITED = 40


@dataclass(frozen=True, slots=True)
class AuditFigures(Figures):
    """What an audit found: unsafe cells, those `narrow`er than asked, and the pattern's cost."""

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
        return self.table.add_up(np.where(self.suppressed, 0.0, self.table.values)) - (
            self.table.values
        )

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: true value, records, what is unsafe, shown, and the interval."""
        table = self.table
        labels = zip(*label_cells(table.named, table.cells, table.labels), strict=True)
        columns: dict[str, Any] = dict(zip(table.named, labels, strict=True))
        columns |= {"value": table.values, "count": table.counts, "unsafe": self.unsafe.cells}
        columns |= {"suppressed": self.suppressed, "shown": pl.Series(self.shown).fill_nan(None)}
        return pl.DataFrame({**columns, "low": self.low, "high": self.high})

    def tables(self) -> list[Table]:
        """Return the figures, the cells that needed care, and the margins."""
        found = self.figures
        rules = found.unsafe.items()
        figures = [
            ("cells, totals included", found.cells),
            *((f"unsafe by {name}", n) for name, n in rules if n or name == "threshold"),
            ("suppressed", found.suppressed),
            ("unsafe with an interval narrower than asked", found.narrow),
        ]
        rows = [[name, f"{count:,}"] for name, count in figures]
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
            least = (
                f"none can cost less than {amount(pattern.bound)} (gap {100 * pattern.gap:.1f}%)"
            )
            said.append(
                f"The pattern is safe but not proven the smallest: it costs "
                f"{amount(pattern.cost)}; {least if pattern.bound > 0 else 'no bound is known'}."
            )
        if pattern is not None and pattern.unprotected:
            said.append(
                f"No pattern meets {pattern.unprotected:,} demands against a contributor who is "
                f"alone in another cell."
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
            [*(row[name] for name in self.table.named), amount(row["value"]),
             f"{row['count']:,}", "yes" if row["unsafe"] else "", amount(row["low"]),
             "no end" if np.isinf(row["high"]) else amount(row["high"]),
             "yes" if row["narrow"] else ""]
            for row in frame.head(AUDITED).iter_rows(named=True)
        ]  # fmt: skip
        columns = [*self.table.named, "value", "records", "unsafe", "from", "to", "too narrow"]
        return Table("What an outsider can derive", columns, rows, _more(frame.height))

    def _margins(self) -> Table:
        off = self.discrepancy
        differs = self.table.margin & (np.abs(off) > 1e-9 * self.table.values)
        labels = label_cells(self.table.named, self.table.cells, self.table.labels)
        rows = [
            [*texts, *map(amount, (true, true + beside, beside))]
            for texts, true, beside in compress(
                zip(labels, self.table.values, off, strict=True), differs
            )
        ]
        named = {"round": "rounded", "cell-key": "with noise"}
        name = named.get(self.protect, "cells shown add up to")
        columns = [*self.table.named, "true", name, "discrepancy"]
        return Table("Margins that differ", columns, rows[:AUDITED], _more(len(rows)))


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
    `value` and `suppressed`. `others` are tables that were protected with this one. `shown` are
    the values, not a number where a cell is suppressed. `internal` is the audit, with true values:
    it is not for publication; nor are `entry`, what a register of publications keeps of it, and
    `earlier`, what the register had before.
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
    others: Annotated[
        tuple[ProtectedTable, ...], WHEN_SET, "Further tables that were protected with this one."
    ] = ()
    labels: Annotated[
        ValueLabels, WHEN_SET, "By variable the label of each value that cells have, by its text."
    ] = field(default_factory=dict)
    internal: Annotated[TableAudit, HIDDEN] = None  # type: ignore[assignment]
    shown: Annotated[Floats, HIDDEN] = None  # type: ignore[assignment]
    entry: Annotated[Mapping[str, Any], HIDDEN] = None  # type: ignore[assignment]
    earlier: Annotated[Sequence[Mapping[str, Any]], HIDDEN] = ()

    def __post_init__(self) -> None:
        """Find the values of a table that is given by its cells."""
        if self.shown is None:
            shown = [np.nan if cell["value"] is None else cell["value"] for cell in self.cells]
            object.__setattr__(self, "shown", np.array(shown, dtype=np.float64))

    @classmethod
    def of(
        cls, audit: TableAudit, protect: Any, base: float | None, notes: tuple[str, ...]
    ) -> ProtectedTable:
        """Return what may be published of a table that was audited."""
        table, shown = audit.table, audit.shown
        kept = np.ones(len(shown), dtype=bool)
        if protect in ("round", "cell-key"):
            # Nobody has a category that is not there; of one that is there and 0, somebody would
            # be known to.
            for axis in range(len(table.shape)):
                nodes = table.places[:, axis]
                there = np.bincount(nodes, np.abs(shown), table.shape[axis]) > 0
                there[-1] = True  # the total
                kept &= there[nodes]
        whole = table.is_count and (base is None or float(base).is_integer())
        cells: list[Any] = []
        for cell in np.flatnonzero(kept).tolist():
            found, places = shown[cell], zip(table.axes, table.places[cell].tolist(), strict=True)
            value = None if np.isnan(found) else round(found) if whole else float(found)
            totals = [name for axis, at in places for name in axis.added_up(at)]
            own = {"total_over": totals, "value": value, "suppressed": value is None}
            cells.append({**table.cells[cell], **own})
        return cls(
            table.rows, table.cols, table.magnitude, table.weight, protect, base, tuple(cells),
            notes, (), table.labels, audit, shown[kept],
        )  # fmt: skip

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    @property
    def levels(self) -> tuple[tuple[Any, ...], ...]:
        """The categories of each variable, of which missing is None."""
        cells: Any = self.cells
        named = ([cell[one] for cell in cells if one in cell] for one in self.variables)
        return tuple(tuple(dict.fromkeys(values)) for values in named)

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
        labels = zip(*self._labels(), strict=True)
        columns: dict[str, Any] = dict(zip(self.variables, labels, strict=True))
        columns["total_over"] = [", ".join(cell["total_over"]) for cell in self.cells]
        whole = self.base is None or float(self.base).is_integer()
        counts = self.magnitude is None and self.weight is None
        kind = pl.Int64 if counts and whole else pl.Float64
        columns["value"] = pl.Series([c["value"] for c in self.cells], dtype=kind)
        columns["suppressed"] = self.suppressed
        return pl.DataFrame(columns)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the table that may be published, one row per cell, or as its extension says.

        ``.xlsx`` has the table for readers and a sheet of cells with flags, ``.json`` is JSON-stat.
        Of several tables the second goes beside the first, as ``name-2``, and so on.
        """
        for place, table in zip(self._paths(path), (self, *self.others), strict=True):
            if place.suffix == ".xlsx":
                with write_whole(place, force=force) as temporary:
                    write_workbook(table, temporary)
            elif place.suffix == ".json":
                with write_whole(place, force=force) as temporary:
                    temporary.write_text(f"{json.dumps(json_stat(table))}\n", encoding="utf-8")
            else:
                load(table.to_frame()).save(place, force=force)
        return Path(path)

    def save_internal(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the audit, one row per cell with true values: keep it as safe as the data."""
        for place, table in zip(self._paths(path), (self, *self.others), strict=True):
            save(load(table.internal.to_frame()), place, force=force, private=True)
        return Path(path)

    def save_register(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write these tables into a register of publications, which is internal.

        Those that they were protected against are in it, too.
        """
        return save_register((self, *self.others), path, self.earlier, force=force)

    def _paths(self, path: str | os.PathLike[str]) -> list[Path]:
        first = Path(path)
        more = range(2, 2 + len(self.others))
        return [first, *(first.with_stem(f"{first.stem}-{number}") for number in more)]

    def internal_summary(self) -> str:
        """Say, apart from what may be published, how good the protection is."""
        audit = self.internal
        unsafe, hidden = audit.figures.unsafe_cells, audit.figures.suppressed
        more = f", {hidden - unsafe:,} more are suppressed to protect them." if hidden else "."
        said = [f"Internal: {unsafe:,} cells are unsafe{more}"]
        if audit.figures.narrow and self.protect != "suppress":
            said.append(f"{audit.figures.narrow:,} of them are not as uncertain as asked.")
        return " ".join([*said, *audit.said()])

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
        down, across, places = self.layout(WIDEST)
        digits, named = digits_of(self.shown), len(down[0])
        rows: list[list[str]] = [[*labels, *[""] * len(across)] for labels in down]
        for (row, col), value in zip(places, self.shown, strict=True):
            rows[row][named + col] = cell_figure(value, digits)
        notes = [f"{MARK} not shown, to protect contributors."] if self.suppressed.any() else []
        notes += sentences(self.notes)
        if len(rows) > SHOWN:
            notes.append(f"And {len(rows) - SHOWN:,} more rows, which the JSON object has.")
        heads = [*self.variables[:named], *(", ".join(labels) for labels in across)]
        if named == len(self.variables):
            heads = [*self.variables, self.magnitude or "records"]
        else:
            heads[named:] = [f"{', '.join(self.cols)}: {head}" for head in heads[named:-1]]
            heads.append("Total")
        mine = Table(self.title(), heads, rows[:SHOWN], notes)
        return [mine, *(table for other in self.others for table in other.tables())]

    def layout(
        self, widest: float = np.inf
    ) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[tuple[int, int]]]:
        """Return the labels of rows and of columns, and the row and the column of each cell.

        All labels are of rows if there are no columns, or more than `widest`.
        """
        for split in (len(self.rows), len(self.variables)):
            down: dict[tuple[str, ...], int] = {}
            across: dict[tuple[str, ...], int] = {}
            places = []
            for labels in self._labels():
                row = down.setdefault(labels[:split], len(down))
                places.append((row, across.setdefault(labels[split:], len(across))))
            if len(across) <= widest:
                break
        return list(down), list(across), places

    def _labels(self) -> Iterator[tuple[str, ...]]:
        cells: Any = self.cells
        return label_cells(self.variables, cells, self.labels)

    plot = drawn_by(
        "protection.charts.table_chart",
        "Draw the table as a heat map with suppressed cells marked.",
    )


def digits_of(values: Floats) -> int:
    """Return how many decimals a table needs: none if all its cells are whole."""
    there = values[np.isfinite(values)]
    return 0 if np.array_equal(there, np.round(there)) else 2


def cell_figure(value: float, digits: int = 0) -> str:
    """Write a cell; one that is suppressed is a mark."""
    return MARK if np.isnan(value) else f"{value:,.{digits}f}"


VERSION = 1


def read_register(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the tables that were published before."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        entries: list[dict[str, Any]] = found["tables"]
        fit = found["keyhole_register"] == VERSION and all(
            {"rows", "cols", "chains", "codes", "rules", "cells"} <= set(one) for one in entries
        )
    except (OSError, ValueError, KeyError, TypeError):
        fit = False
    if not fit:
        raise FileError(
            f"{os.fspath(path)!r} must be a register of published tables. Got another file, or "
            f"none, instead: name one that 'keyhole table --register' wrote."
        )
    return entries


def save_register(
    tables: Sequence[ProtectedTable],
    path: str | os.PathLike[str],
    earlier: Sequence[Mapping[str, Any]] = (),
    *,
    force: bool = False,
) -> Path:
    """Write a register of published tables: those before, and these."""
    if any(table.protect not in ("suppress", "none") for table in tables):
        raise OptionError(
            "a register holds tables with suppressed cells. Tables with noise by cell keys need "
            "none, and rounded ones cannot be held against others."
        )
    entries = [*earlier, *(table.entry for table in tables)]
    known = {json.dumps(entry, default=str): entry for entry in entries}
    text = json.dumps({"keyhole_register": VERSION, "tables": [*known.values()]}, default=str)
    with write_whole(path, force=force, private=True) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return Path(path)


def published_values(entry: Mapping[str, Any], made: CrossTable, number: int) -> Floats:
    """Return what a published table shows of each cell; refuse a file that contradicts it."""
    shown: dict[Any, float] = {}
    names = [*entry["rows"], *entry["cols"]]
    for cell in entry["cells"]:
        key = tuple(str(cell[name]) if name in cell else None for name in names)
        shown[key] = np.nan if cell["value"] is None else float(cell["value"])
    keys = (tuple(str(c[name]) if name in c else None for name in names) for c in made.cells)
    found = np.array([shown.get(key, np.inf) for key in keys])
    off = ~np.isnan(found) & ~np.isclose(found, made.values, rtol=1e-9, atol=1e-9)
    if off.any() or len(shown) != len(found):
        raise OptionError(
            f"table {number} of the register must be of this file. Got other totals for "
            f"{max(int(off.sum()), 1):,} of {len(found):,} cells instead: the file or its coding "
            f"has changed since. Protect against it by the file it was made of."
        )
    return found


def json_stat(table: ProtectedTable) -> dict[str, Any]:
    """Return a table as a JSON-stat 2.0 dataset; suppressed cells have the status `c`."""
    frame = table.to_frame()
    labels = {name: list(dict.fromkeys(frame[name].to_list())) for name in table.variables}
    sizes = [len(one) for one in labels.values()]
    places = [
        frame[name].replace_strict(one, range(len(one))).to_numpy() for name, one in labels.items()
    ]
    index = [str(i) for i in np.ravel_multi_index(places, sizes)]
    values = zip(index, frame["value"].to_list(), strict=True)
    hidden = zip(index, frame["suppressed"].to_list(), strict=True)
    return {
        "version": "2.0", "class": "dataset", "label": table.title(),
        "id": list(table.variables), "size": sizes,
        "dimension": {
            name: {"label": name, "category": {"index": one}} for name, one in labels.items()
        },
        "value": {i: value for i, value in values if value is not None},
        "status": {i: "c" for i, flag in hidden if flag},
        "note": list(table.notes),
    }  # fmt: skip


def write_workbook(table: ProtectedTable, path: Path) -> None:
    """Write a table for readers, and its cells with flags: `c` where a cell is confidential."""
    require_extra("excel")
    from xlsxwriter import Workbook  # type: ignore[import-untyped]

    with Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet, head = book.add_worksheet("Table"), book.add_format({"bold": True})
        laid, frame, (down, _, places) = table.tables()[0], table.to_frame(), table.layout(WIDEST)
        sheet.write(0, 0, laid.title, head)
        sheet.write_row(2, 0, list(laid.columns), head)
        for place, labels in enumerate(down):
            sheet.write_row(3 + place, 0, list(labels))
        for (row, col), value in zip(places, frame["value"].to_list(), strict=True):
            sheet.write(3 + row, len(down[0]) + col, MARK if value is None else value)
        for i, note in enumerate(laid.notes):
            sheet.write(4 + len(down) + i, 0, str(note))
        cells = book.add_worksheet("Cells")
        cells.write_row(0, 0, [*frame.columns[:-1], "flag"], head)
        for i, cell in enumerate(frame.iter_rows(), 1):
            cells.write_row(i, 0, ["" if one is None else one for one in cell[:-1]])
            cells.write(i, len(cell) - 1, "c" if cell[-1] else "")
