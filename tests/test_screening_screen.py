"""Screening: planted identifiers are found, false friends are not, and no value is ever shown."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole import screen
from keyhole.charts import chart_html
from keyhole.core.codec import plain_values
from keyhole.core.expressions import LOW_POPULATION
from keyhole.data import load
from keyhole.data.columns import Variable
from keyhole.data.examples import veterans_sample
from keyhole.errors import FileError, OptionError
from keyhole.screening.identifiers import (
    GIVEN,
    SURNAMES,
    by_contents,
    iban_holds,
    luhn_holds,
    sample_values,
)
from keyhole.screening.inspection import find_record_number
from keyhole.screening.safe_harbor import ITEMS, find_age, find_date, find_place, zip_digits

N = 300
random = np.random.default_rng(6)


def _some(values):
    values = sorted(values)
    return [values[i] for i in random.integers(0, len(values), N)]


def _card():
    digits = [4, *random.integers(0, 10, 14).tolist()]
    numbers = ("".join(map(str, [*digits, last])) for last in range(10))
    return next(number for number in numbers if luhn_holds(number))


PEOPLE = list(zip(_some(GIVEN), _some(SURNAMES), strict=True))
PLANTED = {
    "ssn": [
        f"{random.integers(100, 600)}-{random.integers(10, 99)}-{random.integers(1000, 9999)}"
        for _ in range(N)
    ],
    "email": [f"{a}.{b}{i}@mail.example" for i, (a, b) in enumerate(PEOPLE)],
    "phone": [f"({random.integers(201, 989)}) 555-{random.integers(1000, 9999)}" for _ in range(N)],
    "name": [f"{b.title()}, {a.title()}" for a, b in PEOPLE],
    "address": [
        f"{random.integers(100, 9999)} {b.title()} {way}"
        for (_, b), way in zip(PEOPLE, _some(["Street", "Ave", "Rd"]), strict=True)
    ],
    "ip address": [".".join(map(str, random.integers(11, 250, 4))) for _ in range(N)],
    "url": [f"https://pages.example/{i:06}" for i in random.integers(0, 10**6, N)],
    "device": [":".join(f"{x:02x}" for x in random.integers(0, 255, 6)) for _ in range(N)],
    "account number": [_card() for _ in range(N)],
    "record number": [str(uuid.UUID(int=int(x))) for x in random.integers(0, 2**62, N)],
}  # fmt: skip
LETTERS = dict(zip(PLANTED, "GFDABONMJR", strict=True))


@pytest.fixture(scope="module")
def planted():
    return pl.DataFrame({f"q{i}": values for i, values in enumerate(PLANTED.values())})


@pytest.fixture(scope="module")
def found(planted):
    return screen(planted)


@pytest.mark.parametrize("kind", PLANTED)
def test_identifiers_are_known_by_their_contents_alone(found, kind):
    column = f"q{list(PLANTED).index(kind)}"
    kinds = {f.identifier.kind for f in found.identifiers if f.column == column}
    assert kinds == {kind}
    check = next(c for c in found.safe_harbor if c.item == LETTERS[kind])
    assert check.status == "found"
    assert column in {finding.column for finding in check.findings}


def _everything(result):
    html = result._repr_html_()
    return "\n".join(
        [
            result.summary(), html, repr(result), json.dumps(plain_values(result.to_dict())),
            result.to_frame().write_csv(), json.dumps(result.plot().to_dict()),
        ]
    )  # fmt: skip


def test_no_value_is_ever_shown(planted, found):
    told = _everything(found)
    for column in planted:
        for value in column.to_list():
            assert value not in told
            assert value.lower() not in told.lower()


def test_an_identifier_within_a_text_is_found_and_not_shown():
    notes = [f"came in at noon and was seen by the nurse, visit {i}" for i in range(N)]
    notes[7] += " reach her at 212-555-0147 or jane@secret.example"
    result = screen(pl.DataFrame({"remarks": notes}))
    assert {f.identifier.kind for f in result.identifiers} == {"phone", "email"}
    assert all("1 of its 300" in f.identifier.reason for f in result.identifiers)
    told = _everything(result)
    assert "0147" not in told
    assert "secret.example" not in told
    names = next(c for c in result.safe_harbor if c.item == "A")
    assert names.status == "cannot be told"
    assert "'remarks'" in names.note


FALSE_FRIENDS = {
    "wage": random.integers(10, 90, N) * 1000,
    "has_phone": random.integers(0, 2, N),
    "phone": _some(["yes", "no"]),
    "email": random.integers(1, 3, N),
    "phone_type": _some(["home", "cell", "none"]),
    "state": _some(["Virginia", "Georgia", "Texas", "Ohio", "Maine", "Washington", "Montana"]),
    "income": random.integers(0, 200_000, N),
    "pressure": random.normal(120, 10, N),
    "weight": random.random(N) * 100,
    "stay_days": random.integers(0, 60, N),
    "months_in_service": random.integers(0, 300, N),
    "quarterly_pay": random.integers(0, 9_000, N),
    "year": random.integers(2000, 2024, N),
    "age": random.integers(18, 90, N),
    "page": random.integers(1, 200, N),
    "agency": _some(["VA", "SSA", "IRS"]),
    "capacity": random.integers(1, 50, N),
    "country": _some(["US", "CA", "MX"]),
    "city_size": random.integers(1, 6, N),
    "county_pop": random.integers(1_000, 10**6, N),
    "address_known": random.integers(0, 2, N),
    "test_date_ok": random.integers(0, 2, N),
    "zip3": _some(["000", "021", "100", "606"]),
    "drug": _some(["Aspirin", "Ibuprofen", "Metformin", "Lisinopril"]),
    "hospital": _some(["St Mary", "Johns Hopkins", "Mercy", "General"]),
    "diagnosis": _some(["I10", "E11", "J45", "F32", "M54", "K21"]),
}


def test_false_friends_are_left_alone():
    result = screen(pl.DataFrame(FALSE_FRIENDS))
    assert result.identifiers == ()
    assert [c.item for c in result.safe_harbor if c.status == "found"] == []
    assert result.record_numbers == ()


def test_labelled_codes_are_a_coding_whatever_the_name():
    data = load({"ssn": [1, 2] * 30})
    labelled = data.with_variables([Variable("ssn", "category", value_labels={1: "yes", 2: "no"})])
    assert screen(labelled).identifiers == ()
    assert [f.identifier.kind for f in screen({"ssn": ["a", "b"]}).identifiers] == ["ssn"]


def test_names_are_not_looked_for_among_places():
    counties = [name.title() for name in _some(SURNAMES)]
    result = screen(pl.DataFrame({"county": counties}))
    assert result.identifiers == ()
    assert [f.what for c in result.safe_harbor for f in c.findings] == ["county"]


def _checks(frame, **options):
    return {c.item: c for c in screen(frame, **options).safe_harbor}


def test_the_checklist_has_the_eighteen_items_in_order():
    result = screen({"sex": [1, 2]})
    assert "".join(c.item for c in result.safe_harbor) == "ABCDEFGHIJKLMNOPQR"
    assert [c.title for c in result.safe_harbor] == [item.title for item in ITEMS]
    statuses = {c.item: c.status for c in result.safe_harbor}
    assert statuses.pop("Q") == "cannot be told"
    assert set(statuses.values()) == {"not found"}


@pytest.mark.parametrize(
    ("ages", "records"),
    [
        ([34, 89, 90], None),  # one category of 90 or older
        ([34, 90, 91], 2),
        ([34, 95], 1),
        ([34, 89], None),
        ([34, 999], None),  # a missing code, not an age
        (["0-49", "50-84", "85+"], None),
        (["0-49", "50-89", "90-94", "95 or older"], 2),
    ],
)
def test_ages_over_89_may_stand_as_one_category(ages, records):
    column = pl.Series("AGEP", ages)
    values = column.cast(pl.String)
    found = find_age(Variable("AGEP", "measure"), column, values, year=2024)
    assert (found.records if found else None) == records
    assert (_checks({"AGEP": ages})["C"].status == "found") == (records is not None)


def test_bands_are_known_by_their_labels():
    data = load({"agegrp": [1, 2, 3, 4] * 9})
    labels = {1: "under 50", 2: "50 to 89", 3: "90 to 94", 4: "95 and over"}
    variable = Variable("age group", "category", value_labels=labels)
    column = data.column("agegrp")
    found = find_age(variable, column, sample_values(column), year=2024)
    assert found is not None
    assert found.records == 18


def test_years_of_birth_tell_of_age():
    born = {"yob": [1934, 1935, 1990] * 5}
    assert _checks(born, year=2024)["C"].findings[0].records == 5
    assert _checks(born, year=2023)["C"].status == "not found"
    later = datetime.date.today().year
    assert _checks({"yob": [later - 90, later]})["C"].status == "found"


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(int(x)) for x in random.integers(0, 900, 60)]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (DAYS, "dates to the day"),
        ([day.strftime("%m/%d/%Y") for day in DAYS], "dates to the day"),
        ([day.strftime("%d%b%Y") for day in DAYS], "dates to the day"),
        ([int(day.strftime("%Y%m%d")) for day in DAYS], "dates to the day"),
        ([day.strftime("%Y-%m") for day in DAYS], "dates to the month"),
        ([day.replace(day=1) for day in DAYS], "dates to the month"),
        ([day.replace(day=1, month=1) for day in DAYS], None),
        ([day.year for day in DAYS], None),
        ([DAYS[0]] * 60, None),  # the date of the file
        ([(day - datetime.date(1960, 1, 1)).days for day in DAYS], "dates, as numbers"),
    ],
)
def test_dates_finer_than_the_year(values, what):
    column = pl.Series("admission_date", values)
    found = find_date(Variable("admission_date", "category"), column, sample_values(column))
    assert (found.what if found else None) == what


@pytest.mark.parametrize(
    ("name", "values", "is_one"),
    [
        ("birth_month", list(range(1, 13)), True),
        ("dob_day", list(range(1, 32)), True),
        ("month", ["Jan", "Feb", "Mar"], True),
        ("months", list(range(1, 13)), False),
        ("day_care", [0, 1], False),
        ("pay_per_month", list(range(1, 13)), False),
        ("month", [100, 250, 900], False),
    ],
)
def test_elements_of_dates(name, values, is_one):
    column = pl.Series(name, values * 5)
    found = find_date(Variable(name, "category"), column, sample_values(column))
    assert (found is not None) == is_one


def test_the_prefixes_of_few_people():
    assert len(set(LOW_POPULATION)) == 17
    assert all(len(one) == 3 and one.isdigit() for one in LOW_POPULATION)
    assert zip_digits(pl.Series(["03601-1234", "02134"])) == (9, 1)
    assert zip_digits(pl.Series([3601, 2134, 10001])) == (5, 1)
    assert zip_digits(pl.Series([36, 21, 100])) == (3, 1)
    assert zip_digits(pl.Series(["893xx", "606xx"])) == (3, 1)
    check = _checks({"zip": ["02134", "03601", "60614"]})["B"]
    assert check.findings[0].records == 1
    assert "Census 2000" in check.findings[0].remedy
    assert "036" in check.findings[0].remedy
    assert "current census" in check.findings[0].remedy


@pytest.mark.parametrize(
    ("name", "label", "kind"),
    [
        ("PUMA", "", "census area"),
        ("county_fips", "", "county"),
        ("homeCity", "", "city or town"),
        ("v12", "County of residence", "county"),
        ("area", "Area of residence, within the state", "area"),
        ("state", "", None),
        ("region", "Census region", None),
        ("country_of_birth", "", None),
        ("city_size", "", None),
        ("area_of_study", "", None),
        ("velocity", "", None),
    ],
)
def test_places_below_the_state(name, label, kind):
    column = pl.Series(name, ["a", "b", "c"])
    found = find_place(Variable(name, "category", label=label), column, column)
    assert (found.kind if found else None) == kind


def test_what_determines_a_place_is_a_place_under_another_name():
    puma = random.integers(0, 12, N)
    frame = pl.DataFrame(
        {"PUMA": puma, "density": puma * 10.5 + 1, "sex": random.integers(0, 2, N)}
    )
    findings = _checks(frame)["B"].findings
    assert [f.column for f in findings] == ["PUMA", "density"]
    assert "'PUMA'" in findings[1].reason


NUMBERS = {
    "sequence": list(range(100, 160)),
    "digest": [hashlib.sha1(bytes([i])).hexdigest() for i in range(60)],
    "code": [f"2024GQ{i * 17:07}" for i in range(60)],
}


@pytest.mark.parametrize("sort", NUMBERS)
def test_record_numbers_are_known_by_their_make(sort):
    column = pl.Series("v", NUMBERS[sort])
    found = find_record_number(Variable("v", "category"), column, sample_values(column), [])
    assert found is not None
    assert (found.sort, found.distinct, found.most) == (sort, 1.0, 1)
    shuffled = column.sample(fraction=1, shuffle=True, seed=1)
    again = find_record_number(Variable("v", "category"), shuffled, sample_values(shuffled), [])
    assert again is not None
    assert ("in the order of the file" in found.reason) == (sort == "sequence")
    assert "in the order of the file" not in again.reason


def test_a_repeated_number_ties_a_persons_records():
    frame = pl.DataFrame({"person_id": [i // 3 for i in range(90)], "wave": [0, 1, 2] * 30})
    (one,) = screen(frame).record_numbers
    assert (one.column, one.most) == ("person_id", 3)
    assert one.distinct == pytest.approx(1 / 3)


def test_declared_roles_are_record_numbers():
    result = screen(veterans_sample(400))
    assert {one.column for one in result.record_numbers} == {"puf_id", "household"}


def test_constants_and_nearly_unique_columns():
    frame = pl.DataFrame(
        {
            "one": [1] * N,
            "none": pl.Series([None] * N, dtype=pl.Int64),
            "half": [1, None] * (N // 2),
            "amount": random.normal(size=N),
        }
    )
    result = screen(frame)
    assert result.constants == ("one", "none")
    assert [one.column for one in result.near_unique] == ["amount"]
    found = result.to_dict()
    assert found["constants"] == ["one", "none"]
    assert found["near_unique"] == [{"column": "amount", "distinct": N, "filled": N, "alone": N}]


def test_keys_are_warned_of_and_dependences_are_those_of_keys():
    age = random.integers(18, 60, N)
    frame = pl.DataFrame(
        {
            "age": age, "band": age // 10, "id": range(N), "one": [1] * N,
            "a": random.integers(0, 4, N),
        }
    ).with_columns((pl.col("a") * 2).alias("b"))  # fmt: skip
    everything = screen(frame)
    assert {d.determined for d in everything.dependencies} == {"band", "b"}
    some = screen(frame, keys=["band", "id", "one"])
    assert [(d.by, d.determined) for d in some.dependencies] == [(("age",), "band")]
    told = "\n".join(some.warnings)
    assert "key 'id' identifies people" in told
    assert "key 'one' has one value" in told
    assert "'age', which is not among the keys, reveals key 'band'" in told


def test_all_problems_at_once():
    with pytest.raises(OptionError) as error:
        screen({"age": [1]}, keys=["agee", "ages"], sure=2, nearly="high", year=12)
    assert len(error.value.problems) == 5
    with pytest.raises(OptionError, match=r"once\. Got 'age', 'age' instead"):
        screen({"age": [1]}, keys=["age", "age"])
    with pytest.raises(FileError, match="no records"):
        screen(pl.DataFrame({"age": []}))


def test_a_first_line_that_is_a_record_is_refused_without_showing_it(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Jane,212-22-7788,jane@secret.example\nJoe,313-45-6789,joe@x.example\n")
    with pytest.raises(FileError) as error:
        screen(path)
    assert "column 2, 3" in str(error.value)
    assert "7788" not in str(error.value)
    assert "secret" not in str(error.value)


HOSTILE = "<script>alert(1)</script>\x1b[2J'\"`${x}\u202e email"


def test_hostile_names_do_no_harm():
    values = ["a@b.example", "</script><b>", "\x00", "=cmd()"] * 20
    result = screen(pl.DataFrame({HOSTILE: values, "x" * 200: values, "": range(80)}))
    assert "\x1b" not in result.summary()
    assert "<script>" not in result._repr_html_()
    assert "<script>alert" not in chart_html(result.plot())
    json.loads(json.dumps(plain_values(result.to_dict()), allow_nan=False))


def test_columns_that_cannot_be_read_are_told():
    frame = pl.DataFrame({"scan": [b"\x89PNG", b"\x89PNG"], "tags": [[1], [2]], "sex": [1, 2]})
    checks = _checks(frame)
    assert checks["P"].status == "cannot be told"
    assert "'scan', 'tags'" in checks["Q"].note


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=30),
            st.sampled_from(["1", "02134", "a@b.org", "12/12/2020"]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.text(min_size=1, max_size=20).filter(
        lambda name: name.splitlines() == [name] and name[0] != "^"
    ),
)
def test_any_text_is_screened(values, name):
    result = screen(pl.DataFrame({name: pl.Series(values, dtype=pl.String)}), year=2024)
    assert len(result.safe_harbor) == 18
    assert result.to_frame().height == 1


@given(
    st.lists(st.floats(), min_size=1, max_size=40), st.sampled_from(["age", "zip", "yob", "date"])
)
def test_any_number_is_screened(values, name):
    result = screen(pl.DataFrame({name: values}), year=2024)
    assert len(result.safe_harbor) == 18
    assert result.to_frame().height == 1


def test_check_digits():
    assert luhn_holds("79927398713")
    assert not luhn_holds("79927398710")
    assert iban_holds("DE89 3704 0044 0532 0130 00")
    assert not iban_holds("DE89 3704 0044 0532 0130 01")
    # Numbers of sixteen digits that are no cards: one in ten passes the check by chance.
    numbers = pl.Series([f"{x:016}" for x in random.integers(10**15, 10**16, 200)])
    assert all(
        one.kind != "account number"
        for one in by_contents(numbers, sample_values(numbers), place=False)
    )


def test_the_frame_has_one_row_a_column(found, planted):
    frame = found.to_frame()
    assert frame["column"].to_list() == planted.columns
    assert frame["identifier"].null_count() == 0
    assert frame["distinct"].to_list() == [planted[name].n_unique() for name in planted.columns]


@pytest.mark.parametrize("name", ["age", "zip", "yob", "date"])
def test_infinite_numbers_are_screened(name):
    values = [0.0, 1.0, float("inf"), float("-inf"), float("nan")]
    assert screen(pl.DataFrame({name: values}), year=2024).to_frame().height == 1


def _marks(result):
    spec = result.plot().to_dict()
    rows = spec["datasets"][spec["layer"][0]["data"]["name"]]
    return {(row["column"], row["what"]) for row in rows}


def test_the_picture_marks_the_columns_that_tell_a_key():
    age = random.integers(18, 60, N)
    frame = pl.DataFrame({"age": age, "band": age // 10, "same": 1 - age // 10})
    found = screen(frame, keys=["band"])
    marks = _marks(found)
    assert {("age", "reveals a key"), ("same", "reveals a key")} <= marks
    assert ("band", "reveals a key") not in marks
    assert all(name in str(found.warnings) for name in ("age", "same"))
    assert not any(what == "reveals a key" for _, what in _marks(screen(frame)))


def test_every_nearly_unique_column_is_in_the_table():
    frame = pl.DataFrame({"person_id": range(N), "amount": random.normal(size=N)})
    (table,) = [t for t in screen(frame).tables() if t.title.startswith("Constant and nearly")]
    assert [row[:2] for row in table.rows] == [
        ["person_id", "nearly unique"],
        ["amount", "nearly unique"],
    ]


def test_one_is_not_several():
    text = screen(pl.DataFrame({"zip": ["03601"]})).summary()
    assert "in 1 record and 1 column" in text
    assert "1 records" not in text
