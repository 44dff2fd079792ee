"""Drafts of forms that were sent and wait for a person to decide on their fields.

A draft is a folder of the workbench's own memory: the file as it was sent, and what was proposed
when the environment was at a certain number. It goes when it is decided, or after some days.
Category codes stay out of it: for a decision the proposals are made again.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from keyhole.core.files import write_whole
from keyhole.environment.adding.adding import captured_again
from keyhole.environment.adding.proposals import Proposals
from keyhole.environment.model import CapturedForm, Environment
from keyhole.errors import FileError, InputError
from keyhole.workbench.environments import review_environment
from keyhole.workbench.page import View
from keyhole.workbench.projects import Project

What = Literal["form", "source", "target"]
SOURCE_ATTRIBUTES = ("mode", "scope", "cost", "origin", "formality", "compulsion", "coverage")
FOLDER, NOTE, PASTED = "forms", "draft.json", "pasted.csv"
_DAYS = 7 * 86_400.0
_NAME = re.compile(r"[0-9a-f]{16}")
_TEXTS = ("action", "construct", "name", "coding", "identifier", "reason")


@dataclass(frozen=True, slots=True)
class ShownForm:
    """A form of a draft with what is proposed for its fields, as the page shows it."""

    name: str
    fields: list[dict[str, Any]]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class FormDraft:
    """A form, public source or target that waits to be decided on.

    Parameters
    ----------
    folder
        Where it is kept; its name is the draft's.
    what
        What it is to become.
    file
        The file as it was sent; empty for the columns of the file under review.
    attributes
        What was said of it: who collects, which sector, a source's ranks.
    names
        The names of the forms in it.
    done
        The places of those that were decided already.
    held
        The form, source or target of the environment whose waiting fields these are, if they are.
    number, shown
        The environment's number when it was last looked at, and what was proposed then, by the
        place of the form in the file.
    """

    folder: Path
    what: What
    file: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    done: tuple[int, ...] = ()
    held: str = ""
    number: int = -1
    shown: Mapping[str, ShownForm] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The draft's name in addresses."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What it is, for a list of drafts."""
        if self.held:
            return f"the waiting fields of {self.held}"
        return self.file or "the columns of the file under review"

    def captured(self, view: View) -> list[CapturedForm]:
        """Read the forms of the draft again."""
        if self.held:
            return [captured_again(review_environment(view), self.held, self.what, waiting=True)]
        from keyhole.environment.importers import capture_microdata, read_forms

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
        said = asdict(self)
        said.pop("folder")
        with write_whole(self.folder / NOTE, force=True) as temporary:
            temporary.write_text(json.dumps(said), encoding="utf-8")

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
        name = re.sub(r"[^\w. -]", "_", Path(sent[0].replace("\\", "/")).name).strip(". ")[:100]
        (folder / "sent" / (name or PASTED)).write_bytes(sent[1])
    return FormDraft(folder, what, (name or PASTED) if sent is not None else "", dict(attributes))


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
    try:
        said = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        shown = {place: ShownForm(**one) for place, one in said.pop("shown").items()}
        lists = {"names": tuple(said["names"]), "done": tuple(said["done"])}
        return FormDraft(folder, **{**said, **lists, "shown": shown})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def proposals_of(draft: FormDraft, form: CapturedForm, environment: Environment) -> Proposals:
    """Propose for each field of a form what to do with it."""
    from keyhole.environment.adding.proposals import propose

    return propose(environment, form, exact_codes=draft.what == "target")


def looked_at(
    draft: FormDraft, view: View, place: int, known: tuple[Environment, int]
) -> FormDraft:
    """Return a draft with what is proposed for one of its forms, of the environment as it is."""
    environment, number = known
    if draft.number == number and str(place) in draft.shown:
        return draft
    form = form_at(draft.captured(view), place)
    shown = _shown(form, proposals_of(draft, form, environment))
    before = draft.shown if draft.number == number else {}
    found = replace(draft, number=number, shown={**before, str(place): shown})
    found.keep()
    return found


def _shown(form: CapturedForm, found: Proposals) -> ShownForm:
    """Return what the page shows of proposals: no categories, no codes."""
    fields = [
        {
            "field": one.field,
            "label": one.label if one.label != one.field else "",
            "proposals": [
                {name: getattr(p, name) for name in _TEXTS}
                | {"score": p.score, "harmonised": list(p.harmonised)}
                for p in one.proposals
            ],
        }
        for one in found.fields
    ]
    return ShownForm(form.form.name, fields, list(form.notes))


def form_at(forms: Iterable[CapturedForm], place: int) -> CapturedForm:
    """Return the form at a place of its file."""
    found = list(forms)
    if not found:
        raise FileError("there is no form in this file. Send another one.")
    if not 0 <= place < len(found):
        raise InputError("there is no such form in this file. Choose one of the list.")
    return found[place]
