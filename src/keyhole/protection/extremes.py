"""Top- and bottom-coding: the highest, or the lowest, values are no longer told apart."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.protection.options import (
    Method,
    Options,
    exactly_one,
    is_limit,
    is_name,
    is_number,
    is_share,
    is_text,
    one_of,
)
from keyhole.protection.protected import Protected
from keyhole.protection.writeback import keep_precision, put

__all__ = ["BOTTOM_CODE", "TOP_CODE", "bottom_code", "top_code"]

Flags = npt.NDArray[np.bool_]
Replace = Literal["limit", "mean", "median", "label"]

# The mean of one value is that value, and that of two tells either of them the other's.
FEWEST = 3
# A limit found by share is told in so many digits.
ROUND_DIGITS = 3


def _clashes(options: Options) -> list[str]:
    found = exactly_one(options, "value", "share")
    replace = options.get("replace", "limit")
    if "label" in options and replace != "label":
        found.append("label goes with replace='label' only.")
    if "replacement" in options and replace not in ("mean", "median"):
        found.append("replacement goes with replace='mean' or 'median' only.")
    return found


def _unfit(data: Microdata, options: Options, *, top: bool) -> list[str]:
    name = options["column"]
    series = data.column(name)
    dtype, replace = series.dtype, options.get("replace", "limit")
    if not (dtype.is_numeric() or dtype in (pl.Date, pl.Datetime)):
        return [
            f"column {name!r} must hold numbers or dates. Got other values instead: choose "
            f"another column, or declare its missing codes."
        ]
    if "value" in options and dtype.is_numeric() != (is_number(options["value"]) is None):
        kind = "a number" if dtype.is_numeric() else "a date"
        return [f"value must be {kind}, as column {name!r} holds them. Got another kind instead."]
    if not dtype.is_numeric() and replace in ("mean", "median"):
        return [f"replace={replace!r} needs numbers. Column {name!r} holds dates."]
    if replace in ("mean", "median") and "replacement" not in options:
        return _too_few(series, options, top=top)
    return []


def _too_few(series: pl.Series, options: Options, *, top: bool) -> list[str]:
    beyond = _beyond(series, _limit(series, options, top=top), top=top)
    if beyond.sum() == 0 or beyond.sum() >= FEWEST:
        return []
    return [
        f"replace={options['replace']!r} needs {FEWEST} or more records beyond the limit of column "
        f"{series.name!r}, else it tells their values: choose another limit, or replace='limit'."
    ]


def _method(name: str, *, top: bool) -> Method:
    checks = {
        "column": is_name,
        "value": is_limit,
        "share": is_share,
        "replace": one_of("limit", "mean", "median", "label"),
        "label": is_text,
        "replacement": is_number,
    }

    def unfit(data: Microdata, options: Options) -> list[str]:
        return _unfit(data, options, top=top)

    return Method(
        name,
        checks,
        clashes=_clashes,
        unfit=unfit,
        needs_order=True,
        makes_labels=lambda options: options.get("replace") == "label",
        supersedes={"value": ("share",)},
    )


TOP_CODE = _method("top-code", top=True)
BOTTOM_CODE = _method("bottom-code", top=False)


def top_code(
    data: Microdata,
    *,
    column: str,
    value: Any = None,
    share: float | None = None,
    replace: Replace | None = None,
    label: str | None = None,
    replacement: float | None = None,
) -> Protected:
    """Replace the values above a limit.

    Parameters
    ----------
    data
        The file.
    column
        A column of numbers or dates.
    value
        The limit: all that is *above* it is replaced.
    share
        Instead, the share of the records that is to be above, at most. The limit is the lowest
        value for which it is, rounded up to three digits (a date to New Year), since the value
        itself would tell of the person who has it.
    replace
        By what: the ``limit`` itself (default), the ``mean`` or the ``median`` of what is above,
        or a ``label``.
    label
        The label; "above 89" if left out.
    replacement
        A mean or median found before, to repeat the same protection on other data.

    Notes
    -----
    A mean or median of fewer than three records would tell their values, and is refused. It is
    rounded to the column's precision.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"age": [34, 89, 90, 97]}))
    >>> top_code(people, column="age", value=89).data.frame["age"].to_list()
    [34, 89, 89, 89]
    """
    given = {
        "column": column, "value": value, "share": share, "replace": replace, "label": label,
        "replacement": replacement,
    }  # fmt: skip
    TOP_CODE.require(data, given)
    return _coded(data, given, top=True)


def bottom_code(
    data: Microdata,
    *,
    column: str,
    value: Any = None,
    share: float | None = None,
    replace: Replace | None = None,
    label: str | None = None,
    replacement: float | None = None,
) -> Protected:
    """Replace the values below a limit; see `top_code`.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"born": [1899, 1921, 1950]}))
    >>> made = bottom_code(people, column="born", value=1920, replace="label", label="before 1920")
    >>> made.data.frame["born"].to_list()
    ['before 1920', '1921', '1950']
    """
    given = {
        "column": column, "value": value, "share": share, "replace": replace, "label": label,
        "replacement": replacement,
    }  # fmt: skip
    BOTTOM_CODE.require(data, given)
    return _coded(data, given, top=False)


def _coded(data: Microdata, given: Options, *, top: bool) -> Protected:
    options = {name: value for name, value in given.items() if value is not None}
    name, replace = options["column"], options.get("replace", "limit")
    series = data.column(name)
    limit = _limit(series, options, top=top)
    beyond = _beyond(series, limit, top=top)
    fitted: dict[str, Any] = {"value": limit}
    if replace == "label":
        text = options.get("label", f"{'above' if top else 'below'} {_shown(limit)}")
        new = pl.Series(name, [text]).new_from_index(0, data.records)
    else:
        put_in = limit if replace == "limit" else _middle(data, options, beyond)
        fitted |= {} if replace == "limit" or put_in is None else {"replacement": put_in}
        new = pl.Series(name, [put_in], dtype=_fitting(series, put_in))
        new = new.new_from_index(0, data.records)
    hit = pl.select(pl.when(pl.Series(beyond)).then(new).alias(name)).to_series()
    out, changed = put(data, name, hit)
    method = (TOP_CODE if top else BOTTOM_CODE).name
    return Protected(out, method, {name: changed}, _notes(options, limit, beyond), fitted=fitted)


def _limit(series: pl.Series, options: Options, *, top: bool) -> Any:
    """Return the limit: as given, or a round one with no more than a share beyond it."""
    if "value" in options:
        return _as_held(options["value"], series)
    known = series.drop_nulls().sort(descending=top)
    if not len(known):
        return 0
    return _round_past(known[int(options["share"] * len(known) + 1e-9)], top=top)


def _as_held(value: Any, series: pl.Series) -> Any:
    """Return a date as a day or a point in time, whichever the column holds."""
    if series.dtype == pl.Date and isinstance(value, datetime):
        return value.date()
    if series.dtype == pl.Datetime and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def _round_past(value: Any, *, top: bool) -> Any:
    """Return the next round number, or New Year: the value itself would tell of its person."""
    if isinstance(value, date):
        year = date(value.year + top, 1, 1)
        return datetime(year.year, 1, 1) if isinstance(value, datetime) else year
    if not value or not math.isfinite(value):
        return value
    power = math.floor(math.log10(abs(value))) - (ROUND_DIGITS - 1)
    if power <= 0 and isinstance(value, int):
        return value
    scaled = round(value / 10.0**power, 6)
    found = round((math.ceil(scaled) if top else math.floor(scaled)) * 10.0**power, 12)
    return int(found) if isinstance(value, int) else found


def _beyond(series: pl.Series, limit: Any, *, top: bool) -> Flags:
    hit = series > limit if top else series < limit
    return np.asarray(hit.fill_null(False).to_numpy())


def _middle(data: Microdata, options: Options, beyond: Flags) -> float | int | None:
    """Return the mean or median beyond the limit; None if nothing is there."""
    if "replacement" in options:
        return options["replacement"]  # type: ignore[no-any-return]
    name = options["column"]
    values = data.column(name).filter(pl.Series(beyond)).cast(pl.Float64).to_numpy()
    if not len(values):
        return None
    middle = np.mean(values) if options["replace"] == "mean" else np.median(values)
    found = float(keep_precision(data, name, np.array([middle]))[0])
    return int(found) if data.column(name).dtype.is_integer() else found


def _fitting(series: pl.Series, value: Any) -> pl.DataType:
    """Return the column's own type, or a wider one where the value needs it."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if series.dtype.is_numeric():
        return pl.Float64() if not (series.dtype.is_integer() and whole) else pl.Int64()
    return series.dtype


def _shown(limit: Any) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _notes(options: Options, limit: Any, beyond: Flags) -> tuple[str, ...]:
    if "share" not in options:
        return ()
    share = beyond.mean() if len(beyond) else 0.0
    return (f"limit {_shown(limit)}: a share of {share:.4g} is beyond, {options['share']:g} asked",)
