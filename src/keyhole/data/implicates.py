"""Implicate files of a release, found in its folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keyhole.core.names import quoted
from keyhole.data.formats import EXTENSIONS
from keyhole.errors import FileError

if TYPE_CHECKING:
    from keyhole.data.microdata import Microdata

MOST_IMPLICATES = 100
"""More are a mistake, and every file is read."""
RECORDS, RELEASE_ROW = "records.parquet", "release_row"
"""The file beside a release, in `internal`, with the row that each record of the original has."""

_NAME = re.compile(r"implicate-([0-9]+)(\.[a-z0-9]+(?:\.gz)?)", re.IGNORECASE)


def find_implicates(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files ``implicate-1.csv``, ``implicate-2.csv`` and so on of a folder, in order."""
    path = Path(folder)
    if not path.is_dir():
        wrong = "is a file" if path.exists() else "does not exist"
        raise FileError(f"{str(path)!r} {wrong}. Give the folder 'release' of a synthesis.")
    found = sorted(
        (int(match[1]), file.name)
        for file in path.iterdir()
        if (match := _NAME.fullmatch(file.name))
        and match[2].lower().removesuffix(".gz") in EXTENSIONS
    )
    problems = _number_problems([number for number, _ in found], path)
    if problems:
        raise FileError(problems)
    return [path / name for _, name in found]


def _number_problems(numbers: Sequence[int], folder: Path) -> list[str]:
    if not numbers:
        inner = folder / "release"
        remedy = f"Give {str(inner)!r}." if inner.is_dir() else "Give another folder."
        return [f"{str(folder)!r} has no files implicate-1.csv, implicate-2.csv, …. {remedy}"]
    twice = sorted(number for number, count in Counter(numbers).items() if count > 1)
    beyond = [number for number in numbers if not 1 <= number <= MOST_IMPLICATES]
    gaps = [] if beyond else sorted(set(range(1, max(numbers) + 1)) - set(numbers))
    problems = []
    if beyond:
        problems.append(
            f"{str(folder)!r} must have implicates numbered from 1 to {MOST_IMPLICATES}. Got "
            f"{len(beyond):,} with other numbers instead: take them out of the folder."
        )
    if twice:
        listed = quoted(f"implicate-{number}" for number in twice)
        problems.append(f"{str(folder)!r} has {listed} more than once. Keep one file of each.")
    if gaps:
        listed = quoted(f"implicate-{number}" for number in gaps)
        problems.append(f"{str(folder)!r} lacks {listed}. Get the whole release.")
    return problems


def first_implicate(path: Path) -> Path:
    """Return the first implicate of a synthesis' folder, or of its `release`; a file is itself."""
    inner = path / "release"
    return find_implicates(inner if inner.is_dir() else path)[0] if path.is_dir() else path


def in_original_order(data: Microdata, path: Path) -> Microdata:
    """Return an implicate that was read from a release in the order of the original's records.

    As it is where no `internal` is beside the release.
    """
    import polars as pl

    held = path.resolve().parent.parent / "internal" / RECORDS
    if not _NAME.fullmatch(path.name) or not held.is_file():
        return data
    rows = pl.read_parquet(held)
    if RELEASE_ROW not in rows.columns or rows.height != data.records:
        return data
    return data.replace(frame=data.frame[rows[RELEASE_ROW] - 1])
