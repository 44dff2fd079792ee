"""The chapter on scenarios: who would attack, with what key, and how exposed the file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.tables import Table
from keyhole.reviews.settings import Review

__all__ = ["Glance", "ScenarioChapter", "Story", "scenario_chapter"]

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Story:
    """One scenario: its points in words, its key, and how the key was derived."""

    title: str
    points: Sequence[tuple[str, str]]
    notes: Sequence[str]
    key: Table
    derived: Sequence[Table]


@dataclass(frozen=True, slots=True)
class Glance:
    """The worst case at the head of the report."""

    name: str
    rp: float
    probability: str


@dataclass(frozen=True, slots=True)
class ScenarioChapter:
    """All scenarios: the worst of them, side by side, then one by one."""

    glance: Glance | None
    tables: Sequence[Table]
    stories: Sequence[Story]
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
        _glance(result),
        [Table.from_plain(table) for table in record["tables"]],
        [_story(story) for story in result["stories"]],
        review.scenarios.chosen,
    )


def _glance(result: Figures) -> Glance | None:
    found = [part for part in result["scenarios"] if part["scenario"] == result["worst"]]
    if not found:
        return None
    bounds = found[0]["identification"]["p_identification"]
    ends = [] if bounds is None else list(dict.fromkeys(map(percentage, bounds)))
    return Glance(
        found[0]["scenario"], found[0]["exposure"]["rp"], " to ".join(ends) or "not estimable"
    )


def _story(story: Figures) -> Story:
    points, key, *rest = story["tables"]
    return Story(
        story["title"],
        [(row[0], row[1]) for row in points["rows"]],
        points["notes"],
        Table.from_plain(key),
        [Table.from_plain(table) for table in rest],
    )
