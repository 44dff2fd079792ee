"""Files that are seen from here before Spark runs: which they are, and what they say.

What Spark would read otherwise than it is named, or leave out, is refused here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from keyhole.data.formats import EXTENSIONS, find_format, require_file, suffix_of
from keyhole.data.frames import unreadable
from keyhole.data.microdata import require_columns
from keyhole.data.pieces import Pieces, open_pieces
from keyhole.engines.storage import WorkFolder
from keyhole.errors import FileError, OptionError

__all__ = [
    "LocalFiles",
    "called",
    "escaped",
    "last_of",
    "look_at",
    "nanoseconds",
    "read_footer",
]

SPARK_WROTE = b"org.apache.spark.version"
GLOB = frozenset("[]{}*?\\")
"""What Spark takes for a pattern in a path."""


class LocalFiles:
    """A file, or a folder of files of one kind, that is seen from here before Spark runs.

    Parameters
    ----------
    path
        The path.
    encoding, delimiter
        As in `load`.

    Raises
    ------
    FileError, OptionError
        If it is not there, or nothing that Spark reads.
    """

    def __init__(
        self, path: str, *, encoding: str | None = None, delimiter: str | None = None
    ) -> None:
        self.path, self.files = path, _files(Path(path))
        self.how = {"encoding": encoding, "delimiter": delimiter}
        self._copies: list[WorkFolder] = []
        forms = {find_format(file) for file in self.files}
        if forms not in ({"text"}, {"Parquet"}):
            raise OptionError(
                f"the spark engine reads Parquet and text files (.csv, .tsv). Got "
                f"{last_of(path)!r} instead: write it as Parquet, or use --engine disk."
            )
        self.is_text = forms == {"text"}
        if not self.is_text:
            _require_names(self.files)

    @property
    def name(self) -> str:
        """What the data is called."""
        return called(self.path)

    @cached_property
    def pieces(self) -> Pieces:
        """The first file: its header, what tells the values and what is known of a column."""
        return self.pieces_of(self.files[0])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.pieces.names)

    def pieces_of(self, file: Path) -> Pieces:
        """Open one of the files."""
        if not self.is_text:
            return open_pieces(file, lambda: file)

        def copy() -> Path:
            # Gone with this, and if the process is killed, with the next one that makes a folder.
            self._copies.append(WorkFolder())
            return self._copies[-1].file(".txt")

        return open_pieces(file, copy, **self.how)

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        return require_columns(names, self.names, purpose=purpose, called=self.name)


def look_at(path: str, **how: str | None) -> LocalFiles | None:
    """Look at files without Spark; None where only Spark can see them, as at ``hdfs://...``."""
    return None if "://" in path else LocalFiles(path, **how)


def called(path: str) -> str:
    """Return what a file, or a folder, is called without its extension.

    Examples
    --------
    >>> called("data/people.v2.csv.gz"), called("hdfs://host/census/2020.parquet")
    ('people.v2', '2020')
    """
    last = Path(last_of(path))
    known = suffix_of(last).removesuffix(".gz") in EXTENSIONS
    return last.name[: len(last.name) - len(suffix_of(last))] if known else last.name or "data"


def last_of(path: str) -> str:
    """Return the last part of a path or an address."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of a folder that are no marks of a writer, by name."""
    if not path.is_dir():
        require_file(path)
        return [path.absolute()]
    try:
        files = sorted(_walk(path))
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "the system refuses"
        where = error.filename or str(path)
        raise FileError(f"{where!r} cannot be read: {reason}. Check the folder.") from None
    if not files:
        raise FileError(f"{str(path)!r} has no files in it. Give a folder of Parquet or CSV files.")
    for file in files:
        require_file(file)
    return [file.absolute() for file in files]


def _walk(path: Path) -> Iterator[Path]:
    """Yield all that is in a folder and in those below it, but for the marks of a writer."""
    for folder, below, names in os.walk(path, onerror=_raise):
        below[:] = filter(_is_data, below)
        for link in below:
            if Path(folder, link).is_symlink():
                raise FileError(
                    f"{str(Path(folder, link))!r} is a link to another folder, which is not "
                    f"followed. Put the files themselves, or links to them, into the folder."
                )
        yield from (Path(folder, name) for name in names if _is_data(name))


def _require_names(files: Sequence[Path]) -> None:
    """Say so if a Parquet file is called, or lies, as Hadoop cannot name it."""
    for file in files:
        if ":" in file.name:
            reason = "has a colon in its name"
        elif not _is_data(file.name):
            reason = "begins with '_' or '.', as the marks of a writer do"
        elif ":" in str(file) and any(mark in GLOB for mark in str(file)):
            reason = "has a colon and one of []{}*?\\ in its path"
        else:
            continue
        raise FileError(
            f"{file.name!r} {reason}, so that Spark cannot read it. Rename it, or use "
            f"--engine disk."
        )


def escaped(path: Path) -> str:
    r"""Return a path that Spark takes for itself, and not for a pattern.

    Examples
    --------
    >>> print(escaped(Path("people[1].parquet")))
    people\[1\].parquet
    """
    return "".join(f"\\{mark}" if mark in GLOB else mark for mark in str(path))


def _raise(error: OSError) -> None:
    raise error


def _is_data(name: str) -> bool:
    return not name.startswith(("_", "."))


def nanoseconds(footer: Any) -> set[str]:
    """Return the columns of a Parquet file whose times may have more digits than Spark's."""
    if SPARK_WROTE in (footer.metadata or {}):
        return set()  # it has no more than microseconds to write
    columns = (footer.schema.column(place) for place in range(len(footer.schema)))
    return {column.path for column in columns if column.physical_type == "INT96"}


def read_footer(file: Path) -> Any:
    """Return what a Parquet file says of itself."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        return parquet.read_metadata(file)
    except (pa.ArrowException, OSError):
        raise unreadable(file, "Parquet") from None
