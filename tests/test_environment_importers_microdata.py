"""The columns of a file as a target."""

from __future__ import annotations

import datetime
import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.data.codebook import ColumnLabels
from keyhole.environment.codings.categories import edges_of, interval_problems
from keyhole.environment.importers.fields import parse_bands
from keyhole.environment.importers.microdata import attach_labels, capture_microdata
from keyhole.errors import ColumnError


def people() -> pl.DataFrame:
    many = 120
    return pl.DataFrame(
        {
            "ssn": [f"212-22-{n:04}" for n in range(1, many + 1)],
            "sex": [1, 2] * (many // 2),
            "band": [1, 2, 3, None] * (many // 4),
            "age": [18 + n % 70 for n in range(many)],
            "income": [(n * 1370 - 4000) // 10 * 10 for n in range(many)],
            "born": [datetime.date(1931, 5, 17) + datetime.timedelta(97 * n) for n in range(many)],
            "state": ["AL", "AK", "-9"] * (many // 3),
            "weight": [1.5] * many,
        }
    )


LABELS = {
    "sex": ColumnLabels("Sex", {"1": "Male", "2": "Female", "3": "Other"}),
    "band": ColumnLabels(
        "Age band", {"2": "65 and over", "1": "18-64", "3": "Refused"}, "N/A (under 18)"
    ),
}


def test_columns_become_fields() -> None:
    data = load(people(), roles={"weight": "weight"}, missing_codes={"state": ["-9"]}, name="file")
    form = capture_microdata(data, labels=LABELS)
    found = {one.name: one for one in form.fields}
    assert form.form.name == "file"
    assert list(found) == ["ssn", "sex", "band", "age", "income", "born", "state"]
    assert found["ssn"].identifier == "ssn"
    assert found["ssn"].categories == ()
    assert [(one.code, one.label, one.kind) for one in found["sex"].categories] == [
        ("1", "Male", "value"),
        ("2", "Female", "value"),
        ("3", "Other", "other"),
    ]
    assert found["band"].intervals.edges == (18, 65, math.inf)  # type: ignore[union-attr]
    assert [(one.code, one.kind) for one in found["band"].categories] == [
        ("3", "not stated"),
        (".", "not applicable"),
    ]
    assert [(one.code, one.kind) for one in found["state"].categories] == [
        ("AK", "value"),
        ("AL", "value"),
        ("-9", "not stated"),
    ]


def test_ranges_do_not_show_the_extreme_record() -> None:
    data = load(people(), columns=["age", "income", "born"])
    age, income, born = (one.intervals for one in capture_microdata(data).fields)
    assert age is not None
    assert income is not None
    assert born is not None
    assert (age.start, age.stop, age.step) == (10, 90, 1)
    assert (income.start, income.stop, income.step) == (-100_000, 200_000, 10)
    ends = [datetime.date.fromordinal(int(end)).isoformat() for end in (born.start, born.stop)]
    assert ends == ["1930-01-01", "1970-01-01"]
    assert born.unit == "day"


@given(st.lists(st.integers(-(10**7), 10**7), min_size=41, max_size=60, unique=True))
def test_every_value_of_a_measure_is_alone_in_its_interval(values: list[int]) -> None:
    data = load(pl.DataFrame({"x": values}), kinds={"x": "measure"})
    form = capture_microdata(data)
    found = form.fields[0].intervals
    assert found is not None
    assert interval_problems(found) == []
    assert len(edges_of(found)) <= 1_000_002
    edges = edges_of(found)
    assert edges[0] <= min(values)
    assert max(values) < edges[-1]
    assert edges[0] == 0 or edges[0] < min(values)
    if not form.notes:
        places = set(((pl.Series(values) - found.start) // found.step).to_list())
        assert len(places) == len(values)


def test_decimals_and_constants_and_nothing() -> None:
    frame = pl.DataFrame(
        {
            "a": [1.25, 2.5, 7.75] * 20,
            "b": [3.0] * 60,
            "c": [None] * 60,
            "d": [1.7e308, -1.7e308] * 30,
        },
        schema_overrides={"c": pl.Float64},
    )
    data = load(frame, kinds=dict.fromkeys("abcd", "measure"))
    a, b, c, d = (one.intervals for one in capture_microdata(data).fields)
    assert a is not None
    assert a.step == 0.05
    assert b is not None
    assert b.start < 3 < b.stop
    assert c is None
    assert d is None


def test_free_text_gives_no_categories() -> None:
    told = [f"a long remark about person number {n}" for n in range(50)]
    form = capture_microdata(load({"remark": told}))
    assert form.fields[0].categories == ()
    assert "person number 7" not in repr(form)


def test_labels_turn_codes_into_a_category_only_where_they_cover_all() -> None:
    frame = pl.DataFrame({"job": list(range(100)) * 2, "hours": list(range(100)) * 2})
    labels = {
        "job": ColumnLabels("Job", {f"{n:03}": f"job {n}" for n in range(100)}),
        "hours": ColumnLabels("Hours", {"99": "99 or more"}),
    }
    data = attach_labels(load(frame), labels)
    assert (data.variable("job").kind, data.variable("hours").kind) == ("category", "measure")
    assert data.variable("job").value_labels[7] == "job 7"


def test_bands_of_a_column_can_be_found_again_from_its_labels() -> None:
    data = attach_labels(load(people()), LABELS)
    labels = data.variable("band").value_labels
    values = [code for code, label in labels.items() if label != "Refused"]
    bands = parse_bands([labels[code] for code in values])
    assert bands is not None
    assert dict(zip(values, bands.positions, strict=True)) == {2: 1, 1: 0}


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(ColumnError, match="'agee'"):
        capture_microdata(load(people()), columns=["agee"])


def test_sampling_weights_are_left_out_and_bodies_are_not() -> None:
    values = [float(n) + 0.5 for n in range(40)]
    names = ["PWGTP", "PWGTP17", "hhwt", "weight", "final_weight", "W"]
    data = load({**dict.fromkeys(names, values), "birth_weight": values, "weight_kg": values})
    captured = capture_microdata(data)
    assert [one.name for one in captured.fields] == ["W", "birth_weight", "weight_kg"]
    assert "sampling weights" in captured.notes[0]
    assert len(capture_microdata(data, columns=["weight"]).fields) == 1
    labels = {"x": ColumnLabels("Person's weight replicate 3"), "y": ColumnLabels("Weight (kg)")}
    told = capture_microdata(load({"x": values, "y": values}), labels=labels)
    assert [one.name for one in told.fields] == ["y"]
