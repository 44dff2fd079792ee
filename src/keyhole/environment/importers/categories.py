"""From codes and labels to categories: which mean "other", "not stated", "not applicable"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from keyhole.environment.importers.bands import parse_bands
from keyhole.environment.model import Category, CategoryKind, Intervals
from keyhole.screening.identifiers import words

YES_NO = (Category("yes", "Yes"), Category("no", "No"))
# The code of the category of records with no value at all.
BLANK = "."
_LONGEST = 200
_NOT_APPLICABLE = re.compile(
    r"(n/a|n\.a\.)(\b|$)|not? applicable|inapplicable|inap\.?$|does not apply|legitimate skip|"
    r"valid skip|not in universe|niu\b|skipped"
)
_NOT_STATED = re.compile(
    r"(not (stated|reported|known|recorded|given|answered|ascertained|specified|available|sure|"
    r"provided|determined)|unknown|unk$|unsure|undisclosed|unspecified|no (answer|response|data)|"
    r"non[- ]?response|refus|prefer not|(choose|chose|wish) not to|declin|decline to|"
    r"(do not|don'?t|didn'?t|did not) (know|answer|wish|want to (say|answer))|i?dk\b|missing|"
    r"rather not|i'?d rather not)"
)
_OTHER = re.compile(
    r"(some|any|all|an)? ?others?\b(?! than)|another\b.*\bnot listed|.*\bnot listed( above)?$|"
    r".*\bn\.?e\.?c\.?$|.*not elsewhere classified|none of (the|these)|something else"
)
_UNKEPT = re.compile("[\0\ud800-\udfff]")
_CODE_WORDS = re.compile(r"[a-z]+([A-Z][a-z]*)+|[A-Za-z]+(_[A-Za-z0-9]+)+|[a-z]+(-[a-z]+)+")


def category_kind(label: str) -> CategoryKind:
    """Tell from its label what kind of answer a category is.

    Examples
    --------
    >>> category_kind("Prefer not to say"), category_kind("N/A (under 16)")
    ('not stated', 'not applicable')
    >>> category_kind("Some other race"), category_kind("Other than honorable")
    ('other', 'value')
    """
    text = " ".join(label[:_LONGEST].lower().replace("’", "'").split())
    text = re.sub(r"^\(?\w{1,2}[.)]\s+", "", text).strip("-*[]<>. ")
    if _NOT_APPLICABLE.match(text):
        return "not applicable"
    if _NOT_STATED.match(text):
        return "not stated"
    return "other" if _OTHER.match(text) else "value"


def clean(text: str) -> str:
    r"""Replace what no store keeps (NUL, halves of characters) by a mark.

    Examples
    --------
    >>> clean("a\0b\ud800") == "a\ufffdb\ufffd"
    True
    """
    return text if text.isprintable() else _UNKEPT.sub("\ufffd", text)


def readable(code: str) -> str:
    """Write a code that is made of words as words.

    Examples
    --------
    >>> readable("killedInAction"), readable("never_married"), readable("AL")
    ('killed in action', 'never married', 'AL')
    """
    if len(code) > _LONGEST or not _CODE_WORDS.fullmatch(code):
        return code
    return " ".join(words(code))


def make_categories(options: Iterable[tuple[str, str]]) -> tuple[Category, ...]:
    """Make categories of codes and labels; a repeated code counts once.

    Examples
    --------
    >>> make_categories([("1", "Yes"), ("9", "Refused"), ("1", "Yes")])
    (Category(code='1', label='Yes', kind='value'),
     Category(code='9', label='Refused', kind='not stated'))
    """
    found: dict[str, Category] = {}
    for code, label in ((clean(code), clean(label)) for code, label in options):
        said = label or readable(code)
        if code not in found:
            found[code] = Category(code, said, category_kind(said))
    return tuple(found.values())


def coded(
    categories: Sequence[Category], words_: str = ""
) -> tuple[tuple[Category, ...], Intervals | None]:
    """Turn value categories that are bands into intervals; the others stay categories."""
    values = [one.label for one in categories if one.kind == "value"]
    # The first tells in nearly all cases, and there may be a hundred thousand.
    bands = parse_bands(values, words_) if len(values) > 1 else None
    if bands is None:
        return tuple(categories), None
    return tuple(one for one in categories if one.kind != "value"), bands.intervals
