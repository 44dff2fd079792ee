"""Folder of a review: what its files are called, their shape, and how they are kept and found.

A stage's file holds what was asked, the key under which its result answers, and the result with
its hash. Every file is written whole or not at all, so that a killed run leaves only whole ones. A
dossier goes from hand to hand, so what is read back is checked first: files and folders are those
of the folder itself and no links, JSON has an end, and records have the shape in which they are
written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from keyhole.core.codec import plain_values
from keyhole.core.files import sweep, write_whole
from keyhole.core.options import Problem
from keyhole.core.toml import is_deep
from keyhole.errors import FileError, OptionError
from keyhole.reviews.files import hash_file, hash_or_none, seen_from

MARK = "keyhole-review.json"
REPORT, NOTE, RESULTS = "report.html", "public-note.html", "results.json"
# No longer name is written, the beginning of an unfinished file's included.
LONGEST = "x" * 80
Draw = Callable[[Path], object]
"""Draws a picture into a file, whole or not at all."""
_OUTPUTS, _PARTS = ("protection", "synthesis", "table"), ("release", "internal")
_FOLDERS = ("stages", "charts")
_PACKAGES = ("keyhole", "numpy", "numba", "polars", "scipy", "altair", "vl-convert-python")

TABLE = {"title": str, "columns": [str], "rows": [[str]], "notes": [str]}
_NOTE = {"text": str, "code": str, "values": dict}
_FILE = {"file": str, "sha256": str}
_RECORD = {
    **dict.fromkeys(("stage", "title", "key", "sha256"), str),
    **dict.fromkeys(("asked", "result"), dict),
    "tables": [TABLE],
    "charts": {str: str},
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


def fits(value: Any, shape: Any) -> bool:
    """Tell whether values have a shape: a type, `[shape]`, `{str: shape}` or shapes by name."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(fits(one, shape[str]) for one in value.values())
    return all(name in value and fits(value[name], inner) for name, inner in shape.items())


def read_json(path: Path) -> Any:
    """Read plain values; None for what is no JSON, is nested without end, or is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return None if is_deep(found) else found


def out_of_place(folder: Path) -> Iterator[str]:
    """Say what stands in a review's folder in place of its own files; other names do not matter."""
    wanted = dict.fromkeys((folder / name for name in (MARK, REPORT, NOTE, RESULTS)), "file")
    for name in _FOLDERS:
        wanted[folder / name] = "folder"
        written = (p for p in _entries(folder / name) if p.suffix in (".json", ".svg"))
        wanted |= dict.fromkeys(written, "file")
    for name in _OUTPUTS:
        wanted[folder / name] = "folder"
        open_ = [folder / name / part for part in _PARTS]
        wanted |= dict.fromkeys(open_, "folder")
        while open_:  # all of a folder, and into no link
            inside = _entries(open_.pop(0))
            folders = [path for path in inside if _what(path) == "folder"]
            wanted |= {path: "folder" if path in folders else "file" for path in inside}
            open_ += folders
    for path, kind in wanted.items():
        if (what := _what(path)) not in (kind, None):
            told = f"must be a {kind} of its own. Got a {what} instead. Move it away."
            yield f"{str(path)!r} {told}"


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if _what(folder) == "folder" else []


def _what(path: Path) -> str | None:
    if path.is_symlink():
        return "link"
    if not os.path.lexists(path):
        return None
    return "folder" if path.is_dir() else "file" if path.is_file() else "pipe, socket or device"


@contextmanager
def own_folder(
    folder: Path, check: Callable[[], None], parts: Sequence[str] = ()
) -> Iterator[None]:
    """Hold a folder that passes a `check`, and its `parts`; on failure leave nothing behind."""
    made: list[Path] = []
    lock: int | None = None
    try:
        try:
            require_no_link(folder)
            _make(folder, made)
            lock = _lock(folder)
            check()
            for part in parts:
                _make(folder / part, made)
            for place in (folder, *(folder / part for part in parts)):
                with suppress(FileNotFoundError):
                    os.stat(place / LONGEST)
                if not os.access(place, os.W_OK | os.X_OK):
                    raise PermissionError(13, os.strerror(13))
        except BaseException as error:
            for place in reversed(made):
                with suppress(OSError):
                    place.rmdir()
            if not isinstance(error, OSError | ValueError):
                raise
            reason = "this is not a valid path."  # a name with a zero byte
            if isinstance(error, OSError):
                reason = f"{(error.strerror or 'unknown reason').lower()}. Give another one."
            raise FileError(
                f"the folder {str(folder)!r} cannot be written into: {reason}"
            ) from None
        yield
    finally:
        if lock is not None:
            os.close(lock)


