"""The chapter on scenarios: who would attack, with what key, and how exposed the file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.reviews.chapters import Sheet
from keyhole.reviews.settings import Review

__all__ = ["ScenarioChapter", "Story", "scenario_chapter"]

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Story:
    """One scenario: its points in words, its key, and how the key was derived."""

    title: str
    points: Sequence[tuple[str, str]]
    notes: Sequence[str]
    key: Sheet
    derived: Sequence[Sheet]


@dataclass(frozen=True, slots=True)
class ScenarioChapter:
    """All scenarios: side by side, then one by one."""

    sheets: Sequence[Sheet]
    stories: Sequence[Story]
    worst: str | None
    chosen: str | None


def scenario_chapter(
    review: Review, records: Mapping[str, Mapping[str, Any]]
) -> ScenarioChapter | None:
    """Return the chapter, if the review has scenarios."""
    if "scenarios" not in records or review.scenarios is None:
        return None
    record = records["scenarios"]
    result = record["result"]
    return ScenarioChapter(
        [Sheet.stored(table) for table in record["tables"]],
        [_story(story) for story in result["stories"]],
        result["worst"],
        review.scenarios.chosen,
    )


def _story(story: Figures) -> Story:
    points, key, *rest = story["tables"]
    return Story(
        story["title"],
        [(row[0], row[1]) for row in points["rows"]],
        points["notes"],
        Sheet.stored(key),
        [Sheet.stored(table) for table in rest],
    )
