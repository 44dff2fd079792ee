"""What a review file may hold: its sections, their settings, and what each must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from keyhole.data.columns import KINDS, ROLES
from keyhole.data.naming import quoted, repeated
from keyhole.engines import Missing
from keyhole.exposure.population import Approximation
from keyhole.exposure.scores import Convention
from keyhole.reviews.lines import Path
from keyhole.selection.criteria import CRITERIA

__all__ = ["METHODS", "SECTIONS", "TOP", "Setting"]

METHODS = ("forward", "backward", "stepwise")

Fault = str | None
"""What a value must be, where it is not; None where it is fit."""
Check = Callable[[Any], Fault]
Columns = Callable[[Any], Iterator[tuple[Path, str]]]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its value is checked, what it means, and the columns it names."""

    check: Check
    meaning: str
    columns: Columns | None = None
    purpose: str = "column"
    required: bool = False


def _text(value: Any) -> Fault:
    return None if isinstance(value, str) and value.strip() else "text"


def _flag(value: Any) -> Fault:
    return None if isinstance(value, bool) else "true or false"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> Fault:
    fit = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return None if fit else "a whole number of at least 1"


def _share(value: Any) -> Fault:
    return None if _is_number(value) and 0 <= value <= 1 else "a number from 0 to 1"


def _fraction(value: Any) -> Fault:
    return None if _is_number(value) and 0 < value <= 1 else "a number above 0 and at most 1"


def _positive(value: Any) -> Fault:
    return None if _is_number(value) and 0 < value < float("inf") else "a number above 0"


def _weight(value: Any) -> Fault:
    return None if _is_number(value) and 0 <= value < float("inf") else "a number of at least 0"


def _factor(value: Any) -> Fault:
    return None if _is_number(value) and 0 < value <= 2 else "a number above 0 and at most 2"


def _one_of(options: Sequence[str]) -> Check:
    return lambda value: None if value in options else f"one of {quoted(options)}"


def _list_of(check: Check, what: str) -> Check:
    def fault(value: Any) -> Fault:
        if not isinstance(value, list) or not value or any(check(item) for item in value):
            return f"a list of {what}"
        double = repeated(map(repr, value))
        return f"a list that names each once ({', '.join(double)} is repeated)" if double else None

    return fault


def _table_of(check: Check, what: str) -> Check:
    def fault(value: Any) -> Fault:
        fit = isinstance(value, Mapping) and not any(check(item) for item in value.values())
        return None if fit else f"a table that gives for each column {what}"

    return fault


def _code(value: Any) -> Fault:
    return None if isinstance(value, str | int | float | date) else "a value"


def _codes(value: Any) -> Fault:
    lists = value.values() if isinstance(value, Mapping) else [value]
    items = [item for part in lists for item in (part if isinstance(part, list) else [part])]
    fit = isinstance(value, list | Mapping) and not any(_code(item) for item in items)
    return None if fit else "a list of values, or a table of such lists by column"


def _group(value: Any) -> Fault:
    parts = value if isinstance(value, list) else str(value).split("|")
    fit = isinstance(value, str | list) and parts and not any(_text(part) for part in parts)
    return None if fit else "a column, or its alternatives"


def _one(value: Any) -> Iterator[tuple[Path, str]]:
    yield (), value


def _each(value: Any) -> Iterator[tuple[Path, str]]:
    for place, name in enumerate(value):
        yield (place,), name


def _by_name(value: Any) -> Iterator[tuple[Path, str]]:
    for name in value if isinstance(value, Mapping) else ():
        if name != "*":
            yield (name,), name


def _each_group(value: Any) -> Iterator[tuple[Path, str]]:
    for place, group in enumerate(value):
        for name in group if isinstance(group, list) else group.split("|"):
            yield (place,), name.strip()


_NAMES = _list_of(_text, "column names")
_METHOD = _one_of(METHODS)

TOP: Mapping[str, Setting] = {
    "title": Setting(_text, "what the review is called, at the head of the report"),
    "keys": Setting(_NAMES, "the columns an intruder could know", _each, "key"),
}

