"""Kinds of values as they are typed on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.core.kinds import (
    Amounts,
    Candidates,
    Choice,
    ColumnOrSeveral,
    Columns,
    ColumnsByColumn,
    MissingCodes,
    Number,
    Releases,
    Several,
    Text,
    Whole,
    WordsByColumn,
)

NAMES = st.lists(st.text(min_size=1), min_size=1)


def _quote(name):
    return '"' + name.replace('"', '""') + '"'


@given(NAMES)
def test_any_name_can_be_given_in_quotes(names):
    assert Columns().read(",".join(map(_quote, names))) == tuple(names)


@given(st.lists(NAMES, min_size=1))
def test_any_alternatives_can_be_given_in_quotes(groups):
    text = ",".join("|".join(map(_quote, group)) for group in groups)
    assert Candidates().read(text) == tuple(map(tuple, groups))


@given(st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False)))
def test_any_variable_can_have_a_value(values):
    text = ", ".join(f"{_quote(name)} = {value!r}" for name, value in values.items())
    assert Amounts().read(text) == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("-9", {"*": ["-9"]}),
        ("-9,.,", {"*": ["-9", "."]}),
        ("age:-9|-8,.", {"age": ["-9", "-8"], "*": ["."]}),
        ('"12:00",when:"00:00"|99', {"*": ["12:00"], "when": ["00:00", "99"]}),
        ('"odd:name":1', {"odd:name": ["1"]}),
        ("age:-9,age:-8", {"age": ["-9", "-8"]}),
        ('" "', {"*": [" "]}),
        ("when:12:30", {"when": ["12:30"]}),
    ],
)
def test_missing_codes(text, expected):
    assert {name: codes for name, codes in MissingCodes().read(text).items() if codes} == expected


def test_spaces_around_items_do_not_count():
    assert Columns().read(" sex , age ") == ("sex", "age")
    assert Several(Whole()).read(" 2, 3 ") == (2, 3)


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b"])
def test_an_empty_name_is_refused(text):
    with pytest.raises(ValueError, match="an empty name"):
        Columns().read(text)
    with pytest.raises(ValueError, match="an empty name"):
        Candidates().read(text.replace(",", "|"))


def test_numbers_must_be_numbers():
    whole, any_number = Several(Whole()), Several(Number())
    assert whole.fault(whole.read("2,2.5")) == "a whole number, or several"
    assert any_number.fault(any_number.read("0.1,x")) == "a number, or several"


@pytest.mark.parametrize("text", ["age", "age=", "=2", "age=1,age=2", "age=1=2"])
def test_values_must_be_names_with_a_number_each(text):
    with pytest.raises(ValueError, match=r"age|an empty name"):
        Amounts().read(text)


def test_a_value_must_be_a_number():
    assert "a number above 0" in Amounts().fault(Amounts().read("age=x"))


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        (Number(above=0, high=1), 2, "a number above 0 and at most 1"),
        (Number(low=0), 5, None),
        (Whole(low=1), 0, "a whole number of at least 1"),
        (Whole(low=1), 2.0, "a whole number of at least 1"),
        (Whole(low=1), 3, None),
        (Choice(("own", "drop")), "onw", "one of 'own', 'drop'"),
        (Columns(), 3, "a list of column names"),
        (Columns(), ["a", "a"], "a list that names each column once"),
        (Columns(), [], "a list of at least one column name"),
        (Text(), "half of a character: \ud800", "text"),
        (Text(), "a whole one: \U0001f511", None),
        (Several(Whole(low=1)), [3, 5], None),
        (Several(Whole(low=1)), [0], "a whole number of at least 1, or several"),
    ],
)
def test_what_a_value_must_be(kind, value, fault):
    assert kind.fault(value) == fault


def test_what_is_typed_is_read():
    assert Amounts().read("homstate=3,ms=2") == {"homstate": 3.0, "ms": 2.0}
    words = WordsByColumn(("category", "measure")).read("age=measure,zip=category")
    assert words == {"age": "measure", "zip": "category"}
    lists = ColumnsByColumn().read("age:sex|race,income:age")
    assert lists == {"age": ("sex", "race"), "income": ("age",)}
    assert Columns().read('sex, age,"born, year"') == ("sex", "age", "born, year")
    assert Candidates().read("sex,age|age10") == (("sex",), ("age", "age10"))
    assert Releases().read_all(["A=a.csv", "b.csv"]) == {"A": "a.csv", "b": "b.csv"}


def test_values_are_settled_and_shortened():
    assert ColumnOrSeveral().settle(["sex"]) == "sex"
    assert ColumnOrSeveral().settle(["sex", "age"]) == ("sex", "age")
    settled = Candidates().settle(["sex", "age|age10", ["a|b", "c"]])
    assert settled == (("sex",), ("age", "age10"), ("a|b", "c"))
    shortest = Candidates().shortest((("sex",), ("age", "age10"), ("a|b",)))
    assert shortest == ["sex", "age|age10", ["a|b"]]
    assert Releases().settle("data/puf.csv.gz") == {"puf": "data/puf.csv.gz"}
    assert list(Releases().settle({"age": [31, 47]})) == ["PUF"]
