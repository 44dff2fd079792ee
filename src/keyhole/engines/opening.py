"""Data opened for a question: where it is to be counted, with all that is wrong told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.data.deriving import derivations_of
from keyhole.engines.choose import SPARK, derive_problems, engine_problems, open_records
from keyhole.engines.protocol import Records
from keyhole.errors import ColumnError, InputError, OptionError

WHERE = ("engine", "memory", "work_folder", "master")
"""The options that say where data is counted."""
HOW = ("encoding", "delimiter", "sheet")
"""How a file is read; what else is said of it is declared of its columns."""
MOST_OFFERED = 60


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with how it is read: the options of `keyhole.load`."""

    path: str | os.PathLike[str]
    reading: Mapping[str, Any] = field(default_factory=dict)


def open_for(
    question: Question,
    source: Any,
    *,
    needs_values_for: str = "",
    needs_memory_for: str = "",
    every_column: bool = False,
    may_be_empty: bool = False,
    data_problems: Callable[[Records], Iterable[str]] = lambda _: (),
    offers: str = "",
) -> Records:
    """Open the data of a question; raise everything that is wrong with both at once.

    `needs_values_for`, `needs_memory_for`: what is asked that Spark cannot do, or only memory can.
    `every_column`: read the columns that the question does not name, too. `may_be_empty`: leave it
    to the verb whether there are records, since to count them all may take long. `data_problems`
    says what else is wrong with the data; columns may be absent. `offers` is an option that names
    columns: where it is needed and left out, those of the data are told.
    """
    if question.values.get("scenario"):  # which recodes the columns of its key
        needs_memory_for, every_column = "a scenario's recoding", True
    wrong = [problem for problem in question.problems if isinstance(problem, Problem)]
    named = {name for problem in wrong for name in problem.options}
    is_offered = offers in named and not question.values[offers]
    every_column = every_column or is_offered
    reading: dict[str, Any] = {}
    if isinstance(source, DataFile):
        reading, source = dict(source.reading), source.path
    if isinstance(source, str | os.PathLike) and not every_column:
        reading["columns"] = list(question.columns()) or None
    where = {name: question.values[name] for name in WHERE if name in question.values}
    if is_offered and where.get("engine") == "spark" and not needs_values_for:
        where = {}  # Spark need not run to tell the names of columns
    problems: list[str] = list(question.problems)
    if refused := derive_problems(where.get("engine"), reading):
        raise OptionError([*problems, *refused])
    if where.get("engine") == "spark" and not needs_values_for:
        _require_header(question, source, reading)
    try:
        data = open_records(
            source, here_for=needs_values_for, in_memory_for=needs_memory_for, **where, **reading
        )
    except OptionError as error:
        problems += error.problems
        try:  # what else is wrong is told with that
            data = open_records(source, **reading)
        except InputError as other:
            raise type(other)(dict.fromkeys([*problems, *other.problems])) from None
    except ColumnError as error:
        # A column that is not there is told by what it was to be: all of them are looked at.
        try:
            data = open_records(source, **{**reading, "columns": None})
        except InputError as other:
            absent = columns_anyhow(question, source, reading)
            problems += [*other.problems, *absent] if absent else error.problems
            raise type(other)(dict.fromkeys(problems)) from None
        if not question.column_problems(data.names, data.name):
            raise ColumnError([*problems, *error.problems]) from None
    except InputError as error:
        raise type(error)([*problems, *error.problems]) from None
    problems += question.column_problems(data.names, data.name)
    problems += data_problems(data)
    if is_offered:
        free = [name for name in data.names if name not in question.columns()]
        template = f"{{{offers}}} can name these columns of {{0!r}}: {{1}}."
        problems.append(Problem(template, data.name, quoted(free, most=MOST_OFFERED)))
    if problems:
        raise OptionError(dict.fromkeys(problems))
    if not every_column:
        data.require(question.columns(), purpose="column")  # so that they are read together
    if not may_be_empty:
        data.require_records()
    return data


def column_problems(data: Records, names: Iterable[str], purpose: str) -> list[str]:
    """Return what is wrong with the columns named, instead of raising it."""
    try:
        data.require(names, purpose=purpose)
    except ColumnError as error:
        return list(error.problems)
    return []


def _require_header(question: Question, source: Any, reading: Mapping[str, Any]) -> None:
    """Raise what a file's header shows to be wrong: Spark takes long to start."""
    try:
        seen = import_module(SPARK).Cluster.look(source, **reading)
    except InputError:
        return  # raised when the file is opened, before Spark starts
    problems = [] if seen is None else [*question.problems, *question.column_problems(*seen)]
    where = {name: question.values.get(name) for name in WHERE}
    if problems:
        raise OptionError([*problems, *engine_problems(*where.values())])


def columns_anyhow(question: Question, source: Any, reading: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with columns of a question, if a file is not what is declared of it."""
    if not isinstance(source, str | os.PathLike) or os.path.isdir(source):
        return []
    try:
        made = [one.name for one in derivations_of(reading.get("derive"))]
        data = open_records(source, **{name: reading[name] for name in HOW if name in reading})
    except InputError:
        return []
    return question.column_problems([*data.names, *made], data.name)
