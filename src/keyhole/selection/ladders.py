"""Ladders of detail: for each column nested rungs, from the column as it is to leaving it out.

A rung is an expression of a derived column, so that what is chosen can be carried out by a line of
``[derive]``. Ladders are made by the kind of the column, or declared; declared ones must be nested
in the data. Missing stays missing on every rung.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from keyhole.core.expressions import ColumnName, parse_expression, source_columns, without_tables
from keyhole.core.names import shown
from keyhole.core.tokens import SyntaxProblem
from keyhole.core.toml import open_toml
from keyhole.data.columns import Codes
from keyhole.data.deriving import Derivation, derive_codes, inline_codings
from keyhole.engines import Records
from keyhole.engines.storage import Storage, count_codes, parts
from keyhole.errors import ColumnError, FileError, InputError
from keyhole.exposure.regrouping import round_widths
from keyhole.kernels.arrays import Ints, Numbers

# Categories that a smaller share of the records has are pooled, one rung for each share.
POOLED = (0.001, 0.01, 0.1)
# About so many bands of the first width span the middle 98 % of the numbers.
BANDS, WIDTHS = 16, 4
# Numbers are top-coded where at least this share of the records is beyond.
TAIL = 0.005
# Narrower bands than this, or wider than its inverse, are not made.
SMALLEST = 1e-9
FEWEST_SIGNS, MOST_SIGNS = 3, 12


@dataclass(frozen=True, slots=True)
class Rung:
    """One level of detail: the name of the outgoing column, and its expression.

    Without an expression it is the column as it is.
    """

    name: str
    derive: str = ""

    @property
    def level(self) -> str:
        """What is released, in words."""
        return self.derive or self.name


@dataclass(frozen=True, slots=True)
class Ladder:
    """A column and its rungs, the finest first; leaving it out comes after the last.

    Of a ladder that was made, what the data does not allow is passed over; of one that was
    declared it is refused.
    """

    column: str
    rungs: tuple[Rung, ...]
    is_declared: bool = False


def made_ladder(data: Records, column: str, taken: Collection[str] = ()) -> Ladder:
    """Make the ladder of a column by its kind, with names that are not taken.

    Numbers get bands, each width twice the one before, above a limit all together. Dates get
    months, quarters, years and decades. Text codes of one length, as those of places, get
    prefixes. Of other categories the rare ones are pooled.
    """
    codes, kind = data.codes(column), data.variable(column).kind
    written = str(ColumnName(column))
    dtype = codes.levels.dtype
    if dtype in (pl.Date, pl.Datetime):
        found = {part: f"{part}({written})" for part in ("month", "quarter", "year")}
        found["decade"] = f"band(year({written}), 10)"
    elif dtype.is_numeric() and kind == "measure":
        found = _bands(written, codes)
    elif dtype == pl.String and _are_codes(codes.levels):
        length = int(codes.levels.str.len_chars()[0])
        lengths = range(length - 1, max(length - 1 - WIDTHS, 0), -1)
        found = {f"prefix{n}": f"prefix({written}, {n})" for n in lengths}
    elif len(codes.levels) > 2:
        least = (max(2, math.ceil(share * len(codes.values))) for share in POOLED)
        found = {f"pool{n}": f"pool({written}, {n})" for n in least}
    else:
        found = {}
    taken = {*data.names, *taken}
    rungs = [Rung(column)]
    if not _can_be_written(written):
        return Ladder(column, tuple(rungs))
    for ending, expression in found.items():
        name = f"{column}_{ending}"
        while name in taken:
            name += "_"
        rungs.append(Rung(name, expression))
    return Ladder(column, tuple(rungs))


def _can_be_written(column: str) -> bool:
    """Tell whether an expression can name a column: control characters have no form there."""
    try:
        parse_expression(f"labels({column})")
    except SyntaxProblem:
        return False
    return True


def _bands(written: str, codes: Codes) -> dict[str, str]:
    counts = count_codes(codes.values, codes.size)[: len(codes.levels)]
    levels = codes.levels.cast(pl.Float64).to_numpy()
    if len(levels) < 2 or not np.isfinite(levels).all():
        return {}
    below = np.cumsum(counts) / counts.sum()
    low, high = (float(levels[np.searchsorted(below, share)]) for share in (0.01, 0.99))
    width = (high - low) / BANDS or (float(levels[-1]) - float(levels[0])) / BANDS
    if not SMALLEST < width < 1 / SMALLEST:
        return {}
    width = float(f"{next(round_widths(width * (1 - 1e-9))):.12g}")
    if codes.levels.dtype.is_integer():
        width = max(width, 2)
    # The largest multiple of the first width that enough records reach.
    reached = float(levels[np.searchsorted(below, 1 - TAIL)])
    top = math.floor(reached / width) * width
    is_topped = levels[0] < top < levels[-1]
    number = f"top({written}, {_plain(top)})" if is_topped else written
    found = {f"top{_plain(top)}": number} if is_topped else {}
    wide = (_plain(width * 2**step) for step in range(WIDTHS))
    return {**found, **{f"band{one}": f"band({number}, {one})" for one in wide}}


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:.12g}"


def _are_codes(levels: pl.Series) -> bool:
    """Tell text codes of one length from other text: digits and capitals, as places have them."""
    lengths = levels.str.len_chars()
    if not len(levels) or lengths.n_unique() > 1:
        return False
    fits = FEWEST_SIGNS <= int(lengths[0]) <= MOST_SIGNS
    return fits and bool(levels.str.contains(r"^[0-9A-Z]*[0-9][0-9A-Z]*$").all())


def declared_ladders(
    given: Any, locate: Callable[[str], Path] = Path
) -> tuple[dict[str, Ladder], list[str]]:
    """Read declared ladders from a table or its TOML file; return them and what is wrong.

    `locate` says where a file is; codings that a TOML file names are seen from it.
    """
    if given is None:
        return {}, []
    folder = ""
    if isinstance(given, str | os.PathLike):
        folder = os.path.dirname(given)
        try:
            given = open_toml(locate(os.fspath(given)))
        except FileError as error:
            return {}, list(error.problems)
    ladders: dict[str, Ladder] = {}
    problems: list[str] = []
    for column, entry in given.items():
        rungs, wrong = _declared(column, entry, lambda file: locate(os.path.join(folder, file)))
        problems += wrong
        if rungs:
            ladders[column] = Ladder(column, tuple(rungs), is_declared=True)
    names = [r.name for one in ladders.values() for r in one.rungs]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    problems += [
        f"the ladders have two levels named {shown(n)}. Give each its own name." for n in twice
    ]
    return ladders, problems


def ladder_table(ladders: Mapping[str, Ladder]) -> dict[str, Any]:
    """Return ladders as the table that declares them."""
    return {
        column: [{"name": rung.name, "derive": rung.level} for rung in one.rungs]
        for column, one in ladders.items()
    }


def _declared(
    column: str, entry: Any, locate: Callable[[str], Path]
) -> tuple[list[Rung], list[str]]:
    where = f"the ladder of column {shown(column)}"
    levels = entry.get("levels") if isinstance(entry, Mapping) else entry
    if not isinstance(levels, Sequence) or isinstance(levels, str) or not levels:
        return [], [f"{where} must have a list of `levels`, the finest first. Got none instead."]
    rungs, problems = [], []
    for number, level in enumerate(levels, 1):
        known = level if isinstance(level, Mapping) else {"derive": level}
        texts = {k: v for k, v in known.items() if isinstance(v, str) and v.strip()}
        if not texts or set(known) - {"name", "derive"} or set(texts) != set(known):
            problems.append(
                f"{where}: level {number} must be an expression, or have `name` and `derive`."
            )
            continue
        text = texts.get("derive", column)
        if text == column:
            if texts.get("name", column) != column:
                problems.append(
                    f"{where}: level {number} is the column as it is, and keeps its name. Leave "
                    f"`name` out."
                )
            rungs.append(Rung(column))
            continue
        try:
            expression = inline_codings(text, locate)
        except InputError as error:
            problems += [f"{where}: level {number}: {one}" for one in error.problems]
            continue
        except SyntaxProblem as error:
            problems.append(f"{where}: level {number}: {error}")
            continue
        if set(source_columns(parse_expression(expression))) != {column}:
            problems.append(
                f"{where}: level {number} must be made from that column alone. Got another instead."
            )
            continue
        rungs.append(Rung(texts.get("name", f"{column}_{number}"), expression))
    return rungs, problems


@dataclass(frozen=True, slots=True, eq=False)
class LadderCodes:
    """A ladder in codes: those of the first rung, and which stands for each on every rung.

    Rungs that merge nothing are left out. `entropies` are those of the rungs in the data, `missing`
    has the code that stands for a missing value, -1 where there is none.
    """

    ladder: Ladder
    codes: Codes
    tables: Numbers
    entropies: tuple[float, ...]
    missing: tuple[int, ...]

    def shares(self) -> tuple[float, ...]:
        """Return what is kept of the first rung's entropy on each rung, and 0 at the end.

        A constant column has none to lose: it counts in full unless it is left out.
        """
        finest = self.entropies[0]
        return (*(h / finest if finest > 0 else 1.0 for h in self.entropies), 0.0)


def encode_ladder(data: Records, ladder: Ladder, storage: Storage) -> LadderCodes:
    """Encode a ladder; raise a rung that cannot be derived, or is not nested in the one before."""
    first: Codes | None = None
    before: Codes | None = None
    kept: list[tuple[Rung, Numbers, float, int]] = []
    problems: list[str] = []
    here = f"the ladder of column {shown(ladder.column)}"
    classes = np.zeros(0, dtype=np.int64)
    for rung in ladder.rungs:
        try:
            codes = _codes_of(data, rung, storage)
        except InputError as error:
            problems += [f"{here}: {one}" for one in error.problems]
            continue
        if before is None or first is None:
            first = codes
            classes = np.arange(codes.size)
            counts = count_codes(codes.values, codes.size)
        else:
            step = _nested(before, codes)
            if step is None:
                finer, coarser = (without_tables(x.level) for x in (kept[-1][0], rung))
                problems.append(
                    f"{here} is not nested: records that {finer!r} puts together, {coarser!r} puts "
                    "apart. Order the levels from the finest to the coarsest, each made of whole "
                    "classes of the one before."
                )
                continue
            classes = step[classes]
        before = codes
        found = len(set(classes.tolist()))
        if kept and (found == len(np.unique(kept[-1][1])) or found < 2):
            continue
        absent = codes.size - 1 if codes.has_missing else -1
        table, blank = _representatives(classes, absent, first)
        held = np.bincount(table, weights=counts)
        shares = held[held > 0] / held.sum()
        entropy = float(-(shares * np.log(shares)).sum()) if len(shares) > 1 else 0.0
        kept.append((rung, table, entropy, blank))
    if problems and (ladder.is_declared or first is None):
        raise ColumnError(problems)
    assert first is not None
    rungs, tables, entropies, missing = zip(*kept, strict=True)
    made = Ladder(ladder.column, rungs, ladder.is_declared)
    return LadderCodes(made, first, np.array(tables), entropies, missing)


def _codes_of(data: Records, rung: Rung, storage: Storage) -> Codes:
    if not rung.derive:
        return data.codes(rung.name)
    derivation = Derivation.of(rung.name, rung.derive)
    data.require(derivation.columns, purpose="column")
    return derive_codes(cast("Any", data), derivation, storage.empty)[1]


def _nested(finer: Codes, coarser: Codes) -> Ints | None:
    """Return the coarser code of each finer one; None if one has several."""
    table: Ints = np.zeros(finer.size, dtype=np.int64)
    pieces = list(parts(len(finer.values)))
    for some in pieces:
        table[finer.values[some]] = coarser.values[some]
    back = (np.array_equal(table[finer.values[some]], coarser.values[some]) for some in pieces)
    return table if all(back) else None


def _representatives(classes: Ints, absent: int, first: Codes) -> tuple[Numbers, int]:
    """Return for each code of the first rung the one that stands for its class."""
    _, leads, inverse = np.unique(classes, return_index=True, return_inverse=True)
    blank = -1
    if absent >= 0 and (classes == absent).any():
        blank = int(np.flatnonzero(classes == absent)[0])
        if first.has_missing and classes[first.size - 1] == absent:
            blank = first.size - 1
            leads[inverse[blank]] = blank
    return leads[inverse].astype(np.int32), blank
