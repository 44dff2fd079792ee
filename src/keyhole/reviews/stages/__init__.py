"""Stages of a review, in the order of the work.

A further stage is one more entry of `STAGES`, its settings in `schema` and `settings`, and a
chapter in the report.
"""

from collections.abc import Mapping
from typing import Any

from keyhole.reviews.stages.attacks import ATTACKS_STAGE
from keyhole.reviews.stages.attributes import ATTRIBUTES_STAGE, RELEASED_ATTRIBUTES_STAGE
from keyhole.reviews.stages.exposure import (
    DRIVERS_STAGE,
    EXPOSURE_STAGES,
    SCENARIO_STAGE,
    SCREEN_STAGE,
)
from keyhole.reviews.stages.outgoing import OUTGOING_STAGE, REMAINING_STAGE
from keyhole.reviews.stages.protection import PROTECTION_STAGE
from keyhole.reviews.stages.releases import RELEASES_STAGE, STUDY_STAGES, study_stage
from keyhole.reviews.stages.selection import (
    SELECTION_STAGES,
    SOLVE_STAGE,
    better_set,
    proposed_set,
    selection_stage,
)
from keyhole.reviews.stages.stage import Asked, Stage
from keyhole.reviews.stages.synthesis import SYNTHESIS_STAGE
from keyhole.reviews.stages.tables import TABLE_STAGES

__all__ = [
    "STAGES",
    "Asked",
    "Stage",
    "better_set",
    "proposed_set",
    "restored",
    "selection_stage",
    "study_stage",
]

STAGES: tuple[Stage, ...] = (
    SCREEN_STAGE,
    *EXPOSURE_STAGES,
    DRIVERS_STAGE,
    ATTRIBUTES_STAGE,
    SCENARIO_STAGE,
    SOLVE_STAGE,
    *SELECTION_STAGES,
    *STUDY_STAGES,
    PROTECTION_STAGE,
    SYNTHESIS_STAGE,
    RELEASES_STAGE,
    REMAINING_STAGE,
    OUTGOING_STAGE,
    RELEASED_ATTRIBUTES_STAGE,
    ATTACKS_STAGE,
    *TABLE_STAGES,
)


_BY_NAME = {stage.name: stage for stage in STAGES}


def restored(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the results that stored records hold, by stage."""
    return {name: _BY_NAME[name].restore(record) for name, record in records.items()}
