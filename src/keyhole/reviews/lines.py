"""On which line of a TOML text each value stands.

The standard parser gives values without their places, and a review file's problems are told
with line numbers. The text has been parsed before: it is valid, so that a short walk over its
tokens is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Path", "comment_lines", "header_lines", "line_numbers"]

Path = tuple[str | int, ...]
"""The names and places that lead to a value, as in ``("selection", "candidates", 2)``."""

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


def line_numbers(text: str) -> dict[Path, int]:
    r"""Return the line, from 1, of every section, key and list item of a valid TOML text.

    Examples
    --------
    >>> line_numbers('[data]\nfile = "a.csv"\n[keys]\ncolumns = ["age",\n  "sex"]')
    {('data',): 1, ('data', 'file'): 2, ('keys',): 3, ('keys', 'columns'): 4,
     ('keys', 'columns', 0): 4, ('keys', 'columns', 1): 5}
    """
    return _Walk(list(_tokens(text))).read()


def header_lines(text: str) -> list[tuple[Path, int]]:
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
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        self.headers: list[tuple[Path, int]] = []

    def read(self) -> dict[Path, int]:
        """Read statement by statement: a section's header, or a key and its value."""
        section: Path = ()
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

    def _note(self, path: Path, line: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _header(self) -> Path:
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

    def _name(self, end: str) -> Path:
        """Read a name with dots, and the sign that ends it."""
        parts: list[str] = []
        while self._peek() != end:
            text = self._take().text
            if text != ".":
                parts.append(_plain(text))
        self._at += 1
        return tuple(parts)

    def _pair(self, section: Path) -> None:
        line = self._tokens[self._at].line
        path = section + self._name("=")
        self._note(path, line)
        self._value(path)

    def _value(self, path: Path) -> None:
        token = self._take().text
        if token == "[":
            self._list(path)
        elif token == "{":
            self._inline(path)
        else:
            while self._peek() not in (",", "\n", "]", "}", ""):
                self._at += 1

    def _list(self, path: Path) -> None:
        number = 0
        while self._skip_breaks() and self._peek() != "]":
            if self._peek() == ",":
                self._at += 1
                continue
            self._note((*path, number), self._tokens[self._at].line)
            self._value((*path, number))
            number += 1
        self._at += 1

    def _inline(self, path: Path) -> None:
        while self._skip_breaks() and self._peek() != "}":
            if self._peek() == ",":
                self._at += 1
                continue
            self._pair(path)
        self._at += 1


def _plain(name: str) -> str:
    """Take the quotes off a name, and read its escapes."""
    if name[:1] not in ("'", '"'):
        return name
    import tomllib

    parsed: str = tomllib.loads(f"name = {name}")["name"]
    return parsed
