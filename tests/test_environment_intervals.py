"""Intervals of numbers and days: edges, codes, overlaps, ages on a day."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.codings.categories import (
    birth_edges,
    edges_of,
    homes,
    intersections,
    interval_codes,
    interval_problems,
)
from keyhole.environment.model import Intervals

INFINITY = float("inf")


def day(year, month=1, dayth=1):
    return datetime.date(year, month, dayth).toordinal()


def edges(values):
    return np.array(sorted(set(values)), dtype=np.float64)


lines = st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(edges)


def test_regular_numbers_end_at_stop():
    assert edges_of(Intervals("number", start=0, stop=25, step=10)).tolist() == [0, 10, 20, 25]
    assert len(edges_of(Intervals("number", start=0, stop=0.3, step=0.1))) == 4
    assert edges_of(Intervals("number", edges=(0, 18, INFINITY)))[-1] == INFINITY


def test_dates_are_cut_where_months_and_years_begin():
    months = edges_of(Intervals("date", start=day(2019, 11, 15), stop=day(2020, 3), unit="month"))
    assert months.tolist() == [
        day(2019, 11, 15), day(2019, 12), day(2020, 1), day(2020, 2), day(2020, 3),
    ]  # fmt: skip
    years = edges_of(Intervals("date", start=day(1900), stop=day(2000), unit="year"))
    assert len(years) == 101
    decades = edges_of(Intervals("date", start=day(1900), stop=day(2000), step=10, unit="year"))
    assert decades.tolist() == [day(year) for year in range(1900, 2001, 10)]


def test_every_day_of_birth_has_its_code():
    births = Intervals("date", start=day(1900), stop=day(2020), unit="day")
    codes = interval_codes(births)
    assert len(codes) == day(2020) - day(1900) == 43829
    assert (codes[0], codes[-1]) == ("1900-01-01", "2019-12-31")


def test_codes_of_numbers():
    assert interval_codes(Intervals("number", edges=(-INFINITY, 18, 19, 30, INFINITY))) == (
        "under 18", "18", "19-29", "30+",
    )  # fmt: skip
    assert interval_codes(Intervals("number", edges=(-5, 0, 0.5))) == ("[-5,0)", "[0,0.5)")
    assert interval_codes(Intervals("number", edges=(-INFINITY, INFINITY))) == ("any",)


def test_codes_of_dates():
    cuts = (day(1980), day(1980, 1, 2), day(1980, 2), day(1980, 3), day(1981), day(1982), day(1990))
    assert interval_codes(Intervals("date", edges=(-INFINITY, *cuts, INFINITY))) == (
        "before 1980-01-01",
        "1980-01-01",
        "1980-01-02/1980-01-31",
        "1980-02",
        "1980-03-01/1980-12-31",
        "1981",
        "1982-1989",
        "from 1990-01-01",
    )


@given(lines, st.sampled_from(["number", "date"]))
def test_codes_of_a_coding_differ(cuts, scale):
    cuts = cuts + day(1980) * (scale == "date")
    codes = interval_codes(Intervals(scale, edges=tuple(cuts.tolist())))
    assert len(set(codes)) == len(codes) == len(cuts) - 1


@given(lines, lines)
def test_intersections_are_those_of_points(one, other):
    """Intervals with whole edges meet where a half lies in both."""
    points = np.arange(0, 30) + 0.5
    expected = {
        (int(a), int(b))
        for a, b in zip(
            np.searchsorted(one, points) - 1, np.searchsorted(other, points) - 1, strict=True
        )
        if 0 <= a < len(one) - 1 and 0 <= b < len(other) - 1
    }
    left, right = intersections(one, other)
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == expected
    assert len(left) == len(expected)


@given(lines, lines)
def test_homes_are_the_same_only_for_what_lies_in_one(inner, outer):
    begins, ends = homes(inner, outer)
    for low, high, begin, end in zip(inner, inner[1:], begins, ends, strict=False):
        crossed = [edge for edge in outer if low < edge < high]
        assert (begin == end) == (not crossed)


def age_of(born, on):
    return on.year - born.year - ((on.month, on.day) < (born.month, born.day))


@given(
    st.dates(datetime.date(1990, 1, 1), datetime.date(2024, 12, 31)),
    st.dates(datetime.date(1900, 1, 1), datetime.date(2030, 12, 31)),
)
def test_days_of_birth_fall_into_the_age_they_have(as_of, born):
    ages = np.arange(-41, 132, dtype=np.float64)
    cuts = birth_edges(ages, as_of)
    place = np.searchsorted(cuts, born.toordinal(), side="right") - 1
    assert ages[len(ages) - 2 - place] == age_of(born, as_of)


@pytest.mark.parametrize("as_of", [datetime.date(2024, 2, 29), datetime.date(2023, 2, 28)])
@pytest.mark.parametrize("born", [(2000, 2, 28), (2000, 2, 29), (2000, 3, 1), (2001, 3, 1)])
def test_birthdays_on_the_29th_of_february(as_of, born):
    birth = datetime.date(*born)
    cuts = birth_edges(np.arange(0.0, 40), as_of)
    place = np.searchsorted(cuts, birth.toordinal(), side="right") - 1
    assert 38 - place == age_of(birth, as_of)


def test_open_ages_are_open_births_and_parts_of_years_are_refused():
    cuts = birth_edges(np.array([0, 18, INFINITY]), datetime.date(2020, 1, 1))
    assert cuts[0] == -INFINITY
    assert birth_edges(np.array([0, 0.5, 1]), datetime.date(2020, 1, 1)) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Intervals("number", edges=(1,)), "two or more"),
        (Intervals("number", edges=(0, float("nan"), 2)), "nan"),
        (Intervals("number", edges=(0, 2, 1)), "must rise"),
        (Intervals("number", start=5, stop=5, step=1), "below stop"),
        (Intervals("number", start=0, stop=5, step=0), "above 0"),
        (Intervals("number", start=0, stop=1e9, step=0.001), "at most"),
        (Intervals("number", start=0, stop=INFINITY, step=1), "below stop"),
        (Intervals("number", start=-(10**308), stop=10**308, step=1), "from -1e+300 to 1e+300"),
        (Intervals("number", edges=(0, 1e301)), "from -1e+300 to 1e+300"),
        (Intervals("date", edges=(0.5, 3)), "day ordinals"),
        (Intervals("date", start=1, stop=10**9, unit="day"), "day ordinals"),
        (Intervals("date", start=1, stop=10, step=-1, unit="day"), "negative"),
        (Intervals("weekday", edges=(0, 1)), "scale"),
    ],
)
def test_what_is_wrong_with_intervals_is_said(wrong, said):
    assert said in " ".join(interval_problems(wrong))


def test_nothing_is_wrong_with_good_intervals():
    assert interval_problems(Intervals("date", start=day(1900), stop=day(2000), unit="year")) == []
    assert interval_problems(Intervals("number", edges=(-INFINITY, 0, INFINITY))) == []
