"""What the last verification of a dossier found, kept beside the results it is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keyhole.reviews.files import hash_file
from keyhole.reviews.store import RESULTS, Store, to_json

__all__ = ["VERIFICATION", "last_verification", "verify_and_keep"]

VERIFICATION = "verification.json"


def verify_and_keep(folder: Path, tell: Callable[[str], None]) -> None:
    """Verify a dossier, and keep what was found with the hash of the results it was found of."""
    from keyhole.reviews.stages import plain_tables
    from keyhole.reviews.verifying import verify

    found = verify(folder, progress=tell)
    content = {
        "of": hash_file(folder / RESULTS),
        "same": found.same,
        "figures": found.figures,
        "differences": list(found.differences),
        "tables": plain_tables(found),
    }
    Store(folder).write(VERIFICATION, to_json(content))


def last_verification(folder: Path) -> Mapping[str, Any] | None:
    """Return what was found, if it is of the results that are there now."""
    try:
        content = json.loads((folder / VERIFICATION).read_text(encoding="utf-8"))
        same = content["of"] == hash_file(folder / RESULTS)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return content if same else None
