"""Options of a table that depend on each other and on the data, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import prod
from typing import Annotated, Any, ClassVar

import numpy as np

from keyhole.core.kinds import MOST_SHOWN, Columns, Kind, Number, Whole, listed_names, split_words
from keyhole.core.options import Option, Problem, Question
from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.protection.options import raised
from keyhole.protection.tables.hierarchies import code_list_problems, find_chains, is_within
from keyhole.utility.implicates import numbers
from keyhole.utility.tabulation import crossing_problems

# What a frame has besides the variables.
RESERVED = ("value", "suppressed", "total_over", "count", "low", "high", "unsafe", "shown")
# Programs over more cells than this do not end; a table that is only shown may be larger.
LARGEST = {"suppress": 100_000, "round": 20_000, "cell-key": 500_000, "none": 500_000}
# A variable with more values than this share of the records names them; few records say nothing.
MOST_DISTINCT, FEWEST = 0.5, 50
# The noise of cell keys unless it is asked for: the largest, and its variance.
NOISE = (5, 2.0)
# What only one way to protect a table has a use for; and what only amounts, and only counts, have.
OF_METHOD = {
    "suppress": ("cost", "total_known", "singletons"),
    "cell-key": (
        "noise", "noise_variance", "smallest_published", "noise_percent", "record_id", "add_up",
    ),
}  # fmt: skip
OF_AMOUNTS = ("noise_percent", "singletons")
OF_COUNTS = ("noise", "noise_variance", "smallest_published")


@dataclass(frozen=True, slots=True)
class _Pair(Kind):
    """Two numbers, typed with a comma between them; if `ascending`, the smaller one first."""

    what: str
    parts: tuple[Number, Number]
    metavar: str = "X,Y"  # type: ignore[misc]
    ascending: bool = False

    def fits(self, value: Any) -> bool:
        two = isinstance(value, tuple | list) and len(value) == 2
        fit = two and not any(n.fault(x) for n, x in zip(self.parts, value, strict=True))
        return fit and (not self.ascending or value[0] <= value[1] > 0)

    def unfit(self, value: Any) -> list[Any]:
        short = isinstance(value, tuple | list) and 0 < len(value) <= MOST_SHOWN
        return [",".join(map(str, value)) if short else value]

    def settle(self, value: Any) -> tuple[Any, ...]:
        return tuple(n.settle(x) for n, x in zip(self.parts, value, strict=True))

    def read(self, text: str) -> Any:
        # What is no number is left for `fault` to refuse.
        first, *rest = text.split(",")
        return (self.parts[0].read(first), *map(self.parts[1].read, rest))

    def write(self, value: Any) -> str:
        return ",".join(n.write(x) for n, x in zip(self.parts, value, strict=True))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "prefixItems": [number.schema() for number in self.parts]}


_DOMINANCE = _Pair(
    "n,k: a whole number of contributors and the percent of a cell they may have, above 0 and "
    "below 100",
    (Whole(low=1), Number(above=0, below=100)),
    "n,k",
)
_RANGE = _Pair(
    "two percentages from 0 to 100, the smaller one first, like 5,15",
    (Number(low=0, high=100), Number(low=0, high=100)),
    "LEAST,LARGEST",
    ascending=True,
)


class _Crossings(Kind):
    """Tables by their rows and columns, typed as ``A,B x C``."""

    metavar = "'A,B x C'"
    repeatable: ClassVar[bool] = True
    what = "tables, each as its rows and its columns, like 'A,B x C'"

    def _sides(self, value: Any) -> Any:
        if isinstance(value, str):
            rows, _, cols = value.partition(" x ")
            return [split_words(side, ",") for side in (rows, cols) if side.strip()]
        return [listed_names(side) for side in value]

    def fits(self, value: Any) -> bool:
        if not isinstance(value, tuple | list):
            return False
        return all(
            isinstance(one, str | tuple | list) and 1 <= len(sides := self._sides(one)) <= 2
            and all(side and all(isinstance(n, str) and n for n in side) for side in sides[:1])
            for one in value
        )  # fmt: skip

    def settle(self, value: Any) -> Any:
        found = [self._sides(one) for one in value]
        return tuple((tuple(one[0]), tuple(one[1] if len(one) > 1 else ())) for one in found)

    def read(self, text: str) -> Any:
        return [text]

    def write(self, value: Any) -> str:
        return next(iter(self.write_all(value)), "")

    def write_all(self, value: Any) -> list[str]:
        return [" x ".join(Columns().write(side) for side in one if side) for one in value]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "array"}]}}

    def columns(self, value: Any) -> Iterator[tuple[Any, str]]:
        for i, table in enumerate(self.settle(value)):
            for j, side in enumerate(table):
                yield from (((i, j, k), name) for k, name in enumerate(side))


Tables = Annotated[
    Any,
    Option(
        "A further table of the file, as `A,B x C` (rows x columns), protected together with the "
        "others; may be repeated.",
        kind=_Crossings(),
        also="--table",
    ),
]


DominanceOption = Annotated[
    tuple[int, float] | None,
    Option(
        "Cells in which the n largest contributors have more than k percent are unsafe.",
        kind=_DOMINANCE,
    ),
]
NoisePercent = Annotated[
    tuple[float, float],
    Option(
        "Cell keys: the least and the largest noise of an amount, in percent of the largest "
        "contribution to its cell.",
        kind=_RANGE,
    ),
]


def table_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `table` that depend on each other."""
    for rows, cols in ((question.rows, question.cols), *question.tables):
        yield from crossing_problems(question.replace(rows=rows, cols=cols), RESERVED)
    rows, cols = question.rows or (), question.cols or ()
    if not rows and not question.tables:
        yield Problem("{rows} must be a list of at least one column name. Got nothing instead.")
    if question.tables and question.rounding == "random":
        yield Problem("{rounding} at random must be of one table. Round to the nearest instead.")
    if question.hierarchy is not None and len(rows) != 1:
        yield Problem("{hierarchy} is a code list of one variable: {rows} must name just that one.")
    if question.against is not None and question.protect != "suppress":
        yield Problem("{against} needs {protect} to be 'suppress'. Leave it out.")
    tabulated = {*rows, *cols}.union(*(set(side) for one in question.tables for side in one))
    for name in question.nested or ():
        if name not in tabulated:
            yield Problem("{nested} must name variables of the table. Got {0!r} instead.", name)
    magnitude = question.magnitude
    if magnitude is None and (question.dominance is not None or question.p_percent is not None):
        yield Problem(
            "{dominance} and {p_percent} need {magnitude}, whose contributors they compare. Got "
            "none instead: name the variable to be added up, or leave the rules out."
        )
    if magnitude is not None and magnitude in (*rows, *cols):
        yield Problem("{magnitude} must not be a variable of {rows} or {cols}. Got {0!r} instead.",
                      magnitude)  # fmt: skip
    if magnitude is not None and magnitude == question.weight:
        yield Problem("{magnitude} must not be {weight} as well. Got {0!r} instead.", magnitude)
    if question.base is not None and question.protect != "round":
        yield Problem("{base} needs {protect} to be 'round'. Leave it out, or ask for rounding.")
    yield from _unused_problems(question)
    if question.protect == "cell-key":
        yield from _cell_key_problems(question)
    if question.rounding != "random":
        return
    if question.protect != "round":
        yield Problem("{rounding} at random needs {protect} to be 'round'. Leave it out.")
    if len(rows) + len(cols) > 2:
        yield Problem(
            "{rounding} at random must be of one or two variables. Got {0} instead: round to the "
            "nearest, or make tables of fewer variables.",
            len(rows) + len(cols),
        )
    if question.seed is None:
        yield Problem("{rounding} at random needs {seed}. Give one, and keep it secret.")


