"""People of the example world: survey figures, and draws from them, the same on every machine.

People are made in the order in which one thing bounds another: age and sex; marriage and home;
race and origin; service, captivity and exposure; compensation and income; the hospital stay.

Age, sex, race, origin, marital status, income and moves are those of veterans in the American
Community Survey 2024 (PUMS, weighted, rounded). California, Texas and the island areas are not
in the file that was looked at: their rows are round figures of about the right size. Service
periods by age follow from the dates of the periods; ratings, exposure, captivity and stays are
round figures too. Rows are per thousand unless said otherwise and are scaled by their sum.

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


Columns = dict[str, npt.NDArray[Any]]
_MARRIED = 0
_COUPLE_GAP = 10


def make_people(n: int, seed: int) -> Columns:
    """Make n people, a code a person for each column; more people begin with the same ones."""
    draws = Draws(seed, n)
    people: Columns = {}
    for add in (_add_person, _add_home, _add_origin, _add_service, _add_money, _add_stay):
        add(people, draws)
    return people


def _add_person(people: Columns, draws: Draws) -> None:
    years = AGE.pick(draws.of("age"))
    people["age"] = years + np.uint8(FIRST_AGE)
    people["ag8r"] = AGE_GROUP[years] - np.uint8(1)
    people["sex"] = SEX.pick(draws.of("sex"), years)
    people["ms"] = MARITAL.pick(draws.of("ms"), people["sex"], people["ag8r"])


def _add_home(people: Columns, draws: Draws) -> None:
    """Settle the households; both of a couple of veterans live where the first one does."""
    married = np.flatnonzero(people["ms"] == _MARRIED)
    first, second = married[:-1], married[1:]
    age, sex = people["age"].astype(np.int16), people["sex"]
    couple = (sex[first] != sex[second]) & (np.abs(age[first] - age[second]) <= _COUPLE_GAP)
    couple[1:] &= ~couple[:-1]
    head = np.arange(len(age))
    head[second[couple]] = first[couple]
    state, area = settle_people(draws, people["age"], "home")
    people["homstate"], people["area"] = state[head], area[head]
    number = np.cumsum(head == np.arange(len(head)), dtype=np.int32)
    people["household"] = number[head]


def settle_people(
    draws: Draws, age: npt.NDArray[Any], purpose: str, state: npt.NDArray[Any] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Draw a state by age (unless given) and an area in it."""
    if state is None:
        band = np.searchsorted((45, 70), age, side="right")  # of `UsState.veterans`
        state = states().pick(draws.of(f"{purpose} state"), band)
    number = areas().pick(draws.of(f"{purpose} area"), state)
    return state, (FIRST_AREA[state] + number).astype(np.uint16)


def _add_origin(people: Columns, draws: Draws) -> None:
    state, group = people["homstate"], people["ag8r"]
    kind = AREA_KIND[people["area"]]
    people["race1"] = races().pick(draws.of("race1"), state, people["sex"], group, kind)
    people["ethnic"] = ethnicities().pick(draws.of("ethnic"), state, group, people["race1"])


def _add_service(people: Columns, draws: Draws) -> None:
    years = people["age"] - np.uint8(FIRST_AGE)
    period = people["period"] = PERIOD.pick(draws.of("period"), years)
    people["psx"] = PERIOD_CODE.pick(draws.of("psx"), period)
    people["psrcd"] = PERIOD_RECODE[people["psx"]] - np.uint8(1)
    people["pow"] = CAPTIVITY.pick(draws.of("pow"), period)
    people["aor"] = AGENT_ORANGE.pick(draws.of("aor"), period)


def _add_money(people: Columns, draws: Draws) -> None:
    people["cp"] = compensation().pick(
        draws.of("cp"), people["psx"], people["sex"], people["aor"], people["pow"]
    )
    income = people["income"] = _incomes(people, draws)
    claim = np.array((0, 0, 0, 0, 1, 2, 1, 1))[people["cp"]]
    level = np.searchsorted((20_000, 40_000, 60_000), income, side="right")
    people["means"] = MEANS.pick(draws.of("means"), claim, level)


def _incomes(people: Columns, draws: Draws) -> npt.NDArray[np.int32]:
    """Draw a place in the incomes of one's sex and age, then adjust for circumstances."""
    share = (draws.of("income").astype(np.int64) * 1_000_000) >> 32
    step = np.searchsorted(INCOME_POINTS, share, side="right") - 1
    who = (people["sex"], people["ag8r"])
    low, high = INCOME_KNOTS[*who, step], INCOME_KNOTS[*who, step + 1]
    start, end = INCOME_POINTS[step], INCOME_POINTS[step + 1]
    income = low + (high - low) * (share - start) // (end - start)
    for column in ("ms", "cp"):
        income = income * INCOME_FACTORS[column][people[column]] // 100
    income = income * INCOME_FACTORS["kind"][AREA_KIND[people["area"]]] // 100
    return round_income(income * STATE_INCOME[people["homstate"]] // 100)


def round_income(income: Ints) -> npt.NDArray[np.int32]:
    """Round incomes down as the survey does: more coarsely the larger they are."""
    step = np.array((10, 100, 1000))[np.searchsorted((1_000, 50_000), income, side="right")]
    rounded: Ints = income // step * step
    return rounded.astype(np.int32)


_SOURCE, _LENGTH = ShareTable(FIGURES["sources"]), ShareTable(FIGURES["lengths"])
_SURGERY, _BED_SECTION = ShareTable(FIGURES["surgeries"]), ShareTable(FIGURES["bed_sections"])
_SOURCE_KIND = np.array(FIGURES["source_kind"])


def _add_stay(people: Columns, draws: Draws) -> None:
    """Add source, lsr, nsurg and nbs, as codes from 0, to people whose ages are known."""
    age = np.searchsorted((55, 75), people["age"], side="right")
    unmarried = (people["ms"] != 0).astype(np.uint8)
    people["source"] = _SOURCE.pick(draws.of("source"), age, unmarried)
    kind = _SOURCE_KIND[people["source"]]
    people["lsr"] = _LENGTH.pick(draws.of("lsr"), kind, age)
    length = np.searchsorted((3, 6), people["lsr"], side="right")
    people["nsurg"] = _SURGERY.pick(draws.of("nsurg"), length)
    people["nbs"] = _BED_SECTION.pick(draws.of("nbs"), length, np.minimum(people["nsurg"], 2))
