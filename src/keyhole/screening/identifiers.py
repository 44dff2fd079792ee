"""Direct identifiers: fields that say by themselves who somebody is.

They are recognised by the words of a name and a label, by a format pattern, and by contents.
Where a place (city, ZIP code), a day or a sort is told, that is no direct identifier, however
well it may serve as a key. The name of a relative or household member identifies that person.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?(?:[^\W\d_A-Z]|')+|[A-Z]+|\d+")
_LONGEST = 400  # of a name or label: a word far behind does not say what a field is
_NEAR = 3  # steps of a path in which a thing that has the name is looked for
_GLANCE = 10_000
_MOST_VALUES = 0.8  # share of the values that must look alike
_SURE = 0.98


@dataclass(frozen=True, slots=True)
class Identifier:
    """What kind of direct identifier a field is, how sure that is, and why.

    ``safe_harbor`` is the item of the HIPAA Safe Harbor list, (A) to (R).
    """

    kind: str
    confidence: float
    reason: str
    safe_harbor: str


def words(text: str) -> tuple[str, ...]:
    """Split a name, path or label into words in lower case."""
    cut = text[:_LONGEST]
    return tuple(one.lower() for one in _WORD.findall(cut.lower() if cut.isupper() else cut))


def recognise(
    name: str, label: str = "", pattern: str = "", values: Iterable[object] | None = None
) -> Identifier | None:
    r"""Tell whether a field is a direct identifier.

    Parameters
    ----------
    name
        The field's name, or its path with steps set apart by ``/`` (or ``.``).
    label
        What it means, in words.
    pattern
        The format asked of it: a regular expression, or a name of a format (``email``).
    values
        Some of its values, to be compared with known shapes; they are never shown.

    Returns
    -------
    Identifier or None
        The kind that is surest; nothing if the field identifies nobody by itself.

    Examples
    --------
    >>> recognise("veteran/fullName/first").kind
    'name'
    >>> recognise("spouseSSN", pattern=r"^\d{9}$").safe_harbor
    'G'
    >>> recognise("stateName"), recognise("veteranAddress/city"), recognise("gender")
    (None, None, None)
    """
    parts = [" ".join(words(step)) for step in re.split(r"[/.]", name[:_LONGEST])]
    steps = " / ".join(step for step in parts if step)
    found = [*_by_words(steps, "name"), *_by_words(" ".join(words(label)), "label")]
    if pattern and not _is_never(steps):
        found += [
            Identifier(kind.name, sure, f"its format is that of: {kind.name}", kind.safe_harbor)
            for kind in KINDS
            for shape, sure in kind.formats
            if _compiled(shape).search(pattern[:_LONGEST])
        ]
    if values is not None:
        found += _by_contents(values)
    # max keeps the first of equals, and the table stands in order of precedence.
    return max(found, key=lambda one: one.confidence, default=None)


def _is_never(text: str) -> bool:
    return _compiled(NEVER).search(text.rpartition(" / ")[2]) is not None


@lru_cache(maxsize=1 << 14)
def _by_words(text: str, where: str) -> tuple[Identifier, ...]:
    if not text or _is_never(text) or not _ANY_WORDS.search(text):
        return ()
    near = " / ".join(text.split(" / ")[-_NEAR:])
    return tuple(
        Identifier(kind.name, confidence, f"its {where} has {found!r}", kind.safe_harbor)
        for kind in KINDS
        if not (kind.unless and _compiled(kind.unless).search(near))
        for pattern, confidence in kind.words
        if (found := _last_match(pattern, text)) is not None
    )


def _last_match(pattern: str, text: str) -> str | None:
    """Return the words found, if they reach into the last step or into one it continues."""
    start = text.rfind(" / ") + 3 if " / " in text else 0
    if start and _compiled(GENERIC).match(text[start:]):
        start = max(text.rfind(" / ", 0, start - 3), 0)
    ends = [found for found in _compiled(pattern).finditer(text) if found.end() > start]
    return ends[-1].group().strip(" /") if ends else None


def _by_contents(values: Iterable[object]) -> list[Identifier]:
    texts = [str(one).strip()[:_LONGEST] for one in islice(values, _GLANCE) if one is not None]
    texts = [one for one in texts if one]
    found = []
    for kind in KINDS if texts else ():
        fits = [one for one in texts if kind.contents and _compiled(kind.contents).fullmatch(one)]
        if len(fits) / len(texts) >= _MOST_VALUES:
            sure, why = _SURE * (len(fits) / len(texts)), f"its values look like: {kind.name}"
            found.append(Identifier(kind.name, sure, why, kind.safe_harbor))
    return found


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class IdentifierKind:
    """One kind of direct identifier.

    `words` are patterns with the confidence each gives, none of which counts with a word of
    `unless`; `formats` are found in a format pattern; each value matches `contents` whole.
    """

    name: str
    safe_harbor: str
    words: tuple[tuple[str, float], ...]
    unless: str = ""
    formats: tuple[tuple[str, float], ...] = ()
    contents: str = ""


# A last step that says nothing by itself: the one before speaks for it.
GENERIC = r"(numbers?|no|value|text|code|line|full|primary|other|home|work|mobile|last four|\d+)$"
# A last step that tells a place, a day, a sort, or yes and no: not who somebody is.
NEVER = (
    r"(city|town|state|province|zip( code)?|postal( code)?|country|county|region|place|date|"
    r"type|kind|status|gender|sex|age|year|month|day|count|amount|description|reason|relationship"
    r"|available|allowed|consent|verified)( \d+)?$|^(is|has|have|does|do|did|was|were|are|can|may) "
)


def _kinds() -> Iterator[IdentifierKind]:
    read = tomllib.loads(Path(__file__).with_name("identifiers.toml").read_text("utf-8"))
    lists = {f"<{name}>": "".join(read[name]) for name in ("people", "things", "number")}

    def whole(pattern: str) -> str:
        for mark, listed in lists.items():
            pattern = pattern.replace(mark, listed)
        return pattern

    for one in read["kind"]:
        words = tuple((whole(pattern), sure) for pattern, sure in one["words"])
        formats = tuple((pattern, sure) for pattern, sure in one.get("formats", ()))
        unless, contents = whole(one.get("unless", "")), one.get("contents", "")
        yield IdentifierKind(one["name"], one["item"], words, unless, formats, contents)


KINDS: tuple[IdentifierKind, ...] = tuple(_kinds())
# Most fields have no such word at all.
_ANY_WORDS = re.compile("|".join(f"(?:{words})" for kind in KINDS for words, _ in kind.words))
