"""Expressions of derived columns: the grammar, the tree that one is read into, and its parser.

A derived column is ``NAME = EXPRESSION``; several are separated by ``;`` or stand in lines of their
own. An expression is one of the functions below on a column, or on another expression::

    band(age, 10)   band(age, 10, 5)   cut(age, 18, 25, 65)   top(age, 85)   bottom(income, 0)
    year(born)   quarter(born)   month(born)
    prefix(zip, 3)   prefix(zip, 3, populations="zip3.csv")   text(zip, 5)
    map(job, "jobs.csv")   map(job, "jobs.csv", to="group")   map(sex, {"f": "w", "m": "m"})
    labels(sex)   pool(job, 100)   join(sex, band(age, 10))

A column whose name is not one word stands in double quotes or backquotes, as in
``band("birth year", 10)``. Expressions are read by this module alone; nothing is ever run as
Python.
"""
# ruff: noqa: D102 (what the methods of a kind are for is said once, in `Kind`)

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any, ClassVar

from keyhole.core.kinds import File, Kind, Number, Place, Text, Whole
from keyhole.core.names import nearest, quoted, repeated, shown
from keyhole.core.options import shown_value
from keyhole.core.tokens import SyntaxProblem, TokenReader

MOST_CHARACTERS = 100_000
CENSUS = "Census 2000"
"""As `populations`: not a file, but the list of `LOW_POPULATION`."""
# Three-digit ZIP codes with 20,000 people or fewer, as the guidance of the Department of Health
# and Human Services lists them.
LOW_POPULATION = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878",
    "879", "884", "890", "893",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _NumberOrDate(Number):
    """A number, or a day."""

    def fault(self, value: Any) -> str | None:
        fits = isinstance(value, date) or Number.fault(self, value) is None
        return None if fits else "a number or a date"


class _Coding(Kind):
    """A file with a coding, or the coding itself."""

    what = 'a file in quotes, or a coding such as {"a": "x"}'

    def fits(self, value: Any) -> bool:
        return isinstance(value, str | dict) and bool(value)


_ANY = Number(high=float("inf"))
_PEOPLE = Whole(low=0, high=10**12)
_SIZE = Whole(low=1, high=10**12)


@dataclass(frozen=True, slots=True)
class Function:
    """What a function takes: columns first, then values, then options by name.

    `several` columns or values may be given; the last `optional` values may be left out.
    """

    does: str
    example: str
    values: tuple[tuple[str, Kind], ...] = ()
    options: Mapping[str, Kind] = field(default_factory=dict)
    columns: int = 1
    several: str = ""
    optional: int = 0


