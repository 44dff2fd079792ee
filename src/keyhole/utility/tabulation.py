"""Cross-tabulations from implicates, with standard errors that count the synthesis in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.data import Microdata
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.utility.cells import cell_counts, cell_means, cell_shares, cell_totals
from keyhole.utility.combining import combine
from keyhole.utility.implicates import chosen, load_implicates, numbers, shared_codes, split
from keyhole.utility.intervals import Scale, interval
from keyhole.utility.tabulation_options import Share, option_problems
from keyhole.utility.tabulation_result import RESERVED, Tabulation

__all__ = ["Share", "Tabulation", "tabulate"]


PLAIN_ERRORS = (
    "from one implicate, se and interval are those of an ordinary file: they leave out what the "
    "synthesis adds, and are somewhat too short"
)


def tabulate(
    release: Any,
    *,
    rows: str | Sequence[str],
    cols: str | Sequence[str] | None = None,
    weight: str | None = None,
    mean: str | None = None,
    share: Share | None = None,
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
    share
        Shares instead of counts: of the whole `table`, or within its `rows` or its `cols`.
    level
        The confidence level of the intervals.
    missing_codes, encoding, delimiter, sheet
        How to read the files, as for `keyhole.load`.

    Returns
    -------
    Tabulation
        One estimate a cell, with its standard error, degrees of freedom and interval; and the
        same for the margins.

    Raises
    ------
    InputError
        If files or columns are missing, or the implicates do not belong together; all at once.

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
    down, across = chosen(rows), chosen(cols)
    problems = option_problems(down, across, level, mean=mean, share=share)
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
    asked = _Asked(data, weights, values, share, level)
    within = {"rows": down, "cols": across}.get(share or "", ())
    cells, notes = asked.table((*down, *across), within)
    if values is not None:
        notes += _left_out(values, str(mean))
    return Tabulation(
        rows=down, cols=across, weight=weight, mean=mean, share=share, implicates=len(data),
        records=data[0].records, level=level, cells=cells, margins=asked.margins(down, across),
        notes=tuple(notes),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is tabulated: the implicates with weights and values, and how."""

    data: Sequence[Microdata]
    weights: Sequence[Floats] | None
    values: Sequence[Floats] | None
    share: Share | None
    level: float

    def table(
        self, variables: Sequence[str], within: Sequence[str]
    ) -> tuple[pl.DataFrame, list[str]]:
        """Tabulate by some variables; shares are within the categories of others among them."""
        labels, cells = _find_cells(self.data, variables)
        groups = np.zeros(labels.height if variables else 1, dtype=np.int64)
        if within:
            places: dict[tuple[Any, ...], int] = {}
            sides = labels.select(within).rows()
            groups = np.array([places.setdefault(side, len(places)) for side in sides])
        found = [self._estimate(place, one, groups) for place, one in enumerate(cells)]
        figures, notes = self._combined(found)
        return labels.hstack(figures) if variables else figures, notes

    def margins(self, down: Sequence[str], across: Sequence[str]) -> dict[str, pl.DataFrame]:
        """Tabulate by rows alone, by columns alone, and as a whole."""
        total, _ = self.table((), ())
        if not across:
            return {"total": total}
        own = {"rows": (down, "rows"), "cols": (across, "cols")}
        sides = {
            name: self.table(variables, variables if self.share == side else ())[0]
            for name, (variables, side) in own.items()
        }
        return {**sides, "total": total}

    def _estimate(self, place: int, cells: Ints, groups: Ints) -> tuple[Floats, Floats]:
        size = len(groups)
        weights = np.ones(len(cells)) if self.weights is None else self.weights[place]
        if self.values is not None:
            return cell_means(cells, size, self.values[place], weights)
        if self.share is not None:
            return cell_shares(cells, groups, weights)
        if self.weights is None:
            return cell_counts(cells, size)
        return cell_totals(cells, size, weights)

    def _scale(self) -> tuple[Scale, float]:
        """Return where an estimate is taken to be normal, and the most it can be."""
        if self.values is not None:
            return "plain", 1.0
        if self.share is not None:
            return "logit", 1.0
        return ("logit", float(self.data[0].records)) if self.weights is None else ("log", 1.0)

    def _combined(self, found: Sequence[tuple[Floats, Floats]]) -> tuple[pl.DataFrame, list[str]]:
        """Combine cell by cell; a cell that one implicate cannot estimate is not estimable."""
        q, v = (np.stack(part) for part in zip(*found, strict=True))
        estimable = np.isfinite(q).all(axis=0)
        sure = estimable & np.isfinite(v).all(axis=0)
        columns = {name: np.full(q.shape[1], np.nan) for name in RESERVED}
        columns["estimate"][estimable] = q[:, estimable].mean(axis=0)
        notes = _gaps(estimable, sure, "share" if self.share else "mean")
        if sure.any():
            se, df, more = _errors(q[:, sure], v[:, sure])
            notes += more
            columns["se"][sure], columns["df"][sure] = se, df
            scale, top = self._scale()
            columns["low"][sure], columns["high"][sure] = interval(
                columns["estimate"][sure], se, df, level=self.level, scale=scale, top=top
            )
        return pl.DataFrame(columns).fill_nan(None), notes


def _errors(q: Floats, v: Floats) -> tuple[Floats, Floats, list[str]]:
    """Return standard errors and degrees of freedom; of one implicate those of a plain file."""
    if len(q) == 1:
        return np.sqrt(v[0]), np.full(q.shape[1], np.inf), [PLAIN_ERRORS]
    combined = combine(q, v)
    se, df = (np.asarray(one, dtype=np.float64) for one in (combined.se, combined.df))
    return se, df, list(combined.notes)


def _figures_of(
    data: Sequence[Microdata], weight: str | None, mean: str | None
) -> tuple[list[Floats] | None, list[Floats] | None]:
    """Return weights and values by implicate, or say everything that is wrong with them."""
    problems: dict[str, str] = {}
    weights: list[Floats] = []
    values: list[Floats] = []
    for one in data:
        try:
            if weight is not None:
                weights.append(one.weights(weight))
        except InputError as error:
            # What is wrong with all implicates alike is told once, of the first.
            texts = [f"{one.name!r}: {text}" for text in error.problems]
            problems.update({_alike(text, one): text for text in texts} | problems)
        try:
            if mean is not None:
                values.append(_measured(one, mean))
        except InputError as error:
            problems.update({_alike(text, one): text for text in error.problems} | problems)
    if problems:
        raise ColumnError(problems.values())
    return weights if weight is not None else None, values if mean is not None else None


def _alike(text: str, data: Microdata) -> str:
    return text.replace(repr(data.name), "")


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


def _gaps(estimable: Flags, sure: Flags, what: str) -> list[str]:
    empty, single = int((~estimable).sum()), int((estimable & ~sure).sum())
    notes = []
    if empty:
        notes.append(
            f"the {what} of {empty:,} cells is not estimable: in some implicate they hold no record"
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
