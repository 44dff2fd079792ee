"""Recognition of fields on forms that were never seen: precision, recall, decisions asked.

Tables of our own list fields of public form families: name, label and answers in short form, and
the construct that is asked. Rules and vocabularies may be made by looking at `tune.csv`; of every
other table here (`held_out.csv` and those added later) only the totals are read, never the errors.
The evidence of words is learned from `tune.csv` and the single questions of `wordings.csv`.

``python -m benchmarks.recognition`` prints the figures, ``--errors`` the mistakes in `tune.csv`.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from keyhole.environment.importers.fields import YES_NO, ask, capture, dates, usual_numbers
from keyhole.environment.matching.adding import Addition, add_forms
from keyhole.environment.matching.questions import CONCEPTS
from keyhole.environment.model import CapturedField, CapturedForm, Environment, Form
from keyhole.screening.identifiers import words

HERE = Path(__file__).parent
TUNE = "tune"
WORDINGS = "wordings.csv"
THRESHOLD = 0.8
_KNOWN = frozenset(concept.name for concept in CONCEPTS)


class Row(NamedTuple):
    """A line of the gold table; `key` marks constructs that an intruder may match on."""

    family: str
    form: str
    field: str
    label: str
    answers: str
    construct: str
    key: str


@dataclass(frozen=True)
class Outcome:
    """What became of a row: pending or not, its constructs, and the first three proposals."""

    row: Row
    asked: bool
    placed: tuple[str, ...]
    proposed: frozenset[str]


def tables() -> list[str]:
    """Name the tables of the folder, the one that may be looked at first."""
    names = [path.stem for path in HERE.glob("*.csv") if path.name != WORDINGS]
    return sorted(names, key=lambda name: (name != TUNE, name))


def read_gold(table: str) -> list[Row]:
    """Read one table."""
    with (HERE / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [Row(**line) for line in csv.DictReader(file, delimiter="|")]


def fields_of(row: Row) -> list[CapturedField]:
    """Make the fields that an importer would make of a row; several choices are several fields."""
    path, answers = row.field.split("/"), row.answers
    more: dict[str, Any] = {}
    if answers.startswith("several: "):
        options = answers.removeprefix("several: ").split(";")
        return ask(path, row.label, options=[(one, one) for one in options], several=True)
    if answers == "yes/no":
        more["categories"] = YES_NO
    elif answers == "date":
        more["intervals"] = dates()
    elif answers == "number":
        more["intervals"] = usual_numbers(words(row.field) + words(row.label))
    elif answers != "text":
        parts = (one.partition("=") for one in answers.split(";"))
        more["options"] = [(code, label or code) for code, _, label in parts]
    return [capture(path, row.label, **more)]


def recognise_rows(rows: Sequence[Row]) -> list[Outcome]:
    """Add each form of a table to an empty environment; tell what became of each row.

    Where a field goes does not depend on what else is stored, so each form is added by itself.
    """
    forms: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        forms[f"{row.family}: {row.form}"].append(row)
    found: list[Outcome] = []
    for name, listed in forms.items():
        fields = []
        owners: dict[tuple[str, str], Row] = {}
        for row in listed:
            for field in fields_of(row):
                owners[name, field.name] = row
                fields.append(field)
        captured = CapturedForm(Form(name), tuple(fields))
        batch = add_forms(Environment(), [captured], threshold=THRESHOLD)
        names = {one.letters: one.name for one in batch.environment.constructs}
        found += _outcomes(batch.additions, owners, names)
    return found


def _outcomes(
    additions: Iterable[Addition], owners: dict[tuple[str, str], Row], names: dict[str, str]
) -> Iterator[Outcome]:
    for addition in additions:
        waiting = {one.field: one for one in addition.waiting}
        found: dict[Row, Outcome] = {}
        for placement in addition.placements:
            row = owners[addition.name, placement.field]
            before = found.get(row, Outcome(row, False, (), frozenset()))
            if placement.field in waiting:
                three = waiting[placement.field].proposals[:3]
                proposed = {
                    one.name or (one.identifier and "identifier") or "page" for one in three
                }
                found[row] = replace(before, asked=True, proposed=before.proposed | proposed)
                continue
            place = names.get(placement.construct, "identifier" if placement.identifier else "page")
            found[row] = replace(before, placed=(*before.placed, place))
        yield from found.values()


def score(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Count what was placed rightly, what was found, and what was asked."""
    held: dict[str, set[str]] = defaultdict(set)
    for one in outcomes:
        for place in one.placed:
            held[place].add(one.row.construct)
    placed = [one for one in outcomes if not one.asked]
    right = [one for one in placed if is_right(one, held)]
    key = [one for one in outcomes if one.row.key]
    found = [one for one in key if is_right(one, held) or (one.asked and is_proposed(one))]
    asked = len(outcomes) - len(placed)
    return {
        "fields": len(outcomes),
        "families": len({one.row.family for one in outcomes}),
        "placed": len(placed),
        "right": len(right),
        "precision": len(right) / max(len(placed), 1),
        "key_fields": len(key),
        "found": len(found),
        "recall": len(found) / max(len(key), 1),
        "asked": asked,
        "asked_per_12": 12 * asked / len(outcomes),
    }


def is_right(one: Outcome, held: dict[str, set[str]]) -> bool:
    """Tell whether a row went, without asking, where it belongs.

    A construct of the vocabulary must be that one; any other must be a construct of its own, with
    no field in it that asks something else, and with all key fields that ask the same.
    """
    if one.asked or not one.placed:
        return False
    wanted = one.row.construct
    if wanted in _KNOWN or wanted.partition("'s ")[2] in _KNOWN or wanted in ("identifier", "page"):
        return set(one.placed) == {wanted}
    homes = {place for place, constructs in held.items() if wanted in constructs}
    if homes & {"identifier", "page"} or (one.row.key and len(homes) > 1):
        return False
    return all(held[place] == {wanted} for place in one.placed)


def is_proposed(one: Outcome) -> bool:
    """Tell whether the right construct, or a new one where it is unknown, is proposed."""
    wanted = one.row.construct
    known = wanted in _KNOWN or wanted.partition("'s ")[2] in _KNOWN
    return wanted in one.proposed if known else bool(one.proposed)


def measure_recognition() -> dict[str, Any]:
    """Measure each table."""
    return {table: score(recognise_rows(read_gold(table))) for table in tables()}


def errors() -> Iterator[str]:
    """Tell the mistakes in the table that may be looked at."""
    outcomes = recognise_rows(read_gold(TUNE))
    held: dict[str, set[str]] = defaultdict(set)
    for one in outcomes:
        for place in one.placed:
            held[place].add(one.row.construct)
    for one in outcomes:
        row = one.row
        what = f"{row.form} | {row.field} | {row.label} -> {row.construct}"
        if one.asked:
            mark = "asked" if is_proposed(one) or not row.key else "MISSED"
            yield f"{mark}: {what}; proposed {sorted(one.proposed)}"
        elif not is_right(one, held):
            yield f"WRONG: {what}; placed in {sorted(set(one.placed))}"
