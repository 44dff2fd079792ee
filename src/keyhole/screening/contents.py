"""Direct identifiers by the contents of a column, whatever it is called.

Whole values are compared with shapes, some of which have a check digit; names with frequent
American given names and surnames, of which a few hundred are enough, since a column is judged by
the share of its records that have one; and longer text is searched for identifiers among its
words. Only kinds and counts are reported, never a value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from keyhole.core.names import plural
from keyhole.screening.identifiers import Identifier, recognise

_FREQUENT = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
GIVEN, SURNAMES = (frozenset(_FREQUENT[name].split()) for name in ("given", "surnames"))

# How the reason begins of what was found inside longer texts, and is not the whole value.
WITHIN = "found within"

# Distinct values that are looked at, taken evenly over the file.
GLANCE = 2_000
MOST_VALUES = 0.8
LONGEST = 400
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
    if len(filled) > 5 * GLANCE:
        filled = filled.gather_every(len(filled) // (5 * GLANCE))
    return _as_text(filled.unique(maintain_order=True)).head(GLANCE)


def _as_text(values: pl.Series) -> pl.Series:
    dtype = values.dtype
    if dtype.is_float():
        whole = values.is_finite() & (values == values.round()) & (values.abs() < 1e17)
        values = values.cast(pl.Int64) if whole.all() else values
    if dtype == pl.Binary or dtype.is_nested() or dtype == pl.Object:
        return pl.Series(values.name, [], dtype=pl.String)
    if values.dtype == pl.Duration:
        values = values.dt.total_microseconds()
    text = values.cast(pl.String).str.slice(0, LONGEST).str.strip_chars()
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
            known = known if sum(map(iban_holds, texts)) >= MOST_VALUES * len(texts) else None
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
        if share >= MOST_VALUES and len(texts) >= min(FEWEST, len(column)) and alone:
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
    return len(fits) >= MOST_VALUES * len(texts) >= MOST_VALUES and len(lengths) <= 2


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
