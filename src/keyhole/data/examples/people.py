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
from keyhole.data.examples.tables import Draws, ShareTable
from keyhole.kernels.arrays import Ints

Columns = dict[str, npt.NDArray[Any]]
_MARRIED = 0
_COUPLE_GAP = 10


def make_people(n: int, seed: int) -> Columns:
    """Make n people: a code a person for each column, in the order of the codebook.

    The first people of a larger world with the same seed are the people of a smaller one.
    """
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
    """Return, for each person, the first person of the household.

    Of the married people in order, two who follow each other, differ in sex and are at most
    ten years apart are a couple: about one veteran in twenty, as in the survey.
    """
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


# fmt: off
_SOURCES = (  # by age (under 55, 55 to 74, 75 and over) and married or not, per thousand
    ((740, 90, 95, 1, 1, 2, 8, 20, 12, 15, 10, 6),
     (650, 90, 105, 1, 1, 2, 55, 20, 12, 15, 10, 39)),
    ((740, 90, 80, 4, 4, 6, 8, 28, 5, 22, 8, 5),
     (665, 90, 85, 9, 9, 12, 45, 28, 4, 22, 8, 23)),
    ((710, 85, 75, 25, 15, 25, 3, 30, 2, 20, 8, 2),
     (590, 80, 75, 70, 40, 60, 12, 28, 1, 20, 8, 6)),
)
_SOURCE_KIND = np.array((0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 0, 1))  # home, another hospital, long care
_LENGTHS = (  # by that kind and by age as above, per thousand: the ten lengths of the codebook
    ((330, 240, 150, 85, 80, 50, 33, 20, 9, 3),
     (270, 230, 165, 100, 100, 60, 40, 22, 9, 4),
     (215, 205, 165, 115, 125, 80, 52, 28, 11, 4)),
    ((190, 170, 130, 95, 130, 110, 85, 55, 25, 10),
     (165, 155, 130, 100, 140, 120, 95, 60, 25, 10),
     (140, 145, 130, 105, 150, 130, 100, 65, 25, 10)),
    ((90, 90, 90, 80, 115, 120, 120, 130, 115, 50),
     (85, 90, 90, 85, 120, 125, 120, 120, 105, 60),
     (75, 90, 95, 90, 130, 130, 120, 115, 95, 60)),
)
_SURGERIES = (  # by length (under 4 days, 4 to 9, longer), per thousand: 0 to 5 operations
    (870, 115, 11, 3, 1, 0), (775, 175, 35, 10, 3, 2), (665, 200, 75, 32, 15, 13),
)
_BED_SECTIONS = (  # by length as above and operations (0, 1, more), per thousand: 1 to 6 wards
    ((920, 70, 8, 1, 1, 0), (830, 145, 20, 3, 1, 1), (750, 190, 50, 7, 2, 1)),
    ((820, 140, 30, 7, 2, 1), (660, 245, 70, 17, 6, 2), (550, 275, 120, 38, 12, 5)),
    ((670, 205, 80, 28, 10, 7), (500, 275, 135, 55, 22, 13), (360, 285, 185, 95, 45, 30)),
)
# fmt: on
_SOURCE, _LENGTH = ShareTable(_SOURCES), ShareTable(_LENGTHS)
_SURGERY, _BED_SECTION = ShareTable(_SURGERIES), ShareTable(_BED_SECTIONS)


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
