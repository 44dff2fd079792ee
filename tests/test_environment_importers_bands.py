"""Bands in words as intervals, and the kinds of categories."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.codings.categories import edges_of, interval_problems
from keyhole.environment.importers.fields import (
    ask,
    bounded_numbers,
    capture,
    category_kind,
    coded,
    dates,
    distinct_fields,
    make_categories,
    number_intervals,
    parse_bands,
    path_label,
    unit_factor,
    usual_numbers,
)
from keyhole.environment.matching.categories import answers_of
from keyhole.environment.model import CapturedField, Intervals
from keyhole.screening.identifiers import words

INF = math.inf


@pytest.mark.parametrize(
    ("labels", "edges"),
    [
        (["under 5", "5-17", "18 to 24 years", "25–64", "65 and over"], (0, 5, 18, 25, 65, INF)),
        (["18-24", "25-34 (young)", "35+"], (18, 25, 35, INF)),
        (["$10,000 to $14,999", "Less than $10,000", "$15,000 or more"], (-INF, 10000, 15000, INF)),
        (["0", "1", "2", "3 or more"], (0, 1, 2, 3, INF)),
        (["None", "1", "2 or more"], (0, 1, 2, INF)),
        (["9 to under 12", "Less than 9", "12 or older"], (0, 9, 12, INF)),
        (["0 to 10", "10 to 20", "over 20"], (0, 10, 21, INF)),
        (["0 to 10", "10 to 20", "20 to 30"], (0, 10, 20, 31)),
        (["0 to 10", "11 to 20", "over 20"], (0, 11, 21, INF)),
        (["1. 18-24", "2. 25-34"], (18, 25, 35)),
        (["0.0-0.4", "0.5-0.9"], (0, 0.5, 1)),
        (["between 1 and 4", "5 or more"], (1, 5, INF)),
        (["1", "2", "3"], None),  # single numbers are codes
        (["Yes", "No"], None),
        (["18-24", "30-34"], None),  # a gap
        (["18-24", "20-34"], None),  # an overlap
        (["18-24", "18-24"], None),
        (["under 6 months", "1-2 years"], None),  # units are mixed
        (["5-1", "6-9"], None),
        (["18-24"], None),
        ([], None),
    ],
)
def test_bands_that_tile_become_intervals(
    labels: list[str], edges: tuple[float, ...] | None
) -> None:
    found = parse_bands(labels)
    assert (None if found is None else found.intervals.edges) == edges
    if found is not None:
        assert interval_problems(found.intervals) == []
        assert sorted(found.positions) == list(range(len(labels)))


def test_positions_say_which_label_is_which_interval() -> None:
    found = parse_bands(["65+", "0-17", "18-64"])
    assert found is not None
    assert found.positions == (2, 0, 1)


def test_bands_of_years_are_dates() -> None:
    found = parse_bands(["before 1990", "1990-1999", "2000 or later"])
    assert found is not None
    assert found.intervals.scale == "date"
    days = [datetime.date(year, 1, 1).toordinal() for year in (1990, 2000)]
    assert found.intervals.edges == (-INF, *days, INF)
    money = parse_bands(["$1900-$1999", "$2000-$2099"])
    assert money is not None
    assert money.intervals.scale == "number"


@given(st.lists(st.integers(1, 50), min_size=2, max_size=12), st.integers(0, 500), st.randoms())
def test_any_tiling_is_found_again(widths: list[int], start: int, shuffle: object) -> None:
    edges = [start]
    for width in widths:
        edges.append(edges[-1] + width + 1)  # a width of one would be a single number
    labels = [f"{low}-{high - 1}" for low, high in pairwise(edges)]
    order = list(range(len(labels)))
    shuffle.shuffle(order)  # type: ignore[attr-defined]
    found = parse_bands([labels[place] for place in order])
    assert found is not None
    assert found.positions == tuple(order)
    if found.intervals.scale == "number":
        assert found.intervals.edges == tuple(edges)


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_labels_are_taken(labels: list[str]) -> None:
    found = parse_bands(labels)
    assert found is None or interval_problems(found.intervals) == []


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Married", "value"),
        ("Other", "other"),
        ("Other (please specify)", "other"),
        ("Some other race", "other"),
        ("Other than honorable", "value"),
        ("Mother", "value"),
        ("Unknown", "not stated"),
        ("Prefer not to say", "not stated"),
        ("Refused", "not stated"),
        ("Don’t know", "not stated"),
        ("9. Not stated", "not stated"),
        ("N/A (less than 16 years old)", "not applicable"),
        ("Not applicable", "not applicable"),
        ("NA", "value"),  # Namibia
        ("No", "value"),
        ("Not married", "value"),
    ],
)
def test_kinds_of_categories_by_label(label: str, kind: str) -> None:
    assert category_kind(label) == kind


def test_other_kinds_stay_beside_bands() -> None:
    options = [("1", "18-64"), ("2", "65 and over"), ("9", "Refused"), ("8", "N/A")]
    categories, intervals = coded(make_categories(options))
    assert intervals is not None
    assert intervals.edges == (18, 65, INF)
    assert [(one.code, one.kind) for one in categories] == [
        ("9", "not stated"),
        ("8", "not applicable"),
    ]


def test_a_hundred_thousand_categories() -> None:
    plain, none = coded(make_categories((str(n), f"occupation {n}") for n in range(100_000)))
    rest, bands = coded(
        make_categories((str(n), f"{2 * n} to {2 * n + 1}") for n in range(100_000))
    )
    assert (len(plain), none, rest) == (100_000, None, ())
    assert bands is not None
    assert len(bands.edges) == 100_001


@given(st.floats(-1e6, 1e6), st.floats(0, 1e12), st.sampled_from([0.01, 1, 5]))
def test_numbers_cover_their_range_with_few_intervals(low: float, span: float, step: float) -> None:
    found = number_intervals(low, low + span, step)
    assert found is not None
    assert interval_problems(found) == []
    assert len(edges_of(found)) <= 100_002
    assert found.start == low
    assert found.stop >= low + span or math.isclose(found.stop, low + span)


def test_numbers_without_bounds_are_those_to_be_expected() -> None:
    assert usual_numbers(("age", "at", "entry")).stop == 121
    assert usual_numbers(("year",)).unit == "year"
    assert usual_numbers(("hours", "per", "week")).step == 1
    assert usual_numbers(("gross", "income")).exact


@pytest.mark.parametrize(
    ("label", "factor"),
    [
        ("Age in months", 1 / 12),
        ("Age in years", 1),
        ("Gross monthly income", 12),
        ("Weekly wages", 52),
        ("Annual salary", 1),
        ("Income in the past 12 months", 1),
        ("Months at this address", 1),
    ],
)
def test_units_are_told_by_the_words_of_a_question(label: str, factor: float) -> None:
    found = capture(["x"], label, intervals=usual_numbers(words(label)))
    assert found.intervals is not None
    assert found.intervals.factor == pytest.approx(factor)
    plain = answers_of((), replace(found.intervals, factor=1.0))
    same = plain.signature == answers_of((), found.intervals).signature
    assert same == (factor == 1)


def test_numbers_and_dates_as_forms_ask_for_them() -> None:
    assert (dates("year").unit, dates().start) == ("year", datetime.date(1900, 1, 1).toordinal())
    assert number_intervals(0, 120) == Intervals("number", start=0, stop=121, step=1)
    assert number_intervals(0, 999_999_999).step == 10_000  # type: ignore[union-attr]
    assert number_intervals(5, 1) is None
    assert unit_factor("Gross monthly income") == 12
    assert unit_factor("Age in months") * 12 == 1
    assert usual_numbers(("age",)).stop == 121
    assert usual_numbers(("birth", "year")).unit == "year"
    assert bounded_numbers(("age",), low=18).start == 18
    assert bounded_numbers(("born",), 1900, 2010).unit == "year"


def test_names_labels_and_kinds_of_what_is_captured() -> None:
    assert category_kind("Other than honorable") == "value"
    assert capture(["spouse", "ssn"]).identifier == "ssn"
    assert path_label(["veteran", "address", "state"]) == "veteran address state"
    repeated = ["spouseHistory", "spouseHistory", "startDate"]
    assert path_label(repeated) == "spouse history start date"
    twice = distinct_fields([CapturedField("a"), CapturedField("a")])
    assert [one.name for one in twice] == ["a", "a~2"]


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Phone number", "phone"),
        ("Latitude", "coordinates"),
        ("Number of phones owned", None),
        ("How long at your current address?", None),
    ],
)
def test_direct_identifiers_that_are_asked_as_numbers(label: str, kind: str | None) -> None:
    assert ask(["q"], label, kind="number")[0].identifier == kind
