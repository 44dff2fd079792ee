"""Adding a form to the environment, and deciding on what is pending in it.

A form that was sent waits as a draft for a person to decide on its fields. A draft is a folder of
the workbench's own memory: the file as it was sent, and what was proposed when the environment was
at a certain number. It goes when it is decided, or after some days. Category codes stay out of it:
for a decision the proposals are made again.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from keyhole.core.codec import Figures
from keyhole.core.marks import HIDDEN
from keyhole.core.names import nearest, plural, quoted, shown
from keyhole.environment.codings.categories import size_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.undecided import Waiting, pending_of
from keyhole.environment.matching.adding import (
    OWNERS,
    add,
    captured_field,
    decide,
    pending,
    waiting_fields,
)
from keyhole.environment.matching.catalogue import Catalogue
from keyhole.environment.matching.categories import answers_of
from keyhole.environment.matching.placing import Placer
from keyhole.environment.matching.proposals import Decision, Proposal, Tie, propose, ties_of
from keyhole.environment.model import CapturedField, CapturedForm, Environment, Target
from keyhole.environment.options import CAPTURE
from keyhole.environment.soundness import KIND_OF
from keyhole.errors import ConflictError, FileError, InputError
from keyhole.reviews.files import remembered, remembering
from keyhole.workbench import editing
from keyhole.workbench.environments import EnvironmentPlace, environment_place
from keyhole.workbench.page import Go, ReviewChange, Run, SentForm, View
from keyhole.workbench.projects import Project, inside, require_version
from keyhole.workbench.state import keep_figures, kept_figures

if TYPE_CHECKING:
    from keyhole.environment.store import Snapshot

What = Literal["form", "source", "target"]
Known = tuple[Environment, int]  # an environment, and the number of its last change
SOURCE_ATTRIBUTES = ("mode", "scope", "cost", "origin", "formality", "compulsion", "coverage")
FOLDER, NOTE, PASTED = "forms", "draft.json", "pasted.csv"
_DAYS = 7 * 86_400.0
_NAME = re.compile(r"[0-9a-f]{16}")
_SHOWN = ("action", "construct", "name", "coding", "identifier", "reason", "score", "harmonised")
SURE = 0.8
"""Proposals of this score or more are chosen to begin with, as on the command line."""
_WHATS: Mapping[str, What] = {"form": "form", "source": "source", "target": "target"}
# What may be said of each, besides the ranks of a source.
_SAID: Mapping[What, tuple[str, ...]] = {
    "form": ("name", "organisation", "sector", "purpose", "collected", *CAPTURE),
    "source": ("name", "collected", "origin", "coverage", *CAPTURE),
    "target": (),
}
_RANKS = ("mode", "scope", "cost")
MOST_LINES = 40
"""Decisions of the queue that a page shows; the next ones follow when these are made."""


@dataclass(frozen=True, slots=True)
class FormDraft(Figures):
    """A form, public source or target that waits to be decided on."""

    folder: Annotated[Path, HIDDEN]  # where it is kept; its name is the draft's
    what: What  # it is to become
    file: str = ""  # as it was sent; empty for the columns of the file under review
    attributes: Mapping[str, Any] = field(default_factory=dict)  # what was said of it
    names: tuple[str, ...] = ()  # of the forms in it
    done: tuple[int, ...] = ()  # the places of those that were decided already
    # The environment's number when it was last looked at, and what was proposed then by the place
    # of the form in the file.
    number: int = -1
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The draft's name in addresses."""
        return self.folder.name

    def captured(self, view: View) -> list[CapturedForm]:
        """Read the forms of the draft again."""
        from keyhole.environment.importers.microdata import capture_microdata
        from keyhole.environment.importers.reading import read_forms

        if self.what == "target" and not self.file:
            return [capture_microdata(view.data)]
        said = {k: v for k, v in self.attributes.items() if k not in SOURCE_ATTRIBUTES}
        return list(read_forms(self.folder / "sent" / self.file, **said))

    @property
    def waiting(self) -> list[int]:
        """The places of the forms that are not decided yet."""
        return [place for place in range(len(self.names)) if place not in self.done]

    def keep(self) -> None:
        """Write the draft down."""
        keep_figures(self.folder / NOTE, self)

    def discard(self) -> None:
        """Forget the draft."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _drafts_folder(project: Project) -> Path:
    return project.state.path.parent / FOLDER / str(project.number)


def new_draft(
    project: Project, what: What, sent: tuple[str, bytes] | None, attributes: Mapping[str, Any]
) -> FormDraft:
    """Begin a draft, with a file that was sent or of the file under review; old ones go."""
    for old in drafts_of(project):
        if time.time() - old.folder.stat().st_mtime > _DAYS:
            old.discard()
    folder = _drafts_folder(project) / secrets.token_hex(8)
    (folder / "sent").mkdir(parents=True, mode=0o700)
    name = ""
    if sent is not None:
        plain = re.sub(r"[^\w. -]", "_", Path(sent[0].replace("\\", "/")).name).strip(". ")[:100]
        name = plain or PASTED
        (folder / "sent" / name).write_bytes(sent[1])
    return FormDraft(folder, what, name, dict(attributes))


def drafts_of(project: Project) -> list[FormDraft]:
    """Return the drafts of a review that wait, the last first."""
    home = _drafts_folder(project)
    names = [path.name for path in home.iterdir()] if home.is_dir() else []
    found = [draft for name in names if (draft := draft_named(project, name)) is not None]
    return sorted(found, key=lambda draft: -draft.folder.stat().st_mtime)


def draft_named(project: Project, name: str | None) -> FormDraft | None:
    """Return a draft of a review by its name, if it still waits."""
    if name is None or not _NAME.fullmatch(name):
        return None
    folder = _drafts_folder(project) / name
    found = kept_figures(folder / NOTE, FormDraft)
    return None if found is None else replace(found, folder=folder)


def looked_at(draft: FormDraft, view: View, place: int, known: Known) -> FormDraft:
    """Return a draft with what is proposed for one of its forms, of the environment as it is.

    What the page shows has no categories and no codes.
    """
    environment, number = known
    if draft.number == number and str(place) in draft.shown:
        return draft
    form = form_at(draft.captured(view), place)
    proposed = propose(environment, form, exact_codes=draft.what == "target")
    fields = [
        {"field": one.field, "label": one.label if one.label != one.field else "",
         "proposals": [{name: getattr(p, name) for name in _SHOWN} for p in one.proposals]}
        for one in proposed.fields
    ]  # fmt: skip
    shown = {"name": form.form.name, "fields": fields, "notes": list(form.notes)}
    before = draft.shown if draft.number == number else {}
    found = replace(draft, number=number, shown={**before, str(place): shown})
    found.keep()
    return found


def form_at(forms: Sequence[CapturedForm], place: int) -> CapturedForm:
    """Return the form at a place of its file."""
    if not forms:
        raise FileError("there is no form in this file. Send another one.")
    if not 0 <= place < len(forms):
        raise InputError("there is no such form in this file. Choose one from the list.")
    return forms[place]


def draft_context(view: View, draft: FormDraft | None, known: Known) -> dict[str, Any]:
    """Return what the page shows of the form that is being decided on."""
    if draft is None:
        return {"draft": None}
    place = _place(view, draft)
    form, unread = None, list[str]()
    try:
        draft = looked_at(draft, view, place, known)
        form = draft.shown[str(place)]
    except InputError as error:
        unread += error.problems
    return {"draft": draft, "at": place, "form": form, "unread": unread, "sure": SURE}


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
    if place.kind != "server":  # nothing above the start folder is written to
        inside(view.project.state.folder, place.place)
    return place


def send(view: View, form: SentForm) -> Go:
    """Take a form that was sent or pasted, or the file's columns, and propose where it belongs."""
    place = _store(view)
    what = _WHATS.get(form.text("what") or "form", "form")
    sent, pasted = form.files.get("upload"), form.text("pasted")
    if what != "target" and sent is None:
        if pasted is None:
            raise InputError("there is no form. Choose a file, or paste a table.")
        sent = PASTED, pasted.encode()
    # What is left empty is as the file has it.
    said: dict[str, Any] = {name: form.text(name) for name in _SAID[what]}
    said |= {name: form.number(name) for name in _RANKS} if what == "source" else {}
    given = {name: value for name, value in said.items() if value is not None}
    draft = new_draft(view.project, what, None if what == "target" else sent, given)
    try:
        known = place.read()
        forms = draft.captured(view)
        form_at(forms, 0)
        names = tuple(one.form.name for one in forms)
        if draft.file == PASTED and names == (Path(PASTED).stem,):
            raise InputError("the table does not name its form. Give the form a name.")
        # Those that the environment has already are not asked about.
        there = {one.name for one in KIND_OF[what].of(known[0])}
        done = tuple(place for place, name in enumerate(names) if name in there)
        if len(done) == len(names):
            raise InputError(
                f"the environment has a {what} of that name already. Rename it and send it again."
            )
        draft = replace(draft, names=names, done=done)
        looked_at(draft, view, draft.waiting[0], known)
    except BaseException:
        draft.discard()
        raise
    return Go(f"environment?form={draft.name}")


