"""One column inspected: its name, its contents, how often values repeat, and record numbers.

Lin & Garin count limits on cross-year records and on record numbers across datasets among the
rules of pre-screening. A number that is the same in the next release links the two; one that
counts the records in the order of another file links to that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated

import numpy as np
import polars as pl

from keyhole.core.expressions import CENSUS, derive_line, drop_line
from keyhole.core.marks import COUNT
from keyhole.core.names import plural
from keyhole.data.columns import Variable
from keyhole.screening.identifiers import (
    KINDS,
    WITHIN,
    Identifier,
    by_contents,
    is_hash,
    recognise,
    sample_values,
)
from keyhole.screening.safe_harbor import (
    OLDEST,
    REMEDIES,
    Finding,
    Moment,
    Place,
    find_age,
    find_date,
    find_place,
    zip_digits,
)

# From this share of distinct values on a column is as good as a number for each record.
NEARLY_ALL = 0.95
FEWEST = 20
_NUMBER_KINDS = {f"{what} number" for what in ("record", "file", "medical record", "policy")}
_NUMBER_KINDS |= {"user name"}
_LONGEST_CODE = 40


@dataclass(frozen=True, slots=True)
class RecordNumber:
    """A column by which a person's records can be linked, and why.

    `sort` is sequence, digest, code or declared; `distinct` the number of values over that of
    the records that have one, and `most` the largest number of records with one value.
    """

    column: str
    sort: str
    confidence: float
    reason: str
    distinct: float
    most: Annotated[int, COUNT]


def find_record_number(
    variable: Variable, column: pl.Series, values: pl.Series, identifiers: Sequence[Identifier]
) -> RecordNumber | None:
    """Tell whether a column numbers records or people."""
    filled = column.drop_nulls()
    counts = filled.alias("value").value_counts()["count"] if len(filled) else pl.Series([0])
    distinct, most = len(counts) / max(1, len(filled)), int(counts.max() or 0)  # type: ignore[arg-type]
    found = _sort(variable, filled, values.to_list(), distinct, identifiers)
    return None if found is None else RecordNumber(variable.name, *found, distinct, most)


def _sort(
    variable: Variable,
    filled: pl.Series,
    texts: list[str],
    distinct: float,
    identifiers: Sequence[Identifier],
) -> tuple[str, float, str] | None:
    if variable.role in ("identifier", "household"):
        return "declared", 1.0, f"its declared role is {variable.role}"
    if variable.role == "weight" or not texts:
        return None
    if len(filled) >= FEWEST:
        whole, many = filled.dtype.is_integer(), filled.n_unique()
        span = int(filled.max()) - int(filled.min()) + 1 if whole else 0  # type: ignore[arg-type]
        if filled.dtype.is_integer() and distinct >= NEARLY_ALL and span <= 1.05 * many + 1:
            order = " in the order of the file" if filled.is_sorted() else ""
            return "sequence", 0.9, f"its values are numbered almost without gaps{order}"
        if filled.dtype == pl.String and is_hash(texts):
            return "digest", 0.9, "its values look like digests or random tokens"
    named = [one for one in identifiers if one.kind in _NUMBER_KINDS]
    if named:
        return "code", max(one.confidence for one in named), named[0].reason
    enough = len(filled) >= FEWEST and distinct >= NEARLY_ALL and not identifiers
    if enough and _looks_coded(filled, texts):
        return "code", 0.6, "nearly every record has its own code"
    return None


def _looks_coded(filled: pl.Series, texts: list[str]) -> bool:
    """Whether values are codes rather than amounts or words: of one length, with digits."""
    if not (filled.dtype.is_integer() or filled.dtype == pl.String):
        return False
    lengths = np.array([len(one) for one in texts])
    digits = sum(any(c.isdigit() for c in one) for one in texts)
    spaces = sum(" " in one for one in texts)
    # Amounts differ in length; a few codes may be mistyped.
    alike = (lengths == np.median(lengths)).mean() >= (0.9 if filled.dtype == pl.String else 1)
    few = lengths.max() <= _LONGEST_CODE and np.median(lengths) >= 5
    return bool(alike and few and digits >= 0.9 * len(texts) and spaces <= 0.1 * len(texts))


# With so few, so short values a column holds codes, whatever its name says.
_FEW, _SHORT, _ENOUGH = 20, 3, 50
_HAVE_CONTENTS = {kind.name for kind in KINDS if kind.contents}
# A place or a day needs no number of its own: the surer finding speaks.
_WEAK = 0.7


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in one column; `records` is how many of its records were looked at."""

    variable: Variable
    records: int
    read: bool
    filled: int
    distinct: int
    alone: int
    whole: bool = False
    identifiers: tuple[Identifier, ...] = ()
    place: Place | None = None
    date: Moment | None = None
    age: Moment | None = None
    number: RecordNumber | None = None
    zip_digits: int = 0
    zip_small: int = 0
    dtype: pl.DataType | None = None
    year: int = 0

    @property
    def is_constant(self) -> bool:
        """Whether it has one value, or none, in the whole file; some missing is a second."""
        return self.read and (self.filled == 0 or (self.distinct == 1 and self.whole))

    @property
    def is_nearly_unique(self) -> bool:
        """Whether it has more values than half the records that have one."""
        return self.filled > 3 and self.distinct > self.filled / 2

    @property
    def is_free_text(self) -> bool:
        """Whether it holds texts that were written by hand, and not numbers or addresses."""
        whole = [one for one in self.identifiers if not one.reason.startswith(WITHIN)]
        return self.read and self.variable.kind == "text" and not whole and self.number is None

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Yield what falls under Safe Harbor, each with the letter of its item."""
        name = self.variable.name
        drop = drop_line(name)
        for one in self.identifiers:
            letter, is_within = one.safe_harbor, one.reason.startswith(WITHIN)
            remedy = REMEDIES["within"] if is_within else REMEDIES[letter]
            yield letter, Finding(name, one.kind, one.confidence, one.reason, remedy, line=drop)
        if self.place is not None:
            yield "B", self._place(self.place)
        if (d := self.date) is not None:
            remedy = "Keep the year only, or days since an event of the same person."
            line = self._year_line()
            yield "C", Finding(name, d.what, d.confidence, d.reason, remedy, line=line)
        if (a := self.age) is not None:
            remedy, age_line = "Top-code at 90: make 90 or older one category.", self._age_line(a)
            yield "C", Finding(name, a.what, a.confidence, a.reason, remedy, a.records, age_line)
        if (n := self.number) is not None and not self.identifiers:
            yield "R", Finding(name, n.sort, n.confidence, n.reason, REMEDIES["R"], line=drop)

    def _year_line(self) -> str:
        """Write what keeps the year of a date, and of a person's birth no year of old age."""
        name = self.variable.name
        if self.dtype not in (pl.Date, pl.Datetime):
            return drop_line(name)
        oldest = self.year - OLDEST - 1
        made = "year({})" if self.age is None else f"bottom(year({{}}), {oldest})"
        return derive_line(name, "year", made)

    def _age_line(self, age: Moment) -> str | None:
        """Write what makes ages of 90 and more one, or the years of birth that tell of them."""
        name, dtype = self.variable.name, self.dtype
        if self.date is not None:
            return self._year_line()
        if dtype is None or not dtype.is_numeric():
            return None  # bands in words: only a person can pool them
        if age.what == "ages over 89":
            return derive_line(name, "top", f"top({{}}, {OLDEST + 1})")
        return derive_line(name, "bottom", f"bottom({{}}, {self.year - OLDEST - 1})")

    def _zip_line(self) -> str:
        """Write what keeps three digits of a ZIP code, and none of a small area."""
        name, dtype = self.variable.name, self.dtype
        if dtype is None or not (dtype.is_integer() or dtype == pl.String):
            return drop_line(name)
        text = "{}" if dtype == pl.String else f"text({{}}, {max(self.zip_digits, 3)})"
        return derive_line(name, "3", f'prefix({text}, 3, populations="{CENSUS}")')

    def _place(self, place: Place) -> Finding:
        name, what, records = self.variable.name, place.kind, None
        if place.kind == "ZIP code" and 0 < self.zip_digits <= 3:
            what, records = "three-digit ZIP codes", self.zip_small
            if not records:
                place = Place(place.kind, _WEAK / 2, "none is in a small area by that census")
        elif place.kind == "ZIP code":
            records = self.zip_small
            what = f"ZIP codes of {plural(self.zip_digits, 'digit')}"
        if records:
            what += f", {plural(records, 'record')} in areas of 20,000 people or fewer"
        line = self._zip_line() if place.kind == "ZIP code" else drop_line(name)
        return Finding(name, what, place.confidence, place.reason, REMEDIES["B"], records, line)