FUNCTIONS: Mapping[str, Function] = {
    "band": Function(
        "Bands of equal width, each from its first number up to but not including the next.",
        "band(age, 10)",
        (("width", Number(above=0, high=float("inf"))), ("start", _ANY)),
        optional=1,
    ),
    "cut": Function(
        "Classes between cut points, each from its cut point up to but not including the next.",
        "cut(age, 18, 25, 65)",
        (("cut point", _NumberOrDate(high=float("inf"))),),
        several="values",
    ),
    "top": Function(
        "Numbers above the limit become the limit.", "top(age, 85)", (("limit", _ANY),)
    ),
    "bottom": Function(
        "Numbers below the limit become the limit.", "bottom(age, 18)", (("limit", _ANY),)
    ),
    "year": Function("The year of a date.", "year(born)"),
    "quarter": Function("The quarter of a date, with its year.", "quarter(born)"),
    "month": Function("The month of a date, with its year.", "month(born)"),
    "prefix": Function(
        "The first characters of a text. With the populations of the areas, those with no more "
        "people than `above` become 000, as HIPAA's Safe Harbor requires.",
        "prefix(zip, 3)",
        (("length", Whole(low=1, high=1000)),),
        {"populations": File(), "above": _PEOPLE, "other": Text()},
    ),
    "text": Function(
        "Whole numbers as text of at least this many digits.",
        "text(zip, 5)",
        (("number of digits", Whole(low=1, high=100)),),
    ),
    "map": Function(
        "The category that a coding assigns to each value: a file whose first column has the "
        "values, or pairs.",
        'map(job, "jobs.csv")',
        (("coding", _Coding()),),
        {"to": Text(), "other": Text()},
    ),
    "labels": Function(
        "The values replaced by their labels, if the file has labels.", "labels(sex)"
    ),
    "pool": Function(
        "Categories with fewer records than this are merged into one.",
        "pool(job, 100)",
        (("number of records", _SIZE),),
        {"other": Text()},
    ),
    "join": Function(
        "Several columns as one category.", "join(sex, race)", columns=2, several="columns"
    ),
}


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column."""

    name: str

    def __str__(self) -> str:
        plain = re.fullmatch(r"[^\W\d][\w.]*", self.name)
        return self.name if plain else _quoted(self.name)


@dataclass(frozen=True, slots=True)
class Call:
    """A function with what it is applied to, its values and its options."""

    function: str
    columns: tuple[Expression, ...]
    values: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        words = [*map(str, self.columns), *map(_written, self.values)]
        words += [f"{name}={_written(value)}" for name, value in self.options.items()]
        return f"{self.function}({', '.join(words)})"


Expression = ColumnName | Call


def parse_expression(text: str) -> Call:
    """Read an expression into a tree, or raise a `SyntaxProblem`."""
    parser = _Parser(text)
    tree = parser.call()
    if parser.token.kind != "end":
        problem = f"the expression should end here, not go on with {parser.token.shown}."
        raise SyntaxProblem(parser.token.at, problem)
    return tree


def read_definitions(text: str) -> list[tuple[str, str]]:
    """Read ``NAME = EXPRESSION``, once or several times, as names and expressions."""
    parser = _Parser(text)
    found = []
    while parser.token.kind != "end":
        name = parser.name()
        parser.expect("=")
        found.append((name, str(parser.call())))
        while parser.take(";"):
            pass
    return found


def write_definition(name: str, expression: str) -> str:
    """Write a derived column as `read_definitions` reads it."""
    return f"{ColumnName(name)} = {expression}"


def derive_line(column: str, suffix: str, expression: str) -> str:
    """Write the line of ``--derive`` or ``[derive]`` that makes a coarser column, ``{}``."""
    made = expression.replace("{}", str(ColumnName(column)), 1)
    return write_definition(f"{column}_{suffix}", made)


def drop_line(column: str) -> str:
    """Write the line of a plan that leaves a column out of the release."""
    return f'step = [{{ method = "drop", columns = [{json.dumps(column, ensure_ascii=False)}] }}]'


def without_tables(expression: str) -> str:
    """Write an expression for reading: a coding that stands in it is left out."""
    return re.sub(r'\{(?:"(?:[^"]|"")*"|[^"{}])*\}', "{…}", expression)


def source_columns(tree: Expression) -> tuple[str, ...]:
    """Return the columns that an expression reads, each once."""
    if isinstance(tree, ColumnName):
        return (tree.name,)
    return tuple(dict.fromkeys(name for part in tree.columns for name in source_columns(part)))


def coding_files(tree: Expression) -> tuple[str, ...]:
    """Return the files that an expression reads, each once."""
    found: list[str] = []
    map_files(tree, lambda file: found.append(file) or file)  # type: ignore[func-returns-value]
    return tuple(dict.fromkeys(found))


def map_files(tree: Expression, change: Callable[[str], str]) -> Expression:
    """Return an expression with other names for the files that it reads."""
    if isinstance(tree, ColumnName):
        return tree
    is_map = tree.function == "map"
    values = [change(one) if is_map and isinstance(one, str) else one for one in tree.values]
    options = {
        name: change(value) if name == "populations" and value != CENSUS else value
        for name, value in tree.options.items()
    }
    columns = tuple(map_files(part, change) for part in tree.columns)
    return Call(tree.function, columns, tuple(values), options)


class _Parser(TokenReader):
    """Recursive descent: a call, what it is applied to, values, options."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            got = f"Got {len(text):,} instead: put a long coding into a file."
            problem = f"an expression must be at most {MOST_CHARACTERS:,} characters. {got}"
            raise SyntaxProblem(MOST_CHARACTERS + 1, problem)
        super().__init__(text, r"[-=+(),{}:;]", "expression")

    def name(self) -> str:
        token = self.token
        if token.kind not in ("word", "text", "name") or not token.plain:
            raise SyntaxProblem(token.at, f"the name of a column is expected, not {token.shown}.")
        self.place += 1
        return token.plain

    def call(self) -> Call:
        token = self.token
        known = FUNCTIONS.get(token.word) if token.kind == "word" else None
        if known is None:
            near = nearest(token.text, list(FUNCTIONS), most=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(FUNCTIONS)}."
            raise SyntaxProblem(token.at, f"{token.shown} is not a function. {remedy}")
        self.place += 1
        self.deeper()
        self.expect("(")
        columns, values = self.arguments(known)
        options = self.options(token.word, known)
        self.expect(")")
        self.depth -= 1
        problems = [*_value_faults(known, values), *_option_faults(known, options)]
        if len(columns) < known.columns:
            problems.insert(0, f"needs {known.columns} columns or more, as {known.example}")
        if problems:
            raise SyntaxProblem(
                token.at, "; ".join(f"{token.word} {one}" for one in problems) + "."
            )
        return Call(token.word, tuple(columns), tuple(values), options)

    def arguments(self, known: Function) -> tuple[list[Expression], list[Any]]:
        columns, values = [self.column()], list[Any]()
        while self.token.word == "," and not self.at_option(1):
            self.place += 1
            if known.several == "columns":
                columns.append(self.column())
            else:
                values.append(self.value())
        return columns, values

    def at_option(self, ahead: int) -> bool:
        pair = self.tokens[self.place + ahead : self.place + ahead + 2]
        return len(pair) == 2 and pair[0].kind == "word" and pair[1].text == "="

    def options(self, function: str, known: Function) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.token.word == "," and self.at_option(1):
            self.place += 1
            token = self.token
            self.place += 2
            if token.word not in known.options or token.word in found:
                names = " or ".join(f"{name}=" for name in known.options if name not in found)
                twice = token.word in found
                what = "is given twice" if twice else f"is not an option of {function}"
                remedy = f"It takes {names}." if names else "It takes no further ones."
                raise SyntaxProblem(token.at, f"{token.text}= {what}. {remedy}")
            found[token.word] = self.value()
        return found

    def column(self) -> Expression:
        """Read a column, or an expression that gives one."""
        if self.token.kind == "word" and self.tokens[self.place + 1].text == "(":
            return self.call()
        return ColumnName(self.name())

    def value(self) -> Any:
        """Read a number, a text, a date or a table of texts."""
        sign = self.take("-", "+")
        token = self.token
        self.place += 1
        if token.kind == "number":
            return -token.number if sign and sign.text == "-" else token.number
        if sign is None and token.kind == "date":
            return token.date
        if sign is None and token.kind == "text":
            return token.plain
        if sign is None and token.text == "{":
            return self.table()
        self.place -= 1
        problem = f"a number, a date or a text in quotes is expected, not {token.shown}."
        raise SyntaxProblem(token.at, problem)

    def table(self) -> dict[str, str]:
        """Read pairs, up to the closing brace."""
        found: dict[str, str] = {}
        while self.token.word != "}":
            at, old = self.token.at, self.value()
            self.expect(":")
            new = self.value()
            if isinstance(old, dict) or not isinstance(new, str | int) or str(new).strip() == "":
                raise SyntaxProblem(at, 'a coding has pairs such as "a": "x".')
            if str(old) in found:
                raise SyntaxProblem(at, "this value is in the coding twice.")
            found[str(old)] = str(new)
            if not self.take(","):
                break
        self.expect("}")
        return found