def _unused_problems(question: Question) -> Iterator[Problem]:
    """Say which options have no effect beside others."""
    adds_up, unused = question.magnitude is not None, dict[str, str]()
    for how, names in OF_METHOD.items():
        if question.protect != how:
            unused |= dict.fromkeys(names, f"needs {{protect}} to be {how!r}. Leave it out.")
    if not adds_up and question.weight is None:
        unused["range_percent"] = "needs {magnitude} or {weight}. Leave it out."
    if adds_up:
        alone = dict.fromkeys(OF_COUNTS, "is for counts, and {magnitude} for sums. Leave one out.")
    else:
        alone = dict.fromkeys(OF_AMOUNTS, "needs {magnitude}, not counts. Leave it out.")
    given = question.given()
    for name, text in (*unused.items(), *alone.items()):
        if name in given:
            yield Problem(f"{{{name}}} {text}")


def _cell_key_problems(question: Question) -> Iterator[Problem]:
    if question.seed is None:
        yield Problem(
            "{protect} 'cell-key' needs {seed}, which makes the record keys. Give one, keep it "
            "secret, and use the same for all tables of a file."
        )
    largest, variance = question.noise or NOISE[0], question.noise_variance or NOISE[1]
    if variance > largest**2:
        yield Problem(
            "{noise_variance} must be at most the square of {noise}, {0}. Got {1:g} instead.",
            largest**2, variance,
        )  # fmt: skip
    if question.smallest_published > largest:
        yield Problem(
            "{noise} must be at least {smallest_published}, {0}, to hide single people. Got {1} "
            "instead.",
            question.smallest_published, largest,
        )  # fmt: skip
    tabulated = {*(question.rows or ()), *(question.cols or ()), question.magnitude}
    if question.record_id is not None and question.record_id in tabulated:
        yield Problem("{record_id} must not be tabulated. Got {0!r} instead.", question.record_id)


