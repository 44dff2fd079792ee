"""Derived columns: bands, parts of dates, prefixes, codings and combinations of columns.

An expression (`keyhole.core.expressions`) is evaluated on the distinct values of its columns, not
on the records: a derived column is a table from codes to codes. So the same lines work on files in
memory and on disk, at the cost of one look-up a record. Missing stays missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.expressions import (
    CENSUS,
    MOST_CHARACTERS,
    Call,
    ColumnName,
    Derivations,
    Expression,
    coding_files,
    definition_problems,
    parse_expression,
    source_columns,
    write_definition,
)
from keyhole.core.names import quoted, shown
from keyhole.data.columns import Codes, Variable, encode
from keyhole.data.derived_values import (
    EVALUATORS,
    HIPAA_PEOPLE,
    OTHER,
    SMALL_AREA,
    Derived,
    read_coding,
    read_populations,
)
from keyhole.data.describing import Request, name_problems
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, OptionError
from keyhole.kernels.arrays import Array, Ints

ROWS_AT_ONCE = 1 << 20
MOST_PAIRS = 1 << 22
"""So many combinations of values are counted in a table; more only where all is in memory."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """One derived column: its name and its expression."""

    name: str
    tree: Expression

    @classmethod
    def of(cls, name: str, expression: str) -> Derivation:
        """Read an expression."""
        return cls(name, parse_expression(expression))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made from."""
        return source_columns(self.tree)

    @property
    def line(self) -> str:
        """The line that defines it."""
        return write_definition(self.name, str(self.tree))


def derivations_of(lines: Any) -> tuple[Derivation, ...]:
    """Read derived columns from a table or from lines, or raise everything that is wrong."""
    if lines is None:
        return ()
    kind = Derivations()
    if kind.is_shaped(lines):
        problems = definition_problems(lines)
    else:
        problems = [f"derive must be {kind.fault(None)}. Got {type(lines).__name__} instead."]
    made = {} if problems else kind.settle(lines)
    problems += name_problems(enumerate(made, 1), "derive")
    if problems:
        raise OptionError(problems)
    return tuple(Derivation.of(name, text) for name, text in made.items())


def evaluate_expression(tree: Expression, columns: Mapping[str, Derived]) -> Derived:
    """Evaluate an expression, given the values of its columns in rows of equal length."""
    if isinstance(tree, ColumnName):
        return columns[tree.name]
    parts = [evaluate_expression(part, columns) for part in tree.columns]
    found = EVALUATORS[tree.function](*parts, *tree.values, **tree.options)
    return dataclasses.replace(found, written=str(tree))


def derive_codes(
    data: Any, derivation: Derivation, empty: Callable[[int, Any], Array] = np.empty
) -> tuple[Variable, Codes]:
    """Return a derived column as codes, and what is known of it.

    `data` has by column its `variable` and `codes`; `empty` makes the array, on disk a mapped file.
    """
    held = [data.codes(name) for name in derivation.columns]
    rows = _Rows.of(held, derivation)
    columns = {}
    for place, (name, codes) in enumerate(zip(derivation.columns, held, strict=True)):
        values, written = codes.decoded(rows.codes_of(place)), str(ColumnName(name))
        columns[name] = Derived(values, data.variable(name), rows.counts, written)
    try:
        found = evaluate_expression(derivation.tree, columns)
    except ColumnError as error:
        made = f"derived column {shown(derivation.name)}"
        raise ColumnError(f"{made}: {text}" for text in error.problems) from None
    coded = encode(found.values.rename(derivation.name))
    out = empty(len(held[0].values), coded.values.dtype)
    rows.spread(coded.values, out)
    out.setflags(write=False)
    variable = dataclasses.replace(
        found.variable, name=derivation.name, role=None, derived=str(derivation.tree)
    )
    return variable, Codes(out, coded.levels, coded.has_missing)


def with_derived(data: Microdata, request: Request) -> Microdata:
    """Return data with the derived columns of a request, or raise all that is wrong."""
    problems: list[str] = []
    unmade: set[str] = set()
    for name in request.making(data.names):
        derivation = Derivation.of(name, request.derived[name])
        if unmade.intersection(derivation.columns):
            unmade.add(name)
            continue
        try:
            variable, codes = derive_codes(data, derivation)
        except ColumnError as error:
            unmade.add(name)
            problems += error.problems
            continue
        frame = data.frame.with_columns(codes.decoded().alias(name))
        variables, known = (*data.variables, request.declared(variable)), data._codes
        data = dataclasses.replace(data, frame=frame, variables=variables)
        data._codes.update({**known, name: codes})
    if problems:
        raise ColumnError(dict.fromkeys(problems))
    if request.columns is None:
        return data
    return data.select([name for name in data.names if name in request.columns])


