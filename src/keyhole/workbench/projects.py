"""Projects: reviews of the start folder, the versions of each file, and how its results stand."""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.files import write_whole
from keyhole.data.formats import EXTENSIONS
from keyhole.errors import ConflictError, FileError, InputError, KeyholeError
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import Files, Memory, confined, remembering
from keyhole.reviews.runner import Standing, standings
from keyhole.reviews.settings import Review
from keyhole.reviews.store import MARK
from keyhole.workbench import editing
from keyhole.workbench.state import WorkbenchState

if TYPE_CHECKING:
    from keyhole.workbench.page import SentForm

Edit = Callable[[TOMLDocument], None]
# Versions kept of a review file, so that very old ones make room.
MOST_VERSIONS = 500
# No number that SQLite gives is larger.
_MOST = 2**31
_WHERE = re.compile(r"^\S.*?, line \d+(, column \d+)?: ")


def plain_problem(text: str) -> str:
    """Leave out file and line, which somebody who fills in a form never sees."""
    return _WHERE.sub("", text)


def _version_of(text: str) -> str:
    """Return the name of a review file's text: a change is made to the version a page showed."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class OutdatedPageError(ConflictError):
    """A page asks for a change of the review as it was `before`, which would make it `yours`."""

    def __init__(self, now: str, before: str | None = None, yours: str | None = None) -> None:
        super().__init__(
            "the review was changed in another tab or program since this page was shown. The page "
            "now shows the review as it is."
        )
        self.now, self.before, self.yours = now, now if before is None else before, yours


def require_version(now: str, shown: str | None) -> None:
    """Refuse what a page asks for that showed another version of the review."""
    if _version_of(now) != shown:
        raise OutdatedPageError(now)


@dataclass(frozen=True, slots=True)
class Look:
    """A review file as it is now: what it asks, or why it cannot be run."""

    text: str
    review: Review | None
    files: Files
    problems: tuple[str, ...]
    standings: Mapping[str, Standing]

    @property
    def version(self) -> str:
        """The name of this text."""
        return _version_of(self.text)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the review file: what was changed, when, and whether it is the one of now."""

    number: int
    label: str
    at: str
    now: bool
    undone: bool


