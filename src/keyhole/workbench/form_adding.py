"""Adding a form to the environment: send it, review the proposals, decide, store it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.adding.adding import OWNERS, find_owner, waiting_fields
from keyhole.environment.adding.catalogue import Catalogue
from keyhole.environment.adding.decisions import Decision, Tie
from keyhole.environment.adding.matching_categories import answers_of
from keyhole.environment.adding.placing import Placer
from keyhole.environment.adding.proposals import FieldProposals, Proposals, ties_of
from keyhole.environment.kinds import KIND_OF
from keyhole.environment.model import CapturedField, CapturedForm, Environment
from keyhole.errors import ConflictError, InputError
from keyhole.workbench import editing
from keyhole.workbench.environments import EnvironmentPlace, environment_place, require_inside
from keyhole.workbench.form_drafts import (
    PASTED,
    FormDraft,
    What,
    draft_named,
    form_at,
    looked_at,
    new_draft,
    proposals_of,
)
from keyhole.workbench.page import Go, ReviewChange, Run, SentForm, View
from keyhole.workbench.projects import ChangedElsewhereError

SURE = 0.8
"""Proposals of this score or more are chosen to begin with, as on the command line."""
_WHATS: Mapping[str, What] = {"form": "form", "source": "source", "target": "target"}
_SAID = ("name", "organisation", "sector", "purpose", "collected")
_RANKS = ("mode", "scope", "cost")


def draft_context(
    view: View, draft: FormDraft | None, known: tuple[Environment, int]
) -> dict[str, Any]:
    """Return what the page shows of the form that is being decided on."""
    if draft is None:
        return {"draft": None}
    place = _place(view, draft)
    try:
        draft = looked_at(draft, view, place, known)
    except InputError as error:
        return {"draft": draft, "at": place, "form": None, "unread": error.problems, "sure": SURE}
    return {"draft": draft, "at": place, "form": draft.shown[str(place)], "unread": (),
            "sure": SURE, "number": known[1], "places": known_places(known[0])}  # fmt: skip


def _place(view: View, draft: FormDraft) -> int:
    asked = view.query.get("which", "")
    if asked.isdecimal() and len(asked) < 6 and int(asked) < len(draft.names):
        return int(asked)
    return next(iter(draft.waiting), 0)


def _store(view: View) -> EnvironmentPlace:
    settings = view.review.scenarios
    if settings is None:
        raise InputError("choose or make an environment first.")
    place = environment_place(view.project, settings.store)
    if not place.writable:
        raise InputError(
            "an environment in a JSON file is only read. Make a store of it first: then forms "
            "can be added."
        )
    require_inside(view.project, place)
    return place


def send(view: View, form: SentForm) -> Go:
    """Take a form that was sent or pasted, or the file's columns, and propose where it belongs."""
    place = _store(view)
    what = _WHATS.get(form.text("what") or "form", "form")
    sent = None if what == "target" else _sent_file(form)
    draft = new_draft(view.project, what, sent, _sent_attributes(form, what))
    try:
        known = place.read()
        draft = _named(draft, draft.captured(view), known[0])
        looked_at(draft, view, draft.waiting[0], known)
    except BaseException:
        draft.discard()
        raise
    return Go(f"environment?form={draft.name}")


def undecided(environment: Environment) -> list[dict[str, Any]]:
    """Return the forms, sources and targets with fields that wait for a decision."""
    owners = [(kind, one) for kind in OWNERS for one in KIND_OF[kind].of(environment)]
    return [
        {"what": kind, "name": one.name, "fields": [field.name for field in waiting]}
        for kind, one in owners
        if (waiting := waiting_fields(one))
    ]


def again(view: View, form: SentForm) -> Go:
    """Look again at the fields of something in the environment that nobody has placed."""
    known = _store(view).read()
    what = _WHATS.get(form.text("what") or "", "form")
    name = find_owner(known[0], form.text("name") or "", what).name
    draft = replace(new_draft(view.project, what, None, {}), held=name, names=(name,))
    looked_at(draft, view, 0, known)
    return Go(f"environment?form={draft.name}")


