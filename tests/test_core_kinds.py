"""Kinds of values as they are typed on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.core.kinds import Amounts, Candidates, Columns, MissingCodes, Number, Several, Whole

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