SECTIONS: Mapping[str, Mapping[str, Setting]] = {
    "data": {
        "file": Setting(_text, "the file under review, seen from the review file", required=True),
        "name": Setting(_text, "what to call the data; the file's name if left out"),
        "missing_codes": Setting(_codes, "values that mean missing: a list, or by column "
                                 '(`"*"` is every column)', _by_name),
        "roles": Setting(_table_of(_one_of(ROLES), f"one of {quoted(ROLES)}"),
                         "by column: " + ", ".join(f"`{role}`" for role in ROLES), _by_name),
        "kinds": Setting(_table_of(_one_of(KINDS), f"one of {quoted(KINDS)}"),
                         "by column: " + ", ".join(f"`{kind}`" for kind in KINDS), _by_name),
        "labels": Setting(_table_of(_text, "text"), "by column, what it means", _by_name),
        "encoding": Setting(_text, "of a text file, if it is not UTF-8"),
        "delimiter": Setting(_text, "of a text file, if it is not to be found out"),
        "sheet": Setting(_text, "of an Excel workbook; the first if left out"),
    },
    "keys": {
        "columns": Setting(_NAMES, "the same as `keys`, as a section", _each, "key"),
    },
    "exposure": {
        "cutoff": Setting(_whole, "records in cells smaller than this are at risk; 3"),
        "missing": Setting(_one_of(get_args(Missing)),
                           "what a missing key means: `own`, `wildcard` or `drop`"),
        "weight": Setting(_text, "the column with the number of people each record stands for; "
                          "the one with the role `weight`", _one, "weight"),
        "fraction": Setting(_fraction, "the share of the population sampled, without weights"),
        "household": Setting(_text, "the column that names the household; the one with the role "
                             "`household`", _one, "household"),
        "by": Setting(_text, "a column whose categories are measured one by one too", _one, "by"),
        "limit": Setting(_share, "the highest RP on the keys that is acceptable"),
        "approximation": Setting(_one_of(get_args(Approximation)),
                                 "of the individual risk: `exact` or `sdcmicro`"),
    },
    "uniques": {
        "max_size": Setting(_whole, "the most variables of a minimal unique; all keys but one"),
        "convention": Setting(_one_of(get_args(Convention)),
                              "of the score: `guide`, `sdcmicro` or `ihsn`"),
        "fraction": Setting(_fraction, "for DIS-SUDA; what the weights say if left out"),
        "availability": Setting(_table_of(_factor, "a number above 0 and at most 2"),
                                "by key, how easily it is learnt; 1", _by_name, "key"),
        "identifiability": Setting(_table_of(_factor, "a number above 0 and at most 2"),
                                   "by key, how much it tells of a person; 1", _by_name, "key"),
    },
    "selection": {
        "method": Setting(_METHOD, "`forward`, `backward` or `stepwise`; forward"),
        "methods": Setting(_list_of(_METHOD, f"methods ({quoted(METHODS)})"),
                           "several of them; the first makes the proposal"),
        "keep": Setting(_NAMES, "variables already decided", _each, "keep"),
        "candidates": Setting(_list_of(_group, 'columns ("age|age10" are alternatives)'),
                              'variables to choose from, `"age|age10"` being alternatives of one; '
                              "the keys that are not kept", _each_group, "candidate"),
        "limit": Setting(_share, "the highest RP of a set that may go out", required=True),
        "drop_limit": Setting(_share, "stepwise removes from this RP on; 0.65 of the limit"),
        "criterion": Setting(_one_of(CRITERIA), "`ratio` (RP/CR) or `difference`"),
        "cr_weight": Setting(_weight, "the weight of CR in `difference`; 0.5"),
        "skip_dependent": Setting(_flag, "leave out what nearly repeats a chosen variable"),
        "by": Setting(_text, "a column whose categories are searched one by one too", _one, "by"),
        "values": Setting(_table_of(_positive, "a number above 0"),
                          "by column, what it is worth to the user; 1", _by_name, "candidate"),
        "limits": Setting(_list_of(_share, "numbers from 0 to 1"),
                          "more limits, to compare with the methods in one table"),
        "cutoffs": Setting(_list_of(_whole, "whole numbers of at least 1"),
                           "more cutoffs, to compare"),
    },
    "frontier": {
        "limit": Setting(_share, "the highest RP; the selection's if left out"),
        "seconds": Setting(_positive, "the time to search; without it, until all sets are found"),
    },
}  # fmt: skip
