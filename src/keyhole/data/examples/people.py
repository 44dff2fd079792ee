"""People of the example world: one record each, as small codes.

They are made in the order in which one thing bounds another: age and sex; marriage and home;
race and origin; service, captivity and exposure; compensation and income; the hospital stay.
The figures of stays are round ones of about the right size for acute stays of veterans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.data.examples import tables
from keyhole.data.examples.tables import FIGURES, Draws, ShareTable
from keyhole.kernels.arrays import Ints

Columns = dict[str, npt.NDArray[Any]]
_MARRIED = 0
_COUPLE_GAP = 10


def make_people(n: int, seed: int) -> Columns:
    """Make n people, a code a person for each column; more people begin with the same ones."""
    draws = Draws(seed, n)
    people: Columns = {}
    _add_person(people, draws)
    _add_home(people, draws)
    _add_origin(people, draws)
    _add_service(people, draws)
    _add_money(people, draws)
    _add_stay(people, draws)
    return people


def _add_person(people: Columns, draws: Draws) -> None:
    years = tables.AGE.pick(draws.of("age"))
    people["age"] = years + np.uint8(tables.FIRST_AGE)
    people["ag8r"] = tables.AGE_GROUP[years] - np.uint8(1)
    people["sex"] = tables.SEX.pick(draws.of("sex"), years)
    people["ms"] = tables.MARITAL.pick(draws.of("ms"), people["sex"], people["ag8r"])


def _add_home(people: Columns, draws: Draws) -> None:
    """Settle the households; both of a couple of veterans live where the first one does."""
    head = _couples(people)
    state, area = settle_people(draws, people["age"], "home")
    people["homstate"], people["area"] = state[head], area[head]
    number = np.cumsum(head == np.arange(len(head)), dtype=np.int32)
    people["household"] = number[head]


def _couples(people: Columns) -> Ints:
    """Return, for each person, the first person of the household."""
    married = np.flatnonzero(people["ms"] == _MARRIED)
    first, second = married[:-1], married[1:]
    age, sex = people["age"].astype(np.int16), people["sex"]
    couple = (sex[first] != sex[second]) & (np.abs(age[first] - age[second]) <= _COUPLE_GAP)
    couple[1:] &= ~couple[:-1]
    head = np.arange(len(age))
    head[second[couple]] = first[couple]
    return head


def settle_people(
    draws: Draws, age: npt.NDArray[Any], purpose: str, state: npt.NDArray[Any] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Draw a state by age (unless given) and an area in it."""
    if state is None:
        band = np.searchsorted((45, 70), age, side="right")  # of `UsState.veterans`
        state = tables.states().pick(draws.of(f"{purpose} state"), band)
    number = tables.areas().pick(draws.of(f"{purpose} area"), state)
    return state, (tables.FIRST_AREA[state] + number).astype(np.uint16)


def _add_origin(people: Columns, draws: Draws) -> None:
    state, group = people["homstate"], people["ag8r"]
    kind = tables.AREA_KIND[people["area"]]
    people["race1"] = tables.races().pick(draws.of("race1"), state, people["sex"], group, kind)
    people["ethnic"] = tables.ethnicities().pick(draws.of("ethnic"), state, group, people["race1"])


def _add_service(people: Columns, draws: Draws) -> None:
    years = people["age"] - np.uint8(tables.FIRST_AGE)
    period = people["period"] = tables.PERIOD.pick(draws.of("period"), years)
    people["psx"] = tables.PERIOD_CODE.pick(draws.of("psx"), period)
    people["psrcd"] = tables.PERIOD_RECODE[people["psx"]] - np.uint8(1)
    people["pow"] = tables.CAPTIVITY.pick(draws.of("pow"), period)
    people["aor"] = tables.AGENT_ORANGE.pick(draws.of("aor"), period)


def _add_money(people: Columns, draws: Draws) -> None:
    people["cp"] = tables.compensation().pick(
        draws.of("cp"), people["psx"], people["sex"], people["aor"], people["pow"]
    )
    income = people["income"] = _incomes(people, draws)
    claim = np.array((0, 0, 0, 0, 1, 2, 1, 1))[people["cp"]]
    level = np.searchsorted((20_000, 40_000, 60_000), income, side="right")
    people["means"] = tables.MEANS.pick(draws.of("means"), claim, level)


def _incomes(people: Columns, draws: Draws) -> npt.NDArray[np.int32]:
    """Draw a place in the incomes of one's sex and age, then adjust for circumstances."""
    share = (draws.of("income").astype(np.int64) * 1_000_000) >> 32
    step = np.searchsorted(tables.INCOME_POINTS, share, side="right") - 1
    who = (people["sex"], people["ag8r"])
    low, high = tables.INCOME_KNOTS[*who, step], tables.INCOME_KNOTS[*who, step + 1]
    start, end = tables.INCOME_POINTS[step], tables.INCOME_POINTS[step + 1]
    income = low + (high - low) * (share - start) // (end - start)
    for column in ("ms", "cp"):
        income = income * tables.INCOME_FACTORS[column][people[column]] // 100
    income = income * tables.INCOME_FACTORS["kind"][tables.AREA_KIND[people["area"]]] // 100
    return round_income(income * tables.STATE_INCOME[people["homstate"]] // 100)


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
