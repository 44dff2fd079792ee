"""Survey figures, and draws from them that are the same on every machine.

Age, sex, race, origin, marital status, income and moves are those of veterans in the American
Community Survey 2024 (PUMS, weighted, rounded). California, Texas and the island areas are not
in the file that was looked at: their rows are round figures of about the right size. Service
periods by age follow from the dates of the periods; ratings, exposure and captivity are round
figures too. Rows are per thousand unless said otherwise and need not add up: they are scaled by
their sum.

Every column of the world has a stream of random bits of its own, named by the seed and the
column, and uses one number a person. So a column does not change when another is added, and
the first thousand people of a large world are the people of a small one. Only the raw bits of
the generator are used, never its distributions, and no floating-point number decides a value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags, Ints

Whole = npt.NDArray[Any]

_BITS = 20
_SCALE = 1 << _BITS


class Draws:
    """The random numbers of a world, by seed and purpose."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size

    def of(self, purpose: str) -> npt.NDArray[np.uint32]:
        """Return 32 random bits a person for a purpose."""
        source = np.random.PCG64(np.random.SeedSequence([self.seed, *purpose.encode()]))
        raw: npt.NDArray[np.uint64] = np.asarray(source.random_raw(self.size), dtype=np.uint64)
        return (raw >> np.uint64(32)).astype(np.uint32)

    def hits(self, purpose: str, rate: float) -> Flags:
        """Mark the people to whom something happens at a rate."""
        return self.of(purpose) < np.uint64(round(rate * (1 << 32)))

    def order(self, purpose: str) -> Ints:
        """Return the people in a random order."""
        return np.argsort(self.of(purpose), kind="stable")


class ShareTable:
    """Shares of categories, in rows by condition, made ready for drawing."""

    def __init__(self, weights: npt.ArrayLike) -> None:
        table = np.asarray(weights, dtype=np.int64)
        self.conditions = table.shape[:-1]
        self.categories = table.shape[-1]
        self._dtype = np.min_scalar_type(self.categories - 1)
        rows = table.reshape(-1, self.categories)
        scaled = np.cumsum(rows, axis=1) * _SCALE // rows.sum(axis=1, keepdims=True)
        self._bounds = (scaled + np.arange(len(rows))[:, None] * _SCALE).ravel()

    def pick(self, draws: npt.NDArray[np.uint32], *conditions: Whole) -> Whole:
        """Draw a category for each person, given one code a condition."""
        row: Whole = np.zeros(1, dtype=np.int64)
        for codes, size in zip(conditions, self.conditions, strict=True):
            row = row * size + codes
        points = row * _SCALE + (draws >> np.uint32(32 - _BITS))
        found: Whole = np.searchsorted(self._bounds, points, side="right")
        found -= row * self.categories
        return found.astype(self._dtype)


class UsState(NamedTuple):
    """The figures of one state, as `figures.toml` explains them."""

    fips: str
    name: str
    veterans: Sequence[int]
    areas: int
    income: int
    races: Sequence[int]
    origins: Sequence[int]


FIGURES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))
STATES = tuple(UsState(fips, *row) for fips, row in FIGURES["states"].items())

FIRST_AGE, LAST_AGE = 18, 99
_AGE_GROUPS = (18, 25, 35, 45, 55, 65, 75, 85)

PERIOD_RECODE = np.array((1, 1, 1, 2, 3, 4, 5, 5), dtype=np.uint8)  # psrcd of each psx
INCOME_POINTS = np.array(FIGURES["income_points"], dtype=np.int64) * 1000
INCOME_KNOTS = np.array(FIGURES["incomes"], dtype=np.int64) * 100
INCOME_FACTORS = {name: np.array(row) for name, row in FIGURES["income_factors"].items()}


def _by_age(bands: Sequence[tuple[int, npt.ArrayLike]]) -> Ints:
    """Spread rows that hold from an age on over single years of age."""
    rows = np.array([row for _, row in bands], dtype=np.int64)
    starts = np.array([first for first, _ in bands])
    ages = np.arange(FIRST_AGE, LAST_AGE + 1)
    return rows[np.searchsorted(starts, ages, side="right") - 1]


