"""What a review file may hold: its sections, their settings, and what each must be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhole.core.kinds import Choice, File, Kind, Memory, Number, Place, Several, Text, Whole
from keyhole.core.kinds import Columns as ColumnNames
from keyhole.core.options import (
    REQUIRED,
    Option,
    Parameter,
    Question,
    parameters_of,
    value_problems,
)
from keyhole.core.verbs import VERBS
from keyhole.data.reading import load
from keyhole.reviews.files import named_scenario
from keyhole.selection.search import METHODS

DERIVE = "derive"
"""The section whose settings have the names of the columns that it makes."""
METRICS = ("unicity", "taxicab", "euclidean", "adhoc")
PRODUCTS = ("file", "selection", "protection", "synthesis")
CONTROLLED = ("singled-out", "linked", "inferred", "present")
"""The attacks with a control."""
STEPS = ("solve", "selection", "protection", "synthesis")
"""The sections that make a release of the file, in the order of the work."""


def section_of(
    verb: str, own: Mapping[str, Parameter] | None = None, without: Iterable[str] = ()
) -> dict[str, Parameter]:
    """Return a verb's options, but for those that other parts give, and the review's `own`."""
    known = parameters_of(VERBS[verb].function())
    left_out = set(without)
    found = {n: p for n, p in known.items() if "r" in p.option.surfaces and n not in left_out}
    return {**found, **(own or {})}


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


@dataclass(frozen=True, slots=True)
class _Steps(Kind):
    """The steps of a plan; what each must be is its method's to say."""

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
        return None if fit else "[[protection.step]] tables"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "object"}}


@dataclass(frozen=True, slots=True)
class _Linking(ColumnNames):
    """The linking variables, or the scenario whose key they are."""

    def fault(self, value: Any) -> str | None:
        fault = None if named_scenario(value) else ColumnNames.fault(self, value)
        return fault and f'{fault}, or "scenario:NAME"'


@dataclass(frozen=True, slots=True)
class _Keys(_Linking):
    """A list of columns, or the scenario whose key is meant; its columns are known later."""

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, list) or named_scenario(value)
        return _Linking.fault(self, value if fit else None)

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        return iter(()) if isinstance(value, str) else ColumnNames.columns(self, value)


@dataclass(frozen=True, slots=True)
class _TextsByName(Kind):
    """A table of texts, of a kind, by name."""

    wanted: str
    text: Kind = field(default_factory=Text)

    def fault(self, value: Any) -> str | None:
        fit = isinstance(value, Mapping) and not any(map(self.text.fault, value.values()))
        return None if fit else f"a table that gives for each {self.wanted}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class _Reasons(_TextsByName):
    """Reasons by column."""

    purpose: str = "column"

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        for name in value:
            yield (name,), name


class _Texts(Several):
    """A list of texts, each once."""

    def fault(self, value: Any) -> str | None:
        return Several.fault(self, value) if isinstance(value, list) else "a list of texts"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


def _own(**settings: tuple[Kind, Any, str]) -> dict[str, Parameter]:
    """Return settings that no verb has: of each its kind, its default and its meaning."""
    return {
        name: Parameter(name, Option(words, kind=kind), kind, default, default is None)
        for name, (kind, default, words) in settings.items()
    }


_SHARE = Number(low=0, high=1)
_KEYS = (ColumnNames("key"), None, "The columns an intruder is assumed to know.")
_GROUPS, _TEXTS = Several(Text("the name of a group")), _Texts(Text())
_NAMED_GROUPS = (_GROUPS, (), "Categories of `by` that the report names even if they are small.")
_READ_SO = ("missing_codes", "encoding", "delimiter", "sheet")
"""How the files that only the study has are read."""

