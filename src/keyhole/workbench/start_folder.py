"""The start folder: files below it, and opening a review of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keyhole.core.apart import BrokenOffError, ask_apart
from keyhole.core.files import write_whole
from keyhole.errors import FileError, InputError
from keyhole.workbench.page import SentForm
from keyhole.workbench.projects import Project, Projects

READABLE = {".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".xlsx", ".sas7bdat",
            ".xpt", ".sav", ".zsav", ".por", ".dta"}  # fmt: skip
MOST_FILES = 200
DEEPEST = 3
EXAMPLE = "example"
# File systems take no longer name.
LONGEST = 250


def inside(folder: Path, name: str) -> Path:
    """Return the file that a name means, if it is below a folder; links are followed first."""
    try:
        found = (folder / name).resolve()
        known = found.is_relative_to(folder.resolve()) and "\0" not in name
        known = known and max(map(len, found.parts)) < LONGEST
    except (OSError, ValueError, RuntimeError):
        known = False
    if not known:
        raise FileError(
            "that file is not below the folder the workbench was started in. Copy it there, or "
            "start the workbench in a folder above both."
        )
    return found


def path_below(folder: Path, path: Path) -> str:
    """Write a path as seen from the start folder."""
    return path.resolve().relative_to(folder.resolve()).as_posix()


def files_below(folder: Path) -> dict[str, list[str]]:
    """List the review files and the data files below a folder."""
    found: dict[str, list[str]] = {"reviews": [], "data": []}
    for path in walk(folder):
        if path.suffix == ".toml" and _is_review(path):
            found["reviews"].append(path_below(folder, path))
        elif path.suffix.lower() in READABLE:
            found["data"].append(path_below(folder, path))
    return {kind: sorted(names)[:MOST_FILES] for kind, names in found.items()}


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, a few levels down: no links, hidden ones or dossiers."""
    from keyhole.reviews.store import MARK

    level = [folder]
    for _ in range(DEEPEST):
        inner: list[Path] = []
        for place in level:
            with suppress(OSError):
                for path in sorted(place.iterdir()):
                    if path.name.startswith(".") or path.is_symlink():
                        continue
                    if path.is_dir():
                        inner.append(path)
                    else:
                        yield path
        level = [place for place in inner if not (place / MARK).exists()]


def _is_review(path: Path) -> bool:
    """Tell whether a TOML file looks like a review: it has a section for the data."""
    try:
        text = path.read_text(encoding="utf-8") if path.stat().st_size < 1_000_000 else ""
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(r"^\s*\[data\]", text, re.MULTILINE) is not None


def open_named(projects: Projects, form: SentForm) -> Project:
    """Open a review or a data file of the start folder, or one sent; data get a draft review."""
    if "upload" in form.files:
        path = _keep(projects.folder, *form.files["upload"])
    else:
        path = inside(projects.folder, form.text("file") or "")
    if not path.is_file():
        raise FileError("there is no such file. Choose one of the list.")
    if path.suffix == ".toml":
        return projects.open(path)
    review = path.with_name(f"{path.stem}-review.toml")
    if not review.exists():
        _draft(path, review)
    return projects.open(review)


def _draft(path: Path, review: Path) -> None:
    """Draft a review in a process of its own: whatever the file does to it, the server goes on."""
    given = {"file": str(path), "out": str(review)}
    try:
        ask_apart("keyhole.reviews.drafting:answer_init", given)
    except BrokenOffError:
        raise FileError(
            f"{path.name!r} is damaged, or there is not enough memory for it. Write it anew, or "
            f"open a smaller file."
        ) from None


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
    with write_whole(path, private=True) as temporary:
        temporary.write_bytes(content)
    return path


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