def _named(draft: FormDraft, forms: Sequence[CapturedForm], environment: Environment) -> FormDraft:
    """Note the forms of a draft; those that the environment has already are not asked about."""
    form_at(forms, 0)
    names = tuple(one.form.name for one in forms)
    if draft.file == PASTED and names == (Path(PASTED).stem,):
        raise InputError("the table does not name its form. Give the form a name.")
    there = {one.name for one in KIND_OF[draft.what].of(environment)}
    done = tuple(place for place, name in enumerate(names) if name in there)
    if len(done) == len(names):
        raise InputError(
            f"the environment has a {draft.what} of that name already. Rename it and send it again."
        )
    return replace(draft, names=names, done=done)


def _sent_file(form: SentForm) -> tuple[str, bytes]:
    if "upload" in form.files:
        return form.files["upload"]
    pasted = form.text("pasted")
    if pasted is None:
        raise InputError("there is no form. Choose a file, or paste a table.")
    return PASTED, pasted.encode()


def _sent_attributes(form: SentForm, what: What) -> dict[str, Any]:
    """Read what is said of a form or of a source; what is left empty is as the file has it."""
    if what == "target":
        return {}
    said = {name: form.text(name) for name in _SAID}
    if what == "source":
        said = {name: said[name] for name in ("name", "collected")}
        said |= {name: form.number(name) for name in _RANKS}
        said |= {name: form.text(name) for name in ("origin", "coverage")}
    return {name: value for name, value in said.items() if value is not None}


def _draft(view: View) -> FormDraft:
    draft = draft_named(view.project, view.query.get("form"))
    if draft is None:
        raise InputError("this form does not wait any more: it was decided or discarded.")
    return draft


def discard(view: View, form: SentForm) -> Go:  # noqa: ARG001
    """Forget a form that waits."""
    _draft(view).discard()
    return Go("environment")


def confirm_form(view: View, form: SentForm) -> ReviewChange | Run | Go:
    """Write a form to the store as it was decided, unless the environment changed meanwhile.

    A new target becomes the review's; with scenarios to compare, these are computed anew.
    """
    if form.text("version") != view.look.version:
        raise ChangedElsewhereError(
            "the review was changed in another tab or program since this page was shown. Look at "
            "it again; nothing was written to the environment."
        )
    place, draft = _store(view), _draft(view)
    at, snapshot = _place(view, draft), place.snapshot()
    if str(snapshot.number) != form.text("number"):
        raise ConflictError(
            "the environment was changed since these proposals were made. They are made anew "
            "below: look at them again."
        )
    captured = form_at(draft.captured(view), at)
    found = proposals_of(draft, captured, snapshot.environment)
    decided = _decisions(found, form, captured, snapshot.environment, draft.what == "target")
    added = _added(draft, captured, snapshot.environment, decided)
    name = captured.form.name
    place.write(snapshot, added, f"{draft.what} {name}, decided in the workbench")
    left = replace(draft, done=(*draft.done, at))
    if left.waiting:
        left.keep()
        return Go(f"environment?form={draft.name}")
    draft.discard()
    if draft.what == "target" and not draft.held:
        return ReviewChange(
            "the target", lambda d: editing.put_setting(d, "environment", "target", name)
        )
    settings = view.review.scenarios
    recomputes = settings is not None and settings.names
    return Run(("exposure", "scenarios")) if recomputes else Go("environment")


def _decisions(
    found: Proposals, form: SentForm, captured: CapturedForm, environment: Environment, exact: bool
) -> list[Decision]:
    """Read for each field what was typed or chosen; one that nothing was said of waits."""
    problems: list[str] = []
    decided = []
    for place, (one, asked) in enumerate(zip(found.fields, captured.fields, strict=True)):
        typed = form.text(f"place-{place}")
        try:
            if typed is not None:
                decided.append(place_manually(typed, asked, environment, exact_codes=exact))
            else:
                decided.append(_decision(one, form.text(f"choice-{place}") or "leave"))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return decided


def _decision(one: FieldProposals, choice: str) -> Decision:
    if choice == "leave":
        return Decision(one.field, "leave")
    if choice == "identifier":
        return Decision(one.field, "identifier", identifier=one.best.identifier or "identifier")
    if choice.isdecimal() and int(choice) < len(one.proposals):
        return one.proposals[int(choice)].decision()
    raise InputError(f"field {one.field!r}: choose one of what is proposed.")