FOUND = {
    "study": _own(
        scenario=(Text(), None, "The scenario whose key is linked on."),
        scores_file=(Text(), None, "The file that the scores were read from."),
    ),
    # The plan becomes the text of it.
    "protection": _own(plan_file=(Text(), None, "The file that the plan was read from.")),
}
"""By section what is kept with its settings without being one."""
OTHER_NAMES = {"study": {"metric": "metrics"}, "protection": {"step": "plan"}}
"""By section settings that another name stands for, where it is given."""

TOP: Mapping[str, Parameter] = _own(
    title=(Text(), None, "What the review is called, at the head of the report."),
    run_by=(Text(), None, "Who runs the review; by default the user name."),
    keys=(
        _Keys("key"),
        None,
        'The columns an intruder could know, or `"scenario:NAME"` for the key of a scenario.',
    ),
)

SECTIONS: Mapping[str, Mapping[str, Parameter]] = {
    "release": _own(
        product=(Choice(PRODUCTS), None,
            "One product by itself: the `file` as it is, the variables of the `selection`, or what "
            "the `protection` or the `synthesis` makes of the file as it is. Use `steps` to have "
            "each start from the result of the one before."),
        steps=(Several(Choice(STEPS)), None,
            "The sections that make the release, each starting from the result of the one before: "
            "`solve` or `selection`, `protection`, `synthesis`. By default all that the review "
            "has; with `solve`, without `selection`."),
        take=(ColumnNames("variable to release"), None,
            "The variables of the selection that are released; by default the set it proposes."),
        drop=(ColumnNames("column to drop", least=0), (), "Columns to drop from the release."),
        not_knowable=(_Reasons("column a reason"), None,
            "Columns that are released and in no key, each with the reason why no intruder could "
            "know its values."),
        to=(Text(), None, "The recipients."),
        purpose=(Text(), None, "What for."),
        version=(Text(), None, "Which version of the release this is."),
        contact=(Text(), None, "The contact for users."),
        conditions=(_TEXTS, (), "The conditions of the release."),
        notes=(_TEXTS, (), "What else users should know; printed as it is in the public note."),
        board=(
            _TEXTS, (), "Who decides: names or offices, one line each for signatures."
        ),
    ),
    "data": {
        **_own(
            file=(Text(), REQUIRED, "The file under review, relative to the review file."),
            engine=(Choice(("auto", "memory", "disk")), "auto",
                "Where to compute: `memory`, `disk` or `auto` (memory if the file fits)."),
            memory=(Memory(), None, "How much memory the disk engine may use, like `1GB`."),
        ),
        **{name: p for name, p in parameters_of(load).items() if name != DERIVE},
    },
    "keys": _own(columns=(ColumnNames("key"), REQUIRED, "The columns an intruder could know.")),
    "environment": _own(
        store=(Text(), REQUIRED,
            "The data environment: a store (`env.db`, or a PostgreSQL URL) or an exported `.json` "
            "file, relative to the review file."),
        target=(Text(), None, "The target that describes the file; by default the only one."),
        scenarios=(_TEXTS, None,
            "Scenarios of the environment to use, `[]` for none; by default all of them, unless "
            "the review has its own."),
    ),
    "screen": section_of("screen", without=("keys",)),
    "exposure": section_of("risk", _own(named_groups=_NAMED_GROUPS), without=("keys",)),
    "uniques": section_of("uniques", without=("keys", "cutoff")),
    "drivers": section_of("drivers", without=("keys", "cutoff")),
    "attributes": section_of(
        "attributes",
        _own(limit=(
            _SHARE, None,
            "The highest acceptable share of records in cells where all have one value of a "
            "sensitive column.",
        )),
        without=("keys", "cutoff", "original", "closest", "masked"),
    ),
    "solve": section_of(
        "solve",
        _own(
            keys=_KEYS,
            limit=(_SHARE, None, "The highest acceptable RP; the one of `[exposure]` if left out."),
        ),
        without=("cutoff", "weight", "progress"),
    ),
    "selection": section_of(
        "select",
        _own(
            limit=(_SHARE, REQUIRED, "The highest acceptable RP, from 0 to 1."),
            limits=(Several(_SHARE), (), "Further limits, compared with it in one table."),
            cutoffs=(
                Several(Whole(low=1)), (), "Further cutoffs, compared with the one of `[exposure]`."
            ),
            methods=(Several(Choice(METHODS)), (),
                "Another name of `method`. The first of several makes the proposal."),
            named_groups=_NAMED_GROUPS,
        ),
        without=("cutoff",),
    ),
    "frontier": section_of(
        "frontier",
        _own(limit=(
            _SHARE, None, "The highest acceptable RP; the one of `[selection]` if left out."
        )),
        without=("keep", "candidates", "cutoff", "values"),
    ),
    "study": {
        **section_of(
            "study",
            _own(
                puf=(File(), None, "The public use file; the file under review if left out."),
                eif=(File(), REQUIRED, "The external intruder file."),
                iuf=(File(), REQUIRED,
                    "The internal file: the true matches, one row per person in both files."),
                link=(_Linking("linking variable"), REQUIRED,
                    'The linking variables, columns of both files, or `"scenario:NAME"` for the '
                    "key of a scenario."),
                metrics=(Several(Choice(METRICS), least=1), ("unicity",),
                    "Several metrics, compared in one table; the first leads."),
                named_groups=(
                    _GROUPS, (), "Strata that the report names even if they are small."
                ),
                limit=(_SHARE, None, "The highest acceptable conditional rate."),
                candidates=(_TextsByName("name a file", File()), None,
                    "By name, files of alternative releases; they are attacked too."),
            ),
        ),
        **{name: p for name, p in parameters_of(load).items() if name in _READ_SO},
    },
    "attacks": _own(
        attacks=(Several(Choice(CONTROLLED)), (),
            "Which attacks are made: `singled-out`, `linked`, `inferred`, `present`. By default "
            "all for which columns are named."),
        link=(ColumnNames("known column"), None,
            "The columns that the intruder knows; the keys if left out."),
        second_link=(ColumnNames("second linking variable", least=0), (),
            "The columns that a second source of the intruder holds, for `linked`."),
        secret=(ColumnNames("secret", least=0), (),
            "The columns that the intruder wants to learn, for `inferred`; the sensitive ones if "
            "left out."),
        numeric=(ColumnNames("numeric", least=0), (),
            "Which of all these are numbers; measures if left out."),
        control=(File(), None,
            "A file of people who are like those of the file under review and not in it. Without "
            "one, records that `[synthesis]` holds out are the control."),
        limit=(_SHARE, None, "The highest acceptable residual risk."),
        seed=(Whole(low=0, high=math.inf), 1, "The seed of everything drawn at random."),
    ),
    "protection": section_of(
        "protect",
        _own(
            plan=(Text(), None,
                "A TOML file with the plan, relative to the review file; or write its steps here."),
            step=(_Steps(), None, "The steps of the plan, as `[[protection.step]]` tables."),
        ),
        without=("cutoff", "weight", "fraction"),
    ),
    "synthesis": section_of(
        "synthesise",
        _own(
            keys=_KEYS,
            rules_file=(File(), None, "A TOML file with the rules, relative to the review file."),
        ),
    ),
    "table": section_of("table"),
    "tabulate": section_of("tabulate"),
}  # fmt: skip


REPEATED = ("table", "tabulate")
"""Sections that may be there several times, as `[[table]]`; alone also as `[table]`."""


def review_schema() -> dict[str, Any]:
    """Describe review files as JSON Schema, for editors that check and complete TOML."""
    sections: dict[str, dict[str, Any]] = {}
    for name, settings in SECTIONS.items():
        required = [setting for setting, one in settings.items() if one.required]
        sections[name] = {
            "type": "object",
            "properties": {setting: one.schema() for setting, one in settings.items()},
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }
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
