"""Opening a review, a file or the example from the start page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from keyhole.core.files import write_whole
from keyhole.errors import FileError, InputError
from keyhole.workbench.places import inside, seen_from
from keyhole.workbench.projects import Project, Projects
from keyhole.workbench.view import Form

__all__ = ["files_below", "open_example", "open_named", "shown_name"]

READABLE = {".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".xlsx", ".sas7bdat",
            ".xpt", ".sav", ".zsav", ".por", ".dta"}  # fmt: skip
MOST_FILES = 200
DEEPEST = 3
EXAMPLE = "example"


def shown_name(folder: Path, path: Path) -> str:
    """Write a path as seen from the start folder."""
    return seen_from(folder, path)


def files_below(folder: Path) -> dict[str, list[str]]:
    """List the review files and the data files below a folder, a few levels down."""
    found: dict[str, list[str]] = {"reviews": [], "data": []}
    level = [folder]
    for _ in range(DEEPEST):
        inner: list[Path] = []
        for place in level:
            for path in _entries(place):
                if path.is_dir():
                    inner.append(path)
                elif path.suffix == ".toml" and _is_review(path):
                    found["reviews"].append(seen_from(folder, path))
                elif path.suffix.lower() in READABLE:
                    found["data"].append(seen_from(folder, path))
        level = [place for place in inner if not _is_results(place)]
    return {kind: sorted(names)[:MOST_FILES] for kind, names in found.items()}


def _entries(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in entries if not path.name.startswith(".") and not path.is_symlink()]


def _is_results(folder: Path) -> bool:
    from keyhole.reviews.store import MARK

    return (folder / MARK).exists()


def _is_review(path: Path) -> bool:
    """Tell whether a TOML file looks like a review: it has a section for the data."""
    try:
        return (
            path.stat().st_size < 1_000_000
            and re.search(r"^\s*\[data\]", path.read_text(encoding="utf-8"), re.MULTILINE)
            is not None
        )
    except (OSError, UnicodeDecodeError):
        return False


def open_named(projects: Projects, form: Form) -> Project:
    """Open a review or a data file below the start folder, or one that was sent."""
    if "upload" in form.files:
        path = _keep(projects.folder, *form.files["upload"])
    else:
        path = inside(projects.folder, form.text("file") or "")
    if not path.is_file():
        raise FileError("there is no such file. Choose one of the list.")
    if path.suffix == ".toml":
        return projects.open(path)
    return projects.open(_review_of(path))


def _keep(folder: Path, name: str, content: bytes) -> Path:
    """Keep a file that was sent, by its own plain name, and never in place of another."""
    plain = re.sub(r"[^\w. -]", "_", Path(name.replace("\\", "/")).name).lstrip(". ")[:120]
    if Path(plain).suffix.lower() not in READABLE:
        raise FileError(
            f"a file must end in {', '.join(sorted(READABLE))}. Save it as one of these; a review "
            f"file is put into the folder by yourself."
        )
    path = inside(folder, plain)
    if path.exists():
        raise FileError(
            f"there is a file {plain!r} in the folder already. Open that, or rename yours."
        )
    with write_whole(path) as temporary:
        temporary.write_bytes(content)
    return path


def _review_of(data: Path) -> Path:
    """Find the review beside a data file, or draft one by looking at the file."""
    path = data.with_name(f"{data.stem}-review.toml")
    if not path.exists():
        _draft(data, path)
    return path


def _draft(data: Path, path: Path) -> Any:
    from keyhole.reviews.drafting import init

    return init(data, out=path)


def open_example(projects: Projects) -> Project:
    """Make the example world in a folder of its own, unless it is there, and open its review."""
    from keyhole.reviews.demo import REVIEW, write_world

    folder = projects.folder / EXAMPLE
    if not (folder / REVIEW).exists():
        if folder.exists() or folder.is_symlink():
            raise InputError(f"{EXAMPLE!r} has other files in it. Move it, or start elsewhere.")
        folder.mkdir()
        write_world(folder)
    return projects.open(folder / REVIEW)
