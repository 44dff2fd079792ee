"""Protection methods: a function, and every fact that plans, reviews and pages need of it.

A method is declared in one module of `keyhole.protection.methods`, by `@method` above the function
that carries it out. Its options are the function's parameters, declared as those of verbs are
(`keyhole.core.options`). What a method that draws at random does not declare public is secret.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import WRAPPER_ASSIGNMENTS, partial
from string import Formatter
from typing import Annotated, Any, Generic, Literal, ParamSpec

import polars as pl

from keyhole.core.kinds import Column, Columns
from keyhole.core.marks import COUNT, HIDDEN, figure
from keyhole.core.names import nearest, plural, quoted, shown
from keyhole.core.options import Parameter, documented, parameters_of, value_problems
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.engines.opening import column_problems
from keyhole.errors import OptionError
from keyhole.exposure.fix import Fix
from keyhole.kernels.arrays import Ints
from keyhole.protection.options import (
    Options,
    exactly_one,
    numeric_problems,
    raised,
    value_text,
)
from keyhole.results import Result

P = ParamSpec("P")

Effect = Literal["drops", "derives", "codes", "perturbs", "exchanges", "suppresses", "samples"]
"""What a method does to values: leaves columns out; adds columns made of others; maps each value by
itself, so that an intruder who sees the release can code another file alike; changes numbers; shows
another record's value or another category; sets values to missing; leaves records out."""

# What follows from a method for an analysis, in the public note.
AS_CODED = "Use categories and ranges as they stand; they cannot be made finer."
WEAKER = (
    "Figures of one variable are nearly as collected. Relations between variables may be weaker, "
    "and the values of a single record need not be its own."
)


@dataclass(frozen=True, slots=True)
class PublicNote:
    """What the public note says of a method: what was done, and what follows for an analysis.

    `done` may have places in braces: ``{columns}`` for the columns changed, where they can be seen
    in the file, and public options by their names.
    """

    done: str
    follows: str = ""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protected(Result):
    """A file after one protection, with what was done to it.

    `changed` counts the values that are no longer what they were, `by_column` by column: those
    taken away too (dropped, suppressed). `left_out` counts records that are gone, and `kept` says
    which are not; None where all are there. `fitted` are options found in the data that repeat the
    same protection on other data; `internal` is what must not leave the office, and is in no table
    and no dictionary.
    """

    data: Annotated[Microdata, HIDDEN]
    method: str
    by_column: Annotated[Mapping[str, int], COUNT]
    notes: tuple[str, ...] = ()
    left_out: Annotated[int, HIDDEN] = 0
    fitted: Annotated[Mapping[str, Any], HIDDEN] = field(default_factory=dict)
    internal: Annotated[Mapping[str, Any], HIDDEN] = field(default_factory=dict)
    kept: Annotated[Ints | None, HIDDEN] = None
    changed: Annotated[
        int, COUNT, "Values that are no longer what they were; of a sample, records left out."
    ] = -1

    def __post_init__(self) -> None:
        """Count the values changed; of a sample, the records left out."""
        if self.changed < 0:
            object.__setattr__(self, "changed", sum(self.by_column.values()) + self.left_out)

    @property
    @figure()
    def columns(self) -> tuple[str, ...]:
        """The columns that the method was to change."""
        return tuple(self.by_column)

    @property
    @figure("Several with commas between, as on the command line; null if records are left out.")
    def column(self) -> str | None:
        """The columns as the command line takes them."""
        return column_list(self.columns)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column with the number of its values that were changed."""
        rows = {"column": list(self.by_column), "changed": list(self.by_column.values())}
        return pl.DataFrame(rows, schema={"column": pl.String, "changed": pl.Int64})

    def tables(self) -> list[Table]:
        """Return the line as a table."""
        row = [self.method, self.column or "", f"{self.changed:,}"]
        return [Table("Protected", ["method", "column", "changed"], [row], self.notes)]


def column_list(columns: tuple[str, ...]) -> str | None:
    """Write columns as the command line takes them: with commas, odd names in quotes."""
    odd = {name: '"' + name.replace('"', '""') + '"' for name in columns if set(name) & set(',"')}
    return ",".join(odd.get(name, name) for name in columns) or None


def warnings_table(warnings: Sequence[str], title: str = "Warnings") -> list[Table]:
    """Return warnings as a table of sentences; none if there are none."""
    lines = [f"{text[:1].upper()}{text[1:]}." for text in warnings]
    return [Table(title, [], [], lines)] if lines else []


def hint(name: str, known: Iterable[str]) -> str:
    """Say which name was meant, or which there are."""
    names = list(known)
    near = nearest(name, names)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"There are {quoted(names, most=len(METHODS))}."


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A step beside the file that is released after all steps, to hold its goal against.

    `columns` is what the step was to change, `rows` which records of `before`, the file before the
    step, are released, and `later` the steps after this one.
    """

    columns: Sequence[str]
    options: Options
    step: Protected
    before: Microdata
    rows: Ints
    released: Microdata
    later: Sequence[Protected]


