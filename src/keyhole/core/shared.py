"""Options that several verbs share, each declared once."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from keyhole.core import kinds
from keyhole.core.names import quoted, repeated
from keyhole.core.options import Option, Problem, Question

Names = str | Iterable[str]
"""A column's name or several."""

Missing = Literal["own", "wildcard", "drop"]
EngineName = Literal["auto", "memory", "disk", "spark"]


@dataclass(frozen=True, slots=True)
class _Engine(kinds.Choice):
    """An engine by name; in Python also a Spark session to use."""

    def fault(self, value: Any) -> str | None:
        is_session = value is not None and not isinstance(value, str | int | float | list | dict)
        return None if is_session else kinds.Choice.fault(self, value)


@dataclass(frozen=True, slots=True)
class _Scenario(kinds.Kind):
    """The names of scenarios; in Python also keys made of scenarios."""

    repeatable = True
    what = "the name of a scenario, or the key of one"
    described = kinds.Columns.described

    def fits(self, value: Any) -> bool:
        given = [value] if isinstance(value, str) or hasattr(value, "recode") else value
        return (isinstance(given, Sequence) and bool(given)) and all(
            hasattr(one, "recode") or (isinstance(one, str) and bool(one)) for one in given
        )

    def settle(self, value: Any) -> tuple[Any, ...]:
        alone = isinstance(value, str) or hasattr(value, "recode")
        return (value,) if alone else tuple(value)

    def read(self, text: str) -> tuple[str, ...]:
        return kinds.Columns().read(text)

    def write(self, value: Any) -> str:
        return kinds.Columns().write([getattr(one, "name", one) for one in value])


_Share = functools.partial(Option, low=0, high=1)
CommandOption = functools.partial(Option, surfaces="c")
"""An option that only the command line and Python have."""

