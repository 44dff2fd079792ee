"""Files of the example world: the released sample, and the intruder's file.

The intruder's file holds some of the same people, seen later, with errors and gaps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keyhole.data.examples import tables
from keyhole.data.examples.codebook import KEYS, release
from keyhole.data.examples.people import Columns, round_income, settle_people
from keyhole.data.examples.tables import FIGURES, STATES, Draws, ShareTable, Whole
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints

_SMALL_STATE = 210
_SMALL = np.array([sum(state.veterans) < _SMALL_STATE for state in STATES])


def choose_sample(people: Columns, size: int, seed: int) -> Ints:
    """Choose whole households by sequential Poisson sampling; the last is cut at the size."""
    draws = Draws(seed, len(people["age"]))
    head = first_of_household(people)
    key = ((draws.of("sample").astype(np.int64) << 8) // measures(people))[head]
    order = np.argsort(key, kind="stable")[:size]
    shuffle = Draws(seed, size).order("sample order")
    rows: Ints = order[shuffle]
    return rows


def first_of_household(people: Columns) -> Ints:
    """Return, for each person, the row of the first person of the household."""
    _, first = np.unique(people["household"], return_index=True)
    rows: Ints = first[people["household"] - 1]
    return rows


def measures(people: Columns) -> Ints:
    """Return how often a person is taken: women and small states more, the young less."""
    measure = np.full(len(people["age"]), 4, dtype=np.int64)
    measure <<= people["sex"]
    measure <<= _SMALL[people["homstate"]].astype(np.int64)
    return np.where(people["age"] < 35, measure * 3 // 4, measure)


def sampling_weights(strata: Ints, rows: Ints) -> npt.NDArray[np.int32]:
    """Return whole-number weights that add up to the population, nearly equal within a stratum."""
    kinds, stratum = np.unique(strata, return_inverse=True)
    people = np.bincount(stratum, minlength=len(kinds))
    sampled = np.bincount(stratum[rows], minlength=len(kinds))
    people[np.argmax(sampled)] += people[sampled == 0].sum()
    weights = np.zeros(len(rows), dtype=np.int32)
    for kind in np.flatnonzero(sampled):
        mine = np.flatnonzero(stratum[rows] == kind)
        weights[mine], more = divmod(int(people[kind]), len(mine))
        weights[mine[:more]] += 1
    return weights


def nominal_weights(people: Columns, seed: int) -> npt.NDArray[np.int32]:
    """Return weights of about ten, as if each person stood for others of the same kind."""
    spread = Draws(seed, len(people["age"])).of("weight") % 3
    return (44 // measures(people) + spread).astype(np.int32)


def release_sample(people: Columns, rows: Ints, weights: Whole) -> Microdata:
    """Make the public file of these people: numbered afresh, nothing that points back."""
    taken = {name: codes[rows] for name, codes in people.items()}
    columns = {
        "puf_id": np.arange(1, len(rows) + 1),
        "household": _renumber(taken["household"]),
        **{name: taken[name] for name in (*KEYS, "age", "period", "area", "income")},
        "weight": weights,
    }
    return release("sample", columns)


def _renumber(household: Whole) -> Ints:
    """Number households in the order in which the file shows them."""
    _, first, inverse = np.unique(household, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return number[inverse]


LINK: tuple[str, ...] = (
    *("sex", "age", "ag8r", "ms", "ethnic", "race1", "homstate", "area", "psx", "income"),
)
"""The variables that the external file shares with the sample."""

_BIRTHDAYS = ShareTable((1, 6, 1))  # a year less, as many as passed, one more
_MOVERS, _LEAVERS = np.array(FIGURES["movers"]), np.array(FIGURES["leavers"])
_RAISES, _RAISE = np.array(FIGURES["raises"]), ShareTable(FIGURES["raise_weights"])
_AGE_SLIPS = np.array((-10, -3, -2, -1, 1, 2, 3, 10))
_INCOME_SLIPS = np.array((50, 75, 90, 110, 125, 200), dtype=np.int64)
_CATEGORIES = {"sex": 2, "ms": 6, "ethnic": 7, "race1": 7, "psx": 8}


def _marital_changes() -> ShareTable:
    """Return next year's marital status by age group and this year's."""
    table = np.zeros((8, 6, 6), dtype=np.int64)
    ends = zip(FIGURES["married_end"], FIGURES["marry"], strict=True)
    for group, ((divorced, widowed), marry) in enumerate(ends):
        table[group, 0, [0, 1, 2]] = 1000 - divorced - widowed, widowed, divorced
        for status, rate in zip((1, 2, 4), marry, strict=True):
            table[group, status, [0, status]] = rate, 1000 - rate
        table[group, 3, [2, 3]] = 200, 800
        table[group, 5, 5] = 1
    return ShareTable(table)


_MARITAL_CHANGE = _marital_changes()


def choose_external(people: int, sample: Ints, both: int, size: int, seed: int) -> Ints:
    """Choose the external file's people: some of the sample's and the rest of the others."""
    order = Draws(seed, people).order("external")
    inside = np.zeros(people, dtype=bool)
    inside[sample] = True
    known = inside[order]
    chosen = np.concatenate([order[known][:both], order[~known][: size - both]])
    return chosen[Draws(seed, size).order("external order")]


def release_external(
    people: Columns, rows: Ints, seed: int, years: int, error_rate: float, missing_rate: float
) -> Microdata:
    """Make the intruder's file of these people: some years later, with errors and gaps."""
    seen = _age({name: people[name][rows] for name in LINK}, years, seed)
    seen = _spoil(seen, error_rate, seed)
    draws = Draws(seed, len(rows))
    missing = {name: draws.hits(f"missing {name}", missing_rate) for name in LINK}
    missing["ag8r"] = missing["age"]
    columns = {"eif_id": np.arange(1, len(rows) + 1), **{name: seen[name] for name in LINK}}
    return release("external", columns, missing)


