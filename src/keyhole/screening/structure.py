"""Structure of a file: what its records never say.

Impossible combinations, ranges, routing (blank exactly when …), orders and sums of numbers, and
columns that determine others. Every one is a rule in the language of the rules of a synthesis,
which can be edited and must be kept by what is drawn: a man with a birth or an income below the
wages shows which value was replaced (Hawala & Funk, section 2.2). What holds among the members of a
household is said too; it is no rule of a record (`households`).

A combination that nobody has may be an accident. It counts as impossible only if so many records
are expected to have it under the best smaller model (independence for two columns, no three-way
interaction for three) that in a file without structure the chance of reporting any at all is at
most one in a hundred.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import polars as pl

from keyhole.core.marks import COUNT, figure
from keyhole.core.names import plural
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata

Kind = Literal[
    "determined", "routing", "order", "sum", "range", "impossible", "household", "kinship"
]
# What the rules of several records are about; all others are about records.
COUNTED = {"household": "households", "kinship": "pairs of members"}
# The words of the rule language, which are no names of columns.
_PLAIN = re.compile(r"[^\W\d][\w.]*")
_WORDS = frozenset({"and", "or", "not", "in", "is", "missing", "implies", "true", "false"})
# So many structures are shown.
SHOWN = 30
# A list of values longer than this is not printed whole.
LONG = 80


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure: the rule that says it, and how well the file keeps it.

    `support` are the records the rule is about, `exceptions` those that break it, and `expected`
    how many would if the columns had nothing to do with each other (for three columns: nothing
    beyond what each two have). Rules of households count these, or pairs of their members.
    """

    kind: Kind
    columns: tuple[str, ...]
    rule: str
    support: Annotated[int, COUNT]
    exceptions: Annotated[int, COUNT]
    expected: float

    @property
    @figure()
    def sentence(self) -> str:
        """The structure in a sentence."""
        said, (first, *rest) = _cut(self.rule), self.columns
        if self.kind == "determined":
            said = f"{first} follows from {rest[0]}"
        elif self.kind == "routing":
            # The rule is "(blank => condition) and (condition => blank)".
            start = len(f"({name_in_rule(first)} is missing => ")
            when = self.rule[start : (len(self.rule) - len(") and (")) // 2]
            said = f"{first} is blank exactly where {_cut(when)}"
        kept = plural(self.exceptions, "exception") if self.exceptions else "no exception"
        return (
            f"{said}: {kept} in {self.support:,} {COUNTED.get(self.kind, 'records')}, where chance "
            f"alone would give "
            f"{math.floor(self.expected):,}."
        )


def structure_table(found: Sequence[Structure]) -> Table:
    """Lay structures out, the most surprising of each kind first."""
    if not found:
        return Table("Structure", [], [], ["No rule was found that all records satisfy."])
    rows = []
    for one in found[:SHOWN]:
        figures = (one.support, one.exceptions, math.floor(one.expected))
        rows.append([one.kind, _cut(one.rule), *(f"{figure:,}" for figure in figures)])
    notes = ["Expected: exceptions that chance alone would give."]
    if any(one.kind in COUNTED for one in found[:SHOWN]):
        notes.append("Rules of households count households, those of kinship pairs of members.")
    if len(found) > SHOWN:
        notes.append(f"{SHOWN} of {len(found):,}; the JSON has all.")
    return Table("Structure", ["kind", "rule", "records", "exceptions", "expected"], rows, notes)


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"


def find_structure(
    data: Microdata, *, columns: Iterable[str] | None = None, about: Iterable[str] | None = None
) -> tuple[Structure, ...]:
    """Find the structure of a file, the most surprising of each kind first.

    Parameters
    ----------
    data
        The file.
    columns
        The columns looked at; all but free text if left out.
    about
        Only structures that one of these columns has part in.

    Examples
    --------
    >>> import polars as pl
    >>> sex, age = [*"fm"] * 400, [20 + i // 2 % 50 for i in range(800)]
    >>> births = [i * i // 9 % 3 if sex[i] == "f" and age[i] <= 50 else None for i in range(800)]
    >>> from keyhole.data import load
    >>> people = load(pl.DataFrame({"sex": sex, "age": age, "births": births}))
    >>> for one in find_structure(people):
    ...     print(one.sentence)
    births is blank exactly where sex == 'm' or age >= 51: no exception in 800 records, where ...
    """
    from keyhole.screening.households import search_households
    from keyhole.screening.structure_search import search_structure

    names = [
        name
        for name in (data.names if columns is None else columns)
        if data.variable(name).role != "household"
    ]
    concerned = None if about is None else frozenset(about)
    found = search_structure(data, names, concerned)
    found += search_households(data, names, concerned).values()
    order = ("household", "kinship", "routing", "determined", "order", "sum", "range", "impossible")
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), -one.expected, one.rule)))


def name_in_rule(name: str) -> str:
    """Write a column's name as a rule does."""
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def value_in_rule(value: Any) -> str:
    """Write a value as a rule does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.15g}"
    return str(value) if not isinstance(value, str) else "'" + value.replace("'", "''") + "'"


def condition(name: str, levels: pl.Series, codes: Sequence[int]) -> str:
    """Write that a column has one of some codes; the code past the last level is missing."""
    column, last = name_in_rule(name), len(levels)
    known = sorted(code for code in codes if code < last)
    blank = [f"{column} is missing"] if len(known) < len(codes) else []
    if len(known) == last:
        parts = [f"{column} is not missing"]
    elif not known:
        parts = []
    elif len(known) == 1:
        parts = [f"{column} == {value_in_rule(levels[known[0]])}"]
    elif levels.dtype.is_numeric() or levels.dtype.is_temporal():
        parts = _intervals(column, levels, known)
    else:
        parts = [f"{column} in ({', '.join(value_in_rule(levels[code]) for code in known)})"]
    every = [*parts, *blank]
    return f"({' or '.join(every)})" if len(every) > 1 else every[0]


def _intervals(column: str, levels: pl.Series, known: Sequence[int]) -> list[str]:
    """Write the codes as intervals where that is shorter than a list."""
    breaks = [i for i in range(1, len(known)) if known[i] != known[i - 1] + 1]
    runs = [known[i:j] for i, j in zip([0, *breaks], [*breaks, len(known)], strict=True)]
    if len(runs) > 2 and len(known) <= 60:
        return [f"{column} in ({', '.join(value_in_rule(levels[code]) for code in known)})"]
    parts = []
    for run in runs:
        ends = []
        if run[0] > 0:
            ends.append(f"{column} >= {rule_bound(levels, run[0], up=False)}")
        if run[-1] < len(levels) - 1:
            ends.append(f"{column} <= {rule_bound(levels, run[-1], up=True)}")
        text = " and ".join(ends)
        if len(run) == 1 and len(ends) == 2:
            text = f"{column} == {value_in_rule(levels[run[0]])}"
        parts.append(f"({text})" if len(runs) > 1 and len(ends) > 1 and len(run) > 1 else text)
    return parts


def rule_bound(levels: pl.Series, code: int, *, up: bool) -> str:
    """Write the roundest number between a level and the next one beyond it."""
    value, beyond = levels[code], levels[code + 1 if up else code - 1]
    if not levels.dtype.is_numeric():
        return str(value)
    low, high = (value, beyond) if up else (beyond, value)
    for power in range(18, -16, -1):
        step = 10.0**power
        tried = math.floor(high / step) * step if not up else math.ceil(low / step) * step
        fits = low <= tried < high if up else low < tried <= high
        if fits:
            return value_in_rule(int(tried) if float(tried).is_integer() else round(tried, 15))
    return value_in_rule(value)
