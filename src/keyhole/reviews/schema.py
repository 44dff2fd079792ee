"""What a review file may hold: its sections, their settings, and what each must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from keyhole.core.kinds import Choice, File, Kind, Memory, Number, Place, Several, Text, Whole
from keyhole.core.kinds import Columns as ColumnNames
from keyhole.core.names import quoted, repeated
from keyhole.core.options import (
    Option,
    Parameter,
    Question,
    parameters_of,
    value_problems,
)
from keyhole.core.shared import KeyColumns, Limit
from keyhole.core.verbs import VERBS
from keyhole.data.reading import load
from keyhole.reviews.source import named_scenario
from keyhole.selection.search import METHODS

DERIVE = "derive"
"""The section whose settings have the names of the columns that it makes."""
METRICS = ("unicity", "taxicab", "euclidean", "adhoc")
PRODUCTS = ("file", "selection", "protection", "synthesis")
STEPS = ("solve", "selection", "protection", "synthesis")
"""The sections that make a release of the file, in the order of the work."""


def section_of(
    verb: str, own: Callable[..., Any] | None = None, without: Iterable[str] = ()
) -> dict[str, Parameter]:
    """Return the settings of a verb's section: its options, but for those that other parts give.

    The signature of `own` declares what the review has besides.
    """
    known = parameters_of(VERBS[verb].function())
    left_out = set(without)
    found = {n: p for n, p in known.items() if "r" in p.option.surfaces and n not in left_out}
    return {**found, **({} if own is None else parameters_of(own))}


def question_of(section: str, values: Mapping[str, Any]) -> Question:
    """Return a section with its fit values settled and its defaults in place."""
    other = OTHER_NAMES.get(section, {})
    every = {**SECTIONS[section], **FOUND.get(section, {})}
    known = {name: p for name, p in every.items() if name not in other}
    fit, _ = value_problems(known, {other.get(name, name): one for name, one in values.items()})
    settled = {
        name: fit[name] if name in fit else None if p.required else p.settle(p.default)
        for name, p in known.items()
    }
    return Question(section, settled, known)


NamedGroups = Annotated[
    tuple[str, ...],
    Option(
        "Categories of `by` that the report names even where they are small.",
        kind=Several(Text("the name of a group")),
    ),
]


def _exposure(*, named_groups: NamedGroups = ()) -> None:
    """Declare what the section of exposure has besides the options of `risk`."""


def _selection(
    *,
    limit: Limit,
    limits: Annotated[
        tuple[float, ...],
        Option(
            "Further limits, compared with it in one table.", kind=Several(Number(low=0, high=1))
        ),
    ] = (),
    cutoffs: Annotated[
        tuple[int, ...],
        Option(
            "Further cutoffs, compared with the one of `[exposure]`.", kind=Several(Whole(low=1))
        ),
    ] = (),
    methods: Annotated[
        tuple[str, ...],
        Option(
            "Another name of `method`. The first of several makes the proposal.",
            kind=Several(Choice(METHODS)),
        ),
    ] = (),
    named_groups: NamedGroups = (),
) -> None:
    """Declare what the section of selection has besides the options of `select`."""


def _frontier(
    *,
    limit: Annotated[
        float | None,
        Option("The highest acceptable RP; the one of `[selection]` if left out.", low=0, high=1),
    ] = None,
) -> None:
    """Declare what the section of the frontier has besides the options of `frontier`."""


@dataclass(frozen=True, slots=True)
class _Steps(Kind):
    """The steps of a plan; what each must be is its method's to say."""

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
        return None if fit else "[[protection.step]] tables"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "object"}}


def _protection(
    *,
    plan: Annotated[
        str | None,
        Option(
            "A TOML file with the plan, seen from the review file; or write its steps here.",
            kind=Text(),
            metavar="PLAN.toml",
        ),
    ] = None,
    step: Annotated[
        Any, Option("The steps of the plan, as `[[protection.step]]` tables.", kind=_Steps())
    ] = None,
) -> None:
    """Declare what the section of protection has besides the options of `protect`."""


