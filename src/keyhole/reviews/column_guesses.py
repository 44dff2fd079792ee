"""Guesses about the columns of a file: roles, keys, codes, sensitive ones, what means missing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN, Named
from keyhole.data import Microdata
from keyhole.data.columns import Role, Variable
from keyhole.errors import ColumnError
from keyhole.reviews.count_sheets import SMALLEST
from keyhole.screening.identifiers import words
from keyhole.screening.inspection import Inspection
from keyhole.screening.screen import Screening

_GUESSED_BY: dict[str, dict[str, str]] = {
    part: {name: pattern.replace("\n", "") for name, pattern in patterns.items()}
    for part, patterns in tomllib.loads(
        (resources.files("keyhole.reviews") / "column_words.toml").read_text(encoding="utf-8")
    ).items()
}
_KNOWN, _NAMED, _HELD = (
    tuple(_GUESSED_BY[part].items()) for part in ("known", "sensitive", "categories")
)
_WEIGHT, _BODY, _MEASURED, _HOUSEHOLD, _ORDER, _CODE = _GUESSED_BY["columns"].values()
MOST_KEYS = 10
FEW_KEYS = 3
# By their values, numbers are codes if they leave gaps, if values next to each other are about so
# many times as frequent (a logarithm), if some reach far up, and if round ones are no more
# frequent; each value often enough to tell.
_GAPS, _ROUGH, _REACHES, _ROUND, _OFTEN = 0.6, 0.6, 0.05, 3.0, 20
_FEWEST_NUMBERS = 20
# So many columns named like the weight, with numbers, are its replicates.
_FEWEST_REPLICATES = 4
# A category of which a stranger could hardly know nothing has no more levels than this.
MOST_LEVELS = 50
MOST_CANDIDATES = 14
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

_BY_WAY = {"means", "of"}  # of transport, say: no money
_MONEY = dict(_NAMED)["income or wealth"]
_ICD = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?")
# Of an intruder's gain one or two columns on a subject say as much as twenty.
MOST_OF_A_SUBJECT = 2
MOST_CATEGORIES = 500
_SEVERAL, _FEWEST_CODES, _NEARLY_ALL = 2, 5, 0.9

Codes = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Guess:
    """What a file's columns seem to be, each with the reason.

    `coarser` has for a key the column that is only a coarser version of it, `equivalent` by column
    the key that has the same information, `weights` columns like the weight. `doubtful` are
    codes that may mean missing, or may be values. `codes` are numbers that stand for something,
    `knowable` columns that others could know beside the keys, `also_sensitive` more columns on a
    subject of which two are enough, and `alike` says of how many levels of a column another
    differs only by case or blanks.
    """

    roles: Mapping[str, Role]
    keys: tuple[str, ...]
    candidates: Annotated[tuple[str, ...], HIDDEN]
    missing_codes: Mapping[str, tuple[Any, ...]]
    doubtful: Annotated[Mapping[str, tuple[Any, ...]], Named("suspected_codes")]
    coarser: Annotated[Mapping[str, str], HIDDEN]
    equivalent: Annotated[Mapping[str, str], HIDDEN]
    codes: Mapping[str, str]
    knowable: tuple[str, ...]
    also_sensitive: tuple[str, ...]
    weights: Annotated[tuple[str, ...], HIDDEN]
    replicates: tuple[str, ...]
    alike: Mapping[str, int]
    why: Annotated[Mapping[str, str], Named("reasons")] = field(default_factory=dict)

    def with_role(self, role: str) -> tuple[str, ...]:
        """Return the columns that seem to have a role."""
        return tuple(name for name, one in self.roles.items() if one == role)

    def set_apart(self) -> tuple[str, ...]:
        """Return the keys, and the columns that have a part of their own; sensitive ones do not."""
        return (*self.keys, *(name for name, role in self.roles.items() if role != "sensitive"))


def guess(
    data: Microdata,
    found: Screening,
    keys: Sequence[str] | None = None,
    codes: Mapping[str, str] | None = None,
) -> Guess:
    """Guess what the columns are; `keys` may be given, `codes` are what `guess_kinds` found."""
    why: dict[str, str] = {}
    given = tuple(keys or ())
    free = [one for one in found.inspections if one.variable.name not in {*given, "*"}]
    weight, weights, replicates = _weights(data, free)
    free = [one for one in free if one.variable.name not in {*weights, *replicates}]
    roles = dict(_roles(free, weight, why))
    apart = {*roles, *weights, *replicates, "*"}
    open_columns = [
        one
        for one in found.inspections
        if one.read and one.variable.name not in apart
        if not (one.is_free_text or one.is_constant or one.is_nearly_unique)
        if not _has(one.variable, _ORDER)
    ]
    chosen, coarser, knowable = (given, {}, ()) if given else _keys(open_columns, found, why)
    alone = [one for one in found.dependencies if len(one.by) == 1 and one.equivalent]
    sides = [{one.determined, *one.by} for one in alone]
    pairs = [(name, key) for both in sides for key in both.intersection(chosen) for name in both]
    same = {name: key for name, key in pairs if name not in {*chosen, *apart}}
    taken = {*chosen, *coarser.values(), *same, *weights, *replicates}
    count: dict[str, int] = {}
    also = []
    for name, reason in guess_sensitive(data, found.inspections, {*taken, *roles}):
        subject, why[name] = reason.split(",")[0], reason
        count[subject] = count.get(subject, 0) + 1
        if count[subject] <= MOST_OF_A_SUBJECT:
            roles[name] = "sensitive"
        else:
            also.append(name)
    taken |= {*roles, *also}
    others = [one.variable.name for one in open_columns if one.variable.name not in taken]
    sure, doubtful = guess_codes(data)
    return Guess(
        roles=roles,
        keys=chosen or data.names[:1],
        candidates=tuple(others[: max(0, MOST_CANDIDATES - len(chosen))]),
        missing_codes=sure,
        doubtful=doubtful,
        coarser=coarser,
        equivalent=same,
        codes=codes or {},
        knowable=knowable,
        also_sensitive=tuple(also),
        weights=weights,
        replicates=replicates,
        alike=_levels_alike(data),
        why=why,
    )


def guess_kinds(data: Microdata) -> dict[str, str]:
    """Return the numbers that stand for something and measure nothing, each with the reason."""
    found = {}
    for variable in data.variables:
        column = data.frame.get_column(variable.name).drop_nulls()
        if variable.kind != "measure" or not column.dtype.is_integer() or column.is_empty():
            continue
        if _has(variable, _CODE):
            found[variable.name] = "a code, by its name"
        elif not _has(variable, f"{_WEIGHT}|{_MONEY}") and _values_are_codes(column):
            found[variable.name] = "a code, by its values: they have gaps and irregular frequencies"
    return found


def _values_are_codes(column: pl.Series) -> bool:
    column = column.cast(pl.Int64, strict=False)
    if column.has_nulls():  # numbers beyond 2^63 are no codes
        return False
    values, counts = np.unique(column.to_numpy(), return_counts=True)
    width = int(values[-1]) - int(values[0]) + 1
    few = len(values) < _FEWEST_NUMBERS or len(column) < _OFTEN * len(values)
    if few or values[0] < 0 or len(values) > _GAPS * width:
        return False
    round_ = values % 10 ** max(len(str(values[-1])) - 2, 1) == 0
    if counts[round_].sum() >= max(0.5, _ROUND * round_.mean()) * len(column):
        return False
    rough = float(np.median(np.abs(np.diff(np.log(counts)))))
    high = counts[values > values[-1] - width / 4].sum() / len(column)
    return bool(rough >= _ROUGH and high >= _REACHES)


def _levels_alike(data: Microdata) -> dict[str, int]:
    """Return for columns of text how many levels differ from another only by case or blanks."""
    found = {}
    for variable in data.variables:
        levels = data.frame.get_column(variable.name).drop_nulls()
        if levels.dtype != pl.String or variable.kind != "category":
            continue
        unique = levels.unique()
        plain = unique.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
        more = len(unique) - plain.n_unique()
        if more and len(unique) <= _MOST:
            found[variable.name] = more
    return found


def _has(variable: Variable, pattern: str) -> bool:
    """Look at the words of a name and label, digits left off and those of the name put together."""
    return any(re.fullmatch(pattern, word) for said in _said(variable).values() for word in said)


def _is_about(variable: Variable, pattern: str) -> bool:
    """Tell what a column is about by its name, or by its label if that says nothing sensitive.

    A label may mention by the way what another column holds: the rank of an income in its state.
    """
    name, label = _said(variable).values()
    sensitive = any(_has(variable, words) for _, words in _NAMED)
    return any(re.fullmatch(pattern, word) for word in name | (set() if sensitive else label))


def _said(variable: Variable) -> dict[str, set[str]]:
    plain = [word for word in words(variable.name) if not word.isdigit()]
    label = {word for word in words(variable.label) if not word.isdigit()}
    return {"name": {*plain, "".join(plain), variable.name.lower()}, "label": label}


def _roles(
    free: Sequence[Inspection], weight: str | None, why: dict[str, str]
) -> Iterator[tuple[str, Role]]:
    """Yield the columns that seem to weigh, to name a household, or to name a person."""
    for one in free:
        name = one.variable.name
        if name == weight:
            why[name] = "its name says weight"
            yield name, "weight"
        elif one.filled / 20 < one.distinct < one.filled and _has(one.variable, _HOUSEHOLD):
            why[name] = "its name says household, and its values repeat"
            yield name, "household"
        elif one.identifiers or one.number is not None:
            told = one.identifiers[0] if one.identifiers else one.number
            why[name] = (told and told.reason) or ""
            yield name, "identifier"


def _weights(
    data: Microdata, columns: Sequence[Inspection]
) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Return the weight, others like it, and their replicates; a body's weight is none."""
    measured = any(_has(one.variable, _MEASURED) for one in columns)
    named = [
        one.variable.name for one in columns
        if _has(one.variable, _WEIGHT) and not _has(one.variable, _BODY)
        and not (measured and one.variable.name.lower() in ("weight", "wt"))
    ]  # fmt: skip
    families: dict[str, list[str]] = {}
    for name in data.names:
        stem = re.fullmatch(r"(\D+?)[_.]?\d+", name)
        if stem and _has(data.variable(name), f"{_WEIGHT}|repwtp?|repwgt|replicate"):
            families.setdefault(stem[1].lower(), []).append(name)
    replicates = tuple(
        name for some in families.values() if len(some) >= _FEWEST_REPLICATES for name in some
    )
    named = [name for name in named if name not in replicates]
    fit: dict[str, int] = {}  # how many records weigh nothing, where the column can be a weight
    for name in named:
        with suppress(ColumnError):
            fit[name] = int((data.weights(name) == 0).sum())
    # A household's weight is 0 for those who are in none; a person's weighs everybody.
    weight = min(fit, key=lambda name: (fit[name], len(name), name), default=None)
    return weight, tuple(name for name in fit if name != weight), replicates