@dataclass(frozen=True, slots=True)
class Project:
    """One review file."""

    number: int
    path: Path
    state: WorkbenchState
    memory: Memory

    @property
    def results(self) -> Path:
        """The folder of the results: beside the review file, by its name."""
        return self.path.with_suffix("")

    def own_file(self, what: str) -> Path:
        """Return where something is kept for as long as this server runs.

        Its name cannot be foreseen, so that no file of a folder that was received is taken for it.
        """
        _, token = self.memory.setdefault(("own files", ""), (None, secrets.token_hex(12)))
        return self.state.path.parent / f"{what}-{self.number}-{token}.json"

    def text(self) -> str:
        """Return the review file's text."""
        try:
            return self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise FileError(
                f"{self.path.name!r} cannot be read. Put it back, or open another review."
            ) from None

    def look(self) -> Look:
        """Read the review and see how its results stand; a broken one says what is wrong."""
        text = ""
        try:
            text = self.text()
            with self.reading():
                review, files = read_review(self.path)
        except KeyholeError as error:
            problems = getattr(error, "problems", ()) or (str(error),)
            return Look(text, None, {}, tuple(problems), {})
        return Look(text, review, files, (), standings(review, files, self.results))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Remember what is read, and read nothing outside the start folder."""
        with remembering(self.memory), confined(self.state.folder):
            yield

    def change(self, label: str, edit: Edit, version: str) -> None:
        """Change the review file if it is as the page showed it, and can be run afterwards."""
        text = self.text()
        if _version_of(text) != version:
            raise self._outdated(text, edit, version)
        changed = editing.changed_text(text, edit)
        with self.reading():
            read_review(self.path, changed.encode())
        with self.state.changing() as database:  # nobody else changes it meanwhile
            now = self.text()
            if now != text:
                raise OutdatedPageError(now, text, changed)
            self._note(database, text, "as it was")
            self._write(changed)
            self._note(database, changed, label)

    def _outdated(self, now: str, edit: Edit, version: str) -> OutdatedPageError:
        """Find what a page showed, and what its change would have made of it."""
        rows = self.state.rows("SELECT text FROM versions WHERE project = ?", self.number)
        before = next((text for (text,) in rows if _version_of(text) == version), now)
        try:
            return OutdatedPageError(now, before, editing.changed_text(before, edit))
        except (KeyError, IndexError, ValueError):  # it does not fit there
            return OutdatedPageError(now, before)

    def steps(self) -> tuple[str | None, str | None]:
        """Return what could be undone and what could be done again, in words."""
        versions = self.history()
        labels = {version.number: version.label for version in versions}
        here = next((version.number for version in versions if version.now), 0)
        return labels.get(here) if here - 1 in labels else None, labels.get(here + 1)

    def history(self) -> list[Version]:
        """Return the versions of the review file, the last one first."""
        query = "SELECT number, label, at FROM versions WHERE project = ? ORDER BY number DESC"
        with self.state.reading() as database:
            rows = database.execute(query, [self.number]).fetchall()
            here = self._cursor(database)
        times = (datetime.fromtimestamp(at, UTC).astimezone() for _, _, at in rows)
        return [
            Version(number, label, f"{when:%Y-%m-%d %H:%M}", number == here, number > here)
            for (number, label, _), when in zip(rows, times, strict=True)
        ]

    def go_to(self, number: int) -> None:
        """Undo or redo until a version is the one of now; one that is not there changes nothing."""
        while number in (versions := {version.number: version.now for version in self.history()}):
            here = next((one for one, is_now in versions.items() if is_now), 0)
            # What was edited outside becomes a version first, so that a step may go there and back.
            if here == number or self.go(-1 if number < here else 1) is None:
                return

    def go(self, by: int, version: str | None = None) -> str | None:
        """Go to the version before (-1) or after (1); return what is undone or done again."""
        with self.state.changing() as database:
            text = self.text()
            if version is not None:
                require_version(text, version)
            self._note(database, text, "edited outside the workbench")
            here = self._cursor(database)
            there = self._version(database, here + by)
            if there is None:
                return None
            database.execute(
                "UPDATE cursors SET number = ? WHERE project = ?", [here + by, self.number]
            )
            label: str = self._version(database, max(here, here + by))["label"]
            self._write(there["text"])
        return label

    def _version(self, database: sqlite3.Connection, number: int) -> Any:
        query = "SELECT text, label FROM versions WHERE project = ? AND number = ?"
        return database.execute(query, [self.number, number]).fetchone()

    def _note(self, database: sqlite3.Connection, text: str, label: str) -> None:
        """Keep a version after the one where we are; what had been undone is gone then."""
        here = self._cursor(database)
        now = self._version(database, here)
        if now is not None and now["text"] == text:
            return
        database.execute(
            "DELETE FROM versions WHERE project = ? AND (number > ? OR number <= ?)",
            [self.number, here, here + 1 - MOST_VERSIONS],
        )
        database.execute(
            "INSERT INTO versions VALUES (?, ?, ?, ?, ?)",
            [self.number, here + 1, text, label, time.time()],
        )
        database.execute(
            "INSERT INTO cursors VALUES (?, ?) "
            "ON CONFLICT (project) DO UPDATE SET number = excluded.number",
            [self.number, here + 1],
        )

    def _cursor(self, database: sqlite3.Connection) -> int:
        query = "SELECT number FROM cursors WHERE project = ?"
        row = database.execute(query, [self.number]).fetchone()
        return int(row["number"]) if row else 0

    def _write(self, text: str) -> None:
        with write_whole(self.path, force=True, private=True) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")


@dataclass(frozen=True, slots=True)
class Projects:
    """The reviews that were opened in a start folder."""

    state: WorkbenchState
    folder: Path
    _memories: dict[int, Memory] = field(default_factory=dict)

    def open(self, path: Path) -> Project:
        """Open a review file, or find it opened."""
        name = path.resolve().relative_to(self.folder.resolve()).as_posix()
        query = """INSERT INTO projects (path, opened) VALUES (?, ?)
                   ON CONFLICT (path) DO UPDATE SET opened = excluded.opened"""
        self.state.do(query, name, time.time())
        return self._inside("SELECT id, path FROM projects WHERE path = ?", name)[0]

    def find(self, number: int) -> Project | None:
        """Return a review that was opened, by its number."""
        if not 0 < number < _MOST:
            return None
        found = self._inside("SELECT id, path FROM projects WHERE id = ?", number)
        return found[0] if found else None

    def recent(self) -> list[Project]:
        """Return the reviews that are still there, the last opened first."""
        found = self._inside("SELECT id, path FROM projects ORDER BY opened DESC")
        return [one for one in found if one.path.is_file()]

    def _inside(self, query: str, *values: Any) -> list[Project]:
        """Return the reviews of a query that lie in the start folder itself."""
        found = [
            Project(number, self.folder / name, self.state, self._memories.setdefault(number, {}))
            for number, name in self.state.rows(query, *values)
        ]
        return [o for o in found if o.path.resolve().is_relative_to(self.folder.resolve())]


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
        elif path.suffix.lower() in EXTENSIONS:
            found["data"].append(path_below(folder, path))
    return {kind: sorted(names)[:MOST_FILES] for kind, names in found.items()}


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, a few levels down: no links, hidden ones or dossiers."""
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


def named_file(folder: Path, form: SentForm) -> Path:
    """Return a file of the start folder, or one that was sent and is kept there."""
    if "upload" in form.files:
        return keep_file(folder, *form.files["upload"])
    path = inside(folder, form.text("file") or "")
    if not path.is_file():
        raise FileError("there is no such file. Choose one from the list.")
    return path


def keep_file(folder: Path, name: str, content: bytes) -> Path:
    """Keep a file that was sent, by its own plain name, and never in place of another."""
    plain = re.sub(r"[^\w. -]", "_", Path(name.replace("\\", "/")).name).lstrip(". ")[:120]
    if Path(plain).suffix.lower() not in EXTENSIONS:
        raise FileError(
            f"a file must end in {', '.join(EXTENSIONS)}. Save it as one of these; put a review "
            f"file into the folder yourself."
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