def _synthesis(
    *,
    keys: KeyColumns = None,
    rules_file: Annotated[
        str | None, Option("A TOML file with the rules, seen from the review file.", kind=File())
    ] = None,
) -> None:
    """Declare what the section of a synthesis has besides the options of `synthesise`."""


_READ_SO = ("missing_codes", "encoding", "delimiter", "sheet")
"""How the files that only the study has are read."""


@dataclass(frozen=True, slots=True)
class _Linking(ColumnNames):
    """The linking variables, or the scenario whose key they are."""

    def fault(self, value: Any) -> str | None:
        """Accept a list of names, or ``scenario:NAME``."""
        fault = None if named_scenario(value) else ColumnNames.fault(self, value)
        return fault and f'{fault}, or "scenario:NAME"'


@dataclass(frozen=True, slots=True)
class _FilesByName(Kind):
    """Files by name."""

    def fault(self, value: Any) -> str | None:
        """Accept a table of paths."""
        fit = isinstance(value, Mapping) and not any(map(File().fault, value.values()))
        return None if fit else "a table that gives for each name a file"

    def schema(self) -> dict[str, Any]:
        """Describe a table of paths."""
        return {"type": "object", "additionalProperties": {"type": "string"}}


def _study(
    *,
    puf: Annotated[
        str | None, Option("The public use file; the file under review if left out.", kind=File())
    ] = None,
    eif: Annotated[str, Option("The external intruder file.", kind=File())],
    iuf: Annotated[
        str,
        Option(
            "The internal file: the ids of both, a row for each pair that is one person.",
            kind=File(),
        ),
    ],
    link: Annotated[
        Any,
        Option(
            'The linking variables, columns of both files, or `"scenario:NAME"` for the key of a '
            "scenario.",
            kind=_Linking("linking variable"),
        ),
    ],
    metrics: Annotated[
        tuple[str, ...],
        Option(
            "Several metrics, compared in one table; the first leads.",
            kind=Several(Choice(METRICS), least=1),
        ),
    ] = ("unicity",),
    named_groups: Annotated[
        tuple[str, ...],
        Option(
            "Strata that the report names even where they are small.",
            kind=Several(Text("the name of a group")),
        ),
    ] = (),
    limit: Annotated[
        float | None,
        Option("The highest conditional rate that is acceptable.", low=0, high=1),
    ] = None,
    candidates: Annotated[
        Mapping[str, str] | None,
        Option(
            "By name, files of other releases that could go out instead; they are attacked too.",
            kind=_FilesByName(),
        ),
    ] = None,
) -> None:
    """Declare what the section of a study has besides the options of `study`."""


def _solve(
    *,
    keys: KeyColumns = None,
    limit: Annotated[
        float | None,
        Option("The highest acceptable RP; the one of `[exposure]` if left out.", low=0, high=1),
    ] = None,
) -> None:
    """Declare what the section of the best release has besides the options of `solve`."""


def _found_of_study(
    *,
    scenario: Annotated[str | None, Option("The scenario whose key is linked on.")] = None,
    scores_file: Annotated[str | None, Option("The file that the scores were read from.")] = None,
) -> None:
    """Declare what is found out of a study's settings."""


def _found_of_protection(
    *,
    plan_file: Annotated[str | None, Option("The file that the plan was read from.")] = None,
) -> None:
    """Declare what is found out of a protection's settings; its plan becomes the text of it."""


FOUND = {
    "study": parameters_of(_found_of_study),
    "protection": parameters_of(_found_of_protection),
}
"""By section what is kept with its settings without being one."""
OTHER_NAMES = {"study": {"metric": "metrics"}, "protection": {"step": "plan"}}
"""By section settings that another name stands for, where it is given."""


