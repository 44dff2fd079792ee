"""Recoding: categories by a map, numbers into bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from keyhole.core.names import plural, shown
from keyhole.core.options import Option
from keyhole.data.columns import Codes
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.exposure.fix import Fix
from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.method import AS_CODED, Protected, PublicNote, method
from keyhole.protection.options import (
    FINITE,
    POSITIVE,
    Options,
    TomlValue,
    by_form,
    find_by_form,
    forms_of,
    given_options,
    is_list,
    is_table,
    numeric_problems,
    plain_number,
    value_text,
)
from keyhole.protection.writeback import put_levels

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Bands in ascending order; `low` belongs to its band, `high` only if `closed`."""

    low: Floats
    high: Floats
    closed: bool

    def place(self, values: Floats) -> Ints:
        """Return the number of the band each value lies in, -1 where it is in none."""
        found = np.searchsorted(self.low, values, side="right") - 1
        high = self.high[np.maximum(found, 0)]
        inside = (values <= high) if self.closed else (values < high) | (high == math.inf)
        return np.where((found >= 0) & inside, found, NOWHERE).astype(np.int64)

    def label(self, place: int, *, whole: bool) -> str:
        """Name a band; one of whole numbers by its first and last number."""
        low, high, closed = float(self.low[place]), float(self.high[place]), self.closed or whole
        last = math.ceil(high) - 1 if whole and not self.closed and math.isfinite(high) else high
        if low == -math.inf:
            return f"{_text(last)} and below" if closed else f"below {_text(high)}"
        if high == math.inf:
            return f"{_text(low)} and above"
        if closed and last == low:
            return _text(low)
        return f"{_text(low)}-{_text(last)}" if closed else f"{_text(low)} to below {_text(high)}"


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.12g}"


def from_cuts(cuts: Sequence[float]) -> Bands:
    """Return the bands between cuts; the outer ones are open. A cut begins the band above it."""
    edges = np.array([-math.inf, *cuts, math.inf], np.float64)
    return Bands(edges[:-1], edges[1:], closed=False)


_CUTS = TomlValue(
    "a list of numbers where bands begin",
    lambda value: is_list(value) and value and not any(map(FINITE.fault, value)),
)


def _is_pairs(value: Any) -> bool:
    ends = (-math.inf, math.inf)  # of the outermost
    return bool(is_list(value) and value) and all(
        is_list(pair) and len(pair) == 2 and all(not FINITE.fault(v) or v in ends for v in pair)
        for pair in value
    )


def band_problems(pairs: Sequence[Sequence[float]]) -> list[str]:
    """Say of each band that ends before it begins so, and of each two that overlap."""
    found = [
        f"band {value_text(list(pair))} ends before it begins. Give [first, last]."
        for pair in pairs
        if pair[0] > pair[1]
    ]
    ordered = sorted(list(pair) for pair in pairs if pair[0] <= pair[1])
    return found + [
        f"bands {a} and {b} overlap: a number must be in one only, and the last number of a "
        f"band is within."
        for a, b in pairwise(ordered)
        if b[0] <= a[1]
    ]


Output = Literal["label", "code", "middle"]

# A width that makes more bands than this was meant for another column.
MOST_BANDS = 10_000
# Floats, of which edges are made, hold whole numbers up to here.
EXACT = 2**53


def _is_value(value: Any) -> bool:
    return isinstance(value, str | bool) or FINITE.fault(value) is None


_MAP = TomlValue(
    "a table that gives for each category its new value",
    lambda value: is_table(value) and all(map(_is_value, value.values())),
)


def _is_labels(value: Any) -> bool:
    texts = list(value.values()) if isinstance(value, Mapping) else value
    return is_list(texts) and all(isinstance(text, str) and text.strip() for text in texts)


def _clashes(options: Options) -> list[str]:
    by_map = "map" in options
    wrong = ("output",) if by_map else ("rest", "keep_rest")
    where = "bands, cuts or width" if by_map else "a map"
    found = [f"{name} can only be used with {where}." for name in wrong if name in options]
    if "rest" in options and options.get("keep_rest"):
        found.append("rest and keep_rest exclude each other. Leave one of them out.")
    seen: dict[str, Any] = {}
    for key in options.get("map", {}):
        first = [seen.setdefault(form, key) for form in forms_of([key])]
        other = next((one for one in first if one is not key), None)
        if other is not None:
            found.append(f"map names category {shown(key)} twice, as {shown(other)} too.")
    new = {"map": list(options.get("map", {}).values()), "rest": [options.get("rest")]}
    found += [
        f"{option} must not make values empty, which are read as missing. Give a text, like "
        f"'other', or use suppress to remove values."
        for option, values in new.items()
        if any(isinstance(one, str) and not one.strip() for one in values)
    ]
    if not all(a < b for a, b in pairwise(options.get("cuts", ()))):
        found.append("cuts must ascend, each once. Got them in another order instead.")
    return [*found, *band_problems(options.get("bands", ()))] or _label_clashes(options)


