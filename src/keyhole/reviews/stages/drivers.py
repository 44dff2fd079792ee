"""The stage that finds what puts records into small cells.

What it keeps is protected like the report: levels whose counts are small, or could be worked out
from the others', are neither named nor drawn, so that no table, picture or figure tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keyhole.results import Result
from keyhole.reviews.count_sheets import CountSheet, smallest_shown
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, measured, own_picture

if TYPE_CHECKING:
    from keyhole.exposure.drivers import Driver, Drivers

__all__ = ["DRIVERS_STAGE", "ask_drivers", "without_small_levels"]


def ask_drivers(review: Review, _: Earlier) -> Asked | None:
    """Ask which levels put records into small cells, if the review does."""
    if review.drivers is None:
        return None
    return {
        "keys": list(review.keys),
        "cutoff": review.exposure.cutoff,
        **review.drivers.values,
        # The table by group tells of its levels, and withholds others than this stage would.
        "told_elsewhere": review.exposure.by,
    }


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.drivers import drivers

    options = dict(asked)
    told_elsewhere = options.pop("told_elsewhere")
    # Small levels are taken out below, by the rule of the report.
    found = drivers(measured(files), **options, name_small_groups=True)
    return without_small_levels(found, told_elsewhere)


def without_small_levels(found: Drivers, told_elsewhere: str | None = None) -> Drivers:
    """Leave out the levels of which something small could be told.

    A level stays if it has enough records, enough of them are at risk, and either none or enough
    are not; and if nothing of a level left out follows from it and the totals.

    Parameters
    ----------
    found
        What `keyhole.drivers` found.
    told_elsewhere
        A variable that another table tells of: it is left out as a whole.
    """
    smallest = smallest_shown(found.cutoff)
    told: set[tuple[str, int]] = set()
    for name in found.variables:
        if name != told_elsewhere:
            levels = [one for one in found.levels if one.variable == name]
            told |= {(name, levels[i].place) for i in _tellable(levels, smallest)}
    least = smallest / max(found.records, 1)

    def stays(one: Any) -> bool:
        places = getattr(one, "places", None) or (one.place,)
        return {(one.variable, place) for place in places} <= told and (
            getattr(one, "gain", least) >= least
        )

    return found.keeping(stays)


def _tellable(levels: Sequence[Driver], smallest: int) -> list[int]:
    """Return the places of the levels whose counts may all be told, given the file's totals."""
    sheet = CountSheet(smallest)
    sizes = [sheet.count(one.records, floor=1) for one in levels]
    risky = [sheet.count(one.at_risk, of=size) for one, size in zip(levels, sizes, strict=True)]
    for column in (sizes, risky):
        sheet.add_up(column, sum(count.value for count in column))
    return [i for i in range(len(levels)) if sizes[i].exact and risky[i].exact]


DRIVERS_STAGE = Stage(
    "drivers", "What drives exposure", ask_drivers, _run, draw=own_picture,
    returns="keyhole.exposure.drivers.Drivers",
)  # fmt: skip