def _keys(
    columns: Sequence[Inspection], found: Screening, why: dict[str, str]
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """Choose keys: the finest column for each thing known; with coarser versions, and others."""
    alone = [one for one in found.dependencies if len(one.by) == 1]
    twin = {one.determined: one.by[0] for one in alone if one.equivalent}
    fine = {one.determined: one.by[0] for one in alone if not one.equivalent}
    coarser = {name: twin.get(by, by) for name, by in fine.items()}
    chosen, rest, most = list[str](), list[str](), max([one.filled for one in columns], default=0)
    for what, pattern in _KNOWN:
        told = {"place": "place", "age or birth": "age"}.get(what, "")
        fit = [
            one
            for one in columns
            if getattr(one, told, None) is not None or _is_about(one.variable, pattern)
            if one.variable.name not in chosen
        ]
        # What few people have, such as a field of study, comes after what everybody has.
        rare = sum(one.filled < most / 2 for one in fit)
        fit.sort(key=lambda one: (one.filled < most / 2, -one.distinct))
        # Codes of areas that start anew in each larger area say nothing without it.
        many = max(1, len(fit) - rare) if what == "place" else 1
        chosen += [one.variable.name for one in fit[:many]]
        rest += [one.variable.name for one in fit[many:]]
        why.update((one.variable.name, what) for one in fit)
    again = {name for name, by in twin.items() if by in chosen}
    chosen = [name for name in chosen if coarser.get(name) not in chosen and name not in again]
    if len(chosen) < FEW_KEYS:  # filled up with categories of some levels
        named = {*chosen, *again, *(name for name, fine in coarser.items() if fine in chosen)}
        few = [
            one.variable.name for one in columns
            if one.variable.name not in named and 2 <= one.distinct <= MOST_LEVELS
            and one.variable.kind == "category"
        ]  # fmt: skip
        why.update(dict.fromkeys(few[:FEW_KEYS], "only a guess: it has few levels"))
        chosen += few[: FEW_KEYS - len(chosen)]
    chosen, rest = chosen[:MOST_KEYS], [*chosen[MOST_KEYS:], *rest]
    names = {one.variable.name for one in columns}
    rough = {fine: name for name, fine in coarser.items() if fine in chosen and name in names}
    rough = {fine: name for fine, name in rough.items() if name not in chosen}
    # Of what a key or another of them determines, the finer is enough.
    known = {*chosen, *rest}
    knowable = (name for name in rest if name not in chosen and coarser.get(name) not in known)
    return tuple(chosen), rough, tuple(dict.fromkeys(knowable))


def guess_sensitive(
    data: Microdata, columns: Sequence[Inspection], taken: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield columns that seem sensitive, each with the reason; `taken` are no candidates."""
    for one in columns:
        name = one.variable.name
        if name in taken or name not in data.names or not one.read or one.is_constant:
            continue
        if one.is_free_text or (found := _subject(data, one.variable)) is None:
            continue
        yield name, f"{found[0]}, by its {found[1]}"


def _subject(data: Microdata, variable: Variable) -> tuple[str, str] | None:
    """Return what a column is about, and what tells it."""
    for where, said in _said(variable).items():
        found = said - _BY_WAY if said >= _BY_WAY else said
        for subject, pattern in _NAMED:
            if any(re.fullmatch(pattern, word) for word in found):
                return subject, where
    if variable.kind in ("measure", "date"):
        return None
    # The categories of the column, and what they mean.
    levels = data.codes(variable.name).levels
    shown = levels.to_list() if len(levels) <= MOST_CATEGORIES else []
    texts = [*(one for one in shown if isinstance(one, str)), *variable.value_labels.values()]
    if len(texts) >= _FEWEST_CODES:
        codes = sum(_ICD.fullmatch(text.strip().upper()) is not None for text in texts)
        if codes >= _NEARLY_ALL * len(texts):
            return "health", "codes of diagnoses"
    held = {word for text in texts for word in words(text)}
    for subject, pattern in _HELD:
        if sum(re.fullmatch(pattern, word) is not None for word in held) >= _SEVERAL:
            return subject, "categories"
    return None


def guess_codes(data: Microdata) -> tuple[dict[str, Codes], dict[str, Codes]]:
    """Return by column the codes that surely mean missing, and those that may; no rare ones."""
    sure: dict[str, Codes] = {}
    doubtful: dict[str, Codes] = {}
    for variable in data.variables:
        column = data.frame.get_column(variable.name)
        if variable.missing_codes or variable.missing_ranges:
            continue  # the file itself says
        codes: Codes = ()
        perhaps: Codes = ()
        if column.dtype == pl.String:
            codes, perhaps = _of_text(column, is_code=_has(variable, _CODE))
        elif column.dtype.is_numeric() and not column.drop_nulls().is_empty():
            codes, perhaps = map(tuple, _of_numbers(column))
        if codes:
            sure[variable.name] = codes
        if perhaps:
            doubtful[variable.name] = perhaps
    return sure, doubtful


def _of_text(column: pl.Series, *, is_code: bool) -> tuple[Codes, Codes]:
    counts = column.drop_nulls().alias("value").value_counts(sort=True, name="count").head(_MOST)
    often = [text for text, count in counts.iter_rows() if count >= SMALLEST]
    words = sorted(text for text in often if text.strip().lower() in _WORDS)
    # A column of nothing but such words is about something else.
    if len(words) == len(counts):
        return (), ()
    rest = [text for text in counts["value"] if text not in words]
    # A text that is the only word, where all others are numbers.
    plain = (text.strip().lstrip("+-").replace(".", "", 1) for text in rest)
    others = [text for text, bare in zip(rest, plain, strict=True) if not bare.isdecimal()]
    alone = len(others) == 1 < len(rest) - 1 and others[0].strip().isalpha()
    word = others[0] if alone else None
    if word in often and len(rest) > MOST_LEVELS and not is_code:  # else no amount could be read
        return tuple(sorted([*words, word])), ()
    perhaps = [text for text in often if text in rest and (text == word or _may_be(text, rest))]
    return tuple(words), tuple(sorted(perhaps)) if len(perhaps) < len(rest) else ()


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
    values = column.drop_nulls().cast(pl.Float64).alias("value")
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
