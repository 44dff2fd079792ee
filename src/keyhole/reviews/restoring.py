"""A finished review read back from its folder: from what is stored alone, without the data.

What is read back must be whole. Every stage's record has the hash of its figures, every picture
has one in the record, and results.json has one of all it holds.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.core.codec import from_plain
from keyhole.core.options import Problem
from keyhole.errors import FileError, KeyholeError
from keyhole.reviews.files import hash_or_none
from keyhole.reviews.limits import find_limits
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.settings import DataSettings, ReleaseSettings, Review, ScenarioSettings
from keyhole.reviews.stages import restored
from keyhole.reviews.store import (
    CONTENT,
    MARK,
    RESULTS,
    ResultStore,
    digest,
    fits,
    is_unaltered,
    keyhole_version,
    out_of_place,
    read_json,
    require_no_link,
    version_parts,
)

Content = Mapping[str, Any]


def read_stored(folder: Path) -> ReviewResult:
    """Read the results of a finished review, or say everything that is not whole."""
    content = read_content(folder)
    problems = changed(folder, content)
    records: dict[str, Any] = {}
    for name, figures in content["stages"].items():
        record, found = _record(ResultStore(folder), name, figures)
        problems += found
        if record is not None:
            records[name] = record
    if problems:
        raise FileError([*problems, f"Run the review again: keyhole review … --out {folder}"])
    with strange(folder):
        review = restore_review(content)
        return ReviewResult(
            review=review,
            folder=folder,
            records=records,
            limits=find_limits(review, restored(records)),
            reused=tuple(records),
            versions=content["versions"],
            files=content["files"],
            pages=content["pages"],
            made=content.get("made", {}),
        )


@contextmanager
def strange(folder: Path) -> Iterator[None]:
    """Blame the folder for what goes wrong with the figures in it.

    Hashes tell of what was changed, but not of what somebody made up and hashed.
    """
    try:
        yield
    except KeyholeError:
        raise
    except Exception as error:
        raise FileError(
            f"{str(folder)!r} holds figures that no review gives, though their hashes fit. Run "
            f"the review again: keyhole review … --out {folder}"
        ) from error


def review_file(folder: Path) -> Path:
    """Return where the review file of a folder is, as the folder says."""
    mark = read_json(folder / MARK)
    named = str(mark["file"]) if fits(mark, {"file": str}) else "\0"
    path = None if "\0" in named else folder / named
    if path is None or not path.is_file():
        raise FileError(
            Problem(
                "{0!r} does not say which review file the folder belongs to, or it is not there. "
                "Name it ({review}).",
                str(folder / MARK),
            )
        )
    return path


def read_content(folder: Path, *, older: bool = False) -> dict[str, Any]:
    """Read results.json of a finished review, as far as it must be sound to be gone on with."""
    path = folder / RESULTS
    require_no_link(folder)
    if not folder.is_dir():
        raise FileError(f"{str(folder)!r} is no folder. Give the one that a review wrote.")
    if not path.is_file():
        raise FileError(
            f"{str(folder)!r} holds no finished review: there is no {RESULTS}. Run the review to "
            f"its end first: keyhole review REVIEW.toml --out {folder}"
        )
    problems = [*out_of_place(folder)]
    if problems:
        raise FileError(problems)
    content: dict[str, Any] = read_json(path)
    if not fits(content, CONTENT) or not all(
        fits(content.get(name, {}), {str: str}) for name in ("pages", "made")
    ):
        raise FileError(f"{str(path)!r} cannot be read as the results of a review. Run it again.")
    made, here = content["versions"].get("keyhole", ""), keyhole_version()
    if is_older(content) and not (older and version_parts(made) <= version_parts(here)):
        told = made if made != here else "an earlier one"
        raise FileError(
            f"{str(path)!r} was made by another version of keyhole ({short_name(told)}; this is "
            f"{here}). Use that version, or run the review again."
        )
    return content


def is_older(content: Content) -> bool:
    """Tell whether results are not of this version; those of 0.1 hold no hashes of pages."""
    made = content["versions"].get("keyhole", "")
    return made != keyhole_version() or (made.startswith("0.1.") and "pages" not in content)


def short_name(name: Any) -> str:
    """Write a name that somebody else gave: printable, and of a line's length at most."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    return text if len(text) <= 60 else f"{text[:59]}…"


