"""What a page of the workbench is: what it shows, what it needs computed, what it can change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.workbench.view import Form, View

__all__ = ["Action", "Change", "Go", "Page", "Run"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the review file, in a few words, and the stages to compute afterwards.

    Without stages those of the page are computed. `to` is where to go then, seen from the review;
    the page itself if left out.
    """

    label: str
    edit: Callable[[TOMLDocument], None]
    stages: tuple[str, ...] | None = None
    to: str | None = None


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


Action = Callable[[View, Form], Change | Run | Go]


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Parameters
    ----------
    name, title
        As its address and its heading have it; its template is `NAME.html`.
    stages
        The stages whose results it shows, and which are computed after a change on it.
    context
        From the view to what the template needs besides the view itself.
    actions
        By name what its forms ask for: `POST …/PAGE/ACTION`.
    """

    name: str
    title: str
    stages: tuple[str, ...] = ()
    context: Callable[[View], dict[str, Any]] = field(default=lambda _: {})
    actions: Mapping[str, Action] = field(default_factory=dict)