def is_unreadable(column: pl.Series) -> bool:
    """Tell whether a column holds bytes, lists or objects instead of plain values."""
    return column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary)


def inspect(variable: Variable, column: pl.Series, *, year: int) -> Inspection:
    """Look at one column, ages counted in the year given; none of its values is kept."""
    if is_unreadable(column):
        known = len(column) - column.null_count()
        return Inspection(variable, len(column), False, known, 0, 0)
    filled = column.drop_nulls()
    counts = filled.alias("value").value_counts()["count"]
    values = sample_values(column)
    place = find_place(variable, column, values)
    identifiers = _identifiers(variable, column, values, place)
    date = find_date(variable, column, values)
    if place is not None and (date or any(one.confidence >= _WEAK for one in identifiers)):
        place = None if place.confidence < _WEAK or date is not None else place
    digits = small = 0
    if place is not None and place.kind == "ZIP code":
        digits, small = zip_digits(column)
        place = None if digits <= 3 and not small else place
    numbers = date is None and place is None
    number = find_record_number(variable, column, values, identifiers) if numbers else None
    return Inspection(
        variable=variable,
        records=len(column),
        read=True,
        filled=len(filled),
        distinct=len(counts),
        alone=int((counts == 1).sum()),
        whole=not column.null_count(),
        identifiers=identifiers,
        place=place,
        date=date,
        age=find_age(variable, column, values, year=year),
        number=number,
        zip_digits=digits,
        zip_small=small,
        dtype=column.dtype,
        year=year,
    )


