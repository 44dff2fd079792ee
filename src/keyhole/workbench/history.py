"""The history of a review file: the changes made to it, and the way back to each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from keyhole.workbench.projects import Project

__all__ = ["Step", "go_to", "history"]


@dataclass(frozen=True, slots=True)
class Step:
    """A version of the review file: what was changed, when, and whether it is the one of now."""

    number: int
    label: str
    at: str
    now: bool
    undone: bool


def history(project: Project) -> list[Step]:
    """Return the versions of a review file, the last one first."""
    with project.state.reading() as database:
        rows = database.execute(
            "SELECT number, label, at FROM versions WHERE project = ? ORDER BY number DESC",
            [project.number],
        ).fetchall()
        row = database.execute(
            "SELECT number FROM cursors WHERE project = ?", [project.number]
        ).fetchone()
    here = int(row["number"]) if row else 0
    return [
        Step(r["number"], r["label"], _when(r["at"]), r["number"] == here, r["number"] > here)
        for r in rows
    ]


def go_to(project: Project, number: int) -> None:
    """Undo or redo until a version is the one of now; one that is not there changes nothing."""
    if number not in {step.number for step in history(project)}:
        return
    here = _here(project)
    while here != number:
        # What was edited outside becomes a version first, so that a step may go there and back.
        moved = project.undo() if number < here else project.redo()
        if moved is None:
            return
        here = _here(project)


def _here(project: Project) -> int:
    return next((step.number for step in history(project) if step.now), 0)


def _when(seconds: float) -> str:
    """Write a time as the clock on the wall shows it."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