def pending_decisions(view: View, graph: CodingGraph) -> Waiting | None:
    """Return the decisions that are pending, those that would change the file's RP most first."""
    environment, settings = graph.environment, view.review.scenarios
    every = (one for kind in OWNERS for one in KIND_OF[kind].of(environment))
    if settings is None or not any(waiting_fields(one) for one in every):
        return None
    names = [one.name for one in environment.targets]
    target = settings.target or (names[0] if len(names) == 1 else None)

    def listed() -> Waiting:
        try:
            return pending_of(graph, target, view.data)
        except InputError:  # the target describes another file
            return pending_of(graph, None, None)

    with remembering(view.project.memory):
        state = environment, target, view.look.files["data"].sha256
        found = remembered("pending", state, listed)
    return replace(found, waiting=found.waiting[:MOST_LINES]) if found.waiting else None


def decide_pending(view: View, form: SentForm) -> Run | Go:
    """Write the decisions that were made on lines of the queue; the other lines stay."""
    require_version(view.look.text, form.text("version"))
    place = _store(view)
    snapshot = _unchanged(place, form)
    environment = snapshot.environment
    known = {(o.name, f.name): (o, proposals) for o, f, _, proposals in pending(environment)}
    lines, names = list[_Line](), Catalogue(environment).names
    for at in range(MOST_LINES):
        name, field_ = form.text(f"form-{at}") or "", form.text(f"field-{at}") or ""
        if (name, field_) in known:
            owner, proposals = known[name, field_]
            asked = captured_field(next(f for f in owner.fields if f.name == field_), names)
            lines.append((at, name, proposals, asked, isinstance(owner, Target)))
    decided = _decisions(form, lines, environment)
    if not decided:
        raise InputError("nothing was decided. Choose where a field belongs.")
    after = decide(environment, decided).environment
    place.write(snapshot, after, f"{plural(len(decided), 'decision')} in the workbench")
    return _recomputed(view)


