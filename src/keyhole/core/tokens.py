"""Tokens of the small languages of keyhole: rules of a synthesis, expressions of derived columns.

Both are read by hand-written parsers; nothing is ever run as Python. Every token knows the
character at which it stands (from 1), for messages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

DEEPEST = 50
_TOKEN = r"""(?P<space>[ \t\r\n]+)
    |(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w.]))
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<word>[^\W\d][\w.]*)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<sign>%s)"""


class SyntaxProblem(ValueError):  # noqa: N818
    """What is wrong with a rule or an expression, and at which character (from 1)."""

    def __init__(self, at: int, text: str) -> None:
        self.at, self.text = at, text
        super().__init__(f"character {at}: {text}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number, a text or a sign, and where it stands."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The keyword or sign, or nothing."""
        if self.kind == "sign":
            return self.text
        return self.text.lower() if self.kind == "word" else ""

    @property
    def plain(self) -> str:
        """The text without its quotes."""
        if self.kind not in ("text", "name"):
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    @property
    def shown(self) -> str:
        """The token as a message shows it."""
        return "the end" if self.kind == "end" else repr(self.text[:40])

    @property
    def number(self) -> int | float:
        """The number that it is."""
        if self.text.isdigit() and len(self.text) <= 18:
            return int(self.text)
        value = float(self.text)
        if value == float("inf"):
            raise SyntaxProblem(self.at, "this number is too large.")
        return value

    @property
    def date(self) -> date:
        """The date that it is."""
        try:
            return date.fromisoformat(self.text)
        except ValueError:
            raise SyntaxProblem(self.at, "this is not a date. Write year-month-day.") from None


class TokenReader:
    """What a parser by recursive descent reads its tokens with, as deep as `DEEPEST`.

    `signs` is a regular expression of the language's signs; it calls such a text `what`.
    """

    def __init__(self, text: str, signs: str, what: str) -> None:
        self.what = what
        pattern = re.compile(_TOKEN % signs, re.VERBOSE)
        self.tokens, self.place, self.depth = list(_tokens(text, pattern, what)), 0, 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.place]

    def take(self, *words: str) -> Token | None:
        """Take the next token if it is one of these words or signs."""
        token = self.token
        if token.word and token.word in words:
            self.place += 1
            return token
        return None

    def expect(self, word: str) -> Token:
        """Take the next token, which must be this word or sign."""
        token = self.take(word)
        if token is None:
            raise SyntaxProblem(self.token.at, f"{word!r} is expected, not {self.token.shown}.")
        return token

    def deeper(self) -> None:
        """Go a level down."""
        self.depth += 1
        if self.depth > DEEPEST:
            problem = f"the {self.what} is nested more than {DEEPEST} deep. Split it into several."
            raise SyntaxProblem(self.token.at, problem)


def _tokens(text: str, pattern: re.Pattern[str], what: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        found = pattern.match(text, place)
        if found is None:
            raise SyntaxProblem(place + 1, _stranger(text, place, what))
        kind, part = str(found.lastgroup), found.group()
        if kind != "space":
            for at, character in enumerate(part, place):
                if unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\r\n":
                    raise SyntaxProblem(at + 1, _stranger(text, at, what))
            yield Token(kind, part, place + 1)
        place = found.end()
    yield Token("end", "", len(text) + 1)


def _stranger(text: str, place: int, what: str) -> str:
    """Say what is wrong with a character that begins nothing."""
    character = text[place]
    if character in "'\"`":
        return f"the {'name' if character == '`' else 'text'} that begins here is not closed."
    if character in "0123456789.":
        return "this is not a number. Put names that begin with a digit in backquotes."
    shown = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    article = "an" if what[0] in "aeiou" else "a"
    return f"{shown} means nothing in {article} {what}. Put unusual column names in backquotes."
