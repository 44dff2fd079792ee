"""Direct identifiers: fields that say by themselves who somebody is.

They are recognised by the words of a name and a label, by a format pattern, and by contents: whole
values are compared with shapes, some of which have a check digit; names with a few hundred frequent
American ones, since a column is judged by the share of its records that have one; longer text is
searched for identifiers among its words. Only kinds and counts are reported, never a value.
Where a place (city, ZIP code), a day or a sort is told, that is no direct identifier, however
well it may serve as a key. The name of a relative or household member identifies that person.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

import polars as pl

from keyhole.core.names import plural

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
            Identifier(kind.name, sure, f"it has the format of: {kind.name}", kind.safe_harbor)
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


@cache
def _any_words() -> re.Pattern[str]:
    """Return a pattern that finds any such word: most fields have none at all."""
    return re.compile("|".join(f"(?:{words})" for kind in KINDS for words, _ in kind.words))


_FREQUENT = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
GIVEN, SURNAMES = (frozenset(_FREQUENT[name].split()) for name in ("given", "surnames"))

# How the reason begins of what was found inside longer texts, and is not the whole value.
WITHIN = "found within"

# Distinct values that are looked at, taken evenly over the file.
_DISTINCT_GLANCE = 2_000
# Fewer values than this prove nothing by their check digits or by names.
FEWEST = 8
_GIVEN_SHARE, _SURNAME_SHARE, _FEWEST_NAMES = 0.4, 0.2, 12

_HASH = re.compile(
    r"[0-9a-fA-F]{16}(?:[0-9a-fA-F]{8})*|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/_-]{20,}={0,2}"
)
_ADDRESS = re.compile(
    r"(?i)\d{1,6}[a-z]? (?:[nsew]\.? )?[\w.' -]{2,40}\b(?:street|st|avenue|ave|road|rd|drive|dr|"
    r"lane|ln|boulevard|blvd|court|ct|way|place|pl|terrace|ter|circle|cir|highway|hwy|parkway|"
    r"pkwy|trail|trl|square|sq)\b\.?.*|p\.? ?o\.? box \d+.*"
)
_PHONE = re.compile(r"1?[2-9]\d{2}[2-9]\d{6}")
_CARD = re.compile(r"(?:\d{4}[ -]?){3}\d{1,7}|3\d{3}[ -]?\d{6}[ -]?\d{5}")
_SSN = re.compile(r"(?!000|666|9\d\d)\d{3}(?!00)\d{2}(?!0000)\d{4}")
_IPV6 = re.compile(r"(?=.*::|(?:[^:]*:){7})(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}")
_LATLON = re.compile(r"\(?-?\d{1,2}\.\d{3,}[,;] ?-?\d{1,3}\.\d{3,}\)?")

# What is looked for among the words of a text (Polars' patterns, which look neither way).
_WITHIN: tuple[tuple[str, str, str], ...] = (
    ("email", "F", r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}\.[A-Za-z.]{2,24}"),
    ("ssn", "G", r"\b[0-8]\d{2}-\d{2}-\d{4}\b"),
    ("phone", "D", r"(?:\(\d{3}\) ?|\b\d{3}[ .-])\d{3}[.-]\d{4}\b"),
    ("url", "N", r"\bhttps?://\S{3}|\bwww\.\S{3}"),
)


def sample_values(column: pl.Series) -> pl.Series:
    """Return distinct values as text, taken evenly over the file; never to be shown."""
    filled = column.drop_nulls()
    if len(filled) > 5 * _DISTINCT_GLANCE:
        filled = filled.gather_every(len(filled) // (5 * _DISTINCT_GLANCE))
    return _as_text(filled.unique(maintain_order=True)).head(_DISTINCT_GLANCE)


def _as_text(values: pl.Series) -> pl.Series:
    dtype = values.dtype
    if dtype.is_float():
        whole = values.is_finite() & (values == values.round()) & (values.abs() < 1e17)
        values = values.cast(pl.Int64) if whole.all() else values
    if dtype == pl.Binary or dtype.is_nested() or dtype == pl.Object:
        return pl.Series(values.name, [], dtype=pl.String)
    if values.dtype == pl.Duration:
        values = values.dt.total_microseconds()
    text = values.cast(pl.String).str.slice(0, _LONGEST).str.strip_chars()
    return text.filter(text != "")


def by_contents(column: pl.Series, values: pl.Series, *, place: bool) -> list[Identifier]:
    """Tell what kinds of direct identifiers values look like; places are called like people."""
    texts = values.to_list()
    if not texts or column.dtype == pl.Boolean or column.dtype.is_temporal():
        return []
    found = list(_by_shape(texts, column))
    if column.dtype == pl.String:
        known = recognise("", values=texts)
        if known is not None and known.kind == "account number":  # a few may be mistyped
            known = known if sum(map(iban_holds, texts)) >= _MOST_VALUES * len(texts) else None
        found += [] if known is None else [known]
        found += [] if place or found else _by_names(column)
        found += _within(column, {one.kind for one in found})
    return found


def _by_shape(texts: Sequence[str], column: pl.Series) -> Iterator[Identifier]:
    distinct = column.n_unique() / max(1, len(column))
    for kind, letter, pattern, holds, sure in _SHAPES:
        fits = [one for one in texts if pattern.fullmatch(one) and (holds is None or holds(one))]
        share = len(fits) / len(texts)
        alone = sure >= 0.8 or distinct >= 0.5
        if share >= _MOST_VALUES and len(texts) >= min(FEWEST, len(column)) and alone:
            yield Identifier(kind, sure * share, f"its values look like: {kind}", letter)


def luhn_holds(text: str) -> bool:
    """Tell whether the last digit of a card or device number checks the others."""
    digits = [int(one) for one in text if one.isdigit()][::-1]
    doubled = [d if i % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(digits)]
    return len(digits) > 1 and sum(doubled) % 10 == 0


def iban_holds(text: str) -> bool:
    """Tell whether the two check digits of a bank account number are right."""
    plain = text.replace(" ", "").upper()
    if not plain.isascii() or not plain.isalnum() or len(plain) < 5:
        return False
    return int("".join(str(int(one, 36)) for one in plain[4:] + plain[:4])) % 97 == 1


def is_hash(texts: Sequence[str]) -> bool:
    """Tell whether values look like digests or tokens: long, all of one length, no words."""
    fits = [one for one in texts if _HASH.fullmatch(one) and re.search(r"[A-Za-z]", one)]
    lengths = {len(one) for one in fits}
    return len(fits) >= _MOST_VALUES * len(texts) >= _MOST_VALUES and len(lengths) <= 2


_Check = Callable[[str], bool]
_SHAPES: tuple[tuple[str, str, re.Pattern[str], _Check | None, float], ...] = (
    ("account number", "J", _CARD, luhn_holds, 0.95),
    ("address", "B", _ADDRESS, None, 0.9),
    ("coordinates", "B", _LATLON, None, 0.9),
    ("ip address", "O", _IPV6, None, 0.9),
    # Nothing but the number of digits speaks for these: they count where values hardly repeat.
    ("phone", "D", _PHONE, None, 0.6),
    ("ssn", "G", _SSN, None, 0.6),
)


def _by_names(column: pl.Series) -> list[Identifier]:
    """Compare words with frequent names, by the share of the records that have one."""
    texts = column.drop_nulls().alias("value").str.slice(0, 80)
    counts = texts.value_counts(sort=True).head(20_000)
    people = int(counts["count"].sum())
    given = surnames = two = 0
    seen: set[str] = set()
    for text, count in counts.iter_rows():
        words = re.findall(r"[^\W\d_]+", text.lower())
        if not 1 <= len(words) <= 4 or re.search(r"\d", text):
            continue
        hits = [one for one in words if one in GIVEN]
        last = [one for one in words if one in SURNAMES]
        seen.update(hits, last)
        given += count if hits else 0
        surnames += count if last else 0
        two += count if len(words) >= 2 and (hits or last) else 0
    if not people or len(seen) < _FEWEST_NAMES:
        return []
    share = max(given / people / _GIVEN_SHARE, surnames / people / _SURNAME_SHARE)
    if share < 1:
        return []
    sure = min(0.95, 0.6 + 0.2 * (share - 1) + 0.2 * two / people)
    return [Identifier("name", round(sure, 2), "many of its values are frequent names", "A")]


def _within(column: pl.Series, known: set[str]) -> Iterator[Identifier]:
    """Look for identifiers among the words of longer texts, in every distinct value."""
    texts = column.drop_nulls().unique()
    texts = texts.filter(texts.str.len_bytes() > 8)
    for kind, letter, pattern in _WITHIN:
        if kind in known or not len(texts):
            continue
        hits = int(texts.str.contains(pattern).sum())
        if hits:
            told = f"{WITHIN} {hits:,} of its {plural(len(texts), 'longer value')}: {kind}"
            yield Identifier(kind, 0.8, told, letter)
