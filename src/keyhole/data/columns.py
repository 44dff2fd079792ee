"""Columns: what is known of each, and its values as small unsigned integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Array

Kind = Literal["category", "measure", "date", "text"]
Role = Literal["identifier", "key", "weight", "sensitive", "stratum", "household", "drop"]
KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)

# Numbers from here on are infinite for all practical purposes: the sum of two may be.
LARGEST = 1e300

_FIRST_DAY, _DAY_AFTER = -719_162, 2_932_897  # 0001-01-01 and 10000-01-01, from 1970-01-01
_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_SMALL_SPAN = 1 << 16
_FEW_LEVELS = 4096  # above, a join is faster than an Enum


@dataclass(frozen=True, slots=True)
class Variable:
    """What is known of a column.

    Parameters
    ----------
    name
        The column's name in the file.
    kind
        ``category``, ``measure``, ``date`` or (free) ``text``.
    role
        What the column is for, where somebody has said so.
    label
        What it means, in words.
    value_labels
        What its values mean, in words.
    missing_codes
        Values that stand for a missing one. They are compared by their text form: ``-9``
        means -9, -9.0 and ``"-9"``.
    missing_ranges
        Ranges (lowest, highest) of numbers that stand for a missing one, as SPSS has them.
    decimals
        The fixed number of decimals in a text source, so that ``1.50`` is written back.
    trimmed
        Whether a text source wrote whole numbers among decimals without a point (``3``).
    parsed
        The type of the values where the frame keeps their text, because the text cannot be
        made again from the values (``.5``) or because a missing code is no such value.
    measurement
        ``nominal``, ``ordinal`` or ``scale`` where a statistical file says so.
    format
        How a statistical package displays the column (``F8.2``, ``%9.0g``, ``DATE9``).
    width
        How wide it displays it; 0 if nobody said.
    derived
        The expression that made it, if it was derived.

    Examples
    --------
    >>> Variable("age", "measure", missing_codes=(-9,)).kind
    'measure'
    """

    name: str
    kind: Kind
    role: Role | None = None
    label: str = ""
    value_labels: Mapping[Any, str] = field(default_factory=dict)
    missing_codes: tuple[Any, ...] = ()
    missing_ranges: tuple[tuple[float, float], ...] = ()
    decimals: int | None = None
    trimmed: bool = False
    parsed: pl.DataType | None = None
    measurement: str = ""
    format: str = ""
    width: int = 0
    derived: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A column as small unsigned integers."""

    values: Array
    levels: pl.Series
    has_missing: bool

    @property
    def size(self) -> int:
        """The number of codes, missing included."""
        return len(self.levels) + self.has_missing

    def decoded(self, codes: Array | None = None) -> pl.Series:
        """Return the values of the records, or of some codes; missing ones are null."""
        levels = self.levels.extend_constant(None, 1) if self.has_missing else self.levels
        return levels.gather(self.values if codes is None else codes)

    def __repr__(self) -> str:
        missing = " and missing" if self.has_missing else ""
        return f"Codes of {self.levels.name!r}: {len(self.levels):,} levels{missing}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Numbered:
    """A column by its different values, and the place among these of each record's.

    Each comes up; one may be null.
    """

    values: pl.Series
    places: npt.NDArray[np.uint32]

    @classmethod
    def of_texts(cls, shares: Iterable[tuple[Iterable[str | None], Array]]) -> Numbered:
        """Join shares of a column of text, each with its own different texts."""
        numbers: dict[str | None, int] = {}
        places = []
        for texts, held in shares:
            table = [numbers.setdefault(one, len(numbers)) for one in texts]
            wide = held.view(np.uint32)
            same = table == list(range(len(table)))
            places.append(wide if same else np.array(table, dtype=np.uint32).take(wide))
        joined = places[0] if len(places) == 1 else np.concatenate(places)
        return cls(pl.Series(list(numbers), dtype=pl.String), joined)

    @classmethod
    def of_codes(cls, codes: Codes) -> Numbered:
        """Return an encoded column by its levels."""
        return cls(codes.decoded(np.arange(codes.size)), codes.values.astype(np.uint32))

    def spread(self) -> pl.Series:
        """Return the value of each record."""
        return self.values[pl.Series(self.places, dtype=pl.UInt32)]


Column = pl.Series | Numbered


def named(names: Iterable[str]) -> cs.Selector:
    """Return an expression for columns by their very names: stars and brackets are no patterns."""
    return cs.by_name(*names)


