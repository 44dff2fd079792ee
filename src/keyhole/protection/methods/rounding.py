"""Rounding to multiples of a base, to the nearest or at random without bias."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl

from keyhole.core.options import Option
from keyhole.data.microdata import Microdata
from keyhole.protection.method import AS_CODED, Protected, PublicNote, method
from keyhole.protection.options import POSITIVE, Options, Seed
from keyhole.protection.writeback import infinite_notes, put, put_numbers
from keyhole.utility.implicates import numbers

# Floats hold whole numbers up to here.
EXACT = 2**53


def is_whole_base(data: Microdata, name: str, base: float) -> bool:
    """Tell whether a column has whole numbers too large for floats, and the base is whole too."""
    column = data.column(name)
    if not column.dtype.is_integer() or base != int(base):
        return False
    ends = [int(end) for end in (column.min(), column.max()) if end is not None]  # type: ignore[arg-type]
    return any(abs(end) > EXACT for end in ends)


def round_whole(series: pl.Series, base: int, how: str, seed: Seed) -> pl.Series:
    """Round whole numbers to multiples of a base; see `round_to_base`."""
    draws = np.random.default_rng(seed).random(len(series))
    new: list[int | None] = []
    for value, draw in zip(series.to_list(), draws.tolist(), strict=True):
        times, rest = divmod(value or 0, base)
        up = {
            "up": rest > 0,
            "down": False,
            "random": draw < rest / base,
            "nearest": 2 * rest > base or (2 * rest == base and times % 2 == 1),
        }
        new.append(None if value is None else (times + up[how]) * base)
    return pl.Series(series.name, new, dtype=pl.Int128)


How = Literal["nearest", "random", "down", "up"]

# A quotient nearer to a whole number than this is one: 0.3 / 0.1 is 3.
NEAR = 1e-9
_DIGITS = 12
_MOST_PLACES = 300
# Multiples beyond this many are no longer told apart.
MOST_MULTIPLES = 2.0**53


def _unfit(data: Microdata, options: Options) -> list[str]:
    name, base = options["column"], options["base"]
    if is_whole_base(data, name, base):
        return []
    size = np.abs(numbers(data, name))
    largest = size[np.isfinite(size)].max(initial=0.0)
    if largest / MOST_MULTIPLES < base:
        return []
    return [
        f"base must be larger: multiples this fine cannot be distinguished among numbers as large "
        f"as those of column {name!r}."
    ]


@method(
    "round",
    "codes",
    public=("column", "base", "how"),
    note=PublicNote("Rounded: {columns}.", AS_CODED),
    unfit=_unfit,
    draws=lambda options: options.get("how") == "random",
    holds="numbers",
)
def round_to_base(
    data: Microdata,
    *,
    column: Annotated[str, Option("A column of numbers.", column="column")],
    base: Annotated[float, Option("What the new values are multiples of.", kind=POSITIVE)],
    how: Annotated[
        How | None,
        Option(
            "To the `nearest` multiple (default; halves to the even one), `down`, `up`, or at "
            "`random` to one of the two around."
        ),
    ] = None,
    seed: Seed = None,
) -> Protected:
    r"""Round a column to multiples of a base.

    Notes
    -----
    Random rounding takes x between the multiples l and l + b to l + b with probability
    :math:`(x - l) / b`, and else to l: its expectation is x. A multiple stays as it is.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"income": [12_340, 25_001, 40_000]}))
    >>> round_to_base(people, column="income", base=500).data.frame["income"].to_list()
    [12500, 25000, 40000]
    """
    notes = infinite_notes(data, [column])
    if is_whole_base(data, column, base):
        rounded = round_whole(data.column(column), int(base), how or "nearest", seed)
        new, changed = put(data, column, rounded)
        return Protected(new, "round", {column: changed}, notes)
    quotients = numbers(data, column) / base
    quotients[~np.isfinite(quotients)] = 0  # they are not put back
    whole = np.rint(quotients)
    quotients = np.where(np.abs(quotients - whole) < NEAR, whole, quotients)
    if how == "random":
        low = np.floor(quotients)
        times = low + (np.random.default_rng(seed).random(len(low)) < quotients - low)
    else:
        times = {"nearest": np.rint, "up": np.ceil, "down": np.floor}[how or "nearest"](quotients)
    with np.errstate(over="ignore"):  # what is too large is refused where it is put back
        multiples = times * base
    # Without digits far below the base: 3 * 0.1 is not 0.3, and that is the machine's.
    places = _DIGITS - int(np.ceil(np.log10(base)))
    multiples = np.round(multiples, places) if 0 <= places <= _MOST_PLACES else multiples
    new, changed = put_numbers(data, column, multiples, precise=True)
    return Protected(new, "round", {column: changed}, notes)
