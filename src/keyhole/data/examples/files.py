"""Files of the example world: their codebook, the released sample, and the intruder's file.

Lin & Garin name their sixteen variables without explaining them; the meanings here are ours.
Their figures say that psrcd is a coarsening of psx (leaving psrcd out changes nothing), so both
are periods of service. Codes are in the manner of the agency's files, not copies of its lists.
The intruder's file holds some of the same people, seen later, with errors and gaps.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Kind, Role, Variable
from keyhole.data.examples.people import (
    AREA_STATE,
    FIGURES,
    FIRST_AGE,
    FIRST_AREA,
    STATES,
    Columns,
    Draws,
    ShareTable,
    Whole,
    age_group,
    round_income,
    settle_people,
)
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints

KEYS: tuple[str, ...] = (
    *("sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate", "means", "nsurg", "nbs"),
    *("cp", "lsr", "ethnic", "race1", "psrcd"),
)
"""Lin & Garin's sixteen, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class CodebookColumn:
    """One column: its meaning and what its codes stand for; without values it holds numbers."""

    label: str
    kind: Kind = "category"
    role: Role | None = "key"
    values: Mapping[Any, str] = field(default_factory=dict)

    def series(self, name: str, codes: npt.NDArray[Any]) -> pl.Series:
        """Turn codes into values."""
        if not self.values:
            return pl.Series(name, codes.astype(np.int32))
        levels = list(self.values)
        if isinstance(levels[0], str):
            return pl.Series(name, levels).gather(codes.astype(np.uint32))
        return pl.Series(name, np.array(levels, dtype=np.int16)[codes])

    def variable(self, name: str) -> Variable:
        """Return what is known of the column."""
        labels = {value: label for value, label in self.values.items() if label}
        return Variable(name, self.kind, self.role, self.label, labels)


def release(
    name: str, columns: Mapping[str, npt.NDArray[Any]], missing: Mapping[str, Any] | None = None
) -> Microdata:
    """Turn codes into a file with labels; values marked missing are left out."""
    series = [CODEBOOK[column].series(column, codes) for column, codes in columns.items()]
    for i, one in enumerate(series):
        if missing and one.name in missing:
            series[i] = one.set(pl.Series(missing[one.name]), None)
    variables = tuple(CODEBOOK[column].variable(column) for column in columns)
    return Microdata(pl.DataFrame(series), variables, name)


def _codebook() -> Iterator[tuple[str, CodebookColumn]]:
    areas = np.arange(len(AREA_STATE)) - FIRST_AREA[AREA_STATE] + 1
    places = [f"{STATES[i].fips}{n:03}" for i, n in zip(AREA_STATE, areas, strict=True)]
    # A category without a label is its code.
    made = {"area": dict.fromkeys(places, ""), "homstate": {s.fips: s.name for s in STATES}}
    path = Path(__file__).with_name("codebook.toml")
    for name, row in tomllib.loads(path.read_text("utf-8")).items():
        numbered = dict(enumerate(row.get("numbered", ()), row.get("first", 1)))
        values = made.get(name) or row.get("values") or numbered
        role = row.get("role", "key") or None
        yield name, CodebookColumn(row["label"], row.get("kind", "category"), role, values)


CODEBOOK: Mapping[str, CodebookColumn] = dict(_codebook())

_SMALL_STATE = 210
_SMALL = np.array([sum(state.veterans) < _SMALL_STATE for state in STATES])


def choose_sample(people: Columns, size: int, seed: int) -> Ints:
    """Choose whole households by sequential Poisson sampling; the last is cut at the size."""
    draws = Draws(seed, len(people["age"]))
    head = first_of_household(people)
    key = ((draws.of("sample").astype(np.int64) << 8) // measures(people))[head]
    order = np.argsort(key, kind="stable")[:size]
    return order[Draws(seed, size).order("sample order")]


def first_of_household(people: Columns) -> Ints:
    """Return, for each person, the row of the first person of the household."""
    _, first = np.unique(people["household"], return_index=True)
    return cast("Ints", first[people["household"] - 1])


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
    # Households are numbered in the order in which the file shows them.
    _, first, inverse = np.unique(taken["household"], return_index=True, return_inverse=True)
    household = np.empty(len(first), dtype=np.int64)
    household[np.argsort(first)] = np.arange(1, len(first) + 1)
    columns = {
        "puf_id": np.arange(1, len(rows) + 1),
        "household": household[inverse],
        **{name: taken[name] for name in (*KEYS, "age", "period", "area", "income")},
        "weight": weights,
    }
    return release("sample", columns)


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
    group, age = people["ag8r"], people["age"]
    for year in (f"year {number} " for number in range(1, years + 1)):
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
    people["ag8r"] = age_group(people["age"]) - np.uint8(1)
    return people


def _spoil(people: Columns, rate: float, seed: int) -> Columns:
    """Return people with wrong values, each linking variable at the rate, home as one."""
    people = dict(people)
    draws = Draws(seed, len(people["age"]))
    for name, size in _CATEGORIES.items():
        wrong = _another(people[name], size, draws.of(f"wrong {name}"))
        people[name] = np.where(draws.hits(f"error {name}", rate), wrong, people[name])
    age, income = people["age"], people["income"]
    slip = _AGE_SLIPS[draws.of("wrong age") % len(_AGE_SLIPS)]
    factor = _INCOME_SLIPS[draws.of("wrong income") % len(_INCOME_SLIPS)]
    wrong_income = round_income(income * factor // 100)
    slips = {
        "age": age + np.where(age + slip < FIRST_AGE, -slip, slip),
        "income": np.where(wrong_income == income, income + 10_000, wrong_income),
        "area": _slip_area(people["area"], draws.of("wrong area")),
    }
    for name, wrong in slips.items():
        people[name] = np.where(draws.hits(f"error {name}", rate), wrong, people[name])
    people["homstate"] = AREA_STATE[people["area"]]
    people["ag8r"] = age_group(people["age"]) - np.uint8(1)
    return people


def _another(codes: Whole, size: int, draws: Whole) -> Whole:
    return cast("Whole", (codes + 1 + draws % (size - 1)) % size)


def _slip_area(area: Whole, draws: npt.NDArray[np.uint32]) -> Whole:
    """Return another area: three times in four of the same state, if it has another."""
    state = AREA_STATE[area]
    count = np.bincount(AREA_STATE)[state]
    first = FIRST_AREA[state]
    near = first + (area - first + 1 + (draws >> 2) % np.maximum(count - 1, 1)) % count
    far = _another(area, len(AREA_STATE), draws >> 2)
    return np.where((draws % 4 > 0) & (count > 1), near, far)