def _identifiers(
    variable: Variable, column: pl.Series, values: pl.Series, place: Place | None
) -> tuple[Identifier, ...]:
    """Bring together what name, label and contents say; of one kind the reasons are joined."""
    found = by_contents(column, values, place=place is not None)
    texts = values.to_list()
    for name, label in ((variable.name, ""), ("", variable.label)):
        known = recognise(name, label)
        if known is not None and not _is_contradicted(known, variable, column, texts):
            found.insert(0, known)
    if place is not None:  # 12 Elm Street is an address, Elm Street's county none
        found = [one for one in found if one.kind not in ("name", "record number")]
    found.sort(key=lambda one: one.kind)
    joined = []
    for several in (list(group) for _, group in groupby(found, key=lambda one: one.kind)):
        sure = min(0.99, 1 - math.prod(1 - one.confidence for one in several))
        reasons = "; ".join(dict.fromkeys(one.reason for one in several))
        joined.append(replace(several[0], confidence=sure, reason=reasons))
    if len(joined) > 1:
        joined = [one for one in joined if one.kind != "record number"]
    return tuple(sorted(joined, key=lambda one: -one.confidence))


def _is_contradicted(
    known: Identifier, variable: Variable, column: pl.Series, texts: Sequence[str]
) -> bool:
    """Tell whether the values speak against the name: labelled codes, yes and no, a few sorts."""
    if variable.value_labels or column.dtype == pl.Boolean:
        return True
    if len(column) < _ENOUGH or not texts or len(texts) > _FEW:
        return False
    short = max(len(one) for one in texts) <= _SHORT
    letters = "".join(texts)
    plain = not any(c.isdigit() or c == "@" for c in letters)
    return short or (known.kind in _HAVE_CONTENTS and plain)