def inline_codings(expression: str, locate: Callable[[str], Any] = str) -> str:
    """Return an expression with the codings written into it that it names as files."""
    tree = parse_expression(expression)
    files = coding_files(tree)
    if not files:
        return str(tree)
    text = str(_inlined(tree, lambda file: str(locate(file))))
    if len(text) > MOST_CHARACTERS:
        raise ColumnError(
            f"{quoted(files)} is too long for an expression that is kept in a plan "
            f"({len(text):,} characters, at most {MOST_CHARACTERS:,}). Derive the column when the "
            f"file is read, by [derive] of a review or --derive, and name that column here."
        )
    return text


def _inlined(tree: Expression, locate: Callable[[str], str]) -> Expression:
    if isinstance(tree, ColumnName):
        return tree
    columns = tuple(_inlined(part, locate) for part in tree.columns)
    options = dict(tree.options)
    populations = options.pop("populations", CENSUS)
    if tree.function == "map" and isinstance(tree.values[0], str):
        coding = read_coding(locate(tree.values[0]), options.pop("to", None))
        return Call("map", columns, (coding,), options)
    if tree.function == "prefix" and populations != CENSUS:
        above, (length,) = options.pop("above", HIPAA_PEOPLE), tree.values
        people = read_populations(locate(populations), length)
        areas = {area: area if many > above else SMALL_AREA for area, many in people.items()}
        return Call("map", (Call("prefix", columns, tree.values),), (areas,), options)
    return dataclasses.replace(tree, columns=columns)


def fit_derivations(data: Microdata) -> dict[str, str]:
    """Return the derived columns by name, so that another file gets the same categories.

    What was counted in the data stands as a coding: ``pool(job, 100)`` becomes a ``map`` of the
    categories that were common enough.
    """
    known = set(data.names)
    made = {one.name: one.derived for one in data.variables if one.derived}
    trees = {name: parse_expression(text) for name, text in made.items()}
    return {
        name: str(_fit(tree, data)) if known.issuperset(source_columns(tree)) else str(tree)
        for name, tree in trees.items()
    }


def _fit(tree: Expression, data: Microdata) -> Expression:
    if isinstance(tree, ColumnName):
        return tree
    if tree.function == "pool":
        other = tree.options.get("other", OTHER)
        levels = derive_codes(data, Derivation("", tree))[1].levels.cast(pl.String).to_list()
        pairs = {level: level for level in levels if level != other} or {other: other}
        return Call("map", (_fit(tree.columns[0], data),), (pairs,), {"other": other})
    return dataclasses.replace(tree, columns=tuple(_fit(part, data) for part in tree.columns))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The combinations of codes that any record has, and how many records have each."""

    held: Sequence[Codes]
    sizes: tuple[int, ...]
    places: Array
    counts: Ints
    ids: Array

    @classmethod
    def of(cls, held: Sequence[Codes], derivation: Derivation) -> _Rows:
        sizes, none = tuple(max(codes.size, 1) for codes in held), np.zeros(0, np.int64)
        rows = cls(held, sizes, none, none, none)
        span, records = rows.span, len(held[0].values)
        if span <= max(MOST_PAIRS, *sizes):
            counts = np.zeros(span, dtype=np.int64)
            for some in _slices(records, span):
                counts += np.bincount(rows.of_records(some), minlength=span)
            places = np.flatnonzero(counts)
            return dataclasses.replace(rows, places=places, counts=counts[places])
        if span >= 1 << 63 or any(isinstance(codes.values, np.memmap) for codes in held):
            raise ColumnError(
                f"derived column {shown(derivation.name)}: {quoted(derivation.columns)} have too "
                f"many combinations of values. Make them coarser first, as in "
                f"join(band(age, 10), prefix(zip, 3))."
            )
        pairs = rows.of_records(slice(0, records))
        places, ids, found = np.unique(pairs, return_inverse=True, return_counts=True)
        return dataclasses.replace(rows, places=places, counts=found.astype(np.int64), ids=ids)

    @property
    def span(self) -> int:
        return math.prod(self.sizes)

    def spread(self, codes: Array, out: Array) -> None:
        """Give each record the code of its combination."""
        table = np.zeros(0 if len(self.ids) else self.span, dtype=codes.dtype)
        if len(table):
            table[self.places] = codes
        for some in _slices(len(out)):
            out[some] = table[self.of_records(some)] if len(table) else codes[self.ids[some]]

    def of_records(self, some: slice) -> Ints:
        """Return the combination of each of some records, as one number."""
        found = self.held[0].values[some].astype(np.int64)
        for codes, size in zip(self.held[1:], self.sizes[1:], strict=True):
            found = found * size + codes.values[some]
        return found

    def codes_of(self, place: int) -> Array:
        """Return the code of one column in each combination."""
        after = math.prod(self.sizes[place + 1 :])
        return (self.places // after % self.sizes[place]).astype(np.uint32)


def _slices(records: int, least: int = 0) -> Iterable[slice]:
    step = max(ROWS_AT_ONCE, least)
    return (slice(at, at + step) for at in range(0, records, step))