def _value_faults(known: Function, values: list[Any]) -> Iterator[str]:
    names = known.values
    if known.several == "values":
        (what,) = names
        if not values:
            yield f"needs at least one {what[0]}, as {known.example}"
        names = (what,) * len(values)
    elif not len(names) - known.optional <= len(values) <= len(names):
        needed = names[: len(names) - known.optional]
        listed = " and ".join(f"a {name}" for name, _ in needed) or "no values"
        yield f"takes a column and {listed}, as {known.example}"
        return
    for value, (name, kind) in zip(values, names, strict=False):
        if fault := kind.fault(value):
            yield f"must have as its {name} {fault}. Got {shown_value(value)} instead"
    if known.several == "values" and len({isinstance(one, date) for one in values}) > 1:
        yield "must have numbers or dates as its cut points, not both"
    elif known.several == "values" and not all(one < other for one, other in pairwise(values)):
        yield "must have its cut points in rising order, each once"


def _option_faults(known: Function, options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if fault := known.options[name].fault(value):
            yield f"must have as {name}= {fault}. Got {shown_value(value)} instead"
    if "populations" in known.options and "populations" not in options:
        yield from (f"takes {name}= only with populations=" for name in options)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _written(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}: {_quoted(v)}" for k, v in value.items()) + "}"
    return value.isoformat() if isinstance(value, date) else repr(value)