def _label_clashes(options: Options) -> list[str]:
    labels = options.get("labels")
    if labels is None or "width" in options:
        return [] if labels is None else ["labels are made from the width. Leave them out."]
    if "map" in options:
        fit = isinstance(labels, Mapping)
        return [] if fit else ["labels of a map must be a table from new values to texts."]
    count = len(options["bands"]) if "bands" in options else len(options["cuts"]) + 1
    if isinstance(labels, Mapping) or len(labels) != count:
        return [f"labels must be a list of one text a band: {plural(count, 'text')}."]
    return [] if len(set(labels)) == count else ["labels must all differ."]


def _unfit(data: Microdata, options: Options) -> list[str]:
    name = options["column"]
    if "map" not in options:
        return numeric_problems(data, [name]) or _unfit_bands(data, options)
    known, levels = forms_of(options["map"]), data.codes(name).levels.to_list()
    missed = sum(known.isdisjoint(forms_of([level])) for level in levels)
    if not missed or "rest" in options or options.get("keep_rest"):
        return []
    return [
        f"map must name every category of column {name!r}. It misses {missed:,} of "
        f"{len(levels):,}: add {'it' if missed == 1 else 'them'}, or say what becomes of the rest "
        f"by rest or keep_rest."
    ]


def _unfit_bands(data: Microdata, options: Options) -> list[str]:
    name = options["column"]
    codes = data.codes(name)
    ends: list[Any] = [codes.levels.min(), codes.levels.max()] if len(codes.levels) else []
    if codes.levels.dtype.is_integer() and any(abs(end) > EXACT for end in ends):
        return [
            f"column {name!r} holds whole numbers of more than 15 digits, which bands cannot "
            f"distinguish exactly: round or top-code it first, or recode it by a map."
        ]
    bands = _bands(codes, options)
    if options.get("output") == "middle" and not np.isfinite([bands.low, bands.high]).all():
        return ["output='middle' needs bands that end on both sides. Give bands, or labels."]
    levels = codes.levels.cast(pl.Float64).to_numpy()
    outside = int((np.append(bands.place(levels), 0)[codes.values] < 0).sum())
    return [
        f"bands must cover column {name!r}. {outside:,} of {plural(data.records, 'record')} "
        f"{'is' if outside == 1 else 'are'} in none: add bands; the first may begin at -inf, "
        f"the last end at inf."
    ] * bool(outside)


def _bands(codes: Codes, options: Options) -> Bands:
    if "bands" in options:
        ordered = np.array(sorted(map(tuple, options["bands"])), dtype=np.float64)
        return Bands(ordered[:, 0], ordered[:, 1], closed=True)
    if "cuts" in options:
        return from_cuts(options["cuts"])
    levels = codes.levels.cast(pl.Float64).to_numpy()
    width, start = float(options["width"]), float(options.get("start", 0))
    if not len(levels):
        return from_cuts([start])
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.floor((levels[[0, -1]] - start) / width)
    if not last - first < MOST_BANDS or max(abs(first), abs(last)) >= EXACT:
        raise OptionError(
            f"width makes more than {MOST_BANDS:,} bands, or bands too narrow for numbers as large "
            f"as those of column {options['column']!r}. Give a larger one, or cuts."
        )
    edges = start + width * np.arange(first, last + 2)
    return Bands(edges[:-1], edges[1:], closed=False)


def _suggest(data: Microdata, fix: Fix) -> Options | None:
    if fix.amount is None or fix.action not in ("regroup", "pool"):
        return None
    if fix.action == "regroup":
        return {"column": fix.variable, "width": plain_number(fix.amount)}
    codes = data.codes(fix.variable)
    counts = np.bincount(codes.values, minlength=codes.size)[: len(codes.levels)]
    names = codes.levels.filter(counts < fix.amount * counts.sum()).to_list()
    if not names or not isinstance(names[0], str | int | float):  # which a plan can write
        return None
    # One of the rare values stands for all, so that the column keeps its type.
    pooled = dict.fromkeys(map(str, names), names[0])
    return {"column": fix.variable, "map": pooled, "keep_rest": True}


