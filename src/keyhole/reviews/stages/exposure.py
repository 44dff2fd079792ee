"""The stages that measure a file: its columns, its exposure, the cheapest fix, minimal uniques."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from keyhole.results import Result
from keyhole.reviews.count_sheets import smallest_shown
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import (
    Asked,
    Earlier,
    Progress,
    Stage,
    counted,
    measured,
    own_picture,
)

if TYPE_CHECKING:
    import altair

    from keyhole.exposure.cells import Exposure

__all__ = [
    "EXPOSURE",
    "EXPOSURE_STAGES",
    "ask_exposure",
    "ask_uniques",
    "draw_exposure",
    "run_exposure",
]


def _ask_data(review: Review, _: Earlier) -> Asked:
    exposure, chosen = review.exposure, review.selection
    names = [*review.keys]
    if chosen is not None:
        names += [*chosen.keep, *(name for group in chosen.candidates for name in group)]
    if review.drivers is not None:
        names += review.drivers.variables or ()
    if review.protection is not None:
        names += review.protection.keys
    if review.synthesis is not None:
        names += [*review.synthesis.keys, *review.synthesis.targets, *review.synthesis.strata]
    named = (exposure.weight, exposure.household, exposure.by, chosen.by if chosen else None)
    names += [name for name in named if name is not None]
    return {"columns": list(dict.fromkeys(names)), "labels": dict(review.data.labels)}


def _run_data(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.reviews.description import describe_columns

    return describe_columns(files["data"].data, tuple(asked["columns"]))


def ask_exposure(review: Review, _: Earlier) -> Asked:
    """Ask how exposed the file is on the keys."""
    apart = ("limit", "named_groups")  # judged and worded by the review
    asked = {n: v for n, v in review.exposure.values.items() if n not in apart}
    return {"keys": list(review.keys), **asked}


def run_exposure(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    """Measure how exposed the file is on any key."""
    from keyhole.exposure.cells import risk

    return risk(measured(files), **asked)


def _ask_fix(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for a fix only where the limit is exceeded."""
    limit = review.exposure.limit
    if limit is None or earlier["exposure"].rp <= limit:
        return None
    return {"keys": list(review.keys), "limit": limit, "cutoff": review.exposure.cutoff}


def _run_fix(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.fix import cheapest_fix

    return cheapest_fix(measured(files), **asked)


def ask_uniques(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for minimal uniques, if the review does; with the fraction that the weights give."""
    if review.uniques is None:
        return None
    asked = {"keys": list(review.keys), "cutoff": review.exposure.cutoff, **review.uniques.values}
    if asked["fraction"] is None:
        exposure = earlier.get("exposure")
        population = None if exposure is None else exposure.population
        given = None if population is None else population.sampling_fraction
        # Weights that add up to less than the records give no sampling fraction.
        asked["fraction"] = given if given is not None and given <= 1 else None
    for name in ("availability", "identifiability"):
        given = asked[name]
        if isinstance(given, Mapping):
            asked[name] = [given.get(key, 1.0) for key in review.keys] if given else None
    return asked


def _run_uniques(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.exposure.uniques import uniques

    found = uniques(measured(files), **asked, progress=counted(progress))
    # A category that flags few records only is as good as their value.
    summary = found.level_summary
    if (summary.worst_category_flags or 0) >= smallest_shown(found.cutoff):
        return found
    summary = dataclasses.replace(summary, worst_category=None)
    return dataclasses.replace(found, level_summary=summary)


def draw_exposure(found: Exposure) -> altair.TopLevelMixin:
    """Draw exposure; that a record or two are left out is not told in its words."""
    left_out = found.records - found.complete
    if left_out < smallest_shown(found.cutoff):
        found = dataclasses.replace(found, complete=found.records)
    return found.plot()


EXPOSURE = "keyhole.exposure.cells.Exposure"
EXPOSURE_STAGES: tuple[Stage, ...] = (
    Stage(
        "data", "The data", _ask_data, _run_data,
        returns="keyhole.reviews.description.Description",
    ),
    Stage(
        "exposure", "Exposure", ask_exposure, run_exposure, draw=draw_exposure, returns=EXPOSURE
    ),
    Stage(
        "fix", "Cheapest fix", _ask_fix, _run_fix, ("exposure",),
        returns="keyhole.exposure.fix.Fixes",
    ),
    Stage(
        "uniques", "Minimal uniques", ask_uniques, _run_uniques, ("exposure",), draw=own_picture,
        returns="keyhole.exposure.uniques.MinimalUniques",
    ),
)  # fmt: skip