def _definitions(value: Any) -> Iterator[tuple[str, str]]:
    """Yield names and expressions of a table, a text or lines; raise a `SyntaxProblem`."""
    if isinstance(value, Mapping):
        yield from ((name, str(parse_expression(text))) for name, text in value.items())
    else:
        for line in [value] if isinstance(value, str) else value:
            yield from read_definitions(line)


def definition_problems(value: Any) -> list[str]:
    """Return everything that is wrong with derived columns, whatever their file holds."""
    if isinstance(value, Mapping):
        parts: list[Any] = [{name: text} for name, text in value.items()]
    else:
        parts = [value] if isinstance(value, str) else list(value)
    problems, found = [], list[tuple[str, str]]()
    for part in parts:
        try:
            found += _definitions(part)
        except SyntaxProblem as problem:
            (called,) = part if isinstance(part, Mapping) else [part]
            problems.append(f"derived column {shown(called)}, {problem}")
    names = [name for name, _ in found]
    problems += [f"derived column {shown(name)} is defined twice." for name in repeated(names)]
    for place, (name, text) in enumerate(found):
        columns = source_columns(parse_expression(text))
        if name in columns:
            problems.append(
                f"derived column {shown(name)} must not be made from itself. Give it another "
                f"name, such as {shown(name + '_2')}."
            )
        below = [one for one in columns if one in names[place + 1 :] and one != name]
        if below:
            problems.append(
                f"derived column {shown(name)} is made from {quoted(below)}, which is defined "
                f"below it. Put {shown(name)} after it."
            )
    return problems


@dataclass(frozen=True, slots=True)
class Derivations(Kind):
    """Derived columns: a table of expressions by name, or lines ``NAME = EXPRESSION``."""

    purpose: str = "column"

    metavar = "'NAME = EXPRESSION'"
    widget = "lines"
    repeatable = True
    what = "lines such as 'age10 = band(age, 10)', or a table of expressions by name"
    described: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}},
            {"type": "string"},
        ]
    }

    def fault(self, value: Any) -> str | None:
        if not self.is_shaped(value):
            return self.what
        problems = definition_problems(value)
        return f"{self.what} ({' '.join(problems)})" if problems else None

    def settle(self, value: Any) -> dict[str, str]:
        return dict(_definitions(value))

    def read(self, text: str) -> list[str]:
        return [text] if text.strip() else []

    def write(self, value: Any) -> str:
        return "; ".join(write_definition(*one) for one in self.settle(value).items())

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that expressions read and that are not derived themselves."""
        made = self.settle(value)
        for name, text in made.items():
            columns = source_columns(parse_expression(text))
            yield from (((name,), column) for column in columns if column not in made)

    @staticmethod
    def is_shaped(value: Any) -> bool:
        """Tell a table of texts or lines from anything else."""
        if isinstance(value, str):
            return bool(value.strip())
        if isinstance(value, Mapping):
            return all(isinstance(one, str) and one for pair in value.items() for one in pair)
        listed = isinstance(value, list | tuple)
        return listed and all(isinstance(one, str) and one.strip() for one in value)