def _draft(view: View) -> FormDraft:
    draft = draft_named(view.project, view.query.get("form"))
    if draft is None:
        raise InputError("this form is no longer pending: it was decided or discarded.")
    return draft


def discard(view: View, form: SentForm) -> Go:  # noqa: ARG001
    """Forget a form that waits."""
    _draft(view).discard()
    return Go("environment")


def confirm_form(view: View, form: SentForm) -> ReviewChange | Run | Go:
    """Write a form to the store as it was decided, unless the environment changed meanwhile.

    A new target becomes the review's; with scenarios to compare, these are computed anew.
    """
    require_version(view.look.text, form.text("version"))
    place, draft = _store(view), _draft(view)
    at, snapshot = _place(view, draft), _unchanged(place, form)
    captured = form_at(draft.captured(view), at)
    exact = draft.what == "target"
    found = propose(snapshot.environment, captured, exact_codes=exact)
    both = enumerate(zip(found.fields, captured.fields, strict=True))
    lines = ((at, "", one.proposals, asked, exact) for at, (one, asked) in both)
    decided = _decisions(form, lines, snapshot.environment)
    apart = ("name", "collected") if draft.what == "source" else draft.attributes
    said = {k: v for k, v in draft.attributes.items() if k not in apart}
    added = add(snapshot.environment, captured, draft.what, decided, **said)
    name = captured.form.name
    place.write(snapshot, added.environment, f"{draft.what} {name}, decided in the workbench")
    left = replace(draft, done=(*draft.done, at))
    if left.waiting:
        left.keep()
        return Go(f"environment?form={draft.name}")
    draft.discard()
    if draft.what == "target":
        return ReviewChange(
            "the target", lambda d: editing.put_setting(d, "environment", "target", name)
        )
    return _recomputed(view)


