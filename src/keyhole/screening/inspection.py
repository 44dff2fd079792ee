"""One column looked at from all sides: what it is called, what it holds, how often it repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from keyhole.core.names import plural
from keyhole.data.columns import Variable
from keyhole.screening.contents import WITHIN, by_contents, sample
from keyhole.screening.identifiers import KINDS, Identifier, recognise
from keyhole.screening.places import Place, find_place, zip_digits
from keyhole.screening.record_numbers import RecordNumber, find_record_number
from keyhole.screening.safe_harbor import ITEMS, Finding
from keyhole.screening.times import Moment, find_age, find_date

__all__ = ["Inspection", "inspect", "is_unreadable"]

# With so few, so short values a column holds codes, whatever its name says.
_FEW, _SHORT, _ENOUGH = 20, 3, 50
_REMEDIES = {item.letter: item.remedy for item in ITEMS}
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
        for one in self.identifiers:
            remedy = _REMEDIES[one.safe_harbor]
            if one.reason.startswith(WITHIN):
                remedy = "Drop the column, or have a person take them out of the text."
            yield one.safe_harbor, Finding(name, one.kind, one.confidence, one.reason, remedy)
        if self.place is not None:
            yield "B", self._place(self.place)
        if self.date is not None:
            told = self.date
            remedy = "Keep the year only, or days since an event of the same person."
            yield "C", Finding(name, told.what, told.confidence, told.reason, remedy)
        if self.age is not None:
            told = self.age
            remedy = "Make 90 or older one category."
            yield (
                "C",
                Finding(name, told.what, told.confidence, told.reason, remedy, told.records),
            )
        if self.number is not None and not self.identifiers:
            it = self.number
            yield "R", Finding(name, it.sort, it.confidence, it.reason, _REMEDIES["R"])

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
        return Finding(name, what, place.confidence, place.reason, _REMEDIES["B"], records)


def is_unreadable(column: pl.Series) -> bool:
    """Tell whether a column holds bytes, lists or objects instead of plain values."""
    return column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary)


def inspect(variable: Variable, column: pl.Series, *, year: int) -> Inspection:
    """Look at one column; none of its values is kept.

    Parameters
    ----------
    variable
        What is known of it.
    column
        Its values, missing ones null.
    year
        The year in which ages are counted.
    """
    if is_unreadable(column):
        known = len(column) - column.null_count()
        return Inspection(variable, len(column), False, known, 0, 0)
    filled = column.drop_nulls()
    counts = filled.value_counts()["count"]
    values = sample(column)
    place = find_place(variable, column, values)
    identifiers = _identifiers(variable, column, values, place)
    date = find_date(variable, column, values)
    if place is not None and (date is not None or _are_sure(identifiers)):
        place = None if place.confidence < _WEAK or date is not None else place
    digits, small = (0, 0)
    if place is not None and place.kind == "ZIP code":
        digits, small = zip_digits(column)
        place = None if digits <= 3 and not small else place
    number = None
    if date is None and place is None:
        number = find_record_number(variable, column, values, identifiers)
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
    )


def _are_sure(identifiers: Sequence[Identifier]) -> bool:
    return any(one.confidence >= _WEAK for one in identifiers)


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
    joined = [_joined(list(several)) for _, several in groupby(found, key=lambda one: one.kind)]
    if len(joined) > 1:
        joined = [one for one in joined if one.kind != "record number"]
    joined.sort(key=lambda one: -one.confidence)
    return tuple(joined)


def _joined(several: list[Identifier]) -> Identifier:
    first = several[0]
    doubt = math.prod(1 - one.confidence for one in several)
    reasons = "; ".join(dict.fromkeys(one.reason for one in several))
    return Identifier(first.kind, min(0.99, 1 - doubt), reasons, first.safe_harbor)


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
