"""Options of verbs, read from their signatures.

An option is declared once, where it is used: as a parameter of the verb's function, annotated
with what it means and what it may be ::

    def risk(data, *, cutoff: Annotated[int, Option("Records in …", low=1)] = 3): ...

Everything else is derived: checks (`bind`), the command line, the settings of a review file, the
fields of a form, the equivalent command and Python line, JSON Schemas and tables of documentation.
What a signature cannot say, such as two options that exclude each other, is one plain function
beside the verb: ``risk_problems(question)`` beside ``risk``.
"""

from __future__ import annotations

import inspect
import re
import string
import sys
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from keyhole.core.kinds import Choice, Column, Flag, Kind, Number, Place, Several, Text, Whole
from keyhole.core.names import absent, nearest
from keyhole.errors import OptionError

REQUIRED = inspect.Parameter.empty
"""The default of an option that has none."""


@dataclass(frozen=True, slots=True)
class Option:
    """What an option means, and what it may be where its type does not say it."""

    help: str  # a sentence or two, in plain English
    low: float | None = None
    high: float | None = None
    above: float | None = None  # the bound itself is excluded
    below: float | None = None
    column: str = ""  # what a text names: the purpose of a column, like `weight`
    kind: Kind | None = None  # where the type does not tell it
    metavar: str = ""  # what stands for the value in help
    secret: bool = False  # the value is shown in no message, record or command
    argument: bool = False  # the command line takes it by its place, without a flag
    off: str = ""  # what turns a flag off on the command line, if not `--no-` before its name
    also: str = ""  # another name that the command line knows the option by
    surfaces: str = "cr"  # where it is offered: on the command line, in a review file
    needed: Callable[[Mapping[str, Any]], bool] | None = None  # for some values of the others only


@dataclass(frozen=True, slots=True)
class DataSource:
    """What a verb reads as its data, where that is not a file of records."""

    help: str
    metavar: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option of one verb."""

    name: str
    option: Option
    kind: Kind
    default: Any = REQUIRED
    optional: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def help(self) -> str:
        """What it means."""
        return self.option.help

    @property
    def metavar(self) -> str:
        """What stands for the value in help."""
        words = "|".join(self.kind.words) if isinstance(self.kind, Choice) else ""
        return self.option.metavar or words or self.kind.metavar

    def fault(self, value: Any) -> str | None:
        """Say what a value must be, where it is not."""
        fit = value is None and (self.optional or self.default == ())
        return None if fit else self.kind.fault(value)

    @property
    def settled_default(self) -> Any:
        """The default in the form in which it is kept; None without one."""
        return None if self.required else self.settle(self.default)

    def settle(self, value: Any) -> Any:
        """Return a fit value in the form in which it is kept; none of a list is an empty one."""
        if value is None:
            return () if self.default == () and not self.optional else None
        return self.kind.settle(value)

    def shown(self, value: Any) -> str:
        """Describe an unfit value in a few words, none of a secret's."""
        if self.option.secret:
            return "another value"
        return ", ".join(map(shown_value, self.kind.unfit(value)))

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns that a value names."""
        return iter(()) if value is None else self.kind.columns(value)

    def schema(self) -> dict[str, Any]:
        """Describe the option as JSON Schema, with its meaning and default."""
        found = {"description": self.help, **self.kind.schema()}
        if not self.required and self.default is not None and not self.option.secret:
            is_list = isinstance(self.default, tuple)
            found["default"] = list(self.default) if is_list else self.default
        return found


class Problem(str):
    """A sentence about options, which can name them as its reader does.

    Options stand in the template by name, in braces; what is shown of values is given apart.
    """

    __slots__ = ("options", "template", "values")
    template: str
    values: tuple[Any, ...]
    options: tuple[str, ...]

    def __new__(cls, template: str, *values: Any) -> Problem:
        """Word the problem with options under their own names."""
        fields = (name for _, name, _, _ in string.Formatter().parse(template) if name)
        options = tuple(dict.fromkeys(name for name in fields if not name.isdigit()))
        made = super().__new__(cls, template.format(*values, **{one: one for one in options}))
        made.template, made.values, made.options = template, values, options
        return made

    def named(self, name: Callable[[str], str]) -> str:
        """Word the problem with options named by a function."""
        return self.template.format(*self.values, **{one: name(one) for one in self.options})


def worded(problem: str, name: Callable[[str], str]) -> str:
    """Word a problem with options named by a function; a sentence about none stays as it is."""
    return problem.named(name) if isinstance(problem, Problem) else problem


def name_as_flag(name: str) -> str:
    """Name an option as the command line does; what is a word of Python ends in a bar there."""
    return "--" + name.rstrip("_").replace("_", "-")


@cache
def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    return get_type_hints(function, include_extras=True)


@cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the options of a verb by name: its parameters that have an `Option`, in order."""
    hints = _hints(function)
    found = {}
    for name, given in inspect.signature(function).parameters.items():
        hint, nullable = _without_none(hints.get(name))
        option = next((x for x in _extras(hints.get(name)) if isinstance(x, Option)), None)
        if option is not None:
            kind = option.kind or _kind(hint, option, name)
            if option.needed is not None:  # its default is for when it is not
                found[name] = Parameter(name, option, kind)
                continue
            optional = nullable or given.default is None
            found[name] = Parameter(name, option, kind, given.default, optional)
    return found