def _unchanged(place: EnvironmentPlace, form: SentForm) -> Snapshot:
    """Return the environment to be written to, if it is the one that the page showed."""
    snapshot = place.snapshot()
    if str(snapshot.number) != form.text("number"):
        raise ConflictError(
            "the environment was changed since these proposals were made. They are made again "
            "below: check them again."
        )
    return snapshot


def _recomputed(view: View) -> Run | Go:
    """Compute scenarios anew, where some are compared."""
    settings = view.review.scenarios
    recomputes = settings is not None and settings.names
    return Run(("exposure", "scenarios")) if recomputes else Go("environment")


# Its place, its form if there are several, what is proposed, the field, and whether codes count.
_Line = tuple[int, str, Sequence[Proposal], CapturedField, bool]


def _decisions(form: SentForm, lines: Iterable[_Line], environment: Environment) -> list[Decision]:
    """Read for each field what was typed or chosen; one that nothing was said of waits."""
    problems, decided = list[str](), list[Decision]()
    for at, name, proposals, asked, exact in lines:
        said = form.text(f"place-{at}"), form.text(f"choice-{at}")
        try:
            found = _chosen(*said, proposals, asked, environment, exact)
            decided += [] if found is None else [replace(found, form=name)]
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return decided


def _chosen(
    typed: str | None, choice: str | None, proposals: Sequence[Proposal], asked: CapturedField,
    environment: Environment, exact: bool,
) -> Decision | None:  # fmt: skip
    """Return what was typed or chosen for a field; None leaves it pending."""
    if typed is not None:
        return place_manually(typed, asked, environment, exact_codes=exact)
    if choice is None:
        return None
    if choice.isdecimal() and int(choice) < len(proposals):
        return proposals[int(choice)].decision()
    if choice == "identifier":
        kind = proposals[0].identifier or "identifier"
        return Decision(asked.name, "identifier", identifier=kind)
    if choice == "leave":
        return Decision(asked.name, "leave")
    raise InputError(f"field {shown(asked.name)}: choose one of what is proposed.")


def known_places(environment: Environment) -> list[tuple[str, str]]:
    """Return what can be typed for a field, each with what it means: constructs, then codings."""
    names = {one.letters: one.name or one.letters for one in environment.constructs}
    places = list(names.items())
    for one in environment.codings:
        of = names.get(one.construct, one.construct)
        words = f"a coding of {of}, {size_of(one):,} categories"
        places.append((one.name, f"{words}: {one.label}" if one.label else words))
    return places


def place_manually(
    text: str, field: CapturedField, environment: Environment, *, exact_codes: bool
) -> Decision:
    """Return the decision for a field whose construct or coding a person typed.

    A construct is typed by its letters or its name. With `exact_codes` a coding is the same only if
    its codes are, as for the columns of a file.
    """
    catalogue = Catalogue(environment)
    coding = catalogue.names.get(text)
    if coding is not None:
        # Who names a coding says that the same codes mean the same.
        ours, theirs = ([c.code for c in one.categories] for one in (field, coding))
        pairs = tuple((code, code) for code in ours) if set(ours) == set(theirs) else ()
        return Decision(field.name, "assimilate", coding.construct, coding=coding.name,
                        ties=(Tie(coding.name, "finer", pairs),) if pairs else ())  # fmt: skip
    listed = {one.name.casefold(): one.letters for one in environment.constructs}
    listed |= {one.letters.casefold(): one.letters for one in environment.constructs}
    letters = listed.get(text.casefold())
    if letters is None:
        near = nearest(text, [*catalogue.constructs, *catalogue.names])
        hint = f" Did you mean {quoted(near)}?" if near else ""
        raise InputError(
            f"field {shown(field.name)}: {shown(text)} is neither a construct nor a coding of the "
            f"environment. Take one from the list.{hint}"
        )
    # A coding with the same answers is taken, else one is made, tied to those it falls against.
    answers = answers_of(field.categories, field.intervals)
    codes = {one.code for one in field.categories}
    for same in [] if answers.bare else catalogue.same_answers(letters, answers):
        if not exact_codes or {one.code for one in same.categories} == codes:
            return Decision(field.name, "assimilate", letters, coding=same.name)
    ties = ties_of(catalogue, letters, answers, known=True)
    wanted = Decision(field.name, "accommodate", letters, ties=ties)
    # A tie that contradicts what is stored is left out, as where it is proposed.
    return replace(wanted, ties=Placer(environment, only=letters).accommodate(field, wanted).ties)
