"""Direct identifiers: fields that say by themselves who somebody is.

They are recognised by the words of a name and a label, by a format pattern, and by contents.
Where a place (city, ZIP code), a day or a sort is told, that is no direct identifier, however
well it may serve as a key. The name of a relative or household member identifies that person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from keyhole.screening.identifier_kinds import GENERIC, KINDS, NEVER, IdentifierKind

__all__ = ["KINDS", "Identifier", "IdentifierKind", "recognise", "words"]

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
    """Split a name, path or label into words in lower case.

    Examples
    --------
    >>> words("veteranAddress/zip_code2"), words("SSNLastFour")
    (('veteran', 'address', 'zip', 'code', '2'), ('ssn', 'last', 'four'))
    """
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
    steps = _steps(name)
    found = [*_by_words(steps, "name"), *_by_words(_said(label), "label")]
    if not _is_never(steps):
        found += _by_format(pattern)
    if values is not None:
        found += _by_contents(values)
    # max keeps the first of equals, and the table stands in order of precedence.
    return max(found, key=lambda one: one.confidence, default=None)


def _steps(name: str) -> str:
    steps = [" ".join(words(step)) for step in re.split(r"[/.]", name[:_LONGEST])]
    return " / ".join(step for step in steps if step)


def _said(label: str) -> str:
    return " ".join(words(label))


def _is_never(text: str) -> bool:
    return _compiled(NEVER).search(text.rpartition(" / ")[2]) is not None


@lru_cache(maxsize=1 << 14)
def _by_words(text: str, where: str) -> tuple[Identifier, ...]:
    if not text or _is_never(text) or not _any_words().search(text):
        return ()
    near = " / ".join(text.split(" / ")[-_NEAR:])
    return tuple(
        Identifier(kind.name, confidence, f"its {where} has {found!r}", kind.safe_harbor)
        for kind in KINDS
        if not (kind.unless and _compiled(kind.unless).search(near))
        for pattern, confidence in kind.words
        if (found := _last_match(pattern, text)) is not None
    )


@lru_cache(maxsize=1)
def _any_words() -> re.Pattern[str]:
    """Return one pattern of all words; most fields have none of them."""
    return re.compile("|".join(f"(?:{pattern})" for kind in KINDS for pattern, _ in kind.words))


def _last_match(pattern: str, text: str) -> str | None:
    """Return the words found, if they reach into the last step or into one it continues."""
    start = text.rfind(" / ") + 3 if " / " in text else 0
    if start and _compiled(GENERIC).match(text[start:]):
        start = max(text.rfind(" / ", 0, start - 3), 0)
    ends = [found for found in _compiled(pattern).finditer(text) if found.end() > start]
    return ends[-1].group().strip(" /") if ends else None


def _by_format(pattern: str) -> list[Identifier]:
    return [
        Identifier(kind.name, confidence, f"its format is that of: {kind.name}", kind.safe_harbor)
        for kind in KINDS
        for shape, confidence in kind.formats
        if pattern and _compiled(shape).search(pattern[:_LONGEST])
    ]


def _by_contents(values: Iterable[object]) -> list[Identifier]:
    texts = [str(one).strip()[:_LONGEST] for one in islice(values, _GLANCE) if one is not None]
    texts = [one for one in texts if one]
    return [
        Identifier(kind.name, _SURE * share, f"its values look like: {kind.name}", kind.safe_harbor)
        for kind in KINDS
        if kind.contents and (share := _share(texts, kind.contents)) >= _MOST_VALUES
    ]


def _share(texts: list[str], contents: str) -> float:
    fits = sum(_compiled(contents).fullmatch(one) is not None for one in texts)
    return fits / len(texts) if texts else 0.0


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
