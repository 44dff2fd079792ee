"""A review file as it stands on disk: its values, and the line of each for messages."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.errors import FileError
from keyhole.protection.methods import METHODS
from keyhole.reviews.lines import Path as ValuePath
from keyhole.reviews.lines import line_numbers

__all__ = ["SECRETS", "Problem", "Source", "is_deep", "read_source"]

SECRETS: tuple[ValuePath, ...] = (("synthesis", "seed"), ("protection", "seed"))
# Far more than any setting has.
DEEPEST = 20
LARGEST = 5_000_000

Problem = tuple[int, str]
"""The line of a problem, and what to say of it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A review file: where it is, what it holds, and on which lines.

    `sha256` is of the file's bytes; with secrets in it (seeds, and how steps of a protection drew),
    of the text without their lines.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[ValuePath, int]
    sha256: str

    def problem(self, where: ValuePath, text: str) -> Problem:
        """Put the file and the line before what is wrong; the nearest line that is known."""
        found = next((where[:n] for n in range(len(where), 0, -1) if where[:n] in self.lines), ())
        line = self.lines.get(found, 1)
        return line, f"{self.path.name}, line {line}: {text}"


def read_source(path: str | os.PathLike[str], content: bytes | None = None) -> Source:
    r"""Read a review file, or say where its TOML is broken.

    With `content` given, that is what the file is taken to hold: it may be about to.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "review.toml"
    >>> _ = file.write_text('keys = ["age"]\nlimit = = 3')
    >>> read_source(file)
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: review.toml, line 2, column 9: this is not TOML (invalid value).
    Correct it there: text stands in quotes, lists in [ ], each setting on its own line.
    """
    file = Path(path)
    content = _bytes(file) if content is None else content
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{file.name}, line {line}: this is not UTF-8 text. Save the review file as UTF-8."
        ) from None
    try:
        values: dict[str, Any] | None = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(_syntax(file.name, text, str(error))) from None
    except ValueError:  # a whole number of thousands of digits
        raise FileError(
            f"{file.name}: a number has too many digits to be one. Correct it."
        ) from None
    except RecursionError:
        values = None
    if values is None or is_deep(values):
        raise FileError(
            f"{file.name}: lists or sections are nested more than {DEEPEST} deep. A review file "
            f"needs a few levels only; correct it."
        )
    lines = line_numbers(text)
    digest = hashlib.sha256(_without_seed(content, text, lines)).hexdigest()
    return Source(file.resolve(), values, lines, digest)


def _without_seed(content: bytes, text: str, lines: Mapping[ValuePath, int]) -> bytes:
    """Leave out the lines of secrets: the hash of a file but for a number tells the number."""
    secret = {line for path, line in lines.items() if path in SECRETS or _is_drawn_by(path)}
    if not secret:
        return content
    kept = [one for number, one in enumerate(text.split("\n"), 1) if number not in secret]
    return "\n".join(kept).encode()


def _is_drawn_by(path: ValuePath) -> bool:
    """Tell whether a value is an option of a step that says how it drew."""
    names = {name for method in METHODS.values() for name in method.secret}
    return path[:2] == ("protection", "step") and len(path) > 3 and path[3] in names


def is_deep(values: Any) -> bool:
    """Tell whether values are nested too deeply, without going down with them."""
    level = [values]
    for _ in range(DEEPEST):
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [v for one in inner for v in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)  # what is no file may have no end
        if len(content) <= LARGEST:
            return content
        reason = (
            f"it has more than {LARGEST // 1_000_000} MB. A review file has a few pages; correct it"
        )
    except IsADirectoryError:
        reason = "it is a folder. Give the review file in it"
    except FileNotFoundError:
        reason = "there is no such file. Check the path, or see docs/review-file for an example"
    except ValueError:  # a name with a zero byte
        reason = "its path is none"
    except OSError as error:
        reason = f"{(error.strerror or 'unknown reason').lower()}"
    raise FileError(f"review file {str(file)!r} cannot be read: {reason}.")


def _syntax(name: str, text: str, message: str) -> str:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    line, column = found.groups() if found else (str(text.count("\n") + 1), "1")
    what = message.split(" (at ")[0]
    return (
        f"{name}, line {line}, column {column}: this is not TOML ({what[:1].lower()}{what[1:]}). "
        f"Correct it there: text stands in quotes, lists in [ ], each setting on its own line."
    )