def age_group(age: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Return the age group, 1 to 8, of ages in years."""
    return np.searchsorted(_AGE_GROUPS, age, side="right").astype(np.uint8)


AGE = ShareTable(FIGURES["ages"])
SEX = ShareTable([(1000 - women, women) for women in _by_age(FIGURES["women"])])
MARITAL = ShareTable(FIGURES["marital"])
PERIOD = ShareTable(_by_age(FIGURES["periods"]))
PERIOD_CODE = ShareTable(FIGURES["period_codes"])
CAPTIVITY = ShareTable(FIGURES["captivity"])
AGENT_ORANGE = ShareTable(FIGURES["agent_orange"])
MEANS = ShareTable(FIGURES["means"])
AGE_GROUP = age_group(np.arange(FIRST_AGE, LAST_AGE + 1))

AREA_STATE = np.repeat(np.arange(len(STATES)), [state.areas for state in STATES])
FIRST_AREA = np.searchsorted(AREA_STATE, np.arange(len(STATES)))
_AREA_NUMBER = np.arange(len(AREA_STATE)) - FIRST_AREA[AREA_STATE]
AREA_KIND = np.array((0, 1, 1, 2, 2))[_AREA_NUMBER % 5]  # city, suburbs, country
STATE_INCOME = np.array([state.income for state in STATES], dtype=np.int64)


@cache
def states() -> ShareTable:
    """Return the states, by the three age bands."""
    return ShareTable(np.array([state.veterans for state in STATES]).T)


@cache
def areas() -> ShareTable:
    """Return the areas of each state, the first ones larger."""
    table = np.zeros((len(STATES), max(state.areas for state in STATES)), dtype=np.int64)
    table[AREA_STATE, _AREA_NUMBER] = 40 + 120 // (_AREA_NUMBER + 1)
    return ShareTable(table)


@cache
def races() -> ShareTable:
    """Return race1 by state, sex, age group and kind of area."""
    base = np.array([state.races for state in STATES], dtype=np.int64)
    by_age = np.array(FIGURES["race_by_age"]).swapaxes(1, 2)
    odds = (
        base[:, None, None, None, :]
        * by_age[None, :, :, None, :]
        * np.array(FIGURES["race_by_area"])
    )
    white = np.maximum(945 - base.sum(axis=1), 10)
    rest = np.stack([white, np.full_like(white, 25), np.full_like(white, 30)], axis=-1)
    rest = np.broadcast_to(rest[:, None, None, None, :] * 10_000, (*odds.shape[:-1], 3))
    return ShareTable(np.concatenate([odds, rest], axis=-1))


@cache
def ethnicities() -> ShareTable:
    """Return ethnic by state, age group and race1."""
    base = np.array([state.origins for state in STATES], dtype=np.int64)
    factor = np.outer(FIGURES["origin_by_age"], FIGURES["origin_by_race"])
    odds = base[:, None, None, :] * factor[None, :, :, None]
    neither = np.maximum(1000 - base.sum(axis=1), 10)[:, None, None, None] * 10_000
    neither = np.broadcast_to(neither, (*odds.shape[:-1], 1))
    silent = np.broadcast_to(np.array(FIGURES["silent"]) * 10_000, (*odds.shape[:-1], 2))
    return ShareTable(np.concatenate([neither, odds, silent], axis=-1))


@cache
def compensation() -> ShareTable:
    """Return cp by psx, sex, aor and pow: the last three raise the chance of a rating."""
    by = ("sex", "agent_orange", "captivity")
    sex, agent_orange, captivity = (FIGURES[f"rated_by_{name}"] for name in by)
    factor = np.multiply.outer(np.outer(sex, agent_orange), captivity)
    rated = np.arange(8) < 5
    rows = np.array(FIGURES["ratings"], dtype=np.int64)[:, None, None, None, :]
    return ShareTable(rows * np.where(rated, factor[..., None], 100**3))
