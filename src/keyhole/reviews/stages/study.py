"""The stages that attack a file as an intruder would, one a metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keyhole.core.options import Question
from keyhole.reidentification.question import OPTIONS_OF_METRIC
from keyhole.results import Result
from keyhole.reviews.files import LINKED, Files, scenario_key_of
from keyhole.reviews.schema import METRICS
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, own_picture


def study_stage(metric: str) -> str:
    """Return the name of the stage that runs a metric."""
    return f"study-{metric}"


def asked_scenario(given: Question) -> Asked:
    """Name the scenario whose key is linked on, if it is one's."""
    return {} if given.scenario is None else {"scenario": given.scenario}


def _ask(metric: str) -> Callable[[Review, Earlier], Asked | None]:
    def ask(review: Review, _: Earlier) -> Asked | None:
        given = review.study
        if given is None or metric not in given.metrics:
            return None
        lists = ("puf_id", "eif_id", "link", "numeric", "strata")
        chosen = {name: given.values[name] for name in OPTIONS_OF_METRIC[metric]}
        return {
            "metric": metric,
            **{name: list(given.values[name]) for name in lists},
            **chosen,
            "permutations": given.permutations,
            "seed": given.seed,
            **asked_scenario(given),
        }

    return ask


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.reidentification.study import study

    puf, eif, iuf = (files[part].data for part in ("puf", "eif", "iuf"))
    options = {**asked, "scenario": scenario_key_of(files, LINKED)}
    return study(puf=puf, eif=eif, iuf=iuf, **options, progress=_told(progress))


def _told(progress: Progress) -> Callable[..., None]:
    """Pass on what is being done, and its share in whole percents, each told once."""
    last: list[Any] = ["", -1]

    def tell(done: Any, most: float | None = None) -> None:
        if isinstance(done, str):
            last[:] = [done, -1]
            progress(done)
        elif most and (percent := int(100 * done // most)) > last[1]:
            last[1] = percent
            progress(f"{last[0]}: {percent}%")

    return tell


STUDY_STAGES: tuple[Stage, ...] = tuple(
    Stage(
        study_stage(metric), f"Study, {metric}", _ask(metric), _run,
        reads=("puf", "eif", "iuf", LINKED), draw=own_picture,
        returns="keyhole.reidentification.result.Study",
    )
    for metric in METRICS
)  # fmt: skip
