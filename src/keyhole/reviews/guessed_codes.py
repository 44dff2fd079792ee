"""Values that seem to mean missing, by how they look beside the other values of their column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from keyhole.data import Microdata
from keyhole.reviews.small_counts import SMALLEST

__all__ = ["guess_codes", "share_of"]

_WORDS = frozenset({".", "..", "na", "n/a", "nan", "null", "none", "missing", "#n/a", "?", "-"})
# Words that some hold for an answer and others for none.
_UNSURE = frozenset(
    {"unknown", "unk", "not known", "not stated", "not answered", "no answer", "not available",
     "not applicable", "don't know", "dont know", "do not know", "dk", "refused", "xx", "xxx"}
)  # fmt: skip
_BELOW = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -97, -98, -99, -997, -998, -999, -9997, -9998, -9999)
_ABOVE = tuple(10**digits - back for digits in (2, 3, 4, 5) for back in (3, 2, 1))
_NUMBERS = frozenset(map(str, (*_BELOW, *_ABOVE)))
# A code stands apart if it is so many times as large as what is not one.
_APART = 1.25
# Among negative values one that is so many times as frequent as any other stands out.
_STANDS_OUT = 5
# A column of text with more levels than this is not looked through value by value.
_MOST = 10_000

Codes = tuple[Any, ...]


def guess_codes(data: Microdata) -> tuple[dict[str, Codes], dict[str, Codes]]:
    """Return by column the codes that surely mean missing, and those that may.

    A code that few records have is told of neither: it may be somebody's value.

    Examples
    --------
    >>> from keyhole.data import load
    >>> ages = [30, 41, 52, -9] * 5 + [999] * 4
    >>> guess_codes(load(pl.DataFrame({"age": ages, "sex": ["f", "m", "NA"] * 8})))
    ({'age': (-9,), 'sex': ('NA',)}, {'age': (999,)})
    >>> guess_codes(load(pl.DataFrame({"state": ["MD", "VA", "-9", "unknown"] * 5})))
    ({}, {'state': ('-9', 'unknown')})
    >>> guess_codes(load(pl.DataFrame({"decile": ["1", "2", "3", "N"] * 5})))
    ({}, {'decile': ('N',)})
    """
    sure: dict[str, Codes] = {}
    doubtful: dict[str, Codes] = {}
    for variable in data.variables:
        column = data.frame.get_column(variable.name)
        if variable.missing_codes or variable.missing_ranges:
            continue  # the file itself says
        codes, perhaps = _of_column(column)
        if codes:
            sure[variable.name] = codes
        if perhaps:
            doubtful[variable.name] = perhaps
    return sure, doubtful


def share_of(data: Microdata, name: str, codes: Codes) -> float:
    """Return the share of the records that have one of some codes.

    Examples
    --------
    >>> from keyhole.data import load
    >>> share_of(load(pl.DataFrame({"age": [30, -9, 41, -9]})), "age", (-9,))
    0.5
    """
    column = data.frame.get_column(name)
    return float(column.is_in(list(codes)).sum()) / max(data.records, 1)


def _of_column(column: pl.Series) -> tuple[Codes, Codes]:
    if column.dtype == pl.String:
        return _of_text(column)
    if not column.dtype.is_numeric() or column.drop_nulls().is_empty():
        return (), ()
    below, perhaps = _of_numbers(column)
    return tuple(below), tuple(perhaps)


def _of_text(column: pl.Series) -> tuple[Codes, Codes]:
    counts = column.drop_nulls().value_counts(sort=True, name="count").head(_MOST)
    often = [text for text, count in counts.iter_rows() if count >= SMALLEST]
    words = sorted(text for text in often if text.strip().lower() in _WORDS)
    # A column of nothing but such words is about something else.
    if len(words) == len(counts):
        return (), ()
    rest = [text for text in counts[column.name] if text not in words]
    word = _only_word(rest)
    perhaps = [text for text in often if text in rest and (text == word or _may_be(text, rest))]
    return tuple(words), tuple(sorted(perhaps)) if len(perhaps) < len(rest) else ()


def _only_word(texts: Sequence[str]) -> str | None:
    """Return the text that is a word where all others are numbers, if there is one."""
    words = [
        text for text in texts if not text.strip().lstrip("+-").replace(".", "", 1).isdecimal()
    ]
    return words[0] if len(words) == 1 < len(texts) - 1 and words[0].strip().isalpha() else None


def _may_be(text: str, others: Sequence[str]) -> bool:
    """Tell whether a text may be a code: a word for it, or a number unlike the others."""
    plain = text.strip().lower()
    if plain not in _NUMBERS:
        return plain in _UNSURE
    numbers = [float(one) for one in others if one.strip().isdecimal() and one.strip() != plain
               and one.strip() not in _NUMBERS]  # fmt: skip
    return float(plain) < 0 or not numbers or _apart(int(plain), max(numbers))


def _of_numbers(column: pl.Series) -> tuple[list[int], list[int]]:
    """Find negative codes among numbers from 0 on, and codes that stand apart from all others."""
    values = column.drop_nulls().cast(pl.Float64)
    counts = values.filter(values.is_in([*map(float, (*_BELOW, *_ABOVE))])).value_counts()
    often = {int(code): count for code, count in counts.iter_rows() if count >= SMALLEST}
    rest = values.filter(~values.is_in([*map(float, often)]))
    if rest.is_empty():
        return [], []
    lowest: Any = rest.min()
    highest: Any = values.filter(~values.is_in([*map(float, _ABOVE)])).max()
    below = sorted(code for code in often if code < 0)
    perhaps = [code for code in often if code > 0 and highest is not None and _apart(code, highest)]
    if lowest < 0:
        negative = rest.filter(rest < 0).value_counts(name="count")["count"]
        usual: Any = negative.max()
        perhaps += [code for code in below if often[code] > _STANDS_OUT * usual]
    return below if lowest >= 0 else [], sorted(perhaps)


def _apart(code: int, highest: float) -> bool:
    return code > _APART * highest
