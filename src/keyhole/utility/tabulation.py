"""Cross-tabulations from implicates, with standard errors that count the synthesis in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Microdata
from keyhole.data.naming import quoted, repeated
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.utility.cells import cell_counts, cell_means, cell_totals
from keyhole.utility.combining import ONE_IMPLICATE, combine, level_problems
from keyhole.utility.implicates import chosen, load_implicates, numbers, shared_codes, split
from keyhole.utility.tabulation_result import RESERVED, Tabulation

__all__ = ["Tabulation", "tabulate"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def tabulate(
    release: Any,
    *,
    rows: str | Sequence[str],
    cols: str | Sequence[str] | None = None,
    weight: str | None = None,
    mean: str | None = None,
    level: float = 0.95,
    missing_codes: Mapping[str, Iterable[Any]] | Iterable[Any] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Tabulation:
    """Cross-tabulate the implicates of a release into one table.

    Every implicate is tabulated as if it were the file, and the tables are combined by Reiter's
    rules. The cells are those that occur in any implicate. A missing value on rows or columns is
    a category of its own.

    Parameters
    ----------
    release
        The folder with ``implicate-1.csv`` and so on (any format), or a list of frames.
    rows, cols
        The variables of the rows and of the columns.
    weight
        The column that tells how many people a record stands for; records are counted without.
    mean
        A variable to be averaged in each cell; else the cells hold counts.
    level
        The confidence level of the intervals.
    missing_codes, encoding, delimiter, sheet
        How to read the files, as for `keyhole.load`.

    Returns
    -------
    Tabulation
        One estimate a cell, with its standard error, degrees of freedom and interval.

    Raises
    ------
    InputError
        If files or columns are missing, or the implicates do not belong together; all at once.

    Examples
    --------
    >>> first = pl.DataFrame({"sex": ["f", "f", "f", "m", "m", "m"]})
    >>> second = pl.DataFrame({"sex": ["f", "f", "m", "m", "m", "m"]})
    >>> tabulate([first, second], rows="sex")
    Records by sex
      sex  estimate     se    df  95% from     to
      f       2.500  1.291  44.4   -0.1011  5.101
      m       3.500  1.291  44.4    0.8989  6.101
      Combined over 2 implicates of 6 records.
    """
    down, across = chosen(rows), chosen(cols)
    problems = _option_problems(down, across, level)
    wanted = [*down, *across, *(name for name in (weight, mean) if name is not None)]
    try:
        data = load_implicates(
            release, wanted, missing_codes=missing_codes, encoding=encoding,
            delimiter=delimiter, sheet=sheet,
        )  # fmt: skip
        weights, values = _figures_of(data, weight, mean)
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None
    if problems:
        raise OptionError(problems)
    labels, cells = _find_cells(data, (*down, *across))
    found = [
        _estimate(cells[i], labels.height, None if weights is None else weights[i],
                  None if values is None else values[i])
        for i in range(len(data))
    ]  # fmt: skip
    figures, notes = _combined(found, level)
    if values is not None:
        notes += _left_out(values, str(mean))
    return Tabulation(
        rows=down, cols=across, weight=weight, mean=mean, implicates=len(data),
        records=data[0].records, level=level, cells=pl.concat([labels, figures], how="horizontal"),
        notes=tuple(notes),
    )  # fmt: skip


def _option_problems(rows: tuple[str, ...], cols: tuple[str, ...], level: Any) -> list[str]:
    problems = level_problems(level)
    if not rows:
        problems.append("rows must name at least one variable. Got none instead.")
    both = [*rows, *cols]
    problems += [
        f"variable {name!r} is listed more than once in rows and columns. List it once."
        for name in repeated(both)
    ]
    taken = [name for name in dict.fromkeys(both) if name in RESERVED]
    if taken:
        problems.append(
            f"rows and columns must not be called as the figures of a cell are: {quoted(taken)}. "
            f"Rename them."
        )
    return problems


def _figures_of(
    data: Sequence[Microdata], weight: str | None, mean: str | None
) -> tuple[list[Floats] | None, list[Floats] | None]:
    """Return weights and values by implicate, or say everything that is wrong with them."""
    problems: dict[str, None] = {}
    weights: list[Floats] = []
    values: list[Floats] = []
    for one in data:
        try:
            if weight is not None:
                weights.append(one.weights(weight))
        except InputError as error:
            problems.update(dict.fromkeys(f"{one.name!r}: {text}" for text in error.problems))
        try:
            if mean is not None:
                values.append(_measured(one, mean))
        except InputError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise ColumnError(problems)
    return weights if weight is not None else None, values if mean is not None else None


def _measured(data: Microdata, name: str) -> Floats:
    found = numbers(data, name)
    if np.isinf(found).any():
        raise ColumnError(
            f"column {name!r} of {data.name!r} must hold finite numbers. Got infinite ones "
            f"instead: declare them as missing codes."
        )
    return found


def _find_cells(
    data: Sequence[Microdata], variables: Sequence[str]
) -> tuple[pl.DataFrame, list[Ints]]:
    """Return the labels of the occupied cells, and the cell of each record by implicate."""
    cells = np.zeros(sum(one.records for one in data), dtype=np.int64)
    labels: list[pl.Series] = []
    for name in variables:
        codes = shared_codes(data, name)
        # Numbered anew after each variable: a product of all the sizes may not fit into 64 bits.
        found, cells = np.unique(cells * codes.size + codes.values, return_inverse=True)
        labels = [series[found // codes.size] for series in labels]
        levels = pl.concat([codes.levels, codes.levels.clear(1)]).alias(name)
        labels.append(levels[found % codes.size])
    return pl.DataFrame(labels), split(cells, data)


def _estimate(
    cells: Ints, size: int, weights: Floats | None, values: Floats | None
) -> tuple[Floats, Floats]:
    if values is not None:
        return cell_means(cells, size, values, np.ones(len(cells)) if weights is None else weights)
    return cell_counts(cells, size) if weights is None else cell_totals(cells, size, weights)


def _combined(
    found: Sequence[tuple[Floats, Floats]], level: float
) -> tuple[pl.DataFrame, list[str]]:
    """Combine cell by cell; a cell that one implicate cannot estimate is not estimable."""
    q, v = (np.stack(part) for part in zip(*found, strict=True))
    estimable = np.isfinite(q).all(axis=0)
    sure = estimable & np.isfinite(v).all(axis=0)
    columns = {name: np.full(q.shape[1], np.nan) for name in RESERVED}
    columns["estimate"][estimable] = q[:, estimable].mean(axis=0)
    notes = _gaps(estimable, sure)
    if len(q) == 1:
        notes.append(f"se, df and interval are {ONE_IMPLICATE}")
    elif sure.any():
        combined = combine(q[:, sure], v[:, sure], level=level)
        for name in ("se", "df", "low", "high"):
            columns[name][sure] = getattr(combined, name)
        notes += combined.notes
    return pl.DataFrame(columns).fill_nan(None), notes


def _gaps(estimable: npt.NDArray[np.bool_], sure: npt.NDArray[np.bool_]) -> list[str]:
    empty, single = int((~estimable).sum()), int((estimable & ~sure).sum())
    notes = []
    if empty:
        notes.append(
            f"the mean of {empty:,} cells is not estimable: in some implicate they hold no record"
        )
    if single:
        notes.append(
            f"the standard error of {single:,} cells is not estimable: in some implicate they "
            f"hold a single record"
        )
    return notes


def _left_out(values: Sequence[Floats], mean: str) -> list[str]:
    missing = [int(np.isnan(one).sum()) for one in values]
    if not any(missing):
        return []
    low, high = min(missing), max(missing)
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return [f"{count} records of an implicate have no value of {mean!r} and are left out"]
