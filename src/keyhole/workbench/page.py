"""Pages of the workbench: what one is shown of a review, reads from a form, and asks for."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.reviews.runner import Standing
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import restored
from keyhole.workbench import editing
from keyhole.workbench.jobs import Job
from keyhole.workbench.projects import Look, Project

# No setting is larger; what is, or is not a number, is left to the checks as text.
_LARGEST = 1e18


@dataclass(frozen=True, slots=True)
class SentForm:
    """What a page's form sent; a field that is empty or absent is None, or an empty list."""

    values: Mapping[str, list[str]]
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return a field's text."""
        return self.values.get(name, [""])[-1].strip() or None

    def texts(self, name: str) -> list[str]:
        """Return all values of a field that may be there several times, such as check boxes."""
        return [value for value in self.values.get(name, []) if value]

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return bool(self.texts(name))

    def number(self, name: str) -> Any:
        """Return a whole or decimal number; what is none is returned as text, for the checks."""
        text = self.text(name)
        if text is None:
            return None
        for kind in (int, float):
            try:
                found = kind(text)
            except ValueError:
                continue
            return found if abs(found) < _LARGEST else text
        return text

    def share(self, name: str) -> Any:
        """Return a share that was given in percent."""
        found = self.number(name)
        return round(found / 100, 12) if isinstance(found, int | float) else found


@dataclass(frozen=True, slots=True)
class View:
    """A review as a page sees it."""

    project: Project
    look: Look
    job: Job | None
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def review(self) -> Review:
        """The review, checked; a page is only made of one that can be run."""
        assert self.look.review is not None
        return self.look.review

    @property
    def said(self) -> dict[str, Any]:
        """What the review file says itself, without defaults."""
        return tomllib.loads(self.look.text)

    @property
    def data(self) -> Microdata:
        """The file under review."""
        return self.look.files["data"].data

    @property
    def shows_values(self) -> bool:
        """Whether values of records may be shown on this page."""
        return self.query.get("values") == "shown"

    def review_lines(self) -> Equivalent:
        """Return how the whole review is run."""
        project = self.project
        return equivalent("review", {"path": project.path.name, "out": project.results.name})

    def verb_lines(self, verb: str, asked: Mapping[str, Any], out: str | None = None) -> Equivalent:
        """Return how a verb is run on the file under review."""
        data = self.review.data
        return equivalent(verb, asked, data.file, data.reading(), out)

    def is_current(self, stage: str) -> bool:
        """Tell whether the result of a stage is of the review as it is now."""
        return self.standing(stage).state == "current"

    def standing(self, stage: str) -> Standing:
        """Return how the result of a stage stands."""
        return self.look.standings.get(stage, Standing("unasked"))

    def result(self, stage: str) -> Any:
        """Return a stage's result, of now or of before a change; None without any."""
        record = self.standing(stage).record
        return None if record is None else restored({stage: record})[stage]

    def tables(self, stage: str) -> list[Table]:
        """Return a stage's tables as they were printed."""
        record = self.standing(stage).record
        return [] if record is None else [Table.from_plain(one) for one in record["tables"]]

    def charts(self, stage: str) -> list[str]:
        """Return the names of a stage's pictures."""
        record = self.standing(stage).record
        return [] if record is None else list(record["charts"])


@dataclass(frozen=True, slots=True)
class ReviewChange:
    """A change of the review file, in a few words, and the stages to compute afterwards."""

    label: str
    edit: Callable[[TOMLDocument], None]
    stages: tuple[str, ...] | None = None  # those of the page if left out
    to: str | None = None  # where to go then, seen from the review; the page itself if left out


@dataclass(frozen=True, slots=True)
class Run:
    """Work without a change: stages, or another kind of job (see `kinds`)."""

    stages: tuple[str, ...] = ()
    kind: str = "stages"
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Go:
    """Only another address, seen from the review, such as `protect?step=2`."""

    to: str


Action = Callable[[View, SentForm], ReviewChange | Run | Go]


def secret_seed() -> int:
    """Draw a seed that nobody finds by trying, as large as every program reads exactly."""
    return secrets.randbelow(2**53)


def leaving(label: str, *sections: str) -> Action:
    """Return the action that removes a section and those that need it, also from the release."""

    def leave(_: View, __: SentForm) -> ReviewChange:
        def edit(document: TOMLDocument) -> None:
            editing.leave_release(document, sections[0])
            for section in sections:
                editing.remove_setting(document, section)

        return ReviewChange(label, edit)

    return leave


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its template is `NAME.html`, and its forms ask by `POST …/NAME/ACTION`."""

    name: str
    title: str
    stages: tuple[str, ...] = ()  # whose results it shows, computed after a change on it
    context: Callable[[View], dict[str, Any]] = field(default=lambda _: {})  # besides the view
    actions: Mapping[str, Action] = field(default_factory=dict)
