"""Stored results of a review, and its last verification, as the pages show them.

The dossier's own chapters are used, so that small counts are protected here as they are there.
Results of before a change are shown too; what they do not answer is left out.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keyhole.core.tables import Table
from keyhole.errors import FileError
from keyhole.reviews.count_sheets import CountSheet, smallest_shown
from keyhole.reviews.files import hash_file, hash_or_none
from keyhole.reviews.limits import Limit, find_limits
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import restored, selection_stage, study_stage
from keyhole.reviews.stages.releases import RELEASES
from keyhole.reviews.store import (
    RESULTS,
    TABLE,
    ResultStore,
    fits,
    own_folder,
    read_json,
    require_no_link,
    to_json,
)
from keyhole.reviews.study_chapters import AttackChapter, attacks
from keyhole.reviews.synthesis_chapters import SynthesisChapter, synthesis_chapter
from keyhole.workbench.page import View

Record = Mapping[str, Any]
VERIFICATION = "verification.json"
_SHAPE = {"of": str, "same": bool, "figures": int, "differences": [str], "tables": [TABLE]}


def stored_records(view: View) -> dict[str, Record]:
    """Return the records of the stages that the review asks for, as far as there are any."""
    return {
        name: standing.record
        for name, standing in view.look.standings.items()
        if standing.record is not None and standing.state != "unasked"
    }


def stored_attacks(view: View) -> list[AttackChapter]:
    """Return the study by each metric that has a result."""
    records = stored_records(view)
    review = _with_metrics(view.review, records)
    sheet = CountSheet(smallest_shown(review.exposure.cutoff))
    return attacks(review, restored(records), sheet)


def stored_synthesis(view: View) -> SynthesisChapter | None:
    """Return what the synthesis gave; the attack on it only where that is of now."""
    records, review = stored_records(view), view.review
    study = review.study
    wanted = [RELEASES, *(study_stage(metric) for metric in (study.metrics if study else ()))]
    if any(view.standing(stage).state != "current" for stage in wanted):
        review = dataclasses.replace(review, study=None)
    sheet = CountSheet(smallest_shown(review.exposure.cutoff))
    return synthesis_chapter(review, restored(records), sheet)


def stored_limits(view: View) -> tuple[Limit, ...]:
    """Compare what is stored with the limits; one without a result is left out."""
    records = stored_records(view)
    review = _with_metrics(view.review, records)
    if view.standing(RELEASES).state != "current" or review.study != view.review.study:
        records.pop(RELEASES, None)  # it may be of other metrics
    absent = {name for name, one in view.look.standings.items() if one.state == "absent"}
    if {"exposure", "fix"} & absent:
        review = dataclasses.replace(review, exposure=review.exposure.replace(limit=None))
    if review.selection is not None:
        stages = {selection_stage(one) for one in review.selection.methods}
        if absent & {*stages, "proposal", "frontier", "alternative"}:
            review = dataclasses.replace(review, selection=None, frontier=None)
    if "protection" not in records:
        review = dataclasses.replace(review, protection=None)
    return find_limits(review, restored(records))


def _with_metrics(review: Review, records: Mapping[str, Record]) -> Review:
    """Leave out of the study the metrics that have no result, and one that has none at all."""
    if review.study is None:
        return review
    found = tuple(metric for metric in review.study.metrics if study_stage(metric) in records)
    study = review.study.replace(metrics=found) if found else None
    return dataclasses.replace(review, study=study)


def verify_and_keep(folder: Path, tell: Callable[[str], None]) -> None:
    """Verify a dossier, and keep what was found with the hash of the results it was found of.

    The review file is the one beside the folder, wherever the folder says that it is.
    """
    from keyhole.reviews.verifying import verify

    require_no_link(folder)
    found = verify(folder, review=folder.with_name(f"{folder.name}.toml"), progress=tell)
    content = {
        "of": hash_file(folder / RESULTS),
        "same": found.same,
        "figures": found.figures,
        "differences": list(found.differences),
        "tables": [table.to_plain() for table in found.tables()],
    }
    with own_folder(folder, lambda: None):
        ResultStore(folder).write(VERIFICATION, to_json(content))


def last_verification(folder: Path) -> dict[str, Any] | None:
    """Return what was found, if it is of the results that are there now."""
    path = folder / VERIFICATION
    if not os.path.lexists(path):
        return None
    content: dict[str, Any] | None = None if path.is_symlink() else read_json(path)
    if content is None or not fits(content, _SHAPE):
        raise FileError(f"{VERIFICATION} is not what a verification writes. Verify again.")
    if content["of"] != hash_or_none(folder / RESULTS):
        return None
    return content | {"tables": [Table.from_plain(table) for table in content["tables"]]}
