"""The stage that attacks other releases than the file under review: candidates, an implicate.

A synthesis protects the key it was told of. Whether the attack of this very review still succeeds
is another question, and the one a board asks: so the attack is made on the first implicate too.
"""

from __future__ import annotations

from typing import Any

from keyhole.data import Microdata
from keyhole.results import Result
from keyhole.reviews.files import LINKED, Files, key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.reviews.stages.study import asked_scenario
from keyhole.reviews.stages.synthesis import IMPLICATE, SYNTHESIS

__all__ = ["CANDIDATE", "PROTECTED", "RELEASES", "RELEASES_STAGE", "attacks_implicate"]

RELEASES = "releases"
CANDIDATE = "candidate"
# What the first implicate is called among the releases.
PROTECTED = "synthesis, implicate 1"
_AS_THEY_ARE = (
    "alpha", "threshold", "cuts", "scores", "orders", "rank_cap", "permutations", "seed",
)  # fmt: skip


def attacks_implicate(review: Review) -> bool:
    """Tell whether the attack is made on an implicate: if the file it was made from is attacked."""
    return review.synthesis is not None and review.study is not None and review.study.puf is None


def _ask(review: Review, _: Earlier) -> Asked | None:
    given = review.study
    if given is None or not (given.candidates or attacks_implicate(review)):
        return None
    lists = ("puf_id", "eif_id", "link", "numeric", "strata", "metrics")
    return {
        "candidates": sorted(given.candidates),
        "implicate": attacks_implicate(review),
        **{name: list(getattr(given, name)) for name in lists},
        **{name: getattr(given, name) for name in _AS_THEY_ARE},
        **asked_scenario(given),
    }


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.reidentification.candidates import attach_ids
    from keyhole.reidentification.compare import StudyComparison

    pufs = {name: files[f"{CANDIDATE}:{name}"].data for name in asked["candidates"]}
    if asked["implicate"]:
        made = files[IMPLICATE].data
        # The implicates keep the order of the records.
        pufs[PROTECTED] = attach_ids(made, files["data"].data, asked["puf_id"])
    rows = [
        row
        for name, puf in pufs.items()
        for row in _attacked(name, puf, files, asked, progress).rows
    ]
    return StudyComparison(tuple(rows))


def _attacked(name: str, puf: Microdata, files: Files, asked: Asked, progress: Progress) -> Any:
    """Attack one release; what it does not tell is missing, and strata it lacks are none."""
    from keyhole.reidentification.candidates import blank_variables
    from keyhole.reidentification.compare import compare_studies

    kept = {k: v for k, v in asked.items() if k not in ("candidates", "implicate", "strata")}
    return compare_studies(
        {name: puf},
        eif=files["eif"].data,
        iuf=files["iuf"].data,
        strata=[stratum for stratum in asked["strata"] if stratum in puf.names],
        blank=blank_variables(puf, asked["link"]),
        progress=lambda step, *_: progress(str(step)),
        **{**kept, "scenario": key_of(files, LINKED)},
    )


RELEASES_STAGE = Stage(
    RELEASES,
    "Study of other releases",
    _ask,
    _run,
    (SYNTHESIS,),
    reads=("data", "eif", "iuf", LINKED, CANDIDATE, IMPLICATE),
)
