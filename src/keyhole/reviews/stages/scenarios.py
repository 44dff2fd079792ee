"""The stage that sets scenarios side by side: their stories, their keys, the worst of them."""

from __future__ import annotations

from typing import Any

from keyhole.results import Result
from keyhole.reviews.files import Files, key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.source import SCENARIO
from keyhole.reviews.stages.stage import (
    Asked,
    Earlier,
    Progress,
    Stage,
    own_picture,
)

__all__ = ["SCENARIO_STAGE"]


def _ask(review: Review, _: Earlier) -> Asked | None:
    if review.scenarios is None or not review.scenarios.names:
        return None
    names = ("cutoff", "weight", "fraction")
    asked = {name: getattr(review.exposure, name) for name in names}
    return {"scenarios": list(review.scenarios.names), **asked}


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.scenarios import compare_scenarios

    options = {name: value for name, value in asked.items() if name != "scenarios"}
    keys = (key_of(files, f"{SCENARIO}{name}") for name in asked["scenarios"])
    found = [key for key in keys if key is not None]
    return compare_scenarios(files["data"].data, found, **options)


def _figures(found: Any) -> Asked:
    """Keep the figures, and each scenario's story and key as tables."""
    stories = [
        {
            "name": part.name,
            "title": part.key.scenario.title,
            "tables": [table.to_plain() for table in part.key.tables()],
        }
        for part in found.parts
    ]
    return {**found.to_dict(), "stories": stories}


SCENARIO_STAGE = Stage(
    "scenarios",
    "Scenarios",
    _ask,
    _run,
    reads=("data", "scenario"),
    draw=own_picture,
    figures=_figures,
)
