"""Format of a dossier's folder: the files it may hold, and the shape of each.

A dossier goes from hand to hand, so what is read back is checked first: files and folders are
those of the folder itself and no links, JSON has an end, and records have the shape in which
they are written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keyhole.core.toml import is_deep

MARK = "keyhole-review.json"
REPORT, NOTE, RESULTS = "report.html", "public-note.html", "results.json"
_OUTPUTS = ("protection", "synthesis", "table")
_PARTS = ("release", "internal")

TABLE = {"title": str, "columns": [str], "rows": [[str]], "notes": [str]}
_NOTE = {"text": str, "code": str, "values": dict}
_FILE = {"file": str, "sha256": str}
_RECORD = {
    "stage": str,
    "title": str,
    "key": str,
    "asked": dict,
    "result": dict,
    "tables": [TABLE],
    "charts": {str: str},
    "sha256": str,
}
CONTENT = {
    "title": str,
    "review": _FILE,
    "data": _FILE,
    "files": {str: _FILE},
    "settings": dict,
    "limits": [dict],
    "stages": {str: dict},
    "versions": {str: str},
    "sha256": str,
}
PAGES = {str: str}


def fits(value: Any, shape: Any) -> bool:
    """Tell whether plain values have a shape: a type, a list of one shape, shapes by name.

    ``{str: shape}`` stands for any names; of others at least those given must be there.
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(fits(one, shape[str]) for one in value.values())
    return all(name in value and fits(value[name], inner) for name, inner in shape.items())


def is_record(value: Any, stage: str) -> bool:
    """Tell whether values are the record of a stage, by their shape."""
    return (
        fits(value, _RECORD)
        and fits(value.get("notes", []), [_NOTE])
        and value["stage"] == stage
        and all(is_own_chart(stage, name) for name in value["charts"])
        and all(len(row) == len(t["columns"]) for t in value["tables"] for row in t["rows"])
    )


def is_own_chart(stage: str, name: str) -> bool:
    """Tell whether a picture has a name that the stage gives, and no path."""
    return name == stage or re.fullmatch(rf"{re.escape(stage)}-[a-z0-9]+", name) is not None


def read_json(path: Path) -> Any:
    """Read plain values; None for what is no JSON, is nested without end, or is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return None if is_deep(found) else found


def out_of_place(folder: Path) -> list[str]:
    """Say what stands in the folder of a review in place of its own files and folders.

    What lies there by other names is nobody's business.
    """
    return [*_out_of_place(folder)]


def _out_of_place(folder: Path) -> Iterator[str]:
    for name in (MARK, REPORT, NOTE, RESULTS):
        yield from _unless_own(folder / name, "file")
    for name in ("stages", "charts"):
        yield from _unless_own(folder / name, "folder")
        for path in _entries(folder / name):
            if path.suffix in (".json", ".svg"):
                yield from _unless_own(path, "file")
    for name in _OUTPUTS:
        yield from _unless_own(folder / name, "folder")
        for part in _PARTS:
            yield from _below(folder / name / part)


def _below(folder: Path) -> Iterator[str]:
    """Go through all of a folder, and into no link."""
    yield from _unless_own(folder, "folder")
    for path in _entries(folder):
        yield from _below(path) if _what(path) == "folder" else _unless_own(path, "file")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if _what(folder) == "folder" else []


def _unless_own(path: Path, wanted: str) -> Iterator[str]:
    what = _what(path)
    if what not in (wanted, None):
        yield f"{str(path)!r} must be a {wanted} of its own. Got a {what} instead. Move it away."


def _what(path: Path) -> str | None:
    if path.is_symlink():
        return "link"
    if not os.path.lexists(path):
        return None
    return "folder" if path.is_dir() else "file" if path.is_file() else "pipe, socket or device"