def require_no_link(folder: Path) -> None:
    """Refuse a link in place of a folder: its name does not say where things are."""
    if folder.is_symlink():
        raise OptionError(
            f"{str(folder)!r} must be a folder of its own. Got a link instead. Give the folder it "
            f"leads to, or another one."
        )


def _make(folder: Path, made: list[Path]) -> None:
    if folder.is_dir():
        return
    if os.path.lexists(folder):
        raise OptionError(f"{str(folder)!r} must be a folder. Got a file instead.")
    if folder.parent != folder:
        _make(folder.parent, made)
    folder.mkdir(exist_ok=True)
    made.append(folder)


def _lock(folder: Path) -> int:
    """Hold the folder until the number returned is closed; the system lets go of a killed run's."""
    try:
        import fcntl
    except ImportError:  # Windows cannot hold a folder: two runs there must not meet
        return os.open(os.devnull, os.O_RDONLY)
    number = os.open(folder, os.O_RDONLY)
    with suppress(OSError):  # a file system without locks
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            raise OptionError(
                f"{str(folder)!r} is being written into by another run. Wait until it has ended, "
                f"or give another folder."
            ) from None
    return number


def to_json(value: Any) -> str:
    """Write plain values for a file: the same text for the same values."""
    return json.dumps(plain_values(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def digest(value: Any) -> str:
    """Return the hash of plain values, whatever the order of their names."""
    text = json.dumps(plain_values(value), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ResultStore:
    """The folder of one review."""

    folder: Path

    def write(self, name: str, content: str) -> None:
        """Write a file of the folder, whole or not at all, in place of an older one."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path, force=True) as temporary:
            temporary.write_bytes(_encoded(content))

    def holds(self, name: str, content: str) -> bool:
        """Tell whether a file of the folder has this content."""
        try:
            return (self.folder / name).read_bytes() == _encoded(content)
        except (OSError, ValueError):
            return False

    def chart(self, name: str) -> Path:
        """Return where a picture is."""
        return self.folder / "charts" / f"{name}.svg"

    def outputs(self, stage: str) -> Path:
        """Return the folder of what a stage writes besides its record."""
        return self.folder / stage

    def find(self, stage: str, key: str) -> dict[str, Any] | None:
        """Return a stage's record if it answers the key and is as it was written."""
        record = self.last(stage)
        # Small counts in notes are known by the notes' codes, which an older record does not have.
        if record is None or record["key"] != key or "notes" not in record:
            return None
        found = {name: hash_or_none(self.chart(name)) for name in record["charts"]}
        return record if found == record["charts"] else None

    def last(self, stage: str) -> dict[str, Any] | None:
        """Return a stage's record as it was written last, whatever it answers."""
        record = self.record(stage)
        return record if record is not None and is_unaltered(record) else None

    def record(self, stage: str) -> dict[str, Any] | None:
        """Return what stands as a stage's record, whether or not it is as it was written."""
        path = self._file(stage)
        if any(place.is_symlink() for place in (path, path.parent, self.folder)):
            return None
        record: Any = read_json(path)
        fit = fits(record, _RECORD) and fits(record.get("notes", []), [_NOTE])
        # Its pictures have its name, and no path.
        own = re.compile(rf"{re.escape(stage)}(-[a-z0-9]+)?")
        fit = fit and record["stage"] == stage and all(map(own.fullmatch, record["charts"]))
        fit = fit and all(
            len(row) == len(table["columns"]) for table in record["tables"] for row in table["rows"]
        )
        return record if fit else None

    def _file(self, stage: str, kind: str = "json") -> Path:
        return self.folder / "stages" / f"{stage}.{kind}"

    def keep(self, record: dict[str, Any], pictures: Mapping[str, Draw]) -> dict[str, Any]:
        """Keep a stage's record and its pictures, the pictures first."""
        stage = record["stage"]
        self._drop_charts(stage, but=pictures)
        drawn = {}
        for name, draw in pictures.items():
            self.chart(name).parent.mkdir(exist_ok=True)
            draw(self.chart(name))
            drawn[name] = hash_file(self.chart(name))
        record = plain_values(record)
        record |= {"charts": drawn, "sha256": digest([record["result"], record["tables"]])}
        self.write(f"stages/{stage}.json", to_json(record))
        return record

    def drop(self, stage: str, *, idle: str = "") -> None:
        """Remove what is left of a stage; `idle` is a question that it has nothing to do for."""
        record = self.record(stage)
        if record is not None and isinstance(record.get("files"), dict):
            for part in _PARTS:
                shutil.rmtree(self.outputs(stage) / part, ignore_errors=True)
            with suppress(OSError):
                self.outputs(stage).rmdir()
        self._drop_charts(stage)
        for kind in ("json", "idle"):
            self._file(stage, kind).unlink(missing_ok=True)
        if idle:
            self.write(f"stages/{stage}.idle", f"{idle}\n")

    def is_idle(self, stage: str, key: str) -> bool:
        """Tell whether a stage has nothing to do for a question."""
        return self.holds(f"stages/{stage}.idle", f"{key}\n")

    def _drop_charts(self, stage: str, but: Iterable[str] = ()) -> None:
        """Remove the pictures of a stage's record, but for those that are drawn again."""
        record = self.record(stage)
        for name in {stage, *(record["charts"] if record else ())} - set(but):
            self.chart(name).unlink(missing_ok=True)
            self.chart(name).with_suffix(".json").unlink(missing_ok=True)

    def drop_report(self) -> None:
        """Remove pages and results: they are no longer those of the review."""
        for name in (RESULTS, REPORT, NOTE):
            (self.folder / name).unlink(missing_ok=True)


def _encoded(content: str) -> bytes:
    """Write text as UTF-8; a byte of a path that is none is written as JSON escapes it."""
    return content.encode("utf-8", "backslashreplace")


def is_unaltered(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is as it was written."""
    return bool(record["sha256"] == digest([record["result"], record["tables"]]))


@contextmanager
def open_results(
    out: str | os.PathLike[str], review: Path, *, force: bool
) -> Iterator[ResultStore]:
    """Open the folder of a review, or make it; another's folder is not taken without force."""
    folder = Path(out)

    def mark() -> dict[str, str]:
        return {"keyhole": "review", "file": seen_from(folder.resolve(), review)}

    def check() -> None:
        """Refuse a folder that holds something else, or another review's results."""
        if problems := [*out_of_place(folder)]:
            raise OptionError(problems)
        sweep(folder)
        # A run that was killed at its start leaves empty folders.
        if force or not any(p.name not in _FOLDERS or any(p.iterdir()) for p in folder.iterdir()):
            return
        found = read_json(folder / MARK)
        if found != mark():
            what = "has other files in it"
            what = what if found is None else "holds the results of another review file"
            told = "{0!r} {1}. Give another folder, or {force} to write into it."
            raise OptionError(Problem(told, str(folder), what))

    with own_folder(folder, check, parts=_FOLDERS):
        store = ResultStore(folder)
        for name in _FOLDERS:
            sweep(folder / name)
        store.write(MARK, to_json(mark()))
        yield store


def keyhole_version() -> str:
    """Return the version of keyhole that is installed."""
    return version("keyhole")


def version_parts(text: str) -> tuple[float, ...]:
    """Return the numbers of a version, to be compared; of what is none, infinity."""
    if not re.match(r"\d+\.\d+", text):
        return (math.inf,)
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def versions() -> dict[str, str]:
    """Return the versions of keyhole, of Python and of what the figures depend on."""
    found = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):  # an extra
            found[name] = version(name)
    return {"keyhole": found.pop("keyhole"), "python": platform.python_version(), **found}
