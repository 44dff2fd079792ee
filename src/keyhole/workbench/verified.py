"""What the last verification of a dossier found, kept beside the results it is about."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keyhole.errors import FileError
from keyhole.reviews.files import hash_file, hash_or_none
from keyhole.reviews.folders import own_folder, require_no_link
from keyhole.reviews.store import RESULTS, Store, to_json
from keyhole.reviews.store_shapes import TABLE, fits, read_json

__all__ = ["VERIFICATION", "last_verification", "verify_and_keep"]

VERIFICATION = "verification.json"
_SHAPE = {"of": str, "same": bool, "figures": int, "differences": [str], "tables": [TABLE]}


def verify_and_keep(folder: Path, tell: Callable[[str], None]) -> None:
    """Verify a dossier, and keep what was found with the hash of the results it was found of.

    The review file is the one beside the folder, wherever the folder says that it is.
    """
    from keyhole.reviews.stages import plain_tables
    from keyhole.reviews.verifying import verify

    require_no_link(folder)
    found = verify(folder, review=folder.with_name(f"{folder.name}.toml"), progress=tell)
    content = {
        "of": hash_file(folder / RESULTS),
        "same": found.same,
        "figures": found.figures,
        "differences": list(found.differences),
        "tables": plain_tables(found),
    }
    with own_folder(folder, lambda: None):
        Store(folder).write(VERIFICATION, to_json(content))


def last_verification(folder: Path) -> Mapping[str, Any] | None:
    """Return what was found, if it is of the results that are there now.

    Raises
    ------
    FileError
        If what is kept is not what a verification keeps.
    """
    path = folder / VERIFICATION
    if not os.path.lexists(path):
        return None
    content: dict[str, Any] | None = None if path.is_symlink() else read_json(path)
    if content is None or not fits(content, _SHAPE):
        raise FileError(f"{VERIFICATION} is not what a verification writes. Verify again.")
    return content if content["of"] == hash_or_none(folder / RESULTS) else None
