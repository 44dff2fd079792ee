"""Top- and bottom-coding: values beyond a limit are replaced.

Whole numbers are compared as whole numbers: as floats, 2^53 and 2^53 + 1 would be one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from keyhole.core.kinds import Number, Text
from keyhole.core.notes import Note
from keyhole.core.options import Option
from keyhole.data.microdata import Microdata, values_in_words
from keyhole.exposure.fix import Fix
from keyhole.kernels.arrays import Flags
from keyhole.protection.method import Method, P, Protected, PublicNote, method
from keyhole.protection.methods.microaggregation import DOMINANT
from keyhole.protection.options import FINITE, Options, given_options, plain_number
from keyhole.protection.writeback import keep_precision, put

# A limit found by share is told in so many digits.
ROUND_DIGITS = 3
# The whole numbers that a file can hold.
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**64 - 1


def _round_past(value: Any, dtype: pl.DataType, *, top: bool) -> Any:
    """Return the next round number, or New Year: the value itself would tell of its person."""
    if isinstance(value, date):
        last = top and value.year == date.max.year  # there is no year after it
        year = date.max if last else date(value.year + top, 1, 1)
        if not isinstance(value, datetime):
            return year
        return datetime.max.replace(microsecond=0) if last else datetime(year.year, 1, 1)
    if isinstance(value, int):
        step, held = 10 ** max(len(str(abs(value))) - ROUND_DIGITS, 0), pl.Series(dtype=dtype)
        past = -(-value // step) * step if top else value // step * step
        return min(max(past, held.lower_bound().item()), held.upper_bound().item())
    number = float(value) if isinstance(value, Decimal) else value
    if not number or not math.isfinite(number):
        return number
    power = math.floor(math.log10(abs(number))) - (ROUND_DIGITS - 1)
    # Times a power of ten that may itself be too large for a number.
    scaled = round(number * 10.0 ** (-power // 2) * 10.0 ** (-power - -power // 2), 6)
    whole = math.ceil(scaled) if top else math.floor(scaled)
    # Written and read again, 3 * 0.1 is 0.3; beyond the largest number it is the number itself.
    found = float(f"{whole}e{power}")
    return found if math.isfinite(found) else number


def beyond(series: pl.Series, limit: Any, *, top: bool) -> Flags:
    """Tell of each value whether it lies beyond a limit; what is missing does not."""
    if series.dtype.is_integer():
        # A whole number is above 9.5 where it is above 9, and below it where it is below 10.
        whole = math.floor(limit) if top else math.ceil(limit)
        series, limit = series.cast(pl.Int128), pl.Series([whole], dtype=pl.Int128)
    elif series.dtype == pl.Decimal:
        series, limit = series.cast(pl.Float64), float(limit)
    hit = series > limit if top else series < limit
    return np.asarray(hit.fill_null(False).to_numpy())


@dataclass(frozen=True, slots=True)
class _NumberOrDate(Number):
    """A finite number, or a date."""

    widget: ClassVar[str] = "text"

    def fault(self, value: Any) -> str | None:
        fault = None if isinstance(value, date) else FINITE.fault(value)
        return "a number or a date" if fault == "a number" else fault

    def settle(self, value: Any) -> Any:
        return value

    def read(self, text: str) -> Any:
        for read in (int, float, date.fromisoformat):
            try:
                return read(text)
            except ValueError:
                continue
        return text

    def write(self, value: Any) -> str:
        return str(value)


Column = Annotated[str, Option("A column of numbers or dates.", column="column")]
LimitValue = Annotated[
    Any, Option("The limit: all values beyond it are replaced.", kind=_NumberOrDate())
]
ShareBeyond = Annotated[
    float | None,
    Option(
        "Instead of `value`, the largest share of the records that may be beyond the limit. The "
        "limit is the nearest such value, rounded outwards to three digits (a date to New Year), "
        "since the value itself would reveal the person who has it.",
        above=0,
        below=1,
    ),
]
Replace = Annotated[
    Literal["limit", "mean", "median", "label"] | None,
    Option(
        "What replaces them: the `limit` itself (default), the `mean` or the `median` of the "
        "values beyond it, or a `label`."
    ),
]
BeyondLabel = Annotated[
    str | None, Option("The label; by default as in 'above 89' or 'below 18'.", kind=Text())
]
Replacement = Annotated[
    float | None,
    Option(
        "A mean or median found before, to repeat the same protection on other data.", kind=FINITE
    ),
]

# The mean of one value is that value, and that of two tells either of them the other's.
FEWEST = 3


def _clashes(options: Options) -> list[str]:
    found, replace = [], options.get("replace", "limit")
    if "label" in options and replace != "label":
        found.append("label can only be used with replace='label'.")
    if "replacement" in options and replace not in ("mean", "median"):
        found.append("replacement can only be used with replace='mean' or 'median'.")
    return found


def _unfit(data: Microdata, options: Options, *, top: bool) -> list[str]:
    name = options["column"]
    series = data.column(name)
    dtype, replace = series.dtype, options.get("replace", "limit")
    if not (dtype.is_numeric() or dtype in (pl.Date, pl.Datetime)):
        return [
            f"column {name!r} must hold numbers or dates. Got {values_in_words(series)} instead: "
            f"choose another column, or declare its missing codes."
        ]
    if "value" in options and dtype.is_numeric() == isinstance(options["value"], date):
        kind = "a number" if dtype.is_numeric() else "a date"
        return [f"value must be {kind}, as column {name!r} holds them. Got another kind instead."]
    if not dtype.is_numeric() and replace in ("mean", "median"):
        return [f"replace={replace!r} needs numbers. Column {name!r} holds dates."]
    limit, found = _limit(series, options, top=top), []
    if dtype.is_integer() and not LEAST_WHOLE <= limit <= MOST_WHOLE:
        found.append(f"value must be a number that column {name!r} can hold. Got a larger one.")
    if dtype.is_float() and not np.isfinite(limit):
        found.append(
            f"share must be larger than that of the infinite values of column {name!r}: give a "
            f"larger one, or the limit by value."
        )
    with suppress(ValueError):
        # Who has a label that reads as a value could not be told from the others.
        label = options.get("label", "")
        float(label) if dtype.is_numeric() else date.fromisoformat(label.strip()[:10])
        found.append(
            f"label must be words, since column {name!r} holds others like it. Got "
            f"{'a number' if dtype.is_numeric() else 'a date'} instead: give a text like "
            f"'above 89'."
        )
    if not found and replace in ("mean", "median") and "replacement" not in options:
        out = beyond(series, limit, top=top)
        known = out & series.is_finite().fill_null(False).to_numpy() if dtype.is_float() else out
        if out.any() and known.sum() < FEWEST:
            found.append(
                f"replace={replace!r} needs {FEWEST} or more records beyond the limit of column "
                f"{name!r}, or it reveals their values: choose another limit, or replace='limit'."
            )
    return found


def _coding(
    name: str, done: str, follows: str, *, top: bool
) -> Callable[[Callable[P, Protected]], Method[P]]:
    """Declare top- or bottom-coding: all their facts but the words are the same."""

    def suggest(_: Microdata, fix: Fix) -> Options | None:
        if fix.action != name or fix.amount is None:
            return None
        return {"column": fix.variable, "value": plain_number(fix.amount)}

    return method(
        name,
        "codes",
        note=PublicNote(done, follows),
        one_of=("value", "share"),
        clashes=_clashes,
        unfit=functools.partial(_unfit, top=top),
        holds="order",
        makes_labels=lambda options: options.get("replace") == "label",
        supersedes={"value": ("share",)},
        also_found=("replacement",),
        not_typed=("replacement",),
        suggest=suggest,
    )


@_coding(
    "top-code",
    "The highest values were replaced by one value in {columns}.",
    "Means and spreads of numbers whose highest values were replaced are too small; medians are "
    "not affected.",
    top=True,
)
def top_code(
    data: Microdata,
    *,
    column: Column,
    value: LimitValue = None,
    share: ShareBeyond = None,
    replace: Replace = None,
    label: BeyondLabel = None,
    replacement: Replacement = None,
) -> Protected:
    """Replace the values above a limit.

    Notes
    -----
    A mean or median of fewer than three records would tell their values, and is refused. Where one
    record has more than 80% of the sum, the median stands for the mean, which would tell its
    value. It is rounded to the column's precision.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"age": [34, 89, 90, 97]}))
    >>> top_code(people, column="age", value=89).data.frame["age"].to_list()
    [34, 89, 89, 89]
    """
    return _coded(data, given_options(locals()), top=True)


@_coding(
    "bottom-code",
    "The lowest values were replaced by one value in {columns}.",
    "Means of numbers whose lowest values were replaced are too high; medians are not affected.",
    top=False,
)
def bottom_code(
    data: Microdata,
    *,
    column: Column,
    value: LimitValue = None,
    share: ShareBeyond = None,
    replace: Replace = None,
    label: BeyondLabel = None,
    replacement: Replacement = None,
) -> Protected:
    """Replace the values below a limit.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"born": [1899, 1921, 1950]}))
    >>> made = bottom_code(people, column="born", value=1920, replace="label", label="before 1920")
    >>> made.data.frame["born"].to_list()
    ['before 1920', '1921', '1950']
    """
    return _coded(data, given_options(locals()), top=False)


def _coded(data: Microdata, options: Options, *, top: bool) -> Protected:
    name, replace = options["column"], options.get("replace", "limit")
    series = data.column(name)
    limit = _limit(series, options, top=top)
    out = beyond(series, limit, top=top)
    fitted: dict[str, Any] = {"value": options.get("value", limit)}
    if replace == "label":
        text = options.get("label", f"{'above' if top else 'below'} {_shown(limit)}")
        new = pl.Series(name, [text])
    else:
        put_in = limit if replace == "limit" else _middle(data, options, out)
        fitted |= {} if replace == "limit" or put_in is None else {"replacement": put_in}
        dtype = series.dtype  # or a wider one where the value needs it
        if dtype.is_numeric():
            number: Any = put_in
            whole = isinstance(number, int | float) and number == number // 1
            held = pl.Int64() if whole and -(2**63) <= int(number) < 2**63 else pl.UInt64()
            dtype = held if dtype.is_integer() and whole else pl.Float64()
        new = pl.Series(name, [put_in], dtype=dtype)
    new = new.new_from_index(0, data.records)
    hit = pl.select(pl.when(pl.Series(out)).then(new).alias(name)).to_series()
    made, changed = put(data, name, hit)
    notes: tuple[str, ...] = ()
    if "share" in options:
        found = {"share": float(out.mean()) if len(out) else 0.0, "changed": int(out.sum())}
        asked = float(options["share"])
        notes = (Note("extremes.beyond", limit=_shown(limit), asked=asked, **found),)
    named = "top-code" if top else "bottom-code"
    return Protected(made, named, {name: changed}, notes, fitted=fitted)


def _limit(series: pl.Series, options: Options, *, top: bool) -> Any:
    """Return the limit: as given, or a round one with no more than a share beyond it."""
    if "value" in options:
        value = options["value"]
        # A date is a day or a point in time, whichever the column holds.
        if series.dtype == pl.Date and isinstance(value, datetime):
            return value.date()
        timed = series.dtype != pl.Datetime or isinstance(value, datetime)
        return value if timed else datetime(value.year, value.month, value.day)
    known = series.drop_nulls().sort(descending=top)
    if not len(known):
        return 0
    return _round_past(known[int(options["share"] * len(known) + 1e-9)], series.dtype, top=top)


def _middle(data: Microdata, options: Options, out: Flags) -> float | int | None:
    """Return the mean or median beyond the limit; None if nothing is there."""
    if "replacement" in options:
        return options["replacement"]  # type: ignore[no-any-return]
    name = options["column"]
    series = data.column(name).filter(pl.Series(out))
    values = series.cast(pl.Float64).to_numpy()
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    # Where one record has nearly all of the sum, the mean would tell its value.
    size = np.abs(values) / (np.abs(values).max() or 1.0)
    mean = options["replace"] == "mean" and not size.max() > DOMINANT * size.sum()
    if series.dtype.is_integer():  # without floats on the way
        count, ordered = len(series), sorted(series.to_list())
        middles = ordered[(count - 1) // 2], ordered[count // 2]
        return round(Fraction(sum(ordered), count) if mean else Fraction(sum(middles), 2))
    # Divided first: the sum of the largest numbers is none.
    middle = (values / len(values)).sum() if mean else 2 * np.median(values / 2)
    return float(keep_precision(data, name, np.array([middle]))[0])


def _shown(limit: Any) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)