def table_data_problems(
    data: Microdata, question: Question, listed: Mapping[str, Mapping[str, str]] | None = None
) -> list[str]:
    """Return what is wrong with the values of the columns of tables, or with their code lists."""
    tables = [(question.rows or (), question.cols or ()), *question.tables]
    names = dict.fromkeys(name for table in tables for side in table for name in side)
    problems: list[str] = []
    for name, parents in (listed or {}).items():
        problems += code_list_problems(data, name, parents)
    # The labels of a table must not name people.
    for name in names if data.records >= FEWEST else ():
        if data.variable(name).role in ("identifier", "household"):
            problems.append(f"variable {name!r} names people, by its role. Tabulate another.")
        elif data.codes(name).size > MOST_DISTINCT * data.records:
            problems.append(
                f"variable {name!r} has a value of its own for nearly every record, which the "
                f"table would print. Tabulate another, or group its values first."
            )
    if question.record_id is not None:
        ids = data.column(question.record_id)
        if ids.null_count() or ids.n_unique() < data.records:
            problems.append(
                f"record id {question.record_id!r} must have a value of its own for each record. "
                f"Got missing or repeated ones instead: name another column, or none."
            )
    if question.weight is not None:
        problems += raised(lambda: data.weights(question.weight))
    if question.magnitude is not None:
        problems += _amount_problems(data, question.magnitude)
    for outer, inner in pairwise(question.nested or ()):
        if is_within(data, (inner,), outer):
            problems.append(
                f"nested must name the coarser variable first: each {outer!r} lies within one "
                f"{inner!r}. Got {outer},{inner} instead: write {inner},{outer}."
            )
    if problems:
        return problems
    most = LARGEST[question.protect]
    for table in tables:
        sizes = [_nodes(data, chain) for side in table
                 for chain in find_chains(data, side, question.nested or ())]  # fmt: skip
        cells = prod(sizes)
        if table[0] and cells > most:
            problems.append(
                f"a table with protect {question.protect} must have at most {most:,} cells, totals "
                f"included. Got {cells:,} instead: {_smaller(data, table, cells, most)}."
            )
    return problems


def _nodes(data: Microdata, chain: tuple[str, ...]) -> int:
    """Return the categories of nested variables at every level, with the total."""
    codes = [data.codes(name).values.astype(np.int64) for name in chain]
    levels = (np.stack(codes[:depth], axis=1) for depth in range(1, len(chain) + 1))
    return 1 + sum(len(np.unique(level, axis=0)) for level in levels)


def _smaller(data: Microdata, table: Any, cells: int, most: int) -> str:
    """Return what makes a table small enough, tried first."""
    for side in table:
        for outer, inner in permutations(side, 2):
            flat = (data.codes(outer).size + 1) * (data.codes(inner).size + 1)
            left = cells // flat * _nodes(data, (outer, inner))
            if left <= most:
                return (
                    f"if each {inner!r} lies within one {outer!r}, say so (--nested "
                    f"{outer},{inner}), which leaves {left:,}"
                )
    return "group categories, or make several tables of one file together (--table)"


def _amount_problems(data: Microdata, magnitude: str) -> list[str]:
    try:
        amounts = numbers(data, magnitude)
    except InputError as error:
        return list(error.problems)
    unfit = (
        ("negative", amounts < 0, "tabulate its positive part, or another variable"),
        ("infinite", np.isinf(amounts), "declare them as missing codes"),
    )
    problems = [
        f"magnitude {magnitude!r} must have no {what} values. Got {found.sum():,} of "
        f"{len(amounts):,} instead: {remedy}."
        for what, found, remedy in unfit
        if found.any()
    ]
    if not problems and np.isnan(amounts).all():
        problems.append(f"magnitude {magnitude!r} must have values. Got missing for all instead.")
    return problems
