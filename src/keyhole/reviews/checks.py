"""A review file is checked as a whole before anything runs: every problem, with its line."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from keyhole.core.names import absent, nearest, shown
from keyhole.core.options import Parameter, Question, bind, shown_value, unknown_problems
from keyhole.core.options import Problem as OptionProblem
from keyhole.core.verbs import VERBS
from keyhole.data import Microdata
from keyhole.engines.choose import open_records
from keyhole.engines.protocol import Records
from keyhole.errors import ColumnError, InputError
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.protection.apply import raised
from keyhole.protection.plan import Plan
from keyhole.reviews.derive_checks import derived_columns, located
from keyhole.reviews.files import KEYED, LINKED, Files, ReviewFile, read_steadily, scenario_key_of
from keyhole.reviews.scenario_checks import check_scenarios
from keyhole.reviews.schema import DERIVE, REPEATED, SECTIONS, TOP, question_of
from keyhole.reviews.settings import (
    DataSettings,
    Review,
    ScenarioSettings,
    resolve,
    resolve_protection,
    resolve_study,
    resolve_synthesis,
)
from keyhole.reviews.source import Problem, ReviewSource, ValuePath, named_scenario, read_source
from keyhole.reviews.stages.protection import check_protection
from keyhole.reviews.stages.synthesis import check_synthesis
from keyhole.reviews.study_checks import check_study

Values = dict[str, Any]
IN_MEMORY = ("environment", "scenario", "protection", "synthesis", "study", "table", "tabulate")
"""The sections that need the values of the whole file in memory."""
VERB_OF = {"exposure": "risk", "uniques": "uniques", "drivers": "drivers", "screen": "screen"}
"""The verbs of sections whose settings are checked against one another by the verb itself."""


def read_review(path: str | os.PathLike[str], content: bytes | None = None) -> tuple[Review, Files]:
    """Read and check a review file, and load the files it is about, by their part in it.

    `content` is what the file is about to hold, if that is to be checked before it is written. All
    problems are raised at once, each with its line.
    """
    source = read_source(path, content)
    problems, sections = _structure(source)
    reviewed, found = _data(source, sections)
    problems += found
    files: dict[str, ReviewFile] = {} if reviewed is None else {"data": reviewed}
    study = scenarios = None
    if reviewed is not None:
        scenarios, more, found = _scenario_keys(source, sections, reviewed)
        files |= more
        problems += found
    if "study" in sections:
        asked = resolve_study(sections["study"])
        study, attacked, found = check_study(
            source, asked, reviewed, scenario_key_of(files, LINKED)
        )
        files |= attacked
        problems += found
    if reviewed is not None:
        problems += _columns(source, sections, reviewed.data)
        problems += _fitness(source, sections, reviewed.data)
    problems += _together(source, sections)
    if reviewed is not None:
        review = dataclasses.replace(
            resolve(source, sections, reviewed.data), study=study, scenarios=scenarios
        )
        problems += _resolved(source, review)
        if "protection" in sections or review.release.drops:
            planned = resolve_protection(sections.get("protection", {}), review)
            protection, found = check_protection(source, planned, reviewed.data)
            review = dataclasses.replace(review, protection=protection)
            problems += found
        tables, found = _tables(source, reviewed.data)
        review = dataclasses.replace(review, **tables)
        problems += found
        if "synthesis" in sections:
            given = resolve_synthesis(sections["synthesis"], review)
            synthesis, found = check_synthesis(source, given, _started(review, reviewed.data))
            review = dataclasses.replace(review, synthesis=synthesis)
            problems += found
    if problems or reviewed is None:
        raise InputError(dict.fromkeys(text for _, text in sorted(problems)))
    return review, files


def _started(review: Review, data: Microdata) -> Microdata:
    """Return the file without what the steps of the release before a synthesis surely drop."""
    if review.release.product != "synthesis" or not review.release.protects:
        return data
    dropped = set(review.release.drop)
    if review.protection is not None and review.protection.plan:
        steps = Plan.parse(review.protection.plan).steps
        dropped |= {n for step in steps if step.definition.effect == "drops" for n in step.columns}
    return data.select([name for name in data.names if name not in dropped])


def _scenario_keys(
    source: ReviewSource, sections: dict[str, Values], reviewed: ReviewFile
) -> tuple[ScenarioSettings | None, dict[str, ReviewFile], list[Problem]]:
    """Derive the keys of scenarios; where the review's are one's, they become a list."""
    settings, files, problems = check_scenarios(source, sections, reviewed)
    if named_scenario(sections[""].get("keys")) is not None:
        key = scenario_key_of(files, KEYED)
        sections[""]["keys"] = [] if key is None else list(key.keys)
    return settings, files, problems


def _structure(source: ReviewSource) -> tuple[list[Problem], dict[str, Values]]:
    """Check names and types; return what is wrong, and what is fit by section."""
    problems: list[Problem] = []
    sections: dict[str, Values] = {"": {}}
    for name, value in source.values.items():
        if name == "scenario" and isinstance(value, Mapping):
            sections[name] = dict(value)  # its tables have names of their own
        elif name == DERIVE and isinstance(value, Mapping):
            found, sections[name] = derived_columns(source, value)
            problems += found
        elif name in REPEATED and isinstance(value, Mapping | list):
            sections[name] = {}  # each of them is checked by itself
        elif name in SECTIONS and isinstance(value, Mapping):
            found, fit = _section(source, (name,), value, SECTIONS[name])
            problems += found
            sections[name] = fit
        elif name in TOP:
            found, fit = _section(source, (), {name: value}, TOP)
            problems += found
            sections[""] |= fit
        else:
            problems.append(source.problem((name,), _unknown_top(name, value)))
    missing = [s for s in ("data",) if s not in source.values]
    problems += [source.problem((), f"section [{s}] is missing. Add it.") for s in missing]
    return problems, sections


def _unknown_top(name: str, value: Any) -> str:
    if name in (*SECTIONS, DERIVE):
        return f"{name} must be a section, headed [{name}]. Got {shown_value(value)} instead."
    sections = [*SECTIONS, DERIVE]
    known = [f"[{s}]" for s in sections] if isinstance(value, Mapping) else [*TOP, *sections]
    shown = f"[{name}]" if isinstance(value, Mapping) else name
    near = nearest(shown, known, most=1)
    remedy = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    return f"{shown} is not known. {remedy}"


def _section(
    source: ReviewSource, at: ValuePath, given: Mapping[str, Any], known: Mapping[str, Parameter]
) -> tuple[list[Problem], Values]:
    problems: list[Problem] = []
    fit: Values = {}
    where = f"[{at[0]}]" if at else ""
    for name, value in given.items():
        title = f"{where} {name}".strip()
        if name not in known:
            text = unknown_problems(known, {name: value}, where)[0].strip()
            problems.append(source.problem((*at, name), text))
        elif (fault := known[name].kind.fault(value)) is not None:
            text = f"{title} must be {fault}. Got {known[name].shown(value)} instead."
            problems.append(source.problem((*at, name), text))
        else:
            fit[name] = value
    for name, setting in known.items():
        if setting.required and name not in given:
            text = f"{where} needs {name!r}: {setting.help.rstrip('.')}."
            problems.append(source.problem(at, text))
    return problems, fit


def _data(
    source: ReviewSource, sections: Mapping[str, Values]
) -> tuple[ReviewFile | None, list[Problem]]:
    """Load the data; if a column it is told about does not exist, load it without."""
    given = sections.get("data", {})
    if "file" not in given:
        return None, []
    only = next((f"[{name}]" for name in IN_MEMORY if name in sections), "")
    settings = DataSettings(**given, derive=sections.get(DERIVE, {}))
    at = ("data", "file")
    try:
        return _reviewed(source, settings, settings.declared(), only), []
    except ColumnError as error:
        told = [source.problem(_named(text, settings), text) for text in error.problems]
    except InputError as error:
        return None, [source.problem(at, text) for text in error.problems]
    reading = {k: v for k, v in given.items() if k in ("encoding", "delimiter", "sheet", "name")}
    try:
        found = _reviewed(source, dataclasses.replace(settings, derive={}), reading, only)
    except InputError as error:
        return None, [source.problem(at, text) for text in error.problems]
    # Columns that do not exist are told with their own lines; what is left is told here.
    known = (*found.data.names, *settings.derive)
    absent_columns = any(_absent_in(source, ("data",), given, SECTIONS["data"], found.data, known))
    derived = [one for one in told if "derived column" in one[1]]
    return found, derived if absent_columns else told


def _named(text: str, settings: DataSettings) -> ValuePath:
    """Return the setting that a problem with the data is told at."""
    found = (name for name in settings.derive if text.startswith(f"derived column {shown(name)}"))
    name = next(found, None)
    return ("data",) if name is None else (DERIVE, name)


def _reviewed(
    source: ReviewSource, settings: DataSettings, options: Values, in_memory_for: str
) -> ReviewFile:
    path = source.path.parent / settings.file
    derive, codings = located(settings.derive, source.path.parent)
    read_it = partial(
        _open,
        codings=codings,
        engine=settings.engine,
        memory=settings.memory,
        in_memory_for=in_memory_for,
        derive=derive or None,
        **options,
    )
    found, digest = read_steadily(path, read_it)
    data = cast(Microdata, found)  # what is on disk offers all that the other stages ask for
    read = {name: value for name, value in settings.declared().items() if name != "labels"}
    if derive:
        read |= {DERIVE: dict(settings.derive), "codings": codings}
    return ReviewFile(settings.file, data, digest, read)


def _open(path: Path, codings: Mapping[str, str], **options: Any) -> Records:  # noqa: ARG001
    """Open the file under review; it is read anew where a coding has changed."""
    return open_records(path, **options)


def _columns(
    source: ReviewSource, sections: Mapping[str, Values], data: Microdata
) -> list[Problem]:
    """Say of each column named and not there so, on its own line."""
    known = {"": TOP, **SECTIONS}
    derived = source.values.get(DERIVE)
    made = derived if isinstance(derived, Mapping) else {}  # what cannot be made is told there
    names = tuple(dict.fromkeys([*data.names, *made]))
    return [
        problem
        for section, given in sections.items()
        if section in known and section != "study"  # whose columns are those of its own files
        for problem in _absent_in(
            source, (section,) if section else (), given, known[section], data, names
        )
    ]


def _absent_in(
    source: ReviewSource,
    at: ValuePath,
    given: Values,
    known: Mapping[str, Parameter],
    data: Microdata,
    names: tuple[str, ...] = (),
) -> Iterator[Problem]:
    file = repr(data.name)
    for name, value in given.items():
        setting = known[name]
        for where, column in setting.columns(value):
            purpose = setting.kind.purpose or name
            for text in absent([column], names or data.names, purpose=purpose, where=file):
                yield source.problem((*at, name, *where), text)


def _fitness(
    source: ReviewSource, sections: Mapping[str, Values], data: Microdata
) -> list[Problem]:
    """Check that there are records, and that the weight is one."""
    problems: list[Problem] = []
    if data.records == 0:
        text = f"{data.name!r} has a header but no records. Give a file with records."
        problems.append(source.problem(("data", "file"), text))
    name, at = _weight(sections, data)
    if name in data.names:
        try:
            data.weights(name)
        except ColumnError as error:
            problems += [source.problem(at, text) for text in error.problems]
    return problems


def _weight(sections: Mapping[str, Values], data: Microdata) -> tuple[str, ValuePath]:
    given = sections.get("exposure", {})
    if "weight" in given:
        return given["weight"], ("exposure", "weight")
    roles = data.role("weight")
    single = len(roles) == 1 and "fraction" not in given
    return roles[0] if single else "", ("data", "roles")


def _together(source: ReviewSource, sections: Mapping[str, Values]) -> list[Problem]:
    """Check settings against one another."""
    top = sections[""]
    selection = sections.get("selection", {})
    release = sections.get("release", {})
    product = release.get("product", "file")
    one_by_one = [name for name in ("steps", "take", "drop") if name in release]
    checks: list[tuple[bool, ValuePath, str]] = [
        ("method" in selection and "methods" in selection, ("selection", "methods"),
         "[selection] method and methods say the same. Give one of them."),
        ("frontier" in sections and "selection" not in source.values, ("frontier",),
         "[frontier] needs a [selection], which says what is kept and what may be chosen."),
        ("tabulate" in sections and "synthesis" not in source.values, ("tabulate",),
         "[tabulate] needs a [synthesis], whose release it tabulates."),
        ("keys" in top and "keys" in sections, ("keys",), "keys are given twice. Give them once."),
        (product not in ("file", *source.values), ("release", "product"),
         f"[release] product is {product!r}, but there is no [{product}]. Add it, or name another "
         f"product."),
        ("product" in release and bool(one_by_one), ("release", "product"),
         f"[release] product names one product by itself, and {' and '.join(one_by_one)} "
         f"{'belongs' if len(one_by_one) == 1 else 'belong'} to a release made step by step. "
         f"Leave one of them out."),
        ("take" in release and "selection" not in source.values, ("release", "take"),
         "[release] take needs a [selection], of whose variables it names some."),
        *((name not in source.values, ("release", "steps", place),
           f"[release] steps has {name!r}, but there is no [{name}]. Add it, or leave it out.")
          for place, name in enumerate(release.get("steps", ()))),
        *((("named_groups" in sections.get(name, {}) and by not in sections[name]),
           (name, "named_groups"), f"[{name}] named_groups needs {by!r}, whose groups they are.")
          for name, by in (("exposure", "by"), ("selection", "by"), ("study", "strata"))),
        *((not isinstance(sections.get(name, {}).get("by", ""), str), (name, "by"),
           f"[{name}] by must be one column in a review. Derive one from several, as in "
           f'[derive] group = "join(sex, region)".') for name in ("exposure", "selection")),
    ]  # fmt: skip
    return [source.problem(at, text) for wrong, at, text in checks if wrong]


def _resolved(source: ReviewSource, review: Review) -> list[Problem]:
    """Check what only shows when defaults are in place."""
    problems: list[tuple[ValuePath, str]] = []
    if not review.keys and "keys" not in source.values:
        text = 'keys are missing: say what an intruder could know, as in keys = ["age", "sex"].'
        problems.append(((), text))
    for section, verb in VERB_OF.items():
        problems += _verb_problems(review, section, verb)
    if review.uniques is not None:
        problems += _uniques_problems(review.uniques, len(review.keys))
    if review.selection is not None:
        given = source.values["selection"]
        problems += _selection_problems(review, given)
    return [source.problem(at, text) for at, text in problems]


def _verb_problems(review: Review, section: str, verb: str) -> Iterator[tuple[ValuePath, str]]:
    """Word what a verb says of options that depend on each other as the review names them."""
    question: Question | None = getattr(review, section)
    if question is None:
        return
    given = {"keys": review.keys, "cutoff": review.exposure.cutoff, **question.values}
    for name, text in _worded(bind(VERBS[verb].function(), given), section, question.parameters):
        yield (section, name), text


def _worded(
    asked: Question, section: str, known: Mapping[str, Parameter]
) -> Iterator[tuple[str, str]]:
    """Word the problems of options that depend on each other, each with the first it names."""
    for problem in asked.problems:
        if isinstance(problem, OptionProblem):
            for name in [name for name in problem.options if name in known][:1]:
                yield name, problem.named(lambda n: f"[{section}] {n}" if n in known else n)


def _tables(source: ReviewSource, data: Microdata) -> tuple[dict[str, Any], list[Problem]]:
    """Check each of the sections that may be there several times; return them by name."""
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for section in REPEATED:
        given = source.values.get(section, [])
        several = isinstance(given, list)
        questions = []
        for place, one in enumerate(given if several else [given]):
            at = (section, place) if several else (section,)
            if not isinstance(one, Mapping):
                text = f"{section} must be a section, headed [{section}] or [[{section}]]."
                problems.append(source.problem(at, text))
                continue
            wrong, fit = _section(source, at, one, SECTIONS[section])
            wrong += _absent_in(source, at, fit, SECTIONS[section], data)
            question = question_of(section, fit)
            wrong = wrong or [
                source.problem((*at, name), text)
                for name, text in _table_problems(section, question, data)
            ]
            problems += wrong
            questions.append(question)
        found[section] = tuple(questions)
    return found, problems


def _table_problems(section: str, question: Question, data: Microdata) -> Iterator[tuple[str, str]]:
    """Say what is wrong with fit settings of a table, together and for the file."""
    from keyhole.protection.tables.publication import table_data_problems
    from keyhole.utility.tabulation import figures_of

    asked = bind(VERBS[section].function(), question.values)
    wrong = list(_worded(asked, section, question.parameters))
    if not wrong and data.records:
        texts = (
            table_data_problems(data, question)
            if section == "table"
            else raised(lambda: figures_of([data], question.weight, question.mean))
        )
        wrong += [("rows", f"[{section}] {text}") for text in texts]
    yield from wrong


def _uniques_problems(uniques: Question, keys: int) -> Iterator[tuple[ValuePath, str]]:
    """Say where a score is not defined: the report needs one."""
    if keys and not 2 <= keys <= MOST_VARIABLES:
        yield ("uniques",), f"[uniques] needs 2 to {MOST_VARIABLES} keys. Got {keys} instead."
    elif uniques.max_size == keys:
        text = f"[uniques] max_size must be below the number of keys ({keys}). Got {keys} instead."
        yield ("uniques", "max_size"), text


def _selection_problems(review: Review, given: Mapping[str, Any]) -> list[tuple[ValuePath, str]]:
    from keyhole.selection.select import select

    assert review.selection is not None
    chosen = review.selection
    if not chosen.candidates:
        left = bool(review.keys) and "candidates" not in given
        text = "[selection] has no candidates left. Name those that are not kept."
        return [(("selection",), text)] * left
    asked = bind(select, {**chosen.values, "method": chosen.methods[0]})
    return [
        (("selection", problem.options[0]), problem.named(lambda name: f"[selection] {name}"))
        for problem in asked.problems
        if isinstance(problem, OptionProblem)
    ]
