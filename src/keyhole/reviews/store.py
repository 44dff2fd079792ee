"""The folder of a review: what was computed is kept there and found again by what it answers.

A stage's file holds what was asked, the key under which its result answers, and the result with
its hash. Every file is written whole or not at all, so that a killed run leaves only whole ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from keyhole.core.codec import plain_values
from keyhole.core.files import sweep, write_whole
from keyhole.core.options import Problem
from keyhole.errors import OptionError
from keyhole.reviews.dossier_format import (
    MARK,
    NOTE,
    REPORT,
    RESULTS,
    is_record,
    out_of_place,
    read_json,
)
from keyhole.reviews.files import hash_file, hash_or_none, seen_from
from keyhole.reviews.folders import own_folder

_PARTS = ("release", "internal")
_FOLDERS = ("stages", "charts")
Draw = Callable[[Path], object]

"""Draws a picture into a file, whole or not at all."""


def to_json(value: Any) -> str:
    """Write plain values for a file: the same text for the same values."""
    return json.dumps(plain_values(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _encoded(content: str) -> bytes:
    """Write text as UTF-8; a byte of a path that is none is written as JSON escapes it."""
    return content.encode("utf-8", "backslashreplace")


def digest(value: Any) -> str:
    """Return the hash of plain values, whatever the order of their names."""
    text = json.dumps(plain_values(value), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ResultStore:
    """The folder of one review."""

    folder: Path

    def write(self, name: str, content: str) -> Path:
        """Write a file of the folder, whole or not at all, in place of an older one."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path, force=True) as temporary:
            temporary.write_bytes(_encoded(content))
        return path

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
        record: dict[str, Any] | None = read_json(path)
        return record if is_record(record, stage) else None

    def _file(self, stage: str) -> Path:
        return self.folder / "stages" / f"{stage}.json"

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

    def drop(self, stage: str) -> None:
        """Remove what is left of a stage that is no longer asked for."""
        record = self.record(stage)
        if record is not None and isinstance(record.get("files"), dict):
            for part in _PARTS:
                shutil.rmtree(self.outputs(stage) / part, ignore_errors=True)
            with suppress(OSError):
                self.outputs(stage).rmdir()
        self._drop_charts(stage)
        self._file(stage).unlink(missing_ok=True)
        (self.folder / _idle(stage)).unlink(missing_ok=True)

    def keep_idle(self, stage: str, key: str) -> None:
        """Keep that a stage has nothing to do for a question, and no result."""
        self.drop(stage)
        self.write(_idle(stage), f"{key}\n")

    def is_idle(self, stage: str, key: str) -> bool:
        """Tell whether a stage has nothing to do for a question."""
        return self.holds(_idle(stage), f"{key}\n")

    def _drop_charts(self, stage: str, but: Iterable[str] = ()) -> None:
        """Remove the pictures of a stage's record, but for those that are drawn again."""
        record = self.record(stage)
        for name in {stage, *(record["charts"] if record else ())} - set(but):
            self.chart(name).unlink(missing_ok=True)
            self.chart(name).with_suffix(".json").unlink(missing_ok=True)

    def drop_report(self) -> None:
        """Remove pages and results: they no longer tell what the review says."""
        for name in (RESULTS, REPORT, NOTE):
            (self.folder / name).unlink(missing_ok=True)


def _idle(stage: str) -> str:
    return f"stages/{stage}.idle"


def is_unaltered(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is as it was written."""
    return bool(record["sha256"] == digest([record["result"], record["tables"]]))


@contextmanager
def open_results(
    out: str | os.PathLike[str], review: Path, *, force: bool
) -> Iterator[ResultStore]:
    """Open the folder of a review, or make it; another's folder is not taken without force."""
    folder = Path(out)
    check = partial(_check, folder, review, force)
    with own_folder(folder, check, parts=_FOLDERS):
        store = ResultStore(folder)
        for name in _FOLDERS:
            sweep(folder / name)
        store.write(MARK, to_json(_mark(folder, review)))
        yield store


def _check(folder: Path, review: Path, force: bool) -> None:
    """Refuse a folder that holds something else, or another review's results."""
    problems = out_of_place(folder)
    if problems:
        raise OptionError(problems)
    sweep(folder)
    if force or not any(_content(folder)):
        return
    found = read_json(folder / MARK)
    if found is None:
        what = "has other files in it"
    else:
        what = "" if found == _mark(folder, review) else "holds the results of another review file"
    if what:
        raise OptionError(
            Problem(
                "{0!r} {1}. Give another folder, or {force} to write into it.", str(folder), what
            )
        )


def _content(folder: Path) -> Iterator[Path]:
    """Return what is in a folder, but for empty folders of a run that was killed at its start."""
    for path in folder.iterdir():
        if path.name not in _FOLDERS or any(path.iterdir()):
            yield path


def _mark(folder: Path, review: Path) -> dict[str, str]:
    return {"keyhole": "review", "file": seen_from(folder.resolve(), review)}


_PACKAGES = ("keyhole", "numpy", "numba", "polars", "scipy", "altair", "vl-convert-python")


def keyhole_version() -> str:
    """Return the version of keyhole that is installed."""
    return version("keyhole")


def version_parts(text: str) -> tuple[float, ...]:
    """Return the numbers of a version, to be compared; of what is none, infinity.

    Examples
    --------
    >>> version_parts("0.10.1") > version_parts("0.9"), version_parts("0.2.0.dev1")
    (True, (0, 2, 0))
    """
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
