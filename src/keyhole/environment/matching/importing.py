"""Imports into a store: forms, public sources, targets and scenarios from files.

``keyhole environment import`` proposes where each field belongs and follows what is sure enough,
or what a person decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from keyhole.core.names import quoted, repeated, shown
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption
from keyhole.data.reading import EncodingOption
from keyhole.environment import options
from keyhole.environment.exchange import current_user, decode, encode_thing, open_writing
from keyhole.environment.importers.microdata import capture_microdata, read_labels
from keyhole.environment.importers.reading import read_forms
from keyhole.environment.listing import list_environment
from keyhole.environment.mapping.mapping import class_of
from keyhole.environment.matching import adding
from keyhole.environment.matching.proposals import (
    Decision,
    Proposals,
    proposals_to_toml,
    read_decision_file,
)
from keyhole.environment.matching.proposals import propose as propose_fields
from keyhole.environment.model import CapturedForm, Environment
from keyhole.environment.scenarios.scenarios import read_scenarios
from keyhole.environment.soundness import KIND_OF, assembled, entities, without
from keyhole.environment.verbs import store_written
from keyhole.environment.wording import require_none
from keyhole.errors import InputError, OptionError

Followed = tuple[Any, Environment, str]
"""What is reported, the environment afterwards, and the note for the history."""


@documented
def import_files(
    store: options.StoreFile,
    files: Annotated[
        Any,
        Option(
            "Forms: JSON Schema, REDCap, XLSForm, LimeSurvey, SurveyJS, ONS eQ, DDI, SDMX, labels "
            "of SPSS, Stata or SAS, a plain questionnaire (text, Markdown, CSV), or a table of "
            "keyhole's own layout. A target: the file that may be released. Scenarios: TOML. Left "
            "out with a form: its pending fields in the store.",
            kind=options.Files(),
            argument=True,
        ),
    ] = (),
    *,
    as_: Annotated[
        Literal["form", "source", "target", "scenario"], Option("What the files are.")
    ] = "form",
    name: Annotated[
        str | None, Option("The name of the form, source or target.", metavar="NAME")
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "Of a file with several forms, this one; without a file, the form (or source, or "
            "target) of the store whose pending fields are decided on.",
            metavar="NAME",
        ),
    ] = None,
    pending: Annotated[
        bool,
        Option("Instead of files: the pending fields of the whole store, one per distinct text."),
    ] = False,
    kind: Annotated[
        str | None,
        Option(
            "json schema, redcap, xlsform, limesurvey, surveyjs, eq, ddi, labels, sdmx, table, "
            "questions or plain; detected by default.",
            metavar="KIND",
        ),
    ] = None,
    organisation: Annotated[str | None, Option("Who collects the data.", metavar="O")] = None,
    sector: options.SectorOption = None,
    purpose: options.PurposeOption = None,
    class_: options.ClassOption = None,
    collected: Annotated[
        Any, Option("The day of collection, as 2024-05-31.", kind=options.Day())
    ] = None,
    method: options.MethodOption | None = None,
    statement: options.StatementOption = None,
    search_parameters: options.SearchOption = None,
    time_frame: options.TimeFrameOption = None,
    social_group: options.GroupOption = None,
    ranks: Annotated[
        Sequence[int] | None,
        Option("Of a source: the ranks of mode (1-4), scope and cost (1-3).", kind=options.Ranks()),
    ] = None,
    type_: Annotated[
        Sequence[str] | None,
        Option(
            "Of a source: formal or informal; collected, self-disclosed, observed or secondary; "
            "compelled or voluntary.",
            kind=options.SourceTypes(),
        ),
    ] = None,
    coverage: Annotated[str | None, Option("Of a source: which people it covers.")] = None,
    labels: Annotated[
        options.AnyPath | None,
        options.file_option(
            "Labels of a target's columns: name, label, code, category.", "LABELS.csv"
        ),
    ] = None,
    accept: Annotated[
        float,
        Option(
            "Proposals of this score or more are accepted; the other fields are pending.",
            low=0,
            high=1,
            metavar="S",
        ),
    ] = 0.8,
    propose: Annotated[
        options.AnyPath | None,
        options.file_option(
            "Write the proposals for one form, or for all pending fields, to a file to be edited "
            "and given as decisions; nothing is stored.",
            "FILE.toml",
        ),
    ] = None,
    decisions: Annotated[
        options.AnyPath | None,
        options.file_option(
            "A file of decisions on the fields of one form, used instead of the proposals; or of "
            "several forms of the store, each decision with its form.",
            "FILE.toml",
        ),
    ] = None,
    replace: Annotated[bool, Option("Replace what has the same name.")] = False,
    dry_run: Annotated[bool, Option("Only report what would be done; nothing is stored.")] = False,
    who: options.Who = None,
    encoding: EncodingOption = None,
    force: ForceOption = False,
) -> options.VerbOutcome:
    """Add forms, a public source, a target or scenarios; or resolve pending fields.

    A construct and a coding are proposed for each field, with the reason. Fields whose best
    proposal scores lower than asked are kept as pending and listed; every merge is reported.
    """
    asked = bind(import_files, locals())
    asked.require()
    opened = open_writing(store)
    snapshot = opened.read()
    whole = pending or (decisions is not None and not asked.files and form is None)
    if as_ == "scenario":
        found, environment, note = _add_scenarios(snapshot.environment, asked)
    elif whole:
        found, environment, note = _decided(snapshot.environment, asked)
    else:
        captured = _captured(snapshot.environment, asked)
        found, environment, note = _followed(snapshot.environment, captured, asked)
    if propose is not None:
        told = options.written("proposals", propose, proposals_to_toml(found), force=force)
        return options.VerbOutcome(found, (told,))
    if dry_run:
        return options.VerbOutcome(found)
    opened.write(snapshot, environment, who=who or current_user(), note=note[:400])
    return options.VerbOutcome(found, (store_written(store, opened),))


def import_files_problems(asked: Question) -> Iterator[Problem]:
    """Refuse options that do not go together."""
    if asked.propose is not None and asked.decisions is not None:
        yield Problem("{propose} writes what {decisions} reads. Give one of them.")
    if not (asked.files or asked.form is not None or asked.pending or asked.decisions is not None):
        yield Problem(
            "give files to import, {form} with the name of a form of the store, or {pending}."
        )
    if asked.pending and (asked.files or asked.form is not None or asked.as_ != "form"):
        yield Problem("{pending} is the whole store. Leave out files, {form} and {as_}.")
    told = (asked.form, asked.name, asked.propose, asked.decisions)
    if asked.as_ == "scenario" and any(one is not None for one in told):
        yield Problem(
            "{form}, {name}, {propose} and {decisions} apply to forms, sources and targets. A "
            "scenario has its name in its file."
        )
    if asked.as_ != "source" and (asked.ranks or asked.type_ or asked.coverage):
        yield Problem("{ranks}, {type_} and {coverage} apply to sources. Add {as_} source.")


def _decided(environment: Environment, asked: Question) -> Followed:
    """Propose for, or decide on, pending fields of the whole store."""
    if asked.decisions is not None:
        batch = adding.decide(environment, read_decision_file(asked.decisions))
        return batch, batch.environment, f"decisions from {Path(asked.decisions).name}"
    proposals = adding.propose_pending(environment)
    if asked.propose is not None:
        return proposals, environment, ""
    batch = adding.decide(environment, _sure(proposals, asked))
    return batch, batch.environment, f"proposals of {asked.accept:g} or more"


def _sure(proposals: Proposals, asked: Question) -> tuple[Decision, ...]:
    decided = proposals.best(asked.accept)
    if not decided:
        template = (
            "no proposal scores {0:g} or more. Lower {accept}, or decide: write them with "
            "{propose} FILE.toml, edit it, and give it as {decisions}."
        )
        raise OptionError(Problem(template, asked.accept))
    return decided


def _add_scenarios(environment: Environment, asked: Question) -> Followed:
    """Add the scenarios of files; those of the same name are refused, or replaced."""
    new = _all_of(asked.files, read_scenarios)
    names = [one.name for one in new]
    gone = set(names) if asked.values["replace"] else set()
    kept = [one for one in environment.scenarios if one.name not in gone]
    known = {one.name for one in kept}
    there = "scenario {0} exists already. Replace it ({replace}), or give another name in the file."
    problems: list[str] = [Problem(there, shown(name)) for name in names if name in known]
    problems += [f"scenario {shown(name)} is in the files twice." for name in repeated(names)]
    require_none(problems)
    found = list_environment(Environment(scenarios=tuple(new)), "scenarios")
    after = replace(environment, scenarios=(*kept, *new))
    return found, after, "scenarios " + ", ".join(names)


def _all_of(files: Sequence[str], read: Any) -> list[Any]:
    """Read all the files; the problems of all are raised at once."""
    problems: list[str] = []
    found: list[Any] = []
    for path in files:
        try:
            found += read(Path(path))
        except InputError as error:
            problems += error.problems
    require_none(problems)
    return found


def _captured(environment: Environment, asked: Question) -> list[CapturedForm]:
    """Return the forms that are meant: of files, or the one of the store."""
    if not asked.files:
        waits = asked.decisions is None
        return [adding.captured_again(environment, asked.form or "", asked.as_, waiting=waits)]
    captured: list[CapturedForm] = _all_of(asked.files, lambda path: _read(path, asked))
    if asked.form is not None:
        chosen = [one for one in captured if one.form.name == asked.form]
        if not chosen:
            names = quoted((one.form.name for one in captured), 20)
            template = "{form}: {0} is not in the files. They have {1}."
            raise OptionError(Problem(template, shown(asked.form), names))
        captured = chosen
    if asked.name is None:
        return captured
    if len(captured) != 1:
        template = "{name} names one form, but there are {0}. Choose one with {form}."
        raise OptionError(Problem(template, len(captured)))
    return [replace(captured[0], form=replace(captured[0].form, name=asked.name))]


def _read(path: Path, asked: Question) -> Sequence[CapturedForm]:
    """Read what a file describes, with what is said of it."""
    if asked.as_ == "target" and asked.kind is None:
        from keyhole.data import load

        labels = None if asked.labels is None else read_labels(asked.labels)
        found = capture_microdata(load(path, encoding=asked.encoding), labels=labels)
        if asked.collected is None:
            return [found]
        return [replace(found, form=replace(found.form, collected=asked.collected))]
    # A sector is a sector, also where it came as a class.
    more = class_of(sector=asked.sector, purpose=asked.purpose, classifications=asked.class_)
    said = {name: more.pop(name) for name in ("sector", "purpose")} | {"classifications": more}
    named = ("organisation", "collected", *options.CAPTURE)
    said |= {name: getattr(asked, name) for name in named}
    given = {name: value for name, value in said.items() if value not in (None, {})}
    return read_forms(path, asked.kind, encoding=asked.encoding, **given)


def _followed(
    environment: Environment, captured: Sequence[CapturedForm], asked: Question
) -> Followed:
    """Propose, add, or place what waits; say what was done."""
    alone = asked.propose or asked.decisions or asked.as_ != "form"
    if len(captured) != 1 and alone:
        template = (
            "decisions are made on one form, source or target at a time. Got {0}: choose one with "
            "{form}."
        )
        raise OptionError(Problem(template, len(captured)))
    decided = None if asked.decisions is None else read_decision_file(asked.decisions)
    proposing = asked.propose is not None or (decided is None and not asked.files)
    if proposing and not captured[0].fields:
        name = shown(captured[0].form.name)
        raise OptionError(f"{name} has no pending field.")
    if proposing:
        preview, exact = asked.propose is not None, asked.as_ == "target"
        proposals = propose_fields(environment, captured[0], exact_codes=exact, preview=preview)
        if preview:
            return proposals, environment, ""
        decided = _sure(proposals, asked)
    known = captured[0].form.name if captured else ""
    there = (asked.as_, known) in entities(environment) and not asked.values["replace"]
    if decided is not None and (there or not asked.files):
        given = captured[0] if asked.files else known
        placed = adding.place(environment, given, decided, kind=asked.as_)
        return placed, placed.environment, f"decisions on {placed.name}"
    if asked.values["replace"]:
        for one in captured:
            environment = without(environment, asked.as_, one.form.name)
    note = "import of " + ", ".join(one.form.name for one in captured)
    if len(captured) != 1:
        batch = adding.add_forms(environment, captured, threshold=asked.accept)
        return batch, batch.environment, note
    said = {"threshold": asked.accept, **(asked.ranks or {}), **(asked.type_ or {})}
    said |= {} if asked.coverage is None else {"coverage": asked.coverage}
    found = adding.add(environment, captured[0], asked.as_, decided, **said)
    return found, found.environment, note


@documented
def undo(
    store: options.StoreFile,
    *,
    change: Annotated[
        int | None,
        Option("The number of the change, as history lists it; the last by default.", low=1),
    ] = None,
    who: options.Who = None,
) -> options.VerbOutcome:
    """Undo a change of the store: an import, decisions, a tie or a removal.

    What the change added is removed; what it changed or removed is restored. It is refused if the
    same things were changed since. Undoing is itself a change, which can be undone.
    """
    bind(undo, locals()).require()
    opened = open_writing(store)
    snapshot = opened.read()
    number = change or snapshot.number
    undone = [one for one in opened.history() if one.number == number]
    if not undone:
        raise OptionError(Problem("{change} {0} is not in the history.", number))
    things, problems = entities(snapshot.environment), list[str]()
    for one in undone:
        key = one.kind, one.name
        here = encode_thing(things[key], problems) if key in things else None
        if here != one.after:
            problems.append(f"{one.kind} {shown(one.name)} was changed again. Undo that first.")
        things.pop(key, None)
        if one.before is not None:
            things[key] = decode(KIND_OF[one.kind].type, one.before, one.name, problems)
    require_none(problems)
    note = f"undo of change {number}"
    snapshot = opened.write(snapshot, assembled(things), who=who or current_user(), note=note)
    return options.VerbOutcome(
        list_environment(snapshot.environment), (store_written(store, opened),)
    )
