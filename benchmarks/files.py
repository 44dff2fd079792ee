"""The files measured on: the example world, with 8, 16 or 24 key variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from keyhole.data import Microdata, Variable
from keyhole.data.examples import KEYS, veterans_sample

MORE: tuple[str, ...] = (
    *("age", "period", "income_band", "district", "household_size", "month", "weekday", "ward"),
)
"""What follows the sixteen where 24 keys are asked for: two columns of the file, six made of it."""


def keys_of(count: int) -> tuple[str, ...]:
    """Return the first so many keys: Lin & Garin's sixteen, then `MORE`."""
    return (*KEYS, *MORE)[:count]


def sample(records: int, seed: int = 1) -> Microdata:
    """Make a sample with all 24 keys in it."""
    data = veterans_sample(records, seed)
    made = [make(data.frame).alias(name) for name, make in _MADE.items()]
    frame = data.frame.with_columns(made)
    variables = (*data.variables, *(Variable(name, "category") for name in _MADE))
    return Microdata(frame, variables)


def encoded_alone(data: Microdata, keys: Sequence[str]) -> Microdata:
    """Return a file of these columns alone, its codes still to be made."""
    return Microdata(data.frame.select(keys), tuple(data.variable(name) for name in keys))


def _arbitrary(count: int, step: int) -> Callable[[pl.DataFrame], pl.Series]:
    """Spread the records over so many categories, unrelated to everything else."""

    def make(frame: pl.DataFrame) -> pl.Series:
        number = frame["puf_id"].to_numpy().astype(np.uint64)
        mixed = number * np.uint64(step) * np.uint64(0x9E3779B97F4A7C15)
        return pl.Series((mixed >> np.uint64(40)) % np.uint64(count)).cast(pl.UInt8)

    return make


def _income_band(frame: pl.DataFrame) -> pl.Series:
    return (frame["income"] // 5_000).clip(0, 19).cast(pl.UInt8)


def _district(frame: pl.DataFrame) -> pl.Series:
    """The number of the area within its state, without saying which state."""
    return (frame["area"].str.slice(2).cast(pl.UInt16) % 100).cast(pl.UInt8)


def _household_size(frame: pl.DataFrame) -> pl.Series:
    return frame.select(pl.len().over("household").cast(pl.UInt8)).to_series()


_MADE: dict[str, Callable[[pl.DataFrame], pl.Series]] = {
    "income_band": _income_band,
    "district": _district,
    "household_size": _household_size,
    "month": _arbitrary(12, 1),
    "weekday": _arbitrary(7, 3),
    "ward": _arbitrary(10, 5),
}