@method(
    "recode",
    "codes",
    note=PublicNote("Categories were merged in {columns}.", AS_CODED),
    one_of=("map", "bands", "cuts", "width"),
    goes_with={"start": "width"},
    clashes=_clashes,
    unfit=_unfit,
    makes_labels=lambda options: "map" not in options and options.get("output", "label") == "label",
    repeats=True,
    suggest=_suggest,
)
def recode(
    data: Microdata,
    *,
    column: Annotated[str, Option("The column.", column="column")],
    map: Annotated[  # the word of the plan
        Mapping[Any, Any] | None,
        Option(
            "For each category its new value. Categories are compared by their text form, so that "
            "`1` and `'1'` are the same; a map that misses one is refused.",
            kind=_MAP,
        ),
    ] = None,
    bands: Annotated[
        Sequence[Sequence[float]] | None,
        Option(
            "Pairs [first, last], both within the band; they may not overlap, and must cover the "
            "column. The outermost may be infinite.",
            kind=TomlValue("a list of bands [first, last]", _is_pairs),
        ),
    ] = None,
    cuts: Annotated[
        Sequence[float] | None,
        Option("Numbers at which bands begin: `[18, 65]` makes three.", kind=_CUTS),
    ] = None,
    width: Annotated[float | None, Option("The width of equal bands.", kind=POSITIVE)] = None,
    start: Annotated[
        float | None, Option("Where equal bands are counted from; by default 0.", kind=FINITE)
    ] = None,
    labels: Annotated[
        Sequence[str] | Mapping[Any, str] | None,
        Option(
            "One text per band; of a map, a table from new values to texts.",
            kind=TomlValue("a list, or a table, of texts", _is_labels),
        ),
    ] = None,
    rest: Annotated[
        Any,
        Option(
            "What categories that the map does not name become.",
            kind=TomlValue("a text or a number", _is_value),
        ),
    ] = None,
    keep_rest: Annotated[
        bool | None, Option("Keep categories that the map does not name as they are.")
    ] = None,
    output: Annotated[
        Output | None,
        Option(
            "What a band becomes: its `label` (default), its number from 1 with the label beside "
            "it (`code`), or its `middle`."
        ),
    ] = None,
) -> Protected:
    """Recode a column by a map of its categories, or its numbers into bands.

    Notes
    -----
    Categories that become one share a label made of theirs ("married or widowed"), unless
    `labels` says otherwise.

    Examples
    --------
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"age": [17, 18, 64, 90], "ms": [*"mwsm"]}))
    >>> recode(people, column="age", cuts=[18, 65]).data.frame["age"].to_list()
    ['17 and below', '18-64', '18-64', '65 and above']
    >>> together = {"m": "ever married", "w": "ever married", "s": "single"}
    >>> recode(people, column="ms", map=together).changed
    4
    """
    options = given_options(locals())
    new, changed = (_by_bands if map is None else _by_map)(data, options)
    before, after = len(data.codes(column).levels), len(new.codes(column).levels)
    return Protected(new, "recode", {column: changed}, (became(before, after),))


def became(before: int, after: int, one: str = "category", many: str = "categories") -> str:
    """Say how many categories became how many."""
    return f"{plural(before, one, many)} became {after:,}"


def _by_map(data: Microdata, options: Options) -> tuple[Microdata, int]:
    name, mapping = options["column"], options["map"]
    levels = data.codes(name).levels.to_list()
    by_text = by_form(mapping)
    mapped = [find_by_form(by_text, level) for level in levels]
    new = [
        options.get("rest", level) if value is None else value
        for level, value in zip(levels, mapped, strict=True)
    ]
    labels = merged_labels(data.variable(name).value_labels, levels, new)
    labels |= options.get("labels", {})
    return put_levels(data, name, new, value_labels=labels)


def merged_labels(
    old: Mapping[Any, str], levels: list[Any], new: list[Any], *, most: int | None = None
) -> dict[Any, str]:
    """Label new values by the labels of what became them, up to so many."""
    by_text = by_form(old)
    parts: dict[Any, dict[str, None]] = {}
    for level, value in zip(levels, new, strict=True):
        text = find_by_form(by_text, level)
        if text is not None:
            parts.setdefault(value, {})[text] = None
    return {
        value: " or ".join(texts)
        if most is None or len(texts) <= most
        else f"{next(iter(texts))} or {len(texts) - 1} more"
        for value, texts in parts.items()
    }


def _by_bands(data: Microdata, options: Options) -> tuple[Microdata, int]:
    name = options["column"]
    codes, bands = data.codes(name), _bands(data.codes(name), options)
    places = bands.place(codes.levels.cast(pl.Float64).to_numpy()).tolist()
    labels = _labels(codes, bands, options)
    output, new, numbered = options.get("output"), list[Any](labels), {}
    if output == "middle":
        new = ((bands.low + bands.high) / 2).tolist()
    elif output == "code":
        numbered = dict(enumerate(labels, 1))
        new = list(numbered)
    return put_levels(data, name, [new[place] for place in places], value_labels=numbered)


def _labels(codes: Codes, bands: Bands, options: Options) -> list[str]:
    """Return the labels in the order of the bands, which may be given in another."""
    if "labels" not in options:
        inner = bands.low[np.isfinite(bands.low)]
        whole = codes.levels.dtype.is_integer() and bool((inner == np.floor(inner)).all())
        return [bands.label(place, whole=whole) for place in range(len(bands.low))]
    if "bands" not in options:
        return list(options["labels"])
    pairs = [tuple(pair) for pair in options["bands"]]
    return [label for _, label in sorted(zip(pairs, options["labels"], strict=True))]
