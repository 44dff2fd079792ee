"""The stage that screens the file before anything is measured."""

from __future__ import annotations

import datetime

from keyhole.results import Result
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, own_picture

__all__ = ["SCREEN_STAGE"]


def _ask(review: Review, _: Earlier) -> Asked | None:
    given = review.screen
    if given is None:
        return None
    keys = () if review.scenarios is not None and review.scenarios.chosen else review.keys
    # Named, so that in another year the question is another one.
    year = datetime.date.today().year if given.year is None else given.year
    return {"keys": list(keys), **given.values, "year": year}


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.screening.screen import screen

    return screen(files["data"].data, **asked)


SCREEN_STAGE = Stage(
    "screen", "Screening", _ask, _run, reads=("data",), draw=own_picture,
    returns="keyhole.screening.screen.Screening",
)  # fmt: skip
