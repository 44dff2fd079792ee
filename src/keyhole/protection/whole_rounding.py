"""Round whole numbers to whole multiples without floats, which have no digits past 2^53."""

from __future__ import annotations

import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.protection.options import Seed, draw_from

__all__ = ["is_whole_base", "round_whole"]

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
    """Round whole numbers to multiples of a base; see `round_to_base`.

    Examples
    --------
    >>> round_whole(pl.Series([2**53 + 1, None]), 2, "up", None).to_list()
    [9007199254740994, None]
    """
    draws = draw_from(seed).random(len(series)).tolist() if how == "random" else [0.0] * len(series)
    new = [
        None if value is None else _rounded(value, base, how, draw)
        for value, draw in zip(series.to_list(), draws, strict=True)
    ]
    return pl.Series(series.name, new, dtype=pl.Int128)


def _rounded(value: int, base: int, how: str, draw: float) -> int:
    times, rest = divmod(value, base)
    up = {
        "up": rest > 0,
        "down": False,
        "random": draw < rest / base,
        "nearest": 2 * rest > base or (2 * rest == base and times % 2 == 1),
    }
    return (times + up[how]) * base