def _age(people: Columns, years: int, seed: int) -> Columns:
    """Return people as they are some years later: older, elsewhere, otherwise married, paid."""
    people = dict(people)
    draws = Draws(seed, len(people["age"]))
    if years:
        people["age"] = people["age"] + (_BIRTHDAYS.pick(draws.of("birthday")) + (years - 1))
    for year in range(1, years + 1):
        _live_a_year(people, draws, f"year {year} ")
    people["ag8r"] = tables.age_group(people["age"]) - np.uint8(1)
    return people


def _live_a_year(people: Columns, draws: Draws, year: str) -> None:
    group, age = people["ag8r"], people["age"]
    people["ms"] = _MARITAL_CHANGE.pick(draws.of(year + "ms"), group, people["ms"])
    moves = draws.of(year + "move") % 1000 < _MOVERS[group]
    leaves = moves & (draws.of(year + "leave") % 100 < _LEAVERS[group])
    new_state, _ = settle_people(draws, age, year + "new")
    state = np.where(leaves, new_state, people["homstate"])
    _, area = settle_people(draws, age, year + "move", state)
    people["homstate"] = state
    people["area"] = np.where(moves, area, people["area"])
    raises = _RAISES[_RAISE.pick(draws.of(year + "raise"))]
    people["income"] = round_income(people["income"] * raises // 100)


def _spoil(people: Columns, rate: float, seed: int) -> Columns:
    """Return people with wrong values, each linking variable at the rate, home as one."""
    people = dict(people)
    draws = Draws(seed, len(people["age"]))
    for name, size in _CATEGORIES.items():
        wrong = _another(people[name], size, draws.of(f"wrong {name}"))
        people[name] = np.where(draws.hits(f"error {name}", rate), wrong, people[name])
    for name, slip in (("age", _slip_age), ("income", _slip_income), ("area", _slip_area)):
        wrong = slip(people[name], draws.of(f"wrong {name}"))
        people[name] = np.where(draws.hits(f"error {name}", rate), wrong, people[name])
    people["homstate"] = tables.AREA_STATE[people["area"]]
    people["ag8r"] = tables.age_group(people["age"]) - np.uint8(1)
    return people


def _another(codes: Whole, size: int, draws: Whole) -> Whole:
    """Return one of the other codes."""
    other: Whole = (codes + 1 + draws % (size - 1)) % size
    return other


def _slip_age(age: Whole, draws: npt.NDArray[np.uint32]) -> Whole:
    slip = _AGE_SLIPS[draws % len(_AGE_SLIPS)]
    return age + np.where(age + slip < tables.FIRST_AGE, -slip, slip)


def _slip_income(income: Whole, draws: npt.NDArray[np.uint32]) -> Whole:
    wrong = round_income(income * _INCOME_SLIPS[draws % len(_INCOME_SLIPS)] // 100)
    return np.where(wrong == income, income + 10_000, wrong)


def _slip_area(area: Whole, draws: npt.NDArray[np.uint32]) -> Whole:
    """Return another area: three times in four of the same state, if it has another."""
    state = tables.AREA_STATE[area]
    count = np.bincount(tables.AREA_STATE)[state]
    first = tables.FIRST_AREA[state]
    near = first + (area - first + 1 + (draws >> 2) % np.maximum(count - 1, 1)) % count
    far = _another(area, len(tables.AREA_STATE), draws >> 2)
    return np.where((draws % 4 > 0) & (count > 1), near, far)
