"""Cross-tabulations from implicates, with standard errors that count the synthesis in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypedDict

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns
from keyhole.core.marks import COUNT, WHEN_SET
from keyhole.core.names import quoted, repeated
from keyhole.core.options import DataSource, Option, Problem, Question, bind, documented
from keyhole.core.shared import EngineInMemory, Level, Names
from keyhole.core.tables import Table
from keyhole.data import Microdata, load
from keyhole.data.columns import infinite_problems, named
from keyhole.engines.opening import DataFile, columns_anyhow
from keyhole.errors import ColumnError, InputError
from keyhole.kernels.arrays import Floats
from keyhole.results import Result, drawn_by, tables_of
from keyhole.utility import survey_design
from keyhole.utility import totals as published
from keyhole.utility.cell_estimates import FIGURES, Estimator, Share, find_cells
from keyhole.utility.figures import (
    NONE,
    ValueLabels,
    cell_label,
    decimals_for,
    degrees,
    fixed,
    sentences,
    value_labels,
)
from keyhole.utility.implicates import load_implicates, numbers

# A summary shows the first of many cells; all are in the frame and in the dictionary.
SHOWN = 60
# A cross-table wider than this is easier to read as a list.
WIDEST = 10


class CellFigures(TypedDict):
    """What each row of a table of cells has, beside its values on the variables."""

    estimate: float | None
    se: float | None
    df: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Tabulation(Result):
    """A table combined over implicates.

    `cells` has one row a cell: its values on the variables, `estimate`, `se`, `df`, `low`, `high`;
    `margins` the same figures by `rows` alone, by `cols` alone, and for the `total`.
    """

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    weight: str | None
    mean: Annotated[str | None, "The variable that is averaged; null for counts."]
    share: Annotated[Share | None, "Of what the cells are shares; null for counts and means."]
    implicates: int
    records: Annotated[int, COUNT, "The records of each implicate."]
    level: Annotated[float, "The confidence level."]
    cells: Annotated[
        pl.DataFrame,
        CellFigures,
        "One object a cell, which also has the value of each variable of rows and columns under "
        "its name; null is missing. df is null where it is infinite or not estimable.",
    ]
    margins: Annotated[
        Mapping[str, Annotated[pl.DataFrame, CellFigures]],
        "The same figures by rows alone, by columns alone, and for the whole.",
    ] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    design: Annotated[str | None, WHEN_SET, "The survey's design that the errors rest on."] = None
    agreement: Annotated[published.Agreement | None, WHEN_SET, "With published totals."] = None
    labels: Annotated[
        ValueLabels, WHEN_SET, "By variable the label of each value that cells have, by its text."
    ] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows and columns."""
        return self.rows + self.cols

    def to_frame(self) -> pl.DataFrame:
        """Return one row a cell: its values on the variables, then the figures."""
        return self.cells

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
        if crossed is not None:
            return [crossed, *tables_of(self.agreement)]
        columns = [*self.variables, "estimate", "se", "df", f"{100 * self.level:g}% from", "to"]
        rows = [
            [*self.cell_labels(row, self.variables), *self._written(row)]
            for row in self.cells.head(SHOWN).iter_rows(named=True)
        ]
        for row in self.margins["total"].to_dicts() if self.cells.height > 1 else ():
            rows.append(["total", *[""] * (len(self.variables) - 1), *self._written(row)])
        listed = Table(self.title(), columns, rows, self._notes(self.cells.height, rows))
        return [listed, *tables_of(self.agreement)]

    def cell_labels(self, row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        """Write the values of a cell on some variables, by their labels."""
        return [cell_label(row[name], self.labels.get(name, {})) for name in names]

    def _decimals(self) -> int:
        """Return the decimals that all figures of the table have."""
        return decimals_for(self.cells["se"].to_list(), self.cells["estimate"].to_list())

    def _written(self, row: Mapping[str, Any]) -> list[str]:
        places = self._decimals()
        df = NONE if row["df"] is None else degrees(row["df"])
        estimate, se, low, high = (fixed(row[n], places) for n in ("estimate", "se", "low", "high"))
        return [estimate, se, df, low, high]

    def _crossed(self) -> Table | None:
        heads = self.cells.select(named(self.cols)).unique(maintain_order=True)
        heads = heads.sort(named(self.cols), nulls_last=True)
        sides = self.cells.select(named(self.rows)).unique(maintain_order=True)
        if heads.height > WIDEST:
            return None
        cells = self._brackets(self.cells, self.variables)
        ends, feet = (self._brackets(self.margins[n], getattr(self, n)) for n in ("rows", "cols"))
        rows = [
            [*self.cell_labels(dict(zip(self.rows, side, strict=True)), self.rows),
             *(cells.get((*side, *head), "") for head in heads.rows()), ends[side]]
            for side in sides.head(SHOWN).rows()
        ]  # fmt: skip
        total = self._brackets(self.margins["total"], ())[()]
        last = ["total", *[""] * (len(self.rows) - 1)]
        rows.append([*last, *(feet[head] for head in heads.rows()), total])
        names = [", ".join(self.cell_labels(head, self.cols)) for head in heads.to_dicts()]
        columns = [*self.rows, *(f"{', '.join(self.cols)}: {name}" for name in names), "total"]
        said = ["Estimates, with standard errors in brackets."]
        return Table(self.title(), columns, rows, said + self._notes(sides.height, rows))

    def _brackets(self, frame: pl.DataFrame, names: tuple[str, ...]) -> dict[Any, str]:
        """Write estimates with errors in brackets, by the values of some variables."""
        places, found = self._decimals(), {}
        for row in frame.iter_rows(named=True):
            text = f"{fixed(row['estimate'], places)} ({fixed(row['se'], places)})"
            found[tuple(row[n] for n in names)] = NONE if row["estimate"] is None else text
        return found

    def _notes(self, length: int, rows: list[list[str]]) -> list[str]:
        count = f"{self.implicates} implicate{'s' if self.implicates > 1 else ''}"
        verb = "Combined over" if self.implicates > 1 else "From"
        notes = [f"{verb} {count} of {self.records:,} records."]
        notes += [] if self.design is None else [f"Standard errors by {self.design}."]
        if any(NONE in cell for row in rows for cell in row):
            notes.append(f"{NONE} is not estimable.")
        notes += sentences(self.notes)
        if length > SHOWN:
            notes.append(f"And {length - SHOWN:,} more rows, which the JSON object has.")
        return notes

    plot = drawn_by("utility.charts.tabulation_chart", "Draw a bar a cell, with its interval.")


@documented
def tabulate(
    data: Annotated[
        Any,
        DataSource(
            "The release: the folder with implicate-1.csv, implicate-2.csv and so on, in any "
            "readable format; in Python also a list of frames.",
            "DIR/release",
        ),
    ],
    *,
    rows: Annotated[Names, Option("The variables of the rows.", kind=Columns())],
    cols: Annotated[
        Names | None, Option("The variables of the columns.", kind=Columns(least=0))
    ] = None,
    weight: Annotated[
        str | None,
        Option(
            "The column with the number of people each record represents; without it, "
            "records are counted.",
            column="weight",
        ),
    ] = None,
    mean: Annotated[
        str | None,
        Option("A variable to average in each cell, instead of counts.", column="variable"),
    ] = None,
    share: Annotated[
        Share | None,
        Option("Shares instead of counts: of the whole `table`, or within its `rows` or `cols`."),
    ] = None,
    replicates: survey_design.Replicates = None,
    replicate_type: survey_design.ReplicateTypeOption = None,
    fay: survey_design.Fay = None,
    centre: survey_design.CentreOption = "full",
    design_strata: survey_design.DesignStrata = None,
    clusters: survey_design.Clusters = None,
    totals: published.Totals = None,
    original: published.Original = None,
    calibrate: published.Calibrate = False,
    level: Level = 0.95,
    engine: EngineInMemory = "auto",
    **reading: Any,
) -> Tabulation:
    """Tabulate a synthetic release, with standard errors that cover the synthesis.

    Every implicate is tabulated as if it were the file, and the tables are combined by Reiter's
    rules. The cells are those that occur in any implicate. A missing value on rows or columns is
    a category of its own. In Python the options of `keyhole.load` say how files are read.

    Standard errors are those of records drawn one by one, unless a survey's design is given: its
    replicate weights, or strata and clusters. Published totals are set beside the weighted counts.

    Notes
    -----
    Intervals of counts and shares are made on the logit scale, of weighted counts on the
    logarithm's, so that none is below zero or beyond the whole; those of means are symmetric.
    From one implicate what the synthesis adds cannot be told: se and interval are then those of
    an ordinary file.

    Examples
    --------
    >>> first = pl.DataFrame({"sex": ["f", "f", "f", "m", "m", "m"]})
    >>> second = pl.DataFrame({"sex": ["f", "f", "m", "m", "m", "m"]})
    >>> tabulate([first, second], rows="sex")
    Records by sex
      sex    estimate   se  df        95% from   to
      f           2.5  1.3  44.4           0.6  4.9
      m           3.5  1.3  44.4           1.1  5.4
      total       6.0  0.0  infinite       6.0  6.0
      Combined over 2 implicates of 6 records.
    """
    question = bind(tabulate, locals())
    if isinstance(data, DataFile):
        data, reading = data.path, {**data.reading, **reading}
    try:
        totals = None if question.totals is None else published.load_totals(question.totals)
        implicates = load_implicates(
            data,
            (*question.columns(), *(() if totals is None else totals.variables)),
            matching=[name for name in question.replicates or () if "*" in name],
            **reading,
        )
        weights, values = figures_of(implicates, question.weight, question.mean)
        design = survey_design.read_design(implicates, question)
    except InputError as error:
        problems = [*question.problems, *error.problems]
        told = " ".join(error.problems)
        if not any(f"column {name!r} is not" in told for name in question.columns()):
            problems += columns_anyhow(question, data, reading)
        raise type(error)(dict.fromkeys(problems)) from None
    question.require()
    plain = Estimator(implicates, weights, None, None, question.level, design)
    agreement, calibration = None, None
    if totals is not None:
        agreement, calibration = _agree(plain, totals, question, reading)
    estimator = replace(plain, values=values, share=question.share, calibration=calibration)
    down, across = question.rows, question.cols or ()
    within = {"rows": down, "cols": across}.get(question.share or "", ())
    cells, notes = estimator.table((*down, *across), within)
    missing = [int(np.isnan(one).sum()) for one in values or ()]
    if any(missing):
        low, high = min(missing), max(missing)
        count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        notes.append(f"{count} records of an implicate have no value of {mean!r} and are left out")
    return Tabulation(
        rows=down, cols=across, weight=weight, mean=mean, share=share, implicates=len(implicates),
        records=implicates[0].records, level=question.level, cells=cells,
        margins=estimator.margins(down, across), notes=tuple(notes),
        design=None if design is None else str(design[0] if isinstance(design, list) else design),
        agreement=agreement, labels=value_labels(implicates, (*down, *across)),
    )  # fmt: skip


def _agree(
    plain: Estimator, totals: published.PublishedTotals, question: Question, reading: Any
) -> tuple[published.Agreement, published.Calibration | None]:
    """Set weighted counts beside published totals, and calibrate to them where it is asked for."""
    sides = [*plain.data, totals.data]
    if question.original is not None:
        given = question.original
        before = load(given.path if isinstance(given, DataFile) else given, **reading)
        before.require([question.weight, *totals.variables])
        sides.append(before)
    labels, cells = find_cells(sides, totals.variables)
    count = len(plain.data)
    known = np.full(labels.height, np.nan)
    known[cells[count]] = totals.values
    figures, _ = plain.figures(cells[:count], np.zeros(labels.height, dtype=np.int64))
    found = labels.with_columns(published=known).hstack(figures.select("estimate", "se"))
    found = found.with_columns(off=pl.col("estimate") - pl.col("published"))
    if question.original is not None:
        summed = np.bincount(cells[-1], before.weights(question.weight), labels.height)
        found = found.with_columns(original=summed).with_columns(
            original_off=pl.col("original") - pl.col("published")
        )
    fewest = np.min([np.bincount(one, minlength=labels.height) for one in cells[:count]], axis=0)
    notes = published.agreement_notes(known, fewest.astype(np.float64))
    kept = found.filter(np.isfinite(known)).fill_nan(None)
    agreement = published.Agreement(
        totals.variables, question.calibrate, kept, tuple(notes),
        value_labels(plain.data, totals.variables),
    )  # fmt: skip
    calibration = published.Calibration(cells[:count], known) if question.calibrate else None
    return agreement, calibration


def crossing_problems(question: Question, reserved: Sequence[str]) -> Iterator[Problem]:
    """Say what is wrong with rows and columns: a variable in both, or named like a figure."""
    both = [*(question.rows or ()), *(question.cols or ())]
    for name in repeated(both):
        yield Problem("variable {0!r} is in {rows} and {cols}. List it once.", name)
    if taken := [name for name in both if name in reserved]:
        text = "{rows} and {cols} must not have the names of a cell's figures. Got {0} instead: "
        yield Problem(text + "rename them.", quoted(taken))


def tabulate_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `tabulate` that depend on each other."""
    yield from crossing_problems(question, FIGURES)
    yield from survey_design.design_problems(question)
    yield from published.totals_problems(question)
    if question.share is not None and question.mean is not None:
        yield Problem("{share} and {mean} cannot both be asked for. Leave out one of them.")
    if question.share in ("rows", "cols") and not question.cols:
        text = "{share} of {0} needs {cols} too. Name them, or ask for the share of the table."
        yield Problem(text, question.share)


def figures_of(
    data: Sequence[Microdata], weight: str | None, mean: str | None
) -> tuple[list[Floats] | None, list[Floats] | None]:
    """Return weights and values by implicate, or say everything that is wrong with them."""
    problems: dict[str, str] = {}
    weights: list[Floats] = []
    values: list[Floats] = []
    for one in data:
        said: list[str] = []
        try:
            weights += [] if weight is None else [one.weights(weight)]
        except InputError as error:
            said += [f"{one.name!r}: {text}" for text in error.problems]
        try:
            values += [] if mean is None else [numbers(one, mean)]
            if mean is not None:
                said += infinite_problems(f"column {mean!r} of {one.name!r}", one.column(mean))
        except InputError as error:
            said += error.problems
        for text in said:  # what is wrong with all implicates alike is told once, of the first
            problems.setdefault(text.replace(repr(one.name), ""), text)
    if problems:
        raise ColumnError(problems.values())
    return weights if weight is not None else None, values if mean is not None else None