def changed(folder: Path, content: Content) -> list[str]:
    """Say so if results.json is not as it was written."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    if content.get("sha256") == digest(rest):
        return []
    return [f"{str(folder / RESULTS)!r} is not as it was written: its hash does not fit."]


def _record(store: ResultStore, name: str, figures: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """Read a stage's record and say what is not whole about it."""
    path = store.folder / "stages" / f"{name}.json"
    record = store.record(name)
    if record is None:
        return None, [f"{str(path)!r} is not there, or cannot be read."]
    problems = []
    if not is_unaltered(record):
        problems.append(f"{str(path)!r} is not as it was written: its hash does not fit.")
    elif record["result"] != figures:
        problems.append(f"{str(path)!r} has other figures than {RESULTS}.")
    for chart, expected in record["charts"].items():
        if hash_or_none(store.chart(chart)) != expected:
            drawn = str(store.chart(chart))
            problems.append(f"{drawn!r} is not there, or not as it was written.")
    return record, problems


def restore_review(content: Content) -> Review:
    """Build a review from the settings that results.json holds; the secrets are not in it."""
    given = content["settings"]
    kinds = {"data": DataSettings, "scenarios": ScenarioSettings, "release": ReleaseSettings}
    settings = {n: from_plain(k, given[n]) for n, k in kinds.items() if given.get(n) is not None}
    fields = {one.name for one in dataclasses.fields(Review)}.intersection(given, SECTIONS)
    asked = {name: _question(name, given[name]) for name in fields - {*kinds, "keys"}}
    return Review(
        title=str(given["title"]),
        run_by=None,  # `made` has it
        path=Path(content["review"]["file"]),
        sha256=content["review"]["sha256"],
        **{**asked, **settings, "keys": tuple(_of(list, given["keys"]))},
    )


def _question(section: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_question(section, one) for one in value)
    given = _of(dict, value)
    return question_of(section, {**given, **_of(dict, given.get("options", {}))})


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value


_ABSENT = object()
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and the paths of those that differ."""

    figures: int
    differences: tuple[str, ...] = ()

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.figures + other.figures, self.differences + other.differences)


def compare_values(stored: Any, computed: Any, at: str = "", *, older: bool = False) -> Compared:
    """Compare plain values leaf by leaf; `at` is put before the paths that are told.

    An `older` version may lack members and notes, and have other words around the numbers of a
    sentence.

    Examples
    --------
    >>> compare_values({"rp": 0.2, "cells": [3, 4]}, {"rp": 0.2, "cells": [3, 5], "cr": 1.0})
    Compared(figures=4, differences=('cells[1]', 'cr (is not there)'))
    >>> compare_values({"rp": 0.2, "note": "2 left out"}, {"rp": 0.2, "note": "without 2", "cr": 1},
    ...                older=True)
    Compared(figures=2, differences=())
    """
    leaves = list(_leaves(stored, computed, at, older))
    return Compared(len(leaves), tuple(told for told in leaves if told))


def _leaves(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    """Yield for each leaf its path if the sides differ there, else nothing to tell."""
    if _ABSENT in (stored, computed):
        yield f"{at} (is not there)" if stored is _ABSENT else f"{at} (should not be there)"
    elif isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name in [*computed, *(name for name in stored if name not in computed)]:
            inner = f"{at}.{short_name(name)}" if at else short_name(name)
            if name in stored or not older:
                pair = stored.get(name, _ABSENT), computed.get(name, _ABSENT)
                yield from _leaves(*pair, inner, older)
    elif older and at.endswith(".notes") and isinstance(computed, list):
        for i, note in enumerate(stored):
            said = any(note == other or _means_same(note, other) for other in computed)
            yield "" if said else f"{at}[{i}]"
    elif isinstance(computed, list) and isinstance(stored, list):
        for i in range(max(len(stored), len(computed))):
            one, other = (side[i] if i < len(side) else _ABSENT for side in (stored, computed))
            yield from _leaves(one, other, f"{at}[{i}]", older)
    else:
        same = type(stored) is type(computed) and stored == computed
        yield "" if same or (older and _means_same(stored, computed)) else at


def _means_same(stored: Any, computed: Any) -> bool:
    """Tell whether two numbers are as good as equal, or two sentences have the same numbers."""
    sides = (stored, computed)
    if all(isinstance(side, str) for side in sides):
        one, other = (sorted(_NUMBER.findall(side)) for side in sides)
        return " " in stored and one == other
    numbers = all(isinstance(s, int | float) and not isinstance(s, bool) for s in sides)
    return numbers and math.isclose(stored, computed, rel_tol=1e-9)
