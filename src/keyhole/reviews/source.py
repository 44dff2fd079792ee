"""A review file as it stands on disk: its values, and the line of each for messages."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from keyhole.core.toml import DEEPEST, is_deep
from keyhole.errors import FileError, InputError
from keyhole.protection.methods import METHODS

ValuePath = tuple[str | int, ...]
"""The names and places that lead to a value, as in ``("selection", "candidates", 2)``."""

SECRETS = (("synthesis", "seed"), ("protection", "seed"), ("table", "seed"))
"""Settings that are told nowhere; a table may be one of several."""

LARGEST = 5_000_000
SCENARIO = "scenario:"


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """A review file: where it is, what it holds, on which lines, and what checks found wrong.

    `sha256` is of the file's bytes; with secrets in it (seeds, and how steps of a protection drew),
    of the text without their lines.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[ValuePath, int]
    sha256: str
    problems: list[tuple[int, str]] = field(default_factory=list)

    def say(self, where: ValuePath, *texts: str) -> None:
        """Note what is wrong, with the file and the nearest line that is known before it."""
        found = next((where[:n] for n in range(len(where), 0, -1) if where[:n] in self.lines), ())
        line = self.lines.get(found, 1)
        self.problems.extend((line, f"{self.path.name}, line {line}: {text}") for text in texts)

    @contextmanager
    def telling(self, where: ValuePath, before: str = "") -> Iterator[None]:
        """Note the problems of an input that are raised inside, and go on."""
        try:
            yield
        except InputError as error:
            self.say(where, *(f"{before}{text}" for text in error.problems))


def read_source(path: str | os.PathLike[str], content: bytes | None = None) -> ReviewSource:
    """Read a review file, or say where its TOML is broken.

    With `content` given, that is what the file is taken to hold: it may be about to.
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
    return ReviewSource(file.resolve(), values, lines, digest)


def _without_seed(content: bytes, text: str, lines: Mapping[ValuePath, int]) -> bytes:
    """Leave out the lines of secrets: the hash of a file but for a number tells the number."""
    drawn_by = {name for method in METHODS.values() for name in method.secret}
    secret = {
        line
        for path, line in lines.items()
        if tuple(part for part in path if isinstance(part, str)) in SECRETS
        or (path[:2] == ("protection", "step") and len(path) > 3 and path[3] in drawn_by)
    }
    if not secret:
        return content
    kept = [one for number, one in enumerate(text.split("\n"), 1) if number not in secret]
    return "\n".join(kept).encode()


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


_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}   # text over several lines
    | \'\'\'.*?\'{3,5}
    | "(?:\\.|[^"\\])*"
    | '[^']*'
    | \#[^\n]*
    | [\[\]{},=.\n]
    | [^\s\[\]{},=."'\#]+''',
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    text: str
    line: int


def line_numbers(text: str) -> dict[ValuePath, int]:
    r"""Return the line, from 1, of every section, key and list item of a valid TOML text.

    Examples
    --------
    >>> line_numbers('[data]\nfile = "a.csv"\n[keys]\ncolumns = ["age",\n  "sex"]')
    {('data',): 1, ('data', 'file'): 2, ('keys',): 3, ('keys', 'columns'): 4,
     ('keys', 'columns', 0): 4, ('keys', 'columns', 1): 5}
    """
    return _Walk(list(_tokens(text))).read()


def header_lines(text: str) -> list[tuple[ValuePath, int]]:
    r"""Return the path and the line, from 1, of every header of a valid TOML text, in order.

    Examples
    --------
    >>> header_lines('keys = [\n["age"]]\n[data]\n[[protection.step]]\n[[protection.step]]')
    [(('data',), 3), (('protection', 'step', 0), 4), (('protection', 'step', 1), 5)]
    """
    walk = _Walk(list(_tokens(text)))
    walk.read()
    return walk.headers


def comment_lines(text: str) -> dict[int, str]:
    r"""Return the lines of a valid TOML text, from 1, that are nothing but a comment.

    Examples
    --------
    >>> comment_lines("# a\nnote = '''\n# no comment\n'''   # beside\n  # b")
    {1: '# a', 5: '# b'}
    """
    found = {}
    for match in _TOKEN.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        if match.group().startswith("#") and not text[start : match.start()].strip():
            found[text.count("\n", 0, start) + 1] = match.group()
    return found


def _tokens(text: str) -> Iterator[_Token]:
    line, place = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", place, match.start())
        place = match.start()
        if not match.group().startswith("#"):
            yield _Token(match.group(), line)


class _Walk:
    """A walk over the tokens that notes where each path stands."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0
        self._lines: dict[ValuePath, int] = {}
        self._tables: dict[ValuePath, int] = {}
        self.headers: list[tuple[ValuePath, int]] = []

    def read(self) -> dict[ValuePath, int]:
        """Read statement by statement: a section's header, or a key and its value."""
        section: ValuePath = ()
        while self._skip_breaks():
            if self._peek() == "[":
                section = self._header()
            else:
                self._pair(section)
        return self._lines

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _skip_breaks(self) -> bool:
        while self._peek() == "\n":
            self._at += 1
        return self._at < len(self._tokens)

    def _note(self, path: ValuePath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _header(self) -> ValuePath:
        line = self._take().line
        doubled = self._peek() == "["
        self._at += doubled
        section = self._name("]")
        self._at += doubled
        if doubled:
            number = self._tables.get(section, -1) + 1
            self._tables[section] = number
            section = (*section, number)
        self._note(section, line)
        self.headers.append((section, line))
        return section

    def _name(self, end: str) -> ValuePath:
        """Read a name with dots, and the sign that ends it."""
        parts: list[str] = []
        while self._peek() != end:
            text = self._take().text
            if text != ".":
                parts.append(_plain(text))
        self._at += 1
        return tuple(parts)

    def _pair(self, section: ValuePath) -> None:
        line = self._tokens[self._at].line
        path = section + self._name("=")
        self._note(path, line)
        self._value(path)

    def _value(self, path: ValuePath) -> None:
        token = self._take().text
        if token in ("[", "{"):
            self._items(path, "]" if token == "[" else "}")
        else:
            while self._peek() not in (",", "\n", "]", "}", ""):
                self._at += 1

    def _items(self, path: ValuePath, end: str) -> None:
        """Read what a list or an inline table holds, and the sign that ends it."""
        number = 0
        while self._skip_breaks() and self._peek() != end:
            if self._peek() == ",":
                self._at += 1
            elif end == "}":
                self._pair(path)
            else:
                self._note((*path, number), self._tokens[self._at].line)
                self._value((*path, number))
                number += 1
        self._at += 1


def _plain(name: str) -> str:
    """Take the quotes off a name, and read its escapes."""
    if name[:1] not in ("'", '"'):
        return name
    return str(tomllib.loads(f"name = {name}")["name"])


def named_scenario(keys: Any) -> str | None:
    """Return the scenario that keys are those of: ``keys = "scenario:NAME"``.

    Examples
    --------
    >>> named_scenario("scenario:journalist"), named_scenario(["age"])
    ('journalist', None)
    """
    if isinstance(keys, str) and keys.startswith(SCENARIO):
        return keys.removeprefix(SCENARIO).strip()
    return None
