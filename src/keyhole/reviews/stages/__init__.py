"""Stages of a review, in the order of the work.

A further stage is one more entry of `STAGES`, its settings in `schema` and `settings`, and a
chapter in the report.
"""

from collections.abc import Mapping
from typing import Any

from keyhole.reviews.stages.attacks import ATTACKS_STAGE, RELEASES_STAGE, STUDY_STAGES
from keyhole.reviews.stages.exposure import EXPOSURE_STAGES
from keyhole.reviews.stages.outgoing import OUTGOING_STAGES
from keyhole.reviews.stages.products import PROTECTION_STAGE, SYNTHESIS_STAGE
from keyhole.reviews.stages.selection import SELECTION_STAGES
from keyhole.reviews.stages.stage import Stage
from keyhole.reviews.stages.tables import TABLE_STAGES

STAGES: tuple[Stage, ...] = (
    *EXPOSURE_STAGES,
    *SELECTION_STAGES,
    *STUDY_STAGES,
    PROTECTION_STAGE,
    SYNTHESIS_STAGE,
    RELEASES_STAGE,
    *OUTGOING_STAGES,
    ATTACKS_STAGE,
    *TABLE_STAGES,
)


_BY_NAME = {stage.name: stage for stage in STAGES}


def restored(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the results that stored records hold, by stage."""
    return {name: _BY_NAME[name].restore(record) for name, record in records.items()}
