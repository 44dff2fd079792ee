"""Screening: what must be seen to in a file before anything is measured.

Lin & Garin begin so: variables are screened by the guidelines of disclosure, which strips
identifiers, limits record numbers, geography, dates and ages; and dependent variables are found,
since they lead the selection astray.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.data.microdata import Microdata
from keyhole.engines import Records
from keyhole.engines.choose import engine_notes, open_records, require_memory
from keyhole.engines.threads import in_threads
from keyhole.errors import ColumnError, FileError, OptionError
from keyhole.screening.dependence import NEARLY, Dependence, dependences
from keyhole.screening.determination import Determination, determinations
from keyhole.screening.inspection import Inspection, inspect, is_unreadable
from keyhole.screening.result import Found, Screening
from keyhole.screening.safe_harbor import ITEMS, Finding, checklist

__all__ = ["option_problems", "screen"]

# Names that are somebody's number or address: the first line is then a record, not a header.
_A_VALUE = re.compile(
    r"\s*(\d{3}-\d{2}-\d{4}|[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}|\(?\d{3}\)?[ .-]\d{3}[.-]\d{4})\s*"
)
_PLACES = next(item.remedy for item in ITEMS if item.letter == "B")


def screen(
    data: Any,
    *,
    keys: Iterable[str] | None = None,
    sure: float = 0.5,
    nearly: float = NEARLY,
    sets: bool = True,
    year: int | None = None,
    engine: str = "auto",
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
) -> Screening:
    """Find what must be seen to before a file is measured or released.

    Direct identifiers by name, label and contents; HIPAA's Safe Harbor, item by item; record
    numbers that tie releases together; constants and nearly unique columns; and dependences
    among variables. Only columns are named, never a value.

    Parameters
    ----------
    data
        A file, a frame or `Microdata`.
    keys
        What an intruder is assumed to know: dependences are told where one of these is part,
        and what is wrong with them as keys.
    sure
        The least confidence with which a finding is told, from 0 to 1.
    nearly
        Bias-corrected Cramér's V, or share of entropy told, from which two variables nearly
        duplicate each other.
    sets
        Whether pairs that together determine a third variable are looked for.
    year
        The year to which ages are counted from years of birth; this year if left out.
    engine, memory, work_folder
        Where to count: `memory`, `disk` or `auto`, what the disk engine may use (`"1GB"`), and
        where it makes its files; see `keyhole.engines.choose.open_records`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"ssn": ["212-22-7788", "313-45-6789"], "age": [34, 93]})
    >>> found = screen(people)
    >>> [(one.column, one.identifier.kind) for one in found.identifiers]
    [('ssn', 'ssn')]
    >>> [check.item for check in found.safe_harbor if check.status == "found"]
    ['C', 'G']
    """
    data = open_records(
        data, engine=engine, memory=memory, work_folder=work_folder,
        here_for="looking at what columns hold (dependent variables are told by select)",
    )  # fmt: skip
    names = _checked(data, keys, sure, nearly, year)
    year = datetime.date.today().year if year is None else year
    variables = [data.variable(name) for name in data.require(data.names, purpose="column")]
    seen = in_threads(lambda v: inspect(v, _values(data, v), year=year), variables)
    seen = [_sure_of(one, sure) for one in seen]
    pairs, together = _dependences(data, seen, nearly, sets)
    given_away = _given_away(seen, pairs)
    return Screening(
        records=data.records,
        keys=names,
        year=year,
        sure=sure,
        nearly=nearly,
        columns=tuple(seen),
        identifiers=tuple(Found(one.variable.name, i) for one in seen for i in one.identifiers),
        safe_harbor=checklist(
            [*(f for one in seen for f in one.findings() if f[1].confidence >= sure), *given_away],
            texts=[one.variable.name for one in seen if one.is_free_text],
            unread=[one.variable.name for one in seen if not one.read],
        ),
        dependencies=tuple(_exact(pairs, together, names)),
        near_dependencies=tuple(
            d for d in pairs if d.determined is None and _concerns((d.first, d.second), names)
        ),
        warnings=(*_warnings(seen, names, pairs), *engine_notes(data)),
    )


def option_problems(*, sure: Any = 0.5, nearly: Any = NEARLY, year: Any = None) -> list[str]:
    """Return what is wrong with the options of `screen`, whatever the data."""
    problems = [
        f"{option} must be a number from 0 to 1. Got {value!r} instead."
        for option, value in (("sure", sure), ("nearly", nearly))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ]
    if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
        problems.append(f"year must be a whole number. Got {year!r} instead.")
    elif year is not None and not 1900 <= year <= 2200:
        problems.append(f"year must be from 1900 to 2200. Got {year!r} instead.")
    return problems


def _checked(
    data: Records, keys: Iterable[str] | None, sure: Any, nearly: Any, year: Any
) -> tuple[str, ...]:
    problems = option_problems(sure=sure, nearly=nearly, year=year)
    names: tuple[str, ...] = ()
    if keys is not None:
        names = (keys,) if isinstance(keys, str) else tuple(keys)
        try:
            data.require(names, purpose="key")
        except ColumnError as error:
            problems += error.problems
    if problems:
        raise OptionError(problems)
    data.require_records()
    places = [str(i) for i, name in enumerate(data.names, 1) if _A_VALUE.fullmatch(name)]
    if places:
        raise FileError(
            f"{data.name!r} must have the names of columns in its first line. Got what looks like "
            f"a person's number or address in column {', '.join(places)} instead: put a line of "
            f"names before it."
        )
    return names


def _values(data: Records, variable: Variable) -> pl.Series:
    """Return a column's values; what is no plain value, like a list, as it is."""
    if not isinstance(data, Microdata):
        return data.column(variable.name)
    raw = data.frame.get_column(variable.name)
    return raw if is_unreadable(raw) else data.column(variable.name)


