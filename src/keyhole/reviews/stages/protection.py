"""The stage that carries out a plan of protections and keeps its ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from keyhole.data import Microdata, load
from keyhole.errors import KeyholeError
from keyhole.protection.plan import Plan
from keyhole.results import Result
from keyhole.reviews.files import Files, hash_file, read_steadily
from keyhole.reviews.protected_files import (
    FITTED,
    PARAMETERS,
    ROWS,
    ProtectedFile,
    find_protected,
    read_rows,
    write_protected,
)
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import Asked, Earlier, Outputs, Progress, Stage, own_picture
from keyhole.synthesis.release import require_free

__all__ = ["PROTECTED_FILE", "PROTECTION", "PROTECTION_STAGE", "hash_release"]

PROTECTION = "protection"
# The part of the review that the protected file is.
PROTECTED_FILE = "protected"


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
    write_protected(found.protection, found.seed, folder, found.plan)


def hash_release(folder: Path) -> dict[str, str]:
    """Hash what goes out; from a hash of what does not, a secret in it could be guessed."""
    found = sorted(path for path in (folder / "release").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in found}


def _parts(folder: Path, review: Review, __: Files) -> Files:
    """Return the protected file, for the stages that look at what would go out."""
    path = find_protected(folder)
    data, digest = read_steadily(path, partial(_load, review))
    # The digest stays that of the release: of what is internal no hash is kept anywhere.
    plan, _ = read_steadily(folder / FITTED, Plan.read)
    rows, _ = read_steadily(folder / ROWS, read_rows)
    name = path.relative_to(folder.parent).as_posix()
    return {PROTECTED_FILE: ProtectedFile(name, data, digest, plan=plan, rows=rows)}


def _load(review: Review, path: Path) -> Microdata:
    """Read it like the file under review; what a step recoded may be of another kind."""
    given = review.data
    data = load(path, encoding=given.encoding, delimiter=given.delimiter, sheet=given.sheet)
    codes = given.missing_codes
    if isinstance(codes, Mapping):
        codes = {name: listed for name, listed in codes.items() if name in {*data.names, "*"}}
    return load(data, missing_codes=codes) if codes else data


def _answers(folder: Path, asked: Asked) -> bool:
    """Tell whether the file was made by the plan and drawn with the seed asked for."""
    try:
        made = json.loads((folder / PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = isinstance(made, dict) and made.get("seed", -1) == asked["seed"]
    return same and made.get("plan") == asked["plan"] and _is_whole(folder)


def _is_whole(folder: Path) -> bool:
    try:
        Plan.read(folder / FITTED)
        return len(read_rows(folder / ROWS)) > 0
    except (KeyholeError, OSError):
        return False


PROTECTION_STAGE = Stage(
    PROTECTION,
    "Protection",
    _ask,
    _run,
    reads=("data",),
    draw=own_picture,
    figures=_figures,
    outputs=Outputs(
        partial(require_free, force=True),
        _save,
        hash_release,
        _answers,
        secrets=("seed", "plan"),
        parts=_parts,
    ),
    returns="keyhole.protection.results.Protection",
)