def source_of(function: Callable[..., Any]) -> DataSource | None:
    """Return what a verb declares of its data, if it declares anything."""
    hint = _hints(function).get("data")
    return next((extra for extra in _extras(hint) if isinstance(extra, DataSource)), None)


def _extras(hint: Any) -> tuple[Any, ...]:
    """Return what is annotated to a type, also inside ``… | None``."""
    if get_origin(hint) is Annotated:
        return tuple(hint.__metadata__)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(extra for part in get_args(hint) for extra in _extras(part))
    return ()


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type without its annotation and None, and whether None was in it."""
    if get_origin(hint) is Annotated:
        return _without_none(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_without_none(part)[0] for part in get_args(hint) if part is not type(None)]
        return parts[0], len(parts) < len(get_args(hint))
    return hint, False


def _kind(hint: Any, option: Option, name: str) -> Kind:
    if hint is bool:
        return Flag()
    if hint in (int, float):
        number = Whole if hint is int else Number
        return number(option.low, option.high, option.above, option.below)
    if get_origin(hint) is Literal:
        return Choice(get_args(hint))
    if hint is str:
        return Column(option.column) if option.column else Text()
    raise TypeError(f"option {name!r} needs a kind: its type does not say which values are allowed")


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """A verb with values for its options, its attributes: what is hashed, stored and run."""

    verb: str
    values: Mapping[str, Any]
    parameters: Mapping[str, Parameter] = field(compare=False)
    problems: tuple[str, ...] = field(default=(), compare=False)

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option."""
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"{self.verb} has no option {name!r}") from None

    def __repr__(self) -> str:
        return f"Question(verb={self.verb!r}, values={self.public()!r})"

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, without secrets."""
        known = self.parameters
        return {name: v for name, v in self.public().items() if v != known[name].settled_default}

    def public(self) -> dict[str, Any]:
        """Return all options without secrets."""
        secret = {name for name, one in self.parameters.items() if one.option.secret}
        return {name: value for name, value in self.values.items() if name not in secret}

    def columns(self) -> tuple[str, ...]:
        """Return the columns that the options name, each once."""
        values = self.values.items()
        named = (name for key, one in values for _, name in self.parameters[key].columns(one))
        return tuple(dict.fromkeys(named))

    def column_problems(self, names: tuple[str, ...] | list[str], called: str) -> list[str]:
        """Say of each column that an option names and the data does not have so."""
        found: list[str] = []
        for key, value in self.values.items():
            parameter = self.parameters[key]
            wanted = dict.fromkeys(name for _, name in parameter.columns(value))
            purpose = parameter.kind.purpose or key
            found += absent(wanted, names, purpose=purpose, where=repr(called))
        return found

    def replace(self, **values: Any) -> Question:
        """Return the question with other values for some options; they are taken as fit."""
        return replace(self, values={**self.values, **values})

    def require(self) -> None:
        """Raise everything that is wrong with the options, if anything is."""
        if self.problems:
            raise OptionError(self.problems)


_FOUND_BEFORE: ContextVar[tuple[str, ...]] = ContextVar("found_before", default=())


@contextmanager
def told_with(problems: Iterable[str]) -> Iterator[None]:
    """Have a verb that is called raise problems found before it together with its own."""
    token = _FOUND_BEFORE.set(tuple(problems))
    try:
        yield
    finally:
        _FOUND_BEFORE.reset(token)


def bind(function: Callable[..., Any], values: Mapping[str, Any]) -> Question:
    """Bind values to the options of a verb, and find all that is wrong with them.

    Inside a verb ``bind(risk, locals())`` is its first line. What is no option of the verb is
    passed over. Where a value is unfit, its default stands in the question, so that whatever looks
    further never meets it.
    """
    known = parameters_of(function)
    before = _FOUND_BEFORE.get()
    unfit = {name for one in before if isinstance(one, Problem) for name in one.options}
    fit, problems = value_problems({n: p for n, p in known.items() if n not in unfit}, values)
    settled = {name: p.settled_default for name, p in known.items()} | fit
    question = Question(function.__name__, settled, known)
    together = getattr(sys.modules[function.__module__], f"{function.__name__}_problems", None)
    if together is not None:
        unfit |= {problem.options[0] for problem in problems}
        problems += [one for one in together(question) if unfit.isdisjoint(one.options)]
    return replace(question, problems=(*problems, *before))


def value_problems(
    known: Mapping[str, Parameter], values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the fit values in their settled form, and what is wrong with the others."""
    fit: dict[str, Any] = {}
    problems = []
    for name, parameter in known.items():
        if name not in values:
            continue
        given = values[name]
        value = list(given) if isinstance(given, Iterator) else given
        needed = parameter.option.needed
        if value is None and needed is not None and not needed(values):
            continue
        fault = parameter.fault(value)
        if not fault:
            fit[name] = parameter.settle(value)
            continue
        kind = parameter.kind.of if isinstance(parameter.kind, Several) else parameter.kind
        words = kind.words if isinstance(kind, Choice) else ()
        listed = value if isinstance(value, list | tuple) else [value]
        strange = [one for one in listed if isinstance(one, str) and one not in words]
        near = nearest(strange[0], list(words), most=1) if strange and words else []
        remedy = f" Did you mean {near[0]!r}?" if near else ""
        template = f"{{{name}}} must be {{0}}. Got {{1}} instead.{{2}}"
        problems.append(Problem(template, fault, parameter.shown(value), remedy))
    return fit, problems


