"""The stage that makes a partially synthetic release of the file, and evaluates it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keyhole.results import Result
from keyhole.reviews.files import Files, hash_file
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Outputs, Progress, Stage, counted

__all__ = ["SYNTHESIS", "SYNTHESIS_STAGE"]

SYNTHESIS = "synthesis"
# Holds the seed, in the part of the folder that is the producer's alone.
PARAMETERS = "internal/parameters.json"
_AS_THEY_ARE = (
    *("implicates", "targeted", "graded", "decoys", "seed", "cutoff", "weight", "fraction"),
    *("least_probability", "keep_order", "formula", "self_match"),
)


def _ask(review: Review, _: Earlier) -> Asked | None:
    given = review.synthesis
    if given is None:
        return None
    return {
        **{name: list(getattr(given, name)) for name in ("keys", "targets", "strata")},
        **{name: getattr(given, name) for name in _AS_THEY_ARE},
        "rules": None if given.rules is None else dict(given.rules),
        "predictors": {target: list(names) for target, names in given.predictors.items()},
        "crosses": [list(cross) for cross in given.crosses],
        **given.options,
    }


def _run(files: Files, asked: Asked, _: Earlier, progress: Progress) -> Result:
    from keyhole.synthesis.synthesise import synthesise

    tell = counted(progress)
    data = files["data"].data
    return synthesise(data, **asked, progress=lambda share: tell(int(100 * share), 100))


def _problems(folder: Path) -> list[str]:
    from keyhole.synthesis.release import require_free

    return require_free(folder, force=True)


def _save(made: Any, folder: Path) -> None:
    made.save(folder, force=True)


def _hashes(folder: Path) -> dict[str, str]:
    """Hash what was written, but for the file with the seed."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: hash_file(path) for name, path in named.items() if name != PARAMETERS}


def _answers(folder: Path, asked: Asked) -> bool:
    """Tell whether a release was drawn with the seed asked for."""
    try:
        made = json.loads((folder / PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(made, dict) and made.get("seed") == asked["seed"]


SYNTHESIS_STAGE = Stage(
    SYNTHESIS,
    "Synthesis",
    _ask,
    _run,
    outputs=Outputs(_problems, _save, _hashes, _answers, secrets=("seed",)),
)
