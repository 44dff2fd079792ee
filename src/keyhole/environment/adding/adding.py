"""Adding a form, target or public source to an environment, and telling what became of it.

One form is added by what a person decided (`add_form`); many by the proposals at or above a
threshold (`add_forms`), the rest being listed for a person and placed later (`place`).

Forms of one batch are taken in the order of their names, so that the order in which they are
given does not matter. Two batches one after the other need not give what one batch of both
gives: a construct has the name and letters of the field that first asked for it.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keyhole.core.names import shown
from keyhole.core.options import Problem
from keyhole.environment.adding.additions import Addition, Batch
from keyhole.environment.adding.catalogue import captured_questions
from keyhole.environment.adding.deciding import require_decided
from keyhole.environment.adding.decisions import Decision, read_decisions
from keyhole.environment.adding.placing import Placement, Placer, captured_problems
from keyhole.environment.adding.proposals import FieldProposals
from keyhole.environment.adding.ranking import rank
from keyhole.environment.adding.waiting import Owner, captured_again, find_owner
from keyhole.environment.kinds import KIND_OF
from keyhole.environment.model import (
    CapturedForm,
    Environment,
    Field,
    Form,
    Organisation,
    Source,
    Target,
)
from keyhole.environment.soundness import plain_form, unfit_names
from keyhole.environment.wording import require_none
from keyhole.errors import InputError


def add_form(
    environment: Environment,
    captured: CapturedForm,
    decisions: Iterable[Decision | Mapping[str, Any]],
) -> Addition:
    """Add a form as a person decided.

    A field that nothing was decided of stays in the form without a coding, or as the direct
    identifier that it is. Raises an `InputError` with everything that is wrong with the
    decisions; nothing is merged unless its categories match one to one.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedField, Category
    >>> asked = CapturedField("sex", "Sex", (Category("M"), Category("F")))
    >>> form = CapturedForm(Form("claim"), (asked,))
    >>> made = add_form(Environment(), form, [Decision("sex", "create", "SX", "sex")])
    >>> made.counts, made.environment.forms[0].fields[0].coding
    ({'create': 1, 'waiting': 0}, 'SX2.001')
    """
    require_none(captured_problems(captured))
    placer = Placer(environment)
    placements = _decided(placer, captured, read_decisions(decisions))
    return _added(placer, captured, captured.form, placements)


def add_forms(
    environment: Environment, captured: Iterable[CapturedForm], *, threshold: float = 0.8
) -> Batch:
    """Add forms by the best proposal of each field, if its score reaches the threshold.

    Fields whose best proposal falls short stay in their form without a coding and are
    listed with their proposals. The order of the forms given does not matter.
    """
    _require_threshold(threshold)
    forms = sorted(captured, key=lambda one: one.form.name)
    require_none(problem for one in forms for problem in captured_problems(one))
    placer = Placer(environment)
    require_none(_named_before(environment, [one.form.name for one in forms], "form"))
    found, parts = [], []
    for one in forms:
        placements, waiting = _proposed(placer, one, threshold)
        form = replace(one.form, fields=_fields(one, placements))
        parts.append(form)
        found.append(Addition(Environment(), "form", form.name, placements, waiting, one.notes))
    whole = _with_parts(placer, parts)
    return Batch(whole, threshold, tuple(replace(one, environment=whole) for one in found))


def place(
    environment: Environment,
    captured: CapturedForm | str,
    decisions: Iterable[Decision | Mapping[str, Any]],
    *,
    kind: str | None = None,
) -> Addition:
    """Place fields of a form, target or source that is in the environment already.

    Only the fields that something is decided of change.

    Parameters
    ----------
    environment
        Where it is.
    captured
        The form as an importer gives it, or its name: then the questions that were kept of it
        are taken.
    decisions
        What is decided of some of its fields.
    kind
        ``form``, ``source`` or ``target``, where several have this name.
    """
    name = captured if isinstance(captured, str) else captured.form.name
    owner = find_owner(environment, name, kind)
    sort = type(owner).__name__.lower()
    asked = captured_again(environment, name, sort) if isinstance(captured, str) else captured
    require_none(captured_problems(asked))
    read = read_decisions(decisions)
    placer = Placer(environment)
    placements = _decided(placer, asked, read)
    chosen = {one.field for one in read}
    absent = sorted(chosen - {field.name for field in owner.fields})
    require_none(f"field {shown(name)} is not in {shown(owner.name)}." for name in absent)
    moved = {p.field: p for p in placements if p.field in chosen}
    changed = _moved(placer, owner, asked, moved)
    return Addition(changed, sort, owner.name, tuple(moved.values()))


def _moved(
    placer: Placer, owner: Owner, asked: CapturedForm, moved: Mapping[str, Placement]
) -> Environment:
    """Return the environment with some fields of a form, target or source placed."""
    known = {field.name: field for field in asked.fields}
    fields = tuple(
        moved[f.name].placed(known[f.name]) if f.name in moved else f for f in owner.fields
    )
    kind = KIND_OF[type(owner).__name__.lower()]
    parts = tuple(
        replace(one, fields=fields) if one.name == owner.name else one
        for one in kind.of(placer.before)
    )
    return replace(placer.environment, **{kind.attribute: parts})


def add_target(
    environment: Environment,
    captured: CapturedForm,
    *,
    decisions: Iterable[Decision | Mapping[str, Any]] | None = None,
    threshold: float = 0.8,
    as_of: datetime.date | None = None,
) -> Addition:
    """Add the columns of a file that may be released.

    Its codings keep the codes of the file: a coding is the same only if its codes are too,
    else the column gets a coding of its own that is tied to the others. Without decisions
    the proposals at or above the threshold are followed.
    """
    target = Target(captured.form.name, as_of or captured.form.collected)
    return _add(environment, captured, target, decisions, threshold, exact_codes=True)


def add_source(
    environment: Environment,
    captured: CapturedForm,
    *,
    decisions: Iterable[Decision | Mapping[str, Any]] | None = None,
    threshold: float = 0.8,
    **attributes: Any,
) -> Addition:
    """Add a public source; further attributes are those of `Source` (``mode``, ``cost``, ...)."""
    allowed = set(Source.__slots__) - {"name", "fields"}
    unknown = sorted(set(attributes) - allowed)
    require_none(f"{name} is not an attribute of a source. Leave it out." for name in unknown)
    given = {"collected": captured.form.collected, **attributes}
    return _add(environment, captured, Source(captured.form.name, **given), decisions, threshold)


def _add(
    environment: Environment,
    captured: CapturedForm,
    owner: Owner,
    decisions: Iterable[Decision | Mapping[str, Any]] | None,
    threshold: float,
    *,
    exact_codes: bool = False,
) -> Addition:
    _require_threshold(threshold)
    require_none(captured_problems(captured))
    placer = Placer(environment)
    if decisions is not None:
        placements = _decided(placer, captured, read_decisions(decisions))
        return _added(placer, captured, owner, placements)
    placements, waiting = _proposed(placer, captured, threshold, exact_codes=exact_codes)
    return _added(placer, captured, owner, placements, waiting)


def _require_threshold(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold must lie from 0 to 1. Got {threshold:g} instead.")


def _decided(
    placer: Placer, captured: CapturedForm, decisions: Sequence[Decision]
) -> tuple[Placement, ...]:
    require_decided(placer, captured, decisions)
    chosen = {decision.field: decision for decision in decisions}
    problems: list[str] = []
    placements = []
    for field in captured.fields:
        default = Decision(field.name, "identifier" if field.identifier else "leave")
        try:
            placements.append(placer.place(field, chosen.get(field.name, default)))
        except InputError as error:
            problems += [f"field {shown(field.name)}: {text}" for text in error.problems]
    require_none(problems)
    return tuple(placements)


def _proposed(
    placer: Placer, captured: CapturedForm, threshold: float, *, exact_codes: bool = False
) -> tuple[tuple[Placement, ...], tuple[FieldProposals, ...]]:
    """Follow what is sure enough, field by field, so that later fields find what earlier made."""
    placements, waiting = [], []
    asked = captured_questions(captured.fields)
    for field, questions in zip(captured.fields, asked, strict=True):
        ranked = rank(placer.catalogue, field, questions, exact_codes=exact_codes)
        if ranked[0].score >= threshold:
            placement = placer.follow(field, ranked[0])
        else:
            placement = Placement(field.name, "leave")
            waiting.append(FieldProposals(field.name, field.label, ranked))
        placements.append(placement)
        if placement.construct:
            placer.catalogue.remember(questions, placement.construct)
    return tuple(placements), tuple(waiting)


def _fields(captured: CapturedForm, placements: Sequence[Placement]) -> tuple[Field, ...]:
    pairs = zip(placements, captured.fields, strict=True)
    return tuple(placement.placed(field) for placement, field in pairs)


def _added(
    placer: Placer,
    captured: CapturedForm,
    owner: Owner,
    placements: tuple[Placement, ...],
    waiting: tuple[FieldProposals, ...] = (),
) -> Addition:
    kind = type(owner).__name__.lower()
    require_none(_named_before(placer.before, [owner.name], kind))
    whole = _with_parts(placer, [replace(owner, fields=_fields(captured, placements))])
    return Addition(whole, kind, owner.name, placements, waiting, captured.notes)


def _with_parts(placer: Placer, parts: Sequence[Owner]) -> Environment:
    """Put forms, targets or sources into the environment, and whoever collects."""
    before = placer.before
    known = {one.name for one in before.organisations}
    named = {p.organisation: p.sector for p in reversed(parts) if isinstance(p, Form)}
    new = [Organisation(name, named[name]) for name in sorted(named) if name and name not in known]
    _require_storable(placer, parts, new)
    whole = replace(placer.environment, organisations=(*before.organisations, *new))
    for part in parts[:1]:
        attribute = KIND_OF[type(part).__name__.lower()].attribute
        whole = replace(whole, **{attribute: (*getattr(before, attribute), *parts)})
    return whole


def _require_storable(
    placer: Placer, parts: Sequence[Owner], organisations: Sequence[Organisation]
) -> None:
    """Check what is new, by the rules of the store; the rest was checked when it was added."""
    new = Environment(
        tuple(placer.constructs),
        tuple(placer.codings),
        tuple(placer.maps),
        tuple(placer.overlaps),
        tuple(organisations),
        tuple(p for p in parts if isinstance(p, Form)),
        tuple(p for p in parts if isinstance(p, Source)),
        tuple(p for p in parts if isinstance(p, Target)),
    )
    problems = list(unfit_names(new))
    for kind in KIND_OF.values() if not problems else ():
        for one in kind.of(new):
            plain_form(kind, one, problems)
    require_none(problems)


def _named_before(environment: Environment, names: Sequence[str], kind: str) -> list[str]:
    known = {one.name for one in KIND_OF[kind].of(environment)}
    twice = {name for name, count in Counter(names).items() if count > 1}
    return [
        Problem(
            "{0} {1} is there already. Give it another name ({name}), put it in place of the other "
            "({replace}), or decide on its fields ({decisions}).",
            kind,
            shown(name),
        )
        for name in sorted((known & set(names)) | twice)
    ]