def without_columns(
    known: Mapping[str, Parameter], values: Mapping[str, Any], gone: Collection[str]
) -> dict[str, Any]:
    """Return values of options for a file that lacks some columns: empty where none is left."""
    found = dict(values)
    for name, value in values.items():
        named = [] if value is None else [column for _, column in known[name].columns(value)]
        if set(named).isdisjoint(gone):
            continue
        if isinstance(value, Mapping):
            left: Any = {key: one for key, one in value.items() if key not in gone}
        else:
            left = [one for one in named if one not in gone and not isinstance(value, str)]
        found[name] = left or known[name].settle(None)
    return found


Verbal = TypeVar("Verbal", bound=Callable[..., Any])


def documented(function: Verbal) -> Verbal:
    """Write the meanings of a verb's options into its docstring, below its first paragraphs."""
    told = {name: parameter.help for name, parameter in parameters_of(function).items()}
    if "data" in _hints(function):
        source = source_of(function)
        told = {"data": source.help if source else "A file, a frame or `Microdata`.", **told}
    lines = ["Parameters", "----------"]
    for name, text in told.items():
        lines += [name, *(f"    {line}" for line in textwrap.wrap(text, 84))]
    head, rest = split_docstring(function)
    function.__doc__ = "\n".join([head, "", *lines]) + rest
    return function


def split_docstring(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the first paragraphs of a docstring, and what stands from its first section on."""
    text = inspect.cleandoc(function.__doc__ or "")
    section = re.search(r"\n\n[A-Z]\w+\n-{3,}\n", text)
    at = section.start() if section else len(text)
    return text[:at], text[at:]


def unknown_problems(known: Mapping[str, Any], given: Mapping[str, Any], where: str) -> list[str]:
    """Say of each name that is no option so, with the names that come near."""
    found = []
    for name in given:
        if name not in known:
            near = nearest(f"{name}", list(known))
            remedy = f"Its settings are {', '.join(map(repr, known))}."
            remedy = f"Did you mean {' or '.join(map(repr, near))}?" if near else remedy
            found.append(f"{where} {name} is not a setting. {remedy}")
    return found


def shown_value(value: Any) -> str:
    """Describe a value that somebody gave for an option, in a few words."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple | set | frozenset):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return f"a {type(value).__name__}"
    if isinstance(value, int) and abs(value) >= 10**60:
        return "a number of more than 60 digits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
