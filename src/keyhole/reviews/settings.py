"""A review as it will run: every setting resolved once, nothing left to be guessed later."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.options import Question
from keyhole.protection.plan import Plan
from keyhole.synthesis.synthesise import DRAWING

__all__ = [
    "DataSettings",
    "ReleaseSettings",
    "Review",
    "ScenarioSettings",
]


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The file under review and how it is read."""

    file: str
    name: str | None = None
    missing_codes: Any = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    engine: str = "auto"
    memory: str | None = None

    def reading(self) -> dict[str, Any]:
        """Return how the file is read, as far as its values depend on it."""
        named = ("missing_codes", "kinds", "roles", "encoding", "delimiter", "sheet")
        return {name: getattr(self, name) for name in named}

    def declared(self) -> dict[str, Any]:
        """Return what `keyhole.load` is told besides the file."""
        apart = ("file", "engine", "memory")
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in apart}


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """The data environment, the scenarios looked at, and the one the keys are those of."""

    store: str
    target: str | None
    names: tuple[str, ...]
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What is to go out, to whom and for what: words for the board and for the public note.

    `product` is what goes out: the `file` as it is, the variables of the `selection`, or what the
    `protection` or the `synthesis` made.
    """

    product: str = "file"
    to: str | None = None
    purpose: str | None = None
    version: str | None = None
    contact: str | None = None
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    board: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """A review file, checked and resolved.

    `path` is where the review file is; it is no part of what the review says, so that the same
    review gives the same results wherever it lies.
    """

    title: str
    path: Path
    sha256: str
    data: DataSettings
    keys: tuple[str, ...]
    exposure: Question
    uniques: Question | None = None
    drivers: Question | None = None
    selection: Question | None = None
    frontier: Question | None = None
    study: Question | None = None
    synthesis: Question | None = None
    scenarios: ScenarioSettings | None = None
    screen: Question | None = None
    protection: Question | None = None
    release: ReleaseSettings = field(default_factory=ReleaseSettings)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values; sections that were not asked for are null."""
        found = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
        if found["synthesis"] is not None:
            # Stored reviews have how implicates are drawn apart.
            apart = {name: found["synthesis"].pop(name) for name in DRAWING}
            found["synthesis"]["options"] = apart
        if self.protection is not None and self.protection.plan:
            found["protection"]["plan"] = Plan.parse(self.protection.plan).told()
        if found["scenarios"] is not None and "://" in found["scenarios"]["store"]:
            found["scenarios"]["store"] = "the environment"  # an address may hold a password
        return {k: v for k, v in found.items() if k not in ("path", "sha256")}


def _plain(settings: Any) -> Any:
    if isinstance(settings, Question):
        return settings.public()
    is_one = dataclasses.is_dataclass(settings) and not isinstance(settings, type)
    return dataclasses.asdict(settings) if is_one else settings
