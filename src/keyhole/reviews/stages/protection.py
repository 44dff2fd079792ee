"""The stage that carries out a plan of protections and keeps its ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keyhole.results import Result
from keyhole.reviews.files import Files, hash_file
from keyhole.reviews.protected_files import PARAMETERS, require_free, write_protected
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Outputs, Progress, Stage, own_picture

__all__ = ["PROTECTION_STAGE"]


def _ask(review: Review, _: Earlier) -> Asked | None:
    given, exposure = review.protection, review.exposure
    if given is None:
        return None
    return {
        "plan": given.plan,
        "keys": list(given.keys),
        "targets": None if given.targets is None else list(given.targets),
        "cutoff": exposure.cutoff,
        "limit": given.limit,
        "weight": exposure.weight,
        "fraction": exposure.fraction,
        "missing": given.missing,
        "formula": given.formula,
        "seed": given.seed,
    }


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.protection.ledger import ledger

    return ledger(files["data"].data, **asked)


def _figures(found: Any) -> Asked:
    return {**found.protection.to_dict(), "ledger": found.to_dict()}


def _save(found: Any, folder: Path) -> None:
    write_protected(found.protection, found.seed, folder)


def _hashes(folder: Path) -> dict[str, str]:
    """Hash what was written, but for the file with the seed."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: hash_file(path) for name, path in named.items() if name != PARAMETERS}


def _answers(folder: Path, asked: Asked) -> bool:
    """Tell whether the file was drawn with the seed asked for."""
    try:
        made = json.loads((folder / PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(made, dict) and made.get("seed", -1) == asked["seed"]


PROTECTION_STAGE = Stage(
    "protection",
    "Protection",
    _ask,
    _run,
    reads=("data",),
    draw=own_picture,
    figures=_figures,
    outputs=Outputs(require_free, _save, _hashes, _answers, secrets=("seed",)),
)