GoalCheck = tuple[list[str], list[str]]
"""Notes on how far a goal still holds, and warnings where it does not."""


@dataclass(frozen=True, eq=False, repr=False)
class Method(Generic[P]):
    """A protection: the function that carries it out, checked before it runs, and its facts.

    - `function`: carries it out. Its keyword parameters are the options; one called ``seed`` says
      that it draws at random.
    - `name`, `effect`: its name in a plan, and what it does to values.
    - `public`: options that may be told to everybody. If left out, all of a method that takes no
      seed, and none of one that does.
    - `note`: its words in the public note.
    - `writes`: options that name the columns it changes; other columns are only looked at.
    - `one_of`: options of which exactly one must be given.
    - `goes_with`: by option, the one without which it means nothing.
    - `clashes`: what else is wrong with options that are each fit.
    - `holds`: what the columns it changes must hold: numbers, or values in an order (dates too).
    - `sizes`: given options that cannot be more than the records of the file.
    - `unfit`: what else in the data keeps fit options from being carried out.
    - `draws`: whether, with these options, it really draws.
    - `makes_labels`: whether, with these options, it leaves labels where numbers were.
    - `repeats`: whether the same column may be treated so more than once.
    - `supersedes`: by option that is found in the data, the options it stands for.
    - `also_found`: further options that are found in the data, and stand for none.
    - `not_typed`: options that no form asks for.
    - `suggested`: values with which a form begins.
    - `suggest`: its options for a change of one key that would lower the risk, or None.
    - `goal`: holds what a step promised against the released file.
    """

    function: Callable[P, Protected]
    name: str
    effect: Effect
    public: tuple[str, ...] | None = None
    note: PublicNote = PublicNote("Values were changed to protect people.", WEAKER)
    writes: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    goes_with: Mapping[str, str] = field(default_factory=dict)
    clashes: Callable[[Options], list[str]] = lambda _: []
    holds: Literal["anything", "numbers", "order"] = "anything"
    sizes: Callable[[Options], Options] = lambda _: {}
    unfit: Callable[[Microdata, Options], list[str]] = lambda _, __: []
    draws: Callable[[Options], bool] = lambda _: True
    makes_labels: Callable[[Options], bool] = lambda _: False
    repeats: bool = False
    supersedes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also_found: tuple[str, ...] = ()
    not_typed: tuple[str, ...] = ()
    suggested: Options = field(default_factory=dict)
    suggest: Callable[[Microdata, Fix], Options | None] = lambda _, __: None
    goal: Callable[[Outcome], GoalCheck] | None = None
    parameters: Mapping[str, Parameter] = field(init=False)
    is_random: bool = field(init=False)

    def __post_init__(self) -> None:
        known = parameters_of(self.function)
        options = {name: one for name, one in known.items() if name != "seed"}
        facts: dict[str, Any] = {
            "parameters": options,
            "is_random": "seed" in known,
            "writes": self.writes or tuple(n for n in ("column", "columns") if n in options),
            # So that it is documented, and its examples are run, as the function is.
            "__wrapped__": self.function,
            **{name: getattr(self.function, name) for name in WRAPPER_ASSIGNMENTS},
            "__annotations__": typing.get_type_hints(self.function),
        }
        self.__dict__.update(facts)  # it is frozen
        # Words for everybody must not tell what is secret, or may not be given.
        asked = {name for _, name, _, _ in Formatter().parse(self.note.done) if name is not None}
        hidden = asked - {"columns"} - (set(self.required) - set(self.secret))
        if "columns" in asked:
            hidden |= set(self.writes) & set(self.secret)
        if hidden:
            named = quoted(sorted(hidden))
            raise ValueError(f"the public note of {self.name} tells {named}: declare it public")

    @property
    def required(self) -> tuple[str, ...]:
        """The options that must be given."""
        return tuple(name for name, one in self.parameters.items() if one.required)

    @property
    def secret(self) -> tuple[str, ...]:
        """The options with which what was drawn at random can be taken back to some extent."""
        all_public = self.public is None and not self.is_random
        public = self.parameters if all_public else self.public or ()
        return tuple(option for option in self.parameters if option not in public)

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Protected:
        """Check the options against each other and the data, then carry the method out."""
        data: Any = args[0]
        given = self._given(kwargs)
        problems = self.problems(given, data)
        if problems:
            raise OptionError(problems)
        data.require_records()
        return self.function(data, **given)

    def _given(self, options: Options) -> dict[str, Any]:
        """Return the options that are given, lists of columns as tuples."""
        given = {
            name: list(value) if isinstance(value, Iterator) else value
            for name, value in options.items()
            if value is not None
        }
        for name, one in self.parameters.items():
            if name in given and isinstance(one.kind, Columns) and not one.fault(given[name]):
                given[name] = one.settle(given[name])
        return given

    def done(self, options: Options) -> str:
        """Say in the public note what was done with these options, as far as they are public."""
        public = {name: one for name, one in options.items() if name not in self.secret}
        told = {n: one if isinstance(one, str) else value_text(one) for n, one in public.items()}
        columns = ", ".join(self.columns(options, reads=False))
        return self.note.done.format_map({**told, "columns": columns})

    def columns(self, options: Options, *, reads: bool = True) -> tuple[str, ...]:
        """Return the columns that the options name, each once; what is no name is left out."""
        looked_at = [name for name in self.parameters if reads and name not in self.writes]
        named: list[Any] = []
        for option in (*self.writes, *looked_at):
            one, value = self.parameters[option], options.get(option)
            if isinstance(one.kind, Column | Columns) or not one.fault(value):
                named += [name for _, name in one.columns(value)]
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))

    def problems(self, options: Options, data: Microdata | None = None) -> list[str]:
        """Return everything that is wrong with the options, and with the data for them."""
        given, known = self._given(options), dict(parameters_of(self.function))
        found = [
            f"{shown(name)} is not an option of {self.name}. {hint(name, self.parameters)}"
            for name in given
            if name not in known
        ]
        lacking = (name for name in self.required if name not in given)
        found += [f"{name} must be given for {self.name}." for name in lacking]
        for name in self.secret:  # a value of theirs is not shown
            known[name] = replace(known[name], option=replace(known[name].option, secret=True))
        found += value_problems(known, given)[1]
        if not found:
            found = exactly_one(given, *self.one_of) if self.one_of else []
            pairs = self.goes_with.items()
            alone = [(name, other) for name, other in pairs if name in given and other not in given]
            clashes = [] if found else self.clashes(given)
            found += [f"{name} can only be used with {other}." for name, other in alone] + clashes
        return found if data is None else [*found, *self.unfit_for(data, given)]

    def unfit_for(self, data: Microdata, options: Options) -> list[str]:
        """Return what in the data keeps the options from being carried out."""
        given = self._given(options)
        absent = column_problems(data, self.columns(given), "column")
        if absent or self.problems(given):
            return absent
        problems = self.size_problems(data, given)
        names = () if self.holds == "anything" else self.columns(given, reads=False)
        problems += numeric_problems(data, names, dates=self.holds == "order")
        for name, one in self.parameters.items():
            if name in given and one.kind == Column("weight"):
                problems += raised(partial(data.weights, given[name]))
        if problems:
            return problems
        return raised(lambda: problems.extend(self.unfit(data, given))) or problems

    def size_problems(self, data: Microdata, options: Options) -> list[str]:
        """Say which options are more than the records of the file."""
        return [
            f"{option} must be at most the {plural(data.records, 'record')} of the file. Got "
            f"{size:,} instead."
            for option, size in self.sizes(options).items()
            if isinstance(size, int | float) and size > data.records
        ]


METHODS: dict[str, Method[...]] = {}
"""The methods by name; `keyhole.protection.methods` fills it with its modules."""


def method(
    name: str, effect: Effect, **facts: Any
) -> Callable[[Callable[P, Protected]], Method[P]]:
    """Declare the function below to be a protection method; see `Method` for its facts."""

    def declare(function: Callable[P, Protected]) -> Method[P]:
        METHODS[name] = made = Method(documented(function), name, effect, **facts)
        return made

    return declare