@dataclass(frozen=True, slots=True)
class _Keys(ColumnNames):
    """A list of columns, or the scenario whose key is meant."""

    def fault(self, value: Any) -> str | None:
        if named_scenario(value):
            return None
        fault = ColumnNames.fault(self, value if isinstance(value, list) else None)
        return fault and f'{fault}, or "scenario:NAME"'

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns; those of a scenario's key are known later."""
        return iter(()) if isinstance(value, str) else ColumnNames.columns(self, value)


@dataclass(frozen=True, slots=True)
class _Texts(Kind):
    """A list of texts, each once."""

    what: str = "texts"

    def fault(self, value: Any) -> str | None:
        if not isinstance(value, list) or any(Text().fault(item) for item in value):
            return f"a list of {self.what}"
        double = repeated(value)
        return f"a list that names each once ({quoted(double)} is repeated)" if double else None

    def settle(self, value: Any) -> Any:
        return None if value is None else tuple(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


@dataclass(frozen=True, slots=True)
class _Reasons(Kind):
    """Reasons by column."""

    purpose: str = "column"

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Mapping) and not any(map(Text().fault, value.values()))
        return None if fit else "a table that gives for each column a reason"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for name in value:
            yield (name,), name


def _top(
    *,
    title: Annotated[
        str | None, Option("What the review is called, at the head of the report.")
    ] = None,
    keys: Annotated[
        Any,
        Option(
            'The columns an intruder could know, or `"scenario:NAME"` for the key of a scenario.',
            kind=_Keys("key"),
        ),
    ] = None,
) -> None:
    """Declare what stands above all sections."""


def _release(
    *,
    product: Annotated[
        str | None,
        Option(
            "One product by itself: the `file` as it is, the variables of the `selection`, or what "
            "the `protection` or the `synthesis` makes of the file as it is. Use `steps` to have "
            "each start from what the one before left.",
            kind=Choice(PRODUCTS),
        ),
    ] = None,
    steps: Annotated[
        tuple[str, ...] | None,
        Option(
            "The sections that make the release, each starting from what the one before left: "
            "`solve` or `selection`, `protection`, `synthesis`. By default all that the review "
            "has; with `solve`, without `selection`.",
            kind=Several(Choice(STEPS)),
        ),
    ] = None,
    take: Annotated[
        tuple[str, ...] | None,
        Option(
            "The variables of the selection that are released; by default the set it proposes.",
            kind=ColumnNames("variable to release"),
        ),
    ] = None,
    drop: Annotated[
        tuple[str, ...],
        Option("Columns to drop from the release.", kind=ColumnNames("column to drop", least=0)),
    ] = (),
    not_knowable: Annotated[
        Mapping[str, str] | None,
        Option(
            "Columns that are released and in no key, each with the reason why no intruder could "
            "know its values.",
            kind=_Reasons(),
        ),
    ] = None,
    to: Annotated[str | None, Option("To whom it goes.")] = None,
    purpose: Annotated[str | None, Option("What for.")] = None,
    version: Annotated[str | None, Option("Which version of the release this is.")] = None,
    contact: Annotated[str | None, Option("Whom users may ask.")] = None,
    conditions: Annotated[
        tuple[str, ...], Option("Under which conditions it goes out.", kind=_Texts())
    ] = (),
    notes: Annotated[
        tuple[str, ...],
        Option(
            "What users should know besides; in the public note as it stands here.",
            kind=_Texts(),
        ),
    ] = (),
    board: Annotated[
        tuple[str, ...],
        Option(
            "Who decides: names or offices, one line each on the page for signatures.",
            kind=_Texts(),
        ),
    ] = (),
) -> None:
    """Declare what is said of the release."""


