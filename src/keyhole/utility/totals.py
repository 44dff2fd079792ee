"""Published totals: how far a release is from them, and weights calibrated to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.kinds import Data
from keyhole.core.marks import WHEN_SET
from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.core.shared import CommandOption
from keyhole.core.tables import Table
from keyhole.data import Microdata, load
from keyhole.engines.opening import DataFile
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result
from keyhole.utility.figures import NONE, ValueLabels, cell_label, fixed, sentences
from keyhole.utility.implicates import numbers

TOTAL = "total"
"""The column of a file of published totals that holds them."""

Totals = Annotated[
    Any,
    CommandOption(
        "Published totals: a file with variables of the release and a column `total`. The weighted "
        "counts of the release are set beside them.",
        kind=Data(),
    ),
]
Original = Annotated[
    Any,
    CommandOption(
        "With published totals: the original file, whose counts are shown as well.", kind=Data()
    ),
]
Calibrate = Annotated[
    bool, CommandOption("With published totals: adjust the weights so that they are met.")
]


def totals_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the options of published totals."""
    if question.totals is None and (question.original is not None or question.calibrate):
        yield Problem("{original} and {calibrate} need {totals}. Give the published totals.")
    if question.totals is not None and question.weight is None:
        yield Problem("{totals} need {weight}, by which people are counted. Name it.")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Agreement(Result):
    """Weighted counts of a release beside published totals.

    `cells` has one row a total: its values on the `variables`, `published`, `original` if that is
    known, `estimate` and `se` of the release with its weights as they are, and `off` and
    `original_off`, the differences from what is published.
    """

    variables: tuple[str, ...]
    calibrated: Annotated[bool, "Whether the table is made with weights adjusted to the totals."]
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()
    labels: Annotated[
        ValueLabels, WHEN_SET, "By variable the label of each value that cells have, by its text."
    ] = field(default_factory=dict)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a total."""
        return self.cells

    def tables(self) -> list[Table]:
        """Return the totals, and how far the original and the release are off."""
        held = {"published": "published", "original": "original", "original_off": "off",
                "estimate": "release", "off": "off", "se": "se"}  # fmt: skip
        shown = {name: words for name, words in held.items() if name in self.cells.columns}
        rows = [
            [
                *(cell_label(row[name], self.labels.get(name, {})) for name in self.variables),
                *(NONE if row[name] is None else fixed(row[name], 0) for name in shown),
            ]
            for row in self.cells.iter_rows(named=True)
        ]
        notes = ["Weights are adjusted to these totals."] if self.calibrated else []
        columns = [*self.variables, *shown.values()]
        return [Table("Published totals", columns, rows, [*notes, *sentences(self.notes)])]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The cell of each record by implicate, and what is published of each; NaN where nothing is."""

    cells: Sequence[Ints]
    published: Floats

    def weights(self, place: int, weights: Floats) -> Floats:
        """Scale the weights of an implicate to the totals, cell by cell."""
        cells = self.cells[place]
        held = np.bincount(cells, weights, len(self.published))
        known = np.isfinite(self.published) & (held != 0)
        factor = np.divide(self.published, held, out=np.ones(len(held)), where=known)
        scaled: Floats = weights * factor[cells]
        return scaled


@dataclass(frozen=True, slots=True, eq=False)
class PublishedTotals:
    """A file of totals: its variables, and the total of each row."""

    data: Microdata
    variables: tuple[str, ...]
    values: Floats


def load_totals(source: Any) -> PublishedTotals:
    """Load published totals, or say all that is wrong with them."""
    # How the release is read says nothing of this file, which may lack its columns.
    data = load(source.path if isinstance(source, DataFile) else source)
    variables = tuple(name for name in data.names if name != TOTAL)
    if TOTAL not in data.names or not variables:
        raise ColumnError(
            f"totals must have a column {TOTAL!r} and at least one variable. Got "
            f"{quoted(data.names)} instead."
        )
    values, problems = numbers(data, TOTAL), []
    if not (np.isfinite(values).all() and (values >= 0).all()):
        problems.append(f"column {TOTAL!r} of totals must hold numbers of 0 or more, none missing.")
    if data.frame.select(variables).is_duplicated().any():
        problems.append("totals must have one row for each combination of values. Some repeat.")
    if problems:
        raise ColumnError(problems)
    return PublishedTotals(data, variables, values)


def agreement_notes(published: Floats, counts: Floats) -> list[str]:
    """Say which totals and cells have no partner."""
    without = int((np.isnan(published) & (counts > 0)).sum())
    empty = int((np.isfinite(published) & (published > 0) & (counts == 0)).sum())
    notes = {
        f"{without:,} cells of the release have no published total": without,
        f"{empty:,} published totals have no record in some implicate and cannot be met": empty,
    }
    return [text for text, holds in notes.items() if holds]