def _added(
    draft: FormDraft, captured: CapturedForm, environment: Environment, decided: Sequence[Decision]
) -> Environment:
    from keyhole.environment.adding.adding import add_form, add_source, add_target, place

    if draft.held:
        return place(environment, captured, decided, kind=draft.what).environment
    if draft.what == "target":
        return add_target(environment, captured, decisions=decided).environment
    if draft.what == "source":
        said = {k: v for k, v in draft.attributes.items() if k not in ("name", "collected")}
        return add_source(environment, captured, decisions=decided, **said).environment
    return add_form(environment, captured, decided).environment


def known_places(environment: Environment) -> list[tuple[str, str]]:
    """Return what can be typed for a field, each with what it means: constructs, then codings.

    Examples
    --------
    >>> from keyhole.environment.model import Category, Coding, Construct
    >>> coding = Coding("SX2.001", "SX", (Category("f"), Category("m")), label="Sex")
    >>> known_places(Environment((Construct("SX", "sex"),), (coding,)))
    [('SX', 'sex'), ('SX2.001', 'a coding of sex, 2 categories: Sex')]
    """
    from keyhole.environment.codings.categories import size_of

    names = {one.letters: one.name or one.letters for one in environment.constructs}
    places = [(one.letters, names[one.letters]) for one in environment.constructs]
    for one in environment.codings:
        words = (
            f"a coding of {names.get(one.construct, one.construct)}, {size_of(one):,} categories"
        )
        places.append((one.name, f"{words}: {one.label}" if one.label else words))
    return places


def place_manually(
    text: str, field: CapturedField, environment: Environment, *, exact_codes: bool
) -> Decision:
    """Return the decision for a field whose construct or coding a person typed.

    Parameters
    ----------
    text
        A construct, by its letters or its name, or the name of a coding.
    field
        The field, with its categories.
    environment
        Where these are.
    exact_codes
        Whether a coding is the same only if its codes are, as for the columns of a file.

    Raises
    ------
    InputError
        If there is nothing of that name.

    Examples
    --------
    >>> from keyhole.environment.model import Category, Coding, Construct
    >>> coding = Coding("SX2.001", "SX", (Category("1", "Male"), Category("2", "Female")))
    >>> known = Environment((Construct("SX", "sex"),), (coding,))
    >>> asked = CapturedField("q7", "", (Category("1"), Category("2")))
    >>> place_manually("SX2.001", asked, known, exact_codes=True).action
    'assimilate'
    >>> place_manually("sex", asked, known, exact_codes=True).action
    'accommodate'
    """
    catalogue = Catalogue(environment)
    coding = catalogue.names.get(text)
    if coding is not None:
        # Who names a coding says that the same codes mean the same.
        ours, theirs = ([c.code for c in one.categories] for one in (field, coding))
        pairs = tuple((code, code) for code in ours) if set(ours) == set(theirs) else ()
        return Decision(field.name, "assimilate", coding.construct, coding=coding.name,
                        ties=(Tie(coding.name, "finer", pairs),) if pairs else ())  # fmt: skip
    named = {one.name.casefold(): one.letters for one in environment.constructs}
    lettered = {one.letters.casefold(): one.letters for one in environment.constructs}
    letters = lettered.get(text.casefold()) or named.get(text.casefold())
    if letters is None:
        near = nearest(text, [*catalogue.constructs, *catalogue.names])
        hint = f" Near it: {quoted(near)}." if near else ""
        raise InputError(
            f"field {shown(field.name)}: {shown(text)} is neither a construct nor a coding of the "
            f"environment. Take one of the list.{hint}"
        )
    return _in_construct(catalogue, environment, field, letters, exact_codes=exact_codes)


def _in_construct(
    catalogue: Catalogue,
    environment: Environment,
    field: CapturedField,
    letters: str,
    *,
    exact_codes: bool,
) -> Decision:
    """Take a coding with the same answers, else make one, tied to those that it falls against."""
    answers = answers_of(field.categories, field.intervals)
    codes = {one.code for one in field.categories}
    for coding in [] if answers.bare else catalogue.same_answers(letters, answers):
        if not exact_codes or {one.code for one in coding.categories} == codes:
            return Decision(field.name, "assimilate", letters, coding=coding.name)
    ties = ties_of(catalogue, letters, answers, known=True)
    wanted = Decision(field.name, "accommodate", letters, ties=ties)
    # A tie that contradicts what is stored is left out, as where it is proposed.
    kept = Placer(environment, only=letters).accommodate(field, wanted).ties
    return Decision(field.name, "accommodate", letters, ties=kept)
