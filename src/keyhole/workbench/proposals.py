"""A step that somebody thinks of: what was typed, and its price, before it is in the review.

Both are small files in the workbench's own folder, which only its owner can read: the price of a
step that draws is computed with a secret seed, which is the review's once the step is accepted.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.files import write_whole
from keyhole.workbench.projects import Project
from keyhole.workbench.view import Form

__all__ = ["Draft", "Price", "discard", "draft_of", "keep_draft", "price_of", "price_path"]


@dataclass(frozen=True, slots=True)
class Draft:
    """The form of a step as it was last sent."""

    method: str
    values: Mapping[str, list[str]]

    @property
    def form(self) -> Form:
        """What was typed, to be shown again."""
        return Form(self.values)


@dataclass(frozen=True, slots=True)
class Price:
    """What a step would do, and what it would cost.

    `version` is that of the review it was computed for, `toml` the step as a plan has it. `lines`
    are those of the ledger: the file as it is, after the plan, and with the step. `read_off` is
    RP after the plan and with the step, with what columns that stay tell of others. `targets` are
    the columns over which the loss is taken. `seed` is one that was drawn for the step, if the
    review has none.
    """

    version: str
    toml: str
    words: str
    lines: tuple[Mapping[str, Any], ...]
    changed: int
    left_out: int
    limit: float | None
    cutoff: int
    read_off: tuple[float | None, float | None] = (None, None)
    notes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    seed: int | None = field(default=None, repr=False)

    @property
    def step(self) -> dict[str, Any]:
        """The step."""
        found: dict[str, Any] = tomllib.loads(self.toml)["step"][0]
        return found

    def save(self, path: Path) -> None:
        """Keep it."""
        _write(path, asdict(self))


def draft_path(project: Project) -> Path:
    """Return where what was typed is kept."""
    return project.state.path.parent / f"draft-{project.number}.json"


def price_path(project: Project) -> Path:
    """Return where the price is kept."""
    return project.state.path.parent / f"price-{project.number}.json"


def keep_draft(project: Project, draft: Draft) -> None:
    """Keep what was typed, so that nothing is lost if it is refused."""
    _write(draft_path(project), asdict(draft))


def draft_of(project: Project) -> Draft | None:
    """Return what was typed last."""
    found = _read(draft_path(project))
    try:
        return None if found is None else Draft(**found)
    except TypeError:
        return None


def price_of(project: Project) -> Price | None:
    """Return the price that was computed last."""
    found = _read(price_path(project))
    try:
        return None if found is None else Price(**found)
    except TypeError:  # of another version of keyhole
        return None


def discard(project: Project) -> None:
    """Forget the step and its price."""
    for path in (draft_path(project), price_path(project)):
        path.unlink(missing_ok=True)


def _write(path: Path, found: Mapping[str, Any]) -> None:
    with write_whole(path, force=True) as temporary:
        temporary.write_text(json.dumps(found), encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