def _data(
    *,
    file: Annotated[str, Option("The file under review, seen from the review file.")],
    engine: Annotated[
        str,
        Option(
            "Where the file is counted: `memory`, `disk` or `auto` (in memory while it fits).",
            kind=Choice(("auto", "memory", "disk")),
        ),
    ] = "auto",
    memory: Annotated[
        str | None, Option("What counting on disk may use, like `1GB`.", kind=Memory())
    ] = None,
) -> None:
    """Declare what the section of the data has besides the options of `load`."""


def _keys(
    *,
    columns: Annotated[
        tuple[str, ...],
        Option("The columns an intruder could know.", kind=ColumnNames("key")),
    ],
) -> None:
    """Declare the keys as a section of their own."""


def _environment(
    *,
    store: Annotated[
        str,
        Option(
            "The data environment: a store (`env.db`, or a PostgreSQL URL) or an exported `.json` "
            "file, seen from the review file."
        ),
    ],
    target: Annotated[
        str | None, Option("The target that describes the file; by default the only one.")
    ] = None,
    scenarios: Annotated[
        tuple[str, ...] | None,
        Option(
            "Scenarios of the environment to look at, `[]` for none; by default all of them, "
            "unless the review tells some.",
            kind=_Texts("names of scenarios"),
        ),
    ] = None,
) -> None:
    """Declare where scenarios come from."""


TOP: Mapping[str, Parameter] = parameters_of(_top)

SECTIONS: Mapping[str, Mapping[str, Parameter]] = {
    "release": parameters_of(_release),
    "data": {
        **parameters_of(_data),
        **{name: p for name, p in parameters_of(load).items() if name != DERIVE},
    },
    "keys": parameters_of(_keys),
    "environment": parameters_of(_environment),
    "screen": section_of("screen", without=("keys",)),
    "exposure": section_of("risk", _exposure, without=("keys",)),
    "uniques": section_of("uniques", without=("keys", "cutoff")),
    "drivers": section_of("drivers", without=("keys", "cutoff")),
    "solve": section_of(
        "solve", _solve, without=("cutoff", "weight", "suppress", "remove", "progress")
    ),
    "selection": section_of("select", _selection, without=("cutoff",)),
    "frontier": section_of(
        "frontier", _frontier, without=("keep", "candidates", "cutoff", "values")
    ),
    "study": {
        **section_of("study", _study),
        **{name: p for name, p in parameters_of(load).items() if name in _READ_SO},
    },
    "protection": section_of("protect", _protection, without=("cutoff", "weight", "fraction")),
    "synthesis": section_of("synthesise", _synthesis),
    "table": section_of("table"),
    "tabulate": section_of("tabulate"),
}  # fmt: skip


REPEATED = ("table", "tabulate")
"""Sections that may be there several times, as `[[table]]`; alone also as `[table]`."""


def review_schema() -> dict[str, Any]:
    """Describe review files as JSON Schema, for editors that check and complete TOML."""
    sections = {name: _section_schema(settings) for name, settings in SECTIONS.items()}
    sections[DERIVE] = {
        "description": parameters_of(load)[DERIVE].help,
        "type": "object",
        "additionalProperties": {"type": "string"},
    }
    for name in REPEATED:
        several = {"type": "array", "items": sections[name]}
        sections[name] = {"anyOf": [sections[name], several]}
    top = {name: setting.schema() for name, setting in TOP.items()}
    both = {name: {"anyOf": [top[name], sections[name]]} for name in top if name in sections}
    scenario = {
        "description": "Scenarios of the review's own, by name.",
        "type": "object",
        "additionalProperties": {"type": "object"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "review-file.json",
        "title": "The review file of keyhole",
        "type": "object",
        "required": ["data"],
        "properties": {**top, **sections, **both, "scenario": scenario},
        "additionalProperties": False,
    }


def _section_schema(settings: Mapping[str, Parameter]) -> dict[str, Any]:
    found = {
        "type": "object",
        "properties": {name: setting.schema() for name, setting in settings.items()},
        "additionalProperties": False,
    }
    required = [name for name, setting in settings.items() if setting.required]
    return {**found, "required": required} if required else found
