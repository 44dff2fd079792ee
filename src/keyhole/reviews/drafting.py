"""The draft of a review file, made by looking at the data file: a proposal that runs as it is."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.files import write_whole
from keyhole.core.names import absent, repeated
from keyhole.data import load
from keyhole.errors import ColumnError, FileError
from keyhole.results import Result, Table
from keyhole.reviews.draft_text import draft_text
from keyhole.reviews.guessing import Guess, guess
from keyhole.screening.screen import screen

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Draft", "draft_review", "init"]

REVIEW = "review.toml"


@dataclass(frozen=True, slots=True, repr=False)
class Draft(Result):
    """The draft of a review, and what it was guessed from."""

    path: Path
    file: Path
    records: int
    columns: int
    guess: Guess

    def to_dict(self) -> dict[str, Any]:
        """Return what was guessed as plain values."""
        return {
            "review": str(self.path),
            "file": str(self.file),
            "records": self.records,
            "columns": self.columns,
            "keys": list(self.guess.keys),
            "roles": dict(self.guess.roles),
            "missing_codes": {name: list(c) for name, c in self.guess.missing_codes.items()},
            "suspected_codes": {name: list(c) for name, c in self.guess.doubtful.items()},
            "reasons": dict(self.guess.why),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column with a part in the review."""
        import polars as pl

        rows = self._rows()
        return pl.DataFrame(
            rows, schema=dict.fromkeys(("column", "part", "why"), pl.String), orient="row"
        )

    def tables(self) -> list[Table]:
        """Return what each column was taken for, and what to do next."""
        title = f"{self.file.name}: {self.records:,} records, {self.columns:,} columns"
        run = f"keyhole review {self.path} --out {self.path.with_name('findings')}"
        notes = [
            *self._suspected(),
            f"The review file is at {self.path}. It is a proposal: read it and change it.",
            f"Then run: {run}",
        ]
        return [Table(title, ["column", "taken for", "why"], self._rows(), notes)]

    def _suspected(self) -> list[str]:
        """Say which codes are taken for missing, and which may be."""
        kinds = {"Taken for missing": self.guess.missing_codes,
                 "May mean missing, see the review file": self.guess.doubtful}  # fmt: skip
        return [
            f"{words}: {'; '.join(_listed(name, codes) for name, codes in found.items())}."
            for words, found in kinds.items()
            if found
        ]

    def _rows(self) -> list[list[str]]:
        why = self.guess.why
        rows = [[name, "key", why.get(name, "as asked")] for name in self.guess.keys]
        rows += [[name, role, why.get(name, "")] for name, role in self.guess.roles.items()]
        return rows


def draft_review(
    file: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] = REVIEW,
    keys: Sequence[str] | None = None,
    missing_codes: Any = None,
    kinds: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    force: bool = False,
) -> Draft:
    r"""Write a review file for a data file by looking at it.

    Keys, roles and missing codes are guessed from names, labels and contents, each with its reason
    beside it. The review runs as it is; sections that need a decision are there as comments with
    settings that fit the file. No value of a record is written, but for codes of missing values
    that many records have.

    Parameters
    ----------
    file
        The data file.
    out
        The review file to be written.
    keys
        The columns an intruder could know, instead of guesses.
    missing_codes, kinds, encoding, delimiter, sheet
        How the file is read, as in `keyhole.load`; written into the review.
    force
        Replace a review file that exists.

    Returns
    -------
    Draft
        What was guessed, and where the review file is.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "people.csv").write_text("id,sex,age\n1,f,30\n2,f,30\n3,f,41\n4,m,41\n")
    >>> draft = draft_review(folder / "people.csv", out=folder / "review.toml")
    >>> draft.guess.keys, dict(draft.guess.roles)
    (('sex', 'age'), {'id': 'identifier'})
    """
    path = Path(out)
    _require(path, Path(file), force)
    read = {"encoding": encoding, "delimiter": delimiter, "sheet": sheet, "kinds": kinds,
            "missing_codes": missing_codes}  # fmt: skip
    data = load(file, **read)
    data.require_records()
    if keys is not None:
        _check_keys(keys, data.names, data.name)
    year = datetime.date.today().year
    found = screen(data, keys=keys, year=year)
    guessed = guess(data, found, keys)
    declared = {name: value for name, value in read.items() if value}
    text = draft_text(
        data, found, guessed, file=_seen_from(path, Path(file)), review=path.name, read=declared
    )
    with write_whole(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Draft(path, Path(file), data.records, len(data.names), guessed)


def _listed(name: str, codes: Sequence[Any]) -> str:
    return f"{', '.join(map(str, codes))} in {name}"


init = draft_review
"""The verb's own name."""


def _require(path: Path, file: Path, force: bool) -> None:
    """Refuse before the work what could not be written after it."""
    if path.suffix.lower() != ".toml":
        raise FileError(f"the review file must be a .toml file. Got {path.name!r} instead.")
    if os.path.lexists(path) and not force:
        raise FileError(
            f"{str(path)!r} exists. Give another name (--out), or ask for it to be replaced "
            f"(--force)."
        )
    if path.resolve() == file.resolve():
        raise FileError(f"{str(path)!r} is the data file. Give another name.")
    if not path.parent.is_dir():
        raise FileError(f"the folder {str(path.parent)!r} does not exist. Make it first.")


def _check_keys(keys: Sequence[str], names: Sequence[str], name: str) -> None:
    problems = [f"key {one!r} is repeated. Name it once." for one in repeated(keys)]
    problems += absent(keys, names, purpose="key", where=repr(name))
    if not keys:
        problems.append("keys must name one column or more. Got none instead.")
    if problems:
        raise ColumnError(problems)


def _seen_from(review: Path, file: Path) -> str:
    """Write the data file's path as seen from the review file's folder."""
    try:
        return Path(os.path.relpath(file.resolve(), review.resolve().parent)).as_posix()
    except ValueError:  # another drive
        return file.resolve().as_posix()