def encode(series: pl.Series) -> Codes:
    """Encode a column whose missing values are null already.

    Levels are sorted: numbers and dates by size, text by code point, an `Enum` in the order
    of its categories. Bytes are taken by their hexadecimal text, 0.0 and -0.0 are one level,
    and NaN is missing.
    """
    series = require_flat(series)
    # Types that sort or compare in a way of their own are brought to a plain one.
    if series.dtype == pl.Binary:
        series = series.bin.encode("hex")
    elif series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    elif series.dtype.is_float():
        series = series.fill_nan(None)
    has_missing = series.null_count() > 0
    missing = series.is_null().to_numpy() if has_missing else None
    if series.null_count() == len(series):
        return _codes(np.zeros(len(series), np.uint8), series.clear(), missing)
    if series.dtype == pl.String:
        return _codes(*_encode_text(series), missing)
    if series.dtype.is_decimal() or series.dtype in (pl.Int128, pl.UInt128):
        ranks = series.rank("dense").fill_null(1).to_numpy().astype(np.int64) - 1
        return _codes(ranks, series.drop_nulls().unique().sort(), missing)
    return _codes(*_encode_numbers(series), missing)


def encode_numbered(column: Numbered) -> Codes:
    """Encode a numbered column whose missing values are null already."""
    few = encode(column.values)
    codes = few.values.take(column.places)
    codes.setflags(write=False)
    return Codes(codes, few.levels, few.has_missing)


def require_flat(series: pl.Series) -> pl.Series:
    """Return the column, or say what to do where a cell is not one plain value."""
    if series.dtype == pl.Object:
        raise ColumnError(
            f"column {series.name!r} must hold values of one type. Got Python objects of mixed "
            f"types instead: turn them into text or into numbers before loading."
        )
    if series.dtype.is_nested():
        kind = str(series.dtype.base_type()).lower()
        raise ColumnError(
            f"column {series.name!r} must hold one value in each cell. Got cells of type {kind} "
            f"instead: spread them over columns of their own, or leave the column out."
        )
    return series


def infinite_problems(called: str, *columns: pl.Series) -> list[str]:
    """Say if a column, of one file or of several, holds infinite numbers: nothing measures them."""
    if not any(one.dtype.is_float() and one.is_infinite().any() for one in columns):
        return []
    return [
        f"{called} must hold finite numbers. Got infinite ones instead: declare them as missing "
        f"codes (inf, -inf)."
    ]


def require_calendar(frame: pl.DataFrame) -> None:
    """Name the columns with days that no calendar has: to write one may break the program."""
    problems = []
    for series in frame.select(cs.date() | cs.datetime()):
        day = _PER_DAY.get(getattr(series.dtype, "time_unit", ""), 1)
        ends = series.to_physical().min(), series.to_physical().max()
        days = [end // day for end in ends if isinstance(end, int)]
        if any(not _FIRST_DAY <= one < _DAY_AFTER for one in days):
            problems.append(
                f"column {series.name!r} holds dates outside the years 1 to 9999. Correct them, or "
                f"leave the column out."
            )
    if problems:
        raise ColumnError(problems)


def _encode_text(series: pl.Series) -> tuple[Array, pl.Series]:
    levels = series.unique().sort()[int(series.null_count() > 0) :]
    if len(levels) <= _FEW_LEVELS:
        return _filled(series.cast(pl.Enum(levels)).to_physical(), 0).to_numpy(), levels
    table = pl.DataFrame({"level": levels, "code": np.arange(len(levels), dtype=np.uint32)})
    joined = pl.DataFrame({"level": series}).join(
        table, on="level", how="left", maintain_order="left"
    )
    return joined["code"].fill_null(0).to_numpy(), levels


def _filled(series: pl.Series, value: Any) -> pl.Series:
    return series.fill_null(value) if series.null_count() else series


def _encode_numbers(series: pl.Series) -> tuple[Array, pl.Series]:
    physical = series.cast(pl.UInt8) if series.dtype == pl.Boolean else series
    if not physical.dtype.is_numeric():
        physical = physical.to_physical()
    array = _filled(physical, physical.min()).to_numpy()
    codes, levels = _number_array(array)
    if series.dtype == pl.Enum:  # it cannot be made of its numbers
        return codes, series.drop_nulls().unique().sort()
    if series.dtype.is_float():
        levels += 0.0  # one name for 0.0 and -0.0, whichever comes first
    return codes, pl.Series(series.name, levels, dtype=physical.dtype).cast(series.dtype)


def _number_array(array: Array) -> tuple[Array, Any]:
    """Return the rank of each number among the distinct ones, and those."""
    if array.dtype.kind in "iu":
        lowest, highest = int(array.min()), int(array.max())
        if highest - lowest <= max(_SMALL_SPAN, 2 * len(array)) and highest < 1 << 63:
            offsets, span = np.subtract(array, lowest, dtype=np.int64), highest - lowest + 1
            present = np.zeros(span, dtype=bool)
            present[offsets] = True
            table = (np.cumsum(present, dtype=np.int64) - 1).astype(np.min_scalar_type(span))
            return table[offsets], (np.flatnonzero(present) + lowest).astype(array.dtype)
    levels, codes = np.unique(array, return_inverse=True)
    return codes, levels


def _codes(codes: Array, levels: pl.Series, missing: Array | None) -> Codes:
    size = len(levels) + (missing is not None)
    values = codes.astype(np.min_scalar_type(max(size - 1, 0)))
    if missing is not None:
        values[missing] = len(levels)
    values.setflags(write=False)
    return Codes(values, levels, missing is not None)
