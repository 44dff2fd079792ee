"""A review file is checked as a whole before anything runs: every problem, with its line."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from keyhole.core import expressions
from keyhole.core.names import absent, nearest, quoted, shown
from keyhole.core.options import Parameter, Question, bind, shown_value, unknown_problems, worded
from keyhole.core.verbs import VERBS
from keyhole.data import Microdata
from keyhole.engines.choose import open_records
from keyhole.engines.protocol import Records
from keyhole.errors import ColumnError, InputError
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.protection.plan import Plan
from keyhole.protection.tables.asked import table_data_problems
from keyhole.reviews.files import (
    KEYED,
    LINKED,
    Files,
    ReviewFile,
    ReviewSource,
    ValuePath,
    allowed,
    hash_or_none,
    named_scenario,
    read_source,
    read_steadily,
    scenario_key_of,
)
from keyhole.reviews.input_checks import check_scenarios, check_study
from keyhole.reviews.schema import DERIVE, REPEATED, SECTIONS, TOP, question_of
from keyhole.reviews.settings import (
    DataSettings,
    Review,
    resolve,
    resolve_attacks,
    resolve_protection,
    resolve_study,
    resolve_synthesis,
)
from keyhole.reviews.stages.attacks import check_attacks
from keyhole.reviews.stages.outgoing import derived_columns
from keyhole.reviews.stages.products import check_protection, check_synthesis
from keyhole.reviews.stages.selection import ladder_problems, located_ladders
from keyhole.selection.solve import unmet_limits
from keyhole.utility.tabulation import figures_of

Values = dict[str, Any]
IN_MEMORY = ("environment", "scenario", "protection", "synthesis", "study", "attacks", "table",
             "tabulate")  # fmt: skip
"""The sections that need the values of the whole file in memory."""
VERB_OF = {"exposure": "risk", "uniques": "uniques", "drivers": "drivers", "screen": "screen"}
"""The verbs of sections whose settings are checked against one another by the verb itself."""


def read_review(path: str | os.PathLike[str], content: bytes | None = None) -> tuple[Review, Files]:
    """Read and check a review file, or what it is about to hold, and load the files it names."""
    source = read_source(path, content)
    sections = _structure(source)
    reviewed = _data(source, sections)
    files: dict[str, ReviewFile] = {} if reviewed is None else {"data": reviewed}
    study = scenarios = None
    if reviewed is not None:
        scenarios, keyed = check_scenarios(source, sections, reviewed)
        files |= keyed
        if named_scenario(sections[""].get("keys")) is not None:
            key = scenario_key_of(files, KEYED)
            sections[""]["keys"] = [] if key is None else list(key.keys)
    if "study" in sections:
        asked = resolve_study(sections["study"])
        study, attacked = check_study(source, asked, reviewed, scenario_key_of(files, LINKED))
        files |= attacked
    _together(source, sections)
    if reviewed is not None:
        _columns(source, sections, reviewed.data)
        review = dataclasses.replace(
            resolve(source, sections, reviewed.data), study=study, scenarios=scenarios
        )
        _resolved(source, review, reviewed.data)
        if "protection" in sections or review.release.drops:
            planned = resolve_protection(sections.get("protection", {}), review)
            protection = check_protection(source, planned, reviewed.data)
            review = dataclasses.replace(review, protection=protection)
        # Reasons may be those of columns which the plan derives.
        written = review.protection and review.protection.plan
        plan = Plan.parse(written) if written else None
        names = tuple(dict.fromkeys([*reviewed.data.names, *derived_columns(review, plan)]))
        reasons = {"not_knowable": review.release.not_knowable}
        for where, text in _absent(reasons, SECTIONS["release"], reviewed.data, names):
            source.say(("release", *where), text)
        review = dataclasses.replace(review, **_tables(source, reviewed.data))
        if "synthesis" in sections:
            given = resolve_synthesis(sections["synthesis"], review)
            data = reviewed.data
            if review.release.product == "synthesis" and review.release.protects:
                # Without what the steps of the release before a synthesis surely drop.
                steps = () if plan is None else plan.steps
                drops = (step.columns for step in steps if step.definition.effect == "drops")
                gone = {*review.release.drop, *(name for names in drops for name in names)}
                data = data.select([name for name in data.names if name not in gone])
            synthesis = check_synthesis(source, given, data)
            review = dataclasses.replace(review, synthesis=synthesis)
        if "attacks" in sections:
            attacks = resolve_attacks(sections["attacks"], review, reviewed.data)
            files |= check_attacks(source, attacks, review, reviewed)
            review = dataclasses.replace(review, attacks=attacks)
    if source.problems or reviewed is None:
        raise InputError(dict.fromkeys(text for _, text in sorted(source.problems)))
    return review, files


def _structure(source: ReviewSource) -> dict[str, Values]:
    sections: dict[str, Values] = {"": {}}
    for name, value in source.values.items():
        if name == "scenario" and isinstance(value, Mapping):
            sections[name] = dict(value)  # its tables have names of their own
        elif name == DERIVE and isinstance(value, Mapping):
            sections[name] = _derived(source, value)
        elif name in REPEATED and isinstance(value, Mapping | list):
            sections[name] = {}  # each of them is checked by itself
        elif name in SECTIONS and isinstance(value, Mapping):
            sections[name] = _section(source, (name,), value, SECTIONS[name])
        elif name in TOP:
            sections[""] |= _section(source, (), {name: value}, TOP)
        elif name in (*SECTIONS, DERIVE):
            got = f"Got {shown_value(value)} instead."
            source.say((name,), f"{name} must be a section, headed [{name}]. {got}")
        else:
            headed = [f"[{one}]" for one in (*SECTIONS, DERIVE)]
            known = headed if isinstance(value, Mapping) else [*TOP, *SECTIONS, DERIVE]
            written = f"[{name}]" if isinstance(value, Mapping) else name
            near = nearest(written, known, most=1)
            remedy = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            source.say((name,), f"{written} is not known. {remedy}")
    if "data" not in source.values:
        source.say((), "section [data] is missing. Add it.")
    return sections


def _section(
    source: ReviewSource, at: ValuePath, given: Mapping[str, Any], known: Mapping[str, Parameter]
) -> Values:
    fit = {}
    where = f"[{at[0]}]" if at else ""
    for name, value in given.items():
        if name not in known:
            text = unknown_problems(known, {name: value}, where)[0]
        elif (fault := known[name].kind.fault(value)) is not None:
            text = f"{where} {name} must be {fault}. Got {known[name].shown(value)} instead."
        else:
            fit[name] = value
            continue
        source.say((*at, name), text.strip())
    for name, setting in known.items():
        if setting.required and name not in given:
            source.say(at, f"{where} needs {name!r}: {setting.help.rstrip('.')}.")
    return fit


def _derived(source: ReviewSource, given: Mapping[str, Any]) -> dict[str, str]:
    fit: dict[str, str] = {}
    for place, (name, text) in enumerate(given.items(), 1):
        if not isinstance(text, str) or not text.strip() or not name:
            wanted = 'an expression, as in age10 = "band(age, 10)"'
            told = f"[derive] {name} must be {wanted}. Got {shown_value(text)} instead."
            source.say((DERIVE, name), told)
            continue
        # What is defined above is known; what is below has a stand-in that is fit.
        below = {one: "year(_)" for one in [*given][place:] if one}
        wrong = [
            f"[derive] {one}"
            for one in expressions.definition_problems({**fit, name: text, **below})
            if one.startswith(f"derived column {shown(name)}")
        ]
        source.say((DERIVE, name), *wrong)
        if not wrong:
            fit |= expressions.Derivations().settle({name: text})
    return fit


def _data(source: ReviewSource, sections: Mapping[str, Values]) -> ReviewFile | None:
    """Load the data; if a column it is told about does not exist, load it without."""
    given = sections.get("data", {})
    if "file" not in given:
        return None
    only = next((f"[{name}]" for name in IN_MEMORY if name in sections), "")
    settings = DataSettings(**given, derive=sections.get(DERIVE, {}))
    told: tuple[str, ...] = ()
    found = None
    with source.telling(("data", "file")):
        try:
            return _reviewed(source, settings, settings.declared(), only)
        except ColumnError as error:
            told = error.problems
        how = {k: v for k, v in given.items() if k in ("encoding", "delimiter", "sheet", "name")}
        found = _reviewed(source, dataclasses.replace(settings, derive={}), how, only)
    # Columns that do not exist are told with their own lines; what is left is told here.
    some_absent = found is not None and any(
        _absent(given, SECTIONS["data"], found.data, (*found.data.names, *settings.derive))
    )
    for text in told if found is not None else ():
        begun = [n for n in settings.derive if text.startswith(f"derived column {shown(n)}")]
        if not some_absent or "derived column" in text:
            source.say((DERIVE, begun[0]) if begun else ("data",), text)
    return found


def _reviewed(
    source: ReviewSource, settings: DataSettings, options: Values, in_memory_for: str
) -> ReviewFile:
    folder, derive, codings = source.path.parent, dict[str, str](), dict[str, str]()
    for name, text in settings.derive.items():  # files are seen from the folder of the review
        tree = expressions.parse_expression(text)
        codings |= {
            file: hash_or_none(allowed(folder / file)) or ""
            for file in expressions.coding_files(tree)
        }
        derive[name] = str(expressions.map_files(tree, lambda file: os.fspath(folder / file)))
    book = settings.codebook and allowed(folder / settings.codebook)
    if book:
        codings[str(settings.codebook)] = hash_or_none(book) or ""
    read_it = partial(
        _open,
        codings=codings,
        engine=settings.engine,
        memory=settings.memory,
        in_memory_for=in_memory_for,
        derive=derive or None,
        codebook=book,
        **options,
    )
    found, digest = read_steadily(folder / settings.file, read_it)
    data = cast(Microdata, found)  # what is on disk offers all that the other stages ask for
    read = {name: value for name, value in settings.declared().items() if name != "labels"}
    if derive:
        read |= {DERIVE: dict(settings.derive)}
    if codings or derive:
        read["codings"] = codings
    return ReviewFile(settings.file, data, digest, read)


def _open(path: Path, codings: Mapping[str, str], **options: Any) -> Records:  # noqa: ARG001
    """Open the file under review; it is read anew where a coding has changed."""
    return open_records(path, **options)


def _columns(source: ReviewSource, sections: Mapping[str, Values], data: Microdata) -> None:
    """Say of each column named and not there so, on its own line; check records and the weight."""
    known = {"": TOP, **SECTIONS}
    derived = source.values.get(DERIVE)
    made = derived if isinstance(derived, Mapping) else {}  # what cannot be made is told there
    names = tuple(dict.fromkeys([*data.names, *made]))
    for section, given in sections.items():
        if section in known and section != "study":  # whose columns are those of its own files
            # A reason may be that of a column which the plan derives: it is looked at later.
            looked = {n: value for n, value in given.items() if n != "not_knowable"}
            for where, text in _absent(looked, known[section], data, names):
                source.say((section, *where) if section else where, text)
    if data.records == 0:
        text = f"{data.name!r} has a header but no records. Give a file with records."
        source.say(("data", "file"), text)
    given, roles = sections.get("exposure", {}), data.role("weight")
    by_role = roles[0] if len(roles) == 1 and "fraction" not in given else ""
    if (name := given.get("weight", by_role)) in data.names:
        with source.telling(("exposure", "weight") if "weight" in given else ("data", "roles")):
            data.weights(name)


def _absent(
    given: Values, known: Mapping[str, Parameter], data: Microdata, names: tuple[str, ...]
) -> Iterator[tuple[ValuePath, str]]:
    """Yield where in a section a column is named that the file does not have, and say so."""
    for name, value in given.items():
        for where, column in known[name].columns(value):
            purpose = known[name].kind.purpose or name
            for text in absent([column], names, purpose=purpose, where=repr(data.name)):
                yield (name, *where), text


def _together(source: ReviewSource, sections: Mapping[str, Values]) -> None:
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
         "[release] take needs a [selection]: it names some of its variables."),
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
    for wrong, at, text in checks:
        if wrong:
            source.say(at, text)


def _resolved(source: ReviewSource, review: Review, data: Microdata) -> None:
    """Check what only shows when defaults are in place."""
    keys, chosen, uniques = len(review.keys), review.selection, review.uniques
    if not keys and "keys" not in source.values:
        text = 'keys are missing: name what an intruder could know, as in keys = ["age", "sex"].'
        source.say((), text)
    for section, verb in VERB_OF.items():
        question: Question | None = getattr(review, section)
        if question is not None:
            given = {"keys": review.keys, "cutoff": review.exposure.cutoff, **question.values}
            _say_together(source, (section,), bind(VERBS[verb].function(), given), question)
    if uniques is not None and keys and not 2 <= keys <= MOST_VARIABLES:
        text = f"[uniques] needs 2 to {MOST_VARIABLES} keys. Got {keys} instead."
        source.say(("uniques",), text)
    elif uniques is not None and uniques.max_size == keys:
        text = f"[uniques] max_size must be below the number of keys ({keys}). Got {keys} instead."
        source.say(("uniques", "max_size"), text)
    solved = review.solve
    if solved is not None and keys:
        ladders, wrong = located_ladders(source.path, solved.ladders)
        wrong += ladder_problems(data, ladders) if data.records else []
        source.say(("solve", "ladders"), *(f"[solve] ladders: {one}" for one in wrong))
        given = {**solved.values, "ladders": None if wrong else ladders or None}
        if solved.limit is None:
            source.say(("solve",), "[solve] needs a limit: set it here, or in [exposure].")
        else:
            weight, cutoff = review.exposure.weight, review.exposure.cutoff
            given |= {"weight": weight, "cutoff": cutoff}
            asked = bind(VERBS["solve"].function(), given)
            clear = not _say_together(source, ("solve",), asked, solved) and not source.problems
            if clear and data.records:
                with source.telling(("solve", "homogeneous_limit"), "[solve] "):
                    beyond = unmet_limits(asked, data)
                    asked = dataclasses.replace(asked, problems=(beyond,) if beyond else ())
                    _say_together(source, ("solve",), asked, solved)
    told = review.attributes
    if told is not None and not told.sensitive:
        text = "[attributes] needs 'sensitive': name a column, or give one the role sensitive."
        source.say(("attributes",), text)
    elif told is not None and (both := [n for n in told.sensitive if n in review.keys]):
        text = f"[attributes] sensitive must not be keys. Got {quoted(both)} as both."
        source.say(("attributes", "sensitive"), text)
    if chosen is not None and chosen.candidates:
        asked = bind(VERBS["select"].function(), {**chosen.values, "method": chosen.methods[0]})
        _say_together(source, ("selection",), asked, chosen)
    elif chosen is not None and keys and "candidates" not in source.values["selection"]:
        text = "[selection] has no candidates: all are in keep. Name some that are not."
        source.say(("selection",), text)


def _say_together(source: ReviewSource, at: ValuePath, asked: Question, section: Question) -> bool:
    """Word what a verb says of options that depend on each other as the review names them."""
    known, said = section.parameters, False
    for problem in asked.problems:
        named = [n for n in getattr(problem, "options", ()) if n in known]
        if named:
            text = worded(problem, lambda n: f"[{at[0]}] {n}" if n in known else n)
            source.say((*at, named[0]), text)
            said = True
    return said


def _tables(source: ReviewSource, data: Microdata) -> Values:
    """Check each of the sections that may be there several times; return them by name."""
    found: Values = {}
    for section in REPEATED:
        given = source.values.get(section, [])
        several = isinstance(given, list)
        questions = []
        for place, one in enumerate(given if several else [given]):
            at: ValuePath = (section, place) if several else (section,)
            if not isinstance(one, Mapping):
                source.say(at, f"{section} must be a section, headed [{section}] or [[{section}]].")
                continue
            before = len(source.problems)
            fit = _section(source, at, one, SECTIONS[section])
            for where, text in _absent(fit, SECTIONS[section], data, data.names):
                source.say((*at, *where), text)
            question = question_of(section, fit)
            questions.append(question)
            asked = bind(VERBS[section].function(), question.values)
            if len(source.problems) > before or _say_together(source, at, asked, question):
                continue
            with source.telling((*at, "rows"), f"[{section}] "):
                if section == "tabulate" and data.records:
                    figures_of([data], question.weight, question.mean)
                elif data.records and (texts := table_data_problems(data, question)):
                    raise InputError(texts)
        found[section] = tuple(questions)
    return found