def _sure_of(one: Inspection, sure: float) -> Inspection:
    """Leave out what is not sure enough to be told."""
    identifiers = tuple(i for i in one.identifiers if i.confidence >= sure)
    number = one.number if one.number is not None and one.number.confidence >= sure else None
    return replace(one, identifiers=identifiers, number=number)


def _dependences(
    data: Records, seen: Sequence[Inspection], nearly: float, sets: bool
) -> tuple[list[Dependence], list[Determination]]:
    # What is constant or nearly unique says nothing; encoding it would only take time.
    names = [
        one.variable.name
        for one in seen
        if one.read and 1 <= one.distinct <= max(2, data.records / 2)
    ]
    encoded: list[Codes] = in_threads(data.codes, names)
    columns = dict(zip(names, encoded, strict=True))
    pairs = dependences(columns, nearly=nearly, with_uncertainty=True)
    if sets:
        size = data.records * (8 * len(names) + 64)
        require_memory(data, size, "looking for pairs that determine a third (--no-sets does not)")
    return pairs, determinations(columns, pairs) if sets else []


def _exact(
    pairs: Sequence[Dependence], together: Sequence[Determination], keys: Sequence[str]
) -> list[Determination]:
    single = [
        Determination((d.determining,), d.determined, d.equivalent)
        for d in pairs
        if d.determined is not None and d.determining is not None
    ]
    return [d for d in [*single, *together] if _concerns((*d.by, d.determined), keys)]


def _concerns(names: Sequence[str], keys: Sequence[str]) -> bool:
    return not keys or not set(names).isdisjoint(keys)


def _given_away(
    seen: Sequence[Inspection], pairs: Sequence[Dependence]
) -> list[tuple[str, Finding]]:
    """Find columns that determine a place exactly: they are geocodes under another name."""
    places = {one.variable.name for one in seen if one.place is not None}
    out: dict[str | None, tuple[str, Finding]] = {}
    for d in pairs:
        for told, by in ((d.determined, d.determining), (d.determining, d.determined)):
            if told in places and by not in places and (told == d.determined or d.equivalent):
                reason = f"it determines {told!r} exactly"
                finding = Finding(str(by), "another name of a place", 0.8, reason, _PLACES)
                out.setdefault(by, ("B", finding))
    return list(out.values())


def _warnings(
    seen: Sequence[Inspection], keys: Sequence[str], pairs: Sequence[Dependence]
) -> list[str]:
    by_name = {one.variable.name: one for one in seen}
    out = []
    for key in keys:
        one = by_name[key]
        if one.identifiers or one.number is not None:
            out.append(f"key {key!r} identifies people by itself: drop it.")
        elif one.is_constant:
            out.append(f"key {key!r} has one value in the whole file: it tells nothing.")
        elif one.is_nearly_unique:
            out.append(f"key {key!r} is nearly unique: any key with it puts nearly all at risk.")
    for d in pairs:
        for told, by in ((d.determined, d.determining), (d.determining, d.determined)):
            exact = told == d.determined or d.equivalent
            if told in keys and by not in keys and by is not None and exact:
                out.append(
                    f"{by!r}, which is not among the keys, gives key {told!r} away: what is done "
                    f"to one must be done to the other."
                )
    return out