_KEYS = Option("The columns an intruder is assumed to know.", kind=kinds.Columns("key"))
KeyColumns = Annotated[Names | None, _KEYS]
RequiredKeys = Annotated[Names, _KEYS]
Cutoff = Annotated[int, Option("Records in cells smaller than this are at risk.", low=1)]
MissingOption = Annotated[
    Missing,
    Option(
        "What a missing key means: `own`, a category of its own; `wildcard`, a match with every "
        "value; `drop`, the record is not counted."
    ),
]
Weight = Annotated[
    str | None,
    Option(
        "The column with the number of people each record represents; it gives the risk in the "
        "population.",
        column="weight",
    ),
]
SMALLEST_FRACTION = 1e-12
"""With less a record would represent more people than ever lived."""
Fraction = Annotated[
    float | None,
    Option(
        "The share of the population that was sampled, where there are no weights.",
        low=SMALLEST_FRACTION,
        high=1,
    ),
]
Household = Annotated[
    str | None,
    Option(
        "The column that names the household; it gives the risk that any member is identified.",
        column="household",
    ),
]
By = Annotated[
    Names | None,
    Option(
        "A column whose categories are also measured one by one; of several, their combinations.",
        kind=kinds.ColumnOrSeveral("by"),
    ),
]
NameSmallGroups = Annotated[
    bool,
    CommandOption(
        "With `by`: also name groups with fewer records than the cutoff. They may be individuals."
    ),
]
Limit = Annotated[float, _Share("The highest acceptable RP, from 0 to 1.")]
Sensitive = Annotated[
    Names | None,
    Option(
        "Sensitive columns, whose values nobody should learn from the key; by default those with "
        "the role sensitive.",
        kind=kinds.Columns("sensitive"),
    ),
]
HomogeneousLimit = Annotated[
    float | None,
    _Share(
        "The highest acceptable share of records in cells where all have one value of a sensitive "
        "column.",
    ),
]
DiversityLimit = Annotated[
    int | None,
    Option(
        "The lowest acceptable l: every cell must have at least this many different values of a "
        "sensitive column.",
        low=1,
    ),
]
ClosenessLimit = Annotated[
    float | None,
    _Share(
        "The highest acceptable t: how far the values of a sensitive column in a cell may be from "
        "those of the file.",
    ),
]
CapLimit = Annotated[
    float | None,
    _Share(
        "The highest acceptable CAP: the chance that a sensitive value drawn from the cell is "
        "correct.",
    ),
]
Level = Annotated[
    float, Option("The confidence level of the intervals, like 0.95.", above=0, below=1)
]
KeepColumns = Annotated[
    Names, Option("Variables that are released in any case.", kind=kinds.Columns("keep", least=0))
]
CandidateColumns = Annotated[
    Iterable[str | Sequence[str]] | None,
    Option(
        "The variables to choose among, in order of preference; `age|age10` are alternatives of "
        "one variable, the finest first.",
        kind=kinds.Candidates(),
    ),
]
Values = Annotated[
    Mapping[str, float] | None,
    Option(
        "What variables are worth to the data's users; 1 if not named.",
        kind=kinds.Amounts("variable"),
    ),
]
_SEED = Option(
    "A secret whole number; the same seed gives the same result.",
    kind=kinds.Whole(low=0, high=math.inf),
    secret=True,
)
Seed = Annotated[int | None, _SEED]
RequiredSeed = Annotated[int, _SEED]
Formula = Annotated[
    str | None,
    Option(
        "A regression to compare before and after, such as `income ~ age + sex`.",
        metavar="'Y ~ A + B'",
    ),
]
ScenarioOption = Annotated[
    Any,
    CommandOption(
        "A scenario of the data environment: its key is used, and the file is recoded to its "
        "detail. Several are compared where the command supports it.",
        kind=_Scenario(),
        metavar="NAME",
    ),
]
StoreOption = Annotated[
    str | None,
    CommandOption(
        "The data environment that holds the scenario: an SQLite or .json file, or a PostgreSQL "
        "URL.",
        metavar="ENV.db",
    ),
]
TargetOption = Annotated[
    str | None,
    CommandOption(
        "The target of the data environment that describes the file, if there are several.",
        metavar="T",
    ),
]
UndecidedOption = Annotated[
    bool,
    CommandOption(
        "Give p(identification) on the upper key although decisions are pending that would change "
        "the key."
    ),
]
EngineOption = Annotated[
    Any,
    CommandOption(
        "Where to compute. auto: memory if the file fits in half of it, otherwise disk.",
        kind=_Engine(get_args(EngineName)),
    ),
]
EngineInMemory = Annotated[
    Literal["auto", "memory"], CommandOption("Where to compute: only memory is supported.")
]
TaskEngine = Annotated[
    Any,
    CommandOption(
        "Where to compute: memory, as auto does, or spark.",
        kind=_Engine(("auto", "memory", "spark")),
    ),
]
MemorySize = Annotated[
    str | int | None,
    CommandOption(
        "How much memory the disk engine may use, like 1GB; by default half of what is free.",
        kind=kinds.Memory(),
    ),
]
WorkFolder = Annotated[
    Any,
    CommandOption(
        "Where the disk engine keeps its files; by default the system's temporary folder.",
        kind=kinds.File(),
        metavar="DIR",
    ),
]
Master = Annotated[
    str | None,
    CommandOption(
        "Where Spark runs: local[*], spark://host:7077, yarn; by default as Spark is set up.",
        metavar="URL",
    ),
]
ForceOption = Annotated[bool, CommandOption("Replace files that exist.")]
FolderOption = Annotated[
    str | os.PathLike[str],
    CommandOption(
        "The folder to write into; it is created if needed.", kind=kinds.File(), metavar="DIR"
    ),
]
DossierFolder = Annotated[
    str | os.PathLike[str],
    CommandOption(
        "The folder that a review wrote.", kind=kinds.File(), metavar="DIR", argument=True
    ),
]


def sensitive_problems(question: Question, keys: Iterable[str]) -> Iterator[Problem]:
    """Say which sensitive columns are also keys."""
    both = [name for name in question.sensitive or () if name in (keys or ())]
    if both:
        yield Problem(
            "{sensitive} must not be among the keys. Got {0} as both: leave it out of one.",
            quoted(both),
        )


def scenario_problems(
    question: Question, *, instead_of: str = "keys", several: bool = False, beside: bool = False
) -> Iterator[Problem]:
    """Say what is wrong with a scenario and where it is, and with its standing beside columns."""
    given, columns = question.scenario or (), question.values[instead_of]
    named = [name for name in given if isinstance(name, str)]
    if not given and not columns:
        yield Problem(
            f"{{{instead_of}}} must name at least one column, or give {{scenario}}. Got neither "
            f"instead."
        )
    if given and columns and not beside:
        yield Problem(
            f"{{{instead_of}}} and {{scenario}} exclude each other. Leave one of them out."
        )
    if not named and (question.store is not None or question.target is not None):
        yield Problem("{store} and {target} need {scenario}. Name a scenario, or leave them out.")
    if question.values.get("undecided") and not given:
        yield Problem("{undecided} needs {scenario}. Name a scenario, or leave it out.")
    if named and question.store is None:
        yield Problem(
            "{scenario} needs {store}, the data environment that holds it. Got none instead: make "
            "one with `keyhole environment init`."
        )
    for name in repeated(named):
        yield Problem("{scenario} names {0!r} twice. Name it once.", name)
    if len(given) > 1 and not several:
        yield Problem(
            "{scenario} must be one here. Got {0} instead: ask for one after the other; "
            "`keyhole risk` compares several.",
            len(given),
        )
