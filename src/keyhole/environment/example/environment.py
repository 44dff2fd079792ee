"""An example environment, matched to the example world of veterans.

Fifteen forms in five sectors, twenty constructs, eight public sources, a target that describes
the columns of `keyhole.data.examples.veterans`, and scenarios. Nothing in it was collected: it
shows how an environment looks and gives documentation and tests something to work on.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

from keyhole.environment.codings.naming import parse_name
from keyhole.environment.example import codings as codings
from keyhole.environment.example.forms import FORMS, SOURCES, FormLine, SourceLine
from keyhole.environment.model import (
    Category,
    CategoryKind,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Organisation,
    Overlap,
    Source,
    Target,
)
from keyhole.environment.scenarios.scenarios import PRESETS, RestrictedStage, Scenario

AS_OF = datetime.date(2024, 6, 30)
"""The day of the example file: the world is that of 2024."""

TARGET = "veterans"

_FIRST, _LAST = datetime.date(1900, 1, 1), datetime.date(2010, 1, 1)
_MARKS: dict[str, CategoryKind] = {"~": "not stated", "*": "other"}
_IDENTIFIERS = {"licence": "licence number", "policy": "policy number"}
_COLUMNS = (
    "sex=SX2.001 ag8r=AG8.001 source=AD12.001 pow=PW3.001 ms=MS6.001 psx=SV8.001 aor=AO3.001 "
    "homstate=GE54.001 means=MT6.001 nsurg=OP6.001 nbs=BS6.001 cp=CP8.001 lsr=LS10.001 "
    "ethnic=ET7.001 race1=RC7.001 psrcd=SV5.001 age=years period=SV14.001 area=GE833.001 "
    "income=dollars"
)


@cache
def example_environment() -> Environment:
    """Return the example environment.

    Examples
    --------
    >>> environment = example_environment()
    >>> len(environment.forms), len({form.sector for form in environment.forms})
    (15, 5)
    >>> [scenario.name for scenario in environment.scenarios if not scenario.restricted]
    ['nosy neighbour', 'journalist']
    """
    return Environment(
        constructs=tuple(Construct(*item) for item in codings.CONSTRUCTS.items()),
        codings=tuple(_codings()),
        maps=tuple(_maps()),
        overlaps=tuple(
            Overlap(left, right, frozenset(_pairs(text, "~")))
            for (left, right), text in codings.OVERLAPS.items()
        ),
        organisations=tuple(Organisation(line.organisation, line.sector) for line in FORMS),
        forms=tuple(_form(line) for line in FORMS),
        sources=tuple(_source(line) for line in SOURCES),
        targets=(Target(TARGET, AS_OF, tuple(_fields(_COLUMNS))),),
        scenarios=(*PRESETS.values(), _ASSOCIATION),
    )


def _codings() -> Iterator[Coding]:
    for name, text in codings.CATEGORIES.items():
        yield _coding(name, tuple(map(_category, text.split("; "))))
    for name, text in codings.EDGES.items():
        edges = tuple(map(float, text.split()))
        yield _coding(name, intervals=Intervals("number", edges=edges))
    for name in codings.OPEN:
        yield _coding(name)
    for name, intervals, label in _FINE.values():
        yield _coding(name, intervals=intervals, label=label)


def _coding(
    name: str,
    categories: tuple[Category, ...] = (),
    intervals: Intervals | None = None,
    label: str = "",
) -> Coding:
    letters = parse_name(name).letters
    return Coding(name, letters, categories, intervals, label or codings.LABELS.get(name, ""))


def _category(text: str) -> Category:
    """Read ``~U Unknown``."""
    code, label = text.lstrip("~*").split(" ", 1)
    return Category(code, label, _MARKS.get(text[0], "value"))


def _pairs(text: str, mark: str) -> Iterator[tuple[str, str]]:
    for pair in text.split():
        one, other = pair.split(mark)
        yield one, other


def _maps() -> Iterator[CategoryMap]:
    for (finer, coarser), text in codings.MAPS.items():
        yield CategoryMap(finer, coarser, dict(_pairs(text, ">")))
    for finer, coarser in codings.UNRESOLVED:
        yield CategoryMap(finer, coarser)


def _fields(text: str) -> Iterator[Field]:
    for word in text.split():
        if word.startswith("!"):
            kind = word[1:].replace("-", " ")
            kind = {"medical record": "medical record number"}.get(kind, kind)
            yield Field(word[1:], identifier=_IDENTIFIERS.get(kind, kind), use="identifying")
        else:
            name, coding = word.split("=")
            yield Field(name, coding=_FINE[coding][0] if coding in _FINE else coding)


def _form(line: FormLine) -> Form:
    return Form(
        line.name,
        line.organisation,
        line.sector,
        line.purpose,
        collected=datetime.date.fromisoformat(line.collected),
        fields=tuple(_fields(line.fields)),
    )


def _source(line: SourceLine) -> Source:
    formality, origin, compulsion = line.kind.split()
    mode, scope, cost = map(int, line.ranks.split())
    return Source(
        line.name,
        formality,  # type: ignore[arg-type]
        origin,  # type: ignore[arg-type]
        compulsion,  # type: ignore[arg-type]
        line.coverage,
        mode,
        scope,
        cost,
        fields=tuple(_fields(line.fields)),
    )


def _dollars() -> Iterable[float]:
    """Return the edges of incomes, which the file rounds the more the larger they are."""
    parts = (range(0, 1_000, 10), range(1_000, 50_000, 100), range(50_000, 2_000_001, 1_000))
    return (*map(float, chain(*parts)), math.inf)


def _dates(unit: str) -> Intervals:
    start, stop = float(_FIRST.toordinal()), float(_LAST.toordinal())
    return Intervals("date", start=start, stop=stop, step=1, unit=unit)  # type: ignore[arg-type]


_FINE: dict[str, tuple[str, Intervals, str]] = {
    "years": ("AG120.001", Intervals("number", start=0, stop=120, step=1), "age in years"),
    "dob": ("AG40177.001", _dates("day"), "date of birth"),
    "month": ("AG1320.001", _dates("month"), "month of birth"),
    "year": ("AG110.001", _dates("year"), "year of birth"),
    "dollars": ("IN2541.001", Intervals("number", edges=tuple(_dollars())), "dollars"),
}
"""Codings with too many categories to be listed, by the word that stands for them."""

_ASSOCIATION = Scenario(
    "veterans association",
    "A member of a veterans association looks for comrades",
    motivation="Finding lost comrades, or showing that somebody's record is false.",
    means="The association's list of members, with names, birthdays and service.",
    opportunity="The list lies in the office; the file is public.",
    target_variables="Compensation, income, health.",
    other_means="Yes: members can be asked, and many tell.",
    data_divergence="Addresses and marriages are out of date; birthdays are right.",
    attack_type="Search for people on the list.",
    key_variables="What the membership form asks.",
    likelihood_of_attempt="Low: few members have both the list and the skill.",
    likelihood_of_success="Only for members who are in the file.",
    consequences="A quarrel within the association; for the agency, the loss of trust.",
    restricted=(RestrictedStage(form="Veterans association membership"),),
    p_attempt=(0.05, 0.3),
    reasons=(
        "an example: about one in twenty officers said in a made-up inquiry that they would try",
        "the association's rules forbid it, and three in ten know nothing of the rules",
    ),
    example=True,
)
